/* rotate_products: what a product of the next iteration needs is computed in this one, so that
 * tensor cores and the other units work at the same time.
 *
 *     scf.for … iter_args(%pk = %k0) {              %s0 = product of iteration 0
 *       %s = a product of loads from %pk            scf.for … iter_args(%pk = %k0, %s = %s0) {
 *       %p = f(%s)                           →        %next = the product of the next iteration
 *       %o' = product of %p                           %p = f(%s)
 *       scf.yield %pk + …                             %o' = product of %p
 *     }                                               scf.yield %pk + …, %next
 *                                                   }
 *
 * Three values are rotated:
 *
 *     the result of a product whose accumulator the loop does not change, and from which the operand of a
 *     later product comes, if delay_products cannot delay the later product
 *     the first operand of a product, in registers, if it is computed from a load (weights of few bits);
 *     or what each thread computes it from (sources_of)
 *     a load that is too narrow for asynchronous copies (scales), so that its latency is that of an
 *     iteration, also where it feeds a rotated operand
 *
 * Everything that they need must be pure operations, loads and memory for loaded tensors, and
 * depend on carried values only through such operations (pointers that advance). Loads of the
 * iteration after the last one are masked off, and boxes of tensors without a bound are moved
 * outside. Nothing in the body may write global memory. The original operations of the body are
 * replaced by those of the next iteration. overlap_products then delays the waits.
 *
 * A second resident block of a multiprocessor gains more than the overlap in one block. Where two blocks fit,
 * and no more, sources leave it the registers of a second operand (bench/results/decisions.md).
 *
 * A rotated result is there twice, and loads that other operations use too get a second ring. Where
 * that leaves one resident block of several, too few registers, or no memory for rings of two buffers, the
 * loop stays as it is (block_demand.h). */
#include "descriptors/boxes.h"
#include "emit.h"
#include "pipeline/schedule.h"
#include "products/block_demand.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

enum { MOST_SLICE = 256, MOST_SOURCES = 4, MOST_NARROW_LOADS = 4, MOST_NARROW_ELEMENTS = 8 };

typedef struct rotation {
    lilac_tile_module *module;
    lilac_tile_function *function;
    const lilac_target *target;
    lilac_tile_op *loop;
    lilac_arena *arena;
    bool *needed;        /* by value id: the rotated value is computed from it */
    uint32_t count;      /* operations of the slice */
    lilac_tile_op **ops; /* in the order of the body */
    bool has_load;
    bool delays; /* delay_products can delay a product of the loop */
    bool asked;  /* a request says that something is rotated */
    int64_t step;
} rotation;

/* ---- the slice ------------------------------------------------------------------------------ */

static bool is_in_body(const rotation *r, const lilac_tile_value *value) {
    const lilac_tile_block *body = r->loop->regions[0]->first;
    return value->op != NULL ? value->op->parent == body : value->block == body;
}

/* The number of the carried value whose argument this is; UINT32_MAX: none. */
static uint32_t carried_number(const rotation *r, const lilac_tile_value *value) {
    for (uint32_t i = 0; i < lilac_tile_carried_count(r->loop); i++) {
        if (lilac_tile_iteration_argument(r->loop, i) == value) {
            return i;
        }
    }
    return UINT32_MAX;
}

static bool is_movable(const lilac_tile_op *op, bool *load) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
        *load = true;
        return lilac_tile_find_integer(&op->attributes, "isVolatile", 0) == 0;
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
        return op->operand_count == 1;
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
        return true;
    default:
        return op->region_count == 0 &&
               (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
    }
}

/* Marks what a value is computed from, in this iteration. False: something cannot be moved. Carried
 * values are followed to what makes them next, which must be movable too. */
static bool mark(rotation *r, lilac_tile_value *value) {
    if (!is_in_body(r, value) || r->needed[value->id]) {
        return true;
    }
    r->needed[value->id] = true;
    if (value->op == NULL) {
        const uint32_t i = carried_number(r, value);
        return i == UINT32_MAX || mark(r, lilac_tile_next(r->loop, i));
    }
    if (!is_movable(value->op, &r->has_load) || ++r->count > MOST_SLICE) {
        return false;
    }
    for (uint32_t i = 0; i < value->op->operand_count; i++) {
        if (!mark(r, value->op->operands[i].value)) {
            return false;
        }
    }
    return true;
}

