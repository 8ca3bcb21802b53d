/* split_reductions: random loops that accumulate reductions give on the simulator what the interpreter
 * says that they mean: integers, bit operations and extrema exactly, sums and products of floats within
 * the error of any association. Where the accumulator has the reduction's operation and no other use
 * (but for a product with a factor before a sum is added), no instruction of the loop exchanges values
 * between threads. */
#include "support/random_programs.h"
#include "support/test.h"

enum { CASES = 150 };

typedef struct combiner {
    const char *name;
    lilac_scalar scalar;
} combiner;

/* The operations with a neutral element. */
static const combiner combiners[] = {
    {"arith.addf", LILAC_F32},    {"arith.mulf", LILAC_F32},     {"arith.maxnumf", LILAC_F32},
    {"arith.minnumf", LILAC_F32}, {"arith.maximumf", LILAC_F32}, {"arith.minimumf", LILAC_F32},
    {"arith.maxnumf", LILAC_F16}, {"arith.addi", LILAC_I32},     {"arith.muli", LILAC_I32},
    {"arith.andi", LILAC_I32},    {"arith.ori", LILAC_I32},      {"arith.xori", LILAC_I32},
    {"arith.maxsi", LILAC_I32},   {"arith.minsi", LILAC_I32},    {"arith.maxui", LILAC_I32},
    {"arith.minui", LILAC_I32},   {"arith.addi", LILAC_I64},
};

typedef struct loop_case {
    const combiner *of, *second;
    const combiner *update; /* different operations: the reduction stays in the loop */
    uint32_t rows, columns, axis, warps;
    int32_t iterations;
    bool known;    /* the trip count is a constant */
    bool masked;   /* some elements are not loaded */
    bool swapped;  /* the accumulator is the right operand */
    bool expanded; /* tt.expand_dims between the reduction and the accumulator */
    bool flat;     /* of one dimension: the accumulator is a scalar */
    bool twice;    /* `second` reduces the same elements */
    bool nested;   /* in a loop that carries the accumulator */
    bool used;     /* the loop uses the accumulator, before or after its update */
    bool constant; /* the initial value is a constant, and not loaded */
    bool scaled; /* the accumulator is multiplied before its update, by a number of each element */
} loop_case;

static bool chance(lilac_random *random, uint32_t of) {
    return lilac_random_below(random, of) == 0;
}

static loop_case random_case(lilac_random *random) {
    const uint32_t kinds = sizeof combiners / sizeof *combiners;
    loop_case c = {.of = &combiners[lilac_random_below(random, kinds)],
                   .rows = 1U << lilac_random_below(random, 7),
                   .columns = 1U << (1 + lilac_random_below(random, 8)),
                   .axis = (uint32_t)lilac_random_below(random, 2),
                   .warps = 1U << lilac_random_below(random, 4),
                   .iterations = (int32_t)lilac_random_below(random, 6),
                   .known = chance(random, 2),
                   .masked = chance(random, 2),
                   .swapped = chance(random, 2),
                   .expanded = chance(random, 4),
                   .flat = chance(random, 4),
                   .twice = chance(random, 4),
                   .nested = chance(random, 4),
                   .used = chance(random, 8),
                   .constant = chance(random, 2)};
    do {
        c.second = &combiners[lilac_random_below(random, kinds)];
    } while (c.second == c.of);
    c.twice = c.twice && c.second->scalar == c.of->scalar;
    c.update = c.of;
    if (chance(random, 8)) {
        c.update = &combiners[lilac_random_below(random, kinds)];
        c.update = c.update->scalar == c.of->scalar ? c.update : c.of;
    }
    c.scaled = chance(random, 5);
    if (c.scaled) {
        c.of = c.update = &combiners[0];
        c.twice = c.twice && c.second != c.of && c.second->scalar == c.of->scalar;
        c.expanded = false;
    }
    c.axis = c.flat ? 0 : c.axis;
    c.expanded = c.expanded && !c.flat;
    c.rows = c.flat ? 1 : c.rows;
    return c;
}

/* Types: E of the elements, T of the tensor, P of its pointers, N of its indices, R of the result of the
 * reduction, A of the accumulator. */
