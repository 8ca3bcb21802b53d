/* The loads of a loop that become asynchronous copies.
 *
 * Anchors are the operations that consume operands at the rate of the copies: products (A, B and
 * scales) and ttg.local_load of memory that the body allocates for a tensor. A load is a candidate if
 * an anchor uses its result, through elementwise operations, shape operations, conversions,
 * ttg.local_alloc and views:
 *
 *     %a = tt.load %p          → the ring has the layout of %m
 *     %m = ttg.local_alloc %a
 *     %d = ttng.warp_group_dot %m, …
 *
 *     %a = tt.load %p          → the layout of the ring is chosen for the copy and the fragment
 *     %f = ttg.convert_layout %a : #blocked -> #fragment
 *     %d = tt.dot %f, …
 *
 * A candidate becomes a copy if
 *   - vectors of 4, 8 or 16 bytes are contiguous in global memory and in the ring;
 *   - the body writes no memory of the same argument, and none of unknown origin;
 *   - everything that its pointer and mask need in a later iteration can be computed ahead: pure
 *     operations, carried values with the same property, and loads that satisfy the second condition.
 *     These loads are executed ahead, too. */
#include "pipeline/pipeline.h"

#include "memory/memory_layouts.h"
#include "products/dot_operands.h"

typedef struct finder {
    pipeline *p;
    lilac_tile_block *body;
    bool *feeds; /* by value id: an anchor uses the value */
    lilac_tile_value **stack;
    uint32_t stack_count;
} finder;

/* ---- writes ------------------------------------------------------------------------------- */

typedef struct alias_query {
    const lilac_tile_value *root;
    bool aliases;
} alias_query;

static void compare_write(void *data, lilac_tile_op *op) {
    alias_query *query = data;
    uint32_t count;
    const lilac_tile_effect *effects = lilac_tile_effects(op->code, &count);
    for (uint32_t i = 0; i < count; i++) {
        if ((effects[i].access & LILAC_TILE_WRITES) != 0 &&
            (effects[i].resources & LILAC_TILE_GLOBAL_MEMORY) != 0) {
            const lilac_tile_value *pointer = lilac_tile_operand(op, 0);
            const lilac_tile_value *root = pointer != NULL && lilac_tile_is_pointer(pointer->type)
                                               ? lilac_engine_pointer_root(pointer)
                                               : NULL;
            query->aliases |= root == NULL || query->root == NULL || root == query->root;
        }
    }
}

/* May the body write what the load reads? */
static bool may_be_written(const pipeline *p, const lilac_tile_op *load) {
    alias_query query = {.root = lilac_engine_pointer_root(load->operands[0].value)};
    lilac_tile_walk(p->loop->regions[0], compare_write, &query);
    return query.aliases;
}

/* ---- what a copy needs ahead --------------------------------------------------------------- */

static bool is_plain_load(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_LOAD &&
           lilac_tile_find_integer(&op->attributes, "isVolatile", 0) == 0 &&
           lilac_tile_find(&op->attributes, "boundaryCheck") == NULL &&
           op->operands[0].value->type->kind ==
               (lilac_tile_is_tensor(op->results[0].type) ? LILAC_TILE_TENSOR : LILAC_TILE_POINTER);
}

