/* Kernels that access memory through tensor descriptors: the simulator, the interpreter after the pass
 * expand_descriptors and the interpreter on the text with descriptors leave the same bytes.
 *
 * The text is random: element type, rank, block, shape, strides, padding, indices (negative, beyond
 * the shape, at the ends of i32), the operation, and how the descriptor reaches it: as a parameter,
 * from tt.make_tensor_descriptor, through a select, a conditional, a loop.
 *
 * LILAC_TEST_SCALE multiplies the number of kernels, LILAC_TEST_SEED tries one. */
#define _POSIX_C_SOURCE 200809L

#include "support/random_programs.h"
#include "support/test.h"

#include <lilac/engine.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 5, IN_ELEMENTS = 2048, MEMORY_ELEMENTS = 1 << 15 };

typedef enum operation { LOAD, STORE, REDUCE, GATHER, SCATTER, OPERATIONS } operation;
typedef enum provenance {
    PARAMETER,
    MADE,
    SELECTED,
    CONDITIONAL,
    CARRIED,
    WHILE,
    PROVENANCES
} provenance;

static const struct {
    const char *name, *plain; /* in the descriptor, in pointers and tensors */
    lilac_scalar scalar;
    const char *reductions;
} elements[] = {
    {"i8", "i8", LILAC_I8, ""},
    {"ui8", "i8", LILAC_I8, ""},
    {"si16", "i16", LILAC_I16, ""},
    {"i32", "i32", LILAC_I32, "add and or xor"},
    {"si32", "i32", LILAC_I32, "add min max and or xor"},
    {"ui32", "i32", LILAC_I32, "add min max and or xor"},
    {"si64", "i64", LILAC_I64, "add min max and or xor"},
    {"ui64", "i64", LILAC_I64, "add min max and or xor"},
    {"f16", "f16", LILAC_F16, "add"},
    {"bf16", "bf16", LILAC_BF16, "add"},
    {"f32", "f32", LILAC_F32, "add"},
    {"f64", "f64", LILAC_F64, "add"},
    {"f8E5M2", "f8E5M2", LILAC_F8E5M2, ""},
    {"f8E4M3FN", "f8E4M3FN", LILAC_F8E4M3FN, ""},
};

/* A random kernel. */
typedef struct kernel {
    lilac_random random;
    operation operation;
    provenance provenance;
    uint32_t element, rank, bytes;
    uint32_t rows; /* of a gather or scatter */
    uint32_t block[MOST_RANK], count;
    int64_t shape[MOST_RANK], strides[MOST_RANK];
    bool nan, reduces_rank;
    const char *kind; /* of a reduction */
    char kind_text[8];
    program p;
} kernel;

static uint32_t below(kernel *k, uint32_t bound) {
    return (uint32_t)lilac_random_below(&k->random, bound);
}

static void choose_kind(kernel *k) {
    const char *list = elements[k->element].reductions;
    uint32_t words = 1;
    for (const char *c = list; *c != '\0'; c++) {
        words += *c == ' ';
    }
    uint32_t word = below(k, words);
    while (word > 0) {
        word -= *list++ == ' ';
    }
    const size_t length = strcspn(list, " ");
    memcpy(k->kind_text, list, length);
    k->kind_text[length] = '\0';
    k->kind = k->kind_text;
}

static void choose_block(kernel *k) {
    k->count = 1;
    for (uint32_t d = k->rank; d-- > 0;) {
        const uint32_t least = d + 1 == k->rank ? 16 / k->bytes : 1, room = IN_ELEMENTS / k->count;
        uint32_t size = least << below(k, d + 1 == k->rank ? 4 : 5);
        size = size < 2 ? 1 + below(k, 2) : size;
        while (size > room) {
            size /= 2;
        }
        k->block[d] = below(k, 4) == 0 && d + 1 < k->rank ? 1 : size;
        k->count *= k->block[d];
    }
}

