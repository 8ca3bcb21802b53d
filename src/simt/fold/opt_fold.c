/* Folding: the simplification of the builder (simplify.c), applied to finished code.
 *
 *     %1 = add %p, %c16 : i64                →   %2, %3 = ld.global [%p + 16] : f32, f32
 *     %2, %3 = ld.global [%1] : f32, f32
 *     if true { … } else { … }               →   the first body, in place
 *     loop of no or one iteration            →   nothing, or its body, in place
 *     loop … (%a = %x) { … yield %a }        →   uses of %a become %x
 *     unpack (pack a, b)                     →   a, b
 *     a load that no thread executes         →   its substitutes
 *     shuffle of a uniform value             →   the value
 *
 * One walk in the order of the text. An instruction is rewritten in place, or its uses go to an
 * equal value, or both after new instructions were inserted before it. Values without uses stay
 * for dead code elimination. */
#include "internal.h"

#include <string.h>

typedef lilac_simt_instruction instruction;

typedef struct folder {
    lilac_simt_builder b;
    lilac_simt_value *replacement;       /* 0: itself */
    uint32_t count;                      /* entries; values made later have none */
    const lilac_simt_divisors *divisors; /* NULL: divisions are not expanded */
    bool changed;
} folder;

static lilac_simt_value resolve(const folder *f, lilac_simt_value value) {
    while (value < f->count && f->replacement[value] != 0) {
        value = f->replacement[value];
    }
    return value;
}

static void replace(folder *f, lilac_simt_value from, lilac_simt_value to) {
    to = resolve(f, to);
    if (from == to) {
        return;
    }
    if (from >= f->count) {
        uint32_t count = f->b.kernel->value_count;
        f->replacement = lilac_heap_grow(f->replacement, sizeof *f->replacement * (size_t)count);
        memset(f->replacement + f->count, 0, sizeof *f->replacement * (size_t)(count - f->count));
        f->count = count;
    }
    f->replacement[from] = to;
    lilac_simt_inherit(f->b.kernel, from, to);
    f->changed = true;
}

static void replace_row(folder *f, lilac_simt_value from, const lilac_simt_value *to,
                        uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        replace(f, from + k, to[k]);
    }
}

/* ---- structure -------------------------------------------------------------------------- */

/* Moves a body's instructions in front of its owner, which goes; its results are what the body
 * yields. Returns where to go on. */
static instruction *splice(folder *f, instruction *owner, lilac_simt_body *body) {
    instruction *end = body->last;
    instruction *next = owner->next;
    while (body->first != end) {
        instruction *i = body->first;
        next = next == owner->next ? i : next;
        lilac_simt_move(f->b.kernel, i, owner);
    }
    for (uint32_t k = 0; k < owner->result_count; k++) {
        replace(f, owner->result + k, end->operands[k]);
    }
    lilac_simt_unlink(owner);
    f->changed = true;
    return next;
}

static bool constant(const folder *f, lilac_simt_value value, int64_t *number) {
    uint64_t bits;
    lilac_simt_type type = lilac_simt_type_of(f->b.kernel, value);
    bool is = lilac_simt_constant_bits(f->b.kernel, value, &bits);
    *number = is ? lilac_simt_signed(type, bits) : 0;
    return is;
}

/* The trip count of a loop, if it is known to be 0 or 1; otherwise 2. */
static uint32_t known_trip_count(const folder *f, const instruction *loop) {
    int64_t lower, upper, step, next;
    bool bounds = constant(f, loop->operands[0], &lower);
    bounds &= constant(f, loop->operands[1], &upper);
    if (!bounds) {
        return 2;
    }
    if (lower >= upper) {
        return 0;
    }
    if (!constant(f, loop->operands[2], &step) || step <= 0) {
        return 2;
    }
    return __builtin_add_overflow(lower, step, &next) || next >= upper ? 1 : 2;
}

