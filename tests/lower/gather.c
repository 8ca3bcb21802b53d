/* lower: tt.gather, tt.histogram and tt.cat in random layouts and in the engine's layouts,
 * compared with plain loops; and their cost. */
#include "support/collective_plans.h"
#include "support/lower_named.h"

static uint8_t data[3][(1 << 13) * 8];

static const lilac_scalar scalars[] = {LILAC_F32, LILAC_I8,   LILAC_F16, LILAC_I64,
                                       LILAC_I1,  LILAC_BF16, LILAC_F64, LILAC_I32};
static const lilac_scalar indices[] = {LILAC_I32, LILAC_I64, LILAC_I8, LILAC_I16};

static const struct {
    uint32_t rank, source[3], index[3], axis;
} shapes[] = {
    {2, {6, 5}, {6, 5}, 1},
    {2, {5, 6}, {5, 6}, 0},
    {2, {7, 3}, {7, 3}, 1},
    {1, {5}, {5}, 0},
    {1, {7}, {9}, 0},
    {2, {3, 5}, {5, 5}, 0},
    {2, {2, 2}, {2, 2}, 1},
    {3, {2, 3, 3}, {2, 5, 3}, 1},
    {3, {3, 2, 3}, {3, 2, 1}, 2},
    {2, {4, 5}, {4, 5}, 0},
    {2, {4, 4}, {4, 2}, 1},
    {2, {0, 6}, {0, 3}, 1},
};

static void make_gather(lilac_text *out, const named_tensor *list, uint32_t axis, const char *way) {
    named_parameters(out, list, 3);
    named_load(out, &list[0]);
    named_load(out, &list[1]);
    lilac_text_printf(out, "    %%y = tt.gather %%x[%%i] {axis = %u : i32%s} : (", axis, way);
    named_type(out, &list[0]);
    lilac_text_puts(out, ", ");
    named_type(out, &list[1]);
    lilac_text_puts(out, ") -> ");
    named_type(out, &list[2]);
    lilac_text_puts(out, "\n");
    named_store(out, &list[2], "%y");
    lilac_text_puts(out, "    tt.return\n  }\n}\n");
}

/* Where the element at `place` of the index's tensor points, in the source. */
static uint32_t wanted(const named_tensor *source, const named_tensor *index, uint32_t axis,
                       uint32_t place, uint32_t number) {
    uint32_t result = 0, shift = 0;
    for (uint32_t d = source->rank; d-- > 0;) {
        uint32_t own = place & ((1U << index->bits[d]) - 1);
        result |= (d == axis ? number : own) << shift;
        shift += source->bits[d];
        place >>= index->bits[d];
    }
    return result;
}

static void check_gather(harness *h, const named_tensor *list, uint32_t axis,
                         lilac_random *random) {
    uint32_t bits[2] = {named_bits(&list[0]), named_bits(&list[1])};
    uint32_t length = 1U << list[0].bits[axis];
    lilac_scalar scalar = list[0].scalar, index = list[1].scalar;
    for (uint32_t k = 0; k < 1U << bits[0]; k++) {
        set_element(data[0], scalar, k, random_element(random, scalar));
    }
    for (uint32_t k = 0; k < 1U << bits[1]; k++) {
        set_element(data[1], index, k, random_below(random, length));
    }
    memset(data[2], 0x55, sizeof data[2]);
    buffer buffers[] = {{data[0], (size_t)bytes_of(scalar) << bits[0]},
                        {data[1], (size_t)bytes_of(index) << bits[1]},
                        {data[2], (size_t)bytes_of(scalar) << bits[1]}};
    harness_run(h, 1, buffers, 3, NULL, 0);
    assert_int_equal(h->counters.uninitialised_reads, 0);
    for (uint32_t k = 0; k < 1U << bits[1]; k++) {
        uint32_t number = (uint32_t)get_element(data[1], index, k);
        uint64_t want = get_element(data[0], scalar, wanted(&list[0], &list[1], axis, k, number));
        uint64_t got = get_element(data[2], scalar, k);
        if (got != want) {
            print_message("%s\n", lilac_text_get(&h->text));
            fail_msg("element %u, index %u: %llx, not %llx", k, number, (unsigned long long)got,
                     (unsigned long long)want);
        }
    }
    /* Out of range: something of the source's, and no access elsewhere. */
    for (uint32_t k = 0; k < 1U << bits[1]; k++) {
        set_element(data[1], index, k, lilac_random_next(random));
    }
    harness_run(h, 1, buffers, 3, NULL, 0);
}

