/* Bulk and tensor loads, tensor stores and reductions on the simulator.
 *
 * A ring of two buffers filled by tensor loads one tile ahead, with mbarriers, is right, and each mutation
 * of it is reported. Random boxes are compared with a model of the walk over the box. Then single rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random_generator.h"
#include "support/text_rig.h"

/* ---- a pipeline ------------------------------------------------------------------------------ */

/* Tile i is rows 8i … 8i + 7 of a tensor of 64 columns of f16, swizzled: 1024 bytes in buffer i % 2 at
 * 1024 + 1024 · (i % 2). Its mbarriers: full at 0 and 8, empty at 16 and 24. Every thread of two warps adds
 * the words of its column of chunks. */
enum { TILES = 5, ROWS = 8, COLUMNS = 64, TILE = ROWS * COLUMNS * 2 };

#define HEAD "kernel @k(%m: i64 tensor_map, %out: i64 ptr) warps 2 ctas 1 shared 4096"
#define VALUES                                                                                     \
    "%base = shared_base : i32\n%m = param 0 : i64\n%out = param 1 : i64\n%t = thread : i32\n"     \
    "%zero = const 0 : i32\n%one = const 1 : i32\n%two = const 2 : i32\n%four = const 4 : i32\n"   \
    "%eight = const 8 : i32\n%tiles = const 5 : i32\n%size = const 1024 : i32\n"                   \
    "%wrong = const 1040 : i32\n%less = const 1008 : i32\n%count = const 64 : i32\n"               \
    "%first = cmp eq %t, %zero : i1\n%quarter = mul %t, %four : i32\n"
#define FILL(tile)                                                                                 \
    "mbarrier.expect [%full_" tile "], %go_" tile ", (%size)\n"                                    \
    "cp.tensor.load [%buffer_" tile " + 1024], %go_" tile ", (%m, %zero, %row_" tile               \
    ", %full_" tile ")\n"
#define PLACES(tile)                                                                               \
    "%ring_" tile " = rem_u %" tile ", %two : i32\n"                                               \
    "%full_" tile " = mul %ring_" tile ", %eight : i32\n"                                          \
    "%buffer_" tile " = mul %ring_" tile ", %size : i32\n"                                         \
    "%row_" tile " = mul %" tile ", %eight : i32\n"
#define PIPELINE                                                                                   \
    "mbarrier.init [%base], %first, (%one)\n"                                                      \
    "mbarrier.init [%base + 8], %first, (%one)\n"                                                  \
    "mbarrier.init [%base + 16], %first, (%count)\n"                                               \
    "mbarrier.init [%base + 24], %first, (%count)\n"                                               \
    "fence.mbarrier_init\n"                                                                        \
    "barrier {shared}\n"                                                                           \
    "%go_zero = and %first, %first : i1\n" PLACES("zero")                                          \
        FILL("zero") "%sum = loop %i = %zero to %tiles step %one (%s = %zero) : i32 {\n" PLACES(   \
            "i") "%half = div_u %i, %two : i32\n"                                                  \
                 "%parity = rem_u %half, %two : i32\n"                                             \
                 "%n = add %i, %one : i32\n" PLACES(                                               \
                     "n") "%more = cmp lt %n, %tiles : i1\n"                                       \
                          "%go_n = and %more, %first : i1\n"                                       \
                          "%half_n = div_u %n, %two : i32\n"                                       \
                          "%odd = add %half_n, %one : i32\n"                                       \
                          "%empty = rem_u %odd, %two : i32\n"                                      \
                          "mbarrier.wait [%full_n + 16], (%empty)\n" FILL(                         \
                              "n") "mbarrier.wait [%full_i], (%parity)\n"                          \
                                   "%at = add %buffer_i, %quarter : i32\n"                         \
                                   "%word = ld.shared [%at + 1024] : i32\n"                        \
                                   "%next = add %s, %word : i32\n"                                 \
                                   "mbarrier.arrive [%full_i + 16]\n"                              \
                                   "yield %next\n}\n"                                              \
                                   "%wide = zext %quarter : i64\n%place = add %out, %wide : i64\n" \
                                   "st.global [%place], (%sum)\n"

static uint16_t tensor[TILES * ROWS][COLUMNS];
static uint32_t out[64];