typedef struct types {
    char element[8], shape[24], tensor[48], result[48], accumulator[48];
} types;

static types types_of(const loop_case *c) {
    types t;
    const char *element = lilac_scalar_name(c->of->scalar);
    const uint32_t left = c->axis == 0 ? c->columns : c->rows;
    snprintf(t.element, sizeof t.element, "%s", element);
    if (c->flat) {
        snprintf(t.shape, sizeof t.shape, "%u", c->columns);
        snprintf(t.result, sizeof t.result, "%s", element);
    } else {
        snprintf(t.shape, sizeof t.shape, "%ux%u", c->rows, c->columns);
        snprintf(t.result, sizeof t.result, "tensor<%ux%s>", left, element);
    }
    snprintf(t.tensor, sizeof t.tensor, "tensor<%sx%s>", t.shape, element);
    snprintf(t.accumulator, sizeof t.accumulator, "%s", t.result);
    if (c->expanded) {
        snprintf(t.accumulator, sizeof t.accumulator,
                 c->axis == 0 ? "tensor<1x%ux%s>" : "tensor<%ux1x%s>", left, element);
    }
    return t;
}

static void put_reduce(lilac_text *text, const loop_case *c, const types *t, const char *name) {
    const bool first = strcmp(name, "0") == 0;
    lilac_text_printf(text,
                      "%%s%s = \"tt.reduce\"(%%v) <{axis = %u : i32}> ({\n^bb0(%%l: %s, %%r: %s):\n"
                      "%%c = %s %%l, %%r : %s\ntt.reduce.return %%c : %s\n}) : (%s) -> %s\n",
                      name, c->axis, t->element, t->element, (first ? c->of : c->second)->name,
                      t->element, t->element, t->tensor, t->result);
    if (c->expanded) {
        lilac_text_printf(text, "%%e%s = tt.expand_dims %%s%s {axis = %u : i32} : %s -> %s\n", name,
                          name, c->axis, t->result, t->accumulator);
    }
    char value[8], accumulator[8];
    snprintf(value, sizeof value, "%s%s", c->expanded ? "e" : "s", name);
    snprintf(accumulator, sizeof accumulator, "%s%s", first && c->scaled ? "d" : "a", name);
    if (first && c->scaled) {
        lilac_text_printf(text, "%%d0 = arith.mulf %%%s, %%%s : %s\n", c->swapped ? "factor" : "a0",
                          c->swapped ? "a0" : "factor", t->accumulator);
    }
    lilac_text_printf(text, "%%n%s = %s %%%s, %%%s : %s\n", name,
                      (first ? c->update : c->second)->name, c->swapped ? value : accumulator,
                      c->swapped ? accumulator : value, t->accumulator);
}

/* Products of other numbers would overflow in one association and not in another. */
static bool multiplies(const loop_case *c) {
    return strcmp(c->of->name, "arith.mulf") == 0 ||
           (c->twice && strcmp(c->second->name, "arith.mulf") == 0);
}

/* The index of each element, times a factor, plus a number of the iteration. */
static void put_load(lilac_text *text, const loop_case *c, const types *t) {
    lilac_text_printf(text,
                      "%%k1 = arith.muli %%k, %%size : i32\n"
                      "%%ks = tt.splat %%k1 : i32 -> tensor<%sxi32>\n"
                      "%%at = arith.addi %%ks, %%i : tensor<%sxi32>\n"
                      "%%p = tt.addptr %%xs, %%at : tensor<%sx!tt.ptr<%s>>, tensor<%sxi32>\n",
                      t->shape, t->shape, t->shape, t->element, t->shape);
    lilac_text_printf(text, "%%w = tt.load %%p%s : tensor<%sx!tt.ptr<%s>>\n",
                      c->masked ? ", %m, %other" : "", t->shape, t->element);
    if (lilac_scalar_is_float(c->of->scalar)) {
        lilac_text_printf(text,
                          "%%b = arith.cmpf olt, %%w, %%other : %s\n"
                          "%%v = arith.select %%b, %%%s, %%%s : tensor<%sxi1>, %s\n",
                          t->tensor, multiplies(c) ? "less" : "w", multiplies(c) ? "more" : "w",
                          t->shape, t->tensor);
    } else {
        lilac_text_printf(text, "%%v = arith.addi %%w, %%other : %s\n", t->tensor);
    }
}

