/* Random small tile programs and an interpreter that runs them, for laws about passes on tile IR.
 *
 * Programs have ranges, splats of parameters with promised divisibility, integer arithmetic of
 * several widths, comparisons, selects, shapes, pointers, loops, branches and assertions. The interpreter
 * shares nothing with the library but the IR. A value that comes of a 32 or 64-bit sum, product or
 * left shift that overflows, or of anything undefined, is poisoned, and so is all that is computed
 * of it.
 */
#ifndef LILAC_TESTS_TILE_PROGRAMS_H
#define LILAC_TESTS_TILE_PROGRAMS_H

#include <lilac/engine.h>

#include "support/test.h"

/* ---- random programs -------------------------------------------------------------------- */

enum { SCALAR, V4, V16, V64, C4x1, R1x16, M4x16, T16x4, SHAPES };
enum { I1, I8, I32, I64, P16, P32, PI, F32, ELEMENTS };

static const char *const shapes[SHAPES] = {"",     "4x",    "16x",   "64x",
                                           "4x1x", "1x16x", "4x16x", "16x4x"};
static const char *const elements[ELEMENTS] = {
    "i1", "i8", "i32", "i64", "!tt.ptr<f16>", "!tt.ptr<f32>", "!tt.ptr<i32>", "f32"};

#define POOL 48

typedef struct generator {
    lilac_random random;
    lilac_text text;
    int next;
    int count[SHAPES][ELEMENTS];
    int pool[SHAPES][ELEMENTS][POOL];
    char looks[4096]; /* by name: what a value probably is */
} generator;

/* Random operands rarely combine as they do in kernels. In half of the cases one operand is a
 * range and the other one is uniform. */
enum { ANY, RUN, UNIFORM };

static inline int below(generator *g, int bound) {
    return (int)lilac_random_below(&g->random, (uint64_t)bound);
}

static inline void put_type(generator *g, int shape, int element) {
    if (shape == SCALAR) {
        lilac_text_puts(&g->text, elements[element]);
    } else {
        lilac_text_printf(&g->text, "tensor<%s%s>", shapes[shape], elements[element]);
    }
}

static inline void add(generator *g, int shape, int element, int name) {
    if (g->count[shape][element] < POOL) {
        g->pool[shape][element][g->count[shape][element]++] = name;
    }
}

/* Later values more often, so that programs get deep. */
static inline int pick(generator *g, int shape, int element) {
    int count = g->count[shape][element];
    if (count == 0) {
        return -1;
    }
    int a = below(g, count), b = below(g, count);
    return g->pool[shape][element][a > b ? a : b];
}

static inline int pick_like(generator *g, int shape, int element, int looks) {
    for (int attempt = 0; attempt < 6; attempt++) {
        int name = pick(g, shape, element);
        if (name >= 0 && g->looks[name] == looks) {
            return name;
        }
    }
    return pick(g, shape, element);
}

static inline void pick_pair(generator *g, int shape, int element, int pair[2]) {
    pair[0] = pick(g, shape, element);
    pair[1] = pick(g, shape, element);
    if (below(g, 3) == 0) {
        return;
    }
    int side = below(g, 4) == 0;
    pair[side] = pick_like(g, shape, element, RUN);
    pair[!side] = pick_like(g, shape, element, UNIFORM);
}

static inline void look(generator *g, int name, int looks) {
    g->looks[name] = (char)looks;
}

/* The end of an operation: its result's type; the result is known. */
static inline void end(generator *g, int shape, int element, int looks) {
    put_type(g, shape, element);
    look(g, g->next, looks);
    add(g, shape, element, g->next++);
}

/* Few shapes most of the time, so that values of one shape meet. */
static inline int some_shape(generator *g) {
    static const int usual[] = {V16, V16, V16, V64, M4x16, M4x16};
    return below(g, 3) ? usual[below(g, 6)] : below(g, SHAPES);
}

static inline int pick_shape(generator *g, int element) {
    for (int attempt = 0; attempt < 10; attempt++) {
        int shape = some_shape(g);
        if (g->count[shape][element] > 0) {
            return shape;
        }
    }
    return -1;
}

static const int64_t numbers[] = {0,  1,   2,  3,  4,  5,  7,  8,  12, 15,  16,  24,  31,  32,  48,
                                  64, 100, -1, -2, -4, -7, -8, -9, 63, -16, -32, 127, 128, 1024};

static inline void gen_constant(generator *g) {
    static const int kinds[] = {I8, I32, I32, I64};
    int shape = some_shape(g), element = kinds[below(g, 4)];
    int64_t value = numbers[below(g, (int)(sizeof numbers / sizeof *numbers))];
    if (element == I8) {
        value = (int8_t)value;
    }
    lilac_text_printf(&g->text, "%%v%d = arith.constant ", g->next);
    if (shape == SCALAR) {
        lilac_text_printf(&g->text, "%lld : ", (long long)value);
    } else {
        lilac_text_printf(&g->text, "dense<%lld> : ", (long long)value);
    }
    end(g, shape, element, UNIFORM);
}

