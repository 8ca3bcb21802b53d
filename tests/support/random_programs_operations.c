/* Operations of a random program, memory and arithmetic, and the table of all of them. */
#include "random_generator.h"

#include <math.h>

/* ---- sources and stores -------------------------------------------------------------------- */

static bool gen_constant(generator *g) {
    static const int numbers[] = {0, 1, 2, 3, 5, 7, 16, 31, 100, -1, -2, -7, -128, 127};
    static const lilac_scalar kinds[] = {LILAC_I8,  LILAC_I16,  LILAC_I32, LILAC_I64, LILAC_I1,
                                         LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64, LILAC_I32};
    shape s = program_some_shape(g);
    int number = numbers[below(g, 14)];
    bool is_tensor = below(g, 3);
    (void)program_small_constant(g, kinds[below(g, 10)], is_tensor ? &s : &scalar_shape, number);
    return true;
}

/* A quotient or remainder of an index: pointers that are equal in blocks, or repeat. */
static int part_of_index(generator *g, int index, const shape *s) {
    static const char *const ops[] = {"arith.divsi", "arith.divui", "arith.remsi", "arith.remui"};
    static const int divisors[] = {2, 4, 8, 16, 32, 64, 3, 12};
    int by = program_small_constant(g, LILAC_I32, s, divisors[below(g, 8)]);
    return program_binary(g, ops[below(g, 4)], index, by, LILAC_I32, s);
}

bool program_gen_load(generator *g) {
    uint32_t i = below(g, INPUTS - 1 + (below(g, 3) == 0));
    lilac_scalar scalar = inputs[i];
    shape s = below(g, 8) ? program_some_shape(g) : scalar_shape;
    int parameter = (int)i, offset, index;
    const value *data = NULL;
    if (below(g, 5) == 0 && s.rank > 0) {
        data = program_pick(g, BIT(LILAC_I32), &s);
    }
    if (data != NULL) {
        int limit = program_small_constant(g, LILAC_I32, &s, INPUT_ELEMENTS - 1);
        index = offset = program_binary(g, "arith.andi", data->name, limit, LILAC_I32, &s);
    } else {
        uint32_t scale = below(g, 4) ? 1 : 1 + below(g, INPUT_ELEMENTS / 2 / elements(&s));
        index = offset = program_flat_index(g, &s, scale > 3 ? 3 : scale);
        if (below(g, 4) == 0) {
            offset = part_of_index(g, index, &s);
        }
        if (below(g, 2)) {
            int by = program_small_constant(g, LILAC_I32, &s,
                                            below(g, 2) ? 16 * below(g, 8) : below(g, 99));
            offset = program_binary(g, "arith.addi", offset, by, LILAC_I32, &s);
        }
    }
    int pointer = program_pointers(g, parameter, scalar, &s, offset);
    uint32_t way = below(g, 8);
    if (way < 4) {
        program_put(g, "%%v%d = tt.load %%v%d : ", g->next, pointer);
    } else {
        int mask = program_some_mask(g, &s, index);
        int other = way < 7 ? program_small_constant(g, scalar, &s, 3) : -1;
        program_put(g, "%%v%d = tt.load %%v%d, %%v%d", g->next, pointer, mask);
        if (other >= 0) {
            program_put(g, ", %%v%d", other);
        }
        program_put(g, " : ");
    }
    program_put_pointer_type(g, &s, scalar);
    program_put(g, "\n");
    value loaded = {program_add(g, scalar, &s), scalar, s};
    if (scalar == LILAC_F8E5M2) {
        (void)program_cast(g, "tt.fp_to_fp", &loaded, "->", LILAC_F16);
    }
    return true;
}

/* A buffer for what the program computes; its parameter. */
static int output(generator *g, lilac_scalar scalar, uint32_t count) {
    uint32_t p = INPUTS + g->stores++;
    g->program->parameters[p] =
        (program_parameter){.scalar = scalar,
                            .is_buffer = true,
                            .is_output = true,
                            .count = (uint64_t)count * g->program->programs};
    return (int)p;
}

