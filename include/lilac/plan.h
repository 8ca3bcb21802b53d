/* movement: how a tensor gets from one place to another, and what that costs.
 *
 * Between two distributed layouts A and B of one tensor, B⁻¹ ∘ A says where each register of each
 * thread goes (section 5.4). A *plan* carries it out in a few steps on a thread's registers:
 *
 *     renaming    registers in another order, copies dropped or made     free, but for byte
 * permutes shuffle     within a warp                                          selects and shfl.sync
 *     trip        through shared memory                                  stores, a barrier, loads
 *
 *     source ─▶ renaming ─▶ shuffle ─▶ renaming ─▶ trip ─▶ renaming ─▶ shuffle ─▶ renaming ─▶
 * target
 *
 * where most plans have two or three of these. Between steps a thread holds 32-bit *words*:
 * elements narrower than a word are packed, the lowest bits of the register index within the word;
 * wider ones take several words, one after another. All of a plan is known when it is made: its
 * instructions, its wavefronts, its price, and how far that is from the least possible.
 *
 * Against memory, a distributed layout D: register × lane × warp → tensor and a memory layout
 * M: offset → tensor compose to M⁻¹ ∘ D: register × lane × warp → offset, the place where each
 * thread finds each of its registers. Because that is linear over F2, everything below is a
 * question about subspaces of offsets, and one transaction of one warp answers for all of them.
 *
 *        offset, in bytes:   … segment … | bank (5 or 6 bits) | byte of the bank
 *                            └────────── word ──────────────┘
 *
 * The model of shared memory is the simulator's (sim.h): a warp's access is split into transactions
 * of consecutive lanes that together take at most one word of each bank; a transaction costs as
 * many wavefronts as the most different words that fall into one bank.
 *
 * Results are values; only lilac_plan_expand_* allocate, from the arena they are given. Who may
 * use it: engine, lower, driver, tools.
 */
#ifndef LILAC_PLAN_H
#define LILAC_PLAN_H

#include <lilac/arch.h>
#include <lilac/layout.h>

LILAC_BEGIN

enum {
    LILAC_PLAN_MAX_LANE_BITS = 6,
    LILAC_PLAN_MAX_WARP_BITS = 6,
    LILAC_PLAN_MAX_THREAD_BITS = LILAC_PLAN_MAX_LANE_BITS + LILAC_PLAN_MAX_WARP_BITS,
    LILAC_PLAN_MAX_REGISTER_BITS = 12,
    LILAC_PLAN_MAX_BLOCK_BITS = 4,
    LILAC_PLAN_MAX_PADDINGS = 16
};

/* The instructions that reach shared memory. Of a matrix instruction (ldmatrix, stmatrix: 8 × 8
 * matrices of 16 bits, up to four) each thread has one word a matrix, and 8 lanes a matrix give the
 * addresses of its rows of 16 bytes. */
typedef enum lilac_plan_instruction {
    LILAC_PLAN_VECTOR,           /* ld.shared, st.shared of 1 to 16 bytes a lane */
    LILAC_PLAN_MATRIX,           /* a row: the words of lanes 4i … 4i+3 */
    LILAC_PLAN_MATRIX_TRANSPOSED /* a row: a 16-bit half of the words of lanes j, 4+j, 8+j … */
} lilac_plan_instruction;

/* Memory in which `padding[i]` unused elements follow every `interval[i]` elements, but for the
 * last: the element at offset x stands at x + Σ padding[i] · ⌊x / interval[i]⌋. All are powers of
 * two. */
typedef struct lilac_plan_padding {
    uint32_t count;
    uint32_t interval[LILAC_PLAN_MAX_PADDINGS];
    uint32_t padding[LILAC_PLAN_MAX_PADDINGS];
} lilac_plan_padding;

/* How every warp of a block stores a distributed tensor to shared memory, or loads it: a sequence
 * of 2^step_bits vector instructions. Offsets are in elements; the element at
 *
 *     xor of step[i], lane[j] and warp[k] over the set bits of the step, the lane and the warp
 *
 * is the first of the 2^vector_bits consecutive ones of that instruction; padding comes on top. */
