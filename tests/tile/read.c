/* The reader and the verifier of tile IR.
 *
 * Wrong text: each diagnostic has a case, and its line is checked. Properties of all text: white space
 * does not matter, one error does not hide another, a location may be used before its definition. */
#define _POSIX_C_SOURCE 200809L

#include <lilac/tile.h>

#include "support/test.h"

/* ---- helpers ---------------------------------------------------------------------------- */

static lilac_tile_module *read_text(lilac_context *context, const char *text) {
    uint32_t source = lilac_source_add(context, "test.ttir", text, strlen(text));
    assert_int_not_equal(source, 0);
    return lilac_tile_read(context, source);
}

static char *printed(const lilac_tile_module *module, bool locations) {
    lilac_text text = {0};
    lilac_tile_print(&text, module, locations);
    char *copy = strdup(lilac_text_get(&text));
    lilac_text_clear(&text);
    return copy;
}

/* Five lines before the body: its first line is line 6 of the text. */
#define HEAD                                                                                       \
    "module {\n"                                                                                   \
    "  tt.func private @g(%a: i32) -> i32 {\n"                                                     \
    "    tt.return %a : i32\n"                                                                     \
    "  }\n"                                                                                        \
    "  tt.func public @f(%p: !tt.ptr<f32>, %i: i32, %t: tensor<8xi32>, %x: tensor<8xf32>, "        \
    "%q: tensor<8x!tt.ptr<f32>>, %c: i1, %m: tensor<4x8xf32>, %h: f16, %y: f32, %l: i64) {\n"
#define TAIL                                                                                       \
    "\n    tt.return\n"                                                                            \
    "  }\n"                                                                                        \
    "}\n"

typedef struct wrong {
    const char *id;
    uint32_t line;       /* where the first error is */
    const char *message; /* something that it says */
    const char *body;
} wrong;

