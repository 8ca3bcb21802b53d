/* Tile IR with layouts and memory: what types of memory say, what their operations may and may not
 * do, how named layouts are kept and printed, and that layouts are of the module's threads. */
#define _POSIX_C_SOURCE 200809L

#include <lilac/tile.h>

#include "support/test.h"

/* ---- helpers ---------------------------------------------------------------------------- */

#define LAYOUTS                                                                                    \
    "#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], "   \
    "order = [1, 0]}>\n"                                                                           \
    "#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], "   \
    "order = [0, 1]}>\n"                                                                           \
    "#s = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>\n"           \
    "#t = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [0, 1]}>\n"           \
    "#u = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"              \
    "#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>\n"           \
    "#smem = #ttg.shared_memory\n"
#define FUNCTION                                                                                   \
    "  tt.func public @f(%i: i32, %x: tensor<32x64xf16, #a>, %p: tensor<32x64x!tt.ptr<f16>, #a>) " \
    "{\n"
#define SAID(warps)                                                                                \
    "module attributes {\"ttg.num-warps\" = " warps " : i32, \"ttg.threads-per-warp\" = 32 : "     \
    "i32} {\n"
/* The body begins in line 10. */
#define HEAD LAYOUTS SAID("4") FUNCTION
#define TAIL                                                                                       \
    "    tt.return\n"                                                                              \
    "  }\n"                                                                                        \
    "}\n"

typedef struct reading {
    lilac_context *context;
    lilac_tile_module *module;
    bool good; /* it was read and it verifies */
} reading;

static reading read_parts(const char *head, const char *body, const char *tail) {
    reading r = {.context = lilac_context_create()};
    lilac_text text = {0};
    lilac_text_puts(&text, head);
    lilac_text_puts(&text, body);
    lilac_text_puts(&text, tail);
    uint32_t source = lilac_source_add(r.context, "test.ttgir", lilac_text_get(&text), text.length);
    r.module = lilac_tile_read(r.context, source);
    r.good = r.module && lilac_tile_verify(r.module, false);
    lilac_text_clear(&text);
    return r;
}

static void close_reading(reading *r) {
    lilac_tile_module_destroy(r->module);
    lilac_context_destroy(r->context);
}

static reading read_body(const char *body) {
    return read_parts(HEAD, body, TAIL);
}

static void say(const reading *r, const char *body) {
    print_error("%s\n", body);
    print_diagnostics(r->context);
}

typedef struct wrong {
    const char *id;
    const char *body;
} wrong;

/* Each body is refused first of all for the reason that it is there for, in its last line. */
static void check_wrong(const wrong *list, size_t count) {
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        reading r = read_body(list[i].body);
        const lilac_diagnostic *d = lilac_diagnostics(r.context);
        uint32_t line = 0, column = 0, last = 10;
        if (d) {
            lilac_position_resolve(r.context, d->position, &line, &column);
        }
        for (const char *at = list[i].body; *at; at++) {
            last += *at == '\n';
        }
        bool good = !r.good && d && strcmp(d->id, list[i].id) == 0 && line == last;
        if (!good) {
            print_error("wanted %s in line %u, got %s in line %u\n", list[i].id, last,
                        d ? d->id : "nothing", line);
            say(&r, list[i].body);
        }
        all &= good;
        close_reading(&r);
    }
    assert_true(all);
}

static void check_right(const char *const *list, size_t count) {
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        reading r = read_body(list[i]);
        if (!r.good) {
            say(&r, list[i]);
        }
        all &= r.good;
        close_reading(&r);
    }
    assert_true(all);
}

#define COUNT(list)              (sizeof(list) / sizeof *(list))
#define MEM(shape, layout, rest) "!ttg.memdesc<" shape "xf16, #" layout ", #smem" rest ">"
#define INLINE                   "ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
#define ALLOC(name, type)        "%" name " = ttg.local_alloc : () -> " type "\n"
#define BUFFERS                  ALLOC("m", MEM("3x32x64", "s", ", mutable"))
#define ONE                      ALLOC("m", MEM("32x64", "s", ", mutable"))
#define FULL                     "%m = ttg.local_alloc %x : (tensor<32x64xf16, #a>) -> " MEM("32x64", "s", "") "\n"

