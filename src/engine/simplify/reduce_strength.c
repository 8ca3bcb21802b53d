/* reduce_strength: a carried tensor of pointers that a loop advances by a uniform step becomes a
 * carried scalar pointer and invariant offsets. A carried tensor of offsets becomes a scalar
 * likewise.
 *
 *     %p = addptr(addptr(splat %x, rows), columns)
 *     for … iter_args(%q = %p) {                 for … iter_args(%s = %x) {
 *       load %q                                    %q = addptr(addptr(splat %s, columns), rows)
 *       …                                   →      load %q
 *       yield addptr(%q, splat %step)              …
 *     }                                            yield addptr(%s, %step)
 *                                                }
 *
 * A few instructions then compute such a tensor from scalars: each user may have it in a layout of
 * its own, the loop carries one value instead of one per register, and constant offsets of
 * registers become immediate offsets.
 *
 * A carried value is followed from the iteration argument to the value that the loop yields,
 * through additions of uniform steps, conditionals and inner loops. All values on the way become
 * scalars in place. Sums of 64 bits may be reordered. The offsets of a pointer are sorted such
 * that the fewest sums differ between registers: offsets made of ranges only come first. Offsets
 * with fewer bits remain one sum of their width. base + steps wraps as before, because both forms
 * add the same numbers in the same width.
 */
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

#include <string.h>

#define LOOK_BACK  8
#define MOST_STEPS 24
#define MOST_LINKS 12
#define BUDGET     4096 /* values that are examined for one carried value */

/* How a tensor is computed from a scalar: the sum of its splat and the offsets, in order. */
typedef struct recipe {
    lilac_tile_opcode add; /* tt.addptr or arith.addi */
    const lilac_tile_type *type;
    uint32_t count;
    lilac_tile_value *offsets[MOST_LINKS];
} recipe;

/* A former tensor value and the scalar that replaces it, which may be the value itself. */
typedef struct moved {
    lilac_tile_value *value, *scalar;
    struct moved *next;
} moved;

typedef struct advancing {
    lilac_tile_module *module;
    lilac_arena *arena;
    uint32_t count;            /* of values by id; new values have higher ids */
    uint32_t *mark;            /* by value id: the mark of the carried value that it belongs to */
    lilac_tile_value **scalar; /* by value id: the scalar that replaces the value */
    uint32_t marks;
    const recipe *how; /* of the carried value that is being rewritten */
    moved *list;
    uint32_t budget;
    lilac_name value_name;
    const lilac_target *target;
    lilac_axis_analysis axis; /* where a loop has products */
    bool changed;
} advancing;

static bool is_tensor(const lilac_tile_value *value) {
    return lilac_tile_is_tensor(value->type);
}

static bool has_hints(const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->attributes.count; i++) {
        if (strncmp(op->attributes.list[i].name, "tt.", 3) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_shape(lilac_tile_opcode code) {
    return code == LILAC_TILE_OP_TT_EXPAND_DIMS || code == LILAC_TILE_OP_TT_BROADCAST ||
           code == LILAC_TILE_OP_TT_TRANS || code == LILAC_TILE_OP_TT_RESHAPE;
}

static const bool is_integer_sum[LILAC_TILE_OP_COUNT] = {
#define LINEAR(code) [LILAC_TILE_OP_##code] = true,
#include <lilac/operations.def>
};

static void put_id(advancing *a, lilac_tile_op *op) {
    (void)a;
    for (uint32_t i = 0; i < op->result_count; i++) {
        op->results[i].id = UINT32_MAX;
    }
}

/* ---- uniform tensors -------------------------------------------------------------------- */

/* Is the value computed by sums and shape operations from constants and these two operations
 * only? */
static bool is_made_of(const lilac_tile_value *value, lilac_tile_opcode first,
                       lilac_tile_opcode second, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    int64_t number;
    if (op == NULL || depth == 0) {
        return false;
    }
    if (op->code == first || op->code == second || lilac_tile_constant(value, &number)) {
        return true;
    }
    if (!is_integer_sum[op->code] && !is_shape(op->code)) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!is_made_of(op->operands[i].value, first, second, depth - 1)) {
            return false;
        }
    }
    return true;
}

/* Does the definition show that all elements are equal? */
static bool is_uniform(const lilac_tile_value *value) {
    return is_made_of(value, LILAC_TILE_OP_TT_SPLAT, LILAC_TILE_OP_TT_SPLAT, LOOK_BACK);
}

