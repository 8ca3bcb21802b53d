/* Random programs with matrix products.
 *
 * A program has three sizes; M, N and K of each product are among them, so the result of one may be an
 * operand of another. An operand is loaded, computed element by element, transposed, the result of an
 * earlier operation, or converted from another type. An accumulator is a constant, a value at hand, or
 * carried by a loop. The other operations are those of all random programs, on the same shapes. */
#include "random_generator.h"

typedef struct product_types {
    lilac_scalar a, b, d;
    bool has_precision;
} product_types;

static const product_types types[] = {
    {LILAC_F16, LILAC_F16, LILAC_F32, false},
    {LILAC_F16, LILAC_F16, LILAC_F32, false},
    {LILAC_F16, LILAC_F16, LILAC_F16, false},
    {LILAC_BF16, LILAC_BF16, LILAC_F32, false},
    {LILAC_F32, LILAC_F32, LILAC_F32, true},
    {LILAC_F32, LILAC_F32, LILAC_F32, true},
    {LILAC_F64, LILAC_F64, LILAC_F64, false},
    {LILAC_I8, LILAC_I8, LILAC_I32, false},
    {LILAC_I8, LILAC_I8, LILAC_I32, false},
    {LILAC_F8E5M2, LILAC_F8E5M2, LILAC_F32, false},
    {LILAC_F8E4M3FN, LILAC_F8E4M3FN, LILAC_F32, false},
    {LILAC_F8E4M3FN, LILAC_F8E5M2, LILAC_F32, false},
    {LILAC_F8E5M2, LILAC_F8E5M2, LILAC_F16, false},
    {LILAC_F8E4M3B11FNUZ, LILAC_F8E4M3B11FNUZ, LILAC_F32, false},
    {LILAC_F8E4M3FN, LILAC_F16, LILAC_F32, false},
};

/* ---- operands ---------------------------------------------------------------------------- */

/* The offset of every element of a matrix: its row-major index if that is inside the buffers, or rows
 * that overlap. `base`: a scalar to add; below 0: none. */
static int offsets(generator *g, const shape *s, int base) {
    int sum;
    if (elements(s) <= INPUT_ELEMENTS) {
        sum = program_flat_index(g, s, 1);
    } else {
        const uint32_t stride = 32;
        sum = program_along(g, s, s->rank - 1);
        for (uint32_t d = 0; d + 1 < s->rank; d++) {
            int index = program_along(g, s, d);
            int by = program_small_constant(g, LILAC_I32, s, d + 2 == s->rank ? stride : 48);
            index = program_binary(g, "arith.muli", index, by, LILAC_I32, s);
            sum = program_binary(g, "arith.addi", sum, index, LILAC_I32, s);
        }
    }
    if (base >= 0) {
        int all = program_splat(g, base, LILAC_I32, s);
        sum = program_binary(g, "arith.addi", sum, all, LILAC_I32, s);
    }
    return sum;
}

static value load(generator *g, lilac_scalar scalar, const shape *s, int base) {
    uint32_t parameter = 0;
    while (inputs[parameter] != scalar) {
        parameter++;
    }
    int pointer = program_pointers(g, (int)parameter, scalar, s, offsets(g, s, base));
    program_put(g, "%%v%d = tt.load %%v%d : ", g->next, pointer);
    program_put_pointer_type(g, s, scalar);
    program_put(g, "\n");
    return (value){program_add(g, scalar, s), scalar, *s};
}

static value constant_times(generator *g, const value *v, const char *op, int number) {
    value by = {program_small_constant(g, v->scalar, &v->shape, number), v->scalar, v->shape};
    return (value){program_binary(g, op, v->name, by.name, v->scalar, &v->shape), v->scalar,
                   v->shape};
}

/* A float as another one. */
static value converted(generator *g, const value *v, lilac_scalar to) {
    const uint32_t before = lilac_scalar_bits(v->scalar), after = lilac_scalar_bits(to);
    value from = *v;
    if (from.scalar == to) {
        return from;
    }
    if (before == after || (after == 8 && before == 64)) {
        from = converted(g, v, LILAC_F32);
        return converted(g, &from, to);
    }
    if (after == 8) {
        program_put(g, "%%v%d = tt.fp_to_fp %%v%d, rounding = rtne : ", g->next, from.name);
        return (value){program_end_as(g, &from, "->", to, &from.shape), to, from.shape};
    }
    const char *op = before == 8 ? "tt.fp_to_fp" : before < after ? "arith.extf" : "arith.truncf";
    return (value){program_cast(g, op, &from, before == 8 ? "->" : "to", to), to, from.shape};
}

