/* lower: reductions of any shape, axis, type, region and layout, compared with plain C; and
 * their cost. */
#include "support/collective_plans.h"
#include "support/lower_combines.h"
#include "support/lower_layouts.h"

/* The same in one dimension, row-major. */
static columns flat(const columns *c) {
    columns f = {.rank = 1};
    for (uint32_t d = 0; d < c->rank; d++) {
        f.bits[0] += c->bits[d];
    }
    for (int i = 0; i < 3; i++) {
        f.count[i] = c->count[i];
        for (uint32_t k = 0; k < c->count[i]; k++) {
            uint32_t index = 0;
            for (uint32_t d = 0; d < c->rank; d++) {
                index = index << c->bits[d] | c->at[i][k][d];
            }
            f.at[i][k][0] = index;
        }
    }
    return f;
}

/* Without dimension `axis`. */
static columns without(const columns *c, uint32_t axis) {
    columns s = {.rank = c->rank - 1};
    for (uint32_t d = 0, e = 0; d < c->rank; d++) {
        if (d == axis) {
            continue;
        }
        s.bits[e] = c->bits[d];
        for (int i = 0; i < 3; i++) {
            for (uint32_t k = 0; k < c->count[i]; k++) {
                s.at[i][k][e] = c->at[i][k][d];
            }
        }
        e++;
    }
    for (int i = 0; i < 3; i++) {
        s.count[i] = c->count[i];
    }
    return s;
}

/* ---- kernels ----------------------------------------------------------------------------- */

static uint64_t smaller_of(lilac_scalar s, uint64_t a, uint64_t b) {
    return lilac_scalar_signed(s, a) < lilac_scalar_signed(s, b) ? a : b;
}

static const combine reductions[] = {
    {LILAC_I32, "%c = arith.addi %a, %b : i32", sum_of},
    {LILAC_F32, "%c = arith.addf %a, %b : f32", sum_of},
    {LILAC_F32, "%c = arith.maxnumf %a, %b : f32", larger_of},
    {LILAC_I8, "%c = arith.minsi %a, %b : i8", smaller_of},
    {LILAC_I1, "%c = arith.xori %a, %b : i1", xor_of},
    {LILAC_F16, "%c = arith.addf %a, %b : f16", sum_of},
    {LILAC_BF16, "%c = arith.maxnumf %a, %b : bf16", larger_of},
    {LILAC_I64, "%c = arith.muli %a, %b : i64", product_of},
    {LILAC_F64, "%c = arith.addf %a, %b : f64", sum_of},
    {LILAC_I16, "%c = arith.addi %a, %b : i16", sum_of},
};

typedef struct tensor {
    uint32_t rank, bits[3], axis;
    const columns *layout;     /* NULL: the engine's */
    const columns *out_layout; /* of the result; NULL: the slice */
} tensor;

static void print_shape(lilac_text *out, const tensor *t, bool result) {
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!result || d != t->axis) {
            lilac_text_printf(out, "%ux", 1U << t->bits[d]);
        }
    }
}

static uint32_t total_bits(const tensor *t) {
    uint32_t sum = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        sum += t->bits[d];
    }
    return sum;
}

/* %NAME: a tensor<SHAPExT> read from %pNAME, in row-major order. */
static void print_load(lilac_text *out, const tensor *t, char name, lilac_scalar scalar) {
    uint32_t size = 1U << total_bits(t);
    const char *memory = scalar == LILAC_I1 ? "i8" : lilac_scalar_name(scalar);
    lilac_text_printf(out,
                      "    %%s%c = tt.splat %%p%c : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
                      "    %%q%c = tt.addptr %%s%c, %%r : tensor<%ux!tt.ptr<%s>>, "
                      "tensor<%uxi32>\n"
                      "    %%f%c = tt.load %%q%c : tensor<%ux!tt.ptr<%s>>\n",
                      name, name, memory, size, memory, name, name, size, memory, size, name, name,
                      size, memory);
    if (scalar == LILAC_I1) {
        lilac_text_printf(out,
                          "    %%z%c = arith.constant dense<0> : tensor<%uxi8>\n"
                          "    %%b%c = arith.cmpi ne, %%f%c, %%z%c : tensor<%uxi8>\n",
                          name, size, name, name, name, size);
    }
    lilac_text_printf(out, "    %%%c = tt.reshape %%%c%c : tensor<%ux%s> -> tensor<", name,
                      scalar == LILAC_I1 ? 'b' : 'f', name, size, lilac_scalar_name(scalar));
    print_shape(out, t, false);
    lilac_text_printf(out, "%s>\n", lilac_scalar_name(scalar));
}

