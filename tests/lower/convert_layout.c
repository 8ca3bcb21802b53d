/* lower: movement plans carried out on the simulator.
 *
 * A kernel that does nothing but one plan is run, every register of the target is compared with the
 * element that the layout says it holds, and the simulator's counters with the plan's price. */
#include "support/lower_tensors.h"
#include "support/random_layouts.h"

/* ---- one plan checked --------------------------------------------------------------------- */

/* Byte `i` of the element at a flat coordinate. */
static uint8_t byte_of(uint64_t element, uint32_t i) {
    uint64_t x = (element + 1) * 0x9E3779B97F4A7C15ULL;
    return (uint8_t)(x >> (8 * ((i + 3) % 8)) ^ i);
}

static uint64_t size_of(const lilac_layout *layout, uint32_t bytes) {
    return ((uint64_t)bytes) << layout->in_bits;
}

static void fill_registers(uint8_t *at, const lilac_layout *layout, uint32_t bytes) {
    for (uint64_t index = 0; index >> layout->in_bits == 0; index++) {
        uint64_t element = lilac_layout_apply(layout, index);
        for (uint32_t i = 0; i < bytes; i++) {
            at[index * bytes + i] = byte_of(element, i);
        }
    }
}

static void describe(const lilac_simt_module *module, lilac_context *context,
                     const lilac_layout *source, const lilac_layout *target) {
    lilac_text text = {0};
    lilac_layout_print(&text, source);
    lilac_text_printf(&text, "\n");
    lilac_layout_print(&text, target);
    lilac_text_printf(&text, "\n");
    lilac_simt_print(&text, module);
    fprintf(stderr, "%s\n", lilac_text_get(&text));
    lilac_text_clear(&text);
    print_diagnostics(context);
}

/* Runs the plan's kernel; its counters. */
static lilac_sim_counters check(const lilac_plan_conversion *plan, const lilac_layout *source,
                                const lilac_layout *target) {
    uint32_t bytes = plan->element_bits < 8 ? 1 : plan->element_bits / 8;
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = lilac_lower_movement_kernel(context, plan);
    assert_non_null(module);
    lilac_sim_buffer buffers[2] = {{.name = "source", .size = size_of(source, bytes)},
                                   {.name = "target", .size = size_of(target, bytes)}};
    uint8_t *want = malloc(buffers[1].size);
    for (int i = 0; i < 2; i++) {
        buffers[i].bytes = malloc(buffers[i].size);
        assert_non_null(buffers[i].bytes);
    }
    fill_registers(buffers[0].bytes, source, bytes);
    fill_registers(want, target, bytes);
    for (uint64_t i = 0; i < buffers[1].size; i++) {
        buffers[1].bytes[i] = (uint8_t)~want[i];
    }
    lilac_sim_place(buffers, 2);
    uint64_t arguments[2] = {buffers[0].address, buffers[1].address};
    lilac_sim_launch launch = {.kernel = module->kernels,
                               .grid = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2,
                               .buffers = buffers,
                               .buffer_count = 2,
                               .threads = 1,
                               .instruction_limit = 1 << 22};
    lilac_sim_counters counters = {0};
    bool good = lilac_simt_verify(module) && lilac_sim_run(context, &launch, &counters) &&
                counters.races == 0 && counters.uninitialised_reads == 0 &&
                memcmp(buffers[1].bytes, want, buffers[1].size) == 0;
    if (!good) {
        describe(module, context, source, target);
        fail_msg("the plan moves elements to wrong places, or traps, or races");
    }
    free(want);
    free(buffers[0].bytes);
    free(buffers[1].bytes);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    return counters;
}

/* ---- exchanges constructed by the test -------------------------------------------- */

/* A bijective memory layout of a tensor. */
static lilac_layout random_memory(lilac_random *random, const lilac_layout *tensor) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    lilac_layout memory;
    lilac_layout_init(&memory);
    for (uint32_t d = 0; d < tensor->out_count; d++) {
        assert_true(lilac_layout_add_out(&memory, tensor->out[d].name, tensor->out[d].bits, NULL));
    }
    for (uint32_t i = 0; i < tensor->out_bits; i++) {
        columns[i] = 1ULL << i;
    }
    if (random_below(random, 2) == 0) {
        random_shuffle(random, columns, tensor->out_bits);
    }
    random_additions(random, columns, tensor->out_bits, random_below(random, 8));
    assert_true(lilac_layout_add_in(&memory, "offset", tensor->out_bits, columns, NULL));
    return memory;
}

