/* lower: the result of a kernel does not depend on the layouts of its tensors. The kernel is a
 * two-dimensional masked copy with arithmetic, under random layouts, sizes, strides, types and
 * alignments. */
#include "support/lower_layouts.h"

typedef struct kernel {
    uint32_t bits[2];
    columns layout;
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
        uint32_t e = sliced ? 0 : d;
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

/* o[i, k] = x[i, k] + x[i, k], where i < rows and k < cols; 1 + 1 beyond the columns. */
static void print_kernel(lilac_text *out, const kernel *k, const char *type, const char *add,
                         bool aligned) {
    uint32_t rows = 1U << k->bits[0], cols = 1U << k->bits[1];
    const char *attribute = aligned ? " {tt.divisibility = 16 : i32}" : "";
    lilac_text_printf(out,
                      "module {\n  tt.func public @k(%%x: !tt.ptr<%s> {tt.divisibility = 16 : "
                      "i32}, %%o: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%sx: i32%s, %%so: "
                      "i32%s, %%rows: i32, %%cols: i32%s) {\n",
                      type, type, attribute, attribute, attribute);
    lilac_text_printf(out,
                      "    %%i = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
                      "    %%k = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
                      "    %%ic = tt.expand_dims %%i {axis = 1 : i32} : tensor<%uxi32> -> "
                      "tensor<%ux1xi32>\n"
                      "    %%kr = tt.expand_dims %%k {axis = 0 : i32} : tensor<%uxi32> -> "
                      "tensor<1x%uxi32>\n",
                      rows, rows, cols, cols, rows, rows, cols, cols);
    lilac_text_printf(out,
                      "    %%ra = tt.splat %%rows : i32 -> tensor<%ux1xi32>\n"
                      "    %%rb = arith.cmpi slt, %%ic, %%ra : tensor<%ux1xi32>\n"
                      "    %%rm = tt.broadcast %%rb : tensor<%ux1xi1> -> tensor<%ux%uxi1>\n"
                      "    %%ca = tt.splat %%cols : i32 -> tensor<1x%uxi32>\n"
                      "    %%cb = arith.cmpi slt, %%kr, %%ca : tensor<1x%uxi32>\n"
                      "    %%cm = tt.broadcast %%cb : tensor<1x%uxi1> -> tensor<%ux%uxi1>\n"
                      "    %%m = arith.andi %%rm, %%cm : tensor<%ux%uxi1>\n"
                      "    %%one = arith.constant dense<%s> : tensor<%ux%ux%s>\n",
                      rows, rows, rows, rows, cols, cols, cols, cols, rows, cols, rows, cols,
                      type[0] == 'i' ? "1" : "1.0", rows, cols, type);
    for (int p = 0; p < 2; p++) {
        char c = p ? 'o' : 'x';
        lilac_text_printf(
            out,
            "    %%s%cs = tt.splat %%s%c : i32 -> tensor<%ux1xi32>\n"
            "    %%l%c = arith.muli %%ic, %%s%cs : tensor<%ux1xi32>\n"
            "    %%b%c = tt.splat %%%c : !tt.ptr<%s> -> tensor<%ux1x!tt.ptr<%s>>\n"
            "    %%p%c = tt.addptr %%b%c, %%l%c : tensor<%ux1x!tt.ptr<%s>>, tensor<%ux1xi32>\n"
            "    %%q%c = tt.broadcast %%p%c : tensor<%ux1x!tt.ptr<%s>> -> "
            "tensor<%ux%ux!tt.ptr<%s>>\n"
            "    %%w%c = tt.broadcast %%kr : tensor<1x%uxi32> -> tensor<%ux%uxi32>\n"
            "    %%a%c = tt.addptr %%q%c, %%w%c : tensor<%ux%ux!tt.ptr<%s>>, tensor<%ux%uxi32>\n",
            c, c, rows, c, c, rows, c, c, type, rows, type, c, c, c, rows, type, rows, c, c, rows,
            type, rows, cols, type, c, cols, rows, cols, c, c, c, rows, cols, type, rows, cols);
    }
    lilac_text_printf(out,
                      "    %%v = tt.load %%ax, %%m, %%one : tensor<%ux%ux!tt.ptr<%s>>\n"
                      "    %%y = %s %%v, %%v : tensor<%ux%ux%s>\n"
                      "    tt.store %%ao, %%y, %%rm : tensor<%ux%ux!tt.ptr<%s>>\n"
                      "    tt.return\n  }\n}\n",
                      rows, cols, type, add, rows, cols, type, rows, cols, type);
}

static void any_layout(void **state) {
    (void)state;
    static const struct {
        lilac_scalar scalar;
        const char *add;
        uint64_t two;
    } types[] = {{LILAC_I8, "arith.addi", 2},
                 {LILAC_F16, "arith.addf", 0x4000},
                 {LILAC_I32, "arith.addi", 2},
                 {LILAC_F64, "arith.addf", 0x4000000000000000}};
    static uint8_t x[96 * 256 * 8], o[96 * 256 * 8], before[96 * 256 * 8];
    lilac_random random;
    lilac_random_seed(&random, 2026);
    for (uint32_t run = 0; run < 300; run++) {
        kernel k;
        k.bits[0] = (uint32_t)lilac_random_below(&random, 6);
        k.bits[1] = k.bits[0] + 1 + (uint32_t)lilac_random_below(&random, 11 - 2 * k.bits[0]);
        const lilac_arch *device = harness_device(run);
        uint32_t warp_bits = random_warp_bits(&random, device, 3);
        k.layout = random_columns(&random, 2, k.bits, device, warp_bits, run % 2);
        size_t t = lilac_random_below(&random, sizeof types / sizeof *types);
        lilac_scalar scalar = types[t].scalar;
        bool aligned = lilac_random_below(&random, 2);
        uint32_t tile_rows = 1U << k.bits[0], tile_cols = 1U << k.bits[1];
        uint32_t rows = 1 + (uint32_t)lilac_random_below(&random, tile_rows);
        uint32_t cols = 1 + (uint32_t)lilac_random_below(&random, tile_cols);
        uint32_t stride = tile_cols + (uint32_t)lilac_random_below(&random, 8);
        if (aligned) {
            cols = cols / 16 * 16;
            stride = (stride + 15) / 16 * 16;
        }
        lilac_text text = {0};
        print_kernel(&text, &k, lilac_scalar_name(scalar), types[t].add, aligned);
        harness h;
        if (!harness_try_edited(&h, lilac_text_get(&text), 1U << warp_bits, false, device->name,
                                assign_layouts, &k)) {
            print_message("%s\n", lilac_text_get(&text));
            print_diagnostics(h.context);
            fail_msg("run %u was refused", run);
        }
        uint32_t bytes = bytes_of(scalar);
        size_t size = (size_t)rows * stride * bytes;
        assert_true(size <= sizeof x);
        for (uint32_t i = 0; i < rows * stride; i++) {
            set_element(x, scalar, i, random_element(&random, scalar));
        }
        memset(o, 0x5A, size);
        memcpy(before, o, size);
        buffer buffers[] = {{x, size}, {o, size}};
        int64_t scalars[] = {stride, stride, rows, cols};
        harness_run(&h, 1, buffers, 2, scalars, 4);
        for (uint32_t i = 0; i < rows; i++) {
            for (uint32_t c = 0; c < stride; c++) {
                size_t at = (size_t)i * stride + c;
                uint64_t in = get_element(x, scalar, at);
                uint64_t twice =
                    lilac_scalar_is_float(scalar)
                        ? lilac_scalar_encode(scalar, 2 * lilac_scalar_decode(scalar, in),
                                              LILAC_ROUND_NEAREST_EVEN, false)
                        : lilac_scalar_mask(scalar, 2 * in);
                uint64_t want = c < cols        ? twice
                                : c < tile_cols ? types[t].two
                                                : get_element(before, scalar, at);
                if (get_element(o, scalar, at) != want) {
                    print_message("%s\n", lilac_text_get(&h.text));
                    fail_msg("run %u: element %u, %u", run, i, c);
                }
            }
        }
        /* Each element is stored by one of its copies. */
        assert_int_equal(h.counters.global_store_bytes, (uint64_t)rows * tile_cols * bytes);
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_layout)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