/* Whether the first diagnostic of `text` is the one wanted; says so when it is not. */
static bool is_refused(const wrong *w, const char *text, bool layouts) {
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_text(context, text);
    bool accepted = module && lilac_tile_verify(module, layouts);
    const lilac_diagnostic *d = lilac_diagnostics(context);
    uint32_t line = 0, column = 0;
    if (d) {
        lilac_position_resolve(context, d->position, &line, &column);
    }
    bool good = !accepted && d && strcmp(d->id, w->id) == 0 && strstr(d->message, w->message) &&
                line == w->line;
    if (!good) {
        print_error("%s\nexpected [%s] (%s) in line %u; the diagnostics are:\n", w->body, w->id,
                    w->message, w->line);
        print_diagnostics(context);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    return good;
}

static void check_wrong(const wrong *w, const char *text, bool layouts) {
    assert_true(is_refused(w, text, layouts));
}

static void check_bodies(const wrong *list, size_t count) {
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        lilac_text text = {0};
        lilac_text_puts(&text, HEAD);
        lilac_text_puts(&text, list[i].body);
        lilac_text_puts(&text, TAIL);
        good &= is_refused(&list[i], text.bytes, false);
        lilac_text_clear(&text);
    }
    assert_true(good);
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- one body, one fault ---------------------------------------------------------------- */

static void reader_refuses(void **state) {
    (void)state;
    static const wrong list[] = {
        {"unknown-operation", 6, "'tt.lod'", "%v = tt.lod %p : !tt.ptr<f32>"},
        {"unknown-operation", 6, "'tt.lod'", "%v = \"tt.lod\"(%p) : (!tt.ptr<f32>) -> f32"},
        {"undefined-value", 6, "'%nowhere'", "%v = arith.addi %i, %nowhere : i32"},
        {"undefined-value", 7, "'%v#1'",
         "%v = arith.addi %i, %i : i32\n%w = arith.addi %v, %v#1 : i32"},
        {"undefined-value", 6, "'%v'", "%v = arith.addi %v, %i : i32"},
        {"type-mismatch", 6, "'i32' is needed", "%v = arith.addi %i, %t : i32"},
        {"type-mismatch", 6, "has type 'tensor<8xi32>'", "%v = arith.addi %i, %t : i32"},
        {"type-mismatch", 6, "floating-point", "%v = arith.addf %i, %i : i32"},
        {"type-mismatch", 6, "integers", "%v = arith.addi %x, %x : tensor<8xf32>"},
        {"type-mismatch", 6, "wider", "%v = arith.extsi %i : i32 to i16"},
        {"type-mismatch", 6, "narrower", "%v = arith.trunci %i : i32 to i64"},
        {"type-mismatch", 6, "as many bits as", "%v = tt.bitcast %i : i32 -> i64"},
        {"type-mismatch", 6, "the shape and layout of",
         "%v = arith.extsi %t : tensor<8xi32> to tensor<4xi64>"},
        {"type-mismatch", 6, "a pointer or a tensor of pointers",
         "%v = tt.load %x : tensor<8xf32>"},
        {"type-mismatch", 6, "'tensor<8xi1>' is needed",
         "%v = tt.load %q, %c : tensor<8x!tt.ptr<f32>>"},
        {"type-mismatch", 6, "'tensor<8xf32>' is needed",
         "tt.store %q, %t : tensor<8x!tt.ptr<f32>>"},
        {"type-mismatch", 6, "must stand again",
         "%v = tt.atomic_cas acq_rel, gpu, %p, %h, %h : (!tt.ptr<f32>, f16, f32) -> f32"},
        {"type-mismatch", 6, "i1", "scf.if %i {\n}"},
        {"count-mismatch", 6, "has 1 results, not 2", "%v:2 = arith.addi %i, %i : i32"},
        {"count-mismatch", 6, "has 0 results, not 1", "%v = tt.store %p, %y : !tt.ptr<f32>"},
        {"count-mismatch", 6, "has 1 results, not 0", "arith.addi %i, %i : i32"},
        {"count-mismatch", 6, "1 types for 2 operands",
         "\"tt.atomic_rmw\"(%p, %h) : (!tt.ptr<f32>) -> f16"},
        {"count-mismatch", 6, "same length",
         "%v = tt.make_tensor_descriptor %p, [%i, %i], [%i] : <f32>, <tensor<4x8xf32>>"},
        {"count-mismatch", 6, "1 to 1024", "%v:0 = arith.addi %i, %i : i32"},
        {"redefinition", 7, "'%v'", "%v = arith.addi %i, %i : i32\n%v = arith.addi %i, %i : i32"},
        {"redefinition", 6, "'%i'", "scf.for %i = %i to %i step %i  : i32 {\n}"},
        {"redefinition", 6, "attribute 'a'", "%v = arith.addi %i, %i {a, a} : i32"},
        {"not-a-power-of-two", 6, "is 12", "%v = arith.constant dense<0> : tensor<12xi32>"},
        {"not-a-power-of-two", 6, "dimension 1", "%v = arith.constant dense<0> : tensor<8x3xi32>"},
        {"tensor-too-large", 6, "1048576", "%v = arith.constant dense<0> : tensor<1024x2048xi32>"},
        {"tensor-too-large", 6, "1048576",
         "%v = arith.constant dense<0> : tensor<4611686018427387904x4611686018427387904xi32>"},
        {"unknown-type", 6, "'f17'", "%v = arith.constant 1.0 : f17"},
        {"unknown-type", 6, "'!tt.pointer'",
         "%v = tt.bitcast %p : !tt.ptr<f32> -> !tt.pointer<f32>"},
        {"bad-type", 6, "numbers or pointers",
         "%v = tt.bitcast %p : !tt.ptr<f32> -> tensor<4xtensor<4xf32>>"},
        {"bad-type", 6, "describes tensors",
         "%v = tt.bitcast %p : !tt.ptr<f32> -> !tt.tensordesc<f32>"},
        {"bad-type", 6, "address spaces", "%v = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<f32, 999>"},
        {"rank-too-large", 6, "dimensions",
         "%v = arith.constant dense<0> : "
         "tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xi32>"},
        {"unknown-dimension", 6, "known", "%v = arith.constant dense<0> : tensor<?xi32>"},
        {"bad-dimension", 6, "between", "%v = arith.constant dense<0> : tensor<0xi32>"},
        {"bad-literal", 6, "300", "%v = arith.constant 300 : i8"},
        {"bad-literal", 6, "-129", "%v = arith.constant -129 : i8"},
        {"bad-literal", 6, "floating-point", "%v = arith.constant 1.0 : i32"},
        {"bad-literal", 6, "has a point", "%v = arith.constant 1 : f32"},
        {"bad-literal", 6, "more than 16 bits", "%v = arith.constant 0xFFFFF : f16"},
        {"bad-literal", 6, "i1 only", "%v = arith.constant dense<true> : tensor<8xi32>"},
        {"bad-literal", 6, "a number or dense", "%v = arith.constant \"text\""},
        {"bad-literal", 6, "cannot have the type", "%v = arith.constant 1 : tensor<8xi32>"},
        {"bad-literal", 6, "not a 'i32'", "%v = arith.constant dense<1> : i32"},
        {"bad-literal", 6, "hexadecimal",
         "%v = arith.constant dense<\"0xZZZZZZZZ\"> : tensor<8xi32>"},
        {"integer-too-large", 6, "64 bits", "%v = arith.constant 99999999999999999999 : i64"},
        {"shape-mismatch", 6, "the shape of", "%v = arith.constant dense<[1, 2]> : tensor<4xi32>"},
        {"shape-mismatch", 6, "different length",
         "%v = arith.constant dense<[[1, 2], [3]]> : tensor<2x2xi32>"},
        {"shape-mismatch", 6, "different depth",
         "%v = arith.constant dense<[[1, 2], 3]> : tensor<2x2xi32>"},
        {"shape-mismatch", 6, "hexadecimal digits",
         "%v = arith.constant dense<\"0x000000\"> : tensor<8xi32>"},
        {"unsupported-attribute", 6, "#tt.thing",
         "%v = arith.addi %i, %i {a = #tt.thing<1>} : i32"},
        {"unsupported-attribute", 6, "arrays of integers",
         "%v = arith.addi %i, %i {a = array<f32: 1.0>} : i32"},
        {"unsupported-attribute", 6, "as bytes",
         "%v = arith.constant dense<\"0x00\"> : tensor<8xi1>"},
        {"bad-attribute", 6, "99 is no value",
         "%v = \"arith.cmpi\"(%i, %i) <{predicate = 99 : i64}> : (i32, i32) -> i1"},
        {"undefined-block", 6, "'^bb7'", "cf.br ^bb7"},
        {"syntax", 6, "expected one of: eq ne", "%v = arith.cmpi foo, %i, %i : i32"},
        {"syntax", 6, "expected ':'", "%v = arith.addi %i, %i i32"},
        {"syntax", 6, "generic form", "%v = tt.reduce %x : tensor<8xf32> -> f32"},
        {"syntax", 6, "expected an operation", "%v = 12"},
        {"syntax", 6, "closing quote", "cf.assert %c, \"no end"},
        {"syntax", 6, "begins nothing", "%v = arith.addi %i, %i ` : i32"},
    };
    check_bodies(list, COUNT(list));
}

static void verifier_refuses(void **state) {
    (void)state;
    static const wrong list[] = {
        {"not-visible", 11, "%v",
         "cf.cond_br %c, ^bb1, ^bb2\n^bb1:\n  %v = arith.addi %i, %i : i32\n"
         "  cf.br ^bb2\n^bb2:\n  %w = arith.addi %v, %i : i32"},
        {"bad-terminator", 6, "last operation", "tt.return"},
        {"bad-terminator", 6, "cannot end a block", "scf.yield\n^bb1:"},
        {"bad-terminator", 5, "empty block", "cf.br ^bb1\n^bb1:\n^bb2:"},
        {"bad-terminator", 7, "must end in 'scf.yield'",
         "%v = scf.if %c -> (i32) {\n  tt.return\n} else {\n  scf.yield %i : i32\n}"},
        {"bad-region", 6, "one block", "scf.if %c {\n  cf.br ^bb1\n^bb1:\n}"},
        {"unknown-function", 6, "'@nobody'", "tt.call @nobody() : () -> ()"},
        {"type-mismatch", 6, "'i32' is needed", "%v = tt.call @g(%h) : (f16) -> i32"},
        {"count-mismatch", 6, "0 operands, but 1 are needed", "%v = tt.call @g() : () -> i32"},
        {"count-mismatch", 6, "cannot have 1 operands", "%v = \"arith.addi\"(%i) : (i32) -> i32"},
        {"count-mismatch", 6, "has 1 regions, not 0",
         "%v = \"tt.reduce\"(%x) <{axis = 0 : i32}> : (tensor<8xf32>) -> f32"},
        {"count-mismatch", 6, "has 1 successors, not 0", "\"cf.br\"() : () -> ()\n^bb1:"},
        {"bad-attribute", 6, "'predicate'", "%v = \"arith.cmpi\"(%i, %i) : (i32, i32) -> i1"},
        {"bad-attribute", 6, "'axis'",
         "%v = tt.expand_dims %t {axis = 2 : i32} : tensor<8xi32> -> tensor<8x1xi32>"},
        {"bad-attribute", 6, "'order'",
         "%v = tt.trans %m {order = array<i32: 0, 0>} : tensor<4x8xf32> -> tensor<4x4xf32>"},
        {"bad-attribute", 6, "'start' and 'end'", "%v = tt.make_range : tensor<8xi32>"},
        {"shape-mismatch", 6, "as many elements",
         "%v = tt.make_range {end = 9 : i32, start = 0 : i32} : tensor<8xi32>"},
        {"shape-mismatch", 6, "'tensor<8x2xi32>'",
         "%v = tt.expand_dims %t {axis = 1 : i32} : tensor<8xi32> -> tensor<8x2xi32>"},
        {"type-mismatch", 7, "f32 or i32 is needed",
         "%w = arith.extsi %t : tensor<8xi32> to tensor<8xi64>\n"
         "%v = lilac.sum_blocks %w : tensor<8xi64>"},
        {"shape-mismatch", 6, "tt.broadcast",
         "%v = tt.broadcast %m : tensor<4x8xf32> -> tensor<8x8xf32>"},
        {"shape-mismatch", 6, "tt.reshape",
         "%v = tt.reshape %m : tensor<4x8xf32> -> tensor<8xf32>"},
        {"shape-mismatch", 6, "tt.trans",
         "%v = tt.trans %m {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<4x8xf32>"},
        {"shape-mismatch", 6, "tt.join", "%v = tt.join %t, %t : tensor<8xi32> -> tensor<8x4xi32>"},
        {"shape-mismatch", 6, "tt.split",
         "%v, %w = tt.split %m : tensor<4x8xf32> -> tensor<4xf32>"},
        {"shape-mismatch", 6, "tt.cat", "%v = tt.cat %t, %t : tensor<8xi32> -> tensor<8xi32>"},
        {"shape-mismatch", 6, "tt.unsplat", "%v = tt.unsplat %t : tensor<8xi32>"},
        {"shape-mismatch", 6, "tt.dot",
         "%v = tt.dot %m, %m, %m : tensor<4x8xf32> * tensor<4x8xf32> -> tensor<4x8xf32>"},
        {"type-mismatch", 10, "what 'rhs' names",
         "%a = arith.constant dense<0> : tensor<4x16xi8>\n%b = arith.constant dense<0> : "
         "tensor<32x4xi8>\n"
         "%s = arith.constant dense<0> : tensor<4x1xi8>\n%d = arith.constant dense<0.0> : "
         "tensor<4x4xf32>\n"
         "%v = tt.dot_scaled %a scale %s, %b, %d lhs = e2m1 rhs = bf16 {fastMath = false} : "
         "tensor<4x16xi8>, tensor<4x1xi8> * tensor<32x4xi8> -> tensor<4x4xf32>"},
        {"shape-mismatch", 10, "cannot make 'tensor<4x4xf32>'",
         "%a = arith.constant dense<0> : tensor<4x16xi8>\n%b = arith.constant dense<0> : "
         "tensor<16x4xi8>\n"
         "%s = arith.constant dense<0> : tensor<4x1xi8>\n%d = arith.constant dense<0.0> : "
         "tensor<4x4xf32>\n"
         "%v = tt.dot_scaled %a scale %s, %b, %d lhs = e2m1 rhs = e4m3 {fastMath = false} : "
         "tensor<4x16xi8>, tensor<4x1xi8> * tensor<16x4xi8> -> tensor<4x4xf32>"},
        {"shape-mismatch", 10, "one scale for 16 or 32",
         "%a = arith.constant dense<0> : tensor<4x16xi8>\n%b = arith.constant dense<0> : "
         "tensor<32x4xi8>\n"
         "%s = arith.constant dense<0> : tensor<4x4xi8>\n%d = arith.constant dense<0.0> : "
         "tensor<4x4xf32>\n"
         "%v = tt.dot_scaled %a scale %s, %b, %d lhs = e2m1 rhs = e4m3 {fastMath = false} : "
         "tensor<4x16xi8>, tensor<4x4xi8> * tensor<32x4xi8> -> tensor<4x4xf32>"},
        {"type-mismatch", 10, "scales of type i8 or f8E4M3FN",
         "%a = arith.constant dense<0> : tensor<4x16xi8>\n%b = arith.constant dense<0> : "
         "tensor<32x4xi8>\n"
         "%s = arith.constant dense<0.0> : tensor<4x1xf32>\n%d = arith.constant dense<0.0> : "
         "tensor<4x4xf32>\n"
         "%v = tt.dot_scaled %a scale %s, %b, %d lhs = e2m1 rhs = e4m3 {fastMath = false} : "
         "tensor<4x16xi8>, tensor<4x1xf32> * tensor<32x4xi8> -> tensor<4x4xf32>"},
        {"shape-mismatch", 6, "of rank 2",
         "%v = tt.dot_scaled %t, %t, %m lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<8xi32> * "
         "tensor<8xi32> -> tensor<4x8xf32>"},
        {"shape-mismatch", 6, "tt.reduce",
         "%v = \"tt.reduce\"(%m) <{axis = 0 : i32}> ({\n^bb0(%a: f32, %b: f32):\n"
         "  tt.reduce.return %a : f32\n}) : (tensor<4x8xf32>) -> tensor<4xf32>"},
        {"count-mismatch", 6, "arguments of the region",
         "%v = \"tt.reduce\"(%m) <{axis = 1 : i32}> ({\n^bb0(%a: f32):\n"
         "  tt.reduce.return %a : f32\n}) : (tensor<4x8xf32>) -> tensor<4xf32>"},
        {"type-mismatch", 6, "argument 2",
         "%v = \"tt.scan\"(%m) <{axis = 1 : i32, reverse = false}> ({\n^bb0(%a: f32, %b: i32):\n"
         "  tt.scan.return %a : f32\n}) : (tensor<4x8xf32>) -> tensor<4x8xf32>"},
        {"count-mismatch", 7, "values",
         "%v = scf.for %k = %i to %i step %i iter_args(%a = %i) -> (i32)  : i32 {\n  scf.yield\n}"},
        {"type-mismatch", 7, "'i32' is needed",
         "%v = scf.for %k = %i to %i step %i iter_args(%a = %i) -> (i32)  : i32 {\n"
         "  scf.yield %h : f16\n}"},
        {"type-mismatch", 6, "cannot add",
         "%v = tt.atomic_rmw add, acq_rel, gpu, %p, %y : (!tt.ptr<f32>, f32) -> f32"},
        {"type-mismatch", 6, "pointer to the elements",
         "%v = tt.make_tensor_descriptor %p, [%i], [%l] : <f32>, <tensor<8xf16>>"},
    };
    check_bodies(list, COUNT(list));
}

/* ---- whole texts ------------------------------------------------------------------------ */

static void whole_texts_are_refused(void **state) {
    (void)state;
    static const wrong list[] = {
        {"syntax", 1, "expected a module", ""},
        {"syntax", 2, "the end of the text", "module {\n"},
        {"syntax", 3, "the end of the text", "module {\n  tt.func @f() {\n"},
        {"syntax", 1, "expected a module", "hello"},
        {"redefinition", 2, "second module", "module {}\nmodule {}"},
        {"redefinition", 3, "'@f'",
         "module {\ntt.func @f() { tt.return }\ntt.func @f() { tt.return }\n}"},
        {"redefinition", 2, "'#loc1'", "#loc1 = loc(unknown)\n#loc1 = loc(unknown)\nmodule {}"},
        {"undefined-alias", 1, "'#loc1'", "module {} loc(#loc1)"},
        {"cyclic-location", 2, "inside itself",
         "module {} loc(#a)\n#a = loc(callsite(#a at unknown))"},
        {"bad-location", 1, "2^31", "module {} loc(\"f\":4294967296:1)"},
        {"unknown-operation", 2, "'func.func'", "module {\nfunc.func @f() {}\n}"},
        {"not-a-power-of-two", 2, "is 3",
         "module {\ntt.func @f(%a: tensor<3xi32>) { tt.return }\n}"},
        {"bad-terminator", 2, "no return",
         "module {\ntt.func @f(%a: i1) { cf.assert %a, \"\" }\n}"},
        {"count-mismatch", 2, "values", "module {\ntt.func @f() -> i32 { tt.return }\n}"},
        {"syntax", 2, "names of the parameters", "module {\ntt.func @f(i32) { tt.return }\n}"},
    };
    bool good = true;
    for (size_t i = 0; i < COUNT(list); i++) {
        good &= is_refused(&list[i], list[i].body, false);
    }
    assert_true(good);
}

static void zero_bytes_are_refused(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "zero", "module {\0}", 10);
    assert_null(lilac_tile_read(context, source));
    assert_string_equal(lilac_diagnostics(context)->id, "zero-byte");
    assert_int_equal(lilac_diagnostics(context)->position.offset, 8);
    lilac_context_destroy(context);
}