/* The value of all elements as a scalar, computed next to the tensor. */
static lilac_tile_value *number_of(advancing *a, lilac_tile_value *value) {
    lilac_tile_op *op = value->op;
    if (op->code == LILAC_TILE_OP_TT_SPLAT) {
        return op->operands[0].value;
    }
    if (is_shape(op->code)) {
        return number_of(a, op->operands[0].value);
    }
    const lilac_tile_type *type = lilac_tile_element(value->type);
    lilac_tile_op *made = lilac_tile_clone(a->module, op);
    made->results[0].type = type;
    put_id(a, made);
    if (op->code == LILAC_TILE_OP_ARITH_CONSTANT) {
        int64_t number = 0;
        (void)lilac_tile_constant(value, &number);
        lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGER,
                                          .name = a->value_name,
                                          .type = type,
                                          .integer = number};
        lilac_tile_set_attribute(a->module, &made->attributes, &attribute);
    }
    lilac_tile_insert_after(op, made);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        lilac_tile_set_operand(made, i, number_of(a, op->operands[i].value));
    }
    return &made->results[0];
}

/* ---- following a carried value ---------------------------------------------------------- */

static bool loop_follows(advancing *a, const lilac_tile_op *loop, uint32_t slot, uint32_t depth);

/* The index of the carried value that is this result of a loop; -1: the result is none
 * unchanged. */
static int slot_of_result(const lilac_tile_op *loop, uint32_t result) {
    if (loop->code == LILAC_TILE_OP_SCF_FOR) {
        return (int)result;
    }
    if (lilac_tile_terminator(loop->regions[0]) == NULL) {
        return -1;
    }
    const lilac_tile_value *passed = lilac_tile_passed(loop, result);
    return passed->block == loop->regions[0]->first ? (int)passed->index : -1;
}

/* Is the value the marked value plus uniform steps? */
static bool follows(advancing *a, const lilac_tile_value *value, uint32_t mark, uint32_t depth) {
    if (value->id >= a->count || depth == 0 || !is_tensor(value) || a->budget == 0) {
        return false;
    }
    a->budget--;
    if (a->mark[value->id] == mark) {
        return true;
    }
    const lilac_tile_op *op = value->op;
    if (op == NULL || has_hints(op)) {
        return false;
    }
    switch (op->code) {
    case LILAC_TILE_OP_TT_ADDPTR:
    case LILAC_TILE_OP_ARITH_SUBI:
        return is_uniform(op->operands[1].value) &&
               follows(a, op->operands[0].value, mark, depth - 1);
    case LILAC_TILE_OP_ARITH_ADDI:
        return (is_uniform(op->operands[1].value) &&
                follows(a, op->operands[0].value, mark, depth - 1)) ||
               (is_uniform(op->operands[0].value) &&
                follows(a, op->operands[1].value, mark, depth - 1));
    case LILAC_TILE_OP_SCF_IF:
        for (uint32_t r = 0; r < 2; r++) {
            if (lilac_tile_terminator(op->regions[r]) == NULL ||
                !follows(a, lilac_tile_yielded(op, r, value->index), mark, depth - 1)) {
                return false;
            }
        }
        return true;
    case LILAC_TILE_OP_SCF_FOR:
    case LILAC_TILE_OP_SCF_WHILE: {
        int slot = slot_of_result(op, value->index);
        return slot >= 0 && loop_follows(a, op, (uint32_t)slot, depth - 1) &&
               follows(a, lilac_tile_init(op, (uint32_t)slot), mark, depth - 1);
    }
    default:
        return false;
    }
}

/* Is the value that the loop yields its carried value plus uniform steps? */
static bool loop_follows(advancing *a, const lilac_tile_op *loop, uint32_t slot, uint32_t depth) {
    const lilac_tile_value *argument = lilac_tile_iteration_argument(loop, slot);
    if (lilac_tile_terminator(loop->regions[loop->region_count - 1]) == NULL ||
        argument->id >= a->count || !is_tensor(argument)) {
        return false;
    }
    uint32_t mark = a->mark[argument->id] = ++a->marks;
    for (uint32_t i = 0; loop->code == LILAC_TILE_OP_SCF_WHILE && i < loop->result_count; i++) {
        const lilac_tile_value *passed = lilac_tile_passed_argument(loop, i);
        if (slot_of_result(loop, i) == (int)slot && passed->id < a->count) {
            a->mark[passed->id] = mark;
        }
    }
    return follows(a, lilac_tile_next(loop, slot), mark, depth);
}

