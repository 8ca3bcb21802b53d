/* Random products of matrices as TTIR: tiles, orders of the operands, bounds of rows, columns
 * and k, and how the loop advances. */
#ifndef LILAC_TESTS_PRODUCT_PROGRAMS_H
#define LILAC_TESTS_PRODUCT_PROGRAMS_H

#include "support/test.h"

#include <lilac/scalar.h>

/* How a kernel handles indices that are not below the size of the matrix. */
typedef enum bound_form { MASKED, REMAINDER, SELECTED, CLAMPED, UNBOUNDED, BOUND_FORMS } bound_form;

typedef struct product_case {
    lilac_scalar scalar;
    uint32_t m, n, k, warps, stages; /* the tiles */
    bool a_along_k, b_along_k;       /* the contiguous dimensions */
    bound_form m_form, n_form, k_form;
    bool carried;      /* the loop carries pointers, or computes them from its counter */
    bool counts_tiles; /* or elements */
    bool sum_mask;     /* k + range < K, or range < K - k */
    bool from_first;   /* the loop begins at a parameter, or at 0 */
    bool batches;   /* the third coordinate of a program selects a matrix, by strides of 64 bits */
    bool aligned;   /* the pitches are known multiples of 16 */
    bool planar;    /* or there is no third coordinate, and split_sums may use it */
    bool asked;     /* to specialise warps: one warp starts the copies */
    bool one_block; /* for launches of one block of a multiprocessor: longer rings */
    bool twice_a, twice_b; /* each row of a, or column of b, is read twice: no tile */
    bool scaled;           /* a, along k, is added to its first row: a vector that the loop loads */
    uint32_t
        divisor;  /* the pitches are quotients of parameters by this number; 0: are parameters */
    bool doubled; /* the counter advances by twice as much as the pointers that the loop carries */
} product_case;

/* ---- programs -------------------------------------------------------------------------------- */

static inline bool is_integer(const product_case *c) {
    return !lilac_scalar_is_float(c->scalar);
}

/* Appends a text in which $M, $N, $K, $E, $S and $0 are the tile's sizes, the types of the elements
 * and of the sums, and a zero of both. */
static inline void put(lilac_text *t, const product_case *c, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            lilac_text_char(t, *text);
            continue;
        }
        text++;
        if (*text == 'E') {
            lilac_text_puts(t, lilac_scalar_name(c->scalar));
        } else if (*text == 'S') {
            lilac_text_puts(t, is_integer(c) ? "i32" : "f32");
        } else if (*text == '0') {
            lilac_text_puts(t, is_integer(c) ? "0" : "0.0");
        } else {
            lilac_text_printf(t, "%u", *text == 'M' ? c->m : *text == 'N' ? c->n : c->k);
        }
    }
}

/* %m = pid · size + range, and %m_at, the row that is read. */
static inline void put_indices(lilac_text *t, char name, char axis, uint32_t size, bound_form form,
                               bool twice) {
    const char upper = name == 'm' ? 'M' : 'N';
    lilac_text_printf(t,
                      "%%%c_pid = tt.get_program_id %c : i32\n"
                      "%%%c_tile = arith.constant %u : i32\n"
                      "%%%c_first = arith.muli %%%c_pid, %%%c_tile : i32\n"
                      "%%%c_range = tt.make_range {end = %u : i32, start = 0 : i32} : "
                      "tensor<%uxi32>\n",
                      name, axis, name, size, name, name, name, name, size, size);
    lilac_text_printf(t,
                      "%%%c_begin = tt.splat %%%c_first : i32 -> tensor<%uxi32>\n"
                      "%%%c = arith.addi %%%c_begin, %%%c_range : tensor<%uxi32>\n"
                      "%%%c_none = arith.constant dense<0> : tensor<%uxi32>\n"
                      "%%%c_size = tt.splat %%%c : i32 -> tensor<%uxi32>\n"
                      "%%%c_below = arith.cmpi slt, %%%c, %%%c_size : tensor<%uxi32>\n",
                      name, name, size, name, name, name, size, name, size, name, upper, size, name,
                      name, name, size);
    const char *all = twice ? "all" : "at";
    if (form == SELECTED) {
        lilac_text_printf(t,
                          "%%%c_%s = arith.select %%%c_below, %%%c, %%%c_none : "
                          "tensor<%uxi1>, tensor<%uxi32>\n",
                          name, all, name, name, name, size, size);
    } else {
        lilac_text_printf(t,
                          "%%%c_less = arith.subi %%%c, %%c1 : i32\n"
                          "%%%c_last = tt.splat %%%c_less : i32 -> tensor<%uxi32>\n",
                          name, upper, name, name, size);
        lilac_text_printf(t, "%%%c_%s = arith.%s %%%c, %%%c_%s : tensor<%uxi32>\n", name, all,
                          form == REMAINDER ? "remsi"
                          : form == CLAMPED ? "minsi"
                                            : "addi",
                          name, name,
                          form == REMAINDER ? "size"
                          : form == CLAMPED ? "last"
                                            : "none",
                          size);
    }
    if (twice) {
        lilac_text_printf(t,
                          "%%%c_two = arith.constant dense<2> : tensor<%uxi32>\n"
                          "%%%c_at = arith.divsi %%%c_all, %%%c_two : tensor<%uxi32>\n",
                          name, size, name, name, name, size);
    }
}

