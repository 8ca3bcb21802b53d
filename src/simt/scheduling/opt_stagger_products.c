/* Loops wait for the rows of a product one after another, not for all rows at once.
 *
 *     wgmma.fence                                  wgmma.fence
 *     %s0 = wgmma …   %s1 = wgmma …                %s0 = wgmma …
 *     wgmma.commit                                 wgmma.commit
 *     wgmma.fence                                  wgmma.fence
 *     %o0 = wgmma …   %o1 = wgmma …                %o0 = wgmma …
 *     wgmma.commit                           →     wgmma.commit
 *     %a, %b = wgmma.wait %s0, %s1 {groups = 1}    … the same for %s1 and %o1
 *     … work on %a, work on %b                     %a = wgmma.wait %s0 {groups = 3}
 *                                                  … work on %a
 *                                                  %b = wgmma.wait %s1 {groups = 1}
 *                                                  … work on %b
 *
 * Tensor cores execute wgmmas in their order. So the work on the first rows (attention: the softmax
 * of 64 rows) starts when a fraction of the first product is complete, and overlaps with the rest
 * of both; and what computes the operands of %o1 overlaps with %s0 and %o0. Branches that only choose
 * accumulators (products with factors that are often 1) move with the products that need them.
 *
 * The part of the first product that is awaited later is later by the part of the second one that
 * precedes it. Therefore the work on each part must take as long as the products that are issued
 * between it and the next one: a branch in that work, such as one around a mask, ends it.
 *
 * The number of groups in flight behind the last wait is the same, one, and no wgmma is in flight
 * longer than before: waits that follow, in this iteration or the next, mean what they meant.
 */
#include "internal.h"

#include <lilac/matrix.h>
#include <lilac/simt_matrix.h>

#include <string.h>

enum {
    MOST_CHAINS = 4, /* 2 · 4 - 1 groups are the most that a wait can leave incomplete */
    WARPS_OF_GROUP = 4
};

static const uint32_t NONE = UINT32_MAX;

typedef lilac_simt_instruction instruction;

typedef struct staggering {
    lilac_simt_kernel *kernel;
    instruction *wait, *first;           /* the first instruction of what is reordered */
    instruction *fences[2], *commits[2]; /* of the two products */
    instruction *last[2][MOST_CHAINS];   /* the last wgmma of each chain on the same accumulators */
    uint32_t clocks[2][MOST_CHAINS];     /* of the tensor cores */
    uint32_t chains[2];
    instruction *end; /* the first instruction behind the work on the results */
    uint32_t *slot;   /* by value: where its instruction goes; NONE: it does not move */
} staggering;

static bool is_movable(const instruction *i) {
    return i->result_count > 0 && i->body_count == 0 &&
           (lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) || i->code == LILAC_SIMT_OP_SHUFFLE);
}

/* A branch that only chooses between values, such as one around products with 1. */
static bool is_choice(const instruction *i) {
    bool pure = i->code == LILAC_SIMT_OP_IF && i->result_count > 0;
    for (uint32_t k = 0; k < i->body_count && pure; k++) {
        for (const instruction *inner = i->bodies[k]->first; inner != i->bodies[k]->last;
             inner = inner->next) {
            pure &= inner->body_count == 0 && lilac_simt_has_trait(inner->code, LILAC_SIMT_PURE);
        }
    }
    return pure;
}

/* May it move among the products? */
static bool is_operand(const instruction *i) {
    return is_movable(i) || i->code == LILAC_SIMT_OP_VOTE || is_choice(i);
}

static bool is_of_product(const instruction *i) {
    return i->code == LILAC_SIMT_OP_WGMMA || i->code == LILAC_SIMT_OP_WGMMA_FENCE ||
           i->code == LILAC_SIMT_OP_WGMMA_COMMIT;
}

/* ---- the two products ---------------------------------------------------------------------- */