typedef struct lilac_plan_access {
    lilac_plan_instruction instruction;
    uint32_t element_bytes;
    uint32_t vector_bits; /* log2 of the elements of one instruction of a thread; of a matrix
                             instruction: in its words, the matrix's number in the highest bits */
    uint32_t matrix_bits; /* log2 of the matrices of one instruction: 0, 1 or 2 */
    uint32_t step_bits;   /* log2 of the instructions of a thread */
    uint32_t lane_bits, warp_bits;
    uint64_t step[LILAC_LAYOUT_MAX_BITS];
    /* Which bit of the register index each bit of the vector and of the step is. */
    uint8_t vector_register[LILAC_LAYOUT_MAX_BITS], step_register[LILAC_LAYOUT_MAX_BITS];
    /* By the bits of the lane that gives the address: with a matrix instruction bits 0, 1, 2 are
     * the row's number and the bits above the matrix's (0 above the matrices there are). */
    uint64_t lane[LILAC_PLAN_MAX_LANE_BITS];
    uint64_t warp[LILAC_PLAN_MAX_WARP_BITS];
    lilac_plan_padding padding;      /* count 0: none */
    uint64_t memory_bytes;           /* that the memory spans */
    uint32_t transaction_lanes;      /* consecutive lanes of one transaction */
    uint32_t transactions;           /* of one instruction of a warp */
    uint32_t transaction_wavefronts; /* of the dearest of them; without padding all are alike, and
                                        it is a power of two */
    uint32_t conflicts;              /* transaction_wavefronts - 1, as Triton counts */
    uint64_t instructions;           /* of all the warps of a block together */
    uint64_t wavefronts;             /* of all of those */
} lilac_plan_access;

/* The access of `distributed` (inputs register, lane, warp and, if of one bit pattern only, block)
 * to `memory` (offset, block), both onto the same tensor, by elements of `element_bits` (a multiple
 * of 8 that is a power of two; 1 counts as 8).
 *
 * Vector width: registers may be put in any order, so that the register bits whose offsets are
 * 1, 2, 4 … become the lowest; the vector is the longest such run for which no other bit (register,
 * lane, warp) moves an access off its alignment, at most arch->vector_bytes. Registers that repeat
 * an element are accessed once; lanes and warps that do are not left out, they cost no wavefront of
 * their own within a transaction.
 *
 * Wavefronts (Lemma 9.4, made exact for elements narrower than a bank): let S be the span of the
 * words that the transaction's lanes and the words of one vector reach. A bank serves |S ∩
 * segments| words, segments being the words with bank 0; so that is the count, 2^(dim S − dim
 * bank(S)). The lemma takes the lanes' span in elements instead of words and is then only a lower
 * bound.
 *
 * Refused, with the reason: outputs that differ in names or sizes, a memory layout that is not
 * surjective, a lane count other than the device's, more warps than it has, more bytes than its
 * shared memory, elements in another
 * block's memory, memory that has inputs other than offset and block, elements of part of a byte.
 */
LILAC_API LILAC_MUST_USE bool lilac_plan_access_init(lilac_plan_access *result,
                                                     const lilac_layout *distributed,
                                                     const lilac_layout *memory,
                                                     uint32_t element_bits, const lilac_arch *arch,
                                                     lilac_reason *why);
/* The same for padded memory. Accesses stay within an interval and aligned, which bounds the
 * vector. Adding is not linear, so the wavefronts are counted bank by bank: time in proportion to
 * the elements of all threads. Refused as well: intervals and paddings that are no powers of two.
 */
LILAC_API LILAC_MUST_USE bool
lilac_plan_access_init_padded(lilac_plan_access *result, const lilac_layout *distributed,
                              const lilac_layout *memory, const lilac_plan_padding *padding,
                              uint32_t element_bits, const lilac_arch *arch, lilac_reason *why);
/* The same by a matrix instruction (Theorem 5.1): the places divided on the left by its tile, the
 * registers put in the order that this takes. A matrix is one transaction, of the 8 lanes that give
 * its rows' addresses. Refused as well: devices without matrix instructions, elements of more than
 * 32 bits (transposed: 16), places that the tile does not divide. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_access_init_matrix(lilac_plan_access *result, const lilac_layout *distributed,
                              const lilac_layout *memory, lilac_plan_instruction instruction,
                              uint32_t element_bits, const lilac_arch *arch, lilac_reason *why);
/* Counts again for loads: those of two words and more, where lanes l and l ^ 1 of every l, or l and
 * l ^ 2, load the same, take twice as many lanes in a transaction, once (measured on an H200). */
LILAC_API void lilac_plan_access_as_load(lilac_plan_access *access, const lilac_arch *arch);
/* The offset of the first element that a lane of a warp accesses with instruction number `step`,
 * its padding included. */
LILAC_API uint64_t lilac_plan_access_offset(const lilac_plan_access *access, uint64_t step,
                                            uint32_t lane, uint32_t warp);

