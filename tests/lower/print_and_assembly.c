/* lower: prints and inline assembly. */
#include "support/lower_harness.h"

#include <lilac/ptx.h>

static void write_ptx(harness *h, lilac_text *out) {
    lilac_ptx_options options = {0};
    lilac_text_reset(out);
    if (!lilac_ptx_write(out, h->simt, &options)) {
        print_diagnostics(h->context);
        fail_msg("no PTX");
    }
}

/* ---- prints ------------------------------------------------------------------------------ */

/* Runs the kernel on one buffer (NULL: none) and gives what it printed. */
static void run_printing(harness *h, uint32_t programs, void *bytes, size_t size, uint32_t threads,
                         lilac_text *printed) {
    lilac_sim_buffer place = {.name = "x", .bytes = bytes, .size = size};
    lilac_sim_place(&place, 1);
    lilac_sim_launch launch = {.kernel = h->simt->kernels,
                               .grid = {programs, 1, 1},
                               .arguments = &place.address,
                               .argument_count = bytes != NULL,
                               .buffers = &place,
                               .buffer_count = bytes != NULL,
                               .threads = threads,
                               .printed = printed};
    if (!lilac_sim_run(h->context, &launch, &h->counters)) {
        print_diagnostics(h->context);
        fail_msg("the kernel trapped");
    }
}

static void print_lines(void **state) {
    (void)state;
    static const char *const ttir =
        "module {\n"
        "  tt.func public @k() {\n"
        "    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>\n"
        "    %b = arith.trunci %i : tensor<16xi32> to tensor<16xi8>\n"
        "    %m = arith.constant dense<-1> : tensor<16xi8>\n"
        "    %n = arith.subi %m, %b : tensor<16xi8>\n"
        "    %h = arith.constant dense<1.5> : tensor<2x2xf16>\n"
        "    %pid = tt.get_program_id x : i32\n"
        "    %w = arith.extsi %pid : i32 to i64\n"
        "    tt.print \" hello, 100%\" {hex = false, isSigned = array<i32>}\n"
        "    tt.print \" pid\\3A \" {hex = false, isSigned = array<i32: 1>} : %w : i64\n"
        "    tt.print \" n: \" {hex = false, isSigned = array<i32: 1, 0>} : %n, %n : "
        "tensor<16xi8>, "
        "tensor<16xi8>\n"
        "    tt.print \" x: \" {hex = true, isSigned = array<i32: 1>} : %n : tensor<16xi8>\n"
        "    tt.print \" h: \" {hex = false, isSigned = array<i32: 0>} : %h : tensor<2x2xf16>\n"
        "    tt.return\n  }\n}\n";
    for (uint32_t warps = 1; warps <= 4; warps *= 4) { /* copies print once */
        harness h;
        harness_open(&h, ttir, warps, true);
        lilac_text printed = {0}, once = {0};
        run_printing(&h, 3, NULL, 0, 1, &printed);
        const char *text = lilac_text_get(&printed);
        assert_int_equal(count_text(text, "\n"), 3 * (1 + 1 + 32 + 16 + 4));
        for (uint32_t p = 0; p < 3; p++) {
            lilac_text line = {0};
            lilac_text_printf(&line, "pid (%u, 0, 0) hello, 100%%\n", p);
            assert_int_equal(count_text(text, lilac_text_get(&line)), 1);
            lilac_text_reset(&line);
            lilac_text_printf(&line, "pid (%u, 0, 0) idx () pid: %u\n", p, p);
            assert_int_equal(count_text(text, lilac_text_get(&line)), 1);
            for (int i = 0; i < 16; i++) {
                lilac_text_reset(&line);
                lilac_text_printf(&line, "pid (%u, 0, 0) idx (%2d) n: (operand 0) %d\n", p, i,
                                  -1 - i);
                assert_int_equal(count_text(text, lilac_text_get(&line)), 1);
                lilac_text_reset(&line);
                lilac_text_printf(&line, "pid (%u, 0, 0) idx (%2d) n: (operand 1) %d\n", p, i,
                                  255 - i);
                assert_int_equal(count_text(text, lilac_text_get(&line)), 1);
                lilac_text_reset(&line);
                lilac_text_printf(&line, "pid (%u, 0, 0) idx (%2d) x: 0x%02x\n", p, i, 255 - i);
                assert_int_equal(count_text(text, lilac_text_get(&line)), 1);
                lilac_text_reset(&line);
                lilac_text_printf(&line, "pid (%u, 0, 0) idx (%d, %d) h: 1.500000\n", p, i / 2 % 2,
                                  i % 2);
                assert_int_equal(count_text(text, lilac_text_get(&line)), 1);
            }
            lilac_text_clear(&line);
        }
        /* In the order of the programs, however many threads the host has. */
        run_printing(&h, 3, NULL, 0, 3, &once);
        assert_string_equal(text, lilac_text_get(&once));
        /* Without a place for it, it is a warning. */
        run_printing(&h, 1, NULL, 0, 1, NULL);
        assert_string_equal(lilac_diagnostics(h.context)->id, "printed");
        write_ptx(&h, &once);
        assert_true(strstr(lilac_text_get(&once), "call (printed), vprintf,") != NULL);
        lilac_text_clear(&printed);
        lilac_text_clear(&once);
        harness_close(&h);
    }
}