/* Adds to a reduced basis unless it holds the vector. */
static bool is_new(uint64_t *basis, uint32_t *rank, uint64_t vector) {
    for (uint32_t k = 0; k < *rank; k++) {
        vector = (vector ^ basis[k]) < vector ? vector ^ basis[k] : vector;
    }
    if (vector != 0) {
        basis[(*rank)++] = vector;
    }
    return vector != 0;
}

/* The warp bits that bring no element that their lower bits have not brought. */
static uint32_t copying_warps(const lilac_layout *layout) {
    static const char *const inputs[3] = {"register", "lane", "warp"};
    uint64_t basis[LILAC_LAYOUT_MAX_BITS];
    uint32_t rank = 0, mask = 0;
    for (int i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < lilac_layout_in_bits(layout, inputs[i]); k++) {
            bool more = is_new(basis, &rank, lilac_layout_column(layout, inputs[i], k));
            mask |= i == 2 && !more ? 1U << k : 0;
        }
    }
    return mask;
}

/* Without the registers that only make copies. */
static void drop_copies(lilac_layout *layout) {
    uint64_t kept[LILAC_LAYOUT_MAX_BITS], seen[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0, rank = 0;
    for (uint32_t i = 0; i < lilac_layout_in_bits(layout, "register"); i++) {
        uint64_t column = lilac_layout_column(layout, "register", i);
        if (is_new(seen, &rank, column)) {
            kept[count++] = column;
        }
    }
    lilac_layout result;
    lilac_layout_init(&result);
    for (uint32_t d = 0; d < layout->out_count; d++) {
        assert_true(lilac_layout_add_out(&result, layout->out[d].name, layout->out[d].bits, NULL));
    }
    assert_true(lilac_layout_add_in(&result, "register", count, kept, NULL));
    static const char *const others[3] = {"lane", "warp", "block"};
    for (int i = 0; i < 3; i++) {
        uint32_t bits = lilac_layout_in_bits(layout, others[i]);
        for (uint32_t k = 0; k < bits; k++) {
            kept[k] = lilac_layout_column(layout, others[i], k);
        }
        assert_true(lilac_layout_add_in(&result, others[i], bits, kept, NULL));
    }
    *layout = result;
}

static bool stage_through(lilac_plan_conversion *plan, const lilac_layout *source,
                          const lilac_layout *target, const lilac_layout *memory,
                          uint32_t element_bits) {
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    memset(plan, 0, sizeof *plan);
    plan->kind = LILAC_PLAN_SHARED;
    plan->arch = arch;
    plan->element_bits = element_bits;
    plan->register_bits = lilac_layout_in_bits(source, "register");
    plan->target_register_bits = lilac_layout_in_bits(target, "register");
    plan->lane_bits = 5;
    plan->warp_bits = lilac_layout_in_bits(source, "warp");
    plan->step_count = 1;
    plan->step[0].kind = LILAC_PLAN_STEP_STAGING;
    lilac_plan_staging *staging = &plan->staging;
    staging->memory = *memory;
    staging->barrier = LILAC_PLAN_BARRIER_BLOCK;
    staging->barrier_warps = (1U << plan->warp_bits) - 1;
    staging->store_copies = copying_warps(source);
    staging->store_copy_lanes = 0;
    lilac_reason why;
    if (!lilac_plan_access_init(&staging->store, source, memory, element_bits, arch, &why) ||
        !lilac_plan_access_init(&staging->load, target, memory, element_bits, arch, &why)) {
        return false;
    }
    staging->bytes = staging->store.memory_bytes;
    return true;
}

/* Vectors of every width, pieces of words, addresses with xors, warps with copies, which do not
 * store. */
static void exchanges_through_any_memory(void **state) {
    (void)state;
    static const uint32_t widths[] = {8, 16, 32, 64, 128};
    lilac_context *context = lilac_context_create();
    lilac_random random;
    lilac_random_seed(&random, 7);
    uint32_t done = 0;
    for (uint32_t i = 0; i < 200; i++) {
        random_space space;
        random_pair pair;
        random_space_init(&space, &random, 5, i % 4, 0, widths[i % 5], 5);
        random_pair_init(&pair, &random, context, &space);
        drop_copies(&pair.source);
        drop_copies(&pair.target);
        lilac_layout memory = random_memory(&random, &pair.source);
        lilac_plan_conversion plan;
        if (!stage_through(&plan, &pair.source, &pair.target, &memory, widths[i % 5])) {
            continue;
        }
        done++;
        lilac_sim_counters counters = check(&plan, &pair.source, &pair.target);
        uint32_t copies = (uint32_t)__builtin_popcount(plan.staging.store_copies);
        assert_int_equal(counters.shared_stores, plan.staging.store.instructions >> copies);
        assert_int_equal(counters.shared_loads, plan.staging.load.instructions);
        assert_int_equal(counters.shared_store_wavefronts, plan.staging.store.wavefronts >> copies);
        /* an access is counted as a store; loads of copies may take fewer */
        assert_true(counters.shared_load_wavefronts <= plan.staging.load.wavefronts);
    }
    assert_true(done > 120);
    lilac_context_destroy(context);
}

/* ---- plans ------------------------------------------------------------------------------- */

/* What the plan is priced at is what it does. */
static void compare_price(const lilac_plan_conversion *plan, const lilac_sim_counters *counters) {
    const lilac_plan_price *price = &plan->price;
    uint64_t barriers =
        counters->warp_barriers + counters->group_barriers +
        (counters->barriers + counters->cluster_barriers) * (1ULL << plan->warp_bits);
    assert_int_equal(counters->shuffles, price->shuffles << plan->block_bits);
    assert_int_equal(counters->selects, price->selects << plan->block_bits);
    assert_int_equal(counters->permutes, price->permutes << plan->block_bits);
    assert_int_equal(counters->shared_stores, price->stores << plan->block_bits);
    assert_int_equal(counters->shared_loads, price->loads << plan->block_bits);
    assert_int_equal(counters->shared_store_wavefronts,
                     price->store_wavefronts << plan->block_bits);
    assert_int_equal(counters->shared_load_wavefronts, price->load_wavefronts << plan->block_bits);
    assert_int_equal(counters->shared_store_bytes, price->store_bytes << plan->block_bits);
    assert_int_equal(counters->shared_load_bytes, price->load_bytes << plan->block_bits);
    assert_int_equal(barriers, price->barriers << plan->block_bits);
}

/* The devices in the order of the table: all of them, or those with 32 lanes. */
static const lilac_arch *device_number(uint32_t number, bool any) {
    size_t count = 0;
    for (size_t i = 0; lilac_arch_at(i) != NULL; i++) {
        count += any || lilac_arch_at(i)->warp_size == 32;
    }
    for (size_t i = 0, at = number % count;; i++) {
        if ((any || lilac_arch_at(i)->warp_size == 32) && at-- == 0) {
            return lilac_arch_at(i);
        }
    }
}

/* Pairs of every kind, every width, every way, on every device. */
static void plans(void **state) {
    (void)state;
    static const uint32_t widths[] = {1, 8, 16, 32, 64, 128};
    lilac_context *context = lilac_context_create();
    lilac_random random;
    lilac_random_seed(&random, 11);
    uint32_t kinds[5] = {0}, refused = 0;
    for (uint32_t i = 0; i < 600; i++) {
        random_space space;
        random_pair pair;
        uint32_t width = widths[i % 6];
        const lilac_arch *arch = device_number(i / 4, true);
        bool clusters = i % 7 == 0 && lilac_arch_has(arch, LILAC_HAS_CLUSTERS);
        random_space_init(&space, &random, arch->warp_size == 64 ? 6 : 5, i % 4, clusters ? 1 : 0,
                          width, 4);
        random_pair_init(&pair, &random, context, &space);
        lilac_plan_options options = {.strategy = (lilac_plan_strategy)(i % 4)};
        lilac_plan_conversion plan;
        lilac_reason why;
        if (!lilac_plan_conversion_init(&plan, &pair.source, &pair.target, width, &options, arch,
                                        &why)) {
            refused++;
            assert_true(options.strategy != LILAC_PLAN_ANY);
            continue;
        }
        kinds[plan.kind]++;
        lilac_sim_counters counters = check(&plan, &pair.source, &pair.target);
        compare_price(&plan, &counters);
    }
    print_message("%u none, %u registers, %u shuffles, %u shared, %u cluster, %u refused\n",
                  kinds[0], kinds[1], kinds[2], kinds[3], kinds[4], refused);
    for (int k = 0; k < 5; k++) {
        assert_true(kinds[k] > 0);
    }
    lilac_context_destroy(context);
}

/* ---- conversions in kernels --------------------------------------------------------------- */

enum { ROWS = 64, COLUMNS = 64, COUNT = ROWS * COLUMNS };

#define SPELLED                                                                                    \
    "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], "           \
    "instrShape = [16, 8]}>\n"                                                                     \
    "#wgmma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], "         \
    "instrShape = [16, 64, 16]}>\n"                                                                \
    "#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, "    \
    "1], order = [1, 0]}>\n"                                                                       \
    "#col = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, "    \
    "4], order = [0, 1]}>\n"                                                                       \
    "#one = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, "    \
    "4], order = [1, 0]}>\n"                                                                       \
    "#few = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], " \
    "order = [0, 1]}>\n"                                                                           \
    "#cut = #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 2, 2], "               \
    "threadsPerWarp = [4, 2, 4], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>\n"                 \
    "#swz = #ttg.linear<{register = [[0, 1], [0, 2], [16, 0], [32, 0], [0, 32]], lane = [[1, 0], " \
    "[3, 0], [4, 0], [8, 0], [0, 4]], warp = [[0, 12], [0, 16]], block = []}>\n"

static const char *const spelled[] = {"#row",
                                      "#col",
                                      "#one",
                                      "#few",
                                      "#mma",
                                      "#wgmma",
                                      "#cut",
                                      "#swz",
                                      "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>",
                                      "#ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>"};
enum { SPELLED_COUNT = sizeof spelled / sizeof *spelled };

static uint8_t x[COUNT * 8], o[COUNT * 8];

/* o = x, from one layout to another and on to a third. */
static void named_pairs(void **state) {
    (void)state;
    static const char *const types[] = {"i8", "f16", "f32", "i64"};
    static const uint32_t sizes[] = {1, 2, 4, 8};
    lilac_random random;
    lilac_random_seed(&random, 21);
    uint32_t number = 0;
    for (size_t a = 0; a < SPELLED_COUNT; a++) {
        for (size_t b = 0; b < SPELLED_COUNT; b++, number++) {
            const char *type = types[number % 4];
            uint32_t bytes = sizes[number % 4] * COUNT;
            const char *first = spelled[a], *second = spelled[b];
            lilac_text text = {0};
            put_head(&text, SPELLED, type);
            put_pointers(&text, "a", "x", first, type, ROWS, COLUMNS);
            put_pointers(&text, "b", "o", second, type, ROWS, COLUMNS);
            put_load(&text, "a", first, type, ROWS, COLUMNS);
            lilac_text_printf(&text,
                              "    %%v = ttg.convert_layout %%a : tensor<64x64x%s, %s> -> "
                              "tensor<64x64x%s, %s>\n",
                              type, first, type, second);
            put_store(&text, "b", "v", second, type, ROWS, COLUMNS);
            put_tail(&text);
            harness h;
            open_text_on(&h, &text, device_number(number, false));
            run_kernel(&h, &random, x, bytes, o, bytes, 0);
            assert_memory_equal(x, o, bytes);
            harness_close(&h);
        }
    }
}

/* Registers taken out of words or put into them inside the loop, of what the passes leave. */
static uint32_t packs_in_loop(harness *h) {
    lilac_simt_kernel *kernel = h->simt->kernels;
    (void)lilac_simt_opt_fold(kernel);
    (void)lilac_simt_opt_dce(kernel);
    lilac_text_reset(&h->text);
    lilac_simt_print(&h->text, h->simt);
    const char *loop = strstr(lilac_text_get(&h->text), "= loop");
    assert_non_null(loop);
    const char *yield = strstr(loop, "yield");
    assert_non_null(yield);
    uint32_t count = 0;
    for (const char *at = strstr(loop, "pack "); at != NULL && at < yield;
         at = strstr(at + 1, "pack ")) {
        count++;
    }
    return count;
}

/* Back and forth in a loop; narrow elements go round it as words, and wide ones whole. */
static void around_a_loop(void **state) {
    (void)state;
    static const char *const types[] = {"i8", "bf16", "i32", "f64"};
    static const uint32_t sizes[] = {1, 2, 4, 8};
    lilac_random random;
    lilac_random_seed(&random, 22);
    for (size_t t = 0; t < 4; t++) {
        for (size_t b = 1; b < SPELLED_COUNT; b++) {
            const char *type = types[t], *other = spelled[b];
            lilac_text text = {0};
            put_head(&text, SPELLED, type);
            put_pointers(&text, "a", "x", "#row", type, ROWS, COLUMNS);
            put_pointers(&text, "b", "o", "#row", type, ROWS, COLUMNS);
            put_load(&text, "a", "#row", type, ROWS, COLUMNS);
            lilac_text_printf(&text,
                              "    %%c0 = arith.constant 0 : i32\n"
                              "    %%c1 = arith.constant 1 : i32\n"
                              "    %%r = scf.for %%k = %%c0 to %%n step %%c1 iter_args(%%t = %%a) "
                              "-> (tensor<64x64x%s, #row>) : i32 {\n"
                              "      %%u = ttg.convert_layout %%t : tensor<64x64x%s, #row> -> "
                              "tensor<64x64x%s, %s>\n"
                              "      %%v = ttg.convert_layout %%u : tensor<64x64x%s, %s> -> "
                              "tensor<64x64x%s, #row>\n"
                              "      scf.yield %%v : tensor<64x64x%s, #row>\n    }\n",
                              type, type, type, other, type, other, type, type);
            put_store(&text, "b", "r", "#row", type, ROWS, COLUMNS);
            put_tail(&text);
            harness h;
            open_text_on(&h, &text, device_number((uint32_t)b, false));
            uint32_t bytes = sizes[t] * COUNT;
            run_kernel(&h, &random, x, bytes, o, bytes, 3);
            assert_memory_equal(x, o, bytes);
            if (sizes[t] != 4 && b == 1) {
                assert_int_equal(packs_in_loop(&h), 0);
            }
            harness_close(&h);
        }
    }
}

/* Predicates go as bytes, pointers as 64 bits. */
static void predicates_and_pointers(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 23);
    lilac_text text = {0};
    put_head(&text, SPELLED, "i32");
    put_pointers(&text, "a", "x", "#row", "i32", ROWS, COLUMNS);
    put_pointers(&text, "b", "o", "#col", "i32", ROWS, COLUMNS);
    put_load(&text, "a", "#row", "i32", ROWS, COLUMNS);
    lilac_text_printf(
        &text,
        "    %%z = arith.constant dense<0> : tensor<64x64xi32, #row>\n"
        "    %%s = arith.cmpi slt, %%a, %%z : tensor<64x64xi32, #row>\n"
        "    %%t = ttg.convert_layout %%s : tensor<64x64xi1, #row> -> tensor<64x64xi1, #col>\n"
        "    %%q = ttg.convert_layout %%ap : tensor<64x64x!tt.ptr<i32>, #row> -> "
        "tensor<64x64x!tt.ptr<i32>, #col>\n"
        "    %%v = tt.load %%q, %%t : tensor<64x64x!tt.ptr<i32>, #col>\n");
    put_store(&text, "b", "v", "#col", "i32", ROWS, COLUMNS);
    put_tail(&text);
    harness h;
    open_text(&h, &text);
    run_kernel(&h, &random, x, COUNT * 4, o, COUNT * 4, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t value = (uint32_t)get_element(x, LILAC_I32, i);
        assert_int_equal(get_element(o, LILAC_I32, i), value >> 31 ? value : 0);
    }
    harness_close(&h);
}