/* May the operation be executed for an iteration that does not exist? */
static bool can_run_ahead(const pipeline *p, const lilac_tile_op *op) {
    if (is_plain_load(op)) {
        return lilac_box_of(op) == NULL && !may_be_written(p, op);
    }
    int64_t divisor;
    return op->region_count == 0 &&
           (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0 &&
           (!lilac_tile_divides(op->code) ||
            !lilac_tile_is_inside(op->operands[1].value, p->loop) ||
            (lilac_tile_constant(op->operands[1].value, &divisor) && divisor != 0));
}

static void push(finder *f, lilac_tile_value *value) {
    if (!f->p->ahead[value->id] && lilac_tile_is_inside(value, f->p->loop)) {
        f->p->ahead[value->id] = true;
        f->stack[f->stack_count++] = value;
    }
}

/* Marks what the values on the stack need. False: something cannot be computed ahead; then `ahead` is
 * as before. The stack keeps all values that are marked. */
static bool close_over(finder *f) {
    bool good = true;
    for (uint32_t next = 0; good && next < f->stack_count; next++) {
        const lilac_tile_value *value = f->stack[next];
        const lilac_tile_op *op = value->op;
        if (op == NULL) {
            good = value->block == f->body;
            if (good && value->index > 0) {
                push(f, lilac_tile_next(f->p->loop, value->index - 1));
            }
            continue;
        }
        good = op->parent == f->body && can_run_ahead(f->p, op);
        for (uint32_t i = 0; good && i < op->operand_count; i++) {
            push(f, op->operands[i].value);
        }
    }
    for (uint32_t i = 0; !good && i < f->stack_count; i++) {
        f->p->ahead[f->stack[i]->id] = false;
    }
    f->stack_count = 0;
    return good;
}

bool lilac_pipeline_is_ahead(const pipeline *p, const lilac_tile_op *op) {
    bool ahead = false;
    for (uint32_t i = 0; i < op->result_count; i++) {
        ahead |= p->ahead[op->results[i].id];
    }
    return ahead;
}

/* ---- memory -------------------------------------------------------------------------------- */

static bool is_view(const lilac_tile_op *op) {
    uint32_t first, end;
    return op->code != LILAC_TILE_OP_ARITH_SELECT && op->region_count == 0 &&
           lilac_tile_view_operands(op, &first, &end);
}

/* Is the memory used in its iteration only, by products, loads and views? */
static bool has_plain_uses(const lilac_tile_value *memory) {
    bool plain = true;
    for (const lilac_tile_use *use = memory->uses; plain && use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        plain = op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT ||
                op->code == LILAC_TILE_OP_TTG_LOCAL_LOAD ||
                (is_view(op) && has_plain_uses(&op->results[0]));
    }
    return plain;
}

/* A conversion between the load and its memory that a copy replaces: none of transpose_operands. */
static bool is_replaced(const lilac_tile_op *op) {
    return op != NULL && op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT &&
           lilac_tile_find(&op->attributes, "lilac.transposes") == NULL;
}

/* The tensor before such conversions. */
static lilac_tile_value *before_conversions(lilac_tile_value *value) {
    while (is_replaced(value->op)) {
        value = value->op->operands[0].value;
    }
    return value;
}

static const lilac_tile_type *slot_type(const pipeline *p, const lilac_tile_type *tensor,
                                        const lilac_tile_type *memory) {
    lilac_encoding_memdesc slot = {
        .rank = tensor->rank, .alloc_rank = tensor->rank, .scalar = tensor->scalar};
    slot.is_mutable = true;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        slot.shape[d] = slot.alloc_shape[d] = tensor->shape[d];
    }
    if (memory != NULL) {
        slot.encoding = memory->encoding;
        slot.layout = *memory->layout;
    }
    return lilac_tile_memory(p->module, &slot);
}

/* Is memory of this type like a buffer of the load? */
static bool has_slot(const pipeline *p, const pipeline_load *load, const lilac_tile_type *tensor,
                     const lilac_tile_type *memory) {
    return load->box == NULL
               ? load->slot == slot_type(p, tensor, memory)
               : memory->layout != NULL && lilac_layout_equal(load->slot->layout, memory->layout);
}

const pipeline_load *lilac_pipeline_load_of_alloc(const pipeline *p, const lilac_tile_op *alloc) {
    if (alloc->code != LILAC_TILE_OP_TTG_LOCAL_ALLOC || alloc->operand_count == 0 ||
        alloc->parent != p->loop->regions[0]->first) {
        return NULL;
    }
    const lilac_tile_value *tensor = before_conversions(alloc->operands[0].value);
    for (uint32_t i = 0; i < p->load_count; i++) {
        const pipeline_load *load = &p->loads[i];
        if (tensor == &load->op->results[0] && !load->selects &&
            has_slot(p, load, tensor->type, alloc->results[0].type) &&
            has_plain_uses(&alloc->results[0])) {
            return load;
        }
    }
    return NULL;
}

