/* Types of memory: read, with their layouts, and refused, each refusal by its id and its place. */
#include "support/scanned.h"

#include <lilac/encoding.h>

#include <string.h>

#define SWIZZLED "#ttg.swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 4, order = [1, 0]}>"

static bool read_type(lilac_context *context, const char *text, lilac_encoding_memdesc *memdesc) {
    lilac_scanner scanner;
    scan(&scanner, context, text);
    return lilac_encoding_read_memdesc(&scanner, NULL, memdesc) && scanner.kind == LILAC_TOKEN_END;
}

static void expect_layout(const char *type, const char *json) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_memdesc memdesc;
    lilac_text text = {0};
    assert_true(read_type(context, type, &memdesc));
    lilac_layout_json(&text, &memdesc.layout);
    assert_string_equal(lilac_text_get(&text), json);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

static void types(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_encoding_memdesc memdesc;
    assert_true(read_type(context, "!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem>", &memdesc));
    assert_int_equal(memdesc.rank, 2);
    assert_int_equal(memdesc.shape[1], 8);
    assert_int_equal(memdesc.alloc_rank, 2);
    assert_int_equal(memdesc.alloc_shape[1], 8);
    assert_int_equal(memdesc.scalar, LILAC_F16);
    assert_false(memdesc.is_mutable);
    assert_int_equal(lilac_encoding_place_of(memdesc.encoding), LILAC_ENCODING_OF_SHARED_MEMORY);
    assert_true(read_type(
        context, "!ttg.memdesc<4x8xi8, " SWIZZLED ", #ttg.shared_memory, mutable>", &memdesc));
    assert_true(memdesc.is_mutable);
    assert_true(read_type(context, "!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, mutable, 3x16x8>",
                          &memdesc));
    assert_int_equal(memdesc.alloc_rank, 3);
    assert_int_equal(memdesc.alloc_shape[0], 3);
    assert_int_equal(memdesc.alloc_shape[1], 16);
    assert_int_equal(memdesc.alloc_shape[2], 8);
    assert_true(read_type(context, "!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, 4x8>", &memdesc));
    assert_false(memdesc.is_mutable);
    assert_int_equal(lilac_error_count(context), 0);
    lilac_context_destroy(context);
}

static void parts_of_allocations(void **state) {
    (void)state;
    /* One of three buffers: the last two dimensions are its. */
    expect_layout("!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, mutable, 3x4x8>",
                  "{\"offset\": [[0,1],[0,2],[0,4],[1,2],[2,4]], \"block\": []}");
    /* Rows of the allocation that are not in the part, at the end and in the middle. */
    expect_layout("!ttg.memdesc<2x8xf16, " SWIZZLED ", #smem, mutable, 4x8>",
                  "{\"offset\": [[0,1],[0,2],[0,4],[1,2],[0,4]], \"block\": []}");
    expect_layout("!ttg.memdesc<4x4xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = "
                  "1, order = [1, 0]}>, #smem, mutable, 8x8>",
                  "{\"offset\": [[0,1],[0,2],[0,0],[1,0],[2,0]], \"block\": []}");
}

static void blocks(void **state) {
    (void)state;
    expect_layout("!ttg.memdesc<8x8xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = "
                  "1, order = [1, 0], CGALayout = [[1, 0], [0, 0]]}>, #smem>",
                  "{\"offset\": [[0,1],[0,2],[0,4],[1,0],[2,0]], \"block\": [[4,0],[0,0]]}");
    expect_layout("!ttg.memdesc<16x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed "
                  "= false, elementBitWidth = 16, CGALayout = [[0, 1]]}>, #smem>",
                  "{\"offset\": [[0,1],[0,2],[0,4],[0,8],[0,16],[1,0],[2,8],[4,16],[8,0]], "
                  "\"block\": [[0,32]]}");
}

/* Three dimensions: the rows of the swizzle go along all dimensions but the contiguous one. */
static void nvmma_of_rank_three(void **state) {
    (void)state;
    expect_layout("!ttg.memdesc<2x4x16xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed "
                  "= false, elementBitWidth = 16, rank = 3}>, #smem>",
                  "{\"offset\": [[0,0,1],[0,0,2],[0,0,4],[0,0,8],[0,1,0],[0,2,0],[1,0,8]], "
                  "\"block\": []}");
    /* Transposed, Triton has as many rows as the last dimension, numbered above the columns. */
    expect_layout("!ttg.memdesc<32x4x8xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed "
                  "= true, elementBitWidth = 16, rank = 3}>, #smem>",
                  "{\"offset\": [[1,0,0],[2,0,0],[4,0,0],[8,0,0],[0,0,4],[0,1,0],[8,2,0],[0,0,1],"
                  "[0,0,2],[16,0,0]], \"block\": []}");
}