/* Distinct elements in the buffer; odd shapes, strides of a multiple of 16 bytes. */
static void choose_shape(kernel *k) {
    const int64_t unit = 16 / k->bytes > 0 ? 16 / k->bytes : 1;
    int64_t pitch = 1;
    for (uint32_t d = k->rank; d-- > 0;) {
        const bool last = d + 1 == k->rank;
        int64_t size = 1 + below(k, last ? 2 * k->block[d] + 5 : k->block[d] + 3);
        size = below(k, 3) == 0 ? k->block[d] : size;
        k->strides[d] = pitch;
        while (pitch * size > MEMORY_ELEMENTS) {
            size /= 2;
        }
        k->shape[d] = size;
        pitch *= size;
        pitch = (pitch + unit - 1) / unit * unit + (below(k, 3) == 0 ? unit : 0);
    }
}

static void choose(kernel *k, uint64_t seed) {
    memset(k, 0, sizeof *k);
    lilac_random_seed(&k->random, seed);
    k->operation = (operation)below(k, OPERATIONS);
    k->provenance = (provenance)below(k, PROVENANCES);
    do {
        k->element = below(k, sizeof elements / sizeof *elements);
    } while (k->operation == REDUCE && elements[k->element].reductions[0] == '\0');
    k->bytes = lilac_scalar_bits(elements[k->element].scalar) / 8;
    const bool rows = k->operation == GATHER || k->operation == SCATTER;
    do {
        k->rank = rows ? 2 : 1 + below(k, MOST_RANK);
        choose_block(k);
        k->rows = rows ? 8U << below(k, 2) : 0;
        if (rows) {
            k->block[0] = 1;
            k->count = k->block[1] * k->rows;
        }
        choose_shape(k);
        /* no size went to zero where the buffer is too small */
    } while (k->count > IN_ELEMENTS || k->shape[0] == 0);
    if (k->provenance != PARAMETER && below(k, 8) == 0) { /* a tensor without elements */
        k->shape[below(k, k->rank)] = -(int64_t)below(k, 20);
    }
    k->nan = lilac_scalar_is_float(elements[k->element].scalar) && below(k, 2);
    k->reduces_rank = !rows && k->rank > 1 && k->block[0] == 1 && below(k, 2);
    if (k->operation == REDUCE) {
        choose_kind(k);
    }
}

/* ---- text ------------------------------------------------------------------------------- */

static void put_sizes(lilac_text *t, const kernel *k, uint32_t from) {
    for (uint32_t d = from; d < k->rank; d++) {
        lilac_text_printf(t, "%ux", k->block[d]);
    }
}

static void put_tensor(lilac_text *t, const kernel *k) {
    lilac_text_puts(t, "tensor<");
    if (k->rows > 0) {
        lilac_text_printf(t, "%ux%ux", k->rows, k->block[1]);
    } else {
        put_sizes(t, k, k->reduces_rank ? 1 : 0);
    }
    lilac_text_printf(t, "%s>", elements[k->element].plain);
}

static void put_type(lilac_text *t, const kernel *k) {
    lilac_text_puts(t, "!tt.tensordesc<tensor<");
    put_sizes(t, k, 0);
    lilac_text_printf(t, "%s>>", elements[k->element].name);
}

static void put_list(lilac_text *t, const char *name, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_printf(t, "%s%%%s%u", i > 0 ? ", " : "", name, i);
    }
}

static void add_buffer(kernel *k, uint64_t count, bool output) {
    k->p.parameters[k->p.parameter_count++] =
        (program_parameter){.scalar = elements[k->element].scalar,
                            .is_buffer = true,
                            .is_output = output,
                            .count = count};
}

static void add_scalar(kernel *k, lilac_scalar scalar, int64_t value) {
    k->p.parameters[k->p.parameter_count++] =
        (program_parameter){.scalar = scalar, .bits = lilac_scalar_mask(scalar, (uint64_t)value)};
}