/* The tile of matrix a or b, of the rows %row and the columns %column. */
typedef struct tile_form {
    char name;
    uint32_t rows, columns;
    const char *row, *column;
    bool along_rows; /* are columns contiguous? */
} tile_form;

/* %a_o: the offsets of the elements. */
static inline void put_offsets(lilac_text *t, const tile_form *f) {
    const char x = f->name;
    const uint32_t r = f->rows, s = f->columns;
    const uint32_t pr = f->along_rows ? r : 1, pc = f->along_rows ? 1 : s;
    lilac_text_printf(t,
                      "%%%c_r = tt.expand_dims %%%s {axis = 1 : i32} : tensor<%uxi32> -> "
                      "tensor<%ux1xi32>\n"
                      "%%%c_c = tt.expand_dims %%%s {axis = 0 : i32} : tensor<%uxi32> -> "
                      "tensor<1x%uxi32>\n"
                      "%%%c_pitch = tt.splat %%s%c : i32 -> tensor<%ux%uxi32>\n"
                      "%%%c_far = arith.muli %%%c_%c, %%%c_pitch : tensor<%ux%uxi32>\n",
                      x, f->row, r, r, x, f->column, s, s, x, x, pr, pc, x, x,
                      f->along_rows ? 'r' : 'c', x, pr, pc);
    lilac_text_printf(t,
                      "%%%c_rb = tt.broadcast %%%c_%s : tensor<%ux1xi32> -> tensor<%ux%uxi32>\n"
                      "%%%c_cb = tt.broadcast %%%c_%s : tensor<1x%uxi32> -> tensor<%ux%uxi32>\n"
                      "%%%c_o = arith.addi %%%c_rb, %%%c_cb : tensor<%ux%uxi32>\n",
                      x, x, f->along_rows ? "far" : "r", r, r, s, x, x, f->along_rows ? "c" : "far",
                      s, r, s, x, x, x, r, s);
}

static inline void put_pointers(lilac_text *t, const product_case *c, const tile_form *f,
                                const char *result) {
    const uint32_t r = f->rows, s = f->columns;
    const char *e = lilac_scalar_name(c->scalar);
    put_offsets(t, f);
    lilac_text_printf(t,
                      "%%%c_p = tt.splat %%%c_base : !tt.ptr<%s> -> tensor<%ux%ux!tt.ptr<%s>>\n"
                      "%%%s = tt.addptr %%%c_p, %%%c_o : tensor<%ux%ux!tt.ptr<%s>>, "
                      "tensor<%ux%uxi32>\n",
                      f->name, f->name, e, r, s, e, result, f->name, f->name, r, s, e, r, s);
}