/* Shape operations whose result stands in other threads. */
static void shapes(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 24);
    for (size_t a = 0; a < SPELLED_COUNT; a++) {
        const char *from = spelled[a];
        lilac_text text = {0};
        put_head(&text, SPELLED, "f16");
        put_pointers(&text, "a", "x", from, "f16", ROWS, COLUMNS);
        put_pointers(&text, "b", "o", "#col", "f16", ROWS, COLUMNS);
        put_load(&text, "a", from, "f16", ROWS, COLUMNS);
        /* transposed, through a reshape, a split and a join */
        lilac_text_printf(
            &text,
            "    %%t = tt.trans %%a {order = array<i32: 1, 0>} : tensor<64x64xf16, %s> -> "
            "tensor<64x64xf16, #row>\n"
            "    %%r = tt.reshape %%t : tensor<64x64xf16, #row> -> tensor<32x64x2xf16, #three>\n"
            "    %%h, %%g = tt.split %%r : tensor<32x64x2xf16, #three> -> tensor<32x64xf16, "
            "#mma>\n"
            "    %%j = tt.join %%h, %%g : tensor<32x64xf16, #mma> -> tensor<32x64x2xf16, #three>\n"
            "    %%v = tt.reshape %%j : tensor<32x64x2xf16, #three> -> tensor<64x64xf16, #col>\n",
            from);
        put_store(&text, "b", "v", "#col", "f16", ROWS, COLUMNS);
        put_tail(&text);
        lilac_text whole = {0};
        lilac_text_printf(&whole, "%s",
                          "#three = #ttg.blocked<{sizePerThread = [1, 2, 1], threadsPerWarp = [2, "
                          "8, 2], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>\n");
        lilac_text_printf(&whole, "%s", lilac_text_get(&text));
        lilac_text_clear(&text);
        harness h;
        open_text_on(&h, &whole, device_number((uint32_t)a, false));
        run_kernel(&h, &random, x, COUNT * 2, o, COUNT * 2, 0);
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t transposed = i % COLUMNS * ROWS + i / COLUMNS;
            assert_int_equal(get_element(o, LILAC_I16, i), get_element(x, LILAC_I16, transposed));
        }
        harness_close(&h);
    }
}

