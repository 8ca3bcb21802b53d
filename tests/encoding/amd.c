/* encoding: AMD's and Intel's layouts: worked examples, what holds for all of them, refusals.
 * Equality with Triton over the parameter space is the business of goldens.c. */
#include "support/scanned.h"

#include <lilac/encoding.h>

#include <stdio.h>
#include <string.h>

#define MFMA_32 "version = 3, warpsPerCTA = [2, 4], instrShape = [32, 32, 8], isTransposed = "
#define DPAS_32                                                                                    \
    "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, "         \
    "threadsPerWarp = 32, warpsPerCTA = [1, 1], repCluster = [1, 1]}>"

static bool read_type(lilac_context *context, const char *text, lilac_encoding_tensor *tensor) {
    lilac_scanner scanner;
    scan(&scanner, context, text);
    return lilac_encoding_read_tensor(&scanner, NULL, tensor) && scanner.kind == LILAC_TOKEN_END;
}

/* ---- worked examples -------------------------------------------------------------------- */

static void expect_layout(const char *type, const char *json) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_tensor tensor;
    lilac_text text = {0};
    if (!read_type(context, type, &tensor)) {
        fail_msg("refused: %s", type);
    }
    lilac_layout_json(&text, &tensor.layout);
    assert_string_equal(lilac_text_get(&text), json);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

/* v_mfma_f32_32x32x8: each lane has four groups of four rows of a column, at a
 * distance of eight rows. */
static void mfma_results(void **state) {
    (void)state;
    expect_layout("tensor<128x128xf32, #ttg.amd_mfma<{" MFMA_32 "false}>>",
                  "{\"register\": [[1,0],[2,0],[8,0],[16,0],[64,0]], "
                  "\"lane\": [[0,1],[0,2],[0,4],[0,8],[0,16],[4,0]], "
                  "\"warp\": [[0,32],[0,64],[32,0]], \"block\": []}");
    expect_layout("tensor<32x32xf32, #ttg.amd_mfma<{" MFMA_32 "true}>>",
                  "{\"register\": [[0,1],[0,2],[0,8],[0,16]], "
                  "\"lane\": [[1,0],[2,0],[4,0],[8,0],[16,0],[0,4]], "
                  "\"warp\": [[0,0],[0,0],[0,0]], \"block\": []}");
    /* v_mfma_f64_16x16x4: one element of 64 bits at a time, so lanes take the rows first. */
    expect_layout("tensor<16x16xf64, #ttg.amd_mfma<{version = 2, warpsPerCTA = [1, 1], instrShape "
                  "= [16, 16, 4], isTransposed = false, elementBitWidth = 64}>>",
                  "{\"register\": [[4,0],[8,0]], \"lane\": [[0,1],[0,2],[0,4],[0,8],[1,0],[2,0]], "
                  "\"warp\": [], \"block\": []}");
    /* A batch: warps along it come last. */
    expect_layout("tensor<2x64x32xf32, #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 4, 1], "
                  "instrShape = [32, 32, 8], isTransposed = true}>>",
                  "{\"register\": [[0,0,1],[0,0,2],[0,0,8],[0,0,16]], \"lane\": [[0,1,0],[0,2,0],"
                  "[0,4,0],[0,8,0],[0,16,0],[0,0,4]], \"warp\": [[0,32,0],[0,0,0],[1,0,0]], "
                  "\"block\": []}");
}

static void mfma_operands(void **state) {
    (void)state;
    expect_layout("tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{" MFMA_32
                  "false}>, kWidth = 4}>>",
                  "{\"register\": [[0,1],[0,2],[0,8],[0,16]], "
                  "\"lane\": [[1,0],[2,0],[4,0],[8,0],[16,0],[0,4]], "
                  "\"warp\": [[0,0],[0,0],[32,0]], \"block\": []}");
    /* All of K, then this warp's tiles, then the tensor's further ones. */
    expect_layout("tensor<128x256xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = "
                  "3, warpsPerCTA = [2, 4], instrShape = [16, 16, 16], isTransposed = false, "
                  "tilesPerWarp = [2, 2]}>, kWidth = 4}>>",
                  "{\"register\": [[1,0],[2,0],[16,0],[32,0],[64,0],[0,16],[0,128]], "
                  "\"lane\": [[0,1],[0,2],[0,4],[0,8],[4,0],[8,0]], "
                  "\"warp\": [[0,32],[0,64],[0,0]], \"block\": []}");
    /* The side of 64 of 64x4 has its 16 parts of K in registers, the side of 4 on lanes. */
    expect_layout(
        "tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{version = 3, "
        "warpsPerCTA = [1, 1], instrShape = [64, 4, 4], isTransposed = true}>, kWidth = "
        "4}>>",
        "{\"register\": [[0,1],[0,2],[0,4],[0,8],[0,16],[0,32]], "
        "\"lane\": [[1,0],[2,0],[4,0],[8,0],[16,0],[32,0]], \"warp\": [], \"block\": []}");
    expect_layout(
        "tensor<64x4xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = 3, "
        "warpsPerCTA = [1, 1], instrShape = [64, 4, 4], isTransposed = true}>, kWidth = "
        "4}>>",
        "{\"register\": [[1,0],[2,0]], \"lane\": [[0,1],[0,2],[4,0],[8,0],[16,0],[32,0]], "
        "\"warp\": [], \"block\": []}");
}

#define WMMA_WARPS "ctaLayout = {warp = [[0, 1], [0, 2], [1, 0]]}"

