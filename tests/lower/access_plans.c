/* lower: the counters that the plans of accesses predict are those of the simulator. A copy and an
 * atomic addition of a two-dimensional tile under random layouts, strides, alignments, types and
 * masks. The sums of all plans of a kind are compared with the counters of a run. */
#include "support/lower_layouts.h"

typedef enum mask_kind { MASK_NONE, MASK_TRUE, MASK_PARTIAL } mask_kind;

typedef struct kernel {
    uint32_t bits[2], stride[2], divisibility;
    columns layout;
    mask_kind mask;
    bool known; /* the strides are constants, otherwise arguments */
    const char *type;
} kernel;

/* Dimension `drop` has size 1 (expanded) or is gone (sliced). */
static columns project(const columns *c, uint32_t drop, bool sliced) {
    columns p = {.rank = sliced ? 1 : 2};
    for (int i = 0; i < 3; i++) {
        p.count[i] = c->count[i];
    }
    for (uint32_t d = 0; d < 2; d++) {
        if (d == drop && sliced) {
            continue;
        }
        const uint32_t e = sliced ? 0 : d;
        p.bits[e] = d == drop ? 0 : c->bits[d];
        for (int i = 0; i < 3; i++) {
            for (uint32_t k = 0; k < c->count[i]; k++) {
                p.at[i][k][e] = d == drop ? 0 : c->at[i][k][d];
            }
        }
    }
    return p;
}

static void assign_layouts(lilac_tile_module *module, const void *data) {
    const columns *layout = &((const kernel *)data)->layout;
    lay_out(&(layouts_of_shapes){module,
                                 5,
                                 {*layout, project(layout, 1, true), project(layout, 0, true),
                                  project(layout, 1, false), project(layout, 0, false)}});
}

/* %p<c> = %<c> + i · stride[0] + k · stride[1] */
static void print_pointers(lilac_text *out, const kernel *k, char c, const char *type) {
    const uint32_t rows = 1U << k->bits[0], cols = 1U << k->bits[1];
    lilac_text_printf(
        out,
        "%%li%c = arith.muli %%ic, %%s0 : tensor<%ux1xi32>\n"
        "%%lk%c = arith.muli %%kr, %%s1 : tensor<1x%uxi32>\n"
        "%%b%c = tt.splat %%%c : !tt.ptr<%s> -> tensor<%ux1x!tt.ptr<%s>>\n"
        "%%q%c = tt.addptr %%b%c, %%li%c : tensor<%ux1x!tt.ptr<%s>>, tensor<%ux1xi32>\n"
        "%%r%c = tt.broadcast %%q%c : tensor<%ux1x!tt.ptr<%s>> -> tensor<%ux%ux!tt.ptr<%s>>\n"
        "%%w%c = tt.broadcast %%lk%c : tensor<1x%uxi32> -> tensor<%ux%uxi32>\n"
        "%%p%c = tt.addptr %%r%c, %%w%c : tensor<%ux%ux!tt.ptr<%s>>, tensor<%ux%uxi32>\n",
        c, rows, c, cols, c, c, type, rows, type, c, c, c, rows, type, rows, c, c, rows, type, rows,
        cols, type, c, c, cols, rows, cols, c, c, c, rows, cols, type, rows, cols);
}

static void print_strides(lilac_text *out, const kernel *k) {
    const uint32_t size[2] = {1U << k->bits[0], 1U << k->bits[1]};
    for (uint32_t d = 0; d < 2; d++) {
        const uint32_t rows = d == 0 ? size[0] : 1, cols = d == 1 ? size[1] : 1;
        if (k->known) {
            lilac_text_printf(out, "%%s%u = arith.constant dense<%u> : tensor<%ux%uxi32>\n", d,
                              k->stride[d], rows, cols);
        } else {
            lilac_text_printf(out, "%%s%u = tt.splat %%n%u : i32 -> tensor<%ux%uxi32>\n", d, d,
                              rows, cols);
        }
    }
}

static void print_kernel(lilac_text *out, const kernel *k) {
    const uint32_t rows = 1U << k->bits[0], cols = 1U << k->bits[1], d = k->divisibility;
    const char *mask = k->mask != MASK_NONE ? ", %m" : "", *type = k->type;
    lilac_text_printf(
        out,
        "module {\n  tt.func public @k(%%x: !tt.ptr<%s> {tt.divisibility = %u : i32}, "
        "%%o: !tt.ptr<%s> {tt.divisibility = %u : i32}, %%a: !tt.ptr<f32> "
        "{tt.divisibility = %u : i32}, %%n0: i32, %%n1: i32, %%cols: i32) {\n",
        type, d, type, d, d);
    lilac_text_printf(out,
                      "%%i = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
                      "%%k = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
                      "%%ic = tt.expand_dims %%i {axis = 1 : i32} : tensor<%uxi32> -> "
                      "tensor<%ux1xi32>\n"
                      "%%kr = tt.expand_dims %%k {axis = 0 : i32} : tensor<%uxi32> -> "
                      "tensor<1x%uxi32>\n"
                      "%%ca = tt.splat %%cols : i32 -> tensor<1x%uxi32>\n"
                      "%%cb = arith.cmpi slt, %%kr, %%ca : tensor<1x%uxi32>\n"
                      "%%m = tt.broadcast %%cb : tensor<1x%uxi1> -> tensor<%ux%uxi1>\n"
                      "%%one = arith.constant dense<1.0> : tensor<%ux%uxf32>\n",
                      rows, rows, cols, cols, rows, rows, cols, cols, cols, cols, cols, rows, cols,
                      rows, cols);
    print_strides(out, k);
    print_pointers(out, k, 'x', type);
    print_pointers(out, k, 'o', type);
    print_pointers(out, k, 'a', "f32");
    lilac_text_printf(out,
                      "%%v = tt.load %%px%s : tensor<%ux%ux!tt.ptr<%s>>\n"
                      "tt.store %%po, %%v%s : tensor<%ux%ux!tt.ptr<%s>>\n",
                      mask, rows, cols, type, mask, rows, cols, type);
    lilac_text_printf(out,
                      "%%u = tt.atomic_rmw fadd, relaxed, gpu, %%pa, %%one, %%m : (tensor<%ux%ux"
                      "!tt.ptr<f32>>, tensor<%ux%uxf32>, tensor<%ux%uxi1>) -> tensor<%ux%uxf32>\n"
                      "tt.return\n}\n}\n",
                      rows, cols, rows, cols, rows, cols, rows, cols);
}

