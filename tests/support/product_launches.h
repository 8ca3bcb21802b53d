/* Random products of matrices, compiled with the launcher's tensor maps, and launched on the
 * simulator: what the kernel computes, compared with what the interpreter says that the source
 * means. The buffers end with the tensors, and what is between their rows is NaN. */
#ifndef LILAC_TESTS_PRODUCT_LAUNCHES_H
#define LILAC_TESTS_PRODUCT_LAUNCHES_H

#include "support/interpreter.h"
#include "support/product_programs.h"
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/engine.h>
#include <lilac/scalar.h>
#include <lilac/sim.h>
#include <lilac/tensor_map.h>
#include <lilac/tile_loops.h>

#include <math.h>

enum { MOST_BATCHES = 2, MOST_BYTES = 1 << 20 };

/* ---- compilation ----------------------------------------------------------------------------- */

/* A change of the module behind describe_loads and split_sums. */
typedef void mutation(lilac_tile_module *module);

typedef struct compiled {
    lilac_context *context;
    lilac_compilation result;
    lilac_tile_module *source; /* as the interpreter runs it */
    lilac_launch_maps recipes;
    bool described, specialised;
} compiled;

static inline void compile_text(lilac_compilation *result, lilac_context *context,
                                const product_case *c, const lilac_text *text,
                                const char *stop_after) {
    lilac_options options;
    lilac_options_init(&options);
    options.target = (lilac_target){.arch = lilac_arch_find("sm_90a"),
                                    .num_warps = c->warps,
                                    .num_ctas = 1,
                                    .num_stages = c->stages,
                                    .launch_maps = true,
                                    .split_sums = c->planar,
                                    .one_block = c->one_block};
    options.stop_after = stop_after;
    if (!lilac_compile(result, context,
                       lilac_source_add(context, "k.ttir", lilac_text_get(text), text->length),
                       &options)) {
        fputs(lilac_text_get(text), stderr);
        fail_with_diagnostics(context, "the program was refused");
    }
}

static inline void find_copy(void *data, lilac_tile_op *op) {
    *(bool *)data |= op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD;
}

static inline void find_partitions(void *data, lilac_tile_op *op) {
    *(bool *)data |= op->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE;
}

/* source_too: the mutation changes the source, too. */
static inline void compile(compiled *made, const product_case *c, mutation *mutate,
                           bool source_too) {
    lilac_text text = {0};
    *made = (compiled){.context = lilac_context_create()};
    put_case(&text, c);
    made->source =
        lilac_tile_read(made->context, lilac_source_add(made->context, "k.ttir",
                                                        lilac_text_get(&text), text.length));
    if (made->source == NULL || !lilac_tile_verify(made->source, false)) {
        fputs(lilac_text_get(&text), stderr);
        fail_with_diagnostics(made->context, "the program was refused");
    }
    lilac_compilation front;
    compile_text(&front, made->context, c, &text, "split_sums");
    lilac_tile_walk(front.tile->functions->body, find_copy, &made->described);
    if (mutate != NULL) {
        mutate(front.tile);
        if (source_too) {
            mutate(made->source);
        }
    }
    lilac_text_reset(&text);
    lilac_tile_print(&text, front.tile, false);
    lilac_compilation_clear(&front);
    compile_text(&made->result, made->context, c, &text, NULL);
    if (!lilac_launch_maps_get(&made->recipes, lilac_context_arena(made->context),
                               made->result.tile->functions)) {
        fail_with_diagnostics(made->context, "the recipes are malformed");
    }
    lilac_tile_walk(made->result.tile->functions->body, find_partitions, &made->specialised);
    lilac_text_clear(&text);
}

static inline void compiled_clear(compiled *made) {
    lilac_tile_module_destroy(made->source);
    lilac_compilation_clear(&made->result);
    lilac_context_destroy(made->context);
}

/* ---- launches -------------------------------------------------------------------------------- */

enum { A, B, C, M, N, K, SA, SB, SC, FIRST, ZA, ZB, ZC, OFF, ARGUMENTS };

typedef struct sizes {
    int32_t m, n, k, pitch_a, pitch_b, first, offset, batches;
    int64_t za, zb;
    uint32_t parts; /* blocks for each program; 0: one */
} sizes;

typedef enum expectation { LAUNCHED, NO_MAP, NO_CONDITION } expectation;

static inline int32_t up(int32_t number, int32_t multiple) {
    return (number + multiple - 1) / multiple * multiple;
}

static inline uint32_t bytes_of(const product_case *c) {
    return lilac_scalar_bits(c->scalar) / 8;
}

