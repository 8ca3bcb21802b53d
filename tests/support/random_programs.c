/* The generator. It writes TTIR line by line and remembers every value with its type and shape, so
 * that an operation can ask for operands that fit; what does not fit is not generated. */
#include "random_programs.h"

#include <math.h>
#include <string.h>

void program_choices_seed(program_choices *choices, uint64_t seed) {
    memset(choices, 0, sizeof *choices);
    lilac_random_seed(&choices->random, seed);
}

uint32_t program_below(program_choices *choices, uint32_t bound) {
    if (choices->at < choices->size) {
        uint32_t value = choices->bytes[choices->at++];
        if (bound > 256 && choices->at < choices->size) {
            value = value << 8 | choices->bytes[choices->at++];
        }
        return value % bound;
    }
    return (uint32_t)lilac_random_below(&choices->random, bound);
}

enum { MOST_RANK = 4, MOST_VALUES = 400, INPUTS = 9, MOST_STORES = 8, OUTPUT_SLACK = 64 };

typedef struct shape {
    uint32_t rank;
    uint32_t size[MOST_RANK];
} shape;

typedef struct value {
    int name;
    lilac_scalar scalar;
    shape shape;
} value;

typedef struct generator {
    program *program;
    program_choices *choices;
    lilac_text *out;
    lilac_text functions;
    uint64_t features;
    int next;
    uint32_t depth, count, stores, helpers;
    uint32_t most_elements;
    value values[MOST_VALUES];
    shape usual[3];
} generator;

static const lilac_scalar inputs[INPUTS] = {LILAC_I8,  LILAC_I16, LILAC_I32,
                                            LILAC_I64, LILAC_F16, LILAC_BF16,
                                            LILAC_F32, LILAC_F64, LILAC_F8E5M2};
enum { INPUT_ELEMENTS = 1 << 12 };

/* Masks of scalars that a pick may give. */
#define BIT(scalar) (1U << (scalar))
#define INTEGERS    (BIT(LILAC_I8) | BIT(LILAC_I16) | BIT(LILAC_I32) | BIT(LILAC_I64))
#define FLOATS      (BIT(LILAC_F16) | BIT(LILAC_BF16) | BIT(LILAC_F32) | BIT(LILAC_F64))
#define ANYTHING    (INTEGERS | FLOATS | BIT(LILAC_I1))

static uint32_t below(generator *g, uint32_t bound) {
    return program_below(g->choices, bound);
}

static uint32_t elements(const shape *s) {
    uint32_t n = 1;
    for (uint32_t d = 0; d < s->rank; d++) {
        n *= s->size[d];
    }
    return n;
}

static bool same_shape(const shape *a, const shape *b) {
    return a->rank == b->rank && memcmp(a->size, b->size, a->rank * sizeof *a->size) == 0;
}

static void put(generator *g, const char *format, ...) LILAC_PRINTF(2, 3);
static void put(generator *g, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_text_vprintf(g->out, format, arguments);
    va_end(arguments);
}

static void put_type_of(generator *g, const shape *s, const char *element) {
    if (s->rank == 0) {
        put(g, "%s", element);
        return;
    }
    put(g, "tensor<");
    for (uint32_t d = 0; d < s->rank; d++) {
        put(g, "%ux", s->size[d]);
    }
    put(g, "%s>", element);
}

static void put_type(generator *g, const shape *s, lilac_scalar scalar) {
    put_type_of(g, s, lilac_scalar_name(scalar));
}

static void put_pointer_type(generator *g, const shape *s, lilac_scalar scalar) {
    char name[48];
    lilac_text text = {0};
    lilac_text_printf(&text, "!tt.ptr<%s>", lilac_scalar_name(scalar));
    strncpy(name, lilac_text_get(&text), sizeof name - 1);
    name[sizeof name - 1] = '\0';
    lilac_text_clear(&text);
    put_type_of(g, s, name);
}

static int add(generator *g, lilac_scalar scalar, const shape *s) {
    if (g->count == MOST_VALUES) { /* forget old ones */
        memmove(g->values + 20, g->values + 100, (MOST_VALUES - 100) * sizeof *g->values);
        g->count -= 80;
    }
    g->values[g->count++] = (value){g->next, scalar, *s};
    return g->next++;
}

/* The name is taken already. */
static void add_named(generator *g, int name, lilac_scalar scalar, const shape *s) {
    int next = g->next;
    g->next = name;
    (void)add(g, scalar, s);
    g->next = next;
}

/* The end of an operation's line: the type of its operands and result; the result is known. */
static int end(generator *g, lilac_scalar scalar, const shape *s) {
    put_type(g, s, scalar);
    put(g, "\n");
    return add(g, scalar, s);
}

/* The same where the result's type is another one: "FROM -> TO" or "FROM to TO". */
static int end_as(generator *g, const value *from, const char *to, lilac_scalar scalar,
                  const shape *s) {
    put_type(g, &from->shape, from->scalar);
    put(g, " %s ", to);
    return end(g, scalar, s);
}

static void put_types(generator *g, const value *v, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        put(g, k > 0 ? ", " : "");
        put_type(g, &v[k].shape, v[k].scalar);
    }
}

/* And where it is spelled as a function's: "(FROM, FROM) -> TO". */
static int end_function(generator *g, const value *from, uint32_t count, lilac_scalar scalar,
                        const shape *s) {
    put(g, "(");
    put_types(g, from, count);
    put(g, ") -> ");
    return end(g, scalar, s);
}

/* A value that fits, later ones more often. `s` NULL: any tensor's shape. */
static const value *pick(generator *g, uint32_t scalars, const shape *s) {
    uint32_t found[MOST_VALUES], count = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        const value *v = &g->values[i];
        if ((BIT(v->scalar) & scalars) &&
            (s == NULL ? v->shape.rank > 0 : same_shape(s, &v->shape))) {
            found[count++] = i;
        }
    }
    if (count == 0) {
        return NULL;
    }
    uint32_t a = below(g, count), b = below(g, count);
    return &g->values[found[a > b ? a : b]];
}

static const shape scalar_shape = {0, {0}};

static const value *pick_same(generator *g, const value *like) {
    const value *v = pick(g, BIT(like->scalar), &like->shape);
    return v != NULL ? v : like;
}