static inline void gen_range(generator *g) {
    static const int starts[] = {0, 0, 0, 16, 4, 8, 1, 3, 48};
    int shape = below(g, 2) ? V16 : 1 + below(g, 3), start = starts[below(g, 9)];
    int size = shape == V4 ? 4 : (shape == V16 ? 16 : 64);
    lilac_text_printf(&g->text,
                      "%%v%d = tt.make_range {end = %d : i32, start = %d : i32} : ", g->next,
                      start + size, start);
    end(g, shape, I32, RUN);
}

static inline bool gen_splat(generator *g) {
    static const int kinds[] = {I32, I32, I32, I32, I1, I8, I64, P16, P32};
    int element = kinds[below(g, 9)], shape = some_shape(g), from = pick(g, SCALAR, element);
    if (from < 0 || shape == SCALAR) {
        return false;
    }
    lilac_text_printf(&g->text, "%%v%d = tt.splat %%v%d : %s -> ", g->next, from,
                      elements[element]);
    end(g, shape, element, UNIFORM);
    return true;
}

static inline bool gen_binary(generator *g) {
    static const char *const ops[] = {
        "addi",  "addi",  "addi", "subi",      "muli",       "muli",  "shli",  "divsi", "divui",
        "remsi", "remui", "andi", "ori",       "xori",       "shrsi", "shrui", "minsi", "minui",
        "maxsi", "maxui", "andi", "ceildivsi", "floordivsi", "addi",  "remsi", "divsi"};
    static const int kinds[] = {I8, I32, I32, I32, I64};
    int element = kinds[below(g, 5)], shape = pick_shape(g, element);
    if (shape < 0) {
        return false;
    }
    int op = below(g, (int)(sizeof ops / sizeof *ops)), pair[2];
    pick_pair(g, shape, element, pair);
    lilac_text_printf(&g->text, "%%v%d = arith.%s %%v%d, %%v%d : ", g->next, ops[op], pair[0],
                      pair[1]);
    int sum = g->looks[pair[0]] == RUN ? RUN : g->looks[pair[1]];
    end(g, shape, element, strcmp(ops[op], "addi") == 0 ? sum : ANY);
    return true;
}

static inline bool gen_compare(generator *g) {
    static const char *const predicates[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                             "sge", "ult", "ule", "ugt", "uge"};
    int element = below(g, 2) ? I32 : I8 + below(g, 3), shape = pick_shape(g, element);
    if (shape < 0) {
        return false;
    }
    int pair[2];
    pick_pair(g, shape, element, pair);
    lilac_text_printf(&g->text, "%%v%d = arith.cmpi %s, %%v%d, %%v%d : ", g->next,
                      predicates[below(g, 10)], pair[0], pair[1]);
    put_type(g, shape, element);
    add(g, shape, I1, g->next++);
    return true;
}

static inline bool gen_select(generator *g) {
    int element = below(g, ELEMENTS), shape = pick_shape(g, element);
    if (shape < 0) {
        return false;
    }
    bool scalar = shape == SCALAR || below(g, 3) == 0;
    int which = pick(g, scalar ? SCALAR : shape, I1);
    if (which < 0) {
        return false;
    }
    int no = pick(g, shape, element), yes = pick(g, shape, element);
    lilac_text_printf(&g->text, "%%v%d = arith.select %%v%d, %%v%d, %%v%d : ", g->next, which, yes,
                      no);
    if (!scalar) {
        put_type(g, shape, I1);
        lilac_text_puts(&g->text, ", ");
    }
    end(g, shape, element, ANY);
    return true;
}

static inline bool gen_cast(generator *g) {
    static const int pairs[][2] = {{I1, I8},   {I1, I32}, {I8, I32},  {I8, I64},
                                   {I32, I64}, {I32, I8}, {I64, I32}, {I64, I8}};
    const int *pair = pairs[below(g, 8)];
    int shape = pick_shape(g, pair[0]);
    if (shape < 0) {
        return false;
    }
    const char *op = pair[1] < pair[0] ? "trunci" : (below(g, 2) ? "extsi" : "extui");
    int from = pick(g, shape, pair[0]);
    lilac_text_printf(&g->text, "%%v%d = arith.%s %%v%d : ", g->next, op, from);
    put_type(g, shape, pair[0]);
    lilac_text_puts(&g->text, " to ");
    end(g, shape, pair[1], g->looks[from]);
    return true;
}

static inline bool gen_shape(generator *g) {
    static const struct {
        int from, to;
        const char *op, *attribute;
    } moves[] = {{V4, C4x1, "expand_dims", " {axis = 1 : i32}"},
                 {V16, R1x16, "expand_dims", " {axis = 0 : i32}"},
                 {C4x1, M4x16, "broadcast", ""},
                 {R1x16, M4x16, "broadcast", ""},
                 {M4x16, T16x4, "trans", " {order = array<i32: 1, 0>}"},
                 {M4x16, V64, "reshape", ""},
                 {V64, M4x16, "reshape", ""},
                 {V64, T16x4, "reshape", ""},
                 {R1x16, V16, "reshape", ""}};
    int m = below(g, 9), element = below(g, ELEMENTS);
    int from = pick(g, moves[m].from, element);
    if (from < 0) {
        return false;
    }
    lilac_text_printf(&g->text, "%%v%d = tt.%s %%v%d%s : ", g->next, moves[m].op, from,
                      moves[m].attribute);
    put_type(g, moves[m].from, element);
    lilac_text_puts(&g->text, " -> ");
    end(g, moves[m].to, element, g->looks[from]);
    return true;
}