/* 1, a tile and one element less or more, or some tiles. */
static inline int32_t random_size(lilac_random *random, uint32_t tile, bool whole) {
    const int32_t t = (int32_t)tile;
    const int32_t numbers[] = {1, t - 1, t, t + 1, 2 * t - 3, t / 2 + 1};
    return whole ? t * (int32_t)(1 + random_below(random, 2)) : numbers[random_below(random, 6)];
}

static inline sizes random_sizes(lilac_random *random, const product_case *c) {
    const int32_t vector = (int32_t)(16 / bytes_of(c));
    const int32_t multiple = c->aligned && vector < 16 ? 16 : vector;
    sizes s = {.m = random_size(random, c->m, c->m_form == UNBOUNDED),
               .n = random_size(random, c->n, c->n_form == UNBOUNDED),
               .k = random_size(random, c->k, c->k_form == UNBOUNDED) +
                    (int32_t)(c->k * random_below(random, 3)),
               .offset = vector * (int32_t)random_below(random, 3),
               .batches = c->batches ? 1 + (int32_t)random_below(random, MOST_BATCHES) : 1};
    s.pitch_a =
        up(c->a_along_k ? s.k : s.m, multiple) + multiple * (int32_t)random_below(random, 3);
    s.pitch_b =
        up(c->b_along_k ? s.k : s.n, multiple) + multiple * (int32_t)random_below(random, 3);
    s.za = (int64_t)s.pitch_a * (c->a_along_k ? s.m : s.k) + vector * random_below(random, 3);
    s.zb = (int64_t)s.pitch_b * (c->b_along_k ? s.n : s.k) + vector * random_below(random, 3);
    s.first = (int32_t)random_below(random, 3) * (int32_t)(c->counts_tiles ? 1 : c->k);
    return s;
}

/* Makes a launch one that has no maps, or not the right ones. */
static inline expectation spoil(sizes *s, const product_case *c, uint32_t kind) {
    switch (kind) {
    case 0:
        s->pitch_a += bytes_of(c) == 1 ? 8 : 1;
        return NO_MAP;
    case 1:
        s->offset++;
        return NO_MAP;
    case 2:
        s->m = c->m_form == UNBOUNDED ? s->m : 0;
        return c->m_form == UNBOUNDED ? LAUNCHED : NO_MAP;
    case 3:
        s->k = c->k_form == UNBOUNDED ? s->k : 0;
        return c->k_form == UNBOUNDED ? LAUNCHED : NO_MAP;
    case 4:
        s->zb += c->batches ? 1 : 0;
        return c->batches ? NO_MAP : LAUNCHED;
    case 5:
        s->first = c->from_first ? -1 : s->first;
        return c->from_first ? NO_CONDITION : LAUNCHED;
    default:
        s->n = c->n_form == UNBOUNDED ? s->n : -3;
        return c->n_form == UNBOUNDED ? LAUNCHED : NO_MAP;
    }
}

/* Small whole numbers, so that sums are exact; NaN, or a large number, between rows. */
static inline uint64_t element(const product_case *c, bool pad, uint32_t index) {
    const double value = pad ? NAN : (double)((index * 2654435761u >> 20) % 5) - 2;
    if (is_integer(c)) {
        return pad ? 77 : (uint64_t)(int64_t)value;
    }
    return lilac_scalar_encode(c->scalar, value, LILAC_ROUND_NEAREST_EVEN, true);
}

/* Fills a buffer of matrices up to its last element. The size in bytes. */
static inline uint64_t fill(uint8_t *bytes, const product_case *c, const sizes *s, bool is_a) {
    const int64_t pitch = is_a ? s->pitch_a : s->pitch_b, offset = is_a ? s->offset : 0;
    const int64_t batch = is_a ? s->za : s->zb;
    const bool along_k = is_a ? c->a_along_k : c->b_along_k;
    const int64_t size = is_a ? s->m : s->n, inner = along_k ? s->k : size;
    const int64_t outer = along_k ? size : s->k;
    const int64_t count = offset + (s->batches - 1) * batch + (outer - 1) * pitch + inner;
    assert_true(count * bytes_of(c) <= MOST_BYTES);
    for (int64_t i = 0; i < count; i++) {
        const int64_t in_batch = i < offset ? -1 : (i - offset) % batch;
        const bool pad = in_batch < 0 || in_batch % pitch >= inner || in_batch / pitch >= outer;
        const uint64_t bits = element(c, pad, (uint32_t)i * 2 + is_a);
        memcpy(bytes + i * bytes_of(c), &bits, bytes_of(c));
    }
    return count > 0 ? (uint64_t)count * bytes_of(c) : 16;
}