/* The chain of a product that the wgmma continues, or a new one; NONE: there are too many, or it
 * continues another product. */
static uint32_t chain_of(staggering *s, uint32_t product, const instruction *wgmma) {
    const lilac_simt_value accumulator = lilac_simt_group_of(wgmma, 0).values[0];
    const instruction *before = s->kernel->values[accumulator].definition;
    for (uint32_t c = 0; c < s->chains[product]; c++) {
        if (s->last[product][c] == before) {
            return c;
        }
    }
    const bool other = before != NULL && before->code == LILAC_SIMT_OP_WGMMA;
    return !other && s->chains[product] < MOST_CHAINS ? s->chains[product]++ : NONE;
}

/* fence, wgmmas, commit, fence, wgmmas, commit, and what may move, up to the wait. */
static bool find_products(staggering *s) {
    s->first = s->wait;
    while (s->first->previous != NULL &&
           (is_operand(s->first->previous) || is_of_product(s->first->previous))) {
        s->first = s->first->previous;
    }
    uint32_t fences = 0, commits = 0;
    for (instruction *i = s->first; i != s->wait; i = i->next) {
        if (i->code == LILAC_SIMT_OP_WGMMA_FENCE && fences == commits && fences < 2) {
            s->fences[fences++] = i;
        } else if (i->code == LILAC_SIMT_OP_WGMMA_COMMIT && fences == commits + 1) {
            s->commits[commits++] = i;
        } else if (i->code == LILAC_SIMT_OP_WGMMA && fences == commits + 1) {
            const uint32_t chain = chain_of(s, commits, i);
            if (chain == NONE) {
                return false;
            }
            s->last[commits][chain] = i;
            s->clocks[commits][chain] += lilac_wgmma_cycles(i->payload.matrix.n);
        } else if (!is_operand(i)) {
            return false;
        }
    }
    return commits == 2 && s->chains[0] >= 2 && s->chains[0] == s->chains[1];
}

/* The chain of the first product that the wait's value k is of; NONE: of none. */
static uint32_t awaited_chain(const staggering *s, uint32_t k) {
    const instruction *d = s->kernel->values[s->wait->operands[k]].definition;
    for (uint32_t c = 0; c < s->chains[0]; c++) {
        if (d == s->last[0][c]) {
            return c;
        }
    }
    return NONE;
}

static bool awaits_first_product(const staggering *s) {
    bool any[MOST_CHAINS] = {false};
    for (uint32_t k = 0; k < s->wait->operand_count; k++) {
        const uint32_t chain = awaited_chain(s, k);
        if (chain == NONE) {
            return false;
        }
        any[chain] = true;
    }
    for (uint32_t c = 0; c < s->chains[0]; c++) {
        if (!any[c]) {
            return false;
        }
    }
    return true;
}

/* ---- the work on the results --------------------------------------------------------------- */

/* Which results an instruction needs: the last chain among those of its operands. */
static uint32_t part_of(const staggering *s, const instruction *i) {
    uint32_t part = 0;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const uint32_t slot = s->slot[i->operands[k]];
        part = slot != NONE && slot > part ? slot : part;
    }
    return part;
}

static void set_slots(const staggering *s, const instruction *i, uint32_t slot) {
    for (uint32_t k = 0; k < i->result_count; k++) {
        s->slot[i->result + k] = slot;
    }
}

/* Assigns the work to the parts. Does that on each take as long as the products before the next
 * one? */
