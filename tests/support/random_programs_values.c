/* Values of a random program, and the lines that many operations begin or end with. */
#include "random_generator.h"

void program_put(generator *g, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_text_vprintf(g->out, format, arguments);
    va_end(arguments);
}

static void put_type_of(generator *g, const shape *s, const char *element) {
    if (s->rank == 0) {
        program_put(g, "%s", element);
        return;
    }
    program_put(g, "tensor<");
    for (uint32_t d = 0; d < s->rank; d++) {
        program_put(g, "%ux", s->size[d]);
    }
    program_put(g, "%s>", element);
}

void program_put_type(generator *g, const shape *s, lilac_scalar scalar) {
    put_type_of(g, s, lilac_scalar_name(scalar));
}

void program_put_pointer_type(generator *g, const shape *s, lilac_scalar scalar) {
    char name[48];
    lilac_text text = {0};
    lilac_text_printf(&text, "!tt.ptr<%s>", lilac_scalar_name(scalar));
    strncpy(name, lilac_text_get(&text), sizeof name - 1);
    name[sizeof name - 1] = '\0';
    lilac_text_clear(&text);
    put_type_of(g, s, name);
}

int program_add(generator *g, lilac_scalar scalar, const shape *s) {
    if (g->count == MOST_VALUES) { /* forget old ones */
        memmove(g->values + 20, g->values + 100, (MOST_VALUES - 100) * sizeof *g->values);
        g->count -= 80;
    }
    g->values[g->count++] = (value){g->next, scalar, *s};
    return g->next++;
}

void program_add_named(generator *g, int name, lilac_scalar scalar, const shape *s) {
    int next = g->next;
    g->next = name;
    (void)program_add(g, scalar, s);
    g->next = next;
}

int program_end(generator *g, lilac_scalar scalar, const shape *s) {
    program_put_type(g, s, scalar);
    program_put(g, "\n");
    return program_add(g, scalar, s);
}

int program_end_as(generator *g, const value *from, const char *to, lilac_scalar scalar,
                   const shape *s) {
    program_put_type(g, &from->shape, from->scalar);
    program_put(g, " %s ", to);
    return program_end(g, scalar, s);
}

void program_put_types(generator *g, const value *v, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        program_put(g, k > 0 ? ", " : "");
        program_put_type(g, &v[k].shape, v[k].scalar);
    }
}

int program_end_function(generator *g, const value *from, uint32_t count, lilac_scalar scalar,
                         const shape *s) {
    program_put(g, "(");
    program_put_types(g, from, count);
    program_put(g, ") -> ");
    return program_end(g, scalar, s);
}

