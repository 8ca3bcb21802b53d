/* plan: conversions of a tensor between layouts, and their cost.
 *
 * Let A and B be two distributed layouts of one tensor. The map B⁻¹ ∘ A gives the destination of
 * each register of each thread (section 5.4 of the paper). A plan implements this map in a few
 * steps on a thread's registers:
 *
 *     step                    effect                                         instructions
 *     ----------------------  ---------------------------------------------  ----------------------
 *     register permutation    reorders registers, drops or adds copies       none, or byte permutes
 *     shuffle                 exchanges registers within a warp              selects and shfl.sync
 *     shared-memory exchange  exchanges registers within a block or cluster  stores, barrier, loads
 *
 *     source ─▶ permutation ─▶ shuffle ─▶ permutation ─▶ shared-memory exchange
 *            ─▶ permutation ─▶ shuffle ─▶ permutation ─▶ target
 *
 * Most plans have two or three of these steps. The identifiers call the shared-memory exchange
 * `staging`. Between steps a thread holds 32-bit words. Elements narrower than a word are packed:
 * the lowest bits of the register index select the place in the word. A wider element occupies
 * several consecutive words. A plan contains all of its costs: instructions, wavefronts, price and
 * the distance from the lower bound.
 *
 * A distributed layout D: register × lane × warp → tensor and a memory layout M: offset → tensor
 * compose to M⁻¹ ∘ D: register × lane × warp → offset, the address of each register of each thread.
 * This map is linear over F2. Each question about conflicts is therefore a question about subspaces
 * of offsets, and all transactions have the same number of wavefronts.
 *
 *        offset, in bytes:   … segment … | bank (5 or 6 bits) | byte of the bank
 *                            └────────── word ──────────────┘
 *
 * The model of shared memory is that of the simulator (sim.h). A warp's access is split into
 * transactions of consecutive lanes that together access at most one word of each bank. A
 * transaction takes as many wavefronts as the largest number of different words in one bank.
 *
 * Results are values. Only lilac_plan_expand_* allocate, from the arena that the caller passes.
 * Users: engine, lower, driver, tools.
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

/* The instructions that access shared memory. A matrix instruction (ldmatrix, stmatrix) moves up to
 * four 8 × 8 matrices of 16-bit elements. Each thread holds one word of each matrix, and 8 lanes
 * supply the addresses of a matrix's rows of 16 bytes. */
typedef enum lilac_plan_instruction {
    LILAC_PLAN_VECTOR,           /* ld.shared, st.shared of 1 to 16 bytes per lane */
    LILAC_PLAN_MATRIX,           /* a row holds the words of lanes 4i … 4i+3 */
    LILAC_PLAN_MATRIX_TRANSPOSED /* a row holds a 16-bit half of the words of lanes j, 4+j, 8+j … */
} lilac_plan_instruction;

/* Padded memory: `padding[i]` unused elements follow every `interval[i]` elements. The element at
 * offset x has the address x + Σ padding[i] · ⌊x / interval[i]⌋. All numbers are powers of two. */
typedef struct lilac_plan_padding {
    uint32_t count;
    uint32_t interval[LILAC_PLAN_MAX_PADDINGS];
    uint32_t padding[LILAC_PLAN_MAX_PADDINGS];
} lilac_plan_padding;

/* How every warp of a block stores a distributed tensor to shared memory, or loads it: by a
 * sequence of 2^step_bits instructions. Offsets are in elements. An instruction accesses
 * 2^vector_bits consecutive elements from the offset
 *
 *     xor of step[i], lane[j] and warp[k] over the set bits of the step, the lane and the warp
 *
 * Padding is added to this offset. */
