/* Plans between named layouts: strategy and counts from first principles, the exact text of
 * refusals, the explanation and the JSON form. Random pairs are in random_plans.c. */

#include <lilac/encoding.h>

#include "support/run_plan.h"
#include "support/test.h"

static const lilac_arch *hopper(void) {
    return lilac_arch_find("sm_90a");
}

/* ---- the pairs -------------------------------------------------------------------------- */

static lilac_layout read_layout(const char *type) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_tensor tensor;
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, lilac_source_add(context, "type", type, strlen(type)));
    if (!lilac_encoding_read_tensor(&scanner, NULL, &tensor)) {
        fail_msg("not read: %s", type);
    }
    const lilac_layout layout = tensor.layout;
    lilac_context_destroy(context);
    return layout;
}

#define BLOCKED(size, lanes, warps, order)                                                         \
    "#ttg.blocked<{sizePerThread = [" size "], threadsPerWarp = [" lanes                           \
    "], warpsPerCTA = [" warps "], order = [" order "]}>"
#define MMA                                                                                        \
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], "                  \
    "instrShape = [16, 8]}>"
#define ROW      BLOCKED("1, 8", "4, 8", "4, 1", "1, 0")
#define COL      BLOCKED("8, 1", "8, 4", "1, 4", "0, 1")
#define ROW_WARP BLOCKED("1, 1", "1, 32", "4, 1", "1, 0")

static lilac_layout layout_of(const char *shape, const char *encoding) {
    char type[512];
    snprintf(type, sizeof type, "tensor<%s, %s>", shape, encoding);
    return read_layout(type);
}

static lilac_plan_conversion plan_between(const lilac_layout *source, const lilac_layout *target,
                                          uint32_t bits, lilac_plan_strategy strategy) {
    const lilac_plan_options options = {.strategy = strategy};
    lilac_plan_conversion plan;
    lilac_reason why;
    run_state state;
    if (!lilac_plan_conversion_init(&plan, source, target, bits, &options, hopper(), &why)) {
        fail_msg("refused: %s", why.text);
    }
    run_start(&state, &plan, source);
    for (uint32_t i = 0; i < plan.step_count && state.broken == NULL; i++) {
        run_step(&state, &plan, i);
    }
    if (state.broken != NULL) {
        fail_msg("%s", state.broken);
    }
    assert_int_equal(state.register_bits, plan.target_register_bits);
    assert_true(run_holds(&state, target));
    free(state.element);
    return plan;
}

static lilac_plan_conversion plan_of(const char *shape, const char *source, const char *target,
                                     uint32_t bits, lilac_plan_strategy strategy) {
    const lilac_layout from = layout_of(shape, source), to = layout_of(shape, target);
    return plan_between(&from, &to, bits, strategy);
}

/* ---- kinds and counts ------------------------------------------------------------------- */

static void the_same_layout_takes_nothing(void **state) {
    (void)state;
    static const char *const encodings[] = {ROW, COL, ROW_WARP, MMA};
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
        for (uint32_t bits = 8; bits <= 128; bits *= 2) {
            const lilac_plan_conversion plan =
                plan_of("64x64xi8", encodings[i], encodings[i], bits, LILAC_PLAN_ANY);
            assert_int_equal(plan.kind, LILAC_PLAN_NONE);
            assert_int_equal(plan.step_count, 0);
            assert_int_equal(plan.price.cycles, 0);
            assert_true(plan.bound.met);
        }
    }
    /* Copies among registers too: 8 registers of which 2 differ. */
    const lilac_plan_conversion plan =
        plan_of("1x32xi32", BLOCKED("4, 2", "1, 32", "1, 1", "1, 0"),
                BLOCKED("4, 2", "1, 32", "1, 1", "1, 0"), 32, LILAC_PLAN_ANY);
    assert_int_equal(plan.kind, LILAC_PLAN_NONE);
}