/* ---- operations on memory --------------------------------------------------------------- */

static void memory_operations_are_accepted(void **state) {
    (void)state;
    static const char *const list[] = {
        FULL "%y = ttg.local_load %m : " MEM("32x64", "s", "") " -> tensor<32x64xf16, #b>\n",
        /* of mutable memory, what is not */
        ONE "%n = ttg.memdesc_subslice %m[0, 32] : " MEM("32x64", "s", ", mutable") " -> " MEM(
            "32x32", "s", ", 32x64") "\n",
        /* a part of a part */
        ONE "%n = ttg.memdesc_subslice %m[16, 0] : " MEM("32x64", "s", ", mutable") " -> " MEM(
            "16x64", "s",
            ", mutable, 32x64") "\n"
                                "%o = ttg.memdesc_subslice %n[8, 16] : " MEM(
                                    "16x64", "s",
                                    ", mutable, 32x64") " -> " MEM("8x16", "s",
                                                                   ", mutable, 32x64") "\n",
        /* the allocation of a buffer may be named */
        BUFFERS "%n = ttg.memdesc_index %m[%i] : " MEM("3x32x64", "s", ", mutable") " -> " MEM(
            "32x64", "s", ", 3x32x64") "\n",
        "%m = ttg.local_alloc : () -> !ttg.memdesc<4xi64, #u, #smem, mutable>\n"
        "%n = ttg.memdesc_index %m[%i] : !ttg.memdesc<4xi64, #u, #smem, mutable> -> "
        "!ttg.memdesc<1xi64, #u, #smem, mutable>\n",
        ALLOC("m", MEM("8x8", "v", ", mutable")) "%n = ttg.memdesc_reshape %m : " MEM(
            "8x8", "v", ", mutable") " -> " MEM("64", "u", "") "\n",
        ONE "%n = ttg.memdesc_reinterpret %m : " MEM(
            "32x64", "s", ", mutable") " -> "
                                       "!ttg.memdesc<64xi32, #u, #smem, mutable>\n",
    };
    check_right(list, COUNT(list));
}

