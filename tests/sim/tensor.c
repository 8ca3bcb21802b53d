/* Bulk and tensor loads, tensor stores and reductions on the simulator.
 *
 * A ring of two buffers filled by tensor loads one tile ahead, with mbarriers, is right, and each
 * mutation of it is reported. Random boxes are compared with a model of the walk over the box.
 * Then single rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random_boxes.h"
#include "support/tensor_rig.h"

/* ---- a pipeline ------------------------------------------------------------------------------ */

/* Tile i is rows 8i … 8i + 7 of a tensor of 64 columns of f16, swizzled: 1024 bytes in buffer i %
 * 2 at 1024 + 1024 · (i % 2). Its mbarriers: full at 0 and 8, empty at 16 and 24. Every thread of
 * two warps adds the words of its column of chunks. */
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
    char *body = from ? replaced(PIPELINE, from, to) : replaced(PIPELINE, "barrier", "barrier");
    text_open(r, HEAD, VALUES, body, NULL);
    free(body);
    for (uint32_t k = 0; k < TILES * ROWS * COLUMNS; k++) {
        tensor[k / COLUMNS][k % COLUMNS] = (uint16_t)(k * 40503u >> 3);
    }
    map = pipeline_map();
    return tensor_rig_run(r, &map, (tensor_rig_memory){"tensor", tensor, sizeof tensor},
                          (tensor_rig_memory){"out", out, sizeof out});
}

static void check_sums(const text_rig *r) {
    expect_nothing(r);
    assert_int_equal(r->t.counters.bulk_copies, TILES);
    assert_int_equal(r->t.counters.bulk_bytes, TILES * TILE);
    for (uint32_t t = 0; t < 64; t++) {
        uint32_t sum = 0, row = t / 32, chunk = t / 4 % 8 ^ row;
        for (uint32_t tile = 0; tile < TILES; tile++) {
            const uint16_t *pair = &tensor[tile * ROWS + row][8 * chunk + 2 * (t % 4)];
            sum += pair[0] | (uint32_t)pair[1] << 16;
        }
        assert_int_equal(out[t], sum);
    }
}

static void a_pipeline_is_right(void **state) {
    (void)state;
    text_rig r;
    if (!run_pipeline(&r, NULL, NULL)) {
        text_fail(&r, "a trap");
    }
    check_sums(&r);
    text_close(&r);
}

/* Each pass keeps the copies and what orders them; offsets of addresses are folded into them. */
static void passes_keep_copies(void **state) {
    (void)state;
    text_rig r;
    lilac_text text = {0};
    /* an address with a constant part */
    assert_true(
        run_pipeline(&r, "cp.tensor.load [%buffer_n + 1024], %go_n, (%m, %zero, %row_n, %full_n)\n",
                     "%far = add %buffer_n, %size : i32\n%plus = add %full_n, %eight : i32\n"
                     "cp.tensor.load [%far], %go_n, (%m, %zero, %row_n, %plus) {mbarrier = -8}\n"));
    check_sums(&r);
    tensor_rig_run_passes(&r, check_sums);
    lilac_simt_print(&text, r.t.module);
    if (strstr(lilac_text_get(&text), "mbarrier = ") ||
        !strstr(lilac_text_get(&text), " + 1024]")) {
        fail_msg("offsets are not folded:\n%s", lilac_text_get(&text));
    }
    lilac_text_clear(&text);
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
    tensor_rig_mutate(cases, sizeof cases / sizeof *cases, run_pipeline);
}

/* ---- random boxes ---------------------------------------------------------------------------- */

enum { CASES = 600 };

static uint8_t memory[MEMORY], wanted_memory[MEMORY], image[SHARED], wanted[SHARED];

static void load_element(const box *b, uint32_t shared, int64_t global) {
    uint32_t size = lilac_tensor_element_bytes(b->map.element);
    if (global >= 0) {
        memcpy(wanted + shared, memory + global, size);
    } else {
        memset(wanted + shared, b->map.fill ? 0xFF : 0, size);
    }
    if (global < 0 && b->map.fill) {
        wanted[shared + size - 1] = 0x7F;
    }
}