/* The index, behind those of the programs before this one. */
static int own_offset(generator *g, int index, const shape *s) {
    program_put(g, "%%v%d = tt.get_program_id x : i32\n", g->next);
    int id = program_add(g, LILAC_I32, &scalar_shape);
    int size = program_small_constant(g, LILAC_I32, &scalar_shape, elements(s));
    id = program_binary(g, "arith.muli", id, size, LILAC_I32, &scalar_shape);
    return program_binary(g, "arith.addi", index, program_splat(g, id, LILAC_I32, s), LILAC_I32, s);
}

void program_store_value(generator *g, const value *v, bool masked) {
    if (g->stores == MOST_STORES) {
        return;
    }
    value from = *v;
    const shape *s = &from.shape;
    lilac_scalar scalar = from.scalar;
    if (scalar == LILAC_I1) {
        scalar = LILAC_I8;
        from.name = program_cast(g, "arith.extui", &from, "to", scalar);
    }
    int index = program_flat_index(g, s, 1), offset = own_offset(g, index, s);
    int pointer = program_pointers(g, output(g, scalar, elements(s)), scalar, s, offset);
    if (masked) {
        int mask = program_some_mask(g, s, index);
        program_put(g, "tt.store %%v%d, %%v%d, %%v%d : ", pointer, from.name, mask);
    } else {
        program_put(g, "tt.store %%v%d, %%v%d : ", pointer, from.name);
    }
    program_put_pointer_type(g, s, scalar);
    program_put(g, "\n");
}

static bool gen_store(generator *g) {
    if (g->stores >= MOST_STORES - 3 || g->depth > 0) {
        return false;
    }
    const value *v = program_pick(g, ANYTHING, below(g, 4) ? NULL : &scalar_shape);
    if (v != NULL) {
        program_store_value(g, v, below(g, 3) == 0);
    }
    return v != NULL;
}

static bool gen_splat(generator *g) {
    const value *v = program_pick(g, ANYTHING, &scalar_shape);
    shape s = program_some_shape(g);
    if (v != NULL) {
        (void)program_splat(g, v->name, v->scalar, &s);
    }
    return v != NULL;
}

static bool gen_program_id(generator *g) {
    program_put(g, "%%v%d = tt.get_%s x : i32\n", g->next,
                below(g, 2) ? "program_id" : "num_programs");
    (void)program_add(g, LILAC_I32, &scalar_shape);
    return true;
}

/* ---- arithmetic -------------------------------------------------------------------------- */

/* Operations on values of one type that give one of it. */
typedef struct elementwise {
    uint32_t scalars, operands, count;
    const char *ops[10];
} elementwise;

static const elementwise integer_ops = {INTEGERS,
                                        2,
                                        10,
                                        {"arith.addi", "arith.subi", "arith.muli", "arith.andi",
                                         "arith.ori", "arith.xori", "arith.minsi", "arith.maxsi",
                                         "arith.minui", "arith.maxui"}};
static const elementwise mulhi_ops = {BIT(LILAC_I32) | BIT(LILAC_I64), 2, 1, {"tt.mulhiui"}};
static const elementwise absi_ops = {INTEGERS, 1, 1, {"math.absi"}};
static const elementwise float_ops = {FLOATS,
                                      2,
                                      10,
                                      {"arith.addf", "arith.subf", "arith.mulf", "arith.addf",
                                       "arith.mulf", "arith.minnumf", "arith.maxnumf",
                                       "arith.minimumf", "arith.maximumf", "arith.divf"}};
static const elementwise fma_ops = {FLOATS, 3, 1, {"math.fma"}};
static const elementwise math_ops = {BIT(LILAC_F32),
                                     1,
                                     10,
                                     {"math.exp", "math.exp2", "math.log", "math.log2", "math.sqrt",
                                      "math.rsqrt", "math.sin", "math.cos", "math.tanh",
                                      "math.erf"}};
static const elementwise math_f64_ops = {
    BIT(LILAC_F64), 1, 4, {"math.exp", "math.log", "math.sin", "math.sqrt"}};
static const elementwise float_bits_ops = {BIT(LILAC_F32) | BIT(LILAC_F16) | BIT(LILAC_BF16),
                                           1,
                                           4,
                                           {"math.absf", "arith.negf", "math.floor", "math.ceil"}};
static const elementwise precise_sqrt = {BIT(LILAC_F32), 1, 1, {"tt.precise_sqrt"}};
static const elementwise precise_div = {BIT(LILAC_F32), 2, 1, {"tt.precise_divf"}};
static const elementwise remf_ops = {BIT(LILAC_F32) | BIT(LILAC_F64), 2, 1, {"arith.remf"}};