static void gathers(void **state) {
    (void)state;
    uint32_t met = 0;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 21);
    uint32_t by_lanes = 0, by_memory = 0;
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t s = random_below(&random, sizeof shapes / sizeof *shapes);
        const lilac_arch *device = harness_device(i);
        uint32_t warp_bits = random_warp_bits(&random, device, 4), axis = shapes[s].axis;
        named_tensor list[3] = {{.letter = 'x', .rank = shapes[s].rank}};
        list[0].scalar = scalars[random_below(&random, sizeof scalars / sizeof *scalars)];
        memcpy(list[0].bits, shapes[s].source, sizeof list[0].bits);
        list[1] = list[0];
        list[1].letter = 'i';
        list[1].scalar = indices[random_below(&random, sizeof indices / sizeof *indices)];
        memcpy(list[1].bits, shapes[s].index, sizeof list[1].bits);
        list[2] = list[1];
        list[2].letter = 'y';
        list[2].scalar = list[0].scalar;
        named_random(&list[0], &random, context, device, warp_bits);
        bool same = memcmp(list[0].bits, list[1].bits, sizeof list[0].bits) == 0;
        if (same && i % 2 == 0) {
            list[1].layout = list[0].layout;
        } else {
            named_random(&list[1], &random, context, device, warp_bits);
        }
        list[2].layout = list[1].layout;
        if (i % 7 == 0) {
            named_random(&list[2], &random, context, device, warp_bits);
        }
        static const char *const ways[] = {"", ", lilac.movement = \"shared\"", "",
                                           ", lilac.movement = \"unswizzled\"", ""};
        make_gather(&text, list, axis, ways[i % 5]);
        harness h;
        named_open(&h, &text, device, 1U << warp_bits, i % 4 == 3, list, 3);
        check_gather(&h, list, axis, &random);
        if (i % 4 != 3) {
            met |= check_collective(&h, device, 1U << warp_bits);
        }
        by_lanes += h.simt->kernels->shared_bytes == 0;
        by_memory += h.simt->kernels->shared_bytes != 0;
        harness_close(&h);
    }
    assert_true(by_lanes > 50 && by_memory > 50);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
    const uint32_t all = PLAN_SHUFFLES | PLAN_MEMORY | PLAN_CONVERTS;
    assert_int_equal(met & all, all);
}

/* The index changes its layout in the warps, and the gather goes through memory in the warps: the
 * same bytes, and each warp has its own part of them both times. */
static void after_an_exchange(void **state) {
    (void)state;
    enum { ROW = 0x100 }; /* of these columns; below it the column's bits */
    static const uint32_t columns[2][11] = {
        {16, 1, 4, 4 * ROW, 2, 1 * ROW, 32, 8 * ROW, 16 * ROW, 2 * ROW, 8},
        {1, 8 * ROW, 16, 32, 16 * ROW, 2, 4, 1 * ROW, 2 * ROW, 4 * ROW, 8}};
    static const char *const names[] = {"register", "lane", "warp", "block"};
    static const uint32_t counts[] = {5, 5, 1, 0};
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 26);
    named_tensor list[3];
    for (uint32_t k = 0; k < 3; k++) {
        list[k] = (named_tensor){.letter = "xiy"[k],
                                 .scalar = k == 1 ? LILAC_I32 : LILAC_F32,
                                 .rank = 2,
                                 .bits = {5, 6}};
        lilac_layout *layout = &list[k].layout;
        lilac_layout_init(layout);
        assert_true(lilac_layout_add_out(layout, "dim0", 5, NULL) &&
                    lilac_layout_add_out(layout, "dim1", 6, NULL));
        for (uint32_t i = 0, at = 0; i < 4; at += counts[i], i++) {
            uint64_t made[5];
            for (uint32_t bit = 0; bit < counts[i]; bit++) {
                uint64_t column = columns[k == 2][at + bit];
                made[bit] = (column / ROW) << lilac_layout_out_start(layout, 0) |
                            (column % ROW) << lilac_layout_out_start(layout, 1);
            }
            assert_true(lilac_layout_add_in(layout, names[i], counts[i], made, NULL));
        }
    }
    make_gather(&text, list, 0, ", lilac.movement = \"shared\"");
    harness h;
    named_open(&h, &text, lilac_arch_find("sm_90a"), 2, false, list, 3);
    assert_int_equal(count_text(lilac_text_get(&h.text), "    barrier"), 0);
    assert_true(count_text(lilac_text_get(&h.text), "    warp_barrier") >= 3);
    check_gather(&h, list, 0, &random);
    harness_close(&h);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

/* ---- histograms -------------------------------------------------------------------------- */

