/* encoding: attributes read, printed and refused, each refusal by its id and its place. */
#include "support/scanned.h"

#include <lilac/encoding.h>

#include <stdio.h>
#include <string.h>

#define BLOCKED_16                                                                                 \
    "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], "        \
    "order = [1, 0]}>"

static bool read_type(lilac_context *context, const char *text, lilac_encoding_tensor *tensor) {
    lilac_scanner scanner;
    scan(&scanner, context, text);
    return lilac_encoding_read_tensor(&scanner, NULL, tensor);
}

/* The layout of a tensor type in JSON, compared. */
static void expect_layout(const char *type, const char *json) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_tensor tensor;
    lilac_text text = {0};
    assert_true(read_type(context, type, &tensor));
    lilac_layout_json(&text, &tensor.layout);
    assert_string_equal(lilac_text_get(&text), json);
    assert_true(lilac_layout_is_surjective(&tensor.layout));
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

static void blocked(void **state) {
    (void)state;
    expect_layout("tensor<16x16xf32, " BLOCKED_16 ">",
                  "{\"register\": [[0,1],[1,0]], \"lane\": [[0,2],[0,4],[0,8],[2,0],[4,0]], "
                  "\"warp\": [[8,0]], \"block\": []}");
    /* Larger than the tile: registers go round, the fastest dimension first. */
    expect_layout("tensor<32x32xf32, " BLOCKED_16 ">",
                  "{\"register\": [[0,1],[1,0],[0,16],[16,0]], "
                  "\"lane\": [[0,2],[0,4],[0,8],[2,0],[4,0]], \"warp\": [[8,0]], \"block\": []}");
    /* Smaller: copies, those of the registers too. */
    expect_layout("tensor<1x4xf32, " BLOCKED_16 ">",
                  "{\"register\": [[0,1],[0,0]], \"lane\": [[0,2],[0,0],[0,0],[0,0],[0,0]], "
                  "\"warp\": [[0,0]], \"block\": []}");
}

static void blocks_take_the_highest_bits(void **state) {
    (void)state;
    expect_layout("tensor<8x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], "
                  "warpsPerCTA = [1, 1], order = [1, 0], CGALayout = [[0, 1], [0, 0], [1, 0]]}>>",
                  "{\"register\": [[0,1],[0,2]], \"lane\": [[0,4],[0,8],[0,16],[1,0],[2,0]], "
                  "\"warp\": [], \"block\": [[0,32],[0,0],[4,0]]}");
    /* More blocks than elements. */
    expect_layout("tensor<2xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [2], "
                  "warpsPerCTA = [1], order = [0], CGALayout = [[2], [1]]}>>",
                  "{\"register\": [], \"lane\": [[0]], \"warp\": [], \"block\": [[0],[1]]}");
}

static void slices(void **state) {
    (void)state;
    expect_layout("tensor<16xf32, #ttg.slice<{dim = 1, parent = " BLOCKED_16 "}>>",
                  "{\"register\": [[1]], \"lane\": [[0],[0],[0],[2],[4]], \"warp\": [[8]], "
                  "\"block\": []}");
    expect_layout("tensor<16xf32, #ttg.slice<{parent = " BLOCKED_16 ", dim = 0}>>",
                  "{\"register\": [[1]], \"lane\": [[2],[4],[8],[0],[0]], \"warp\": [[0]], "
                  "\"block\": []}");
    expect_layout("tensor<f32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = "
                  "" BLOCKED_16 "}>}>>",
                  "{\"register\": [], \"lane\": [[],[],[],[],[]], \"warp\": [[]], \"block\": []}");
}