/* ---- the initial value ---------------------------------------------------------------- */

/* Is the value made of ranges and constants only? Then it is constant except for the thread's
 * part. */
static bool is_of_ranges(const lilac_tile_value *value) {
    return is_made_of(value, LILAC_TILE_OP_TT_MAKE_RANGE, LILAC_TILE_OP_TT_MAKE_RANGE, LOOK_BACK);
}

/* Do a few instructions compute the value from scalars? */
static bool is_cheap(const lilac_tile_value *value) {
    return is_made_of(value, LILAC_TILE_OP_TT_SPLAT, LILAC_TILE_OP_TT_MAKE_RANGE, LOOK_BACK);
}

/* Splits a tensor of pointers into a scalar pointer and offsets. False: it is no such sum. If
 * `place` is not NULL, the offsets are brought to the shape of the tensor before `place`. */
static bool split_pointers(advancing *a, lilac_tile_value *value, recipe *how,
                           lilac_tile_value **scalar, lilac_tile_op *place) {
    lilac_tile_op *links[MOST_LINKS];
    uint32_t count = 0;
    how->count = 0;
    for (;;) {
        lilac_tile_op *op = value->op;
        if (op == NULL || has_hints(op)) {
            return false;
        }
        if (op->code == LILAC_TILE_OP_TT_SPLAT) {
            *scalar = op->operands[0].value;
            break;
        }
        if ((op->code != LILAC_TILE_OP_TT_ADDPTR && !is_shape(op->code)) || count == MOST_LINKS) {
            return false;
        }
        links[count++] = op;
        value = op->operands[0].value;
    }
    while (place != NULL && count-- > 0) {
        lilac_tile_op *op = links[count];
        if (op->code == LILAC_TILE_OP_TT_ADDPTR) {
            how->offsets[how->count++] = op->operands[1].value;
            continue;
        }
        for (uint32_t i = 0; i < how->count; i++) {
            const lilac_tile_type *to = op->results[0].type;
            lilac_tile_op *made = lilac_tile_clone(a->module, op);
            lilac_tile_set_operand(made, 0, how->offsets[i]);
            made->results[0].type = lilac_tile_tensor(
                a->module, lilac_tile_element(how->offsets[i]->type), to->rank, to->shape, NULL);
            put_id(a, made);
            lilac_tile_insert_before(place, made);
            how->offsets[i] = &made->results[0];
        }
    }
    for (uint32_t i = 1; place != NULL && i < how->count; i++) { /* stable */
        for (uint32_t k = i;
             k > 0 && is_of_ranges(how->offsets[k]) && !is_of_ranges(how->offsets[k - 1]); k--) {
            lilac_tile_value *later = how->offsets[k];
            how->offsets[k] = how->offsets[k - 1];
            how->offsets[k - 1] = later;
        }
    }
    return true;
}

static lilac_tile_value *zero_before(advancing *a, lilac_tile_op *place,
                                     const lilac_tile_type *type) {
    lilac_tile_op *made = lilac_tile_op_create(a->module, LILAC_TILE_OP_ARITH_CONSTANT, 0, NULL, 1,
                                               &type, 0, place->location);
    lilac_tile_attribute attribute = {
        .kind = LILAC_TILE_ATTR_INTEGER, .name = a->value_name, .type = type, .integer = 0};
    lilac_tile_set_attribute(a->module, &made->attributes, &attribute);
    made->position = place->position;
    put_id(a, made);
    lilac_tile_insert_before(place, made);
    return &made->results[0];
}

/* Splits a tensor of integers into a uniform summand, or zero, and the remaining summand. */
static bool split_integers(advancing *a, lilac_tile_value *value, recipe *how,
                           lilac_tile_value **scalar, lilac_tile_op *place) {
    lilac_tile_op *op = value->op;
    how->count = 0;
    if (op == NULL || has_hints(op) || !is_cheap(value)) {
        return false;
    }
    if (is_uniform(value)) {
        if (place != NULL) {
            *scalar = number_of(a, value);
        }
        return true;
    }
    for (uint32_t i = 0; i < 2 && op->code == LILAC_TILE_OP_ARITH_ADDI; i++) {
        if (!is_uniform(op->operands[i].value)) {
            continue;
        }
        if (place != NULL) {
            *scalar = number_of(a, op->operands[i].value);
        }
        how->offsets[how->count++] = op->operands[1 - i].value;
        return true;
    }
    if (place != NULL) {
        *scalar = zero_before(a, place, lilac_tile_element(value->type));
    }
    how->offsets[how->count++] = value;
    return true;
}