static bool divide_work(staggering *s) {
    const lilac_costs *costs = s->kernel->module->arch->costs;
    uint32_t issue[MOST_CHAINS] = {0}, special[MOST_CHAINS] = {0};
    for (uint32_t k = 0; k < s->wait->result_count; k++) {
        s->slot[s->wait->result + k] = awaited_chain(s, k);
    }
    for (s->end = s->wait->next; s->end != NULL && is_movable(s->end); s->end = s->end->next) {
        const uint32_t part = part_of(s, s->end);
        set_slots(s, s->end, part);
        issue[part] += lilac_simt_has_trait(s->end->code, LILAC_SIMT_FREE) ? 0 : costs->issue;
        special[part] +=
            lilac_simt_has_trait(s->end->code, LILAC_SIMT_SPECIAL) ? costs->special : 0;
    }
    for (uint32_t c = 0; c + 1 < s->chains[0]; c++) {
        const uint32_t longest = issue[c] > special[c] ? issue[c] : special[c];
        if (WARPS_OF_GROUP * longest / 16 < s->clocks[1][c] + s->clocks[0][c + 1]) {
            return false;
        }
    }
    return true;
}

/* ---- the new order ------------------------------------------------------------------------- */

static void need(const staggering *s, const instruction *i, uint32_t slot) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        uint32_t *known = &s->slot[i->operands[k]];
        if (*known != NONE && *known > slot) {
            set_slots(s, s->kernel->values[i->operands[k]].definition, slot);
        }
    }
    for (uint32_t k = 0; k < i->body_count; k++) {
        for (const instruction *inner = i->bodies[k]->first; inner != NULL; inner = inner->next) {
            need(s, inner, slot);
        }
    }
}

/* Slots of the window: chain c of the first product, 2 c; of the second one, 2 c + 1; what neither
 * needs, behind them. Chains first, then their operands, from the last instruction to the first. */
static void assign_slots(staggering *s) {
    for (const instruction *i = s->first; i != s->wait; i = i->next) {
        set_slots(s, i, 2 * s->chains[0]);
    }
    for (uint32_t product = 0; product < 2; product++) {
        for (uint32_t c = 0; c < s->chains[0]; c++) {
            set_slots(s, s->last[product][c], 2 * c + product);
        }
    }
    for (const instruction *i = s->wait->previous; i != s->first->previous; i = i->previous) {
        if (i->result_count > 0) {
            need(s, i, s->slot[i->result]);
        }
    }
}

static void put_copy(const staggering *s, const instruction *like, instruction *where) {
    instruction *made = lilac_simt_new_instruction(s->kernel, like, 0, NULL);
    made->location = like->location;
    lilac_simt_link(where->parent, where, made);
}

/* Moves the instructions of a slot before the wait: operands, fence, wgmmas, commit. */
static void put_slot(const staggering *s, instruction *const *window, uint32_t count,
                     uint32_t slot) {
    for (uint32_t wgmmas = 0; wgmmas < 2; wgmmas++) {
        const bool product = slot < 2 * s->chains[0];
        if (wgmmas == 1 && product) {
            put_copy(s, s->fences[slot % 2], s->wait);
        }
        for (uint32_t k = 0; k < count; k++) {
            if ((window[k]->code == LILAC_SIMT_OP_WGMMA) == (wgmmas == 1) &&
                window[k]->result_count > 0 && s->slot[window[k]->result] == slot) {
                lilac_simt_move(s->kernel, window[k], s->wait);
            }
        }
        if (wgmmas == 1 && product) {
            put_copy(s, s->commits[slot % 2], s->wait);
        }
    }
}

static void order_products(const staggering *s) {
    uint32_t count = 0;
    for (const instruction *i = s->first; i != s->wait; i = i->next) {
        count++;
    }
    instruction **window = lilac_heap_grow(NULL, sizeof *window * count);
    count = 0;
    for (instruction *i = s->first; i != s->wait; i = i->next) {
        window[count++] = i;
    }
    for (uint32_t slot = 0; slot <= 2 * s->chains[0]; slot++) {
        put_slot(s, window, count, slot);
    }
    for (uint32_t product = 0; product < 2; product++) {
        lilac_simt_unlink(s->fences[product]);
        lilac_simt_unlink(s->commits[product]);
    }
    lilac_heap_free(window);
}

