/* Replaces the results of loads by buffers of their rings.
 *
 *     %a = tt.load %p
 *     %m = ttg.local_alloc %a                        %v = the buffer of the iteration
 *     %d = ttng.warp_group_dot %m, …           →     %d = ttng.warp_group_dot %v, …
 *     %f = ttg.convert_layout %a                     %f = ttg.local_load %v
 *     %e = arith.extf %a                             %l = ttg.local_load %v
 *                                                    %e = arith.extf %l
 *
 * Where threads would read elements of the buffer one by one, they may read vectors (vector_reads.c). */
#include "pipeline/pipeline.h"

const lilac_tile_type *lilac_pipeline_memory_type(const pipeline *p, const lilac_tile_type *type,
                                                  uint32_t buffers) {
    const uint32_t more = buffers > 0;
    lilac_encoding_memdesc memory = {.rank = type->rank + more,
                                     .alloc_rank = type->alloc_rank + more,
                                     .scalar = type->scalar,
                                     .is_mutable = true,
                                     .encoding = type->encoding};
    if (type->layout != NULL) {
        memory.layout = *type->layout;
    }
    memory.shape[0] = memory.alloc_shape[0] = buffers;
    for (uint32_t d = 0; d < type->rank; d++) {
        memory.shape[d + more] = type->shape[d];
    }
    for (uint32_t d = 0; d < type->alloc_rank; d++) {
        memory.alloc_shape[d + more] = type->alloc_shape[d];
    }
    return lilac_tile_memory(p->module, &memory);
}

static lilac_tile_value *local_load(const pipeline *p, const pipeline_load *load,
                                    const lilac_tile_type *type, lilac_tile_op *place) {
    lilac_tile_value *view = load->view;
    lilac_tile_op *op = lilac_pipeline_make(p, LILAC_TILE_OP_TTG_LOCAL_LOAD, 1, &view, type, place);
    op->results[0].name = load->op->results[0].name;
    return &op->results[0];
}

/* The views of a value have its mutability. */
static void make_views_mutable(const pipeline *p, const lilac_tile_value *value) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        lilac_tile_value *result = use->op->result_count == 1 ? &use->op->results[0] : NULL;
        if (result != NULL && result->type->kind == LILAC_TILE_MEMDESC) {
            result->type = lilac_pipeline_memory_type(p, result->type, 0);
            make_views_mutable(p, result);
        }
    }
}

/* Memory that the body allocated for the loaded tensor is the buffer of the iteration. */
static void replace_allocations(const pipeline *p, const pipeline_load *load) {
    lilac_tile_block *body = p->loop->regions[0]->first;
    for (lilac_tile_op *op = body->first, *next; op != NULL; op = next) {
        next = op->next;
        if (lilac_pipeline_load_of_alloc(p, op) == load) {
            make_views_mutable(p, &op->results[0]);
            lilac_tile_replace_uses(&op->results[0], load->view);
            lilac_tile_remove(op);
        }
    }
}

/* Is the operation a conversion to a layout whose blocks of a cluster have the same elements as
 * those of another one? The buffers of a block hold its part of the tensor. */
static bool converts_parts(const lilac_tile_op *op, const lilac_layout *layout) {
    return op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT &&
           lilac_layout_same_blocks(layout, op->results[0].type->layout);
}

/* The first use by such a conversion; NULL: there is none. */
static lilac_tile_op *find_conversion(const pipeline_load *load) {
    for (const lilac_tile_use *use = load->op->results[0].uses; use != NULL; use = use->next) {
        if (converts_parts(use->op, load->tensor->layout)) {
            return use->op;
        }
    }
    return NULL;
}

/* The first use by a transposition whose only use is a conversion; NULL: there is none. */
static lilac_tile_op *find_transposition(const lilac_tile_value *value) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_use *next =
            use->op->code == LILAC_TILE_OP_TT_TRANS ? use->op->results[0].uses : NULL;
        if (next != NULL && next->next == NULL &&
            converts_parts(next->op, next->op->operands[0].value->type->layout)) {
            return use->op;
        }
    }
    return NULL;
}