static inline bool gen_pointer(generator *g) {
    int element = P16 + below(g, 3), shape = pick_shape(g, element);
    if (shape < 0) {
        return false;
    }
    int offset = below(g, 3) ? I32 : I64, by = pick(g, shape, offset);
    if (by < 0) {
        return false;
    }
    lilac_text_printf(&g->text, "%%v%d = tt.addptr %%v%d, %%v%d : ", g->next,
                      pick(g, shape, element), by);
    put_type(g, shape, element);
    lilac_text_puts(&g->text, ", ");
    put_type(g, shape, offset);
    add(g, shape, element, g->next++);
    return true;
}

/* Loads of integers and floats, with a mask and a replacement or without. */
static inline bool gen_load(generator *g) {
    int from = below(g, 3) ? PI : P32, to = from == PI ? I32 : F32, shape = pick_shape(g, from);
    if (shape < 0) {
        return false;
    }
    int pointer = pick(g, shape, from), mask = pick(g, shape, I1), other = pick(g, shape, to);
    lilac_text_printf(&g->text, "%%v%d = tt.load %%v%d", g->next, pointer);
    if (mask >= 0 && below(g, 2)) {
        lilac_text_printf(&g->text, ", %%v%d", mask);
        if (other >= 0 && below(g, 2)) {
            lilac_text_printf(&g->text, ", %%v%d", other);
        }
    }
    if (below(g, 8) == 0) {
        lilac_text_puts(&g->text, " {isVolatile = true}");
    }
    lilac_text_puts(&g->text, " : ");
    put_type(g, shape, from);
    look(g, g->next, ANY);
    add(g, shape, to, g->next++);
    return true;
}

/* Floats: conversions, sums, comparisons. */
static inline bool gen_float(generator *g) {
    static const struct {
        const char *op;
        int from, to, operands;
    } ops[] = {{"sitofp", I32, F32, 1},
               {"sitofp", I32, F32, 1},
               {"fptosi", F32, I32, 1},
               {"addf", F32, F32, 2},
               {"cmpf olt,", F32, I1, 2}};
    int o = below(g, 5), shape = pick_shape(g, ops[o].from);
    if (shape < 0) {
        return false;
    }
    lilac_text_printf(&g->text, "%%v%d = arith.%s %%v%d", g->next, ops[o].op,
                      pick(g, shape, ops[o].from));
    if (ops[o].operands == 2) {
        lilac_text_printf(&g->text, ", %%v%d", pick(g, shape, ops[o].from));
    }
    lilac_text_puts(&g->text, " : ");
    put_type(g, shape, ops[o].from);
    if (ops[o].operands == 1) {
        lilac_text_puts(&g->text, " to ");
        put_type(g, shape, ops[o].to);
    }
    look(g, g->next, ANY);
    add(g, shape, ops[o].to, g->next++);
    return true;
}

/* What kernels do: (start + range) OP size, all of one shape. */
static inline bool gen_idiom(generator *g) {
    static const char *const ops[] = {"remsi", "divsi", "remui", "divui",     "floordivsi",
                                      "andi",  "ori",   "xori",  "ceildivsi", "minsi"};
    int start = pick(g, SCALAR, I32), size = pick(g, SCALAR, I32), name = g->next;
    static const char *const type = "tensor<16xi32>";
    if (start < 0) {
        return false;
    }
    lilac_text_printf(&g->text, "%%v%d = tt.splat %%v%d : i32 -> %s\n", name, start, type);
    lilac_text_printf(&g->text, "%%v%d = tt.splat %%v%d : i32 -> %s\n", name + 1, size, type);
    lilac_text_printf(&g->text, "%%v%d = tt.make_range {end = 16 : i32, start = 0 : i32} : %s\n",
                      name + 2, type);
    lilac_text_printf(&g->text, "%%v%d = arith.addi %%v%d, %%v%d : %s\n", name + 3, name, name + 2,
                      type);
    lilac_text_printf(&g->text, "%%v%d = arith.%s %%v%d, %%v%d : %s", name + 4, ops[below(g, 10)],
                      name + 3, name + 1, type);
    look(g, name + 1, UNIFORM);
    look(g, name + 3, RUN);
    for (int i = 0; i < 5; i++) {
        add(g, V16, I32, g->next++);
    }
    return true;
}

static inline void gen_block(generator *g, int length, int depth);

static inline void gen_yield(generator *g, int shape, int element) {
    lilac_text_printf(&g->text, "scf.yield %%v%d : ", pick(g, shape, element));
    put_type(g, shape, element);
    lilac_text_puts(&g->text, "\n");
}