static void memory_operations_are_refused(void **state) {
    (void)state;
    static const wrong list[] = {
        /* types */
        {"layout-of-tensor", "%m = ttg.local_alloc : () -> " MEM("32x64", "a", ", mutable")},
        {"layout-rank", "%m = ttg.local_alloc : () -> " MEM("2x2x32x64", INLINE, ", mutable")},
        {"memory-space-unknown",
         "%m = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #s, #heap, mutable>"},
        {"alloc-shape", "%m = ttg.local_alloc : () -> " MEM("32x64", "s", ", mutable, 16x64")},
        {"shape-not-power-of-two", "%m = ttg.local_alloc : () -> " MEM("3x48", "s", ", mutable")},
        {"tensor-too-large", "%m = ttg.local_alloc : () -> " MEM("33x1024x64", "s", ", mutable")},
        {"tensor-too-large",
         "%m = ttg.local_alloc : () -> " MEM("1x1048576x1048576", "s", ", mutable")},
        {"bad-dimension", "%m = ttg.local_alloc : () -> " MEM("0x32x64", "s", ", mutable")},
        {"element-type-unknown",
         "%m = ttg.local_alloc : () -> !ttg.memdesc<32x64xtensor<2xf16>, #s, #smem, mutable>"},
        {"layout-of-memory", "%y = arith.constant dense<0.0> : tensor<32x64xf16, #s>"},
        /* local_alloc */
        {"not-mutable", "%m = ttg.local_alloc : () -> " MEM("32x64", "s", "")},
        {"alloc-shape", "%m = ttg.local_alloc : () -> " MEM("32x64", "s", ", mutable, 3x32x64")},
        {"shape-mismatch",
         "%m = ttg.local_alloc %x : (tensor<32x64xf16, #a>) -> " MEM("64x32", "s", "")},
        {"type-mismatch", "%m = ttg.local_alloc %x : (tensor<32x64xf16, #a>) -> "
                          "!ttg.memdesc<32x64xi16, #s, #smem>"},
        /* accesses */
        {"type-mismatch",
         FULL "ttg.local_store %x, %m : tensor<32x64xf16, #a> -> " MEM("32x64", "s", "")},
        {"type-mismatch",
         FULL "%y = ttg.local_load %m : " MEM("32x64", "s", "") " -> "
                                                                "tensor<32x64xi16, #a>"},
        {"shape-mismatch",
         FULL "%y = ttg.local_load %m : " MEM("32x64", "s", "") " -> "
                                                                "tensor<64x32xf16, #a>"},
        {"shape-mismatch", BUFFERS
         "ttg.local_store %x, %m : tensor<32x64xf16, #a> -> " MEM("3x32x64", "s", ", mutable")},
        {"type-mismatch", FULL "%y = arith.addi %m, %m : " MEM("32x64", "s", "")},
        {"type-mismatch", FULL "%y = arith.addf %m, %m : " MEM("32x64", "s", "")},
        /* memdesc_index */
        {"shape-mismatch", BUFFERS "%n = ttg.memdesc_index %m[%i] : " MEM(
                               "3x32x64", "s", ", mutable") " -> " MEM("64x32", "s", ", mutable")},
        {"layout-mismatch", ONE "%n = ttg.memdesc_index %m[%i] : " MEM(
                                "32x64", "s", ", mutable") " -> " MEM("64", "u", ", mutable")},
        {"layout-mismatch", BUFFERS "%n = ttg.memdesc_index %m[%i] : " MEM(
                                "3x32x64", "s", ", mutable") " -> " MEM("32x64", "t", ", mutable")},
        {"type-mismatch",
         BUFFERS "%j = arith.constant 0 : i64\n%n = ttg.memdesc_index %m[%j] : " MEM(
             "3x32x64", "s", ", mutable") " -> " MEM("32x64", "s", ", mutable")},
        {"alloc-shape", BUFFERS
         "%n = ttg.memdesc_subslice %m[0, 0, 32] : " MEM("3x32x64", "s", ", mutable") " -> " MEM(
             "3x32x32", "s",
             ", mutable, 3x32x64") "\n%o = ttg.memdesc_index %n[%i] : " MEM("3x32x32", "s",
                                                                            ", mutable, "
                                                                            "3x32x64") " ->"
                                                                                       " " MEM(
                                                                                           "32x32",
                                                                                           "s",
                                                                                           ", "
                                                                                           "mutabl"
                                                                                           "e")},
        {"not-mutable",
         "%m = ttg.local_alloc %x : (tensor<32x64xf16, #a>) -> " MEM(
             "32x64", "s",
             "") "\n%n = ttg.memdesc_subslice %m[0, 0] : " MEM("32x64", "s",
                                                               "") " -> " MEM("16x64", "s",
                                                                              ", mutable, 32x64")},
        /* memdesc_subslice */
        {"shape-mismatch", ONE "%n = ttg.memdesc_subslice %m[8, 0] : " MEM(
                               "32x64", "s", ", mutable") " -> " MEM("16x64", "s", ", 32x64")},
        {"shape-mismatch", ONE "%n = ttg.memdesc_subslice %m[32, 0] : " MEM(
                               "32x64", "s", ", mutable") " -> " MEM("16x64", "s", ", 32x64")},
        {"shape-mismatch", ONE "%n = ttg.memdesc_subslice %m[-16, 0] : " MEM(
                               "32x64", "s", ", mutable") " -> " MEM("16x64", "s", ", 32x64")},
        {"shape-mismatch", ONE "%n = ttg.memdesc_subslice %m[0] : " MEM(
                               "32x64", "s", ", mutable") " -> " MEM("16x64", "s", ", 32x64")},
        {"shape-mismatch", ONE "%n = ttg.memdesc_subslice %m[16, 0] : " MEM(
                               "32x64", "s", ", mutable") " -> " MEM("16x64", "s", "")},
        {"bad-literal", ONE "%n = ttg.memdesc_subslice %m[4294967296, 0] : " MEM(
                            "32x64", "s", ", mutable") " -> " MEM("16x64", "s", ", 32x64")},
        /* memdesc_trans, memdesc_reshape, memdesc_reinterpret */
        {"layout-mismatch", ONE "%n = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : " MEM(
                                "32x64", "s", ", mutable") " -> " MEM("64x32", "s", "")},
        {"bad-attribute", ONE "%n = ttg.memdesc_trans %m : " MEM(
                              "32x64", "s", ", mutable") " -> " MEM("64x32", "t", "")},
        {"bad-attribute", ONE "%n = ttg.memdesc_trans %m {order = array<i32: 1, 1>} : " MEM(
                              "32x64", "s", ", mutable") " -> " MEM("64x32", "t", "")},
        {"shape-mismatch", BUFFERS "%n = ttg.memdesc_trans %m {order = array<i32: 0, 2, 1>} : " MEM(
                               "3x32x64", "s", ", mutable") " -> " MEM("3x64x32", "t", "")},
        {"layout-mismatch", ONE "%n = ttg.memdesc_reshape %m : " MEM(
                                "32x64", "s", ", mutable") " -> " MEM("2048", "u", "")},
        {"shape-mismatch", ONE "%n = ttg.memdesc_reshape %m : " MEM(
                               "32x64", "s", ", mutable") " -> " MEM("1024", "u", "")},
        {"shape-mismatch", ONE "%n = ttg.memdesc_reinterpret %m : " MEM(
                               "32x64", "s", ", mutable") " -> !ttg.memdesc<2048xi32, #u, #smem>"},
        {"not-mutable", FULL "%n = ttg.memdesc_reinterpret %m : " MEM(
                            "32x64", "s", "") " -> !ttg.memdesc<64xi32, #u, #smem, mutable>"},
    };
    check_wrong(list, COUNT(list));
}

