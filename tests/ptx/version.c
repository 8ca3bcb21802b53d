/* target/ptx: the PTX ISA version of a module, and the names of its kernels. */
#define _POSIX_C_SOURCE 200809L /* mkstemp, popen */

#include <lilac/driver.h>
#include <lilac/ptx.h>

#include "support/assemble.h"
#include "support/test.h"

/* ---- the table --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t version;
    const char *device, *sample;
} features[] = {
#define FEATURE(name, version, device, what, sample) {#name, version, device, sample},
#include "../../src/target/ptx/features.def"
#undef FEATURE
};
enum { FEATURES = sizeof features / sizeof *features };

static uint32_t version_before(uint32_t version) {
    return version % 10 != 0 ? version - 1 : version - 2; /* 7.8, 8.0; 8.8, 9.0 */
}

static bool takes_sample(const char *ptxas, size_t row, uint32_t version) {
    char text[1024];
    snprintf(text, sizeof text,
             ".version %u.%u\n.target %s\n.address_size 64\n.visible .entry k()\n{\n"
             ".reg .b32 r; .reg .b16 h; .reg .f32 f; .reg .b64 d;\n"
             "mov.b32 r, 0; mov.b16 h, 0; mov.f32 f, 0f00000000; mov.b64 d, 0;\n%s\nret;\n}\n",
             version / 10, version % 10, features[row].device, features[row].sample);
    return quietly_assembles(ptxas, features[row].device, text);
}

/* Each feature is there from its version on, and not before. */
static void ptxas_agrees_with_the_table(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    if (ptxas == NULL) {
        print_message("skipped: no ptxas here to ask\n");
        skip();
    }
    for (size_t k = 0; k < FEATURES; k++) {
        if (features[k].sample == NULL) {
            continue;
        }
        if (!takes_sample(ptxas, k, features[k].version) ||
            takes_sample(ptxas, k, version_before(features[k].version))) {
            fail_msg("%s: not from %u on", features[k].name, features[k].version);
        }
    }
}

/* ---- modules ----------------------------------------------------------------------------- */

typedef struct made {
    lilac_context *context;
    lilac_compilation compilation;
    bool good;
} made;

static made compile(const char *text, const char *device, uint32_t newest) {
    made m = {.context = lilac_context_create()};
    lilac_options options;
    lilac_options_init(&options);
    options.target.arch = lilac_arch_find(device);
    options.newest_ptx = newest;
    assert_non_null(options.target.arch);
    uint32_t source = lilac_source_add(m.context, "test.ttir", text, strlen(text));
    m.good = lilac_compile(&m.compilation, m.context, source, &options);
    return m;
}

static void clear(made *m) {
    lilac_compilation_clear(&m->compilation);
    lilac_context_destroy(m->context);
}

#define KERNEL(name, parameters, body)                                                             \
    "module {\n  tt.func public @" name "(" parameters ") {\n" body "    tt.return\n  }\n}\n"
#define RANGE "    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
#define AT(p, t)                                                                                   \
    "    %s" p " = tt.splat %" p " : !tt.ptr<" t "> -> tensor<128x!tt.ptr<" t ">>\n"               \
    "    %q" p " = tt.addptr %s" p ", %i : tensor<128x!tt.ptr<" t ">>, tensor<128xi32>\n"
#define LOAD(p, t)     "    %v" p " = tt.load %q" p " : tensor<128x!tt.ptr<" t ">>\n"
#define STORE(p, v, t) "    tt.store %q" p ", %" v " : tensor<128x!tt.ptr<" t ">>\n"

#define PLAIN                                                                                      \
    KERNEL("k", "%x: !tt.ptr<f32>, %y: !tt.ptr<f32>",                                              \
           RANGE AT("x", "f32") AT("y", "f32") LOAD("x", "f32") STORE("y", "vx", "f32"))
#define WIDEN(t)                                                                                   \
    KERNEL("k", "%x: !tt.ptr<" t ">, %y: !tt.ptr<f32>",                                            \
           RANGE AT("x", t) AT("y", "f32")                                                         \
               LOAD("x", t) "    %w = tt.fp_to_fp %vx : tensor<128x" t                             \
                            "> -> tensor<128xf32>\n" STORE("y", "w", "f32"))
#define EVICTED                                                                                    \
    KERNEL("k", "%x: !tt.ptr<f32>, %y: !tt.ptr<f32>",                                              \
           RANGE AT("x", "f32")                                                                    \
               AT("y", "f32") "    %vx = tt.load %qx evictionPolicy = evict_first : "              \
                              "tensor<128x!tt.ptr<f32>>\n" STORE("y", "vx", "f32"))
