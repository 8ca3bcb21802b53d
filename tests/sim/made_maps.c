/* Tensor maps that the kernel makes, on the simulator: a block goes from one tensor to another through two of
 * them, for random tensors and boxes. Each missing step, fence and wait is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random_boxes.h"
#include "support/text_rig.h"

/* Thread 0 of two warps makes the maps at 0 and 128 of shared memory; mbarrier at 256, box at 1024. */
#define HEAD "kernel @k(%x: i64 ptr, %y: i64 ptr) warps 2 ctas 1 shared 16384 scratch 256"
#define VALUES                                                                                     \
    "%base = shared_base : i32\n%x = param 0 : i64\n%y = param 1 : i64\n%t = thread : i32\n"       \
    "%w = warp : i32\n%zero = const 0 : i32\n%one = const 1 : i32\n"                               \
    "%first = cmp eq %t, %zero : i1\n%warp = cmp eq %w, %zero : i1\n%other = cmp eq %w, %one : "   \
    "i1\n"                                                                                         \
    "%from = global_scratch : i64\n%next = const 128 : i64\n%to = add %from, %next : i64\n"
#define MADE                                                                                       \
    "warp_barrier\n"                                                                               \
    "tensor_map.publish [%base], %warp, (%from)\n"                                                 \
    "tensor_map.publish [%base + 128], %warp, (%to)\n"                                             \
    "tensor_map.acquire %warp, %from\n"                                                            \
    "tensor_map.acquire %warp, %to\n"                                                              \
    "mbarrier.init [%base + 256], %first, (%one)\n"                                                \
    "fence.mbarrier_init\n"                                                                        \
    "barrier\n"

enum { CASES = 300 };

static uint8_t x[MEMORY], y[MEMORY], wanted[MEMORY], image[SHARED];

static void load_element(const box *b, uint32_t shared, int64_t global) {
    const uint32_t size = lilac_tensor_element_bytes(b->map.element);
    if (global >= 0) {
        memcpy(image + shared, x + global, size);
    } else {
        memset(image + shared, b->map.fill ? 0xFF : 0, size);
    }
    if (global < 0 && b->map.fill) {
        image[shared + size - 1] = 0x7F;
    }
}

static void store_element(const box *b, uint32_t shared, int64_t global) {
    if (global >= 0) {
        memcpy(wanted + global, image + shared, lilac_tensor_element_bytes(b->map.element));
    }
}

/* Maps with element strides are not made by kernels. */
static void choose_simple(box *b) {
    bool simple;
    do {
        simple = choose(b);
        for (uint32_t k = 0; k < b->map.rank; k++) {
            simple = simple && b->map.element_strides[k] == 1 && b->map.dims[k] < UINT32_MAX;
        }
    } while (!simple);
}

static void put_set(lilac_text *t, const lilac_tensor_map *map, uint32_t at, const char *tensor) {
    static const char *const elements[] = {"u8",  "u16", "u32", "s32", "u64",
                                           "s64", "f16", "f32", "f64", "bf16"};
    static const char *const swizzles[] = {"none", "b32", "b64", "b128"};
    for (uint32_t k = 0; k < map->rank; k++) {
        lilac_text_printf(t, "%%d%u_%u = const %llu : i64\n", at, k,
                          (unsigned long long)map->dims[k]);
        if (k + 1 < map->rank) {
            lilac_text_printf(t, "%%s%u_%u = const %llu : i64\n", at, k,
                              (unsigned long long)map->strides[k]);
        }
    }
    lilac_text_printf(t, "tensor_map.set [%%base + %u], %%first, (%s", at, tensor);
    for (uint32_t k = 0; k < map->rank; k++) {
        lilac_text_printf(t, ", %%d%u_%u", at, k);
    }
    for (uint32_t k = 0; k + 1 < map->rank; k++) {
        lilac_text_printf(t, ", %%s%u_%u", at, k);
    }
    lilac_text_printf(t, ") {element = %s, swizzle = %s, fill = %s", elements[map->element],
                      swizzles[map->swizzle], map->fill ? "nan" : "zero");
    for (uint32_t k = 0; k < map->rank; k++) {
        lilac_text_printf(t, ", box%u = %u", k, map->box[k]);
    }
    lilac_text_puts(t, "}\n");
}

static void put_coordinates(lilac_text *t, const box *b, const char *name) {
    for (uint32_t k = 0; k < b->map.rank; k++) {
        lilac_text_printf(t, "%%%s%u = const %d : i32\n", name, k, (int)b->coordinates[k]);
    }
}

static void put_list(lilac_text *t, const box *b, const char *name) {
    for (uint32_t k = 0; k < b->map.rank; k++) {
        lilac_text_printf(t, ", %%%s%u", name, k);
    }
}