static inline bool gen_loop(generator *g, int depth) {
    int element = I32 + below(g, 6), shape = pick_shape(g, element);
    int step = pick(g, SCALAR, I32);
    if (shape < 0 || step < 0) {
        return false;
    }
    int result = g->next++, counter = g->next++, carried = g->next++;
    int first = pick(g, shape, element), high = pick(g, SCALAR, I32), low = pick(g, SCALAR, I32);
    lilac_text_printf(
        &g->text, "%%v%d = scf.for %%v%d = %%v%d to %%v%d step %%v%d iter_args(%%v%d = %%v%d) -> (",
        result, counter, low, high, step, carried, first);
    put_type(g, shape, element);
    lilac_text_puts(&g->text, ") : i32 {\n");
    int count[SHAPES][ELEMENTS];
    memcpy(count, g->count, sizeof count);
    add(g, SCALAR, I32, counter);
    add(g, shape, element, carried);
    gen_block(g, 1 + below(g, 8), depth + 1);
    gen_yield(g, shape, element);
    memcpy(g->count, count, sizeof count);
    lilac_text_puts(&g->text, "}");
    add(g, shape, element, result);
    return true;
}

/* A comparison of scalars of 32 bits, one of them a certain value. */
static inline int gen_condition(generator *g, int value) {
    static const char *const predicates[] = {"slt", "sle", "sgt", "sge", "eq", "ne"};
    const int other = pick(g, SCALAR, I32), first = below(g, 2) ? value : other;
    lilac_text_printf(&g->text, "%%v%d = arith.cmpi %s, %%v%d, %%v%d : i32\n", g->next,
                      predicates[below(g, 6)], first, first == value ? other : value);
    int name = g->next++;
    if (below(g, 3) == 0) {
        static const char *const joins[] = {"andi", "ori"};
        const int more = pick(g, SCALAR, I1);
        if (more >= 0) {
            lilac_text_printf(&g->text, "%%v%d = arith.%s %%v%d, %%v%d : i1\n", g->next,
                              joins[below(g, 2)], name, more);
            name = g->next++;
        }
    }
    return name;
}

/* What the rest of the block may rely on. */
static inline bool gen_assertion(generator *g) {
    const int value = pick(g, SCALAR, I32);
    if (value < 0) {
        return false;
    }
    const int which = gen_condition(g, value);
    lilac_text_printf(&g->text, "cf.assert %%v%d, \"\"", which);
    return true;
}

/* A number that is carried while a condition holds, and another value. */
static inline bool gen_while(generator *g, int depth) {
    const int element = I32 + below(g, 6), shape = pick_shape(g, element);
    const int first = pick(g, SCALAR, I32);
    if (shape < 0 || first < 0) {
        return false;
    }
    const int result = g->next, before = g->next + 2, after = g->next + 4;
    g->next += 6;
    lilac_text_printf(&g->text, "%%v%d, %%v%d = scf.while (%%v%d = %%v%d, %%v%d = %%v%d) : (i32, ",
                      result, result + 1, before, first, before + 1, pick(g, shape, element));
    put_type(g, shape, element);
    lilac_text_puts(&g->text, ") -> (i32, ");
    put_type(g, shape, element);
    lilac_text_puts(&g->text, ") {\n");
    int count[SHAPES][ELEMENTS];
    memcpy(count, g->count, sizeof count);
    add(g, SCALAR, I32, before);
    add(g, shape, element, before + 1);
    gen_block(g, below(g, 3), depth + 1);
    const int which = gen_condition(g, before);
    lilac_text_printf(&g->text, "scf.condition(%%v%d) %%v%d, %%v%d : i32, ", which,
                      below(g, 4) ? before : pick(g, SCALAR, I32), before + 1);
    put_type(g, shape, element);
    memcpy(g->count, count, sizeof count);
    lilac_text_printf(&g->text, "\n} do {\n^bb0(%%v%d: i32, %%v%d: ", after, after + 1);
    put_type(g, shape, element);
    lilac_text_puts(&g->text, "):\n");
    add(g, SCALAR, I32, after);
    add(g, shape, element, after + 1);
    gen_block(g, 1 + below(g, 6), depth + 1);
    lilac_text_printf(&g->text, "%%v%d = arith.%s %%v%d, %%v%d : i32\n", g->next,
                      below(g, 3) ? "addi" : "subi", after, pick(g, SCALAR, I32));
    lilac_text_printf(&g->text, "scf.yield %%v%d, %%v%d : i32, ", g->next++,
                      pick(g, shape, element));
    put_type(g, shape, element);
    lilac_text_puts(&g->text, "\n}");
    memcpy(g->count, count, sizeof count);
    add(g, SCALAR, I32, result);
    add(g, shape, element, result + 1);
    return true;
}

static inline bool gen_if(generator *g, int depth) {
    int element = below(g, ELEMENTS), shape = pick_shape(g, element), which = pick(g, SCALAR, I1);
    if (shape < 0 || which < 0) {
        return false;
    }
    int result = g->next++;
    lilac_text_printf(&g->text, "%%v%d = scf.if %%v%d -> (", result, which);
    put_type(g, shape, element);
    lilac_text_puts(&g->text, ") {\n");
    int count[SHAPES][ELEMENTS];
    for (int side = 0; side < 2; side++) {
        memcpy(count, g->count, sizeof count);
        gen_block(g, below(g, 4), depth + 1);
        gen_yield(g, shape, element);
        memcpy(g->count, count, sizeof count);
        lilac_text_puts(&g->text, side == 0 ? "} else {\n" : "}");
    }
    add(g, shape, element, result);
    return true;
}

