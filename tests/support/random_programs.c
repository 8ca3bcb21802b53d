/* The generator. It writes TTIR line by line and remembers every value with its type and shape, so
 * that an operation can ask for operands that fit; what does not fit is not generated. */
#include "random_generator.h"

void program_choices_seed(program_choices *choices, uint64_t seed) {
    memset(choices, 0, sizeof *choices);
    lilac_random_seed(&choices->random, seed);
}

uint32_t program_below(program_choices *choices, uint32_t bound) {
    if (choices->at < choices->size) {
        uint32_t number = choices->bytes[choices->at++];
        if (bound > 256 && choices->at < choices->size) {
            number = number << 8 | choices->bytes[choices->at++];
        }
        return number % bound;
    }
    return (uint32_t)lilac_random_below(&choices->random, bound);
}

/* ---- control ----------------------------------------------------------------------------- */

static int some_condition(generator *g) {
    const value *v = program_pick(g, BIT(LILAC_I1), &scalar_shape);
    if (v != NULL) {
        return v->name;
    }
    int id = g->next;
    program_put(g, "%%v%d = tt.get_program_id x : i32\n", id);
    (void)program_add(g, LILAC_I32, &scalar_shape);
    const value *n = program_pick(g, BIT(LILAC_I32), &scalar_shape);
    return program_compare_less(g, id, n->name, &scalar_shape);
}

static void yield(generator *g, const char *op, const value *carried, uint32_t count) {
    int names[2] = {0, 0};
    for (uint32_t k = 0; k < count; k++) {
        names[k] = program_pick_same(g, &carried[k])->name;
    }
    program_put(g, "%s", op);
    for (uint32_t k = 0; k < count; k++) {
        program_put(g, "%s%%v%d", k > 0 ? ", " : " ", names[k]);
    }
    program_put(g, " : ");
    program_put_types(g, carried, count);
    program_put(g, "\n");
}

void program_enter(generator *g, scope *outside) {
    outside->count = g->count;
    memcpy(outside->values, g->values, sizeof g->values);
    g->depth++;
}

void program_leave(generator *g, const scope *outside) {
    g->count = outside->count;
    memcpy(g->values, outside->values, sizeof g->values);
    g->depth--;
}

bool program_gen_if(generator *g) {
    if (g->depth >= 2) {
        return false;
    }
    const value *a = program_pick(g, ANYTHING, below(g, 5) ? NULL : &scalar_shape);
    if (a == NULL) {
        return false;
    }
    value carried = *a;
    int condition = some_condition(g), name = g->next++;
    program_put(g, "%%v%d = scf.if %%v%d -> (", name, condition);
    program_put_type(g, &carried.shape, carried.scalar);
    program_put(g, ") {\n");
    for (int side = 0; side < 2; side++) {
        scope outside;
        program_enter(g, &outside);
        program_block(g, 1 + below(g, 4));
        yield(g, "scf.yield", &carried, 1);
        program_put(g, side == 0 ? "} else {\n" : "}\n");
        program_leave(g, &outside);
    }
    program_add_named(g, name, carried.scalar, &carried.shape);
    return true;
}