/* A way may be asked for. */
static void ways(void **state) {
    (void)state;
    static const struct {
        const char *way, *expected;
    } cases[] = {{"shuffles", "shuffle "}, {"shared", "st.shared"}, {"unswizzled", "st.shared"}};
    for (size_t i = 0; i < 3; i++) {
        lilac_text text = {0};
        put_head(&text, SPELLED, "i32");
        put_pointers(&text, "a", "x", "#row", "i32", ROWS, COLUMNS);
        put_pointers(&text, "b", "o", "#mix", "i32", ROWS, COLUMNS);
        put_load(&text, "a", "#row", "i32", ROWS, COLUMNS);
        lilac_text_printf(&text,
                          "    %%v = ttg.convert_layout %%a {lilac.movement = \"%s\"} : "
                          "tensor<64x64xi32, #row> -> tensor<64x64xi32, #mix>\n",
                          cases[i].way);
        put_store(&text, "b", "v", "#mix", "i32", ROWS, COLUMNS);
        put_tail(&text);
        lilac_text whole = {0};
        lilac_text_printf(&whole, "%s",
                          "#mix = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 16], "
                          "warpsPerCTA = [4, 1], order = [1, 0]}>\n");
        lilac_text_printf(&whole, "%s", lilac_text_get(&text));
        lilac_text_clear(&text);
        harness h;
        open_text(&h, &whole);
        assert_true(count_text(lilac_text_get(&h.text), cases[i].expected) > 0);
        harness_close(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_through_any_memory),
        cmocka_unit_test(plans),
        cmocka_unit_test(named_pairs),
        cmocka_unit_test(around_a_loop),
        cmocka_unit_test(predicates_and_pointers),
        cmocka_unit_test(shapes),
        cmocka_unit_test(ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