/* The allocation that a fence is for: the one in front of it, perhaps with transpositions of the
 * memory between them. NULL: none. */
static const lilac_tile_op *fenced_memory(const lilac_tile_op *op) {
    const lilac_tile_op *memory = op->previous;
    if (op->code != LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED) {
        return NULL;
    }
    while (memory != NULL && memory->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS) {
        memory = memory->previous;
    }
    return memory != NULL && memory->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC ? memory : NULL;
}

static bool is_needed(const rotation *r, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (r->needed[op->results[i].id]) {
            return true;
        }
    }
    const lilac_tile_op *memory = fenced_memory(op);
    return memory != NULL && is_needed(r, memory);
}

/* Products in the slice: only the rotated value itself may be one. */
static uint32_t count_products(const rotation *r) {
    uint32_t count = 0;
    for (const lilac_tile_op *op = r->loop->regions[0]->first->first; op != NULL; op = op->next) {
        count += op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT && is_needed(r, op);
    }
    return count;
}

static bool find_slice(rotation *r, lilac_tile_value *value) {
    const bool product = value->op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
    r->needed = lilac_arena_array(r->arena, bool, r->function->value_count + 1);
    r->count = 0;
    r->has_load = false;
    if (!mark(r, value) || !r->has_load || count_products(r) != (product ? 1U : 0U)) {
        return false;
    }
    r->count = 0;
    r->ops = lilac_arena_array(r->arena, lilac_tile_op *, 2 * MOST_SLICE);
    for (lilac_tile_op *op = r->loop->regions[0]->first->first; op != NULL; op = op->next) {
        if (is_needed(r, op)) {
            if (r->count == 2 * MOST_SLICE) {
                return false;
            }
            r->ops[r->count++] = op;
        }
    }
    return true;
}

/* ---- rewriting ------------------------------------------------------------------------------ */

static lilac_tile_op *make(const rotation *r, lilac_tile_opcode code, uint32_t count,
                           lilac_tile_value *const *operands, const lilac_tile_type *type,
                           lilac_tile_op *place) {
    lilac_tile_op *op =
        lilac_tile_op_create(r->module, code, count, operands, 1, &type, 0, r->loop->location);
    op->position = r->loop->position;
    lilac_tile_insert_before(place, op);
    return op;
}

/* a < b, before `place`. */
static lilac_tile_value *below(const rotation *r, lilac_tile_value *a, lilac_tile_value *b,
                               bool is_unsigned, lilac_tile_op *place) {
    lilac_tile_value *operands[2] = {a, b};
    lilac_tile_op *op = make(r, LILAC_TILE_OP_ARITH_CMPI, 2, operands,
                             lilac_tile_scalar(r->module, LILAC_I1), place);
    const lilac_tile_attribute predicate = {
        .kind = LILAC_TILE_ATTR_KEYWORD,
        .name = lilac_intern_string(r->module->context, "predicate"),
        .text = lilac_intern_string(r->module->context, is_unsigned ? "ult" : "slt")};
    lilac_tile_set_attribute(r->module, &op->attributes, &predicate);
    return &op->results[0];
}

/* The load is executed if the iteration exists. */
static void mask_load(const rotation *r, lilac_tile_op *load, lilac_tile_value *exists) {
    const lilac_tile_type *pointers = load->operands[0].value->type;
    lilac_tile_value *operands[3] = {load->operands[0].value, exists, NULL};
    uint32_t count = 2;
    if (pointers->kind == LILAC_TILE_TENSOR) {
        const lilac_tile_type *type =
            lilac_tile_tensor(r->module, lilac_tile_scalar(r->module, LILAC_I1), pointers->rank,
                              pointers->shape, pointers->layout);
        operands[1] = &make(r, LILAC_TILE_OP_TT_SPLAT, 1, &exists, type, load)->results[0];
    }
    if (lilac_tile_operand(load, 1) != NULL) {
        lilac_tile_value *both[2] = {lilac_tile_operand(load, 1), operands[1]};
        operands[1] = &make(r, LILAC_TILE_OP_ARITH_ANDI, 2, both, both[0]->type, load)->results[0];
    }
    if (lilac_tile_operand(load, 2) != NULL) {
        operands[count++] = lilac_tile_operand(load, 2);
    }
    lilac_tile_set_operands(r->module, load, count, operands);
}

