/* Tensor maps: limits, sizes and swizzles. */

#include <lilac/simt.h>
#include <lilac/tensor_map.h>

#include "support/test.h"

static lilac_tensor_map usual(void) {
    return (lilac_tensor_map){.address = 1 << 20,
                              .element = LILAC_TENSOR_F16,
                              .rank = 3,
                              .dims = {1000, 30, 7},
                              .strides = {2048, 65536},
                              .box = {64, 16, 3},
                              .element_strides = {1, 1, 1},
                              .swizzle = LILAC_TENSOR_SWIZZLE_128};
}

/* Each limit: the greatest and the least value that is allowed, and one beyond each. */
typedef void change(lilac_tensor_map *map, uint64_t value);
#define CHANGE(name, statement)                                                                    \
    static void name(lilac_tensor_map *map, uint64_t value) {                                      \
        statement;                                                                                 \
    }
CHANGE(set_address, map->address = value)
CHANGE(set_rank, map->rank = (uint32_t)value)
CHANGE(set_dimension, map->dims[1] = value)
CHANGE(set_stride, map->strides[1] = value)
CHANGE(set_box, map->box[2] = (uint32_t)value)
CHANGE(set_inner, (map->box[0] = (uint32_t)value, map->swizzle = LILAC_TENSOR_SWIZZLE_NONE))
CHANGE(set_swizzled, (map->box[0] = (uint32_t)value, map->swizzle = LILAC_TENSOR_SWIZZLE_32))
CHANGE(set_step, map->element_strides[1] = (uint32_t)value)
CHANGE(set_element, map->element = (lilac_tensor_element)value)
CHANGE(set_swizzle, map->swizzle = (lilac_tensor_swizzle)value)
CHANGE(set_fill, map->fill = (lilac_tensor_fill)value)
CHANGE(set_promotion, map->l2_promotion = (uint32_t)value)
CHANGE(set_integer_fill, (map->element = LILAC_TENSOR_U16, map->fill = (lilac_tensor_fill)value))

