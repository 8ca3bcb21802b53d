/* describe_loads: loads through pointers in loops with products, as loads through tensor
 * descriptors that the launcher makes.
 *
 *     tt.func @f(%a: !tt.ptr<f16>, …)              tt.func @f(%a: …, %map: … {lilac.launch_map = …})
 *     scf.for %k = … {                             scf.for %k = … {
 *       %x = tt.load %pointers, %mask, %zero   →     %x = tt.descriptor_load %map[%row, %column]
 *       tt.dot %x, …                                 tt.dot %x, …
 *
 * Such a load becomes a tensor copy (expand_descriptors, pipeline_loops), which one thread starts
 * without addresses and masks of elements, so that one warp can start all copies of a loop
 * (specialise_warps).
 *
 * Which loads: those operands of products in the loop that are tiles of tensors that the parameters
 * describe (strided_tile.c), of memory that the kernel does not write. Elements that a tensor copy
 * reads as zero and the load does not (behind the end of a dimension, where the kernel computes a
 * remainder) must not matter: what depends on them is stored nowhere. The other operands, such as
 * vectors of scales and rows that a mask of the program's selects, stay loads through pointers:
 * pipeline_loops copies both kinds in one loop. That pays where the tiles have at least half of the
 * bytes: each iteration has the instructions of both kinds of waits. If an operand is transposed in
 * registers, all stay: such a loop is bound by what the threads do (bench/results/decisions.md).
 *
 * In all loops with products or in none: where threads make the copies of one loop, its addresses
 * and masks remain, and the mbarriers and the first fetch of the map come in addition.
 *
 * The launcher makes the maps as lilac.launch_map says, and starts the kernel only if the
 * parameters in lilac.launch_conditions are not negative and all maps are possible: strides of
 * multiples of 16 bytes, sizes above zero. lilac.launch_least says which launches are faster without
 * maps (few_iterations.c). */
#include "descriptors/boxes.h"
#include "descriptors/descriptors.h"
#include "launch_maps/change_kernels.h"
#include "launch_maps/count_iterations.h"
#include "launch_maps/few_iterations.h"
#include "launch_maps/unused_rows.h"
#include "launch_maps/write_launch_maps.h"
#include "products/block_demand.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum {
    MOST_LOADS = 16,
    MOST_USES = 256,
    LEAST_ITERATIONS = 8,
    MOST_CONDITIONS = 32, /* as launchers read them */
    PRODUCER_WARPS = 8    /* from which on a block has a producer (specialise_warps) */
};

/* A load and its tile. */
typedef struct described {
    lilac_tile_op *load;
    lilac_strided_tile tile;
    const lilac_tile_type *block; /* of the descriptor */
} described;

typedef struct description {
    lilac_tile_module *module;
    lilac_tile_function *function;
    const lilac_target *target;
    lilac_arena *arena;
    lilac_tile_conditions conditions;
    uint32_t count;
    described loads[MOST_LOADS];
    uint64_t bytes, other_bytes; /* of the tiles, and of the operands that are none */
    bool failed; /* an operand of a product is transposed in registers, or there are too many */
} description;

/* ---- which products -------------------------------------------------------------------------- */

/* Does a tensor core compute products of these types? The others are bound by arithmetic. */
static bool has_tensor_core(const lilac_tile_op *product) {
    const lilac_tile_type *element = lilac_tile_element(product->operands[0].value->type);
    const char *precision = lilac_tile_find_text(&product->attributes, "inputPrecision");
    return product->code == LILAC_TILE_OP_TT_DOT_SCALED ||
           (element->scalar == LILAC_F32 ? precision != NULL && strcmp(precision, "tf32") == 0
                                         : lilac_scalar_bits(element->scalar) <= 16);
}

/* Must an operand be transposed in registers? wgmma reads 8-bit elements in shared memory along
 * k. */