/* The tile through %a_now, under the masks of its dimensions; NULL: none. */
static inline void put_load(lilac_text *t, const product_case *c, const tile_form *f,
                            const char *row_mask, const char *column_mask) {
    const uint32_t r = f->rows, s = f->columns;
    const char x = f->name, *e = lilac_scalar_name(c->scalar);
    const char *masks[] = {row_mask, column_mask};
    for (uint32_t d = 0; d < 2; d++) {
        if (masks[d] != NULL) {
            lilac_text_printf(t,
                              "%%%c_e%u = tt.expand_dims %%%s {axis = %u : i32} : tensor<%uxi1> -> "
                              "tensor<%ux%uxi1>\n"
                              "%%%c_b%u = tt.broadcast %%%c_e%u : tensor<%ux%uxi1> -> "
                              "tensor<%ux%uxi1>\n",
                              x, d, masks[d], 1 - d, d == 0 ? r : s, d == 0 ? r : 1, d == 0 ? 1 : s,
                              x, d, x, d, d == 0 ? r : 1, d == 0 ? 1 : s, r, s);
        }
    }
    if (row_mask != NULL && column_mask != NULL) {
        lilac_text_printf(t, "%%%c_mask = arith.andi %%%c_b0, %%%c_b1 : tensor<%ux%uxi1>\n", x, x,
                          x, r, s);
    }
    lilac_text_printf(t, "%%%c_tile = tt.load %%%c_now", x, x);
    if (row_mask != NULL || column_mask != NULL) {
        lilac_text_printf(t, ", %%%c_%s, %%%c_zero", x,
                          row_mask == NULL      ? "b1"
                          : column_mask == NULL ? "b0"
                                                : "mask",
                          x);
    }
    lilac_text_printf(t, " : tensor<%ux%ux!tt.ptr<%s>>\n", r, s, e);
}

/* %a_next: the pointers of the next iteration. */
static inline void put_advance(lilac_text *t, const product_case *c, const tile_form *f,
                               bool along_k) {
    const uint32_t r = f->rows, s = f->columns;
    const char x = f->name, *e = lilac_scalar_name(c->scalar);
    lilac_text_printf(t,
                      "%%%c_step = arith.muli %%%s, %%k_tile : i32\n"
                      "%%%c_steps = tt.splat %%%c_step : i32 -> tensor<%ux%uxi32>\n"
                      "%%%c_next = tt.addptr %%%c_now, %%%c_steps : tensor<%ux%ux!tt.ptr<%s>>, "
                      "tensor<%ux%uxi32>\n",
                      x,
                      along_k    ? "c1"
                      : x == 'a' ? "sa"
                                 : "sb",
                      x, x, r, s, x, x, x, r, s, e, r, s);
}

/* %a_sum: the tile of a and, added to each row, the first row of a. */
static inline void put_vector(lilac_text *t, const product_case *c) {
    put(t, c,
        "%v_base = tt.splat %a_base : !tt.ptr<$E> -> tensor<$Kx!tt.ptr<$E>>\n"
        "%v_at = tt.addptr %v_base, %k_now : tensor<$Kx!tt.ptr<$E>>, tensor<$Kxi32>\n");
    put(t, c,
        c->k_form == MASKED ? "%v_zero = arith.constant dense<0.0> : tensor<$Kx$E>\n"
                              "%v = tt.load %v_at, %k_below, %v_zero : tensor<$Kx!tt.ptr<$E>>\n"
                            : "%v = tt.load %v_at : tensor<$Kx!tt.ptr<$E>>\n");
    put(t, c,
        "%v_r = tt.expand_dims %v {axis = 0 : i32} : tensor<$Kx$E> -> tensor<1x$Kx$E>\n"
        "%v_b = tt.broadcast %v_r : tensor<1x$Kx$E> -> tensor<$Mx$Kx$E>\n"
        "%a_sum = arith.addf %a_tile, %v_b : tensor<$Mx$Kx$E>\n");
}

static inline tile_form form_a(const product_case *c) {
    return (tile_form){'a', c->m, c->k, "m_at", c->carried ? "k_first" : "k_now", c->a_along_k};
}

static inline tile_form form_b(const product_case *c) {
    return (tile_form){'b', c->k, c->n, c->carried ? "k_first" : "k_now", "n_at", !c->b_along_k};
}

