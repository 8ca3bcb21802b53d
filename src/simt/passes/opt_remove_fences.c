/* Fences of the async proxy that fence nothing go.
 *
 *     fence.proxy_async shared               →   (nothing)
 *     barrier {shared}                           barrier {shared}      opt_barriers removes it, too
 *     mbarrier.init … ; cp.tensor.load …         …
 *
 * Such a fence orders the accesses to shared memory that the thread made before. Where there is none
 * on any path from the start of the kernel, it has no effect, but the program waits for it: a first
 * tensor copy in front of all other accesses starts that much later. */
#include "internal.h"

typedef struct removal {
    bool accessed; /* on some path, by now */
    bool changed;
} removal;

static bool is_fence(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_FENCE_PROXY_ASYNC && i->detail == 0;
}

static bool is_access(const lilac_simt_instruction *i) {
    return !is_fence(i) && i->code != LILAC_SIMT_OP_PREFETCH_TENSOR_MAP &&
           lilac_simt_has_trait(i->code, LILAC_SIMT_SHARED | LILAC_SIMT_MBARRIER |
                                             LILAC_SIMT_SWIZZLED | LILAC_SIMT_ASYNCHRONOUS);
}

static bool has_access(const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (has_access(i->bodies[k])) {
                return true;
            }
        }
        if (is_access(i)) {
            return true;
        }
    }
    return false;
}

static void visit(removal *r, lilac_simt_body *body) {
    lilac_simt_instruction *next;
    for (lilac_simt_instruction *i = body->first; i != NULL; i = next) {
        next = i->next;
        const bool repeats = i->code == LILAC_SIMT_OP_LOOP || i->code == LILAC_SIMT_OP_WHILE;
        bool accessed = r->accessed;
        for (uint32_t k = 0; k < i->body_count; k++) {
            accessed |= has_access(i->bodies[k]);
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            removal inner = {.accessed = repeats ? accessed : r->accessed};
            visit(&inner, i->bodies[k]);
            r->changed |= inner.changed;
        }
        r->accessed = accessed || is_access(i);
        if (is_fence(i) && !r->accessed) {
            lilac_simt_unlink(i);
            r->changed = true;
        }
    }
}

bool lilac_simt_opt_remove_fences(lilac_simt_kernel *kernel) {
    removal r = {0};
    visit(&r, kernel->body);
    return r.changed;
}
