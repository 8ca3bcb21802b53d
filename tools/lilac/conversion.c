/* A conversion between two tensor types: its plan, the kernel that executes it, and the simulation.
 */
#include "conversion.h"

#include <stdio.h>

static bool check_types(lilac_context *context, const type_pair *types) {
    for (uint32_t side = 0; side < 2; side++) {
        if (!type_is_distributed(&types->type[side])) {
            return pair_refuse(context, types, side, "layout-of-memory",
                               "expected a tensor that registers, lanes and warps hold");
        }
    }
    return pair_same_elements(context, types);
}

bool conversion_make(conversion *c, lilac_context *context, const type_pair *types,
                     const lilac_plan_options *options, const conversion_device *device) {
    const laid_out_type *source = &types->type[0], *target = &types->type[1];
    *c = (conversion){.types = types};
    if (!check_types(context, types)) {
        return false;
    }
    lilac_reason why;
    const lilac_arch *arch = device->arch != NULL ? device->arch : type_device(source);
    if (lilac_layout_in_bits(&source->layout, "block") > 0 &&
        !lilac_arch_has(arch, LILAC_HAS_CLUSTERS)) {
        snprintf(why.text, sizeof why.text, "%s has no clusters of blocks", arch->name);
        return pair_refuse(context, types, 1, "no-conversion", why.text);
    }
    lilac_arch narrow = *arch;
    if (device->vector_bytes != 0 && device->vector_bytes <= arch->vector_bytes) {
        narrow.vector_bytes = device->vector_bytes;
        narrow.features &= ~(uint32_t)(LILAC_HAS_LDMATRIX | LILAC_HAS_STMATRIX);
    }
    if (!lilac_plan_conversion_init(&c->plan, &source->layout, &target->layout,
                                    source->element_bits, options, &narrow, &why)) {
        return pair_refuse(context, types, 1, "no-conversion", why.text);
    }
    c->plan.arch = arch;
    c->module = lilac_lower_movement_kernel(context, &c->plan);
    return c->module != NULL;
}

static void say_disagreement(const conversion *c, const lilac_text *said) {
    fputs("lilac: the simulation of this conversion is not what was planned\n", stderr);
    for (uint32_t side = 0; side < 2; side++) {
        fputs("  ", stderr);
        fwrite(c->types->text[side], 1, c->types->length[side], stderr);
        fputc('\n', stderr);
    }
    fputs(lilac_text_get(said), stderr);
}

bool conversion_check(conversion *c, lilac_context *context) {
    lilac_text said = {0};
    check_plan(&c->checked, &said, context, c->module, &c->plan, &c->types->type[0].layout,
               &c->types->type[1].layout);
    const bool good = plan_check_passed(&c->checked);
    if (!good) {
        say_disagreement(c, &said);
    }
    lilac_text_clear(&said);
    return good;
}

void conversion_improve(conversion *c) {
    lilac_run_simt_passes(c->module);
}

void conversion_clear(conversion *c) {
    lilac_simt_module_destroy(c->module);
    c->module = NULL;
}

int conversion_scratch(const subcommand *command, lilac_plan_options *options, const char *bytes) {
    if (bytes != NULL &&
        (!read_number(bytes, UINT32_MAX, &options->scratch_bytes) || options->scratch_bytes == 0)) {
        return usage_error(command, "--scratch takes a number of bytes, not '%s'", bytes);
    }
    return -1;
}

int conversion_vector_check(const subcommand *command, const conversion_device *device) {
    if ((device->vector_bytes & (device->vector_bytes - 1)) != 0) {
        return usage_error(command, "--vector takes a power of two of bytes");
    }
    return -1;
}

int conversion_pairs_run(const subcommand *command, const string_list *operands, type_scope *scope,
                         pair_answer *answer, void *data) {
    const pair_source source = {"two tensor types", pair_of_conversion, scope};
    const int status = type_scope_check(command, scope);
    return status < 0 ? pairs_run(command, operands, &source, answer, data) : status;
}