/* Wavefronts of a transaction whose lanes, 2^lane_bits of them, access `bytes` each at the xor of
 * the byte addresses `lanes` of their set bits: a power of two. Lanes must be aligned to `bytes`, a
 * power of two. Exact whatever the lanes. */
LILAC_API uint32_t lilac_plan_transaction_wavefronts(const lilac_arch *arch, uint32_t bytes,
                                                     const uint64_t *lanes, uint32_t lane_bits);
/* Wavefronts to be expected, in sixteenths, of a transaction of 2^lane_bits lanes that each load one
 * of 2^word_bits words, which stand in 2^bank_bits banks, as good as at random (as tt.gather's do).
 * Lanes that load the same word do it once. Of several such groups in one transaction, each in banks
 * of its own, the worst: a transaction is taken to have 32 lanes, or 64 where lane_bits is 6. */
LILAC_API uint32_t lilac_plan_scattered_wavefronts(uint32_t lane_bits, uint32_t bank_bits,
                                                   uint32_t word_bits);
/* Consecutive lanes that one transaction takes when each accesses `bytes`: arch->banks over the
 * words of an access, at least 1 and at most the lanes of a warp. */
LILAC_API uint32_t lilac_plan_transaction_lanes(const lilac_arch *arch, uint32_t bytes);

/* ---- plans ------------------------------------------------------------------------------- */

/* Register r of the result is register (xor of from[i] over the set bits i of r) of what was there
 * before. */
typedef struct lilac_plan_permutation {
    uint32_t before_bits, bits; /* log2 of the registers before and after */
    uint64_t from[LILAC_PLAN_MAX_REGISTER_BITS];
} lilac_plan_permutation;

/* An exchange within a warp. Every one, whatever its matrix, is a map of registers, a shuffle and a
 * map of registers; with t the thread's index (lane bits, warp bits above them) and columns xored
 * over the set bits of what they are applied to,
 *
 *     before    register r becomes what register  kept·r ⊕ before·t  was               selects
 *     shuffle   register r of thread t becomes that of lane  lane·t ⊕ distance·r       shfl.sync
 *     after     register r becomes what register  taken·r ⊕ after·t  was               selects
 *
 * Registers that make up one word (the lowest log2(32 / element_bits) bits) have distance 0; a map
 * that reaches them is byte permutes. A register that stays in its lane is not shuffled. There may
 * be more registers in between than before or after: copies, and those from which the map after it
 * selects. Where a word is filled in part, kept·r may be one of its places that hold nothing. */
typedef struct lilac_plan_shuffle {
    uint32_t before_bits, register_bits, after_bits; /* log2 of the registers before the first map,
                                                        between the maps and after the second */
    uint32_t lane_bits, warp_bits;
    uint64_t kept[LILAC_PLAN_MAX_REGISTER_BITS];
    uint64_t before[LILAC_PLAN_MAX_THREAD_BITS];
    uint64_t lane[LILAC_PLAN_MAX_THREAD_BITS];
    uint64_t distance[LILAC_PLAN_MAX_REGISTER_BITS];
    uint64_t taken[LILAC_PLAN_MAX_REGISTER_BITS];
    uint64_t after[LILAC_PLAN_MAX_THREAD_BITS];
} lilac_plan_shuffle;

/* What must pass between a trip's stores and its loads. */
typedef enum lilac_plan_barrier {
    LILAC_PLAN_BARRIER_WARP,   /* each warp loads what it stored: bar.warp.sync */
    LILAC_PLAN_BARRIER_GROUP,  /* warps that differ in barrier_warps only: a named barrier */
    LILAC_PLAN_BARRIER_BLOCK,  /* bar.sync 0 */
    LILAC_PLAN_BARRIER_CLUSTER /* barrier.cluster */
} lilac_plan_barrier;

/* A trip through shared memory, in 2^round_bits rounds of: stores, the barrier, loads (and the
 * barrier again before the next round's stores). */