/* Runs the kernel, with a part of its text replaced. */
static bool run(text_rig *r, const box *from, const box *to, const char *part, const char *with) {
    static uint64_t arguments[2];
    lilac_text t = {0};
    put_coordinates(&t, from, "p");
    put_coordinates(&t, to, "q");
    lilac_text_printf(&t, "%%bytes = const %llu : i32\n",
                      (unsigned long long)lilac_tensor_map_bytes(&from->map));
    put_set(&t, &from->map, 0, "%x");
    put_set(&t, &to->map, 128, "%y");
    lilac_text_puts(&t, MADE "mbarrier.expect [%base + 256], %first, (%bytes)\n");
    lilac_text_printf(&t, "cp.tensor.load [%%base + %u], %%first, (%%from", from->at);
    put_list(&t, from, "p");
    lilac_text_puts(&t, ", %base) {mbarrier = 256}\nmbarrier.wait [%base + 256], (%zero)\n");
    lilac_text_printf(&t, "cp.tensor.store [%%base + %u], %%first, (%%to", from->at);
    put_list(&t, to, "q");
    lilac_text_puts(&t, ")\nbulk.commit\nbulk.wait\nbarrier\nmbarrier.invalidate [%base + 256], "
                        "%first\n");
    char *body = replaced(lilac_text_get(&t), part != NULL ? part : "bulk.commit",
                          part != NULL ? with : "bulk.commit");
    text_open(r, HEAD, VALUES, body, NULL);
    free(body);
    simt_text_give(&r->t, "x", x, sizeof x);
    simt_text_give(&r->t, "y", y, sizeof y);
    lilac_sim_place(r->t.buffers, 2);
    arguments[0] = r->t.buffers[0].address;
    arguments[1] = r->t.buffers[1].address;
    r->t.launch.arguments = arguments;
    r->t.launch.argument_count = 2;
    lilac_text_clear(&t);
    return lilac_sim_run(r->t.context, &r->t.launch, &r->t.counters);
}

/* A box of the same shape in another tensor, and the same place in shared memory. */
static void choose_pair(box *from, box *to) {
    choose_simple(from);
    *to = *from;
    for (uint32_t k = 0; k < to->map.rank; k++) {
        to->coordinates[k] = from->coordinates[k] / 2;
    }
    to->map.fill = LILAC_TENSOR_FILL_ZERO;
}

static void blocks_move(void **state) {
    (void)state;
    for (uint32_t n = 0; n < CASES; n++) {
        text_rig r;
        box from, to;
        choose_pair(&from, &to);
        for (uint32_t k = 0; k < MEMORY; k++) {
            x[k] = (uint8_t)below(256);
            y[k] = wanted[k] = (uint8_t)below(256);
        }
        walk(&from, load_element);
        walk(&to, store_element);
        if (!run(&r, &from, &to, NULL, NULL)) {
            text_fail(&r, "a trap");
        }
        expect_nothing(&r);
        assert_memory_equal(y, wanted, MEMORY);
        text_close(&r);
    }
}

static void mutations_are_found(void **state) {
    static const mutation cases[] = {
        {"tensor_map.acquire %warp, %from\n", "", "tensor-map-not-acquired", "cp.tensor.load",
         "tensor_map.publish [%base], "},
        {"tensor_map.acquire %warp, %to\n", "", "tensor-map-not-acquired", "cp.tensor.store",
         "tensor_map.publish [%base + 128], "},
        /* by another warp, in front of a barrier but not behind the publication */
        {"tensor_map.acquire %warp, %to\n", "tensor_map.acquire %other, %to\n",
         "tensor-map-not-acquired", "cp.tensor.store", "tensor_map.publish [%base + 128], "},
        {"tensor_map.publish [%base], %warp, (%from)\n", "", "tensor-map", "cp.tensor.load", NULL},
        {"tensor_map.publish [%base + 128], %warp, (%to)\n", "", "tensor-map", "cp.tensor.store",
         NULL},
        /* what another warp has set, without a barrier */
        {"publish [%base], %warp", "publish [%base], %other", "shared-race",
         "tensor_map.publish [%base], ", "tensor_map.set [%base + 0], "},
        {"publish [%base], %warp", "publish [%base], %first", "divergent-predicate",
         "tensor_map.publish [%base], ", NULL},
        /* while the store is incomplete */
        {"bulk.commit\n", "bulk.commit\ntensor_map.publish [%base + 128], %warp, (%to)\n",
         "tensor-map-in-use", "tensor_map.publish [%base + 128], ", "cp.tensor.store"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        box from, to;
        choose_pair(&from, &to);
        (void)run(&r, &from, &to, cases[k].from, cases[k].to);
        expect_finding(&r, cases[k].id, cases[k].at, cases[k].other);
        text_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_move),
        cmocka_unit_test(mutations_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
