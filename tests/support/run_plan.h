/* Carries out a movement plan on arrays, as the words of plan.h say and by nothing else: the
 * element that each register of each thread of each block holds, after every step. What the plan
 * says of its own layouts is not used. */
#ifndef LILAC_RUN_PLAN_H
#define LILAC_RUN_PLAN_H

#include <lilac/plan.h>

#include <stdlib.h>
#include <string.h>

/* element[((block << warp_bits | warp) << lane_bits | lane) << register_bits | register] */
typedef struct run_state {
    uint32_t register_bits, lane_bits, warp_bits, block_bits;
    uint32_t *element;
    const char *broken; /* the error, or NULL */
} run_state;

#define RUN_NOTHING UINT32_MAX

static inline uint32_t run_threads(const run_state *state) {
    return 1U << (state->lane_bits + state->warp_bits + state->block_bits);
}

static inline uint32_t *run_registers(const run_state *state, uint32_t block, uint32_t warp,
                                      uint32_t lane) {
    const uint32_t thread = ((block << state->warp_bits | warp) << state->lane_bits) | lane;
    return state->element + ((size_t)thread << state->register_bits);
}

static inline uint64_t run_xor(const uint64_t *columns, uint64_t mask) {
    uint64_t sum = 0;
    for (uint32_t i = 0; mask >> i != 0; i++) {
        sum ^= (mask >> i & 1) != 0 ? columns[i] : 0;
    }
    return sum;
}

static inline uint64_t run_element(const lilac_layout *layout, uint32_t reg, uint32_t lane,
                                   uint32_t warp, uint32_t block) {
    static const char *const names[] = {"register", "lane", "warp", "block"};
    const uint64_t at[] = {reg, lane, warp, block};
    uint64_t element = 0;
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t bit = 0; bit < lilac_layout_in_bits(layout, names[i]); bit++) {
            element ^= (at[i] >> bit & 1) != 0 ? lilac_layout_column(layout, names[i], bit) : 0;
        }
    }
    return element;
}

/* The same by the thread's number in all blocks. */
static inline uint64_t run_element_of(const run_state *state, const lilac_layout *layout,
                                      uint32_t reg, uint32_t thread) {
    return run_element(layout, reg, thread & ((1U << state->lane_bits) - 1),
                       thread >> state->lane_bits & ((1U << state->warp_bits) - 1),
                       thread >> (state->lane_bits + state->warp_bits));
}

static inline void run_start(run_state *state, const lilac_plan_conversion *plan,
                             const lilac_layout *source) {
    *state = (run_state){
        plan->register_bits, plan->lane_bits, plan->warp_bits, plan->block_bits, NULL, NULL};
    state->element =
        malloc(((size_t)run_threads(state) << state->register_bits) * sizeof *state->element);
    uint32_t *next = state->element;
    for (uint32_t thread = 0; thread < run_threads(state); thread++) {
        for (uint32_t reg = 0; reg >> state->register_bits == 0; reg++) {
            *next++ = (uint32_t)run_element_of(state, source, reg, thread);
        }
    }
}

/* Register r becomes what register from·r ⊕ shear·t was; places of a word of 2^packed elements that
 * hold none stay empty. */
static inline void run_registers_map(run_state *state, const uint64_t *from, uint32_t before_bits,
                                     uint32_t bits, const uint64_t *shear, uint32_t packed) {
    const uint32_t count = 1U << bits, threads = run_threads(state);
    const uint32_t places = before_bits > packed ? before_bits : packed;
    uint32_t *after = malloc((size_t)threads * count * sizeof *after);
    if (before_bits != state->register_bits) {
        state->broken = "a step of another number of registers";
    }
    for (uint32_t thread = 0; thread < threads && state->broken == NULL; thread++) {
        const uint32_t t = thread & ((1U << (state->lane_bits + state->warp_bits)) - 1);
        for (uint32_t reg = 0; reg < count; reg++) {
            const uint64_t old = run_xor(from, reg) ^ (shear != NULL ? run_xor(shear, t) : 0);
            if (old >> places != 0) {
                state->broken = "a register that there was none of";
                break;
            }
            after[(size_t)thread * count + reg] =
                old >> before_bits != 0 ? RUN_NOTHING
                                        : state->element[((size_t)thread << before_bits) + old];
        }
    }
    free(state->element);
    state->element = after;
    state->register_bits = bits;
}

