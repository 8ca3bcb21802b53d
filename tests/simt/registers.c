/* Registers that instructions update in place, on random loops with a wgmma: values of one register are
 * never live at the same time. Liveness is computed here anew, from the positions of definitions and
 * uses. A wgmma updates its accumulators, a wait its operands, and arithmetic may write the register of an
 * operand that it reads last. So may an `if` that replaces values by others which its body computes. */
#include <lilac/simt_matrix.h>

#include "support/test.h"
#include "support/wgmma_findings.h"

enum { COLUMNS = 8, COUNT = COLUMNS / 2, MOST_VALUES = 64 };

typedef struct random_loop {
    rig r;
    lilac_random random;
    lilac_simt_value pool[MOST_VALUES];
    uint32_t count;
    lilac_simt_value sums[COUNT]; /* of the last wgmma */
    lilac_simt_instruction *loop;
    bool branches; /* the sums go through an `if` */
} random_loop;

static lilac_simt_value pick(random_loop *l) {
    return l->pool[random_below(&l->random, l->count)];
}

static void add_arithmetic(random_loop *l) {
    lilac_simt_builder *b = &l->r.b;
    static const lilac_simt_opcode codes[] = {LILAC_SIMT_OP_FADD, LILAC_SIMT_OP_FSUB,
                                              LILAC_SIMT_OP_FMUL, LILAC_SIMT_OP_FDIV};
    const lilac_simt_value x = pick(l), y = pick(l);
    lilac_simt_value made;
    switch (random_below(&l->random, 4)) {
    case 0:
        made = lilac_simt_op3(b, LILAC_SIMT_OP_FFMA, LILAC_SIMT_F32, x, y, pick(l));
        break;
    case 1:
        made = lilac_simt_op1(b, LILAC_SIMT_OP_FNEG, LILAC_SIMT_F32, x);
        break;
    default:
        made = lilac_simt_op2(b, codes[random_below(&l->random, 4)], LILAC_SIMT_F32, x, y);
        break;
    }
    l->pool[l->count++] = made;
}

/* Values of the sums, or in one case in four others, or in one products of them, unless a body replaces them:
 * mostly by values that it computes. */
static void add_branch(random_loop *l, lilac_simt_value sums) {
    lilac_simt_builder *b = &l->r.b;
    const lilac_simt_type types[COUNT] = {LILAC_SIMT_F32, LILAC_SIMT_F32, LILAC_SIMT_F32,
                                          LILAC_SIMT_F32};
    lilac_simt_value kept[COUNT], computed[COUNT];
    const uint32_t kind = random_below(&l->random, 4);
    const bool second = random_below(&l->random, 2) != 0;
    for (uint32_t e = 0; e < COUNT; e++) {
        kept[e] = kind == 0 ? pick(l)
                  : kind == 1
                      ? lilac_simt_op2(b, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F32, sums + e, pick(l))
                      : sums + e;
    }
    const lilac_simt_value condition = lilac_simt_any_lane(
        b, lilac_simt_compare_values(b, LILAC_SIMT_UNE, pick(l),
                                     lilac_simt_constant(b, LILAC_SIMT_F32, 0x3F800000)));
    lilac_simt_instruction *branch = lilac_simt_if_begin(b, condition, COUNT, types);
    for (uint32_t side = 0; side < 2; side++) {
        if ((side != 0) == second) {
            for (uint32_t e = 0; e < COUNT; e++) {
                computed[e] =
                    random_below(&l->random, 16) == 0
                        ? kept[COUNT - 1 - e]
                        : lilac_simt_op2(b, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F32, kept[e], pick(l));
            }
        }
        if (side == 0) {
            lilac_simt_if_else(b, branch, second ? kept : computed);
        }
    }
    const lilac_simt_value first = lilac_simt_if_end(b, branch, second ? computed : kept);
    for (uint32_t e = 0; e < COUNT; e++) {
        l->pool[l->count++] = first + e;
    }
}