/* `count` times `open`, then `middle`, then `count` times `close`: deep nesting is refused before the
 * stack overflows. */
static void check_nesting(const char *head, const char *open, const char *middle, const char *close,
                          const char *tail, bool good, uint32_t count, const char *id) {
    lilac_text text = {0};
    lilac_text_puts(&text, head);
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_puts(&text, open);
    }
    lilac_text_puts(&text, middle);
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_puts(&text, close);
    }
    lilac_text_puts(&text, tail);
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_text(context, text.bytes);
    assert_int_equal(module != NULL, good);
    if (!good) {
        assert_string_equal(lilac_diagnostics(context)->id, id);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
}

static void nesting_has_a_limit(void **state) {
    (void)state;
    static const char head[] = "module {\ntt.func @f(%c: i1) {\n";
    static const char tail[] = "tt.return\n}\n}\n";
    for (int deep = 0; deep < 2; deep++) {
        bool good = !deep;
        const char *id = "nested-too-deep";
        check_nesting(head, "scf.if %c {\n", "", "}\n", tail, good, deep ? 100000 : 1000, id);
        check_nesting("module attributes {a = ", "[", "1", "]", "} {}", good, deep ? 100000 : 16,
                      id);
        check_nesting("module attributes {a = ", "{b = ", "1", "}", "} {}", good,
                      deep ? 100000 : 16, id);
        check_nesting("module attributes {a = ", "!tt.ptr<", "f32", ">", "} {}", good,
                      deep ? 100000 : 8, id);
        check_nesting("module {} loc(", "callsite(unknown at ", "unknown", ")", ")", good,
                      deep ? 100000 : 200, id);
        check_nesting("module attributes {a = dense<", "[", "1", "]", "> : tensor<1x1xi32>} {}",
                      good, deep ? 100000 : 2, id);
    }
}