/* Registers in another order: whole words cost nothing, parts of words a byte permute. */
static void registers_in_another_order(void **state) {
    (void)state;
    const char *rows = BLOCKED("4, 4", "8, 4", "1, 1", "1, 0");
    const char *columns = BLOCKED("4, 4", "8, 4", "1, 1", "0, 1");
    lilac_plan_conversion plan = plan_of("32x16xi32", rows, columns, 32, LILAC_PLAN_ANY);
    /* The order of the lanes differs too, so this goes between lanes. */
    assert_true(plan.kind > LILAC_PLAN_REGISTERS);

    /* The accumulator of a matrix product, as an operand of the next one. */
    plan = plan_of("64x64xf16", MMA, "#ttg.dot_op<{opIdx = 0, parent = " MMA ", kWidth = 2}>", 16,
                   LILAC_PLAN_ANY);
    assert_true(plan.kind <= LILAC_PLAN_REGISTERS);
    assert_int_equal(plan.price.cycles, 0);

    lilac_layout source, target;
    static const uint64_t registers[] = {1, 2, 4}, other[] = {4, 1, 2};
    static const uint64_t lanes[] = {8, 16, 32, 64, 128};
    lilac_layout_init(&source);
    assert_true(lilac_layout_add_out(&source, "dim0", 8, NULL));
    target = source;
    assert_true(lilac_layout_add_in(&source, "register", 3, registers, NULL));
    assert_true(lilac_layout_add_in(&source, "lane", 5, lanes, NULL));
    assert_true(lilac_layout_add_in(&target, "register", 3, other, NULL));
    assert_true(lilac_layout_add_in(&target, "lane", 5, lanes, NULL));
    plan = plan_between(&source, &target, 32, LILAC_PLAN_ANY);
    assert_int_equal(plan.kind, LILAC_PLAN_REGISTERS);
    assert_int_equal(plan.step_count, 1);
    assert_int_equal(plan.price.cycles, 0);
    assert_int_equal(plan.permutation[0].from[0], 4);
    /* 8 bits: two words, the bits of whose elements change words: a permute for each word. */
    plan = plan_between(&source, &target, 8, LILAC_PLAN_ANY);
    assert_int_equal(plan.kind, LILAC_PLAN_REGISTERS);
    assert_int_equal(plan.price.permutes, 2);
}

/* One register bit and one lane bit exchanged: half of the words are shuffled, one select for each
 * word and one more for each pair. */
static void one_swap(void **state) {
    (void)state;
    lilac_layout source, target;
    static const uint64_t registers[] = {1, 2, 4, 8}, others[] = {1, 2, 16, 8};
    static const uint64_t lanes[] = {16, 32, 64, 128, 256}, moved[] = {4, 32, 64, 128, 256};
    lilac_layout_init(&source);
    assert_true(lilac_layout_add_out(&source, "dim0", 9, NULL));
    target = source;
    assert_true(lilac_layout_add_in(&source, "register", 4, registers, NULL));
    assert_true(lilac_layout_add_in(&source, "lane", 5, lanes, NULL));
    assert_true(lilac_layout_add_in(&target, "register", 4, others, NULL));
    assert_true(lilac_layout_add_in(&target, "lane", 5, moved, NULL));
    for (uint32_t bits = 8; bits <= 64; bits *= 2) {
        const lilac_plan_conversion plan = plan_between(&source, &target, bits, LILAC_PLAN_ANY);
        const uint64_t words = 16 * bits / 32;
        assert_int_equal(plan.kind, LILAC_PLAN_SHUFFLES);
        assert_int_equal(plan.price.shuffles, words / 2);
        assert_int_equal(plan.price.selects, words + words / 2);
        assert_int_equal(plan.price.permutes, 0);
        assert_int_equal(plan.price.stores + plan.price.loads + plan.price.barriers, 0);
        /* Stored and loaded once each, at 128 bytes a wavefront. */
        assert_int_equal(plan.bound.floor_wavefronts, 2 * 32 * words / 32);
    }
}

/* The article's example: 16 + 16 wavefronts, unswizzled 16 + 256. */
static void the_transpose_of_16_by_32(void **state) {
    (void)state;
    const char *store = "#ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [8, 0]], lane = [[0, 1], "
                        "[0, 2], [0, 4], [0, 8], [0, 16]], warp = [], block = []}>";
    const char *load = "#ttg.linear<{register = [[0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], "
                       "[2, 0], [4, 0], [8, 0], [0, 1]], warp = [], block = []}>";
    lilac_plan_conversion plan = plan_of("16x32xf32", store, load, 32, LILAC_PLAN_BY_SHARED);
    assert_int_equal(plan.kind, LILAC_PLAN_SHARED);
    assert_int_equal(plan.price.store_wavefronts, 16);
    assert_int_equal(plan.price.load_wavefronts, 16);
    assert_int_equal(plan.bound.floor_wavefronts, 32);
    assert_true(plan.bound.met);
    assert_int_equal(plan.staging.barrier, LILAC_PLAN_BARRIER_WARP);
    assert_int_equal(plan.staging.bytes, 16 * 32 * 4);
    plan = plan_of("16x32xf32", store, load, 32, LILAC_PLAN_UNSWIZZLED);
    assert_int_equal(plan.price.store_wavefronts, 16);
    assert_int_equal(plan.price.load_wavefronts, 256);
    assert_false(plan.bound.met);
}