static int64_t random_index(kernel *k, uint32_t d) {
    static const int64_t ends[] = {INT32_MIN, INT32_MAX, INT32_MIN + 1, INT32_MAX - 3};
    const uint32_t kind = below(k, 24);
    if (kind < 4) {
        return ends[kind];
    }
    if (kind < 6 || k->shape[d] <= 0) { /* an aligned block before the tensor */
        return -16 * (1 + (int64_t)below(k, 3));
    }
    if (kind < 12) { /* an aligned block */
        return (int64_t)below(k, (uint32_t)k->shape[d] / k->block[d] + 1) * k->block[d];
    }
    return (int64_t)below(k, (uint32_t)k->shape[d] + 2 * k->block[d] + 5) - k->block[d] - 3;
}

static void put_parameters(kernel *k) {
    lilac_text *t = &k->p.text;
    const char *plain = elements[k->element].plain;
    const char *aligned = "{tt.divisibility = 16 : i32}";
    lilac_text_printf(t,
                      "module {\n  tt.func public @k(%%in: !tt.ptr<%s> %s, %%out: !tt.ptr<%s> %s, "
                      "%%n: i32",
                      plain, aligned, plain, aligned);
    add_buffer(k, IN_ELEMENTS, false);
    add_buffer(k, IN_ELEMENTS, true);
    add_scalar(k, LILAC_I32, below(k, 4));
    if (k->provenance == PARAMETER) {
        lilac_text_puts(t, ", %d: ");
        put_type(t, k);
        add_buffer(k, MEMORY_ELEMENTS, false);
        for (uint32_t d = 0; d < k->rank; d++) {
            add_scalar(k, LILAC_I64, k->shape[d]);
        }
        for (uint32_t d = 0; d < k->rank; d++) {
            add_scalar(k, LILAC_I64, k->strides[d]);
        }
        add_scalar(k, LILAC_I1, k->nan);
    } else {
        lilac_text_printf(t, ", %%mem: !tt.ptr<%s>", plain);
        add_buffer(k, MEMORY_ELEMENTS, false);
        for (uint32_t d = 0; d < k->rank; d++) {
            const bool known = k->shape[d] % 16 == 0 && below(k, 2) == 0;
            lilac_text_printf(t, ", %%m%u: i32 %s", d, known ? aligned : "");
            add_scalar(k, LILAC_I32, k->shape[d]);
        }
        for (uint32_t d = 0; d + 1 < k->rank; d++) {
            lilac_text_printf(t, ", %%s%u: i64", d);
            add_scalar(k, LILAC_I64, k->strides[d]);
        }
    }
    for (uint32_t d = 0; d < k->rank; d++) {
        const int64_t index = random_index(k, d);
        const bool known = index % 16 == 0 && below(k, 2) == 0;
        lilac_text_printf(t, ", %%i%u: i32 %s", d, known ? aligned : "");
        add_scalar(k, LILAC_I32, index);
    }
    lilac_text_puts(t, ") {\n");
}

/* %NAME: a descriptor of the buffer with its first size less `less`. */
static void put_make(kernel *k, const char *name, uint32_t less) {
    lilac_text *t = &k->p.text;
    lilac_text_printf(t, "    %%%s_less = arith.constant %u : i32\n", name, less);
    lilac_text_printf(t, "    %%%s_m = arith.subi %%m0, %%%s_less : i32\n", name, name);
    lilac_text_printf(t, "    %%%s = tt.make_tensor_descriptor %%mem, [%%%s_m", name, name);
    for (uint32_t d = 1; d < k->rank; d++) {
        lilac_text_printf(t, ", %%m%u", d);
    }
    lilac_text_puts(t, "], [");
    put_list(t, "s", k->rank - 1);
    lilac_text_printf(t, "%s%%one64] {padding = %d : i32} : <%s>, <tensor<",
                      k->rank > 1 ? ", " : "", k->nan && less == 0 ? 2 : 1,
                      elements[k->element].plain);
    put_sizes(t, k, 0);
    lilac_text_printf(t, "%s>>\n", elements[k->element].name);
}

