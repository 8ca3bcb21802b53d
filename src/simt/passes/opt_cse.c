/* Common subexpression elimination: of equal pure instructions the first one in scope stays.
 *
 *     %0 = mul %a, %b : i32          %0 = mul %a, %b : i32
 *     loop … {                       loop … {
 *       %1 = mul %b, %a : i32    →     st.shared [%s], (%0)
 *       st.shared [%s], (%1)
 *
 * One walk in the order of the text. The values of a body are forgotten at its end, so a value
 * that is found dominates its new uses. Instructions without operands move to the head of the
 * kernel, where every body can use them. Memory reads are not merged: another thread may write in
 * between. The result keeps a no-wrap flag only if both instructions have it. */
#include "internal.h"

#include <string.h>

typedef struct merger {
    lilac_simt_kernel *kernel;
    struct lilac_simt_memo *memo;
    lilac_simt_value *replacement; /* of each value; 0: itself */
    bool at_head;                  /* nothing but leaves before here */
    bool changed;
} merger;

static void merge(merger *m, lilac_simt_instruction *i, lilac_simt_value found) {
    lilac_simt_instruction *kept = m->kernel->values[found].definition;
    uint32_t wrap = LILAC_SIMT_NO_SIGNED_WRAP | LILAC_SIMT_NO_UNSIGNED_WRAP;
    kept->flags &= (uint8_t)(i->flags | ~wrap);
    for (uint32_t k = 0; k < i->result_count; k++) {
        m->replacement[i->result + k] = found + k;
        lilac_simt_inherit(m->kernel, i->result + k, found + k);
    }
    lilac_simt_unlink(i);
    m->changed = true;
}

static void remember(merger *m, lilac_simt_instruction *i, uint32_t hash) {
    lilac_simt_body *top = m->kernel->body;
    if (i->operand_count == 0) {
        if (i->parent != top) {
            lilac_simt_instruction *last = m->memo->last_leaf;
            lilac_simt_move(m->kernel, i, last != NULL ? last->next : top->first);
            m->memo->last_leaf = i;
            m->changed = true;
        } else if (m->at_head) {
            m->memo->last_leaf = i;
        }
    }
    lilac_simt_memo_add(m->memo, i, hash);
}

static void merge_body(merger *m, lilac_simt_body *body) {
    uint32_t mark = lilac_simt_memo_open(m->memo);
    lilac_simt_instruction *next;
    for (lilac_simt_instruction *i = body->first; i != NULL; i = next) {
        next = i->next;
        for (uint32_t k = 0; k < i->operand_count; k++) {
            lilac_simt_value value = m->replacement[i->operands[k]];
            i->operands[k] = value != 0 ? value : i->operands[k];
        }
        if (!lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) || i->result_count == 0) {
            m->at_head = false;
            for (uint32_t k = 0; k < i->body_count; k++) {
                merge_body(m, i->bodies[k]);
            }
            continue;
        }
        m->at_head &= i->operand_count == 0;
        uint32_t hash;
        lilac_simt_type type = (lilac_simt_type)m->kernel->values[i->result].type;
        lilac_simt_value found =
            lilac_simt_memo_find(m->memo, m->kernel, i, i->result_count, type, &hash);
        if (found != 0) {
            merge(m, i, found);
        } else {
            remember(m, i, hash);
        }
    }
    lilac_simt_memo_close(m->memo, mark);
}

bool lilac_simt_opt_cse(lilac_simt_kernel *kernel) {
    struct lilac_simt_memo memo = {0};
    merger m = {.kernel = kernel, .memo = &memo, .at_head = true};
    size_t size = sizeof *m.replacement * kernel->value_count;
    m.replacement = lilac_heap_grow(NULL, size);
    memset(m.replacement, 0, size);
    merge_body(&m, kernel->body);
    lilac_heap_free(m.replacement);
    lilac_simt_memo_clear(&memo);
    return m.changed;
}