/* A tensor larger than the layout: registers repeat it. */
static void linear_repeats(void **state) {
    (void)state;
    expect_layout("tensor<128xf32, #ttg.linear<{register = [[1]], lane = [[2], [4]], warp = [[8]], "
                  "block = [[16]]}>>",
                  "{\"register\": [[1],[32],[64]], \"lane\": [[2],[4]], \"warp\": [[8]], "
                  "\"block\": [[16]]}");
    /* Along dimensions in the order in which registers move, then the last one first. */
    expect_layout(
        "tensor<2x4x4x4xf32, #ttg.linear<{register = [[0, 1, 0, 0], [0, 0, 0, 0]], lane = "
        "[[0, 0, 1, 0]], warp = [], block = []}>>",
        "{\"register\": [[0,1,0,0],[0,0,0,0],[0,2,0,0],[0,0,0,1],[0,0,0,2],[0,0,2,0],"
        "[1,0,0,0]], \"lane\": [[0,0,1,0]], \"warp\": [], \"block\": []}");
    /* Larger along one dimension and smaller along another. */
    expect_layout(
        "tensor<1x8xi32, #ttg.linear<{register = [[1, 0], [0, 0]], lane = [[2, 0], [0, 1]], "
        "warp = [[0, 2]], block = []}>>",
        "{\"register\": [[0,0],[0,4]], \"lane\": [[0,0],[0,1]], \"warp\": [[0,2]], "
        "\"block\": []}");
    expect_layout(
        "tensor<1x8xf16, #ttg.slice<{dim = 1, parent = #ttg.linear<{register = [], lane = "
        "[[0, 0, 2], [0, 2, 0], [0, 4, 0], [0, 0, 1], [0, 1, 0]], warp = [[0, 0, 0]], block "
        "= []}>}>>",
        "{\"register\": [[0,4]], \"lane\": [[0,2],[0,0],[0,0],[0,1],[0,0]], "
        "\"warp\": [[0,0]], \"block\": []}");
}

static void linear(void **state) {
    (void)state;
    const char *linear = "tensor<4x8xf32, #ttg.linear<{register = [[0, 1], [2, 0]], "
                         "lane = [[0, 2], [0, 4], [1, 0]], warp = [[0, 0]], block = []}>>";
    expect_layout(linear, "{\"register\": [[0,1],[2,0]], \"lane\": [[0,2],[0,4],[1,0]], "
                          "\"warp\": [[0,0]], \"block\": []}");
    /* A larger layout: coordinates modulo the shape; registers that become copies go. */
    expect_layout("tensor<2x2xf32, #ttg.linear<{register = [[0, 1], [2, 0], [0, 0]], "
                  "lane = [[0, 2], [0, 4], [1, 0]], warp = [[0, 0]], block = []}>>",
                  "{\"register\": [[0,1],[0,0]], \"lane\": [[0,0],[0,0],[1,0]], "
                  "\"warp\": [[0,0]], \"block\": []}");
    expect_layout("tensor<4xf32, #ttg.slice<{dim = 1, parent = #ttg.linear<{register = [[0, 1], "
                  "[2, 0]], lane = [[0, 2], [0, 4], [1, 0]], warp = [], block = []}>}>>",
                  "{\"register\": [[2]], \"lane\": [[0],[0],[1]], \"warp\": [], \"block\": []}");
    /* The fields in any order, and white space and comments anywhere. */
    expect_layout("tensor < 2x2 x f32 , #ttg.linear < { block=[], // no blocks\n warp = [ ],"
                  "lane=[[0,1]],\tregister = [[1,0]] } > >",
                  "{\"register\": [[1,0]], \"lane\": [[0,1]], \"warp\": [], \"block\": []}");
}

static void tensor_types(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_encoding_tensor tensor;
    assert_true(read_type(context, "tensor<16x16xbf16, " BLOCKED_16 ">", &tensor));
    assert_int_equal(tensor.rank, 2);
    assert_int_equal(tensor.shape[1], 16);
    assert_int_equal(tensor.scalar, LILAC_BF16);
    assert_false(tensor.pointers);
    assert_true(read_type(context, "tensor<16x16x!tt.ptr<i8>, " BLOCKED_16 ">", &tensor));
    assert_int_equal(tensor.scalar, LILAC_I8);
    assert_true(tensor.pointers);
    assert_true(read_type(context, "tensor<16x16x!tt.ptr<f32, 1>, " BLOCKED_16 ">", &tensor));
    assert_int_equal(lilac_error_count(context), 0);
    lilac_context_destroy(context);
}

static void printing_reads_back(void **state) {
    (void)state;
    static const char *const texts[] = {
        BLOCKED_16,
        "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 2], "
        "order = [1, 0], CGALayout = [[0, 1], [1, 0]]}>",
        "#ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = " BLOCKED_16 "}>}>",
        "#ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4]], warp = [[0, 0], [1, 0]], "
        "block = []}>"};
    lilac_context *context = lilac_context_create();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        lilac_scanner scanner;
        lilac_text text = {0};
        scan(&scanner, context, texts[i]);
        const lilac_encoding *encoding = lilac_encoding_read(&scanner, NULL);
        assert_non_null(encoding);
        assert_int_equal(scanner.kind, LILAC_TOKEN_END);
        lilac_encoding_print(&text, encoding);
        assert_string_equal(lilac_text_get(&text), texts[i]);
        lilac_text_clear(&text);
    }
    lilac_context_destroy(context);
}