#define ADDED(layout)                                                                              \
    KERNEL("k",                                                                                    \
           "%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> "                      \
           "{tt.divisibility = 16 : i32}",                                                         \
           "    %true = arith.constant dense<true> : tensor<2048xi1>\n"                            \
           "    %i = tt.make_range {end = 2048 : i32, start = 0 : i32} : tensor<2048xi32>\n"       \
           "    %sx = tt.splat %x : !tt.ptr<f32> -> tensor<2048x!tt.ptr<f32>>\n"                   \
           "    %qx = tt.addptr %sx, %i : tensor<2048x!tt.ptr<f32>>, tensor<2048xi32>\n"           \
           "    %v = tt.load %qx : tensor<2048x!tt.ptr<f32>>\n"                                    \
           "    %sy = tt.splat %y : !tt.ptr<f32> -> tensor<2048x!tt.ptr<f32>>\n"                   \
           "    %qy = tt.addptr %sy, %i : tensor<2048x!tt.ptr<f32>>, tensor<2048xi32>\n"           \
           "    %o = tt.atomic_rmw fadd, relaxed, gpu, %qy, %v, %true : "                          \
           "(tensor<2048x!tt.ptr<f32>>, tensor<2048xf32>, tensor<2048xi1>) -> tensor<2048xf32>\n")
#define ASSEMBLY                                                                                   \
    KERNEL("k", "%x: !tt.ptr<f32>, %y: !tt.ptr<f32>",                                              \
           RANGE AT("x", "f32") AT("y", "f32") LOAD(                                               \
               "x",                                                                                \
               "f32") "    %w = tt.elementwise_inline_asm \"testp.normal.f32 p, $1;\" "            \
                      "{constraints = "                                                            \
                      "\"=f,f\", packed_element = 1 : i32, pure = true} %vx : tensor<128xf32> -> " \
                      "tensor<128xf32>\n" STORE("y", "w", "f32"))

static const struct {
    const char *text, *device;
    uint32_t version;
    const char *what; /* what needs it */
} kernels[] = {
    {PLAIN, "sm_80", 70, "sm_80"},
    {PLAIN, "sm_86", 71, "sm_86"},
    {PLAIN, "sm_89", 78, "sm_89"},
    {PLAIN, "sm_90", 78, "sm_90"},
    {PLAIN, "sm_90a", 80, "sm_90a"},
    {PLAIN, "sm_100a", 86, "sm_100a"},
    {PLAIN, "sm_103a", 88, "sm_103a"},
    {PLAIN, "sm_120a", 87, "sm_120a"},
    {PLAIN, "sm_121a", 88, "sm_121a"},
    {WIDEN("bf16"), "sm_80", 71, "cvt.f32.bf16"},
    {WIDEN("bf16"), "sm_90a", 80, "sm_90a"},
    {WIDEN("f8E5M2"), "sm_89", 81, "8-bit floats"},
    {WIDEN("f8E5M2"), "sm_90", 78, "sm_90"},
    {EVICTED, "sm_80", 74, "ld with an eviction priority"},
    {ADDED(""), "sm_90a", 81, "atom of vectors"},
    {ADDED(""), "sm_80", 70, "sm_80"},
};

/* A kernel is written in the version that it needs; where the newest allowed is older, it is
 * refused with both numbers and what needs it. */
static void lowest_version(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        uint32_t version = kernels[k].version, before = version_before(version);
        char line[96];
        made m = compile(kernels[k].text, kernels[k].device, version);
        assert_true(m.good);
        const char *ptx = lilac_text_get(&m.compilation.ptx);
        snprintf(line, sizeof line, ".version %u.%u\n.target %s\n", version / 10, version % 10,
                 kernels[k].device);
        assert_int_equal(strncmp(ptx, line, strlen(line)), 0);
        assert_true(ptxas == NULL || assembles(ptxas, kernels[k].device, ptx, ""));
        clear(&m);
        m = compile(kernels[k].text, kernels[k].device, before);
        assert_false(m.good);
        assert_int_equal(m.compilation.ptx.length, 0);
        const lilac_diagnostic *d = lilac_diagnostics(m.context);
        assert_string_equal(d->id, "ptx-version");
        assert_non_null(strstr(d->message, kernels[k].what));
        snprintf(line, sizeof line, "version %u.%u, and the newest that may be written is %u.%u",
                 version / 10, version % 10, before / 10, before % 10);
        assert_non_null(strstr(d->message, line));
        clear(&m);
    }
}

