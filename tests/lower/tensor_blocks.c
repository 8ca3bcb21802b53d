/* lower: tensor copies of blocks of ranks 1 to 5 to shared memory and back, of all element sizes, with
 * several boxes, on the simulator; reductions; missing fences and waits are found. */
#include "support/lower_tensors.h"

#include <lilac/engine.h>

enum { MOST_RANK = 5, MOST_BYTES = 1 << 19 };

typedef struct block_case {
    const char *type;
    lilac_tensor_element element;
    uint32_t bytes, rank;
    uint32_t shape[MOST_RANK];
} block_case;

static const block_case cases[] = {
    {"f16", LILAC_TENSOR_F16, 2, 1, {64}},
    {"f32", LILAC_TENSOR_F32, 4, 1, {1024}}, /* four boxes */
    {"i8", LILAC_TENSOR_U8, 1, 1, {16}},
    {"f16", LILAC_TENSOR_F16, 2, 2, {512, 64}},   /* two below each other */
    {"bf16", LILAC_TENSOR_BF16, 2, 2, {16, 256}}, /* four beside each other */
    {"f32", LILAC_TENSOR_F32, 4, 2, {2, 16}},     /* too few rows for a swizzle */
    {"f32", LILAC_TENSOR_F32, 4, 2, {4, 512}},
    {"i64", LILAC_TENSOR_S64, 8, 2, {32, 32}},
    {"i32", LILAC_TENSOR_S32, 4, 2, {64, 4}},
    {"f16", LILAC_TENSOR_F16, 2, 2, {512, 128}}, /* four */
    {"f16", LILAC_TENSOR_F16, 2, 3, {1, 16, 64}},
    {"f16", LILAC_TENSOR_F16, 2, 3, {4, 8, 128}},
    {"f32", LILAC_TENSOR_F32, 4, 3, {2, 512, 8}},
    {"i16", LILAC_TENSOR_U16, 2, 4, {2, 4, 4, 32}},
    {"i8", LILAC_TENSOR_U8, 1, 4, {2, 1, 8, 256}},
    {"f32", LILAC_TENSOR_F32, 4, 5, {2, 2, 2, 4, 16}},
};

static lilac_box box_of(const block_case *c) {
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = lilac_tile_module_create(context);
    int64_t shape[MOST_RANK];
    lilac_box box;
    static const lilac_scalar scalars[] = {
        [1] = LILAC_I8, [2] = LILAC_I16, [4] = LILAC_I32, [8] = LILAC_I64};
    for (uint32_t d = 0; d < c->rank; d++) {
        shape[d] = c->shape[d];
    }
    const lilac_tile_type *element = lilac_tile_scalar(module, scalars[c->bytes]);
    assert_true(lilac_engine_box(&box, lilac_tile_tensor(module, element, c->rank, shape, NULL)));
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    return box;
}

/* ---- the text ------------------------------------------------------------------------------ */

/* With `narrow`, without dimensions of size 1. */
static void put_shape(lilac_text *t, const block_case *c, bool narrow) {
    for (uint32_t d = 0; d < c->rank; d++) {
        if (!narrow || c->shape[d] > 1) {
            lilac_text_printf(t, "%ux", c->shape[d]);
        }
    }
    lilac_text_puts(t, c->type);
}

static void put_coordinates(lilac_text *t, const block_case *c, const char *name) {
    for (uint32_t d = 0; d < c->rank; d++) {
        lilac_text_printf(t, d == 0 ? "%%%s%u" : ", %%%s%u", name, d);
    }
}

#define BARRIER "!ttg.memdesc<1xi64, #b, #smem, mutable>"

