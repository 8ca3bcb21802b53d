/* Divisions that registers share equal exact ones: quotients and remainders of program * size + range,
 * shifted by a start, by constants and by a parameter, in 32 and 64 bits and for several warps. A run of
 * registers inside the divisor has one division. */
#include "support/lower_harness.h"

enum { SIZE = 512, PROGRAMS = 3 };

static void write_kernel(lilac_text *out, const char *type, uint32_t start, int64_t divisor) {
    lilac_text_reset(out);
    lilac_text_printf(
        out,
        "module {\ntt.func public @k(%%q: !tt.ptr<i32> {tt.divisibility = 16 : i32}, "
        "%%r: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %%n: i32 {tt.divisibility = 16 : i32}) {\n"
        "%%size = arith.constant %d : i32\n%%program = tt.get_program_id x : i32\n"
        "%%first = arith.muli %%program, %%size : i32\n"
        "%%range = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32>\n"
        "%%firsts = tt.splat %%first : i32 -> tensor<%dxi32>\n"
        "%%x = arith.addi %%firsts, %%range : tensor<%dxi32>\n"
        "%%shift = arith.constant dense<%u> : tensor<%dxi32>\n"
        "%%moved = arith.addi %%x, %%shift : tensor<%dxi32>\n",
        SIZE, SIZE, SIZE, SIZE, SIZE, start, SIZE, SIZE);
    bool wide = strcmp(type, "i64") == 0;
    if (divisor != 0) {
        lilac_text_printf(out, "%%d = arith.constant dense<%lld> : tensor<%dx%s>\n",
                          (long long)divisor, SIZE, type);
    } else {
        lilac_text_printf(out, "%%one = arith.constant 16 : i32\n"
                               "%%natural = arith.maxsi %%n, %%one : i32\n");
        lilac_text_printf(out, "%%d%s = tt.splat %%natural : i32 -> tensor<%dxi32>\n",
                          wide ? "32" : "", SIZE);
        if (wide) {
            lilac_text_printf(out, "%%d = arith.extsi %%d32 : tensor<%dxi32> to tensor<%dxi64>\n",
                              SIZE, SIZE);
        }
    }
    if (wide) {
        lilac_text_printf(out, "%%a = arith.extsi %%moved : tensor<%dxi32> to tensor<%dxi64>\n",
                          SIZE, SIZE);
    }
    for (uint32_t k = 0; k < 2; k++) {
        char c = "qr"[k];
        lilac_text_printf(out, "%%v%c%s = arith.%s %s, %%d : tensor<%dx%s>\n", c, wide ? "w" : "",
                          k == 0 ? "divsi" : "remsi", wide ? "%a" : "%moved", SIZE, type);
        if (wide) {
            lilac_text_printf(out,
                              "%%v%c = arith.trunci %%v%cw : tensor<%dxi64> to tensor<%dxi32>\n", c,
                              c, SIZE, SIZE);
        }
        lilac_text_printf(out,
                          "%%s%c = tt.splat %%%c : !tt.ptr<i32> -> tensor<%dx!tt.ptr<i32>>\n"
                          "%%p%c = tt.addptr %%s%c, %%x : tensor<%dx!tt.ptr<i32>>, tensor<%dxi32>\n"
                          "tt.store %%p%c, %%v%c : tensor<%dx!tt.ptr<i32>>\n",
                          c, c, SIZE, c, c, SIZE, SIZE, c, c, SIZE);
    }
    lilac_text_puts(out, "tt.return\n}\n}\n");
}

static void check(const char *type, uint32_t warps, uint32_t start, int64_t divisor, int64_t n) {
    static int32_t quotients[SIZE * PROGRAMS], remainders[SIZE * PROGRAMS];
    lilac_text text = {0};
    write_kernel(&text, type, start, divisor);
    harness h;
    harness_open(&h, text.bytes, warps, true);
    const buffer buffers[2] = {{quotients, sizeof quotients}, {remainders, sizeof remainders}};
    harness_run(&h, PROGRAMS, buffers, 2, &n, 1);
    const int64_t d = divisor != 0 ? divisor : n;
    for (int32_t i = 0; i < SIZE * PROGRAMS; i++) {
        int64_t x = i + (int64_t)start;
        if (quotients[i] != x / d || remainders[i] != x % d) {
            fail_msg("%s: %lld by %lld: %d, %d", type, (long long)x, (long long)d, quotients[i],
                     remainders[i]);
        }
    }
    if (divisor == 64 && start == 0) { /* four registers in a run of four */
        assert_true(count_text(lilac_text_get(&h.text), "rem_u") <= SIZE / (warps * 32) / 4);
    }
    harness_close(&h);
    lilac_text_clear(&text);
}

static void shared_divisions_are_exact(void **state) {
    (void)state;
    static const int64_t divisors[] = {1,  2,  3,  4,   6,   7,   12,   16,  48,
                                       64, 77, 96, 100, 128, 768, 1000, 4096};
    for (uint32_t warps = 1; warps <= 4; warps *= 2) {
        for (size_t k = 0; k < sizeof divisors / sizeof *divisors; k++) {
            for (uint32_t start = 0; start < 20; start += 3 + start) {
                check("i32", warps, start, divisors[k], 16);
                check("i64", warps, start, divisors[k], 16);
            }
        }
        for (int64_t n = 16; n < 200; n += 48) {
            check("i32", warps, 0, 0, n);
            check("i64", warps, 5, 0, n);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_divisions_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