/* %d from %a and %b, by %n. */
static void put_provenance(kernel *k) {
    lilac_text *t = &k->p.text, type = {0};
    put_type(&type, k);
    const char *of = lilac_text_get(&type);
    if (k->provenance == PARAMETER) {
        lilac_text_clear(&type);
        return;
    }
    put_make(k, k->provenance == MADE ? "d" : "a", 0);
    if (k->provenance != MADE) {
        put_make(k, "b", 1);
    }
    switch (k->provenance) {
    case SELECTED:
        lilac_text_printf(t, "    %%d = arith.select %%big, %%a, %%b : %s\n", of);
        break;
    case CONDITIONAL:
        lilac_text_printf(
            t,
            "    %%d = scf.if %%big -> (%s) {\n      scf.yield %%a : %s\n    } else {\n"
            "      scf.yield %%b : %s\n    }\n",
            of, of, of);
        break;
    case CARRIED:
        lilac_text_printf(t,
                          "    %%d, %%e, %%f = scf.for %%j = %%zero to %%n step %%one "
                          "iter_args(%%x = %%a, %%y = %%b, %%z = %%a) -> (%s, %s, %s) : i32 {\n"
                          "      scf.yield %%y, %%x, %%z : %s, %s, %s\n    }\n",
                          of, of, of, of, of, of);
        break;
    case WHILE:
        lilac_text_printf(
            t,
            "    %%c, %%d, %%e, %%f = scf.while (%%j = %%zero, %%x = %%a, %%y = %%b) : "
            "(i32, %s, %s) -> (i32, %s, %s, %s) {\n"
            "      %%more = arith.cmpi slt, %%j, %%n : i32\n"
            "      %%w = arith.select %%more, %%y, %%x : %s\n"
            "      scf.condition(%%more) %%j, %%x, %%y, %%w : i32, %s, %s, %s\n    } do {\n"
            "    ^bb0(%%l: i32, %%u: %s, %%v: %s, %%q: %s):\n"
            "      %%h = arith.addi %%l, %%one : i32\n"
            "      scf.yield %%h, %%q, %%u : i32, %s, %s\n    }\n",
            of, of, of, of, of, of, of, of, of, of, of, of, of, of);
        break;
    default:
        break;
    }
    lilac_text_clear(&type);
}

/* %NAME: pointers to the elements of the access, in row-major order. */
static void put_pointers(kernel *k, const char *buffer) {
    const char *plain = elements[k->element].plain;
    lilac_text_printf(&k->p.text,
                      "    %%all = tt.splat %%%s : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
                      "    %%each = tt.addptr %%all, %%range : tensor<%ux!tt.ptr<%s>>, "
                      "tensor<%uxi32>\n",
                      buffer, plain, k->count, plain, k->count, plain, k->count);
}

static void put_reshape(kernel *k, const char *to, const char *from, bool flat) {
    lilac_text *t = &k->p.text;
    lilac_text_printf(t, "    %%%s = tt.reshape %%%s : ", to, from);
    for (int i = 0; i < 2; i++) {
        if (flat == (i == 1)) {
            lilac_text_printf(t, "tensor<%ux%s>", k->count, elements[k->element].plain);
        } else {
            put_tensor(t, k);
        }
        lilac_text_puts(t, i == 0 ? " -> " : "\n");
    }
}

static void put_indices(kernel *k) {
    lilac_text *t = &k->p.text;
    if (k->rows == 0) {
        put_list(t, "i", k->rank);
    } else {
        lilac_text_puts(t, "%x, %i1");
    }
}