/* Does the launcher make the map of this box? Its dimensions without a bound have no end
 * (strided_tile.c). */
static bool has_launch_map(const rotation *r, const lilac_tile_op *box) {
    const lilac_tile_value *map = box->operands[0].value;
    return map->op == NULL && r->function->parameter_attributes != NULL &&
           lilac_tile_find(&r->function->parameter_attributes[map->index], "lilac.launch_map") !=
               NULL;
}

/* The box is outside of its tensor, where nothing is read, unless the iteration exists. */
static void move_box(const rotation *r, lilac_tile_op *box, lilac_tile_value *exists) {
    const lilac_emitter e = {r->module, box};
    lilac_tile_value *at = box->operands[1].value;
    lilac_tile_value *outside = lilac_emit_integer(&e, at->type, INT32_MIN);
    lilac_tile_set_operand(box, 1, lilac_emit_select(&e, exists, at, outside));
}

/* Copies the slice before `place`; the value of the copy. */
static lilac_tile_value *copy_slice(const rotation *r, lilac_tile_mapping *mapping,
                                    lilac_tile_value *exists, lilac_tile_value *value,
                                    lilac_tile_op *place) {
    for (uint32_t i = 0; i < r->count; i++) {
        lilac_tile_op *copy = lilac_tile_clone_mapped(r->module, r->ops[i], mapping);
        lilac_tile_insert_before(place, copy);
        if (copy->code == LILAC_TILE_OP_TT_LOAD && lilac_tile_operand(copy, 3) == NULL) {
            mask_load(r, copy, exists); /* a tensor copy may read anywhere in its tensor */
        } else if (copy->code == LILAC_TILE_OP_LILAC_TENSOR_BOX && has_launch_map(r, copy)) {
            move_box(r, copy, exists);
        }
    }
    return lilac_tile_mapped(mapping, value);
}

static lilac_tile_value *first_iteration(const rotation *r, lilac_tile_value *value) {
    lilac_tile_mapping *mapping = lilac_tile_mapping_create();
    lilac_tile_op *loop = r->loop;
    lilac_tile_map(mapping, lilac_tile_induction_variable(loop), lilac_tile_lower_bound(loop));
    for (uint32_t i = 0; i < lilac_tile_carried_count(loop); i++) {
        lilac_tile_map(mapping, lilac_tile_iteration_argument(loop, i), lilac_tile_init(loop, i));
    }
    const bool is_unsigned = lilac_tile_find(&loop->attributes, "unsignedCmp") != NULL;
    lilac_tile_value *exists =
        below(r, lilac_tile_lower_bound(loop), lilac_tile_upper_bound(loop), is_unsigned, loop);
    lilac_tile_value *made = copy_slice(r, mapping, exists, value, loop);
    lilac_tile_mapping_destroy(mapping);
    return made;
}

/* Marks the operations of the body from which a value is computed. */
static void mark_sources(const rotation *r, const lilac_tile_value *value, bool *marked) {
    if (!is_in_body(r, value) || value->op == NULL || marked[value->id]) {
        return;
    }
    marked[value->id] = true;
    for (uint32_t i = 0; i < value->op->operand_count; i++) {
        mark_sources(r, value->op->operands[i].value, marked);
    }
}