static void histograms(void **state) {
    (void)state;
    static const lilac_scalar results[] = {LILAC_I32, LILAC_I64, LILAC_I16};
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 22);
    for (uint32_t i = 0; i < 200; i++) {
        const lilac_arch *device = harness_device(i);
        uint32_t warp_bits = random_warp_bits(&random, device, 4);
        bool masked = i % 2 == 0;
        named_tensor list[3] = {{.letter = 'x', .rank = 1}};
        list[0].scalar = indices[random_below(&random, sizeof indices / sizeof *indices)];
        list[0].bits[0] = random_below(&random, 11);
        list[1] = (named_tensor){.letter = 'y', .rank = 1, .scalar = results[i % 3]};
        list[1].bits[0] = random_below(&random, 10);
        list[2] = list[0];
        list[2].letter = 'm';
        list[2].scalar = LILAC_I1;
        for (uint32_t k = 0; k < 3; k++) {
            named_random(&list[k], &random, context, device, warp_bits);
        }
        named_parameters(&text, list, 3);
        named_load(&text, &list[0]);
        named_load(&text, &list[2]);
        lilac_text_printf(&text, "    %%y = tt.histogram %%x%s : ", masked ? ", %m" : "");
        named_type(&text, &list[0]);
        lilac_text_puts(&text, " -> ");
        named_type(&text, &list[1]);
        lilac_text_puts(&text, "\n");
        named_store(&text, &list[1], "%y");
        lilac_text_puts(&text, "    tt.return\n  }\n}\n");
        harness h;
        named_open(&h, &text, device, 1U << warp_bits, i % 4 == 3, list, 3);
        uint32_t bits = list[0].bits[0], bins = 1U << list[1].bits[0];
        uint32_t want[1 << 10] = {0};
        for (uint32_t k = 0; k < 1U << bits; k++) {
            /* Most of them bins, some beyond or negative. */
            uint64_t number = random_below(&random, 8) == 0 ? lilac_random_next(&random)
                                                            : random_below(&random, bins);
            number = lilac_scalar_mask(list[0].scalar, number);
            uint32_t counts = random_below(&random, 3) != 0;
            set_element(data[0], list[0].scalar, k, number);
            set_element(data[2], LILAC_I1, k, counts);
            if (number < bins && (counts || !masked)) {
                want[number]++;
            }
        }
        buffer buffers[] = {{data[0], (size_t)bytes_of(list[0].scalar) << bits},
                            {data[1], (size_t)bytes_of(list[1].scalar) * bins},
                            {data[2], (size_t)1 << bits}};
        harness_run(&h, 1, buffers, 3, NULL, 0);
        if (i % 4 != 3) {
            (void)check_collective(&h, device, 1U << warp_bits);
        }
        for (uint32_t k = 0; k < bins; k++) {
            if (get_element(data[1], list[1].scalar, k) != want[k]) {
                print_message("%s\n", lilac_text_get(&h.text));
                fail_msg("bin %u: %llu, not %u", k,
                         (unsigned long long)get_element(data[1], list[1].scalar, k), want[k]);
            }
        }
        harness_close(&h);
    }
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

/* ---- one after the other ----------------------------------------------------------------- */

static void cats(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 23);
    for (uint32_t i = 0; i < 150; i++) {
        const lilac_arch *device = harness_device(i);
        uint32_t warp_bits = random_warp_bits(&random, device, 3);
        named_tensor list[3] = {{.letter = 'x', .rank = 1}};
        list[0].scalar = scalars[random_below(&random, sizeof scalars / sizeof *scalars)];
        list[0].bits[0] = random_below(&random, 10);
        list[1] = list[2] = list[0];
        list[1].letter = 'y';
        list[2].letter = 'z';
        list[2].bits[0]++;
        for (uint32_t k = 0; k < 3; k++) {
            named_random(&list[k], &random, context, device, warp_bits);
        }
        if (i % 2 == 0) {
            list[1].layout = list[0].layout;
        }
        named_parameters(&text, list, 3);
        named_load(&text, &list[0]);
        named_load(&text, &list[1]);
        lilac_text_puts(&text, "    %z = tt.cat %x, %y : ");
        named_type(&text, &list[0]);
        lilac_text_puts(&text, " -> ");
        named_type(&text, &list[2]);
        lilac_text_puts(&text, "\n");
        named_store(&text, &list[2], "%z");
        lilac_text_puts(&text, "    tt.return\n  }\n}\n");
        harness h;
        named_open(&h, &text, device, 1U << warp_bits, i % 4 == 3, list, 3);
        uint32_t size = 1U << list[0].bits[0];
        lilac_scalar scalar = list[0].scalar;
        for (uint32_t k = 0; k < 2 * size; k++) {
            set_element(data[k / size], scalar, k % size, random_element(&random, scalar));
        }
        buffer buffers[] = {{data[0], (size_t)bytes_of(scalar) * size},
                            {data[1], (size_t)bytes_of(scalar) * size},
                            {data[2], (size_t)bytes_of(scalar) * 2 * size}};
        harness_run(&h, 1, buffers, 3, NULL, 0);
        for (uint32_t k = 0; k < 2 * size; k++) {
            assert_int_equal(get_element(data[2], scalar, k),
                             get_element(data[k / size], scalar, k % size));
        }
        harness_close(&h);
    }
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

