/* Regions within regions: chains of thousands compile, deeper ones are refused at their place, with
 * small stacks too. Each text is compiled at 3,000 levels: a pass that looks through all inner
 * regions at each level would take minutes. */

#include <lilac/driver.h>

#include <pthread.h>

#include "support/test.h"

typedef struct shape {
    const char *name, *open, *middle, *close;
} shape;

/* %d is the number of the level, or of the one outside. */
static const shape shapes[] = {
    {"if",
     "%v# = tt.load %o {isVolatile = true} : !tt.ptr<i32>\n"
     "%e# = arith.cmpi eq, %v#, %n : i32\nscf.if %e# {\ntt.store %o, %v# : !tt.ptr<i32>\n",
     "", "}\n"},
    {"elif",
     "%e# = arith.cmpi slt, %n, %p : i32\n%r# = scf.if %e# -> (i32) {\n"
     "%x# = arith.muli %p, %n : i32\nscf.yield %x# : i32\n} else {\n",
     "scf.yield %p : i32\n}\n", "scf.yield %r+ : i32\n}\n"},
    {"for", "scf.for %i# = %z to %n step %u : i32 {\n",
     "%w = arith.addi %i1, %n : i32\ntt.store %o, %w : !tt.ptr<i32>\n", "}\n"},
    {"while",
     "%r# = scf.while (%b# = %n) : (i32) -> i32 {\n%e# = arith.cmpi slt, %b#, %p : i32\n"
     "scf.condition(%e#) %b# : i32\n} do {\n^bb0(%a#: i32):\n",
     "scf.yield %n : i32\n}\n", "scf.yield %r+ : i32\n}\n"},
    {"tensors",
     "%v# = tt.load %o {isVolatile = true} : !tt.ptr<i32>\n"
     "%e# = arith.cmpi eq, %v#, %n : i32\n%r# = scf.if %e# -> (tensor<64xi32>) {\n"
     "%f# = arith.addi %t, %t : tensor<64xi32>\n",
     "scf.yield %t : tensor<64xi32>\n} else {\nscf.yield %t : tensor<64xi32>\n}\n",
     "scf.yield %r+ : tensor<64xi32>\n} else {\nscf.yield %t : tensor<64xi32>\n}\n"},
};

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void put(lilac_text *out, const char *pattern, uint32_t level) {
    for (const char *c = pattern; *c; c++) {
        if (*c == '#') {
            lilac_text_unsigned(out, level);
        } else if (*c == '+') {
            lilac_text_unsigned(out, level + 1);
        } else {
            lilac_text_char(out, *c);
        }
    }
}

static void make(lilac_text *out, const shape *s, uint32_t levels) {
    lilac_text_puts(out, "module {\ntt.func public @k(%o: !tt.ptr<i32>, %n: i32, %p: i32) {\n"
                         "%z = arith.constant 0 : i32\n%u = arith.constant 1 : i32\n"
                         "%t = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n");
    for (uint32_t i = 1; i <= levels; i++) {
        put(out, s->open, i);
    }
    lilac_text_puts(out, s->middle);
    for (uint32_t i = levels; i > (s->middle[0] == 's' ? 1u : 0u); i--) {
        put(out, s->close, s->middle[0] == 's' ? i - 1 : i);
    }
    lilac_text_puts(out, "tt.return\n}\n}\n");
}

/* Compiles; where it is refused, the diagnostic says that it is for its nesting, and where. */
static bool compiles(const shape *s, uint32_t levels) {
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    make(&text, s, levels);
    uint32_t source = lilac_source_add(context, "deep.ttir", text.bytes, text.length);
    lilac_options options;
    lilac_options_init(&options);
    options.verify = true;
    lilac_compilation made;
    bool good = lilac_compile(&made, context, source, &options);
    if (!good) {
        const lilac_diagnostic *first = lilac_diagnostics(context);
        if (strcmp(first->id, "nested-too-deep") != 0) {
            print_message("%s: %s\n", s->name, first->message);
        }
        assert_string_equal(first->id, "nested-too-deep");
        assert_true(first->position.source != 0 && first->position.offset > 0);
    }
    lilac_compilation_clear(&made);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
    return good;
}

static void thousands_compile(void **state) {
    (void)state;
    uint32_t limit = lilac_nesting_limit();
    assert_true(limit >= LILAC_MIN_NESTING && limit <= LILAC_MAX_NESTING);
    for (uint32_t i = 0; i < SHAPES; i++) {
        assert_true(compiles(&shapes[i], 60));
        assert_true(compiles(&shapes[i], limit > 3100 ? 3000 : limit - limit / 16));
    }
}

static void deeper_is_refused(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SHAPES; i++) {
        assert_false(compiles(&shapes[i], 5000));
        assert_false(compiles(&shapes[i], 20000));
    }
}

typedef struct thread_result {
    uint32_t limit;
    bool compiled[SHAPES][2];
} thread_result;

static void *run_thread(void *data) {
    thread_result *result = data;
    result->limit = lilac_nesting_limit();
    for (uint32_t i = 0; i < SHAPES; i++) {
        result->compiled[i][0] = compiles(&shapes[i], result->limit - result->limit / 8);
        result->compiled[i][1] = compiles(&shapes[i], 4000);
    }
    return NULL;
}

/* A thread with a small stack compiles what its limit allows and refuses the rest. */
static void small_stacks_do_not_overflow(void **state) {
    (void)state;
    static const size_t sizes[] = {256 << 10, 512 << 10, 2 << 20};
    uint32_t before = 0;
    for (uint32_t i = 0; i < 3; i++) {
        pthread_attr_t attributes;
        pthread_t thread;
        thread_result result = {0};
        assert_int_equal(pthread_attr_init(&attributes), 0);
        assert_int_equal(pthread_attr_setstacksize(&attributes, sizes[i]), 0);
        assert_int_equal(pthread_create(&thread, &attributes, run_thread, &result), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attributes);
        assert_true(result.limit >= before && result.limit < 2100);
        before = result.limit;
        for (uint32_t k = 0; k < SHAPES; k++) {
            assert_true(result.compiled[k][0]);
            assert_false(result.compiled[k][1]);
        }
    }
}

/* What calls bring in counts: bodies of 3,000 levels in each other. */
static void calls_count(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_text_puts(&text, "module {\n");
    for (uint32_t f = 0; f < 2; f++) {
        lilac_text_printf(&text, "tt.func %s @f%u(%%o: !tt.ptr<i32>, %%n: i32) {\n",
                          f ? "private" : "public", f);
        for (uint32_t i = 1; i <= lilac_nesting_limit() / 2 + 10; i++) {
            put(&text, shapes[0].open, i);
        }
        if (f == 0) {
            lilac_text_puts(&text, "tt.call @f1(%o, %n) : (!tt.ptr<i32>, i32) -> ()\n");
        }
        for (uint32_t i = 1; i <= lilac_nesting_limit() / 2 + 10; i++) {
            lilac_text_puts(&text, "}\n");
        }
        lilac_text_puts(&text, "tt.return\n}\n");
    }
    lilac_text_puts(&text, "}\n");
    uint32_t source = lilac_source_add(context, "calls.ttir", text.bytes, text.length);
    lilac_options options;
    lilac_options_init(&options);
    lilac_compilation made;
    assert_false(lilac_compile(&made, context, source, &options));
    assert_string_equal(lilac_diagnostics(context)->id, "nested-too-deep");
    lilac_compilation_clear(&made);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousands_compile),
        cmocka_unit_test(deeper_is_refused),
        cmocka_unit_test(small_stacks_do_not_overflow),
        cmocka_unit_test(calls_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