typedef struct lilac_plan_access {
    lilac_plan_instruction instruction;
    uint32_t element_bytes;
    uint32_t
        vector_bits; /* log2 of the elements that one instruction moves per thread; for a matrix
                             instruction the highest of these bits are the number of the matrix */
    uint32_t matrix_bits; /* log2 of the matrices of one instruction: 0, 1 or 2 */
    uint32_t step_bits;   /* log2 of the instructions of a thread */
    uint32_t lane_bits, warp_bits;
    uint64_t step[LILAC_LAYOUT_MAX_BITS];
    /* The bit of the register index that each bit of the vector and of the step corresponds to. */
    uint8_t vector_register[LILAC_LAYOUT_MAX_BITS], step_register[LILAC_LAYOUT_MAX_BITS];
    /* Offsets of the bits of the lane that supplies the address. For a matrix instruction, lane
     * bits 0, 1, 2 are the number of the row and the higher bits the number of the matrix; unused
     * bits are 0. */
    uint64_t lane[LILAC_PLAN_MAX_LANE_BITS];
    uint64_t warp[LILAC_PLAN_MAX_WARP_BITS];
    lilac_plan_padding padding; /* count 0: no padding */
    uint64_t memory_bytes;      /* size of the memory */
    uint32_t transaction_lanes; /* consecutive lanes of one transaction */
    uint32_t transactions;      /* per instruction of a warp */
    uint32_t
        transaction_wavefronts; /* of the slowest transaction; without padding all transactions are
                                        equal and this is a power of two */
    uint32_t conflicts;         /* transaction_wavefronts - 1, as Triton counts conflicts */
    uint64_t instructions;      /* of all warps of a block */
    uint64_t wavefronts;        /* of all these instructions */
} lilac_plan_access;

/* Computes the access of `distributed` (inputs register, lane, warp and block) to `memory` (inputs
 * offset and block). Both are layouts of the same tensor, whose elements have `element_bits` bits:
 * 1, which counts as 8, or 8 · 2^n.
 *
 * Vector width: the registers may be permuted, so the register bits with the offsets 1, 2, 4 … are
 * the vector. The vector is the longest such sequence that keeps all other register, lane and warp
 * bits aligned, up to arch->vector_bytes. Registers with copies are accessed once. Lanes and warps
 * with copies take part; within a transaction they cost no additional wavefront.
 *
 * Wavefronts (Lemma 9.4, extended to elements narrower than a bank): let S be the span of the words
 * that the lanes of a transaction and the words of one vector access. One bank serves
 * 2^(dim S − dim bank(S)) words, and the transaction takes this many wavefronts. The lemma uses the
 * span in elements instead of words and is only a lower bound for narrow elements.
 *
 * Refused, with the reason: layouts with different outputs, a memory layout that is not surjective
 * or has inputs other than offset and block, another number of lanes than the device, more warps or
 * bytes than the device has, elements in the memory of another block, elements that are not whole
 * bytes. */
LILAC_API LILAC_MUST_USE bool lilac_plan_access_init(lilac_plan_access *result,
                                                     const lilac_layout *distributed,
                                                     const lilac_layout *memory,
                                                     uint32_t element_bits, const lilac_arch *arch,
                                                     lilac_reason *why);
/* The same for padded memory. An access must stay within an interval and aligned, which limits the
 * vector. Addition is not linear over F2, so the wavefronts are counted bank by bank, in time
 * proportional to the elements of all threads. Refused as well: intervals and paddings that are not
 * powers of two. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_access_init_padded(lilac_plan_access *result, const lilac_layout *distributed,
                              const lilac_layout *memory, const lilac_plan_padding *padding,
                              uint32_t element_bits, const lilac_arch *arch, lilac_reason *why);
/* The same for a matrix instruction (Theorem 5.1): left division of the offsets by the tile of the
 * instruction, after a permutation of the registers. A matrix is one transaction of the 8 lanes
 * that supply its row addresses. Refused as well: devices without matrix instructions, elements of
 * more than 32 bits (transposed: 16), offsets that the tile does not divide. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_access_init_matrix(lilac_plan_access *result, const lilac_layout *distributed,
                              const lilac_layout *memory, lilac_plan_instruction instruction,
                              uint32_t element_bits, const lilac_arch *arch, lilac_reason *why);
/* Recounts the access for a load. If all pairs of lanes (l, l ^ 1), or all pairs (l, l ^ 2), load
 * the same two words or more, the hardware merges them, and a transaction covers twice the lanes.
 * Merging happens at most once. Measured on an H200 (bench/results/h200_costs.json). */
LILAC_API void lilac_plan_access_as_load(lilac_plan_access *access, const lilac_arch *arch);
/* The offset, padding included, of the first element that a lane of a warp accesses with
 * instruction number `step`. */
LILAC_API uint64_t lilac_plan_access_offset(const lilac_plan_access *access, uint64_t step,
                                            uint32_t lane, uint32_t warp);

/* Wavefronts of a transaction of 2^lane_bits lanes that access `bytes` bytes each. The byte address
 * of a lane is the xor of `lanes[i]` over its set bits. `bytes` is a power of two, and the
 * addresses are aligned to it. The result is exact and a power of two. */
