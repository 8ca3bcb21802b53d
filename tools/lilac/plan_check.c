/* Executes a conversion plan on the simulator and compares results and counters with the plan.
 *
 *   source buffer   block × warp × lane × register: the number of the element there, by the layout
 *     │ the kernel: loads, the plan, stores
 *   target buffer   the same by the target's layout; it initially holds the complement of every
 *                   expected bit, so that an element that was not stored is always wrong
 *
 * An element that is wide enough holds its whole number, combined in every word with the number of
 * the word. A narrower element holds one digit of its number, and the kernel runs once for each
 * digit. The kernel moves data without inspecting them, so the digits together identify the source
 * of every element.
 */
#include "plan_check.h"

#include <string.h>

/* ---- elements that contain their numbers ------------------------------------------------ */

/* A tensor spread over the registers of all threads, as the kernel's buffers have it. */
typedef struct spread {
    const lilac_layout *layout;
    uint32_t register_bits, bytes; /* of an element */
    uint64_t *of_register;         /* the element of each register of thread 0; xored with … */
    uint64_t *of_thread;           /* … that of register 0 of each thread of all blocks */
    uint64_t threads;
    uint8_t *buffer;
    uint64_t size;
} spread;

static uint64_t *element_table(const uint64_t *columns, uint32_t bits) {
    uint64_t *table = lilac_heap_grow(NULL, sizeof *table << bits);
    table[0] = 0;
    for (uint32_t i = 0; i < bits; i++) {
        for (uint64_t j = 0; j >> i == 0; j++) {
            table[(UINT64_C(1) << i) + j] = table[j] ^ columns[i];
        }
    }
    return table;
}

static uint32_t columns_of(uint64_t *columns, const lilac_layout *layout, const char *in) {
    const uint32_t bits = lilac_layout_in_bits(layout, in);
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = lilac_layout_column(layout, in, i);
    }
    return bits;
}

static void spread_init(spread *s, const lilac_layout *layout, uint32_t bytes) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    *s = (spread){.layout = layout, .bytes = bytes};
    s->register_bits = columns_of(columns, layout, "register");
    s->of_register = element_table(columns, s->register_bits);
    uint32_t bits = columns_of(columns, layout, "lane");
    bits += columns_of(columns + bits, layout, "warp");
    bits += columns_of(columns + bits, layout, "block");
    s->of_thread = element_table(columns, bits);
    s->threads = UINT64_C(1) << bits;
    s->size = (s->threads << s->register_bits) * bytes;
    s->buffer = lilac_heap_grow(NULL, (size_t)s->size);
}

static void spread_clear(spread *s) {
    lilac_heap_free(s->of_register);
    lilac_heap_free(s->of_thread);
    lilac_heap_free(s->buffer);
}

/* The number of digits that distinguish all elements. */
static uint32_t digit_count(const spread *s) {
    const uint32_t width = s->bytes >= 4 ? 64 : 8 * s->bytes, bits = s->layout->out_bits;
    return bits <= width ? 1 : (bits + width - 1) / width;
}

/* The salt avoids bit patterns that uninitialised memory often has, such as zeros, for element 0.
 */
static void put_element(uint8_t *at, uint64_t element, uint32_t bytes, uint32_t digit) {
    static const uint32_t salt = 0x96A5C35AU;
    if (bytes == 1) {
        *at = (uint8_t)(element >> 8 * digit ^ salt);
    } else if (bytes == 2) {
        const uint16_t half = (uint16_t)(element >> 16 * digit ^ salt);
        memcpy(at, &half, sizeof half);
    } else {
        for (uint32_t word = 0; word < bytes / 4; word++) {
            const uint32_t value = ((uint32_t)element ^ word << 29) + salt;
            memcpy(at + 4 * (size_t)word, &value, sizeof value);
        }
    }
}

static uint64_t element_at(const spread *s, uint64_t thread, uint64_t reg) {
    return s->of_thread[thread] ^ s->of_register[reg];
}

static void fill(spread *s, uint32_t digit, bool opposite) {
    uint8_t *at = s->buffer;
    for (uint64_t thread = 0; thread < s->threads; thread++) {
        for (uint64_t reg = 0; reg >> s->register_bits == 0; reg++, at += s->bytes) {
            put_element(at, element_at(s, thread, reg), s->bytes, digit);
        }
    }
    for (uint64_t i = 0; i < s->size && opposite; i++) {
        s->buffer[i] = (uint8_t)~s->buffer[i];
    }
}

static void say_wrong(lilac_text *said, const spread *s, uint64_t thread, uint64_t reg) {
    const uint32_t lanes = lilac_layout_in_bits(s->layout, "lane");
    const uint32_t warps = lilac_layout_in_bits(s->layout, "warp");
    lilac_text_printf(
        said, "register %llu of lane %llu, warp %llu, block %llu does not have element (",
        (unsigned long long)reg, (unsigned long long)(thread & ((UINT64_C(1) << lanes) - 1)),
        (unsigned long long)(thread >> lanes & ((UINT64_C(1) << warps) - 1)),
        (unsigned long long)(thread >> (lanes + warps)));
    for (uint32_t d = 0; d < s->layout->out_count; d++) {
        lilac_text_printf(
            said, "%s%llu", d == 0 ? "" : ", ",
            (unsigned long long)lilac_layout_coordinate(s->layout, element_at(s, thread, reg), d));
    }
    lilac_text_puts(said, ")\n");
}