/* Between warps: every byte once each way is possible, and reached, for whole words. */
static void transposes_between_warps(void **state) {
    (void)state;
    static const char *const shapes[] = {"64x64xi32", "128x64xi32", "128x128xi32"};
    for (size_t i = 0; i < 3; i++) {
        for (uint32_t bits = 32; bits <= 64; bits *= 2) {
            const lilac_plan_conversion plan = plan_of(shapes[i], ROW, COL, bits, LILAC_PLAN_ANY);
            assert_int_equal(plan.kind, LILAC_PLAN_SHARED);
            assert_true(plan.bound.met);
            assert_int_equal(plan.price.store_wavefronts + plan.price.load_wavefronts,
                             plan.bound.floor_wavefronts);
        }
    }
    const lilac_plan_conversion plan = plan_of("64x64xi16", ROW, COL, 16, LILAC_PLAN_ANY);
    assert_int_equal(plan.bound.floor_wavefronts, 2 * 64 * 64 * 2 / 128);
    assert_int_equal(plan.price.store_wavefronts + plan.price.load_wavefronts, 128);
}

/* Bytes: no register is common to both sides, so a shared-memory exchange alone moves single bytes on one side. One
 * register and one lane exchanged before it are enough for whole rows of a matrix instruction. */
static void a_shuffle_before_an_exchange(void **state) {
    (void)state;
    const lilac_plan_conversion staging = plan_of("64x64xi8", ROW, COL, 8, LILAC_PLAN_BY_SHARED);
    const lilac_plan_conversion plan = plan_of("64x64xi8", ROW, COL, 8, LILAC_PLAN_ANY);
    /* 16 bytes a lane stored, a byte a lane loaded. */
    assert_int_equal(staging.price.store_wavefronts + staging.price.load_wavefronts, 32 + 128);
    assert_int_equal(plan.kind, LILAC_PLAN_SHARED);
    assert_int_equal(plan.price.store_wavefronts, 32);
    assert_int_equal(plan.price.load_wavefronts, 32);
    assert_int_equal(plan.bound.floor_wavefronts, 2 * 64 * 64 / 128);
    /* Half of the 8 words of 4 warps. */
    assert_int_equal(plan.price.shuffles, 4 * 8 / 2);
    assert_int_equal(plan.step[0].kind, LILAC_PLAN_STEP_SHUFFLE);
    assert_int_equal(plan.step[1].kind, LILAC_PLAN_STEP_STAGING);
    assert_true(plan.price.cycles < staging.price.cycles);
}

/* The busiest pipe, a part of the other one, barriers and latency. */
static void cycles_of_a_price(void **state) {
    (void)state;
    const lilac_costs costs = {.wavefront = 16,
                               .shuffle = 32,
                               .select = 8,
                               .permute = 4,
                               .pack = 2,
                               .issue = 1,
                               .access = 6,
                               .remote = 100,
                               .overlap = 8,
                               .barrier_warp = 1,
                               .barrier_group = 10,
                               .barrier_block = 7,
                               .barrier_cluster = 1000,
                               .staging_latency = 5,
                               .shuffle_latency = 3};
    lilac_arch arch = *hopper();
    arch.costs = &costs;
    lilac_plan_price price = {
        .store_wavefronts = 2, .load_wavefronts = 3, .stores = 1, .loads = 1, .barriers = 4};
    assert_int_equal(lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, &arch),
                     5 * 16 + 2 * 6 + 4 * 1 + 5);
    assert_int_equal(lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_GROUP, &arch),
                     5 * 16 + 2 * 6 + 4 * 10 + 5);
    assert_int_equal(lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_BLOCK, &arch),
                     5 * 16 + 2 * 6 + 4 * 7 + 5);
    assert_int_equal(lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_CLUSTER, &arch),
                     5 * 16 + 2 * 6 + 3 * 100 + 4 * 1000 + 5);
    price = (lilac_plan_price){.shuffles = 2, .selects = 10, .permutes = 5, .packs = 4};
    assert_int_equal(lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, &arch),
                     (10 * 8 + 5 * 4 + 4 * 2) + 2 * 32 / 2 + 3);
    price = (lilac_plan_price){0};
    assert_int_equal(lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_CLUSTER, &arch), 0);
}

