/* The PTX ISA version that a module is written in: the lowest that its device and all that it uses
 * have, so that old assemblers and drivers take it.
 *
 *   .target sm_90a                                8.0    the device's row (devices.def)
 *   atom.global.gpu.relaxed.add.v2.f32 …          8.1    a row of features.def
 *   ─────────────────────────────────────────────────
 *   .version 8.1
 *
 * The text of inline assembly is not read for its instructions. A module with inline assembly is
 * written in the newest version that the caller allows or, if the caller does not say, in that of
 * a toolkit that its device is usually used with (also in the device's row).
 *
 * The number stands in the first line, before it is known; it is filled in at the end. */
#include "emit.h"

static const struct {
    uint32_t version;
    const char *what;
} features[] = {
#define FEATURE(name, version, device, what, sample) [LILAC_PTX_##name] = {version, what},
#include "features.def"
#undef FEATURE
};

/* Raises the version; refuses what is above the newest one allowed. */
static void raise_to(lilac_ptx_emitter *e, uint32_t version, const char *what) {
    const uint32_t newest = e->options->newest_version;
    if (version <= e->version) {
        return;
    }
    e->version = version;
    if (newest == 0 || version <= newest || !e->ok) {
        return;
    }
    lilac_error(e->module->context, (lilac_position){0, 0}, e->at, "ptx-version",
                "%s needs PTX ISA version %u.%u, and the newest that may be written is %u.%u", what,
                version / 10, version % 10, newest / 10, newest % 10);
    e->ok = false;
}

void lilac_ptx_need(lilac_ptx_emitter *e, lilac_ptx_feature feature) {
    raise_to(e, features[feature].version, features[feature].what);
}

void lilac_ptx_need_version(lilac_ptx_emitter *e, uint32_t version, const char *what) {
    raise_to(e, version, what);
}

void lilac_ptx_need_device(lilac_ptx_emitter *e) {
    e->at = e->module->kernels != NULL ? e->module->kernels->location : 0;
    raise_to(e, e->arch->ptx_version, e->arch->name);
}

void lilac_ptx_need_assembly(lilac_ptx_emitter *e) {
    const uint32_t newest = e->options->newest_version;
    raise_to(e, newest != 0 ? newest : e->arch->ptx_assembly, "inline assembly");
}

/* ---- the first line ---------------------------------------------------------------------- */

static const char directive[] = ".version ";

void lilac_ptx_begin_version(lilac_ptx_emitter *e) {
    e->version_at = e->out->length + sizeof directive - 1;
    lilac_text_printf(e->out, "%s0.0\n", directive);
}

void lilac_ptx_end_version(lilac_ptx_emitter *e) {
    char *digits = e->out->bytes + e->version_at;
    digits[0] = (char)('0' + e->version / 10);
    digits[2] = (char)('0' + e->version % 10);
}

uint32_t lilac_ptx_version_of_cuda(uint32_t cuda) {
    const uint32_t major = cuda / 1000, minor = cuda % 1000 / 10;
    if (major < 11) {
        return 0;
    }
    if (major == 11) {
        return 70 + minor;
    }
    if (major == 12) {
        return 80 + minor - (minor >= 6); /* 12.6 has that of 12.5 */
    }
    return 10 * (major - 4) + minor;
}
