/* Copies that one thread starts follow each other: what computes their addresses moves in front of them.
 *
 *     mbarrier.expect [%b], %first, (%n)               %s = add %ring, %slot : i32
 *     %s = add %ring, %slot : i32                      %x = add %column, 64 : i32
 *     cp.tensor.load [%s], %first, (…)          →      mbarrier.expect [%b], %first, (%n)
 *     %x = add %column, 64 : i32                       cp.tensor.load [%s], %first, (…)
 *     cp.tensor.load [%t], %first, (…, %x, …)          cp.tensor.load [%t], %first, (…, %x, …)
 *
 * In PTX they are then under one branch (target/ptx/bulk.c). */
#include "internal.h"

typedef lilac_simt_instruction instruction;

static bool may_move(const instruction *i) {
    return lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->body_count == 0 &&
           !lilac_simt_has_trait(i->code, LILAC_SIMT_CONVERGENT);
}

/* The last copy of those from `first` on that only such instructions separate. */
static instruction *last_of(const lilac_simt_kernel *kernel, instruction *first) {
    const lilac_simt_value predicate = lilac_simt_copy_predicate(kernel, first);
    instruction *last = first;
    for (instruction *i = first->next; i != NULL; i = i->next) {
        if (lilac_simt_copy_predicate(kernel, i) == predicate) {
            last = i;
        } else if (!may_move(i)) {
            break;
        }
    }
    return last;
}

static bool visit(lilac_simt_kernel *kernel, lilac_simt_body *body) {
    bool changed = false;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= visit(kernel, i->bodies[k]);
        }
        if (lilac_simt_copy_predicate(kernel, i) == 0) {
            continue;
        }
        instruction *first = i, *last = last_of(kernel, first), *next;
        for (i = first; i != last; i = next) {
            next = i->next;
            if (lilac_simt_copy_predicate(kernel, i) == 0) {
                lilac_simt_move(kernel, i, first);
                changed = true;
            }
        }
    }
    return changed;
}

bool lilac_simt_opt_gather_copies(lilac_simt_kernel *kernel) {
    return visit(kernel, kernel->body);
}