/* A wait for one chain, before the old wait; `replacement` gets its results. */
static void put_wait(const staggering *s, uint32_t chain, lilac_simt_value *replacement) {
    lilac_simt_kernel *kernel = s->kernel;
    instruction like = {.code = LILAC_SIMT_OP_WGMMA_WAIT, .payload = s->wait->payload};
    like.payload.wgmma_wait.groups = 2 * (s->chains[0] - 1 - chain) + 1;
    const uint32_t all = s->wait->operand_count;
    lilac_simt_value *operands = lilac_heap_grow(NULL, sizeof *operands * all);
    lilac_simt_type *types = lilac_heap_grow(NULL, sizeof *types * all);
    uint32_t count = 0;
    for (uint32_t k = 0; k < all; k++) {
        if (awaited_chain(s, k) == chain) {
            types[count] = lilac_simt_type_of(kernel, s->wait->operands[k]);
            operands[count++] = s->wait->operands[k];
        }
    }
    instruction *made = lilac_simt_new_instruction(kernel, &like, count, operands);
    made->location = s->wait->location;
    lilac_simt_link(s->wait->parent, s->wait, made);
    lilac_simt_give_results(kernel, made, count, types);
    count = 0;
    for (uint32_t k = 0; k < all; k++) {
        if (awaited_chain(s, k) == chain) {
            replacement[k] = made->result + count++;
            lilac_simt_inherit(kernel, s->wait->result + k, replacement[k]);
        }
    }
    lilac_heap_free(operands);
    lilac_heap_free(types);
}

static void replace_uses(const instruction *wait, lilac_simt_body *body,
                         const lilac_simt_value *replacement) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            const uint32_t number = i->operands[k] - wait->result;
            if (i->operands[k] >= wait->result && number < wait->result_count) {
                i->operands[k] = replacement[number];
            }
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            replace_uses(wait, i->bodies[k], replacement);
        }
    }
}

static void order_work(const staggering *s) {
    lilac_simt_value *replacement =
        lilac_heap_grow(NULL, sizeof *replacement * s->wait->operand_count);
    for (uint32_t c = 0; c < s->chains[0]; c++) {
        put_wait(s, c, replacement);
        for (instruction *i = s->wait->next, *next; i != s->end; i = next) {
            next = i->next;
            if (s->slot[i->result] == c) {
                lilac_simt_move(s->kernel, i, s->wait);
            }
        }
    }
    replace_uses(s->wait, s->wait->parent, replacement);
    lilac_simt_unlink(s->wait);
    lilac_heap_free(replacement);
}

static bool stagger(lilac_simt_kernel *kernel, instruction *wait) {
    staggering s = {.kernel = kernel, .wait = wait};
    if (wait->payload.wgmma_wait.groups != 1 || wait->result_count == 0 || !find_products(&s) ||
        !awaits_first_product(&s)) {
        return false;
    }
    const size_t size = sizeof *s.slot * kernel->value_count;
    s.slot = lilac_heap_grow(NULL, size);
    memset(s.slot, 0xff, size); /* NONE */
    const bool changed = divide_work(&s);
    if (changed) {
        assign_slots(&s);
        order_products(&s);
        order_work(&s);
    }
    lilac_heap_free(s.slot);
    return changed;
}

static bool visit(lilac_simt_kernel *kernel, lilac_simt_body *body) {
    bool changed = false;
    for (instruction *i = body->first, *next; i != NULL; i = next) {
        next = i->next;
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= visit(kernel, i->bodies[k]);
        }
        if (i->code == LILAC_SIMT_OP_WGMMA_WAIT && body->parent != NULL &&
            body->parent->code == LILAC_SIMT_OP_LOOP) {
            changed |= stagger(kernel, i);
        }
    }
    return changed;
}

bool lilac_simt_opt_stagger_products(lilac_simt_kernel *kernel) {
    const bool changed = visit(kernel, kernel->body);
    if (changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return changed;
}