#define BARRIER "!ttg.memdesc<1xi64, #u, #smem, mutable>"
#define BAR     "%b = ttg.local_alloc : () -> " BARRIER "\n"
#define DESC                                                                                       \
    "%s = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>\n"    \
    "%d = ttng.reinterpret_tensor_descriptor %s : !tt.ptr<i8> to "                                 \
    "!tt.tensordesc<tensor<32x64xf16, #s>>\n%c = arith.constant true\n"
#define TO " : !tt.tensordesc<tensor<32x64xf16, #s>>, " BARRIER " -> "

static void asynchronous_operations_are_refused(void **state) {
    (void)state;
    static const wrong list[] = {
        {"type-mismatch", "%m = ttg.local_alloc : () -> !ttg.memdesc<32x64xi16, #s, #smem, "
                          "mutable>\n%t = ttg.async_copy_global_to_local %p, %m : "
                          "tensor<32x64x!tt.ptr<f16>, #a> -> <32x64xi16, #s, #smem, mutable>"},
        {"shape-mismatch",
         ALLOC("m", MEM("64x32", "s", ", mutable")) "%t = ttg.async_copy_global_to_local %p, %m : "
                                                    "tensor<32x64x!tt.ptr<f16>, #a> -> "
                                                    "<64x32xf16, #s, #smem, mutable>"},
        {"type-mismatch", FULL "%t = ttg.async_copy_global_to_local %p, %m : "
                               "tensor<32x64x!tt.ptr<f16>, #a> -> <32x64xf16, #s, #smem>"},
        {"bad-attribute", "%t = ttg.async_wait"},
        {"bad-attribute", "%t = ttg.async_wait {num = -1 : i32}"},
        {"type-mismatch", "%t = ttg.async_wait %i {num = 0 : i32}"},
        {"bad-attribute", "%s = ttg.global_scratch_alloc {nbytes = 8 : i32} : !tt.ptr<i8>"},
        {"bad-attribute", "ttng.fence_async_shared"},
        {"type-mismatch", ONE "ttng.init_barrier %m, 1 : " MEM("32x64", "s", ", mutable")},
        {"syntax", BAR "ttng.init_barrier %b : " BARRIER},
        {"type-mismatch", BAR "ttng.barrier_expect %b, 16, %i : " BARRIER},
        {"type-mismatch", BAR "ttng.wait_barrier %b, %i deps %i : " BARRIER ", i32"},
        {"count-mismatch", BAR "ttng.wait_barrier %b, %i deps %b, %b : " BARRIER ", " BARRIER},
        {"bad-attribute", "%y = ttng.warp_group_dot_wait %x : tensor<32x64xf16, #a>"},
        {"type-mismatch", FULL "%y = ttng.warp_group_dot %i, %m, %x : i32 * " MEM(
                              "32x64", "s", "") " -> "
                                                "tensor<32x64xf16, #a>"},
        {"shape-mismatch",
         FULL "%y = ttng.warp_group_dot %x, %m, %x : tensor<32x64xf16, #a> * " MEM(
             "32x64", "s", "") " -> tensor<32x64xf16, #a>"},
        {"count-mismatch", DESC BAR ONE
         "ttng.async_tma_copy_global_to_local %d[%i] %m, %b, %c" TO MEM("32x64", "s", ", mutable")},
        {"type-mismatch",
         DESC ONE "ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %m, %c : "
                  "!tt.tensordesc<tensor<32x64xf16, #s>>, " MEM(
                      "32x64", "s", ", mutable") " -> " MEM("32x64", "s", ", mutable")},
        {"shape-mismatch",
         DESC BAR ALLOC(
             "m", MEM("16x64", "s",
                      ", mutable")) "ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %c" TO
             MEM("16x64", "s", ", mutable")},
        {"count-mismatch",
         "%s = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>\n"
         "ttng.tensormap_create %s, %s, [%i], [%i], [], [] {elem_type = 6 : i32, fill_mode = 0 : "
         "i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, "
         "i32, i32) -> ()"},
        {"count-mismatch",
         "%s = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>\n"
         "ttng.tensormap_fenceproxy_acquire %s : !tt.ptr<i8>\n"
         "ttng.tensormap_create %s, %s, [%i], [%i], [], [%i] {elem_type = 6 : i32, fill_mode = 0 : "
         "i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, "
         "i32, i32) -> ()"},
        {"shape-mismatch", "%z = arith.constant dense<0> : tensor<32x64xi8, #a>\n"
                           "%y = ttg.fp4_to_fp %z {axis = 0 : i32} : tensor<32x64xi8, #a> -> "
                           "tensor<32x128xbf16, #a>"},
    };
    check_wrong(list, COUNT(list));
}

