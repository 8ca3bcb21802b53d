/* Declarations that the files of the shared-memory exchange share.
 *
 * The algorithms work in a basis of the tensor's space F2^d that consists of one side's own
 * columns. In this basis that side is nearly the identity:
 *
 *     bit of a vector     12 bits        6 bits      6 bits      4 bits
 *                       | registers    | lanes     | warps     | blocks    |
 *                       0              12          18          24          28
 *
 * Register column i is bit i, lane column j is bit 12 + j, and so on. Copies are columns that
 * depend on the columns before them, in the order lanes, warps, registers, blocks. Such a column
 * is a sum of those columns, and its own bit is unused. The lowest 12 bits of a vector are the
 * vector modulo the threads of the basis's side; most of the algorithms need no more.
 */
#ifndef LILAC_PLAN_STAGING_H
#define LILAC_PLAN_STAGING_H

#include <lilac/f2.h>
#include <lilac/plan.h>

enum {
    BASIS_LANE = LILAC_PLAN_MAX_REGISTER_BITS,
    BASIS_WARP = BASIS_LANE + LILAC_PLAN_MAX_LANE_BITS,
    BASIS_BLOCK = BASIS_WARP + LILAC_PLAN_MAX_WARP_BITS,
    BASIS_BITS = BASIS_BLOCK + LILAC_PLAN_MAX_BLOCK_BITS,
    BASIS_REGISTERS = (1 << BASIS_LANE) - 1,
    MAX_THREAD_COLUMNS = BASIS_BITS - BASIS_LANE,
    MAX_LOW = 6 /* low directions of an instruction: at most 4 for 16 bytes of elements */
};