static inline void put_head(lilac_text *t, const product_case *c) {
    const char *known = c->aligned ? " {tt.divisibility = 16 : i32}" : "";
    put(t, c,
        "module {\ntt.func public @k(%a: !tt.ptr<$E> {tt.divisibility = 16 : i32}, "
        "%b: !tt.ptr<$E> {tt.divisibility = 16 : i32}, "
        "%c: !tt.ptr<$S> {tt.divisibility = 16 : i32}, %M: i32, %N: i32, %K: i32, ");
    const char *of = c->divisor > 0 ? "_product" : "";
    lilac_text_printf(t, "%%sa%s: i32%s, %%sb%s: i32%s, ", of, known, of, known);
    put(t, c,
        "%sc: i32, %first: i32, %za: i64, %zb: i64, %zc: i32, %off: i32) {\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%k_tile = arith.constant $K : i32\n"
        "%a_zero = arith.constant dense<$0> : tensor<$Mx$Kx$E>\n"
        "%b_zero = arith.constant dense<$0> : tensor<$Kx$Nx$E>\n"
        "%zero = arith.constant dense<$0> : tensor<$Mx$Nx$S>\n"
        "%all = arith.constant dense<true> : tensor<$Mx$Nxi1>\n"
        "%kr = tt.make_range {end = $K : i32, start = 0 : i32} : tensor<$Kxi32>\n");
    if (c->divisor > 0) {
        lilac_text_printf(t,
                          "%%divisor = arith.constant %u : i32\n"
                          "%%sa = arith.divsi %%sa_product, %%divisor : i32\n"
                          "%%sb = arith.divsi %%sb_product, %%divisor : i32\n",
                          c->divisor);
    }
    lilac_text_puts(t, c->planar ? "%z = arith.muli %c0, %c0 : i32\n"
                                 : "%z = tt.get_program_id z : i32\n");
    put(t, c,
        "%z64 = arith.extsi %z : i32 to i64\n"
        "%a_off = tt.addptr %a, %off : !tt.ptr<$E>, i32\n");
    put(t, c,
        c->batches ? "%a_z = arith.muli %z64, %za : i64\n%b_z = arith.muli %z64, %zb : i64\n"
                     "%a_base = tt.addptr %a_off, %a_z : !tt.ptr<$E>, i64\n"
                     "%b_base = tt.addptr %b, %b_z : !tt.ptr<$E>, i64\n"
                   : "%a_base = tt.addptr %a_off, %c0 : !tt.ptr<$E>, i32\n"
                     "%b_base = tt.addptr %b, %c0 : !tt.ptr<$E>, i32\n");
    put_indices(t, 'm', 'x', c->m, c->m_form, c->twice_a);
    put_indices(t, 'n', 'y', c->n, c->n_form, c->twice_b);
    lilac_text_puts(t, !c->from_first    ? "%k_begin = arith.muli %c0, %c0 : i32\n"
                       : c->counts_tiles ? "%k_begin = arith.muli %first, %k_tile : i32\n"
                                         : "%k_begin = arith.muli %first, %c1 : i32\n");
    put(t, c,
        "%k_begins = tt.splat %k_begin : i32 -> tensor<$Kxi32>\n"
        "%k_first = arith.addi %kr, %k_begins : tensor<$Kxi32>\n");
    lilac_text_printf(t, "%%less = arith.constant %u : i32\n", c->k - 1);
}