/* What the carried values of the slice are in the next iteration, before `place`. */
static void map_next(const rotation *r, lilac_tile_mapping *mapping, lilac_tile_op *place) {
    lilac_tile_mapping *now = lilac_tile_mapping_create();
    bool *marked = lilac_arena_array(r->arena, bool, r->function->value_count + 1);
    const uint32_t count = lilac_tile_carried_count(r->loop);
    for (uint32_t i = 0; i < count; i++) {
        if (r->needed[lilac_tile_iteration_argument(r->loop, i)->id]) {
            mark_sources(r, lilac_tile_next(r->loop, i), marked);
        }
    }
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->ops[i]->result_count > 0 && marked[r->ops[i]->results[0].id]) {
            lilac_tile_insert_before(place, lilac_tile_clone_mapped(r->module, r->ops[i], now));
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_value *argument = lilac_tile_iteration_argument(r->loop, i);
        if (r->needed[argument->id]) {
            lilac_tile_map(mapping, argument, lilac_tile_mapped(now, lilac_tile_next(r->loop, i)));
        }
    }
    lilac_tile_mapping_destroy(now);
}

/* Do the carried values of the slice come from arithmetic alone? */
static bool advances_by_arithmetic(const rotation *r, const lilac_tile_value *value) {
    if (!is_in_body(r, value) || value->op == NULL) {
        return true;
    }
    if (value->op->code == LILAC_TILE_OP_TT_LOAD ||
        value->op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT ||
        value->op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        return false;
    }
    for (uint32_t i = 0; i < value->op->operand_count; i++) {
        if (!advances_by_arithmetic(r, value->op->operands[i].value)) {
            return false;
        }
    }
    return true;
}

/* Removes the operations of the slice that nothing uses any more, then the fences without
 * memory. */
static void remove_unused(const rotation *r) {
    for (uint32_t i = r->count; i-- > 0;) {
        lilac_tile_op *op = r->ops[i];
        bool used = op->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED;
        for (uint32_t k = 0; k < op->result_count; k++) {
            used |= op->results[k].uses != NULL;
        }
        if (!used) {
            lilac_tile_remove(op);
            r->ops[i] = NULL;
        }
    }
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->ops[i] != NULL && r->ops[i]->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED &&
            fenced_memory(r->ops[i]) == NULL) {
            lilac_tile_remove(r->ops[i]);
        }
    }
}

/* `first`: the operation of the body before which the next iteration is computed. */
static void rotate(rotation *r, lilac_tile_value *value, lilac_tile_op *first) {
    lilac_tile_op *loop = r->loop;
    lilac_tile_value *init = first_iteration(r, value);
    lilac_tile_mapping *mapping = lilac_tile_mapping_create();
    lilac_tile_value *counter = lilac_tile_induction_variable(loop);
    lilac_tile_value *sum[2] = {counter, lilac_tile_step(loop)};
    lilac_tile_value *next =
        &make(r, LILAC_TILE_OP_ARITH_ADDI, 2, sum, counter->type, first)->results[0];
    lilac_tile_value *left[2] = {lilac_tile_upper_bound(loop), counter};
    /* counter + step < upper without overflow: upper - counter is positive, as an unsigned
     * number */
    lilac_tile_op *rest = make(r, LILAC_TILE_OP_ARITH_SUBI, 2, left, counter->type, first);
    lilac_tile_value *exists = below(r, lilac_tile_step(loop), &rest->results[0], true, first);
    map_next(r, mapping, first);
    lilac_tile_map(mapping, counter, next);
    lilac_tile_value *made = copy_slice(r, mapping, exists, value, first);
    lilac_tile_mapping_destroy(mapping);
    const uint32_t number = lilac_tile_carried_count(loop);
    lilac_tile_add_carried(r->module, loop, 1, &init);
    lilac_tile_replace_uses(value, lilac_tile_iteration_argument(loop, number));
    lilac_tile_set_next(loop, number, made);
    remove_unused(r);
}

/* ---- what is rotated ------------------------------------------------------------------------- */

/* Does an operand of a later product of the body come from the value? */
static bool leads_to_product(const rotation *r, const lilac_tile_value *value, uint32_t *budget) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (op->parent != r->loop->regions[0]->first || (*budget)-- == 0) {
            return false;
        }
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT && use->index < 2) {
            return true;
        }
        for (uint32_t i = 0; i < op->result_count; i++) {
            if (op->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT &&
                leads_to_product(r, &op->results[i], budget)) {
                return true;
            }
        }
    }
    return false;
}

