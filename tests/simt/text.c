/* The text form of SIMT IR: what is printed reads back to the same text, and each mistake is
 * reported with its id at its place. */
#include <lilac/simt.h>

#include "support/test.h"

static const char everything[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @first(%p: i64 ptr align 16, %n: i32, %2: f32) warps 8 ctas 2 shared 4096 scratch 128 min_blocks 2 programs 440 {\n"
    "    %p = param 0 : i64\n"
    "    %n = param 1 : i32\n"
    "    %0 = param 2 : f32\n"
    "    %1 = thread : i32\n"
    "    %2 = lane : i32\n"
    "    %3 = warp : i32\n"
    "    %4 = block x : i32\n"
    "    %5 = grid z : i32\n"
    "    %6 = cta : i32\n"
    "    %s = shared_base : i32\n"
    "    %7 = const -5 : i32\n"
    "    %8 = const 18446744073709551611 : i64\n"
    "    %9 = const true : i1\n"
    "    %10 = const 0.1 : f32\n"
    "    %11 = const -0.0 : f64\n"
    "    %12 = const 1.442695 : f32\n"
    "    %13 = const 0x7F800000 : f32\n"
    "    %14 = const 0x3C003C00 : f16x2\n"
    "    %15 = const 0.5 : bf16\n"
    "    %16 = add %n, %7 : i32 {nsw, nuw}\n"
    "    %17 = cmp ult %16, %n : i1\n"
    "    %18 = fdiv %0, %10 : f32 {approximate, ftz}\n"
    "    %rounded = fdiv %0, %10 : f32 {round = down}\n"
    "    %19 = fmin %0, %18 : f32 {nan}\n"
    "    %20 = fcvt %0 : f16 {saturate, round = zero}\n"
    "    %21 = trunc %16 : i16\n"
    "    %22 = f8_unpack %21 : f16x2 {scalar = f8E5M2}\n"
    "    %23 = select %17, %0, %18 : f32\n"
    "    %24, %25 = unpack %22 : f16, f16\n"
    "    %26 = pack %24, %25 : f16x2\n"
    "    %27 = shuffle down %18, %7 : f32\n"
    "    %28 = ballot %17 : i32\n"
    "    %29, %30 = ld.global [%p - 16], %17, (%0, %18) : f32, f32 {volatile, cache = cg, "
    "evict = first} loc(\"k.py\":17:16)\n"
    "    %31 = ld.shared [%s + 128] : i64\n"
    "    st.global [%p], (%29, %30) {cache = wt, evict = last}\n"
    "    st.shared [%s], %17, (%31)\n"
    "    assert %17, \"a \\22quoted\\22 \\5C message\\0A\"\n"
    "    %32, %33 = ld.matrix trans [%s - 16] : i32, i32 {bytes = 0 to 4096, partition = 6}\n"
    "    %34 = ld.matrix [%s] : f16x2\n"
    "    st.matrix [%s], (%34)\n"
    "    st.matrix trans [%s + 16], %17, (%32, %33) {bytes = 512 to 1024}\n"
    "    %35 = map_shared %s, %6 : i32\n"
    "    %36 = ld.cluster [%35 + 4], %17, (%7) : i32\n"
    "    st.cluster [%35], (%36, %36) {bytes = 0 to 8}\n"
    "    cp.async [%s + 16], %17, (%p, %n) {cache = ca, size = 8, source = -32, bytes = 0 to 64}\n"
    "    cp.async [%s], (%p) {cache = cg, size = 16}\n"
    "    cp.async.commit\n"
    "    cp.async.wait {groups = 2}\n"
    "    cp.async.wait\n"
    "    cp.async.wait_all\n"
    "    cp.bulk.store [%s + 16], %17, (%p, %n) {global = -32, bytes = 0 to 64}\n"
    "    cp.bulk.reduce add [%s], (%p, %n) {scalar = bf16}\n"
    "    cp.bulk.load [%s + 32], %17, (%p, %n, %1) {global = 48, mbarrier = -8}\n"
    "    bulk.commit\n"
    "    bulk.wait_read {groups = 1}\n"
    "    bulk.wait\n"
    "    fence.proxy_async shared\n"
    "    fence.proxy_async all\n"
    "    group_barrier %3 {threads = 64}\n"
    "    cluster_barrier\n"
    "    barrier\n"
    "    warp_barrier loc(\"a \\22b\\22.py\":1:2)\n"
    "    %sum, %37 uniform = loop %i = %7 to %n step %n (%acc = %0, %38 uniform = %10) : f32, f32 "
    "{\n"
    "      %acc_1 = fadd %acc, %38 : f32\n"
    "      yield %acc_1, %38 loc(\"k.py\":3:1)\n"
    "    } loc(\"k.py\":2:1)\n"
    "    loop %39 = %7 to %n step %n {\n"
    "      yield\n"
    "    }\n"
    "    %40 = cmp lt %n, %7 : i1\n"
    "    %41 = if %40 : f32 {\n"
    "      yield %sum\n"
    "    } else {\n"
    "      yield %0\n"
    "    } loc(\"k.py\":4:1)\n"
    "    if %40 {\n"
    "      barrier\n"
    "      yield\n"
    "    }\n"
    "    %42 = while (%j = %n, %k = %41) : i32 {\n"
    "      %43 = cmp gt %j, %7 : i1\n"
    "      condition %43, %j\n"
    "    } do (%44) {\n"
    "      %45 = sub %44, %7 : i32\n"
    "      yield %45, %41\n"
    "    }\n"
    "    while () {\n"
    "      condition %40\n"
    "    } do () {\n"
    "      yield\n"
    "    }\n"
    "    return\n"
    "  } loc(\"k.py\":1:1)\n"
    "  kernel @\"\\C3\\A9 k\"() warps 1 ctas 1 shared 0 no_contraction {\n"
    "    return\n"
    "  }\n"
    "}\n";

static lilac_simt_module *read_text(lilac_context *context, const char *text) {
    return lilac_simt_read(context, lilac_source_add(context, "t.simt", text, strlen(text)));
}

static char *reprint(lilac_context *context, const char *text) {
    lilac_simt_module *module = read_text(context, text);
    if (module == NULL) {
        fail_with_diagnostics(context, "the module was refused");
    }
    lilac_text out = {0};
    lilac_simt_print(&out, module);
    bool good = lilac_simt_verify(module);
    if (!good) {
        fputs(out.bytes, stderr);
        print_diagnostics(context);
    }
    assert_true(good);
    lilac_simt_module_destroy(module);
    return out.bytes;
}

static void everything_reads_back(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    char *once = reprint(context, everything);
    char *twice = reprint(context, once);
    assert_string_equal(once, twice);
    /* One spelling differs: constants print signed. */
    char *wanted = malloc(sizeof everything);
    strcpy(wanted, everything);
    char *big = strstr(wanted, "18446744073709551611");
    memmove(big + 2, big + 20, strlen(big + 20) + 1);
    memcpy(big, "-5", 2);
    assert_string_equal(once, wanted);
    free(wanted);
    free(once);
    free(twice);
    lilac_context_destroy(context);
}

/* Every opcode's name is its own, and every signature can be parsed: what the table promises. */
static void table_is_sound(void **state) {
    (void)state;
    for (uint32_t a = 1; a < LILAC_SIMT_OP_COUNT; a++) {
        const lilac_simt_op_info *info = lilac_simt_op_info_get((lilac_simt_opcode)a);
        assert_non_null(strchr(info->signature, ':'));
        for (uint32_t b = 1; b < a; b++) {
            assert_string_not_equal(info->name, lilac_simt_op_info_get((lilac_simt_opcode)b)->name);
        }
        if (info->traits & LILAC_SIMT_COMMUTATIVE) {
            assert_true(info->traits & LILAC_SIMT_PURE);
        }
    }
}

/* Hints that clash or hold bytes that names cannot: made unique, and then they stay. */
static void names_are_unique(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = lilac_simt_module_create(context, lilac_arch_find("sm_90a"));
    lilac_simt_kernel *kernel =
        lilac_simt_kernel_create(module, lilac_intern_string(context, "k"), 0, 1, 1);
    lilac_simt_builder b;
    lilac_simt_builder_init(&b, kernel);
    static const char *const hints[] = {"x", "x", "x_1", "x", "12", "a b", "a_b", ""};
    for (uint32_t k = 0; k < sizeof hints / sizeof hints[0]; k++) {
        lilac_simt_value v = lilac_simt_constant(&b, LILAC_SIMT_I32, k);
        kernel->values[v].name = lilac_intern_string(context, hints[k]);
    }
    lilac_simt_instruction end = {.code = LILAC_SIMT_OP_RETURN};
    lilac_simt_build(&b, &end, 0, NULL, 0, NULL);
    lilac_simt_builder_clear(&b);
    lilac_text text = {0};
    lilac_simt_print(&text, module);
    assert_non_null(strstr(text.bytes, "%x = const 0"));
    assert_non_null(strstr(text.bytes, "%x_1 = const 1"));
    assert_non_null(strstr(text.bytes, "%x_1_1 = const 2"));
    assert_non_null(strstr(text.bytes, "%x_2 = const 3"));
    assert_non_null(strstr(text.bytes, "%0 = const 4"));
    assert_non_null(strstr(text.bytes, "%a_b = const 5"));
    assert_non_null(strstr(text.bytes, "%a_b_1 = const 6"));
    assert_non_null(strstr(text.bytes, "%1 = const 7"));
    char *again = reprint(context, text.bytes);
    assert_string_equal(again, text.bytes);
    free(again);
    lilac_text_clear(&text);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
}

/* Random bits of every float type print as something that reads back to the same bits. */
static void constants_read_back(void **state) {
    (void)state;
    static const lilac_simt_type types[] = {
        LILAC_SIMT_F16,    LILAC_SIMT_BF16, LILAC_SIMT_F32, LILAC_SIMT_F64, LILAC_SIMT_F16X2,
        LILAC_SIMT_BF16X2, LILAC_SIMT_I8,   LILAC_SIMT_I16, LILAC_SIMT_I32, LILAC_SIMT_I64};
    static const double nice[] = {0.1,   0.25, 3.14159265358979, 1e-5,
                                  65504, 1e8,  123456.789,       -1.0 / 3};
    lilac_context *context = lilac_context_create();
    lilac_random random;
    lilac_random_seed(&random, 7);
    lilac_simt_module *module = lilac_simt_module_create(context, lilac_arch_find("sm_90a"));
    lilac_simt_kernel *kernel =
        lilac_simt_kernel_create(module, lilac_intern_string(context, "k"), 0, 1, 1);
    lilac_simt_builder b;
    lilac_simt_builder_init(&b, kernel);
    for (uint32_t round = 0; round < 200; round++) {
        for (uint32_t k = 0; k < sizeof types / sizeof types[0]; k++) {
            lilac_simt_constant(&b, types[k], lilac_random_next(&random));
        }
    }
    for (uint32_t k = 0; k < sizeof nice / sizeof nice[0]; k++) {
        lilac_simt_constant(
            &b, LILAC_SIMT_F32,
            lilac_scalar_encode(LILAC_F32, nice[k], LILAC_ROUND_NEAREST_EVEN, false));
        lilac_simt_constant(
            &b, LILAC_SIMT_F64,
            lilac_scalar_encode(LILAC_F64, nice[k], LILAC_ROUND_NEAREST_EVEN, false));
    }
    lilac_simt_instruction end = {.code = LILAC_SIMT_OP_RETURN};
    lilac_simt_build(&b, &end, 0, NULL, 0, NULL);
    lilac_simt_builder_clear(&b);
    lilac_text text = {0};
    lilac_simt_print(&text, module);
    lilac_simt_module *copy = read_text(context, text.bytes);
    assert_non_null(copy);
    const lilac_simt_instruction *x = kernel->body->first;
    const lilac_simt_instruction *y = copy->kernels->body->first;
    uint32_t count = 0;
    for (; x != NULL && y != NULL; x = x->next, y = y->next, count++) {
        assert_int_equal(x->code, y->code);
        assert_true(x->immediate == y->immediate);
    }
    assert_true(x == NULL && y == NULL && count > 1000);
    lilac_text_clear(&text);
    lilac_simt_module_destroy(module);
    lilac_simt_module_destroy(copy);
    lilac_context_destroy(context);
}

/* ---- mistakes --------------------------------------------------------------------------- */

static const struct mistake {
    const char *id;
    uint32_t line; /* of the body below; 0: any */
    const char *body;
} mistakes[] = {
    {"unknown-operation", 1, "%a = frobnicate : i32\n"},
    {"unknown-type", 1, "%a = thread : i33\n"},
    {"unknown-type", 1, "%a = thread : i32 {scalar = f9}\n"},
    {"undefined-value", 2, "%a = thread : i32\n%b = add %a, %c : i32\n"},
    {"redefined-value", 2, "%a = thread : i32\n%a = lane : i32\n"},
    {"result-count", 0, "%a, %b = thread : i32\n"},
    {"result-count", 0, "thread : i32\n"},
    {"result-count", 4,
     "%t = const true : i1\n%r = while () : i1 {\ncondition %t, %t\n} do () {\nyield\n}\n"},
    {"bad-constant", 1, "%a = const 300 : i8\n"},
    {"bad-constant", 1, "%a = const -129 : i8\n"},
    {"bad-constant", 1, "%a = const true : i32\n"},
    {"bad-constant", 1, "%a = const 5 : f32\n"},
    {"bad-constant", 1, "%a = const 1.5 : i32\n"},
    {"bad-constant", 1, "%a = const 0x1FFFF : f16\n"},
    {"bad-constant", 1, "%a = const 99999999999999999999 : i64\n"},
    {"bad-constant", 1, "%a = const 1.0e5 : f32\n"},
    {"bad-number", 1, "%a = thread : i32 {detail = 300}\n"},
    {"bad-number", 1, "return loc(\"f\":-1:0)\n"},
    {"unknown-modifier", 1, "%a = thread : i32 {fancy}\n"},
    {"unknown-modifier", 1, "%a = thread : i32 {cache = l3}\n"},
    {"unknown-modifier", 2, "%a = thread : i32\n%c = cmp less %a, %a : i1\n"},
    {"syntax", 1, "%a thread : i32\n"},
    {"syntax", 1, "%a = : i32\n"},
    {"syntax", 1, "%a = const : i32\n"},
    {"syntax", 2, "%a = thread : i32\nst.shared %a, (%a)\n"},
    {"syntax", 2, "%a = thread : i32\nloop %i = %a until %a {\nyield\n}\n"},
    {"syntax", 1, "return loc(3)\n"},
};

static const char head[] =
    "simt.module target \"sm_90a\" {\nkernel @k() warps 1 ctas 1 shared 0 {\n";

static void each_mistake(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof mistakes / sizeof mistakes[0]; k++) {
        lilac_context *context = lilac_context_create();
        lilac_text text = {0};
        lilac_text_printf(&text, "%s%sreturn\n}\n}\n", head, mistakes[k].body);
        lilac_simt_module *module = read_text(context, text.bytes);
        const lilac_diagnostic *d = lilac_diagnostics(context);
        uint32_t line = 0, column = 0;
        if (d != NULL) {
            lilac_position_resolve(context, d->position, &line, &column);
        }
        if (module != NULL || d == NULL || strcmp(d->id, mistakes[k].id) != 0 ||
            (mistakes[k].line != 0 && line != mistakes[k].line + 2) ||
            lilac_error_count(context) != 1) {
            fprintf(stderr, "%s: %s\n", mistakes[k].id, mistakes[k].body);
            fail_with_diagnostics(context, "the diagnostic is not the expected one");
        }
        lilac_text_clear(&text);
        lilac_context_destroy(context);
    }
}

static const struct {
    const char *id, *text;
} module_mistakes[] = {
    {"syntax", ""},
    {"syntax", "module {}"},
    {"unknown-target", "simt.module target \"sm_1\" {\n}\n"},
    {"syntax", "simt.module target \"sm_90a\" {\n}\n}"},
    {"syntax", "simt.module target \"sm_90a\" {\nkernel k() {}\n}\n"},
    {"syntax", "simt.module target \"sm_90a\" {\nkernel @k(%a: i32\n"},
    {"syntax", "simt.module target \"sm_90a\" {\nkernel @k() warps 1 ctas 1 shared 0 {\nreturn\n"},
    {"bad-number",
     "simt.module target \"sm_90a\" {\nkernel @k() warps 5000000000 ctas 1 shared 0 {\n}\n}"},
};

static void mistakes_of_modules(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof module_mistakes / sizeof module_mistakes[0]; k++) {
        lilac_context *context = lilac_context_create();
        assert_null(read_text(context, module_mistakes[k].text));
        assert_non_null(lilac_diagnostics(context));
        assert_string_equal(lilac_diagnostics(context)->id, module_mistakes[k].id);
        lilac_context_destroy(context);
    }
}