static lilac_tensor_map pipeline_map(void) {
    return (lilac_tensor_map){.element = LILAC_TENSOR_F16,
                              .rank = 2,
                              .dims = {COLUMNS, TILES * ROWS},
                              .strides = {sizeof *tensor},
                              .box = {COLUMNS, ROWS},
                              .element_strides = {1, 1},
                              .swizzle = LILAC_TENSOR_SWIZZLE_128};
}

/* Runs the text with a line replaced. */
static bool run_pipeline(text_rig *r, const char *from, const char *to) {
    static lilac_tensor_map map;
    static uint64_t arguments[2];
    char *body = from ? replaced(PIPELINE, from, to) : replaced(PIPELINE, "barrier", "barrier");
    text_open(r, HEAD, VALUES, body, NULL);
    free(body);
    for (uint32_t k = 0; k < TILES * ROWS * COLUMNS; k++)
        tensor[k / COLUMNS][k % COLUMNS] = (uint16_t)(k * 40503u >> 3);
    simt_text_give(&r->t, "tensor", tensor, sizeof tensor);
    simt_text_give(&r->t, "out", out, sizeof out);
    lilac_sim_place(r->t.buffers, 2);
    map = pipeline_map();
    map.address = r->t.buffers[0].address;
    arguments[0] = 0;
    arguments[1] = r->t.buffers[1].address;
    r->t.launch.tensor_maps = &map;
    r->t.launch.tensor_map_count = 1;
    r->t.launch.arguments = arguments;
    r->t.launch.argument_count = 2;
    return lilac_sim_run(r->t.context, &r->t.launch, &r->t.counters);
}

static void a_pipeline_is_right(void **state) {
    (void)state;
    text_rig r;
    if (!run_pipeline(&r, NULL, NULL))
        text_fail(&r, "a trap");
    expect_nothing(&r);
    assert_int_equal(r.t.counters.bulk_copies, TILES);
    assert_int_equal(r.t.counters.bulk_bytes, TILES * TILE);
    for (uint32_t t = 0; t < 64; t++) {
        uint32_t sum = 0, row = t / 32, chunk = t / 4 % 8 ^ row;
        for (uint32_t tile = 0; tile < TILES; tile++) {
            const uint16_t *pair = &tensor[tile * ROWS + row][8 * chunk + 2 * (t % 4)];
            sum += pair[0] | (uint32_t)pair[1] << 16;
        }
        assert_int_equal(out[t], sum);
    }
    text_close(&r);
}

static void mutations_are_found(void **state) {
    static const mutation cases[] = {
        {"(%size)\ncp.tensor.load [%buffer_n", "(%wrong)\ncp.tensor.load [%buffer_n", "deadlock",
         "mbarrier.wait [%full_i]", "cp.tensor.load [%buffer_n"},
        {"(%size)\ncp.tensor.load [%buffer_n", "(%less)\ncp.tensor.load [%buffer_n",
         "mbarrier-bytes", "cp.tensor.load [%buffer_n", NULL},
        {"[%buffer_n + 1024]", "[%buffer_n + 1536]", "swizzle-base", "cp.tensor.load [%buffer_n",
         NULL},
        {"[%buffer_n + 1024]", "[%buffer_n + 1088]", "misaligned-access",
         "cp.tensor.load [%buffer_n", NULL},
        {"mbarrier.wait [%full_i], (%parity)\n", "", "copy-in-flight", "ld.shared",
         "cp.tensor.load"},
        {"mbarrier.wait [%full_n + 16], (%empty)\n", "", "shared-race", "cp.tensor.load [%buffer_n",
         "ld.shared"},
        {"mbarrier.arrive [%full_i + 16]\n", "", "deadlock", "mbarrier.wait [%full_n + 16]",
         "mbarrier.init [%base + 16]"},
        {"%word = ld.shared", "st.shared [%at + 1024], (%zero)\n%word = ld.shared",
         "missing-proxy-fence", "cp.tensor.load [%buffer_n", "st.shared"},
        {"(%m, %zero, %row_n, %full_n)", "(%m, %zero, %row_n, %full_n) {mbarrier = 32}",
         "mbarrier-missing", "cp.tensor.load [%buffer_n", NULL},
        {"(%parity)", "(%empty)", "copy-in-flight", "ld.shared", "cp.tensor.load"},
        {"barrier {shared}\n", "", "shared-race", "mbarrier", "mbarrier.init"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        (void)run_pipeline(&r, cases[k].from, cases[k].to);
        expect_finding(&r, cases[k].id, cases[k].at, cases[k].other);
        text_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_is_right),
        cmocka_unit_test(mutations_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