const pipeline_load *lilac_pipeline_load_of(const pipeline *p, const lilac_tile_value *memory) {
    while (memory->op != NULL && is_view(memory->op)) {
        memory = memory->op->operands[0].value;
    }
    return memory->op != NULL ? lilac_pipeline_load_of_alloc(p, memory->op) : NULL;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* A copy with the pointers and the mask of the load, in no block. */
static lilac_tile_op *make_copy(const pipeline *p, const lilac_tile_op *load) {
    const lilac_tile_type *token = lilac_tile_token(p->module);
    lilac_tile_value *operands[3] = {load->operands[0].value, load->operands[0].value,
                                     lilac_tile_operand(load, 1)};
    return lilac_tile_op_create(p->module, LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL,
                                operands[2] != NULL ? 3 : 2, operands, 1, &token, 0,
                                load->location);
}

/* Is there a row-major layout whose rows the copy can write? Others are chosen later only if they
 * cost less. */
static bool has_row_major(const pipeline *p, const lilac_tile_op *copy,
                          const lilac_tile_type *tensor) {
    bool found = false;
    for (uint32_t fastest = 0; !found && fastest < tensor->rank; fastest++) {
        uint32_t order[LILAC_MAX_RANK] = {fastest}, count = 1;
        for (uint32_t d = tensor->rank; d-- > 0;) {
            if (d != fastest) {
                order[count++] = d;
            }
        }
        lilac_encoding encoding;
        lilac_layout layout;
        uint64_t blocks[LILAC_LAYOUT_MAX_BITS];
        const uint32_t bits = lilac_layout_block_columns(blocks, tensor->layout);
        lilac_encoding_swizzled_shared(&encoding, tensor->rank, 1, 1, 1, order);
        found = lilac_memory_of_part(&layout, p->module->context, &encoding, tensor->rank,
                                     tensor->shape, bits, blocks) &&
                lilac_shared_copy_exists(copy, &layout, &p->axis, p->target);
    }
    return found;
}

/* The layout of memory that the body allocates for the loaded tensor and that a copy can write. */
static const lilac_tile_type *find_slot(const pipeline *p, const lilac_tile_value *value,
                                        const lilac_tile_op *copy) {
    const lilac_tile_type *slot = NULL;
    for (const lilac_tile_use *use = value->uses; slot == NULL && use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (is_replaced(op)) {
            slot = find_slot(p, &op->results[0], copy);
        } else if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC &&
                   op->parent == p->loop->regions[0]->first &&
                   op->results[0].type->layout != NULL && has_plain_uses(&op->results[0]) &&
                   lilac_shared_copy_exists(copy, op->results[0].type->layout, &p->axis,
                                            p->target)) {
            slot = slot_type(p, value->type, op->results[0].type);
        }
    }
    return slot;
}

/* The bytes of a block's part of a buffer, for the layout of the loaded tensor. */
static uint64_t bytes_of(const lilac_tile_type *memory, const lilac_layout *tensor) {
    const uint32_t bits = lilac_tile_element_bits(memory);
    return ((uint64_t)lilac_tile_element_count(memory) * bits / 8) >>
           lilac_layout_part_bits(tensor);
}

/* Can the load's result come from copies? Sets what they need. */
static bool plan_load(const pipeline *p, lilac_tile_op *op, pipeline_load *load) {
    const lilac_tile_type *type = op->results[0].type;
    const lilac_name cache = lilac_tile_find_text(&op->attributes, "cache");
    if (!is_plain_load(op) || type->kind != LILAC_TILE_TENSOR || type->layout == NULL ||
        type->element->kind != LILAC_TILE_SCALAR || lilac_tile_element_bits(type) < 8 ||
        (cache != NULL && strcmp(cache, "none") != 0 && strcmp(cache, "ca") != 0 &&
         strcmp(cache, "cg") != 0)) {
        return false;
    }
    for (uint32_t d = 0; d < type->rank; d++) {
        if (power_of_two_in(type->shape[d]) != type->shape[d]) {
            return false;
        }
    }
    if (lilac_box_of(op) != NULL) {
        *load = (pipeline_load){.op = op, .box = lilac_box_of(op)};
        load->tensor = lilac_box_loaded(p->module, op);
        load->slot =
            lilac_box_memory(p->module, load->tensor, load->box->op->operands[0].value->type);
        load->bytes = bytes_of(load->slot, load->tensor->layout);
        return true;
    }
    const lilac_tile_value *other = lilac_tile_operand(op, 2);
    *load = (pipeline_load){
        .op = op, .tensor = type, .selects = other != NULL && !lilac_tile_is_zero(other)};
    lilac_tile_op *copy = make_copy(p, op);
    load->slot = load->selects ? NULL : find_slot(p, &op->results[0], copy);
    if (load->slot == NULL && has_row_major(p, copy, type)) {
        load->slot = slot_type(p, type, NULL);
    }
    lilac_tile_remove(copy);
    load->bytes = load->slot != NULL ? bytes_of(load->slot, type->layout) : 0;
    return load->slot != NULL;
}