bool program_gen_for(generator *g) {
    if (g->depth >= 2) {
        return false;
    }
    const value *a = program_pick(g, ANYTHING, below(g, 5) ? NULL : &scalar_shape);
    const value *b = program_pick(g, ANYTHING, NULL);
    if (a == NULL || b == NULL) {
        return false;
    }
    value carried[2] = {*a, *b};
    uint32_t n = 1 + below(g, 2);
    int low = program_small_constant(g, LILAC_I32, &scalar_shape, below(g, 3));
    int high = program_small_constant(g, LILAC_I32, &scalar_shape, below(g, 5));
    const value *limit = below(g, 2) ? program_pick(g, BIT(LILAC_I32), &scalar_shape) : NULL;
    if (limit != NULL) {
        int few = program_small_constant(g, LILAC_I32, &scalar_shape, 3);
        high = program_binary(g, "arith.andi", limit->name, few, LILAC_I32, &scalar_shape);
    }
    int step = program_small_constant(g, LILAC_I32, &scalar_shape, 1 + below(g, 2));
    int counter = g->next++, inner = g->next, result = g->next + 2;
    g->next += 4;
    for (uint32_t k = 0; k < n; k++) {
        program_put(g, "%s%%v%d", k > 0 ? ", " : "", result + (int)k);
    }
    program_put(g, " = scf.for %%v%d = %%v%d to %%v%d step %%v%d iter_args(", counter, low, high,
                step);
    for (uint32_t k = 0; k < n; k++) {
        program_put(g, "%s%%v%d = %%v%d", k > 0 ? ", " : "", inner + (int)k, carried[k].name);
    }
    program_put(g, ") -> (");
    program_put_types(g, carried, n);
    program_put(g, ") : i32 {\n");
    scope outside;
    program_enter(g, &outside);
    program_add_named(g, counter, LILAC_I32, &scalar_shape);
    for (uint32_t k = 0; k < n; k++) {
        program_add_named(g, inner + (int)k, carried[k].scalar, &carried[k].shape);
    }
    program_block(g, 1 + below(g, 6));
    yield(g, "scf.yield", carried, n);
    program_put(g, "}\n");
    program_leave(g, &outside);
    for (uint32_t k = 0; k < n; k++) {
        program_add_named(g, result + (int)k, carried[k].scalar, &carried[k].shape);
    }
    return true;
}

bool program_gen_while(generator *g) {
    if (g->depth >= 2) {
        return false;
    }
    value carried;
    if (!program_take_tensor(g, ANYTHING, &carried)) {
        return false;
    }
    int zero = program_small_constant(g, LILAC_I32, &scalar_shape, 0);
    int limit = program_small_constant(g, LILAC_I32, &scalar_shape, below(g, 4));
    int one = program_small_constant(g, LILAC_I32, &scalar_shape, 1);
    int n = g->next;
    g->next += 9;
    program_put(g, "%%v%d, %%v%d = scf.while (%%v%d = %%v%d, %%v%d = %%v%d) : (i32, ", n, n + 1,
                n + 2, zero, n + 3, carried.name);
    program_put_type(g, &carried.shape, carried.scalar);
    program_put(g, ") -> (i32, ");
    program_put_type(g, &carried.shape, carried.scalar);
    program_put(g, ") {\n%%v%d = arith.cmpi slt, %%v%d, %%v%d : i32\n", n + 4, n + 2, limit);
    program_put(g, "scf.condition(%%v%d) %%v%d, %%v%d : i32, ", n + 4, n + 2, n + 3);
    program_put_type(g, &carried.shape, carried.scalar);
    program_put(g, "\n} do {\n^bb0(%%v%d: i32, %%v%d: ", n + 5, n + 6);
    program_put_type(g, &carried.shape, carried.scalar);
    program_put(g, "):\n");
    scope outside;
    program_enter(g, &outside);
    program_add_named(g, n + 6, carried.scalar, &carried.shape);
    program_block(g, 1 + below(g, 5));
    program_put(g, "%%v%d = arith.addi %%v%d, %%v%d : i32\n", n + 7, n + 5, one);
    int last = program_pick_same(g, &carried)->name;
    program_put(g, "scf.yield %%v%d, %%v%d : i32, ", n + 7, last);
    program_put_type(g, &carried.shape, carried.scalar);
    program_put(g, "\n}\n");
    program_leave(g, &outside);
    program_add_named(g, n + 1, carried.scalar, &carried.shape);
    return true;
}

/* A function that is not inlined: a few operations on one type. */
bool program_gen_call(generator *g) {
    value a;
    if (!program_take(g, INTEGERS, &a)) {
        return false;
    }
    value b = *program_pick_same(g, &a);
    uint32_t which = g->helpers++;
    lilac_text *out = g->out, type = {0};
    g->out = &type;
    program_put_type(g, &a.shape, a.scalar);
    const char *t = lilac_text_get(&type);
    g->out = &g->functions;
    program_put(g, "tt.func private @helper%u(%%a: %s, %%b: %s) -> %s", which, t, t, t);
    program_put(g, " attributes {noinline = true} {\n%%c = arith.muli %%a, %%b : %s\n", t);
    program_put(g, "%%d = arith.xori %%c, %%a : %s\ntt.return %%d : %s\n}\n", t, t);
    lilac_text_clear(&type);
    g->out = out;
    program_put(g, "%%v%d = tt.call @helper%u(%%v%d, %%v%d) : ", g->next, which, a.name, b.name);
    (void)program_end_function(g, (value[]){a, b}, 2, a.scalar, &a.shape);
    return true;
}

