/* Loop-invariant code motion: a pure instruction directly in the body of a loop whose operands are
 * all defined outside moves before the loop.
 *
 *     loop %i = … {                  %0 = mul %a, %b : i32
 *       %0 = mul %a, %b : i32    →   loop %i = … {
 *       %1 = add %0, %i : i32          %1 = add %0, %i : i32
 *
 * Inner loops come first, so an instruction can leave several loops; bodies are walked in the
 * order of the text, so chains leave in one walk. Three kinds stay: memory reads (another thread
 * may write), divisions that could trap (the loop may run no iteration), and instructions of an if
 * in the loop (it may rarely be taken). A loop with keep_invariants does not change. */
#include "internal.h"

static bool is_invariant(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    if (!lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) || i->result_count == 0 ||
        lilac_simt_may_trap(kernel, i)) {
        return false;
    }
    for (uint32_t k = 0; k < i->operand_count; k++) {
        if (kernel->values[i->operands[k]].body == i->parent) {
            return false;
        }
    }
    return true;
}

static bool hoist(lilac_simt_kernel *kernel, lilac_simt_body *body) {
    bool changed = false;
    for (lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= hoist(kernel, i->bodies[k]);
        }
    }
    lilac_simt_instruction *owner = body->parent;
    if (owner == NULL || owner->code == LILAC_SIMT_OP_IF || owner->code == LILAC_SIMT_OP_PROGRAMS ||
        owner->detail == LILAC_SIMT_KEEP_INVARIANTS) {
        return changed;
    }
    lilac_simt_instruction *next;
    for (lilac_simt_instruction *i = body->first; i != NULL; i = next) {
        next = i->next;
        if (is_invariant(kernel, i)) {
            lilac_simt_move(kernel, i, owner);
            changed = true;
        }
    }
    return changed;
}

bool lilac_simt_opt_licm(lilac_simt_kernel *kernel) {
    return hoist(kernel, kernel->body);
}
