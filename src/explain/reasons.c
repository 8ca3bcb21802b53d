/* Why a conversion is there: the operations that ask for its two layouts.
 *
 *   load ──▶ mul ──▶ convert ──▶ add ──▶ reduce
 *    └ the anchor of the first layout     └ that of the second
 *
 * An anchor decides a layout: an access, a reduction, a product. Element-wise operations, shape
 * operations and control flow pass layouts on. The search follows the first operand, or the first
 * use, that leads to one. */
#include "internal.h"

#include <lilac/tile_loops.h>

enum { MOST_STEPS = 64 };

static bool passes_on(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR:
    case LILAC_TILE_OP_SCF_IF:
    case LILAC_TILE_OP_SCF_WHILE:
    case LILAC_TILE_OP_SCF_YIELD:
    case LILAC_TILE_OP_SCF_CONDITION:
    case LILAC_TILE_OP_TT_SPLAT:
    case LILAC_TILE_OP_TT_MAKE_RANGE:
    case LILAC_TILE_OP_ARITH_CONSTANT:
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT:
        return true;
    default:
        return (lilac_tile_op_info_get(op->code)->traits &
                (LILAC_TILE_ELEMENTWISE | LILAC_TILE_SHAPE)) != 0 &&
               op->code != LILAC_TILE_OP_TT_LOAD && op->code != LILAC_TILE_OP_TT_STORE;
    }
}

const lilac_tile_op *explain_producer(const lilac_tile_value *value) {
    for (uint32_t step = 0; step < MOST_STEPS; step++) {
        const lilac_tile_op *op = value->op;
        if (op == NULL) { /* an argument of a loop: its initial value */
            const lilac_tile_op *owner = value->block != NULL && value->block->parent != NULL
                                             ? value->block->parent->parent
                                             : NULL;
            if (owner == NULL || !lilac_tile_is_loop(owner) || value->index == 0 ||
                owner->code != LILAC_TILE_OP_SCF_FOR) {
                return NULL;
            }
            value = lilac_tile_init(owner, value->index - 1);
            continue;
        }
        if (!passes_on(op)) {
            return op;
        }
        if (op->code == LILAC_TILE_OP_SCF_FOR || op->code == LILAC_TILE_OP_SCF_IF) {
            value = op->code == LILAC_TILE_OP_SCF_FOR ? lilac_tile_next(op, value->index)
                                                      : lilac_tile_yielded(op, 0, value->index);
            continue;
        }
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT) {
            value = op->operands[value->index].value;
            continue;
        }
        const lilac_tile_value *next = NULL;
        for (uint32_t i = 0; i < op->operand_count && next == NULL; i++) {
            next = lilac_tile_is_tensor(op->operands[i].value->type) ? op->operands[i].value : NULL;
        }
        if (next == NULL) {
            return NULL;
        }
        value = next;
    }
    return NULL;
}

