/* CuTe layouts and named memory layouts on the command line, in place of a type.
 *
 * Both are maps from coordinates to offsets. As a TYPE they denote the memory layout that is the
 * inverse map. A map without an inverse, or one that is not linear, can still be read as a CuTe
 * layout or as a map to offsets.
 */
#include "types.h"

#include <string.h>

bool form_at(const lilac_scanner *scanner) {
    return lilac_memory_form_at(scanner) || lilac_cute_at(scanner);
}

bool form_read(lilac_scanner *scanner, layout_form *form) {
    form->position = lilac_scanner_position(scanner);
    form->is_cute = !lilac_memory_form_at(scanner);
    if (!(form->is_cute ? lilac_cute_read(scanner, &form->as.cute)
                        : lilac_memory_form_read(scanner, &form->as.memory))) {
        return false;
    }
    if (scanner->kind != LILAC_TOKEN_END) {
        return lilac_scanner_expected(scanner, "the end of the layout");
    }
    return lilac_error_count(scanner->context) == 0;
}

static bool said(lilac_context *context, const layout_form *form, bool good, const char *id,
                 const lilac_reason *why) {
    if (!good) {
        lilac_error(context, form->position, 0, id, "%s", why->text);
    }
    return good;
}

bool form_layout(lilac_context *context, lilac_layout *result, const layout_form *form) {
    lilac_reason why = {""};
    const bool good = form->is_cute ? lilac_cute_memory(result, &form->as.cute, &why)
                                    : lilac_memory_form_layout(result, &form->as.memory, &why);
    return said(context, form, good, "no-linear-layout", &why);
}

bool form_offsets(lilac_context *context, lilac_layout *result, const layout_form *form) {
    lilac_reason why = {""};
    const bool good = form->is_cute ? lilac_cute_map(result, &form->as.cute, &why)
                                    : lilac_memory_form_map(result, &form->as.memory, &why);
    return said(context, form, good, "no-linear-layout", &why);
}

bool form_cute(lilac_context *context, lilac_cute *result, const layout_form *form) {
    lilac_reason why = {""};
    if (form->is_cute) {
        *result = form->as.cute;
        return true;
    }
    return said(context, form, lilac_memory_form_cute(result, &form->as.memory, &why),
                "no-cute-layout", &why);
}

bool form_read_type(lilac_scanner *scanner, laid_out_type *type) {
    layout_form form;
    if (!form_read(scanner, &form) || !form_layout(scanner->context, &type->layout, &form)) {
        return false;
    }
    type->rank = type->layout.out_count;
    type->element_bits = 0;
    type->padding_count = form.is_cute ? 0 : form.as.memory.padding_count;
    for (uint32_t i = 0; i < type->padding_count; i++) {
        type->padding[i].interval = form.as.memory.padding[i].interval;
        type->padding[i].padding = form.as.memory.padding[i].padding;
    }
    for (uint32_t d = 0; d < type->rank; d++) {
        type->shape[d] = INT64_C(1) << type->layout.out[d].bits;
    }
    return true;
}