static void print_result_type(lilac_text *out, const tensor *t, lilac_scalar scalar) {
    if (t->rank > 1) {
        lilac_text_puts(out, "tensor<");
        print_shape(out, t, true);
    }
    lilac_text_printf(out, "%s%s", lilac_scalar_name(scalar), t->rank > 1 ? ">" : "");
}

/* Stores %VALUE, a result, to %oNAME. */
static void print_store(lilac_text *out, const tensor *t, char name, const char *value,
                        lilac_scalar scalar) {
    const char *memory = scalar == LILAC_I1 ? "i8" : lilac_scalar_name(scalar);
    uint32_t size = 1U << (total_bits(t) - t->bits[t->axis]);
    if (t->rank == 1 && scalar == LILAC_I1) {
        lilac_text_printf(out, "    %%e%c = arith.extui %s : i1 to i8\n", name, value);
        lilac_text_printf(out, "    tt.store %%o%c, %%e%c : !tt.ptr<i8>\n", name, name);
        return;
    }
    if (t->rank == 1) {
        lilac_text_printf(out, "    tt.store %%o%c, %s : !tt.ptr<%s>\n", name, value, memory);
        return;
    }
    lilac_text_printf(out, "    %%g%c = tt.reshape %s : ", name, value);
    print_result_type(out, t, scalar);
    lilac_text_printf(out, " -> tensor<%ux%s>\n", size, lilac_scalar_name(scalar));
    if (scalar == LILAC_I1) {
        lilac_text_printf(out, "    %%e%c = arith.extui %%g%c : tensor<%uxi1> to tensor<%uxi8>\n",
                          name, name, size, size);
    }
    lilac_text_printf(out,
                      "    %%i%c = tt.make_range {end = %u : i32, start = 0 : i32} : "
                      "tensor<%uxi32>\n"
                      "    %%t%c = tt.splat %%o%c : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
                      "    %%u%c = tt.addptr %%t%c, %%i%c : tensor<%ux!tt.ptr<%s>>, "
                      "tensor<%uxi32>\n"
                      "    tt.store %%u%c, %%%c%c : tensor<%ux!tt.ptr<%s>>\n",
                      name, size, size, name, name, memory, size, memory, name, name, name, size,
                      memory, size, name, scalar == LILAC_I1 ? 'e' : 'g', name, size, memory);
}

static void print_head(lilac_text *out, const tensor *t, uint32_t operands,
                       const lilac_scalar *scalars) {
    lilac_text_puts(out, "module {\n  tt.func public @k(");
    for (uint32_t i = 0; i < 2 * operands; i++) {
        lilac_scalar s = scalars[i % operands];
        lilac_text_printf(out, "%s%%%c%c: !tt.ptr<%s> {tt.divisibility = 16 : i32}", i ? ", " : "",
                          i < operands ? 'p' : 'o', 'x' + i % operands,
                          s == LILAC_I1 ? "i8" : lilac_scalar_name(s));
    }
    uint32_t size = 1U << total_bits(t);
    lilac_text_printf(out,
                      ") {\n    %%r = tt.make_range {end = %u : i32, start = 0 : i32} : "
                      "tensor<%uxi32>\n",
                      size, size);
}

static void print_operand_type(lilac_text *out, const tensor *t, lilac_scalar scalar) {
    lilac_text_puts(out, "tensor<");
    print_shape(out, t, false);
    lilac_text_printf(out, "%s>", lilac_scalar_name(scalar));
}