/* ---- the search ----------------------------------------------------------------------------- */

static void mark_anchor(finder *f, const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_DOT:
    case LILAC_TILE_OP_TT_DOT_SCALED:
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
        for (uint32_t i = 0; i < op->operand_count; i++) {
            f->feeds[op->operands[i].value->id] |= i != 2; /* not C */
        }
        break;
    case LILAC_TILE_OP_TTG_LOCAL_LOAD:
        f->feeds[op->operands[0].value->id] = true;
        break;
    default:
        break;
    }
}

static bool passes_on(const lilac_tile_op *op) {
    return op->region_count == 0 && op->code != LILAC_TILE_OP_TT_DOT &&
           op->code != LILAC_TILE_OP_TT_DOT_SCALED &&
           ((lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0 ||
            op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC);
}

/* What factors of the next iteration's products are computed from (rotate_products). */
static void mark_carried(finder *f) {
    for (uint32_t i = 0; i < lilac_tile_carried_count(f->p->loop); i++) {
        const lilac_tile_value *next = lilac_tile_next(f->p->loop, i);
        f->feeds[next->id] |=
            lilac_tile_is_tensor(next->type) &&
            lilac_dot_is_factor(lilac_tile_iteration_argument(f->p->loop, i), f->body);
    }
}

/* Marks, from the last operation to the first, what anchors use. Counts the loads among it. */
static uint32_t mark_feeding(finder *f) {
    uint32_t loads = 0;
    mark_carried(f);
    for (const lilac_tile_op *op = f->body->last; op != NULL; op = op->previous) {
        mark_anchor(f, op);
        bool feeds = false;
        for (uint32_t i = 0; i < op->result_count; i++) {
            feeds |= f->feeds[op->results[i].id];
        }
        loads += feeds && op->code == LILAC_TILE_OP_TT_LOAD;
        for (uint32_t i = 0; feeds && passes_on(op) && i < op->operand_count; i++) {
            f->feeds[op->operands[i].value->id] = true;
        }
    }
    return loads;
}

static bool add_load(finder *f, lilac_tile_op *op, pipeline_load *load) {
    if (may_be_written(f->p, op) || !plan_load(f->p, op, load)) {
        return false;
    }
    if (load->box != NULL) {
        push(f, load->box);
    } else {
        push(f, op->operands[0].value);
        if (lilac_tile_operand(op, 1) != NULL) {
            push(f, op->operands[1].value);
        }
    }
    return close_over(f);
}

bool lilac_pipeline_find_loads(pipeline *p) {
    lilac_engine_axis_facts(&p->axis, p->arena, p->function);
    const uint32_t values = p->function->value_count + 1;
    finder f = {.p = p, .body = p->loop->regions[0]->first};
    f.feeds = lilac_arena_array(p->arena, bool, values);
    f.stack = lilac_arena_array(p->arena, lilac_tile_value *, values);
    p->ahead = lilac_arena_array(p->arena, bool, values);
    const uint32_t most = mark_feeding(&f);
    p->loads = lilac_arena_array(p->arena, pipeline_load, most + 1);
    p->load_count = 0;
    for (lilac_tile_op *op = f.body->first; most > 0 && op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TT_LOAD && f.feeds[op->results[0].id]) {
            p->load_count += add_load(&f, op, &p->loads[p->load_count]);
        }
    }
    p->box_count = 0;
    for (uint32_t i = 0; i < p->load_count; i++) {
        p->box_count += p->loads[i].box != NULL;
    }
    return p->load_count > 0;
}