static inline uint32_t run_packed(uint32_t element_bits) {
    return element_bits == 8 ? 2 : element_bits == 16 ? 1 : 0;
}

static inline void run_shuffle(run_state *state, const lilac_plan_shuffle *shuffle,
                               uint32_t element_bits) {
    if (shuffle->lane_bits != state->lane_bits || shuffle->warp_bits != state->warp_bits) {
        state->broken = "a shuffle of other sizes";
    }
    for (uint32_t i = 0; i < shuffle->register_bits && element_bits << i < 32; i++) {
        if (shuffle->distance[i] != 0) {
            state->broken = "elements of one word of different lanes";
        }
    }
    run_registers_map(state, shuffle->kept, shuffle->before_bits, shuffle->register_bits,
                      shuffle->before, run_packed(element_bits));
    const uint32_t count = 1U << state->register_bits, threads = run_threads(state);
    const uint32_t lanes = 1U << state->lane_bits, warps = 1U << state->warp_bits;
    uint32_t *all = malloc((size_t)threads * count * sizeof *all);
    for (uint32_t thread = 0; thread < threads && state->broken == NULL; thread++) {
        for (uint32_t reg = 0; reg < count; reg++) {
            const uint64_t lane =
                run_xor(shuffle->lane, thread % (lanes * warps)) ^ run_xor(shuffle->distance, reg);
            all[(size_t)thread * count + reg] =
                state->element[((size_t)(thread / lanes) * lanes + lane) * count + reg];
        }
    }
    free(state->element);
    state->element = all;
    run_registers_map(state, shuffle->taken, shuffle->register_bits, shuffle->after_bits,
                      shuffle->after, run_packed(element_bits));
}

/* ---- shared-memory exchanges ---------------------------------------------------- */

/* Where one side's register of a lane of a warp stands: its offset in a round, and what its step's
 * number is. A matrix instruction: word `number` of lane t is word t % 4 of row t / 4 of that
 * matrix; transposed, half h of it is half word t / 4 of row 2 (t % 4) + h. Lane 8 i + row gives
 * the row's address of matrix i. */
static inline uint64_t run_offset(const lilac_plan_access *access, uint32_t reg, uint32_t lane,
                                  uint32_t warp, uint64_t *step) {
    uint32_t vector = 0;
    *step = 0;
    for (uint32_t i = 0; i < access->vector_bits; i++) {
        vector |= (reg >> access->vector_register[i] & 1) << i;
    }
    for (uint32_t i = 0; i < access->step_bits; i++) {
        *step |= (uint64_t)(reg >> access->step_register[i] & 1) << i;
    }
    if (access->instruction == LILAC_PLAN_VECTOR) {
        return lilac_plan_access_offset(access, *step, lane, warp) + vector;
    }
    const uint32_t word_elements = 4 / access->element_bytes;
    const uint32_t matrix = vector / word_elements, within = vector % word_elements;
    uint32_t row = lane / 4, along = lane % 4 * word_elements + within;
    if (access->instruction == LILAC_PLAN_MATRIX_TRANSPOSED) {
        const uint32_t half_elements = 2 / access->element_bytes;
        row = lane % 4 * 2 + within / half_elements;
        along = lane / 4 * half_elements + within % half_elements;
    }
    return lilac_plan_access_offset(access, *step, matrix * 8 + row, warp) + along;
}

static inline uint32_t run_round(const uint8_t *round_register, uint32_t bits, uint32_t reg) {
    uint32_t round = 0;
    for (uint32_t i = 0; i < bits; i++) {
        round |= (reg >> round_register[i] & 1) << i;
    }
    return round;
}