/* %x: the rows i0 + n * r. */
static void put_rows(kernel *k) {
    const uint32_t r = k->rows;
    lilac_text_printf(&k->p.text,
                      "    %%r = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
                      "    %%ns = tt.splat %%n : i32 -> tensor<%uxi32>\n"
                      "    %%rn = arith.muli %%r, %%ns : tensor<%uxi32>\n"
                      "    %%is = tt.splat %%i0 : i32 -> tensor<%uxi32>\n"
                      "    %%x = arith.addi %%is, %%rn : tensor<%uxi32>\n",
                      r, r, r, r, r, r);
}

static void put_loading(kernel *k) {
    lilac_text *t = &k->p.text;
    const bool gather = k->operation == GATHER;
    lilac_text_printf(t, "    %%v = tt.descriptor_%s %%d[", gather ? "gather" : "load");
    put_indices(k);
    lilac_text_puts(t, gather ? "] : (" : "] : ");
    put_type(t, k);
    if (gather) {
        lilac_text_printf(t, ", tensor<%uxi32>, i32)", k->rows);
    }
    lilac_text_puts(t, " -> ");
    put_tensor(t, k);
    lilac_text_puts(t, "\n");
    put_reshape(k, "flat", "v", true);
    put_pointers(k, "out");
    lilac_text_printf(t, "    tt.store %%each, %%flat : tensor<%ux!tt.ptr<%s>>\n", k->count,
                      elements[k->element].plain);
}

static void put_storing(kernel *k) {
    lilac_text *t = &k->p.text;
    const bool scatter = k->operation == SCATTER;
    put_pointers(k, "in");
    lilac_text_printf(t, "    %%flat = tt.load %%each : tensor<%ux!tt.ptr<%s>>\n", k->count,
                      elements[k->element].plain);
    put_reshape(k, "v", "flat", false);
    lilac_text_puts(t, k->operation == REDUCE ? "    tt.descriptor_reduce "
                       : scatter              ? "    tt.descriptor_scatter "
                                              : "    tt.descriptor_store ");
    lilac_text_printf(t, "%s%s%%d[", k->kind != NULL ? k->kind : "", k->kind != NULL ? ", " : "");
    put_indices(k);
    lilac_text_puts(t, "], %v : ");
    put_type(t, k);
    if (scatter) {
        lilac_text_printf(t, ", tensor<%uxi32>, i32", k->rows);
    }
    lilac_text_puts(t, ", ");
    put_tensor(t, k);
    lilac_text_puts(t, "\n");
}

static void write_text(kernel *k) {
    lilac_text *t = &k->p.text;
    put_parameters(k);
    lilac_text_printf(t,
                      "    %%zero = arith.constant 0 : i32\n    %%one = arith.constant 1 : i32\n"
                      "    %%one64 = arith.constant 1 : i64\n"
                      "    %%big = arith.cmpi sgt, %%n, %%one : i32\n"
                      "    %%range = tt.make_range {end = %u : i32, start = 0 : i32} : "
                      "tensor<%uxi32>\n",
                      k->count, k->count);
    put_provenance(k);
    if (k->rows > 0) {
        put_rows(k);
    }
    if (k->operation == LOAD || k->operation == GATHER) {
        put_loading(k);
    } else {
        put_storing(k);
    }
    lilac_text_puts(t, "    tt.return\n  }\n}\n");
}

static void make_kernel(kernel *k, uint64_t seed) {
    choose(k, seed);
    k->p.warps = 1U << below(k, 4);
    k->p.programs = 1;
    k->p.data_seed = seed;
    k->p.plain_data = k->operation == REDUCE && lilac_scalar_is_float(elements[k->element].scalar);
    write_text(k);
}

/* ---- the laws --------------------------------------------------------------------------- */