/* ---- layouts ---------------------------------------------------------------------------- */

static void conversions_say_how(void **state) {
    (void)state;
    static const struct {
        const char *attribute;
        lilac_tile_movement movement;
    } list[] = {{"", LILAC_TILE_MOVEMENT_ANY},
                {" {lilac.movement = \"shared\"}", LILAC_TILE_MOVEMENT_SHARED},
                {" {lilac.movement = \"shuffles\"}", LILAC_TILE_MOVEMENT_SHUFFLES},
                {" {lilac.movement = \"unswizzled\"}", LILAC_TILE_MOVEMENT_UNSWIZZLED}};
    for (size_t i = 0; i < COUNT(list); i++) {
        lilac_text body = {0}, out = {0};
        lilac_text_printf(&body,
                          "    %%y = ttg.convert_layout %%x%s : tensor<32x64xf16, #a> -> "
                          "tensor<32x64xf16, #b>\n",
                          list[i].attribute);
        reading r = read_body(lilac_text_get(&body));
        assert_true(r.good);
        assert_int_equal(lilac_tile_movement_of(r.module->functions->body->first->first),
                         list[i].movement);
        lilac_tile_print(&out, r.module, false);
        assert_non_null(strstr(lilac_text_get(&out), lilac_text_get(&body)));
        lilac_text_clear(&out);
        lilac_text_clear(&body);
        close_reading(&r);
    }
    static const wrong refused[] = {
        {"bad-attribute", "%y = ttg.convert_layout %x {lilac.movement = \"telepathy\"} : "
                          "tensor<32x64xf16, #a> -> tensor<32x64xf16, #b>"},
        {"bad-attribute", "%y = ttg.convert_layout %x {lilac.movement = 1 : i32} : "
                          "tensor<32x64xf16, #a> -> tensor<32x64xf16, #b>"},
        {"shape-mismatch",
         "%y = ttg.convert_layout %x : tensor<32x64xf16, #a> -> tensor<64x32xf16, #b>"},
        {"type-mismatch", "%y = arith.addf %x, %x : tensor<32x64xf16, #b>"},
        {"layout-mismatch",
         "%y = tt.elementwise_inline_asm \"mov\" {constraints = \"=r,r\", packed_element = 1 : "
         "i32, pure = true} %x : tensor<32x64xf16, #a> -> tensor<32x64xf16, #b>"},
    };
    check_wrong(refused, COUNT(refused));
}