/* Every tensor's layout follows from its shape: the operands' and the results', and their
 * row-major forms in one dimension. */
static void assign_layouts(lilac_tile_module *module, const void *data) {
    const tensor *t = data;
    columns out = t->out_layout != NULL ? *t->out_layout : without(t->layout, t->axis);
    lay_out(&(layouts_of_shapes){module, 4, {*t->layout, flat(t->layout), out, flat(&out)}});
}

static bool try_tensor(harness *h, const char *text, const lilac_arch *device, uint32_t warps,
                       const tensor *t) {
    return t->layout == NULL
               ? harness_try(h, text, warps, true, device->name)
               : harness_try_edited(h, text, warps, false, device->name, assign_layouts, t);
}

static void open_tensor(harness *h, const char *text, const lilac_arch *device, uint32_t warps,
                        const tensor *t) {
    if (!try_tensor(h, text, device, warps, t)) {
        print_message("%s, %u warps:\n%s\n", device->name, warps, text);
        print_diagnostics(h->context);
        fail_msg("the kernel was refused");
    }
}

static void make_reduction(lilac_text *out, const tensor *t, const combine *r) {
    lilac_text_reset(out);
    print_head(out, t, 1, &r->scalar);
    print_load(out, t, 'x', r->scalar);
    const char *name = lilac_scalar_name(r->scalar);
    lilac_text_printf(out,
                      "    %%y = \"tt.reduce\"(%%x) <{axis = %u : i32}> ({\n"
                      "    ^bb0(%%a: %s, %%b: %s):\n      %s\n"
                      "      tt.reduce.return %%c : %s\n    }) : (",
                      t->axis, name, name, r->line, name);
    print_operand_type(out, t, r->scalar);
    lilac_text_puts(out, ") -> ");
    print_result_type(out, t, r->scalar);
    lilac_text_puts(out, "\n");
    print_store(out, t, 'x', "%y", r->scalar);
    lilac_text_puts(out, "    tt.return\n  }\n}\n");
}

/* Position of element k along the axis of result number j. */
static uint32_t element_of(const tensor *t, uint32_t j, uint32_t k) {
    uint32_t inner = 0;
    for (uint32_t d = t->axis + 1; d < t->rank; d++) {
        inner += t->bits[d];
    }
    uint32_t low = j & ((1U << inner) - 1), high = j >> inner;
    return (high << t->bits[t->axis] | k) << inner | low;
}

static uint8_t data[2][(1 << MAX_BITS) * 8], out_data[2][(1 << MAX_BITS) * 8];

static void check_reduction(harness *h, const tensor *t, const combine *r, uint64_t seed) {
    uint32_t bits = total_bits(t), results = 1U << (bits - t->bits[t->axis]);
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (uint32_t i = 0; i < 1U << bits; i++) {
        set_element(data[0], r->scalar, i, exact_element(&random, r));
    }
    memset(out_data[0], 0x55, sizeof out_data[0]);
    buffer buffers[] = {{data[0], (size_t)bytes_of(r->scalar) << bits},
                        {out_data[0], (size_t)bytes_of(r->scalar) * results}};
    harness_run(h, 1, buffers, 2, NULL, 0);
    assert_int_equal(h->counters.uninitialised_reads, 0);
    for (uint32_t j = 0; j < results; j++) {
        uint64_t want = get_element(data[0], r->scalar, element_of(t, j, 0));
        for (uint32_t k = 1; k < 1U << t->bits[t->axis]; k++) {
            want =
                r->combine(r->scalar, want, get_element(data[0], r->scalar, element_of(t, j, k)));
        }
        uint64_t got = get_element(out_data[0], r->scalar, j);
        if (got != want) {
            print_message("%s\n", lilac_text_get(&h->text));
            fail_msg("%s: result %u is %llx, not %llx", r->line, j, (unsigned long long)got,
                     (unsigned long long)want);
        }
    }
}

/* ---- tests ------------------------------------------------------------------------------- */

