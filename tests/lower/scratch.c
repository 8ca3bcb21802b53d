/* lower: scratch memory that reductions use again lies in the block's memory; separate bytes of
 * exchanges do not cost the second resident block, and those in front of a loop none; all fit in the device's. */
#include "support/lower_harness.h"

#define LAYOUTS                                                                                    \
    "#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], "           \
    "order = [0]}>\n"                                                                              \
    "#b = #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [2], "          \
    "order = [0]}>\n"                                                                              \
    "#r = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [1, 32], "                        \
    "warpsPerCTA = [1, 2], order = [1, 0]}>\n"                                                     \
    "#s = #ttg.slice<{dim = 1, parent = #r}>\n"
/* %<to>: pointers to COUNT elements of %<of>, from FROM on. */
#define PLACES(to, of, count, from, layout)                                                        \
    "%" to "r = tt.make_range {start = 0 : i32, end = " count " : i32} : tensor<" count            \
    "xi32, " layout ">\n"                                                                          \
    "%" to "f = arith.constant dense<" from "> : tensor<" count "xi32, " layout ">\n"              \
    "%" to "i = arith.addi %" to "r, %" to "f : tensor<" count "xi32, " layout ">\n"               \
    "%" to "s = tt.splat %" of " : !tt.ptr<i32> -> tensor<" count "x!tt.ptr<i32>, " layout ">\n"   \
    "%" to " = tt.addptr %" to "s, %" to "i : tensor<" count "x!tt.ptr<i32>, " layout              \
    ">, tensor<" count "xi32, " layout ">\n"
/* COUNT elements of x, moved from #a to #b, to where they are in o. */
#define MOVE(n, count, from)                                                                       \
    PLACES("x" n, "x", count, from, "#a")                                                          \
    PLACES("o" n, "o", count, from, "#b")                                                          \
    "%v" n " = tt.load %x" n " : tensor<" count "x!tt.ptr<i32>, #a>\n"                             \
    "%m" n " = ttg.convert_layout %v" n " : tensor<" count "xi32, #a> -> tensor<" count            \
    "xi32, #b>\n"                                                                                  \
    "tt.store %o" n ", %m" n " : tensor<" count "x!tt.ptr<i32>, #b>\n"
#define SUM(to, from, axis, type, result)                                                          \
    "%" to " = \"tt.reduce\"(%" from ") <{axis = " axis " : i32}> ({\n^bb0(%a0: i32, %a1: i32):\n" \
    "%a2 = arith.addi %a0, %a1 : i32\ntt.reduce.return %a2 : i32\n}) : (" type ") -> " result "\n"

enum { MOVED = 1024 + 512 + 1024 };

/* Two exchanges, the partial results of two warps behind them (8 bytes), an exchange that begins in
 * front again, and twice as many partial results where the first ones were. */
static void larger_partials_than_before(void **state) {
    (void)state;
    static const char text[] = LAYOUTS
        "module attributes {\"ttg.num-warps\" = 2 : i32} {\n"
        "tt.func public @k(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>, %s: !tt.ptr<i32>) {\n" MOVE(
            "0", "1024", "0") MOVE("1", "512", "1024")
            SUM("one", "x1r", "0", "tensor<512xi32, #a>",
                "i32") "tt.store %s, %one : "
                       "!tt.ptr<i32>\n" MOVE(
                           "2", "1024",
                           "1536") "%c = tt.make_range {start = 0 : i32, end = 64 : i32} : "
                                   "tensor<64xi32, "
                                   "#ttg.slice<{dim = 0, parent = #r}>>\n"
                                   "%e = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, "
                                   "#ttg.slice<{dim = 0, "
                                   "parent = #r}>> -> tensor<1x64xi32, #r>\n"
                                   "%h = tt.broadcast %e : tensor<1x64xi32, #r> -> "
                                   "tensor<2x64xi32, #r>\n" SUM(
                                       "two", "h", "1", "tensor<2x64xi32, #r>", "tensor<2xi32, #s>")
                                       PLACES("z", "s", "2", "1", "#s") "tt.store %z, %two : "
                                                                        "tensor<2x!tt.ptr<i32>, "
                                                                        "#s>\ntt.return\n}\n}\n";
    static int32_t x[MOVED], o[MOVED], sums[3];
    for (int32_t i = 0; i < MOVED; i++) {
        x[i] = 7 * i + 1;
    }
    harness h;
    harness_open(&h, text, 2, false);
    const buffer buffers[] = {{x, sizeof x}, {o, sizeof o}, {sums, sizeof sums}};
    harness_run(&h, 1, buffers, 3, NULL, 0);
    assert_memory_equal(x, o, sizeof x);
    assert_int_equal(sums[0], 511 * 512 / 2);
    assert_int_equal(sums[1], 63 * 64 / 2);
    assert_int_equal(sums[2], 63 * 64 / 2);
    harness_close(&h);
}

enum { TILE = 4096, ITERATIONS = 3, MEMORIES = 3 };

/* Two conversions of TILE elements in a loop, while memories of these numbers of elements (0: none) are
 * allocated. `before`: two more in front of the loop, in which the elements of the first tile lose
 * nothing. */