static bool is_transposed(const lilac_tile_value *value, uint32_t contiguous) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        const uint32_t rank = value->type->rank;
        if (op->code == LILAC_TILE_OP_TT_DOT && use->index < 2 &&
            lilac_tile_element_bits(value->type) == 8 &&
            contiguous != (use->index == 0 ? rank - 1 : rank - 2)) {
            return true;
        }
        if (op->code == LILAC_TILE_OP_TT_TRANS) {
            const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
            for (uint32_t d = 0; order != NULL && d < rank; d++) {
                if ((uint32_t)order->integers[d] == contiguous &&
                    is_transposed(&op->results[0], d)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* ---- which loads ----------------------------------------------------------------------------- */

/* Are the elements of the value operands of a product, as they are or after operations on each? */
static bool is_factor(const lilac_tile_value *value, uint32_t *steps) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if ((*steps)++ == MOST_USES) {
            return false;
        }
        if (lilac_dot_is_product(op)) {
            return use->index < 2 && has_tensor_core(op);
        }
        const uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
        if (((traits & (LILAC_TILE_ELEMENTWISE | LILAC_TILE_SHAPE)) != 0 ||
             op->code == LILAC_TILE_OP_TTG_FP4_TO_FP) &&
            op->result_count == 1 && op->code != LILAC_TILE_OP_TT_LOAD &&
            is_factor(&op->results[0], steps)) {
            return true;
        }
    }
    return false;
}

/* Is the product added to another value than zero? In a loop without such products, each iteration
 * waits for its products, and all of its warps for the one that starts copies. */
static bool is_added(const lilac_tile_op *product) {
    return product->code == LILAC_TILE_OP_TT_DOT_SCALED || product->operands[2].value->op == NULL ||
           product->operands[2].value->op->code != LILAC_TILE_OP_ARITH_CONSTANT;
}

/* Is the loop long enough for the time that the first tensor copies take? */
static bool is_long(const lilac_tile_op *loop) {
    uint64_t iterations;
    return !lilac_tile_trip_count(loop, &iterations) || iterations >= LEAST_ITERATIONS;
}

static bool has_harmless_ends(const described *d, lilac_arena *arena) {
    bool harmless = true;
    for (uint32_t i = 0; harmless && i < d->tile.load_rank; i++) {
        const lilac_sum *below = d->tile.below[i];
        harmless = below == NULL || lilac_rows_are_unused(&d->load->results[0], i, below, arena);
    }
    return harmless;
}

/* ---- one load -------------------------------------------------------------------------------- */

/* The descriptor's block: the load's tensor with the dimensions in the order of the map. */
static const lilac_tile_type *block_of(const description *x, const described *d) {
    const lilac_tile_type *type = d->load->results[0].type;
    const uint32_t rank = d->tile.rank, front = rank - type->rank;
    int64_t shape[TILE_MOST_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = i < front ? 1 : type->shape[d->tile.order[i - front]];
    }
    return lilac_tile_tensor(x->module, type->element, rank, shape, NULL);
}

/* The bytes that are known to divide a stride, up to a power of two. */
static int64_t divisor_of(const description *x, const lilac_product *stride, int64_t bytes) {
    int64_t divisor = bytes * power_of_two_in(stride->factor);
    for (uint32_t i = 0; i < stride->count && x->function->parameter_attributes != NULL; i++) {
        int64_t number;
        const uint32_t index = lilac_launch_value(stride->values[i], &number)->index;
        const int64_t known = lilac_tile_find_integer(&x->function->parameter_attributes[index],
                                                      "tt.divisibility", 1);
        divisor *= known % number == 0 ? power_of_two_in(known / number) : 1;
    }
    return divisor;
}

enum { VECTOR = 16, SECTOR = 32, LINE = 128 };

/* Rows that begin within a sector of global memory and are narrower than a line are slower by tensor
 * copies than by copies of whole vectors, which the plain kernel has if the strides are known to be
 * multiples of one (bench/results/decisions.md, bench/results/copies_of_products.md). */
static uint32_t pitch_of(const description *x, const described *d) {
    const int64_t bytes = lilac_tile_element_bits(d->load->results[0].type) / 8;
    bool vectors = bytes * d->block->shape[d->tile.rank - 1] < LINE;
    for (uint32_t i = 0; i + 1 < d->tile.rank; i++) {
        vectors = vectors && divisor_of(x, &d->tile.strides[i].terms[0], bytes) >= VECTOR;
    }
    return vectors ? SECTOR : 0;
}

static bool is_volatile(const lilac_tile_op *load) {
    const lilac_tile_attribute *attribute = lilac_tile_find(&load->attributes, "isVolatile");
    return attribute != NULL && attribute->integer != 0;
}

static bool describe(description *x, described *d, lilac_tile_op *load) {
    const lilac_tile_type *type = load->results[0].type;
    const lilac_tile_conditions before = x->conditions;
    *d = (described){.load = load};
    if (type->rank < 2 || type->layout != NULL || is_volatile(load) ||
        lilac_tile_element(type)->kind != LILAC_TILE_SCALAR) {
        return false;
    }
    bool good = lilac_strided_tile_of(&d->tile, &x->conditions, load, x->arena);
    if (good) {
        x->failed |= is_transposed(&load->results[0], d->tile.order[type->rank - 1]);
        d->block = block_of(x, d);
        d->tile.pitch = pitch_of(x, d);
        good = lilac_launch_map_fits(&d->tile) &&
               lilac_descriptor_is_operand(d->block, x->target) && has_harmless_ends(d, x->arena);
    }
    if (!good) {
        x->conditions = before;
    }
    return good;
}

static void look_at(void *data, lilac_tile_op *op) {
    description *x = data;
    uint32_t steps = 0;
    if (op->code != LILAC_TILE_OP_TT_LOAD || lilac_dot_loop(op, NULL) == NULL ||
        !is_factor(&op->results[0], &steps)) {
        return;
    }
    const lilac_tile_op *loop = lilac_dot_loop(op, is_added);
    x->failed |= loop == NULL || !is_long(loop) || x->count == MOST_LOADS;
    const bool good = !x->failed && describe(x, &x->loads[x->count], op);
    *(good ? &x->bytes : &x->other_bytes) += lilac_engine_bytes(op->results[0].type);
    x->count += good;
}

/* Are all tests of divisors outside of the loops of the loads? pipeline_loops changes no loop with
 * a test. */
static bool are_tests_outside(const description *x) {
    bool outside = true;
    for (uint32_t i = 0; i < x->conditions.divisor_count; i++) {
        const lilac_tile_op *test = lilac_engine_place_of_test(x->conditions.divisions[i], 1);
        for (uint32_t k = 0; k < x->count; k++) {
            const lilac_tile_region *body = x->loads[k].load->parent->parent;
            for (const lilac_tile_op *op = test; op != NULL; op = op->parent->parent->parent) {
                outside = outside && op->parent->parent != body;
            }
        }
    }
    return outside;
}

/* ---- numbers of any sign --------------------------------------------------------------------- */

/* What may have a producer: products in loops at the top of the function, of two warpgroups' rows. */
typedef struct producer_search {
    bool found, other;
} producer_search;

static void find_producer(void *data, lilac_tile_op *op) {
    enum { ROWS = 128 };
    producer_search *s = data;
    if (op->code == LILAC_TILE_OP_TT_DOT || op->code == LILAC_TILE_OP_TT_DOT_SCALED) {
        const lilac_tile_type *type = op->results[0].type;
        const lilac_tile_op *loop = lilac_dot_loop(op, NULL);
        s->found = true;
        s->other |=
            loop == NULL || lilac_tile_is_in_loop(loop) || type->rank != 2 || type->shape[0] < ROWS;
    }
}

/* May coordinates have an unknown sign, as those that FlexAttention loads? Only where a producer can start the copies
 * (specialise_warps): without one, copies by threads are faster (bench/results/h200_attention_programs.md). */
static bool may_have_producer(lilac_tile_module *module, const lilac_tile_function *f,
                              const lilac_target *target) {
    producer_search s = {0};
    lilac_reason why;
    lilac_tile_walk(f->body, find_producer, &s);
    return s.found && !s.other && lilac_engine_choose_warps(module, target, &why) >= PRODUCER_WARPS;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool is_only_read(const description *x) {
    uint64_t bases = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const uint32_t base = x->loads[i].tile.base->index;
        if (base >= 64) {
            return false;
        }
        bases |= UINT64_C(1) << base;
    }
    return lilac_engine_is_only_read(x->function, bases);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* A name for the map of the tensor behind this pointer, as parameter number `index`. */
static lilac_name map_name(lilac_tile_module *module, lilac_name base, uint32_t index) {
    lilac_text text = {0};
    lilac_text_printf(&text, "%s_map%u", base != NULL ? base : "", index);
    const lilac_name name = lilac_intern(module->context, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return name;
}

static lilac_tile_value *add_map(description *x, const described *d) {
    lilac_tile_function *f = x->function;
    const uint32_t count = f->parameter_count;
    const lilac_name name = map_name(x->module, d->tile.base->name, count);
    lilac_tile_attributes *attributes =
        lilac_arena_array(x->module->arena, lilac_tile_attributes, count + 1);
    for (uint32_t i = 0; i < count && f->parameter_attributes != NULL; i++) {
        attributes[i] = f->parameter_attributes[i];
    }
    lilac_tile_value *map = lilac_tile_add_argument(
        x->module, f->body->first, lilac_tile_descriptor(x->module, d->block), name, f->location);
    f->parameters = f->body->first->arguments;
    f->parameter_attributes = attributes;
    f->parameter_count = f->body->first->argument_count;
    lilac_launch_map_put(x->module, &attributes[count], &d->tile);
    return map;
}

/* The map of an earlier load that describes the same tensor in the same blocks; NULL: there is
 * none. */
static lilac_tile_value *find_map(const description *x, uint32_t load,
                                  lilac_tile_value *const *maps) {
    const described *d = &x->loads[load];
    for (uint32_t i = 0; i < load; i++) {
        if (x->loads[i].block == d->block &&
            lilac_strided_tile_is_of(&x->loads[i].tile, &d->tile)) {
            return maps[i];
        }
    }
    return NULL;
}

static lilac_tile_value *emit_product(const lilac_emitter *e, const lilac_product *p) {
    const lilac_tile_type *i32 = lilac_tile_scalar(e->module, LILAC_I32);
    lilac_tile_value *result =
        p->factor != 1 || p->count == 0 ? lilac_emit_integer(e, i32, p->factor) : NULL;
    for (uint32_t i = 0; i < p->count; i++) {
        result = result == NULL
                     ? p->values[i]
                     : lilac_emit_binary(e, LILAC_TILE_OP_ARITH_MULI, p->values[i], result);
    }
    return result;
}

static lilac_tile_value *emit_sum(const lilac_emitter *e, const lilac_sum *sum) {
    lilac_tile_value *result = NULL;
    for (uint32_t i = 0; i < sum->count; i++) {
        result = lilac_emit_sum(e, result, emit_product(e, &sum->terms[i]));
    }
    return result != NULL ? result
                          : lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I32), 0);
}

/* The loaded tensor with its dimensions in their old order. */
static lilac_tile_value *reorder(const lilac_emitter *e, const described *d,
                                 lilac_tile_value *loaded) {
    const lilac_tile_type *type = d->load->results[0].type;
    int64_t *order = lilac_arena_array(e->module->arena, int64_t, TILE_MOST_RANK);
    bool same = true;
    for (uint32_t i = 0; i < type->rank; i++) {
        order[d->tile.order[i]] =
            i; /* dimension order[i] of the load is dimension i of the block */
    }
    for (uint32_t i = 0; i < type->rank; i++) {
        same = same && order[i] == i;
    }
    if (same) {
        return loaded;
    }
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGERS,
                                            .name =
                                                lilac_intern_string(e->module->context, "order"),
                                            .type = lilac_tile_scalar(e->module, LILAC_I32),
                                            .count = type->rank,
                                            .integers = order};
    lilac_tile_value *result = lilac_emit_unary(e, LILAC_TILE_OP_TT_TRANS, type, loaded);
    lilac_tile_set_attribute(e->module, &result->op->attributes, &attribute);
    return result;
}