static void assembly_has_what_there_is(void **state) {
    (void)state;
    static const struct {
        const char *device;
        uint32_t newest;
        const char *line;
    } rows[] = {{"sm_80", 0, ".version 8.4\n"},   {"sm_80", 70, ".version 7.0\n"},
                {"sm_90a", 0, ".version 8.6\n"},  {"sm_90a", 90, ".version 9.0\n"},
                {"sm_120a", 0, ".version 8.8\n"}, {"sm_120a", 87, ".version 8.7\n"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        made m = compile(ASSEMBLY, rows[k].device, rows[k].newest);
        assert_true(m.good);
        assert_int_equal(
            strncmp(lilac_text_get(&m.compilation.ptx), rows[k].line, strlen(rows[k].line)), 0);
        clear(&m);
    }
}

static void versions_of_cuda(void **state) {
    (void)state;
    static const uint32_t rows[][2] = {{10020, 0},  {11000, 70}, {11080, 78}, {12000, 80},
                                       {12040, 84}, {12050, 85}, {12060, 85}, {12080, 87},
                                       {12090, 88}, {13000, 90}, {13010, 91}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        assert_int_equal(lilac_ptx_version_of_cuda(rows[k][0]), rows[k][1]);
    }
}

/* ---- parameters -------------------------------------------------------------------------- */

/* A kernel of `wide` parameters of 8 bytes and one of 4; two pointers more follow in PTX. */
static made compile_parameters(uint32_t wide, bool narrow, uint32_t newest) {
    lilac_text text;
    lilac_text_init(&text);
    lilac_text_puts(&text, "module {\n  tt.func public @k(%a: !tt.ptr<f32>");
    for (uint32_t k = 1; k < wide; k++) {
        lilac_text_printf(&text, ", %%b%u: i64", k);
    }
    lilac_text_puts(&text, narrow ? ", %c: i32" : "");
    lilac_text_puts(&text, ") {\n    tt.return\n  }\n}\n");
    made m = compile(lilac_text_get(&text), "sm_80", newest);
    lilac_text_clear(&text);
    return m;
}

static void parameter_space(void **state) {
    (void)state;
    static const struct {
        uint32_t wide;
        bool narrow;
        uint32_t version; /* 0: refused */
    } rows[] = {{542, false, 70},  {542, true, 81},  {543, false, 81},
                {4093, false, 81}, {4094, false, 0}, {5000, true, 0}};
    const char *ptxas = find_ptxas();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        made m = compile_parameters(rows[k].wide, rows[k].narrow, 0);
        assert_true(m.good == (rows[k].version != 0));
        if (m.good) {
            char line[32];
            snprintf(line, sizeof line, ".version %u.%u\n", rows[k].version / 10,
                     rows[k].version % 10);
            const char *ptx = lilac_text_get(&m.compilation.ptx);
            assert_int_equal(strncmp(ptx, line, strlen(line)), 0);
            assert_true(ptxas == NULL || assembles(ptxas, "sm_80", ptx, ""));
        } else {
            const lilac_diagnostic *d = lilac_diagnostics(m.context);
            assert_string_equal(d->id, "unsupported-on-target");
            assert_non_null(strstr(d->message, "32764"));
        }
        clear(&m);
    }
    made m = compile_parameters(543, false, 80);
    assert_false(m.good);
    assert_string_equal(lilac_diagnostics(m.context)->id, "ptx-version");
    assert_non_null(strstr(lilac_diagnostics(m.context)->message, "4352 bytes of parameters"));
    clear(&m);
}

/* ---- names ------------------------------------------------------------------------------- */