static void put_loop(lilac_text *text, const loop_case *c, const types *t) {
    const char *a = t->accumulator, *more = c->twice ? ", " : "";
    if (c->nested) {
        lilac_text_printf(text,
                          "%%o0%s = scf.for %%j = %%zero to %%two step %%one "
                          "iter_args(%%x0 = %%init%s) -> (%s%s%s) : i32 {\n",
                          c->twice ? ", %o1" : "", c->twice ? ", %x1 = %init" : "", a, more,
                          c->twice ? a : "");
    }
    lilac_text_printf(
        text,
        "%%r0%s = scf.for %%k = %%zero to %%%s step %%one iter_args(%%a0 = %%%s%s%s) -> (%s%s%s) "
        ": i32 {\n",
        c->twice ? ", %r1" : "", c->known ? "known" : "n", c->nested ? "x0" : "init",
        c->twice ? ", %a1 = %" : "",
        !c->twice   ? ""
        : c->nested ? "x1"
                    : "init",
        a, more, c->twice ? a : "");
    put_load(text, c, t);
    put_reduce(text, c, t, "0");
    if (c->twice) {
        put_reduce(text, c, t, "1");
    }
    if (c->used) {
        lilac_text_printf(text,
                          "tt.print \"a\" {hex = false, isSigned = array<i32: 1>} : %%%s : %s\n",
                          c->swapped ? "a0" : "n0", a);
    }
    lilac_text_printf(text, "scf.yield %%n0%s : %s%s%s\n}\n", c->twice ? ", %n1" : "", a, more,
                      c->twice ? a : "");
    if (c->nested) {
        lilac_text_printf(text, "scf.yield %%r0%s : %s%s%s\n}\n", c->twice ? ", %r1" : "", a, more,
                          c->twice ? a : "");
    }
}

static void put_head(lilac_text *text, const loop_case *c, const types *t) {
    lilac_text_printf(text,
                      "module {\ntt.func public @k(%%x: !tt.ptr<%s> {tt.divisibility = 16 : i32}, "
                      "%%y: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%n: i32) {\n"
                      "%%zero = arith.constant 0 : i32\n%%one = arith.constant 1 : i32\n"
                      "%%two = arith.constant 2 : i32\n%%known = arith.constant %d : i32\n"
                      "%%size = arith.constant %u : i32\n"
                      "%%flat = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n",
                      t->element, t->element, c->iterations, c->rows * c->columns,
                      c->rows * c->columns, c->rows * c->columns);
    lilac_text_printf(text,
                      "%%i = tt.reshape %%flat : tensor<%uxi32> -> tensor<%sxi32>\n"
                      "%%limit = arith.constant dense<%u> : tensor<%sxi32>\n"
                      "%%other = arith.constant dense<%s> : %s\n"
                      "%%m = arith.cmpi slt, %%i, %%limit : tensor<%sxi32>\n"
                      "%%xs = tt.splat %%x : !tt.ptr<%s> -> tensor<%sx!tt.ptr<%s>>\n",
                      c->rows * c->columns, t->shape, c->rows * c->columns / 2 + 1, t->shape,
                      lilac_scalar_is_float(c->of->scalar) ? "1.0" : "1", t->tensor, t->shape,
                      t->element, t->shape, t->element);
    lilac_text_printf(text, "%%first = tt.load %%x : !tt.ptr<%s>\n", t->element);
    const bool scalar = strcmp(t->accumulator, t->element) == 0;
    const bool is_float = lilac_scalar_is_float(c->of->scalar);
    const char *number = is_float ? "-0.0" : "0";
    lilac_text_printf(text,
                      "%%less = arith.constant dense<%s> : %s\n"
                      "%%more = arith.constant dense<%s> : %s\n",
                      is_float ? "-0.99" : "1", t->tensor, is_float ? "1.01" : "1", t->tensor);
    if (scalar) {
        lilac_text_printf(text, "%%literal = arith.constant %s : %s\n", number, t->element);
    } else {
        lilac_text_printf(text,
                          "%%literal = arith.constant dense<%s> : %s\n"
                          "%%firsts = tt.splat %%first : %s -> %s\n",
                          number, t->accumulator, t->element, t->accumulator);
    }
}