static void wmma(void **state) {
    (void)state;
    /* Version 1: the second half of a wave has the odd rows. */
    expect_layout("tensor<16x32xf32, #ttg.amd_wmma<{version = 1, isTranspose = false, " WMMA_WARPS
                  "}>>",
                  "{\"register\": [[2,0],[4,0],[8,0]], "
                  "\"lane\": [[0,1],[0,2],[0,4],[0,8],[1,0]], "
                  "\"warp\": [[0,16],[0,0],[0,0]], \"block\": []}");
    /* Its operands are the same in both halves. */
    expect_layout("tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 1, "
                  "isTranspose = false, " WMMA_WARPS "}>, kWidth = 16}>>",
                  "{\"register\": [[0,1],[0,2],[0,4],[0,8]], "
                  "\"lane\": [[1,0],[2,0],[4,0],[8,0],[0,0]], "
                  "\"warp\": [[0,0],[0,0],[0,0]], \"block\": []}");
    /* Version 2: the lower rows. */
    expect_layout("tensor<16x32xf32, #ttg.amd_wmma<{version = 2, isTranspose = false, " WMMA_WARPS
                  "}>>",
                  "{\"register\": [[1,0],[2,0],[4,0]], "
                  "\"lane\": [[0,1],[0,2],[0,4],[0,8],[8,0]], "
                  "\"warp\": [[0,16],[0,0],[0,0]], \"block\": []}");
    /* 32 rows are two tiles of 16, the second one in further registers. */
    expect_layout("tensor<32x16xf32, #ttg.amd_wmma<{version = 3, isTranspose = false, ctaLayout = "
                  "{warp = []}, instrShape = [32, 16, 128]}>>",
                  "{\"register\": [[1,0],[2,0],[4,0],[16,0]], "
                  "\"lane\": [[0,1],[0,2],[0,4],[0,8],[8,0]], \"warp\": [], \"block\": []}");
    /* A ctaLayout's tiles come before further ones of the tensor, in its own order. */
    expect_layout("tensor<64x128xf32, #ttg.amd_wmma<{version = 2, isTranspose = false, ctaLayout = "
                  "{register = [[1, 0], [0, 1]], warp = [[0, 2]]}}>>",
                  "{\"register\": [[1,0],[2,0],[4,0],[16,0],[0,16],[0,64],[32,0]], "
                  "\"lane\": [[0,1],[0,2],[0,4],[0,8],[8,0]], \"warp\": [[0,32]], "
                  "\"block\": []}");
    /* Bases along two dimensions, and two that reach the same tile along one of them. */
    expect_layout("tensor<64x64xf32, #ttg.amd_wmma<{version = 2, isTranspose = false, ctaLayout = "
                  "{register = [[1, 1]], warp = [[0, 1], [2, 2], [0, 2]]}}>>",
                  "{\"register\": [[1,0],[2,0],[4,0],[16,16]], "
                  "\"lane\": [[0,1],[0,2],[0,4],[0,8],[8,0]], "
                  "\"warp\": [[0,16],[32,32],[0,32]], "
                  "\"block\": []}");
    /* Along K they are removed. */
    expect_layout("tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 2, "
                  "isTranspose = false, ctaLayout = {register = [[1, 1]], warp = [[0, 1], [2, "
                  "0]]}}>, kWidth = 8}>>",
                  "{\"register\": [[0,1],[0,2],[0,4],[16,0],[0,16]], "
                  "\"lane\": [[1,0],[2,0],[4,0],[8,0],[0,8]], \"warp\": [[0,0],[32,0]], "
                  "\"block\": []}");
    /* An operand has only those along its own dimension. */
    expect_layout("tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 2, "
                  "isTranspose = false, ctaLayout = {register = [[1, 0], [0, 1]], warp = [[0, "
                  "2]]}}>, kWidth = 8}>>",
                  "{\"register\": [[0,1],[0,2],[0,4],[16,0],[0,16],[0,32],[32,0]], "
                  "\"lane\": [[1,0],[2,0],[4,0],[8,0],[0,8]], \"warp\": [[0,0]], "
                  "\"block\": []}");
}

/* 32 threads, f16: two rows of 16 at a time. */
static void dpas(void **state) {
    (void)state;
    expect_layout("tensor<8x16xf32, " DPAS_32 ">",
                  "{\"register\": [[2,0],[4,0]], \"lane\": [[0,1],[0,2],[0,4],[0,8],[1,0]], "
                  "\"warp\": [], \"block\": []}");
    expect_layout("tensor<8x16xf16, #ttg.dot_op<{opIdx = 0, parent = " DPAS_32 ", kWidth = 1}>>",
                  "{\"register\": [[2,0],[4,0]], \"lane\": [[0,1],[0,2],[0,4],[0,8],[1,0]], "
                  "\"warp\": [], \"block\": []}");
    expect_layout("tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = " DPAS_32 ", kWidth = 2}>>",
                  "{\"register\": [[1,0],[4,0],[8,0]], "
                  "\"lane\": [[0,1],[0,2],[0,4],[0,8],[2,0]], \"warp\": [], \"block\": []}");
    /* 8-bit elements of A come in pairs; clusters before warps, K before further rows. */
    expect_layout("tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #ttig.dpas<{repeatCount = 8, "
                  "systolicDepth = 8, executionSize = 16, opsPerChan = 4, threadsPerWarp = 16, "
                  "warpsPerCTA = [2, 2], repCluster = [2, 1]}>, kWidth = 2}>>",
                  "{\"register\": [[0,1],[1,0],[2,0],[4,0],[8,0],[0,32],[32,0]], "
                  "\"lane\": [[0,2],[0,4],[0,8],[0,16]], \"warp\": [[0,0],[16,0]], "
                  "\"block\": []}");
}

/* ---- print and read --------------------------------------------------------------------- */

/* What is printed is the text, and reads back to the same layout. */
static void expect_printed(const char *type) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_tensor tensor, again;
    lilac_text text = {0};
    if (!read_type(context, type, &tensor)) {
        fail_msg("refused: %s", type);
    }
    lilac_text_put(&text, type, (size_t)(strchr(type, '#') - type));
    lilac_encoding_print(&text, tensor.encoding);
    lilac_text_char(&text, '>');
    assert_string_equal(lilac_text_get(&text), type);
    assert_true(read_type(context, lilac_text_get(&text), &again));
    assert_true(lilac_layout_equal(&tensor.layout, &again.layout));
    assert_true(lilac_layout_is_surjective(&tensor.layout));
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