static inline void set_maps(lilac_tensor_map *maps, uint64_t *arguments, const compiled *made,
                            const product_case *c) {
    const lilac_tile_function *f = made->result.tile->functions;
    for (uint32_t i = 0; i < made->recipes.count; i++) {
        const uint32_t parameter = made->recipes.maps[i].parameter;
        lilac_box box;
        assert_true(lilac_engine_box(&box, f->parameters[parameter]->type->element));
        maps[i] = (lilac_tensor_map){.rank = box.rank,
                                     .element = c->scalar == LILAC_F16    ? LILAC_TENSOR_F16
                                                : c->scalar == LILAC_BF16 ? LILAC_TENSOR_BF16
                                                : c->scalar == LILAC_F32  ? LILAC_TENSOR_F32
                                                                          : LILAC_TENSOR_U8,
                                     .swizzle = lilac_tensor_swizzle_of(box.swizzle_bytes)};
        for (uint32_t d = 0; d < box.rank; d++) {
            maps[i].box[d] = box.sizes[box.rank - 1 - d];
            maps[i].element_strides[d] = 1;
        }
        arguments[parameter] = i;
    }
}

typedef struct outcome {
    bool made, ran, right; /* maps; without a finding; what the interpreter computes */
} outcome;

/* What the kernel divides to get a pitch: the largest such number, or a multiple of 16 where that is known. */
static inline int64_t pitch_argument(const product_case *c, int32_t pitch) {
    const int64_t divisor = c->divisor > 0 ? c->divisor : 1;
    return pitch * divisor + (c->aligned ? 0 : divisor - 1);
}

static inline outcome launch(const compiled *made, const product_case *c, const sizes *s,
                             expectation expected) {
    static uint8_t bytes[2][MOST_BYTES], got[MOST_BYTES], want[MOST_BYTES];
    const lilac_simt_kernel *kernel = made->result.simt->kernels;
    const uint32_t grid[3] = {s->m > 0 ? ((uint32_t)s->m + c->m - 1) / c->m : 1,
                              s->n > 0 ? ((uint32_t)s->n + c->n - 1) / c->n : 1,
                              (uint32_t)s->batches};
    const uint64_t pitch = grid[1] * c->n, plane = pitch * grid[0] * c->m;
    const uint64_t size_c = plane * grid[2] * sizeof(float);
    lilac_tensor_map maps[4] = {0};
    uint64_t arguments[ARGUMENTS + 4] = {0};
    assert_true(size_c <= MOST_BYTES && kernel->parameter_count <= ARGUMENTS + 4);
    memset(got, 0x5A, size_c);
    memset(want, 0x5A, size_c);
    lilac_sim_buffer places[3] = {
        {.name = "a", .bytes = bytes[0], .size = fill(bytes[0], c, s, true)},
        {.name = "b", .bytes = bytes[1], .size = fill(bytes[1], c, s, false)},
        {.name = "c", .bytes = got, .size = size_c}};
    lilac_sim_place(places, 3);
    for (uint32_t i = 0; i < 3; i++) {
        arguments[i] = places[i].address;
    }
    const int64_t numbers[] = {s->m,
                               s->n,
                               s->k,
                               pitch_argument(c, s->pitch_a),
                               pitch_argument(c, s->pitch_b),
                               (int64_t)pitch,
                               s->first,
                               s->za,
                               s->zb,
                               (int64_t)plane,
                               s->offset};
    for (uint32_t i = M; i < ARGUMENTS; i++) {
        arguments[i] = i == ZA || i == ZB ? (uint64_t)numbers[i - M] : (uint32_t)numbers[i - M];
    }
    set_maps(maps, arguments, made, c);
    lilac_diagnostics_reset(made->context);
    outcome o = {.made = lilac_launch_maps_make(made->context, maps, &made->recipes, kernel, grid,
                                                arguments)};
    if (!o.made || expected != LAUNCHED) {
        const lilac_diagnostic *d = lilac_diagnostics(made->context);
        o.right = !o.made && strcmp(d->id, expected == NO_MAP         ? "tensor-map"
                                           : expected == NO_CONDITION ? "launch-condition"
                                                                      : "") == 0;
        return o;
    }
    const lilac_sim_launch launch = {.kernel = kernel,
                                     .grid = {grid[0], grid[1], grid[2]},
                                     .parts = s->parts,
                                     .arguments = arguments,
                                     .argument_count = kernel->parameter_count,
                                     .tensor_maps = maps,
                                     .tensor_map_count = made->recipes.count,
                                     .buffers = places,
                                     .buffer_count = 3,
                                     .threads = 1,
                                     .stall_seconds = 2,
                                     .instruction_limit = 1 << 24};
    lilac_sim_counters counters = {0};
    o.ran = lilac_sim_run(made->context, &launch, &counters) && counters.races == 0 &&
            lilac_diagnostics(made->context) == NULL;
    interpreter_buffer buffers[3];
    for (uint32_t i = 0; i < 3; i++) {
        buffers[i] = (interpreter_buffer){.address = places[i].address,
                                          .size = places[i].size,
                                          .bytes = i == 2 ? want : places[i].bytes};
    }
    interpreter_run run = {.module = made->source,
                           .arguments = arguments,
                           .argument_count = ARGUMENTS,
                           .grid = {grid[0], grid[1], grid[2]},
                           .buffers = buffers,
                           .buffer_count = 3,
                           .fuel = 1ull << 32};
    const interpreter_status status = interpreter_execute(&run);
    if (status != INTERPRETER_DONE) {
        fail_msg("the interpreter: %s", interpreter_status_name(status));
    }
    const interpreter_comparison same = interpreter_compare(&buffers[2], got);
    o.right = o.ran && same.same && same.open == 0;
    for (uint32_t i = 0; i < 3; i++) {
        interpreter_buffer_clear(&buffers[i]);
    }
    return o;
}

