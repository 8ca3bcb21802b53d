/* lower: loads, stores, widths, copies, shapes, control flow and refusals. */
#include "support/lower_harness.h"

/* ---- masked copies ----------------------------------------------------------------------- */

/* o[i] = i < n ? x[i] : other, for programs of `block` elements; stores under i < m. */
static void copy_kernel(lilac_text *out, const char *type, uint32_t block, const char *other,
                        const char *attributes) {
    lilac_text_reset(out);
    lilac_text_printf(out,
                      "module {\n"
                      "  tt.func public @copy(%%x: !tt.ptr<%s> {tt.divisibility = 16 : i32}, "
                      "%%o: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%n: i32%s, %%m: i32%s) {\n"
                      "    %%size = arith.constant %u : i32\n"
                      "    %%other = arith.constant dense<%s> : tensor<%ux%s>\n"
                      "    %%pid = tt.get_program_id x : i32\n"
                      "    %%start = arith.muli %%pid, %%size : i32\n"
                      "    %%r = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
                      "    %%s = tt.splat %%start : i32 -> tensor<%uxi32>\n"
                      "    %%i = arith.addi %%s, %%r : tensor<%uxi32>\n"
                      "    %%sn = tt.splat %%n : i32 -> tensor<%uxi32>\n"
                      "    %%in = arith.cmpi slt, %%i, %%sn : tensor<%uxi32>\n"
                      "    %%sm = tt.splat %%m : i32 -> tensor<%uxi32>\n"
                      "    %%im = arith.cmpi slt, %%i, %%sm : tensor<%uxi32>\n",
                      type, type, attributes, attributes, block, other, block, type, block, block,
                      block, block, block, block, block, block);
    lilac_text_printf(out,
                      "    %%sx = tt.splat %%x : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
                      "    %%px = tt.addptr %%sx, %%i : tensor<%ux!tt.ptr<%s>>, tensor<%uxi32>\n"
                      "    %%v = tt.load %%px, %%in, %%other : tensor<%ux!tt.ptr<%s>>\n"
                      "    %%so = tt.splat %%o : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
                      "    %%po = tt.addptr %%so, %%i : tensor<%ux!tt.ptr<%s>>, tensor<%uxi32>\n"
                      "    tt.store %%po, %%v, %%im : tensor<%ux!tt.ptr<%s>>\n"
                      "    tt.return\n  }\n}\n",
                      type, block, type, block, type, block, block, type, type, block, type, block,
                      type, block, block, type);
}

static const struct copy_type {
    lilac_scalar scalar;
    const char *other;
    uint64_t other_bits;
} copy_types[] = {
    {LILAC_I8, "7", 7},
    {LILAC_I16, "-2", 0xFFFE},
    {LILAC_F16, "1.0", 0x3C00},
    {LILAC_BF16, "0xFF80", 0xFF80},
    {LILAC_F32, "2.5", 0x40200000},
    {LILAC_I64, "-1", ~0ULL},
};

static void masked_copies(void **state) {
    (void)state;
    static const struct {
        uint32_t n, m, block, warps;
    } sizes[] = {{1000, 1024, 256, 4}, {1, 3, 128, 4}, {777, 777, 1024, 8},
                 {64, 96, 32, 1},      {0, 5, 16, 4},  {4096, 4096, 4096, 4}};
    lilac_random random;
    lilac_random_seed(&random, 1);
    for (size_t t = 0; t < sizeof copy_types / sizeof *copy_types; t++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            lilac_scalar scalar = copy_types[t].scalar;
            lilac_text text = {0};
            copy_kernel(&text, lilac_scalar_name(scalar), sizes[s].block, copy_types[t].other, "");
            harness h;
            harness_open(&h, lilac_text_get(&text), sizes[s].warps, true);
            uint32_t programs = (sizes[s].m + sizes[s].block - 1) / sizes[s].block;
            uint8_t x[4096 * 8 + 8], o[4096 * 8 + 8];
            for (uint32_t i = 0; i < sizeof x; i++) {
                x[i] = (uint8_t)lilac_random_next(&random);
            }
            memset(o, 0, sizeof o);
            uint32_t bytes = bytes_of(scalar);
            buffer buffers[] = {{x, (size_t)sizes[s].n * bytes}, {o, (size_t)sizes[s].m * bytes}};
            int64_t scalars[] = {sizes[s].n, sizes[s].m};
            harness_run(&h, programs, buffers, 2, scalars, 2);
            for (uint32_t i = 0; i < sizes[s].m; i++) {
                uint64_t want =
                    i < sizes[s].n ? get_element(x, scalar, i) : copy_types[t].other_bits;
                assert_int_equal(get_element(o, scalar, i), want);
            }
            /* No element is stored twice and none is asked for in vain. */
            assert_int_equal(h.counters.global_store_bytes, (uint64_t)sizes[s].m * bytes);
            harness_close(&h);
            lilac_text_clear(&text);
        }
    }
}