static void what_is_not_usual_is_printed(void **state) {
    (void)state;
    expect_printed("tensor<64x64xf64, #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape "
                   "= [16, 16, 4], isTransposed = true, CGALayout = [[1, 0], [0, 0]], tilesPerWarp "
                   "= [2, 1], elementBitWidth = 64}>>");
    expect_printed("tensor<64x64xf32, #ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA "
                   "= [2, 2], CGALayout = [[0, 1]], tilesPerWarp = [1, 2], instrShape = [16, 16, "
                   "32]}>>");
    expect_printed("tensor<4x64x64xf32, #ttg.amd_wmma<{version = 2, rank = 3, isTranspose = true, "
                   "ctaLayout = {register = [[0, 1, 0], [0, 0, 1]], warp = [[0, 0, 2], [1, 0, 0], "
                   "[0, 0, 0]]}, CGALayout = [[1, 0, 0]]}>>");
    expect_printed("tensor<8x64x64xf32, #ttg.amd_wmma<{version = 1, isTranspose = false, "
                   "warpsPerCTA = [2, 1, 2]}>>");
    expect_printed("tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #ttig.dpas<{repeatCount = "
                   "4, systolicDepth = 8, executionSize = 8, opsPerChan = 1, threadsPerWarp = 16, "
                   "warpsPerCTA = [4, 8], repCluster = [4, 2]}>, kWidth = 1}>>");
    expect_printed("tensor<64xf32, #ttg.slice<{dim = 0, parent = #ttg.amd_mfma<{" MFMA_32
                   "true}>}>>");
}

static uint32_t pick(lilac_random *random, uint32_t bound) {
    return (uint32_t)lilac_random_below(random, bound);
}

/* "name = [2, 1]", powers of two below 2^bits. */
static void put_sizes(lilac_text *out, lilac_random *random, const char *name, uint32_t rank,
                      uint32_t bits) {
    lilac_text_printf(out, "%s = [", name);
    for (uint32_t d = 0; d < rank; d++) {
        lilac_text_printf(out, "%s%u", d != 0 ? ", " : "", 1U << pick(random, bits));
    }
    lilac_text_char(out, ']');
}

/* Blocks in random order, some along no dimension. */
static void put_some_blocks(lilac_text *out, lilac_random *random, uint32_t rank) {
    uint32_t used[3] = {0}, count = pick(random, 4);
    if (count != 0) {
        lilac_text_puts(out, ", CGALayout = [");
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t along = pick(random, rank + 1);
        for (uint32_t d = 0; d < rank; d++) {
            lilac_text_printf(out, "%s%u",
                              d != 0   ? ", "
                              : k != 0 ? ", ["
                                       : "[",
                              d == along ? 1U << used[d]++ : 0U);
        }
        lilac_text_puts(out, k + 1 == count ? "]]" : "]");
    }
}

static uint32_t put_mfma(lilac_text *out, lilac_random *random, uint32_t rank) {
    static const char *const shapes[] = {"64, 4", "4, 64", "16, 16", "32, 32"};
    uint32_t shape = pick(random, 4);
    lilac_text_printf(out, "#ttg.amd_mfma<{version = %u, ", 1 + pick(random, 4));
    put_sizes(out, random, "warpsPerCTA", rank, 3);
    lilac_text_printf(out, ", instrShape = [%s, %u], isTransposed = %s", shapes[shape],
                      1U << pick(random, 8), shape == 0 || pick(random, 2) ? "true" : "false");
    put_some_blocks(out, random, rank);
    if (pick(random, 2)) {
        lilac_text_puts(out, ", tilesPerWarp = [2");
        for (uint32_t d = 1; d < rank; d++) {
            lilac_text_printf(out, ", %u", 1U << pick(random, 3));
        }
        lilac_text_char(out, ']');
    }
    lilac_text_puts(out, pick(random, 2) ? ", elementBitWidth = 64}>" : "}>");
    return 1U << pick(random, 6);
}

static uint32_t put_wmma(lilac_text *out, lilac_random *random, uint32_t rank) {
    static const char *const shapes[] = {"",
                                         "",
                                         ", instrShape = [16, 16, 32]",
                                         "",
                                         ", instrShape = [16, 16, 4]",
                                         ", instrShape = [16, 16, 128]"};
    static const uint32_t widths[] = {8, 16, 4, 16, 2, 8};
    uint32_t version = pick(random, 3), which = 2 * version + pick(random, 2);
    bool by_layout = pick(random, 2);
    if (which == 3) {
        which = 2;
    }
    lilac_text_printf(out, "#ttg.amd_wmma<{version = %u, ", version + 1);
    if (by_layout && rank == 3) {
        lilac_text_puts(out, "rank = 3, ");
    }
    lilac_text_printf(out, "isTranspose = %s, ", pick(random, 2) ? "true" : "false");
    if (by_layout) {
        lilac_text_puts(out, rank == 3 ? "ctaLayout = {register = [[0, 0, 1], [0, 1, 0]], warp = "
                                         "[[0, 0, 0], [0, 2, 0], [1, 0, 0]]}"
                                       : "ctaLayout = {register = [[0, 1]], warp = [[2, 0], [1, "
                                         "0]]}");
    } else {
        put_sizes(out, random, "warpsPerCTA", rank, 3);
    }
    put_some_blocks(out, random, rank);
    if (!by_layout && pick(random, 2)) {
        lilac_text_puts(out, rank == 3 ? ", tilesPerWarp = [1, 2, 4]" : ", tilesPerWarp = [4, 1]");
    }
    lilac_text_printf(out, "%s}>", shapes[which]);
    return widths[2 * version + pick(random, 2)];
}

static uint32_t put_dpas(lilac_text *out, lilac_random *random, uint32_t rank, uint32_t operand) {
    uint32_t operations = 1U << pick(random, 3);
    lilac_text_printf(out,
                      "#ttig.dpas<{repeatCount = %u, systolicDepth = 8, executionSize = %u, "
                      "opsPerChan = %u, threadsPerWarp = %u, ",
                      4U << pick(random, 2), 8U << pick(random, 2), operations,
                      16U << pick(random, 2));
    put_sizes(out, random, "warpsPerCTA", rank, 3);
    put_sizes(out, random, ", repCluster", rank, 3);
    lilac_text_puts(out, "}>");
    return operand == 0 && operations > 1 ? operations / 2 : operations;
}

