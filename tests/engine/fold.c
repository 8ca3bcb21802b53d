/* fold, and the columns on integers of operations.def: laws over the rows of the table. What an
 * operation means says the reference interpreter, which shares no code with the engine. Operands
 * are all pairs of 1 and 8 bits, and random ones of 32 and 64. */
#include "support/engine_harness.h"

#include "internal.h"
#include "support/interpreter.h"

static const char *const predicates[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                         "sge", "ult", "ule", "ugt", "uge"};

typedef struct row {
    lilac_tile_opcode code;
    const char *fold, *range, *neutral, *narrow;
    bool integer, cast;
} row;

static row rows[LILAC_TILE_OP_COUNT];

static int read_rows(void **state) {
    (void)state;
#define OPERATION(op, cost, layout, facts, strides, row_range, row_fold, lower, reference)         \
    rows[LILAC_TILE_OP_##op].code = LILAC_TILE_OP_##op;                                            \
    rows[LILAC_TILE_OP_##op].range = #row_range;                                                   \
    rows[LILAC_TILE_OP_##op].fold = #row_fold;
#define INTEGER(op, row_neutral, row_narrow, compute, instruction, bits, meaning)                  \
    rows[LILAC_TILE_OP_##op].integer = true;                                                       \
    rows[LILAC_TILE_OP_##op].neutral = #row_neutral;                                               \
    rows[LILAC_TILE_OP_##op].narrow = #row_narrow;
#define CAST(op, instruction, meaning) rows[LILAC_TILE_OP_##op].cast = true;
#include <lilac/operations.def>
    return 0;
}

/* ---- one operation ---------------------------------------------------------------------- */

static void find_result(void *found, lilac_tile_op *op) {
    if (op->result_count > 0) {
        *(lilac_tile_op **)found = op;
    }
}

/* An operation on integers of a type; a cast is to type `to`. */
static lilac_tile_op *open_operation(program *p, const row *r, lilac_scalar from, lilac_scalar to,
                                     const char *predicate) {
    const char *name = lilac_tile_op_info_get(r->code)->name, *type = lilac_scalar_name(from);
    char text[512];
    int length = snprintf(text, sizeof text,
                          "module {\n  tt.func public @k(%%a: %s, %%b: %s, %%c: i1) {\n    %%r = "
                          "%s ",
                          type, type, name);
    if (r->cast) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%%a : %s to %s", type,
                           lilac_scalar_name(to));
    } else if (r->code == LILAC_TILE_OP_ARITH_SELECT) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%%c, %%a, %%b : %s", type);
    } else if (r->code == LILAC_TILE_OP_MATH_ABSI) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%%a : %s", type);
    } else {
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%s%%a, %%b : %s",
                           predicate != NULL ? predicate : "", predicate != NULL ? ", " : "", type);
    }
    length += snprintf(text + length, sizeof text - (size_t)length, "\n    tt.return\n  }\n}\n");
    program_read(p, "operation", text, (size_t)length, 1);
    if (p->module == NULL) {
        fail_with_diagnostics(p->context, "the operation was refused");
    }
    lilac_tile_op *op = NULL;
    lilac_tile_walk(p->module->functions->body, find_result, &op);
    assert_non_null(op);
    return op;
}

/* What the operation means: error 0 if one result is right, infinite if any is. False: none is. */
static bool meaning_of(const lilac_tile_op *op, const uint64_t *operands,
                       interpreter_cell *result) {
    interpreter_cell in[3] = {{operands[0], 0, 0}, {operands[1], 0, 0}, {operands[2], 0, 0}};
    interpreter_element e = {.op = op,
                             .from = lilac_tile_element(op->operands[0].value->type),
                             .to = lilac_tile_element(op->results[0].type),
                             .in = in};
    if (op->code == LILAC_TILE_OP_ARITH_SELECT) {
        interpreter_select(&e);
    } else {
        interpreter_compute(&e);
    }
    assert_false(e.unsupported);
    *result = e.out[0];
    return !e.trap;
}

static lilac_scalar scalar_of(const lilac_tile_value *value) {
    return lilac_tile_element(value->type)->scalar;
}

/* Folds it on these operands and compares; returns whether it was folded. */
static bool check_fold(const lilac_tile_op *op, const uint64_t *operands) {
    int64_t numbers[3] = {0}, got = 0;
    interpreter_cell want;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        numbers[i] = lilac_scalar_signed(scalar_of(op->operands[i].value), operands[i]);
    }
    const bool folded = lilac_engine_fold(op, numbers, &got);
    const bool defined = meaning_of(op, operands, &want);
    if (!defined && folded) {
        fail_msg("'%s' of %lld and %lld has no result and was folded",
                 lilac_tile_op_info_get(op->code)->name, (long long)numbers[0],
                 (long long)numbers[1]);
    }
    if (!defined || want.error != 0) {
        return folded;
    }
    if (!folded || got != lilac_scalar_signed(scalar_of(&op->results[0]), want.bits)) {
        fail_msg("'%s' of %lld, %lld and %lld is %lld, folded %lld (%d)",
                 lilac_tile_op_info_get(op->code)->name, (long long)numbers[0],
                 (long long)numbers[1], (long long)numbers[2], (long long)want.bits, (long long)got,
                 folded);
    }
    return true;
}