/* The interpreter on the module after the pass. */
static program_comparison expanded(const kernel *k) {
    lilac_context *context = lilac_context_create();
    const char *text = lilac_text_get(&k->p.text);
    const uint32_t source = lilac_source_add(context, "kernel.ttir", text, strlen(text));
    lilac_tile_module *module = lilac_tile_read(context, source);
    const lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    bool changed = false;
    assert_non_null(module);
    assert_true(lilac_tile_verify(module, false));
    assert_true(lilac_engine_expand_descriptors(module, &target, &changed) && changed);
    assert_true(lilac_tile_verify(module, false));
    lilac_text after = {0};
    lilac_tile_print(&after, module, false);
    assert_null(strstr(lilac_text_get(&after), "descriptor_"));
    const program_comparison j = program_compare(&k->p, module);
    lilac_text_clear(&after);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    return j;
}

static void complain(const kernel *k, uint64_t seed, const char *what, const char *why) {
    fputs(lilac_text_get(&k->p.text), stderr);
    fail_msg("seed %llu, %s: %s", (unsigned long long)seed, what, why);
}

static void random_kernels(void **state) {
    (void)state;
    const char *one = getenv("LILAC_TEST_SEED");
    const uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    const uint64_t last = one != NULL ? first : scaled(1500);
    uint64_t open = 0, exact = 0, undetermined = 0;
    for (uint64_t seed = first; seed <= last; seed++) {
        kernel k;
        make_kernel(&k, seed);
        const program_comparison interpreted = expanded(&k);
        if (interpreted.outcome == PROGRAM_UNDETERMINED) { /* a scatter to equal rows is not */
            undetermined++;
        } else if (interpreted.outcome != PROGRAM_SAME) {
            complain(&k, seed, "after the pass", interpreted.why);
        }
        const program_comparison simulated = program_check(&k.p, lilac_text_get(&k.p.text));
        if (simulated.outcome != PROGRAM_SAME && simulated.outcome != PROGRAM_UNDETERMINED) {
            complain(&k, seed, "on the simulator", simulated.why);
        }
        exact += simulated.exact + simulated.within;
        open += simulated.open;
        program_clear(&k.p);
    }
    print_message("%llu elements compared, %llu open, %llu kernels undetermined\n",
                  (unsigned long long)exact, (unsigned long long)open,
                  (unsigned long long)undetermined);
    assert_int_equal(undetermined, 0);
    assert_true(one != NULL || exact > 4 * open);
}

/* Descriptors whose rows do not start at multiples of 16 bytes have no defined behaviour: the
 * interpreter's run ends there, and is no test. */
static void misaligned_strides_are_undetermined(void **state) {
    (void)state;
    static const struct {
        const char *stride;
        program_outcome outcome;
    } cases[] = {{"32", PROGRAM_SAME},
                 {"16", PROGRAM_SAME},
                 {"24", PROGRAM_UNDETERMINED},
                 {"17", PROGRAM_UNDETERMINED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        program p;
        lilac_text_printf(
            &text,
            "module {\n  tt.func public @k(%%p: !tt.ptr<i8>) {\n"
            "    %%z = arith.constant 0 : i32\n    %%n = arith.constant 16 : i32\n"
            "    %%s = arith.constant %s : i64\n    %%one = arith.constant 1 : i64\n"
            "    %%x = arith.constant dense<7> : tensor<8x16xi8>\n"
            "    %%d = tt.make_tensor_descriptor %%p, [%%n, %%n], [%%s, %%one] : <i8>, "
            "<tensor<8x16xi8>>\n"
            "    tt.descriptor_store %%d[%%z, %%z], %%x : !tt.tensordesc<tensor<8x16xi8>>, "
            "tensor<8x16xi8>\n    tt.return\n  }\n}\n",
            cases[i].stride);
        assert_true(program_of_text(&p, lilac_text_get(&text), text.length, 4, 1024));
        const program_comparison j = program_check(&p, lilac_text_get(&text));
        if (j.outcome != cases[i].outcome) {
            fail_msg("stride %s: %s", cases[i].stride, j.why);
        }
        program_clear(&p);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_kernels),
        cmocka_unit_test(misaligned_strides_are_undetermined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
