/* Loads an iteration ahead: which loops are changed, that what they compute is not, and that
 * nothing is read that was not read before. Every loop runs on the simulator before and after the
 * pass, for trip counts from none up and counters at both ends of their range; the buffer ends
 * where the last iteration's loads end. */
#include <lilac/sim.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 64, ROW = 16 * THREADS, ROUNDS = 6 };

/* %k: which iteration it is, from 0 on; %t: the thread; %s: the shared memory of the thread; %m:
 * the shared memory of another one; %sum: what is carried, to be given on as %n. */
static const char head[] =
    "simt.module target \"sm_90a\" {\n"
    "kernel @k(%in: i64 ptr align 16, %a: i32, %b: i32, %step: i32, %out: i64 ptr align 16, %c: "
    "i32)"
    " warps 2 ctas 1 shared 256 {\n"
    "%in = param 0 : i64\n%a = param 1 : i32\n%b = param 2 : i32\n%step = param 3 : i32\n"
    "%out = param 4 : i64\n%c = param 5 : i32\n%t = thread : i32\n%base = shared_base : i32\n"
    "%zero = const 0 : i32\n%three = const 3 : i32\n%four = const 4 : i32\n%sixteen = const 16 : "
    "i32\n"
    "%last = const 63 : i32\n%row = const 1024 : i32\n"
    "%t4 = mul %t, %four : i32\n%s = add %base, %t4 : i32\n%u = sub %last, %t : i32\n"
    "%u4 = mul %u, %four : i32\n%m = add %base, %u4 : i32\n%q = cmp lt %t, %c : i1\n"
    "%w = mulwide_u %t4, %four : i64\n%mine = add %in, %w : i64\n";
static const char loop_begin[] =
    "%r = loop %i = %a to %b step %step (%sum = %three) : i32 {\n"
    "%d = sub %i, %a : i32\n%k = div_u %d, %four : i32\n%kr = mulwide_u %k, %row : i64\n"
    "%p = add %mine, %kr : i64\n";
static const char loop_end[] = "yield %n\n}\n";
static const char tail[] = "%o8 = mulwide_u %t4, %four : i64\n%o = add %out, %o8 : i64\n"
                           "st.global [%o], (%r)\nreturn\n}\n}\n";

/* What the block does with %x: every thread takes another one's, between two barriers. */
#define TURN                                                                                       \
    "barrier {shared}\nst.shared [%s], (%x)\nbarrier {shared}\n%y = ld.shared [%m] : i32\n"        \
    "%z = mul %sum, %three : i32\n%n = add %z, %y : i32\n"
#define LOAD "%x = ld.global [%p] : i32\n"

