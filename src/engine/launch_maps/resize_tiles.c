/* resize_tiles: iterations whose tiles are too long along k for their ring of buffers become several,
 * and those whose rows are shorter than a line are joined.
 *
 *     scf.for %k = %l to %u step %s                scf.for %n = 0 to 2 · ceil((%u − %l) / %s)
 *         iter_args(%a = %x) {                         iter_args(%a = %x) {
 *       %i = load %map[%row, %at] : M × 64           %k = %l + (%n >> 1) · %s
 *       %j = load %map'[%column, %at'] : N × 64  →   %h = (%n & 1) · 32
 *       %d = tt.dot %i, trans %j, %a                 %i = load %map[%row, %at + %h] : M × 32
 *       scf.yield %d                                 %j = load %map'[%column, %at' + %h] : N × 32
 *     }                                              %d = tt.dot %i, trans %j, %a
 *                                                    scf.yield %d
 *                                                  }
 *
 * and joined: %n = 0 to ceil(ceil((%u − %l) / %s) / 2), %k = %l + 2 · %n · %s, tiles M × 128, N × 128.
 * The terms are added in the same order.
 *
 * Which loops: those with one product, both of whose operands are loads of their own through maps of
 * describe_loads; nothing else has effects.
 *
 * Divided: the tiles of one iteration are copied at once, into a buffer that is free once its product
 * is complete. A ring of two buffers therefore starts the copies of an iteration when the product of
 * the one before begins, and their latency and their bytes must fit in the time of that product. With
 * four, two products' bytes are on their way at any time. The tiles are halved
 *
 *     operands in shared memory      while fewer than 4 buffers fit
 *     an operand in registers        while fewer than 2 buffers fit, or a thread has more than 32 elements
 *                                    of it: a transposed operand of other than 16 bits, which wgmma
 *                                    cannot read in shared memory
 *
 * down to rows of 128 bytes, which are the longest of a swizzle.
 *
 * Joined: rows of 64 bytes fill half of the lines and of the banks that each copy and each wgmma could
 * have. Iterations are joined up to rows of 128 bytes if a tile's rows are along k, wgmma multiplies, no
 * operand goes through registers, each iteration's tiles follow those of the one before, and three of
 * the longer buffers fit as often as blocks are resident (two, or one that has too many registers).
 * num_stages is halved, so that as many bytes are on their way and as many blocks are resident. What the
 * last iteration reads behind the loop's end must be zero in both tiles: the end is the end of the
 * tensors, or there is no such iteration.
 *
 * Times by the length of the rows: bench/results/h200_tile_lengths.md. */
#include "emit.h"
#include "facts/affine.h"
#include "launch_maps/change_kernels.h"
#include "launch_maps/write_launch_maps.h"
#include "products/block_demand.h"
#include "products/dot_operands.h"

#include <lilac/occupancy.h>
#include <lilac/tile_loops.h>

enum {
    ROW = 128,
    BUFFERS = 4,
    BUFFERS_OF_REGISTERS = 2,
    BUFFERS_OF_JOINED = 3,
    MOST_ELEMENTS = 32, /* of a thread, of an operand in registers */
    WARP = 32,
    RESERVED = 1 << 10 /* bytes of shared memory for mbarriers and alignment */
};

/* An operand of the product, and the load behind its transpositions. */
typedef struct operand {
    lilac_tile_op *load;
    uint32_t k; /* the dimension of the load's result along which products are added */
} operand;

typedef struct resizing {
    lilac_tile_module *module;
    const lilac_tile_function *function;
    const lilac_target *target;
    lilac_arena *arena;
    lilac_tile_op *loop, *product;
    operand operands[2];
    int64_t step, length; /* of the loop; of the tiles along k */
    uint64_t row, bytes;  /* bytes along k; of both tiles */
    uint64_t elements;    /* of a thread, of operands in registers */
    bool along_k;         /* are the rows of a tile along k? */
    /* Iterations that one becomes, and that become one: powers of two, one of them 1. */
    uint32_t parts, joined;
    lilac_sum end; /* of the iterations along k, not rounded up; 0: not needed */
    bool changed;
} resizing;

