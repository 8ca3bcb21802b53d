/* Payloads: what is set is read back, fields do not overlap, and two instructions are equal exactly
 * when all their fields are. All fields of all operations are covered: the table is the input. */
#include "internal.h"
#include "support/test.h"

static const lilac_simt_payload_field *next(lilac_simt_opcode code,
                                            const lilac_simt_payload_field *after) {
    return lilac_simt_payload_next(code, after);
}

static void test_get_is_what_was_set(void **state) {
    (void)state;
    uint32_t fields = 0;
    for (uint32_t c = 1; c < LILAC_SIMT_OP_COUNT; c++) {
        lilac_simt_opcode code = (lilac_simt_opcode)c;
        const lilac_simt_payload_field *f = NULL;
        while ((f = next(code, f)) != NULL) {
            const int64_t values[] = {f->least, f->most, f->least / 2 + f->most / 2, 0};
            assert_true(f->least <= 0 && f->most > 0);
            for (uint32_t k = 0; k < 4; k++) {
                lilac_simt_instruction i = {.code = (uint16_t)code};
                memset(&i.payload, 0xFF, sizeof i.payload);
                lilac_simt_payload_set(&i, f, values[k]);
                assert_int_equal(lilac_simt_payload_get(&i, f), values[k]);
            }
            fields++;
        }
        assert_true((lilac_simt_payload_family_of(code) != LILAC_SIMT_PAYLOAD_NONE) ==
                    (next(code, NULL) != NULL));
    }
    assert_true(fields > 0);
}

static void test_one_field_makes_instructions_differ(void **state) {
    (void)state;
    for (uint32_t c = 1; c < LILAC_SIMT_OP_COUNT; c++) {
        lilac_simt_opcode code = (lilac_simt_opcode)c;
        const lilac_simt_payload_field *f = NULL;
        while ((f = next(code, f)) != NULL) {
            lilac_simt_instruction a = {.code = (uint16_t)code}, b = {.code = (uint16_t)code};
            memset(&a.payload, 0, sizeof a.payload);
            memset(&b.payload, 0, sizeof b.payload);
            assert_true(lilac_simt_payload_equal(&a, &b));
            lilac_simt_payload_set(&b, f, f->most);
            assert_false(lilac_simt_payload_equal(&a, &b));
            assert_true(lilac_simt_payload_hash(&a, 1) != lilac_simt_payload_hash(&b, 1));
            const lilac_simt_payload_field *other = NULL;
            while ((other = next(code, other)) != NULL) {
                assert_int_equal(lilac_simt_payload_get(&b, other), other == f ? f->most : 0);
            }
        }
    }
}

static void test_bytes_of_no_field_do_not_count(void **state) {
    (void)state;
    for (uint32_t c = 1; c < LILAC_SIMT_OP_COUNT; c++) {
        lilac_simt_opcode code = (lilac_simt_opcode)c;
        lilac_simt_instruction a = {.code = (uint16_t)code}, b = {.code = (uint16_t)code};
        memset(&a.payload, 0, sizeof a.payload);
        memset(&b.payload, 0xA5, sizeof b.payload);
        const lilac_simt_payload_field *f = NULL;
        while ((f = next(code, f)) != NULL) {
            lilac_simt_payload_set(&a, f, f->most);
            lilac_simt_payload_set(&b, f, f->most);
        }
        assert_true(lilac_simt_payload_equal(&a, &b));
        assert_true(lilac_simt_payload_hash(&a, 7) == lilac_simt_payload_hash(&b, 7));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get_is_what_was_set),
        cmocka_unit_test(test_one_field_makes_instructions_differ),
        cmocka_unit_test(test_bytes_of_no_field_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
