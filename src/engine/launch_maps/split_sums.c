/* split_sums: blocks of a cluster divide the iterations of a sum of products.
 *
 *     %r = scf.for %k = %l to %u step %s           %part, %parts = program id, number of programs along z
 *         iter_args(%a = 0, %p = %x) {             %b, %e = the iterations of the part
 *       %n = tt.dot %i, %j, %a                     %r = scf.for %k = %l + %b * %s to %l + %e * %s step %s
 *       %q = tt.addptr %p, %c                          iter_args(%a = 0, %p = %x + %b * %c) { … }
 *       scf.yield %n, %q                      →    %t = lilac.sum_blocks %r
 *     }                                            scf.if %part == 0 {
 *     epilogue of %r                                 epilogue of %t
 *                                                  }
 *
 * The launcher starts such a kernel with one block for each program, or with 2, 4 or 8 along z,
 * which are a cluster (tensor_map.h). With one block the bounds are those of the program:
 *
 *     n = number of iterations, S = number of blocks, w = (n + S - 1) / S
 *     block r:  iterations min(r · w, n) to min((r + 1) · w, n)
 *
 * S is a power of two up to 8, so that the division is a shift by S / 2 - S / 8. The bounds are
 * contiguous, since a step that depends on S would be none that later passes know.
 *
 * Which kernels: those whose loads describe_loads has described, with one loop with products, at
 * the top of the function. A carried value that the loop changes is a sum that begins with zero,
 * of f32 or i32, and is only added to; or an integer or a pointer that advances by the same step,
 * and that nothing uses behind the loop. Nothing up to the end of the loop writes memory, and the
 * kernel does not use the number of its program along z. The sum of i32 is the same; sums of f32
 * are added in another order. */
#include "emit.h"
#include "launch_maps/change_kernels.h"
#include "launch_maps/write_launch_maps.h"
#include "pipeline/schedule.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum {
    MOST_BYTES = 128 << 10, /* of a sum: it goes through shared memory at once */
    LEAST_ITERATIONS = 16,  /* of a loop whose trip count is known */
    MOST_CARRIED = 32,
    MOST_DEPTH = 8, /* operations between an invariant value and those from outside of a loop */
    AXIS_Z = 2,
    PRODUCTS_A_CLOCK = 2048 /* of 16-bit operands, in a multiprocessor with wgmma */
};

typedef enum carried_kind { SUM, STEP, INVARIANT, OTHER } carried_kind;

typedef struct splitting {
    lilac_tile_module *module;
    lilac_tile_function *function;
    lilac_tile_op *loop;
    int64_t step;
    uint32_t count;
    carried_kind kinds[MOST_CARRIED];
    lilac_launch_iterations iterations;
    uint32_t clocks, loads; /* of the products of an iteration, estimated; bytes that it loads */
    uint32_t bytes;         /* of the sums of a block */
} splitting;

/* ---- carried values -------------------------------------------------------------------------- */

static const lilac_tile_use *only_use(const lilac_tile_value *value) {
    return value->uses != NULL && value->uses->next == NULL ? value->uses : NULL;
}

/* Does the operation add something to this operand? */
static bool adds(const lilac_tile_use *use) {
    switch (use->op->code) {
    case LILAC_TILE_OP_TT_DOT:
        return use->index == 2;
    case LILAC_TILE_OP_ARITH_ADDF:
    case LILAC_TILE_OP_ARITH_ADDI:
        return true;
    default:
        return false;
    }
}

