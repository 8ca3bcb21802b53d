/* Operations of a random program on a tensor as a whole: its shape, and folds along an axis. */
#include "random_generator.h"

/* ---- shapes ------------------------------------------------------------------------------ */

bool program_gen_reshape(generator *g) {
    value a;
    if (!program_take_tensor(g, ANYTHING, &a)) {
        return false;
    }
    uint32_t bits = 0;
    while (1U << bits < elements(&a.shape)) {
        bits++;
    }
    shape to = below(g, 2) ? program_some_shape(g) : program_random_shape(g, bits);
    if (elements(&to) != elements(&a.shape)) {
        to = program_random_shape(g, bits);
    }
    (void)program_move(g, "reshape", &a, "", &to);
    return true;
}

bool program_gen_trans(generator *g) {
    value a;
    if (!program_take_tensor(g, ANYTHING, &a) || a.shape.rank < 2) {
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
    (void)program_move(g, "trans", &a, lilac_text_get(&attribute), &to);
    lilac_text_clear(&attribute);
    return true;
}

bool program_gen_expand(generator *g) {
    value a;
    if (!program_take_tensor(g, ANYTHING, &a) || a.shape.rank == MOST_RANK) {
        return false;
    }
    uint32_t axis = below(g, a.shape.rank + 1);
    value wide = program_expand(g, &a, axis);
    if (below(g, 2) && elements(&wide.shape) * 2 <= g->most_elements) {
        shape to = wide.shape;
        to.size[axis] = 2U << below(g, 2);
        if (elements(&to) <= g->most_elements) {
            (void)program_move(g, "broadcast", &wide, "", &to);
        }
    }
    return true;
}

bool program_gen_join(generator *g) {
    value a;
    if (!program_take_tensor(g, ANYTHING, &a) || a.shape.rank == MOST_RANK ||
        2 * elements(&a.shape) > g->most_elements) {
        return false;
    }
    int b = program_pick_same(g, &a)->name;
    shape to = a.shape;
    to.size[to.rank++] = 2;
    program_put(g, "%%v%d = tt.join %%v%d, %%v%d : ", g->next, a.name, b);
    (void)program_end_as(g, &a, "->", a.scalar, &to);
    return true;
}

bool program_gen_split(generator *g) {
    value a;
    if (!program_take_tensor(g, ANYTHING, &a) || a.shape.rank < 2 ||
        a.shape.size[a.shape.rank - 1] != 2) {
        return false;
    }
    shape to = a.shape;
    to.rank--;
    program_put(g, "%%v%d, %%v%d = tt.split %%v%d : ", g->next, g->next + 1, a.name);
    (void)program_end_as(g, &a, "->", a.scalar, &to);
    (void)program_add(g, a.scalar, &to);
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
    program_put(g, "}) : (");
    program_put_types(g, from, count);
    program_put(g, count > 1 ? ") -> (" : ") -> ");
    program_put_types(g, to, count);
    program_put(g, count > 1 ? ")\n" : "\n");
    for (uint32_t k = 0; k < count; k++) {
        (void)program_add(g, to[k].scalar, &to[k].shape);
    }
}

/* The region's own values have names of their own. */
static void region_of_pair(generator *g, const value *v, bool linear, const char *leaves) {
    const char *t = lilac_scalar_name(v[0].scalar), *u = lilac_scalar_name(v[1].scalar);
    program_put(g, "^bb0(%%a: %s, %%b: %s, %%c: %s, %%d: %s):\n", t, u, t, u);
    if (linear) { /* x ↦ a x + b, composed */
        program_put(g, "%%e = arith.muli %%c, %%a : %s\n%%f = arith.muli %%c, %%b : %s\n", t, t);
        program_put(g, "%%g = arith.addi %%f, %%d : %s\n", t);
        program_put(g, "%s %%e, %%g : %s, %s\n", leaves, t, u);
        return;
    }
    /* the largest with the smallest index */
    program_put(g, "%%e = arith.cmpi sgt, %%a, %%c : %s\n%%f = arith.cmpi eq, %%a, %%c : %s\n", t,
                t);
    program_put(g, "%%g = arith.cmpi slt, %%b, %%d : %s\n%%h = arith.andi %%f, %%g : i1\n", u);
    program_put(g, "%%i = arith.ori %%e, %%h : i1\n%%j = arith.select %%i, %%a, %%c : %s\n", t);
    program_put(g, "%%k = arith.select %%i, %%b, %%d : %s\n%s %%j, %%k : %s, %s\n", u, leaves, t,
                u);
}

static bool fold_along(generator *g, bool scan, bool several, const value *first, uint32_t axis) {
    value v[2] = {*first, *program_pick_same(g, first)};
    bool linear = several && scan && below(g, 2);
    if (several && !linear) {
        const value *index = program_pick(g, BIT(LILAC_I32), &v[0].shape);
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
    program_put(g, count > 1 ? "%%v%d, %%v%d = " : "%%v%d = ", g->next, g->next + 1);
    program_put(g, "\"%s\"(%%v%d", scan ? "tt.scan" : "tt.reduce", v[0].name);
    if (several) {
        program_put(g, ", %%v%d", v[1].name);
    }
    program_put(g, ") <{axis = %u : i32", axis);
    if (scan) {
        program_put(g, ", reverse = %s", below(g, 3) ? "false" : "true");
    }
    program_put(g, "}> ({\n");
    if (several) {
        region_of_pair(g, v, linear, leaves);
    } else {
        const char *t = lilac_scalar_name(v[0].scalar);
        program_put(g, "^bb0(%%a: %s, %%b: %s):\n%%c = %s %%a, %%b : %s\n%s %%c : %s\n", t, t,
                    combiner(g, v[0].scalar), t, leaves, t);
    }
    end_fold(g, v, to, count);
    return true;
}

static bool fold(generator *g, bool scan, bool several) {
    value first;
    if (!program_take_tensor(g, several ? INTEGERS : INTEGERS | FLOATS, &first)) {
        return false;
    }
    return fold_along(g, scan, several, &first, below(g, first.shape.rank));
}

bool program_gen_reduce(generator *g) {
    return fold(g, false, false);
}

/* Some of one value along one axis, which become one. */
bool program_gen_reduces(generator *g) {
    value first;
    if (!program_take_tensor(g, INTEGERS | FLOATS, &first)) {
        return false;
    }
    uint32_t axis = below(g, first.shape.rank), made = 0;
    for (uint32_t count = 2 + below(g, 2); count > 0; count--) {
        bool several = !lilac_scalar_is_float(first.scalar) && below(g, 2);
        made += fold_along(g, false, several, &first, axis);
    }
    return made > 0;
}

bool program_gen_reduce_pair(generator *g) {
    return fold(g, false, true);
}

bool program_gen_scan(generator *g) {
    return fold(g, true, false);
}

bool program_gen_scan_pair(generator *g) {
    return fold(g, true, true);
}

bool program_gen_gather(generator *g) {
    value source;
    if (!program_take_tensor(g, INTEGERS | FLOATS, &source)) {
        return false;
    }
    const value *i = NULL;
    for (int attempt = 0; attempt < 6 && i == NULL; attempt++) {
        i = program_pick(g, BIT(LILAC_I32) | BIT(LILAC_I64), below(g, 2) ? NULL : &source.shape);
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
    int limit = program_small_constant(g, index.scalar, &index.shape, source.shape.size[axis] - 1);
    int inside = program_binary(g, "arith.andi", index.name, limit, index.scalar, &index.shape);
    static const char *const ways[] = {
        "", "", "", "", ", lilac.movement = \"shared\"", ", lilac.movement = \"unswizzled\""};
    program_put(g, "%%v%d = tt.gather %%v%d[%%v%d] {axis = %u : i32%s} : ", g->next, source.name,
                inside, axis, ways[below(g, sizeof ways / sizeof *ways)]);
    (void)program_end_function(g, (value[]){source, index}, 2, source.scalar, &index.shape);
    return true;
}

bool program_gen_histogram(generator *g) {
    value a;
    if (!program_take_tensor(g, BIT(LILAC_I32), &a) || a.shape.rank != 1) {
        return false;
    }
    shape bins = {1, {8U << below(g, 5), 0, 0, 0}};
    int limit = program_small_constant(g, LILAC_I32, &a.shape, bins.size[0] - 1);
    int inside = program_binary(g, "arith.andi", a.name, limit, LILAC_I32, &a.shape);
    const value *mask = below(g, 2) ? program_pick(g, BIT(LILAC_I1), &a.shape) : NULL;
    program_put(g, "%%v%d = tt.histogram %%v%d", g->next, inside);
    if (mask != NULL) {
        program_put(g, ", %%v%d", mask->name);
    }
    program_put(g, " : ");
    (void)program_end_as(g, &a, "->", LILAC_I32, &bins);
    return true;
}

/* Concatenation may come in any order, so it is looked at through a sum. */
bool program_gen_cat(generator *g) {
    value a;
    if (!program_take_tensor(g, INTEGERS, &a) || a.shape.rank != 1 ||
        2 * elements(&a.shape) > g->most_elements) {
        return false;
    }
    int b = program_pick_same(g, &a)->name, name = g->next++;
    value to = {name, a.scalar, {1, {2 * a.shape.size[0], 0, 0, 0}}};
    const char *t = lilac_scalar_name(a.scalar);
    program_put(g, "%%v%d = tt.cat %%v%d, %%v%d : ", name, a.name, b);
    program_put_type(g, &a.shape, a.scalar);
    program_put(g, " -> ");
    program_put_type(g, &to.shape, a.scalar);
    program_put(g, "\n%%v%d = \"tt.reduce\"(%%v%d) <{axis = 0 : i32}> ({\n", g->next, name);
    program_put(g, "^bb0(%%a: %s, %%b: %s):\n%%c = arith.addi %%a, %%b : %s\n", t, t, t);
    program_put(g, "tt.reduce.return %%c : %s\n", t);
    end_fold(g, &to, &(value){.scalar = a.scalar}, 1);
    return true;
}