static void counts_have_limits(void **state) {
    (void)state;
    lilac_text text = {0};
    lilac_text_puts(&text, "module attributes {a0");
    for (int i = 1; i < 65; i++) {
        lilac_text_printf(&text, ", a%d", i);
    }
    lilac_text_puts(&text, "} {}");
    check_wrong(&(wrong){"too-many-attributes", 1, "64", "65 attributes"}, text.bytes, false);
    lilac_text_reset(&text);
    lilac_text_puts(&text, "module {\ntt.func @f() {\n");
    for (int i = 0; i < 1025; i++) {
        lilac_text_printf(&text, "cf.br ^bb%d\n^bb%d:\n", i, i);
    }
    lilac_text_puts(&text, "tt.return\n}\n}\n");
    check_wrong(&(wrong){"too-many-blocks", 2 + 2 * 1024 + 1, "1024", "1025 blocks"}, text.bytes,
                false);
    lilac_text_clear(&text);
    /* Fused locations are counted too. */
    lilac_text_puts(&text, "module {} loc(fused[unknown");
    for (int i = 1; i < 65; i++) {
        lilac_text_puts(&text, ", unknown");
    }
    lilac_text_puts(&text, "])");
    check_wrong(&(wrong){"bad-location", 1, "64", "65 fused"}, text.bytes, false);
    lilac_text_clear(&text);
}