static void tensor_memory(void **state) {
    (void)state;
    /* The two spellings of blocks: parts in columns, and an input of their own. */
    expect_layout("!ttg.memdesc<256x4xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 4, "
                  "colStride = 1, CTASplitM = 2>, #tmem>",
                  "{\"row\": [[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[64,0]], "
                  "\"col\": [[0,1],[0,2],[128,0]], \"block\": []}");
    expect_layout("!ttg.memdesc<256x4xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 4, "
                  "colStride = 1, CGALayout = [[1, 0]]>, #tmem>",
                  "{\"row\": [[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[64,0]], "
                  "\"col\": [[0,1],[0,2]], \"block\": [[128,0]]}");
    /* Two blocks at work on 64 rows each: the highest column is row bit 6. */
    expect_layout("!ttg.memdesc<128x4xf32, #ttng.tensor_memory_encoding<blockM = 64, blockN = 4, "
                  "colStride = 1, CGALayout = [[1, 0]], twoCTAs = true>, #tmem>",
                  "{\"row\": [[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[0,2]], \"col\": [[0,1]], "
                  "\"block\": [[64,0]]}");
    expect_layout("!ttg.memdesc<128x4xf32, #ttng.tensor_memory_encoding<blockM = 64, blockN = 4, "
                  "colStride = 1, CTASplitM = 2, twoCTAs = true>, #tmem>",
                  "{\"row\": [[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[0,2]], "
                  "\"col\": [[0,1],[64,0]], \"block\": []}");
    /* A tile of one column: the highest column is one between elements. */
    expect_layout("!ttg.memdesc<64x1xi8, #ttng.tensor_memory_encoding<blockM = 64, blockN = 1, "
                  "colStride = 1, twoCTAs = true, fp4Padded = true>, #tmem>",
                  "{\"row\": [[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[0,0]], \"col\": [], "
                  "\"block\": []}");
    /* Of CTASplitM, the two blocks share what tiles and parts there are. */
    expect_layout("!ttg.memdesc<256x1xf32, #ttng.tensor_memory_encoding<blockM = 64, blockN = 1, "
                  "colStride = 1, CTASplitM = 4, twoCTAs = true>, #tmem>",
                  "{\"row\": [[1,0],[2,0],[4,0],[8,0],[16,0],[32,0],[128,0]], "
                  "\"col\": [[64,0]], \"block\": []}");
    expect_layout("!ttg.memdesc<128x8xi8, #ttng.tensor_memory_scales_encoding<>, #tmem>",
                  "{\"row\": [[1,0],[2,0],[4,0],[8,0],[16,0],[0,0],[0,0]], "
                  "\"col\": [[0,1],[0,2],[32,0],[64,0],[0,4]], \"block\": []}");
}

/* By bases: partitions and tensor memory too. */
static void by_bases(void **state) {
    (void)state;
    expect_layout(
        "!ttg.memdesc<4x4xf16, #ttg.shared_linear<{offset = [[0, 1], [1, 2]], block = [], "
        "partition = [[1, 0], [2, 0]]}>, #smem>",
        "{\"offset\": [[0,1],[1,2]], \"block\": [], \"partition\": [[1,0],[2,0]]}");
    expect_layout("!ttg.memdesc<2x4xf32, #ttng.tensor_memory_linear<{row = [[1, 0], [0, 0]], col = "
                  "[[0, 2], [0, 1]]}>, #tmem>",
                  "{\"row\": [[1,0],[0,0]], \"col\": [[0,2],[0,1]], \"block\": []}");
}