typedef struct lilac_plan_trip {
    lilac_layout memory; /* offset (elements), block → tensor; all rounds, one after another in the
                            highest offset bits, which hold round r at the same bytes */
    lilac_plan_access store, load; /* of one round; registers as after the renaming before the
                                          trip, and as the renaming after it takes them */
    uint32_t round_bits;
    uint8_t store_round[LILAC_PLAN_MAX_REGISTER_BITS]; /* the register bit that is round bit i */
    uint8_t load_round[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t store_copies; /* warps with a bit of this mask set hold copies and do not store */
    /* Lanes with a bit of this mask set do not store either: copies whose transactions nobody else
     * needs. Vectors only. The counts of the store leave them out. */
    uint32_t store_copy_lanes;
    uint64_t bytes; /* of shared memory */
    lilac_plan_barrier barrier;
    uint32_t barrier_warps; /* mask of the warp bits that the data crosses; a group's part of the
                               memory is its own, chosen by its other warp bits */
    /* Between blocks: `remote`, a lane loads from the block whose rank is the xor of these over the
     * set bits of step, lane, warp and of its own block's rank; else from its own. Where blocks
     * hold copies, what a lane loads may depend on its block's rank either way: load_offset_block
     * are the offsets to xor over the set bits of the rank. */
    bool remote;
    uint64_t load_offset_block[LILAC_PLAN_MAX_BLOCK_BITS];
    uint64_t load_block_step[LILAC_PLAN_MAX_REGISTER_BITS];
    uint64_t load_block_lane[LILAC_PLAN_MAX_LANE_BITS];
    uint64_t load_block_warp[LILAC_PLAN_MAX_WARP_BITS];
    uint64_t load_block_block[LILAC_PLAN_MAX_BLOCK_BITS];
    /* Of the memory layouts that reach these wavefronts with these instructions, in this family
     * (any vector order, any segments that meet neither side's lanes): log2 of how many choices of
     * the segments there are, rounded down. */
    uint32_t family_bits;
} lilac_plan_trip;

/* What a plan takes, summed over all the warps of one block. Instructions are a warp's; address
 * arithmetic, which is done once outside loops, is not among them. */
typedef struct lilac_plan_price {
    uint64_t shuffles, selects, permutes;
    uint64_t stores, loads;                     /* of shared memory, matrix instructions included */
    uint64_t store_wavefronts, load_wavefronts; /* of those, in clocks of shared memory */
    uint64_t store_bytes, load_bytes;           /* that active lanes move */
    uint64_t packs;    /* elements taken out of a word or put into one, one by one */
    uint64_t barriers; /* of a warp */
    uint64_t cycles;   /* of a multiprocessor, estimated from the device's costs, times 16 */
} lilac_plan_price;

/* `cycles` from the other fields of a price: the busiest of the pipes that arch->costs describes, a
 * part of the work on the others, the barriers, and the latency that is left. `barrier` is the
 * trip's; without one any will do. */
LILAC_API uint64_t lilac_plan_price_cycles(const lilac_plan_price *price,
                                           lilac_plan_barrier barrier, const lilac_arch *arch);

/* What tt.gather does in a layout: its registers in a thread, copies left out. */
typedef struct lilac_plan_gather {
    uint32_t element_bits, num_warps;
    uint32_t own, results; /* registers of the source and of the result */
    uint32_t varying_bits; /* log2 of the source's registers that an index may name */
    bool moves;            /* whether it may name other lanes */
} lilac_plan_gather;

/* Log2 of the elements that travel in one word: of those registers. */
LILAC_API uint32_t lilac_plan_gather_within(const lilac_plan_gather *gather);
/* The price of all warps' shuffles and permutes; and of stores and loads of shared memory, which the
 * caller counts. What a thread has no registers for is part of both. */
LILAC_API uint64_t lilac_plan_price_gather_shuffles(const lilac_plan_gather *gather,
                                                    const lilac_arch *arch);
LILAC_API uint64_t lilac_plan_price_gather_memory(const lilac_plan_gather *gather,
                                                  const lilac_plan_price *accesses,
                                                  lilac_plan_barrier barrier,
                                                  const lilac_arch *arch);

/* The least that any trip through shared memory with this device's instructions takes: of all pairs
 * of vectors and matrix instructions that the two layouts allow (section 5.3), the transactions of
 * the pair with the fewest wavefronts, times the conflicts that no memory layout avoids. There are
 * such only where one side is wider than the other and its alignment confines the other's lanes to
 * too few banks; by Lemma 9.5 all else is free of conflicts. Of loads from other blocks each block
 * that a transaction reaches into counts by itself. Where a thread's registers are in several
 * blocks' memory, or a block loads parts only of what it holds, the least of each side by itself is
 * taken, which both together may not reach.
 *
 * floor_wavefronts: each byte that a block's threads hold stored once, and each byte that a warp's
 * threads want, copies among its lanes counted once, loaded once by that warp, at banks ·
 * bank_bytes bytes a clock; of a warp's loads at least one. */
typedef struct lilac_plan_bound {
    uint64_t store_wavefronts, load_wavefronts; /* of the pair of instructions whose sum is least */
    uint64_t floor_wavefronts;
    bool met;      /* the plan's trip takes exactly that; true without a trip */
    bool by_price; /* or else: what takes that few wavefronts takes longer, for its byte permutes or
                      its many instructions. Neither: the sides' bounds, between blocks */
} lilac_plan_bound;

typedef enum lilac_plan_kind {
    LILAC_PLAN_NONE,
    LILAC_PLAN_REGISTERS,
    LILAC_PLAN_SHUFFLES,
    LILAC_PLAN_SHARED,
    LILAC_PLAN_CLUSTER
} lilac_plan_kind;

typedef enum lilac_plan_step_kind {
    LILAC_PLAN_STEP_RENAMING,
    LILAC_PLAN_STEP_SHUFFLE,
    LILAC_PLAN_STEP_TRIP
} lilac_plan_step_kind;

enum { LILAC_PLAN_MAX_STEPS = 12, LILAC_PLAN_MAX_RENAMINGS = 4, LILAC_PLAN_MAX_SHUFFLES = 6 };

typedef struct lilac_plan_conversion {
    lilac_plan_kind kind;
    const lilac_arch *arch;
    uint32_t element_bits;
    uint32_t register_bits, lane_bits, warp_bits, block_bits; /* of the source */
    uint32_t target_register_bits;
    uint32_t step_count;
    struct {
        lilac_plan_step_kind kind;
        uint32_t index; /* into the arrays below; a plan has at most one trip */
    } step[LILAC_PLAN_MAX_STEPS];
    lilac_plan_permutation renaming[LILAC_PLAN_MAX_RENAMINGS];
    lilac_plan_shuffle shuffle[LILAC_PLAN_MAX_SHUFFLES];
    lilac_plan_trip trip;
    lilac_plan_price price;
    lilac_plan_bound bound;
} lilac_plan_conversion;

/* Which ways a plan may take. */
typedef enum lilac_plan_strategy {
    LILAC_PLAN_ANY, /* the cheapest, mixtures too */
    LILAC_PLAN_BY_SHUFFLES,
    LILAC_PLAN_BY_SHARED, /* the best trip */
    LILAC_PLAN_UNSWIZZLED /* a trip through row-major memory with st/ld: for comparisons */
} lilac_plan_strategy;

typedef struct lilac_plan_options {
    lilac_plan_strategy way;
    uint64_t scratch_bytes; /* most that a trip may take; 0: a quarter of what the device has, or
                               all of it where that is too little even in rounds */
} lilac_plan_options;

/* The plan from `source` to `target`, distributed layouts (inputs register, lane, warp, block) of
 * one tensor. NULL options: all 0. Elements of 1 (as 8), 8, 16, 32, 64 or 128 bits. About 5 µs.
 *
 * Refused, with the reason: tensors that differ in rank or shape, element widths that no device
 * moves, layouts that are not surjective, lanes or warps that are not the device's or differ
 * between the two, scratch beyond options or device even in rounds, a way that cannot be taken. */
LILAC_API LILAC_MUST_USE bool lilac_plan_conversion_init(lilac_plan_conversion *result,
                                                         const lilac_layout *source,
                                                         const lilac_layout *target,
                                                         uint32_t element_bits,
                                                         const lilac_plan_options *options,
                                                         const lilac_arch *arch, lilac_reason *why);
/* The layout that the registers have after the first `steps` steps. */
LILAC_API void lilac_plan_conversion_layout(lilac_layout *result, const lilac_plan_conversion *plan,
                                            const lilac_layout *source, uint32_t steps);
/* Readable: the kind, every step with which bits go where and why, instructions, wavefronts, bound
 * and price; and one JSON object on one line. */
LILAC_API void lilac_plan_conversion_explain(lilac_text *out, const lilac_plan_conversion *plan,
                                             const lilac_layout *source,
                                             const lilac_layout *target);
LILAC_API void lilac_plan_conversion_json(lilac_text *out, const lilac_plan_conversion *plan);
/* "none" … "cluster"; "vector", "matrix", "matrix transposed"; "warp" … "cluster". */
LILAC_API const char *lilac_plan_kind_name(lilac_plan_kind kind);
LILAC_API const char *lilac_plan_instruction_name(lilac_plan_instruction instruction);
LILAC_API const char *lilac_plan_barrier_name(lilac_plan_barrier barrier);

/* ---- steps, one by one -------------------------------------------------------------------- */

/* The best trip from `source` to `target`, layouts with no copies among their registers, with the
 * renamings that put the registers in its order. Refused as plans are. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_trip_init(lilac_plan_trip *result, lilac_plan_permutation *before,
                     lilac_plan_permutation *after, lilac_plan_bound *bound,
                     const lilac_layout *source, const lilac_layout *target, uint32_t element_bits,
                     const lilac_plan_options *options, const lilac_arch *arch, lilac_reason *why);
/* What that trip takes (added to the price, cycles apart; its renamings left out), without making
 * it: for choosing among many. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_trip_estimate(lilac_plan_price *price, lilac_plan_barrier *barrier,
                         const lilac_layout *source, const lilac_layout *target,
                         uint32_t element_bits, const lilac_plan_options *options,
                         const lilac_arch *arch, lilac_reason *why);
/* The exchange within warps, with the renaming of registers before it and after it. False when
 * elements leave their warp, or a warp's own elements cannot serve it. Layouts with no copies among
 * their registers; copies among lanes are used where they are. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_shuffle_init(lilac_plan_shuffle *result, lilac_plan_permutation *before,
                        lilac_plan_permutation *after, const lilac_layout *source,
                        const lilac_layout *target, uint32_t element_bits, const lilac_arch *arch,
                        lilac_reason *why);
/* What steps add to a price (cycles apart), for `warps` warps. */
LILAC_API void lilac_plan_price_permutation(lilac_plan_price *price,
                                            const lilac_plan_permutation *renaming,
                                            uint32_t element_bits, uint32_t warps);
LILAC_API void lilac_plan_price_shuffle(lilac_plan_price *price, const lilac_plan_shuffle *shuffle,
                                        uint32_t element_bits, uint32_t warps);
LILAC_API void lilac_plan_price_trip(lilac_plan_price *price, const lilac_plan_trip *trip,
                                     uint32_t element_bits, uint32_t warps);

/* ---- steps as operations on words --------------------------------------------------------- */

typedef enum lilac_plan_word_kind {
    LILAC_PLAN_WORD_SELECT,  /* predicate ? a : b */
    LILAC_PLAN_WORD_PERMUTE, /* prmt: the bytes of a (0 … 3) and b (4 … 7) by a selector */
    LILAC_PLAN_WORD_SHUFFLE  /* a of another lane */
} lilac_plan_word_kind;

/* Word numbers: 0 … inputs - 1 are the words before; operation i makes word inputs + i. */
typedef struct lilac_plan_word_op {
    lilac_plan_word_kind kind;
    uint32_t a, b;
    uint32_t control; /* index of a control */
} lilac_plan_word_op;

/* What depends on the thread, the same for many operations: computed once. A predicate is the
 * parity of the thread's bits (lane, warp above) under a mask. */
typedef struct lilac_plan_control {
    /* select: masks[0]. permute: selector[k] where bit i of k is the parity under masks[i],
     * mask_count of them (0: a constant). */
    uint32_t mask_count;
    uint64_t masks[3];
    uint32_t selector[8];
    /* shuffle: the source lane is (xor of lane[i] over the thread's bits) ⊕ constant. */
    uint64_t lane[LILAC_PLAN_MAX_THREAD_BITS];
    uint64_t constant;
    bool identity; /* lane is the thread's own: shfl.bfly by the constant */
} lilac_plan_control;

typedef struct lilac_plan_network {
    uint32_t input_count, op_count, output_count, control_count;
    lilac_plan_word_op *ops;
    uint32_t *outputs; /* word numbers */
    lilac_plan_control *controls;
} lilac_plan_network;

/* A renaming or a shuffle as operations on words. The numbers of selects, permutes and shuffles are
 * those that the price counts for one warp. False: out of memory. */
LILAC_API LILAC_MUST_USE bool lilac_plan_expand_permutation(lilac_plan_network *result,
                                                            lilac_arena *arena,
                                                            const lilac_plan_permutation *renaming,
                                                            uint32_t element_bits);
LILAC_API LILAC_MUST_USE bool lilac_plan_expand_shuffle(lilac_plan_network *result,
                                                        lilac_arena *arena,
                                                        const lilac_plan_shuffle *shuffle,
                                                        uint32_t element_bits);
/* Words that 2^register_bits elements take. */
LILAC_API uint32_t lilac_plan_words(uint32_t register_bits, uint32_t element_bits);

LILAC_END

#endif
