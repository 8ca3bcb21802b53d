/* The harness of the tests of `lower`: it reads the text of a kernel, runs the engine and the
 * lowering, and executes the result on the simulator. The buffers are the kernel's pointer
 * parameters in order; scalars follow them. Each buffer is followed by a margin that the kernel
 * must not change. */
#ifndef LILAC_LOWER_HARNESS_H
#define LILAC_LOWER_HARNESS_H

#include <lilac/bits.h>
#include <lilac/driver.h>
#include <lilac/engine.h>
#include <lilac/lower.h>
#include <lilac/sim.h>

#include <math.h>

#include "support/test.h"

#define MARGIN      64
#define MARGIN_BYTE 0xA5

typedef struct harness {
    lilac_context *context;
    lilac_tile_module *tile;
    lilac_simt_module *simt;
    lilac_text text; /* the text of the SIMT module */
    lilac_sim_counters counters;
} harness;

static inline void harness_close(harness *h) {
    lilac_text_clear(&h->text);
    if (h->simt != NULL) {
        lilac_simt_module_destroy(h->simt);
    }
    if (h->tile != NULL) {
        lilac_tile_module_destroy(h->tile);
    }
    lilac_context_destroy(h->context);
}

/* Row `number` of the table of devices, modulo its length. The devices have 32 or 64 lanes per
 * warp. A random test uses another device for each kernel. */
static inline const lilac_arch *harness_device(uint32_t number) {
    uint32_t count = 0;
    while (lilac_arch_at(count) != NULL) {
        count++;
    }
    return lilac_arch_at(number % count);
}

/* The logarithm of a random number of warps: at most 2^most, and at most the device's limit. */
static inline uint32_t random_warp_bits(lilac_random *random, const lilac_arch *device,
                                        uint32_t most) {
    uint32_t bits = (uint32_t)lilac_random_below(random, most + 1);
    return bits < log2_of(device->max_warps) ? bits : log2_of(device->max_warps);
}

/* Changes a module between reading and lowering. */
typedef void (*harness_edit)(lilac_tile_module *module, const void *data);

/* A device that is not in the table and replaces the named one; NULL: the named one is used. */
static const lilac_arch *harness_arch;

/* `device` NULL: sm_90a. If `engine` is false, the layouts of the text, or those that `edit`
 * sets, are kept. */
static inline bool harness_try_edited(harness *h, const char *ttir, uint32_t warps, bool engine,
                                      const char *device, harness_edit edit, const void *data) {
    memset(h, 0, sizeof *h);
    h->context = lilac_context_create();
    lilac_target target = {.arch = lilac_arch_find(device != NULL ? device : "sm_90a"),
                           .num_warps = warps,
                           .num_ctas = 1,
                           .num_stages = 1};
    assert_non_null(target.arch);
    target.arch = harness_arch != NULL ? harness_arch : target.arch;
    uint32_t source = lilac_source_add(h->context, "test.ttir", ttir, strlen(ttir));
    h->tile = lilac_tile_read(h->context, source);
    bool changed;
    if (h->tile == NULL || !lilac_tile_verify(h->tile, false)) {
        return false;
    }
    const bool good = engine ? lilac_run_tile_passes(h->tile, &target)
                             : lilac_engine_structurize(h->tile, &target, &changed) &&
                                   lilac_engine_inline(h->tile, &target, &changed) &&
                                   lilac_tile_verify(h->tile, false);
    if (!good) {
        return false;
    }
    if (edit != NULL) {
        edit(h->tile, data);
    }
    h->simt = lilac_lower(h->tile, &target);
    if (h->simt == NULL) {
        return false;
    }
    /* This pass removes the barriers that are not needed. */
    for (lilac_simt_kernel *kernel = h->simt->kernels; kernel != NULL; kernel = kernel->next) {
        (void)lilac_simt_opt_barriers(kernel);
    }
    lilac_simt_print(&h->text, h->simt);
    return lilac_simt_verify(h->simt);
}

static inline bool harness_try(harness *h, const char *ttir, uint32_t warps, bool engine,
                               const char *device) {
    return harness_try_edited(h, ttir, warps, engine, device, NULL, NULL);
}