/* What stays in its warp need not wait for others. */
static void barriers_are_narrow(void **state) {
    (void)state;
    const lilac_plan_conversion plan =
        plan_of("128x32xi32", BLOCKED("1, 1", "1, 32", "4, 1", "1, 0"),
                BLOCKED("1, 1", "32, 1", "4, 1", "1, 0"), 32, LILAC_PLAN_BY_SHARED);
    /* Rows of a warp: 0, 4, 8 … before and 0 … 31 after: they do cross warps. */
    assert_int_equal(plan.staging.barrier, LILAC_PLAN_BARRIER_BLOCK);
    const lilac_plan_conversion own =
        plan_of("128x32xi32", BLOCKED("32, 1", "1, 32", "4, 1", "1, 0"),
                BLOCKED("1, 32", "32, 1", "4, 1", "1, 0"), 32, LILAC_PLAN_BY_SHARED);
    assert_int_equal(own.staging.barrier, LILAC_PLAN_BARRIER_WARP);
    assert_int_equal(own.staging.barrier_warps, 0);
    assert_true(own.bound.met);
}

/* Lanes and warps that hold copies: what is there already is used. */
static void copies(void **state) {
    (void)state;
    const char *slice = "#ttg.slice<{dim = 1, parent = " ROW "}>";
    const char *wide = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = "
                       "[4], order = [0]}>";
    (void)plan_of("64xi32", slice, wide, 32, LILAC_PLAN_ANY);
    (void)plan_of("64xi32", wide, slice, 32, LILAC_PLAN_ANY);
    /* All threads hold the one element: nothing to do, whatever the registers. */
    const lilac_plan_conversion plan = plan_of("1x1xi32", ROW, ROW_WARP, 32, LILAC_PLAN_ANY);
    assert_true(plan.kind <= LILAC_PLAN_REGISTERS);
    assert_int_equal(plan.price.cycles, 0);
}

/* The order of the outputs does not matter, nor that of the inputs, nor that an input of size one
 * is missing. */
static void any_order_of_dimensions(void **state) {
    (void)state;
    static const uint32_t swapped[] = {1, 0};
    const lilac_layout source = layout_of("64x64xi32", ROW);
    lilac_layout target = layout_of("64x64xi32", COL), other;
    const lilac_plan_conversion plan = plan_between(&source, &target, 32, LILAC_PLAN_ANY);
    lilac_layout_permute_outs(&other, &target, swapped);
    lilac_plan_conversion same;
    assert_true(lilac_plan_conversion_init(&same, &source, &other, 32, NULL, hopper(), NULL));
    assert_int_equal(same.kind, plan.kind);
    assert_int_equal(same.price.cycles, plan.price.cycles);
}

/* 1-bit elements move as bytes. */
static void bits_are_bytes(void **state) {
    (void)state;
    const lilac_layout source = layout_of("64x64xi1", ROW), target = layout_of("64x64xi1", COL);
    lilac_plan_conversion bits, bytes;
    assert_true(lilac_plan_conversion_init(&bits, &source, &target, 1, NULL, hopper(), NULL));
    assert_true(lilac_plan_conversion_init(&bytes, &source, &target, 8, NULL, hopper(), NULL));
    assert_int_equal(bits.element_bits, 8);
    assert_memory_equal(&bits.price, &bytes.price, sizeof bits.price);
}

/* ---- what is refused -------------------------------------------------------------------- */

static void expect_refusal(const lilac_layout *source, const lilac_layout *target, uint32_t bits,
                           const lilac_plan_options *options, const char *text) {
    lilac_plan_conversion plan;
    lilac_reason why = {.text = ""};
    memset(&plan, 0x5A, sizeof plan);
    const lilac_plan_conversion untouched = plan;
    assert_false(lilac_plan_conversion_init(&plan, source, target, bits, options, hopper(), &why));
    assert_string_equal(why.text, text);
    assert_memory_equal(&plan, &untouched, sizeof plan);
    assert_false(lilac_plan_conversion_init(&plan, source, target, bits, options, hopper(), NULL));
}