/* Layouts are of as many lanes, warps and blocks as the module says; where it says nothing, any. */
static void layouts_are_of_the_modules_threads(void **state) {
    (void)state;
    static const struct {
        const char *head;
        bool good;
    } list[] = {
        {LAYOUTS SAID("4") FUNCTION, true},
        {LAYOUTS SAID("8") FUNCTION, false},
        {LAYOUTS "module {\n" FUNCTION, true},
        {LAYOUTS "module attributes {\"ttg.threads-per-warp\" = 64 : i32} {\n" FUNCTION, false},
        {LAYOUTS "module attributes {\"ttg.num-ctas\" = 1 : i32} {\n" FUNCTION, true},
        {LAYOUTS "module attributes {\"ttg.num-ctas\" = 2 : i32} {\n" FUNCTION, false},
    };
    for (size_t i = 0; i < COUNT(list); i++) {
        reading r = read_parts(list[i].head, "", TAIL);
        assert_int_equal(r.good, list[i].good);
        if (!r.good) {
            assert_string_equal(lilac_diagnostics(r.context)->id, "layout-of-other-threads");
        }
        close_reading(&r);
    }
    static const wrong refused[] = {
        {"layout-of-other-threads",
         "%y = ttg.convert_layout %x : tensor<32x64xf16, #a> -> tensor<32x64xf16, "
         "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 4], "
         "order = [1, 0]}>>"},
        {"layout-of-other-threads",
         "%y = ttg.convert_layout %x : tensor<32x64xf16, #a> -> tensor<32x64xf16, "
         "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [2, 2], "
         "order = [1, 0]}>>"},
    };
    check_wrong(refused, COUNT(refused));
}

static void definitions_are_refused(void **state) {
    (void)state;
    static const wrong list[] = {
        {"memory-space-unknown", "#shared = #ttg.shared_memory\n"},
        {"memory-space", "#smem = #ttg.linear<{register = [[1]], lane = [], warp = [], block = "
                         "[]}>\n"},
        {"redefinition", "#smem = #ttg.shared_memory\n#smem = #ttg.shared_memory\n"},
        {"layout-alias-undefined", "#a = #ttg.slice<{dim = 0, parent = #nothing}>\n"},
    };
    for (size_t i = 0; i < COUNT(list); i++) {
        reading r = read_parts(list[i].body, "module {\n}\n", "");
        assert_false(r.good);
        assert_string_equal(lilac_diagnostics(r.context)->id, list[i].id);
        close_reading(&r);
    }
}

/* The same layout under two names is two types, and each prints as it was written, with the
 * aliases inside; types made from a type keep its name. */