static inline void gen_block(generator *g, int length, int depth) {
    for (int i = 0; i < length;) {
        bool done = true;
        int kind = below(g, 30);
        if (kind == 0) {
            gen_constant(g);
        } else if (kind == 1) {
            gen_range(g);
        } else if (kind <= 3) {
            done = gen_splat(g);
        } else if (kind <= 11) {
            done = gen_binary(g);
        } else if (kind <= 13) {
            done = gen_compare(g);
        } else if (kind == 14) {
            done = gen_select(g);
        } else if (kind == 15) {
            done = gen_cast(g);
        } else if (kind <= 17) {
            done = gen_shape(g);
        } else if (kind <= 19) {
            done = gen_pointer(g);
        } else if (kind == 20) {
            done = gen_idiom(g);
        } else if (kind == 21) {
            done = depth < 2 && gen_loop(g, depth);
        } else if (kind <= 24) {
            done = gen_load(g);
        } else if (kind == 25) {
            done = gen_float(g);
        } else if (kind <= 27) {
            done = depth < 2 && gen_if(g, depth);
        } else if (kind == 28) {
            done = below(g, 3) == 0 && gen_assertion(g);
        } else {
            done = depth < 2 && gen_while(g, depth);
        }
        if (done) {
            lilac_text_puts(&g->text, "\n");
        }
        i += done;
    }
}

/* The parameters: pointers and integers with what is promised of them. */
static const struct parameter {
    int element;
    int64_t divisibility;
} parameters[] = {{P16, 16}, {P32, 16}, {P32, 4}, {I32, 16}, {I32, 1}, {I32, 8}, {I64, 4}, {PI, 4}};
#define PARAMETERS (sizeof parameters / sizeof *parameters)

/* Prints the last values of each type, so that they are not dead. */
static inline void gen_prints(generator *g) {
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int element = 0; element < P16; element++) {
            int count = g->count[shape][element];
            for (int i = count > 3 ? count - 3 : 0; i < count; i++) {
                lilac_text_printf(
                    &g->text, "tt.print \"v\" {hex = false, isSigned = array<i32: 1>} : %%v%d : ",
                    g->pool[shape][element][i]);
                put_type(g, shape, element);
                lilac_text_puts(&g->text, "\n");
            }
        }
    }
}

static inline void generate(generator *g, uint64_t seed, bool prints) {
    memset(g, 0, sizeof *g);
    lilac_random_seed(&g->random, seed);
    lilac_text_init(&g->text);
    lilac_text_puts(&g->text, "module {\ntt.func public @k(");
    for (size_t i = 0; i < PARAMETERS; i++) {
        lilac_text_printf(&g->text, "%s%%v%d: %s {tt.divisibility = %d : i32}", i ? ", " : "",
                          g->next, elements[parameters[i].element],
                          (int)parameters[i].divisibility);
        add(g, SCALAR, parameters[i].element, g->next++);
    }
    lilac_text_puts(&g->text, ") {\n");
    gen_range(g);
    lilac_text_puts(&g->text, "\n");
    lilac_text_printf(&g->text, "%%v%d = tt.get_program_id x : i32\n", g->next);
    add(g, SCALAR, I32, g->next++);
    gen_block(g, 20 + below(g, 40), 0);
    if (prints) {
        gen_prints(g);
    }
    lilac_text_puts(&g->text, "tt.return\n}\n}\n");
}

/* ---- the interpreter -------------------------------------------------------------------- */

typedef struct machine {
    jmp_buf dropped;  /* a run that cannot go on */
    bool poison;      /* the operation at hand is undefined or overflows */
    bool truncates;   /* a cast to fewer bits is defined where it loses bits */
    bool *poisoned;   /* by id: nothing is known of this value, the facts promise nothing */
    int64_t **values; /* by id: elements in row-major order */
    long fuel;
    /* called for every value that is computed, and for every operand of a tt.print */
    void (*seen)(struct machine *m, const lilac_tile_value *value);
    void (*printed)(struct machine *m, const lilac_tile_value *value);
    void *data;
} machine;

static inline int64_t elements_of(const lilac_tile_type *type) {
    return lilac_tile_element_count(type);
}

static inline uint32_t width_of(const lilac_tile_type *type) {
    return lilac_tile_element_bits(type);
}

static inline int64_t wrap(int64_t value, uint32_t bits) {
    if (bits >= 64) {
        return value;
    }
    uint64_t sign = UINT64_C(1) << (bits - 1), mask = (sign << 1) - 1;
    return (int64_t)((((uint64_t)value & mask) ^ sign) - sign);
}

static inline uint64_t as_unsigned(int64_t value, uint32_t bits) {
    return bits >= 64 ? (uint64_t)value : (uint64_t)value & ((UINT64_C(1) << bits) - 1);
}

/* A result of a sum, product or shift: of narrow types it wraps, of wide ones it must fit. */
static inline int64_t fitted(machine *m, bool overflow, int64_t exact, uint32_t bits) {
    int64_t value = wrap(exact, bits);
    m->poison = m->poison || overflow || (bits >= 32 && value != exact);
    return value;
}