/* All kinds, alone, as parents of operands, sliced, on tensors of all sizes. */
static void any_parameters_print_and_read(void **state) {
    (void)state;
    lilac_random random;
    lilac_text parent = {0}, type = {0};
    lilac_random_seed(&random, 3);
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t rank = 2 + pick(&random, 2), operand = pick(&random, 3), kind = pick(&random, 3);
        lilac_text_reset(&parent);
        lilac_text_reset(&type);
        uint32_t k_width = kind == 0   ? put_mfma(&parent, &random, rank)
                           : kind == 1 ? put_wmma(&parent, &random, rank)
                                       : put_dpas(&parent, &random, rank, operand);
        bool sliced = pick(&random, 4) == 0;
        lilac_text_puts(&type, "tensor<");
        for (uint32_t d = sliced; d < rank; d++) {
            lilac_text_printf(&type, "%ux", 1U << pick(&random, 9));
        }
        lilac_text_puts(&type, "f32, ");
        if (sliced) {
            lilac_text_printf(&type, "#ttg.slice<{dim = %u, parent = ", pick(&random, rank));
        }
        if (operand < 2) {
            lilac_text_printf(&type, "#ttg.dot_op<{opIdx = %u, parent = ", operand);
        }
        lilac_text_puts(&type, lilac_text_get(&parent));
        if (operand < 2) {
            lilac_text_printf(&type, ", kWidth = %u}>", k_width);
        }
        lilac_text_puts(&type, sliced ? "}>>" : ">");
        expect_printed(lilac_text_get(&type));
    }
    lilac_text_clear(&parent);
    lilac_text_clear(&type);
}

/* What a printer leaves out may be written; shapes that follow may be shown. */
static void what_is_usual_need_not_be_said(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], tilesPerWarp "
         "= [1, 1], elementBitWidth = 32}>",
         "#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed "
         "= false}>"},
        {"#ttg.amd_wmma<{version = 2, rank = 2, ctaLayout = {warp = [[0, 1]], register = []}, "
         "instrShape = [16, 16, 16]}>",
         "#ttg.amd_wmma<{version = 2, isTranspose = false, ctaLayout = {warp = [[0, 1]]}}>"},
        {"#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, "
         "threadsPerWarp = 16, warpsPerCTA = [4, 2], repCluster = [2, 1], A = [16, 16], B = [16, "
         "16], C = [16, 16]}>",
         "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, "
         "threadsPerWarp = 16, warpsPerCTA = [4, 2], repCluster = [2, 1]}>"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        lilac_context *context = lilac_context_create();
        lilac_scanner scanner;
        lilac_text text = {0};
        scan(&scanner, context, pairs[i][0]);
        const lilac_encoding *encoding = lilac_encoding_read(&scanner, NULL);
        assert_non_null(encoding);
        lilac_encoding_print(&text, encoding);
        assert_string_equal(lilac_text_get(&text), pairs[i][1]);
        lilac_text_clear(&text);
        lilac_context_destroy(context);
    }
}

/* ---- built from C ----------------------------------------------------------------------- */

static void expect_text(const lilac_encoding *encoding, const char *expected) {
    lilac_text text = {0};
    lilac_encoding_print(&text, encoding);
    assert_string_equal(lilac_text_get(&text), expected);
    lilac_text_clear(&text);
}

static void built_from_c(void **state) {
    (void)state;
    static const uint32_t warps[] = {2, 4}, large[] = {32, 32, 8}, small[] = {16, 16, 16};
    static const uint32_t cluster[] = {4, 2}, odd[] = {32, 16, 8};
    lilac_encoding encoding;
    lilac_reason why;
    assert_true(lilac_encoding_amd_mfma(&encoding, 2, 3, large, true, 32, warps, &why));
    expect_text(&encoding, "#ttg.amd_mfma<{" MFMA_32 "true}>");
    encoding.as.amd_mfma.tiles_per_warp[1] = 2;
    expect_text(&encoding, "#ttg.amd_mfma<{" MFMA_32 "true, tilesPerWarp = [1, 2]}>");
    assert_true(lilac_encoding_amd_wmma(&encoding, 2, 1, small, false, warps, &why));
    expect_text(&encoding,
                "#ttg.amd_wmma<{version = 1, isTranspose = false, warpsPerCTA = [2, 4]}>");
    assert_true(lilac_encoding_intel_dpas(&encoding, 2, 8, 16, 2, 16, warps, cluster, &why));
    expect_text(&encoding, "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, "
                           "opsPerChan = 2, threadsPerWarp = 16, warpsPerCTA = [2, 4], repCluster "
                           "= [4, 2]}>");

    lilac_encoding_amd_rotating_shared(&encoding, 2, 4, 2, 8, (const uint32_t[]){1, 0});
    expect_text(&encoding,
                "#ttg.amd_rotating_shared<{vec = 4, perPhase = 2, maxPhase = 8, order = [1, 0]}>");

    lilac_encoding before = encoding;
    assert_false(lilac_encoding_amd_mfma(&encoding, 2, 3, odd, true, 32, warps, &why));
    assert_string_equal(why.text, "there is no mfma instruction 32x16, only 32x32, 16x16, 64x4 and "
                                  "4x64");
    assert_false(lilac_encoding_amd_mfma(&encoding, 2, 3, large, true, 16, warps, NULL));
    assert_false(lilac_encoding_amd_mfma(&encoding, 1, 3, large, true, 32, warps, NULL));
    assert_false(lilac_encoding_amd_wmma(&encoding, 2, 4, small, true, warps, &why));
    assert_string_equal(why.text, "there is no wmma version 4, only 1 to 3");
    assert_false(lilac_encoding_intel_dpas(&encoding, 2, 8, 16, 2, 8, warps, cluster, &why));
    assert_string_equal(why.text, "threadsPerWarp is 16 to 32 for rows of 16 elements, not 8");
    assert_memory_equal(&encoding, &before, sizeof encoding);
}

/* ---- what holds for all of them --------------------------------------------------------- */