LILAC_API uint32_t lilac_plan_transaction_wavefronts(const lilac_arch *arch, uint32_t bytes,
                                                     const uint64_t *lanes, uint32_t lane_bits);
/* Expected wavefronts, in sixteenths, of a transaction in which groups of 2^lane_bits lanes load
 * unpredictable words (as tt.gather does). A group loads from its own 2^word_bits words in its own
 * 2^bank_bits banks; lanes of a group that load the same word share one access. A transaction has
 * 32 lanes, or 64 if lane_bits is 6, and the slowest of its groups counts. */
LILAC_API uint32_t lilac_plan_scattered_wavefronts(uint32_t lane_bits, uint32_t bank_bits,
                                                   uint32_t word_bits);
/* Consecutive lanes of one transaction if each lane accesses `bytes` bytes: arch->banks divided by
 * the words of an access, at least 1 and at most the lanes of a warp. */
LILAC_API uint32_t lilac_plan_transaction_lanes(const lilac_arch *arch, uint32_t bytes);

/* ---- plans ------------------------------------------------------------------------------- */

/* Register r of the result is the register (xor of from[i] over the set bits i of r) of the
 * operand. */
typedef struct lilac_plan_permutation {
    uint32_t before_bits, bits; /* log2 of the registers of the operand and of the result */
    uint64_t from[LILAC_PLAN_MAX_REGISTER_BITS];
} lilac_plan_permutation;

/* An exchange within a warp. Each such exchange is a map of registers, a shuffle and a second map
 * of registers. Let t be the index of the thread (lane bits, then warp bits). A product such as
 * kept·r is the xor of kept[i] over the set bits i of r.
 *
 *     step      result                                                               instructions
 *     -------   ------------------------------------------------------------------   ------------
 *     before    register r := register kept·r ⊕ before·t of the same thread          selects
 *     shuffle   register r := register r of lane lane·t ⊕ distance·r                 shfl.sync
 *     after     register r := register taken·r ⊕ after·t of the same thread          selects
 *
 * The lowest log2(32 / element_bits) register bits, which select the place in a word, have distance
 * 0. A map that changes them uses byte permutes. A register that stays in its lane is not shuffled.
 * Between the maps there may be more registers than before and after: copies, and registers that
 * only the second map selects from. In a partly filled word, kept·r may be a place without an
 * element. */
typedef struct lilac_plan_shuffle {
    uint32_t before_bits, register_bits, after_bits; /* log2 of the registers before the first map,
                                                        between the maps, after the second map */
    uint32_t lane_bits, warp_bits;
    uint64_t kept[LILAC_PLAN_MAX_REGISTER_BITS];
    uint64_t before[LILAC_PLAN_MAX_THREAD_BITS];
    uint64_t lane[LILAC_PLAN_MAX_THREAD_BITS];
    uint64_t distance[LILAC_PLAN_MAX_REGISTER_BITS];
    uint64_t taken[LILAC_PLAN_MAX_REGISTER_BITS];
    uint64_t after[LILAC_PLAN_MAX_THREAD_BITS];
} lilac_plan_shuffle;

/* The barrier between the stores and the loads of a shared-memory exchange. */
typedef enum lilac_plan_barrier {
    LILAC_PLAN_BARRIER_WARP,   /* each warp loads only what it stored: bar.warp.sync */
    LILAC_PLAN_BARRIER_GROUP,  /* warps that differ only in barrier_warps: a named barrier */
    LILAC_PLAN_BARRIER_BLOCK,  /* bar.sync 0 */
    LILAC_PLAN_BARRIER_CLUSTER /* barrier.cluster */
} lilac_plan_barrier;

/* A shared-memory exchange in 2^round_bits rounds. A round consists of stores, a barrier and loads,
 * and of a second barrier if another round follows. */