static inline int64_t sum(machine *m, int64_t a, int64_t b, uint32_t bits) {
    int64_t exact;
    bool overflow = __builtin_add_overflow(a, b, &exact);
    return fitted(m, overflow, exact, bits);
}

static inline int64_t product(machine *m, int64_t a, int64_t b, uint32_t bits) {
    int64_t exact;
    bool overflow = __builtin_mul_overflow(a, b, &exact);
    return fitted(m, overflow, exact, bits);
}

static inline int64_t difference(machine *m, int64_t a, int64_t b, uint32_t bits) {
    int64_t exact;
    bool overflow = __builtin_sub_overflow(a, b, &exact);
    return fitted(m, overflow, exact, bits);
}

static inline int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static inline int64_t binary(machine *m, lilac_tile_opcode code, int64_t a, int64_t b,
                             uint32_t bits) {
    uint64_t ua = as_unsigned(a, bits), ub = as_unsigned(b, bits);
    switch (code) {
    case LILAC_TILE_OP_ARITH_ADDI:
        return sum(m, a, b, bits);
    case LILAC_TILE_OP_ARITH_SUBI:
        return difference(m, a, b, bits);
    case LILAC_TILE_OP_ARITH_MULI:
        return product(m, a, b, bits);
    case LILAC_TILE_OP_ARITH_ANDI:
        return a & b;
    case LILAC_TILE_OP_ARITH_ORI:
        return a | b;
    case LILAC_TILE_OP_ARITH_XORI:
        return a ^ b;
    case LILAC_TILE_OP_ARITH_MINSI:
        return a < b ? a : b;
    case LILAC_TILE_OP_ARITH_MAXSI:
        return a > b ? a : b;
    case LILAC_TILE_OP_ARITH_MINUI:
        return ua < ub ? a : b;
    case LILAC_TILE_OP_ARITH_MAXUI:
        return ua > ub ? a : b;
    case LILAC_TILE_OP_ARITH_SHLI:
    case LILAC_TILE_OP_ARITH_SHRSI:
    case LILAC_TILE_OP_ARITH_SHRUI:
        if (ub >= bits || ub == 63) {
            m->poison = true;
            return 0;
        }
        if (code == LILAC_TILE_OP_ARITH_SHLI) {
            return product(m, a, INT64_C(1) << ub, bits);
        }
        if (code == LILAC_TILE_OP_ARITH_SHRSI) {
            return floor_div(a, INT64_C(1) << ub);
        }
        return wrap((int64_t)(ua >> ub), bits);
    default:
        break;
    }
    if (b == 0 || (b == -1 && a == wrap((int64_t)(UINT64_C(1) << (bits - 1)), bits))) {
        m->poison = true;
        return 0;
    }
    switch (code) {
    case LILAC_TILE_OP_ARITH_DIVSI:
        return a / b;
    case LILAC_TILE_OP_ARITH_REMSI:
        return a % b;
    case LILAC_TILE_OP_ARITH_DIVUI:
        return wrap((int64_t)(ua / ub), bits);
    case LILAC_TILE_OP_ARITH_REMUI:
        return wrap((int64_t)(ua % ub), bits);
    case LILAC_TILE_OP_ARITH_CEILDIVUI:
        return wrap((int64_t)(ua / ub + (ua % ub != 0)), bits);
    case LILAC_TILE_OP_ARITH_FLOORDIVSI:
        return floor_div(a, b);
    case LILAC_TILE_OP_ARITH_CEILDIVSI:
        return a == INT64_MIN ? difference(m, 0, a, bits) : -floor_div(-a, b);
    default:
        fail_msg("operation without a meaning here");
        return 0;
    }
}

static inline int64_t compare(const char *p, int64_t a, int64_t b, uint32_t bits) {
    uint64_t ua = as_unsigned(a, bits), ub = as_unsigned(b, bits);
    bool result = false;
    if (strcmp(p, "eq") == 0) {
        result = a == b;
    } else if (strcmp(p, "ne") == 0) {
        result = a != b;
    } else if (strcmp(p, "slt") == 0) {
        result = a < b;
    } else if (strcmp(p, "sle") == 0) {
        result = a <= b;
    } else if (strcmp(p, "sgt") == 0) {
        result = a > b;
    } else if (strcmp(p, "sge") == 0) {
        result = a >= b;
    } else if (strcmp(p, "ult") == 0) {
        result = ua < ub;
    } else if (strcmp(p, "ule") == 0) {
        result = ua <= ub;
    } else if (strcmp(p, "ugt") == 0) {
        result = ua > ub;
    } else {
        result = ua >= ub;
    }
    return wrap(result, 1);
}

static inline int64_t unit_of(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    return element->kind == LILAC_TILE_POINTER ? lilac_tile_element_bits(element->element) / 8 : 1;
}

/* Element of operand i that stands at element e of the result (broadcasts and scalars repeat). */
static inline int64_t at(machine *m, const lilac_tile_op *op, uint32_t i, int64_t e) {
    const lilac_tile_value *value = op->operands[i].value;
    return m->values[value->id][lilac_tile_is_tensor(value->type) ? e : 0];
}