/* A half or one for each element of the accumulator, from what is loaded. */
static void put_factor(lilac_text *text, const loop_case *c, const types *t) {
    const bool scalar = strcmp(t->accumulator, t->element) == 0;
    const uint32_t left = c->axis == 0 ? c->columns : c->rows;
    char bits[32] = "i1";
    if (!scalar) {
        snprintf(bits, sizeof bits, "tensor<%uxi1>", left);
        lilac_text_printf(
            text,
            "%%left = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
            "%%fs = tt.splat %%x : !tt.ptr<f32> -> tensor<%ux!tt.ptr<f32>>\n"
            "%%fp = tt.addptr %%fs, %%left : tensor<%ux!tt.ptr<f32>>, tensor<%uxi32>\n"
            "%%loaded = tt.load %%fp : tensor<%ux!tt.ptr<f32>>\n",
            left, left, left, left, left, left);
    }
    lilac_text_printf(text,
                      scalar
                          ? "%%half = arith.constant 0.5 : %s\n%%whole = arith.constant 1.0 : %s\n"
                          : "%%half = arith.constant dense<0.5> : %s\n"
                            "%%whole = arith.constant dense<1.0> : %s\n",
                      t->accumulator, t->accumulator);
    lilac_text_printf(text,
                      "%%small = arith.cmpf olt, %%%s, %%whole : %s\n"
                      "%%factor = arith.select %%small, %%half, %%whole : %s%s%s\n",
                      scalar ? "first" : "loaded", t->accumulator, scalar ? "" : bits,
                      scalar ? "" : ", ", t->accumulator);
}

static void put_replaced(lilac_text *text, const char *from, const char *name, const char *with) {
    const size_t length = strlen(name);
    for (const char *at = strstr(from, name); at != NULL; at = strstr(from, name)) {
        const char next = at[length];
        const bool whole = (next < 'a' || next > 'z') && (next < '0' || next > '9');
        lilac_text_put(text, from, (size_t)(at - from));
        lilac_text_puts(text, whole ? with : name);
        from = at + length;
    }
    lilac_text_puts(text, from);
}

static void put_case(lilac_text *text, const loop_case *c) {
    const types t = types_of(c);
    const bool scalar = strcmp(t.accumulator, t.element) == 0;
    lilac_text body = {0};
    put_head(text, c, &t);
    if (c->scaled) {
        put_factor(text, c, &t);
    }
    put_loop(&body, c, &t);
    put_replaced(text, lilac_text_get(&body), "%init",
                 c->constant ? "%literal"
                 : scalar    ? "%first"
                             : "%firsts");
    lilac_text_clear(&body);
    const char *result = c->nested ? "o" : "r";
    for (uint32_t i = 0; i < 1U + c->twice; i++) {
        if (scalar) {
            lilac_text_printf(text,
                              "%%q%u = tt.addptr %%y, %%%s : !tt.ptr<%s>, i32\n"
                              "tt.store %%q%u, %%%s%u : !tt.ptr<%s>\n",
                              i, i == 0 ? "zero" : "one", t.element, i, result, i, t.element);
            continue;
        }
        char shape[32];
        snprintf(shape, sizeof shape, "%.*s",
                 (int)(strrchr(t.accumulator, 'x') - t.accumulator - 7), t.accumulator + 7);
        const uint32_t count = c->axis == 0 ? c->columns : c->rows;
        lilac_text_printf(text,
                          "%%f%u = tt.make_range {end = %u : i32, start = %u : i32} : "
                          "tensor<%uxi32>\n%%g%u = tt.reshape %%f%u : tensor<%uxi32> -> "
                          "tensor<%sxi32>\n",
                          i, count * (i + 1), count * i, count, i, i, count, shape);
        lilac_text_printf(text,
                          "%%h%u = tt.splat %%y : !tt.ptr<%s> -> tensor<%sx!tt.ptr<%s>>\n"
                          "%%q%u = tt.addptr %%h%u, %%g%u : tensor<%sx!tt.ptr<%s>>, "
                          "tensor<%sxi32>\ntt.store %%q%u, %%%s%u : tensor<%sx!tt.ptr<%s>>\n",
                          i, t.element, shape, t.element, i, i, i, shape, t.element, shape, i,
                          result, i, shape, t.element);
    }
    lilac_text_puts(text, "tt.return\n}\n}\n");
}