static void store_element(const box *b, uint32_t shared, int64_t global) {
    if (global >= 0) {
        memcpy(wanted_memory + global, image + shared, lilac_tensor_element_bytes(b->map.element));
    }
}

static void or_element(const box *b, uint32_t shared, int64_t global) {
    for (uint32_t k = 0; k < lilac_tensor_element_bytes(b->map.element) && global >= 0; k++) {
        wanted_memory[global + k] |= image[shared + k];
    }
}

/* Bits of an element in the order of its numbers. 16-bit floats: *nan: it is a NaN. */
static uint64_t in_order(lilac_tensor_element element, uint64_t bits, bool *nan) {
    const uint32_t size = 8 * lilac_tensor_element_bytes(element);
    const uint64_t sign = UINT64_C(1) << (size - 1);
    if (element == LILAC_TENSOR_F16 || element == LILAC_TENSOR_BF16) {
        *nan = (bits & 0x7FFF) > (element == LILAC_TENSOR_F16 ? 0x7C00u : 0x7F80u);
        return bits & sign ? ~bits & 0xFFFF : bits | sign;
    }
    *nan = false;
    return element == LILAC_TENSOR_S32 || element == LILAC_TENSOR_S64 ? bits ^ sign : bits;
}

static void least_element(const box *b, uint32_t shared, int64_t global) {
    const uint32_t size = lilac_tensor_element_bytes(b->map.element);
    uint64_t old = 0, value = 0;
    bool old_nan, value_nan;
    if (global < 0) {
        return;
    }
    memcpy(&old, wanted_memory + global, size);
    memcpy(&value, image + shared, size);
    const uint64_t a = in_order(b->map.element, old, &old_nan),
                   c = in_order(b->map.element, value, &value_nan);
    if (!value_nan && (old_nan || c < a)) {
        memcpy(wanted_memory + global, image + shared, size);
    }
}

static const char *least_of(lilac_tensor_element element) {
    return element == LILAC_TENSOR_U32 || element == LILAC_TENSOR_U64 ? "cp.tensor.reduce min_u"
                                                                      : "cp.tensor.reduce min_s";
}

/* The image goes to shared memory, the operation is executed, and the image is stored again. */
static void run_box(text_rig *r, const box *b, const char *operation, const char *completion,
                    const char *last) {
    static const char *const list[] = {"%c0", "%c0, %c1", "%c0, %c1, %c2", "%c0, %c1, %c2, %c3",
                                       "%c0, %c1, %c2, %c3, %c4"};
    static lilac_tensor_map map;
    lilac_text values = {0}, body = {0};
    lilac_text_puts(&values,
                    "%base = shared_base : i32\n%m = param 0 : i64\n%image = param 1 : i64\n"
                    "%t = thread : i32\n%zero = const 0 : i32\n%one = const 1 : i32\n"
                    "%four = const 4 : i32\n%warp = const 32 : i32\n"
                    "%first = cmp eq %t, %zero : i1\n");
    lilac_text_printf(&values,
                      "%%bytes = const %llu : i32\n%%words = const %u : i32\n"
                      "%%at = const %u : i32\n",
                      (unsigned long long)lilac_tensor_map_bytes(&b->map), (SHARED - 1024) / 128,
                      b->at);
    for (uint32_t k = 0; k < b->map.rank; k++) {
        lilac_text_printf(&values, "%%c%u = const %d : i32\n", k, (int)b->coordinates[k]);
    }
    for (uint32_t back = 0; back < 2; back++) {
        lilac_text_printf(&body,
                          "loop %%i%u = %%zero to %%words step %%one {\n"
                          "%%j%u = mul %%i%u, %%warp : i32\n%%k%u = add %%j%u, %%t : i32\n"
                          "%%a%u = mul %%k%u, %%four : i32\n%%w%u = zext %%a%u : i64\n"
                          "%%p%u = add %%image, %%w%u : i64\n",
                          back, back, back, back, back, back, back, back, back, back, back);
        lilac_text_puts(&body, back ? "%read = ld.shared [%a1 + 1024] : i32\n"
                                      "st.global [%p1 + 1024], (%read)\nyield\n}\n"
                                    : "%word = ld.global [%p0 + 1024] : i32\n"
                                      "st.shared [%a0 + 1024], (%word)\nyield\n}\n");
        if (back == 0) {
            lilac_text_printf(&body,
                              "mbarrier.init [%%base], %%first, (%%one)\nfence.mbarrier_init\n"
                              "fence.proxy_async shared\nbarrier\n"
                              "mbarrier.expect [%%base], %%first, (%%bytes)\n"
                              "%s [%%at], %%first, (%%m, %s%s)\n%s",
                              operation, list[b->map.rank - 1], last, completion);
        }
    }
    text_open(r, "kernel @k(%m: i64 tensor_map, %image: i64 ptr) warps 1 ctas 1 shared 16384",
              lilac_text_get(&values), lilac_text_get(&body), NULL);
    map = b->map;
    if (!tensor_rig_run(r, &map, (tensor_rig_memory){"memory", memory, sizeof memory},
                        (tensor_rig_memory){"image", image, sizeof image})) {
        text_fail(r, "a trap");
    }
    lilac_text_clear(&values);
    lilac_text_clear(&body);
}