/* A parent for a layout of C, with the rows of A and the columns of B. */
typedef struct matrices {
    const char *parent;
    uint32_t k_width_a, k_width_b;
    bool lanes_agree; /* a lane's registers hold the same K of A and of B */
} matrices;

static bool read_matrix(lilac_context *context, lilac_layout *layout, const matrices *of,
                        int operand, uint32_t rows, uint32_t columns) {
    char type[640];
    lilac_encoding_tensor tensor;
    int length;
    if (operand < 0) {
        length = snprintf(type, sizeof type, "tensor<%ux%uxf32, %s>", rows, columns, of->parent);
    } else {
        length =
            snprintf(type, sizeof type,
                     "tensor<%ux%uxf32, #ttg.dot_op<{opIdx = %d, parent = %s, kWidth = %u}>>", rows,
                     columns, operand, of->parent, operand == 0 ? of->k_width_a : of->k_width_b);
    }
    assert_true(length > 0 && (size_t)length < sizeof type);
    if (!read_type(context, type, &tensor)) {
        print_error("refused: %s\n", type);
        return false;
    }
    *layout = tensor.layout;
    return true;
}

/* The coordinates along an output that the bits of an input reach. */
static uint64_t reach(const lilac_layout *layout, const char *in, uint32_t out) {
    uint64_t reached = 0;
    for (uint32_t k = 0; k < lilac_layout_in_bits(layout, in); k++) {
        reached |= lilac_layout_coordinate(layout, lilac_layout_column(layout, in, k), out);
    }
    return reached;
}

/* The steps along an output, without those that take none. */
static uint32_t steps(uint64_t *list, const lilac_layout *layout, const char *in, uint32_t out) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < lilac_layout_in_bits(layout, in); k++) {
        uint64_t step = lilac_layout_coordinate(layout, lilac_layout_column(layout, in, k), out);
        if (step != 0) {
            list[count++] = step;
        }
    }
    return count;
}

static void same_steps(const matrices *of, const lilac_layout *a, uint32_t a_out,
                       const lilac_layout *b, uint32_t b_out, const char *in) {
    uint64_t left[LILAC_LAYOUT_MAX_BITS], right[LILAC_LAYOUT_MAX_BITS];
    uint32_t left_count = steps(left, a, in, a_out), right_count = steps(right, b, in, b_out);
    if (left_count != right_count || memcmp(left, right, left_count * sizeof left[0]) != 0) {
        fail_msg("%s: A and B differ along K in '%s'", of->parent, in);
    }
}

/* A warp computes its part of C from its rows of A and its columns of B, and all of K. */
static void operands_fit_result(const matrices *of, uint32_t m, uint32_t n, uint32_t k) {
    static const char *const in_thread[] = {"register", "lane"};
    lilac_context *context = lilac_context_create();
    lilac_layout a, b, c;
    assert_true(read_matrix(context, &c, of, -1, m, n) && read_matrix(context, &a, of, 0, m, k) &&
                read_matrix(context, &b, of, 1, k, n));
    assert_true(lilac_layout_is_surjective(&a));
    assert_true(lilac_layout_is_surjective(&b));
    assert_true(lilac_layout_is_surjective(&c));
    assert_true(lilac_layout_is_distributed(&c));
    uint32_t warp_bits = lilac_layout_in_bits(&c, "warp");
    assert_int_equal(lilac_layout_in_bits(&a, "warp"), warp_bits);
    assert_int_equal(lilac_layout_in_bits(&b, "warp"), warp_bits);
    assert_int_equal(reach(&a, "warp", 1), 0);
    assert_int_equal(reach(&b, "warp", 0), 0);
    for (uint32_t i = 0; i < warp_bits; i++) {
        uint64_t tile = lilac_layout_column(&c, "warp", i);
        assert_int_equal(lilac_layout_coordinate(&a, lilac_layout_column(&a, "warp", i), 0),
                         lilac_layout_coordinate(&c, tile, 0));
        assert_int_equal(lilac_layout_coordinate(&b, lilac_layout_column(&b, "warp", i), 1),
                         lilac_layout_coordinate(&c, tile, 1));
    }
    uint64_t rows = 0, columns = 0, rows_of_a = 0, columns_of_b = 0, k_of_a = 0, k_of_b = 0;
    for (uint32_t i = 0; i < 2; i++) {
        rows |= reach(&c, in_thread[i], 0), rows_of_a |= reach(&a, in_thread[i], 0);
        columns |= reach(&c, in_thread[i], 1), columns_of_b |= reach(&b, in_thread[i], 1);
        k_of_a |= reach(&a, in_thread[i], 1), k_of_b |= reach(&b, in_thread[i], 0);
        if (of->lanes_agree) {
            same_steps(of, &a, 1, &b, 0, in_thread[i]);
        }
    }
    assert_int_equal(rows, rows_of_a);
    assert_int_equal(columns, columns_of_b);
    assert_int_equal(k_of_a, k - 1);
    assert_int_equal(k_of_b, k - 1);
    lilac_context_destroy(context);
}

static void operands_fit_result_of_many_shapes(const matrices *of) {
    for (uint32_t m = 16; m <= 256; m *= 4) {
        for (uint32_t n = 16; n <= 256; n *= 4) {
            for (uint32_t k = 1; k <= 256; k *= 16) {
                operands_fit_result(of, m, n, k);
            }
        }
    }
}

static const char *const warp_grids[] = {"[1, 1]", "[2, 4]", "[4, 1]"};
static const char *const tile_grids[] = {"[1, 1]", "[2, 2]", "[1, 4]"};

static void mfma_operands_fit(void **state) {
    (void)state;
    static const char *const shapes[] = {"[32, 32, 8]", "[16, 16, 16]", "[4, 64, 4]", "[64, 4, 4]"};
    for (uint32_t i = 0; i < 36 * 2; i++) {
        uint32_t shape = i % 4, warps = i / 4 % 3, tiles = i / 12 % 3;
        bool transposed = shape == 3 || i / 36 != 0;
        char parent[256];
        (void)snprintf(parent, sizeof parent,
                       "#ttg.amd_mfma<{version = 4, warpsPerCTA = %s, instrShape = %s, "
                       "isTransposed = %s, tilesPerWarp = %s}>",
                       warp_grids[warps], shapes[shape], transposed ? "true" : "false",
                       tile_grids[tiles]);
        uint32_t k_width = UINT32_C(1) << i % 5;
        operands_fit_result_of_many_shapes(&(matrices){parent, k_width, k_width, shape < 2});
    }
}