/* One run reports every line's mistake, once each, whatever hangs on the first. */
static void several_mistakes(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_text_printf(&text,
                      "%s%%a = frob : i32\n%%b = add %%a, %%a : i32\n%%c = add %%b, %%zz : i32\n"
                      "%%r = loop %%i = %%c to %%nope step %%c (%%x = %%a) : i32 {\nyield %%x\n}\n"
                      "st.shared [%%r], (%%i2)\nreturn\n}\n}\n",
                      head);
    assert_null(read_text(context, text.bytes));
    static const char *const ids[] = {"unknown-operation", "undefined-value", "undefined-value",
                                      "undefined-value"};
    const lilac_diagnostic *d = lilac_diagnostics(context);
    for (size_t k = 0; k < 4; k++, d = d->next) {
        assert_non_null(d);
        assert_string_equal(d->id, ids[k]);
    }
    assert_null(d);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

static void too_deep(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_text_printf(&text, "%s%%t = const true : i1\n", head);
    for (uint32_t k = 0; k < 5000; k++) {
        lilac_text_puts(&text, "if %t {\n");
    }
    assert_null(read_text(context, text.bytes));
    assert_string_equal(lilac_diagnostics(context)->id, "too-deep");
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

static void too_many_operands(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_text_printf(&text, "%s%%t = const 1 : i8\n%%r = pack %%t", head);
    for (uint32_t k = 0; k < 5000; k++) {
        lilac_text_puts(&text, ", %t");
    }
    lilac_text_puts(&text, " : i32\nreturn\n}\n}\n");
    assert_null(read_text(context, text.bytes));
    assert_string_equal(lilac_diagnostics(context)->id, "too-many-operands");
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

/* Whatever the bytes: a module or diagnostics, never a crash. Verified and printed when it reads.
 */
static void mutations_do_not_crash(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 11);
    size_t length = strlen(everything);
    char *text = malloc(length);
    uint32_t readable = 0;
    for (uint32_t round = 0; round < 600; round++) {
        lilac_context *context = lilac_context_create();
        memcpy(text, everything, length);
        uint64_t edits = 1 + lilac_random_below(&random, 3);
        for (uint64_t k = 0; k < edits; k++) {
            static const char bytes[] = "%@{}()[]=,:+-0123456789abcx \n\"";
            size_t at = lilac_random_below(&random, length);
            size_t from = lilac_random_below(&random, length - 8);
            if (lilac_random_below(&random, 2) == 0) {
                text[at] = bytes[lilac_random_below(&random, sizeof bytes - 1)];
            } else { /* a few bytes from elsewhere */
                memcpy(text + (at < length - 8 ? at : length - 8), everything + from, 8);
            }
        }
        size_t cut =
            lilac_random_below(&random, 4) == 0 ? lilac_random_below(&random, length) : length;
        lilac_simt_module *module =
            lilac_simt_read(context, lilac_source_add(context, "m", text, cut));
        if (module != NULL) {
            lilac_text out = {0};
            lilac_simt_print(&out, module);
            if (lilac_simt_verify(module)) {
                readable++;
                lilac_simt_opt_fold(module->kernels);
                lilac_simt_opt_cse(module->kernels);
                lilac_simt_opt_licm(module->kernels);
                lilac_simt_opt_dce(module->kernels);
                assert_true(lilac_simt_verify(module));
            }
            lilac_text_clear(&out);
            lilac_simt_module_destroy(module);
        } else {
            assert_non_null(lilac_diagnostics(context));
        }
        lilac_context_destroy(context);
    }
    assert_true(readable > 0);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_reads_back), cmocka_unit_test(table_is_sound),
        cmocka_unit_test(names_are_unique),      cmocka_unit_test(constants_read_back),
        cmocka_unit_test(each_mistake),          cmocka_unit_test(mistakes_of_modules),
        cmocka_unit_test(several_mistakes),      cmocka_unit_test(too_deep),
        cmocka_unit_test(too_many_operands),     cmocka_unit_test(mutations_do_not_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
