/* What the files that make trips through shared memory share.
 *
 * A *frame* is a basis of the tensor's space F2^d made of one side's own columns, so that this side
 * is nearly the identity: register column i is bit i, lane column j bit 12 + j, warp column k bit
 * 18 + k, block column b bit 24 + b; a column that depends on those before it (lanes, warps, then
 * registers, then blocks: copies) is their sum and its own bit stays unused. Modulo the threads of
 * the frame's side a vector is its lowest 12 bits, and that is most of what the algorithms need.
 */
#ifndef LILAC_PLAN_TRIP_H
#define LILAC_PLAN_TRIP_H

#include <lilac/f2.h>
#include <lilac/plan.h>

enum {
    FRAME_LANE = LILAC_PLAN_MAX_REGISTER_BITS,
    FRAME_WARP = FRAME_LANE + LILAC_PLAN_MAX_LANE_BITS,
    FRAME_BLOCK = FRAME_WARP + LILAC_PLAN_MAX_WARP_BITS,
    FRAME_BITS = FRAME_BLOCK + LILAC_PLAN_MAX_BLOCK_BITS,
    FRAME_REGISTERS = (1 << FRAME_LANE) - 1,
    MOST_THREAD_COLUMNS = FRAME_BITS - FRAME_LANE,
    MOST_LOW = 6 /* low directions of an instruction: 16 bytes of elements, with room */
};