/* An integer in 8 bits, or a float of the type. */
static value as_type(generator *g, const value *v, lilac_scalar to) {
    if (lilac_scalar_is_float(to)) {
        return converted(g, v, to);
    }
    return v->scalar == to ? *v
                           : (value){program_cast(g, "arith.trunci", v, "to", to), to, v->shape};
}

/* A tensor that is loaded in this or another type. */
static value loaded(generator *g, lilac_scalar scalar, const shape *s, int base) {
    const bool is_input = lilac_scalar_bits(scalar) > 8 || scalar == LILAC_I8;
    const lilac_scalar other = lilac_scalar_is_float(scalar) ? LILAC_F16 : LILAC_I16;
    value v = load(g, is_input && below(g, 6) != 0 ? scalar : other, s, base);
    if (lilac_scalar_is_float(scalar) && below(g, 2) == 0) {
        v = constant_times(g, &v, "arith.divf", 1 << 2 * below(g, 3));
    } else if (below(g, 4) == 0) {
        bool is_float = lilac_scalar_is_float(scalar);
        v = constant_times(g, &v, is_float ? "arith.maximumf" : "arith.maxsi", 0);
    }
    return as_type(g, &v, scalar);
}

/* A value at hand of the same kind of numbers. */
static const value *at_hand(generator *g, lilac_scalar scalar, const shape *s) {
    const uint32_t wide = lilac_scalar_is_float(scalar) ? FLOATS : INTEGERS;
    return program_pick(g, below(g, 2) ? wide : BIT(scalar), s);
}

static value operand(generator *g, lilac_scalar scalar, const shape *s, int base) {
    const uint32_t way = below(g, 6);
    const value *v = way < 2 && base < 0 ? at_hand(g, scalar, s) : NULL;
    if (v != NULL) {
        return as_type(g, v, scalar);
    }
    if (way > 3) {
        return loaded(g, scalar, s, base);
    }
    shape other = *s;
    other.size[s->rank - 1] = s->size[s->rank - 2];
    other.size[s->rank - 2] = s->size[s->rank - 1];
    value before = loaded(g, scalar, &other, base);
    const char *order =
        s->rank == 2 ? " {order = array<i32: 1, 0>}" : " {order = array<i32: 0, 2, 1>}";
    return (value){program_move(g, "trans", &before, order, s), scalar, *s};
}

static value accumulator(generator *g, lilac_scalar scalar, const shape *s) {
    const value *v = below(g, 2) ? program_pick(g, BIT(scalar), s) : NULL;
    if (v != NULL) {
        return *v;
    }
    return (value){program_small_constant(g, scalar, s, below(g, 3) ? 0 : 3), scalar, *s};
}

/* ---- products ---------------------------------------------------------------------------- */

typedef struct matrix_product {
    const product_types *types;
    shape a, b, d;
    const char *precision;
    bool scaled;
} matrix_product;

static shape matrix_shape(const generator *g, bool batched, uint32_t rows, uint32_t columns) {
    return batched ? (shape){3, {g->batch, rows, columns}} : (shape){2, {rows, columns}};
}

static void put_product_type(generator *g, const value *v, const value *scale) {
    program_put_type(g, &v->shape, v->scalar);
    if (scale != NULL) {
        program_put(g, ", ");
        program_put_type(g, &scale->shape, scale->scalar);
    }
}

static int write_dot(generator *g, const matrix_product *m, const value *c, int base) {
    value a = operand(g, m->types->a, &m->a, base), b = operand(g, m->types->b, &m->b, base);
    program_put(g, "%%v%d = tt.dot %%v%d, %%v%d, %%v%d", g->next, a.name, b.name, c->name);
    if (m->precision != NULL) {
        program_put(g, ", inputPrecision = %s", m->precision);
    }
    program_put(g, " : ");
    put_product_type(g, &a, NULL);
    program_put(g, " * ");
    put_product_type(g, &b, NULL);
    program_put(g, " -> ");
    return program_end(g, c->scalar, &c->shape);
}

/* ---- scaled products --------------------------------------------------------------------- */