static bool split(advancing *a, lilac_tile_value *value, recipe *how, lilac_tile_value **scalar,
                  lilac_tile_op *place) {
    bool pointers = lilac_tile_is_pointer(value->type);
    how->type = value->type;
    how->add = pointers ? LILAC_TILE_OP_TT_ADDPTR : LILAC_TILE_OP_ARITH_ADDI;
    return pointers ? split_pointers(a, value, how, scalar, place)
                    : split_integers(a, value, how, scalar, place);
}

/* ---- rewriting -------------------------------------------------------------------------- */

static void remember(advancing *a, lilac_tile_value *value, lilac_tile_value *scalar) {
    a->scalar[value->id] = scalar;
    moved *made = lilac_arena_new(a->arena, moved);
    *made = (moved){value, scalar, a->list};
    a->list = made;
}

/* Turns the value into a scalar in place. */
static void make_scalar(advancing *a, lilac_tile_value *value) {
    value->type = lilac_tile_element(value->type);
    remember(a, value, value);
}

static lilac_tile_value *scalar_of(advancing *a, lilac_tile_value *value);

static void rewrite_loop(advancing *a, lilac_tile_op *loop, uint32_t slot,
                         lilac_tile_value *initial) {
    for (uint32_t i = 0; i < loop->result_count; i++) {
        if (slot_of_result(loop, i) != (int)slot) {
            continue;
        }
        if (loop->code == LILAC_TILE_OP_SCF_WHILE) {
            make_scalar(a, lilac_tile_passed_argument(loop, i));
        }
        make_scalar(a, &loop->results[i]);
    }
    make_scalar(a, lilac_tile_iteration_argument(loop, slot));
    lilac_tile_set_init(loop, slot, initial);
    lilac_tile_set_next(loop, slot, scalar_of(a, lilac_tile_next(loop, slot)));
}

/* The scalar of a value on the way from the iteration argument to the yielded value. */
static lilac_tile_value *scalar_of(advancing *a, lilac_tile_value *value) {
    if (a->scalar[value->id] != NULL) {
        return a->scalar[value->id];
    }
    lilac_tile_op *op = value->op;
    const lilac_tile_type *type = lilac_tile_element(value->type);
    switch (op->code) {
    case LILAC_TILE_OP_SCF_IF:
        for (uint32_t r = 0; r < 2; r++) {
            lilac_tile_set_yielded(op, r, value->index,
                                   scalar_of(a, lilac_tile_yielded(op, r, value->index)));
        }
        make_scalar(a, value);
        return value;
    case LILAC_TILE_OP_SCF_FOR:
    case LILAC_TILE_OP_SCF_WHILE: {
        uint32_t slot = (uint32_t)slot_of_result(op, value->index);
        rewrite_loop(a, op, slot, scalar_of(a, lilac_tile_init(op, slot)));
        return value;
    }
    default:
        break;
    }
    bool second = op->code == LILAC_TILE_OP_ARITH_ADDI && is_uniform(op->operands[0].value) &&
                  !is_uniform(op->operands[1].value);
    lilac_tile_value *from = op->operands[second].value, *step = op->operands[!second].value;
    lilac_tile_value *values[2];
    values[0] = scalar_of(a, from);
    values[1] = number_of(a, step);
    lilac_tile_op *made =
        lilac_tile_op_create(a->module, op->code, 2, values, 1, &type, 0, op->location);
    made->position = op->position;
    made->results[0].name = value->name;
    put_id(a, made);
    lilac_tile_insert_after(op, made);
    remember(a, value, &made->results[0]);
    return &made->results[0];
}

/* ---- tensors where they are used -------------------------------------------------------- */