/* Loads a block through %from and stores it through %to; `store` is the operation. */
static void put_kernel(lilac_text *t, const block_case *c, const char *store, bool narrow,
                       bool awaited) {
    const lilac_box box = box_of(c);
    uint32_t bytes = c->bytes, rank = c->rank;
    for (uint32_t k = 0; narrow && k < c->rank; k++) {
        rank -= c->shape[k] == 1;
    }
    lilac_text d = {0}, m = {0};
    lilac_text_puts(&d, "!tt.tensordesc<tensor<");
    put_shape(&d, c, false);
    lilac_text_puts(&d, ">>");
    lilac_text_puts(&m, "!ttg.memdesc<");
    put_shape(&m, c, narrow);
    lilac_text_puts(&m, ", #s, #smem, mutable>");
    for (uint32_t k = 0; k < c->rank; k++) {
        bytes *= c->shape[k];
    }
    lilac_text_printf(
        t,
        "#s = #ttg.nvmma_shared<{swizzlingByteWidth = %u, transposed = false, "
        "elementBitWidth = %u, rank = %u}>\n"
        "#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
        "#smem = #ttg.shared_memory\n"
        "module {\n  tt.func public @k(%%from: %s, %%to: %s",
        box.swizzle_bytes, 8 * c->bytes, rank, lilac_text_get(&d), lilac_text_get(&d));
    for (uint32_t k = 0; k < 2 * c->rank; k++) {
        lilac_text_printf(t, ", %%%c%u: i32", k < c->rank ? 'p' : 'q', k % c->rank);
    }
    lilac_text_printf(t,
                      ") {\n    %%c0 = arith.constant 0 : i32\n    %%yes = arith.constant true\n"
                      "    %%m = ttg.local_alloc : () -> %s\n"
                      "    %%bar = ttg.local_alloc : () -> " BARRIER "\n"
                      "    ttng.init_barrier %%bar, 1 : " BARRIER "\n"
                      "    ttng.barrier_expect %%bar, %u, %%yes : " BARRIER "\n"
                      "    ttng.async_tma_copy_global_to_local %%from[",
                      lilac_text_get(&m), bytes);
    put_coordinates(t, c, "p");
    lilac_text_printf(t, "] %%m, %%bar, %%yes : %s, " BARRIER " -> %s\n", lilac_text_get(&d),
                      lilac_text_get(&m));
    lilac_text_printf(t, "    ttng.wait_barrier %%bar, %%c0 : " BARRIER "\n    ttng.%s%%to[",
                      store);
    put_coordinates(t, c, "q");
    lilac_text_printf(t, "] %%m : %s, %s\n", lilac_text_get(&d), lilac_text_get(&m));
    lilac_text_puts(t, awaited ? "    ttng.async_tma_store_wait {pendings = 0 : i32}\n" : "");
    lilac_text_puts(t, "    ttng.inval_barrier %bar : " BARRIER "\n    tt.return\n  }\n}\n");
    lilac_text_clear(&d);
    lilac_text_clear(&m);
}

/* ---- the model ----------------------------------------------------------------------------- */

static uint8_t x[MOST_BYTES], y[MOST_BYTES], wanted[MOST_BYTES];

/* A tensor in memory; its map has the dimensions reversed. */
typedef struct tensor {
    lilac_tensor_map map;
    int32_t at[MOST_RANK]; /* of the block, in the order of the tensor */
} tensor;

static void choose_tensor(tensor *t, const block_case *c, const lilac_box *box,
                          lilac_random *random) {
    const uint32_t vector = 16 / c->bytes, last = c->rank - 1;
    uint64_t stride = c->bytes;
    t->map = (lilac_tensor_map){.element = c->element,
                                .rank = c->rank,
                                .swizzle = lilac_tensor_swizzle_of(box->swizzle_bytes)};
    for (uint32_t i = 0; i < c->rank; i++) { /* the contiguous dimension first */
        const uint32_t size = c->shape[last - i], around = size / 2 + 1;
        uint64_t dim = 1 + size / 2 + lilac_random_below(random, size);
        dim = i == 0 ? (dim + vector - 1) / vector * vector : dim;
        t->map.dims[i] = dim;
        t->map.box[i] = box->sizes[last - i];
        t->map.element_strides[i] = 1;
        stride *= dim;
        if (i < last) {
            t->map.strides[i] = stride;
        }
        t->at[last - i] = (int32_t)lilac_random_below(random, 2 * around) - (int32_t)around;
    }
    assert_true(stride <= MOST_BYTES);
}

/* The place of element k of the block; -1: outside. */
static int64_t place_of(const tensor *t, const block_case *c, const uint32_t *k) {
    uint64_t place = 0;
    for (uint32_t d = 0; d < c->rank; d++) {
        const uint32_t i = c->rank - 1 - d;
        const int64_t at = t->at[d] + (int64_t)k[d];
        if (at < 0 || at >= (int64_t)t->map.dims[i]) {
            return -1;
        }
        place += (uint64_t)at * (i == 0 ? c->bytes : t->map.strides[i - 1]);
    }
    return (int64_t)place;
}

static void copy_block(const block_case *c, const tensor *from, const tensor *to, bool adds) {
    uint32_t k[MOST_RANK] = {0};
    for (uint32_t d = 0; d < c->rank;) {
        const int64_t source = place_of(from, c, k), target = place_of(to, c, k);
        uint32_t value = 0, old = 0;
        if (target >= 0 && adds) {
            memcpy(&old, wanted + target, 4);
            memcpy(&value, x + (source < 0 ? 0 : source), 4);
            value = old + (source < 0 ? 0 : value);
            memcpy(wanted + target, &value, 4);
        } else if (target >= 0 && source >= 0) {
            memcpy(wanted + target, x + source, c->bytes);
        } else if (target >= 0) {
            memset(wanted + target, 0, c->bytes);
        }
        for (d = 0; d < c->rank && ++k[d] == c->shape[d]; d++) {
            k[d] = 0;
        }
    }
}

static uint64_t size_of(const tensor *t, const block_case *c) {
    return t->map.rank == 1 ? t->map.dims[0] * c->bytes
                            : t->map.strides[t->map.rank - 2] * t->map.dims[t->map.rank - 1];
}