static void building_is_reading(void **state) {
    (void)state;
    static const uint32_t size[] = {2, 2}, threads[] = {4, 8}, warps[] = {2, 1}, order[] = {1, 0};
    lilac_encoding encoding;
    lilac_text text = {0};
    lilac_encoding_blocked(&encoding, 2, size, threads, warps, order);
    lilac_encoding_print(&text, &encoding);
    assert_string_equal(lilac_text_get(&text), BLOCKED_16);
    lilac_text_clear(&text);
}

static void aliases(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_encoding_aliases aliases = {0};
    lilac_encoding encodings[500];
    char name[16];
    assert_null(lilac_encoding_lookup(&aliases, "blocked", 7));
    for (uint32_t i = 0; i < 500; i++) {
        memset(&encodings[i], 0, sizeof encodings[i]);
        int length = snprintf(name, sizeof name, "blocked%u", i);
        lilac_encoding_define(&aliases, context, name, (size_t)length, &encodings[i]);
    }
    for (uint32_t i = 0; i < 500; i++) {
        int length = snprintf(name, sizeof name, "blocked%u", i);
        assert_ptr_equal(lilac_encoding_lookup(&aliases, name, (size_t)length), &encodings[i]);
    }
    assert_null(lilac_encoding_lookup(&aliases, "blocked", 7));
    lilac_encoding_define(&aliases, context, "blocked7", 8, &encodings[0]);
    assert_ptr_equal(lilac_encoding_lookup(&aliases, "blocked7", 8), &encodings[0]);

    lilac_scanner scanner;
    scan(&scanner, context, "#ttg.slice<{dim = 0, parent = #mine}> #mine");
    assert_null(lilac_encoding_read(&scanner, &aliases));
    assert_string_equal(lilac_diagnostics(context)->id, "layout-alias-undefined");
    scan(&scanner, context, BLOCKED_16);
    lilac_encoding_define(&aliases, context, "mine", 4, lilac_encoding_read(&scanner, NULL));
    scan(&scanner, context, "#ttg.slice<{dim = 0, parent = #mine}> #mine");
    const lilac_encoding *slice = lilac_encoding_read(&scanner, &aliases);
    const lilac_encoding *mine = lilac_encoding_read(&scanner, &aliases);
    assert_non_null(slice);
    assert_non_null(mine);
    assert_ptr_equal(slice->as.slice.parent, mine);
    lilac_context_destroy(context);
}

/* ---- refusals --------------------------------------------------------------------------- */

/* The type is refused with this id at the place of `at` in it, or at its end for an empty one. */
static void refused(const char *type, const char *id, const char *at) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_tensor tensor;
    memset(&tensor, 0xA5, sizeof tensor);
    lilac_encoding_tensor before = tensor;
    if (read_type(context, type, &tensor)) {
        fail_msg("accepted: %s", type);
    }
    assert_memory_equal(&tensor, &before, sizeof tensor);
    expect_error_at(context, type, id, at);
    lilac_context_destroy(context);
}

static void shapes_are_refused(void **state) {
    (void)state;
    refused("tensor<16x12xf32, " BLOCKED_16 ">", "shape-not-power-of-two", "16x12");
    refused("tensor<4611686018427387904x4611686018427387904xf32, " BLOCKED_16 ">",
            "shape-too-large", "4611");
    refused("tensor<16xf32, " BLOCKED_16 ">", "layout-rank", "#ttg");
    refused("tensor<16x16x16xf32, " BLOCKED_16 ">", "layout-rank", "#ttg");
    refused("tensor<16x16xf32, #ttg.slice<{dim = 0, parent = " BLOCKED_16 "}>>", "layout-rank",
            "#ttg.slice");
    refused("tensor<16x16xf33, " BLOCKED_16 ">", "element-type-unknown", "f33");
    refused("tensor<16x16x!tt.ptr<f33>, " BLOCKED_16 ">", "element-type-unknown", "f33");
    refused("tensor<16x16x!tt.ptr<f32, -1>, " BLOCKED_16 ">", "address-space", "-1");
    refused("tensor<16x16xf32>", "syntax", ">");
    refused("tensor<16x16x, " BLOCKED_16 ">", "syntax", ", #ttg");
    refused("vector<16xf32>", "syntax", "vector");
    refused("tensor<16x16xf32, " BLOCKED_16, "syntax", "");
    refused("tensor<16x16xf32, 3>", "syntax", "3>");
    refused("", "syntax", "");
}

