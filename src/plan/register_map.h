/* What the files that exchange registers within a warp share: maps of registers, and the stages of
 * two-word operations that they are made of. */
#ifndef LILAC_PLAN_REGISTER_MAP_H
#define LILAC_PLAN_REGISTER_MAP_H

#include <lilac/plan.h>

enum {
    MOST_COLUMNS = LILAC_PLAN_MAX_REGISTER_BITS + 4,
    MOST_STAGES = LILAC_PLAN_MAX_THREAD_BITS + 2,
    MOST_MASKS = 3 /* of a control */
};

/* Register r of thread t of what is made is register (columns of r's bits) ⊕ (thread columns of t's
 * bits) of what there was. The lowest `packed` bits of a register index are its place in a word;
 * there are always that many, though a word may be filled in part. */
typedef struct lilac_plan_map {
    uint32_t packed, from_bits, to_bits, thread_bits;
    uint32_t column[MOST_COLUMNS];
    uint32_t thread[LILAC_PLAN_MAX_THREAD_BITS];
} lilac_plan_map;

/* A map of which each word is made of at most two words, that of its column and the one `direction`
 * from it: the second where the parity of the thread's bits under `mask` and of the place in the
 * word under `place_mask` is odd. Direction 0: of one word. */
typedef struct lilac_plan_stage {
    lilac_plan_map map;
    uint32_t direction; /* of words */
    uint32_t mask, place_mask;
    bool plain; /* elements keep their place in the word, but for words whose column moves them */
} lilac_plan_stage;

static inline uint32_t lilac_plan_packed(uint32_t element_bits) {
    return element_bits >= 32 ? 0 : element_bits == 16 ? 1 : 2;
}

/* Words of one element of 32 bits and more. */
static inline uint32_t lilac_plan_parts(uint32_t element_bits) {
    return element_bits > 32 ? element_bits / 32 : 1;
}

static inline uint32_t lilac_plan_parity(uint32_t bits) {
    return (uint32_t)__builtin_parity(bits);
}

/* The xor of the columns of the set bits. */
static inline uint32_t lilac_plan_sum(const uint32_t *columns, uint32_t bits) {
    uint32_t sum = 0;
    for (; bits != 0; bits &= bits - 1) {
        sum ^= columns[__builtin_ctz(bits)];
    }
    return sum;
}

void lilac_plan_map_init(lilac_plan_map *map, uint32_t packed, uint32_t from_bits, uint32_t to_bits,
                         const uint64_t *columns, uint32_t thread_bits, const uint64_t *thread);
/* The stages of a map in the order in which data goes through them, at least one. Where it can be,
 * `first` or `last` (masks of thread bits, 0: any) becomes the predicate of the stage at that end.
 */
uint32_t lilac_plan_factor(lilac_plan_stage *stages, const lilac_plan_map *map, uint32_t first,
                           uint32_t last);
/* Masks whose span the predicates of the selecting stages are a basis of; returns how many. */
uint32_t lilac_plan_predicates(uint32_t *masks, const lilac_plan_map *map);

/* Operations of one thread for the words that these columns of a stage (a subset's basis, place
 * bits left out) make. */
typedef struct lilac_plan_count {
    uint64_t selects, permutes;
} lilac_plan_count;
lilac_plan_count lilac_plan_count_words(const lilac_plan_stage *stage, const uint32_t *columns,
                                        uint32_t count);
lilac_plan_count lilac_plan_count_stage(const lilac_plan_stage *stage);
/* What the stages of a map take, without making them. */
lilac_plan_count lilac_plan_estimate(const lilac_plan_map *map);

/* ---- networks being written -------------------------------------------------------------- */

typedef struct lilac_plan_writer {
    lilac_plan_network *network;
    lilac_arena *arena;
    uint32_t packed;
    uint32_t op_capacity, control_capacity;
} lilac_plan_writer;

/* Where an element of a word comes from: which word, and which place in it. */
typedef struct lilac_plan_place {
    uint32_t word, place;
} lilac_plan_place;

uint32_t lilac_plan_control_of(lilac_plan_writer *w, const lilac_plan_control *control);
uint32_t lilac_plan_write(lilac_plan_writer *w, lilac_plan_word_kind kind, uint32_t a, uint32_t b,
                          uint32_t control);
/* All words of a stage, its sources being the words from[0], from[1] … of the network, into `to`;
 * those that `wanted` (NULL: all) leaves out are not made. */
void lilac_plan_write_stage(lilac_plan_writer *w, const lilac_plan_stage *stage,
                            const uint32_t *from, uint32_t *to, const bool *wanted);
/* One word by its definition: element i of thread t comes from place_of(context, t, i), for each of
 * the threads that the (independent) masks tell apart. That names at most two words; word k is the
 * network's names[k]. */
uint32_t lilac_plan_write_word(lilac_plan_writer *w, lilac_plan_word_kind kind,
                               const uint32_t *masks, uint32_t mask_count,
                               lilac_plan_place (*place_of)(const void *context, uint32_t thread,
                                                            uint32_t at),
                               const void *context, const uint32_t *names);
/* An independent subset of masks with the same span, at the front; returns how many. */
uint32_t lilac_plan_independent(uint32_t *masks, uint32_t count);
/* Masks of thread bits that the place of an element depends on, `packed` of them. */
void lilac_plan_place_masks(uint32_t *masks, const lilac_plan_map *map);

#endif