/* The same for a generator, which leaves off where there is none: any tensor … */
static bool take_tensor(generator *g, uint32_t scalars, value *taken) {
    const value *v = pick(g, scalars, NULL);
    if (v != NULL) {
        *taken = *v;
    }
    return v != NULL;
}

/* … or, more rarely, a scalar. */
static bool take(generator *g, uint32_t scalars, value *taken) {
    if (below(g, 7) && take_tensor(g, scalars, taken)) {
        return true;
    }
    const value *v = pick(g, scalars, &scalar_shape);
    if (v != NULL) {
        *taken = *v;
    }
    return v != NULL;
}

/* ---- sources ----------------------------------------------------------------------------- */

static shape random_shape(generator *g, uint32_t bits) {
    shape s = {1 + below(g, MOST_RANK), {1, 1, 1, 1}};
    if (below(g, 3) != 0) {
        s.rank = 1 + below(g, 2);
    }
    for (; bits > 0; bits--) {
        s.size[below(g, s.rank)] *= 2;
    }
    return s;
}

static shape some_shape(generator *g) {
    return g->usual[below(g, 3)];
}

static int small_constant(generator *g, lilac_scalar scalar, const shape *s, int64_t number) {
    put(g, "%%v%d = arith.constant ", g->next);
    if (scalar == LILAC_I1) {
        number = number & 1;
        put(g, s->rank > 0 ? "dense<%s> : " : "%s", number ? "true" : "false");
        if (s->rank > 0) {
            return end(g, scalar, s);
        }
        put(g, "\n");
        return add(g, scalar, s);
    }
    put(g, s->rank > 0 ? "dense<%lld%s> : " : "%lld%s : ", (long long)number,
        lilac_scalar_is_float(scalar) ? ".0" : "");
    return end(g, scalar, s);
}

static bool gen_constant(generator *g) {
    static const int numbers[] = {0, 1, 2, 3, 5, 7, 16, 31, 100, -1, -2, -7, -128, 127};
    static const lilac_scalar kinds[] = {LILAC_I8,  LILAC_I16,  LILAC_I32, LILAC_I64, LILAC_I1,
                                         LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64, LILAC_I32};
    shape s = some_shape(g);
    int number = numbers[below(g, 14)];
    bool is_tensor = below(g, 3);
    (void)small_constant(g, kinds[below(g, 10)], is_tensor ? &s : &scalar_shape, number);
    return true;
}

static int move(generator *g, const char *op, const value *v, const char *attributes,
                const shape *to) {
    value from = *v;
    shape result = *to;
    put(g, "%%v%d = tt.%s %%v%d%s : ", g->next, op, from.name, attributes);
    return end_as(g, &from, "->", from.scalar, &result);
}

static value expand(generator *g, const value *v, uint32_t axis) {
    shape wider = {v->shape.rank + 1, {0}};
    for (uint32_t d = 0, from = 0; d < wider.rank; d++) {
        wider.size[d] = d == axis ? 1 : v->shape.size[from++];
    }
    char attribute[] = " {axis = 0 : i32}";
    attribute[9] = (char)('0' + axis);
    return (value){move(g, "expand_dims", v, attribute, &wider), v->scalar, wider};
}

/* 0 … n - 1 along dimension d, of the whole shape; an i32 value's name. */
static int along(generator *g, const shape *s, uint32_t d) {
    shape now = {1, {s->size[d], 0, 0, 0}};
    put(g, "%%v%d = tt.make_range {end = %u : i32, start = 0 : i32} : ", g->next, s->size[d]);
    value range = {end(g, LILAC_I32, &now), LILAC_I32, now};
    for (uint32_t k = 0; k < s->rank; k++) {
        if (k != d) {
            range = expand(g, &range, k);
        }
    }
    return same_shape(&range.shape, s) ? range.name : move(g, "broadcast", &range, "", s);
}

static int binary(generator *g, const char *op, int a, int b, lilac_scalar scalar, const shape *s) {
    put(g, "%%v%d = %s %%v%d, %%v%d : ", g->next, op, a, b);
    return end(g, scalar, s);
}

static int cast(generator *g, const char *op, const value *a, const char *to, lilac_scalar scalar) {
    value from = *a;
    put(g, "%%v%d = %s %%v%d : ", g->next, op, from.name);
    return end_as(g, &from, to, scalar, &from.shape);
}

static int splat(generator *g, int from, lilac_scalar scalar, const shape *s) {
    if (s->rank == 0) {
        return from;
    }
    put(g, "%%v%d = tt.splat %%v%d : ", g->next, from);
    return end_as(g, &(value){from, scalar, scalar_shape}, "->", scalar, s);
}

/* The row-major index of every element times `scale`, in i32. */
static int flat_index(generator *g, const shape *s, uint32_t scale) {
    if (s->rank == 0) {
        return small_constant(g, LILAC_I32, s, 0);
    }
    int sum = -1;
    if (s->rank > 1 && below(g, 4) == 0) { /* a reshaped range */
        shape line = {1, {elements(s), 0, 0, 0}};
        value range = {along(g, &line, 0), LILAC_I32, line};
        sum = move(g, "reshape", &range, "", s);
    } else {
        uint32_t stride = elements(s);
        for (uint32_t d = 0; d < s->rank; d++) {
            stride /= s->size[d];
            int index = along(g, s, d);
            if (stride > 1) {
                int by = small_constant(g, LILAC_I32, s, stride);
                index = binary(g, "arith.muli", index, by, LILAC_I32, s);
            }
            sum = sum < 0 ? index : binary(g, "arith.addi", sum, index, LILAC_I32, s);
        }
    }
    if (scale > 1) {
        int by = small_constant(g, LILAC_I32, s, scale);
        sum = binary(g, "arith.muli", sum, by, LILAC_I32, s);
    }
    return sum;
}

static int pointers(generator *g, int parameter, lilac_scalar scalar, const shape *s, int offset) {
    int base = parameter;
    if (s->rank > 0) {
        put(g, "%%v%d = tt.splat %%v%d : ", g->next, parameter);
        put_pointer_type(g, &scalar_shape, scalar);
        put(g, " -> ");
        put_pointer_type(g, s, scalar);
        put(g, "\n");
        base = g->next++;
    }
    put(g, "%%v%d = tt.addptr %%v%d, %%v%d : ", g->next, base, offset);
    put_pointer_type(g, s, scalar);
    put(g, ", ");
    put_type(g, s, LILAC_I32);
    put(g, "\n");
    return g->next++;
}