/* Sums of the counts of a kernel's plans, by kind. */
typedef struct sums {
    lilac_plan_global_counts of[LILAC_PLAN_ATOMIC + 1];
    bool exact;
} sums;

static sums add_plans(harness *h, const lilac_target *target) {
    sums s = {.exact = true};
    lilac_arena *arena = lilac_arena_create();
    lilac_access_report report;
    lilac_engine_accesses(&report, arena, h->tile->functions, target);
    assert_int_equal(report.count, 3);
    for (uint32_t i = 0; i < report.count; i++) {
        const lilac_plan_global_access *plan = &report.accesses[i].plan;
        s.of[plan->kind].instructions += plan->counts.instructions;
        s.of[plan->kind].sectors += plan->counts.sectors;
        s.exact = s.exact && plan->exact;
    }
    lilac_arena_destroy(arena);
    return s;
}

static void expect(const char *what, uint32_t run, uint64_t planned, uint64_t counted, bool equal) {
    if (equal ? planned != counted : counted > planned) {
        fail_msg("run %u: the plans have %llu %s, the simulator counts %llu", run,
                 (unsigned long long)planned, what, (unsigned long long)counted);
    }
}

static kernel random_kernel(lilac_random *random, const lilac_arch *device, uint32_t warp_bits) {
    static const char *const types[] = {"i8", "f16", "i32", "f64"};
    static const uint32_t alignments[] = {256, 256, 256, 128, 16};
    kernel k = {.known = lilac_random_below(random, 4) != 0};
    k.bits[0] = (uint32_t)lilac_random_below(random, 6);
    k.bits[1] = k.bits[0] + 1 + (uint32_t)lilac_random_below(random, 11 - 2 * k.bits[0]);
    k.layout = random_columns(random, 2, k.bits, device, warp_bits, lilac_random_below(random, 2));
    k.type = types[lilac_random_below(random, 4)];
    k.mask = (mask_kind)lilac_random_below(random, 3);
    k.divisibility = alignments[lilac_random_below(random, 5)];
    const uint32_t fast = lilac_random_below(random, 3) == 0 ? 0 : 1;
    static const uint32_t gaps[] = {0, 0, 128, 16, 1};
    k.stride[fast] = 1;
    k.stride[1 - fast] = (1U << k.bits[fast]) + gaps[lilac_random_below(random, 5)];
    return k;
}

static void counters(void **state) {
    (void)state;
    static uint8_t x[3 << 20], o[3 << 20], a[3 << 20];
    lilac_random random;
    uint32_t exact = 0, runs = 800;
    lilac_random_seed(&random, 1307);
    for (uint32_t run = 0; run < runs; run++) {
        const lilac_arch *device = harness_device(run);
        const uint32_t warp_bits = random_warp_bits(&random, device, 3);
        const lilac_target target = {
            .arch = device, .num_warps = 1U << warp_bits, .num_ctas = 1, .num_stages = 1};
        const kernel k = random_kernel(&random, device, warp_bits);
        lilac_text text = {0};
        print_kernel(&text, &k);
        harness h;
        if (!harness_try_edited(&h, lilac_text_get(&text), target.num_warps, false, device->name,
                                assign_layouts, &k)) {
            print_message("%s\n", lilac_text_get(&text));
            print_diagnostics(h.context);
            fail_msg("run %u was refused", run);
        }
        const uint32_t cols = 1U << k.bits[1];
        const uint32_t live =
            k.mask == MASK_PARTIAL ? 1 + (uint32_t)lilac_random_below(&random, cols) : cols;
        const size_t size =
            8 * (((size_t)k.stride[0] << k.bits[0]) + ((size_t)k.stride[1] << k.bits[1]));
        assert_true(size <= sizeof x);
        const buffer buffers[] = {{x, size}, {o, size}, {a, size}};
        const int64_t scalars[] = {k.stride[0], k.stride[1], live};
        harness_run(&h, 1, buffers, 3, scalars, 3);
        const sums s = add_plans(&h, &target);
        const lilac_sim_counters *c = &h.counters;
        const bool all = k.mask != MASK_PARTIAL;
        expect("loads", run, s.of[LILAC_PLAN_LOAD].instructions, c->global_loads, all);
        expect("stores", run, s.of[LILAC_PLAN_STORE].instructions, c->global_stores, all);
        expect("atomics", run, s.of[LILAC_PLAN_ATOMIC].instructions, c->atomics, all);
        if (s.exact) {
            expect("sectors of loads", run, s.of[LILAC_PLAN_LOAD].sectors, c->global_load_sectors,
                   all);
            expect("sectors of stores", run, s.of[LILAC_PLAN_STORE].sectors,
                   c->global_store_sectors, all);
        }
        exact += s.exact && all;
        harness_close(&h);
        lilac_text_clear(&text);
    }
    print_message("%u of %u kernels have exact plans\n", exact, runs);
    assert_true(exact > runs / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
