/* print ∘ read = id for every named layout, over its parameter space: random attributes are spelt
 * out by the test, so that reading and printing are both held against a third spelling. What has a
 * layout for a random shape has one that reaches every element. */

#include <lilac/encoding.h>

#include "support/test.h"

enum { MAX_TEST_RANK = 4 };

static bool coin(lilac_random *random) {
    return random_below(random, 2) == 0;
}

/* ---- spelling --------------------------------------------------------------------------- */

static void put_list(lilac_text *text, const char *name, const uint32_t *values, uint32_t count) {
    lilac_text_printf(text, "%s = [", name);
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_printf(text, "%s%u", i == 0 ? "" : ", ", values[i]);
    }
    lilac_text_char(text, ']');
}

static void put_sizes(lilac_text *text, lilac_random *random, const char *name, uint32_t rank,
                      uint32_t bits) {
    uint32_t values[MAX_TEST_RANK + 2];
    for (uint32_t d = 0; d < rank; d++) {
        values[d] = 1U << random_below(random, bits + 1);
    }
    put_list(text, name, values, rank);
}

static void permutation(uint32_t *order, lilac_random *random, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = random_below(random, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

static void put_order(lilac_text *text, lilac_random *random, uint32_t rank) {
    uint32_t order[MAX_TEST_RANK + 2];
    permutation(order, random, rank);
    put_list(text, "order", order, rank);
}

/* ", CGALayout = […]" or, often, nothing. */
static void put_blocks(lilac_text *text, lilac_random *random, uint32_t rank) {
    uint32_t bits = coin(random) ? 0 : random_below(random, 4), next[MAX_TEST_RANK + 2] = {0};
    for (uint32_t k = 0; k < bits; k++) {
        uint32_t dim = random_below(random, rank + 1);
        lilac_text_puts(text, k == 0 ? ", CGALayout = [" : ", ");
        for (uint32_t d = 0; d < rank; d++) {
            lilac_text_printf(text, "%s%u", d == 0 ? "[" : ", ", d == dim ? 1U << next[d] : 0);
        }
        lilac_text_char(text, ']');
        next[dim < rank ? dim : 0] += dim < rank;
    }
    if (bits != 0) {
        lilac_text_char(text, ']');
    }
}

/* Inputs that share out random bases, by unit vectors or with xors of some of them; a few zero. */
static void put_bases(lilac_text *text, lilac_random *random, uint32_t rank,
                      const char *const *names, uint32_t count, bool mixed) {
    uint32_t dims[24], bits[24], size[MAX_TEST_RANK + 2] = {0},
                                                      total = 1 + random_below(random, 10);
    uint32_t order[24];
    for (uint32_t k = 0; k < total; k++) {
        dims[k] = k < rank ? k : random_below(random, rank + 1); /* rank: a copy */
        bits[k] = dims[k] < rank ? size[dims[k]]++ : 0;
    }
    permutation(order, random, total);
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = i + 1 == count ? total : at + random_below(random, total - at + 1);
        lilac_text_printf(text, "%s%s = [", i == 0 ? "" : ", ", names[i]);
        for (uint32_t first = at; at < end; at++) {
            uint32_t k = order[at], other = at == 0 ? k : order[random_below(random, at)];
            bool both = mixed && other != k && dims[k] < rank && dims[other] < rank &&
                        dims[other] != dims[k] && coin(random);
            lilac_text_puts(text, at == first ? "[" : ", [");
            for (uint32_t d = 0; d < rank; d++) {
                uint32_t value = d == dims[k] ? 1U << bits[k] : 0;
                if (both && d == dims[other]) {
                    value ^= 1U << bits[other];
                }
                lilac_text_printf(text, "%s%u", d == 0 ? "" : ", ", value);
            }
            lilac_text_char(text, ']');
        }
        lilac_text_char(text, ']');
    }
}

/* ---- layouts of tensors ----------------------------------------------------------------- */

static void put_blocked(lilac_text *text, lilac_random *random, uint32_t rank) {
    lilac_text_puts(text, "#ttg.blocked<{");
    put_sizes(text, random, "sizePerThread", rank, 2);
    lilac_text_puts(text, ", ");
    put_sizes(text, random, "threadsPerWarp", rank, 2);
    lilac_text_puts(text, ", ");
    put_sizes(text, random, "warpsPerCTA", rank, 2);
    lilac_text_puts(text, ", ");
    put_order(text, random, rank);
    put_blocks(text, random, rank);
    lilac_text_puts(text, "}>");
}

static void put_linear(lilac_text *text, lilac_random *random, uint32_t rank) {
    static const char *const names[] = {"register", "lane", "warp", "block"};
    bool generic = coin(random);
    lilac_text_puts(text, generic ? "#ttg.generic_linear<{" : "#ttg.linear<{");
    put_bases(text, random, rank, names, 4, generic);
    lilac_text_puts(text, "}>");
}

/* Returns the version. */
static uint32_t put_nvidia_mma(lilac_text *text, lilac_random *random, uint32_t rank) {
    uint32_t version = rank == 2 && coin(random) ? 3 : 2, shape[MAX_TEST_RANK + 2];
    lilac_text_printf(text, "#ttg.nvidia_mma<{versionMajor = %u, versionMinor = %u, ", version,
                      random_below(random, 2));
    put_sizes(text, random, "warpsPerCTA", rank, 2);
    put_blocks(text, random, rank);
    for (uint32_t d = 0; d < rank; d++) {
        shape[d] = 1;
    }
    shape[rank - 2] = coin(random) ? 16 : 8;
    shape[rank - 1] = 8;
    lilac_text_puts(text, ", ");
    if (version == 3) {
        shape[0] = 16;
        shape[1] = 8U << random_below(random, 6);
        shape[2] = 8U << random_below(random, 3);
    }
    put_list(text, "instrShape", shape, version == 3 ? 3 : rank);
    lilac_text_puts(text, "}>");
    return version;
}

static void put_tiles(lilac_text *text, lilac_random *random, uint32_t rank) {
    uint32_t tiles[3] = {1, 1, 1};
    uint32_t which = random_below(random, rank + 1);
    if (which < rank) {
        tiles[which] = 2;
        lilac_text_puts(text, ", ");
        put_list(text, "tilesPerWarp", tiles, rank);
    }
}

static void put_amd_mfma(lilac_text *text, lilac_random *random, uint32_t rank) {
    static const uint32_t shapes[][2] = {{32, 32}, {16, 16}, {4, 64}, {64, 4}};
    const uint32_t *mn = shapes[random_below(random, 4)];
    lilac_text_printf(text, "#ttg.amd_mfma<{version = %u, ", 1 + random_below(random, 4));
    put_sizes(text, random, "warpsPerCTA", rank, 2);
    lilac_text_printf(text, ", instrShape = [%u, %u, %u], isTransposed = %s", mn[0], mn[1],
                      4U << random_below(random, 4),
                      mn[0] == 64 || coin(random) ? "true" : "false");
    put_blocks(text, random, rank);
    put_tiles(text, random, rank);
    if (coin(random)) {
        lilac_text_puts(text, ", elementBitWidth = 64");
    }
    lilac_text_puts(text, "}>");
}

/* Returns the version. */
static uint32_t put_amd_wmma(lilac_text *text, lilac_random *random, uint32_t rank) {
    static const uint32_t shapes[][2] = {{1, 16}, {2, 16}, {2, 32}, {3, 4}, {3, 32}, {3, 128}};
    const uint32_t *shape = shapes[random_below(random, 6)];
    bool by_layout = coin(random);
    lilac_text_printf(text, "#ttg.amd_wmma<{version = %u", shape[0]);
    if (by_layout && rank != 2) {
        lilac_text_printf(text, ", rank = %u", rank);
    }
    lilac_text_printf(text, ", isTranspose = %s", coin(random) ? "true" : "false");
    lilac_text_puts(text, ", ");
    if (by_layout) {
        lilac_text_printf(text, "ctaLayout = {warp = [%s]}",
                          rank == 2 ? "[0, 1], [1, 0]" : "[0, 0, 1], [0, 1, 0]");
    } else {
        put_sizes(text, random, "warpsPerCTA", rank, 2);
    }
    put_blocks(text, random, rank);
    if (!by_layout) {
        put_tiles(text, random, rank);
    }
    if (shape[1] != 16) {
        lilac_text_printf(text, ", instrShape = [16, 16, %u]", shape[1]);
    }
    lilac_text_puts(text, "}>");
    return shape[0];
}

/* Returns opsPerChan. */
static uint32_t put_intel_dpas(lilac_text *text, lilac_random *random, uint32_t rank) {
    uint32_t operations = 1U << random_below(random, 3);
    lilac_text_printf(text,
                      "#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, "
                      "opsPerChan = %u, threadsPerWarp = %u, ",
                      operations, 16U << random_below(random, 2));
    put_sizes(text, random, "warpsPerCTA", rank, 2);
    lilac_text_puts(text, ", ");
    put_sizes(text, random, "repCluster", rank, 2);
    lilac_text_puts(text, "}>");
    return operations;
}

static void put_dot_operand(lilac_text *text, lilac_random *random, uint32_t rank) {
    uint32_t operand = random_below(random, 2), k_width = 1U << random_below(random, 5),
             parent = random_below(random, 5);
    lilac_text parent_text = {0};
    if (parent > 1 && rank > 3) {
        parent = 1;
    }
    if (parent == 0) {
        put_blocked(&parent_text, random, rank);
    } else if (parent == 1) {
        if (put_nvidia_mma(&parent_text, random, rank) == 3) {
            operand = 0;
        }
    } else if (parent == 2) {
        put_amd_mfma(&parent_text, random, rank);
    } else if (parent == 3) {
        (void)put_amd_wmma(&parent_text, random, rank);
        k_width = 8;
    } else {
        uint32_t operations = put_intel_dpas(&parent_text, random, rank);
        k_width = operand == 0 && operations > 1 ? operations / 2 : operations;
    }
    lilac_text_printf(text, "#ttg.dot_op<{opIdx = %u, parent = %s", operand,
                      lilac_text_get(&parent_text));
    if (parent != 0) {
        lilac_text_printf(text, ", kWidth = %u", k_width);
    }
    lilac_text_puts(text, "}>");
    lilac_text_clear(&parent_text);
}

static void put_distributed(lilac_text *text, lilac_random *random, uint32_t rank, uint32_t depth) {
    uint32_t kind = random_below(random, rank >= 2 ? 8 : 3);
    if (kind > 3 && rank > 3) {
        kind = 3;
    }
    if (kind == 0 && depth < 3 && rank < MAX_TEST_RANK) {
        lilac_text_printf(text, "#ttg.slice<{dim = %u, parent = ", random_below(random, rank + 1));
        put_distributed(text, random, rank + 1, depth + 1);
        lilac_text_puts(text, "}>");
    } else if (kind <= 1) {
        put_blocked(text, random, rank);
    } else if (kind == 2) {
        put_linear(text, random, rank);
    } else if (kind == 3) {
        put_dot_operand(text, random, rank);
    } else if (kind == 4) {
        (void)put_nvidia_mma(text, random, rank);
    } else if (kind == 5) {
        put_amd_mfma(text, random, rank);
    } else if (kind == 6) {
        (void)put_amd_wmma(text, random, rank);
    } else {
        (void)put_intel_dpas(text, random, rank);
    }
}

/* ---- layouts of memory ------------------------------------------------------------------ */

static void put_swizzled(lilac_text *text, lilac_random *random, uint32_t rank) {
    bool rotating = rank >= 2 && coin(random);
    lilac_text_printf(text, "#ttg.%s<{vec = %u, perPhase = %u, maxPhase = %u, ",
                      rotating ? "amd_rotating_shared" : "swizzled_shared",
                      1U << random_below(random, 5), 1U << random_below(random, 4),
                      1U << random_below(random, 5));
    put_order(text, random, rank);
    put_blocks(text, random, rank);
    lilac_text_puts(text, "}>");
}

static void put_nvmma(lilac_text *text, lilac_random *random, uint32_t rank) {
    uint32_t width = 16U << random_below(random, 4);
    bool padded = width == 128 && coin(random);
    lilac_text blocks = {0};
    put_blocks(&blocks, random, rank);
    lilac_text_printf(text,
                      "#ttg.nvmma_shared<{swizzlingByteWidth = %u, transposed = %s, "
                      "elementBitWidth = %u%s",
                      width == 16 ? 0 : width, coin(random) ? "true" : "false",
                      padded ? 8 : 8U << random_below(random, 3),
                      padded ? ", fp4Padded = true" : "");
    if (blocks.length == 0 && rank != 2) {
        lilac_text_printf(text, ", rank = %u", rank);
    }
    lilac_text_printf(text, "%s}>", lilac_text_get(&blocks));
    lilac_text_clear(&blocks);
}

static void put_padded(lilac_text *text, lilac_random *random, uint32_t rank) {
    static const char *const names[] = {"offset", "block"};
    lilac_text_puts(text, "#ttg.padded_shared<[");
    for (uint32_t i = 0, count = random_below(random, 4); i < count; i++) {
        lilac_text_printf(text, "%s%u:+%u", i == 0 ? "" : ", ", 16U << 2 * i,
                          1U << random_below(random, 5));
    }
    lilac_text_puts(text, "] {");
    if (coin(random)) {
        put_order(text, random, rank);
        lilac_text_puts(text, ", ");
        put_sizes(text, random, "shape", rank, 4);
    } else {
        put_bases(text, random, rank, names, 2, true);
    }
    lilac_text_puts(text, "}>");
}

static void put_shared_linear(lilac_text *text, lilac_random *random, uint32_t rank) {
    static const char *const names[] = {"offset", "block", "partition"};
    static const char none[] = ", block = []"; /* Triton does not print this one at the end */
    lilac_text bases = {0};
    put_bases(&bases, random, rank, names, 2 + random_below(random, 2), true);
    size_t length = bases.length, cut = sizeof none - 1;
    if (length > cut && strcmp(lilac_text_get(&bases) + length - cut, none) == 0) {
        length -= cut;
    }
    lilac_text_puts(text, "#ttg.shared_linear<{");
    lilac_text_put(text, lilac_text_get(&bases), length);
    lilac_text_puts(text, "}");
    lilac_text_clear(&bases);
    if (coin(random)) {
        lilac_text_printf(text, ", alignment = %u", 1U << random_below(random, 11));
    }
    lilac_text_puts(text, ">");
}

static void put_shared(lilac_text *text, lilac_random *random, uint32_t rank) {
    switch (random_below(random, 5)) {
    case 0:
        put_swizzled(text, random, rank);
        break;
    case 1:
        put_nvmma(text, random, rank < 2 ? 2 : rank);
        break;
    case 2:
        put_padded(text, random, rank);
        break;
    case 3:
        put_shared_linear(text, random, rank);
        break;
    default:
        lilac_text_printf(text,
                          "#ttg.partitioned_shared<{numPartitions = %u, numGroups = %u, "
                          "partitionDim = %u, partitionLayout = ",
                          1U << random_below(random, 3), 1U << random_below(random, 3),
                          random_below(random, rank));
        put_swizzled(text, random, rank);
        lilac_text_puts(text, "}>");
    }
}

/* 3.6 splits by numbers, later versions by a CGALayout. */
static void put_memory_blocks(lilac_text *text, lilac_random *random) {
    if (coin(random)) {
        put_blocks(text, random, 2);
        return;
    }
    for (uint32_t d = 0; d < 2; d++) {
        if (coin(random)) {
            lilac_text_printf(text, ", CTASplit%c = %u", d == 0 ? 'M' : 'N',
                              2U << random_below(random, 2));
        }
    }
}

static void put_tensor_memory(lilac_text *text, lilac_random *random) {
    static const char *const names[] = {"row", "col", "block"};
    if (random_below(random, 4) == 0) {
        lilac_text_puts(text, "#ttng.tensor_memory_linear<{");
        put_bases(text, random, 2, names, 3, true);
        lilac_text_puts(text, "}>");
        return;
    }
    if (coin(random)) {
        lilac_text fields = {0};
        put_memory_blocks(&fields, random);
        if (coin(random)) {
            lilac_text_puts(&fields, ", blockRepOrder = kThenMn");
        }
        lilac_text_printf(text, "#ttng.tensor_memory_scales_encoding<%s>",
                          fields.length == 0 ? "" : fields.bytes + 2);
        lilac_text_clear(&fields);
        return;
    }
    lilac_text_printf(text, "#ttng.tensor_memory_encoding<blockM = %u, blockN = %u, colStride = %u",
                      64U << random_below(random, 2), 1U << random_below(random, 9),
                      1U << random_below(random, 3));
    put_memory_blocks(text, random);
    if (coin(random)) {
        lilac_text_puts(text, ", twoCTAs = true");
    }
    if (coin(random)) {
        lilac_text_puts(text, ", fp4Padded = true");
    }
    lilac_text_char(text, '>');
}

/* ---- the properties --------------------------------------------------------------------- */

static const lilac_encoding *read_text(lilac_context *context, const char *text) {
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, lilac_source_add(context, "test", text, strlen(text)));
    const lilac_encoding *encoding = lilac_encoding_read(&scanner, NULL);
    if (encoding == NULL) {
        fail_msg("refused: %s: %s", text, lilac_diagnostics(context)->message);
    }
    assert_int_equal(scanner.kind, LILAC_TOKEN_END);
    return encoding;
}