/* Each value on the way to the next iteration has one use, so nothing else depends on it. */
static bool is_sum(const lilac_tile_op *loop, uint32_t i) {
    const lilac_tile_value *value = lilac_tile_iteration_argument(loop, i);
    const lilac_tile_type *type = value->type;
    const lilac_tile_op *end = lilac_tile_terminator(loop->regions[0]);
    const lilac_tile_type *element = lilac_tile_element(type);
    if (type->kind != LILAC_TILE_TENSOR || element->kind != LILAC_TILE_SCALAR ||
        (element->scalar != LILAC_F32 && element->scalar != LILAC_I32) ||
        !lilac_tile_is_zero(lilac_tile_init(loop, i))) {
        return false;
    }
    const lilac_tile_use *use = only_use(value);
    while (use != NULL && use->op->parent == end->parent && adds(use)) {
        value = &use->op->results[0];
        use = only_use(value);
    }
    return use != NULL && use->op == end && lilac_tile_next(loop, i) == value &&
           value != lilac_tile_iteration_argument(loop, i);
}

/* Is the value the same in all iterations: from outside of the loop, or computed from such values? */
static bool is_invariant(const lilac_tile_value *value, const lilac_tile_op *loop, uint32_t depth) {
    if (!lilac_tile_is_inside(value, loop)) {
        return true;
    }
    const lilac_tile_op *op = value->op;
    if (op == NULL || depth == 0 || op->region_count > 0 ||
        (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) == 0) {
        return false;
    }
    bool invariant = true;
    for (uint32_t i = 0; invariant && i < op->operand_count; i++) {
        invariant = is_invariant(op->operands[i].value, loop, depth - 1);
    }
    return invariant;
}

/* Moves what computes an invariant value out of the loop. */
static void hoist(const lilac_tile_value *value, lilac_tile_op *loop) {
    lilac_tile_op *op = value->op;
    if (!lilac_tile_is_inside(value, loop)) {
        return;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        hoist(op->operands[i].value, loop);
    }
    lilac_tile_detach(op);
    lilac_tile_insert_before(loop, op);
}

/* What the value advances by in each iteration; NULL: it does not. */
static lilac_tile_value *step_of(const lilac_tile_op *loop, uint32_t i) {
    const lilac_tile_value *own = lilac_tile_iteration_argument(loop, i);
    const lilac_tile_op *next = lilac_tile_next(loop, i)->op;
    if (next == NULL || next->parent != loop->regions[0]->first ||
        (next->code != LILAC_TILE_OP_ARITH_ADDI && next->code != LILAC_TILE_OP_TT_ADDPTR)) {
        return NULL;
    }
    const bool second = next->code == LILAC_TILE_OP_ARITH_ADDI && next->operands[1].value == own;
    lilac_tile_value *step = next->operands[second ? 0 : 1].value;
    return next->operands[second ? 1 : 0].value == own && is_invariant(step, loop, MOST_DEPTH)
               ? step
               : NULL;
}

static carried_kind kind_of(const lilac_tile_op *loop, uint32_t i) {
    if (lilac_tile_next(loop, i) == lilac_tile_iteration_argument(loop, i)) {
        return INVARIANT;
    }
    if (is_sum(loop, i)) {
        return SUM;
    }
    return loop->results[i].uses == NULL && step_of(loop, i) != NULL ? STEP : OTHER;
}

