/* count_programs: the number of programs that the masks of stores say, for the forms of index arithmetic that have one
 * and for those that do not. */
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/engine.h>
#include <lilac/simt.h>

#define HEAD                                                                                       \
    "module {\ntt.func public @f(%o: !tt.ptr<f32>, %n: i32, %n_p: !tt.ptr<i32>) {\n"               \
    "%v = arith.constant dense<1.0> : tensor<64xf32>\n"                                            \
    "%c1 = arith.constant 1 : i32\n%c64 = arith.constant 64 : i32\n"                               \
    "%cm64 = arith.constant -64 : i32\n"                                                           \
    "%r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n"                      \
    "%r2 = tt.make_range {start = 2 : i32, end = 66 : i32} : tensor<64xi32>\n"                     \
    "%p = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"                                 \
    "%a = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
#define X "%x = tt.get_program_id x : i32\n"
#define Y "%y = tt.get_program_id y : i32\n"
#define Z "%z = tt.get_program_id z : i32\n"
/* name = splat(program · 64) + range */
#define INDEX(name, program)                                                                       \
    "%" name "0 = arith.muli " program ", %c64 : i32\n%" name "1 = tt.splat %" name                \
    "0 : i32 -> tensor<64xi32>\n%" name " = arith.addi %" name "1, %r : tensor<64xi32>\n"
#define BOUND(name, number) "%" name " = arith.constant dense<" number "> : tensor<64xi32>\n"
#define LESS(name, index, bound)                                                                   \
    "%" name " = arith.cmpi slt, %" index ", %" bound " : tensor<64xi32>\n"
#define STORE(mask)      "tt.store %a, %v, %" mask " : tensor<64x!tt.ptr<f32>>\n"
#define BOTH(name, a, b) "%" name " = arith.andi %" a ", %" b " : tensor<64xi1>\n"

static uint32_t programs_of(const char *body, lilac_target target) {
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_options options;
    lilac_compilation result;
    lilac_text_puts(&text, HEAD);
    lilac_text_puts(&text, body);
    lilac_text_puts(&text, "tt.return\n}\n}\n");
    lilac_options_init(&options);
    options.target = target;
    options.verify = true;
    if (!lilac_compile(&result, context,
                       lilac_source_add(context, "f.ttir", lilac_text_get(&text), text.length),
                       &options)) {
        print_diagnostics(context);
        fail_msg("%s", lilac_text_get(&text));
    }
    const uint32_t programs = result.simt->kernels->programs;
    lilac_text_clear(&text);
    lilac_compilation_clear(&result);
    lilac_context_destroy(context);
    return programs;
}

static const lilac_target usual = {.num_warps = 4, .num_ctas = 1, .num_stages = 2};