/* ---- operands --------------------------------------------------------------------------- */

static uint64_t random_operand(lilac_random *random, lilac_scalar scalar) {
    static const uint64_t edges[] = {
        0, 1, 2, 31, 63, UINT64_MAX, UINT64_C(1) << 31, UINT64_C(1) << 63};
    uint64_t bits = lilac_random_next(random);
    switch (lilac_random_below(random, 3)) {
    case 0:
        bits = edges[lilac_random_below(random, sizeof edges / sizeof *edges)];
        break;
    case 1:
        bits >>= lilac_random_below(random, 64);
        break;
    default:
        break;
    }
    return lilac_scalar_mask(scalar, bits);
}

enum { RANDOM_PAIRS = 2000 };

/* Pair number i; false after the last. */
static bool next_pair(lilac_random *random, lilac_scalar scalar, uint32_t i, uint64_t *operands) {
    const uint32_t bits = lilac_scalar_bits(scalar);
    if (bits <= 8) {
        operands[0] = i & ((1U << bits) - 1);
        operands[1] = i >> bits;
        return i >> 2 * bits == 0;
    }
    operands[0] = random_operand(random, scalar);
    operands[1] = random_operand(random, scalar);
    return i < RANDOM_PAIRS;
}

/* ---- the laws --------------------------------------------------------------------------- */

static void fold_type(const row *r, lilac_scalar from, lilac_scalar to, const char *predicate) {
    program p;
    lilac_random random;
    lilac_random_seed(&random, 7 + r->code);
    const lilac_tile_op *op = open_operation(&p, r, from, to, predicate);
    const bool select = r->code == LILAC_TILE_OP_ARITH_SELECT;
    uint64_t pair[2], operands[3] = {0};
    uint32_t folded = 0;
    for (uint32_t i = 0; next_pair(&random, from, i, pair); i++) {
        memcpy(operands + (select ? 1 : 0), pair, sizeof pair);
        if (select) {
            operands[0] = i % 3 == 0;
        }
        folded += check_fold(op, operands);
    }
    assert_true(folded > 0);
    program_clear(&p);
}

static void fold_casts(const row *r) {
    static const lilac_scalar scalars[] = {LILAC_I1, LILAC_I8, LILAC_I16, LILAC_I32, LILAC_I64};
    const uint32_t count = sizeof scalars / sizeof *scalars;
    const bool wider = strstr(lilac_tile_op_info_get(r->code)->name, "ext") != NULL;
    const bool narrower = strstr(lilac_tile_op_info_get(r->code)->name, "trunc") != NULL;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            if (!(wider && k <= i) && !(narrower && k >= i)) {
                fold_type(r, scalars[i], scalars[k], NULL);
            }
        }
    }
}

static void folding_is_the_meaning(void **state) {
    static const lilac_scalar scalars[] = {LILAC_I1, LILAC_I8, LILAC_I32, LILAC_I64};
    (void)state;
    uint32_t count = 0;
    for (int code = 0; code < LILAC_TILE_OP_COUNT; code++) {
        const row *r = &rows[code];
        if (r->fold == NULL || strncmp(r->fold, "fold_", 5) != 0) {
            continue;
        }
        count++;
        if (r->cast) {
            fold_casts(r);
            continue;
        }
        const bool compare = r->code == LILAC_TILE_OP_ARITH_CMPI;
        for (uint32_t s = 0; s < sizeof scalars / sizeof *scalars; s++) {
            for (uint32_t i = 0; i < (compare ? sizeof predicates / sizeof *predicates : 1); i++) {
                fold_type(r, scalars[s], scalars[s], compare ? predicates[i] : NULL);
            }
        }
    }
    assert_in_range(count, 25, 40);
}

/* x op unit = x, and unit op x = x for commutative operations. */
static void neutral_operands_are_neutral(void **state) {
    (void)state;
    uint32_t count = 0;
    for (int code = 0; code < LILAC_TILE_OP_COUNT; code++) {
        const row *r = &rows[code];
        if (!r->integer || strcmp(r->neutral, "NONE") == 0 || r->code == LILAC_TILE_OP_TT_ADDPTR) {
            continue;
        }
        program p;
        const lilac_tile_op *op = open_operation(&p, r, LILAC_I8, LILAC_I8, NULL);
        const uint64_t unit = strcmp(r->neutral, "ONE") == 0;
        const bool commutes = lilac_tile_op_info_get(r->code)->traits & LILAC_TILE_COMMUTATIVE;
        for (uint64_t x = 0; x < 256; x++) {
            interpreter_cell result;
            assert_true(meaning_of(op, (uint64_t[]){x, unit, 0}, &result));
            assert_true(result.error == 0 && result.bits == x);
            if (commutes) {
                assert_true(meaning_of(op, (uint64_t[]){unit, x, 0}, &result));
                assert_true(result.error == 0 && result.bits == x);
            }
        }
        count++;
        program_clear(&p);
    }
    assert_in_range(count, 10, 20);
}

