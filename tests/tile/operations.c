/* operations.def: which rows it has. What they say is tested where they are expanded. */

#include <lilac/tile.h>

#include "support/test.h"

typedef struct row {
    uint8_t operations, elements; /* rows OPERATION; rows INTEGER, FLOAT, CAST and MATH */
    uint8_t regions;              /* terminators of the rows REGION */
    const char *layout, *facts, *lower, *reference;
    const char *section, *build, *meaning; /* of the row of elements; build: what one element is
                                              computed by */
} row;

static row rows[LILAC_TILE_OP_COUNT];

static void count_region(lilac_tile_opcode code, lilac_tile_opcode first,
                         lilac_tile_opcode second) {
    const lilac_tile_opcode ends[2] = {first, second};
    for (uint32_t i = 0; i < 2; i++) {
        if (ends[i] == LILAC_TILE_OP_NONE) {
            continue;
        }
        assert_true(lilac_tile_op_info_get(ends[i])->traits & LILAC_TILE_TERMINATOR);
        rows[code].regions++;
    }
}

static int count_rows(void **state) {
    (void)state;
#define OPERATION(code, cost, row_layout, row_facts, strides, range, fold, row_lower,              \
                  row_reference)                                                                   \
    rows[LILAC_TILE_OP_##code].operations++;                                                       \
    rows[LILAC_TILE_OP_##code].layout = #row_layout;                                               \
    rows[LILAC_TILE_OP_##code].facts = #row_facts;                                                 \
    rows[LILAC_TILE_OP_##code].lower = #row_lower;                                                 \
    rows[LILAC_TILE_OP_##code].reference = #row_reference;
#define ELEMENT(code, row_section, row_build, row_meaning)                                         \
    rows[LILAC_TILE_OP_##code].elements++;                                                         \
    rows[LILAC_TILE_OP_##code].section = row_section;                                              \
    rows[LILAC_TILE_OP_##code].build = row_build;                                                  \
    rows[LILAC_TILE_OP_##code].meaning = row_meaning;
#define INTEGER(code, neutral, narrow, compute, instruction, bits, meaning)                        \
    ELEMENT(code, "INTEGER", #compute, #meaning)
#define FLOAT(code, compute, instruction, meaning) ELEMENT(code, "FLOAT", #compute, #meaning)
#define CAST(code, instruction, meaning)           ELEMENT(code, "CAST", #instruction, #meaning)
#define MATH(code, f32, f64, meaning)              ELEMENT(code, "MATH", #f32, #meaning)
#define REGION(code, first, second)                                                                \
    count_region(LILAC_TILE_OP_##code, LILAC_TILE_OP_##first, LILAC_TILE_OP_##second);
#include <lilac/operations.def>

#undef ELEMENT
    return 0;
}

static bool is_missing(const char *entry) {
    return entry == NULL || strcmp(entry, "NULL") == 0;
}

/* A second row would replace the first one without a word. */
static void one_row_for_each_operation(void **state) {
    (void)state;
    uint32_t count = 0;
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        const char *name = lilac_tile_op_info_get((lilac_tile_opcode)code)->name;
        if (rows[code].operations > 1 || rows[code].elements > 1) {
            fail_msg("'%s' has %u rows OPERATION and %u rows of elements", name,
                     rows[code].operations, rows[code].elements);
        }
        if (rows[code].elements == 1 && rows[code].operations == 0) {
            fail_msg("'%s' has no row OPERATION", name);
        }
        count += rows[code].operations;
    }
    assert_in_range(count, 100, LILAC_TILE_OP_COUNT);
    assert_int_equal(rows[LILAC_TILE_OP_NONE].operations, 0);
}

/* The traits of tile_ops.def and the rows agree. */
static void rows_follow_the_traits(void **state) {
    (void)state;
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        const lilac_tile_op_info *info = lilac_tile_op_info_get((lilac_tile_opcode)code);
        const row *r = &rows[code];
        const bool elementwise = (info->traits & LILAC_TILE_ELEMENTWISE) != 0;
        if (elementwise && (r->operations != 1 || is_missing(r->lower))) {
            fail_msg("'%s' works on elements and has no lowering", info->name);
        }
        if (elementwise && strcmp(r->layout, "SAME") != 0 && strcmp(r->layout, "MEMORY") != 0) {
            fail_msg("'%s' works on elements and has the layout %s", info->name, r->layout);
        }
        if (elementwise && (info->traits & LILAC_TILE_PURE) && is_missing(r->facts)) {
            fail_msg("'%s' is pure and has no axis facts", info->name);
        }
        if ((info->traits & LILAC_TILE_TERMINATOR) && !is_missing(r->lower)) {
            fail_msg("'%s' ends a block and has a lowering", info->name);
        }
        const int kinds = info->regions < 0 ? 2 : info->regions; /* the first one and the others */
        if ((int)r->regions != kinds) {
            fail_msg("'%s' has %d regions and %u terminators", info->name, info->regions,
                     r->regions);
        }
    }
}

/* The functions that look up the row of elements of an operation find it. */
static void rows_of_elements_are_there(void **state) {
    static const struct {
        const char *lower, *section;
    } readers[] = {
        {"lilac_lower_integer_op", "INTEGER"},
        {"lilac_lower_integer_sum", "INTEGER"},
        {"lilac_lower_integer_product", "INTEGER"},
        {"lilac_lower_float_op", "FLOAT"},
        {"lilac_lower_float_magnitude", "FLOAT"},
        {"lilac_lower_resize", "CAST"},
        {"lilac_lower_integer_to_float", "CAST"},
        {"lilac_lower_float_to_integer", "CAST"},
        {"lilac_lower_math", "MATH"},
    };
    (void)state;
    uint32_t count = 0;
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        const char *name = lilac_tile_op_info_get((lilac_tile_opcode)code)->name;
        const row *r = &rows[code];
        if (r->operations == 0) {
            continue;
        }
        if (strcmp(r->reference, "run_elements") == 0 && is_missing(r->meaning)) {
            fail_msg("the row of elements of '%s' has no meaning", name);
        }
        for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
            if (strcmp(r->lower, readers[i].lower) != 0) {
                continue;
            }
            count++;
            if (r->elements != 1 || strcmp(r->section, readers[i].section) != 0 ||
                is_missing(r->build) || strcmp(r->build, "NONE") == 0) {
                fail_msg("'%s' needs a row %s that builds an element", name, readers[i].section);
            }
        }
    }
    assert_in_range(count, 50, LILAC_TILE_OP_COUNT);
}

/* What is lowered has a meaning in the reference interpreter, but for the operations listed. */
static void lowered_operations_have_a_meaning(void **state) {
    (void)state;
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        const char *name = lilac_tile_op_info_get((lilac_tile_opcode)code)->name;
        const bool shared = strncmp(name, "ttg.local_", 10) == 0 ||
                            strncmp(name, "ttg.memdesc_", 12) == 0 ||
                            strncmp(name, "ttg.async_", 10) == 0 ||
                            strcmp(name, "ttg.global_scratch_alloc") == 0 || /* of tensor maps */
                            strncmp(name, "ttng.", 5) == 0;                  /* memory in layouts */
        if (shared || code == LILAC_TILE_OP_TT_ELEMENTWISE_INLINE_ASM) {
            continue;
        }
        if (!is_missing(rows[code].lower) && is_missing(rows[code].reference)) {
            fail_msg("'%s' is lowered and has no meaning in the interpreter", name);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_row_for_each_operation),
                                       cmocka_unit_test(rows_follow_the_traits),
                                       cmocka_unit_test(rows_of_elements_are_there),
                                       cmocka_unit_test(lowered_operations_have_a_meaning)};
    return cmocka_run_group_tests(tests, count_rows, NULL);
}
