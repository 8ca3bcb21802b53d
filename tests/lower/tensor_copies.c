/* lower: mbarriers and tensor copies of TTGIR on the simulator, for elements and blocks of all
 * sizes, and what is refused. */
#include "support/lower_tensors.h"

typedef struct block_case {
    const char *type;
    lilac_tensor_element element;
    uint32_t bytes; /* of an element */
    uint32_t rows, columns;
} block_case;

static const block_case cases[] = {
    {"f16", LILAC_TENSOR_F16, 2, 64, 64},     {"f16", LILAC_TENSOR_F16, 2, 8, 16},
    {"bf16", LILAC_TENSOR_BF16, 2, 128, 128}, {"f32", LILAC_TENSOR_F32, 4, 32, 16},
    {"f32", LILAC_TENSOR_F32, 4, 16, 128},    {"i8", LILAC_TENSOR_U8, 1, 64, 32},
    {"f8E5M2", LILAC_TENSOR_U8, 1, 256, 256}, {"i32", LILAC_TENSOR_S32, 4, 8, 32},
    {"i16", LILAC_TENSOR_U16, 2, 16, 32},
};

static uint32_t swizzle_of(const block_case *c) {
    const uint32_t row = c->columns * c->bytes;
    return row < 128 ? row : 128;
}

/* ---- the text ------------------------------------------------------------------------------ */

/* %m: two buffers; %bar: an mbarrier. D, M and B are the types of the descriptor, of one buffer
 * and of the mbarrier; R, C and E the rows, columns and element; W the bytes of the swizzle, H
 * those of the block. */
static const char head[] =
    "#row = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], "
    "order = [1, 0]}>\n"
    "#s = #ttg.nvmma_shared<{swizzlingByteWidth = {W}, transposed = false, elementBitWidth = "
    "{8}}>\n"
    "#other = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = "
    "{8}}>\n"
    "#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
    "#smem = #ttg.shared_memory\n"
    "module {\n"
    "  tt.func public @k(%d: {D}, %o: !tt.ptr<{E}>, %y: i32, %x: i32, %p: i1) {\n"
    "    %c0 = arith.constant 0 : i32\n"
    "    %c1 = arith.constant 1 : i32\n"
    "    %yes = arith.constant true\n"
    "    %no = arith.constant false\n"
    "    %m = ttg.local_alloc : () -> !ttg.memdesc<2x{R}x{C}x{E}, #s, #smem, mutable>\n"
    "    %m0 = ttg.memdesc_index %m[%c0] : !ttg.memdesc<2x{R}x{C}x{E}, #s, #smem, mutable> -> {M}\n"
    "    %m1 = ttg.memdesc_index %m[%c1] : !ttg.memdesc<2x{R}x{C}x{E}, #s, #smem, mutable> -> {M}\n"
    "    %bar = ttg.local_alloc : () -> {B}\n";

/* Two copies complete the first phase, one the second one. */
static const char two_phases[] =
    "    ttng.init_barrier %bar, 1 : {B}\n"
    "    ttng.barrier_expect %bar, {2H}, %yes : {B}\n"
    "    ttng.async_tma_copy_global_to_local %d[%y, %x] %m0, %bar, %yes : {D}, {B} -> {M}\n"
    "    ttng.async_tma_copy_global_to_local %d[%x, %y] %m1, %bar, %p : {D}, {B} -> {M}\n"
    "    ttng.wait_barrier %bar, %c0 : {B}\n"
    "    %v0 = ttg.local_load %m0 : {M} -> {T}\n"
    "    %v1 = ttg.local_load %m1 : {M} -> {T}\n"
    "    ttng.barrier_expect %bar, {H}, %yes : {B}\n"
    "    ttng.async_tma_copy_global_to_local %d[%c1, %c0] %m1, %bar, %no : {D}, {B} -> {M}\n"
    "    ttng.async_tma_copy_global_to_local %d[%c1, %x] %m0, %bar, %yes : {D}, {B} -> {M}\n"
    "    ttng.wait_barrier %bar, %c1 : {B}\n"
    "    %v2 = ttg.local_load %m0 : {M} -> {T}\n"
    "    ttng.inval_barrier %bar : {B}\n"
    "    %block = arith.constant {RC} : i32\n"
    "    %o1 = tt.addptr %o, %block : !tt.ptr<{E}>, i32\n"
    "    %o2 = tt.addptr %o1, %block : !tt.ptr<{E}>, i32\n";

