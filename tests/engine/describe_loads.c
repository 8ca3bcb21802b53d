/* Random products of matrices, whose loads describe_loads makes loads through the launcher's tensor
 * maps: where maps can be made, the simulator computes what the interpreter says that the source means,
 * and accesses nothing outside of the tensors; elsewhere the launch is refused. The buffers end with the
 * tensors, and what is between their rows is NaN.
 *
 * LILAC_TEST_SCALE multiplies the number of programs. */
#include "support/interpreter.h"
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/engine.h>
#include <lilac/scalar.h>
#include <lilac/sim.h>
#include <lilac/tensor_map.h>
#include <lilac/tile_loops.h>

#include <math.h>

enum { CASES = 320, MOST_BATCHES = 2, MOST_BYTES = 1 << 19 };

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
    bool batches; /* the third coordinate of a program selects a matrix, by strides of 64 bits */
    bool aligned; /* the pitches are known multiples of 16 */
    bool asked;   /* to specialise warps: one warp starts the copies */
} product_case;

/* ---- programs -------------------------------------------------------------------------------- */

/* Appends a text in which $M, $N, $K and $E are the tile's sizes and the element type. */
static void put(lilac_text *t, const product_case *c, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            lilac_text_char(t, *text);
            continue;
        }
        text++;
        if (*text == 'E') {
            lilac_text_puts(t, lilac_scalar_name(c->scalar));
        } else {
            lilac_text_printf(t, "%u", *text == 'M' ? c->m : *text == 'N' ? c->n : c->k);
        }
    }
}

/* %m = pid · size + range, and %m_at, the row that is read. */
static void put_indices(lilac_text *t, char name, char axis, uint32_t size, bound_form form) {
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
    if (form == SELECTED) {
        lilac_text_printf(t,
                          "%%%c_at = arith.select %%%c_below, %%%c, %%%c_none : "
                          "tensor<%uxi1>, tensor<%uxi32>\n",
                          name, name, name, name, size, size);
        return;
    }
    lilac_text_printf(t,
                      "%%%c_less = arith.subi %%%c, %%c1 : i32\n"
                      "%%%c_last = tt.splat %%%c_less : i32 -> tensor<%uxi32>\n",
                      name, upper, name, name, size);
    lilac_text_printf(t, "%%%c_at = arith.%s %%%c, %%%c_%s : tensor<%uxi32>\n", name,
                      form == REMAINDER ? "remsi"
                      : form == CLAMPED ? "minsi"
                                        : "addi",
                      name, name,
                      form == REMAINDER ? "size"
                      : form == CLAMPED ? "last"
                                        : "none",
                      size);
}

/* The tile of matrix a or b, of the rows %row and the columns %column. */
typedef struct tile_form {
    char name;
    uint32_t rows, columns;
    const char *row, *column;
    bool along_rows; /* are columns contiguous? */
} tile_form;