static void building_is_reading(void **state) {
    (void)state;
    static const uint32_t order[] = {1, 0}, warps[] = {4, 1}, instr[] = {16, 64, 16};
    static const int64_t shape[] = {8, 64}, part[] = {4, 64};
    lilac_context *context = lilac_context_create();
    lilac_encoding mma, slice, operand, swizzled, nvmma, linear;
    lilac_text text = {0};
    lilac_encoding_nvidia_mma(&mma, 3, 0, 2, warps, instr);
    lilac_encoding_slice(&slice, 1, &mma);
    lilac_encoding_dot_operand(&operand, 0, &mma, 2);
    lilac_encoding_swizzled_shared(&swizzled, 2, 2, 1, 4, order);
    lilac_encoding_nvmma_shared(&nvmma, 2, 128, false, 16, false);
    lilac_layout layout;
    assert_true(lilac_encoding_layout(context, &layout, &nvmma, 2, shape));
    assert_true(lilac_encoding_linear(&linear, &layout));
    const lilac_encoding *const built[] = {&mma, &slice, &operand, &swizzled, &nvmma, &linear};
    for (uint32_t i = 0; i < 6; i++) {
        lilac_scanner scanner;
        lilac_text again_text = {0};
        lilac_text_reset(&text);
        lilac_encoding_print(&text, built[i]);
        lilac_scanner_init(&scanner, context,
                           lilac_source_add(context, "test", text.bytes, text.length));
        const lilac_encoding *again = lilac_encoding_read(&scanner, NULL);
        assert_non_null(again);
        assert_int_equal(again->kind, built[i]->kind);
        assert_int_equal(again->rank, built[i]->rank);
        lilac_encoding_print(&again_text, again);
        assert_string_equal(lilac_text_get(&again_text), lilac_text_get(&text));
        lilac_text_clear(&again_text);
    }
    /* Half of an allocation: what leads out of it moves nothing. */
    assert_true(lilac_encoding_memory_layout(context, &layout, &swizzled, 2, part, 2, shape));
    assert_int_equal(lilac_layout_in_bits(&layout, "offset"), 8);
    /* No register, no offset: no name. */
    lilac_layout_identity(&layout, 3, "bank", "dim0");
    assert_false(lilac_encoding_linear(&linear, &layout));
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

static void partitions(void **state) {
    (void)state;
    expect_layout("!ttg.memdesc<8x2xf16, #ttg.partitioned_shared<{numPartitions = 2, numGroups = "
                  "2, partitionDim = 0, partitionLayout = #ttg.padded_shared<[8:+2] {order = [1, "
                  "0], shape = [2, 2]}>}>, #smem>",
                  "{\"offset\": [[0,1],[1,0],[4,0]], \"block\": [], \"partition\": [[2,0]]}");
}

/* ---- refusals --------------------------------------------------------------------------- */

/* The type is refused with this id at the place of `at` in it. */
static void refused(const char *type, const char *id, const char *at) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_memdesc memdesc = {0};
    lilac_encoding_memdesc before = memdesc;
    if (read_type(context, type, &memdesc)) {
        fail_msg("accepted: %s", type);
    }
    assert_memory_equal(&memdesc, &before, sizeof memdesc);
    expect_error_at(context, type, id, at);
    lilac_context_destroy(context);
}

static void types_are_refused(void **state) {
    (void)state;
    refused("tensor<4xf32>", "syntax", "tensor");
    refused("!ttg.memdisc<4x8xf16, " SWIZZLED ", #smem>", "syntax", "!ttg");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ";", "syntax", ";");
    refused("!ttg.memdesc<3x8xf16, " SWIZZLED ", #smem>", "shape-not-power-of-two", "3x8");
    refused("!ttg.memdesc<8xf16, " SWIZZLED ", #smem>", "layout-rank", "#ttg");
    refused("!ttg.memdesc<4x8xf17, " SWIZZLED ", #smem>", "element-type-unknown", "f17");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", mutable>", "syntax", "mutable");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", #dmem>", "memory-space-unknown", "#dmem");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", #ttng.tensor_memory>", "memory-space", "#ttng");
    refused("!ttg.memdesc<128x8xf16, #ttng.tensor_memory_encoding<blockM = 128, blockN = 8, "
            "colStride = 1>, #ttg.shared_memory>",
            "memory-space", "#ttg.shared_memory");
    refused("!ttg.memdesc<4x8xf16, #ttg.slice<{dim = 0, parent = " SWIZZLED "}>, #smem>",
            "layout-of-memory", SWIZZLED);
    refused("!ttg.memdesc<4xf16, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], "
            "warpsPerCTA = [1], order = [0]}>, #smem>",
            "layout-of-tensor", "#ttg");
}