/* Sixteen bytes a thread where sizes are known to be multiples of 16, elements else. */
static void access_widths(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof copy_types / sizeof *copy_types; t++) {
        for (int aligned = 0; aligned < 2; aligned++) {
            lilac_scalar scalar = copy_types[t].scalar;
            uint32_t bytes = bytes_of(scalar);
            uint32_t block = 4 * 128 * 16 / bytes; /* four vectors a thread */
            lilac_text text = {0};
            copy_kernel(&text, lilac_scalar_name(scalar), block, copy_types[t].other,
                        aligned ? " {tt.divisibility = 16 : i32}" : "");
            harness h;
            harness_open(&h, lilac_text_get(&text), 4, true);
            uint8_t *x = calloc(block, bytes), *o = calloc(block, bytes);
            buffer buffers[] = {{x, (size_t)block * bytes}, {o, (size_t)block * bytes}};
            int64_t scalars[] = {block, block};
            harness_run(&h, 1, buffers, 2, scalars, 2);
            uint64_t accesses = h.counters.global_loads + h.counters.global_stores;
            uint32_t width = aligned ? 4 : bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
            assert_int_equal(h.counters.access_bits[width], accesses);
            if (aligned) {
                assert_int_equal(accesses, 2 * 4 * 4); /* warps × vectors, in and out */
            }
            free(x);
            free(o);
            harness_close(&h);
            lilac_text_clear(&text);
        }
    }
}

/* The constant parts of addresses are immediates: one pointer a buffer, no addition a vector. */
static void addresses_are_immediates(void **state) {
    (void)state;
    lilac_text text = {0};
    copy_kernel(&text, "f32", 4096, "0.0", " {tt.divisibility = 16 : i32}");
    harness h;
    harness_open(&h, lilac_text_get(&text), 4, true);
    const char *simt = lilac_text_get(&h.text);
    assert_int_equal(count_text(simt, "ld.global"), 8);
    assert_int_equal(count_text(simt, " + 14336]"), 2);
    assert_true(count_text(simt, ": i64") <= 16);
    harness_close(&h);
    lilac_text_clear(&text);
}

/* A thread has two rows and every eighth of 32 columns. Where rows do not start at sectors, stores that follow each other
 * go along a row; elsewhere the order is that of the registers. */