/* ---- assembly ---------------------------------------------------------------------------- */

/* o[i] = the assembly of x[i] and y[i]; with a second result p[i]. */
static void assembly_kernel(lilac_text *out, const char *text, const char *constraints,
                            uint32_t packed, bool pure, const char *from, const char *to,
                            uint32_t size) {
    lilac_text_reset(out);
    lilac_text_printf(
        out,
        "module {\n  tt.func public @k(%%x: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%y: "
        "!tt.ptr<%s> {tt.divisibility = 16 : i32}, %%o: !tt.ptr<%s> {tt.divisibility = 16 : i32}) "
        "{\n    %%i = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n",
        from, from, to, size, size);
    const char *names[] = {"x", "y", "o"}, *types[] = {from, from, to};
    for (uint32_t k = 0; k < 3; k++) {
        lilac_text_printf(
            out,
            "    %%s%s = tt.splat %%%s : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
            "    %%p%s = tt.addptr %%s%s, %%i : tensor<%ux!tt.ptr<%s>>, tensor<%uxi32>\n",
            names[k], names[k], types[k], size, types[k], names[k], names[k], size, types[k], size);
    }
    lilac_text_printf(out,
                      "    %%a = tt.load %%px : tensor<%ux!tt.ptr<%s>>\n"
                      "    %%b = tt.load %%py : tensor<%ux!tt.ptr<%s>>\n"
                      "    %%r = tt.elementwise_inline_asm \"%s\" {constraints = \"%s\", "
                      "packed_element = %u : i32, pure = %s} %%a, %%b : tensor<%ux%s>, "
                      "tensor<%ux%s> -> tensor<%ux%s>\n"
                      "    tt.store %%po, %%r : tensor<%ux!tt.ptr<%s>>\n    tt.return\n  }\n}\n",
                      size, from, size, from, text, constraints, packed, pure ? "true" : "false",
                      size, from, size, from, size, to, size, to);
}

typedef uint64_t (*oracle)(uint64_t a, uint64_t b);

static uint64_t shift_and(uint64_t a, uint64_t b) {
    return (uint32_t)(a << 3) & (uint32_t)b;
}
static uint64_t high_product(uint64_t a, uint64_t b) {
    return (uint64_t)((int64_t)(int32_t)a * (int32_t)b) >> 32 & 0xFFFFFFFF;
}
static uint64_t select_bits(uint64_t a, uint64_t b) {
    return ((a & b) | (~a & 0x0F0F00FF)) & 0xFFFFFFFF;
}
static uint64_t swap_halves(uint64_t a, uint64_t b) {
    return (a << 16 | (b & 0xFFFF)) & 0xFFFFFFFF;
}
static uint64_t wide_sum(uint64_t a, uint64_t b) {
    return a + (b >> 7);
}
static uint64_t signed_shift(uint64_t a, uint64_t b) {
    int32_t amount = (int32_t)(b & 63);
    return (uint32_t)((int32_t)a >> (amount > 31 ? 31 : amount));
}

static uint64_t reversed_word(uint64_t a, uint64_t b) {
    uint64_t r = 0;
    for (uint32_t i = 0; i < 32; i++) {
        r |= (a >> i & 1) << (31 - i);
    }
    return r ^ (uint32_t)b;
}
static uint64_t magnitude_sum(uint64_t a, uint64_t b) {
    return ((int64_t)a < 0 ? 0 - a : a) + b;
}

