/* Which bits of a result the simulator takes for the consequence of a division by zero, against all
 * values that the poisoned bits of the operands may have.
 *
 * An operand with poison in the bits m is (clean & ~m) | (1 / 0 & m). A bit of the result is poison
 * when a store of that bit alone is reported. Every bit that some choice of the operands' poisoned
 * bits changes must be poison; for moves and bit operations, no other bit is. */

#include "support/sim_kernels.h"
#include "support/test.h"

enum { OPERANDS = 3, MOST_POISON = 5 };

typedef struct subject {
    sim_operation operation;
    bool exact;
    const char *name;
} subject;

#define I1  LILAC_SIMT_I1
#define I8  LILAC_SIMT_I8
#define I16 LILAC_SIMT_I16
#define I32 LILAC_SIMT_I32
#define BINARY(code, exact)                                                                        \
    { {LILAC_SIMT_OP_##code, I8, {I8, I8}, 2, 0, 0, 0, 0}, exact, #code }
#define COMPARE(kind)                                                                              \
    { {LILAC_SIMT_OP_CMP, I1, {I8, I8}, 2, 0, LILAC_SIMT_##kind, 0, 0}, false, #kind }

static const subject subjects[] = {
    BINARY(AND, true),
    BINARY(OR, true),
    BINARY(XOR, true),
    BINARY(ADD, false),
    BINARY(SUB, false),
    BINARY(MUL, false),
    BINARY(MULHI_S, false),
    BINARY(MULHI_U, false),
    BINARY(MIN_S, false),
    BINARY(MAX_S, false),
    BINARY(MIN_U, false),
    BINARY(MAX_U, false),
    BINARY(SHL, false),
    BINARY(SHR_S, false),
    BINARY(SHR_U, false),
    COMPARE(EQ),
    COMPARE(NE),
    COMPARE(LT),
    COMPARE(LE),
    COMPARE(GT),
    COMPARE(GE),
    COMPARE(ULT),
    COMPARE(ULE),
    COMPARE(UGT),
    COMPARE(UGE),
    {{LILAC_SIMT_OP_SELECT, I8, {I1, I8, I8}, 3, 0, 0, 0, 0}, true, "SELECT"},
    {{LILAC_SIMT_OP_SEXT, I16, {I8}, 1, 0, 0, 0, 0}, true, "SEXT"},
    {{LILAC_SIMT_OP_SEXT, I8, {I1}, 1, 0, 0, 0, 0}, true, "SEXT i1"},
    {{LILAC_SIMT_OP_ZEXT, I16, {I8}, 1, 0, 0, 0, 0}, true, "ZEXT"},
    {{LILAC_SIMT_OP_TRUNC, I8, {I16}, 1, 0, 0, 0, 0}, true, "TRUNC"},
    {{LILAC_SIMT_OP_CLZ, I32, {I8}, 1, 0, 0, 0, 0}, false, "CLZ"},
    {{LILAC_SIMT_OP_POPC, I32, {I8}, 1, 0, 0, 0, 0}, false, "POPC"},
    {{LILAC_SIMT_OP_BREV, I8, {I8}, 1, 0, 0, 0, 0}, false, "BREV"},
    {{LILAC_SIMT_OP_ABS, I8, {I8}, 1, 0, 0, 0, 0}, false, "ABS"},
    {{LILAC_SIMT_OP_PRMT, I32, {I32, I32, I32}, 3, 0, 0, 0, 0}, false, "PRMT"},
};

typedef struct operands {
    uint64_t clean[OPERANDS], poison[OPERANDS];
} operands;

static uint64_t mask_of(lilac_simt_type type) {
    return (UINT64_C(1) << lilac_simt_type_bits(type)) - 1;
}

/* Small numbers are frequent, so that shifts stay below the width and products have zeros. */
static operands choose(const subject *s, lilac_random *random) {
    operands x = {{0}, {0}};
    for (uint32_t k = 0; k < s->operation.operand_count; k++) {
        x.clean[k] = lilac_random_next(random) & mask_of(s->operation.operands[k]);
        if (lilac_random_below(random, 2)) {
            x.clean[k] &= 0x7777;
        }
        if (lilac_random_below(random, 3) == 0) {
            x.clean[k] &= 7;
        }
    }
    uint32_t bits = 1 + (uint32_t)lilac_random_below(random, MOST_POISON);
    while (bits--) {
        uint32_t k = (uint32_t)lilac_random_below(random, s->operation.operand_count);
        uint32_t width = lilac_simt_type_bits(s->operation.operands[k]);
        x.poison[k] |= UINT64_C(1) << lilac_random_below(random, width);
    }
    return x;
}

/* The bits of the result that some choice of the poisoned bits changes. */
static uint64_t changing(const subject *s, const operands *x) {
    enum { CASES = 1 << MOST_POISON };
    uint64_t inputs[OPERANDS][CASES], outputs[CASES], differ = 0;
    const uint64_t *rows[OPERANDS];
    for (uint32_t c = 0; c < CASES; c++) {
        uint32_t choice = c;
        for (uint32_t k = 0; k < s->operation.operand_count; k++) {
            inputs[k][c] = x->clean[k];
            for (uint64_t rest = x->poison[k]; rest; rest &= rest - 1, choice >>= 1) {
                inputs[k][c] =
                    choice & 1 ? inputs[k][c] | (rest & -rest) : inputs[k][c] & ~(rest & -rest);
            }
            rows[k] = inputs[k];
        }
    }
    assert_true(sim_apply(&s->operation, CASES, rows, outputs));
    for (uint32_t c = 1; c < CASES; c++) {
        differ |= outputs[c] ^ outputs[0];
    }
    return differ;
}

static lilac_simt_value converted(rig *r, lilac_simt_value word_value, lilac_simt_type type) {
    return type == I32 ? word_value : lilac_simt_op1(&r->b, LILAC_SIMT_OP_TRUNC, type, word_value);
}

/* Is bit `bit` of the result reported when it is stored? */
static bool is_reported(const subject *s, const operands *x, uint32_t bit) {
    uint32_t numbers[2 * OPERANDS + 1] = {0}, out = 0;
    lilac_simt_value values[OPERANDS];
    rig r;
    rig_init(&r, 1, 2, 0);
    for (uint32_t k = 0; k < OPERANDS; k++) {
        numbers[2 * k] = (uint32_t)x->clean[k];
        numbers[2 * k + 1] = (uint32_t)x->poison[k];
    }
    give(&r, 0, "out", &out, sizeof out);
    give(&r, 1, "numbers", numbers, sizeof numbers);
    lilac_simt_value zero =
        load(&r, LILAC_SIMT_OP_LD_GLOBAL, I32, element(&r, 1, word(&r, 2 * OPERANDS), 4));
    lilac_simt_value spoilt = op2(&r, LILAC_SIMT_OP_DIV_U, word(&r, 1), zero);
    for (uint32_t k = 0; k < s->operation.operand_count; k++) {
        lilac_simt_value clean =
            load(&r, LILAC_SIMT_OP_LD_GLOBAL, I32, element(&r, 1, word(&r, 2 * k), 4));
        lilac_simt_value mask =
            load(&r, LILAC_SIMT_OP_LD_GLOBAL, I32, element(&r, 1, word(&r, 2 * k + 1), 4));
        lilac_simt_value kept = op2(&r, LILAC_SIMT_OP_AND, clean,
                                    op2(&r, LILAC_SIMT_OP_XOR, mask, word(&r, UINT32_MAX)));
        lilac_simt_value both =
            op2(&r, LILAC_SIMT_OP_OR, kept, op2(&r, LILAC_SIMT_OP_AND, spoilt, mask));
        values[k] = converted(&r, both, s->operation.operands[k]);
    }
    lilac_simt_type type = s->operation.result;
    lilac_simt_instruction like = {.code = (uint16_t)s->operation.code,
                                   .detail = s->operation.detail};
    lilac_simt_value result =
        lilac_simt_build(&r.b, &like, s->operation.operand_count, values, 1, &type);
    if (type != I32) {
        result = lilac_simt_op1(&r.b, LILAC_SIMT_OP_ZEXT, I32, result);
    }
    store(&r, LILAC_SIMT_OP_ST_GLOBAL, op2(&r, LILAC_SIMT_OP_AND, result, word(&r, 1u << bit)),
          lilac_simt_parameter_value(&r.b, 0));
    bool done = rig_run(&r);
    assert_int_equal(reported(&r, "division-by-zero", NULL), !done);
    rig_clear(&r);
    return !done;
}

static void rules(void **state) {
    uint32_t rounds = 12 * test_scale();
    lilac_random random;
    (void)state;
    lilac_random_seed(&random, 1217);
    for (uint32_t k = 0; k < sizeof subjects / sizeof *subjects; k++) {
        const subject *s = &subjects[k];
        for (uint32_t round = 0; round < rounds; round++) {
            operands x = choose(s, &random);
            uint64_t wanted = changing(s, &x);
            for (uint32_t bit = 0; bit < lilac_simt_type_bits(s->operation.result); bit++) {
                bool found = is_reported(s, &x, bit), needed = wanted >> bit & 1;
                if (found == needed || (found && !s->exact)) {
                    continue;
                }
                fail_msg("%s of %llx/%llx, %llx/%llx, %llx/%llx: bit %u %s", s->name,
                         (unsigned long long)x.clean[0], (unsigned long long)x.poison[0],
                         (unsigned long long)x.clean[1], (unsigned long long)x.poison[1],
                         (unsigned long long)x.clean[2], (unsigned long long)x.poison[2], bit,
                         found ? "is reported and cannot differ" : "can differ unreported");
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