static bool gen_elementwise(generator *g, const elementwise *kind) {
    value a;
    if (!program_take(g, kind->scalars, &a)) {
        return false;
    }
    int operands[3] = {a.name};
    for (uint32_t k = 1; k < kind->operands; k++) {
        operands[k] = program_pick_same(g, &a)->name;
    }
    program_put(g, "%%v%d = %s ", g->next, kind->ops[kind->count > 1 ? below(g, kind->count) : 0]);
    for (uint32_t k = 0; k < kind->operands; k++) {
        program_put(g, k > 0 ? ", %%v%d" : "%%v%d", operands[k]);
    }
    program_put(g, " : ");
    (void)program_end(g, a.scalar, &a.shape);
    return true;
}

static bool gen_precise(generator *g) {
    return gen_elementwise(g, below(g, 2) ? &precise_sqrt : &precise_div);
}

/* Division by what is not zero, shifts by less than the width. */
static bool gen_division(generator *g) {
    static const char *const ops[] = {
        "arith.divsi",     "arith.divui",     "arith.remsi", "arith.remui", "arith.floordivsi",
        "arith.ceildivsi", "arith.ceildivui", "arith.shli",  "arith.shrsi", "arith.shrui"};
    value a;
    if (!program_take(g, INTEGERS, &a)) {
        return false;
    }
    value b = *program_pick_same(g, &a);
    uint32_t which = below(g, 10);
    if (which >= 7) {
        int mask = program_small_constant(g, a.scalar, &a.shape, lilac_scalar_bits(a.scalar) - 1);
        b.name = program_binary(g, "arith.andi", b.name, mask, a.scalar, &a.shape);
    } else if (below(g, 2)) {
        b.name = program_small_constant(g, a.scalar, &a.shape, below(g, 2) ? 1 << below(g, 6) : 7);
    } else {
        int one = program_small_constant(g, a.scalar, &a.shape, 1);
        b.name = program_binary(g, "arith.ori", b.name, one, a.scalar, &a.shape);
    }
    (void)program_binary(g, ops[which], a.name, b.name, a.scalar, &a.shape);
    return true;
}

static bool gen_clamp(generator *g) {
    value a;
    if (!program_take(g, BIT(LILAC_F32) | BIT(LILAC_F16), &a)) {
        return false;
    }
    int low = program_small_constant(g, a.scalar, &a.shape, -1);
    int high = program_small_constant(g, a.scalar, &a.shape, 2);
    program_put(g, "%%v%d = tt.clampf %%v%d, %%v%d, %%v%d, propagateNan = %s : ", g->next, a.name,
                low, high, below(g, 2) ? "all" : "none");
    (void)program_end(g, a.scalar, &a.shape);
    return true;
}

static bool gen_compare(generator *g) {
    static const char *const of_integers[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                              "sge", "ult", "ule", "ugt", "uge"};
    static const char *const of_floats[] = {"oeq", "ogt", "oge", "olt", "ole", "one", "ord",
                                            "ueq", "ugt", "uge", "ult", "ule", "une", "uno"};
    value a;
    if (!program_take(g, INTEGERS | FLOATS, &a)) {
        return false;
    }
    bool is_float = lilac_scalar_is_float(a.scalar);
    int b = program_pick_same(g, &a)->name;
    program_put(g, "%%v%d = arith.cmp%s %s, %%v%d, %%v%d : ", g->next, is_float ? "f" : "i",
                is_float ? of_floats[below(g, 14)] : of_integers[below(g, 10)], a.name, b);
    program_put_type(g, &a.shape, a.scalar);
    program_put(g, "\n");
    (void)program_add(g, LILAC_I1, &a.shape);
    return true;
}

static bool gen_select(generator *g) {
    value condition;
    if (!program_take(g, BIT(LILAC_I1), &condition)) {
        return false;
    }
    const value *v = program_pick(g, ANYTHING, below(g, 3) ? &condition.shape : NULL);
    if (v == NULL || !(same_shape(&condition.shape, &v->shape) || condition.shape.rank == 0)) {
        return false;
    }
    value a = *v;
    int other = program_pick_same(g, &a)->name;
    program_put(g, "%%v%d = arith.select %%v%d, %%v%d, %%v%d : ", g->next, condition.name, a.name,
                other);
    if (a.shape.rank > 0) {
        program_put_type(g, &condition.shape, LILAC_I1);
        program_put(g, ", ");
    }
    (void)program_end(g, a.scalar, &a.shape);
    return true;
}