/* A product of the last COUNT values of the pool, or of any. */
static void add_wgmma(random_loop *l) {
    const lilac_simt_matrix_payload kind = {.a = LILAC_MATRIX_F16,
                                            .b = LILAC_MATRIX_F16,
                                            .d = LILAC_MATRIX_F32,
                                            .m = 64,
                                            .n = COLUMNS,
                                            .k = 16};
    const lilac_matrix_descriptor packed = {
        .leading = 16, .stride = 1024, .swizzle = LILAC_MATRIX_SWIZZLE_128};
    lilac_simt_builder *b = &l->r.b;
    const lilac_simt_value where = lilac_simt_matrix_descriptor(b, word(&l->r, 0), 0, &packed);
    lilac_simt_value sums[COUNT];
    const bool last = random_below(&l->random, 4) != 0;
    for (uint32_t e = 0; e < COUNT; e++) {
        sums[e] = last ? l->pool[l->count - COUNT + e] : pick(l);
    }
    lilac_simt_wgmma_fence(b);
    const lilac_simt_value first =
        lilac_simt_wgmma(b, &kind, sums, &where, where, lilac_simt_constant(b, LILAC_SIMT_I1, 1));
    lilac_simt_wgmma_commit(b);
    for (uint32_t e = 0; e < COUNT; e++) {
        l->sums[e] = first + e;
    }
}

static void build(random_loop *l, uint64_t seed) {
    lilac_simt_builder *b = &l->r.b;
    lilac_simt_value next[COUNT], i;
    memset(l, 0, sizeof *l);
    lilac_random_seed(&l->random, seed);
    rig_init(&l->r, 4, 1, 16384);
    for (uint32_t e = 0; e < COUNT; e++) {
        next[e] = lilac_simt_constant(b, LILAC_SIMT_F32, 0);
    }
    l->loop =
        lilac_simt_loop_begin(b, word(&l->r, 0), word(&l->r, 5), word(&l->r, 1), COUNT, next, &i);
    for (uint32_t e = 0; e < COUNT; e++) {
        l->pool[e] = i + 1 + e;
    }
    const lilac_simt_value waited = lilac_simt_wgmma_wait(b, 0, COUNT, l->pool);
    for (uint32_t e = 0; e < COUNT; e++) {
        l->pool[e] = waited + e;
    }
    l->count = COUNT;
    /* often one operation on each sum, in their order */
    if (random_below(&l->random, 3) == 0) {
        for (uint32_t n = random_below(&l->random, 6); n > 0; n--) {
            add_arithmetic(l);
        }
        add_branch(l, waited);
        l->branches = true;
    }
    for (uint32_t e = 0; !l->branches && e < COUNT && random_below(&l->random, 8) != 0; e++) {
        l->pool[l->count++] =
            lilac_simt_op2(b, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F32, waited + e,
                           lilac_simt_constant(b, LILAC_SIMT_F32, 0x40000000 + (e << 20)));
    }
    for (uint32_t n = random_below(&l->random, 4); n > 0; n--) {
        add_arithmetic(l);
    }
    add_wgmma(l);
    for (uint32_t n = random_below(&l->random, 4); n > 0; n--) {
        add_arithmetic(l);
    }
    const uint32_t turn = random_below(&l->random, 3) == 0 ? random_below(&l->random, COUNT) : 0;
    for (uint32_t e = 0; e < COUNT; e++) {
        next[e] = random_below(&l->random, 12) == 0 ? pick(l) : l->sums[(e + turn) % COUNT];
    }
    (void)lilac_simt_loop_end(b, l->loop, next);
    effect(&l->r, LILAC_SIMT_OP_RETURN);
}

/* ---- liveness ---------------------------------------------------------------------------------- */

typedef struct life {
    lilac_simt_value value;
    const lilac_simt_instruction *definition; /* NULL: an argument */
    uint32_t defined, last;                   /* positions in the body */
} life;

/* Notes the uses in an instruction and in its bodies, all at its position. */
static void note_uses(life *lives, uint32_t count, const lilac_simt_instruction *i,
                      uint32_t position) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        for (uint32_t n = 0; n < count; n++) {
            lives[n].last = lives[n].value == i->operands[k] ? position : lives[n].last;
        }
    }
    for (uint32_t k = 0; k < i->body_count; k++) {
        for (const lilac_simt_instruction *inner = i->bodies[k]->first; inner != NULL;
             inner = inner->next) {
            note_uses(lives, count, inner, position);
        }
    }
}