static void expect_reads_back(const char *text, lilac_random *random, uint32_t *with_layout) {
    lilac_context *context = lilac_context_create();
    lilac_text printed = {0};
    const lilac_encoding *encoding = read_text(context, text);
    lilac_encoding_print(&printed, encoding);
    assert_string_equal(lilac_text_get(&printed), text);
    const lilac_encoding *again = read_text(context, lilac_text_get(&printed));
    lilac_text_clear(&printed);
    assert_int_equal(encoding->kind, again->kind);

    int64_t shape[LILAC_MAX_RANK];
    for (uint32_t d = 0; d < encoding->rank; d++) {
        shape[d] = INT64_C(1) << random_below(random, 9);
    }
    lilac_layout layout, layout_again;
    if (lilac_encoding_layout(context, &layout, encoding, encoding->rank, shape)) {
        assert_true(lilac_encoding_layout(context, &layout_again, again, again->rank, shape));
        assert_true(lilac_layout_equal(&layout, &layout_again));
        assert_int_equal(layout.out_count, encoding->rank);
        for (uint32_t d = 0; d < encoding->rank; d++) {
            assert_int_equal(INT64_C(1) << layout.out[d].bits, shape[d]);
        }
        if (!lilac_layout_is_surjective(&layout)) {
            fail_msg("not onto the tensor: %s", text);
        }
        (*with_layout)++;
    } else {
        assert_int_equal(lilac_error_count(context), 1);
    }
    lilac_context_destroy(context);
}