static int compare_less(generator *g, int a, int b, const shape *s) {
    put(g, "%%v%d = arith.cmpi slt, %%v%d, %%v%d : ", g->next, a, b);
    put_type(g, s, LILAC_I32);
    put(g, "\n");
    return add(g, LILAC_I1, s);
}

/* A mask, most often of the elements below a size that no vector divides. */
static int some_mask(generator *g, const shape *s, int index) {
    const value *any = below(g, 4) == 0 ? pick(g, BIT(LILAC_I1), s) : NULL;
    if (any != NULL) {
        return any->name;
    }
    const value *size = pick(g, BIT(LILAC_I32), &scalar_shape);
    int limit;
    if (below(g, 2) && size != NULL) {
        limit = splat(g, size->name, LILAC_I32, s);
    } else {
        limit = small_constant(g, LILAC_I32, s, 1 + below(g, elements(s)));
    }
    return compare_less(g, index, limit, s);
}

static bool gen_load(generator *g) {
    uint32_t i = below(g, INPUTS - 1 + (below(g, 3) == 0));
    lilac_scalar scalar = inputs[i];
    shape s = below(g, 8) ? some_shape(g) : scalar_shape;
    int parameter = (int)i, offset, index;
    const value *data = NULL;
    if (below(g, 5) == 0 && s.rank > 0) {
        data = pick(g, BIT(LILAC_I32), &s);
    }
    if (data != NULL) {
        int limit = small_constant(g, LILAC_I32, &s, INPUT_ELEMENTS - 1);
        index = offset = binary(g, "arith.andi", data->name, limit, LILAC_I32, &s);
    } else {
        uint32_t scale = below(g, 4) ? 1 : 1 + below(g, INPUT_ELEMENTS / 2 / elements(&s));
        index = offset = flat_index(g, &s, scale > 3 ? 3 : scale);
        if (below(g, 2)) {
            int by =
                small_constant(g, LILAC_I32, &s, below(g, 2) ? 16 * below(g, 8) : below(g, 99));
            offset = binary(g, "arith.addi", offset, by, LILAC_I32, &s);
        }
    }
    int pointer = pointers(g, parameter, scalar, &s, offset);
    uint32_t way = below(g, 8);
    if (way < 4) {
        put(g, "%%v%d = tt.load %%v%d : ", g->next, pointer);
    } else {
        int mask = some_mask(g, &s, index);
        int other = way < 7 ? small_constant(g, scalar, &s, 3) : -1;
        put(g, "%%v%d = tt.load %%v%d, %%v%d", g->next, pointer, mask);
        if (other >= 0)
            put(g, ", %%v%d", other);
        put(g, " : ");
    }
    put_pointer_type(g, &s, scalar);
    put(g, "\n");
    value loaded = {add(g, scalar, &s), scalar, s};
    if (scalar == LILAC_F8E5M2) {
        (void)cast(g, "tt.fp_to_fp", &loaded, "->", LILAC_F16);
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
    put(g, "%%v%d = tt.get_program_id x : i32\n", g->next);
    int id = add(g, LILAC_I32, &scalar_shape);
    int size = small_constant(g, LILAC_I32, &scalar_shape, elements(s));
    id = binary(g, "arith.muli", id, size, LILAC_I32, &scalar_shape);
    return binary(g, "arith.addi", index, splat(g, id, LILAC_I32, s), LILAC_I32, s);
}

static void store_value(generator *g, const value *v, bool masked) {
    if (g->stores == MOST_STORES) {
        return;
    }
    value from = *v;
    const shape *s = &from.shape;
    lilac_scalar scalar = from.scalar;
    if (scalar == LILAC_I1) {
        scalar = LILAC_I8;
        from.name = cast(g, "arith.extui", &from, "to", scalar);
    }
    int index = flat_index(g, s, 1), offset = own_offset(g, index, s);
    int pointer = pointers(g, output(g, scalar, elements(s)), scalar, s, offset);
    if (masked) {
        int mask = some_mask(g, s, index);
        put(g, "tt.store %%v%d, %%v%d, %%v%d : ", pointer, from.name, mask);
    } else {
        put(g, "tt.store %%v%d, %%v%d : ", pointer, from.name);
    }
    put_pointer_type(g, s, scalar);
    put(g, "\n");
}

static bool gen_store(generator *g) {
    if (g->stores >= MOST_STORES - 3 || g->depth > 0) {
        return false;
    }
    const value *v = pick(g, ANYTHING, below(g, 4) ? NULL : &scalar_shape);
    if (v != NULL) {
        store_value(g, v, below(g, 3) == 0);
    }
    return v != NULL;
}

static bool gen_splat(generator *g) {
    const value *v = pick(g, ANYTHING, &scalar_shape);
    shape s = some_shape(g);
    if (v != NULL) {
        (void)splat(g, v->name, v->scalar, &s);
    }
    return v != NULL;
}

static bool gen_program_id(generator *g) {
    put(g, "%%v%d = tt.get_%s x : i32\n", g->next, below(g, 2) ? "program_id" : "num_programs");
    (void)add(g, LILAC_I32, &scalar_shape);
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
    if (!take(g, kind->scalars, &a)) {
        return false;
    }
    int operands[3] = {a.name};
    for (uint32_t k = 1; k < kind->operands; k++) {
        operands[k] = pick_same(g, &a)->name;
    }
    put(g, "%%v%d = %s ", g->next, kind->ops[kind->count > 1 ? below(g, kind->count) : 0]);
    for (uint32_t k = 0; k < kind->operands; k++) {
        put(g, k > 0 ? ", %%v%d" : "%%v%d", operands[k]);
    }
    put(g, " : ");
    (void)end(g, a.scalar, &a.shape);
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
    if (!take(g, INTEGERS, &a)) {
        return false;
    }
    value b = *pick_same(g, &a);
    uint32_t which = below(g, 10);
    if (which >= 7) {
        int mask = small_constant(g, a.scalar, &a.shape, lilac_scalar_bits(a.scalar) - 1);
        b.name = binary(g, "arith.andi", b.name, mask, a.scalar, &a.shape);
    } else if (below(g, 2)) {
        b.name = small_constant(g, a.scalar, &a.shape, below(g, 2) ? 1 << below(g, 6) : 7);
    } else {
        int one = small_constant(g, a.scalar, &a.shape, 1);
        b.name = binary(g, "arith.ori", b.name, one, a.scalar, &a.shape);
    }
    (void)binary(g, ops[which], a.name, b.name, a.scalar, &a.shape);
    return true;
}

static bool gen_clamp(generator *g) {
    value a;
    if (!take(g, BIT(LILAC_F32) | BIT(LILAC_F16), &a)) {
        return false;
    }
    int low = small_constant(g, a.scalar, &a.shape, -1);
    int high = small_constant(g, a.scalar, &a.shape, 2);
    put(g, "%%v%d = tt.clampf %%v%d, %%v%d, %%v%d, propagateNan = %s : ", g->next, a.name, low,
        high, below(g, 2) ? "all" : "none");
    (void)end(g, a.scalar, &a.shape);
    return true;
}

static bool gen_compare(generator *g) {
    static const char *const of_integers[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                              "sge", "ult", "ule", "ugt", "uge"};
    static const char *const of_floats[] = {"oeq", "ogt", "oge", "olt", "ole", "one", "ord",
                                            "ueq", "ugt", "uge", "ult", "ule", "une", "uno"};
    value a;
    if (!take(g, INTEGERS | FLOATS, &a)) {
        return false;
    }
    bool is_float = lilac_scalar_is_float(a.scalar);
    int b = pick_same(g, &a)->name;
    put(g, "%%v%d = arith.cmp%s %s, %%v%d, %%v%d : ", g->next, is_float ? "f" : "i",
        is_float ? of_floats[below(g, 14)] : of_integers[below(g, 10)], a.name, b);
    put_type(g, &a.shape, a.scalar);
    put(g, "\n");
    (void)add(g, LILAC_I1, &a.shape);
    return true;
}

static bool gen_select(generator *g) {
    value condition;
    if (!take(g, BIT(LILAC_I1), &condition)) {
        return false;
    }
    const value *v = pick(g, ANYTHING, below(g, 3) ? &condition.shape : NULL);
    if (v == NULL || !(same_shape(&condition.shape, &v->shape) || condition.shape.rank == 0)) {
        return false;
    }
    value a = *v;
    int other = pick_same(g, &a)->name;
    put(g, "%%v%d = arith.select %%v%d, %%v%d, %%v%d : ", g->next, condition.name, a.name, other);
    if (a.shape.rank > 0) {
        put_type(g, &condition.shape, LILAC_I1);
        put(g, ", ");
    }
    (void)end(g, a.scalar, &a.shape);
    return true;
}

static bool gen_cast(generator *g) {
    static const lilac_scalar integers[] = {LILAC_I8, LILAC_I16, LILAC_I32, LILAC_I64};
    static const lilac_scalar floats[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64};
    value a;
    if (!take(g, ANYTHING, &a)) {
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
        (void)cast(g,
                   bits < from_bits ? "arith.trunci"
                   : below(g, 2)    ? "arith.extsi"
                                    : "arith.extui",
                   &a, "to", to);
    } else if (!from_float) {
        (void)cast(g, below(g, 2) ? "arith.sitofp" : "arith.uitofp", &a, "to", to);
    } else if (!to_float) {
        if (bits == from_bits && below(g, 2)) {
            (void)cast(g, "tt.bitcast", &a, "->", to);
        } else {
            (void)cast(g, below(g, 2) ? "arith.fptosi" : "arith.fptoui", &a, "to", to);
        }
    } else if (bits == from_bits) {
        return false;
    } else {
        (void)cast(g, bits < from_bits ? "arith.truncf" : "arith.extf", &a, "to", to);
    }
    return true;
}

/* To a type of 8 bits and back. */
static bool gen_float8(generator *g) {
    value a;
    if (!take_tensor(g, BIT(LILAC_F32) | BIT(LILAC_F16) | BIT(LILAC_BF16), &a)) {
        return false;
    }
    lilac_scalar narrow = below(g, 2) ? LILAC_F8E5M2 : LILAC_F8E4M3FN;
    put(g, "%%v%d = tt.fp_to_fp %%v%d, rounding = rtne : ", g->next, a.name);
    value b = {end_as(g, &a, "->", narrow, &a.shape), narrow, a.shape};
    (void)cast(g, "tt.fp_to_fp", &b, "->", below(g, 2) ? LILAC_F16 : LILAC_F32);
    return true;
}

/* ---- shapes ------------------------------------------------------------------------------ */

static bool gen_reshape(generator *g) {
    value a;
    if (!take_tensor(g, ANYTHING, &a)) {
        return false;
    }
    uint32_t bits = 0;
    while (1U << bits < elements(&a.shape)) {
        bits++;
    }
    shape to = below(g, 2) ? some_shape(g) : random_shape(g, bits);
    if (elements(&to) != elements(&a.shape)) {
        to = random_shape(g, bits);
    }
    (void)move(g, "reshape", &a, "", &to);
    return true;
}

static bool gen_trans(generator *g) {
    value a;
    if (!take_tensor(g, ANYTHING, &a) || a.shape.rank < 2) {
        return false;
    }
    uint32_t order[MOST_RANK] = {0, 1, 2, 3};
    shape to = {a.shape.rank, {0}};
    for (uint32_t i = to.rank; i > 1; i--) {
        uint32_t j = below(g, i), kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
    lilac_text attribute = {0};
    lilac_text_puts(&attribute, " {order = array<i32: ");
    for (uint32_t d = 0; d < to.rank; d++) {
        to.size[d] = a.shape.size[order[d]];
        lilac_text_printf(&attribute, "%s%u", d > 0 ? ", " : "", order[d]);
    }
    lilac_text_puts(&attribute, ">}");
    (void)move(g, "trans", &a, lilac_text_get(&attribute), &to);
    lilac_text_clear(&attribute);
    return true;
}

static bool gen_expand(generator *g) {
    value a;
    if (!take_tensor(g, ANYTHING, &a) || a.shape.rank == MOST_RANK) {
        return false;
    }
    uint32_t axis = below(g, a.shape.rank + 1);
    value wide = expand(g, &a, axis);
    if (below(g, 2) && elements(&wide.shape) * 2 <= g->most_elements) {
        shape to = wide.shape;
        to.size[axis] = 2U << below(g, 2);
        if (elements(&to) <= g->most_elements) {
            (void)move(g, "broadcast", &wide, "", &to);
        }
    }
    return true;
}

static bool gen_join(generator *g) {
    value a;
    if (!take_tensor(g, ANYTHING, &a) || a.shape.rank == MOST_RANK ||
        2 * elements(&a.shape) > g->most_elements) {
        return false;
    }
    int b = pick_same(g, &a)->name;
    shape to = a.shape;
    to.size[to.rank++] = 2;
    put(g, "%%v%d = tt.join %%v%d, %%v%d : ", g->next, a.name, b);
    (void)end_as(g, &a, "->", a.scalar, &to);
    return true;
}

static bool gen_split(generator *g) {
    value a;
    if (!take_tensor(g, ANYTHING, &a) || a.shape.rank < 2 || a.shape.size[a.shape.rank - 1] != 2) {
        return false;
    }
    shape to = a.shape;
    to.rank--;
    put(g, "%%v%d, %%v%d = tt.split %%v%d : ", g->next, g->next + 1, a.name);
    (void)end_as(g, &a, "->", a.scalar, &to);
    (void)add(g, a.scalar, &to);
    return true;
}

/* ---- folds ------------------------------------------------------------------------------- */

static const char *combiner(generator *g, lilac_scalar scalar) {
    static const char *const of_integers[] = {"arith.addi",  "arith.muli",  "arith.andi",
                                              "arith.ori",   "arith.xori",  "arith.minsi",
                                              "arith.maxsi", "arith.minui", "arith.maxui"};
    static const char *const of_floats[] = {"arith.addf",    "arith.addf",     "arith.maxnumf",
                                            "arith.minnumf", "arith.maximumf", "arith.minimumf"};
    return lilac_scalar_is_float(scalar) ? of_floats[below(g, 6)] : of_integers[below(g, 9)];
}

/* The types of a fold; the results, which have one name each, are known. */
static void end_fold(generator *g, const value *from, const value *to, uint32_t count) {
    put(g, "}) : (");
    put_types(g, from, count);
    put(g, count > 1 ? ") -> (" : ") -> ");
    put_types(g, to, count);
    put(g, count > 1 ? ")\n" : "\n");
    for (uint32_t k = 0; k < count; k++) {
        (void)add(g, to[k].scalar, &to[k].shape);
    }
}

/* The region's own values have names of their own. */
static void region_of_pair(generator *g, const value *v, bool linear, const char *leaves) {
    const char *t = lilac_scalar_name(v[0].scalar), *u = lilac_scalar_name(v[1].scalar);
    put(g, "^bb0(%%a: %s, %%b: %s, %%c: %s, %%d: %s):\n", t, u, t, u);
    if (linear) { /* x ↦ a x + b, composed */
        put(g, "%%e = arith.muli %%c, %%a : %s\n%%f = arith.muli %%c, %%b : %s\n", t, t);
        put(g, "%%g = arith.addi %%f, %%d : %s\n", t);
        put(g, "%s %%e, %%g : %s, %s\n", leaves, t, u);
        return;
    }
    /* the largest with the smallest index */
    put(g, "%%e = arith.cmpi sgt, %%a, %%c : %s\n%%f = arith.cmpi eq, %%a, %%c : %s\n", t, t);
    put(g, "%%g = arith.cmpi slt, %%b, %%d : %s\n%%h = arith.andi %%f, %%g : i1\n", u);
    put(g, "%%i = arith.ori %%e, %%h : i1\n%%j = arith.select %%i, %%a, %%c : %s\n", t);
    put(g, "%%k = arith.select %%i, %%b, %%d : %s\n%s %%j, %%k : %s, %s\n", u, leaves, t, u);
}

static bool fold_along(generator *g, bool scan, bool several, const value *first, uint32_t axis) {
    value v[2] = {*first, *pick_same(g, first)};
    bool linear = several && scan && below(g, 2);
    if (several && !linear) {
        const value *index = pick(g, BIT(LILAC_I32), &v[0].shape);
        if (index == NULL) {
            return false;
        }
        v[1] = *index;
    }
    uint32_t count = several ? 2 : 1;
    value to[2] = {v[0], v[1]};
    for (uint32_t k = 0; k < count && !scan; k++) {
        shape *s = &to[k].shape;
        memmove(s->size + axis, s->size + axis + 1, (--s->rank - axis) * sizeof *s->size);
    }
    const char *leaves = scan ? "tt.scan.return" : "tt.reduce.return";
    put(g, count > 1 ? "%%v%d, %%v%d = " : "%%v%d = ", g->next, g->next + 1);
    put(g, "\"%s\"(%%v%d", scan ? "tt.scan" : "tt.reduce", v[0].name);
    if (several)
        put(g, ", %%v%d", v[1].name);
    put(g, ") <{axis = %u : i32", axis);
    if (scan)
        put(g, ", reverse = %s", below(g, 3) ? "false" : "true");
    put(g, "}> ({\n");
    if (several) {
        region_of_pair(g, v, linear, leaves);
    } else {
        const char *t = lilac_scalar_name(v[0].scalar);
        put(g, "^bb0(%%a: %s, %%b: %s):\n%%c = %s %%a, %%b : %s\n%s %%c : %s\n", t, t,
            combiner(g, v[0].scalar), t, leaves, t);
    }
    end_fold(g, v, to, count);
    return true;
}

static bool fold(generator *g, bool scan, bool several) {
    value first;
    if (!take_tensor(g, several ? INTEGERS : INTEGERS | FLOATS, &first)) {
        return false;
    }
    return fold_along(g, scan, several, &first, below(g, first.shape.rank));
}

static bool gen_reduce(generator *g) {
    return fold(g, false, false);
}

/* Some of one value along one axis, which become one. */
static bool gen_reduces(generator *g) {
    value first;
    if (!take_tensor(g, INTEGERS | FLOATS, &first)) {
        return false;
    }
    uint32_t axis = below(g, first.shape.rank), made = 0;
    for (uint32_t count = 2 + below(g, 2); count > 0; count--) {
        bool several = !lilac_scalar_is_float(first.scalar) && below(g, 2);
        made += fold_along(g, false, several, &first, axis);
    }
    return made > 0;
}

static bool gen_reduce_pair(generator *g) {
    return fold(g, false, true);
}

static bool gen_scan(generator *g) {
    return fold(g, true, false);
}

static bool gen_scan_pair(generator *g) {
    return fold(g, true, true);
}

static bool gen_gather(generator *g) {
    value source;
    if (!take_tensor(g, INTEGERS | FLOATS, &source)) {
        return false;
    }
    const value *i = NULL;
    for (int attempt = 0; attempt < 6 && i == NULL; attempt++) {
        i = pick(g, BIT(LILAC_I32) | BIT(LILAC_I64), below(g, 2) ? NULL : &source.shape);
        if (i != NULL && i->shape.rank != source.shape.rank) {
            i = NULL;
        }
    }
    if (i == NULL) {
        return false;
    }
    /* The index agrees with the source off the axis. */
    uint32_t axis = below(g, source.shape.rank);
    for (uint32_t d = 0; d < source.shape.rank; d++) {
        if (d != axis && i->shape.size[d] != source.shape.size[d]) {
            return false;
        }
    }
    value index = *i;
    int limit = small_constant(g, index.scalar, &index.shape, source.shape.size[axis] - 1);
    int inside = binary(g, "arith.andi", index.name, limit, index.scalar, &index.shape);
    static const char *const ways[] = {
        "", "", "", "", ", lilac.movement = \"shared\"", ", lilac.movement = \"unswizzled\""};
    put(g, "%%v%d = tt.gather %%v%d[%%v%d] {axis = %u : i32%s} : ", g->next, source.name, inside,
        axis, ways[below(g, sizeof ways / sizeof *ways)]);
    (void)end_function(g, (value[]){source, index}, 2, source.scalar, &index.shape);
    return true;
}

static bool gen_histogram(generator *g) {
    value a;
    if (!take_tensor(g, BIT(LILAC_I32), &a) || a.shape.rank != 1) {
        return false;
    }
    shape bins = {1, {8U << below(g, 5), 0, 0, 0}};
    int limit = small_constant(g, LILAC_I32, &a.shape, bins.size[0] - 1);
    int inside = binary(g, "arith.andi", a.name, limit, LILAC_I32, &a.shape);
    const value *mask = below(g, 2) ? pick(g, BIT(LILAC_I1), &a.shape) : NULL;
    put(g, "%%v%d = tt.histogram %%v%d", g->next, inside);
    if (mask != NULL)
        put(g, ", %%v%d", mask->name);
    put(g, " : ");
    (void)end_as(g, &a, "->", LILAC_I32, &bins);
    return true;
}

/* Concatenation may come in any order, so it is looked at through a sum. */
static bool gen_cat(generator *g) {
    value a;
    if (!take_tensor(g, INTEGERS, &a) || a.shape.rank != 1 ||
        2 * elements(&a.shape) > g->most_elements) {
        return false;
    }
    int b = pick_same(g, &a)->name, name = g->next++;
    value to = {name, a.scalar, {1, {2 * a.shape.size[0], 0, 0, 0}}};
    const char *t = lilac_scalar_name(a.scalar);
    put(g, "%%v%d = tt.cat %%v%d, %%v%d : ", name, a.name, b);
    put_type(g, &a.shape, a.scalar);
    put(g, " -> ");
    put_type(g, &to.shape, a.scalar);
    put(g, "\n%%v%d = \"tt.reduce\"(%%v%d) <{axis = 0 : i32}> ({\n", g->next, name);
    put(g, "^bb0(%%a: %s, %%b: %s):\n%%c = arith.addi %%a, %%b : %s\n", t, t, t);
    put(g, "tt.reduce.return %%c : %s\n", t);
    end_fold(g, &to, &(value){.scalar = a.scalar}, 1);
    return true;
}

/* ---- atomics ----------------------------------------------------------------------------- */

static bool gen_atomic(generator *g) {
    static const char *const of_integers[] = {"add", "and", "or",   "xor",
                                              "max", "min", "umax", "umin"};
    if (g->stores >= MOST_STORES - 3 || g->depth > 0) {
        return false;
    }
    value a;
    if (!take_tensor(g, BIT(LILAC_I32) | BIT(LILAC_I64) | BIT(LILAC_F32), &a)) {
        return false;
    }
    bool is_float = lilac_scalar_is_float(a.scalar), meet = below(g, 2);
    int p = output(g, a.scalar, elements(&a.shape));
    int index = flat_index(g, &a.shape, 1), offset;
    if (meet) { /* several elements at an address; what was there is not looked at */
        int few = small_constant(g, LILAC_I32, &a.shape, 7);
        offset = binary(g, "arith.andi", index, few, LILAC_I32, &a.shape);
    } else {
        offset = own_offset(g, index, &a.shape);
    }
    int pointer = pointers(g, p, a.scalar, &a.shape, offset);
    int mask =
        below(g, 2) ? some_mask(g, &a.shape, index) : small_constant(g, LILAC_I1, &a.shape, 1);
    int name = g->next++;
    put(g, "%%v%d = tt.atomic_rmw %s, acq_rel, gpu, %%v%d, %%v%d, %%v%d : (", name,
        is_float ? "fadd" : of_integers[below(g, 8)], pointer, a.name, mask);
    put_pointer_type(g, &a.shape, a.scalar);
    put(g, ", ");
    put_type(g, &a.shape, a.scalar);
    put(g, ", ");
    put_type(g, &a.shape, LILAC_I1);
    put(g, ") -> ");
    put_type(g, &a.shape, a.scalar);
    put(g, "\n");
    if (!meet) {
        int none = small_constant(g, a.scalar, &a.shape, 0);
        put(g, "%%v%d = arith.select %%v%d, %%v%d, %%v%d : ", g->next, mask, name, none);
        put_type(g, &a.shape, LILAC_I1);
        put(g, ", ");
        (void)end(g, a.scalar, &a.shape);
    }
    return true;
}

/* ---- control ----------------------------------------------------------------------------- */

static void block(generator *g, uint32_t length);

static int some_condition(generator *g) {
    const value *v = pick(g, BIT(LILAC_I1), &scalar_shape);
    if (v != NULL) {
        return v->name;
    }
    int id = g->next;
    put(g, "%%v%d = tt.get_program_id x : i32\n", id);
    (void)add(g, LILAC_I32, &scalar_shape);
    const value *n = pick(g, BIT(LILAC_I32), &scalar_shape);
    return compare_less(g, id, n->name, &scalar_shape);
}

static void yield(generator *g, const char *op, const value *carried, uint32_t count) {
    int names[2] = {0, 0};
    for (uint32_t k = 0; k < count; k++) {
        names[k] = pick_same(g, &carried[k])->name;
    }
    put(g, "%s", op);
    for (uint32_t k = 0; k < count; k++) {
        put(g, "%s%%v%d", k > 0 ? ", " : " ", names[k]);
    }
    put(g, " : ");
    put_types(g, carried, count);
    put(g, "\n");
}

/* What is known where a region begins is what is known behind it. */
typedef struct scope {
    uint32_t count;
    value values[MOST_VALUES];
} scope;

static void enter(generator *g, scope *outside) {
    outside->count = g->count;
    memcpy(outside->values, g->values, sizeof g->values);
    g->depth++;
}

static void leave(generator *g, const scope *outside) {
    g->count = outside->count;
    memcpy(g->values, outside->values, sizeof g->values);
    g->depth--;
}

static bool gen_if(generator *g) {
    if (g->depth >= 2) {
        return false;
    }
    const value *a = pick(g, ANYTHING, below(g, 5) ? NULL : &scalar_shape);
    if (a == NULL) {
        return false;
    }
    value carried = *a;
    int condition = some_condition(g), name = g->next++;
    put(g, "%%v%d = scf.if %%v%d -> (", name, condition);
    put_type(g, &carried.shape, carried.scalar);
    put(g, ") {\n");
    for (int side = 0; side < 2; side++) {
        scope outside;
        enter(g, &outside);
        block(g, 1 + below(g, 4));
        yield(g, "scf.yield", &carried, 1);
        put(g, side == 0 ? "} else {\n" : "}\n");
        leave(g, &outside);
    }
    add_named(g, name, carried.scalar, &carried.shape);
    return true;
}

static bool gen_for(generator *g) {
    if (g->depth >= 2) {
        return false;
    }
    const value *a = pick(g, ANYTHING, below(g, 5) ? NULL : &scalar_shape);
    const value *b = pick(g, ANYTHING, NULL);
    if (a == NULL || b == NULL) {
        return false;
    }
    value carried[2] = {*a, *b};
    uint32_t n = 1 + below(g, 2);
    int low = small_constant(g, LILAC_I32, &scalar_shape, below(g, 3));
    int high = small_constant(g, LILAC_I32, &scalar_shape, below(g, 5));
    const value *limit = below(g, 2) ? pick(g, BIT(LILAC_I32), &scalar_shape) : NULL;
    if (limit != NULL) {
        int few = small_constant(g, LILAC_I32, &scalar_shape, 3);
        high = binary(g, "arith.andi", limit->name, few, LILAC_I32, &scalar_shape);
    }
    int step = small_constant(g, LILAC_I32, &scalar_shape, 1 + below(g, 2));
    int counter = g->next++, inner = g->next, result = g->next + 2;
    g->next += 4;
    for (uint32_t k = 0; k < n; k++) {
        put(g, "%s%%v%d", k > 0 ? ", " : "", result + (int)k);
    }
    put(g, " = scf.for %%v%d = %%v%d to %%v%d step %%v%d iter_args(", counter, low, high, step);
    for (uint32_t k = 0; k < n; k++) {
        put(g, "%s%%v%d = %%v%d", k > 0 ? ", " : "", inner + (int)k, carried[k].name);
    }
    put(g, ") -> (");
    put_types(g, carried, n);
    put(g, ") : i32 {\n");
    scope outside;
    enter(g, &outside);
    add_named(g, counter, LILAC_I32, &scalar_shape);
    for (uint32_t k = 0; k < n; k++) {
        add_named(g, inner + (int)k, carried[k].scalar, &carried[k].shape);
    }
    block(g, 1 + below(g, 6));
    yield(g, "scf.yield", carried, n);
    put(g, "}\n");
    leave(g, &outside);
    for (uint32_t k = 0; k < n; k++) {
        add_named(g, result + (int)k, carried[k].scalar, &carried[k].shape);
    }
    return true;
}

static bool gen_while(generator *g) {
    if (g->depth >= 2) {
        return false;
    }
    value carried;
    if (!take_tensor(g, ANYTHING, &carried)) {
        return false;
    }
    int zero = small_constant(g, LILAC_I32, &scalar_shape, 0);
    int limit = small_constant(g, LILAC_I32, &scalar_shape, below(g, 4));
    int one = small_constant(g, LILAC_I32, &scalar_shape, 1);
    int n = g->next;
    g->next += 9;
    put(g, "%%v%d, %%v%d = scf.while (%%v%d = %%v%d, %%v%d = %%v%d) : (i32, ", n, n + 1, n + 2,
        zero, n + 3, carried.name);
    put_type(g, &carried.shape, carried.scalar);
    put(g, ") -> (i32, ");
    put_type(g, &carried.shape, carried.scalar);
    put(g, ") {\n%%v%d = arith.cmpi slt, %%v%d, %%v%d : i32\n", n + 4, n + 2, limit);
    put(g, "scf.condition(%%v%d) %%v%d, %%v%d : i32, ", n + 4, n + 2, n + 3);
    put_type(g, &carried.shape, carried.scalar);
    put(g, "\n} do {\n^bb0(%%v%d: i32, %%v%d: ", n + 5, n + 6);
    put_type(g, &carried.shape, carried.scalar);
    put(g, "):\n");
    scope outside;
    enter(g, &outside);
    add_named(g, n + 6, carried.scalar, &carried.shape);
    block(g, 1 + below(g, 5));
    put(g, "%%v%d = arith.addi %%v%d, %%v%d : i32\n", n + 7, n + 5, one);
    int last = pick_same(g, &carried)->name;
    put(g, "scf.yield %%v%d, %%v%d : i32, ", n + 7, last);
    put_type(g, &carried.shape, carried.scalar);
    put(g, "\n}\n");
    leave(g, &outside);
    add_named(g, n + 1, carried.scalar, &carried.shape);
    return true;
}

/* A function that is not inlined: a few operations on one type. */
static bool gen_call(generator *g) {
    value a;
    if (!take(g, INTEGERS, &a)) {
        return false;
    }
    value b = *pick_same(g, &a);
    uint32_t which = g->helpers++;
    lilac_text *out = g->out, type = {0};
    g->out = &type;
    put_type(g, &a.shape, a.scalar);
    const char *t = lilac_text_get(&type);
    g->out = &g->functions;
    put(g, "tt.func private @helper%u(%%a: %s, %%b: %s) -> %s", which, t, t, t);
    put(g, " attributes {noinline = true} {\n%%c = arith.muli %%a, %%b : %s\n", t);
    put(g, "%%d = arith.xori %%c, %%a : %s\ntt.return %%d : %s\n}\n", t, t);
    lilac_text_clear(&type);
    g->out = out;
    put(g, "%%v%d = tt.call @helper%u(%%v%d, %%v%d) : ", g->next, which, a.name, b.name);
    (void)end_function(g, (value[]){a, b}, 2, a.scalar, &a.shape);
    return true;
}

static bool gen_map(generator *g) {
    value a;
    if (!take_tensor(g, INTEGERS, &a)) {
        return false;
    }
    value b = *pick_same(g, &a);
    const char *t = lilac_scalar_name(a.scalar);
    put(g, "%%v%d = \"tt.map_elementwise\"(%%v%d, %%v%d) <{pack = 1 : i32}> ({\n", g->next, a.name,
        b.name);
    put(g, "^bb0(%%a: %s, %%b: %s):\n%%c = arith.cmpi slt, %%a, %%b : %s\n", t, t, t);
    put(g, "%%d = scf.if %%c -> (%s) {\n%%e = arith.subi %%b, %%a : %s\nscf.yield %%e : %s\n", t, t,
        t);
    put(g, "} else {\nscf.yield %%b : %s\n}\ntt.map_elementwise.return %%d : %s\n}) : ", t, t);
    (void)end_function(g, (value[]){a, b}, 2, a.scalar, &a.shape);
    return true;
}

/* ---- programs ---------------------------------------------------------------------------- */

typedef struct feature {
    const char *name;
    uint32_t weight;
    bool (*generate)(generator *g); /* or */
    const elementwise *kind;
} feature;

static const feature features[] = {
    {"load", 8, gen_load, NULL},
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
    {"reshape", 4, gen_reshape, NULL},
    {"trans", 4, gen_trans, NULL},
    {"expand and broadcast", 4, gen_expand, NULL},
    {"join", 3, gen_join, NULL},
    {"split", 3, gen_split, NULL},
    {"reduce", 5, gen_reduce, NULL},
    {"reduce of two", 2, gen_reduce_pair, NULL},
    {"reduces of one", 2, gen_reduces, NULL},
    {"scan", 4, gen_scan, NULL},
    {"scan of two", 2, gen_scan_pair, NULL},
    {"gather", 3, gen_gather, NULL},
    {"histogram", 2, gen_histogram, NULL},
    {"cat", 1, gen_cat, NULL},
    {"atomic", 2, gen_atomic, NULL},
    {"if", 3, gen_if, NULL},
    {"for", 3, gen_for, NULL},
    {"while", 2, gen_while, NULL},
    {"call", 1, gen_call, NULL},
    {"map_elementwise", 1, gen_map, NULL},
    {"store", 2, gen_store, NULL},
};
enum { FEATURES = sizeof features / sizeof *features };

const char *program_feature(uint32_t index) {
    return index < FEATURES ? features[index].name : NULL;
}

static void block(generator *g, uint32_t length) {
    uint32_t total = 0;
    for (uint32_t i = 0; i < FEATURES; i++) {
        total += g->features >> i & 1 ? features[i].weight : 0;
    }
    for (uint32_t i = 0, attempts = 0; i < length && attempts < 20 * length + 20; attempts++) {
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

void program_generate(program *p, program_choices *choices, uint64_t wanted, uint32_t most) {
    memset(p, 0, sizeof *p);
    generator *g = lilac_heap_grow(NULL, sizeof *g);
    memset(g, 0, sizeof *g);
    lilac_text body = {0};
    g->program = p;
    g->choices = choices;
    g->out = &body;
    g->features = wanted;
    p->warps = 1U << below(g, below(g, 3) ? 4 : 6);
    p->programs = below(g, 3) ? 1 : 2;
    p->data_seed = below(g, 1 << 16);
    p->parameter_count = INPUTS + MOST_STORES + 2;
    uint32_t bits = 4 + below(g, 7);
    g->most_elements = 2U << bits;
    for (uint32_t i = 0; i < 3; i++) {
        g->usual[i] = random_shape(g, i == 2 && bits > 4 ? bits - 1 - below(g, 3) : bits);
    }
    for (uint32_t i = 0; i < INPUTS; i++) {
        p->parameters[i] = (program_parameter){
            .scalar = inputs[i], .is_buffer = true, .count = 2 * INPUT_ELEMENTS};
    }
    g->next = INPUTS + MOST_STORES;
    for (uint32_t i = 0; i < 2; i++) {
        p->parameters[g->next] =
            (program_parameter){.scalar = LILAC_I32, .bits = below(g, i == 0 ? 1U << bits : 7)};
        (void)add(g, LILAC_I32, &scalar_shape);
    }
    (void)gen_load(g);
    block(g, 1 + below(g, most));
    for (int i = 0; i < 4; i++) {
        const value *v = pick(g, ANYTHING, i < 3 ? NULL : &scalar_shape);
        if (v != NULL) {
            store_value(g, v, below(g, 4) == 0);
        }
    }
    lilac_text_puts(&p->text, "module {\ntt.func public @k(");
    for (uint32_t i = 0; i < p->parameter_count; i++) {
        const program_parameter *q = &p->parameters[i];
        lilac_text_printf(&p->text, i > 0 ? ", %%v%u: " : "%%v%u: ", i);
        if (i < INPUTS + MOST_STORES) {
            lilac_text_printf(&p->text, "!tt.ptr<%s> {tt.divisibility = 16 : i32}",
                              lilac_scalar_name(q->is_buffer ? q->scalar : LILAC_I32));
        } else {
            lilac_text_puts(&p->text, "i32");
        }
    }
    for (uint32_t i = INPUTS + g->stores; i < INPUTS + MOST_STORES; i++) {
        p->parameters[i] = (program_parameter){
            .scalar = LILAC_I32, .is_buffer = true, .is_output = true, .count = 1};
    }
    lilac_text_puts(&p->text, ") {\n");
    lilac_text_put(&p->text, body.bytes, body.length);
    lilac_text_puts(&p->text, "tt.return\n}\n");
    lilac_text_put(&p->text, lilac_text_get(&g->functions), g->functions.length);
    lilac_text_puts(&p->text, "}\n");
    lilac_text_clear(&body);
    lilac_text_clear(&g->functions);
    lilac_heap_free(g);
}

void program_clear(program *p) {
    lilac_text_clear(&p->text);
}
