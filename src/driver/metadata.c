/* What a launcher must know of a compiled kernel, and what each pass cost, as one line of JSON.
 *
 * The keys are those that Triton's launcher reads (name, shared, num_warps, num_ctas, cluster_dims,
 * tmem_size, the scratch sizes and alignments); kernels made here ask for no scratch memory, no
 * tensor memory and no tensor descriptors, so those say none.
 */
#include <lilac/driver.h>

#include <string.h>

static void put_string(lilac_text *out, const char *string) {
    lilac_text_json(out, string, strlen(string));
}

static void put_parameters(lilac_text *out, const lilac_tile_function *function) {
    lilac_text type;
    lilac_text_init(&type);
    lilac_text_puts(out, ", \"parameters\": [");
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const lilac_tile_value *parameter = function->parameters[i];
        lilac_text_puts(out, i == 0 ? "{\"name\": " : ", {\"name\": ");
        put_string(out, parameter->name != NULL ? parameter->name : "");
        lilac_text_reset(&type);
        lilac_tile_print_type(&type, parameter->type);
        lilac_text_puts(out, ", \"type\": ");
        lilac_text_json(out, lilac_text_get(&type), type.length);
        lilac_text_char(out, '}');
    }
    lilac_text_char(out, ']');
    lilac_text_clear(&type);
}

static const lilac_simt_kernel *find_kernel(const lilac_simt_module *module, lilac_name name) {
    if (module == NULL) {
        return NULL;
    }
    const lilac_simt_kernel *kernel = module->kernels;
    while (kernel != NULL && strcmp(kernel->name, name) != 0) {
        kernel = kernel->next;
    }
    return kernel;
}

static void put_kernel(lilac_text *out, const lilac_tile_function *function,
                       const lilac_simt_kernel *kernel, const lilac_target *target) {
    lilac_text_puts(out, "\"name\": ");
    put_string(out, function->name);
    lilac_text_puts(out, ", \"target\": ");
    put_string(out, target->arch->name);
    if (kernel != NULL) {
        lilac_text_printf(out, ", \"shared\": %u", kernel->shared_bytes);
    } else {
        lilac_text_puts(out, ", \"shared\": null");
    }
    lilac_text_printf(out,
                      ", \"num_warps\": %u, \"num_ctas\": %u, \"num_stages\": %u"
                      ", \"warp_size\": %u, \"cluster_dims\": [%u, 1, 1], \"tmem_size\": 0"
                      ", \"tensordesc_meta\": []"
                      ", \"global_scratch_size\": 0, \"global_scratch_align\": 1"
                      ", \"profile_scratch_size\": 0, \"profile_scratch_align\": 1",
                      target->num_warps, target->num_ctas, target->num_stages,
                      target->arch->warp_size, target->num_ctas);
    put_parameters(out, function);
}

/* The next function at or after this one that is a kernel. */
static const lilac_tile_function *next_kernel(const lilac_tile_function *function) {
    while (function != NULL && (!function->is_public || function->body == NULL)) {
        function = function->next;
    }
    return function;
}

static void put_passes(lilac_text *out, const lilac_compilation *compilation) {
    lilac_text_puts(out, "\"passes\": [");
    for (uint32_t i = 0; i < compilation->pass_count; i++) {
        const lilac_pass_statistics *pass = &compilation->passes[i];
        lilac_text_puts(out, i == 0 ? "{\"name\": " : ", {\"name\": ");
        put_string(out, pass->name);
        lilac_text_printf(out, ", \"seconds\": %.9f, \"operations\": %u}", pass->seconds,
                          pass->operations);
    }
    lilac_text_char(out, ']');
}

void lilac_compilation_json(lilac_text *out, const lilac_compilation *compilation,
                            const lilac_options *options) {
    (void)options; /* what the module completed of them is the compilation's */
    const lilac_tile_function *function = next_kernel(compilation->tile->functions);
    lilac_text_char(out, '{');
    if (function != NULL) {
        put_kernel(out, function, find_kernel(compilation->simt, function->name),
                   &compilation->target);
        lilac_text_puts(out, ", ");
        function = next_kernel(function->next);
    }
    if (function != NULL) {
        lilac_text_puts(out, "\"more_kernels\": [");
        for (const char *separator = "{"; function != NULL; separator = ", {") {
            lilac_text_puts(out, separator);
            put_kernel(out, function, find_kernel(compilation->simt, function->name),
                       &compilation->target);
            lilac_text_char(out, '}');
            function = next_kernel(function->next);
        }
        lilac_text_puts(out, "], ");
    }
    put_passes(out, compilation);
    lilac_text_char(out, '}');
}
