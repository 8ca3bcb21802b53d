/* Kernels on tensors of any shape, each in a layout of its own, for the tests of `lower`.
 *
 * Every value of a tensor is named so that its name ends in the tensor's letter; the tensor's
 * elements are read and written row-major, through a flat tensor in the same layout:
 *
 *     %rx = tt.make_range …   %qx pointers   %fx loaded   %x = tt.reshape %fx */
#ifndef LILAC_LOWER_NAMED_H
#define LILAC_LOWER_NAMED_H

#include "support/lower_harness.h"
#include "support/random_layouts.h"

typedef struct named_tensor {
    char letter;
    lilac_scalar scalar;
    uint32_t rank, bits[RANDOM_MAX_RANK];
    lilac_layout layout;
} named_tensor;

typedef struct named_tensors {
    uint32_t count;
    const named_tensor *list;
    lilac_tile_module *module;
} named_tensors;

static inline uint32_t named_bits(const named_tensor *t) {
    uint32_t sum = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        sum += t->bits[d];
    }
    return sum;
}

/* Any layout of the tensor: of the kinds of random_layouts.h, without blocks. */
static inline void named_random(named_tensor *t, lilac_random *random, lilac_context *context,
                                const lilac_arch *device, uint32_t warp_bits) {
    uint32_t lane_bits = log2_of(device->warp_size), places = lane_bits + warp_bits;
    random_space space = {.rank = t->rank, .lane_bits = lane_bits, .warp_bits = warp_bits};
    memcpy(space.bits, t->bits, sizeof space.bits);
    uint32_t bits = named_bits(t);
    space.register_limit = (bits > places ? bits - places : 0) + 3;
    while (!random_layout(&t->layout, random, context,
                          (random_kind)random_below(random, RANDOM_KINDS), &space)) {
    }
}

static inline const char *named_memory(const named_tensor *t) {
    return t->scalar == LILAC_I1 ? "i8" : lilac_scalar_name(t->scalar);
}

/* tensor<4x8xf32> */
static inline void named_type(lilac_text *out, const named_tensor *t) {
    lilac_text_puts(out, "tensor<");
    for (uint32_t d = 0; d < t->rank; d++) {
        lilac_text_printf(out, "%ux", 1U << t->bits[d]);
    }
    lilac_text_printf(out, "%s>", lilac_scalar_name(t->scalar));
}

static inline void named_parameters(lilac_text *out, const named_tensor *list, uint32_t count) {
    lilac_text_reset(out);
    lilac_text_puts(out, "module {\n  tt.func public @k(");
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_printf(out, "%s%%p%c: !tt.ptr<%s> {tt.divisibility = 16 : i32}", i ? ", " : "",
                          list[i].letter, named_memory(&list[i]));
    }
    lilac_text_puts(out, ") {\n");
}

static inline void named_pointers(lilac_text *out, const named_tensor *t) {
    uint32_t size = 1U << named_bits(t);
    char c = t->letter;
    const char *memory = named_memory(t);
    lilac_text_printf(out,
                      "    %%r%c = tt.make_range {end = %u : i32, start = 0 : i32} : "
                      "tensor<%uxi32>\n"
                      "    %%s%c = tt.splat %%p%c : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
                      "    %%q%c = tt.addptr %%s%c, %%r%c : tensor<%ux!tt.ptr<%s>>, "
                      "tensor<%uxi32>\n",
                      c, size, size, c, c, memory, size, memory, c, c, c, size, memory, size);
}

/* %x = the elements at %px */
static inline void named_load(lilac_text *out, const named_tensor *t) {
    uint32_t size = 1U << named_bits(t);
    char c = t->letter;
    named_pointers(out, t);
    lilac_text_printf(out, "    %%f%c = tt.load %%q%c : tensor<%ux!tt.ptr<%s>>\n", c, c, size,
                      named_memory(t));
    if (t->scalar == LILAC_I1) {
        lilac_text_printf(out,
                          "    %%z%c = arith.constant dense<0> : tensor<%uxi8>\n"
                          "    %%b%c = arith.cmpi ne, %%f%c, %%z%c : tensor<%uxi8>\n",
                          c, size, c, c, c, size);
    }
    lilac_text_printf(out, "    %%%c = tt.reshape %%%c%c : tensor<%ux%s> -> ", c,
                      t->scalar == LILAC_I1 ? 'b' : 'f', c, size, lilac_scalar_name(t->scalar));
    named_type(out, t);
    lilac_text_puts(out, "\n");
}

/* Stores `value`, whose name also ends in the letter, at %px. */
static inline void named_store(lilac_text *out, const named_tensor *t, const char *value) {
    uint32_t size = 1U << named_bits(t);
    char c = t->letter;
    named_pointers(out, t);
    lilac_text_printf(out, "    %%g%c = tt.reshape %s : ", c, value);
    named_type(out, t);
    lilac_text_printf(out, " -> tensor<%ux%s>\n", size, lilac_scalar_name(t->scalar));
    if (t->scalar == LILAC_I1) {
        lilac_text_printf(out, "    %%e%c = arith.extui %%g%c : tensor<%uxi1> to tensor<%uxi8>\n",
                          c, c, size, size);
    }
    lilac_text_printf(out, "    tt.store %%q%c, %%%c%c : tensor<%ux!tt.ptr<%s>>\n", c,
                      t->scalar == LILAC_I1 ? 'e' : 'g', c, size, named_memory(t));
}

static inline void named_value(const named_tensors *all, lilac_tile_value *value) {
    const lilac_tile_type *type = value->type;
    if (type->kind != LILAC_TILE_TENSOR) {
        return;
    }
    assert_non_null(value->name);
    char letter = value->name[strlen(value->name) - 1];
    for (uint32_t i = 0; i < all->count; i++) {
        const named_tensor *t = &all->list[i];
        if (t->letter != letter) {
            continue;
        }
        lilac_layout *layout = lilac_arena_new(all->module->arena, lilac_layout);
        uint32_t bits = named_bits(t);
        bool flat = type->rank == 1;
        assert_true(lilac_layout_reshape(layout, &t->layout, flat ? 1 : t->rank,
                                         flat ? &bits : t->bits, NULL));
        value->type = lilac_tile_with_layout(all->module, type, layout);
        return;
    }
    fail_msg("no tensor %s", value->name);
}

static inline void named_op(void *data, lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        named_value(data, &op->results[i]);
    }
}

static inline void named_assign(lilac_tile_module *module, const void *data) {
    named_tensors all = *(const named_tensors *)data;
    all.module = module;
    lilac_tile_walk(module->functions->body, named_op, &all);
}

/* With the tensors' layouts, or (engine) the engine's. */
static inline void named_open(harness *h, const lilac_text *text, const lilac_arch *device,
                              uint32_t warps, bool engine, const named_tensor *list,
                              uint32_t count) {
    named_tensors all = {.count = count, .list = list};
    const char *ttir = lilac_text_get(text);
    bool good = engine
                    ? harness_try(h, ttir, warps, true, device->name)
                    : harness_try_edited(h, ttir, warps, false, device->name, named_assign, &all);
    if (!good) {
        print_message("%s, %u warps:\n%s\n", device->name, warps, ttir);
        for (uint32_t i = 0; i < count && !engine; i++) {
            lilac_text layout = {0};
            lilac_layout_print(&layout, &list[i].layout);
            print_message("%c: %s\n", list[i].letter, lilac_text_get(&layout));
            lilac_text_clear(&layout);
        }
        print_diagnostics(h->context);
        fail_msg("the kernel was refused");
    }
}

#endif