bool program_gen_map(generator *g) {
    value a;
    if (!program_take_tensor(g, INTEGERS, &a)) {
        return false;
    }
    value b = *program_pick_same(g, &a);
    const char *t = lilac_scalar_name(a.scalar);
    program_put(g, "%%v%d = \"tt.map_elementwise\"(%%v%d, %%v%d) <{pack = 1 : i32}> ({\n", g->next,
                a.name, b.name);
    program_put(g, "^bb0(%%a: %s, %%b: %s):\n%%c = arith.cmpi slt, %%a, %%b : %s\n", t, t, t);
    program_put(g,
                "%%d = scf.if %%c -> (%s) {\n%%e = arith.subi %%b, %%a : %s\nscf.yield %%e : %s\n",
                t, t, t);
    program_put(g, "} else {\nscf.yield %%b : %s\n}\ntt.map_elementwise.return %%d : %s\n}) : ", t,
                t);
    (void)program_end_function(g, (value[]){a, b}, 2, a.scalar, &a.shape);
    return true;
}

/* ---- programs ---------------------------------------------------------------------------- */

generator *program_open(program *p, program_choices *choices, uint64_t wanted) {
    memset(p, 0, sizeof *p);
    generator *g = lilac_heap_grow(NULL, sizeof *g);
    memset(g, 0, sizeof *g);
    g->program = p;
    g->choices = choices;
    g->out = lilac_heap_grow(NULL, sizeof *g->out);
    *g->out = (lilac_text){0};
    g->features = wanted;
    p->warps = 1U << below(g, below(g, 3) ? 4 : 6);
    p->programs = below(g, 3) ? 1 : 2;
    p->data_seed = below(g, 1 << 16);
    p->parameter_count = INPUTS + MOST_STORES + 2;
    uint32_t bits = 4 + below(g, 7);
    g->most_elements = 2U << bits;
    for (uint32_t i = 0; i < 3; i++) {
        g->usual[i] = program_random_shape(g, i == 2 && bits > 4 ? bits - 1 - below(g, 3) : bits);
    }
    for (uint32_t i = 0; i < INPUTS; i++) {
        p->parameters[i] = (program_parameter){
            .scalar = inputs[i], .is_buffer = true, .count = 2 * INPUT_ELEMENTS};
    }
    g->next = INPUTS + MOST_STORES;
    for (uint32_t i = 0; i < 2; i++) {
        p->parameters[g->next] =
            (program_parameter){.scalar = LILAC_I32, .bits = below(g, i == 0 ? 1U << bits : 7)};
        (void)program_add(g, LILAC_I32, &scalar_shape);
    }
    return g;
}

void program_close(generator *g) {
    program *p = g->program;
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
    lilac_text_put(&p->text, g->out->bytes, g->out->length);
    lilac_text_puts(&p->text, "tt.return\n}\n");
    lilac_text_put(&p->text, lilac_text_get(&g->functions), g->functions.length);
    lilac_text_puts(&p->text, "}\n");
    lilac_text_clear(g->out);
    lilac_heap_free(g->out);
    lilac_text_clear(&g->functions);
    lilac_heap_free(g);
}

void program_generate(program *p, program_choices *choices, uint64_t wanted, uint32_t most) {
    generator *g = program_open(p, choices, wanted);
    (void)program_gen_load(g);
    program_block(g, 1 + below(g, most));
    for (int i = 0; i < 4; i++) {
        const value *v = program_pick(g, ANYTHING, i < 3 ? NULL : &scalar_shape);
        if (v != NULL) {
            program_store_value(g, v, below(g, 4) == 0);
        }
    }
    program_close(g);
}

void program_clear(program *p) {
    lilac_text_clear(&p->text);
}