static void by_masks(void **state) {
    (void)state;
    static const struct {
        const char *body;
        uint32_t programs;
    } cases[] = {
        {X INDEX("i", "%x") BOUND("b", "51200") LESS("m", "i", "b") STORE("m"), 800},
        {X INDEX("i", "%x") BOUND("b", "51201") LESS("m", "i", "b") STORE("m"), 801},
        {X INDEX("i", "%x") BOUND("b", "63") LESS("m", "i", "b") STORE("m"), 1},
        /* other comparisons */
        {X INDEX("i", "%x")
             BOUND("b", "128") "%m = arith.cmpi sle, %i, %b : tensor<64xi32>\n" STORE("m"),
         3},
        {X INDEX("i", "%x")
             BOUND("b", "128") "%m = arith.cmpi sgt, %b, %i : tensor<64xi32>\n" STORE("m"),
         2},
        {X INDEX("i", "%x")
             BOUND("b", "128") "%m = arith.cmpi uge, %b, %i : tensor<64xi32>\n" STORE("m"),
         3},
        {X INDEX("i", "%x")
             BOUND("b", "128") "%m = arith.cmpi slt, %b, %i : tensor<64xi32>\n" STORE("m"),
         0},
        {X INDEX("i", "%x")
             BOUND("b", "128") "%m = arith.cmpi eq, %b, %i : tensor<64xi32>\n" STORE("m"),
         0},
        {X INDEX("i", "%x") BOUND("b", "0") LESS("m", "i", "b") STORE("m"), 0},
        {X INDEX("i", "%x") BOUND("b", "-5") LESS("m", "i", "b") STORE("m"), 0},
        /* the number of the program itself */
        {X "%b = arith.constant 440 : i32\n%s = arith.cmpi slt, %x, %b : i32\n"
           "%m = tt.splat %s : i1 -> tensor<64xi1>\n" STORE("m"),
         440},
        /* two axes, each with a bound; one has none; one is not asked for */
        {X Y INDEX("i", "%x") INDEX("j", "%y") BOUND("b", "640") BOUND("c", "128")
             LESS("m", "i", "b") LESS("k", "j", "c") BOTH("l", "m", "k") STORE("l"),
         20},
        {X Y INDEX("i", "%x") INDEX("j", "%y") BOUND("b", "640")
             LESS("m", "i", "b") "%e = tt.addptr %a, %j : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
                                 "tt.store %e, %v, %m : tensor<64x!tt.ptr<f32>>\n",
         0},
        {Y INDEX("i", "%y") BOUND("b", "640") LESS("m", "i", "b") STORE("m"), 10},
        /* an axis in two parts */
        {Y Z "%h = tt.get_num_programs y : i32\n%w = arith.muli %z, %h : i32\n%q = arith.addi %y, "
             "%w : i32\n" INDEX("i", "%q") BOUND("b", "6400") LESS("m", "i", "b") STORE("m"),
         100},
        {Y Z "%h = tt.get_num_programs x : i32\n%w = arith.muli %z, %h : i32\n%q = arith.addi %y, "
             "%w : i32\n" INDEX("i", "%q") BOUND("b", "6400") LESS("m", "i", "b") STORE("m"),
         0},
        /* two stores: the larger bound */
        {X INDEX("i", "%x") BOUND("b", "640") BOUND("c", "1280") LESS("m", "i", "b")
             LESS("k", "i", "c") STORE("m") STORE("k"),
         20},
        {X INDEX("i", "%x") BOUND("b", "640") BOUND("c", "1280") LESS("m", "i", "b")
             LESS("k", "i", "c") STORE("k") STORE("m"),
         20},
        /* an axis in two parts, one of which has a bound of its own, too; parts that are not whole programs */
        {Y Z "%h = tt.get_num_programs y : i32\n%w = arith.muli %z, %h : i32\n%q = arith.addi %y, "
             "%w : i32\n" INDEX("i", "%q") INDEX("j", "%y") BOUND("b", "6400") BOUND("c", "128")
                 LESS("m", "i", "b") LESS("k", "j", "c") BOTH("l", "m", "k") STORE("l"),
         100},
        {Y Z "%h = tt.get_num_programs y : i32\n%w = arith.muli %z, %h : i32\n%f = arith.muli %y, "
             "%c64 : i32\n"
             "%q = arith.addi %f, %w : i32\n%b = arith.constant 6400 : i32\n%s = arith.cmpi slt, "
             "%q, %b : i32\n"
             "%m = tt.splat %s : i1 -> tensor<64xi1>\n" STORE("m"),
         0},
        /* a mask of a load alone, no mask, a bound that is an argument, a step that is not known */
        {X INDEX("i", "%x") BOUND("b", "640")
             LESS("m", "i", "b") "%l = tt.load %a, %m, %v : tensor<64x!tt.ptr<f32>>\n"
                                 "tt.store %a, %l : tensor<64x!tt.ptr<f32>>\n",
         0},
        {X INDEX("i", "%x") "%b = tt.splat %n : i32 -> tensor<64xi32>\n" LESS("m", "i", "b")
             STORE("m"),
         0},
        {X "%i0 = arith.muli %x, %n : i32\n%i1 = tt.splat %i0 : i32 -> tensor<64xi32>\n"
           "%i = arith.addi %i1, %r : tensor<64xi32>\n" BOUND("b", "640") LESS("m", "i", "b")
               STORE("m"),
         0},
        {X "%i0 = arith.muli %x, %cm64 : i32\n%i1 = tt.splat %i0 : i32 -> tensor<64xi32>\n"
           "%i = arith.addi %i1, %r : tensor<64xi32>\n" BOUND("b", "640") LESS("m", "i", "b")
               STORE("m"),
         0},
        /* elements that do not begin at 0 */
        {X "%i0 = arith.muli %x, %c64 : i32\n%i1 = tt.splat %i0 : i32 -> tensor<64xi32>\n"
           "%i = arith.addi %i1, %r2 : tensor<64xi32>\n" BOUND("b", "640") LESS("m", "i", "b")
               STORE("m"),
         0},
        /* a further store that all programs execute */
        {X INDEX("i", "%x") BOUND("b", "640") LESS("m", "i", "b")
             STORE("m") "tt.store %a, %v : tensor<64x!tt.ptr<f32>>\n",
         0},
        {X Y INDEX("i", "%x") INDEX("j", "%y") BOUND("b", "640") BOUND("c", "128")
             LESS("m", "i", "b") LESS("k", "j", "c") BOTH("l", "m", "k") STORE("l") STORE("m"),
         0},
        {X INDEX("i", "%x") BOUND("b", "640") LESS("m", "i", "b")
             STORE("m") "%f = tt.atomic_cas relaxed, gpu, %n_p, %n, %n : (!tt.ptr<i32>, i32, i32) "
                        "-> i32\n",
         0},
        /* assertions store nothing */
        {X INDEX("i", "%x") BOUND("b", "640")
             LESS("m", "i", "b") "tt.assert %m, \"m\" : tensor<64xi1>\n" STORE("m"),
         10},
        /* either of two: no bound */
        {X INDEX("i", "%x") BOUND("b", "640") LESS("m", "i", "b")
             LESS("k", "r", "b") "%l = arith.ori %m, %k : tensor<64xi1>\n" STORE("l"),
         0},
        /* an atomic operation has a mask, too */
        {X INDEX("i", "%x") BOUND("b", "640")
             LESS("m", "i", "b") "%l = tt.atomic_rmw fadd, relaxed, gpu, %a, %v, %m : "
                                 "(tensor<64x!tt.ptr<f32>>, tensor<64xf32>, "
                                 "tensor<64xi1>) -> tensor<64xf32>\n",
         10},
        /* too many to count */
        {X Y "%i = arith.constant 2000000000 : i32\n%s = arith.cmpi slt, %x, %i : i32\n"
             "%t = arith.cmpi slt, %y, %i : i32\n%u = arith.andi %s, %t : i1\n"
             "%m = tt.splat %u : i1 -> tensor<64xi1>\n" STORE("m"),
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t programs = programs_of(cases[i].body, usual);
        if (programs != cases[i].programs) {
            fail_msg("case %zu: %u, not %u", i, programs, cases[i].programs);
        }
    }
}

static void clusters(void **state) {
    (void)state;
    lilac_target target = usual;
    target.num_ctas = 2;
    assert_int_equal(
        programs_of(X INDEX("i", "%x") BOUND("b", "51200") LESS("m", "i", "b") STORE("m"), target),
        0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_masks), cmocka_unit_test(clusters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