static uint64_t extend(bool is_signed, uint64_t bits) {
    return is_signed ? (uint64_t)lilac_scalar_signed(LILAC_I32, bits) : bits;
}

/* The operation of 64 bits on extended operands is the extension of that of 32 bits. */
static void narrowed_operations_are_the_same(void **state) {
    (void)state;
    uint32_t count = 0;
    for (int code = 0; code < LILAC_TILE_OP_COUNT; code++) {
        const row *r = &rows[code];
        if (!r->integer || strcmp(r->narrow, "NONE") == 0) {
            continue;
        }
        program wide, narrow;
        const lilac_tile_op *of64 = open_operation(&wide, r, LILAC_I64, LILAC_I64, NULL);
        const lilac_tile_op *of32 = open_operation(&narrow, r, LILAC_I32, LILAC_I32, NULL);
        const bool is_signed = strcmp(r->narrow, "ARITH_EXTSI") == 0;
        lilac_random random;
        lilac_random_seed(&random, 11);
        uint64_t pair[2];
        for (uint32_t i = 0; next_pair(&random, LILAC_I32, i, pair); i++) {
            const uint64_t small[3] = {pair[0], pair[1], 0};
            const uint64_t large[3] = {extend(is_signed, pair[0]), extend(is_signed, pair[1]), 0};
            interpreter_cell a, b;
            if (!meaning_of(of32, small, &a) || !meaning_of(of64, large, &b) || a.error != 0) {
                continue;
            }
            assert_true(b.error == 0 && b.bits == extend(is_signed, a.bits));
        }
        count++;
        program_clear(&wide);
        program_clear(&narrow);
    }
    assert_in_range(count, 5, 10);
}

/* The range of a result holds every defined result of elements in the ranges of the operands. */
static void ranges_hold_the_results(void **state) {
    (void)state;
    uint32_t count = 0, informative = 0;
    lilac_random random;
    lilac_random_seed(&random, 12);
    for (int code = 0; code < LILAC_TILE_OP_COUNT; code++) {
        const row *r = &rows[code];
        if (!r->integer || strncmp(r->range, "range_", 6) != 0) {
            continue;
        }
        program p;
        const lilac_tile_op *op = open_operation(&p, r, LILAC_I8, LILAC_I8, NULL);
        lilac_tile_number(p.module->functions);
        lilac_range *ranges = calloc(p.module->functions->value_count, sizeof *ranges);
        for (uint32_t trial = 0; trial < 300; trial++) {
            lilac_range in[3] = {{0, 0}, {0, 0}, {0, 0}};
            for (uint32_t i = 0; i < op->operand_count; i++) {
                int64_t low = (int64_t)lilac_random_below(&random, 256) - 128;
                int64_t most = lilac_random_below(&random, 3) ? 127 : low < 0 ? -1 : low;
                low = trial % 3 == i ? (low < 0 ? -(low + 1) : low) : low;
                most = most < low ? low : most;
                in[i] = (lilac_range){
                    low, low + (int64_t)lilac_random_below(&random, (uint64_t)(most - low) + 1)};
                ranges[op->operands[i].value->id] = in[i];
            }
            lilac_range_note(ranges, op);
            const lilac_range found = ranges[op->results[0].id];
            informative += found.low > -128 || found.high < 127;
            for (uint32_t sample = 0; sample < 400; sample++) {
                uint64_t operands[3] = {0, 0, 0};
                for (uint32_t i = 0; i < op->operand_count; i++) {
                    uint64_t size = (uint64_t)(in[i].high - in[i].low) + 1;
                    int64_t number = in[i].low + (int64_t)lilac_random_below(&random, size);
                    number = sample < 4 ? (sample >> i & 1 ? in[i].low : in[i].high) : number;
                    operands[i] = (uint64_t)number & 255;
                }
                interpreter_cell result;
                if (meaning_of(op, operands, &result) && result.error == 0) {
                    assert_in_range(lilac_scalar_signed(LILAC_I8, result.bits) + 128,
                                    found.low + 128, found.high + 128);
                }
            }
        }
        free(ranges);
        count++;
        program_clear(&p);
    }
    assert_in_range(count, 20, 30);
    assert_true(informative > 2000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(folding_is_the_meaning),
                                       cmocka_unit_test(neutral_operands_are_neutral),
                                       cmocka_unit_test(narrowed_operations_are_the_same),
                                       cmocka_unit_test(ranges_hold_the_results)};
    return cmocka_run_group_tests(tests, read_rows, NULL);
}