static const struct loop {
    const char *name;
    bool changed;
    const char *body;
} loops[] = {
    {"a load", true, LOAD TURN},
    {"a load of some threads", true, "%x = ld.global [%p], %q : i32\n" TURN},
    {"others than zero", true, "%x = ld.global [%p], %q, (%k) : i32\n" TURN},
    {"the counter is wanted later", true, LOAD TURN "%n2 = add %n, %i : i32\n"},
    {"four words", true,
     "%x1, %x2, %x3, %x4 = ld.global [%p] : i32, i32, i32, i32\n%x5 = xor %x1, %x2 : i32\n"
     "%x6 = add %x3, %x4 : i32\n%x = sub %x5, %x6 : i32\n" TURN},
    {"two loads, one narrow", true,
     LOAD "%h = ld.global [%p + 6], %q : i16\n%g = zext %h : i32\n" TURN
          "%n2 = add %n, %g : i32\n"},
    {"what was loaded is carried", true, LOAD TURN "%n2 = xor %n, %x : i32\n"},
    {"barriers in an if", true,
     LOAD "%e = cmp lt %zero, %c : i1\n%v = if %e : i32 {\nbarrier {shared}\nst.shared [%s], (%x)\n"
          "barrier {shared}\n%y = ld.shared [%m] : i32\nyield %y\n} else {\nyield %x\n}\n"
          "%z = mul %sum, %three : i32\n%n = add %z, %v : i32\n"},
    {"no barrier", false, LOAD "%n = add %sum, %x : i32\n"},
    {"no load", false, "%x = add %k, %t : i32\n" TURN},
    {"another barrier", false, LOAD TURN "barrier\n"},
    {"a store", false, LOAD TURN "st.global [%out + 8], (%k)\n"},
    {"an atomic operation", false, LOAD TURN "%f = atomic.global add [%out + 8], (%k) : i32\n"},
    {"an assertion", false, LOAD "%e = cmp le %zero, %zero : i1\nassert %e, \"no\"\n" TURN},
    {"a volatile load", false, "%x = ld.global [%p] : i32 {volatile}\n" TURN},
    {"by what is carried", false,
     "%sq = and %sum, %three : i32\n%so = mulwide_u %sq, %four : i64\n%pp = add %p, %so : i64\n"
     "%x = ld.global [%pp] : i32\n" TURN},
    {"by what was loaded", false,
     "%j = ld.global [%p] : i32\n%jj = and %j, %three : i32\n%so = mulwide_u %jj, %four : i64\n"
     "%pp = add %p, %so : i64\n%x = ld.global [%pp] : i32\n" TURN},
    {"in an if", false,
     LOAD "%e = cmp lt %zero, %c : i1\n%v = if %e : i32 {\n%y9 = ld.global [%p + 4] : i32\n"
          "yield %y9\n} else {\nyield %zero\n}\n" TURN "%n2 = add %n, %v : i32\n"},
    {"by a division that may trap", false,
     "%jq = div_u %k, %c : i32\n%so = mulwide_u %jq, %zero : i64\n%pp = add %p, %so : i64\n"
     "%x = ld.global [%pp] : i32\n" TURN},
    {"too many words", false,
     "%x1, %x2, %x3, %x4 = ld.global [%p] : i32, i32, i32, i32\n"
     "%x5, %x6, %x7, %x8 = ld.global [%p], %q : i32, i32, i32, i32\n"
     "%x9, %x10, %x11, %x12 = ld.global [%p] : i32, i32, i32, i32\n"
     "%x13, %x14, %x15, %x16 = ld.global [%p] : i32, i32, i32, i32\n"
     "%x17 = ld.global [%p] : i32\n%x = add %x1, %x17 : i32\n" TURN},
    {"a loop within", false,
     LOAD "%v = loop %i2 = %zero to %three step %three (%w2 = %x) : i32 {\nyield %w2\n}\n" TURN},
};

static lilac_simt_module *read_loop(lilac_context *context, const struct loop *loop) {
    lilac_text text = {0};
    lilac_text_puts(&text, head);
    lilac_text_puts(&text, loop_begin);
    lilac_text_puts(&text, loop->body);
    lilac_text_puts(&text, strstr(loop->body, "%n2 =") ? "yield %n2\n}\n" : loop_end);
    lilac_text_puts(&text, tail);
    uint32_t source = lilac_source_add(context, loop->name, text.bytes, text.length);
    lilac_simt_module *module = lilac_simt_read(context, source);
    if (module == NULL || !lilac_simt_verify(module)) {
        lilac_text said = {0};
        for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
            lilac_diagnostic_print(&said, context, d, false);
        }
        fprintf(stderr, "%s: %s%s", loop->name, text.bytes, lilac_text_get(&said));
        fail();
    }
    lilac_text_clear(&text);
    return module;
}

/* Runs from `a` on in steps of four, `rounds` times; the input has just that many rows. */
static bool run(lilac_context *context, const lilac_simt_module *module, int32_t a, uint32_t rounds,
                uint32_t some, uint8_t *output) {
    size_t size = rounds > 0 ? (size_t)rounds * ROW : 16;
    uint8_t *input = malloc(size);
    for (size_t k = 0; k < size; k++) {
        input[k] = (uint8_t)(k * 7 + k / 5);
    }
    memset(output, 0x5A, ROW);
    lilac_sim_buffer buffers[2] = {{.name = "in", .bytes = input, .size = size, .read_only = true},
                                   {.name = "out", .bytes = output, .size = ROW}};
    lilac_sim_place(buffers, 2);
    uint32_t b = (uint32_t)a + 4 * rounds - rounds % 4; /* the last step may end at it or beyond */
    uint64_t arguments[6] = {buffers[0].address, (uint32_t)a, b, 4, buffers[1].address, some};
    lilac_sim_launch launch = {.kernel = module->kernels,
                               .grid = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 6,
                               .buffers = buffers,
                               .buffer_count = 2,
                               .threads = 1};
    lilac_sim_counters counters = {0};
    bool good = lilac_sim_run(context, &launch, &counters);
    free(input);
    return good;
}