/* Carried values that every iteration hands on unchanged are their initial values. */
static void fold_unchanged(folder *f, const instruction *loop) {
    const lilac_simt_body *body = loop->bodies[0];
    for (uint32_t k = 0; k < loop->result_count; k++) {
        lilac_simt_value argument = body->argument + 1 + k;
        if (body->last->operands[k] == argument && resolve(f, argument) == argument) {
            replace(f, argument, loop->operands[3 + k]);
            replace(f, loop->result + k, loop->operands[3 + k]);
            /* the slot is left to carry itself around, unused */
            body->last->operands[k] = loop->operands[3 + k];
        }
    }
}

/* A structured operation that is gone or becomes its body: sets where to go on. */
static bool fold_structure(folder *f, instruction *i, instruction **next) {
    int64_t condition;
    if (i->code == LILAC_SIMT_OP_IF && constant(f, i->operands[0], &condition)) {
        *next = splice(f, i, i->bodies[condition != 0 ? 0 : 1]);
        return true;
    }
    if (i->code != LILAC_SIMT_OP_LOOP) {
        return false;
    }
    uint32_t count = known_trip_count(f, i);
    if (count == 0) {
        replace_row(f, i->result, i->operands + 3, i->result_count);
        lilac_simt_unlink(i);
        f->changed = true;
        return true;
    }
    if (count == 1) {
        lilac_simt_body *body = i->bodies[0];
        replace(f, body->argument, i->operands[0]);
        replace_row(f, body->argument + 1, i->operands + 3, i->result_count);
        *next = splice(f, i, body);
        return true;
    }
    fold_unchanged(f, i);
    return false;
}

/* ---- single instructions ---------------------------------------------------------------- */

/* An access that no thread makes: a store goes, a load gives its substitutes, an atomic zeros. */
static bool fold_inactive(folder *f, instruction *i) {
    int64_t active;
    if (i->operand_count < 2 || lilac_simt_type_of(f->b.kernel, i->operands[1]) != LILAC_SIMT_I1 ||
        !constant(f, i->operands[1], &active) || active != 0) {
        return false;
    }
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_simt_type type = lilac_simt_type_of(f->b.kernel, i->result + k);
        replace(f, i->result + k,
                lilac_simt_is_load(i->code) && i->operand_count > 2
                    ? i->operands[2 + k]
                    : lilac_simt_constant(&f->b, type, 0));
    }
    lilac_simt_unlink(i);
    f->changed = true;
    return true;
}

static bool same(const instruction *a, const instruction *b) {
    if (a->code != b->code || a->detail != b->detail || a->flags != b->flags ||
        a->immediate != b->immediate || !lilac_simt_payload_equal(a, b) ||
        a->operand_count != b->operand_count) {
        return false;
    }
    for (uint32_t k = 0; k < a->operand_count; k++) {
        if (a->operands[k] != b->operands[k]) {
            return false;
        }
    }
    return true;
}

/* Writes back what a copy with its own operands was rewritten to. */
static void write_back(folder *f, instruction *i, const instruction *copy) {
    if (same(i, copy)) {
        return;
    }
    i->code = copy->code;
    i->detail = copy->detail;
    i->flags = copy->flags;
    i->immediate = copy->immediate;
    i->payload = copy->payload;
    i->operand_count = copy->operand_count;
    memcpy(i->operands, copy->operands, sizeof *copy->operands * copy->operand_count);
    f->changed = true;
}

static void fold_access(folder *f, instruction *i) {
    lilac_simt_value operands[16];
    if (fold_inactive(f, i) || i->operand_count > 16) {
        return;
    }
    instruction copy = *i;
    memcpy(operands, i->operands, sizeof *operands * i->operand_count);
    copy.operands = operands;
    lilac_simt_simplify_access(&f->b, &copy);
    write_back(f, i, &copy);
}

static void remember(folder *f, instruction *i) {
    uint32_t hash;
    struct lilac_simt_memo *memo = f->b.memo;
    lilac_simt_kernel *kernel = f->b.kernel;
    lilac_simt_type type = lilac_simt_type_of(kernel, i->result);
    if (i->operand_count == 0 && i->parent != kernel->body) { /* leaves stand at the head */
        lilac_simt_instruction *last = memo->last_leaf;
        lilac_simt_move(kernel, i, last != NULL ? last->next : kernel->body->first);
        memo->last_leaf = i;
        f->changed = true;
    }
    if (lilac_simt_memo_find(memo, kernel, i, i->result_count, type, &hash) == 0) {
        lilac_simt_memo_add(memo, i, hash);
    }
    lilac_simt_learn(&f->b, i);
}