static void limits(void **state) {
    static const struct {
        change *set;
        uint64_t value;
        const char *refused; /* in the message; NULL: it is allowed */
    } cases[] = {
        {set_address, 16, NULL},
        {set_address, 24, "the address is 0x18; a multiple of 16"},
        {set_rank, 1, NULL},
        {set_rank, 0, "the rank is 0; 1 to 5"},
        {set_rank, 6, "the rank is 6; 1 to 5"},
        {set_dimension, UINT64_C(1) << 32, NULL},
        {set_dimension, (UINT64_C(1) << 32) + 1, "dimension 1 has 4294967297 elements"},
        {set_dimension, 0, "dimension 1 has 0 elements"},
        {set_stride, (UINT64_C(1) << 40) - 16, NULL},
        {set_stride, UINT64_C(1) << 40, "the stride of dimension 2 is 1099511627776 bytes"},
        {set_stride, 40, "the stride of dimension 2 is 40 bytes"},
        {set_box, 256, NULL},
        {set_box, 257, "the box has 257 elements along dimension 2"},
        {set_box, 0, "the box has 0 elements along dimension 2"},
        {set_inner, 256, NULL},
        {set_inner, 12, "the box has 24 bytes along dimension 0; a multiple of 16"},
        {set_swizzled, 16, NULL},
        {set_swizzled, 24, "48 bytes along dimension 0; the swizzle of 32 bytes allows 32"},
        {set_step, 8, NULL},
        {set_step, 9, "the element stride of dimension 1 is 9"},
        {set_step, 0, "the element stride of dimension 1 is 0"},
        {set_element, LILAC_TENSOR_ELEMENT_COUNT, "there is no element type 10"},
        {set_swizzle, LILAC_TENSOR_SWIZZLE_COUNT, "swizzle 4"},
        {set_fill, LILAC_TENSOR_FILL_NAN, NULL},
        {set_fill, LILAC_TENSOR_FILL_COUNT, "fill 2"},
        {set_integer_fill, LILAC_TENSOR_FILL_ZERO, NULL},
        {set_integer_fill, LILAC_TENSOR_FILL_NAN, "only zero is allowed"},
        {set_promotion, 64, NULL},
        {set_promotion, 32, "the promotion is to 32 bytes"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        lilac_context *context = lilac_context_create();
        lilac_tensor_map map = usual();
        cases[k].set(&map, cases[k].value);
        bool good = lilac_tensor_map_check(context, &map, "m");
        const lilac_diagnostic *d = lilac_diagnostics(context);
        if (good != (cases[k].refused == NULL)) {
            fail_msg("case %zu: %s", k, d ? d->message : "allowed");
        }
        if (!good && (strcmp(d->id, "tensor-map") != 0 || !strstr(d->message, cases[k].refused))) {
            fail_msg("case %zu: %s", k, d->message);
        }
        lilac_context_destroy(context);
    }
}

static void sizes(void **state) {
    (void)state;
    lilac_tensor_map map = usual();
    assert_int_equal(lilac_tensor_map_bytes(&map), 64 * 16 * 3 * 2);
    map.element_strides[0] = 4; /* not used */
    map.element_strides[1] = 3;
    assert_int_equal(lilac_tensor_map_extent(&map, 0), 64);
    assert_int_equal(lilac_tensor_map_extent(&map, 1), 6);
    assert_int_equal(lilac_tensor_map_bytes(&map), 64 * 6 * 3 * 2);
}

/* A swizzle is linear, its own inverse, keeps the byte within a 16-byte chunk and its period, and
 * exchanges chunks by the number of the 128-byte line, as the manual's figures do. */
static void swizzles(void **state) {
    (void)state;
    for (int s = 0; s < LILAC_TENSOR_SWIZZLE_COUNT; s++) {
        lilac_tensor_swizzle swizzle = (lilac_tensor_swizzle)s;
        uint32_t span = 16u << s, period = lilac_tensor_swizzle_period(swizzle);
        assert_int_equal(period, s == 0 ? 128 : 8 * span);
        for (uint64_t a = 0; a < 4096; a++) {
            uint64_t to = lilac_tensor_swizzle_apply(swizzle, a);
            assert_int_equal(lilac_tensor_swizzle_apply(swizzle, to), a);
            assert_int_equal(to / span, a / span);
            assert_int_equal(to % 16, a % 16);
            uint64_t row = a / 128 % 8;
            assert_int_equal(to / 16 % (span / 16), (a / 16 ^ row) % (span / 16));
            for (uint64_t bit = 1; bit < 4096; bit *= 2) {
                assert_int_equal(lilac_tensor_swizzle_apply(swizzle, a ^ bit),
                                 to ^ lilac_tensor_swizzle_apply(swizzle, bit));
            }
        }
    }
}

/* Kernels with a tensor map %m, a pointer %p and a number %n: NULL where they are right. */
static void operands(void **state) {
    static const struct {
        const char *parameters, *body, *refused;
    } cases[] = {
        {"%m: i64 tensor_map align 64", "prefetch.tensor_map %m\n", NULL},
        {"%m: i64 ptr", "prefetch.tensor_map %m\n",
         "operand 1 is no parameter that is a tensor map"},
        {"%m: i64 tensor_map", "%b = add %m, %m : i64\n", "operand 1 of add is a tensor map"},
        {"%m: i64 tensor_map", "%b = ld.global [%m] : i32\n",
         "operand 1 of ld.global is a tensor map"},
        {"%m: i64 tensor_map", "%b = opaque %m : i64\nprefetch.tensor_map %b\n",
         "operand 1 of opaque is a tensor map"},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], (%m, %s, %s) {mbarrier = 8}\n", NULL},
        {"%m: i64 tensor_map", "cp.tensor.load [%s + 128], %y, (%m, %s, %s, %s)\n", NULL},
        {"%m: i64 tensor_map", "cp.tensor.store [%s], (%m, %s, %s, %s, %s, %s)\n", NULL},
        {"%m: i64 tensor_map", "cp.tensor.reduce xor [%s], %y, (%m, %s)\n", NULL},
        {"%m: i64 ptr", "%g = global_scratch : i64\ncp.tensor.store [%s], (%g, %s)\n", NULL},
        {"%m: i64 ptr",
         "%g = global_scratch : i64\n%h = add %g, %m : i64\ntensor_map.acquire %y, %h\n", NULL},
        {"%m: i64 ptr", "tensor_map.acquire %m\n", "operand 1 is no address in the kernel's"},
        {"%m: i64 ptr", "tensor_map.publish [%s], (%m)\n", "operand 2 is no address in the"},
        {"%m: i64 ptr", "tensor_map.set [%s], %y, (%m, %m) {element = f16, box0 = 8}\n", NULL},
        {"%m: i64 ptr", "tensor_map.set [%s], (%m, %m, %m, %m) {box0 = 16, box1 = 256}\n", NULL},
        {"%m: i64 ptr", "tensor_map.set [%s], (%m, %m, %m) {box0 = 16, box1 = 256}\n",
         "3 numbers: a tensor of rank n"},
        {"%m: i64 ptr", "tensor_map.set [%s], (%m, %m, %m, %m) {box0 = 16, box1 = 257}\n",
         "a box of 257 elements along dimension 1"},
        {"%m: i64 ptr", "tensor_map.set [%s], (%m, %m) {box0 = 16, box1 = 1}\n",
         "a box of 1 elements along dimension 1 of a tensor of rank 1"},
        {"%m: i64 ptr", "tensor_map.set [%s], (%m, %m) {element = f16, box0 = 4}\n",
         "a box of 8 bytes along dimension 0"},
        {"%m: i64 ptr", "tensor_map.set [%s], (%m, %m) {element = f16, swizzle = b32, box0 = 32}\n",
         "a box of 64 bytes along dimension 0"},
        {"%m: i64 ptr", "tensor_map.set [%z + 64], (%m, %m) {box0 = 16}\n",
         "the shared address 64 of a tensor map is no multiple of 128"},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], (%m, %s)\n", "0 coordinates; 1 to 5"},
        {"%m: i64 tensor_map", "cp.tensor.store [%s], (%m)\n", "0 coordinates; 1 to 5"},
        {"%m: i64 tensor_map", "cp.tensor.store [%s], (%m, %s, %s, %s, %s, %s, %s)\n",
         "6 coordinates; 1 to 5"},
        {"%m: i64 ptr", "cp.tensor.store [%s], (%m, %s)\n", "operand 2 is no parameter"},
        {"%m: i64 ptr", "cp.tensor.load [%s], %y, (%m, %s, %s)\n", "operand 3 is no parameter"},
        {"%m: i64 tensor_map", "cp.tensor.reduce min_s [%s], (%m, %s)\n", NULL},
        {"%m: i64 tensor_map", "cp.tensor.reduce max_u [%s], (%m, %s)\n", NULL},
        {"%m: i64 tensor_map", "cp.tensor.reduce exch [%s], (%m, %s)\n",
         "no tensor reduction 'exch'"},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], (%m, %s, %s) {global = 16}\n",
         "a tensor load has no offset of a global address"},
        {"%m: i64 tensor_map", "cp.tensor.store [%s], (%m, %s) {mbarrier = 8}\n",
         "a tensor store has no offset of an mbarrier"},
        {"%m: i64 tensor_map", "cp.tensor.store [%z + 64], (%m, %s)\n",
         "the shared address 64 of cp.tensor.store is no multiple of 128"},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], (%m, %s, %z) {mbarrier = 4}\n",
         "the address 4 of the mbarrier is no multiple of 8"},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], %y, (%m, %s, %s, %s) {multicast}\n", NULL},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], (%m, %s, %s, %o) {mbarrier = 8, multicast}\n",
         NULL},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], (%m, %s, %s, %z) {multicast}\n",
         "the multicast mask is 0; it names at least one block"},
        {"%m: i64 tensor_map",
         "%b = const 2 : i32\ncp.tensor.load [%s], (%m, %s, %s, %b) {multicast}\n",
         "the multicast mask 0x2 names a block that the cluster does not have: its blocks are 0 to "
         "0"},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], (%m, %s, %s) {multicast}\n",
         "0 coordinates; 1 to 5"},
        {"%m: i64 tensor_map", "cp.tensor.load [%s], (%m, %s, %z, %o) {mbarrier = 4, multicast}\n",
         "the address 4 of the mbarrier is no multiple of 8"},
        {"%m: i64 tensor_map", "cp.tensor.store [%s], (%m, %s) {multicast}\n",
         "cp.tensor.store has no multicast form; cp.tensor.load has one"},
        {"%m: i64 ptr", "cp.bulk.load [%s], (%m, %z, %s) {multicast}\n",
         "cp.bulk.load has no multicast form; cp.tensor.load has one"},
        {"%m: i64 ptr", "cp.bulk.store [%s], (%m, %z) {mbarrier = 8}\n",
         "a bulk store has no mbarrier"},
        {"%m: i32 tensor_map", "", "parameter 0 is a tensor map of type i32"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        lilac_context *context = lilac_context_create();
        lilac_text text = {0}, again = {0};
        lilac_text_printf(
            &text,
            "simt.module target \"sm_90a\" {\n  kernel @k(%s) warps 1 ctas 1 shared 0 scratch 128 "
            "{\n%%m = param 0 : %.3s\n%%s = thread : i32\n%%z = const 0 : i32\n%%o = const 1 : "
            "i32\n%%y = const true : "
            "i1\n%sreturn\n}\n}\n",
            cases[k].parameters, cases[k].parameters + 4, cases[k].body);
        lilac_simt_module *module =
            lilac_simt_read(context, lilac_source_add(context, "m", text.bytes, text.length));
        assert_non_null(module);
        lilac_simt_print(&again, module);
        assert_non_null(strstr(lilac_text_get(&again), cases[k].parameters));
        bool good = lilac_simt_verify(module);
        const lilac_diagnostic *d = lilac_diagnostics(context);
        if (good != (cases[k].refused == NULL) ||
            (!good && !strstr(d->message, cases[k].refused))) {
            fail_msg("%s: %s", cases[k].body, d ? d->message : "allowed");
        }
        lilac_text_clear(&text);
        lilac_text_clear(&again);
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(sizes),
        cmocka_unit_test(swizzles),
        cmocka_unit_test(operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