static uint32_t rounds(void) {
    return scaled(4000);
}

typedef void put_function(lilac_text *text, lilac_random *random);

static void put_any_distributed(lilac_text *text, lilac_random *random) {
    put_distributed(text, random, 1 + random_below(random, MAX_TEST_RANK), 0);
}

static void put_any_shared(lilac_text *text, lilac_random *random) {
    put_shared(text, random, 1 + random_below(random, MAX_TEST_RANK));
}

static void reads_back(put_function *put, uint64_t seed, uint32_t least) {
    lilac_random random;
    uint32_t with_layout = 0;
    lilac_random_seed(&random, seed);
    for (uint32_t i = 0; i < rounds(); i++) {
        lilac_text text = {0};
        put(&text, &random);
        expect_reads_back(lilac_text_get(&text), &random, &with_layout);
        lilac_text_clear(&text);
    }
    print_message("%u of %u with a layout\n", with_layout, rounds());
    assert_true(with_layout >= least);
}

static void distributed_reads_back(void **state) {
    (void)state;
    reads_back(put_any_distributed, 51, rounds() / 2);
}

static void shared_reads_back(void **state) {
    (void)state;
    reads_back(put_any_shared, 52, rounds() / 4);
}

static void tensor_memory_reads_back(void **state) {
    (void)state;
    reads_back(put_tensor_memory, 53, rounds() / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributed_reads_back),
        cmocka_unit_test(shared_reads_back),
        cmocka_unit_test(tensor_memory_reads_back),
    };
    return cmocka_run_group_tests_name("encoding_text", tests, NULL, NULL);
}