static void allocations_are_refused(void **state) {
    (void)state;
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, mutable, 2x8>", "alloc-shape", "2x8");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, mutable, 32>", "alloc-shape", "32>");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, mutable, 6x8>", "shape-not-power-of-two",
            "#ttg");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, mutable, 4x99999999999999999999>",
            "integer-too-large", "x9999");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, mutable, 4xf8>", "syntax", "xf8");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED ", #smem, mutable, mutable>", "syntax", "mutable>");
    refused("!ttg.memdesc<4x8xf16, " SWIZZLED
            ", #smem, 1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x4x8>",
            "layout-rank", "1x1x1x1x1");
}

#define OF(shape, encoding) "!ttg.memdesc<" shape "xi8, " encoding ", #smem>"

static void shared_layouts_are_refused(void **state) {
    (void)state;
    refused(OF("8x8", "#ttg.swizzled_shared<{vec = 3, perPhase = 1, maxPhase = 1, order = [1]}>"),
            "layout-not-power-of-two", "3, per");
    refused(OF("8x8", "#ttg.swizzled_shared<{vec = 1, perPhase = 1, order = [1, 0]}>"),
            "layout-field-missing", "#ttg");
#define NVMMA(width, bits, more)                                                                   \
    "#ttg.nvmma_shared<{swizzlingByteWidth = " width                                               \
    ", transposed = false, elementBitWidth = " bits more "}>"
    refused(OF("8x256", NVMMA("48", "8", "")), "layout-swizzle", "48");
    refused(OF("8x256", NVMMA("128", "12", "")), "layout-element-width", "12}");
    refused(OF("8x256", NVMMA("64", "8", ", fp4Padded = true")), "layout-fp4-padded", "true");
    refused(OF("8x256", NVMMA("64", "8", ", fp4Padded = 1")), "syntax", "1}");
    refused(OF("256", NVMMA("64", "8", ", rank = 1")), "layout-rank", "#ttg");
    refused(OF("256", NVMMA("0", "8", ", rank = 0")), "layout-rank", "#ttg");
    refused(OF("256", NVMMA("0", "8", ", rank = 25")), "layout-rank", "#ttg");
    refused(OF("8x8", NVMMA("0", "8", ", rank = 3, CGALayout = [[1, 0]]")), "layout-rank", "3,");
    refused(OF("8x8", NVMMA("-1", "8", "")), "layout-number", "-1");
    refused(OF("8x64", NVMMA("128", "8", "")), "layout-shape", "#ttg");
    refused(OF("4x128", NVMMA("128", "8", "")), "layout-shape", "#ttg");
#define LINEAR(offset) "#ttg.shared_linear<{offset = " offset ", block = []}, alignment = 16>"
    refused(OF("4x4", LINEAR("[[0, 1], [0, 2], [1, 1]]")), "layout-shape", "#ttg");
    refused(OF("4x2", LINEAR("[[0, 1], [3, 0]]")), "layout-not-surjective", "#ttg");
    refused(OF("4x2", LINEAR("[]")), "layout-rank", "#ttg");
    refused(OF("2x2", "#ttg.shared_linear<{offset = [[1]]}, alignment = 3>"),
            "layout-not-power-of-two", "3>");
}

static void padded_layouts_are_refused(void **state) {
    (void)state;
#define PADDED(paddings, more) "#ttg.padded_shared<[" paddings "] {" more "}>"
#define ORDER                  "order = [1, 0], shape = [4, 4]"
    refused(OF("4x4", PADDED("3:+1", ORDER)), "layout-not-power-of-two", "3:");
    refused(OF("4x4", PADDED("4:1", ORDER)), "syntax", "1] {");
    refused(OF("4x4", PADDED("4:+1, 4:+2", ORDER)), "layout-padding", "4:+2");
    refused(OF("4x4", PADDED("1:+1, 2:+1, 4:+1, 8:+1, 16:+1, 32:+1, 64:+1, 128:+1, 256:+1, "
                             "512:+1, 1024:+1, 2048:+1, 4096:+1, 8192:+1, 16384:+1, 32768:+1, "
                             "65536:+1",
                             ORDER)),
            "layout-padding", "65536");
    refused(OF("4x4", PADDED("4:+1", ORDER ", offset = [[0, 1]]")), "layout-two-forms", "#ttg");
    refused(OF("4x4", PADDED("4:+1", "order = [1, 0]")), "layout-field-missing", "#ttg");
    refused(OF("4x4", PADDED("4:+1", "block = []")), "layout-field-missing", "#ttg");
    refused(OF("4x8", PADDED("4:+1", ORDER)), "layout-shape", "#ttg");
    refused(OF("4x8", PADDED("4:+1", "order = [2, 1, 0], shape = [1073741824, 1073741824, "
                                     "1073741824]")),
            "layout-too-large", "[1073741824, ");
}