static void wmma_operands_fit(void **state) {
    (void)state;
    static const struct {
        uint32_t version, k_width;
        const char *shape;
    } kinds[] = {{1, 8, "[16, 16, 16]"},  {1, 16, "[16, 16, 16]"}, {2, 4, "[16, 16, 32]"},
                 {2, 16, "[16, 16, 16]"}, {3, 2, "[16, 16, 4]"},   {3, 8, "[16, 16, 128]"}};
    static const char *const places[] = {
        "warpsPerCTA = [1, 1]", "warpsPerCTA = [2, 4], tilesPerWarp = [2, 2]",
        "ctaLayout = {warp = [[0, 1], [1, 0], [0, 2]]}",
        "ctaLayout = {register = [[0, 1], [1, 0]], warp = [[2, 0], [0, 0], [0, 2]]}"};
    for (uint32_t i = 0; i < 6 * 4 * 2; i++) {
        char parent[256];
        (void)snprintf(parent, sizeof parent,
                       "#ttg.amd_wmma<{version = %u, isTranspose = %s, %s, instrShape = %s}>",
                       kinds[i % 6].version, i / 24 != 0 ? "true" : "false", places[i / 6 % 4],
                       kinds[i % 6].shape);
        uint32_t k_width = kinds[i % 6].k_width;
        operands_fit_result_of_many_shapes(&(matrices){parent, k_width, k_width, true});
    }
    for (uint32_t i = 0; i < 2; i++) {
        static const char *const tall[] = {
            "#ttg.amd_wmma<{version = 3, isTranspose = false, ctaLayout = {register = [[1, 0]], "
            "warp = [[0, 1]]}, instrShape = [32, 16, 128]}>",
            "#ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {register = [[1, 0]], "
            "warp = [[0, 1]]}, instrShape = [32, 16, 128]}>"};
        operands_fit_result_of_many_shapes(&(matrices){tall[i], 16, 16, true});
    }
}

/* A and B of dpas go along K differently: A's lanes along a row, B's along a column. */
static void dpas_operands_fit(void **state) {
    (void)state;
    static const char *const clusters[] = {"[1, 1]", "[2, 1]", "[4, 2]"};
    for (uint32_t i = 0; i < 3 * 3 * 2; i++) {
        for (uint32_t operations = 1; operations <= 4; operations *= 2) {
            char parent[256];
            (void)snprintf(parent, sizeof parent,
                           "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, "
                           "opsPerChan = %u, threadsPerWarp = %u, warpsPerCTA = %s, repCluster = "
                           "%s}>",
                           operations, i / 9 != 0 ? 32U : 16U, warp_grids[i % 3],
                           clusters[i / 3 % 3]);
            operands_fit_result_of_many_shapes(
                &(matrices){parent, operations > 1 ? operations / 2 : 1, operations, false});
        }
    }
}

/* Both spellings of where waves and tiles are put the same elements in a lane of a warp; only the
 * registers are numbered differently. */
static void spellings_of_wmma_agree(void **state) {
    (void)state;
    static const matrices old = {"#ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = "
                                 "[2, 2], tilesPerWarp = [4, 2]}>",
                                 8, 8, true};
    static const matrices new = {"#ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = "
                                 "{register = [[0, 1], [1, 0], [2, 0]], warp = [[0, 2], [4, 0]]}}>",
                                 8, 8, true};
    lilac_context *context = lilac_context_create();
    for (int operand = -1; operand < 2; operand++) {
        lilac_layout left, right;
        uint64_t in_left = 0, in_right = 0;
        assert_true(read_matrix(context, &left, &old, operand, 256, 256));
        assert_true(read_matrix(context, &right, &new, operand, 256, 256));
        uint32_t bits = lilac_layout_in_bits(&left, "register");
        assert_int_equal(lilac_layout_in_bits(&right, "register"), bits);
        for (uint32_t k = 0; k < left.in_bits; k++) {
            if (k >= bits) {
                assert_int_equal(left.columns[k], right.columns[k]);
            }
            in_left |= k < bits ? left.columns[k] : 0;
            in_right |= k < bits ? right.columns[k] : 0;
        }
        assert_int_equal(in_left, in_right);
    }
    lilac_context_destroy(context);
}

/* Blocks of an operand: K is split as the parent's is in the spelling of 3.6, whole in main's. */
static void blocks_of_operands(void **state) {
    (void)state;
    expect_layout("tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 3, "
                  "isTranspose = false, warpsPerCTA = [1, 1], CGALayout = [[1, 0], [0, 1]], "
                  "instrShape = [16, 16, 32]}>, kWidth = 8}>>",
                  "{\"register\": [[0,1],[0,2],[0,4],[0,16],[16,0]], "
                  "\"lane\": [[1,0],[2,0],[4,0],[8,0],[0,8]], \"warp\": [], "
                  "\"block\": [[32,0],[0,32]]}");
    expect_layout("tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 3, "
                  "isTranspose = false, ctaLayout = {warp = []}, CGALayout = [[1, 0], [0, 1]], "
                  "instrShape = [16, 16, 32]}>, kWidth = 8}>>",
                  "{\"register\": [[0,1],[0,2],[0,4],[0,16],[0,32],[16,0]], "
                  "\"lane\": [[1,0],[2,0],[4,0],[8,0],[0,8]], \"warp\": [], "
                  "\"block\": [[32,0],[0,0]]}");
}

/* ---- rotating shared memory ------------------------------------------------------------- */