static void stores_go_along_rows(void **state) {
    (void)state;
    static const struct {
        const char *hint, *pitch;
        int32_t offsets[8];
    } cases[] = {{"", "49", {0, 32, 64, 96, 196, 228, 260, 292}},
                 {"{tt.divisibility = 16 : i32}", "64", {0, 256, 32, 288, 64, 320, 96, 352}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        harness h;
        lilac_text_printf(
            &text,
            "#b = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, "
            "1], "
            "order = [0, 1]}>\n"
            "module attributes {\"ttg.num-warps\" = 1 : i32} {\n"
            "tt.func public @k(%%o: !tt.ptr<f32> %s) {\n"
            "%%v = arith.constant dense<1.0> : tensor<8x32xf32, #b>\n"
            "%%pitch = arith.constant dense<%s> : tensor<8x1xi32, #b>\n"
            "%%r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim "
            "= 1, parent = #b}>>\n"
            "%%c = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, "
            "#ttg.slice<{dim = 0, parent = #b}>>\n"
            "%%re = tt.expand_dims %%r {axis = 1 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, "
            "parent = #b}>> -> tensor<8x1xi32, #b>\n"
            "%%ce = tt.expand_dims %%c {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, "
            "parent = #b}>> -> tensor<1x32xi32, #b>\n"
            "%%rm = arith.muli %%re, %%pitch : tensor<8x1xi32, #b>\n"
            "%%rb = tt.broadcast %%rm : tensor<8x1xi32, #b> -> tensor<8x32xi32, #b>\n"
            "%%cb = tt.broadcast %%ce : tensor<1x32xi32, #b> -> tensor<8x32xi32, #b>\n"
            "%%at = arith.addi %%rb, %%cb : tensor<8x32xi32, #b>\n"
            "%%s = tt.splat %%o : !tt.ptr<f32> -> tensor<8x32x!tt.ptr<f32>, #b>\n"
            "%%p = tt.addptr %%s, %%at : tensor<8x32x!tt.ptr<f32>, #b>, tensor<8x32xi32, #b>\n"
            "tt.store %%p, %%v : tensor<8x32x!tt.ptr<f32>, #b>\ntt.return\n}\n}\n",
            cases[i].hint, cases[i].pitch);
        harness_open(&h, lilac_text_get(&text), 1, true);
        const char *at = lilac_text_get(&h.text);
        for (size_t k = 0; k < 8; k++) {
            char expected[32];
            (void)snprintf(expected, sizeof expected, cases[i].offsets[k] > 0 ? " + %d]" : "]",
                           (int)cases[i].offsets[k]);
            at = strstr(at, "st.global [");
            assert_non_null(at);
            at = strpbrk(at, "+]") - (cases[i].offsets[k] > 0);
            assert_memory_equal(at, expected, strlen(expected));
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

static void modifiers(void **state) {
    (void)state;
    harness h;
    harness_open(&h,
                 "module {\n  tt.func public @k(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {\n"
                 "    %v = tt.load %x cacheModifier = cg evictionPolicy = evict_last "
                 "{isVolatile = true} : !tt.ptr<f32>\n"
                 "    tt.store %o, %v cacheModifier = wt evictionPolicy = evict_first : "
                 "!tt.ptr<f32>\n    tt.return\n  }\n}\n",
                 4, true);
    const char *simt = lilac_text_get(&h.text);
    static const char *const words[] = {"cache = cg", "evict = last", "volatile", "cache = wt",
                                        "evict = first"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(count_text(simt, words[i]), 1);
    }
    float x = 3.5F, o = 0;
    buffer buffers[] = {{&x, sizeof x}, {&o, sizeof o}};
    harness_run(&h, 1, buffers, 2, NULL, 0);
    assert_true(o == 3.5F);
    /* A scalar is stored by one thread. */
    assert_int_equal(h.counters.global_store_bytes, 4);
    assert_int_equal(h.counters.global_stores, 1);
    harness_close(&h);
}

/* ---- shapes, with layouts as written ------------------------------------------------------ */

/* A tensor smaller than the block lies in many copies; each element is stored once. */
static void copies_store_once(void **state) {
    (void)state;
    static const char *const layouts[] = {
        "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = "
        "[0]}>",
        "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = "
        "[0]}>",
        /* copies in register, lane and warp; a lane bit that repeats a register's */
        "#ttg.linear<{register = [[1], [0]], lane = [[2], [0], [4], [1], [0]], warp = [[8], [0]], "
        "block = []}>",
        "#ttg.linear<{register = [], lane = [[8], [4], [2], [1], [15]], warp = [[3], [0]], block "
        "= []}>",
    };
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        lilac_text text = {0};
        lilac_text_printf(&text,
                          "#l = %s\nmodule {\n  tt.func public @k(%%o: !tt.ptr<i32>) {\n"
                          "    %%r = tt.make_range {end = 16 : i32, start = 0 : i32} : "
                          "tensor<16xi32, #l>\n"
                          "    %%s = tt.splat %%o : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #l>\n"
                          "    %%p = tt.addptr %%s, %%r : tensor<16x!tt.ptr<i32>, #l>, "
                          "tensor<16xi32, #l>\n"
                          "    tt.store %%p, %%r : tensor<16x!tt.ptr<i32>, #l>\n"
                          "    tt.return\n  }\n}\n",
                          layouts[k]);
        harness h;
        harness_open(&h, lilac_text_get(&text), 4, false);
        int32_t o[16] = {0};
        buffer buffers[] = {{o, sizeof o}};
        harness_run(&h, 1, buffers, 1, NULL, 0);
        for (int i = 0; i < 16; i++) {
            assert_int_equal(o[i], i);
        }
        assert_int_equal(h.counters.global_store_bytes, sizeof o);
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* rows x cols of numbers, sent through shape operations and stored at where they should be. */
static void shape_operations(void **state) {
    (void)state;
    /* #m: 16 x 32; #t: its transpose, 32 x 16; #j: two of #t side by side. */
    static const char kernel[] =
        "#m = #ttg.linear<{register = [[0, 1], [4, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], "
        "[0, 8]], warp = [[8, 0], [0, 16]], block = []}>\n"
        "#t = #ttg.linear<{register = [[1, 0], [0, 4]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], "
        "[8, 0]], warp = [[0, 8], [16, 0]], block = []}>\n"
        "#j = #ttg.linear<{register = [[0, 0, 1], [0, 4, 0], [1, 0, 0]], lane = [[2, 0, 0], [4, "
        "0, 0], [0, 1, 0], [0, 2, 0], [8, 0, 0]], warp = [[0, 8, 0], [16, 0, 0]], block = []}>\n"
        "#f = #ttg.linear<{register = [[1], [8], [32]], lane = [[64], [128], [2], [4], [256]], "
        "warp = [[16], [512]], block = []}>\n"
        "#r = #ttg.slice<{dim = 1, parent = #m}>\n"
        "#c = #ttg.slice<{dim = 0, parent = #m}>\n"
        "module {\n  tt.func public @k(%o: !tt.ptr<i32>, %q: !tt.ptr<i32>) {\n"
        "    %thousand = arith.constant dense<1000> : tensor<16x1xi32, #m>\n"
        "    %half = arith.constant dense<50000> : tensor<32x16xi32, #t>\n"
        "    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #r>\n"
        "    %k = tt.make_range {end = 37 : i32, start = 5 : i32} : tensor<32xi32, #c>\n"
        "    %i1 = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32, #r> -> tensor<16x1xi32, "
        "#m>\n"
        "    %k1 = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32, #c> -> tensor<1x32xi32, "
        "#m>\n"
        "    %im = arith.muli %i1, %thousand : tensor<16x1xi32, #m>\n"
        "    %ib = tt.broadcast %im : tensor<16x1xi32, #m> -> tensor<16x32xi32, #m>\n"
        "    %kb = tt.broadcast %k1 : tensor<1x32xi32, #m> -> tensor<16x32xi32, #m>\n"
        "    %v = arith.addi %ib, %kb : tensor<16x32xi32, #m>\n"
        "    %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<16x32xi32, #m> -> "
        "tensor<32x16xi32, #t>\n"
        "    %h = arith.addi %t, %half : tensor<32x16xi32, #t>\n"
        "    %j = tt.join %t, %h : tensor<32x16xi32, #t> -> tensor<32x16x2xi32, #j>\n"
        "    %f = tt.reshape %j : tensor<32x16x2xi32, #j> -> tensor<1024xi32, #f>\n"
        "    %p = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #f>\n"
        "    %so = tt.splat %o : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #f>\n"
        "    %po = tt.addptr %so, %p : tensor<1024x!tt.ptr<i32>, #f>, tensor<1024xi32, #f>\n"
        "    tt.store %po, %f : tensor<1024x!tt.ptr<i32>, #f>\n"
        "    %a, %b = tt.split %j : tensor<32x16x2xi32, #j> -> tensor<32x16xi32, #t>\n"
        "    %d = arith.subi %b, %a : tensor<32x16xi32, #t>\n"
        "    %jj = tt.join %b, %d : tensor<32x16xi32, #t> -> tensor<32x16x2xi32, #j>\n"
        "    %ff = tt.reshape %jj : tensor<32x16x2xi32, #j> -> tensor<1024xi32, #f>\n"
        "    %sq = tt.splat %q : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #f>\n"
        "    %pq = tt.addptr %sq, %p : tensor<1024x!tt.ptr<i32>, #f>, tensor<1024xi32, #f>\n"
        "    tt.store %pq, %ff : tensor<1024x!tt.ptr<i32>, #f>\n"
        "    tt.return\n  }\n}\n";
    harness h;
    harness_open(&h, kernel, 4, false);
    static int32_t o[1024], q[1024];
    buffer buffers[] = {{o, sizeof o}, {q, sizeof q}};
    harness_run(&h, 1, buffers, 2, NULL, 0);
    for (int32_t n = 0; n < 1024; n++) {
        int32_t part = n % 2, i = n / 2 % 16, k = n / 32;
        int32_t element = 1000 * i + k + 5;
        assert_int_equal(o[n], element + 50000 * part);
        assert_int_equal(q[n], part == 0 ? element + 50000 : 50000);
    }
    harness_close(&h);
}

static void dense_constants(void **state) {
    (void)state;
    harness h;
    harness_open(&h,
                 "#l = #ttg.linear<{register = [[1]], lane = [[4], [2], [0], [0], [0]], warp = "
                 "[[0], [0]], block = []}>\n"
                 "module {\n  tt.func public @k(%o: !tt.ptr<i32>) {\n"
                 "    %v = arith.constant dense<[3, 1, 4, 1, 5, 9, 2, 6]> : tensor<8xi32, #l>\n"
                 "    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #l>\n"
                 "    %s = tt.splat %o : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>, #l>\n"
                 "    %p = tt.addptr %s, %r : tensor<8x!tt.ptr<i32>, #l>, tensor<8xi32, #l>\n"
                 "    tt.store %p, %v : tensor<8x!tt.ptr<i32>, #l>\n"
                 "    tt.return\n  }\n}\n",
                 4, false);
    int32_t o[8] = {0};
    static const int32_t want[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    buffer buffers[] = {{o, sizeof o}};
    harness_run(&h, 1, buffers, 1, NULL, 0);
    assert_memory_equal(o, want, sizeof o);
    harness_close(&h);
}

/* ---- addresses that wrap ----------------------------------------------------------------- */

/* Offsets of 32 bits wrap before they are extended: (start + i) with start near the end of the
 * range. Only where the facts say that nothing carries may constants leave the sum. */
static void offsets_wrap(void **state) {
    (void)state;
    lilac_text text = {0};
    lilac_text_puts(&text,
                    "module {\n  tt.func public @k(%o: !tt.ptr<i8>, %start: i32, %back: i32) {\n"
                    "    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : "
                    "tensor<1024xi32>\n"
                    "    %s = tt.splat %start : i32 -> tensor<1024xi32>\n"
                    "    %i = arith.addi %s, %r : tensor<1024xi32>\n"
                    "    %b = tt.splat %back : i32 -> tensor<1024xi32>\n"
                    "    %k = arith.subi %i, %b : tensor<1024xi32>\n"
                    "    %v = arith.trunci %k : tensor<1024xi32> to tensor<1024xi8>\n"
                    "    %so = tt.splat %o : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>\n"
                    "    %p = tt.addptr %so, %k : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>\n"
                    "    tt.store %p, %v : tensor<1024x!tt.ptr<i8>>\n"
                    "    tt.return\n  }\n}\n");
    static const int64_t starts[] = {0, INT32_MAX - 100, INT32_MIN, -5};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        harness h;
        harness_open(&h, lilac_text_get(&text), 4, true);
        uint8_t o[1024] = {0};
        buffer buffers[] = {{o, sizeof o}};
        int64_t scalars[] = {(uint32_t)starts[i], (uint32_t)starts[i]};
        harness_run(&h, 1, buffers, 1, scalars, 2);
        for (int k = 0; k < 1024; k++) {
            assert_int_equal(o[k], (uint8_t)k);
        }
        harness_close(&h);
    }
    lilac_text_clear(&text);
}

/* ---- control flow ------------------------------------------------------------------------ */

static void loops(void **state) {
    (void)state;
    static const char *const counters[] = {"i8", "i16", "i32", "i64"};
    for (size_t t = 0; t < sizeof counters / sizeof *counters; t++) {
        lilac_text text = {0};
        const char *c = counters[t];
        lilac_text_printf(
            &text,
            "module {\n  tt.func public @k(%%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %%o: "
            "!tt.ptr<f32> {tt.divisibility = 16 : i32}, %%n: %s, %%d: i32) {\n"
            "    %%zero = arith.constant dense<0.0> : tensor<64xf32>\n"
            "    %%no = arith.constant dense<false> : tensor<64xi1>\n"
            "    %%limit = arith.constant dense<900.0> : tensor<64xf32>\n"
            "    %%from = arith.constant 0 : %s\n    %%step = arith.constant 2 : %s\n"
            "    %%one = arith.constant 1 : i32\n    %%none = arith.constant 0 : i32\n"
            "    %%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
            "    %%s = tt.splat %%x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
            "    %%p = tt.addptr %%s, %%r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
            "    %%sd = tt.splat %%d : i32 -> tensor<64xi32>\n"
            "    %%e:4 = scf.for %%i = %%from to %%n step %%step iter_args(%%a = %%zero, %%q = "
            "%%p, "
            "%%k = %%none, %%big = %%no) -> (tensor<64xf32>, tensor<64x!tt.ptr<f32>>, i32, "
            "tensor<64xi1>)  : %s {\n"
            "      %%v = tt.load %%q : tensor<64x!tt.ptr<f32>>\n"
            "      %%b = arith.addf %%a, %%v : tensor<64xf32>\n"
            "      %%w = tt.addptr %%q, %%sd : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
            "      %%l = arith.addi %%k, %%one : i32\n"
            "      %%over = arith.cmpf ogt, %%v, %%limit : tensor<64xf32>\n"
            "      %%any = arith.ori %%over, %%big : tensor<64xi1>\n"
            "      scf.yield %%b, %%w, %%l, %%any : tensor<64xf32>, tensor<64x!tt.ptr<f32>>, i32, "
            "tensor<64xi1>\n    }\n",
            c, c, c, c);
        lilac_text_puts(&text,
                        "    %f = arith.sitofp %e#2 : i32 to f32\n"
                        "    %sf = tt.splat %f : f32 -> tensor<64xf32>\n"
                        "    %both = arith.addf %e#0, %sf : tensor<64xf32>\n"
                        "    %y = arith.select %e#3, %zero, %both : tensor<64xi1>, tensor<64xf32>\n"
                        "    %so = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
                        "    %po = tt.addptr %so, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
                        "    tt.store %po, %y : tensor<64x!tt.ptr<f32>>\n"
                        "    tt.return\n  }\n}\n");
        static const int64_t bounds[] = {0, 1, 2, 7, 10};
        for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
            harness h;
            harness_open(&h, lilac_text_get(&text), 2, true);
            float x[64 * 5], o[64];
            for (int i = 0; i < 64 * 5; i++) {
                x[i] = (float)(i * 3 % 1000);
            }
            buffer buffers[] = {{x, sizeof x}, {o, sizeof o}};
            int64_t scalars[] = {bounds[k], 64};
            harness_run(&h, 1, buffers, 2, scalars, 2);
            for (int i = 0; i < 64; i++) {
                float sum = 0;
                bool big = false;
                int64_t iterations = (bounds[k] + 1) / 2;
                for (int64_t j = 0; j < iterations; j++) {
                    sum += x[j * 64 + i];
                    big |= x[j * 64 + i] > 900.0F;
                }
                float want = big ? 0.0F : sum + (float)iterations;
                assert_true(o[i] == want);
            }
            harness_close(&h);
        }
        lilac_text_clear(&text);
    }
}

/* 4096 pointers over 128 threads advance as one 64-bit value, and accesses stay vectors. */
static void pointers_advance_as_one(void **state) {
    (void)state;
    harness h;
    harness_open(
        &h,
        "module {\n  tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: "
        "!tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %d: i32 {tt.divisibility = 16 : "
        "i32}) {\n"
        "    %zero = arith.constant dense<0.0> : tensor<4096xf16>\n"
        "    %from = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
        "    %back = arith.constant dense<16> : tensor<4096xi32>\n"
        "    %r = tt.make_range {end = 4096 : i32, start = 0 : i32} : tensor<4096xi32>\n"
        "    %s = tt.splat %x : !tt.ptr<f16> -> tensor<4096x!tt.ptr<f16>>\n"
        "    %p = tt.addptr %s, %r : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>\n"
        "    %e:3 = scf.for %i = %from to %n step %one iter_args(%a = %zero, %q = %p, %k = %r) -> "
        "(tensor<4096xf16>, tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>)  : i32 {\n"
        "      %v = tt.load %q : tensor<4096x!tt.ptr<f16>>\n"
        "      %b = arith.addf %a, %v : tensor<4096xf16>\n"
        "      %sd = tt.splat %d : i32 -> tensor<4096xi32>\n"
        "      %t = tt.addptr %q, %sd : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>\n"
        "      %u = tt.addptr %t, %sd : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>\n"
        "      %w = tt.addptr %u, %back : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>\n"
        "      %m = arith.subi %k, %back : tensor<4096xi32>\n"
        "      scf.yield %b, %w, %m : tensor<4096xf16>, tensor<4096x!tt.ptr<f16>>, "
        "tensor<4096xi32>\n    }\n"
        "    %g = arith.sitofp %e#2 : tensor<4096xi32> to tensor<4096xf16>\n"
        "    %y = arith.addf %e#0, %g : tensor<4096xf16>\n"
        "    %so = tt.splat %o : !tt.ptr<f16> -> tensor<4096x!tt.ptr<f16>>\n"
        "    %po = tt.addptr %so, %r : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>\n"
        "    tt.store %po, %y : tensor<4096x!tt.ptr<f16>>\n"
        "    tt.return\n  }\n}\n",
        4, true);
    enum { ROW = 2 * 32 + 16, ROWS = 3 };
    static uint16_t x[4096 + ROW * ROWS], o[4096];
    for (uint32_t i = 0; i < 4096 + ROW * ROWS; i++) {
        x[i] =
            (uint16_t)lilac_scalar_encode(LILAC_F16, i * 7 % 100, LILAC_ROUND_NEAREST_EVEN, false);
    }
    buffer buffers[] = {{x, sizeof x}, {o, sizeof o}};
    int64_t scalars[] = {ROWS, 32};
    harness_run(&h, 1, buffers, 2, scalars, 2);
    for (uint32_t i = 0; i < 4096; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < ROWS; k++) {
            sum += (i + ROW * k) * 7 % 100;
        }
        uint64_t last =
            lilac_scalar_encode(LILAC_F16, (double)i - 16 * ROWS, LILAC_ROUND_NEAREST_EVEN, false);
        double want = sum + lilac_scalar_decode(LILAC_F16, last);
        assert_int_equal(o[i],
                         lilac_scalar_encode(LILAC_F16, want, LILAC_ROUND_NEAREST_EVEN, false));
    }
    /* 32 sums, one pointer, one offset. */
    const lilac_simt_instruction *loop = h.simt->kernels->body->first;
    while (loop != NULL && loop->code != LILAC_SIMT_OP_LOOP) {
        loop = loop->next;
    }
    assert_non_null(loop);
    assert_int_equal(loop->result_count, 32 + 1 + 1);
    assert_int_equal(h.counters.access_bits[4], h.counters.global_loads + h.counters.global_stores);
    harness_close(&h);
}

static void conditionals(void **state) {
    (void)state;
    harness h;
    harness_open(&h,
                 "module {\n  tt.func public @k(%o: !tt.ptr<i32>, %n: i32) {\n"
                 "    %five = arith.constant 5 : i32\n    %seven = arith.constant 7 : i32\n"
                 "    %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>\n"
                 "    %c = arith.cmpi sgt, %n, %five : i32\n"
                 "    %d = arith.cmpi sgt, %n, %seven : i32\n"
                 "    %s = tt.splat %o : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>\n"
                 "    %p = tt.addptr %s, %r : tensor<32x!tt.ptr<i32>>, tensor<32xi32>\n"
                 "    %v:2 = scf.if %c -> (tensor<32xi32>, i32) {\n"
                 "      %w = arith.addi %r, %r : tensor<32xi32>\n"
                 "      %i = scf.if %d -> (i32) {\n        scf.yield %seven : i32\n"
                 "      } else {\n        scf.yield %n : i32\n      }\n"
                 "      scf.yield %w, %i : tensor<32xi32>, i32\n"
                 "    } else {\n      scf.yield %r, %five : tensor<32xi32>, i32\n    }\n"
                 "    %sv = tt.splat %v#1 : i32 -> tensor<32xi32>\n"
                 "    %y = arith.addi %v#0, %sv : tensor<32xi32>\n"
                 "    tt.store %p, %y : tensor<32x!tt.ptr<i32>>\n"
                 "    scf.if %d {\n      tt.store %p, %r : tensor<32x!tt.ptr<i32>>\n    }\n"
                 "    tt.return\n  }\n}\n",
                 1, true);
    for (int n = 4; n < 10; n++) {
        int32_t o[32] = {0};
        buffer buffers[] = {{o, sizeof o}};
        int64_t scalars[] = {n};
        harness_run(&h, 1, buffers, 1, scalars, 1);
        for (int i = 0; i < 32; i++) {
            int want = n > 7 ? i : n > 5 ? 2 * i + n : i + 5;
            assert_int_equal(o[i], want);
        }
    }
    harness_close(&h);
}

/* Newton's integer square root by scf.while, and a count of its steps. */
static void whiles(void **state) {
    (void)state;
    harness h;
    harness_open(&h,
                 "module {\n  tt.func public @k(%o: !tt.ptr<i32>, %n: i32) {\n"
                 "    %one = arith.constant 1 : i32\n    %two = arith.constant 2 : i32\n"
                 "    %v:2 = scf.while (%x = %n, %k = %one) : (i32, i32) -> (i32, i32) {\n"
                 "      %q = arith.muli %x, %x : i32\n"
                 "      %c = arith.cmpi sgt, %q, %n : i32\n"
                 "      scf.condition(%c) %x, %k : i32, i32\n"
                 "    } do {\n    ^bb0(%x: i32, %k: i32):\n"
                 "      %d = arith.divsi %n, %x : i32\n"
                 "      %s = arith.addi %x, %d : i32\n"
                 "      %h = arith.divsi %s, %two : i32\n"
                 "      %l = arith.addi %k, %one : i32\n"
                 "      scf.yield %h, %l : i32, i32\n    }\n"
                 "    tt.store %o, %v#0 : !tt.ptr<i32>\n"
                 "    %p = tt.addptr %o, %one : !tt.ptr<i32>, i32\n"
                 "    tt.store %p, %v#1 : !tt.ptr<i32>\n"
                 "    tt.return\n  }\n}\n",
                 4, true);
    for (int n = 1; n < 200; n += 13) {
        int32_t o[2] = {0};
        buffer buffers[] = {{o, sizeof o}};
        int64_t scalars[] = {n};
        harness_run(&h, 1, buffers, 1, scalars, 1);
        int x = n, steps = 1;
        while (x * x > n) {
            x = (x + n / x) / 2;
            steps++;
        }
        assert_int_equal(o[0], x);
        assert_int_equal(o[1], steps);
    }
    harness_close(&h);
}

static void assertions(void **state) {
    (void)state;
    harness h;
    harness_open(&h,
                 "module {\n  tt.func public @k(%n: i32) {\n"
                 "    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
                 "    %s = tt.splat %n : i32 -> tensor<64xi32>\n"
                 "    %c = arith.cmpi slt, %r, %s : tensor<64xi32>\n"
                 "    tt.assert %c, \"too far\" : tensor<64xi1>\n"
                 "    gpu.barrier\n"
                 "    tt.return\n  }\n}\n",
                 4, true);
    for (int n = 63; n < 66; n++) {
        uint64_t argument = (uint64_t)n;
        lilac_sim_launch launch = {.kernel = h.simt->kernels,
                                   .grid = {1, 1, 1},
                                   .arguments = &argument,
                                   .argument_count = 1,
                                   .threads = 1};
        assert_int_equal(lilac_sim_run(h.context, &launch, &h.counters), n >= 64);
    }
    assert_int_equal(count_text(lilac_text_get(&h.text), "barrier"), 1);
    assert_int_equal(count_text(lilac_text_get(&h.text), "too far"), 1);
    harness_close(&h);
}

static void places_of_programs(void **state) {
    (void)state;
    harness h;
    harness_open(&h,
                 "module {\n  tt.func public @k(%o: !tt.ptr<i32>) {\n"
                 "    %x = tt.get_program_id x : i32\n    %y = tt.get_program_id y : i32\n"
                 "    %z = tt.get_program_id z : i32\n    %n = tt.get_num_programs x : i32\n"
                 "    %m = tt.get_num_programs y : i32\n"
                 "    %a = arith.muli %z, %m : i32\n    %b = arith.addi %a, %y : i32\n"
                 "    %c = arith.muli %b, %n : i32\n    %i = arith.addi %c, %x : i32\n"
                 "    %p = tt.addptr %o, %i : !tt.ptr<i32>, i32\n"
                 "    tt.store %p, %i : !tt.ptr<i32>\n"
                 "    tt.return\n  }\n}\n",
                 1, true);
    uint8_t bytes[2 * 3 * 4 * 4];
    lilac_sim_buffer place = {.name = "o", .bytes = bytes, .size = sizeof bytes};
    lilac_sim_place(&place, 1);
    lilac_sim_launch launch = {.kernel = h.simt->kernels,
                               .grid = {2, 3, 4},
                               .arguments = &place.address,
                               .argument_count = 1,
                               .buffers = &place,
                               .buffer_count = 1,
                               .threads = 1};
    assert_true(lilac_sim_run(h.context, &launch, &h.counters));
    for (uint32_t i = 0; i < 24; i++) {
        assert_int_equal(get_element(bytes, LILAC_I32, i), i);
    }
    harness_close(&h);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void refusals(void **state) {
    (void)state;
#define HEAD "module {\n  tt.func public @k(%p: !tt.ptr<f32>, %f: f64, %n: i32) {\n"
#define TAIL "    tt.return\n  }\n}\n"
#define ROW                                                                                        \
    "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
#define WIDE                                                                                       \
    "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
    static const struct {
        const char *id, *text, *words;
        bool engine;
    } cases[] = {
        {"unsupported-operation",
         HEAD "    %x = tt.elementwise_inline_asm \"mov.b128 $0, $1;\" {constraints = \"=r,q\", "
              "packed_element = 1 : i32, pure = true} %n : i32 -> i32\n"
              "    %y = arith.sitofp %x : i32 to f32\n    tt.store %p, %y : !tt.ptr<f32>\n" TAIL,
         "constraint 'q'", true},
        {"unsupported-type",
         "module {\n  tt.func public @k(%p: !tt.ptr<i8>, %f: i8, %m: i1) {\n"
         "    %y = tt.atomic_rmw add, relaxed, gpu, %p, %f, %m : (!tt.ptr<i8>, i8, i1) -> "
         "i8\n" TAIL,
         "(add) on elements of type i8", true},
        {"unsupported-type",
         "module {\n  tt.func public @k(%p: !tt.ptr<i32>, %f: i128) {\n"
         "    %y = arith.trunci %f : i128 to i32\n    tt.store %p, %y : !tt.ptr<i32>\n" TAIL,
         "i128", true},
        {"layout-conversion",
         "#a = " ROW "\n#b = " WIDE "\n" HEAD
         "    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #a>\n"
         "    %c = ttg.convert_layout %r {lilac.movement = \"shuffles\"} : tensor<512xi32, #a> -> "
         "tensor<512xi32, #b>\n"
         "    %g = arith.sitofp %c : tensor<512xi32, #b> to tensor<512xf32, #b>\n"
         "    %s = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b>\n"
         "    tt.store %s, %g : tensor<512x!tt.ptr<f32>, #b>\n" TAIL,
         "ttg.convert_layout", false},
        {"unsupported-type",
         "#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order "
         "= [0]}>\n" HEAD "    %v = arith.constant dense<0.0> : tensor<512xf32, #a>\n"
         "    %s = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #a>\n"
         "    tt.store %s, %v : tensor<512x!tt.ptr<f32>, #a>\n" TAIL,
         "8 warps", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        harness h;
        bool taken = harness_try(&h, cases[i].text, 4, cases[i].engine, NULL);
        const lilac_diagnostic *d = lilac_diagnostics(h.context);
        if (taken || d == NULL || strcmp(d->id, cases[i].id) != 0 ||
            strstr(d->message, cases[i].words) == NULL) {
            print_diagnostics(h.context);
            fail_msg("case %zu", i);
        }
        assert_true(d->position.source != 0 && d->position.offset > 0);
        assert_int_equal(lilac_error_count(h.context), 1);
        harness_close(&h);
    }
}

/* ---- rows of any distance ---------------------------------------------------------------- */

/* y[r, c] = x[(s + r) d + c]: one product, and a step from row to row; also where it all wraps:
 * four bytes times 2^62 + 20 are 80. */
static void rows_are_steps(void **state) {
    (void)state;
    static const char kernel[] =
        "module {\n  tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %s: i64, %d: i64) {\n"
        "%r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>\n"
        "%w = arith.extsi %r : tensor<16xi32> to tensor<16xi64>\n"
        "%ss = tt.splat %s : i64 -> tensor<16xi64>\n"
        "%a = arith.addi %ss, %w : tensor<16xi64>\n"
        "%ae = tt.expand_dims %a {axis = 1 : i32} : tensor<16xi64> -> tensor<16x1xi64>\n"
        "%ds = tt.splat %d : i64 -> tensor<16x1xi64>\n"
        "%m = arith.muli %ae, %ds : tensor<16x1xi64>\n"
        "%c = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
        "%ce = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>\n"
        "%cb = tt.broadcast %ce : tensor<1x128xi32> -> tensor<16x128xi32>\n"
        "%xs = tt.splat %x : !tt.ptr<i32> -> tensor<16x1x!tt.ptr<i32>>\n"
        "%p = tt.addptr %xs, %m : tensor<16x1x!tt.ptr<i32>>, tensor<16x1xi64>\n"
        "%pb = tt.broadcast %p : tensor<16x1x!tt.ptr<i32>> -> tensor<16x128x!tt.ptr<i32>>\n"
        "%pc = tt.addptr %pb, %cb : tensor<16x128x!tt.ptr<i32>>, tensor<16x128xi32>\n"
        "%v = tt.load %pc : tensor<16x128x!tt.ptr<i32>>\n"
        "%k = arith.constant dense<128> : tensor<16x1xi64>\n"
        "%we = tt.expand_dims %w {axis = 1 : i32} : tensor<16xi64> -> tensor<16x1xi64>\n"
        "%o = arith.muli %we, %k : tensor<16x1xi64>\n"
        "%ob = tt.broadcast %o : tensor<16x1xi64> -> tensor<16x128xi64>\n"
        "%ys = tt.splat %y : !tt.ptr<i32> -> tensor<16x128x!tt.ptr<i32>>\n"
        "%q = tt.addptr %ys, %ob : tensor<16x128x!tt.ptr<i32>>, tensor<16x128xi64>\n"
        "%qc = tt.addptr %q, %cb : tensor<16x128x!tt.ptr<i32>>, tensor<16x128xi32>\n"
        "tt.store %qc, %v : tensor<16x128x!tt.ptr<i32>>\ntt.return\n}\n}\n";
    static const int64_t distances[] = {200, ((int64_t)1 << 62) + 20, -60};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        static int32_t x[16384], y[16 * 128];
        harness h;
        harness_open(&h, kernel, 4, true);
        /* the first row's alone */
        assert_int_equal(count_text(lilac_text_get(&h.text), "= mul %"), 1);
        for (int32_t k = 0; k < 16384; k++) {
            x[k] = k;
        }
        const buffer buffers[] = {{x, sizeof x}, {y, sizeof y}};
        int64_t first = distances[i] < 0 ? -20 : 3, distance = distances[i] < 0 ? -60 : 20;
        distance = distances[i] == 200 ? 200 : distance;
        const int64_t scalars[] = {first, distances[i]};
        harness_run(&h, 1, buffers, 2, scalars, 2);
        for (int64_t r = 0; r < 16; r++) {
            for (int64_t c = 0; c < 128; c++) {
                assert_int_equal(y[r * 128 + c], (first + r) * distance + c);
            }
        }
        harness_close(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_copies),
        cmocka_unit_test(rows_are_steps),
        cmocka_unit_test(access_widths),
        cmocka_unit_test(addresses_are_immediates),
        cmocka_unit_test(stores_go_along_rows),
        cmocka_unit_test(modifiers),
        cmocka_unit_test(copies_store_once),
        cmocka_unit_test(shape_operations),
        cmocka_unit_test(dense_constants),
        cmocka_unit_test(offsets_wrap),
        cmocka_unit_test(loops),
        cmocka_unit_test(pointers_advance_as_one),
        cmocka_unit_test(conditionals),
        cmocka_unit_test(whiles),
        cmocka_unit_test(assertions),
        cmocka_unit_test(places_of_programs),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