static inline void harness_open_for(harness *h, const char *ttir, uint32_t warps, bool engine,
                                    const char *device) {
    if (!harness_try(h, ttir, warps, engine, device)) {
        print_message("%s\n", ttir);
        print_diagnostics(h->context);
        print_message("%s\n", lilac_text_get(&h->text));
        fail_msg("the kernel was refused");
    }
}

static inline void harness_open(harness *h, const char *ttir, uint32_t warps, bool engine) {
    harness_open_for(h, ttir, warps, engine, NULL);
}

typedef struct buffer {
    void *bytes;
    size_t size;
} buffer;

static inline void harness_run(harness *h, uint32_t grid, const buffer *buffers, uint32_t count,
                               const int64_t *scalars, uint32_t scalar_count) {
    lilac_sim_buffer places[8];
    uint64_t arguments[16];
    assert_true(count <= 8 && count + scalar_count <= 16);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *copy = malloc(buffers[i].size + MARGIN);
        assert_non_null(copy);
        memcpy(copy, buffers[i].bytes, buffers[i].size);
        memset(copy + buffers[i].size, MARGIN_BYTE, MARGIN);
        places[i] =
            (lilac_sim_buffer){.name = "buffer", .bytes = copy, .size = buffers[i].size + MARGIN};
    }
    lilac_sim_place(places, count);
    for (uint32_t i = 0; i < count; i++) {
        arguments[i] = places[i].address;
    }
    for (uint32_t i = 0; i < scalar_count; i++) {
        arguments[count + i] = (uint64_t)scalars[i];
    }
    lilac_sim_launch launch = {
        .kernel = h->simt->kernels,
        .grid = {grid, 1, 1},
        .arguments = arguments,
        .argument_count = count + scalar_count,
        .buffers = places,
        .buffer_count = count,
        .threads = 1,
        .instruction_limit = 1 << 24,
    };
    bool good = lilac_sim_run(h->context, &launch, &h->counters);
    if (!good || h->counters.races != 0) {
        print_message("%s\n", lilac_text_get(&h->text));
        print_diagnostics(h->context);
        fail_msg("the kernel trapped or raced");
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < MARGIN; k++) {
            assert_int_equal(places[i].bytes[buffers[i].size + k], MARGIN_BYTE);
        }
        memcpy(buffers[i].bytes, places[i].bytes, buffers[i].size);
        free(places[i].bytes);
    }
}

static inline uint32_t count_text(const char *text, const char *word) {
    uint32_t count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        count++;
    }
    return count;
}

/* Elements of any type in memory; predicates take a byte. */
static inline uint32_t bytes_of(lilac_scalar scalar) {
    uint32_t bits = lilac_scalar_bits(scalar);
    return bits < 8 ? 1 : bits / 8;
}

static inline uint64_t get_element(const void *array, lilac_scalar scalar, size_t index) {
    uint64_t bits = 0;
    memcpy(&bits, (const uint8_t *)array + index * bytes_of(scalar), bytes_of(scalar));
    return bits;
}

static inline void set_element(void *array, lilac_scalar scalar, size_t index, uint64_t bits) {
    memcpy((uint8_t *)array + index * bytes_of(scalar), &bits, bytes_of(scalar));
}

/* Small numbers, extremes and random bits; floats without NaN. */
static inline uint64_t random_element(lilac_random *random, lilac_scalar scalar) {
    uint32_t bits = lilac_scalar_bits(scalar);
    uint64_t mask = bits == 64 ? ~0ULL : (1ULL << bits) - 1;
    uint64_t word = lilac_random_next(random);
    if (lilac_scalar_is_float(scalar)) {
        double value = ((double)(int64_t)(word >> 11) / (double)(1ULL << 52) - 1.0) *
                       (lilac_random_below(random, 4) == 0 ? 100.0 : 3.0);
        return lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, true);
    }
    switch (lilac_random_below(random, 4)) {
    case 0:
        return (lilac_random_below(random, 9) - 4) & mask;
    case 1:
        return (1ULL << (bits - 1)) - lilac_random_below(random, 2);
    default:
        return word & mask;
    }
}

static inline bool same_float(lilac_scalar scalar, uint64_t got, uint64_t want) {
    double a = lilac_scalar_decode(scalar, got), b = lilac_scalar_decode(scalar, want);
    return got == want || (isnan(a) && isnan(b)) || (a == 0.0 && b == 0.0);
}

#endif