/* The bytes of shared memory that rings may have. */
static uint64_t memory_of(const resizing *r) {
    return r->target->arch->shared_bytes - RESERVED;
}

static int64_t stages_of(const resizing *r) {
    return lilac_tile_find_integer(&r->loop->attributes, "tt.num_stages", r->target->num_stages);
}

/* ---- which loops ----------------------------------------------------------------------------- */

static bool has_only_use(const lilac_tile_value *value) {
    return value->uses != NULL && value->uses->next == NULL;
}

static bool is_map(const lilac_tile_function *f, const lilac_tile_value *value) {
    return lilac_is_parameter(value) && f->parameter_attributes != NULL &&
           lilac_tile_find(&f->parameter_attributes[value->index], "lilac.launch_map") != NULL;
}

static bool find_operand(resizing *r, uint32_t index, uint32_t k) {
    operand *x = &r->operands[index];
    lilac_tile_value *value = r->product->operands[index].value;
    while (has_only_use(value) && value->op != NULL && value->op->code == LILAC_TILE_OP_TT_TRANS) {
        const lilac_tile_attribute *order = lilac_tile_find(&value->op->attributes, "order");
        k = order != NULL ? (uint32_t)order->integers[k] : k;
        value = value->op->operands[0].value;
    }
    const uint64_t count = (uint64_t)lilac_tile_element_count(value->type);
    const uint32_t bits = lilac_tile_element_bits(value->type);
    *x = (operand){.load = value->op, .k = k};
    r->bytes += count * bits / 8;
    r->along_k |= k + 1 == value->type->rank;
    r->elements +=
        bits != 16 && k + 1 != value->type->rank ? count / (WARP * r->target->num_warps) : 0;
    return has_only_use(value) && x->load != NULL &&
           x->load->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD &&
           is_map(r->function, x->load->operands[0].value) &&
           has_only_use(x->load->operands[0].value);
}

