/* Matrix products in loops, and where their operands come from. */
#include "products/dot_operands.h"

bool lilac_dot_is_product(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_DOT || op->code == LILAC_TILE_OP_TT_DOT_SCALED;
}

typedef struct product_search {
    lilac_dot_property *property;
    bool found;
} product_search;

static void look_at(void *data, lilac_tile_op *op) {
    product_search *s = data;
    s->found = s->found || (lilac_dot_is_product(op) && (s->property == NULL || s->property(op)));
}

bool lilac_dot_is_inside(lilac_tile_region *region, lilac_dot_property *property) {
    product_search s = {.property = property};
    lilac_tile_walk(region, look_at, &s);
    return s.found;
}

const lilac_tile_op *lilac_dot_loop(const lilac_tile_op *op, lilac_dot_property *property) {
    do {
        op = op->parent->parent->parent;
    } while (op != NULL &&
             !(op->code == LILAC_TILE_OP_SCF_FOR && lilac_dot_is_inside(op->regions[0], property)));
    return op;
}

static bool has_inner_products(const lilac_tile_op *loop) {
    bool found = false;
    for (const lilac_tile_op *op = loop->regions[0]->first->first; op != NULL; op = op->next) {
        for (uint32_t r = 0; r < op->region_count; r++) {
            found = found || lilac_dot_is_inside(op->regions[r], NULL);
        }
    }
    return found;
}

lilac_tile_op *lilac_dot_only_loop(const lilac_tile_function *f) {
    lilac_tile_op *found = NULL;
    for (lilac_tile_op *op = f->body->first->first; op != NULL; op = op->next) {
        bool product = lilac_dot_is_product(op);
        for (uint32_t r = 0; r < op->region_count; r++) {
            product = product || lilac_dot_is_inside(op->regions[r], NULL);
        }
        if (product && (found != NULL || op->code != LILAC_TILE_OP_SCF_FOR)) {
            return NULL;
        }
        found = product ? op : found;
    }
    return found != NULL && !has_inner_products(found) ? found : NULL;
}

bool lilac_dot_is_transposition(const lilac_tile_op *op) {
    if (op == NULL || op->code != LILAC_TILE_OP_TT_TRANS || op->results[0].type->rank != 2) {
        return false;
    }
    const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
    return order != NULL && order->count == 2 && order->integers[0] == 1;
}

const lilac_tile_value *lilac_dot_before_transpositions(const lilac_tile_value *value) {
    while (lilac_dot_is_transposition(value->op)) {
        value = value->op->operands[0].value;
    }
    return value;
}

bool lilac_dot_is_loaded(const lilac_tile_value *value) {
    value = lilac_dot_before_transpositions(value);
    return value->op != NULL && (value->op->code == LILAC_TILE_OP_TT_LOAD ||
                                 value->op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD ||
                                 value->op->code == LILAC_TILE_OP_TT_DESCRIPTOR_GATHER);
}

bool lilac_dot_is_threads_own(const lilac_tile_op *op) {
    const uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
    return (traits & (LILAC_TILE_ELEMENTWISE | LILAC_TILE_SHAPE)) != 0 ||
           op->code == LILAC_TILE_OP_TTG_FP4_TO_FP;
}

static bool is_factor(const lilac_tile_value *value, const lilac_tile_block *block,
                      uint32_t *budget) {
    bool found = false;
    for (const lilac_tile_use *use = value->uses; !found && use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (op->parent != block || *budget == 0) {
            continue;
        }
        *budget -= 1;
        found = op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT
                    ? use->index < 2
                    : lilac_dot_is_threads_own(op) && op->result_count == 1 &&
                          is_factor(&op->results[0], block, budget);
    }
    return found;
}

bool lilac_dot_is_factor(const lilac_tile_value *value, const lilac_tile_block *block) {
    enum { MOST_USES = 256 };
    uint32_t budget = MOST_USES;
    return is_factor(value, block, &budget);
}

bool lilac_dot_is_contiguous(const lilac_axis_analysis *axis, const lilac_tile_value *value,
                             uint32_t dim) {
    while (lilac_dot_is_transposition(value->op)) {
        value = value->op->operands[0].value;
        dim = 1 - dim;
    }
    if (value->op == NULL || value->op->code != LILAC_TILE_OP_TT_LOAD) {
        return dim == 1; /* descriptors: the last dimension */
    }
    const lilac_axis_facts *facts = lilac_axis_facts_of(axis, value->op->operands[0].value);
    return facts != NULL && facts->rank == 2 && facts->contiguity[dim] > 1;
}
