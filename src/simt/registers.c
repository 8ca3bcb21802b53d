/* Which values share a register because an instruction updates it in place (simt_matrix.h).
 *
 *     %1 = wgmma %0, …       %1 has the register of %0 where this is the only use of %0 and %0 is
 *                            defined in the same body: nobody can miss what was in it
 *     %2 = wgmma.wait %1     always the register of %1
 *     %r = loop … (%a = …)   the register of %a
 *
 * Everything else has a register of its own. */
#include "internal.h"

#include <lilac/simt_matrix.h>

#include <string.h>

typedef struct analysis {
    const lilac_simt_kernel *kernel;
    uint32_t *uses;
    lilac_simt_value *homes;
} analysis;

/* May the printer of a target give the result the register of the operand? */
static bool may_rename(uint32_t code) {
    switch (code) {
    case LILAC_SIMT_OP_CONST:
    case LILAC_SIMT_OP_PARAM:
    case LILAC_SIMT_OP_BITCAST:
    case LILAC_SIMT_OP_SEXT:
    case LILAC_SIMT_OP_ZEXT:
    case LILAC_SIMT_OP_TRUNC:
    case LILAC_SIMT_OP_FCVT:
    case LILAC_SIMT_OP_PACK:
    case LILAC_SIMT_OP_UNPACK:
        return true;
    default:
        return false;
    }
}

/* Is the value's register free behind its one use, by `user`? */
static bool gives_register(const analysis *a, lilac_simt_value value,
                           const lilac_simt_instruction *user) {
    const lilac_simt_value_info *info = &a->kernel->values[value];
    const lilac_simt_instruction *d = info->definition;
    if (a->uses[value] != 1 || info->body != user->parent) {
        return false;
    }
    if (d != NULL && d->code == LILAC_SIMT_OP_WGMMA_WAIT) {
        return gives_register(a, d->operands[value - d->result], d);
    }
    return d == NULL || !may_rename(d->code);
}

static void walk(analysis *a, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            walk(a, i->bodies[k]);
        }
        for (uint32_t k = 0; k < i->result_count; k++) {
            lilac_simt_value *home = &a->homes[i->result + k];
            switch (i->code) {
            case LILAC_SIMT_OP_WGMMA:
                if (gives_register(a, i->operands[k], i)) {
                    *home = a->homes[i->operands[k]];
                }
                break;
            case LILAC_SIMT_OP_WGMMA_WAIT:
                *home = a->homes[i->operands[k]];
                break;
            case LILAC_SIMT_OP_LOOP:
                *home = i->bodies[0]->argument + 1 + k;
                break;
            case LILAC_SIMT_OP_WHILE:
                *home = i->bodies[1]->argument + k;
                break;
            default:
                break;
            }
        }
    }
}

void lilac_simt_register_homes(const lilac_simt_kernel *kernel, lilac_simt_value *homes) {
    size_t size = sizeof(uint32_t) * ((size_t)kernel->value_count + 1);
    analysis a = {.kernel = kernel, .uses = lilac_heap_grow(NULL, size), .homes = homes};
    memset(a.uses, 0, size);
    lilac_simt_count_uses(kernel->body, a.uses);
    for (lilac_simt_value v = 0; v < kernel->value_count; v++) {
        homes[v] = v;
    }
    walk(&a, kernel->body);
    lilac_heap_free(a.uses);
}