/* Do the other operations of the body only compute values? */
static bool has_no_other_effects(const resizing *r) {
    bool pure = true;
    for (const lilac_tile_op *op = r->loop->regions[0]->first->first; op != NULL; op = op->next) {
        pure = pure && (op == r->product || op == r->operands[0].load ||
                        op == r->operands[1].load || op->next == NULL ||
                        (op->region_count == 0 &&
                         (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0));
    }
    return pure;
}

/* Is the product's sum the only value that the loop changes? */
static bool has_one_sum(const resizing *r) {
    bool one = r->product->operands[2].value->block == r->loop->regions[0]->first;
    for (uint32_t i = 0; one && i < lilac_tile_carried_count(r->loop); i++) {
        const lilac_tile_value *own = lilac_tile_iteration_argument(r->loop, i);
        const lilac_tile_value *next = lilac_tile_next(r->loop, i);
        one = next == own || (next == r->product->results && r->product->operands[2].value == own &&
                              has_only_use(own));
    }
    return one && has_only_use(r->product->results);
}

static bool find_product(resizing *r) {
    for (lilac_tile_op *op = r->loop->regions[0]->first->first; op != NULL; op = op->next) {
        if (lilac_dot_is_product(op)) {
            if (r->product != NULL || op->code != LILAC_TILE_OP_TT_DOT) {
                return false;
            }
            r->product = op;
        }
    }
    return r->product != NULL;
}

/* Sums of 8-bit floats in steps of fewer terms than an iteration's (dot.c) would have other steps. */
static bool adds_whole(const lilac_tile_op *product, int64_t length) {
    return lilac_tile_element_bits(product->operands[0].value->type) != 8 ||
           lilac_tile_element(product->results[0].type)->scalar == LILAC_I32 ||
           lilac_tile_find_integer(&product->attributes, "maxNumImpreciseAcc", 0) > length;
}

/* The loop and its product, if tiles of other lengths give the same sum. */
static bool survey(resizing *r) {
    const lilac_tile_attributes *attributes = &r->loop->attributes;
    if (r->loop->code != LILAC_TILE_OP_SCF_FOR ||
        lilac_tile_find(attributes, "unsignedCmp") != NULL ||
        lilac_tile_find(attributes, "tt.loop_unroll_factor") != NULL || stages_of(r) < 2 ||
        !lilac_tile_constant(lilac_tile_step(r->loop), &r->step) || r->step < 1 ||
        !find_product(r)) {
        return false;
    }
    const uint32_t rank = r->product->results[0].type->rank;
    const lilac_tile_type *a = r->product->operands[0].value->type;
    r->length = a->shape[rank - 1];
    r->row = (uint64_t)r->length * lilac_tile_element_bits(a) / 8;
    return find_operand(r, 0, rank - 1) && find_operand(r, 1, rank - 2) &&
           has_no_other_effects(r) && has_one_sum(r);
}

/* ---- how long -------------------------------------------------------------------------------- */

static void divide(resizing *r) {
    const uint32_t buffers = r->elements > 0 ? BUFFERS_OF_REGISTERS : BUFFERS;
    uint64_t row = r->row, bytes = r->bytes, elements = r->elements;
    while (row > ROW && (buffers * bytes > memory_of(r) || elements > MOST_ELEMENTS)) {
        r->parts *= 2;
        row /= 2;
        bytes /= 2;
        elements /= 2;
    }
}

static bool is_wgmma(const resizing *r) {
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_reason why;
    return lilac_engine_dot_problem(&problem, r->product, r->target, &why) &&
           lilac_plan_dot_choose_wgmma(&shape, &problem, r->target);
}

/* Are several blocks resident, as far as registers go? */
static bool leaves_registers(const resizing *r) {
    const uint64_t sum = (uint64_t)lilac_tile_element_count(r->product->results[0].type) /
                         (WARP * r->target->num_warps);
    return sum + LILAC_ENGINE_OTHER_REGISTERS <=
           lilac_registers_for_blocks(r->target->arch, r->target->num_warps, 2);
}

/* The dimension of the map of the operand along which products are added. */
static uint32_t dim_of(const operand *x) {
    return x->load->operands[0].value->type->element->rank - x->load->results[0].type->rank + x->k;
}

/* A coordinate of the operand's load as a sum; false: it is none. */
static bool find_coordinate(const resizing *r, const operand *x, uint32_t dim, lilac_sum *sum) {
    lilac_affine at;
    const bool found = lilac_affine_of(&at, x->load->operands[1 + dim].value, r->arena) &&
                       at.base == NULL && lilac_affine_is_uniform(&at);
    *sum = found ? at.uniform : (lilac_sum){0};
    return found;
}

/* Does iteration i begin at i times the length along k, and at the same place along the others? */
static bool is_consecutive(const resizing *r, const operand *x) {
    const lilac_tile_value *counter = lilac_tile_induction_variable(r->loop);
    const uint32_t rank = x->load->operands[0].value->type->element->rank;
    lilac_sum at;
    bool good = find_coordinate(r, x, dim_of(x), &at) && at.count == 1 && at.terms[0].count == 1 &&
                at.terms[0].values[0] == counter && at.terms[0].factor * r->step == r->length;
    for (uint32_t d = 0; good && d < rank; d++) {
        good = d == dim_of(x) ||
               (find_coordinate(r, x, d, &at) && lilac_sum_is_invariant(&at, r->loop));
    }
    return good;
}

static bool has_size(const resizing *r, const operand *x, const lilac_sum *size) {
    lilac_sum own;
    return lilac_launch_map_size(&own, r->function, x->load->operands[0].value->index, dim_of(x)) &&
           lilac_sum_equal(&own, size);
}

/* Has the map no end along k? */
static bool is_endless(const resizing *r, const operand *x) {
    const lilac_product unbounded = lilac_product_number(TILE_UNBOUNDED);
    lilac_sum size = {0};
    return lilac_sum_add_product(&size, &unbounded) && has_size(r, x, &size);
}

/* Is the size of the operand's map along k that of ceil(end / length) iterations, so that the load reads
 * zero behind them? A map that has no end gets theirs. */
static bool ends_with_loop(const resizing *r, const operand *x) {
    return has_size(r, x, &r->end) || is_endless(r, x);
}

static bool reads_zero_behind(resizing *r, uint32_t joined) {
    uint64_t known;
    lilac_launch_iterations iterations;
    r->end = (lilac_sum){0};
    if (lilac_tile_trip_count(r->loop, &known)) {
        return known % joined == 0;
    }
    if (!lilac_tile_is_zero(lilac_tile_lower_bound(r->loop)) ||
        !lilac_launch_iterations_of(&iterations, r->loop, r->step, r->arena) ||
        iterations.divisor != r->length) {
        return false;
    }
    r->end = iterations.numerator;
    return lilac_sum_add_number(&r->end, 1 - r->length) && lilac_launch_sum_fits(&r->end) &&
           ends_with_loop(r, &r->operands[0]) && ends_with_loop(r, &r->operands[1]);
}

static void join(resizing *r) {
    const uint32_t joined = (uint32_t)(ROW / r->row), blocks = leaves_registers(r) ? 2 : 1;
    if (r->row < ROW && r->along_k && r->elements == 0 &&
        BUFFERS_OF_JOINED * r->bytes * joined <= memory_of(r) / blocks && is_wgmma(r) &&
        is_consecutive(r, &r->operands[0]) && is_consecutive(r, &r->operands[1]) &&
        reads_zero_behind(r, joined)) {
        r->joined = joined;
    }
}

static bool choose(resizing *r) {
    r->parts = r->joined = 1;
    divide(r);
    join(r);
    return r->parts != r->joined && adds_whole(r->product, r->length * r->joined);
}

/* ---- rewriting ------------------------------------------------------------------------------- */

/* The value times or divided by a number; itself where that is 1. */
static lilac_tile_value *emit_by(const lilac_emitter *e, lilac_tile_opcode code,
                                 lilac_tile_value *value, int64_t number) {
    return number == 1
               ? value
               : lilac_emit_binary(e, code, value, lilac_emit_integer(e, value->type, number));
}

/* The number of iterations; it is negative, too, where the loop does not run. */
static lilac_tile_value *emit_count(const resizing *r, const lilac_emitter *e) {
    lilac_tile_value *lower = lilac_tile_lower_bound(r->loop);
    lilac_tile_value *count = lilac_tile_upper_bound(r->loop);
    uint64_t known;
    if (lilac_tile_trip_count(r->loop, &known)) {
        return lilac_emit_integer(e, count->type, (int64_t)known * r->parts / r->joined);
    }
    if (!lilac_tile_is_zero(lower)) {
        count = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, count, lower);
    }
    count = emit_by(e, LILAC_TILE_OP_ARITH_CEILDIVSI, count, r->step * r->joined);
    return emit_by(e, LILAC_TILE_OP_ARITH_MULI, count, r->parts);
}