static bool check_carried(splitting *s) {
    bool good = true, sums = false;
    s->count = lilac_tile_carried_count(s->loop);
    for (uint32_t i = 0; good && i < s->count && i < MOST_CARRIED; i++) {
        const lilac_tile_type *type = lilac_tile_init(s->loop, i)->type;
        s->kinds[i] = kind_of(s->loop, i);
        good = s->kinds[i] != OTHER;
        if (s->kinds[i] == SUM) {
            const uint64_t bytes = 4 * (uint64_t)lilac_tile_element_count(type);
            good = bytes <= MOST_BYTES;
            s->bytes += (uint32_t)bytes;
            sums = true;
        }
    }
    return good && sums && s->count <= MOST_CARRIED;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static bool is_assertion(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_ASSERT || op->code == LILAC_TILE_OP_CF_ASSERT;
}

/* Do several blocks that execute the operation have the effects of one? */
static void check_effects(void *data, lilac_tile_op *op) {
    bool *good = data;
    uint32_t count;
    const lilac_tile_effect *effects = lilac_tile_effects(op->code, &count);
    for (uint32_t i = 0; i < count && !is_assertion(op); i++) {
        *good = *good && effects[i].resources == LILAC_TILE_GLOBAL_MEMORY &&
                (effects[i].access & LILAC_TILE_WRITES) == 0;
    }
}

static bool is_of_z(const lilac_tile_op *op) {
    const lilac_tile_attribute *axis = lilac_tile_find(&op->attributes, "axis");
    return axis != NULL && (axis->text != NULL ? axis->text[0] == 'z' : axis->integer == AXIS_Z);
}

static void check_axis(void *data, lilac_tile_op *op) {
    const bool place = op->code == LILAC_TILE_OP_TT_GET_PROGRAM_ID ||
                       op->code == LILAC_TILE_OP_TT_GET_NUM_PROGRAMS;
    *(bool *)data &= !(place && is_of_z(op));
}

static bool is_asked_to_specialise(const lilac_tile_op *loop) {
    return lilac_tile_find(&loop->attributes, "tt.warp_specialize") != NULL ||
           lilac_engine_is_asked(loop, LILAC_SCHEDULE_PRODUCER, 1);
}

/* What an iteration multiplies and loads. */
typedef struct work {
    uint64_t products, loaded; /* multiply-adds of 16-bit operands; bytes */
} work;

static void add_work(void *data, lilac_tile_op *op) {
    work *w = data;
    if (op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD || op->code == LILAC_TILE_OP_TT_LOAD) {
        const lilac_tile_type *type = op->results[0].type;
        w->loaded += (uint64_t)lilac_tile_element_count(type) * lilac_tile_element_bits(type) / 8;
    } else if (op->code == LILAC_TILE_OP_TT_DOT) {
        const lilac_tile_type *a = op->operands[0].value->type;
        w->products += (uint64_t)lilac_tile_element_count(op->results[0].type) *
                       (uint64_t)a->shape[a->rank - 1] * lilac_tile_element_bits(a) / 16;
    }
}

static void estimate(splitting *s) {
    work w = {0};
    lilac_tile_walk(s->loop->regions[0], add_work, &w);
    s->clocks = (uint32_t)(w.products / PRODUCTS_A_CLOCK);
    s->loads = (uint32_t)w.loaded;
}

static bool survey(splitting *s, lilac_arena *arena) {
    bool good = true;
    uint64_t iterations;
    s->loop = lilac_dot_only_loop(s->function);
    if (s->loop == NULL || is_asked_to_specialise(s->loop) ||
        lilac_tile_find(&s->loop->attributes, "unsignedCmp") != NULL ||
        !lilac_tile_constant(lilac_tile_step(s->loop), &s->step) || s->step < 1 ||
        (lilac_tile_trip_count(s->loop, &iterations) && iterations < LEAST_ITERATIONS)) {
        return false;
    }
    lilac_tile_walk(s->function->body, check_axis, &good);
    for (lilac_tile_op *op = s->function->body->first->first; op != s->loop->next; op = op->next) {
        check_effects(&good, op);
        for (uint32_t r = 0; r < op->region_count; r++) {
            lilac_tile_walk(op->regions[r], check_effects, &good);
        }
    }
    estimate(s);
    return good && check_carried(s) &&
           lilac_launch_iterations_of(&s->iterations, s->loop, s->step, arena);
}

/* ---- rewriting ------------------------------------------------------------------------------- */

static lilac_tile_value *place(const lilac_emitter *e, lilac_tile_opcode code) {
    lilac_tile_op *op = lilac_emit(e, code, lilac_tile_scalar(e->module, LILAC_I32), 0, NULL);
    lilac_emit_keyword(e, op, "axis", "z");
    return op->results;
}

/* The integer in the type of the counter, which has 32 or 64 bits. */
static lilac_tile_value *widen(const lilac_emitter *e, lilac_tile_value *value,
                               const lilac_tile_type *type) {
    return type == value->type ? value : lilac_emit_i64(e, value);
}

static lilac_tile_value *scaled(const lilac_emitter *e, lilac_tile_value *value, int64_t factor) {
    return factor == 1 ? value
                       : lilac_emit_binary(e, LILAC_TILE_OP_ARITH_MULI, value,
                                           lilac_emit_integer(e, value->type, factor));
}

/* The number of iterations of the program; not negative. */
static lilac_tile_value *count_iterations(const splitting *s, const lilac_emitter *e) {
    lilac_tile_value *lower = lilac_tile_lower_bound(s->loop);
    lilac_tile_value *upper = lilac_tile_upper_bound(s->loop);
    int64_t first;
    lilac_tile_value *count = lilac_tile_constant(lower, &first) && first == 0
                                  ? upper
                                  : lilac_emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, upper, lower);
    if (s->step != 1) {
        count = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_CEILDIVSI, count,
                                  lilac_emit_integer(e, count->type, s->step));
    }
    return lilac_emit_binary(e, LILAC_TILE_OP_ARITH_MAXSI, count,
                             lilac_emit_integer(e, count->type, 0));
}