/* ---- random programs ------------------------------------------------------------------------- */

static inline product_case random_case(lilac_random *random) {
    static const lilac_scalar scalars[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F8E4M3FN};
    static const uint32_t warps[] = {1, 2, 4, 4, 4, 8};
    product_case c = {.scalar = scalars[random_below(random, 4)],
                      .warps = warps[random_below(random, 6)],
                      .stages = 2 + random_below(random, 3),
                      .m = 32u << random_below(random, 2),
                      .n = 32u << random_below(random, 2),
                      .a_along_k = random_below(random, 2) == 0,
                      .b_along_k = random_below(random, 2) == 0,
                      .m_form = (bound_form)random_below(random, BOUND_FORMS),
                      .n_form = (bound_form)random_below(random, BOUND_FORMS),
                      .k_form = random_below(random, 3) == 0 ? UNBOUNDED : MASKED,
                      .carried = random_below(random, 2) == 0,
                      .counts_tiles = random_below(random, 2) == 0,
                      .sum_mask = random_below(random, 2) == 0,
                      .from_first = random_below(random, 3) == 0,
                      .batches = random_below(random, 3) == 0,
                      .aligned = random_below(random, 2) == 0};
    c.k = (c.scalar == LILAC_F8E4M3FN ? 32u : 16u) << random_below(random, 2);
    if (random_below(random, 6) == 0) {
        c.asked = true;
        c.warps = 4u << random_below(random, 2);
        c.m = 16 * c.warps;
        c.k = 64;
        c.stages = 3;
    }
    if (c.scalar == LILAC_F8E4M3FN && random_below(random, 4) != 0) {
        c.a_along_k = c.b_along_k = true;
    }
    c.twice_a = !c.asked && random_below(random, 5) == 0;
    c.twice_b = !c.asked && random_below(random, 5) == 0;
    c.scaled =
        !c.asked && c.scalar != LILAC_F8E4M3FN && c.a_along_k && random_below(random, 4) == 0;
    c.divisor = random_below(random, 3) == 0 ? 2 + random_below(random, 3) : 0;
    c.doubled = c.carried && c.k_form == UNBOUNDED && !c.scaled && random_below(random, 2) == 0;
    c.counts_tiles &= !c.doubled;
    c.from_first &= !c.doubled;
    c.one_block = random_below(random, 3) == 0;
    return c;
}

/* The loads that are described. Products of 8-bit elements read them along k; where a tile is
 * transposed, none is. Tiles have at least half of the bytes. */
static inline uint32_t maps_of(const product_case *c) {
    const bool transposed =
        bytes_of(c) == 1 && ((!c->a_along_k && !c->twice_a) || (!c->b_along_k && !c->twice_b));
    const uint32_t tiles = (c->twice_a ? 0 : c->m) + (c->twice_b ? 0 : c->n);
    const uint32_t others = c->m + c->n - tiles + c->scaled; /* rows of k elements */
    return transposed || tiles < others ? 0 : (uint32_t)!c->twice_a + !c->twice_b;
}

static inline void complain(const product_case *c, const compiled *made, const sizes *s,
                            const char *why) {
    lilac_text text = {0};
    put_case(&text, c);
    fputs(lilac_text_get(&text), stderr);
    print_diagnostics(made->context);
    fail_msg("%s: %u warps, %u stages; m %d, n %d, k %d, pitches %d, %d, first %d, offset %d, %d "
             "batches",
             why, c->warps, c->stages, s->m, s->n, s->k, s->pitch_a, s->pitch_b, s->first,
             s->offset, s->batches);
}

#endif