static const tensor shapes[] = {
    {1, {10}, 0, NULL, NULL},      {1, {3}, 0, NULL, NULL},       {1, {0}, 0, NULL, NULL},
    {2, {4, 5}, 0, NULL, NULL},    {2, {4, 5}, 1, NULL, NULL},    {2, {7, 4}, 0, NULL, NULL},
    {2, {1, 2}, 1, NULL, NULL},    {3, {2, 3, 4}, 0, NULL, NULL}, {3, {2, 3, 4}, 1, NULL, NULL},
    {3, {3, 2, 3}, 2, NULL, NULL}, {3, {0, 5, 2}, 1, NULL, NULL}, {2, {0, 6}, 0, NULL, NULL},
};

static void engine_layouts(void **state) {
    (void)state;
    lilac_text text = {0};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (size_t r = 0; r < sizeof reductions / sizeof *reductions; r++) {
            const lilac_arch *device = harness_device((uint32_t)(s + 2 * r));
            harness h;
            make_reduction(&text, &shapes[s], &reductions[r]);
            open_tensor(&h, lilac_text_get(&text), device, 1U << (s + r) % 4, &shapes[s]);
            check_reduction(&h, &shapes[s], &reductions[r], s * 100 + r);
            harness_close(&h);
        }
    }
    lilac_text_clear(&text);
}

/* Any way of dealing the bits; half of them with mixed columns. */
static void any_layout(void **state) {
    (void)state;
    uint32_t met = 0;
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 42);
    for (uint32_t i = 0; i < 400; i++) {
        tensor t = shapes[lilac_random_below(&random, sizeof shapes / sizeof *shapes)];
        const lilac_arch *device = harness_device(i);
        uint32_t warp_bits = random_warp_bits(&random, device, 5);
        columns c = random_columns(&random, t.rank, t.bits, device, warp_bits, i % 2);
        t.layout = &c;
        const combine *r =
            &reductions[lilac_random_below(&random, sizeof reductions / sizeof *reductions)];
        make_reduction(&text, &t, r);
        harness h;
        open_tensor(&h, lilac_text_get(&text), device, 1U << warp_bits, &t);
        check_reduction(&h, &t, r, i);
        met |= check_collective(&h, device, 1U << warp_bits);
        harness_close(&h);
    }
    lilac_text_clear(&text);
    const uint32_t all = PLAN_SHUFFLES | PLAN_MEMORY | PLAN_GIVES | PLAN_LOADING_LANES;
    assert_int_equal(met & all, all);
}

/* A result in a layout of its own comes through shared memory. */
static void any_result_layout(void **state) {
    (void)state;
    uint32_t met = 0;
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 7);
    for (uint32_t i = 0; i < 100; i++) {
        tensor t = shapes[3 + lilac_random_below(&random, 7)];
        uint32_t kept[2], n = 0;
        for (uint32_t d = 0; d < t.rank; d++) {
            if (d != t.axis) {
                kept[n++] = t.bits[d];
            }
        }
        const lilac_arch *device = harness_device(i);
        uint32_t warp_bits = random_warp_bits(&random, device, 3);
        columns in = random_columns(&random, t.rank, t.bits, device, warp_bits, false);
        columns out = random_columns(&random, t.rank - 1, kept, device, warp_bits, i % 2);
        t.layout = &in;
        t.out_layout = &out;
        const combine *r =
            &reductions[lilac_random_below(&random, sizeof reductions / sizeof *reductions)];
        make_reduction(&text, &t, r);
        harness h;
        open_tensor(&h, lilac_text_get(&text), device, 1U << warp_bits, &t);
        check_reduction(&h, &t, r, i);
        met |= check_collective(&h, device, 1U << warp_bits);
        harness_close(&h);
    }
    lilac_text_clear(&text);
    const uint32_t all = PLAN_SHUFFLES | PLAN_MEMORY | PLAN_CONVERTS;
    assert_int_equal(met & all, all);
}