static void boxes_are_those_of_the_model(void **state) {
    uint32_t loads = 0, stores = 0, reductions = 0, minima = 0;
    (void)state;
    for (uint32_t n = 0; n < CASES; n++) {
        text_rig r;
        box b;
        while (!choose(&b)) {
            continue;
        }
        for (uint32_t k = 0; k < MEMORY; k++) {
            memory[k] = wanted_memory[k] = (uint8_t)below(256);
        }
        for (uint32_t k = 0; k < SHARED; k++) {
            image[k] = wanted[k] = (uint8_t)below(256);
        }
        bool integer = b.map.element >= LILAC_TENSOR_U32 && b.map.element <= LILAC_TENSOR_S64;
        bool half = b.map.element == LILAC_TENSOR_F16 || b.map.element == LILAC_TENSOR_BF16;
        uint32_t kind = below(integer ? 4 : half ? 3 : 2);
        kind += half && kind == 2; /* the minimum */
        walk(&b, kind == 0   ? load_element
                 : kind == 1 ? store_element
                 : kind == 2 ? or_element
                             : least_element);
        run_box(&r, &b,
                kind == 0   ? "cp.tensor.load"
                : kind == 1 ? "cp.tensor.store"
                : kind == 2 ? "cp.tensor.reduce or"
                            : least_of(b.map.element),
                kind == 0 ? "mbarrier.wait [%base], (%zero)\n"
                          : "bulk.commit\nbulk.wait\nmbarrier.invalidate [%base], %first\n",
                kind == 0 ? ", %base" : "");
        expect_nothing(&r);
        assert_memory_equal(memory, wanted_memory, MEMORY);
        assert_memory_equal(image + 1024, wanted + 1024, SHARED - 1024);
        assert_int_equal(r.t.counters.bulk_bytes, lilac_tensor_map_bytes(&b.map));
        text_close(&r);
        loads += kind == 0;
        stores += kind == 1;
        reductions += kind == 2;
        minima += kind == 3;
    }
    print_message("%u loads, %u stores, %u reductions, %u minima\n", loads, stores, reductions,
                  minima);
    assert_true(loads > CASES / 5 && stores > CASES / 5 && reductions > CASES / 30 &&
                minima > CASES / 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_is_right),
        cmocka_unit_test(passes_keep_copies),
        cmocka_unit_test(mutations_are_found),
        cmocka_unit_test(boxes_are_those_of_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