static void layout_of_memory(lilac_context *context, lilac_layout *layout, const char *attribute,
                             uint32_t rank, const int64_t *shape) {
    lilac_scanner scanner;
    scan(&scanner, context, attribute);
    const lilac_encoding *encoding = lilac_encoding_read(&scanner, NULL);
    assert_non_null(encoding);
    assert_true(lilac_encoding_layout(context, layout, encoding, rank, shape));
    lilac_text text = {0};
    lilac_encoding_print(&text, encoding);
    assert_string_equal(lilac_text_get(&text), attribute);
    lilac_text_clear(&text);
}

/* The element in cell (row, offset in the row) is the one whose column differs by vec × phase. */
static void rows_are_rotated(void **state) {
    (void)state;
    static const uint32_t parameters[][3] = {
        {4, 2, 4}, {2, 2, 2}, {1, 1, 16}, {8, 1, 8}, {16, 4, 1}};
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        uint64_t vec = parameters[i][0], per_phase = parameters[i][1], max_phase = parameters[i][2];
        for (uint32_t across = 0; across < 2; across++) {
            lilac_context *context = lilac_context_create();
            char text[160];
            (void)snprintf(text, sizeof text,
                           "#ttg.amd_rotating_shared<{vec = %u, perPhase = %u, maxPhase = %u, "
                           "order = [%u, %u]}>",
                           parameters[i][0], parameters[i][1], parameters[i][2], 1 - across,
                           across);
            int64_t shape[2];
            shape[across] = 64;
            shape[1 - across] = 32;
            lilac_layout layout;
            layout_of_memory(context, &layout, text, 2, shape);
            assert_true(lilac_layout_is_injective(&layout));
            for (uint64_t cell = 0; cell < 64 * 32; cell++) {
                uint64_t row = cell / 32, place = cell % 32;
                uint64_t phase = row / per_phase % max_phase;
                uint64_t group = row / per_phase / max_phase % max_phase;
                uint64_t element = lilac_layout_apply(&layout, cell);
                assert_int_equal(lilac_layout_coordinate(&layout, element, across), row);
                assert_int_equal(lilac_layout_coordinate(&layout, element, 1 - across),
                                 place ^ vec * (phase ^ group) % 32);
            }
            lilac_context_destroy(context);
        }
    }
}

/* Offset bits that lead to another block's part move nothing, as in Triton. */
static void rotating_with_blocks(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_layout layout;
    lilac_text text = {0};
    layout_of_memory(
        context, &layout,
        "#ttg.amd_rotating_shared<{vec = 2, perPhase = 1, maxPhase = 2, order = [2, 1, "
        "0], CGALayout = [[0, 1, 0], [0, 0, 1]]}>",
        3, (const int64_t[]){2, 8, 8});
    lilac_layout_json(&text, &layout);
    assert_string_equal(lilac_text_get(&text),
                        "{\"offset\": [[0,0,1],[0,0,2],[0,0,0],[0,1,2],[0,2,2],[0,0,0],[1,0,0]], "
                        "\"block\": [[0,4,0],[0,0,4]]}");
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

/* ---- refusals --------------------------------------------------------------------------- */

/* The type is refused with this id at the place of `at` in it. */
static void refused(const char *type, const char *id, const char *at) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_tensor tensor;
    if (read_type(context, type, &tensor)) {
        fail_msg("accepted: %s", type);
    }
    expect_error_at(context, type, id, at);
    lilac_context_destroy(context);
}

#define MFMA(fields) "tensor<64x64xf32, #ttg.amd_mfma<{" fields "}>>"
#define WMMA(fields) "tensor<64x64xf32, #ttg.amd_wmma<{" fields "}>>"

static void mfma_is_refused(void **state) {
    (void)state;
    refused(MFMA("version = 5, warpsPerCTA = [1, 1], instrShape = [32, 32, 8]"), "layout-version",
            "5, warps");
    refused(MFMA("version = 0, warpsPerCTA = [1, 1], instrShape = [32, 32, 8]"), "layout-version",
            "0, warps");
    refused(MFMA("version = 3, warpsPerCTA = [1, 1], instrShape = [32, 16, 8]"),
            "layout-instruction-shape", "[32, 16, 8]");
    refused(MFMA("version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32]"),
            "layout-instruction-shape", "[32, 32]");
    refused(MFMA("version = 3, warpsPerCTA = [1, 1], instrShape = [64, 4, 4], isTransposed = "
                 "false"),
            "layout-instruction-shape", "[64, 4, 4]");
    refused(MFMA("version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 12]"),
            "layout-not-power-of-two", "12]");
    refused(MFMA("version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], elementBitWidth = "
                 "16"),
            "layout-element-width", "16}");
    refused(MFMA("version = 3, warpsPerCTA = [1, 3], instrShape = [32, 32, 8]"),
            "layout-not-power-of-two", "3], instr");
    refused(MFMA("version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], tilesPerWarp = "
                 "[1, 1, 1]"),
            "layout-rank", "[1, 1, 1]");
    refused(MFMA("version = 3, warpsPerCTA = [2], instrShape = [32, 32, 8]"), "layout-rank",
            "#ttg");
    refused(MFMA("version = 3, warpsPerCTA = [1, 1]"), "layout-field-missing", "#ttg");
    refused(MFMA("version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], rank = 2"),
            "layout-field-unknown", "rank");
    refused("tensor<4x64x64xf32, #ttg.amd_mfma<{" MFMA_32 "true}>>", "layout-rank", "#ttg");
    refused("tensor<64x64xf32, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{" MFMA_32
            "true}>}>>",
            "layout-dot-k-width", "#ttg");
    refused("tensor<64x64xf32, #ttg.dot_op<{opIdx = 2, parent = #ttg.amd_mfma<{" MFMA_32
            "true}>, kWidth = 4}>>",
            "layout-dot-operand", "2, parent");
    refused("tensor<64x64xf32, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{version = 3, "
            "warpsPerCTA = [1073741824, 1073741824], instrShape = [4, 64, 4]}>, kWidth = "
            "1073741824}>>",
            "layout-too-large", "#ttg");
}