/* %a_o: the offsets of the elements. */
static void put_offsets(lilac_text *t, const tile_form *f) {
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

static void put_pointers(lilac_text *t, const product_case *c, const tile_form *f,
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
static void put_load(lilac_text *t, const product_case *c, const tile_form *f, const char *row_mask,
                     const char *column_mask) {
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
static void put_advance(lilac_text *t, const product_case *c, const tile_form *f, bool along_k) {
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

static tile_form form_a(const product_case *c) {
    return (tile_form){'a', c->m, c->k, "m_at", c->carried ? "k_first" : "k_now", c->a_along_k};
}

static tile_form form_b(const product_case *c) {
    return (tile_form){'b', c->k, c->n, c->carried ? "k_first" : "k_now", "n_at", !c->b_along_k};
}

static void put_head(lilac_text *t, const product_case *c) {
    const char *known = c->aligned ? " {tt.divisibility = 16 : i32}" : "";
    put(t, c,
        "module {\ntt.func public @k(%a: !tt.ptr<$E> {tt.divisibility = 16 : i32}, "
        "%b: !tt.ptr<$E> {tt.divisibility = 16 : i32}, "
        "%c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32, %N: i32, %K: i32, ");
    lilac_text_printf(t, "%%sa: i32%s, %%sb: i32%s, ", known, known);
    put(t, c,
        "%sc: i32, %first: i32, %za: i64, %zb: i64, %zc: i32, %off: i32) {\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%k_tile = arith.constant $K : i32\n"
        "%a_zero = arith.constant dense<0.0> : tensor<$Mx$Kx$E>\n"
        "%b_zero = arith.constant dense<0.0> : tensor<$Kx$Nx$E>\n"
        "%zero = arith.constant dense<0.0> : tensor<$Mx$Nxf32>\n"
        "%all = arith.constant dense<true> : tensor<$Mx$Nxi1>\n"
        "%kr = tt.make_range {end = $K : i32, start = 0 : i32} : tensor<$Kxi32>\n"
        "%z = tt.get_program_id z : i32\n%z64 = arith.extsi %z : i32 to i64\n"
        "%a_off = tt.addptr %a, %off : !tt.ptr<$E>, i32\n");
    put(t, c,
        c->batches ? "%a_z = arith.muli %z64, %za : i64\n%b_z = arith.muli %z64, %zb : i64\n"
                     "%a_base = tt.addptr %a_off, %a_z : !tt.ptr<$E>, i64\n"
                     "%b_base = tt.addptr %b, %b_z : !tt.ptr<$E>, i64\n"
                   : "%a_base = tt.addptr %a_off, %c0 : !tt.ptr<$E>, i32\n"
                     "%b_base = tt.addptr %b, %c0 : !tt.ptr<$E>, i32\n");
    put_indices(t, 'm', 'x', c->m, c->m_form);
    put_indices(t, 'n', 'y', c->n, c->n_form);
    lilac_text_puts(t, !c->from_first    ? "%k_begin = arith.muli %c0, %c0 : i32\n"
                       : c->counts_tiles ? "%k_begin = arith.muli %first, %k_tile : i32\n"
                                         : "%k_begin = arith.muli %first, %c1 : i32\n");
    put(t, c,
        "%k_begins = tt.splat %k_begin : i32 -> tensor<$Kxi32>\n"
        "%k_first = arith.addi %kr, %k_begins : tensor<$Kxi32>\n");
    lilac_text_printf(t, "%%less = arith.constant %u : i32\n", c->k - 1);
}

static void put_case(lilac_text *t, const product_case *c) {
    const tile_form a = form_a(c), b = form_b(c);
    put_head(t, c);
    if (c->carried) {
        put_pointers(t, c, &a, "a_start");
        put_pointers(t, c, &b, "b_start");
    }
    const char *first = c->from_first ? "first" : "c0";
    put(t, c, "%up = arith.addi %K, %less : i32\n%tiles = arith.divsi %up, %k_tile : i32\n");
    lilac_text_printf(t, "%%sum%s = scf.for %%i = %%%s to %%%s step %%%s iter_args(%%acc = %%zero",
                      c->carried ? ":3" : "", first, c->counts_tiles ? "tiles" : "K",
                      c->counts_tiles ? "c1" : "k_tile");
    put(t, c,
        c->carried ? ", %a_now = %a_start, %b_now = %b_start) -> (tensor<$Mx$Nxf32>, "
                     "tensor<$Mx$Kx!tt.ptr<$E>>, tensor<$Kx$Nx!tt.ptr<$E>>) : i32 {\n"
                   : ") -> (tensor<$Mx$Nxf32>) : i32 {\n");
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
    put(t, c, "%d = tt.dot %a_tile, %b_tile, %acc");
    lilac_text_puts(t, c->scalar == LILAC_F32 ? ", inputPrecision = tf32" : "");
    put(t, c, " : tensor<$Mx$Kx$E> * tensor<$Kx$Nx$E> -> tensor<$Mx$Nxf32>\n");
    if (c->carried) {
        put_advance(t, c, &a, c->a_along_k);
        put_advance(t, c, &b, c->b_along_k);
    }
    put(t, c,
        c->carried ? "scf.yield %d, %a_next, %b_next : tensor<$Mx$Nxf32>, "
                     "tensor<$Mx$Kx!tt.ptr<$E>>, tensor<$Kx$Nx!tt.ptr<$E>>\n}"
                   : "scf.yield %d : tensor<$Mx$Nxf32>\n}");
    lilac_text_puts(t, c->asked ? " {tt.warp_specialize}\n" : "\n");
    put(t, c,
        "%cz = arith.muli %z, %zc : i32\n%c_base = tt.addptr %c, %cz : !tt.ptr<f32>, i32\n"
        "%c_r = tt.expand_dims %m {axis = 1 : i32} : tensor<$Mxi32> -> tensor<$Mx1xi32>\n"
        "%c_c = tt.expand_dims %n {axis = 0 : i32} : tensor<$Nxi32> -> tensor<1x$Nxi32>\n"
        "%c_s = tt.splat %sc : i32 -> tensor<$Mx1xi32>\n"
        "%c_f = arith.muli %c_r, %c_s : tensor<$Mx1xi32>\n"
        "%c_rb = tt.broadcast %c_f : tensor<$Mx1xi32> -> tensor<$Mx$Nxi32>\n"
        "%c_cb = tt.broadcast %c_c : tensor<1x$Nxi32> -> tensor<$Mx$Nxi32>\n"
        "%c_o = arith.addi %c_rb, %c_cb : tensor<$Mx$Nxi32>\n"
        "%c_p = tt.splat %c_base : !tt.ptr<f32> -> tensor<$Mx$Nx!tt.ptr<f32>>\n"
        "%c_q = tt.addptr %c_p, %c_o : tensor<$Mx$Nx!tt.ptr<f32>>, tensor<$Mx$Nxi32>\n"
        "%c_mr = tt.expand_dims %m_below {axis = 1 : i32} : tensor<$Mxi1> -> tensor<$Mx1xi1>\n"
        "%c_mc = tt.expand_dims %n_below {axis = 0 : i32} : tensor<$Nxi1> -> tensor<1x$Nxi1>\n"
        "%c_mrb = tt.broadcast %c_mr : tensor<$Mx1xi1> -> tensor<$Mx$Nxi1>\n"
        "%c_mcb = tt.broadcast %c_mc : tensor<1x$Nxi1> -> tensor<$Mx$Nxi1>\n"
        "%c_mask = arith.andi %c_mrb, %c_mcb : tensor<$Mx$Nxi1>\n");
    put(t, c,
        c->carried ? "tt.store %c_q, %sum#0, %c_mask : tensor<$Mx$Nx!tt.ptr<f32>>\n"
                   : "tt.store %c_q, %sum, %c_mask : tensor<$Mx$Nx!tt.ptr<f32>>\n");
    lilac_text_puts(t, "tt.return\n}\n}\n");
}

/* ---- compilation ------------------------------------------------------------------------------ */

/* A change of the module behind describe_loads. */
typedef void mutation(lilac_tile_module *module);

typedef struct compiled {
    lilac_context *context;
    lilac_compilation result;
    lilac_tile_module *source; /* as the interpreter runs it */
    lilac_launch_maps recipes;
    bool described, specialised;
} compiled;

static void compile_text(lilac_compilation *result, lilac_context *context, const product_case *c,
                         const lilac_text *text, const char *stop_after) {
    lilac_options options;
    lilac_options_init(&options);
    options.target = (lilac_target){.arch = lilac_arch_find("sm_90a"),
                                    .num_warps = c->warps,
                                    .num_ctas = 1,
                                    .num_stages = c->stages,
                                    .launch_maps = true};
    options.stop_after = stop_after;
    if (!lilac_compile(result, context,
                       lilac_source_add(context, "k.ttir", lilac_text_get(text), text->length),
                       &options)) {
        fputs(lilac_text_get(text), stderr);
        fail_with_diagnostics(context, "the program was refused");
    }
}

static void find_copy(void *data, lilac_tile_op *op) {
    *(bool *)data |= op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD;
}

static void find_partitions(void *data, lilac_tile_op *op) {
    *(bool *)data |= op->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE;
}

/* source_too: the mutation changes the source, too. */
static void compile(compiled *made, const product_case *c, mutation *mutate, bool source_too) {
    lilac_text text = {0};
    *made = (compiled){.context = lilac_context_create()};
    put_case(&text, c);
    made->source =
        lilac_tile_read(made->context, lilac_source_add(made->context, "k.ttir",
                                                        lilac_text_get(&text), text.length));
    if (made->source == NULL || !lilac_tile_verify(made->source, false)) {
        fputs(lilac_text_get(&text), stderr);
        fail_with_diagnostics(made->context, "the program was refused");
    }
    lilac_compilation front;
    compile_text(&front, made->context, c, &text, "describe_loads");
    lilac_tile_walk(front.tile->functions->body, find_copy, &made->described);
    if (mutate != NULL) {
        mutate(front.tile);
        if (source_too) {
            mutate(made->source);
        }
    }
    lilac_text_reset(&text);
    lilac_tile_print(&text, front.tile, false);
    lilac_compilation_clear(&front);
    compile_text(&made->result, made->context, c, &text, NULL);
    if (!lilac_launch_maps_get(&made->recipes, lilac_context_arena(made->context),
                               made->result.tile->functions)) {
        fail_with_diagnostics(made->context, "the recipes are malformed");
    }
    lilac_tile_walk(made->result.tile->functions->body, find_partitions, &made->specialised);
    lilac_text_clear(&text);
}

static void compiled_clear(compiled *made) {
    lilac_tile_module_destroy(made->source);
    lilac_compilation_clear(&made->result);
    lilac_context_destroy(made->context);
}

/* ---- launches ---------------------------------------------------------------------------------- */

enum { A, B, C, M, N, K, SA, SB, SC, FIRST, ZA, ZB, ZC, OFF, ARGUMENTS };

typedef struct sizes {
    int32_t m, n, k, pitch_a, pitch_b, first, offset, batches;
    int64_t za, zb;
} sizes;

typedef enum expectation { LAUNCHED, NO_MAP, NO_CONDITION } expectation;

static int32_t up(int32_t number, int32_t multiple) {
    return (number + multiple - 1) / multiple * multiple;
}

static uint32_t bytes_of(const product_case *c) {
    return lilac_scalar_bits(c->scalar) / 8;
}

/* 1, a tile and one element less or more, or some tiles. */
static int32_t random_size(lilac_random *random, uint32_t tile, bool whole) {
    const int32_t t = (int32_t)tile;
    const int32_t numbers[] = {1, t - 1, t, t + 1, 2 * t - 3, t / 2 + 1};
    return whole ? t * (int32_t)(1 + random_below(random, 2)) : numbers[random_below(random, 6)];
}

static sizes random_sizes(lilac_random *random, const product_case *c) {
    const int32_t vector = (int32_t)(16 / bytes_of(c));
    const int32_t multiple = c->aligned && vector < 16 ? 16 : vector;
    sizes s = {.m = random_size(random, c->m, c->m_form == UNBOUNDED),
               .n = random_size(random, c->n, c->n_form == UNBOUNDED),
               .k = random_size(random, c->k, c->k_form == UNBOUNDED) +
                    (int32_t)(c->k * random_below(random, 3)),
               .offset = vector * (int32_t)random_below(random, 3),
               .batches = c->batches ? 1 + (int32_t)random_below(random, MOST_BATCHES) : 1};
    s.pitch_a =
        up(c->a_along_k ? s.k : s.m, multiple) + multiple * (int32_t)random_below(random, 3);
    s.pitch_b =
        up(c->b_along_k ? s.k : s.n, multiple) + multiple * (int32_t)random_below(random, 3);
    s.za = (int64_t)s.pitch_a * (c->a_along_k ? s.m : s.k) + vector * random_below(random, 3);
    s.zb = (int64_t)s.pitch_b * (c->b_along_k ? s.n : s.k) + vector * random_below(random, 3);
    s.first = (int32_t)random_below(random, 3) * (int32_t)(c->counts_tiles ? 1 : c->k);
    return s;
}

/* Makes a launch one that has no maps, or not the right ones. */
static expectation spoil(sizes *s, const product_case *c, uint32_t kind) {
    switch (kind) {
    case 0:
        s->pitch_a += bytes_of(c) == 1 ? 8 : 1;
        return NO_MAP;
    case 1:
        s->offset++;
        return NO_MAP;
    case 2:
        s->m = c->m_form == UNBOUNDED ? s->m : 0;
        return c->m_form == UNBOUNDED ? LAUNCHED : NO_MAP;
    case 3:
        s->k = c->k_form == UNBOUNDED ? s->k : 0;
        return c->k_form == UNBOUNDED ? LAUNCHED : NO_MAP;
    case 4:
        s->zb += c->batches ? 1 : 0;
        return c->batches ? NO_MAP : LAUNCHED;
    case 5:
        s->first = c->from_first ? -1 : s->first;
        return c->from_first ? NO_CONDITION : LAUNCHED;
    default:
        s->n = c->n_form == UNBOUNDED ? s->n : -3;
        return c->n_form == UNBOUNDED ? LAUNCHED : NO_MAP;
    }
}

/* Small whole numbers, so that sums are exact; NaN between rows. */
static uint64_t element(const product_case *c, bool pad, uint32_t index) {
    const double value = pad ? NAN : (double)((index * 2654435761u >> 20) % 5) - 2;
    return lilac_scalar_encode(c->scalar, value, LILAC_ROUND_NEAREST_EVEN, true);
}

/* Fills a buffer of matrices up to its last element. The size in bytes. */
static uint64_t fill(uint8_t *bytes, const product_case *c, const sizes *s, bool is_a) {
    const int64_t pitch = is_a ? s->pitch_a : s->pitch_b, offset = is_a ? s->offset : 0;
    const int64_t batch = is_a ? s->za : s->zb;
    const bool along_k = is_a ? c->a_along_k : c->b_along_k;
    const int64_t size = is_a ? s->m : s->n, inner = along_k ? s->k : size;
    const int64_t outer = along_k ? size : s->k;
    const int64_t count = offset + (s->batches - 1) * batch + (outer - 1) * pitch + inner;
    assert_true(count * bytes_of(c) <= MOST_BYTES);
    for (int64_t i = 0; i < count; i++) {
        const int64_t in_batch = i < offset ? -1 : (i - offset) % batch;
        const bool pad = in_batch < 0 || in_batch % pitch >= inner || in_batch / pitch >= outer;
        const uint64_t bits = element(c, pad, (uint32_t)i * 2 + is_a);
        memcpy(bytes + i * bytes_of(c), &bits, bytes_of(c));
    }
    return count > 0 ? (uint64_t)count * bytes_of(c) : 16;
}

static void set_maps(lilac_tensor_map *maps, uint64_t *arguments, const compiled *made,
                     const product_case *c) {
    const lilac_tile_function *f = made->result.tile->functions;
    for (uint32_t i = 0; i < made->recipes.count; i++) {
        const uint32_t parameter = made->recipes.maps[i].parameter;
        lilac_box box;
        assert_true(lilac_engine_box(&box, f->parameters[parameter]->type->element));
        maps[i] = (lilac_tensor_map){.rank = box.rank,
                                     .element = c->scalar == LILAC_F16    ? LILAC_TENSOR_F16
                                                : c->scalar == LILAC_BF16 ? LILAC_TENSOR_BF16
                                                : c->scalar == LILAC_F32  ? LILAC_TENSOR_F32
                                                                          : LILAC_TENSOR_U8,
                                     .swizzle = lilac_tensor_swizzle_of(box.swizzle_bytes)};
        for (uint32_t d = 0; d < box.rank; d++) {
            maps[i].box[d] = box.sizes[box.rank - 1 - d];
            maps[i].element_strides[d] = 1;
        }
        arguments[parameter] = i;
    }
}

typedef struct outcome {
    bool made, ran, right; /* maps; without a finding; what the interpreter computes */
} outcome;

static outcome launch(const compiled *made, const product_case *c, const sizes *s,
                      expectation expected) {
    static uint8_t bytes[2][MOST_BYTES], got[MOST_BYTES], want[MOST_BYTES];
    const lilac_simt_kernel *kernel = made->result.simt->kernels;
    const uint32_t grid[3] = {s->m > 0 ? ((uint32_t)s->m + c->m - 1) / c->m : 1,
                              s->n > 0 ? ((uint32_t)s->n + c->n - 1) / c->n : 1,
                              (uint32_t)s->batches};
    const uint64_t pitch = grid[1] * c->n, plane = pitch * grid[0] * c->m;
    const uint64_t size_c = plane * grid[2] * sizeof(float);
    lilac_tensor_map maps[4] = {0};
    uint64_t arguments[ARGUMENTS + 4] = {0};
    assert_true(size_c <= MOST_BYTES && kernel->parameter_count <= ARGUMENTS + 4);
    memset(got, 0x5A, size_c);
    memset(want, 0x5A, size_c);
    lilac_sim_buffer places[3] = {
        {.name = "a", .bytes = bytes[0], .size = fill(bytes[0], c, s, true)},
        {.name = "b", .bytes = bytes[1], .size = fill(bytes[1], c, s, false)},
        {.name = "c", .bytes = got, .size = size_c}};
    lilac_sim_place(places, 3);
    for (uint32_t i = 0; i < 3; i++) {
        arguments[i] = places[i].address;
    }
    const int64_t numbers[] = {s->m,     s->n,  s->k,  s->pitch_a,     s->pitch_b, (int64_t)pitch,
                               s->first, s->za, s->zb, (int64_t)plane, s->offset};
    for (uint32_t i = M; i < ARGUMENTS; i++) {
        arguments[i] = i == ZA || i == ZB ? (uint64_t)numbers[i - M] : (uint32_t)numbers[i - M];
    }
    set_maps(maps, arguments, made, c);
    lilac_diagnostics_reset(made->context);
    outcome o = {.made = lilac_launch_maps_make(made->context, maps, &made->recipes, kernel, grid,
                                                arguments)};
    if (!o.made || expected != LAUNCHED) {
        const lilac_diagnostic *d = lilac_diagnostics(made->context);
        o.right = !o.made && strcmp(d->id, expected == NO_MAP         ? "tensor-map"
                                           : expected == NO_CONDITION ? "launch-condition"
                                                                      : "") == 0;
        return o;
    }
    const lilac_sim_launch launch = {.kernel = kernel,
                                     .grid = {grid[0], grid[1], grid[2]},
                                     .arguments = arguments,
                                     .argument_count = kernel->parameter_count,
                                     .tensor_maps = maps,
                                     .tensor_map_count = made->recipes.count,
                                     .buffers = places,
                                     .buffer_count = 3,
                                     .threads = 1,
                                     .stall_seconds = 2,
                                     .instruction_limit = 1 << 24};
    lilac_sim_counters counters = {0};
    o.ran = lilac_sim_run(made->context, &launch, &counters) && counters.races == 0 &&
            lilac_diagnostics(made->context) == NULL;
    interpreter_buffer buffers[3];
    for (uint32_t i = 0; i < 3; i++) {
        buffers[i] = (interpreter_buffer){.address = places[i].address,
                                          .size = places[i].size,
                                          .bytes = i == 2 ? want : places[i].bytes};
    }
    interpreter_run run = {.module = made->source,
                           .arguments = arguments,
                           .argument_count = ARGUMENTS,
                           .grid = {grid[0], grid[1], grid[2]},
                           .buffers = buffers,
                           .buffer_count = 3,
                           .fuel = 1ull << 32};
    const interpreter_status status = interpreter_execute(&run);
    if (status != INTERPRETER_DONE) {
        fail_msg("the interpreter: %s", interpreter_status_name(status));
    }
    const interpreter_comparison same = interpreter_compare(&buffers[2], got);
    o.right = o.ran && same.same && same.open == 0;
    for (uint32_t i = 0; i < 3; i++) {
        interpreter_buffer_clear(&buffers[i]);
    }
    return o;
}

/* ---- random programs --------------------------------------------------------------------------- */

static product_case random_case(lilac_random *random) {
    static const lilac_scalar scalars[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F8E4M3FN};
    static const uint32_t warps[] = {1, 2, 4, 4, 4, 8};
    product_case c = {.scalar = scalars[random_below(random, 4)],
                      .warps = warps[random_below(random, 6)],
                      .stages = 2 + random_below(random, 3),
                      .m = 32u << random_below(random, 2),
                      .n = 32u << random_below(random, 2),
                      .a_along_k = random_below(random, 2) == 0,
                      .b_along_k = random_below(random, 2) == 0,
                      .m_form = (bound_form)random_below(random, BOUND_FORMS),
                      .n_form = (bound_form)random_below(random, BOUND_FORMS),
                      .k_form = random_below(random, 3) == 0 ? UNBOUNDED : MASKED,
                      .carried = random_below(random, 2) == 0,
                      .counts_tiles = random_below(random, 2) == 0,
                      .sum_mask = random_below(random, 2) == 0,
                      .from_first = random_below(random, 3) == 0,
                      .batches = random_below(random, 3) == 0,
                      .aligned = random_below(random, 2) == 0};
    c.k = (c.scalar == LILAC_F8E4M3FN ? 32u : 16u) << random_below(random, 2);
    if (random_below(random, 6) == 0) {
        c.asked = true;
        c.warps = 4u << random_below(random, 2);
        c.m = 16 * c.warps;
        c.k = 64;
        c.stages = 3;
    }
    if (c.scalar == LILAC_F8E4M3FN && random_below(random, 4) != 0) {
        c.a_along_k = c.b_along_k = true;
    }
    return c;
}

/* Products of 8-bit elements read them along k. */
static bool is_described(const product_case *c) {
    return c->scalar != LILAC_F8E4M3FN || (c->a_along_k && c->b_along_k);
}

static void complain(const product_case *c, const compiled *made, const sizes *s, const char *why) {
    lilac_text text = {0};
    put_case(&text, c);
    fputs(lilac_text_get(&text), stderr);
    print_diagnostics(made->context);
    fail_msg("%s: %u warps, %u stages; m %d, n %d, k %d, pitches %d, %d, first %d, offset %d, %d "
             "batches",
             why, c->warps, c->stages, s->m, s->n, s->k, s->pitch_a, s->pitch_b, s->first,
             s->offset, s->batches);
}

static void random_products(void **state) {
    (void)state;
    lilac_random random;
    uint32_t described = 0, specialised = 0, launched = 0, refused = 0;
    lilac_random_seed(&random, 29);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        const product_case c = random_case(&random);
        compiled made;
        sizes s = random_sizes(&random, &c);
        compile(&made, &c, NULL, false);
        if (made.described != is_described(&c) || made.recipes.count != (made.described ? 2 : 0)) {
            complain(&c, &made, &s, made.described ? "described" : "not described");
        }
        described += made.described;
        specialised += made.specialised;
        expectation expected = LAUNCHED;
        if (!launch(&made, &c, &s, expected).right) {
            complain(&c, &made, &s, "wrong");
        }
        launched++;
        s = random_sizes(&random, &c);
        expected = made.described ? spoil(&s, &c, i % 7) : LAUNCHED;
        if (expected != LAUNCHED && !launch(&made, &c, &s, expected).right) {
            complain(&c, &made, &s, "not refused");
        }
        refused += expected != LAUNCHED;
        compiled_clear(&made);
    }
    assert_true(described >= scaled(CASES) * 3 / 4 && launched == scaled(CASES));
    assert_true(specialised >= scaled(CASES) / 40);
    assert_true(refused >= scaled(CASES) / 3);
}

/* ---- mutations --------------------------------------------------------------------------------- */

typedef struct search {
    lilac_tile_opcode code;
    const char *name; /* of its result; NULL: any */
    lilac_tile_op *found;
} search;

static void find_op(void *data, lilac_tile_op *op) {
    search *s = data;
    const lilac_name name = op->result_count > 0 ? op->results[0].name : NULL;
    if (op->code == s->code && (s->name == NULL || (name != NULL && strcmp(name, s->name) == 0))) {
        s->found = op;
    }
}

static lilac_tile_op *find(lilac_tile_module *module, lilac_tile_opcode code, const char *name) {
    search s = {.code = code, .name = name};
    lilac_tile_walk(module->functions->body, find_op, &s);
    assert_non_null(s.found);
    return s.found;
}

/* The first tile in all iterations. */
static void stay(lilac_tile_module *module, const char *name) {
    lilac_tile_op *load = find(module, LILAC_TILE_OP_TT_DESCRIPTOR_LOAD, name);
    const lilac_tile_op *loop = find(module, LILAC_TILE_OP_SCF_FOR, NULL);
    uint32_t changed = 0;
    for (uint32_t i = 1; i < load->operand_count; i++) {
        const lilac_tile_value *at = load->operands[i].value;
        if (at == lilac_tile_induction_variable(loop)) {
            lilac_tile_set_operand(load, i, lilac_tile_lower_bound(loop));
            changed++;
        }
    }
    assert_int_equal(changed, 1);
}

static void stay_in_a(lilac_tile_module *module) {
    stay(module, "a_tile");
}

static void stay_in_b(lilac_tile_module *module) {
    stay(module, "b_tile");
}

static void swap_coordinates(lilac_tile_module *module) {
    lilac_tile_op *load = find(module, LILAC_TILE_OP_TT_DESCRIPTOR_LOAD, "b_tile");
    lilac_tile_value *first = load->operands[1].value;
    lilac_tile_set_operand(load, 1, load->operands[2].value);
    lilac_tile_set_operand(load, 2, first);
}

static void drop_order(lilac_tile_module *module) {
    lilac_tile_op *order = find(module, LILAC_TILE_OP_TT_TRANS, NULL);
    lilac_tile_replace_uses(&order->results[0], order->operands[0].value);
    lilac_tile_remove(order);
}

/* Elements behind the matrices are stored. */
static void store_all(lilac_tile_module *module) {
    lilac_tile_set_operand(find(module, LILAC_TILE_OP_TT_STORE, NULL), 2,
                           &find(module, LILAC_TILE_OP_ARITH_CONSTANT, "all")->results[0]);
}

enum { TILE = 32 };

static const product_case mutated = {.scalar = LILAC_F16,
                                     .m = TILE,
                                     .n = TILE,
                                     .k = TILE,
                                     .warps = 4,
                                     .stages = 3,
                                     .m_form = REMAINDER,
                                     .n_form = CLAMPED,
                                     .k_form = MASKED,
                                     .carried = true};
static const sizes mutated_sizes = {
    .m = 70, .n = 73, .k = 100, .pitch_a = 80, .pitch_b = 80, .batches = 1, .za = 8000, .zb = 8000};

static void mutated_tiles(void **state) {
    (void)state;
    static const struct {
        const char *name;
        mutation *mutate;
        bool source_too;
    } mutations[] = {
        {"stay_in_a", stay_in_a, false},   {"stay_in_b", stay_in_b, false},
        {"swap", swap_coordinates, false}, {"drop_order", drop_order, false},
        {"store_all", store_all, true},
    };
    for (uint32_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        compiled made;
        compile(&made, &mutated, mutations[i].mutate, mutations[i].source_too);
        const outcome o = launch(&made, &mutated, &mutated_sizes, LAUNCHED);
        if (!o.made || o.right) {
            fail_msg("%s: %s", mutations[i].name, o.made ? "not found" : "refused");
        }
        compiled_clear(&made);
    }
}

/* Each number of each recipe: a tile more or less, or none. */
static void mutated_recipes(void **state) {
    (void)state;
    const product_case *c = &mutated;
    compiled made;
    compile(&made, c, NULL, false);
    assert_int_equal(made.recipes.count, 2);
    assert_true(launch(&made, c, &mutated_sizes, LAUNCHED).right);
    lilac_launch_map maps[2];
    const lilac_launch_map *recipes = made.recipes.maps;
    made.recipes.maps = maps;
    for (uint32_t n = 0; n < 2 * 4 * 3; n++) {
        memcpy(maps, recipes, sizeof maps);
        lilac_launch_map *map = &maps[n % 2];
        const uint32_t field = n / 2 % 4, change = n / 8;
        lilac_launch_sum *sum = field < 2    ? &map->sizes[field]
                                : field == 2 ? &map->strides[0]
                                             : &map->offset;
        if (change == 2 && field >= 2) {
            continue;
        }
        if (change == 2) { /* no bound */
            *sum = (lilac_launch_sum){.count = 1, .terms = {{.factor = INT64_C(1) << 31}}};
        } else {
            sum->terms[sum->count++] = (lilac_launch_term){.factor = change == 0 ? TILE : -TILE};
        }
        const outcome o = launch(&made, c, &mutated_sizes, LAUNCHED);
        if (!o.made || o.right) {
            fail_msg("map %u, field %u, change %u: %s", n % 2, field, change,
                     o.made ? "not found" : "refused");
        }
    }
    made.recipes.maps = recipes;
    compiled_clear(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products),
        cmocka_unit_test(mutated_tiles),
        cmocka_unit_test(mutated_recipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