/* Every thread holds all results: each finishes a share of them, which a conversion distributes. */
static void results_in_every_thread(void **state) {
    (void)state;
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 8);
    uint32_t met = 0;
    for (uint32_t i = 0; i < 40; i++) {
        tensor t = {2, {5, 5}, 0, NULL, NULL};
        const lilac_arch *device = harness_device(i);
        const uint32_t warp_bits = random_warp_bits(&random, device, 4);
        columns in = random_columns(&random, 2, t.bits, device, warp_bits, false);
        columns out = {.rank = 1, .bits = {5}, .count = {5, log2_of(device->warp_size), warp_bits}};
        for (uint32_t k = 0; k < 5; k++) {
            out.at[0][k][0] = 1U << k;
        }
        t.layout = &in;
        t.out_layout = &out;
        const combine *r =
            &reductions[lilac_random_below(&random, sizeof reductions / sizeof *reductions)];
        make_reduction(&text, &t, r);
        harness h;
        open_tensor(&h, lilac_text_get(&text), device, 1U << warp_bits, &t);
        check_reduction(&h, &t, r, i);
        met |= check_collective(&h, device, 1U << warp_bits);
        harness_close(&h);
    }
    lilac_text_clear(&text);
    assert_true(met & PLAN_SHARES);
}

/* The largest value and its first place: two operands, a region of many operations. */
static void largest_and_its_place(void **state) {
    (void)state;
    static const lilac_scalar scalars[] = {LILAC_F16, LILAC_I32};
    static const char *const regions[] = {
        "      %g = arith.cmpf ogt, %a, %c : f16\n      %e = arith.cmpf oeq, %a, %c : f16\n"
        "      %l = arith.cmpi slt, %b, %d : i32\n      %t = arith.andi %e, %l : i1\n"
        "      %w = arith.ori %g, %t : i1\n",
        /* Not the same with its operands exchanged: any of the largest will do. */
        "      %w = arith.cmpf ogt, %a, %c : f16\n",
    };
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 3);
    for (uint32_t i = 0; i < 60; i++) {
        tensor t = shapes[lilac_random_below(&random, sizeof shapes / sizeof *shapes)];
        const lilac_arch *device = harness_device(i);
        uint32_t warp_bits = random_warp_bits(&random, device, 3);
        columns c = random_columns(&random, t.rank, t.bits, device, warp_bits, false);
        bool engine = i % 3 == 0;
        uint32_t which = i / 3 % 2;
        t.layout = engine ? NULL : &c;
        lilac_text_reset(&text);
        print_head(&text, &t, 2, scalars);
        print_load(&text, &t, 'x', LILAC_F16);
        print_load(&text, &t, 'y', LILAC_I32);
        lilac_text_printf(&text,
                          "    %%v:2 = \"tt.reduce\"(%%x, %%y) <{axis = %u : i32}> ({\n"
                          "    ^bb0(%%a: f16, %%b: i32, %%c: f16, %%d: i32):\n%s"
                          "      %%m = arith.select %%w, %%a, %%c : f16\n"
                          "      %%n = arith.select %%w, %%b, %%d : i32\n"
                          "      tt.reduce.return %%m, %%n : f16, i32\n    }) : (",
                          t.axis, regions[which]);
        print_operand_type(&text, &t, LILAC_F16);
        lilac_text_puts(&text, ", ");
        print_operand_type(&text, &t, LILAC_I32);
        lilac_text_puts(&text, ") -> (");
        print_result_type(&text, &t, LILAC_F16);
        lilac_text_puts(&text, ", ");
        print_result_type(&text, &t, LILAC_I32);
        lilac_text_puts(&text, ")\n");
        print_store(&text, &t, 'x', "%v#0", LILAC_F16);
        print_store(&text, &t, 'y', "%v#1", LILAC_I32);
        lilac_text_puts(&text, "    tt.return\n  }\n}\n");
        harness h;
        open_tensor(&h, lilac_text_get(&text), device, 1U << warp_bits, &t);
        uint32_t bits = total_bits(&t), results = 1U << (bits - t.bits[t.axis]);
        for (uint32_t k = 0; k < 1U << bits; k++) {
            double value = (double)lilac_random_below(&random, 12);
            set_element(data[0], LILAC_F16, k,
                        lilac_scalar_encode(LILAC_F16, value, LILAC_ROUND_NEAREST_EVEN, false));
            set_element(data[1], LILAC_I32, k, k);
        }
        buffer buffers[] = {{data[0], 2U << bits},
                            {data[1], 4U << bits},
                            {out_data[0], 2U * results},
                            {out_data[1], 4U * results}};
        harness_run(&h, 1, buffers, 4, NULL, 0);
        if (!engine) {
            (void)check_collective(&h, device, 1U << warp_bits);
        }
        for (uint32_t j = 0; j < results; j++) {
            double best = -1;
            uint32_t place = 0;
            for (uint32_t k = 0; k < 1U << t.bits[t.axis]; k++) {
                uint32_t at = element_of(&t, j, k);
                double value = lilac_scalar_decode(LILAC_F16, get_element(data[0], LILAC_F16, at));
                if (value > best) {
                    best = value;
                    place = at;
                }
            }
            uint32_t got = (uint32_t)get_element(out_data[1], LILAC_I32, j);
            assert_true(lilac_scalar_decode(LILAC_F16, get_element(out_data[0], LILAC_F16, j)) ==
                        best);
            if (which == 0) {
                assert_int_equal(got, place);
            } else {
                bool among = false;
                for (uint32_t k = 0; k < 1U << t.bits[t.axis]; k++) {
                    among |= got == element_of(&t, j, k);
                }
                assert_true(among);
                assert_true(lilac_scalar_decode(LILAC_F16, get_element(data[0], LILAC_F16, got)) ==
                            best);
            }
        }
        harness_close(&h);
    }
    lilac_text_clear(&text);
}