/* Words of the PTX manual: instructions, directives, types, modifiers, special registers. */
static const char words[] =
    "abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev "
    "brkpt brx call clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2 "
    "exit fence fma fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad "
    "mad24 "
    "madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem nanosleep neg "
    "not or "
    "pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp "
    "shf "
    "shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured surf "
    "sust "
    "szext tanh tcgen05 tensormap testp tex tld4 trap txq vadd vadd2 vadd4 vote vset wgmma wmma "
    "xor "
    "address_size align branchtargets callprototype calltargets const entry extern file func "
    "global "
    "loc local maxnctapersm maxnreg maxntid minnctapersm param pragma reg reqntid section shared "
    "sreg "
    "target version visible weak common alias noreturn explicitcluster reqnctapercluster attribute "
    "pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 tf32 f32 f64 "
    "e4m3x2 "
    "texref samplerref surfref tid ntid laneid warpid ctaid nctaid smid gridid clock clock64 pm0 "
    "globaltimer WARP_SZ warp_sz sync aligned rn rz rm rp rni ftz sat uni to lo hi wide cc relu "
    "NaN "
    "approx full acquire release relaxed acq_rel cta gpu sys volatile ptr space function_name "
    "inlined_at debug A7 A8 a7 _ $ __ _1 main kernel k global_smem vprintf __assertfail "
    "parameter_0 "
    "global_scratch profile_scratch assert_message_0 print_format_0 argument0 arguments printed "
    "argument "
    "parameter_sum vprintf_format";

/* Kernels of every such name are assembled, with strings, shared memory and prints beside them. */
static void reserved_names(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    lilac_text text;
    lilac_text_init(&text);
    lilac_text_puts(&text, "module {\n");
    for (const char *at = words; *at;) {
        const int length = (int)strcspn(at, " ");
        lilac_text_printf(&text,
                          "  tt.func public @\"%.*s\"(%%x: !tt.ptr<i32>, %%n: i32) {\n"
                          "    %%i = tt.make_range {end = 128 : i32, start = 0 : i32} : "
                          "tensor<128xi32>\n"
                          "    %%s = \"tt.reduce\"(%%i) <{axis = 0 : i32}> ({\n"
                          "    ^bb0(%%a: i32, %%b: i32):\n"
                          "      %%c = arith.addi %%a, %%b : i32\n"
                          "      tt.reduce.return %%c : i32\n"
                          "    }) : (tensor<128xi32>) -> i32\n"
                          "    tt.print \" n: \" {hex = false, isSigned = array<i32: 1>} : %%n : "
                          "i32\n"
                          "    tt.store %%x, %%s : !tt.ptr<i32>\n    tt.return\n  }\n",
                          length, at);
        at += length;
        at += strspn(at, " ");
    }
    lilac_text_puts(&text, "}\n");
    made m = compile(lilac_text_get(&text), "sm_90a", 0);
    for (const lilac_diagnostic *d = lilac_diagnostics(m.context); d != NULL; d = d->next) {
        print_error("%s\n", d->message);
    }
    assert_true(m.good);
    const char *ptx = lilac_text_get(&m.compilation.ptx);
    assert_non_null(strstr(ptx, ".visible .entry kernel_WARP_SZ("));
    assert_non_null(strstr(ptx, ".visible .entry kernel_vprintf("));
    assert_non_null(strstr(ptx, ".visible .entry kernel_parameter_0("));
    assert_non_null(strstr(ptx, ".visible .entry parameter_sum("));
    assert_non_null(strstr(ptx, ".visible .entry add("));
    assert_true(ptxas == NULL || assembles(ptxas, "sm_90a", ptx, "-O0"));
    lilac_text json;
    lilac_text_init(&json);
    lilac_options options;
    lilac_options_init(&options);
    lilac_compilation_json(&json, &m.compilation, &options);
    assert_non_null(strstr(lilac_text_get(&json), "\"name\": \"kernel_WARP_SZ\""));
    assert_non_null(strstr(lilac_text_get(&json), "\"name\": \"add\""));
    lilac_text_clear(&json);
    clear(&m);
    lilac_text_clear(&text);
}

static void names_that_meet(void **state) {
    (void)state;
    made m = compile("module {\n"
                     "  tt.func public @kernel_WARP_SZ() {\n    tt.return\n  }\n"
                     "  tt.func public @WARP_SZ() {\n    tt.return\n  }\n}\n",
                     "sm_90a", 0);
    assert_false(m.good);
    assert_string_equal(lilac_diagnostics(m.context)->id, "unsupported-on-target");
    assert_non_null(strstr(lilac_diagnostics(m.context)->message, "reserved"));
    clear(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ptxas_agrees_with_the_table),
        cmocka_unit_test(lowest_version),
        cmocka_unit_test(assembly_has_what_there_is),
        cmocka_unit_test(versions_of_cuda),
        cmocka_unit_test(parameter_space),
        cmocka_unit_test(reserved_names),
        cmocka_unit_test(names_that_meet),
    };
    return cmocka_run_group_tests_name("ptx_version", tests, NULL, NULL);
}