static void wmma_is_refused(void **state) {
    (void)state;
    refused(WMMA("version = 4, warpsPerCTA = [1, 1]"), "layout-version", "4, warps");
    refused(WMMA("version = 1, warpsPerCTA = [1, 1], instrShape = [16, 16, 32]"),
            "layout-instruction-shape", "[16, 16, 32]");
    refused(WMMA("version = 2, warpsPerCTA = [1, 1], instrShape = [16, 16]"),
            "layout-instruction-shape", "[16, 16]");
    /* Version 3 has no instruction of the shape that goes without saying. */
    refused(WMMA("version = 3, warpsPerCTA = [1, 1]"), "layout-instruction-shape", "#ttg");
    refused(WMMA("version = 3, warpsPerCTA = [1, 1], instrShape = [32, 16, 128]"),
            "layout-instruction-shape", "[32, 16, 128]");
    refused(WMMA("version = 2, isTranspose = false"), "layout-field-missing", "#ttg");
    refused(WMMA("version = 2, warpsPerCTA = [1, 1], ctaLayout = {warp = []}"),
            "layout-field-twice", "[1, 1]");
    refused(WMMA("version = 2, tilesPerWarp = [1, 1], ctaLayout = {warp = []}"),
            "layout-field-twice", "[1, 1]");
    refused(WMMA("version = 2, ctaLayout = {register = []}"), "layout-field-missing", "{register");
    refused(WMMA("version = 2, ctaLayout = {lane = []}"), "layout-field-unknown", "lane");
    refused(WMMA("version = 2, ctaLayout = {warp = [[0, 3]]}"), "layout-not-surjective", "{warp");
    refused(WMMA("version = 2, ctaLayout = {warp = [[1, 1]]}"), "layout-not-surjective", "{warp");
    refused(WMMA("version = 2, ctaLayout = {warp = [[0, 2]]}"), "layout-not-surjective", "{warp");
    refused(WMMA("version = 2, rank = 3, ctaLayout = {warp = [[0, 1]]}"), "layout-rank", "3, cta");
    refused(WMMA("version = 2, rank = 4, ctaLayout = {warp = []}"), "layout-rank", "#ttg");
    refused(WMMA("version = 2, ctaLayout = {warp = [[0, 1, 0]]}, CGALayout = [[0, 1]]"),
            "layout-rank", "[0, 1]]}>>");
    refused("tensor<64x64xf32, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 1, "
            "warpsPerCTA = [1, 1]}>, kWidth = 4}>>",
            "layout-dot-k-width", "#ttg.dot_op");
    refused("tensor<64x64xf32, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 2, "
            "warpsPerCTA = [1, 1]}>, kWidth = 2}>>",
            "layout-dot-k-width", "#ttg.dot_op");
    refused("tensor<64x64xf32, #ttg.dot_op<{opIdx = 1, parent = #ttg.amd_wmma<{version = 3, "
            "warpsPerCTA = [1, 1], instrShape = [16, 16, 4]}>, kWidth = 4}>>",
            "layout-dot-k-width", "#ttg.dot_op");
}

static void dpas_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *changed, *to, *id, *at;
    } cases[] = {
        {"repeatCount = 8", "repeatCount = 16", "layout-instruction-shape", "16, systolic"},
        {"repeatCount = 8", "repeatCount = 3", "layout-not-power-of-two", "3, systolic"},
        {"systolicDepth = 8", "systolicDepth = 4", "layout-instruction-shape", "4, execution"},
        {"executionSize = 16", "executionSize = 32", "layout-instruction-shape", "32, ops"},
        {"opsPerChan = 2", "opsPerChan = 8", "layout-instruction-shape", "8, threads"},
        {"threadsPerWarp = 32", "threadsPerWarp = 8", "layout-instruction-shape", "8, warps"},
        {"threadsPerWarp = 32", "threadsPerWarp = 64", "layout-instruction-shape", "64, warps"},
        {"repeatCount = 8", "repeatCount = 1", "layout-instruction-shape", "32, warps"},
        {"warpsPerCTA = [1, 1]", "warpsPerCTA = [1]", "layout-rank", "[1, 1]"},
        {"repCluster = [1, 1]", "repCluster = [2, 1], A = [8, 16]", "layout-instruction-shape",
         "[8, 16]"},
        {"repCluster = [1, 1]", "repCluster = [1, 1], B = [16]", "layout-instruction-shape",
         "[16]"},
        {"opsPerChan = 2", "opsPerChan = 4, fp4KPack = 2", "layout-field-unknown", "fp4KPack"},
        {"systolicDepth = 8, ", "", "layout-field-missing", "#ttig"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char whole[] = "tensor<64x64xf32, " DPAS_32 ">";
        const char *place = strstr(whole, cases[i].changed);
        char type[320];
        assert_non_null(place);
        (void)snprintf(type, sizeof type, "%.*s%s%s", (int)(place - whole), whole, cases[i].to,
                       place + strlen(cases[i].changed));
        refused(type, cases[i].id, cases[i].at);
    }
    refused("tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = " DPAS_32 ", kWidth = 2}>>",
            "layout-dot-k-width", "#ttg.dot_op");
    refused("tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = " DPAS_32 ", kWidth = 1}>>",
            "layout-dot-k-width", "#ttg.dot_op");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mfma_results),
        cmocka_unit_test(mfma_operands),
        cmocka_unit_test(wmma),
        cmocka_unit_test(dpas),
        cmocka_unit_test(what_is_not_usual_is_printed),
        cmocka_unit_test(any_parameters_print_and_read),
        cmocka_unit_test(what_is_usual_need_not_be_said),
        cmocka_unit_test(built_from_c),
        cmocka_unit_test(mfma_operands_fit),
        cmocka_unit_test(wmma_operands_fit),
        cmocka_unit_test(dpas_operands_fit),
        cmocka_unit_test(spellings_of_wmma_agree),
        cmocka_unit_test(blocks_of_operands),
        cmocka_unit_test(rows_are_rotated),
        cmocka_unit_test(rotating_with_blocks),
        cmocka_unit_test(mfma_is_refused),
        cmocka_unit_test(wmma_is_refused),
        cmocka_unit_test(dpas_is_refused),
    };
    return cmocka_run_group_tests_name("encoding_amd", tests, NULL, NULL);
}
