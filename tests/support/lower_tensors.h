/* Text of kernels on two-dimensional tensors with layouts, for the tests of `lower`. */
#ifndef LILAC_LOWER_TENSORS_H
#define LILAC_LOWER_TENSORS_H

#include "support/lower_harness.h"

/* %<name>p: pointers to the elements of a row-major rows × columns array at %<pointer>, in a
 * layout. */
static inline void put_pointers(lilac_text *out, const char *name, const char *pointer,
                                const char *layout, const char *type, uint32_t rows,
                                uint32_t columns) {
    lilac_text_printf(out,
                      "    %%%s0 = tt.make_range {end = %u : i32, start = 0 : i32} : "
                      "tensor<%uxi32, #ttg.slice<{dim = 1, parent = %s}>>\n"
                      "    %%%s1 = tt.expand_dims %%%s0 {axis = 1 : i32} : tensor<%uxi32, "
                      "#ttg.slice<{dim = 1, parent = %s}>> -> tensor<%ux1xi32, %s>\n"
                      "    %%%s2 = arith.constant dense<%u> : tensor<%ux1xi32, %s>\n"
                      "    %%%s3 = arith.muli %%%s1, %%%s2 : tensor<%ux1xi32, %s>\n",
                      name, rows, rows, layout, name, name, rows, layout, rows, layout, name,
                      columns, rows, layout, name, name, name, rows, layout);
    lilac_text_printf(out,
                      "    %%%s4 = tt.make_range {end = %u : i32, start = 0 : i32} : "
                      "tensor<%uxi32, #ttg.slice<{dim = 0, parent = %s}>>\n"
                      "    %%%s5 = tt.expand_dims %%%s4 {axis = 0 : i32} : tensor<%uxi32, "
                      "#ttg.slice<{dim = 0, parent = %s}>> -> tensor<1x%uxi32, %s>\n"
                      "    %%%s6 = tt.broadcast %%%s3 : tensor<%ux1xi32, %s> -> tensor<%ux%uxi32, "
                      "%s>\n"
                      "    %%%s7 = tt.broadcast %%%s5 : tensor<1x%uxi32, %s> -> tensor<%ux%uxi32, "
                      "%s>\n",
                      name, columns, columns, layout, name, name, columns, layout, columns, layout,
                      name, name, rows, layout, rows, columns, layout, name, name, columns, layout,
                      rows, columns, layout);
    lilac_text_printf(out,
                      "    %%%s8 = arith.addi %%%s6, %%%s7 : tensor<%ux%uxi32, %s>\n"
                      "    %%%s9 = tt.splat %%%s : !tt.ptr<%s> -> tensor<%ux%ux!tt.ptr<%s>, %s>\n"
                      "    %%%sp = tt.addptr %%%s9, %%%s8 : tensor<%ux%ux!tt.ptr<%s>, %s>, "
                      "tensor<%ux%uxi32, %s>\n",
                      name, name, name, rows, columns, layout, name, pointer, type, rows, columns,
                      type, layout, name, name, name, rows, columns, type, layout, rows, columns,
                      layout);
}

/* %<name> = the elements at %<name>p, and %<value> stored there. */
static inline void put_load(lilac_text *out, const char *name, const char *layout, const char *type,
                            uint32_t rows, uint32_t columns) {
    lilac_text_printf(out, "    %%%s = tt.load %%%sp : tensor<%ux%ux!tt.ptr<%s>, %s>\n", name, name,
                      rows, columns, type, layout);
}

static inline void put_store(lilac_text *out, const char *name, const char *value,
                             const char *layout, const char *type, uint32_t rows,
                             uint32_t columns) {
    lilac_text_printf(out, "    tt.store %%%sp, %%%s : tensor<%ux%ux!tt.ptr<%s>, %s>\n", name,
                      value, rows, columns, type, layout);
}

static inline void put_head(lilac_text *out, const char *layouts, const char *type) {
    lilac_text_printf(out,
                      "%smodule {\n  tt.func public @k(%%x: !tt.ptr<%s> {tt.divisibility = 16 : "
                      "i32}, %%o: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%n: i32) {\n",
                      layouts, type, type);
}

static inline void put_tail(lilac_text *out) {
    lilac_text_printf(out, "    tt.return\n  }\n}\n");
}

/* Random bytes into `x`, the kernel run on x and o; checks that nothing was read uninitialised. */
static inline void run_kernel(harness *h, lilac_random *random, uint8_t *x, size_t x_bytes,
                              uint8_t *o, size_t o_bytes, int64_t n) {
    for (size_t i = 0; i < x_bytes; i++) {
        x[i] = (uint8_t)lilac_random_next(random);
    }
    memset(o, 0, o_bytes);
    buffer buffers[] = {{x, x_bytes}, {o, o_bytes}};
    harness_run(h, 1, buffers, 2, &n, 1);
    assert_int_equal(h->counters.uninitialised_reads, 0);
}

/* Opens this kernel's text, of four warps, and clears it. */
static inline void open_text_on(harness *h, lilac_text *text, const lilac_arch *device) {
    if (!harness_try(h, lilac_text_get(text), 4, false, device->name)) {
        print_message("%s\n%s\n", device->name, lilac_text_get(text));
        print_diagnostics(h->context);
        fail_msg("the kernel was refused");
    }
    lilac_text_clear(text);
}

static inline void open_text(harness *h, lilac_text *text) {
    open_text_on(h, text, lilac_arch_find("sm_90a"));
}

#endif