static inline void put_case(lilac_text *t, const product_case *c) {
    const tile_form a = form_a(c), b = form_b(c);
    put_head(t, c);
    if (c->carried) {
        put_pointers(t, c, &a, "a_start");
        put_pointers(t, c, &b, "b_start");
    }
    const char *first = c->from_first ? "first" : "c0";
    put(t, c, "%up = arith.addi %K, %less : i32\n%tiles = arith.divsi %up, %k_tile : i32\n");
    put(t, c, "%double_K = arith.addi %K, %K : i32\n");
    lilac_text_printf(t, "%%double_tile = arith.constant %u : i32\n", 2 * c->k);
    lilac_text_printf(t, "%%sum%s = scf.for %%i = %%%s to %%%s step %%%s iter_args(%%acc = %%zero",
                      c->carried ? ":3" : "", first,
                      c->doubled        ? "double_K"
                      : c->counts_tiles ? "tiles"
                                        : "K",
                      c->doubled        ? "double_tile"
                      : c->counts_tiles ? "c1"
                                        : "k_tile");
    put(t, c,
        c->carried ? ", %a_now = %a_start, %b_now = %b_start) -> (tensor<$Mx$Nx$S>, "
                     "tensor<$Mx$Kx!tt.ptr<$E>>, tensor<$Kx$Nx!tt.ptr<$E>>) : i32 {\n"
                   : ") -> (tensor<$Mx$Nx$S>) : i32 {\n");
    lilac_text_puts(t, c->counts_tiles ? "%k0 = arith.muli %i, %k_tile : i32\n"
                                       : "%k0 = arith.muli %i, %c1 : i32\n");
    put(t, c,
        "%k0s = tt.splat %k0 : i32 -> tensor<$Kxi32>\n"
        "%k_now = arith.addi %kr, %k0s : tensor<$Kxi32>\n"
        "%Ks = tt.splat %K : i32 -> tensor<$Kxi32>\n"
        "%rest = arith.subi %K, %k0 : i32\n%rests = tt.splat %rest : i32 -> tensor<$Kxi32>\n");
    put(t, c,
        c->sum_mask ? "%k_below = arith.cmpi slt, %k_now, %Ks : tensor<$Kxi32>\n"
                    : "%k_below = arith.cmpi slt, %kr, %rests : tensor<$Kxi32>\n");
    if (!c->carried) {
        put_pointers(t, c, &a, "a_now");
        put_pointers(t, c, &b, "b_now");
    }
    const char *k_mask = c->k_form == MASKED ? "k_below" : NULL;
    put_load(t, c, &a, c->m_form == MASKED ? "m_below" : NULL, k_mask);
    put_load(t, c, &b, k_mask, c->n_form == MASKED ? "n_below" : NULL);
    if (c->scaled) {
        put_vector(t, c);
    }
    put(t, c,
        c->scaled ? "%d = tt.dot %a_sum, %b_tile, %acc" : "%d = tt.dot %a_tile, %b_tile, %acc");
    lilac_text_puts(t, c->scalar == LILAC_F32 ? ", inputPrecision = tf32" : "");
    put(t, c, " : tensor<$Mx$Kx$E> * tensor<$Kx$Nx$E> -> tensor<$Mx$Nx$S>\n");
    if (c->carried) {
        put_advance(t, c, &a, c->a_along_k);
        put_advance(t, c, &b, c->b_along_k);
    }
    put(t, c,
        c->carried ? "scf.yield %d, %a_next, %b_next : tensor<$Mx$Nx$S>, "
                     "tensor<$Mx$Kx!tt.ptr<$E>>, tensor<$Kx$Nx!tt.ptr<$E>>\n}"
                   : "scf.yield %d : tensor<$Mx$Nx$S>\n}");
    lilac_text_puts(t, c->asked ? " {tt.warp_specialize}\n" : "\n");
    put(t, c,
        "%cz = arith.muli %z, %zc : i32\n%c_base = tt.addptr %c, %cz : !tt.ptr<$S>, i32\n"
        "%c_r = tt.expand_dims %m {axis = 1 : i32} : tensor<$Mxi32> -> tensor<$Mx1xi32>\n"
        "%c_c = tt.expand_dims %n {axis = 0 : i32} : tensor<$Nxi32> -> tensor<1x$Nxi32>\n"
        "%c_s = tt.splat %sc : i32 -> tensor<$Mx1xi32>\n"
        "%c_f = arith.muli %c_r, %c_s : tensor<$Mx1xi32>\n"
        "%c_rb = tt.broadcast %c_f : tensor<$Mx1xi32> -> tensor<$Mx$Nxi32>\n"
        "%c_cb = tt.broadcast %c_c : tensor<1x$Nxi32> -> tensor<$Mx$Nxi32>\n"
        "%c_o = arith.addi %c_rb, %c_cb : tensor<$Mx$Nxi32>\n"
        "%c_p = tt.splat %c_base : !tt.ptr<$S> -> tensor<$Mx$Nx!tt.ptr<$S>>\n"
        "%c_q = tt.addptr %c_p, %c_o : tensor<$Mx$Nx!tt.ptr<$S>>, tensor<$Mx$Nxi32>\n"
        "%c_mr = tt.expand_dims %m_below {axis = 1 : i32} : tensor<$Mxi1> -> tensor<$Mx1xi1>\n"
        "%c_mc = tt.expand_dims %n_below {axis = 0 : i32} : tensor<$Nxi1> -> tensor<1x$Nxi1>\n"
        "%c_mrb = tt.broadcast %c_mr : tensor<$Mx1xi1> -> tensor<$Mx$Nxi1>\n"
        "%c_mcb = tt.broadcast %c_mc : tensor<1x$Nxi1> -> tensor<$Mx$Nxi1>\n"
        "%c_mask = arith.andi %c_mrb, %c_mcb : tensor<$Mx$Nxi1>\n");
    put(t, c,
        c->carried ? "tt.store %c_q, %sum#0, %c_mask : tensor<$Mx$Nx!tt.ptr<$S>>\n"
                   : "tt.store %c_q, %sum, %c_mask : tensor<$Mx$Nx!tt.ptr<$S>>\n");
    lilac_text_puts(t, "tt.return\n}\n}\n");
}

#endif