/* ---- exchanges in loops ------------------------------------------------------------------- */

static uint32_t exchanges(const lilac_simt_body *body, bool in_loop) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *inst = body->first; inst != NULL; inst = inst->next) {
        const bool loop = inst->code == LILAC_SIMT_OP_WHILE || inst->code == LILAC_SIMT_OP_LOOP;
        count += in_loop &&
                 (inst->code == LILAC_SIMT_OP_SHUFFLE || inst->code == LILAC_SIMT_OP_BARRIER ||
                  inst->code == LILAC_SIMT_OP_LD_SHARED);
        for (uint32_t i = 0; i < inst->body_count; i++) {
            count += exchanges(inst->bodies[i], in_loop || loop);
        }
    }
    return count;
}

static bool has_exchanges(const char *text, uint32_t warps) {
    lilac_context *context = lilac_context_create();
    lilac_options options;
    lilac_compilation result;
    lilac_options_init(&options);
    options.target.num_warps = warps;
    const uint32_t source = lilac_source_add(context, "loop", text, strlen(text));
    if (!lilac_compile(&result, context, source, &options)) {
        fail_with_diagnostics(context, text);
    }
    const bool found = exchanges(result.simt->kernels->body, false) > 0;
    lilac_compilation_clear(&result);
    lilac_context_destroy(context);
    return found;
}

/* Where all elements of a thread fit in the registers that the pass may use, it has no reason not to
 * split. A loop around one with scaled accumulators begins each time with what these sum to. An accumulator
 * whose layout is not the reduction's is not split if it is scaled: few are. */
static bool is_split(const loop_case *c) {
    const uint32_t words =
        (1U + c->twice) * c->rows * c->columns * lilac_scalar_bits(c->of->scalar) / 32;
    return c->of == c->update && !c->used && !(c->scaled && c->nested) &&
           (!c->known || c->iterations > 1) && words <= 32 * 32 * c->warps;
}

static void random_loops(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 20261123);
    uint32_t same = 0, split = 0, kept = 0, of_factors = 0, missed = 0;
    for (uint32_t n = 0; n < scaled(CASES); n++) {
        const loop_case c = random_case(&random);
        lilac_text text = {0};
        put_case(&text, &c);
        program p;
        assert_true(
            program_of_text(&p, lilac_text_get(&text), text.length, c.warps, 6 * 256 * 256));
        p.parameters[1].is_output = true;
        p.parameters[2].bits = (uint64_t)c.iterations;
        p.data_seed = n;
        p.plain_data = chance(&random, 2);
        const program_comparison compared = program_check(&p, lilac_text_get(&text));
        if (compared.outcome != PROGRAM_SAME) {
            fputs(lilac_text_get(&text), stderr);
            fail_msg("case %u: %s", n, compared.why);
        }
        same++;
        const bool found = has_exchanges(lilac_text_get(&text), c.warps);
        of_factors += is_split(&c) && c.scaled;
        missed += is_split(&c) && c.scaled && found;
        if (is_split(&c) && !c.scaled && found) {
            fputs(lilac_text_get(&text), stderr);
            fail_msg("case %u: the loop exchanges values", n);
        }
        split += is_split(&c);
        kept += found;
        program_clear(&p);
        lilac_text_clear(&text);
    }
    print_message(
        "%u loops, %u split, %u with exchanges; %u with factors, %u of them with exchanges\n", same,
        split, kept, of_factors, missed);
    assert_true(kept > 0 && 10 * missed < of_factors);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