static bool gen_cast(generator *g) {
    static const lilac_scalar integers[] = {LILAC_I8, LILAC_I16, LILAC_I32, LILAC_I64};
    static const lilac_scalar floats[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64};
    value a;
    if (!program_take(g, ANYTHING, &a)) {
        return false;
    }
    bool to_float = below(g, 2);
    lilac_scalar to = to_float ? floats[below(g, 4)] : integers[below(g, 4)];
    uint32_t from_bits = lilac_scalar_bits(a.scalar), bits = lilac_scalar_bits(to);
    bool from_float = lilac_scalar_is_float(a.scalar);
    if (!from_float && !to_float) {
        if (bits == from_bits) {
            return false;
        }
        (void)program_cast(g,
                           bits < from_bits ? "arith.trunci"
                           : below(g, 2)    ? "arith.extsi"
                                            : "arith.extui",
                           &a, "to", to);
    } else if (!from_float) {
        (void)program_cast(g, below(g, 2) ? "arith.sitofp" : "arith.uitofp", &a, "to", to);
    } else if (!to_float) {
        if (bits == from_bits && below(g, 2)) {
            (void)program_cast(g, "tt.bitcast", &a, "->", to);
        } else {
            (void)program_cast(g, below(g, 2) ? "arith.fptosi" : "arith.fptoui", &a, "to", to);
        }
    } else if (bits == from_bits) {
        return false;
    } else {
        (void)program_cast(g, bits < from_bits ? "arith.truncf" : "arith.extf", &a, "to", to);
    }
    return true;
}

/* To a type of 8 bits and back. */
static bool gen_float8(generator *g) {
    value a;
    if (!program_take_tensor(g, BIT(LILAC_F32) | BIT(LILAC_F16) | BIT(LILAC_BF16), &a)) {
        return false;
    }
    lilac_scalar narrow = below(g, 2) ? LILAC_F8E5M2 : LILAC_F8E4M3FN;
    program_put(g, "%%v%d = tt.fp_to_fp %%v%d, rounding = rtne : ", g->next, a.name);
    value b = {program_end_as(g, &a, "->", narrow, &a.shape), narrow, a.shape};
    (void)program_cast(g, "tt.fp_to_fp", &b, "->", below(g, 2) ? LILAC_F16 : LILAC_F32);
    return true;
}

/* ---- atomics ----------------------------------------------------------------------------- */

static bool gen_atomic(generator *g) {
    static const char *const of_integers[] = {"add", "and", "or",   "xor",
                                              "max", "min", "umax", "umin"};
    static const char *const of_halves[] = {"fadd", "max", "min"};
    if (g->stores >= MOST_STORES - 3 || g->depth > 0) {
        return false;
    }
    value a;
    if (!program_take_tensor(
            g, BIT(LILAC_I32) | BIT(LILAC_I64) | BIT(LILAC_F32) | BIT(LILAC_F16) | BIT(LILAC_BF16),
            &a)) {
        return false;
    }
    bool is_float = lilac_scalar_is_float(a.scalar), meet = below(g, 2);
    bool half = a.scalar == LILAC_F16 || a.scalar == LILAC_BF16;
    int p = output(g, a.scalar, elements(&a.shape));
    int index = program_flat_index(g, &a.shape, 1), offset;
    if (meet) { /* several elements at an address; what was there is not looked at */
        int few = program_small_constant(g, LILAC_I32, &a.shape, 7);
        offset = program_binary(g, "arith.andi", index, few, LILAC_I32, &a.shape);
    } else {
        offset = own_offset(g, index, &a.shape);
    }
    int pointer = program_pointers(g, p, a.scalar, &a.shape, offset);
    int mask = below(g, 2) ? program_some_mask(g, &a.shape, index)
                           : program_small_constant(g, LILAC_I1, &a.shape, 1);
    int name = g->next++;
    program_put(g, "%%v%d = tt.atomic_rmw %s, acq_rel, gpu, %%v%d, %%v%d, %%v%d : (", name,
                half       ? of_halves[below(g, 3)]
                : is_float ? "fadd"
                           : of_integers[below(g, 8)],
                pointer, a.name, mask);
    program_put_pointer_type(g, &a.shape, a.scalar);
    program_put(g, ", ");
    program_put_type(g, &a.shape, a.scalar);
    program_put(g, ", ");
    program_put_type(g, &a.shape, LILAC_I1);
    program_put(g, ") -> ");
    program_put_type(g, &a.shape, a.scalar);
    program_put(g, "\n");
    if (!meet) {
        int none = program_small_constant(g, a.scalar, &a.shape, 0);
        program_put(g, "%%v%d = arith.select %%v%d, %%v%d, %%v%d : ", g->next, mask, name, none);
        program_put_type(g, &a.shape, LILAC_I1);
        program_put(g, ", ");
        (void)program_end(g, a.scalar, &a.shape);
    }
    return true;
}

