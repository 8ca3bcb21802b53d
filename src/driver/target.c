/* target: the device and the launch shape of a compilation. The options of the caller and the
 * attributes of the module must agree; either may omit a field.
 *
 *     module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32,
 *                        ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}
 */
#include "target.h"

#include <lilac/bits.h>

#include <string.h>

static bool refuse(lilac_context *context, uint32_t source, const char *what, int64_t said,
                   uint32_t given) {
    lilac_error(context, (lilac_position){source, 0}, 0, "invalid-target",
                "this module is for %lld %s, not %u", (long long)said, what, given);
    return false;
}

/* The most warps of a block of this device; of any device if arch is NULL. */
static uint32_t most_warps(const lilac_arch *arch) {
    uint32_t most = arch != NULL ? arch->max_warps : 0;
    for (size_t i = 0; arch == NULL && lilac_arch_at(i) != NULL; i++) {
        most = lilac_arch_at(i)->max_warps > most ? lilac_arch_at(i)->max_warps : most;
    }
    return most;
}

bool lilac_target_check(lilac_context *context, const lilac_target *target) {
    const struct {
        const char *what;
        uint32_t value, most;
    } shapes[] = {{"number of warps", target->num_warps, most_warps(target->arch)},
                  {"number of blocks of a cluster", target->num_ctas, 16}};
    bool valid = true;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (shapes[i].value == 0 ||
            (is_power_of_two(shapes[i].value) && shapes[i].value <= shapes[i].most)) {
            continue;
        }
        lilac_error(context, (lilac_position){0, 0}, 0, "invalid-target",
                    "%u is no %s: it must be a power of two from 1 to %u", shapes[i].value,
                    shapes[i].what, shapes[i].most);
        valid = false;
    }
    return valid;
}

/* Whether "cuda:90" or "hip:gfx942" names this device. */
static bool is_device(const lilac_arch *arch, const char *name) {
    if (arch->vendor == LILAC_NVIDIA) {
        if (strncmp(name, "cuda:", 5) != 0) {
            return false;
        }
        uint32_t capability = 0;
        for (const char *at = name + 5; *at >= '0' && *at <= '9' && capability < 10000; at++) {
            capability = 10 * capability + (uint32_t)(*at - '0');
        }
        return capability == arch->capability;
    }
    return strncmp(name, "hip:", 4) == 0 && strcmp(name + 4, arch->name) == 0;
}

static bool take_device(lilac_target *target, const lilac_tile_module *module, uint32_t source) {
    const lilac_tile_attribute *said = lilac_tile_find(&module->attributes, "ttg.target");
    if (said == NULL || said->kind != LILAC_TILE_ATTR_STRING) {
        if (target->arch == NULL) {
            target->arch = lilac_arch_find("sm_90a");
        }
        return true;
    }
    const lilac_arch *found = NULL;
    for (size_t i = 0; lilac_arch_at(i) != NULL; i++) {
        if (is_device(lilac_arch_at(i), said->text)) {
            found = lilac_arch_at(i); /* the last match: a specific row follows the common one */
        }
    }
    if (target->arch == NULL) {
        target->arch = found;
    }
    if (target->arch != NULL && is_device(target->arch, said->text)) {
        return true;
    }
    lilac_error(module->context, (lilac_position){source, 0}, 0, "invalid-target",
                "this module is for the device '%s', %s%s", said->text,
                target->arch == NULL ? "which is not known here" : "not for ",
                target->arch == NULL ? "" : target->arch->name);
    return false;
}

static bool take_count(uint32_t *count, uint32_t otherwise, uint32_t most, const char *attribute,
                       const char *what, const lilac_tile_module *module, uint32_t source) {
    int64_t said = lilac_tile_find_integer(&module->attributes, attribute, 0);
    const bool absent = lilac_tile_find(&module->attributes, attribute) == NULL;
    if (!absent && (said <= 0 || !is_power_of_two((uint64_t)said) || said > most)) {
        lilac_error(module->context, (lilac_position){source, 0}, 0, "invalid-target",
                    "the module's attribute '%s' must be a power of two from 1 to %u", attribute,
                    most);
        return false;
    }
    if (*count == 0) {
        *count = absent ? otherwise : (uint32_t)said;
    }
    return absent || *count == said || refuse(module->context, source, what, said, *count);
}

bool lilac_target_take(lilac_target *target, const lilac_tile_module *module, uint32_t source) {
    if (!take_device(target, module, source) || !lilac_target_check(module->context, target)) {
        return false;
    }
    const lilac_arch *arch = target->arch;
    uint32_t lanes = arch->warp_size;
    return take_count(&target->num_warps, 4, arch->max_warps, "ttg.num-warps", "warps", module,
                      source) &&
           take_count(&target->num_ctas, 1, 16, "ttg.num-ctas", "blocks of a cluster", module,
                      source) &&
           take_count(&lanes, lanes, 64, "ttg.threads-per-warp", "threads of a warp", module,
                      source);
}