static void names_of_layouts_are_kept(void **state) {
    (void)state;
    static const char text[] =
        "#blocked = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], "
        "order = [0]}>\n"
        "#linear = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [], "
        "block = []}>\n"
        "#parent = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [32, 1], warpsPerCTA = "
        "[1, 1], order = [0, 1]}>\n"
        "#rows = #ttg.slice<{dim = 1, parent = #parent}>\n"
        "module {\n"
        "  tt.func public @f(%x: tensor<64xf32, #blocked>) {\n"
        "    %y = ttg.convert_layout %x : tensor<64xf32, #blocked> -> tensor<64xf32, #linear>\n"
        "    %z = ttg.convert_layout %y : tensor<64xf32, #linear> -> tensor<64xf32, #rows>\n"
        "    %w = ttg.convert_layout %z : tensor<64xf32, #rows> -> tensor<64xf32, "
        "#ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, "
        "32], warpsPerCTA = [1, 1], order = [0, 1]}>}>>\n"
        "    %v = ttg.convert_layout %w : tensor<64xf32, #ttg.slice<{dim = 0, parent = "
        "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [1, 1], "
        "order = [0, 1]}>}>> -> tensor<64xf32, #ttg.slice<{dim = 0, parent = "
        "#ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1, 2], threadsPerWarp = "
        "[1, 1, 32], warpsPerCTA = [1, 1, 1], order = [2, 1, 0]}>}>}>>\n"
        "    tt.return\n"
        "  }\n"
        "}\n";
    reading r = read_parts(text, "", "");
    if (!r.good) {
        say(&r, text);
    }
    assert_true(r.good);
    lilac_text out = {0};
    lilac_tile_print(&out, r.module, false);
    assert_string_equal(lilac_text_get(&out), text);
    lilac_text_clear(&out);
    const lilac_tile_op *first = r.module->functions->body->first->first;
    const lilac_tile_type *x = first->operands[0].value->type, *y = first->results[0].type;
    const lilac_tile_type *z = first->next->results[0].type;
    assert_ptr_not_equal(x, y);
    assert_true(lilac_layout_equal(x->layout, y->layout));
    assert_true(lilac_layout_equal(x->layout, z->layout));
    assert_int_equal(x->encoding->kind, LILAC_ENCODING_BLOCKED);
    assert_string_equal(x->spelling, "#blocked");
    assert_int_equal(z->encoding->kind, LILAC_ENCODING_SLICE);
    assert_string_equal(z->spelling, "#rows");
    /* By pointer the name comes along, by content it does not. */
    const lilac_tile_type *number = lilac_tile_scalar(r.module, LILAC_F32);
    const lilac_layout copy = *y->layout;
    const lilac_tile_type *plain = lilac_tile_tensor(r.module, number, 1, y->shape, &copy);
    assert_ptr_equal(lilac_tile_tensor(r.module, number, 1, y->shape, y->layout), y);
    assert_ptr_equal(lilac_tile_with_layout(r.module, x, y->layout), y);
    assert_ptr_equal(lilac_tile_with_layout(r.module, y, &copy), plain);
    assert_ptr_equal(lilac_tile_with_layout(r.module, y, plain->layout), plain);
    assert_null(plain->encoding);
    assert_null(plain->spelling);
    close_reading(&r);
}