static uint32_t find_lives(life *lives, const lilac_simt_body *body, uint32_t argument_count) {
    uint32_t count = 0, position = 0;
    for (uint32_t k = 0; k < argument_count; k++) {
        lives[count++] = (life){.value = body->argument + k};
    }
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        note_uses(lives, count, i, ++position);
        for (uint32_t k = 0; k < i->result_count; k++) {
            assert_true(count < 4 * MOST_VALUES);
            lives[count++] = (life){i->result + k, i, position, position};
        }
    }
    return count;
}

static bool yields(const lilac_simt_body *body, lilac_simt_value value) {
    bool found = false;
    for (uint32_t k = 0; k < body->last->operand_count; k++) {
        found |= body->last->operands[k] == value;
    }
    return found;
}

/* Does one body of an `if` do nothing but keep the operand as result k, while the other one has another
 * value for it, and does not need the operand for another result? The results are written at the end, one
 * by one. */
static bool keeps(const lilac_simt_instruction *branch, uint32_t k, lilac_simt_value operand) {
    for (uint32_t side = 0; side < 2; side++) {
        const lilac_simt_body *empty = branch->bodies[side], *full = branch->bodies[1 - side];
        if (empty->first == empty->last && empty->last->operands[k] == operand &&
            !yields(full, operand)) {
            return true;
        }
    }
    return false;
}

/* May the instruction write the register of an operand that it reads? */
static bool updates(const life *later, lilac_simt_value operand) {
    const lilac_simt_instruction *i = later->definition;
    switch (i->code) {
    case LILAC_SIMT_OP_WGMMA:
    case LILAC_SIMT_OP_WGMMA_WAIT:
        return i->operands[later->value - i->result] == operand;
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
    case LILAC_SIMT_OP_FMUL:
    case LILAC_SIMT_OP_FFMA:
        return true;
    case LILAC_SIMT_OP_IF:
        return keeps(i, later->value - i->result, operand);
    default: /* more than one instruction of the target */
        return false;
    }
}

static bool is_arithmetic(const lilac_simt_instruction *i) {
    return i != NULL && i->code != LILAC_SIMT_OP_WGMMA && i->code != LILAC_SIMT_OP_WGMMA_WAIT;
}

static void check(const random_loop *l, uint64_t seed, uint32_t *shared, uint32_t *joined,
                  uint32_t *replaced) {
    life lives[4 * MOST_VALUES];
    const lilac_simt_body *body = l->loop->bodies[0];
    const uint32_t count = find_lives(lives, body, COUNT + 1);
    lilac_simt_value *homes = calloc(l->r.kernel->value_count, sizeof *homes);
    lilac_simt_register_homes(l->r.kernel, homes);
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = a + 1; b < count; b++) {
            const life *u = &lives[a], *v = &lives[b];
            if (homes[u->value] != homes[v->value]) {
                continue;
            }
            *shared += 1;
            *replaced += v->definition->code == LILAC_SIMT_OP_IF && is_arithmetic(u->definition);
            if (u->last > v->defined || (u->last == v->defined && !updates(v, u->value))) {
                fail_msg("seed %llu: %%%u and %%%u are live at the same time in register %u",
                         (unsigned long long)seed, u->value, v->value, homes[u->value]);
            }
        }
    }
    for (uint32_t k = 0; k < COUNT; k++) {
        *joined += homes[body->last->operands[k]] == body->argument + 1 + k;
    }
    free(homes);
}

static void values_of_one_register_are_never_live_together(void **state) {
    (void)state;
    uint32_t shared = 0, joined[2] = {0, 0}, sums[2] = {0, 0}; /* without and with an `if` */
    uint32_t replaced = 0; /* results of an `if` in registers of arithmetic before it */
    const uint32_t loops = scaled(2000);
    for (uint64_t seed = 1; seed <= loops; seed++) {
        static random_loop l;
        build(&l, seed);
        if (!lilac_simt_verify(l.r.module)) {
            fail_with_diagnostics(l.r.context, "the loop is not valid");
        }
        check(&l, seed, &shared, &joined[l.branches], &replaced);
        sums[l.branches] += COUNT;
        rig_clear(&l.r);
    }
    print_message(
        "%u pairs share a register; %u of %u sums are in the register of the argument, and %u "
        "of %u behind an if; %u results of an if are in the register of a value before it\n",
        shared, joined[0], sums[0], joined[1], sums[1], replaced);
    assert_true(10 * replaced > loops && shared > loops && 8 * joined[0] > sums[0] &&
                20 * joined[1] > sums[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_one_register_are_never_live_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