/* The value to rotate; NULL: none. */
static lilac_tile_value *choose(const rotation *r) {
    for (lilac_tile_op *op = r->loop->regions[0]->first->first; op != NULL; op = op->next) {
        uint32_t budget = MOST_SLICE;
        if (op->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            continue;
        }
        if (!r->delays && !is_in_body(r, op->operands[2].value) &&
            leads_to_product(r, &op->results[0], &budget)) {
            return &op->results[0];
        }
        lilac_tile_value *a = op->operands[0].value;
        if (lilac_tile_is_tensor(a->type) && a->op != NULL && is_in_body(r, a)) {
            return a;
        }
    }
    return NULL;
}

/* The product that has the value as its first operand. */
static lilac_tile_op *product_of(const lilac_tile_value *value) {
    const lilac_tile_use *use = value->uses;
    while (use->op->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        use = use->next;
    }
    return use->op;
}

/* Does an operation outside of the slice use the value, perhaps through memory that holds it? */
static bool is_used_outside(const rotation *r, const lilac_tile_value *value) {
    bool found = false;
    for (const lilac_tile_use *use = value->uses; use != NULL && !found; use = use->next) {
        const bool memory = use->op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC ||
                            use->op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS;
        found = !is_needed(r, use->op) || (memory && is_used_outside(r, &use->op->results[0]));
    }
    return found;
}

/* Is a load or a copy of the slice executed in the iteration itself as well? */
static bool is_executed_twice(const rotation *r, const lilac_tile_op *op) {
    return (op->code == LILAC_TILE_OP_TT_LOAD || op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) &&
           is_used_outside(r, &op->results[0]);
}

/* The demand with a second ring for loads that are executed twice, and second memory for copies. */
static lilac_block_demand demand_after(const rotation *r, const lilac_target *target) {
    lilac_block_demand demand = lilac_engine_block_demand(r->function, r->loop, target);
    for (uint32_t i = 0; i < r->count; i++) {
        if (is_executed_twice(r, r->ops[i])) {
            demand.shared_bytes += lilac_engine_ring_bytes(r->ops[i], target->num_stages);
        }
    }
    return demand;
}

/* Is there memory for the shortest rings, beside the operands of the first iteration's value? Otherwise no
 * load of the loop becomes a copy. */
static bool has_rings(const rotation *r) {
    lilac_target shortest = *r->target;
    shortest.num_stages = 2;
    uint64_t bytes = demand_after(r, &shortest).shared_bytes;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->ops[i]->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
            bytes += lilac_engine_bytes(r->ops[i]->results[0].type);
        }
    }
    const lilac_arch *arch = r->target->arch;
    return bytes + lilac_engine_exchange_reserve(r->loop, arch) <= arch->shared_bytes;
}

/* Is the overlap worth the registers of a second value, and a second ring for loads that are
 * executed twice? */
static bool pays(const rotation *r, const lilac_tile_value *value) {
    const lilac_block_demand before = lilac_engine_block_demand(r->function, r->loop, r->target);
    lilac_block_demand after = demand_after(r, r->target);
    after.registers += lilac_engine_words(value->type);
    return has_rings(r) && lilac_engine_overlap_pays(r->target->arch, &before, &after);
}

static void find_writes(void *data, lilac_tile_op *op) {
    bool *writes = data;
    if (op->region_count > 0) {
        *writes |= lilac_tile_is_loop(op);
        return; /* the walk visits what is in it */
    }
    const lilac_tile_effect_summary effects = lilac_tile_summarize_effects(op);
    *writes |= (effects.writes & LILAC_TILE_GLOBAL_MEMORY) != 0 ||
               lilac_tile_find_integer(&op->attributes, "isAsync", 0) != 0;
}

/* Can the carried values of the slice be computed ahead? */
static bool carries_arithmetic(const rotation *r) {
    for (uint32_t i = 0; i < lilac_tile_carried_count(r->loop); i++) {
        if (r->needed[lilac_tile_iteration_argument(r->loop, i)->id] &&
            !advances_by_arithmetic(r, lilac_tile_next(r->loop, i))) {
            return false;
        }
    }
    return true;
}