static void put_number(lilac_text *t, const block_case *c, const char *name, size_t length) {
    const uint32_t block = c->rows * c->columns;
    const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {{"R", c->rows},      {"C", c->columns},       {"W", swizzle_of(c)},
                   {"8", 8 * c->bytes}, {"H", block * c->bytes}, {"2H", 2 * block * c->bytes},
                   {"RC", block}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strlen(numbers[i].name) == length && memcmp(numbers[i].name, name, length) == 0) {
            lilac_text_printf(t, "%u", numbers[i].value);
            return;
        }
    }
    const char *e = c->type;
    switch (*name) {
    case 'E':
        lilac_text_puts(t, e);
        break;
    case 'D':
        lilac_text_printf(t, "!tt.tensordesc<tensor<%ux%ux%s>>", c->rows, c->columns, e);
        break;
    case 'M':
        lilac_text_printf(t, "!ttg.memdesc<%ux%ux%s, #s, #smem, mutable>", c->rows, c->columns, e);
        break;
    case 'B':
        lilac_text_puts(t, "!ttg.memdesc<1xi64, #b, #smem, mutable>");
        break;
    case 'T':
        lilac_text_printf(t, "tensor<%ux%ux%s, #row>", c->rows, c->columns, e);
        break;
    default:
        fail_msg("{%s", name);
    }
}