/* Each of several faults is reported once; their consequences are not reported. */
static void several_errors_in_one_run(void **state) {
    (void)state;
    static const char text[] = HEAD "%a = tt.lod %p : !tt.ptr<f32>\n"
                                    "%b = arith.addf %a, %a : f32\n"
                                    "%d = arith.addi %i, %nowhere : i32\n"
                                    "%e = arith.addi %d, %b : i32\n"
                                    "scf.for %k = %i to %i step %i  : i32 {\n"
                                    "  %u = arith.muli %k, %h : i32\n"
                                    "  %w = arith.muli %k, %k : i32\n"
                                    "}\n"
                                    "%z = \"tt.mystery\"(%x) ({\n"
                                    "^bb0(%y: f32):\n"
                                    "  tt.mystery.return %y : f32\n"
                                    "}) : (tensor<8xf32>) -> f32\n"
                                    "%l = arith.addi %i, %i : f33" TAIL;
    static const struct {
        const char *id;
        uint32_t line;
    } wanted[] = {{"unknown-operation", 6},
                  {"undefined-value", 8},
                  {"type-mismatch", 11},
                  {"unknown-operation", 14},
                  {"unknown-type", 18}};
    lilac_context *context = lilac_context_create();
    assert_null(read_text(context, text));
    const lilac_diagnostic *d = lilac_diagnostics(context);
    for (size_t i = 0; i < COUNT(wanted); i++, d = d->next) {
        uint32_t line = 0, column = 0;
        assert_non_null(d);
        lilac_position_resolve(context, d->position, &line, &column);
        assert_string_equal(d->id, wanted[i].id);
        assert_int_equal(line, wanted[i].line);
    }
    assert_null(d);
    lilac_context_destroy(context);
}