/* a - b, or 0 if that is negative. */
static inline uint32_t above(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

/* ---- a pair of sides in a basis ---------------------------------------------------------- */

enum { STORE, LOAD };

/* The columns of one side. `thread` holds the columns of lanes, then warps, then blocks. */
typedef struct staging_side {
    uint32_t register_bits, lane_bits, warp_bits, block_bits, thread_bits;
    uint32_t reg[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t thread[MAX_THREAD_COLUMNS];
    /* Loads from other blocks: the first i lane bits load from 2^blocks[i] blocks. If lane bit i
     * does not increase this number, within[i] is the sum of lane bits, i included, that stays in
     * one block; otherwise within[i] is 0. Without such loads within[i] is thread[i]. */
    uint32_t blocks[LILAC_PLAN_MAX_LANE_BITS + 1];
    uint32_t within[LILAC_PLAN_MAX_LANE_BITS];
    /* Lane bit (0 or 1) whose two lanes load the same address whenever they load from the same
     * block; 2 if there is none. */
    uint32_t merged_lane;
} staging_side;

typedef struct staging_pair {
    staging_side side[2];
    uint32_t owner;        /* the side whose columns are the basis */
    uint32_t registers;    /* mask of the basis's register bits */
    uint32_t space_mask;   /* mask of all bits of one block's memory, without independent warps */
    uint32_t common_count; /* directions that are registers on both sides and independent of both
                              sides' threads; registers of one word come first */
    uint32_t common[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t round_bits; /* the last round_bits common directions number the rounds */
} staging_pair;

/* The instructions of both sides. 2^low[side] contiguous elements form a vector or a row of a
 * matrix. The basis consists of the columns of the side with the larger `low`. */
typedef struct staging_strategy {
    lilac_plan_instruction instruction[2];
    uint32_t low[2];
} staging_strategy;

/* Numbers of offset bits for a device and an element width: `word_bits` bits are within a word,
 * `bank_bits` bits are below the segments (word and bank). */
typedef struct staging_scale {
    const lilac_arch *arch;
    uint32_t element_bytes;
    uint32_t word_bits, bank_bits;
    uint32_t element_word_bits; /* log2 of the words of an element, at least 0 */
    uint32_t bank_count_bits;   /* log2 of the banks */
} staging_scale;

/* log2 of the consecutive lanes of one transaction. */
uint32_t lilac_plan_transaction_lane_bits(const staging_scale *scale, const staging_side *side,
                                          uint32_t which, uint32_t low);
/* Mask of the lane bits that vector stores leave out: lanes with copies, above the lanes of one
 * transaction. Leaving them out saves whole transactions. */
static inline uint32_t idle_lanes(uint32_t copy_lanes, uint32_t transaction_lane_bits) {
    return copy_lanes & ~((UINT32_C(1) << transaction_lane_bits) - 1);
}

/* Number of offset bits that are segments. */
static inline uint32_t segment_bits(const staging_pair *pair, const staging_scale *scale) {
    const uint32_t bits = (uint32_t)__builtin_popcount(pair->space_mask) - pair->round_bits;
    return above(bits, scale->bank_bits);
}

/* The rows of a matrix instruction. In MATRIX a row consists of the registers of a word and lane
 * bits 0, 1; in MATRIX_TRANSPOSED of the registers of 16 bits and lane bits 2, 3, 4. row_lane is
 * the first lane bit of the row, row_registers the number of register bits before it. */
static inline uint32_t row_lane(lilac_plan_instruction instruction) {
    return instruction == LILAC_PLAN_MATRIX ? 0 : 2;
}

static inline uint32_t row_registers(lilac_plan_instruction instruction,
                                     const staging_scale *scale) {
    return instruction == LILAC_PLAN_MATRIX ? scale->word_bits : scale->word_bits - 1;
}

/* A basis of the memory, one vector per offset bit: the low directions of the instructions, then
 * banks, segments and rounds. For a transposed matrix, half[side] is the register direction that
 * numbers the halves of a word. lilac_plan_swizzle returns false if the layouts do not have the
 * directions that the instructions require. */
typedef struct memory_basis {
    uint32_t count;
    uint32_t vector[32];
    uint32_t half[2];
    uint32_t family_bits;
} memory_basis;

LILAC_MUST_USE bool lilac_plan_swizzle(memory_basis *result, const staging_pair *pair,
                                       const staging_strategy *strategy,
                                       const staging_scale *scale);

/* ---- the choice of the instructions -------------------------------------------------------- */

/* The cost of a strategy, over all warps that take part and all rounds. */
typedef struct staging_counts {
    uint64_t transactions[2], wavefronts[2], instructions[2];
    uint64_t packs[2];
    uint64_t permutes[2]; /* estimated byte permutes of the register permutations */
} staging_counts;

/* A source and a target in the basis of the source. lilac_plan_staging_prepare removes from the
 * pair: copies among the source's registers and warps, independent warps, and the blocks. Of the
 * fields, only the least wavefronts are set later, by lilac_plan_staging_choose. */
typedef struct staging_work {
    staging_scale scale;
    staging_pair pair;
    uint32_t origin[BASIS_BITS];   /* the tensor's element at each bit of the basis */
    uint32_t source_register_bits; /* including registers with copies of other threads' elements */
    uint8_t kept[LILAC_PLAN_MAX_REGISTER_BITS]; /* the source's registers that are stored */
    uint32_t warp_bits;
    uint32_t store_copies;      /* mask of warp bits: such warps hold copies and do not store */
    uint32_t independent_warps; /* mask of warp bits: warps that differ in these bits exchange
                                   nothing */
    /* For the warps of store_copies: the threads whose elements they copy. */
    uint32_t copy_of[LILAC_PLAN_MAX_WARP_BITS];
    uint32_t copy_lanes;   /* mask of the source's lanes that copy lower lanes */
    uint32_t blocks;       /* mask of the basis's block bits */
    bool remote;           /* some loads are from other blocks */
    bool has_target_basis; /* the target's columns can be the basis, too */
    uint32_t register_block[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t thread_block[MAX_THREAD_COLUMNS];
    uint64_t least_wavefronts[2]; /* the lower bound */
    uint64_t floor_wavefronts[2];
} staging_work;

LILAC_MUST_USE bool lilac_plan_staging_prepare(staging_work *work, const lilac_layout *source,
                                               const lilac_layout *target, uint32_t element_bits,
                                               const lilac_plan_options *options,
                                               const lilac_arch *arch, lilac_reason *why);
/* Writes the pair in the basis of its target. origin[i] is bit i of the target basis as a vector of
 * the source basis. */
void lilac_plan_staging_to_target_basis(staging_pair *result, uint32_t *origin,
                                        const staging_pair *pair);

/* The cheapest strategy and its memory. `pair`, `origin` and `basis` are in the basis of the target
 * if `in_target_basis` is set. */
typedef struct staging_choice {
    staging_strategy strategy;
    staging_counts counts;
    bool in_target_basis;
    staging_pair pair;
    uint32_t origin[BASIS_BITS];
    memory_basis basis;
} staging_choice;

/* Without `with_memory`, `pair`, `origin` and `basis` are not set. False: no memory was found for
 * the strategy; the search excludes this case. */
LILAC_MUST_USE bool lilac_plan_staging_choose(staging_choice *choice, staging_work *work,
                                              bool with_memory);

/* Sets row-major memory and its vector widths instead. */
LILAC_MUST_USE bool lilac_plan_row_major(staging_choice *choice, const staging_work *work,
                                         const lilac_layout *source, lilac_reason *why);

#endif