static inline int64_t shaped(machine *m, const lilac_tile_op *op, int64_t e) {
    const lilac_tile_type *from = op->operands[0].value->type, *to = op->results[0].type;
    if (op->code == LILAC_TILE_OP_TT_TRANS) {
        return at(m, op, 0, e % to->shape[1] * from->shape[1] + e / to->shape[1]);
    }
    if (op->code == LILAC_TILE_OP_TT_BROADCAST) {
        int64_t row = e / to->shape[1], column = e % to->shape[1];
        return at(m, op, 0,
                  (from->shape[0] == 1 ? 0 : row) * from->shape[1] +
                      (from->shape[1] == 1 ? 0 : column));
    }
    return at(m, op, 0, e); /* row-major order stays */
}

/* Memory holds a small number at every address. */
static inline int64_t loaded(machine *m, const lilac_tile_op *op, int64_t e) {
    if (op->operand_count > 1 && !at(m, op, 1, e)) {
        return op->operand_count > 2 ? at(m, op, 2, e) : 0;
    }
    uint64_t place = (uint64_t)at(m, op, 0, e);
    if (lilac_tile_find_integer(&op->attributes, "isVolatile", 0) != 0) {
        place += (uint64_t)e; /* each load may find another number */
    }
    return (int64_t)(place * UINT64_C(0x9e3779b97f4a7c15) >> 58) - 16;
}

static inline int64_t element(machine *m, const lilac_tile_op *op, int64_t e) {
    const lilac_tile_type *type = op->results[0].type;
    uint32_t bits = width_of(type);
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_CONSTANT: {
        const lilac_tile_attribute *value = lilac_tile_find(&op->attributes, "value");
        return wrap(value->kind == LILAC_TILE_ATTR_DENSE ? value->integers[0] : value->integer,
                    bits);
    }
    case LILAC_TILE_OP_TT_MAKE_RANGE:
        return lilac_tile_find_integer(&op->attributes, "start", 0) + e;
    case LILAC_TILE_OP_TT_GET_PROGRAM_ID:
        return 5;
    case LILAC_TILE_OP_TT_SPLAT:
        return at(m, op, 0, 0);
    case LILAC_TILE_OP_TT_ADDPTR:
        return sum(m, at(m, op, 0, e), product(m, at(m, op, 1, e), unit_of(type), 64), 64);
    case LILAC_TILE_OP_ARITH_SELECT:
        return at(m, op, 0, e) ? at(m, op, 1, e) : at(m, op, 2, e);
    case LILAC_TILE_OP_ARITH_CMPI:
        return compare(lilac_tile_find_text(&op->attributes, "predicate"), at(m, op, 0, e),
                       at(m, op, 1, e), width_of(op->operands[0].value->type));
    case LILAC_TILE_OP_TT_LOAD:
        return loaded(m, op, e);
    case LILAC_TILE_OP_ARITH_ADDF: /* floats are small whole numbers here */
        return wrap(at(m, op, 0, e) + at(m, op, 1, e), 24);
    case LILAC_TILE_OP_ARITH_CMPF:
        return wrap(at(m, op, 0, e) < at(m, op, 1, e), 1);
    case LILAC_TILE_OP_ARITH_EXTSI:
    case LILAC_TILE_OP_ARITH_SITOFP:
    case LILAC_TILE_OP_ARITH_FPTOSI:
        return at(m, op, 0, e);
    case LILAC_TILE_OP_ARITH_EXTUI:
        return (int64_t)as_unsigned(at(m, op, 0, e), width_of(op->operands[0].value->type));
    case LILAC_TILE_OP_ARITH_TRUNCI:
        return m->truncates ? wrap(at(m, op, 0, e), bits) : fitted(m, false, at(m, op, 0, e), bits);
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
    case LILAC_TILE_OP_TT_BROADCAST:
    case LILAC_TILE_OP_TT_TRANS:
    case LILAC_TILE_OP_TT_RESHAPE:
        return shaped(m, op, e);
    default:
        return binary(m, op->code, at(m, op, 0, e), at(m, op, 1, e), bits);
    }
}

static inline void copy(machine *m, const lilac_tile_value *to, const lilac_tile_value *from) {
    memmove(m->values[to->id], m->values[from->id],
            (size_t)elements_of(to->type) * sizeof(int64_t));
    m->poisoned[to->id] = m->poisoned[from->id];
    m->seen(m, to);
}

static const lilac_tile_op *run_region(machine *m, const lilac_tile_region *region);

static inline void run_for(machine *m, const lilac_tile_op *op) {
    int64_t low = at(m, op, 0, 0), high = at(m, op, 1, 0), step = at(m, op, 2, 0);
    const lilac_tile_block *body = op->regions[0]->first;
    for (uint32_t i = 0; i < 3; i++) {
        if (step <= 0 || m->poisoned[op->operands[i].value->id]) {
            longjmp(m->dropped, 1);
        }
    }
    copy(m, body->arguments[1], op->operands[3].value);
    for (int64_t i = low; i < high; i += step) {
        m->values[body->arguments[0]->id][0] = i;
        m->seen(m, body->arguments[0]);
        const lilac_tile_op *yield = run_region(m, op->regions[0]);
        copy(m, body->arguments[1], yield->operands[0].value);
    }
    copy(m, &op->results[0], body->arguments[1]);
}