typedef struct scaled_side {
    value v, scale;
    bool has_scale, other_pack; /* packed along M or N */
    const char *name;
} scaled_side;

/* Mostly scales near one. */
static value scale_of(generator *g, const shape *s) {
    value v = load(g, LILAC_I8, s, -1);
    if (below(g, 10) == 0) {
        return v;
    }
    v = constant_times(g, &v, "arith.andi", 7);
    return constant_times(g, &v, "arith.addi", 123);
}

/* `s`: the shape of the numbers. The scales are [M, K / group] or [N, K / group]. */
static void make_side(generator *g, scaled_side *side, const shape *s, uint32_t index,
                      uint32_t group) {
    static const struct {
        const char *name;
        lilac_scalar scalar;
    } rows[] = {{"e2m1", LILAC_I8},
                {"e4m3", LILAC_F8E4M3FN},
                {"e5m2", LILAC_F8E5M2},
                {"bf16", LILAC_BF16},
                {"fp16", LILAC_F16}};
    const uint32_t row = below(g, 5), k = s->rank - (index == 0 ? 1 : 2);
    const uint32_t other = 2 * s->rank - 3 - k;
    shape stored = *s, scales = *s;
    *side = (scaled_side){.name = rows[row].name, .has_scale = below(g, 4) != 0};
    if (row == 0) {
        side->other_pack = s->size[other] > 1 && below(g, 3) == 0;
        stored.size[side->other_pack ? other : k] /= 2;
        side->v = load(g, LILAC_I8, &stored, -1);
    } else {
        side->v = loaded(g, rows[row].scalar, s, -1);
    }
    if (side->has_scale) {
        scales.size[s->rank - 2] = s->size[other];
        scales.size[s->rank - 1] = s->size[k] / group;
        side->scale = scale_of(g, &scales);
    }
}

static int write_scaled(generator *g, const matrix_product *m, const value *c) {
    scaled_side sides[2];
    const uint32_t group = below(g, 3) ? 32 : 16;
    make_side(g, &sides[0], &m->a, 0, group);
    make_side(g, &sides[1], &m->b, 1, group);
    program_put(g, "%%v%d = tt.dot_scaled ", g->next);
    for (uint32_t i = 0; i < 2; i++) {
        program_put(g, "%%v%d", sides[i].v.name);
        if (sides[i].has_scale) {
            program_put(g, " scale %%v%d", sides[i].scale.name);
        }
        program_put(g, ", ");
    }
    program_put(g, "%%v%d lhs = %s rhs = %s {fastMath = %s%s%s} : ", c->name, sides[0].name,
                sides[1].name, below(g, 4) ? "false" : "true",
                sides[0].other_pack ? ", lhs_k_pack = false" : "",
                sides[1].other_pack ? ", rhs_k_pack = false" : "");
    put_product_type(g, &sides[0].v, sides[0].has_scale ? &sides[0].scale : NULL);
    program_put(g, " * ");
    put_product_type(g, &sides[1].v, sides[1].has_scale ? &sides[1].scale : NULL);
    program_put(g, " -> ");
    return program_end(g, c->scalar, &c->shape);
}

static int write_product(generator *g, const matrix_product *m, const value *c, int base) {
    return m->scaled ? write_scaled(g, m, c) : write_dot(g, m, c, base);
}

/* ---- loops ------------------------------------------------------------------------------- */