typedef struct part {
    lilac_tile_value *rank; /* i32 */
    lilac_tile_value *begin, *end;
} part;

static part find_part(const splitting *s, const lilac_emitter *e) {
    const lilac_tile_type *type = lilac_tile_lower_bound(s->loop)->type;
    const lilac_tile_type *i32 = lilac_tile_scalar(e->module, LILAC_I32);
    part p = {.rank = place(e, LILAC_TILE_OP_TT_GET_PROGRAM_ID)};
    lilac_tile_value *parts = place(e, LILAC_TILE_OP_TT_GET_NUM_PROGRAMS);
    lilac_tile_value *half =
        lilac_emit_binary(e, LILAC_TILE_OP_ARITH_SHRSI, parts, lilac_emit_integer(e, i32, 1));
    lilac_tile_value *eighth =
        lilac_emit_binary(e, LILAC_TILE_OP_ARITH_SHRSI, parts, lilac_emit_integer(e, i32, 3));
    lilac_tile_value *shift = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, half, eighth);
    lilac_tile_value *count = count_iterations(s, e);
    lilac_tile_value *rest =
        lilac_emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, parts, lilac_emit_integer(e, i32, 1));
    lilac_tile_value *each = lilac_emit_binary(
        e, LILAC_TILE_OP_ARITH_SHRSI,
        lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, count, widen(e, rest, type)),
        widen(e, shift, type));
    p.begin = lilac_emit_binary(
        e, LILAC_TILE_OP_ARITH_MINSI,
        lilac_emit_binary(e, LILAC_TILE_OP_ARITH_MULI, widen(e, p.rank, type), each), count);
    p.end = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_MINSI,
                              lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, p.begin, each), count);
    return p;
}

static lilac_tile_value *splat(const lilac_emitter *e, lilac_tile_value *scalar,
                               const lilac_tile_type *like) {
    return lilac_tile_is_tensor(like)
               ? lilac_emit_unary(e, LILAC_TILE_OP_TT_SPLAT,
                                  lilac_emit_shaped(e, scalar->type, like), scalar)
               : scalar;
}

/* init + begin · step. Offsets of pointers are multiplied in 64 bits, as they add up. */
static void advance(const splitting *s, const lilac_emitter *e, uint32_t i,
                    lilac_tile_value *begin) {
    lilac_tile_value *init = lilac_tile_init(s->loop, i), *step = step_of(s->loop, i);
    hoist(step, s->loop);
    const bool pointer = lilac_tile_is_pointer(init->type);
    if (pointer || lilac_tile_element_bits(step->type) == 64) {
        step = lilac_emit_i64(e, step);
        begin = lilac_emit_i64(e, begin);
    } else if (lilac_tile_element_bits(begin->type) == 64) {
        begin = lilac_emit_unary(e, LILAC_TILE_OP_ARITH_TRUNCI,
                                 lilac_tile_scalar(e->module, LILAC_I32), begin);
    }
    lilac_tile_value *distance =
        lilac_emit_binary(e, LILAC_TILE_OP_ARITH_MULI, step, splat(e, begin, step->type));
    lilac_tile_set_init(
        s->loop, i,
        lilac_emit_binary(e, pointer ? LILAC_TILE_OP_TT_ADDPTR : LILAC_TILE_OP_ARITH_ADDI, init,
                          distance));
}