/* Memory made from C: its name comes with the printed module, which reads back. */
static void memory_is_made_from_c(void **state) {
    (void)state;
    reading r = read_parts("module {\n  tt.func public @f() {\n    tt.return\n  }\n}\n", "", "");
    assert_true(r.good);
    lilac_encoding_memdesc memory = {
        .rank = 2, .shape = {8, 16}, .scalar = LILAC_F32, .is_mutable = true};
    static const int64_t columns[] = {0, 1, 2, 3, 4, 5, 6};
    uint64_t places[7];
    lilac_layout_init(&memory.layout);
    assert_true(lilac_layout_add_out(&memory.layout, "dim0", 3, NULL));
    assert_true(lilac_layout_add_out(&memory.layout, "dim1", 4, NULL));
    for (size_t i = 0; i < COUNT(columns); i++) {
        places[i] = UINT64_C(1) << columns[i];
    }
    assert_true(lilac_layout_add_in(&memory.layout, "offset", 7, places, NULL));
    assert_true(lilac_layout_add_in(&memory.layout, "block", 0, NULL, NULL));
    const lilac_tile_type *type = lilac_tile_memory(r.module, &memory);
    assert_int_equal(type->kind, LILAC_TILE_MEMDESC);
    assert_ptr_equal(lilac_tile_memory(r.module, &memory), type);
    assert_int_equal(type->alloc_rank, 2);
    assert_int_equal(lilac_tile_element_bits(type), 32);
    assert_int_equal(lilac_tile_element_count(type), 128);
    assert_false(lilac_tile_is_tensor(type));
    memory.is_mutable = false;
    assert_ptr_not_equal(lilac_tile_memory(r.module, &memory), type);
    lilac_tile_op *op =
        lilac_tile_op_create(r.module, LILAC_TILE_OP_TTG_LOCAL_ALLOC, 0, NULL, 1, &type, 0, 0);
    lilac_tile_insert_before(r.module->functions->body->first->first, op);
    assert_true(lilac_tile_verify(r.module, true));
    lilac_text out = {0}, again = {0};
    lilac_tile_print(&out, r.module, false);
    assert_int_equal(strncmp(lilac_text_get(&out), "#smem = #ttg.shared_memory\n", 27), 0);
    reading second = read_parts(lilac_text_get(&out), "", "");
    assert_true(second.good);
    lilac_tile_print(&again, second.module, false);
    assert_string_equal(lilac_text_get(&again), lilac_text_get(&out));
    const lilac_tile_type *read = second.module->functions->body->first->first->results[0].type;
    assert_true(lilac_layout_equal(read->layout, type->layout));
    lilac_text_clear(&out);
    lilac_text_clear(&again);
    close_reading(&second);
    close_reading(&r);
}

/* What a type says of buffers and parts. */
static void types_say_where_elements_are(void **state) {
    (void)state;
    reading r = read_body(
        BUFFERS "%n = ttg.memdesc_index %m[%i] : " MEM("3x32x64", "s", ", mutable") " -> " MEM(
            "32x64", "s", ", mutable") "\n"
                                       "%o = ttg.memdesc_subslice %n[16, 32] : " MEM(
                                           "32x64", "s", ", mutable") " -> " MEM("16x32", "s",
                                                                                 ", 32x64") "\n");
    assert_true(r.good);
    const lilac_tile_op *op = r.module->functions->body->first->first;
    const lilac_tile_type *all = op->results[0].type, *one = op->next->results[0].type;
    const lilac_tile_type *part = op->next->next->results[0].type;
    assert_int_equal(all->rank, 3);
    assert_int_equal(all->layout->out_count, 2);
    assert_int_equal(one->layout->out_count, 2);
    assert_true(lilac_layout_equal(all->layout, one->layout));
    assert_true(all->is_mutable && one->is_mutable && !part->is_mutable);
    assert_int_equal(part->alloc_shape[0], 32);
    assert_int_equal(part->alloc_shape[1], 64);
    /* The part's elements are where the allocation has them. */
    assert_true(lilac_layout_equal(part->layout, one->layout));
    close_reading(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_operations_are_accepted),
        cmocka_unit_test(memory_operations_are_refused),
        cmocka_unit_test(asynchronous_operations_are_refused),
        cmocka_unit_test(conversions_say_how),
        cmocka_unit_test(layouts_are_of_the_modules_threads),
        cmocka_unit_test(definitions_are_refused),
        cmocka_unit_test(names_of_layouts_are_kept),
        cmocka_unit_test(memory_is_made_from_c),
        cmocka_unit_test(types_say_where_elements_are),
    };
    return cmocka_run_group_tests_name("tile_memory", tests, NULL, NULL);
}