static void loops_are_what_they_were(void **state) {
    (void)state;
    for (size_t l = 0; l < sizeof loops / sizeof loops[0]; l++) {
        lilac_context *context = lilac_context_create();
        lilac_simt_module *before = read_loop(context, &loops[l]);
        lilac_simt_module *after = read_loop(context, &loops[l]);
        bool changed = lilac_simt_opt_prefetch(after->kernels);
        if (changed != loops[l].changed || !lilac_simt_verify(after)) {
            lilac_text text = {0};
            lilac_simt_print(&text, after);
            fprintf(stderr, "%s: %s\n%s", loops[l].name, changed ? "changed" : "left", text.bytes);
            fail();
        }
        /* Swept, cleaned and done again it still computes the same. */
        lilac_simt_module *twice = read_loop(context, &loops[l]);
        (void)lilac_simt_opt_prefetch(twice->kernels);
        (void)lilac_simt_opt_fold(twice->kernels);
        (void)lilac_simt_opt_cse(twice->kernels);
        (void)lilac_simt_opt_licm(twice->kernels);
        (void)lilac_simt_opt_dce(twice->kernels);
        assert_true(lilac_simt_verify(twice));
        static const int32_t starts[] = {0, -7, INT32_MIN, 1000000, INT32_MAX};
        for (uint32_t s = 0; s < 5; s++) {
            for (uint32_t rounds = 0; rounds < ROUNDS; rounds++) {
                int32_t a = s == 4 ? (int32_t)(INT32_MAX - (int32_t)(4 * rounds)) : starts[s];
                for (uint32_t some = 1; some < 65; some += 31) {
                    static uint8_t wanted[ROW], got[ROW];
                    assert_true(run(context, before, a, rounds, some, wanted));
                    if (!run(context, after, a, rounds, some, got) ||
                        memcmp(wanted, got, ROW) != 0 ||
                        !run(context, twice, a, rounds, some, got) ||
                        memcmp(wanted, got, ROW) != 0) {
                        fail_msg("%s: from %d, %u rounds, %u threads", loops[l].name, a, rounds,
                                 some);
                    }
                }
            }
        }
        lilac_simt_module_destroy(before);
        lilac_simt_module_destroy(after);
        lilac_simt_module_destroy(twice);
        lilac_context_destroy(context);
    }
}

/* The load stands in front of the barriers, and in front of the loop. */
static void loads_come_first(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = read_loop(context, &loops[0]);
    assert_true(lilac_simt_opt_prefetch(module->kernels));
    uint32_t outside = 0, inside = 0;
    for (const lilac_simt_instruction *i = module->kernels->body->first; i; i = i->next) {
        outside += i->code == LILAC_SIMT_OP_LD_GLOBAL;
        if (i->code != LILAC_SIMT_OP_LOOP) {
            continue;
        }
        assert_int_equal(outside, 1);
        assert_int_equal(i->result_count, 2);
        const lilac_simt_instruction *inner = i->bodies[0]->first;
        for (; inner->code != LILAC_SIMT_OP_BARRIER; inner = inner->next) {
            inside += inner->code == LILAC_SIMT_OP_LD_GLOBAL;
        }
        assert_int_equal(inside, 1);
        for (; inner != NULL; inner = inner->next) {
            assert_int_not_equal(inner->code, LILAC_SIMT_OP_LD_GLOBAL);
        }
    }
    assert_int_equal(outside, 1);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_are_what_they_were),
        cmocka_unit_test(loads_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