/* Every proper prefix of a valid text gives a diagnostic, never a crash. */
static void truncated_texts_are_refused(void **state) {
    (void)state;
    static const char text[] =
        "#loc = loc(\"k.py\":1:2)\n"
        "module attributes {a = [1, \"s\", {b = dense<[1, 2]> : tensor<2xi8>}]} {\n"
        "  tt.func public @f(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc(\"p\"(#loc))) {\n"
        "    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"
        "    %q = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>\n"
        "    %s = tt.addptr %q, %r : tensor<8x!tt.ptr<f32>>, tensor<8xi32>\n"
        "    %x = tt.load %s cacheModifier = cg : tensor<8x!tt.ptr<f32>>\n"
        "    %v = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n"
        "    ^bb0(%a: f32, %b: f32):\n"
        "      %c = arith.addf %a, %b fastmath<fast> : f32\n"
        "      tt.reduce.return %c : f32\n"
        "    }) : (tensor<8xf32>) -> f32\n"
        "    tt.store %p, %v : !tt.ptr<f32>\n"
        "    tt.return\n"
        "  }\n"
        "}";
    size_t length = strlen(text);
    for (size_t n = 0; n <= length; n++) {
        lilac_context *context = lilac_context_create();
        uint32_t source = lilac_source_add(context, "cut", text, n);
        lilac_tile_module *module = lilac_tile_read(context, source);
        assert_int_equal(module != NULL, n == length);
        if (!module) {
            assert_true(lilac_error_count(context) > 0);
        }
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* ---- what is read ----------------------------------------------------------------------- */

/* Reads `text`, verifies it, and compares what is printed. */
static void check_printed(const char *text, const char *expected, bool locations) {
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_text(context, text);
    if (!module || !lilac_tile_verify(module, false)) {
        fail_with_diagnostics(context, "the module was refused");
    }
    char *got = printed(module, locations);
    assert_string_equal(got, expected);
    free(got);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void white_space_means_nothing(void **state) {
    (void)state;
    static const char expected[] =
        "module {\n"
        "  tt.func public @f(%i: i32, %x: tensor<4x8x!tt.ptr<f32>>) {\n"
        "    %0 = arith.addi %i, %i overflow<nsw, nuw> : i32\n"
        "    %y = tt.load %x {isVolatile = true} : tensor<4x8x!tt.ptr<f32>>\n"
        "    tt.return\n"
        "  }\n"
        "}\n";
    check_printed("module{tt.func public@f(%i:i32,%x:tensor<4x8x!tt.ptr<f32>>){%0=arith.addi %i,%i "
                  "overflow<nsw,nuw>:i32 %y=tt.load %x{isVolatile=true}:tensor<4x8x!tt.ptr<f32>>"
                  "tt.return}}",
                  expected, false);
    check_printed("module\n{\ntt.func\npublic\n@f\n(\n%i\n:\ni32\n,\n%x\n:\ntensor\n<\n4\nx\n8\nx\n"
                  "!tt.ptr\n<\nf32\n>\n>\n)\n{ // a comment } {\n%0\n=\narith.addi\n%i\n,\n%i\n"
                  "overflow\n<\nnsw\n,\nnuw\n>\n:\ni32\n%y\n=\ntt.load\n%x\n{\nisVolatile\n=\n"
                  "true\n}\n:\ntensor\n<\n4x\n8x\n!tt.ptr\n<f32\n>\n>\ntt.return\n}\n}\n",
                  expected, false);
}

static void locations_before_and_after(void **state) {
    (void)state;
    static const char text[] =
        "#early = loc(\"k.py\":1:2)\n"
        "module {\n"
        "  tt.func public @f(%i: i32 loc(\"i\"(#early))) {\n"
        "    %0 = arith.addi %i, %i : i32 loc(#late)\n"
        "    %1 = arith.addi %i, %i : i32 loc(fused[#early, \"n\", \"m.py\":3:4])\n"
        "    %2 = arith.addi %i, %i : i32 loc(unknown)\n"
        "    tt.return loc(callsite(#late at \"o.py\":5:6))\n"
        "  } loc(#early)\n"
        "} loc(#early)\n"
        "#late = loc(callsite(#later at #early))\n"
        "#later = loc(\"name\"(\"l.py\":7:8))\n";
    static const char expected[] = "module {\n"
                                   "  tt.func public @f(%i: i32 loc(#loc1)) {\n"
                                   "    %0 = arith.addi %i, %i : i32 loc(#loc2)\n"
                                   "    %1 = arith.addi %i, %i : i32 loc(#loc3)\n"
                                   "    %2 = arith.addi %i, %i : i32 loc(unknown)\n"
                                   "    tt.return loc(#loc4)\n"
                                   "  } loc(#loc5)\n"
                                   "} loc(#loc5)\n"
                                   "#loc5 = loc(\"k.py\":1:2)\n"
                                   "#loc1 = loc(\"i\"(#loc5))\n"
                                   "#loc10 = loc(\"l.py\":7:8)\n"
                                   "#loc6 = loc(\"name\"(#loc10))\n"
                                   "#loc2 = loc(callsite(#loc6 at #loc5))\n"
                                   "#loc7 = loc(\"n\")\n"
                                   "#loc8 = loc(\"m.py\":3:4)\n"
                                   "#loc3 = loc(fused[#loc5, #loc7, #loc8])\n"
                                   "#loc9 = loc(\"o.py\":5:6)\n"
                                   "#loc4 = loc(callsite(#loc2 at #loc9))\n";
    check_printed(text, expected, true);
    check_printed(expected, expected, true);
    /* The locations are attached to the right operations. */
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_text(context, text);
    assert_non_null(module);
    const lilac_tile_op *op = module->functions->body->first->first;
    lilac_name file;
    uint32_t line, column;
    assert_true(lilac_location_file(context, op->location, &file, &line, &column));
    assert_string_equal(file, "k.py"); /* the caller */
    assert_int_equal(line, 1);
    lilac_position_resolve(context, op->position, &line, &column);
    assert_int_equal(line, 4);
    assert_int_equal(column, 10); /* of the operation's name */
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* An implicit scf.yield has the location of its loop or conditional. */
static void unwritten_yields(void **state) {
    (void)state;
    static const char text[] = "module { tt.func @f(%i: i32, %c: i1) {\n"
                               "scf.if %c { gpu.barrier loc(\"a\":1:1) } else { } loc(#l)\n"
                               "scf.for %k = %i to %i step %i : i32 { } loc(\"b\":3:4)\n"
                               "tt.return } }\n"
                               "#l = loc(\"b\":1:2)\n";
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_text(context, text);
    assert_non_null(module);
    assert_true(lilac_tile_verify(module, false));
    const lilac_tile_op *conditional = module->functions->body->first->first;
    const lilac_tile_op *loop = conditional->next;
    assert_int_not_equal(conditional->location, 0);
    assert_int_not_equal(conditional->location, loop->location);
    for (int r = 0; r < 2; r++) {
        const lilac_tile_op *yield = conditional->regions[r]->first->last;
        assert_int_equal(yield->code, LILAC_TILE_OP_SCF_YIELD);
        assert_int_equal(yield->location, conditional->location);
    }
    assert_int_equal(loop->regions[0]->first->last->location, loop->location);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void generic_operations(void **state) {
    (void)state;
    check_printed(
        "module {\n"
        "tt.func @f(%p: !tt.ptr<f32>, %i: i32, %n: i32, %c: i1) {\n"
        "%0 = \"arith.constant\"() <{value = 5 : i32}> : () -> i32\n"
        "%1 = \"arith.cmpi\"(%i, %0) <{predicate = 2 : i64}> : (i32, i32) -> i1\n"
        "%2 = \"arith.addi\"(%i, %0) <{overflowFlags = #arith.overflow<nsw>}> : (i32, i32) -> i32\n"
        "%3 = \"arith.addi\"(%i, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> "
        "i32\n"
        "%4 = \"tt.load\"(%p, %1) <{cache = 3 : i32, evict = 1 : i32}> : (!tt.ptr<f32>, i1) -> "
        "f32\n"
        "%5 = \"arith.mulf\"(%4, %4) <{fastmath = #arith.fastmath<nnan,ninf>}> : (f32, f32) -> "
        "f32\n"
        "%6 = \"tt.get_program_id\"() <{axis = 1 : i32}> : () -> i32\n"
        "%7 = \"scf.for\"(%i, %n, %0, %5) ({\n"
        "^bb0(%k: i32, %s: f32):\n"
        "  \"scf.yield\"(%s) : (f32) -> ()\n"
        "}) {tt.num_stages = 2 : i32} : (i32, i32, i32, f32) -> f32\n"
        "\"cf.cond_br\"(%c, %2, %3)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 1>}> : "
        "(i1, i32, i32) -> ()\n"
        "^bb1(%a: i32):\n"
        "\"tt.return\"() : () -> ()\n"
        "^bb2(%b: i32):\n"
        "\"cf.br\"(%b)[^bb1] : (i32) -> ()\n"
        "}\n"
        "}\n",
        "module {\n"
        "  tt.func public @f(%p: !tt.ptr<f32>, %i: i32, %n: i32, %c: i1) {\n"
        "    %0 = arith.constant 5 : i32\n"
        "    %1 = arith.cmpi slt, %i, %0 : i32\n"
        "    %2 = arith.addi %i, %0 overflow<nsw> : i32\n"
        "    %3 = arith.addi %i, %0 : i32\n"
        "    %4 = tt.load %p, %1 cacheModifier = cg : !tt.ptr<f32>\n"
        "    %5 = arith.mulf %4, %4 fastmath<nnan,ninf> : f32\n"
        "    %6 = tt.get_program_id y : i32\n"
        "    %7 = scf.for %k = %i to %n step %0 iter_args(%s = %5) -> (f32)  : i32 {\n"
        "      scf.yield %s : f32\n"
        "    } {tt.num_stages = 2 : i32}\n"
        "    cf.cond_br %c, ^bb1(%2 : i32), ^bb2(%3 : i32)\n"
        "  ^bb1(%a: i32):\n"
        "    tt.return\n"
        "  ^bb2(%b: i32):\n"
        "    cf.br ^bb1(%b : i32)\n"
        "  }\n"
        "}\n",
        false);
}

/* An attribute named as a flag is printed as written on operations without that flag. */
static void flags_elsewhere(void **state) {
    (void)state;
    static const char text[] =
        "module {\n"
        "  tt.func public @f(%i: i32) {\n"
        "    %0 = arith.addi %i, %i overflow<nsw> {other = #arith.overflow<nsw, nuw>} : i32\n"
        "    tt.return\n"
        "  }\n"
        "}\n";
    check_printed(text, text, false);
}

/* In dictionaries the types i64 and f64 are omitted. */
static void attributes_in_dictionaries(void **state) {
    (void)state;
    check_printed(
        "module attributes {a = 5 : i64, b = -5, c = 1.5 : f64, d = 1.5, e = [1 : i64, 2 : "
        "i8, true], f = {g = 7 : i64, h}, i = @s, j = i32, k = (i32) -> (), l = unit, m = "
        "array<i64: 1, 2>, n = \"x\", \"o p\" = 2 : i32} {}",
        "module attributes {a = 5, b = -5, c = 1.500000e+00, d = 1.500000e+00, e = [1, 2 : "
        "i8, true], f = {g = 7, h}, i = @s, j = i32, k = (i32) -> (), l, m = array<i64: 1, "
        "2>, n = \"x\", \"o p\" = 2 : i32} {\n}\n",
        false);
}

/* Modules and functions in the generic form of mlir-opt. */
static void generic_modules(void **state) {
    (void)state;
    check_printed(
        "\"builtin.module\"() <{sym_name = \"m\"}> ({\n"
        "  \"tt.func\"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}], function_type = "
        "(!tt.ptr<f32>, i32) -> i32, sym_name = \"f\", sym_visibility = \"private\"}> ({\n"
        "  ^bb0(%arg0: !tt.ptr<f32>, %arg1: i32):\n"
        "    \"tt.return\"(%arg1) : (i32) -> ()\n"
        "  }) {noinline = false} : () -> ()\n"
        "  \"tt.func\"() <{function_type = (f32) -> (), sym_name = \"g\"}> ({\n"
        "  }) : () -> ()\n"
        "}) {ttg.target = \"cuda:90\"} : () -> ()\n",
        "module @m attributes {ttg.target = \"cuda:90\"} {\n"
        "  tt.func private @f(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: i32) -> i32 "
        "attributes {noinline = false} {\n"
        "    tt.return %arg1 : i32\n"
        "  }\n"
        "  tt.func public @g(f32)\n"
        "}\n",
        false);
    static const wrong list[] = {
        {"bad-attribute", 1, "'sym_name'", "\"tt.func\"() ({}) : () -> ()"},
        {"count-mismatch", 1, "parameters",
         "\"tt.func\"() <{function_type = (i32) -> (), sym_name = \"f\"}> ({ ^bb0: tt.return }) : "
         "() -> ()"},
        {"type-mismatch", 1, "'i64' in the function's type",
         "\"tt.func\"() <{function_type = (i64) -> (), sym_name = \"f\"}> ({ ^bb0(%a: i32): "
         "tt.return }) : () -> ()"},
        {"unsupported-attribute", 1, "results",
         "\"tt.func\"() <{function_type = () -> i32, sym_name = \"f\", res_attrs = [{}]}> ({}) : "
         "() -> ()"},
    };
    bool good = true;
    for (size_t i = 0; i < COUNT(list); i++) {
        good &= is_refused(&list[i], list[i].body, false);
    }
    assert_true(good);
}

/* Literals keep their bits, and are printed as MLIR prints them. */
static void literals(void **state) {
    (void)state;
    static const char *const list[] = {"true",
                                       "false",
                                       "0 : i32",
                                       "-1 : i32",
                                       "9223372036854775807 : i64",
                                       "-9223372036854775808 : i64",
                                       "7 : index",
                                       "-128 : i8",
                                       "0.000000e+00 : f32",
                                       "-0.000000e+00 : f32",
                                       "1.000000e+00 : f32",
                                       "1.44269502 : f32",
                                       "4.6566126E-10 : f32",
                                       "6.28318548 : f32",
                                       "0x7F800000 : f32",
                                       "0xFF800000 : f32",
                                       "0x7FC00000 : f32",
                                       "3.40282347E+38 : f32",
                                       "1.401300e-45 : f32",
                                       "2.32830644E-10 : f32",
                                       "0.333333343 : f32",
                                       "0.33333333333333331 : f64",
                                       "1.000000e-07 : f32",
                                       "1.562500e-02 : f16",
                                       "6.550400e+04 : f16",
                                       "0x7E00 : f16",
                                       "0xFC00 : f16",
                                       "3.335570e-02 : f16",
                                       "1.000000e+00 : bf16",
                                       "3.328130e+00 : bf16",
                                       "0xFF80 : bf16",
                                       "4.480000e+02 : f8E4M3FN",
                                       "0x7F : f8E4M3FN",
                                       "5.734400e+04 : f8E5M2",
                                       "0xFC : f8E5M2",
                                       "dense<[1, 2, 3, 4]> : tensor<4xi32>",
                                       "dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>",
                                       "dense<[true, false]> : tensor<2xi1>",
                                       "dense<0xFC00> : tensor<8xf16>",
                                       "dense<[1.000000e+00, 0x7F800000]> : tensor<2xf32>",
                                       "dense<-1> : tensor<4x8xi64>"};
    for (size_t i = 0; i < COUNT(list); i++) {
        lilac_text text = {0};
        lilac_text_printf(&text,
                          "module {\n  tt.func public @f() {\n    %%0 = arith.constant %s\n"
                          "    tt.return\n  }\n}\n",
                          list[i]);
        check_printed(text.bytes, text.bytes, false);
        lilac_text_clear(&text);
    }
}

static void names_and_results(void **state) {
    (void)state;
    static const char text[] =
        "module @m attributes {\"ttg.num-warps\" = 4 : i32, ttg.target = \"cuda:90\"} {\n"
        "  tt.func private @declared(i32 {tt.divisibility = 16 : i32}, f32) -> (i32, f32)\n"
        "  tt.func public @f(%c-1_i32: i32, %x: f32) attributes {noinline = false} {\n"
        "    %r:2 = tt.call @declared(%c-1_i32, %x) : (i32, f32) -> (i32, f32)\n"
        "    %0:2 = tt.call @declared(%r#0, %r#1) : (i32, f32) -> (i32, f32)\n"
        "    %a, %b = arith.mulsi_extended %0#0, %r#0 : i32\n"
        "    tt.print \" x: \" {hex = false, isSigned = array<i32: 0>} : %a : i32\n"
        "    tt.return\n"
        "  }\n"
        "}\n";
    check_printed(text, text, false);
}

static void layouts_are_checked(void **state) {
    (void)state;
    static const char text[] =
        "#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = "
        "[0]}>\n"
        "module {\n"
        "  tt.func @f(%a: tensor<64xi32, #b>, %n: tensor<64xi32>) {\n"
        "%0 = tt.bitcast %a : tensor<64xi32, #b> -> tensor<64xf32, #b>\n"
        "%1 = arith.bitcast %n : tensor<64xi32> to tensor<64xf32>\n"
        "tt.return\n}\n}\n";
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_text(context, text);
    assert_non_null(module);
    assert_true(lilac_tile_verify(module, false));
    assert_false(lilac_tile_verify(module, true));
    assert_string_equal(lilac_diagnostics(context)->id, "no-layout");
    lilac_diagnostics_reset(context);
    /* Types with equal layouts are one type, whatever the layout's name. */
    const lilac_tile_op *first = module->functions->body->first->first;
    const lilac_tile_type *type = first->results[0].type;
    assert_non_null(type->layout);
    assert_ptr_equal(first->operands[0].value->type->layout, type->layout);
    /* A layout built by hand that does not cover the tensor. */
    lilac_layout small;
    lilac_layout_identity(&small, 5, "lane", "dim0");
    int64_t shape[] = {64};
    lilac_tile_op *op = module->functions->body->first->first;
    op->results[0].type = lilac_tile_tensor(module, type->element, 1, shape, &small);
    assert_false(lilac_tile_verify(module, false));
    assert_string_equal(lilac_diagnostics(context)->id, "layout-does-not-cover");
    lilac_diagnostics_reset(context);
    /* An operand whose layout differs from the result's. */
    lilac_layout other;
    lilac_layout_identity(&other, 6, "register", "dim0");
    op->results[0].type = lilac_tile_tensor(module, type->element, 1, shape, &other);
    assert_false(lilac_tile_verify(module, true));
    assert_string_equal(lilac_diagnostics(context)->id, "type-mismatch");
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* Inline assembly has no signature that ties its types, so the layouts are compared on their own.
 */
static void elementwise_layouts_agree(void **state) {
    (void)state;
    static const char text[] =
        "module {\n"
        "  tt.func @f(%a: tensor<32xi32, #ttg.linear<{register = [], lane = [[1], [2], [4], [8], "
        "[16]], warp = [], block = []}>>) {\n"
        "%0 = tt.elementwise_inline_asm \"mov\" {constraints = \"=r,r\", packed_element = 1 : i32, "
        "pure = true} %a : tensor<32xi32, #ttg.linear<{register = [], lane = [[1], [2], [4], [8], "
        "[16]], warp = [], block = []}>> -> tensor<32xi32, #ttg.linear<{register = [[1], [2]], "
        "lane "
        "= [[4], [8], [16]], warp = [], block = []}>>\n"
        "tt.return\n}\n}\n";
    check_wrong(&(wrong){"layout-mismatch", 3, "layouts", "inline asm"}, text, true);
}

/* ---- faults in the IR that no text can express -------------------------------------------------- */

static void broken_uses_are_found(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_text(
        context, "module { tt.func @f(%a: i32) { %b = arith.addi %a, %a : i32 tt.return } }");
    assert_non_null(module);
    lilac_tile_op *op = module->functions->body->first->first;
    lilac_tile_value *value = op->operands[0].value;
    op->operands[0].value = NULL;
    assert_false(lilac_tile_verify(module, false));
    assert_string_equal(lilac_diagnostics(context)->id, "broken-use");
    op->operands[0].value = value;
    lilac_diagnostics_reset(context);
    assert_true(lilac_tile_verify(module, false));
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* No text can name a function's first block, but a pass could branch to it. */
static void branches_to_the_entry_are_found(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_text(
        context, "module { tt.func @f() { cf.br ^bb1 ^bb1: cf.br ^bb2 ^bb2: tt.return } }");
    assert_non_null(module);
    assert_true(lilac_tile_verify(module, false));
    lilac_tile_block *entry = module->functions->body->first;
    entry->next->first->successors[0] = entry;
    assert_false(lilac_tile_verify(module, false));
    assert_string_equal(lilac_diagnostics(context)->id, "bad-branch");
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reader_refuses),
        cmocka_unit_test(verifier_refuses),
        cmocka_unit_test(whole_texts_are_refused),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(counts_have_limits),
        cmocka_unit_test(several_errors_in_one_run),
        cmocka_unit_test(truncated_texts_are_refused),
        cmocka_unit_test(white_space_means_nothing),
        cmocka_unit_test(locations_before_and_after),
        cmocka_unit_test(unwritten_yields),
        cmocka_unit_test(generic_operations),
        cmocka_unit_test(flags_elsewhere),
        cmocka_unit_test(attributes_in_dictionaries),
        cmocka_unit_test(generic_modules),
        cmocka_unit_test(literals),
        cmocka_unit_test(names_and_results),
        cmocka_unit_test(layouts_are_checked),
        cmocka_unit_test(elementwise_layouts_agree),
        cmocka_unit_test(broken_uses_are_found),
        cmocka_unit_test(branches_to_the_entry_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