static bool look(const spread *s, uint32_t digit, lilac_text *said) {
    const uint8_t *at = s->buffer;
    uint8_t wanted[64];
    for (uint64_t thread = 0; thread < s->threads; thread++) {
        for (uint64_t reg = 0; reg >> s->register_bits == 0; reg++, at += s->bytes) {
            put_element(wanted, element_at(s, thread, reg), s->bytes, digit);
            if (memcmp(at, wanted, s->bytes) != 0) {
                say_wrong(said, s, thread, reg);
                return false;
            }
        }
    }
    return true;
}

/* ---- running ---------------------------------------------------------------------------- */

static bool run(plan_check *result, lilac_text *said, lilac_context *context,
                const lilac_simt_kernel *kernel, spread *source, spread *target, uint32_t digit) {
    lilac_sim_buffer buffers[2] = {
        {.name = "source", .bytes = source->buffer, .size = source->size, .read_only = true},
        {.name = "target", .bytes = target->buffer, .size = target->size}};
    lilac_sim_place(buffers, 2);
    const uint64_t arguments[2] = {buffers[0].address, buffers[1].address};
    const lilac_sim_launch launch = {.kernel = kernel,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 2,
                                     .buffers = buffers,
                                     .buffer_count = 2,
                                     .threads = 1};
    fill(source, digit, false);
    fill(target, digit, true);
    if (!lilac_sim_run(context, &launch, &result->counters)) {
        lilac_text_puts(said, "the simulator refused the kernel or it trapped\n");
        return false;
    }
    return true;
}

/* ---- counts ----------------------------------------------------------------------------- */

static void count_all(plan_check *result, const lilac_plan_conversion *plan) {
    const lilac_plan_price *price = &plan->price;
    const lilac_sim_counters *counters = &result->counters;
    const uint64_t warps = UINT64_C(1) << plan->warp_bits;
    const checked_count counts[JUDGED_COUNTS] = {
        {"shuffles", price->shuffles, counters->shuffles},
        {"selects", price->selects, counters->selects},
        {"byte permutes", price->permutes, counters->permutes},
        {"stores", price->stores, counters->shared_stores},
        {"loads", price->loads, counters->shared_loads},
        {"store wavefronts", price->store_wavefronts, counters->shared_store_wavefronts},
        {"load wavefronts", price->load_wavefronts, counters->shared_load_wavefronts},
        {"bytes stored", price->store_bytes, counters->shared_store_bytes},
        {"bytes loaded", price->load_bytes, counters->shared_load_bytes},
        {"barriers of a warp", price->barriers,
         (counters->barriers + counters->cluster_barriers) * warps + counters->warp_barriers +
             counters->group_barriers},
        {"races", 0, counters->races},
        {"uninitialised reads", 0, counters->uninitialised_reads},
    };
    memcpy(result->counts, counts, sizeof counts);
    for (uint32_t i = 0; i < JUDGED_COUNTS; i++) {
        result->counts[i].planned <<= plan->block_bits;
    }
}

static bool compare_counts(const plan_check *result, lilac_text *said) {
    bool same = true;
    for (uint32_t i = 0; i < JUDGED_COUNTS; i++) {
        const checked_count *count = &result->counts[i];
        if (count->planned != count->simulated) {
            lilac_text_printf(said, "%s: %llu planned, %llu simulated\n", count->name,
                              (unsigned long long)count->planned,
                              (unsigned long long)count->simulated);
            same = false;
        }
    }
    return same;
}

void check_plan(plan_check *result, lilac_text *said, lilac_context *context,
                const lilac_simt_module *module, const lilac_plan_conversion *plan,
                const lilac_layout *source, const lilac_layout *target) {
    const uint32_t bytes = plan->element_bits < 8 ? 1 : plan->element_bits / 8;
    spread from, to;
    spread_init(&from, source, bytes);
    spread_init(&to, target, bytes);
    *result = (plan_check){.ran = true, .correct = true, .agrees = true};
    for (uint32_t digit = 0; digit < digit_count(&from) && result->ran && result->correct;
         digit++) {
        result->ran = run(result, said, context, module->kernels, &from, &to, digit);
        result->correct = result->ran && look(&to, digit, said);
        if (result->ran && digit == 0) {
            count_all(result, plan);
            result->agrees = compare_counts(result, said);
        }
    }
    spread_clear(&from);
    spread_clear(&to);
}

bool plan_check_passed(const plan_check *result) {
    return result->ran && result->correct && result->agrees;
}