/* The counter of iterations of the new length; what used the counter uses the old one, computed from
 * it. Returns the part of the old iteration. */
static lilac_tile_value *count_anew(const resizing *r) {
    const lilac_emitter before = {r->module, r->loop},
                        inside = {r->module, r->loop->regions[0]->first->first};
    lilac_tile_value *counter = lilac_tile_induction_variable(r->loop);
    lilac_tile_value *lower = lilac_tile_lower_bound(r->loop), *count = emit_count(r, &before);
    lilac_tile_set_lower_bound(r->loop, lilac_emit_integer(&before, counter->type, 0));
    lilac_tile_set_upper_bound(r->loop, count);
    lilac_tile_set_step(r->loop, lilac_emit_integer(&before, counter->type, 1));
    lilac_tile_value *old = counter;
    if (r->parts > 1) {
        old =
            lilac_emit_binary(&inside, LILAC_TILE_OP_ARITH_SHRSI, old,
                              lilac_emit_integer(&inside, counter->type, __builtin_ctz(r->parts)));
    }
    lilac_tile_value *first = old;
    old = emit_by(&inside, LILAC_TILE_OP_ARITH_MULI, old, r->step * r->joined);
    first = first == counter ? old : first; /* computed from the counter itself */
    if (!lilac_tile_is_zero(lower)) {
        old = lilac_emit_binary(&inside, LILAC_TILE_OP_ARITH_ADDI, old, lower);
    }
    lilac_tile_replace_uses(counter, old);
    lilac_tile_set_operand(first->op, 0, counter);
    return r->parts == 1
               ? NULL
               : lilac_emit_binary(&inside, LILAC_TILE_OP_ARITH_ANDI, counter,
                                   lilac_emit_integer(&inside, counter->type, r->parts - 1));
}

