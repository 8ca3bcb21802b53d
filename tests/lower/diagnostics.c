/* lower: the text of diagnostics. Each case is a module that the reader accepts and the lowering
 * refuses, and the part of the message that names the operand or the attribute, the value found
 * and the values allowed. */
#include "support/lower_harness.h"

#define ROW                                                                                        \
    "#row = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = " \
    "[0]}>\n"
#define WIDE                                                                                       \
    "#wide = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order "  \
    "= [0]}>\n"
#define HEAD                                                                                       \
    "module {\n  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %f: f32, %n: i32) {\n"
#define TAIL "    tt.return\n  }\n}\n"
#define MEMORY                                                                                     \
    ROW "#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"          \
        "#smem = #ttg.shared_memory\n"
#define STORE_V                                                                                    \
    "    %s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #row>\n"                      \
    "    tt.store %s, %v : tensor<128x!tt.ptr<f32>, #row>\n"
/* Uses of results, so that the operation above is not removed. */
#define STORE_F "    tt.store %p, %x : !tt.ptr<f32>\n"
#define STORE_I "    tt.store %q, %x : !tt.ptr<i32>\n"

static const struct {
    const char *id, *text, *says;
} cases[] = {
    {"unsupported-operation",
     HEAD "    %x = tt.elementwise_inline_asm \"add.u32 $0, $1, $3;\" {constraints = \"=r,r\", "
          "packed_element = 1 : i32, pure = true} %n : i32 -> i32\n" STORE_I TAIL,
     "its text refers to $3; its constraints name 2 registers, counted from $0"},
    {"unsupported-operation",
     HEAD "    %x = tt.elementwise_inline_asm \"mov.u32 $0, $x;\" {constraints = \"=r,r\", "
          "packed_element = 1 : i32, pure = true} %n : i32 -> i32\n" STORE_I TAIL,
     "a $ that is followed by neither a number nor another $"},
    {"unsupported-operation",
     HEAD "    %x = tt.elementwise_inline_asm \"mov.u32 $0, $1;\" {constraints = \"=r,r,r\", "
          "packed_element = 1 : i32, pure = true} %n : i32 -> i32\n" STORE_I TAIL,
     "it needs 1 operand registers; its constraints name 2"},
    {"unsupported-operation",
     HEAD "    %x = tt.elementwise_inline_asm \"mov.u16 $0, $1;\" {constraints = \"=r,h\", "
          "packed_element = 1 : i32, pure = true} %n : i32 -> i32\n" STORE_I TAIL,
     "register $1 has 16 bits; its elements need 32"},
    {"unsupported-operation",
     HEAD "    %x = tt.elementwise_inline_asm \"mov.b32 $0, $1;\" {constraints = \"=r,q\", "
          "packed_element = 1 : i32, pure = true} %n : i32 -> i32\n" STORE_I TAIL,
     "constraint 'q' cannot be lowered; expected at most 64 of =b"},
    {"unsupported-operation",
     HEAD "    %x = tt.elementwise_inline_asm \"mov.b32 $0, $1;\" {constraints = \"=r,r\", "
          "packed_element = 64 : i32, pure = true} %n : i32 -> i32\n" STORE_I TAIL,
     "the attribute 'packed_element' is 64; expected a number from 1 to 32"},
    {"unknown-function",
     HEAD
     "    %x = tt.extern_elementwise %f {libname = \"libdevice\", libpath = \"\", pure = true, "
     "symbol = \"__nv_nothing\"} : (f32) -> f32\n" STORE_F TAIL,
     "'__nv_nothing' is no known function"},
    {"unsupported-type",
     HEAD
     "    %x = tt.extern_elementwise %f {libname = \"libdevice\", libpath = \"\", pure = true, "
     "symbol = \"__nv_hypotf\"} : (f32) -> f32\n" STORE_F TAIL,
     "'__nv_hypotf' must be called as (f32, f32) -> f32"},
    {"unsupported-type", "module {\n  tt.func public @k(%p: tensor<64xi32>) {\n" TAIL,
     "parameter 0 of kernel 'k' is a tensor"},
    {"unsupported-operation",
     "module {\n  tt.func public @k(%p: i32) -> i32 {\n    tt.return %p : i32\n  }\n}\n",
     "the kernel returns 1 values and must return none"},
    {"unsupported-type",
     HEAD "    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
          "    %s = tt.splat %q : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>\n"
          "    tt.store %s, %r : tensor<64x!tt.ptr<i32>>\n" TAIL,
     "a tensor has no layout; the pass assign_layouts gives it one"},
    {"layout-conversion",
     ROW WIDE HEAD
     "    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #row>\n"
     "    %c = ttg.convert_layout %r {lilac.movement = \"shuffles\"} : tensor<512xi32, #row> -> "
     "tensor<512xi32, #wide>\n"
     "    %s = tt.splat %q : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #wide>\n"
     "    tt.store %s, %c : tensor<512x!tt.ptr<i32>, #wide>\n" TAIL,
     "'ttg.convert_layout' needs a conversion between two layouts that has no plan: "},
    {"unsupported-operation",
     MEMORY HEAD "    %z = arith.constant 5 : i32\n"
                 "    %m = ttg.local_alloc : () -> !ttg.memdesc<2x128xf32, #s, #smem, mutable>\n"
                 "    %b = ttg.memdesc_index %m[%z] : !ttg.memdesc<2x128xf32, #s, #smem, mutable> "
                 "-> !ttg.memdesc<128xf32, #s, #smem, mutable>\n"
                 "    %v = ttg.local_load %b : !ttg.memdesc<128xf32, #s, #smem, mutable> -> "
                 "tensor<128xf32, #row>\n" STORE_V TAIL,
     "the index is 5; operand 0 has 2 buffers"},
    {"too-much-shared-memory",
     MEMORY HEAD "    %m = ttg.local_alloc : () -> !ttg.memdesc<1024x128xf32, #s, #smem, mutable>\n"
                 "    %z = arith.constant 0 : i32\n"
                 "    %b = ttg.memdesc_index %m[%z] : !ttg.memdesc<1024x128xf32, #s, #smem, "
                 "mutable> -> !ttg.memdesc<128xf32, #s, #smem, mutable>\n"
                 "    %v = ttg.local_load %b : !ttg.memdesc<128xf32, #s, #smem, mutable> -> "
                 "tensor<128xf32, #row>\n" STORE_V TAIL,
     "with this allocation the kernel needs 524288 bytes of shared memory"},
    {"unsupported-type",
     "module {\n  tt.func public @k(%p: !tt.ptr<f8E5M2>, %f: f8E5M2) {\n"
     "    %x = math.exp %f : f8E5M2\n    tt.store %p, %x : !tt.ptr<f8E5M2>\n" TAIL,
     "'math.exp' on 8-bit floats cannot be lowered; convert operand 0 to f16, bf16, f32 or f64"},
};

static void messages(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        harness h;
        bool lowered = harness_try(&h, cases[i].text, 4, false, NULL);
        const lilac_diagnostic *d = lilac_diagnostics(h.context);
        if (lowered || d == NULL || strcmp(d->id, cases[i].id) != 0 ||
            strstr(d->message, cases[i].says) == NULL) {
            print_diagnostics(h.context);
            fail_msg("case %zu: expected '%s' [%s]", i, cases[i].says, cases[i].id);
        }
        assert_int_equal(lilac_error_count(h.context), 1);
        harness_close(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