/* Does the user read the scalar? */
static bool uses_scalar(const lilac_tile_use *use) {
    const lilac_tile_value *receiver = lilac_tile_receiver(use);
    if (receiver != NULL) {
        return !is_tensor(receiver);
    }
    const lilac_tile_opcode code = use->op->code;
    const bool is_sum = code == LILAC_TILE_OP_TT_ADDPTR || is_integer_sum[code];
    return is_sum && !is_tensor(&use->op->results[0]);
}

static void put_after(const lilac_tile_value *value, lilac_tile_op **last, lilac_tile_op *op) {
    if (*last != NULL) {
        lilac_tile_insert_after(*last, op);
    } else if (value->op != NULL) {
        lilac_tile_insert_after(value->op, op);
    } else {
        lilac_tile_insert_before(value->block->first, op);
    }
    *last = op;
}

/* Computes the tensor from the scalar for the remaining users of the tensor. */
static void make_tensor(advancing *a, const moved *m) {
    uint32_t count = 0, at = 0;
    for (const lilac_tile_use *use = m->value->uses; use != NULL; use = use->next) {
        count += !uses_scalar(use);
    }
    if (count == 0) {
        return;
    }
    lilac_tile_op **users = lilac_arena_array(a->arena, lilac_tile_op *, count);
    uint32_t *indices = lilac_arena_array(a->arena, uint32_t, count);
    for (const lilac_tile_use *use = m->value->uses; use != NULL; use = use->next) {
        if (uses_scalar(use)) {
            continue;
        }
        users[at] = use->op;
        indices[at++] = use->index;
    }
    lilac_tile_op *last = NULL;
    lilac_location location = m->scalar->op != NULL ? m->scalar->op->location : m->scalar->location;
    lilac_tile_value *sum = m->scalar;
    for (uint32_t i = 0; i <= a->how->count; i++) {
        lilac_tile_value *values[2] = {sum, i > 0 ? a->how->offsets[i - 1] : NULL};
        lilac_tile_op *made =
            lilac_tile_op_create(a->module, i == 0 ? LILAC_TILE_OP_TT_SPLAT : a->how->add,
                                 i == 0 ? 1 : 2, values, 1, &a->how->type, 0, location);
        made->position = users[0]->position;
        put_id(a, made);
        put_after(m->scalar, &last, made);
        sum = &made->results[0];
    }
    sum->name = m->value->name;
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_set_operand(users[i], indices[i], sum);
    }
}

/* ---- the pass --------------------------------------------------------------------------- */

static bool is_candidate(const advancing *a, const lilac_tile_value *value) {
    const lilac_tile_type *element = lilac_tile_element(value->type);
    return is_tensor(value) && value->id < a->count && value->type->layout == NULL &&
           (element->kind == LILAC_TILE_POINTER ||
            (element->kind == LILAC_TILE_SCALAR &&
             (element->scalar == LILAC_I32 || element->scalar == LILAC_I64)));
}

/* Does the lowering carry these pointers in one register already? It does if all offsets are
 * constant except for the thread's part and only additions in the body of an scf.for advance the
 * pointers. Strength reduction would then gain nothing. */
static bool is_one_already(const lilac_tile_op *loop, uint32_t slot) {
    const lilac_tile_block *body = loop->regions[0]->first;
    const lilac_tile_value *argument = lilac_tile_iteration_argument(loop, slot);
    const lilac_tile_value *value = lilac_tile_init(loop, slot);
    const lilac_tile_value *next = lilac_tile_next(loop, slot);
    if (!lilac_tile_is_pointer(value->type) || next == argument) {
        return false;
    }
    for (; value->op != NULL && value->op->code != LILAC_TILE_OP_TT_SPLAT;
         value = value->op->operands[0].value) {
        if (value->op->code == LILAC_TILE_OP_TT_ADDPTR &&
            !is_of_ranges(value->op->operands[1].value)) {
            return false;
        }
    }
    while (next != argument) {
        int64_t number;
        const lilac_tile_op *op = next->op;
        if (op == NULL || op->parent != body || op->code != LILAC_TILE_OP_TT_ADDPTR) {
            return false;
        }
        const lilac_tile_value *step = op->operands[1].value;
        if (!lilac_tile_constant(step, &number) &&
            (step->op == NULL || step->op->code != LILAC_TILE_OP_TT_SPLAT)) {
            return false;
        }
        next = op->operands[0].value;
    }
    return true;
}