/* ---- what they cost ---------------------------------------------------------------------- */

/* A kernel that gathers a tensor of two dimensions along an axis, all of it in one layout. Its
 * elements are all the first of p; row r's indices are all q[r]. */
/* The loads are volatile, so that elements from equal pointers are not known to be equal. */
static void make_whole(lilac_text *text, const char *layout, const char *shape, const char *type,
                       uint32_t axis, const char *way) {
    const char *s = shape, *t = type;
    unsigned rows = (unsigned)strtoul(shape, NULL, 10);
    lilac_text_printf(text,
                      "#l = %s\n#s = #ttg.slice<{dim = 1, parent = #l}>\nmodule {\n"
                      "  tt.func public @k(%%p: !tt.ptr<%s>, %%q: !tt.ptr<i32>) {\n"
                      "    %%1 = tt.splat %%p : !tt.ptr<%s> -> tensor<%sx!tt.ptr<%s>, #l>\n"
                      "    %%2 = tt.load %%1 {isVolatile = true} : tensor<%sx!tt.ptr<%s>, #l>\n",
                      layout, t, t, s, t, s, t);
    lilac_text_printf(
        text,
        "    %%3 = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32, #s>\n"
        "    %%4 = tt.expand_dims %%3 {axis = 1 : i32} : tensor<%uxi32, #s> -> "
        "tensor<%ux1xi32, #l>\n"
        "    %%5 = tt.broadcast %%4 : tensor<%ux1xi32, #l> -> tensor<%sxi32, #l>\n"
        "    %%6 = tt.splat %%q : !tt.ptr<i32> -> tensor<%sx!tt.ptr<i32>, #l>\n"
        "    %%7 = tt.addptr %%6, %%5 : tensor<%sx!tt.ptr<i32>, #l>, tensor<%sxi32, #l>\n"
        "    %%8 = tt.load %%7 {isVolatile = true} : tensor<%sx!tt.ptr<i32>, #l>\n",
        rows, rows, rows, rows, rows, s, s, s, s, s);
    lilac_text_printf(text,
                      "    %%9 = tt.gather %%2[%%8] {axis = %u : i32%s%s%s} : (tensor<%sx%s, #l>, "
                      "tensor<%sxi32, #l>) -> tensor<%sx%s, #l>\n"
                      "    tt.store %%1, %%9 : tensor<%sx!tt.ptr<%s>, #l>\n    tt.return\n  }\n}\n",
                      axis, *way ? ", lilac.movement = \"" : "", way, *way ? "\"" : "", s, t, s, s,
                      t, s, t);
}

#define BLOCKED(SIZE, LANES, WARPS)                                                                \
    "#ttg.blocked<{sizePerThread = " SIZE ", threadsPerWarp = " LANES ", warpsPerCTA = " WARPS     \
    ", order = [1, 0]}>"