static inline void run_while(machine *m, const lilac_tile_op *op) {
    const lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
    for (uint32_t i = 0; i < 2; i++) {
        copy(m, before->arguments[i], op->operands[i].value);
    }
    for (;;) {
        const lilac_tile_op *condition = run_region(m, op->regions[0]);
        const bool holds = at(m, condition, 0, 0) != 0;
        if (m->poisoned[condition->operands[0].value->id]) {
            longjmp(m->dropped, 1);
        }
        for (uint32_t i = 0; i < 2; i++) {
            copy(m, holds ? after->arguments[i] : &op->results[i],
                 condition->operands[1 + i].value);
        }
        if (!holds) {
            return;
        }
        const lilac_tile_op *yield = run_region(m, op->regions[1]);
        for (uint32_t i = 0; i < 2; i++) {
            copy(m, before->arguments[i], yield->operands[i].value);
        }
    }
}

static inline void run_plain(machine *m, const lilac_tile_op *op) {
    const lilac_tile_value *result = &op->results[0];
    m->poison = false;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        m->poison = m->poison || m->poisoned[op->operands[i].value->id];
    }
    for (int64_t e = 0; e < elements_of(result->type); e++) {
        m->values[result->id][e] = element(m, op, e);
    }
    m->poisoned[result->id] = m->poison;
    m->seen(m, result);
}

static const lilac_tile_op *run_region(machine *m, const lilac_tile_region *region) {
    for (const lilac_tile_op *op = region->first->first; op != NULL; op = op->next) {
        if (m->fuel-- < 0) {
            longjmp(m->dropped, 1);
        }
        if (op->code == LILAC_TILE_OP_SCF_YIELD || op->code == LILAC_TILE_OP_SCF_CONDITION ||
            op->code == LILAC_TILE_OP_TT_RETURN) {
            return op;
        }
        if (op->code == LILAC_TILE_OP_TT_PRINT) {
            m->printed(m, op->operands[0].value);
        } else if (op->code == LILAC_TILE_OP_CF_ASSERT) {
            if (m->poisoned[op->operands[0].value->id] || !at(m, op, 0, 0)) {
                longjmp(m->dropped, 1);
            }
        } else if (op->code == LILAC_TILE_OP_SCF_WHILE) {
            run_while(m, op);
        } else if (op->code == LILAC_TILE_OP_SCF_FOR) {
            run_for(m, op);
        } else if (op->code == LILAC_TILE_OP_SCF_IF) {
            if (m->poisoned[op->operands[0].value->id]) {
                longjmp(m->dropped, 1);
            }
            const lilac_tile_op *yield = run_region(m, op->regions[at(m, op, 0, 0) ? 0 : 1]);
            copy(m, &op->results[0], yield->operands[0].value);
        } else {
            run_plain(m, op);
        }
    }
    return NULL;
}

static inline void allocate(machine *m, lilac_arena *arena, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (uint32_t i = 0; i < block->argument_count; i++) {
            m->values[block->arguments[i]->id] =
                lilac_arena_array(arena, int64_t, elements_of(block->arguments[i]->type));
        }
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t i = 0; i < op->result_count; i++) {
                m->values[op->results[i].id] =
                    lilac_arena_array(arena, int64_t, elements_of(op->results[i].type));
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                allocate(m, arena, op->regions[r]);
            }
        }
    }
}

static inline void draw_arguments(generator *g, int64_t *arguments) {
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        int64_t spread = below(g, 2) ? 6 : 200;
        int64_t value = (int64_t)below(g, (int)spread) - (below(g, 3) ? 0 : spread / 2);
        if (parameters[i].element >= P16) { /* a pointer */
            value += 1000;
        }
        arguments[i] = value * parameters[i].divisibility;
    }
}

/* Memory for every value of the function. */
static inline void machine_init(machine *m, lilac_arena *arena, lilac_tile_function *function) {
    m->values = lilac_arena_array(arena, int64_t *, function->value_count);
    m->poisoned = lilac_arena_array(arena, bool, function->value_count);
    allocate(m, arena, function->body);
}

/* False: the run could not go on (poisoned bounds or conditions, or it takes too long). */
static inline bool machine_run(machine *m, const lilac_tile_function *function,
                               const int64_t *arguments) {
    m->fuel = 3000;
    for (uint32_t i = 0; i < PARAMETERS; i++) {
        m->values[function->parameters[i]->id][0] = arguments[i];
    }
    if (setjmp(m->dropped) != 0) {
        return false;
    }
    run_region(m, function->body);
    return true;
}

/* Reads the generated program. The test fails if the library refuses it. */
static inline lilac_tile_module *read_program(lilac_context *context, const generator *g) {
    uint32_t source = lilac_source_add(context, "random", lilac_text_get(&g->text), g->text.length);
    lilac_tile_module *module = lilac_tile_read(context, source);
    if (module == NULL) {
        fail_with_diagnostics(context, "the random program was refused");
    }
    return module;
}

/* How many programs a law is tried on: `usual`, or LILAC_TEST_LONG times as many. */
static inline uint64_t programs_to_try(uint64_t usual) {
    const char *longer = getenv("LILAC_TEST_LONG");
    return longer != NULL ? usual * (uint64_t)atoll(longer) : usual;
}

#endif