static void divide_loop(const splitting *s, const lilac_emitter *e, const part *p) {
    lilac_tile_value *lower = lilac_tile_lower_bound(s->loop);
    int64_t first;
    lilac_tile_value *begin = scaled(e, p->begin, s->step), *end = scaled(e, p->end, s->step);
    if (!lilac_tile_constant(lower, &first) || first != 0) {
        begin = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, lower, begin);
        end = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, lower, end);
    }
    lilac_tile_set_lower_bound(s->loop, begin);
    lilac_tile_set_upper_bound(s->loop, end);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->kinds[i] == STEP) {
            advance(s, e, i, p->begin);
        }
    }
}

/* Everything behind `op` but the terminator, in a conditional. */
static void put_epilogue_under(const splitting *s, const lilac_emitter *e,
                               lilac_tile_value *condition, lilac_tile_op *op) {
    lilac_tile_op *end = s->function->body->first->last;
    lilac_tile_op *branch = lilac_tile_op_create(s->module, LILAC_TILE_OP_SCF_IF, 1, &condition, 0,
                                                 NULL, 2, e->place->location);
    branch->position = e->place->position;
    lilac_tile_block *then = lilac_tile_block_create(s->module, branch->regions[0]);
    for (lilac_tile_op *next; op != end; op = next) {
        next = op->next;
        lilac_tile_detach(op);
        lilac_tile_append(then, op);
    }
    lilac_tile_op *yield = lilac_tile_op_create(s->module, LILAC_TILE_OP_SCF_YIELD, 0, NULL, 0,
                                                NULL, 0, e->place->location);
    yield->position = e->place->position;
    lilac_tile_append(then, yield);
    lilac_tile_insert_before(end, branch);
}

static void split(const splitting *s) {
    const lilac_emitter before = {s->module, s->loop}, behind = {s->module, s->loop->next};
    const part p = find_part(s, &before);
    divide_loop(s, &before, &p);
    for (uint32_t i = 0; i < s->count; i++) {
        lilac_tile_value *result = &s->loop->results[i];
        if (s->kinds[i] == SUM && result->uses != NULL) {
            lilac_tile_op *sum =
                lilac_emit(&behind, LILAC_TILE_OP_LILAC_SUM_BLOCKS, result->type, 0, NULL);
            lilac_tile_replace_uses(result, sum->results);
            lilac_tile_set_operands(s->module, sum, 1, &result);
        }
    }
    lilac_tile_value *zero =
        lilac_emit_integer(&behind, lilac_tile_scalar(s->module, LILAC_I32), 0);
    lilac_tile_value *first = lilac_emit_compare(&behind, "eq", p.rank, zero);
    put_epilogue_under(s, &behind, first, behind.place);
    lilac_launch_split_put(s->module, s->function, &s->iterations, s->clocks, s->loads, s->bytes);
}

static bool split_function(lilac_tile_module *module, lilac_tile_function *f,
                           const lilac_target *target, lilac_arena *arena) {
    splitting s = {.module = module, .function = f};
    (void)target;
    if (lilac_tile_find(&f->attributes, "lilac.launch_conditions") == NULL) {
        return false;
    }
    lilac_tile_number(f);
    if (!survey(&s, arena)) {
        return false;
    }
    split(&s);
    lilac_tile_number(f);
    return true;
}

bool lilac_engine_split_sums(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    *changed = target->launch_maps && target->split_sums && target->num_ctas == 1 &&
               lilac_arch_has(target->arch, LILAC_HAS_CLUSTERS) &&
               lilac_change_kernels(module, target, split_function);
    return true;
}
