/* The harness of the tests of wgmma on the simulator: lines of kernels, and a search for
 * findings at these lines. */
#ifndef LILAC_TESTS_WGMMA_FINDINGS_H
#define LILAC_TESTS_WGMMA_FINDINGS_H

#include <lilac/simt_matrix.h>

#include "support/sim_kernels.h"

enum { FIRST = 1, BARRIER, COPY, FRAGMENT, FENCE, MULTIPLY, COMMIT, WAIT, LAST };

static inline uint32_t line_of(rig *r, lilac_location location) {
    lilac_name file;
    uint32_t line = 0, column = 0;
    return lilac_location_file(r->context, location, &file, &line, &column) ? line : 0;
}

/* Is there a finding of this kind at this line (0: any), with a note at the other (0: none wanted)? */
static inline bool found(rig *r, const char *id, uint32_t line, uint32_t other) {
    for (const lilac_diagnostic *d = lilac_diagnostics(r->context); d; d = d->next) {
        if (!d->id || strcmp(d->id, id) != 0 || (line && line_of(r, d->location) != line)) {
            continue;
        }
        if (other == 0 || (d->notes && line_of(r, d->notes->location) == other)) {
            return true;
        }
    }
    return false;
}

static inline void show(rig *r) {
    for (const lilac_diagnostic *d = lilac_diagnostics(r->context); d; d = d->next) {
        print_error("%s, line %u: %s\n", d->id, line_of(r, d->location), d->message);
    }
}

static inline lilac_simt_value yes(rig *r, bool truth) {
    return lilac_simt_constant(&r->b, LILAC_SIMT_I1, truth);
}

static const lilac_simt_matrix_payload f16 = {
    .a = LILAC_MATRIX_F16, .b = LILAC_MATRIX_F16, .d = LILAC_MATRIX_F32, .m = 64, .n = 64, .k = 16};

#endif