static inline void run_staging(run_state *state, const lilac_plan_staging *staging) {
    const uint32_t blocks = 1U << state->block_bits, warps = 1U << state->warp_bits;
    const uint32_t lanes = 1U << state->lane_bits;
    const uint64_t elements = staging->bytes / staging->store.element_bytes;
    uint32_t *memory = malloc((size_t)(blocks * elements) * sizeof *memory);
    const uint32_t bits = staging->load.vector_bits + staging->load.step_bits + staging->round_bits;
    uint32_t *after = malloc(((size_t)run_threads(state) << bits) * sizeof *after);
    uint64_t step;
    if (staging->store.vector_bits + staging->store.step_bits + staging->round_bits !=
        state->register_bits) {
        state->broken = "an exchange of another number of registers";
    }
    for (uint32_t round = 0; round >> staging->round_bits == 0 && state->broken == NULL; round++) {
        for (uint64_t i = 0; i < blocks * elements; i++) {
            memory[i] = RUN_NOTHING;
        }
        for (uint32_t thread = 0; thread < run_threads(state); thread++) {
            const uint32_t lane = thread % lanes, warp = thread / lanes % warps;
            const uint32_t block = thread / lanes / warps;
            const uint32_t *registers = run_registers(state, block, warp, lane);
            for (uint32_t reg = 0;
                 reg >> state->register_bits == 0 && (warp & staging->store_copies) == 0 &&
                 (lane & staging->store_copy_lanes) == 0;
                 reg++) {
                if (run_round(staging->store_round, staging->round_bits, reg) != round) {
                    continue;
                }
                const uint64_t at = run_offset(&staging->store, reg, lane, warp, &step);
                uint32_t *place = &memory[block * elements + at];
                if (at >= elements) {
                    state->broken = "a store outside the memory";
                } else if (*place != RUN_NOTHING && *place != registers[reg]) {
                    state->broken = "two elements stored at one place";
                } else {
                    *place = registers[reg];
                }
            }
        }
        for (uint32_t thread = 0; thread < run_threads(state); thread++) {
            const uint32_t lane = thread % lanes, warp = thread / lanes % warps;
            const uint32_t own = thread / lanes / warps;
            for (uint32_t reg = 0; reg >> bits == 0; reg++) {
                if (run_round(staging->load_round, staging->round_bits, reg) != round) {
                    continue;
                }
                const uint64_t at = run_offset(&staging->load, reg, lane, warp, &step) ^
                                    run_xor(staging->load_offset_block, own);
                uint64_t block = own;
                if (staging->remote) {
                    block = run_xor(staging->load_block_step, step) ^
                            run_xor(staging->load_block_lane, lane) ^
                            run_xor(staging->load_block_warp, warp) ^
                            run_xor(staging->load_block_block, own);
                }
                if (at >= elements || block >= blocks) {
                    state->broken = "a load outside the memory";
                } else if (memory[block * elements + at] == RUN_NOTHING) {
                    state->broken = "a load of what nobody stored";
                } else {
                    after[((size_t)thread << bits) + reg] = memory[block * elements + at];
                }
            }
        }
    }
    free(memory);
    free(state->element);
    state->element = after;
    state->register_bits = bits;
}

static inline void run_step(run_state *state, const lilac_plan_conversion *plan, uint32_t step) {
    const uint32_t index = plan->step[step].index;
    switch (plan->step[step].kind) {
    case LILAC_PLAN_STEP_PERMUTATION:
        run_registers_map(state, plan->permutation[index].from,
                          plan->permutation[index].before_bits, plan->permutation[index].bits, NULL,
                          0);
        break;
    case LILAC_PLAN_STEP_SHUFFLE:
        run_shuffle(state, &plan->shuffle[index], plan->element_bits);
        break;
    case LILAC_PLAN_STEP_STAGING:
        run_staging(state, &plan->staging);
        break;
    }
}

/* Whether every register of every thread holds what `layout` says. */
static inline bool run_holds(const run_state *state, const lilac_layout *layout) {
    const uint32_t *next = state->element;
    for (uint32_t thread = 0; thread < run_threads(state); thread++) {
        for (uint32_t reg = 0; reg >> state->register_bits == 0; reg++) {
            if (*next++ != run_element_of(state, layout, reg, thread)) {
                return false;
            }
        }
    }
    return true;
}

#endif