/* The layout of the operand for a layout of the result. */
static const lilac_layout *before_transposition(const pipeline *p, const lilac_tile_op *op,
                                                const lilac_layout *result) {
    const lilac_tile_attribute *attribute = lilac_tile_find(&op->attributes, "order");
    uint32_t inverse[LILAC_MAX_RANK];
    lilac_layout layout;
    for (uint32_t i = 0; i < attribute->count; i++) {
        inverse[attribute->integers[i]] = i;
    }
    lilac_layout_transpose(&layout, result, inverse);
    return lilac_tile_intern_layout(p->module, &layout);
}

/* A conversion of a transposed load is the transposition of a converted load:
 *
 *     %t = tt.trans %a                          %c = ttg.convert_layout %a
 *     %r = ttg.convert_layout %t          →     %r = tt.trans %c                              */
static void convert_before(const pipeline *p, lilac_tile_op *trans) {
    lilac_tile_op *convert = trans->results[0].uses->op;
    lilac_tile_value *value = trans->operands[0].value;
    const lilac_tile_type *type = convert->results[0].type;
    const lilac_tile_type *before =
        lilac_tile_tensor(p->module, value->type->element, value->type->rank, value->type->shape,
                          before_transposition(p, trans, type->layout));
    lilac_tile_op *first =
        lilac_pipeline_make(p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, 1, &value, before, convert);
    lilac_tile_op *second = lilac_tile_clone(p->module, trans);
    lilac_tile_set_operand(second, 0, &first->results[0]);
    second->results[0].type = type;
    lilac_tile_insert_before(convert, second);
    lilac_tile_replace_uses(&convert->results[0], &second->results[0]);
    lilac_tile_remove(convert);
    lilac_tile_remove(trans);
}

/* What the conversion gives, from the buffer of the iteration. */
static lilac_tile_value *load_converted(const pipeline *p, const pipeline_load *load,
                                        lilac_tile_op *conversion) {
    const lilac_tile_type *type = conversion->results[0].type;
    const lilac_layout *vectors = lilac_pipeline_vector_reads(p, load, type->layout);
    if (vectors == NULL) {
        return local_load(p, load, type, conversion);
    }
    const lilac_tile_type *read =
        lilac_tile_tensor(p->module, type->element, type->rank, type->shape, vectors);
    lilac_tile_value *loaded = local_load(p, load, read, conversion);
    return &lilac_pipeline_make(p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, 1, &loaded, type, conversion)
                ->results[0];
}

void lilac_pipeline_replace_load(const pipeline *p, const pipeline_load *load) {
    lilac_tile_value *value = &load->op->results[0];
    if (load->selects) {
        lilac_tile_value *operands[3] = {load->op->operands[1].value,
                                         local_load(p, load, value->type, load->op),
                                         load->op->operands[2].value};
        lilac_tile_replace_uses(value, &lilac_pipeline_make(p, LILAC_TILE_OP_ARITH_SELECT, 3,
                                                            operands, value->type, load->op)
                                            ->results[0]);
    }
    replace_allocations(p, load);
    for (lilac_tile_op *op = find_transposition(value); op != NULL;
         op = find_transposition(value)) {
        convert_before(p, op);
    }
    for (lilac_tile_op *op = find_conversion(load); op != NULL; op = find_conversion(load)) {
        if (op->results[0].uses != NULL) {
            lilac_tile_replace_uses(&op->results[0], load_converted(p, load, op));
        }
        lilac_tile_remove(op);
    }
    if (value->uses != NULL) {
        lilac_tile_value *loaded = local_load(p, load, load->tensor, load->op);
        if (load->tensor != value->type) {
            loaded = &lilac_pipeline_make(p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, 1, &loaded,
                                          value->type, load->op)
                          ->results[0];
        }
        lilac_tile_replace_uses(value, loaded);
    }
    lilac_tile_remove(load->op);
}