/* ---- all of them --------------------------------------------------------------------------- */

typedef struct feature {
    const char *name;
    uint32_t weight;
    bool (*generate)(generator *g); /* or */
    const elementwise *kind;
} feature;

static const feature features[] = {
    {"load", 8, program_gen_load, NULL},
    {"constant", 3, gen_constant, NULL},
    {"splat", 3, gen_splat, NULL},
    {"program id", 1, gen_program_id, NULL},
    {"integer", 12, NULL, &integer_ops},
    {"division and shift", 4, gen_division, NULL},
    {"mulhiui", 1, NULL, &mulhi_ops},
    {"absi", 1, NULL, &absi_ops},
    {"float", 10, NULL, &float_ops},
    {"fma", 2, NULL, &fma_ops},
    {"math", 2, NULL, &math_ops},
    {"math of f64", 1, NULL, &math_f64_ops},
    {"signs and roundings", 2, NULL, &float_bits_ops},
    {"precise", 1, gen_precise, NULL},
    {"remf", 1, NULL, &remf_ops},
    {"clampf", 1, gen_clamp, NULL},
    {"compare", 4, gen_compare, NULL},
    {"select", 4, gen_select, NULL},
    {"cast", 6, gen_cast, NULL},
    {"float of 8 bits", 1, gen_float8, NULL},
    {"reshape", 4, program_gen_reshape, NULL},
    {"trans", 4, program_gen_trans, NULL},
    {"expand and broadcast", 4, program_gen_expand, NULL},
    {"join", 3, program_gen_join, NULL},
    {"split", 3, program_gen_split, NULL},
    {"reduce", 5, program_gen_reduce, NULL},
    {"reduce of two", 2, program_gen_reduce_pair, NULL},
    {"reduces of one", 2, program_gen_reduces, NULL},
    {"scan", 4, program_gen_scan, NULL},
    {"scan of two", 2, program_gen_scan_pair, NULL},
    {"gather", 3, program_gen_gather, NULL},
    {"histogram", 2, program_gen_histogram, NULL},
    {"cat", 1, program_gen_cat, NULL},
    {"atomic", 2, gen_atomic, NULL},
    {"if", 3, program_gen_if, NULL},
    {"for", 3, program_gen_for, NULL},
    {"while", 2, program_gen_while, NULL},
    {"call", 1, program_gen_call, NULL},
    {"map_elementwise", 1, program_gen_map, NULL},
    {"store", 2, gen_store, NULL},
};
enum { FEATURES = sizeof features / sizeof *features };

const char *program_feature(uint32_t index) {
    return index < FEATURES ? features[index].name : NULL;
}

void program_block(generator *g, uint32_t length) {
    uint32_t total = 0;
    for (uint32_t i = 0; i < FEATURES; i++) {
        total += g->features >> i & 1 ? features[i].weight : 0;
    }
    for (uint32_t i = 0, attempts = 0; i < length && attempts < 20 * length + 20; attempts++) {
        if (g->dots && below(g, 4) == 0) {
            i += program_gen_dot(g);
            continue;
        }
        uint32_t at = below(g, total), k = 0;
        for (;; k++) {
            uint32_t weight = g->features >> k & 1 ? features[k].weight : 0;
            if (at < weight) {
                break;
            }
            at -= weight;
        }
        const feature *f = &features[k];
        if (f->kind != NULL ? gen_elementwise(g, f->kind) : f->generate(g)) {
            g->program->used |= 1ULL << k;
            i++;
        }
    }
}