/* Names in braces, which begin with a capital or a digit and end there, are replaced. */
static void put_text(lilac_text *t, const block_case *c, const char *text) {
    for (const char *at = text; *at != '\0'; at++) {
        const size_t length = *at == '{' ? strcspn(at + 1, "}< ") : 0;
        if (length > 0 && length < 3 && at[1 + length] == '}') {
            put_number(t, c, at + 1, length);
            at += length + 1;
        } else {
            lilac_text_char(t, *at);
        }
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

enum { MOST_BLOCK = 256 * 256, MOST_TENSOR = 1 << 19 };

static uint8_t x[MOST_TENSOR], o[3 * MOST_BLOCK * 4], wanted[3 * MOST_BLOCK * 4];

/* The block at row y, column x of the tensor. */
static void expect_block(const block_case *c, const lilac_tensor_map *map, uint8_t *out, int32_t y,
                         int32_t from) {
    for (uint32_t i = 0; i < c->rows * c->columns; i++) {
        const int64_t row = y + (int64_t)(i / c->columns),
                      column = from + (int64_t)(i % c->columns);
        const bool inside = row >= 0 && row < (int64_t)map->dims[1] && column >= 0 &&
                            column < (int64_t)map->dims[0];
        memset(out + (size_t)i * c->bytes, 0, c->bytes);
        if (inside) {
            memcpy(out + (size_t)i * c->bytes,
                   x + (uint64_t)row * map->strides[0] + (uint64_t)column * c->bytes, c->bytes);
        }
    }
}

static void copy_blocks(const block_case *c, lilac_random *random) {
    lilac_text text = {0};
    harness h;
    put_text(&text, c, head);
    put_text(&text, c, two_phases);
    static const char *const pointers[] = {"o", "o1", "o2"}, *const values[] = {"v0", "v1", "v2"},
                             *const names[] = {"first", "second", "third"};
    for (uint32_t i = 0; i < 3; i++) {
        put_pointers(&text, names[i], pointers[i], "#row", c->type, c->rows, c->columns);
        put_store(&text, names[i], values[i], "#row", c->type, c->rows, c->columns);
    }
    put_tail(&text);
    harness_open(&h, lilac_text_get(&text), 4, false);
    const uint32_t swizzle = swizzle_of(c), vector = 16 / c->bytes;
    const uint32_t copies = c->columns * c->bytes / swizzle;
    assert_int_equal(count_text(lilac_text_get(&h.text), "cp.tensor.load"), 4 * copies);
    assert_int_equal(count_text(lilac_text_get(&h.text), "prefetch.tensor_map"), 1);
    assert_int_equal(count_text(lilac_text_get(&h.text), "mbarrier.wait"), 2);
    assert_int_equal(count_text(lilac_text_get(&h.text), "mbarrier.expect"), 2);
    assert_int_equal(count_text(lilac_text_get(&h.text), "fence.mbarrier_init"), 1);
    assert_true(h.simt->kernels->parameters[0].is_tensor_map);

    lilac_tensor_map map = {.element = c->element,
                            .rank = 2,
                            .dims = {vector * (1 + lilac_random_below(random, 20)),
                                     1 + lilac_random_below(random, 200)},
                            .box = {swizzle / c->bytes, c->rows},
                            .element_strides = {1, 1},
                            .swizzle = swizzle == 128  ? LILAC_TENSOR_SWIZZLE_128
                                       : swizzle == 64 ? LILAC_TENSOR_SWIZZLE_64
                                                       : LILAC_TENSOR_SWIZZLE_32};
    map.strides[0] = map.dims[0] * c->bytes;
    const uint64_t size = map.strides[0] * map.dims[1];
    assert_true(size <= sizeof x);
    for (uint64_t i = 0; i < size; i++) {
        x[i] = (uint8_t)lilac_random_next(random);
    }
    const int32_t y = (int32_t)lilac_random_below(random, 128) - 64,
                  from = (int32_t)lilac_random_below(random, 128) - 64;
    const size_t block = (size_t)c->rows * c->columns * c->bytes;
    expect_block(c, &map, wanted, y, from);
    expect_block(c, &map, wanted + block, from, y);
    expect_block(c, &map, wanted + 2 * block, 1, from);
    lilac_sim_buffer places[] = {{.name = "x", .bytes = x, .size = size, .read_only = true},
                                 {.name = "o", .bytes = o, .size = 3 * block}};
    lilac_sim_place(places, 2);
    map.address = places[0].address;
    const uint64_t arguments[] = {0, places[1].address, (uint32_t)y, (uint32_t)from, 1};
    const lilac_sim_launch launch = {.kernel = h.simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 5,
                                     .tensor_maps = &map,
                                     .tensor_map_count = 1,
                                     .buffers = places,
                                     .buffer_count = 2,
                                     .threads = 1,
                                     .instruction_limit = 1 << 22};
    const bool good = lilac_sim_run(h.context, &launch, &h.counters);
    if (!good || h.counters.races != 0 || lilac_diagnostics(h.context) != NULL) {
        fail_with_diagnostics(h.context, "the simulator reports something");
    }
    assert_int_equal(h.counters.bulk_copies, 3 * copies); /* one is masked off */
    assert_memory_equal(o, wanted, 3 * block);
    harness_close(&h);
    lilac_text_clear(&text);
}

static void blocks_are_copied(void **state) {
    lilac_random random;
    (void)state;
    lilac_random_seed(&random, 5);
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        copy_blocks(&cases[i / 4], &random);
    }
}

/* ---- refusals ------------------------------------------------------------------------------ */

#define INIT "    ttng.init_barrier %bar, 1 : {B}\n"

static void refused(void **state) {
    static const struct {
        const char *device, *body, *at, *says;
    } rows[] = {
        {NULL, INIT "    ttng.wait_barrier %bar, %c0, %p : {B}\n", "ttng.wait_barrier",
         "it has a predicate or dependences"},
        {NULL, INIT "    ttng.wait_barrier %bar, %c0 deps %m0 : {B}, {M}\n", "ttng.wait_barrier",
         "it has a predicate or dependences"},
        {NULL,
         INIT "    %w = ttg.local_alloc : () -> !ttg.memdesc<{R}x{C}x{E}, #other, #smem, mutable>\n"
              "    ttng.async_tma_copy_global_to_local %d[%y, %x] %w, %bar, %yes : {D}, {B} -> "
              "!ttg.memdesc<{R}x{C}x{E}, #other, #smem, mutable>\n",
         "ttng.async_tma_copy", "nvmma_shared with 128 bytes of swizzle"},
        {NULL,
         INIT
         "    %w = ub.poison : {D}\n"
         "    ttng.async_tma_copy_global_to_local %w[%y, %x] %m0, %bar, %yes : {D}, {B} -> {M}\n",
         "ub.poison", "values of type !tt.tensordesc<tensor<64x64xf16>> cannot be lowered"},
        {NULL, "    %w = ub.poison : {B}\n    ttng.init_barrier %w, 1 : {B}\n", "ttng.init_barrier",
         "not derived from a ttg.local_alloc of this kernel"},
        {NULL,
         INIT
         "    %w = ub.poison : {M}\n"
         "    ttng.async_tma_copy_global_to_local %d[%y, %x] %w, %bar, %yes : {D}, {B} -> {M}\n",
         "ttng.async_tma_copy", "not derived from a ttg.local_alloc of this kernel"},
        /* devices without these operations */
        {"sm_80", INIT, "ttng.init_barrier", "sm_80 has no"},
        {"gfx942", INIT, "ttng.init_barrier", "gfx942 has no"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lilac_text text = {0};
        harness h;
        put_text(&text, &cases[0], head);
        put_text(&text, &cases[0], rows[i].body);
        put_tail(&text);
        if (harness_try(&h, lilac_text_get(&text), 4, false, rows[i].device)) {
            fail_msg("accepted\n%s", lilac_text_get(&text));
        }
        const char *at = strstr(lilac_text_get(&text), rows[i].at);
        bool found = false; /* among the diagnostics of the operation */
        for (const lilac_diagnostic *d = lilac_diagnostics(h.context); d != NULL; d = d->next) {
            found |= at == lilac_text_get(&text) + d->position.offset &&
                     strstr(d->message, rows[i].says) != NULL;
        }
        if (!found) {
            print_diagnostics(h.context);
            fail_msg("refusal %zu: not at %s, or not: %s", i, rows[i].at, rows[i].says);
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_copied),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