static void kinds_are_refused(void **state) {
    (void)state;
    refused("tensor<16x16xf32, #blocked>", "layout-alias-undefined", "#blocked");
    refused("tensor<16x16xf32, #ttg.blacked<{}>>", "layout-unknown", "#ttg");
    refused("tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttig.warp_encoding<{}>}>>",
            "layout-not-supported", "#ttig.warp");
}

#define MMA(version, warps, shape)                                                                 \
    "#ttg.nvidia_mma<{versionMajor = " version ", versionMinor = 0, warpsPerCTA = " warps          \
    ", instrShape = " shape "}>"

static void matrices(void **state) {
    (void)state;
    /* The f64 instruction of 8 rows. */
    expect_layout("tensor<8x4xf64, #ttg.dot_op<{opIdx = 0, parent = " MMA(
                      "2", "[1, 1]", "[8, 8]") ", kWidth = 1}>>",
                  "{\"register\": [], \"lane\": [[0,1],[0,2],[1,0],[2,0],[4,0]], "
                  "\"warp\": [], \"block\": []}");
    /* Blocks do not split K, warps along it hold copies. */
    expect_layout("tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{"
                  "versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], CGALayout = [[1, 0], "
                  "[0, 1]], instrShape = [16, 8]}>, kWidth = 2}>>",
                  "{\"register\": [[1,0],[8,0]], \"lane\": [[2,0],[4,0],[0,1],[0,2],[0,4]], "
                  "\"warp\": [[0,0]], \"block\": [[0,0],[0,8]]}");
    /* Bases that bend. */
    expect_layout("tensor<2x2xf32, #ttg.generic_linear<{register = [[1, 0]], lane = [[1, 1]], warp "
                  "= [], block = []}>>",
                  "{\"register\": [[1,0]], \"lane\": [[1,1]], \"warp\": [], \"block\": []}");
}

static void matrices_are_refused(void **state) {
    (void)state;
    refused("tensor<16x8xf32, " MMA("5", "[1, 1]", "[16, 8]") ">", "layout-version", "5,");
    refused("tensor<16x8xf32, " MMA("-2", "[1, 1]", "[16, 8]") ">", "layout-number", "-2");
    refused("tensor<16xf32, " MMA("2", "[1]", "[16]") ">", "layout-rank", "[1]");
    refused("tensor<16x8xf32, " MMA("2", "[1, 1]", "[16, 4]") ">", "layout-instruction-shape",
            "[16, 4]");
    refused("tensor<16x8xf32, " MMA("2", "[1, 1]", "[16, 8, 8]") ">", "layout-instruction-shape",
            "[16, 8, 8]");
    refused("tensor<2x16x8xf32, " MMA("2", "[1, 1, 1]", "[2, 16, 8]") ">",
            "layout-instruction-shape", "[2, 16, 8]");
    refused("tensor<16x8xf32, " MMA("3", "[4, 1]", "[16, 8]") ">", "layout-instruction-shape",
            "[16, 8]");
    refused("tensor<16x8xf32, " MMA("3", "[4, 1]", "[32, 8, 16]") ">", "layout-instruction-shape",
            "[32, 8, 16]");
}

#define OPERAND(index, parent, more)                                                               \
    "tensor<16x16xf16, #ttg.dot_op<{opIdx = " index ", parent = " parent more "}>>"

static void operands_are_refused(void **state) {
    (void)state;
    refused(OPERAND("2", BLOCKED_16, ""), "layout-dot-operand", "2, parent");
    refused(OPERAND("0", BLOCKED_16, ", kWidth = 2"), "layout-dot-k-width", "#ttg");
    refused(OPERAND("0", MMA("2", "[1, 1]", "[16, 8]"), ""), "layout-dot-k-width", "#ttg");
    refused(OPERAND("0", MMA("2", "[1, 1]", "[16, 8]"), ", kWidth = 3"), "layout-not-power-of-two",
            "3}");
    refused(OPERAND("1", MMA("3", "[4, 1]", "[16, 8, 16]"), ", kWidth = 2"), "layout-dot-operand",
            "#ttg");
    refused(OPERAND("0", "#ttg.slice<{dim = 0, parent = " BLOCKED_16 "}>", ""), "layout-dot-parent",
            "#ttg.slice");
    refused(OPERAND("0",
                    "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [1], warpsPerCTA = "
                    "[1], order = [0]}>",
                    ""),
            "layout-rank", "#ttg.blocked");
    refused("tensor<4x4xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = "
            "[1, 0]}>>",
            "layout-of-memory", "#ttg");
    refused("tensor<2x2xf32, #ttg.generic_linear<{register = [[1, 1]], lane = [[1, 1]], warp = [], "
            "block = []}>>",
            "layout-not-surjective", "#ttg");
}