/* ---- runs ------------------------------------------------------------------------------------ */

static bool run(harness *h, const block_case *c, tensor *from, tensor *to) {
    lilac_sim_buffer places[] = {
        {.name = "x", .bytes = x, .size = size_of(from, c), .read_only = true},
        {.name = "y", .bytes = y, .size = size_of(to, c)}};
    uint64_t arguments[2 + 2 * MOST_RANK] = {0, 1};
    lilac_tensor_map maps[2];
    lilac_sim_place(places, 2);
    from->map.address = places[0].address;
    to->map.address = places[1].address;
    maps[0] = from->map;
    maps[1] = to->map;
    for (uint32_t d = 0; d < c->rank; d++) {
        arguments[2 + d] = (uint32_t)from->at[d];
        arguments[2 + c->rank + d] = (uint32_t)to->at[d];
    }
    const lilac_sim_launch launch = {.kernel = h->simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 2 + 2 * c->rank,
                                     .tensor_maps = maps,
                                     .tensor_map_count = 2,
                                     .buffers = places,
                                     .buffer_count = 2,
                                     .threads = 1,
                                     .instruction_limit = 1 << 22};
    return lilac_sim_run(h->context, &launch, &h->counters);
}

static void check_case(const block_case *c, const char *store, bool narrow, lilac_random *random) {
    const lilac_box box = box_of(c);
    lilac_text text = {0};
    harness h;
    tensor from, to;
    uint32_t copies = 1;
    choose_tensor(&from, c, &box, random);
    choose_tensor(&to, c, &box, random);
    for (uint32_t i = 0; i < MOST_BYTES; i++) {
        x[i] = (uint8_t)lilac_random_next(random);
        y[i] = wanted[i] = (uint8_t)lilac_random_next(random);
    }
    copy_block(c, &from, &to, strncmp(store, "async_tma_reduce", 16) == 0);
    put_kernel(&text, c, store, narrow, true);
    harness_open(&h, lilac_text_get(&text), 4, false);
    for (uint32_t d = 0; d < c->rank; d++) {
        copies *= c->shape[d] / box.sizes[d];
    }
    if (!run(&h, c, &from, &to) || h.counters.races != 0 || lilac_diagnostics(h.context) != NULL) {
        fail_with_diagnostics(h.context, "the simulator reports something");
    }
    assert_int_equal(h.counters.bulk_copies, 2 * copies);
    assert_memory_equal(y, wanted, size_of(&to, c));
    harness_close(&h);
    lilac_text_clear(&text);
}

static void blocks_of_all_ranks(void **state) {
    lilac_random random;
    (void)state;
    lilac_random_seed(&random, 7);
    for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
        check_case(&cases[i / 3], "async_tma_copy_local_to_global ", i % 3 == 2, &random);
    }
}

static void reductions(void **state) {
    lilac_random random;
    (void)state;
    lilac_random_seed(&random, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].element == LILAC_TENSOR_S32) {
            check_case(&cases[i], "async_tma_reduce add, ", false, &random);
        }
    }
}

/* Kernels that combine elements which the async proxy does not combine. */
static void reductions_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const block_case *c = &cases[i];
        const bool wide = c->bytes >= 4, real = c->type[0] != 'i', half = real && c->bytes == 2;
        const struct {
            const char *store;
            bool good;
        } rows[] = {{"async_tma_reduce add, ", wide || half},
                    {"async_tma_reduce min, ", (wide && !real) || half},
                    {"async_tma_reduce xor, ", wide && !real},
                    {"async_tma_reduce inc, ", false}};
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            lilac_text text = {0};
            harness h;
            put_kernel(&text, c, rows[k].store, false, true);
            if (harness_try(&h, lilac_text_get(&text), 4, false, NULL) != rows[k].good) {
                print_diagnostics(h.context);
                fail_msg("%s\n%s", rows[k].good ? "refused" : "accepted", lilac_text_get(&text));
            }
            harness_close(&h);
            lilac_text_clear(&text);
        }
    }
}

/* The block ends before the store has read shared memory. */
static void a_missing_wait_is_found(void **state) {
    const block_case *c = &cases[3];
    const lilac_box box = box_of(c);
    lilac_random random;
    lilac_text text = {0};
    harness h;
    tensor from, to;
    (void)state;
    lilac_random_seed(&random, 9);
    choose_tensor(&from, c, &box, &random);
    choose_tensor(&to, c, &box, &random);
    put_kernel(&text, c, "async_tma_copy_local_to_global ", false, false);
    harness_open(&h, lilac_text_get(&text), 4, false);
    assert_true(run(&h, c, &from, &to));
    assert_true(h.counters.races > 0);
    assert_string_equal(lilac_diagnostics(h.context)->id, "copy-not-awaited");
    harness_close(&h);
    lilac_text_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_all_ranks),
        cmocka_unit_test(reductions),
        cmocka_unit_test(reductions_refused),
        cmocka_unit_test(a_missing_wait_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
