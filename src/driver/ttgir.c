/* ttgir: the tile module of a compilation as the text that Triton's parser reads.
 *
 *   #blocked = #ttg.blocked<{…}>
 *   module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
 *                      "ttg.threads-per-warp" = 32 : i32} {
 */
#include "target.h"

#include <lilac/driver.h>

static void set_number(lilac_tile_module *module, const char *name, uint32_t value) {
    lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGER,
                                      .name = lilac_intern_string(module->context, name),
                                      .type = lilac_tile_scalar(module, LILAC_I32),
                                      .integer = value};
    lilac_tile_set_attribute(module, &module->attributes, &attribute);
}

static void set_target(lilac_tile_module *module, const lilac_arch *arch) {
    lilac_text text = {0};
    if (arch->vendor == LILAC_NVIDIA) {
        lilac_text_printf(&text, "cuda:%u", arch->capability);
    } else {
        lilac_text_printf(&text, "hip:%s", arch->name);
    }
    lilac_tile_attribute attribute = {
        .kind = LILAC_TILE_ATTR_STRING,
        .name = lilac_intern_string(module->context, "ttg.target"),
        .text = lilac_intern(module->context, lilac_text_get(&text), text.length)};
    lilac_tile_set_attribute(module, &module->attributes, &attribute);
    lilac_text_clear(&text);
}

void lilac_compilation_ttgir(lilac_text *out, lilac_compilation *compilation, bool locations) {
    lilac_tile_module *module = compilation->tile;
    const lilac_target *target = &compilation->target;
    set_number(module, "ttg.num-ctas", target->num_ctas);
    set_number(module, "ttg.num-warps", target->num_warps);
    set_target(module, target->arch);
    set_number(module, "ttg.threads-per-warp", target->arch->warp_size);
    lilac_tile_name_layouts(module);
    lilac_tile_print(out, module, locations);
}