/* Instructions that are operations run on the simulator, whatever the text looks like. */
static void translated(void **state) {
    (void)state;
    static const struct {
        const char *text, *constraints, *type;
        lilac_scalar scalar;
        uint32_t packed;
        oracle want;
    } rows[] = {
        {"{ .reg .b32 t; shl.b32 t, $1, 3; // times eight\\0A and.b32 $0, t, $2; }", "=r,r,r",
         "i32", LILAC_I32, 1, shift_and},
        {"mul.hi.s32 $0, $1, $2;", "=r,r,r", "i32", LILAC_I32, 1, high_product},
        {"lop3.b32 $0, $1, $2, 0x0F0F00FF, 0xCA;", "=r,r,r", "i32", LILAC_I32, 1, select_bits},
        {"{ .reg .b16 h<2>, g<2>; mov.b32 {h0, h1}, $1; mov.b32 {g0, g1}, $2; mov.b32 $0, {g0, "
         "h0}; }",
         "=r,r,r", "i32", LILAC_I32, 1, swap_halves},
        {"{ .reg .b64 t; shr.u64 t, $2, 7; add.s64 $0, $1, t; }", "=l,l,l", "i64", LILAC_I64, 1,
         wide_sum},
        {"{ .reg .u32 n; and.b32 n, $2, 63; shr.s32 $0, $1, n; }", "=r,r,r", "i32", LILAC_I32, 1,
         signed_shift},
        {"{ .reg .b32 t; brev.b32 t, $1; xor.b32 $0, t, $2; }", "=r,r,r", "i32", LILAC_I32, 1,
         reversed_word},
        {"{ .reg .b64 t; abs.s64 t, $1; add.s64 $0, t, $2; }", "=l,l,l", "i64", LILAC_I64, 1,
         magnitude_sum},
    };
    enum { SIZE = 256 };
    lilac_random random;
    lilac_random_seed(&random, 3);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        lilac_text text = {0};
        assembly_kernel(&text, rows[k].text, rows[k].constraints, rows[k].packed, true,
                        rows[k].type, rows[k].type, SIZE);
        harness h;
        harness_open(&h, lilac_text_get(&text), 4, true);
        assert_int_equal(count_text(lilac_text_get(&h.text), "asm"), 0);
        uint8_t x[SIZE * 8], y[SIZE * 8], o[SIZE * 8] = {0};
        for (uint32_t i = 0; i < sizeof x; i++) {
            x[i] = (uint8_t)lilac_random_next(&random);
            y[i] = (uint8_t)lilac_random_next(&random);
        }
        size_t bytes = SIZE * (size_t)bytes_of(rows[k].scalar);
        buffer buffers[] = {{x, bytes}, {y, bytes}, {o, bytes}};
        harness_run(&h, 1, buffers, 3, NULL, 0);
        for (uint32_t i = 0; i < SIZE; i++) {
            assert_int_equal(
                get_element(o, rows[k].scalar, i),
                rows[k].want(get_element(x, rows[k].scalar, i), get_element(y, rows[k].scalar, i)));
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* Every table of lop3, on all eight rows at once. */
static void every_table(void **state) {
    (void)state;
    for (uint32_t table = 0; table < 256; table++) {
        lilac_text text = {0}, assembly = {0};
        lilac_text_printf(&assembly, "lop3.b32 $0, $1, $2, 0xAAAAAAAA, %u;", table);
        assembly_kernel(&text, lilac_text_get(&assembly), "=r,r,r", 1, true, "i32", "i32", 32);
        harness h;
        harness_open(&h, lilac_text_get(&text), 1, true);
        uint32_t x[32], y[32], o[32] = {0};
        for (uint32_t i = 0; i < 32; i++) {
            x[i] = 0xF0F0F0F0;
            y[i] = 0xCCCCCCCC;
        }
        buffer buffers[] = {{x, sizeof x}, {y, sizeof y}, {o, sizeof o}};
        harness_run(&h, 1, buffers, 3, NULL, 0);
        assert_int_equal(o[17], table * 0x01010101u);
        harness_close(&h);
        lilac_text_clear(&text);
        lilac_text_clear(&assembly);
    }
}

/* Four bytes a word, two results of different widths: Triton's own conversion of 8-bit floats. */
static void packed(void **state) {
    (void)state;
    static const char *const ttir =
        "module {\n"
        "  tt.func public @k(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> "
        "{tt.divisibility = 16 : i32}) {\n"
        "    %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>\n"
        "    %sx = tt.splat %x : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>\n"
        "    %px = tt.addptr %sx, %i : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>\n"
        "    %v = tt.load %px : tensor<1024x!tt.ptr<i8>>\n"
        "    %y = tt.elementwise_inline_asm \"{\\0A.reg .b32 a<2>, b<2>;\\0Aprmt.b32 a0, 0, $2, "
        "0x5746;\\0Aand.b32 b0, a0, 0x7f007f00;\\0Aand.b32 b1, a0, 0x00ff00ff;\\0Aand.b32 a1, a0, "
        "0x00800080;\\0Ashr.b32  b0, b0, 1;\\0Aadd.u32 b1, b1, a1;\\0Alop3.b32 $0, b0, 0x80008000, "
        "a0, 0xf8;\\0Ashl.b32 $1, b1, 7;\\0A}\\0A\" {constraints = \"=r,=r,r\", packed_element = 4 "
        ": "
        "i32, pure = true} %v : tensor<1024xi8> -> tensor<1024xf16>\n"
        "    %so = tt.splat %o : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>\n"
        "    %po = tt.addptr %so, %i : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>\n"
        "    tt.store %po, %y : tensor<1024x!tt.ptr<f16>>\n    tt.return\n  }\n}\n";
    harness h;
    harness_open(&h, ttir, 4, true);
    uint8_t x[1024];
    uint16_t o[1024];
    for (uint32_t i = 0; i < 1024; i++) {
        x[i] = (uint8_t)(i * 7);
    }
    buffer buffers[] = {{x, sizeof x}, {o, sizeof o}};
    harness_run(&h, 1, buffers, 2, NULL, 0);
    for (uint32_t g = 0; g < 1024; g += 4) { /* the text, word by word */
        uint32_t bytes[4] = {x[g], x[g + 1], x[g + 2], x[g + 3]};
        uint32_t a0 = bytes[2] | bytes[3] << 8 * 0, b0, b1, a1, first, second;
        /* selector 0x5746: bytes 6 4 7 5 of (word, 0), lowest first */
        a0 = bytes[2] | bytes[0] << 8 | bytes[3] << 16 | bytes[1] << 24;
        b0 = (a0 & 0x7f007f00) >> 1;
        b1 = a0 & 0x00ff00ff;
        a1 = a0 & 0x00800080;
        first = b0 | (0x80008000 & a0);
        second = (b1 + a1) << 7;
        assert_int_equal(o[g], first & 0xFFFF);
        assert_int_equal(o[g + 1], first >> 16);
        assert_int_equal(o[g + 2], second & 0xFFFF);
        assert_int_equal(o[g + 3], second >> 16);
    }
    harness_close(&h);
}

/* What is not known stays as it is: in PTX with registers in place, refused by the simulator. */
static void opaque(void **state) {
    (void)state;
    static const struct {
        const char *text, *constraints, *from, *to, *wanted;
        uint32_t packed;
    } rows[] = {
        {"add.rn.f32 $0, $1, $2;", "=f,f,f", "f32", "f32", "add.rn.f32 %f", 1},
        {"{ .reg .pred p; setp.lt.s32 p, $1, $2; @p mov.b32 $0, $1; @!p mov.b32 $0, $2; }",
         "=r,r,r", "i32", "i32", "setp.lt.s32 p, %r", 1},
        {"vadd4.u32.u32.u32 $0, $1, $2, 0;", "=r,r,r", "i8", "i8", "vadd4.u32.u32.u32 %r", 4},
        {"mov.b16 $0, $1; // $$2 is $2", "=h,h,h", "f16", "bf16", "// $2 is %", 1},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        for (int pure = 0; pure < 2; pure++) {
            lilac_text text = {0}, ptx = {0};
            bool translates = k == 3;
            assembly_kernel(&text, rows[k].text, rows[k].constraints, rows[k].packed, pure,
                            rows[k].from, rows[k].to, 512);
            harness h;
            harness_open(&h, lilac_text_get(&text), 4, true);
            write_ptx(&h, &ptx);
            if (!translates) {
                assert_int_equal(count_text(lilac_text_get(&ptx), rows[k].wanted),
                                 4 / rows[k].packed);
                assert_int_equal(count_text(lilac_text_get(&h.text), "asm.volatile"),
                                 pure ? 0 : 4 / rows[k].packed);
                uint64_t arguments[3] = {0};
                lilac_sim_launch launch = {.kernel = h.simt->kernels,
                                           .grid = {1, 1, 1},
                                           .arguments = arguments,
                                           .argument_count = 3};
                assert_false(lilac_sim_run(h.context, &launch, &h.counters));
                assert_string_equal(lilac_diagnostics(h.context)->id, "unsupported-instruction");
            }
            harness_close(&h);
            lilac_text_clear(&text);
            lilac_text_clear(&ptx);
        }
    }
}

/* A clock's reading is a scalar: all threads of the block see the same one. */
static void clocks(void **state) {
    (void)state;
    static const char *const ttir =
        "module {\n"
        "  tt.func public @k(%o: !tt.ptr<i64> {tt.divisibility = 16 : i32}) {\n"
        "    %t = tt.elementwise_inline_asm \"mov.u64 $0, %globaltimer;\" {constraints = \"=l\", "
        "packed_element = 1 : i32, pure = false} -> i64\n"
        "    %zero = arith.constant 0 : i64\n"
        "    %some = arith.cmpi sge, %t, %zero : i64\n"
        "    scf.if %some {\n"
        "      %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
        "      %v = tt.splat %t : i64 -> tensor<128xi64>\n"
        "      %s = tt.splat %o : !tt.ptr<i64> -> tensor<128x!tt.ptr<i64>>\n"
        "      %p = tt.addptr %s, %i : tensor<128x!tt.ptr<i64>>, tensor<128xi32>\n"
        "      tt.store %p, %v : tensor<128x!tt.ptr<i64>>\n"
        "    }\n    tt.return\n  }\n}\n";
    harness h;
    harness_open(&h, ttir, 4, true);
    uint64_t o[128];
    memset(o, 0xFF, sizeof o);
    buffer buffers[] = {{o, sizeof o}};
    harness_run(&h, 1, buffers, 1, NULL, 0);
    for (uint32_t i = 0; i < 128; i++) {
        assert_int_equal(o[i], o[0]);
    }
    assert_true(o[0] != UINT64_MAX);
    harness_close(&h);
}

/* Bad constraints are refused, and never a crash. */
static void refusals(void **state) {
    (void)state;
    static const char *const constraints[] = {"=r",     "=r,r",  "=r,r,r,r", "r,r,r",  "=r,0,r",
                                              "=x,r,r", "=r,r,", "",         "=h,r,r", "=r,h,r",
                                              "r,=r,r", "=,r,r", "=r,rr,r",  "+r,r,r", ",,,"};
    for (size_t k = 0; k < sizeof constraints / sizeof *constraints; k++) {
        lilac_text text = {0};
        assembly_kernel(&text, "add.s32 $0, $1, $2;", constraints[k], 1, true, "i32", "i32", 128);
        harness h;
        assert_false(harness_try(&h, lilac_text_get(&text), 4, true, NULL));
        assert_string_equal(lilac_diagnostics(h.context)->id, "unsupported-operation");
        harness_close(&h);
        lilac_text_clear(&text);
    }
    static const char *const texts[] = {"add.s32 $0, $1, $7;", "$", "add $", "$x",
                                        "mov.b32 $0, ${1};"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) { /* numbers of no operand */
        lilac_text text = {0};
        assembly_kernel(&text, texts[k], "=r,r,r", 1, true, "i32", "i32", 128);
        harness h;
        assert_false(harness_try(&h, lilac_text_get(&text), 4, true, NULL));
        assert_string_equal(lilac_diagnostics(h.context)->id, "unsupported-operation");
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(print_lines), cmocka_unit_test(translated),
                                       cmocka_unit_test(every_table), cmocka_unit_test(packed),
                                       cmocka_unit_test(opaque),      cmocka_unit_test(clocks),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