/* a - b, or 0. */
static inline uint32_t above(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

/* ---- a pair of sides in a frame ---------------------------------------------------------- */

enum { STORE, LOAD };

/* The columns of one side; `thread` those of lanes, then warps, then blocks. */
typedef struct trip_side {
    uint32_t register_bits, lane_bits, warp_bits, block_bits, thread_bits;
    uint32_t reg[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t thread[MOST_THREAD_COLUMNS];
    /* Loads from other blocks: those of the first i lanes go to 2^blocks[i] of them, and lane i
     * makes them more or, as the sum that stays in its block, within[i] (0 and thread[i]
     * otherwise). */
    uint32_t blocks[LILAC_PLAN_MAX_LANE_BITS + 1];
    uint32_t within[LILAC_PLAN_MAX_LANE_BITS];
    /* The lower lane of 0 and 1 such that where lanes that differ in it load from one block at all,
     * they load the same; 2: none. */
    uint32_t merged_lane;
} trip_side;

typedef struct trip_pair {
    trip_side side[2];
    uint32_t owner;     /* the side whose frame it is */
    uint32_t registers; /* bits of the frame's register columns */
    uint32_t whole;     /* bits of all of them: the space that the memory holds for a block, without
                           the peeled warps */
    uint32_t common_count; /* directions that are registers on both sides and independent of both
                              sides' threads, the ones that are words of their own accord first */
    uint32_t common[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t round_bits; /* how many of those, from the last, number the rounds */
} trip_pair;

/* The instructions of both sides. `low` is log2 of the elements of one side's contiguous bytes:
 * those of a vector or of a matrix's row. The owner of the frame is the side with more. */
typedef struct trip_way {
    lilac_plan_instruction instruction[2];
    uint32_t low[2];
} trip_way;

/* What the device and the element make of offsets: bits of them within a word, and below the
 * segments (word and bank). */
typedef struct trip_scale {
    const lilac_arch *arch;
    uint32_t element_bytes;
    uint32_t word_bits, bank_bits;
    uint32_t element_word_bits, bank_count_bits; /* log2: words of an element, at least 1; banks */
} trip_scale;

/* Consecutive lanes of one transaction, as log2. */
uint32_t lilac_plan_trip_lanes(const trip_scale *scale, const trip_side *side, uint32_t which,
                               uint32_t low);
/* Mask of the lane bits without which stores of vectors save whole transactions: lanes that hold
 * copies, above those of one transaction. */
static inline uint32_t idle_lanes(uint32_t copy_lanes, uint32_t transaction_lane_bits) {
    return copy_lanes & ~((UINT32_C(1) << transaction_lane_bits) - 1);
}

/* Bits of the memory's segments for the pair. */
static inline uint32_t segment_bits(const trip_pair *pair, const trip_scale *scale) {
    const uint32_t bits = (uint32_t)__builtin_popcount(pair->whole) - pair->round_bits;
    return above(bits, scale->bank_bits);
}

/* The first lane of a matrix instruction that is contiguous in a row, and how many registers are
 * before them: rows of MATRIX are registers of a word, then lanes 0, 1; rows of MATRIX_TRANSPOSED
 * registers of 16 bits, then lanes 2, 3, 4. */
static inline uint32_t row_lane(lilac_plan_instruction instruction) {
    return instruction == LILAC_PLAN_MATRIX ? 0 : 2;
}

static inline uint32_t row_registers(lilac_plan_instruction instruction, const trip_scale *scale) {
    return instruction == LILAC_PLAN_MATRIX ? scale->word_bits : scale->word_bits - 1;
}

/* A basis of the memory, offset bit by offset bit, as vectors of the frame: the low directions that
 * the instructions ask for, banks, segments, then rounds. `half` is for each side the register
 * direction that numbers the halves of words of a transposed matrix. False when the layouts do not
 * have the directions that the instructions ask for. */
typedef struct trip_basis {
    uint32_t count;
    uint32_t vector[32];
    uint32_t half[2];
    uint32_t family_bits;
} trip_basis;

LILAC_MUST_USE bool lilac_plan_swizzle(trip_basis *result, const trip_pair *pair,
                                       const trip_way *way, const trip_scale *scale);

/* ---- finding the way ---------------------------------------------------------------------- */

/* What a way takes, over all warps that take part and all rounds. */
typedef struct trip_counts {
    uint64_t transactions[2], wavefronts[2], instructions[2];
    uint64_t packs[2];
    uint64_t permutes[2]; /* about how many byte permutes the renaming takes */
} trip_counts;

/* A source and a target in the source's frame, with what is set aside: copies among the source's
 * registers and warps, peeled warps, blocks. */
typedef struct trip_work {
    trip_scale scale;
    trip_pair pair;
    uint32_t origin[FRAME_BITS];                /* the tensor's element at each bit of the frame */
    uint32_t source_register_bits;              /* with those that are copies of other threads' */
    uint8_t kept[LILAC_PLAN_MAX_REGISTER_BITS]; /* the source's registers that are stored */
    uint32_t warp_bits;
    uint32_t store_copies, peeled;              /* masks of warp bits */
    uint32_t copy_of[LILAC_PLAN_MAX_WARP_BITS]; /* sums of threads that those hold copies of */
    uint32_t copy_lanes; /* mask of the source's lanes that hold copies of lower ones */
    uint32_t blocks;     /* bits of the frame's block columns */
    bool remote;         /* loads from other blocks */
    bool can_turn;       /* the target's columns are a frame, too */
    uint32_t register_block[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t thread_block[MOST_THREAD_COLUMNS];
    uint64_t least_wavefronts[2]; /* the bound */
    uint64_t floor_wavefronts[2];
} trip_work;

LILAC_MUST_USE bool lilac_plan_trip_prepare(trip_work *work, const lilac_layout *source,
                                            const lilac_layout *target, uint32_t element_bits,
                                            const lilac_plan_options *options,
                                            const lilac_arch *arch, lilac_reason *why);
/* The same pair in its target's frame; origin: the source frame's vector at each bit. */
void lilac_plan_trip_turn(trip_pair *result, uint32_t *origin, const trip_pair *pair);

/* The best way, with its memory, in its frame (`frame`, `turned` when it is the target's). */
typedef struct trip_choice {
    trip_way way;
    trip_counts counts;
    bool turned;
    trip_pair frame;
    uint32_t origin[FRAME_BITS];
    trip_basis basis;
} trip_choice;

/* `with_memory` false: the frame and the basis may be left out. False when the basis is not found,
 * which the search should have seen. */
LILAC_MUST_USE bool lilac_plan_trip_choose(trip_choice *choice, trip_work *work, bool with_memory);

/* The choice of row-major memory instead. */
LILAC_MUST_USE bool lilac_plan_row_major(trip_choice *choice, const trip_work *work,
                                         const lilac_layout *source, lilac_reason *why);

bool lilac_plan_trip_refuse(lilac_reason *why, const char *format, ...) LILAC_PRINTF(2, 3);

#endif