static void fields_are_refused(void **state) {
    (void)state;
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread = [1], threads = [4]}>>",
            "layout-field-unknown", "threads =");
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread = [1], sizePerThread = [4]}>>",
            "layout-field-twice", "sizePerThread = [4]");
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread = [1]}>>", "layout-field-missing", "#ttg");
    refused("tensor<4xf32, #ttg.linear<{register = [[1], [2]], lane = [], warp = []}>>",
            "layout-field-missing", "#ttg");
    refused("tensor<4xf32, #ttg.slice<{dim = 1}>>", "layout-field-missing", "#ttg");
    refused("tensor<4xf32, #ttg.blocked<{}>>", "syntax", "}");
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread [1]}>>", "syntax", "[1]");
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread = [1,]}>>", "syntax", "]");
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread = [1}>>", "syntax", "}");
    refused("tensor<4xf32, #ttg.blocked<sizePerThread = [1]>>", "syntax", "sizePerThread");
    refused("tensor<16x16xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], "
            "warpsPerCTA = [1, 1], order = [1, 0], CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], "
            "CTAOrder = [1, 0]}>>",
            "layout-older-form", "CTAsPerCGA");
    refused("tensor<4xf32, #ttg.slice<{dim = 2, parent = " BLOCKED_16 "}>>", "layout-slice-dim",
            "2, parent");
    refused("tensor<4xf32, #ttg.slice<{dim = -1, parent = " BLOCKED_16 "}>>", "layout-slice-dim",
            "-1");
    refused("tensor<4xf32, #ttg.slice<{dim = 99999999999, parent = " BLOCKED_16 "}>>",
            "layout-slice-dim", "99999999999");
}

static void numbers_are_refused(void **state) {
    (void)state;
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread = [3]}>>", "layout-not-power-of-two", "3]");
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread = [0]}>>", "layout-not-power-of-two", "0]");
    refused("tensor<4xf32, #ttg.blocked<{threadsPerWarp = [-4]}>>", "layout-not-power-of-two",
            "-4");
    refused("tensor<4xf32, #ttg.blocked<{warpsPerCTA = [6]}>>", "layout-not-power-of-two", "6]");
    refused("tensor<4xf32, #ttg.blocked<{warpsPerCTA = [4294967296]}>>", "layout-too-large",
            "4294967296");
    refused("tensor<4xf32, #ttg.blocked<{warpsPerCTA = [99999999999999999999]}>>",
            "integer-too-large", "99999999999999999999");
    refused("tensor<4x4xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4]}>>",
            "layout-rank", "[4]");
    refused("tensor<4x4xf32, #ttg.blocked<{order = [0, 0]}>>", "layout-order", "[0, 0]");
    refused("tensor<4x4xf32, #ttg.blocked<{order = [1, 2]}>>", "layout-order", "[1, 2]");
    refused("tensor<4x4xf32, #ttg.blocked<{order = [1, 24]}>>", "layout-order", "24]");
    refused("tensor<4x4xf32, #ttg.blocked<{order = [-1, 0]}>>", "layout-order", "-1");
    refused("tensor<4xf32, #ttg.blocked<{sizePerThread = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
            "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]}>>",
            "layout-rank", "2]");
    refused("tensor<4x4x4x4xf32, #ttg.blocked<{sizePerThread = [1073741824, 1073741824, 1, 1], "
            "threadsPerWarp = [1073741824, 1, 1, 1], warpsPerCTA = [1, 1, 1, 1], "
            "order = [3, 2, 1, 0]}>>",
            "layout-too-large", "#ttg");
}

#define ONE(cga)                                                                                   \
    "tensor<64xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], " \
    "order = [0], CGALayout = " cga "}>>"