static void ways_of_gathers(void **state) {
    (void)state;
    static const struct {
        const char *layout, *shape, *type;
        uint32_t axis, shuffles, permutes, stores, warp_barriers, barriers;
        const char *way;
    } cases[] = {
        /* A row is a warp's lanes: the index names the lane. */
        {BLOCKED("[1, 1]", "[1, 32]", "[4, 1]"), "64x32", "f32", 1, 16, 0, 0, 0, 0, ""},
        {BLOCKED("[1, 1]", "[4, 8]", "[4, 1]"), "128x8", "f32", 1, 8, 0, 0, 0, 0, ""},
        /* Two registers: one shuffle each, and one of the two words. */
        {BLOCKED("[1, 2]", "[1, 32]", "[4, 1]"), "64x64", "f32", 1, 64, 32, 0, 0, 0, ""},
        /* Two registers of 16 bits are one word, out of which the element is permuted. */
        {BLOCKED("[1, 2]", "[2, 16]", "[4, 1]"), "64x32", "f16", 1, 16, 16, 0, 0, 0, ""},
        /* Eight of 8 bits are two: their last permute takes one of eight bytes. */
        {BLOCKED("[1, 8]", "[8, 4]", "[4, 1]"), "64x32", "i8", 1, 32, 16, 0, 0, 0, ""},
        /* In the thread: no movement. */
        {BLOCKED("[1, 2]", "[32, 1]", "[4, 1]"), "128x2", "f32", 1, 0, 2, 0, 0, 0, ""},
        /* Too many registers for shuffles, but the warp's own. */
        {BLOCKED("[1, 4]", "[8, 4]", "[4, 1]"), "32x256", "f32", 1, 0, 0, 64, 1, 0, ""},
        /* Across the warps. */
        {BLOCKED("[1, 1]", "[1, 32]", "[4, 1]"), "64x32", "f32", 0, 0, 0, 16, 0, 1, ""},
        /* The layout that the user gives. */
        {BLOCKED("[1, 1]", "[1, 32]", "[4, 1]"), "64x32", "f32", 1, 0, 0, 16, 1, 0, "shared"},
        {BLOCKED("[1, 1]", "[1, 32]", "[4, 1]"), "64x32", "f32", 1, 0, 0, 16, 0, 1, "unswizzled"},
        {BLOCKED("[1, 4]", "[8, 4]", "[4, 1]"), "32x256", "f32", 1, 4096, 4032, 0, 0, 0,
         "shuffles"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        harness h;
        make_whole(&text, cases[i].layout, cases[i].shape, cases[i].type, cases[i].axis,
                   cases[i].way);
        harness_open(&h, lilac_text_get(&text), 4, false);
        const char *made = lilac_text_get(&h.text);
        print_message("%s x %s %s\n", cases[i].shape, cases[i].type, cases[i].way);
        assert_int_equal(count_text(made, "shuffle"), cases[i].shuffles);
        assert_int_equal(count_text(made, "prmt"), cases[i].permutes);
        assert_int_equal(count_text(made, "st.shared"), cases[i].stores);
        assert_int_equal(count_text(made, "    warp_barrier"), cases[i].warp_barriers);
        assert_int_equal(count_text(made, "    barrier"), cases[i].barriers);
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* Rows of a tensor, gathered again and again along an axis between one load and one store. */
static void make_repeated(lilac_text *text, uint32_t rows, uint32_t columns, const char *type,
                          uint32_t axis, uint32_t times, const char *way) {
    char shape[32];
    snprintf(shape, sizeof shape, "%ux%u", rows, columns);
    const char *s = shape, *t = type;
    lilac_text_printf(
        text,
        "module {\n  tt.func public @k(%%p: !tt.ptr<%s> {tt.divisibility = 16 : i32}, "
        "%%q: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {\n"
        "    %%zero = arith.constant 0 : i32\n    %%one = arith.constant 1 : i32\n"
        "    %%times = arith.constant %u : i32\n"
        "    %%n = arith.constant dense<%u> : tensor<%ux1xi32>\n"
        "    %%r = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
        "    %%c = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
        "    %%r1 = tt.expand_dims %%r {axis = 1 : i32} : tensor<%uxi32> -> tensor<%ux1xi32>\n"
        "    %%rn = arith.muli %%r1, %%n : tensor<%ux1xi32>\n",
        t, times, columns, rows, rows, rows, columns, columns, rows, rows, rows);
    lilac_text_printf(
        text,
        "    %%c1 = tt.expand_dims %%c {axis = 0 : i32} : tensor<%uxi32> -> tensor<1x%uxi32>\n"
        "    %%rb = tt.broadcast %%rn : tensor<%ux1xi32> -> tensor<%sxi32>\n"
        "    %%cb = tt.broadcast %%c1 : tensor<1x%uxi32> -> tensor<%sxi32>\n"
        "    %%o = arith.addi %%rb, %%cb : tensor<%sxi32>\n"
        "    %%ps = tt.splat %%p : !tt.ptr<%s> -> tensor<%sx!tt.ptr<%s>>\n"
        "    %%pp = tt.addptr %%ps, %%o : tensor<%sx!tt.ptr<%s>>, tensor<%sxi32>\n"
        "    %%qs = tt.splat %%q : !tt.ptr<i32> -> tensor<%sx!tt.ptr<i32>>\n"
        "    %%qq = tt.addptr %%qs, %%o : tensor<%sx!tt.ptr<i32>>, tensor<%sxi32>\n",
        columns, columns, rows, s, columns, s, s, t, s, t, s, t, s, s, s, s);
    lilac_text_printf(
        text,
        "    %%x = tt.load %%pp : tensor<%sx!tt.ptr<%s>>\n"
        "    %%i = tt.load %%qq : tensor<%sx!tt.ptr<i32>>\n"
        "    %%y = scf.for %%k = %%zero to %%times step %%one iter_args(%%a = %%x) -> "
        "(tensor<%sx%s>) : i32 {\n"
        "      %%g = tt.gather %%a[%%i] {axis = %u : i32%s%s%s} : (tensor<%sx%s>, tensor<%sxi32>) "
        "-> tensor<%sx%s>\n      scf.yield %%g : tensor<%sx%s>\n    }\n"
        "    tt.store %%pp, %%y : tensor<%sx!tt.ptr<%s>>\n    tt.return\n  }\n}\n",
        s, t, s, s, t, axis, *way ? ", lilac.movement = \"" : "", way, *way ? "\"" : "", s, t, s, s,
        t, s, t, s, t);
}

/* What prices choose where an H200 was measured (bench/gather.py, bench/paper/figure6.py): the
 * faster strategy, in its cheapest layout. */
static void chosen_strategies(void **state) {
    (void)state;
    static const struct {
        uint32_t rows, columns, axis, times, warps;
        const char *type, *way;
        uint32_t shuffles, permutes; /* of the gather; 0: through shared memory */
    } cases[] = {
        {64, 32, 1, 4, 4, "f32", "", 16, 0},
        {128, 8, 1, 4, 4, "f32", "", 8, 0},
        {32, 64, 0, 4, 4, "f32", "", 16, 0},
        {64, 64, 1, 1000, 4, "f32", "", 64, 32},
        {64, 64, 1, 1000, 4, "f16", "", 32, 32},
        {32, 128, 1, 1000, 4, "f32", "", 0, 0},
        {32, 128, 1, 1000, 4, "f16", "", 0, 0},
        {16, 256, 1, 1000, 4, "f32", "", 0, 0},
        {512, 8, 1, 1000, 4, "f16", "", 32, 0},
        {512, 8, 1, 1000, 4, "i8", "", 32, 0},
        {512, 32, 1, 1000, 8, "f16", "", 64, 0},
        {512, 64, 1, 1000, 16, "f32", "", 0, 0},
        {512, 2, 1, 1000, 4, "f32", "", 0, 8},
        {64, 32, 1, 4, 4, "f32", "shared", 0, 0},
        {32, 128, 1, 4, 4, "f32", "shuffles", 128, 96},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        harness h;
        make_repeated(&text, cases[i].rows, cases[i].columns, cases[i].type, cases[i].axis,
                      cases[i].times, cases[i].way);
        harness_open(&h, lilac_text_get(&text), cases[i].warps, true);
        const char *made = lilac_text_get(&h.text), *loop = strstr(made, " loop ");
        assert_non_null(loop);
        const char *end = strstr(loop, "yield");
        assert_non_null(end);
        lilac_text body = {0};
        lilac_text_printf(&body, "%.*s", (int)(end - loop), loop);
        const char *inside = lilac_text_get(&body);
        print_message("%ux%u %s\n", cases[i].rows, cases[i].columns, cases[i].type);
        assert_int_equal(count_text(inside, "shuffle"), cases[i].shuffles);
        bool shared = cases[i].shuffles + cases[i].permutes == 0;
        assert_int_equal(count_text(inside, "ld.shared") > 0, shared);
        if (!shared) {
            assert_int_equal(count_text(inside, "prmt"), cases[i].permutes);
        }
        lilac_text_clear(&body);
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* A device with too little shared memory for the source takes it in rounds. */
static void gathers_in_rounds(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 27);
    uint32_t done = 0, refused = 0;
    for (uint32_t i = 0; i < 600; i++) {
        uint32_t s = random_below(&random, sizeof shapes / sizeof *shapes);
        uint32_t warp_bits = random_below(&random, 4), axis = shapes[s].axis;
        named_tensor list[3] = {{.letter = 'x', .rank = shapes[s].rank}};
        list[0].scalar = scalars[random_below(&random, sizeof scalars / sizeof *scalars)];
        memcpy(list[0].bits, shapes[s].source, sizeof list[0].bits);
        list[1] = list[0];
        list[1].letter = 'i';
        list[1].scalar = indices[random_below(&random, sizeof indices / sizeof *indices)];
        memcpy(list[1].bits, shapes[s].index, sizeof list[1].bits);
        named_random(&list[0], &random, context, lilac_arch_find("sm_90a"), warp_bits);
        named_random(&list[1], &random, context, lilac_arch_find("sm_90a"), warp_bits);
        list[2] = list[1];
        list[2].letter = 'y';
        list[2].scalar = list[0].scalar;
        lilac_arch small = *lilac_arch_find("sm_90a");
        uint32_t bytes = bytes_of(list[0].scalar) << named_bits(&list[0]);
        small.shared_bytes = bytes >> (1 + random_below(&random, 3));
        make_gather(&text, list, axis, ", lilac.movement = \"shared\"");
        harness h;
        harness_arch = &small;
        named_tensors all = {.count = 3, .list = list};
        bool good = harness_try_edited(&h, lilac_text_get(&text), 1U << warp_bits, false, NULL,
                                       named_assign, &all);
        harness_arch = NULL;
        lilac_text_reset(&text);
        if (good) {
            assert_true(h.simt->kernels->shared_bytes <= small.shared_bytes);
            check_gather(&h, list, axis, &random);
            (void)check_collective(&h, &small, 1U << warp_bits);
        } else {
            const lilac_diagnostic *first = lilac_diagnostics(h.context);
            assert_string_equal(first->id, "too-much-shared-memory");
            assert_non_null(strstr(first->message, "bytes of shared memory"));
        }
        done += good;
        refused += !good;
        harness_close(&h);
    }
    assert_true(done > 100 && refused > 10);
    /* 256 KB of source: half at a time, as many bytes as Triton takes. */
    harness h;
    make_whole(&text, BLOCKED("[1, 4]", "[2, 16]", "[32, 1]"), "1024x64", "i32", 0, "");
    harness_open(&h, lilac_text_get(&text), 32, false);
    assert_int_equal(h.simt->kernels->shared_bytes, 131072);
    harness_close(&h);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

static void refused_ways(void **state) {
    (void)state;
    static const struct {
        const char *layout, *shape, *way, *id;
    } cases[] = {
        {BLOCKED("[1, 1]", "[32, 1]", "[1, 4]"), "64x32", "shuffles", "unsupported-operation"},
        {BLOCKED("[1, 1]", "[32, 1]", "[1, 4]"), "64x32", "telepathy", "bad-attribute"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        harness h;
        make_whole(&text, cases[i].layout, cases[i].shape, "f32", 1, cases[i].way);
        assert_false(harness_try(&h, lilac_text_get(&text), 4, false, NULL));
        const lilac_diagnostic *found = lilac_diagnostics(h.context);
        assert_non_null(found);
        assert_string_equal(found->id, cases[i].id);
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* Lanes in different rows never meet in a bank, whatever the index, and neither do their stores. */
static void rows_in_banks_of_their_own(void **state) {
    (void)state;
    static const struct {
        const char *layout, *shape, *type;
        uint32_t columns, stores, loads; /* wavefronts */
    } cases[] = {
        {BLOCKED("[1, 4]", "[32, 1]", "[1, 4]"), "32x128", "f32", 128, 128, 128},
        {BLOCKED("[1, 32]", "[32, 1]", "[1, 4]"), "32x128", "f32", 128, 128, 128},
        {BLOCKED("[1, 4]", "[32, 1]", "[1, 4]"), "32x128", "f16", 128, 64, 128},
        {BLOCKED("[1, 4]", "[32, 1]", "[1, 4]"), "32x128", "i8", 128, 32, 128},
        {BLOCKED("[1, 4]", "[32, 1]", "[1, 4]"), "32x128", "i64", 128, 256, 256},
        {BLOCKED("[1, 1]", "[32, 1]", "[4, 1]"), "128x32", "f32", 32, 128, 128},
    };
    lilac_random random;
    lilac_random_seed(&random, 24);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        harness h;
        uint32_t index[128];
        make_whole(&text, cases[i].layout, cases[i].shape, cases[i].type, 1, "shared");
        harness_open(&h, lilac_text_get(&text), 4, false);
        for (size_t k = 0; k < sizeof index / sizeof *index; k++) {
            index[k] = random_below(&random, cases[i].columns);
        }
        buffer buffers[] = {{data[0], 64}, {index, sizeof index}};
        harness_run(&h, 1, buffers, 2, NULL, 0);
        assert_int_equal(h.counters.shared_store_wavefronts, cases[i].stores);
        assert_int_equal(h.counters.shared_load_wavefronts, cases[i].loads);
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* What is expected of random places, against drawing them. */
static void scattered_places(void **state) {
    (void)state;
    enum { DRAWINGS = 400 };
    lilac_random random;
    lilac_random_seed(&random, 25);
    for (uint32_t lanes = 0; lanes <= 6; lanes++) {
        uint32_t groups = lanes < 5 ? 32U >> lanes : 1;
        for (uint32_t words = lanes; words <= 10; words++) {
            uint64_t sum = 0;
            for (uint32_t k = 0; k < DRAWINGS; k++) {
                uint32_t most = 0;
                for (uint32_t group = 0; group < groups; group++) {
                    uint32_t drawn[64], bank[64] = {0};
                    for (uint32_t lane = 0; lane < 1U << lanes; lane++) {
                        drawn[lane] = random_below(&random, 1U << words);
                        bool is_new = true;
                        for (uint32_t other = 0; other < lane; other++) {
                            is_new &= drawn[other] != drawn[lane];
                        }
                        uint32_t at = drawn[lane] & ((1U << lanes) - 1);
                        bank[at] += is_new;
                        most = bank[at] > most ? bank[at] : most;
                    }
                }
                sum += most;
            }
            double mean = (double)sum / DRAWINGS;
            double expected = lilac_plan_scattered_wavefronts(lanes, lanes, words) / 16.0;
            assert_true(fabs(mean - expected) <= 0.08 * mean);
        }
    }
    /* Never more than there are words in a bank, or lanes. */
    for (uint32_t lanes = 0; lanes <= 6; lanes++) {
        for (uint32_t banks = 0; banks <= 6; banks++) {
            for (uint32_t words = banks; words <= 12; words++) {
                uint32_t wavefronts = lilac_plan_scattered_wavefronts(lanes, banks, words);
                assert_in_range(wavefronts, 16, 16U << lanes);
                assert_in_range(wavefronts, 16, 16U << (words - banks));
            }
        }
    }
}

/* Prices against the instructions that they count: a shuffle takes as long as a wavefront. */
static void prices(void **state) {
    (void)state;
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    const lilac_costs *costs = arch->costs;
    static const struct {
        uint32_t bits, varying, words, within;
    } cases[] = {{32, 0, 1, 0}, {32, 1, 2, 0}, {32, 3, 8, 0}, {64, 0, 2, 0}, {64, 2, 8, 0},
                 {16, 1, 1, 1}, {16, 2, 2, 1}, {8, 1, 1, 1},  {8, 2, 1, 2},  {8, 4, 4, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_plan_price counts;
        lilac_plan_gather_work gather = {.element_bits = cases[i].bits,
                                         .num_warps = 4,
                                         .own = 16,
                                         .results = 16,
                                         .varying_bits = cases[i].varying,
                                         .moves = true};
        assert_int_equal(lilac_plan_gather_within(&gather), cases[i].within);
        uint64_t price = lilac_plan_price_gather_shuffles(&counts, &gather, arch);
        uint64_t shuffles = (uint64_t)16 * 4 * cases[i].words * costs->shuffle;
        assert_in_range(price, shuffles, 2 * shuffles + costs->shuffle_latency);
        /* Fewer where nothing leaves its lane; more with more results; much more where registers
         * run out. */
        gather.moves = false;
        assert_true(lilac_plan_price_gather_shuffles(&counts, &gather, arch) < price);
        gather.moves = true;
        gather.results = 32;
        uint64_t more = lilac_plan_price_gather_shuffles(&counts, &gather, arch);
        assert_true(more > price + shuffles / 2);
        gather.num_warps = 32;
        gather.own = 32;
        assert_true(lilac_plan_price_gather_shuffles(&counts, &gather, arch) > 8 * more);
        gather.num_warps = 4;
        lilac_plan_price accesses = {.stores = 64,
                                     .store_wavefronts = 64,
                                     .loads = 128,
                                     .load_wavefronts = 128,
                                     .barriers = 4};
        uint64_t memory =
            lilac_plan_price_gather_memory(&gather, &accesses, LILAC_PLAN_BARRIER_WARP, arch);
        assert_in_range(memory, 192 * costs->wavefront, 2 * 192 * costs->wavefront);
        assert_true(lilac_plan_price_gather_memory(&gather, &accesses, LILAC_PLAN_BARRIER_BLOCK,
                                                   arch) > memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers_in_rounds),
        cmocka_unit_test(gathers),
        cmocka_unit_test(after_an_exchange),
        cmocka_unit_test(histograms),
        cmocka_unit_test(cats),
        cmocka_unit_test(ways_of_gathers),
        cmocka_unit_test(chosen_strategies),
        cmocka_unit_test(refused_ways),
        cmocka_unit_test(rows_in_banks_of_their_own),
        cmocka_unit_test(scattered_places),
        cmocka_unit_test(prices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