/* A loop that accumulates up to four products, of operands that it loads at advancing places. */
static int write_loop(generator *g, const matrix_product *m, const value *c) {
    int low = program_small_constant(g, LILAC_I32, &scalar_shape, 0);
    int high = program_small_constant(g, LILAC_I32, &scalar_shape, below(g, 5));
    const value *limit = below(g, 2) ? program_pick(g, BIT(LILAC_I32), &scalar_shape) : NULL;
    if (limit != NULL) {
        int few = program_small_constant(g, LILAC_I32, &scalar_shape, 3);
        high = program_binary(g, "arith.andi", limit->name, few, LILAC_I32, &scalar_shape);
    }
    int step = program_small_constant(g, LILAC_I32, &scalar_shape, 1);
    int counter = g->next, carried = g->next + 1, result = g->next + 2;
    g->next += 3;
    program_put(g,
                "%%v%d = scf.for %%v%d = %%v%d to %%v%d step %%v%d iter_args(%%v%d = %%v%d) -> (",
                result, counter, low, high, step, carried, c->name);
    program_put_type(g, &c->shape, c->scalar);
    program_put(g, ") : i32 {\n");
    scope outside;
    program_enter(g, &outside);
    program_add_named(g, counter, LILAC_I32, &scalar_shape);
    program_add_named(g, carried, c->scalar, &c->shape);
    int by = program_small_constant(g, LILAC_I32, &scalar_shape, 16);
    int base = program_binary(g, "arith.muli", counter, by, LILAC_I32, &scalar_shape);
    value inner = {carried, c->scalar, c->shape};
    if (lilac_scalar_is_float(c->scalar) && below(g, 4) == 0) { /* the accumulator is scaled */
        inner = constant_times(g, &inner, "arith.mulf", 2);
    }
    inner.name = write_product(g, m, &inner, below(g, 3) ? base : -1);
    if (below(g, 3) == 0) {
        program_block(g, 1 + below(g, 2));
    }
    program_put(g, "scf.yield %%v%d : ", inner.name);
    program_put_type(g, &c->shape, c->scalar);
    program_put(g, "\n}\n");
    program_leave(g, &outside);
    program_add_named(g, result, c->scalar, &c->shape);
    return result;
}

bool program_gen_dot(generator *g) {
    static const char *const precisions[] = {NULL, "tf32", "tf32", "tf32x3", "bf16x3", "bf16x6"};
    static const product_types of_scaled = {LILAC_F16, LILAC_F16, LILAC_F32, false};
    matrix_product p = {.types = &types[below(g, sizeof types / sizeof *types)]};
    const bool batched = below(g, 6) == 0;
    const uint32_t m = g->sizes[below(g, 3)], n = g->sizes[below(g, 3)];
    uint32_t k = g->sizes[below(g, 3)];
    p.scaled = g->scaled_dots && below(g, 2);
    if (p.scaled) {
        p.types = &of_scaled;
        k = k < 32 ? 32 : k;
    }
    p.a = matrix_shape(g, batched, m, k);
    p.b = matrix_shape(g, batched, k, n);
    p.d = matrix_shape(g, batched, m, n);
    if ((uint64_t)elements(&p.d) * k > 1U << 18) {
        return false;
    }
    p.precision = p.types->has_precision ? precisions[below(g, 6)] : NULL;
    value c = accumulator(g, p.types->d, &p.d);
    value made = {0, c.scalar, c.shape};
    made.name = g->depth < 2 && below(g, 2) ? write_loop(g, &p, &c) : write_product(g, &p, &c, -1);
    if (g->depth == 0) {
        g->products[g->product_count++ % MOST_PRODUCTS] = made;
    }
    return true;
}

void program_generate_dots(program *p, program_choices *choices, uint64_t features, uint32_t most,
                           bool scaled) {
    generator *g = program_open(p, choices, features);
    g->dots = true;
    g->scaled_dots = scaled;
    p->plain_data = below(g, 4) != 0;
    for (uint32_t i = 0; i < 3; i++) {
        g->sizes[i] = 1U << (below(g, 3) ? 4 + below(g, 3) : below(g, 8));
    }
    g->batch = 1U << below(g, 3);
    g->usual[0] = matrix_shape(g, false, g->sizes[0], g->sizes[1]);
    g->usual[1] = matrix_shape(g, false, g->sizes[1], g->sizes[2]);
    g->usual[2] = matrix_shape(g, false, g->sizes[2], g->sizes[0]);
    g->most_elements = INPUT_ELEMENTS / 2;
    for (uint32_t i = 0; i < 3; i++) { /* the other operations index whole buffers */
        if (elements(&g->usual[i]) > g->most_elements) {
            g->usual[i] = matrix_shape(g, false, 16, 32);
        }
    }
    while (!program_gen_dot(g)) {
        g->sizes[below(g, 3)] = 16;
    }
    program_block(g, 1 + below(g, most));
    const uint32_t count = g->product_count < MOST_PRODUCTS ? g->product_count : MOST_PRODUCTS;
    for (uint32_t i = 0; i < count; i++) {
        program_store_value(g, &g->products[i], false);
    }
    const value *v = program_pick(g, ANYTHING, NULL);
    if (v != NULL) {
        program_store_value(g, v, below(g, 4) == 0);
    }
    program_close(g);
}