/* ---- what they cost ---------------------------------------------------------------------- */

/* Barriers and shared bytes of the corpus's launches; what Triton 3.6's PTX takes is at least as
 * much. Each reduction is one barrier, and one before it where its memory may still be read. */
static void barriers_and_bytes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t warps, barriers, bytes, triton_barriers, triton_bytes;
    } cases[] = {
        {"vector_add_f32", 4, 0, 0, 0, 0},
        {"softmax_float16_4096", 8, 3, 32, 5, 32},
        {"softmax_float32_1000", 4, 3, 16, 5, 16},
        {"softmax_bfloat16_8192", 8, 3, 32, 5, 32},
        {"layer_norm_f16_4096", 8, 3, 32, 5, 32},
        {"layer_norm_f16_5120", 4, 3, 16, 5, 16},
        {"rms_norm_f16_4096", 8, 1, 32, 2, 32},
        {"rms_norm_f16_5120", 8, 1, 32, 2, 32},
        {"swiglu_bf16", 8, 0, 0, 0, 0},
        {"cross_entropy_bf16", 8, 4, 32, 6, 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        harness h;
        char path[128];
        snprintf(path, sizeof path, "corpus/%s.ttir", cases[i].name);
        char *text = read_data(path, NULL);
        harness_open(&h, text, cases[i].warps, true);
        free(text);
        assert_int_equal(count_text(lilac_text_get(&h.text), "    barrier"), cases[i].barriers);
        assert_int_equal(h.simt->kernels->shared_bytes, cases[i].bytes);
        assert_true(cases[i].barriers <= cases[i].triton_barriers);
        assert_true(cases[i].bytes <= cases[i].triton_bytes);
        harness_close(&h);
    }
}

/* Of many warps' partials each lane reads one, and butterflies combine them; of few, each thread
 * reads all. */