static lilac_layout columns_of(uint32_t registers, uint32_t lanes, uint32_t warps,
                               uint32_t blocks) {
    static const char *const names[] = {"register", "lane", "warp", "block"};
    const uint32_t bits[] = {registers, lanes, warps, blocks};
    lilac_layout layout;
    uint64_t columns[64];
    for (uint32_t i = 0; i < 64; i++) {
        columns[i] = UINT64_C(1) << i;
    }
    lilac_layout_init(&layout);
    assert_true(lilac_layout_add_out(&layout, "dim0", registers + lanes + warps + blocks, NULL));
    for (uint32_t i = 0, at = 0; i < 4; at += bits[i++]) {
        assert_true(lilac_layout_add_in(&layout, names[i], bits[i], columns + at, NULL));
    }
    return layout;
}

static void refusals(void **state) {
    (void)state;
    const lilac_layout row = layout_of("64x64xi32", ROW), col = layout_of("64x64xi32", COL);
    const lilac_layout other = layout_of("64x32xi32", COL);
    const lilac_layout line = columns_of(2, 5, 2, 0);
    expect_refusal(&row, &line, 32, NULL,
                   "the source is a tensor of rank 2 and the target of rank 1");
    expect_refusal(&row, &other, 32, NULL, "dim1 is of size 64 in the source and 32 in the target");
    lilac_layout renamed;
    assert_true(lilac_layout_rename_out(&renamed, &col, "dim1", "k", NULL));
    expect_refusal(&row, &renamed, 32, NULL,
                   "the source has a dimension 'dim1' and the target none of that name");
    expect_refusal(&row, &col, 4, NULL, "elements of 4 bits: sm_90a moves 1, 8, 16, 32, 64 or 128");
    expect_refusal(&row, &col, 256, NULL,
                   "elements of 256 bits: sm_90a moves 1, 8, 16, 32, 64 or 128");
    assert_true(lilac_layout_rename_in(&renamed, &row, "register", "offset", NULL));
    expect_refusal(&renamed, &col, 32, NULL,
                   "the source has an input 'offset': a plan is between layouts of registers");

    const lilac_layout narrow = columns_of(3, 4, 2, 0), wide = columns_of(1, 6, 2, 0);
    expect_refusal(&narrow, &line, 32, NULL, "the source has 16 lanes a warp, and sm_90a has 32");
    expect_refusal(&line, &wide, 32, NULL, "the target has 64 lanes a warp, and sm_90a has 32");
    const lilac_layout warps = columns_of(1, 5, 3, 0), blocks = columns_of(1, 5, 2, 1);
    expect_refusal(&line, &warps, 32, NULL, "the source has 4 warps and the target 8");
    expect_refusal(&line, &blocks, 32, NULL, "the source has 1 blocks and the target 2");
    const lilac_layout many = columns_of(0, 5, 6, 0), cluster = columns_of(0, 5, 0, 5);
    expect_refusal(&many, &many, 32, NULL,
                   "the source has 64 warps, and a block of sm_90a at most 32");
    expect_refusal(&cluster, &cluster, 32, NULL,
                   "the source has 32 blocks, and a cluster at most 16");
    const lilac_layout registers = columns_of(13, 5, 0, 0);
    expect_refusal(&registers, &registers, 32, NULL,
                   "the source has 8192 registers a thread; a plan takes at most 4096");

    lilac_layout partial = line;
    partial.columns[1] = 0;
    expect_refusal(&line, &partial, 32, NULL,
                   "the target lacks elements of the tensor: nothing holds the one at dim0=2");
    expect_refusal(&partial, &line, 32, NULL,
                   "the source lacks elements of the tensor: nothing holds the one at dim0=2");

    const lilac_plan_options shuffles = {.strategy = LILAC_PLAN_BY_SHUFFLES};
    lilac_reason why = {.text = ""};
    lilac_plan_conversion plan;
    assert_false(lilac_plan_conversion_init(&plan, &row, &col, 32, &shuffles, hopper(), &why));
    assert_true(strlen(why.text) > 10);
    const lilac_plan_options scratch = {.scratch_bytes = 64};
    why.text[0] = 0;
    assert_false(lilac_plan_conversion_init(&plan, &row, &col, 32, &scratch, hopper(), &why));
    assert_true(strlen(why.text) > 10);
}

/* ---- telling ---------------------------------------------------------------------------- */