static const lilac_tile_op *consumer(const lilac_tile_value *value, uint32_t depth) {
    for (const lilac_tile_use *use = value->uses; use != NULL && depth < MOST_STEPS;
         use = use->next) {
        const lilac_tile_op *found = NULL;
        const lilac_tile_value *receiver = lilac_tile_receiver(use);
        if (receiver != NULL) {
            found = consumer(receiver, depth + 8);
        } else if (!passes_on(use->op)) {
            found = use->op;
        } else if (use->op->result_count > 0) {
            found = consumer(&use->op->results[0], depth + 1);
        }
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

const lilac_tile_op *explain_consumer(const lilac_tile_value *value) {
    return consumer(value, 0);
}

/* ---- what an anchor asks for -------------------------------------------------------------- */

/* The tensor whose layout an access to global memory has. */
static const lilac_tile_type *accessed(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
    case LILAC_TILE_OP_TT_STORE:
    case LILAC_TILE_OP_TT_ATOMIC_RMW:
    case LILAC_TILE_OP_TT_ATOMIC_CAS:
        return op->operands[0].value->type;
    default:
        return NULL;
    }
}

bool explain_access_in(lilac_explanation *e, const lilac_tile_op *op, const lilac_layout *layout,
                       lilac_plan_global_access *plan) {
    const lilac_tile_type *type = accessed(op);
    if (type == NULL || !lilac_tile_is_tensor(type) || type->layout == NULL ||
        layout->out_count != type->rank) {
        return false;
    }
    for (uint32_t d = 0; d < type->rank; d++) {
        if (INT64_C(1) << layout->out[d].bits != type->shape[d]) {
            return false;
        }
    }
    lilac_plan_global global;
    lilac_engine_access(&global, op, explain_facts(e), e->compilation.target.arch);
    lilac_plan_global_access_init(plan, &global, layout, 0, &e->compilation.target);
    return true;
}

static void put_access(lilac_text *out, const lilac_plan_global_access *a) {
    lilac_text_printf(out, "%u bytes per thread, %llu sectors, %.1f clocks",
                      a->element_bytes << a->vector_bits, (unsigned long long)a->counts.sectors,
                      (double)a->cycles / 16);
}

/* Runs of consecutive elements in global memory end where the pointers do not follow each other,
 * where they are less aligned, or where the mask changes. */
bool explain_vector_limits(lilac_text *out, lilac_explanation *e, uint32_t index) {
    const lilac_tile_op *op = e->operations[index].op;
    const lilac_tile_type *type = accessed(op);
    const bool has_mask = op->code == LILAC_TILE_OP_TT_LOAD || op->code == LILAC_TILE_OP_TT_STORE;
    const lilac_tile_value *mask =
        has_mask ? lilac_tile_operand(op, op->code == LILAC_TILE_OP_TT_LOAD ? 1 : 2) : NULL;
    if (type == NULL || !lilac_tile_is_tensor(type)) {
        return false;
    }
    const lilac_axis_facts *facts = lilac_axis_facts_of(explain_facts(e), op->operands[0].value);
    uint32_t dim = 0;
    for (uint32_t d = 1; d < type->rank; d++) {
        dim = facts->contiguity[d] > facts->contiguity[dim] ? d : dim;
    }
    const int64_t aligned = facts->divisibility[dim] < 4096 ? facts->divisibility[dim] : 4096;
    lilac_text_printf(out, "pointers: runs of %lld along dim%u, each aligned to %lld byte%s",
                      (long long)facts->contiguity[dim], dim, (long long)aligned,
                      aligned == 1 ? "" : "s");
    if (mask != NULL) {
        const lilac_axis_facts *same = lilac_axis_facts_of(explain_facts(e), mask);
        lilac_text_printf(out, "; mask: equal in runs of %lld", (long long)same->constancy[dim]);
    }
    lilac_text_char(out, '\n');
    return true;
}

static const char *fixed_reason(const lilac_tile_op *op, bool makes) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_DOT:
        return makes ? "the instruction of the product determines the layout of its result"
                     : "the instruction of the product determines the layouts of its operands";
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT:
        return makes ? "wgmma determines the layout of its result"
                     : "wgmma determines the layouts of its operands";
    case LILAC_TILE_OP_TT_REDUCE:
        return "its reduction costs least in this layout";
    case LILAC_TILE_OP_TT_SCAN:
        return "its scan costs least in this layout";
    case LILAC_TILE_OP_TT_GATHER:
        return "its gather costs least in this layout";
    case LILAC_TILE_OP_TTG_LOCAL_LOAD:
    case LILAC_TILE_OP_TTG_LOCAL_STORE:
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
        return "its access to shared memory, and the other users of the tensor, cost least in this "
               "layout";
    default:
        return "the layout costs least for it and for what shares it";
    }
}

/* Why the anchor has layout `own` and not `other`. */
void explain_reason(lilac_text *out, lilac_explanation *e, const lilac_tile_op *anchor,
                    const lilac_layout *own, const lilac_layout *other, bool makes) {
    lilac_plan_global_access here, there;
    const lilac_tile_type *type = accessed(anchor);
    if (type == NULL || !explain_access_in(e, anchor, type->layout, &here)) {
        lilac_text_puts(out, fixed_reason(anchor, makes));
        return;
    }
    put_access(out, &here);
    /* the layouts are of the accessed tensor only where no transpose or reshape is between */
    if (type->layout == own && explain_access_in(e, anchor, other, &there)) {
        lilac_text_puts(out, "; in the other layout ");
        put_access(out, &there);
    }
}