/* A load of few registers. */
static bool is_small_load(const lilac_tile_op *op) {
    if (op->code != LILAC_TILE_OP_TT_LOAD || !lilac_tile_is_tensor(op->results[0].type) ||
        op->results[0].uses == NULL) {
        return false;
    }
    /* each element takes a register from iteration to iteration */
    const lilac_tile_type *type = op->results[0].type;
    const uint32_t bits = lilac_engine_words(type) * 32;
    return bits > 0 && bits <= MOST_NARROW_ELEMENTS * lilac_tile_element_bits(type);
}

/* ---- sources of an operand ------------------------------------------------------------------- */

/* What an operand in registers is computed from by each thread alone. */
typedef struct sources {
    lilac_tile_value *values[MOST_SOURCES];
    uint32_t count, words;
    uint32_t budget; /* values that may still be visited */
    bool bounded;    /* all were */
} sources;

static void add_source(sources *s, const rotation *r, lilac_tile_value *value) {
    if (!is_in_body(r, value) || value->op == NULL || !lilac_tile_is_tensor(value->type)) {
        return;
    }
    if (s->budget-- == 0) {
        s->bounded = false;
        s->budget = 0;
        return;
    }
    for (uint32_t i = 0; lilac_dot_is_threads_own(value->op) && i < value->op->operand_count; i++) {
        add_source(s, r, value->op->operands[i].value);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->values[i] == value) {
            return;
        }
    }
    if (lilac_dot_is_threads_own(value->op) || s->count == MOST_SOURCES) {
        s->bounded &= lilac_dot_is_threads_own(value->op);
        return;
    }
    s->values[s->count++] = value;
    s->words += lilac_engine_words(value->type);
}

/* Do tensor copies move all that the loop loads, but for loads of few registers? */
static bool has_boxes(const rotation *r) {
    bool boxes = true;
    for (const lilac_tile_op *op = r->loop->regions[0]->first->first; op != NULL; op = op->next) {
        boxes &= op->code != LILAC_TILE_OP_TT_LOAD || lilac_box_of(op) != NULL || is_small_load(op);
    }
    return boxes;
}

/* Blocks that can be resident with rings of two buffers. The sources of the next iteration take about as many
 * registers as the addresses of copies by threads. */
static uint32_t most_blocks(const rotation *r) {
    lilac_target shortest = *r->target;
    shortest.num_stages = 2;
    lilac_block_demand demand = lilac_engine_block_demand(r->function, r->loop, &shortest);
    demand.registers += has_boxes(r) ? 0 : LILAC_ENGINE_COPY_REGISTERS;
    return lilac_resident_blocks(r->target->arch, &demand);
}

/* What is computed ahead for an operand in registers: the operand, or its sources, if these have less than
 * half as many registers and two blocks can be resident. One then multiplies while the other one
 * computes, and the loop moves fewer registers. */
static sources sources_of(rotation *r, lilac_tile_value *operand) {
    sources s = {.budget = MOST_SLICE, .bounded = true};
    add_source(&s, r, operand);
    bool pays = s.bounded && s.count > 0 && 2 * s.words < lilac_engine_words(operand->type) &&
                most_blocks(r) == 2;
    for (uint32_t i = 0; pays && i < s.count; i++) {
        pays = find_slice(r, s.values[i]) && carries_arithmetic(r);
    }
    return pays ? s : (sources){.values = {operand}, .count = 1};
}

static bool rotate_operand(rotation *r, lilac_tile_value *operand) {
    lilac_tile_op *product = product_of(operand);
    const sources s = sources_of(r, operand);
    for (uint32_t i = 0; i < s.count; i++) {
        lilac_tile_number(r->function);
        if (!find_slice(r, s.values[i]) || !carries_arithmetic(r)) {
            /* one that needs a source that is rotated already stays in its iteration */
            return i > 0;
        }
        rotate(r, s.values[i], product->next); /* while its product is in flight */
    }
    return true;
}