static void names(void **state) {
    (void)state;
    static const char *const kinds[] = {"none", "registers", "shuffles", "shared", "cluster"};
    static const char *const instructions[] = {"vector", "matrix", "matrix transposed"};
    static const char *const barriers[] = {"warp", "group", "block", "cluster"};
    for (uint32_t i = 0; i < 5; i++) {
        assert_string_equal(lilac_plan_kind_name((lilac_plan_kind)i), kinds[i]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(lilac_plan_instruction_name((lilac_plan_instruction)i),
                            instructions[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(lilac_plan_barrier_name((lilac_plan_barrier)i), barriers[i]);
    }
}

static void expect_text(const lilac_text *text, const char *part) {
    if (strstr(lilac_text_get(text), part) == NULL) {
        fail_msg("'%s' is not in:\n%s", part, lilac_text_get(text));
    }
}

static void in_words(void **state) {
    (void)state;
    const lilac_layout row = layout_of("64x64xi32", ROW), col = layout_of("64x64xi32", COL);
    lilac_text text = {0};
    lilac_plan_conversion plan;
    assert_true(lilac_plan_conversion_init(&plan, &row, &row, 32, NULL, hopper(), NULL));
    lilac_plan_conversion_explain(&text, &plan, &row, &row);
    assert_string_equal(lilac_text_get(&text),
                        "64×64 elements of 32 bits, 4 warps, sm_90a\n"
                        "nothing moves: every register holds its element already\n\n");
    lilac_text_reset(&text);
    assert_true(lilac_plan_conversion_init(&plan, &row, &col, 32, NULL, hopper(), NULL));
    lilac_plan_conversion_explain(&text, &plan, &row, &col);
    expect_text(&text, "shared memory: elements leave their warps\n");
    expect_text(&text, "  register 0  dim1 bit 0                 → lane 3\n");
    expect_text(&text, "exchange through 16384 bytes of shared memory\n");
    expect_text(&text, "   barrier of the block: elements cross warps that differ in bits 0, 1\n");
    expect_text(&text, "stores                  32         128         128\n");
    expect_text(&text, "this plan reaches it");
    expect_text(&text, "other strategies\n  shuffles              not possible: ");
    lilac_text_clear(&text);
}

static void as_json(void **state) {
    (void)state;
    const lilac_layout row = layout_of("64x64xi32", ROW), col = layout_of("64x64xi32", COL);
    lilac_text text = {0};
    lilac_plan_conversion plan;
    assert_true(lilac_plan_conversion_init(&plan, &row, &row, 32, NULL, hopper(), NULL));
    lilac_plan_conversion_json(&text, &plan);
    assert_string_equal(
        lilac_text_get(&text),
        "{\"kind\": \"none\", \"instructions\": {\"shuffle\": 0, \"select\": 0, \"permute\": 0, "
        "\"pack\": 0, \"store\": 0, \"load\": 0, \"barrier\": 0}, \"wavefronts\": {\"store\": 0, "
        "\"load\": 0}, \"lower_bound\": {\"store\": 0, \"load\": 0, \"floor\": 256, \"met\": "
        "true, \"by_price\": false}, \"shared_bytes\": 0, \"bytes\": {\"store\": 0, \"load\": 0}, "
        "\"cycles\": 0.0, "
        "\"steps\": []}");
    lilac_text_reset(&text);
    assert_true(lilac_plan_conversion_init(&plan, &row, &col, 32, NULL, hopper(), NULL));
    lilac_plan_conversion_json(&text, &plan);
    expect_text(&text, "{\"kind\": \"shared\", \"instructions\": {\"shuffle\": 0, ");
    expect_text(
        &text,
        "\"wavefronts\": {\"store\": 128, \"load\": 128}, \"lower_bound\": "
        "{\"store\": 128, \"load\": 128, \"floor\": 256, \"met\": true, \"by_price\": false}, "
        "\"shared_bytes\": 16384, ");
    expect_text(&text, "{\"step\": \"shared-memory exchange\", \"memory\": {\"offset\": [[");
    assert_null(strchr(lilac_text_get(&text), '\n'));
    lilac_text_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_layout_takes_nothing),
        cmocka_unit_test(registers_in_another_order),
        cmocka_unit_test(one_swap),
        cmocka_unit_test(the_transpose_of_16_by_32),
        cmocka_unit_test(transposes_between_warps),
        cmocka_unit_test(a_shuffle_before_an_exchange),
        cmocka_unit_test(cycles_of_a_price),
        cmocka_unit_test(barriers_are_narrow),
        cmocka_unit_test(copies),
        cmocka_unit_test(any_order_of_dimensions),
        cmocka_unit_test(bits_are_bytes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(names),
        cmocka_unit_test(in_words),
        cmocka_unit_test(as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