static void replace(description *x, const described *d, lilac_tile_value *map) {
    const lilac_emitter e = {x->module, d->load};
    const lilac_tile_type *type = d->load->results[0].type;
    lilac_tile_value *operands[1 + TILE_MOST_RANK] = {map};
    int64_t shape[TILE_MOST_RANK];
    for (uint32_t i = 0; i < d->tile.rank; i++) {
        operands[1 + i] = emit_sum(&e, &d->tile.at[i]);
    }
    for (uint32_t i = 0; i < type->rank; i++) {
        shape[i] = type->shape[d->tile.order[i]];
    }
    const lilac_tile_type *tile =
        lilac_tile_tensor(x->module, type->element, type->rank, shape, NULL);
    lilac_tile_op *load =
        lilac_emit(&e, LILAC_TILE_OP_TT_DESCRIPTOR_LOAD, tile, 1 + d->tile.rank, operands);
    for (uint32_t i = 0; i < d->load->attributes.count; i++) {
        const lilac_tile_attribute *a = &d->load->attributes.list[i];
        if (strcmp(a->name, "cacheModifier") == 0 || strcmp(a->name, "evictionPolicy") == 0 ||
            strcmp(a->name, "cache") == 0 || strcmp(a->name, "evict") == 0) {
            lilac_tile_set_attribute(x->module, &load->attributes, a);
        }
    }
    load->results[0].name = d->load->results[0].name;
    lilac_tile_replace_uses(&d->load->results[0], reorder(&e, d, load->results));
    lilac_tile_remove(d->load);
}