static void try_slot(advancing *a, lilac_tile_op *loop, uint32_t slot) {
    lilac_tile_value *initial = lilac_tile_init(loop, slot), *scalar = NULL;
    recipe how;
    a->budget = BUDGET;
    if (!is_tensor(initial) || !is_candidate(a, lilac_tile_iteration_argument(loop, slot)) ||
        !split(a, initial, &how, &scalar, NULL) || !loop_follows(a, loop, slot, MOST_STEPS) ||
        (loop->code == LILAC_TILE_OP_SCF_FOR && is_one_already(loop, slot))) {
        return;
    }
    recipe *kept = lilac_arena_new(a->arena, recipe);
    (void)split(a, initial, kept, &scalar, loop);
    a->how = kept;
    a->list = NULL;
    rewrite_loop(a, loop, slot, scalar);
    for (const moved *m = a->list; m != NULL; m = m->next) {
        make_tensor(a, m);
    }
    a->changed = true;
}

static bool multiplies(const lilac_tile_op *loop) {
    bool found = false;
    for (uint32_t i = 0; i < loop->region_count; i++) {
        found = found || lilac_dot_is_inside(loop->regions[i], NULL);
    }
    return found;
}

/* Are vectors of the pointers so narrow that no copy to shared memory has them, and a thread has many? */
static bool is_narrow(advancing *a, const lilac_tile_value *value) {
    enum {
        LEAST_COPY = 4, /* bytes */
        MANY = 8
    };
    const int64_t threads = (int64_t)a->target->num_warps * a->target->arch->warp_size;
    if (!lilac_tile_is_pointer(value->type) || !is_tensor(value) || value->id >= a->axis.count ||
        lilac_tile_element_count(value->type) < MANY * threads) {
        return false;
    }
    const uint64_t unit = (uint64_t)lilac_axis_unit(value->type);
    const lilac_axis_facts *known = lilac_axis_facts_of(&a->axis, value);
    lilac_plan_global_facts facts;
    lilac_plan_global access;
    lilac_axis_access_facts(&facts, known, value->type);
    lilac_plan_global_init(&access, LILAC_PLAN_LOAD, (uint32_t)unit, 0, &facts, a->target->arch);
    bool narrow = true;
    for (uint32_t d = 0; d < value->type->rank; d++) {
        narrow = narrow && unit << access.vector_bits[d] < LEAST_COPY;
    }
    return narrow;
}

/* Copies to shared memory read their addresses from registers some time after they are issued. An
 * address that is formed anew for each copy must wait for that, in a loop that issues nothing else but
 * copies and products (bench/results/decisions.md). Loads of fewer than 4 bytes become no copies; their pointers
 * would be many. */
static void visit(void *data, lilac_tile_op *op) {
    advancing *a = data;
    const bool copies = lilac_tile_is_loop(op) && multiplies(op);
    for (uint32_t i = 0; lilac_tile_is_loop(op) && i < lilac_tile_carried_count(op); i++) {
        if (!copies || is_narrow(a, lilac_tile_iteration_argument(op, i))) {
            try_slot(a, op, i);
        }
    }
}

typedef struct content {
    bool loops, products; /* products: in a loop */
} content;

static void look_for_loops(void *data, lilac_tile_op *op) {
    content *found = data;
    const bool loop = lilac_tile_is_loop(op);
    found->products = found->products || (loop && multiplies(op));
    found->loops |= loop;
}

bool lilac_engine_reduce_strength(lilac_tile_module *module, const lilac_target *target,
                                  bool *changed) {
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        content found = {false, false};
        if (function->body == NULL) {
            continue;
        }
        lilac_tile_walk(function->body, look_for_loops, &found);
        if (!found.loops) {
            continue;
        }
        lilac_arena *arena = lilac_arena_create();
        advancing *a = lilac_arena_new(arena, advancing);
        lilac_tile_number(function);
        a->module = module;
        a->arena = arena;
        a->target = target;
        if (found.products) {
            lilac_engine_axis_facts(&a->axis, arena, function);
        }
        a->count = function->value_count;
        a->mark = lilac_arena_array(arena, uint32_t, a->count + 1);
        a->scalar = lilac_arena_array(arena, lilac_tile_value *, a->count + 1);
        a->value_name = lilac_intern_string(module->context, "value");
        lilac_tile_walk(function->body, visit, a);
        lilac_tile_number(function);
        *changed = *changed || a->changed;
        lilac_arena_destroy(arena);
    }
    return true;
}