static void generate_loop(lilac_text *out, const uint32_t *sizes, bool before) {
    static const char layouts[] =
        "#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], "
        "order = [0]}>\n"
        "#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], "
        "order = [0]}>\n"
        "#c = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
        "#smem = #ttg.shared_memory\n"
        "module attributes {\"ttg.num-warps\" = 4 : i32} {\n"
        "tt.func public @k(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>, %n: i32) {\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n";
    static const char loop[] =
        "scf.for %i = %c0 to %n step %c1 : i32 {\n"
        "%k = arith.constant 4096 : i32\n%p = arith.muli %i, %k : i32\n"
        "%at = tt.addptr %x, %p : !tt.ptr<i32>, i32\n"
        "%to = tt.addptr %o, %p : !tt.ptr<i32>, i32\n"
        "%r = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32, #a>\n"
        "%xs = tt.splat %at : !tt.ptr<i32> -> tensor<4096x!tt.ptr<i32>, #a>\n"
        "%xp = tt.addptr %xs, %r : tensor<4096x!tt.ptr<i32>, #a>, tensor<4096xi32, #a>\n"
        "%os = tt.splat %to : !tt.ptr<i32> -> tensor<4096x!tt.ptr<i32>, #a>\n"
        "%op = tt.addptr %os, %r : tensor<4096x!tt.ptr<i32>, #a>, tensor<4096xi32, #a>\n"
        "%v = tt.load %xp : tensor<4096x!tt.ptr<i32>, #a>\n"
        "%f = ttg.convert_layout %v : tensor<4096xi32, #a> -> tensor<4096xi32, #b>\n"
        "%q = arith.muli %f, %f : tensor<4096xi32, #b>\n"
        "%g = ttg.convert_layout %q : tensor<4096xi32, #b> -> tensor<4096xi32, #a>\n"
        "tt.store %op, %g : tensor<4096x!tt.ptr<i32>, #a>\n";
    lilac_text_puts(out, layouts);
    for (uint32_t i = 0; i < MEMORIES && sizes[i] != 0; i++) {
        lilac_text_printf(out,
                          "%%m%u = ttg.local_alloc : () -> "
                          "!ttg.memdesc<%uxi32, #c, #smem, mutable>\n",
                          i, sizes[i]);
    }
    if (before) {
        lilac_text_puts(out, "%u = tt.make_range {start = 0 : i32, end = 4096 : i32} : "
                             "tensor<4096xi32, #a>\n"
                             "%us = tt.splat %x : !tt.ptr<i32> -> tensor<4096x!tt.ptr<i32>, #a>\n"
                             "%up = tt.addptr %us, %u : tensor<4096x!tt.ptr<i32>, #a>, "
                             "tensor<4096xi32, #a>\n"
                             "%uv = tt.load %up : tensor<4096x!tt.ptr<i32>, #a>\n"
                             "%uw = ttg.convert_layout %uv : tensor<4096xi32, #a> -> "
                             "tensor<4096xi32, #b>\n"
                             "%ux = arith.addi %uw, %uw : tensor<4096xi32, #b>\n"
                             "%uy = arith.subi %ux, %uw : tensor<4096xi32, #b>\n"
                             "%uz = ttg.convert_layout %uy : tensor<4096xi32, #b> -> "
                             "tensor<4096xi32, #a>\n"
                             "tt.store %up, %uz : tensor<4096x!tt.ptr<i32>, #a>\n");
    }
    lilac_text_puts(out, loop);
    for (uint32_t i = 0; i < MEMORIES && sizes[i] != 0; i++) {
        lilac_text_printf(out,
                          "%%w%u = arith.constant dense<7> : tensor<%uxi32, #a>\n"
                          "ttg.local_store %%w%u, %%m%u : tensor<%uxi32, #a> -> "
                          "!ttg.memdesc<%uxi32, #c, #smem, mutable>\n",
                          i, sizes[i], i, i, sizes[i], sizes[i]);
    }
    lilac_text_puts(out, "}\ntt.return\n}\n}\n");
}

/* Separate bytes for both, unless they cost the second resident block or are more than the device has; those in
 * front of the loop share bytes with those in it where separate ones cost one of several. */
static void blocks_before_separate_bytes(void **state) {
    (void)state;
    static const struct {
        uint32_t sizes[MEMORIES];
        bool before;
        uint32_t bytes;
    } cases[] = {{{4096, 4096}, false, 4 * (8192 + 2 * TILE)},
                 {{4096, 4096}, true, 4 * (8192 + 2 * TILE)},
                 {{16384, 8192}, false, 4 * (24576 + TILE)},
                 {{16384, 16384}, false, 4 * (32768 + 2 * TILE)},
                 {{32768, 16384, 4096}, false, 4 * (53248 + TILE)}};
    static uint32_t x[ITERATIONS * TILE], o[ITERATIONS * TILE];
    for (uint32_t i = 0; i < ITERATIONS * TILE; i++) {
        x[i] = 2654435761U * i;
    }
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        lilac_text text = {0};
        generate_loop(&text, cases[c].sizes, cases[c].before);
        harness h;
        memset(o, 0, sizeof o);
        harness_open(&h, lilac_text_get(&text), 4, false);
        assert_int_equal(h.simt->kernels->shared_bytes, cases[c].bytes);
        const buffer buffers[] = {{x, sizeof x}, {o, sizeof o}};
        harness_run(&h, 1, buffers, 2, (const int64_t[]){ITERATIONS}, 1);
        for (uint32_t i = 0; i < ITERATIONS * TILE; i++) {
            assert_int_equal(o[i], x[i] * x[i]);
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(larger_partials_than_before),
                                       cmocka_unit_test(blocks_before_separate_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