const value *program_pick(generator *g, uint32_t scalars, const shape *s) {
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

const value *program_pick_same(generator *g, const value *like) {
    const value *v = program_pick(g, BIT(like->scalar), &like->shape);
    return v != NULL ? v : like;
}

bool program_take_tensor(generator *g, uint32_t scalars, value *taken) {
    const value *v = program_pick(g, scalars, NULL);
    if (v != NULL) {
        *taken = *v;
    }
    return v != NULL;
}

bool program_take(generator *g, uint32_t scalars, value *taken) {
    if (below(g, 7) && program_take_tensor(g, scalars, taken)) {
        return true;
    }
    const value *v = program_pick(g, scalars, &scalar_shape);
    if (v != NULL) {
        *taken = *v;
    }
    return v != NULL;
}

/* ---- constants, indices, pointers, masks --------------------------------------------------- */

shape program_random_shape(generator *g, uint32_t bits) {
    shape s = {1 + below(g, MOST_RANK), {1, 1, 1, 1}};
    if (below(g, 3) != 0) {
        s.rank = 1 + below(g, 2);
    }
    for (; bits > 0; bits--) {
        s.size[below(g, s.rank)] *= 2;
    }
    return s;
}

shape program_some_shape(generator *g) {
    return g->usual[below(g, 3)];
}

int program_small_constant(generator *g, lilac_scalar scalar, const shape *s, int64_t number) {
    program_put(g, "%%v%d = arith.constant ", g->next);
    if (scalar == LILAC_I1) {
        number = number & 1;
        program_put(g, s->rank > 0 ? "dense<%s> : " : "%s", number ? "true" : "false");
        if (s->rank > 0) {
            return program_end(g, scalar, s);
        }
        program_put(g, "\n");
        return program_add(g, scalar, s);
    }
    program_put(g, s->rank > 0 ? "dense<%lld%s> : " : "%lld%s : ", (long long)number,
                lilac_scalar_is_float(scalar) ? ".0" : "");
    return program_end(g, scalar, s);
}

int program_move(generator *g, const char *op, const value *v, const char *attributes,
                 const shape *to) {
    value from = *v;
    shape result = *to;
    program_put(g, "%%v%d = tt.%s %%v%d%s : ", g->next, op, from.name, attributes);
    return program_end_as(g, &from, "->", from.scalar, &result);
}

value program_expand(generator *g, const value *v, uint32_t axis) {
    shape wider = {v->shape.rank + 1, {0}};
    for (uint32_t d = 0, from = 0; d < wider.rank; d++) {
        wider.size[d] = d == axis ? 1 : v->shape.size[from++];
    }
    char attribute[] = " {axis = 0 : i32}";
    attribute[9] = (char)('0' + axis);
    return (value){program_move(g, "expand_dims", v, attribute, &wider), v->scalar, wider};
}

int program_along(generator *g, const shape *s, uint32_t d) {
    shape now = {1, {s->size[d], 0, 0, 0}};
    program_put(g, "%%v%d = tt.make_range {end = %u : i32, start = 0 : i32} : ", g->next,
                s->size[d]);
    value range = {program_end(g, LILAC_I32, &now), LILAC_I32, now};
    for (uint32_t k = 0; k < s->rank; k++) {
        if (k != d) {
            range = program_expand(g, &range, k);
        }
    }
    return same_shape(&range.shape, s) ? range.name : program_move(g, "broadcast", &range, "", s);
}

int program_binary(generator *g, const char *op, int a, int b, lilac_scalar scalar,
                   const shape *s) {
    program_put(g, "%%v%d = %s %%v%d, %%v%d : ", g->next, op, a, b);
    return program_end(g, scalar, s);
}

int program_cast(generator *g, const char *op, const value *a, const char *to,
                 lilac_scalar scalar) {
    value from = *a;
    program_put(g, "%%v%d = %s %%v%d : ", g->next, op, from.name);
    return program_end_as(g, &from, to, scalar, &from.shape);
}

int program_splat(generator *g, int from, lilac_scalar scalar, const shape *s) {
    if (s->rank == 0) {
        return from;
    }
    program_put(g, "%%v%d = tt.splat %%v%d : ", g->next, from);
    return program_end_as(g, &(value){from, scalar, scalar_shape}, "->", scalar, s);
}

int program_flat_index(generator *g, const shape *s, uint32_t scale) {
    if (s->rank == 0) {
        return program_small_constant(g, LILAC_I32, s, 0);
    }
    int sum = -1;
    if (s->rank > 1 && below(g, 4) == 0) { /* a reshaped range */
        shape line = {1, {elements(s), 0, 0, 0}};
        value range = {program_along(g, &line, 0), LILAC_I32, line};
        sum = program_move(g, "reshape", &range, "", s);
    } else {
        uint32_t stride = elements(s);
        for (uint32_t d = 0; d < s->rank; d++) {
            stride /= s->size[d];
            int index = program_along(g, s, d);
            if (stride > 1) {
                int by = program_small_constant(g, LILAC_I32, s, stride);
                index = program_binary(g, "arith.muli", index, by, LILAC_I32, s);
            }
            sum = sum < 0 ? index : program_binary(g, "arith.addi", sum, index, LILAC_I32, s);
        }
    }
    if (scale > 1) {
        int by = program_small_constant(g, LILAC_I32, s, scale);
        sum = program_binary(g, "arith.muli", sum, by, LILAC_I32, s);
    }
    return sum;
}

int program_pointers(generator *g, int parameter, lilac_scalar scalar, const shape *s, int offset) {
    int base = parameter;
    if (s->rank > 0) {
        program_put(g, "%%v%d = tt.splat %%v%d : ", g->next, parameter);
        program_put_pointer_type(g, &scalar_shape, scalar);
        program_put(g, " -> ");
        program_put_pointer_type(g, s, scalar);
        program_put(g, "\n");
        base = g->next++;
    }
    program_put(g, "%%v%d = tt.addptr %%v%d, %%v%d : ", g->next, base, offset);
    program_put_pointer_type(g, s, scalar);
    program_put(g, ", ");
    program_put_type(g, s, LILAC_I32);
    program_put(g, "\n");
    return g->next++;
}

int program_compare_less(generator *g, int a, int b, const shape *s) {
    program_put(g, "%%v%d = arith.cmpi slt, %%v%d, %%v%d : ", g->next, a, b);
    program_put_type(g, s, LILAC_I32);
    program_put(g, "\n");
    return program_add(g, LILAC_I1, s);
}

int program_some_mask(generator *g, const shape *s, int index) {
    const value *any = below(g, 4) == 0 ? program_pick(g, BIT(LILAC_I1), s) : NULL;
    if (any != NULL) {
        return any->name;
    }
    const value *size = program_pick(g, BIT(LILAC_I32), &scalar_shape);
    int limit;
    if (below(g, 2) && size != NULL) {
        limit = program_splat(g, size->name, LILAC_I32, s);
    } else {
        limit = program_small_constant(g, LILAC_I32, s, 1 + below(g, elements(s)));
    }
    return program_compare_less(g, index, limit, s);
}
