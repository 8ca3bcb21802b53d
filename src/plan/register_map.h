/* Maps of registers within a thread, and their factors: stages of operations on two words. */
#ifndef LILAC_PLAN_REGISTER_MAP_H
#define LILAC_PLAN_REGISTER_MAP_H

#include <lilac/plan.h>

enum {
    MAX_COLUMNS = LILAC_PLAN_MAX_REGISTER_BITS + 4,
    MAX_STAGES = LILAC_PLAN_MAX_THREAD_BITS + 2,
    MAX_MASKS = 3 /* of a control */
};

/* Register r of thread t of the result is register column·r ⊕ thread·t of the operand, where a
 * product is the xor of the columns of the set bits. The lowest `packed` bits of a register index
 * are the place in a word. There are always `packed` such bits, even if a word is partly filled. */
typedef struct lilac_plan_map {
    uint32_t packed, from_bits, to_bits, thread_bits;
    uint32_t column[MAX_COLUMNS];
    uint32_t thread[LILAC_PLAN_MAX_THREAD_BITS];
} lilac_plan_map;

/* A map that computes each word from at most two words: the word of its column, or that word xor
 * `direction`. The second one is selected where the parity of the thread's bits under `mask` and of
 * the place in the word under `place_mask` is odd. Direction 0: there is only one word. */
typedef struct lilac_plan_stage {
    lilac_plan_map map;
    uint32_t direction; /* difference of word numbers */
    uint32_t mask, place_mask;
    bool plain; /* elements keep their place in the word, unless the word's column changes it */
} lilac_plan_stage;

static inline uint32_t lilac_plan_packed(uint32_t element_bits) {
    return element_bits >= 32 ? 0 : element_bits == 16 ? 1 : 2;
}

/* Words of one element of at least 32 bits. */
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
/* Factors a map into at least one stage, in the order of execution; returns their number. If
 * possible, the predicate of the first stage is `first` and that of the last stage `last` (masks of
 * thread bits, 0: any). */
uint32_t lilac_plan_factor(lilac_plan_stage *stages, const lilac_plan_map *map, uint32_t first,
                           uint32_t last);
/* Computes a basis of the span of the predicates of the map's selects; returns its size. */
uint32_t lilac_plan_predicates(uint32_t *masks, const lilac_plan_map *map);

/* Operations of one thread. lilac_plan_count_words counts those of a subset of a stage's words, a
 * subspace with the basis `columns`; lilac_plan_count_stage counts all. */
typedef struct lilac_plan_count {
    uint64_t selects, permutes;
} lilac_plan_count;
lilac_plan_count lilac_plan_count_words(const lilac_plan_stage *stage, const uint32_t *columns,
                                        uint32_t count);
lilac_plan_count lilac_plan_count_stage(const lilac_plan_stage *stage);
/* The operations of the stages of a map, without the factorization. */
lilac_plan_count lilac_plan_estimate(const lilac_plan_map *map);

/* ---- construction of networks ------------------------------------------------------------- */

typedef struct lilac_plan_writer {
    lilac_plan_network *network;
    lilac_arena *arena;
    uint32_t packed;
    uint32_t op_capacity, control_capacity;
} lilac_plan_writer;

/* The source of an element of a word: a word and a place in it. */
typedef struct lilac_plan_place {
    uint32_t word, place;
} lilac_plan_place;

uint32_t lilac_plan_control_of(lilac_plan_writer *w, const lilac_plan_control *control);
uint32_t lilac_plan_write(lilac_plan_writer *w, lilac_plan_word_kind kind, uint32_t a, uint32_t b,
                          uint32_t control);
/* Writes all words of a stage to `to`. The stage reads the words from[0], from[1] … of the network.
 * `wanted` selects a subset of the words (NULL: all). */
void lilac_plan_write_stage(lilac_plan_writer *w, const lilac_plan_stage *stage,
                            const uint32_t *from, uint32_t *to, const bool *wanted);
/* Writes one word by its definition: element i of thread t comes from place_of(context, t, i).
 * The function is called for one thread of each combination of parities under the (independent)
 * masks. At most two words may occur; word k is the network's names[k]. */
uint32_t lilac_plan_write_word(lilac_plan_writer *w, lilac_plan_word_kind kind,
                               const uint32_t *masks, uint32_t mask_count,
                               lilac_plan_place (*place_of)(const void *context, uint32_t thread,
                                                            uint32_t at),
                               const void *context, const uint32_t *names);
/* Moves an independent subset of masks with the same span to the front; returns its size. */
uint32_t lilac_plan_independent(uint32_t *masks, uint32_t count);
/* Masks of the thread bits that change the place of an element, one for each of `packed` bits. */
void lilac_plan_place_masks(uint32_t *masks, const lilac_plan_map *map);

#endif