static const lilac_tile_type *resized(const resizing *r, const lilac_tile_type *type,
                                      uint32_t dim) {
    int64_t shape[LILAC_MAX_RANK];
    for (uint32_t i = 0; i < type->rank; i++) {
        shape[i] = i == dim ? type->shape[i] / r->parts * r->joined : type->shape[i];
    }
    return lilac_tile_tensor(r->module, type->element, type->rank, shape, type->layout);
}

/* The load, of a map with blocks of the new length, and what is made of it up to the product. */
static void resize(const resizing *r, const operand *x, lilac_tile_value *part) {
    const lilac_emitter e = {r->module, x->load};
    lilac_tile_value *map = x->load->operands[0].value, *result = x->load->results;
    const lilac_tile_type *block = map->type->element;
    const uint32_t dim = dim_of(x);
    if (part != NULL) {
        lilac_tile_value *at = x->load->operands[1 + dim].value;
        lilac_tile_value *offset =
            emit_by(&e, LILAC_TILE_OP_ARITH_MULI, part, r->length / r->parts);
        if (offset->type != at->type) { /* a counter of 64 bits */
            offset = lilac_emit_unary(&e, LILAC_TILE_OP_ARITH_TRUNCI, at->type, offset);
        }
        lilac_tile_set_operand(x->load, 1 + dim,
                               lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_ADDI, at, offset));
    }
    map->type = lilac_tile_descriptor(r->module, resized(r, block, dim));
    uint32_t k = x->k;
    result->type = resized(r, result->type, k);
    for (lilac_tile_op *op = result->uses->op; op != r->product; op = op->results[0].uses->op) {
        const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
        uint32_t i = 0;
        while (order != NULL && order->integers[i] != (int64_t)k) {
            i++;
        }
        k = order != NULL ? i : k;
        op->results[0].type = resized(r, op->results[0].type, k);
    }
}

static void rewrite(const resizing *r) {
    const lilac_emitter e = {r->module, r->loop};
    lilac_tile_value *part = count_anew(r);
    for (uint32_t i = 0; i < 2; i++) {
        resize(r, &r->operands[i], part);
    }
    if (r->parts > 1) {
        lilac_emit_attribute(&e, r->loop, "lilac.parts", r->parts);
    } else {
        lilac_emit_attribute(&e, r->loop, "tt.num_stages", stages_of(r) / 2 + 1);
    }
    for (uint32_t i = 0; r->joined > 1 && i < 2; i++) {
        const operand *x = &r->operands[i];
        const uint32_t map = x->load->operands[0].value->index;
        lilac_launch_map_set_pitch(r->module, r->function, map, 0);
        if (r->end.count > 0 && is_endless(r, x)) {
            lilac_launch_map_set_size(r->module, r->function, map, dim_of(x), &r->end, r->length);
        }
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void look_at(void *data, lilac_tile_op *op) {
    resizing *r = data;
    r->loop = op;
    r->product = NULL;
    r->bytes = r->elements = 0;
    r->along_k = false;
    if (survey(r) && choose(r)) {
        rewrite(r);
        r->changed = true;
    }
}

static bool resize_function(lilac_tile_module *module, lilac_tile_function *f,
                            const lilac_target *target, lilac_arena *arena) {
    resizing r = {.module = module, .function = f, .target = target, .arena = arena};
    if (lilac_tile_find(&f->attributes, "lilac.launch_conditions") != NULL) {
        lilac_tile_number(f);
        lilac_tile_walk(f->body, look_at, &r);
        lilac_tile_number(f);
    }
    return r.changed;
}

bool lilac_engine_resize_tiles(lilac_tile_module *module, const lilac_target *target,
                               bool *changed) {
    *changed = lilac_change_kernels(module, target, resize_function);
    return true;
}