static bool rotate_product(rotation *r) {
    const lilac_tile_block *body = r->loop->regions[0]->first;
    for (const lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        r->delays |= !r->asked && lilac_engine_can_delay(r->loop, op);
    }
    lilac_tile_value *value = choose(r);
    if (value == NULL) {
        return false;
    }
    if (value->op->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        return rotate_operand(r, value);
    }
    if (!find_slice(r, value) || (!r->asked && !pays(r, value)) || !carries_arithmetic(r)) {
        return false;
    }
    rotate(r, value, body->first);
    return true;
}

/* Can no asynchronous copy replace the load? */
static bool is_narrow(const rotation *r, const lilac_axis_analysis *axis, const lilac_tile_op *op) {
    lilac_plan_global_access access;
    lilac_engine_plan_access(&access, op, axis, r->target);
    return lilac_tile_element_bits(op->results[0].type) << access.vector_bits <
           LILAC_ENGINE_LEAST_COPY_BITS;
}

static bool rotate_narrow_loads(rotation *r) {
    lilac_tile_block *body = r->loop->regions[0]->first;
    lilac_tile_op *loads[MOST_NARROW_LOADS];
    uint32_t count = 0;
    bool product = false, changed = false;
    for (lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        product |= op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
        if (count < MOST_NARROW_LOADS && is_small_load(op)) {
            loads[count++] = op;
        }
    }
    if (!product || count == 0) {
        return false;
    }
    lilac_axis_analysis axis;
    lilac_tile_number(r->function);
    lilac_engine_axis_facts(&axis, r->arena, r->function);
    for (uint32_t i = 0; i < count; i++) {
        loads[i] = is_narrow(r, &axis, loads[i]) ? loads[i] : NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (loads[i] == NULL) {
            continue;
        }
        lilac_tile_number(r->function);
        if (find_slice(r, &loads[i]->results[0]) && carries_arithmetic(r)) {
            rotate(r, &loads[i]->results[0], body->first);
            changed = true;
        }
    }
    return changed;
}

static bool visit_loop(rotation *r) {
    const lilac_tile_region *body = r->loop->regions[0];
    bool writes = false;
    if (body->first == NULL || body->first->next != NULL ||
        !lilac_tile_constant(lilac_tile_step(r->loop), &r->step) || r->step <= 0 ||
        lilac_engine_is_asked(r->loop, LILAC_SCHEDULE_ROTATE, 0)) {
        return false;
    }
    r->asked = lilac_engine_is_asked(r->loop, LILAC_SCHEDULE_ROTATE, 1);
    lilac_tile_walk(r->loop->regions[0], find_writes, &writes);
    if (writes) {
        return false;
    }
    const bool product = rotate_product(r), loads = rotate_narrow_loads(r);
    if (product || loads) {
        lilac_engine_record(r->module, r->loop, LILAC_SCHEDULE_ROTATE, 1);
    }
    return product || loads;
}

static bool walk(rotation *outer, lilac_tile_region *region) {
    bool changed = false;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t k = 0; k < op->region_count; k++) {
                changed |= walk(outer, op->regions[k]);
            }
            if (op->code == LILAC_TILE_OP_SCF_FOR) {
                rotation r = *outer;
                r.loop = op;
                lilac_tile_number(r.function);
                changed |= visit_loop(&r);
            }
        }
    }
    return changed;
}

static void find_product(void *data, lilac_tile_op *op) {
    bool *found = data;
    *found |= op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
}

bool lilac_engine_rotate_products(lilac_tile_module *module, const lilac_target *target,
                                  bool *changed) {
    *changed = false;
    for (lilac_tile_function *function = module->functions;
         function != NULL && target->num_stages > 1; function = function->next) {
        bool found = false;
        if (function->body != NULL) {
            lilac_tile_walk(function->body, find_product, &found);
        }
        if (!found) {
            continue;
        }
        rotation r = {.module = module,
                      .function = function,
                      .target = target,
                      .arena = lilac_arena_create()};
        *changed |= walk(&r, function->body);
        lilac_tile_number(function);
        lilac_arena_destroy(r.arena);
    }
    return true;
}