static void partitions_are_refused(void **state) {
    (void)state;
#define PARTITIONED(dim, layout)                                                                   \
    "#ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = " dim               \
    ", partitionLayout = " layout "}>"
    refused(OF("8x8", PARTITIONED("2", SWIZZLED)), "layout-partition", "2, partitionLayout");
    refused(OF("4x8", PARTITIONED("0", SWIZZLED)), "layout-shape", "#ttg");
    refused(OF("8x8", PARTITIONED("0", PARTITIONED("1", SWIZZLED))), "layout-partition",
            PARTITIONED("1", SWIZZLED));
    refused(OF("8x8", PARTITIONED("0", "#ttng.tensor_memory_scales_encoding<>")),
            "layout-of-tensor", "#ttng");
}

#define TENSOR(shape, fields)                                                                      \
    "!ttg.memdesc<" shape "xf32, #ttng.tensor_memory_encoding<" fields ">, #tmem>"

static void tensor_memory_is_refused(void **state) {
    (void)state;
    refused(TENSOR("128x8", "blockM = 32, blockN = 8, colStride = 1"), "layout-tensor-memory",
            "32, blockN");
    refused(TENSOR("128x8", "blockM = 128, blockN = 8, colStride = 8"), "layout-tensor-memory",
            "8>");
    refused(TENSOR("128x8", "blockM = 128, blockN = 7, colStride = 1"), "layout-not-power-of-two",
            "7,");
    refused(TENSOR("64x8", "blockM = 128, blockN = 8, colStride = 1"), "layout-shape", "#ttng");
    refused(TENSOR("128x2", "blockM = 128, blockN = 8, colStride = 1, CTASplitN = 4"),
            "layout-shape", "#ttng");
    refused(TENSOR("64x1", "blockM = 64, blockN = 1, colStride = 1, twoCTAs = true"),
            "layout-shape", "#ttng");
    refused(
        TENSOR("128x1", "blockM = 64, blockN = 1, colStride = 1, CTASplitM = 2, twoCTAs = true"),
        "layout-shape", "#ttng");
    refused(TENSOR("128x8", "blockM = 128, blockN = 8, colStride = 1, CTASplitM = 2, CGALayout = "
                            "[[1, 0]]"),
            "layout-two-forms", "[[1, 0]]");
    refused(TENSOR("128x8", "blockM = 128, blockN = 8, colStride = 1, CGALayout = [[1]]"),
            "layout-rank", "[[1]]");
    refused("!ttg.memdesc<4x4xf32, #ttng.tensor_memory_linear<{row = [[1, 0]], col = [[0, 1]]}>, "
            "#tmem>",
            "layout-shape", "#ttng");
    refused("!ttg.memdesc<2x2xf32, #ttng.tensor_memory_linear<{row = [[1, 0]], col = [[0, 2]]}>, "
            "#tmem>",
            "layout-not-surjective", "#ttng");
    refused("!ttg.memdesc<2x2xf32, #ttng.tensor_memory_linear<{row = [[1, 0]]}>, #tmem>",
            "layout-field-missing", "#ttng");
    refused(TENSOR("128x8", ""), "layout-field-missing", "#ttng");
    refused("!ttg.memdesc<128x8xi8, #ttng.tensor_memory_scales_encoding<blockRepOrder = both>, "
            "#tmem>",
            "syntax", "both");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),
        cmocka_unit_test(parts_of_allocations),
        cmocka_unit_test(blocks),
        cmocka_unit_test(nvmma_of_rank_three),
        cmocka_unit_test(tensor_memory),
        cmocka_unit_test(by_bases),
        cmocka_unit_test(building_is_reading),
        cmocka_unit_test(partitions),
        cmocka_unit_test(types_are_refused),
        cmocka_unit_test(allocations_are_refused),
        cmocka_unit_test(shared_layouts_are_refused),
        cmocka_unit_test(padded_layouts_are_refused),
        cmocka_unit_test(partitions_are_refused),
        cmocka_unit_test(tensor_memory_is_refused),
    };
    return cmocka_run_group_tests_name("memdesc", tests, NULL, NULL);
}