static void blocks_are_refused(void **state) {
    (void)state;
    refused(ONE("[[2]]"), "layout-not-surjective", "[[2]]");
    refused(ONE("[[1], [1]]"), "layout-basis", "[[1], [1]]");
    refused(ONE("[[3]]"), "layout-basis", "[[3]]");
    refused(ONE("[[1, 0]]"), "layout-rank", "[1, 0]");
    refused(ONE("[[-1]]"), "layout-basis", "-1");
    refused(ONE("[[1], [2], [0], [0], [0], [0], [0], [0], [4]]"), "layout-too-large", "[4]");
    refused("tensor<4x4xf32, #ttg.blocked<{sizePerThread = [1, 1], CGALayout = [[1, 1]]}>>",
            "layout-basis", "[1, 1]]");
}

#define LINEAR(shape, registers)                                                                   \
    "tensor<" shape "xf32, #ttg.linear<{register = " registers                                     \
    ", lane = [], warp = [], block = []}>>"

static void bases_are_refused(void **state) {
    (void)state;
    refused(LINEAR("4", "[[2]]"), "layout-not-surjective", "#ttg");
    refused(LINEAR("4", "[[3], [3]]"), "layout-not-surjective", "#ttg");
    refused(LINEAR("4x4", "[[1, 1]]"), "layout-basis", "[1, 1]");
    refused(LINEAR("4x4", "[[1, 0], [1]]"), "layout-rank", "[1]");
    refused(LINEAR("4", "[[-1]]"), "layout-basis", "-1");
    refused(LINEAR("4", "[]"), "layout-rank", "#ttg");
    refused(LINEAR("4x4", "[[4611686018427387904, 0], [0, 8]]"), "layout-too-large", "#ttg");
    refused(LINEAR("4", "[1, 2]"), "syntax", "1, 2");
    char text[4096] = "tensor<1xf32, #ttg.linear<{register = [[0]";
    for (uint32_t i = 1; i < 64; i++) {
        strcat(text, ", [0]");
    }
    strcat(text, ", [00]], lane = [], warp = [], block = []}>>");
    refused(text, "layout-too-large", "[00]");
    /* 63 copies leave no bits for registers that repeat the layout. */
    strcpy(text, "tensor<4xf32, #ttg.linear<{register = [[0]");
    for (uint32_t i = 1; i < 63; i++) {
        strcat(text, ", [0]");
    }
    strcat(text, "], lane = [], warp = [], block = []}>>");
    refused(text, "layout-too-large", "#ttg");
}

static void nesting_is_refused(void **state) {
    (void)state;
    char text[4096] = "tensor<4xf32, ";
    for (uint32_t i = 0; i < LILAC_MAX_RANK; i++) {
        strcat(text, "#ttg.slice<{dim = 0, parent = ");
    }
    strcat(text, "#ttg.blocked<{}>");
    refused(text, "layout-too-deep", "#ttg.blocked");
}

/* A shape that is refused after an alias has been read points at both. */
static void notes_name_the_tensor(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_encoding_aliases aliases = {0};
    lilac_scanner scanner;
    lilac_encoding_tensor tensor;
    scan(&scanner, context, BLOCKED_16);
    lilac_encoding_define(&aliases, context, "b", 1, lilac_encoding_read(&scanner, NULL));
    scan(&scanner, context, "tensor<16xf32, #b>");
    assert_false(lilac_encoding_read_tensor(&scanner, &aliases, &tensor));
    const lilac_diagnostic *diagnostic = lilac_diagnostics(context);
    assert_string_equal(diagnostic->id, "layout-rank");
    assert_int_equal(diagnostic->position.source, 1);
    assert_non_null(diagnostic->notes);
    assert_int_equal(diagnostic->notes->position.source, 2);
    assert_int_equal(diagnostic->notes->position.offset, 7);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocked),
        cmocka_unit_test(blocks_take_the_highest_bits),
        cmocka_unit_test(slices),
        cmocka_unit_test(linear),
        cmocka_unit_test(linear_repeats),
        cmocka_unit_test(tensor_types),
        cmocka_unit_test(printing_reads_back),
        cmocka_unit_test(building_is_reading),
        cmocka_unit_test(aliases),
        cmocka_unit_test(shapes_are_refused),
        cmocka_unit_test(kinds_are_refused),
        cmocka_unit_test(matrices),
        cmocka_unit_test(matrices_are_refused),
        cmocka_unit_test(operands_are_refused),
        cmocka_unit_test(fields_are_refused),
        cmocka_unit_test(numbers_are_refused),
        cmocka_unit_test(blocks_are_refused),
        cmocka_unit_test(bases_are_refused),
        cmocka_unit_test(nesting_is_refused),
        cmocka_unit_test(notes_name_the_tensor),
    };
    return cmocka_run_group_tests_name("encoding", tests, NULL, NULL);
}