typedef struct lilac_plan_staging {
    lilac_layout memory; /* offset (elements), block → tensor. The highest offset bits are the
                            number of the round; all rounds use the same bytes */
    lilac_plan_access store, load; /* of one round; registers after the permutation before the
                                      exchange, and before the permutation after it */
    uint32_t round_bits;
    uint8_t store_round
        [LILAC_PLAN_MAX_REGISTER_BITS]; /* the register bit that is bit i of the round number */
    uint8_t load_round[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t
        store_copies; /* warps whose index has a bit of this mask hold copies and do not store */
    /* Lanes whose index has a bit of this mask do not store either: they hold copies and fill whole
     * transactions. Only with vector stores. The counts of the store exclude them. */
    uint32_t store_copy_lanes;
    uint64_t bytes; /* of shared memory */
    lilac_plan_barrier barrier;
    uint32_t barrier_warps; /* mask of the warp bits that elements cross; the other warp bits select
                               a group's own part of the memory */
    /* Loads between blocks. If `remote` is set, a lane loads from the block whose rank is the xor
     * of load_block_step, _lane, _warp and _block over the set bits of its step, its lane, its
     * warp and its own rank; otherwise it loads from its own block. If blocks hold copies, the
     * offset may also depend on the rank: the xor of load_offset_block over the set bits of the
     * rank is added to the offset, with and without `remote`. */
    bool remote;
    uint64_t load_offset_block[LILAC_PLAN_MAX_BLOCK_BITS];
    uint64_t load_block_step[LILAC_PLAN_MAX_REGISTER_BITS];
    uint64_t load_block_lane[LILAC_PLAN_MAX_LANE_BITS];
    uint64_t load_block_warp[LILAC_PLAN_MAX_WARP_BITS];
    uint64_t load_block_block[LILAC_PLAN_MAX_BLOCK_BITS];
    /* log2, rounded down, of the number of choices of the segments that reach these wavefronts with
     * these instructions (counted over any order of the vector and any segments whose span
     * intersects the lanes of either side only in 0). */
    uint32_t family_bits;
} lilac_plan_staging;

/* The cost of a plan, summed over all warps of one block. Instructions are counted per warp.
 * Address arithmetic is excluded, because it is computed once outside of loops. */
typedef struct lilac_plan_price {
    uint64_t shuffles, selects, permutes;
    uint64_t stores, loads; /* of shared memory, matrix instructions included */
    uint64_t store_wavefronts,
        load_wavefronts;              /* of these stores and loads, in clocks of shared memory */
    uint64_t store_bytes, load_bytes; /* that active lanes move */
    uint64_t packs;    /* elements extracted from a word or inserted into one individually */
    uint64_t barriers; /* counted per warp */
    uint64_t cycles;   /* estimated clocks of a multiprocessor, times 16 */
} lilac_plan_price;

/* Computes `cycles` from the other fields of a price: the time of the busiest pipe of arch->costs,
 * the part of the other pipes' work that does not overlap, the barriers and the exposed latency.
 * `barrier` is the barrier of the exchange; it is ignored if price->barriers is 0. */
LILAC_API uint64_t lilac_plan_price_cycles(const lilac_plan_price *price,
                                           lilac_plan_barrier barrier, const lilac_arch *arch);

/* Lower bound of the wavefronts of a shared-memory exchange with the instructions of this device.
 * The bound is the minimum over all pairs of vector and matrix instructions that the two layouts
 * allow (section 5.3). A pair contributes its transactions times the conflicts that no memory
 * layout avoids. Such conflicts occur only if one side's vectors are wider and their alignment
 * confines the lanes of the other side to too few banks; by Lemma 9.5 all other pairs are free of
 * conflicts. A transaction that loads from several blocks counts once for each block. If a
 * thread's registers are in the memory of several blocks, or a block loads only a part of what it
 * holds, the bound is the sum of the minima of the two sides, which one plan may not reach.
 *
 * floor_wavefronts assumes that each byte of a block is stored once, that each warp loads each of
 * its bytes once (copies among its lanes counted once), and that all banks are busy: banks ·
 * bank_bytes bytes per clock, and at least one wavefront for the loads of a warp. */
typedef struct lilac_plan_bound {
    uint64_t store_wavefronts, load_wavefronts; /* of the pair with the smallest sum */
    uint64_t floor_wavefronts;
    bool met;      /* the plan reaches the bound; true if it has no shared-memory exchange */
    bool by_price; /* the bound is not met because the instructions that reach it cost more byte
                      permutes or more instructions. If neither is set, the bound is the sum of the
                      minima of the two sides */
} lilac_plan_bound;

typedef enum lilac_plan_kind {
    LILAC_PLAN_NONE,
    LILAC_PLAN_REGISTERS,
    LILAC_PLAN_SHUFFLES,
    LILAC_PLAN_SHARED,
    LILAC_PLAN_CLUSTER
} lilac_plan_kind;

typedef enum lilac_plan_step_kind {
    LILAC_PLAN_STEP_PERMUTATION,
    LILAC_PLAN_STEP_SHUFFLE,
    LILAC_PLAN_STEP_STAGING
} lilac_plan_step_kind;

enum { LILAC_PLAN_MAX_STEPS = 12, LILAC_PLAN_MAX_PERMUTATIONS = 4, LILAC_PLAN_MAX_SHUFFLES = 6 };

typedef struct lilac_plan_conversion {
    lilac_plan_kind kind;
    const lilac_arch *arch;
    uint32_t element_bits;
    uint32_t register_bits, lane_bits, warp_bits, block_bits; /* of the source */
    uint32_t target_register_bits;
    uint32_t step_count;
    struct {
        lilac_plan_step_kind kind;
        uint32_t index; /* into the arrays below; at most one step is a shared-memory exchange */
    } step[LILAC_PLAN_MAX_STEPS];
    lilac_plan_permutation permutation[LILAC_PLAN_MAX_PERMUTATIONS];
    lilac_plan_shuffle shuffle[LILAC_PLAN_MAX_SHUFFLES];
    lilac_plan_staging staging;
    lilac_plan_price price;
    lilac_plan_bound bound;
} lilac_plan_conversion;

/* The strategies that a plan may use. */
typedef enum lilac_plan_strategy {
    LILAC_PLAN_ANY, /* the cheapest plan, hybrid plans included */
    LILAC_PLAN_BY_SHUFFLES,
    LILAC_PLAN_BY_SHARED, /* the cheapest shared-memory exchange */
    LILAC_PLAN_UNSWIZZLED /* an exchange through row-major memory with st and ld: for comparisons */
} lilac_plan_strategy;

typedef struct lilac_plan_options {
    lilac_plan_strategy strategy;
    uint64_t
        scratch_bytes; /* most bytes of an exchange. 0: a quarter of the device's shared memory,
                               or all of it if a quarter is too small even in rounds */
} lilac_plan_options;

/* Computes the plan from `source` to `target`, two distributed layouts (inputs register, lane,
 * warp, block) of one tensor. Elements have 1 (moved as 8), 8, 16, 32, 64 or 128 bits. NULL
 * options: all fields are 0.
 *
 * Refused, with the reason: tensors that differ in rank or shape, other element widths, layouts
 * that are not surjective, numbers of lanes or warps that differ between the layouts or that the
 * device does not support, an exchange that needs more bytes than the options or the device allow
 * even in rounds, a strategy that cannot implement the conversion. */
LILAC_API LILAC_MUST_USE bool lilac_plan_conversion_init(lilac_plan_conversion *result,
                                                         const lilac_layout *source,
                                                         const lilac_layout *target,
                                                         uint32_t element_bits,
                                                         const lilac_plan_options *options,
                                                         const lilac_arch *arch, lilac_reason *why);
/* The same between two layouts as columns. The plan moves the distinct registers of both. */
LILAC_API LILAC_MUST_USE bool lilac_plan_conversion_init_columns(
    lilac_plan_conversion *result, const lilac_layout_columns *source,
    const lilac_layout_columns *target, uint32_t element_bits, const lilac_plan_options *options,
    const lilac_arch *arch, lilac_reason *why);
/* The layout of the registers after the first `steps` steps. */
LILAC_API void lilac_plan_conversion_layout(lilac_layout *result, const lilac_plan_conversion *plan,
                                            const lilac_layout *source, uint32_t steps);
/* Text for people: the kind, the bits that every step moves and why, instructions, wavefronts,
 * bound and price. The second function prints one JSON object on one line. */
LILAC_API void lilac_plan_conversion_explain(lilac_text *out, const lilac_plan_conversion *plan,
                                             const lilac_layout *source,
                                             const lilac_layout *target);
LILAC_API void lilac_plan_conversion_json(lilac_text *out, const lilac_plan_conversion *plan);
/* "none" … "cluster"; "vector", "matrix", "matrix transposed"; "warp" … "cluster". */
LILAC_API const char *lilac_plan_kind_name(lilac_plan_kind kind);
LILAC_API const char *lilac_plan_instruction_name(lilac_plan_instruction instruction);
LILAC_API const char *lilac_plan_barrier_name(lilac_plan_barrier barrier);

/* ---- single steps ------------------------------------------------------------------------- */

/* A shared-memory exchange with the permutations that bring the registers into the order of its
 * accesses and out of it, and its lower bound. */
typedef struct lilac_plan_staging_step {
    lilac_plan_permutation before;
    lilac_plan_staging staging;
    lilac_plan_permutation after;
    lilac_plan_bound bound;
} lilac_plan_staging_step;

/* The cheapest shared-memory exchange from `source` to `target`. Neither layout may have copies
 * among its registers. Refused as lilac_plan_conversion_init refuses. */
LILAC_API LILAC_MUST_USE bool lilac_plan_staging_init(lilac_plan_staging_step *result,
                                                      const lilac_layout *source,
                                                      const lilac_layout *target,
                                                      uint32_t element_bits,
                                                      const lilac_plan_options *options,
                                                      const lilac_arch *arch, lilac_reason *why);
/* Adds the counts of that exchange to the price without constructing it: for a search over many
 * candidates. Leaves out the permutations and `cycles`. False: the exchange is refused. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_staging_estimate(lilac_plan_price *price, lilac_plan_barrier *barrier,
                            const lilac_layout *source, const lilac_layout *target,
                            uint32_t element_bits, const lilac_plan_options *options,
                            const lilac_arch *arch);
/* The exchange within warps from `source` to `target`. Refused when elements leave their warp or
 * when the exchange needs more than 2^LILAC_PLAN_MAX_REGISTER_BITS registers. Neither layout may
 * have copies among its registers; copies among lanes are used as sources. */
LILAC_API LILAC_MUST_USE bool lilac_plan_shuffle_init(lilac_plan_shuffle *result,
                                                      const lilac_layout *source,
                                                      const lilac_layout *target,
                                                      uint32_t element_bits, const lilac_arch *arch,
                                                      lilac_reason *why);
/* Add the counts of a step to a price, for `warps` warps. `cycles` is not changed. */
LILAC_API void lilac_plan_price_permutation(lilac_plan_price *price,
                                            const lilac_plan_permutation *permutation,
                                            uint32_t element_bits, uint32_t warps);
LILAC_API void lilac_plan_price_shuffle(lilac_plan_price *price, const lilac_plan_shuffle *shuffle,
                                        uint32_t element_bits, uint32_t warps);
LILAC_API void lilac_plan_price_staging(lilac_plan_price *price, const lilac_plan_staging *staging,
                                        uint32_t element_bits, uint32_t warps);

/* ---- steps as operations on words --------------------------------------------------------- */

typedef enum lilac_plan_word_kind {
    LILAC_PLAN_WORD_SELECT,  /* predicate ? a : b */
    LILAC_PLAN_WORD_PERMUTE, /* prmt: selects bytes of a (0 … 3) and b (4 … 7) by a selector */
    LILAC_PLAN_WORD_SHUFFLE  /* word a of another lane */
} lilac_plan_word_kind;

/* Word numbers: 0 … inputs - 1 are the input words; operation i computes word inputs + i. */
typedef struct lilac_plan_word_op {
    lilac_plan_word_kind kind;
    uint32_t a, b;
    uint32_t control; /* index of a control */
} lilac_plan_word_op;

/* A thread-dependent value that several operations share. A predicate is the parity of the bits of
 * the thread's index (lane bits, then warp bits) under a mask. */
typedef struct lilac_plan_control {
    /* Select: the predicate of masks[0]. Permute: selector[k], where bit i of k is the parity under
     * masks[i] for i < mask_count (0: a constant selector). */
    uint32_t mask_count;
    uint64_t masks[3];
    uint32_t selector[8];
    /* Shuffle: the source lane is (xor of lane[i] over the thread's bits) ⊕ constant. */
    uint64_t lane[LILAC_PLAN_MAX_THREAD_BITS];
    uint64_t constant;
    bool identity; /* `lane` is the thread's own lane: shfl.bfly by the constant */
} lilac_plan_control;

typedef struct lilac_plan_network {
    uint32_t input_count, op_count, output_count, control_count;
    lilac_plan_word_op *ops;
    uint32_t *outputs; /* word numbers */
    lilac_plan_control *controls;
} lilac_plan_network;

/* Expand a permutation or a shuffle to operations on words. The numbers of selects, permutes and
 * shuffles are those of the price for one warp. Always true; memory comes from the arena. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_expand_permutation(lilac_plan_network *result, lilac_arena *arena,
                              const lilac_plan_permutation *permutation, uint32_t element_bits);
LILAC_API LILAC_MUST_USE bool lilac_plan_expand_shuffle(lilac_plan_network *result,
                                                        lilac_arena *arena,
                                                        const lilac_plan_shuffle *shuffle,
                                                        uint32_t element_bits);
/* Words that hold 2^register_bits elements of a thread. */
LILAC_API uint32_t lilac_plan_words(uint32_t register_bits, uint32_t element_bits);

LILAC_END

#endif