/* What a loop only carries for itself is not needed any more. */
static void stop_carrying(void *data, lilac_tile_op *op) {
    (void)data;
    const uint32_t count = op->code == LILAC_TILE_OP_SCF_FOR ? lilac_tile_carried_count(op) : 0;
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_value *own = lilac_tile_iteration_argument(op, i);
        const lilac_tile_value *next = lilac_tile_next(op, i);
        const lilac_tile_use *use = own->uses;
        if (lilac_tile_is_pointer(own->type) && op->results[i].uses == NULL && use != NULL &&
            use->next == NULL && use->op == next->op && next->uses->next == NULL) {
            lilac_tile_set_next(op, i, own);
        }
    }
}

static bool describe_function(lilac_tile_module *module, lilac_tile_function *f,
                              const lilac_target *target, lilac_arena *arena) {
    description x = {.module = module, .function = f, .target = target, .arena = arena};
    lilac_tile_value *maps[MOST_LOADS];
    for (uint32_t i = 0; i < f->parameter_count; i++) {
        if (f->parameters[i]->type->kind == LILAC_TILE_DESCRIPTOR) {
            return false; /* the recipes would not name the right parameters */
        }
    }
    if (!lilac_dot_is_inside(f->body, NULL)) {
        return false;
    }
    lilac_tile_number(f);
    const bool counted = lilac_count_iterations(module, f, arena);
    lilac_tile_number(f);
    lilac_range *ranges = lilac_arena_array(arena, lilac_range, f->value_count + 1);
    lilac_engine_ranges(ranges, f);
    x.conditions.ranges = ranges;
    x.conditions.any_sign = may_have_producer(module, f, target);
    lilac_tile_walk(f->body, look_at, &x);
    if (x.failed || x.count == 0 || x.bytes < x.other_bytes || !is_only_read(&x) ||
        !are_tests_outside(&x) || __builtin_popcountll(x.conditions.parameters) > MOST_CONDITIONS) {
        return counted;
    }
    for (uint32_t i = 0; i < x.conditions.divisor_count; i++) {
        lilac_engine_assert_positive(module, x.conditions.divisions[i], 1);
    }
    for (uint32_t i = 0; i < x.count; i++) {
        lilac_tile_value *known = find_map(&x, i, maps);
        maps[i] = known != NULL ? known : add_map(&x, &x.loads[i]);
        replace(&x, &x.loads[i], maps[i]);
    }
    lilac_launch_conditions_put(module, f, &x.conditions);
    lilac_tile_walk(f->body, stop_carrying, NULL);
    lilac_engine_forward_invariants(f->body);
    lilac_engine_remove_unused_phis(module, f->body);
    lilac_tile_number(f);
    lilac_few_iterations(module, f, target, arena);
    return true;
}

bool lilac_engine_describe_loads(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    *changed = target->launch_maps && target->num_ctas == 1 && target->num_stages > 1 &&
               lilac_arch_has(target->arch, LILAC_HAS_TMA) &&
               lilac_arch_has(target->arch, LILAC_HAS_WGMMA) &&
               lilac_change_kernels(module, target, describe_function);
    return true;
}