static void fold_pure(folder *f, instruction *i) {
    lilac_simt_value parts[16];
    if (i->operand_count == 0 || i->operand_count > 16) {
        remember(f, i);
        return;
    }
    if (f->divisors != NULL && !lilac_simt_has_trait(i->code, LILAC_SIMT_DIVIDES)) {
        lilac_simt_learn(&f->b, i); /* it is folded; `cse` compares what is expanded here */
        return;
    }
    lilac_simt_type type = lilac_simt_type_of(f->b.kernel, i->result);
    if (i->code == LILAC_SIMT_OP_UNPACK && i->result_count <= 8) {
        if (lilac_simt_known_parts(&f->b, i->operands[0], type, i->result_count, parts)) {
            replace_row(f, i->result, parts, i->result_count);
            lilac_simt_unlink(i);
        } else {
            remember(f, i);
        }
        return;
    }
    instruction copy = *i;
    memcpy(parts, i->operands, sizeof *parts * i->operand_count);
    copy.operands = parts;
    const bool uniform = f->b.kernel->values[i->result].uniform;
    lilac_simt_value value = lilac_simt_simplify(&f->b, &copy, type);
    if (value == 0 && f->divisors != NULL) {
        value = lilac_simt_expand_division(&f->b, &copy, type, f->divisors);
    }
    /* Operands that were marked may have made way for what they are computed from. */
    lilac_simt_value stands = value != 0 ? value : i->result;
    if (uniform && !(value != 0 ? f->b.kernel->values[value].uniform
                                : lilac_simt_is_uniform(f->b.kernel, &copy))) {
        lilac_simt_mark_uniform(f->b.kernel, stands);
    }
    if (value != 0 && value != i->result) {
        replace(f, i->result, value);
        lilac_simt_unlink(i);
        return;
    }
    write_back(f, i, &copy);
    remember(f, i);
}

/* Every lane has the value already. */
static void fold_shuffle(folder *f, instruction *i) {
    if (f->b.kernel->values[i->operands[0]].uniform) {
        replace(f, i->result, i->operands[0]);
        lilac_simt_unlink(i);
        f->changed = true;
    }
}

static void fold_body(folder *f, lilac_simt_body *body) {
    uint32_t mark = lilac_simt_memo_open(f->b.memo);
    instruction *next;
    for (instruction *i = body->first; i != NULL; i = next) {
        next = i->next;
        for (uint32_t k = 0; k < i->operand_count; k++) {
            i->operands[k] = resolve(f, i->operands[k]);
        }
        if (i->body_count > 0) {
            if (!fold_structure(f, i, &next)) {
                for (uint32_t k = 0; k < i->body_count; k++) {
                    fold_body(f, i->bodies[k]);
                }
            }
            continue;
        }
        f->b.body = body;
        f->b.location = i->location;
        f->b.memo->before = i;
        if (i->code == LILAC_SIMT_OP_SHUFFLE) {
            fold_shuffle(f, i);
        } else if (lilac_simt_is_access(i->code)) {
            fold_access(f, i);
        } else if (lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->result_count > 0) {
            fold_pure(f, i);
        }
    }
    lilac_simt_memo_close(f->b.memo, mark);
}

bool lilac_simt_fold_kernel(lilac_simt_kernel *kernel, const lilac_simt_divisors *divisors) {
    folder f = {.count = kernel->value_count, .divisors = divisors};
    size_t size = sizeof *f.replacement * f.count;
    f.replacement = lilac_heap_grow(NULL, size);
    memset(f.replacement, 0, size);
    lilac_simt_builder_init(&f.b, kernel);
    fold_body(&f, kernel->body);
    lilac_simt_builder_clear(&f.b);
    lilac_heap_free(f.replacement);
    if (f.changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return f.changed;
}

bool lilac_simt_opt_fold(lilac_simt_kernel *kernel) {
    return lilac_simt_fold_kernel(kernel, NULL);
}