static void many_warps(void **state) {
    (void)state;
    static const char text[] =
        "module {\n  tt.func public @k(%p: !tt.ptr<f32>, %m: !tt.ptr<f32>, %w: !tt.ptr<i32>) {\n"
        "    %r = tt.make_range {end = 4096 : i32, start = 0 : i32} : tensor<4096xi32>\n"
        "    %s = tt.splat %p : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>\n"
        "    %q = tt.addptr %s, %r : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>\n"
        "    %x = tt.load %q : tensor<4096x!tt.ptr<f32>>\n"
        "    %v:2 = \"tt.reduce\"(%x, %r) <{axis = 0 : i32}> ({\n"
        "    ^bb0(%a: f32, %b: i32, %c: f32, %d: i32):\n"
        "      %e = arith.cmpf oeq, %a, %c : f32\n      %l = arith.cmpi slt, %b, %d : i32\n"
        "      %t = arith.andi %e, %l : i1\n      %g = arith.cmpf ogt, %a, %c : f32\n"
        "      %o = arith.ori %g, %t : i1\n      %f = arith.select %o, %a, %c : f32\n"
        "      %h = arith.select %o, %b, %d : i32\n      tt.reduce.return %f, %h : f32, i32\n"
        "    }) : (tensor<4096xf32>, tensor<4096xi32>) -> (f32, i32)\n"
        "    tt.store %m, %v#0 : !tt.ptr<f32>\n    tt.store %w, %v#1 : !tt.ptr<i32>\n"
        "    tt.return\n  }\n}\n";
    static const struct {
        uint32_t warps, loads, shuffles; /* of a thread; 5 steps of two within a warp */
    } cases[] = {{4, 2, 10}, {8, 4, 10}, {16, 2, 10 + 8 + 2}, {32, 2, 10 + 10 + 2}};
    static float numbers[4096];
    lilac_random random;
    lilac_random_seed(&random, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float best = -1, got = 0;
        int32_t place = -1, where = 0;
        for (int32_t k = 0; k < 4096; k++) {
            numbers[k] = (float)lilac_random_below(&random, 500);
            place = numbers[k] > best ? k : place;
            best = numbers[k] > best ? numbers[k] : best;
        }
        harness h;
        harness_open(&h, text, cases[i].warps, true);
        const char *made = lilac_text_get(&h.text);
        assert_int_equal(count_text(made, "ld.shared"), cases[i].loads);
        assert_int_equal(count_text(made, "shuffle"), cases[i].shuffles);
        buffer buffers[] = {{numbers, sizeof numbers}, {&got, sizeof got}, {&where, sizeof where}};
        harness_run(&h, 1, buffers, 3, NULL, 0);
        assert_true(got == best);
        assert_int_equal(where, place);
        harness_close(&h);
    }
}

static void too_much_shared_memory(void **state) {
    (void)state;
    /* 2^17 sums of two partials in each of 8 bytes. */
    static const char text[] =
        "#l = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], "
        "[0, 128], [0, 256], [0, 512]], lane = [[0, 1024], [0, 2048], [0, 4096], [0, 8192], [0, "
        "16384]], warp = [[1, 0]], block = []}>\n"
        "module {\n  tt.func public @k(%o: !tt.ptr<i64>) {\n"
        "    %x = arith.constant dense<1> : tensor<2x32768xi64, #l>\n"
        "    %y = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n    ^bb0(%a: i64, %b: i64):\n"
        "      %c = arith.addi %a, %b : i64\n      tt.reduce.return %c : i64\n"
        "    }) : (tensor<2x32768xi64, #l>) -> tensor<32768xi64, #ttg.slice<{dim = 0, parent = "
        "#l}>>\n"
        "    %s = tt.splat %o : !tt.ptr<i64> -> tensor<32768x!tt.ptr<i64>, #ttg.slice<{dim = 0, "
        "parent = #l}>>\n"
        "    tt.store %s, %y : tensor<32768x!tt.ptr<i64>, #ttg.slice<{dim = 0, parent = #l}>>\n"
        "    tt.return\n  }\n}\n";
    harness h;
    assert_false(harness_try(&h, text, 2, false, NULL));
    const lilac_diagnostic *d = lilac_diagnostics(h.context);
    assert_non_null(d);
    assert_string_equal(d->id, "too-much-shared-memory");
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engine_layouts),
        cmocka_unit_test(any_layout),
        cmocka_unit_test(any_result_layout),
        cmocka_unit_test(results_in_every_thread),
        cmocka_unit_test(largest_and_its_place),
        cmocka_unit_test(barriers_and_bytes),
        cmocka_unit_test(many_warps),
        cmocka_unit_test(too_much_shared_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
