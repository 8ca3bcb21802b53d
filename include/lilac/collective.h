/* collective: plans of the operations that combine or select elements of several threads.
 *
 * A reduction, a scan, a gather or a histogram classifies the input bits of a layout by their
 * effect along an axis, and moves elements between threads accordingly:
 *
 *     class of a bit            reduction                     scan                  gather
 *     ------------------------  ----------------------------  --------------------  ----------------
 *     register, along the axis  combined in the thread        in the thread         selected by prmt
 *     lane, along the axis      butterflies: shfl.bfly        shfl.idx              shfl.idx
 *     warp, along the axis      partial results in shared     totals in shared      elements in
 *                               memory                        memory                shared memory
 *     off the axis              another element of the result another line          known lane
 *     replicated                not combined again            computed again        one copy stored
 *
 * A plan is computed once for an operation. It contains these decisions and their costs, and the
 * lowering executes it. The engine compares the prices of the plans of the candidate layouts.
 *
 * Plans are values. Users: engine, lower, tools. */
#ifndef LILAC_COLLECTIVE_H
#define LILAC_COLLECTIVE_H

#include <lilac/plan.h>

LILAC_BEGIN

/* ---- layouts as columns ------------------------------------------------------------------- */

/* The columns of a layout on a target. Refused as lilac_layout_columns_init refuses. */
LILAC_API LILAC_MUST_USE bool lilac_plan_columns_init(lilac_layout_columns *result,
                                                      const lilac_layout *layout,
                                                      const lilac_target *target,
                                                      lilac_reason *why);

/* ---- combine regions ---------------------------------------------------------------------- */

/* One of the values that a reduction or a scan combines at once. */
typedef struct lilac_plan_operand {
    uint32_t element_bits; /* 1 (stored as 8), 8, 16, 32 or 64 */
    bool commutative; /* the region computes it by one commutative operation of its own elements, so
                         both lanes of a butterfly get the same bits */
} lilac_plan_operand;

typedef struct lilac_plan_region {
    uint32_t count; /* operands of the operation */
    const lilac_plan_operand *operands;
    uint32_t instructions;  /* that combine two elements of all operands */
    bool reverse;           /* a scan begins at the last element of the axis */
    uint64_t scratch_bytes; /* lilac_plan_options.scratch_bytes of the plan's conversions */
} lilac_plan_region;

/* The shared memory of 2^index_bits elements of each operand: one operand after another, each
 * aligned to 16 bytes. Returns the bytes of all; starts[i] (NULL: not needed) is where operand i
 * begins. */
LILAC_API uint64_t lilac_plan_region_bytes(const lilac_plan_region *region, uint32_t index_bits,
                                           uint32_t *starts);

/* ---- reductions --------------------------------------------------------------------------- */

enum {
    LILAC_PLAN_MAX_COMBINED = 16, /* register bits of a kind, and thread bits, of a reduction */
    LILAC_PLAN_SLOT = 64          /* above the number of any register bit */
};

/* The plan of tt.reduce. A *group* is a setting of the register bits that lead to other elements of
 * the result. After the registers and the lanes are combined, a thread has one element for each
 * group. A *slot* is one of the partial results of an element in shared memory.
 *
 *     fold registers ─▶ butterflies ─▶ [ store partials ‖ barrier ‖ load partials ─▶ combine ]
 *                    ─▶ [ conversion to the threads of the result ]
 *
 * Bits of `fold_masks`, `group_register`, `store_group` and `load_register` number register bits,
 * those of `lane_masks` lane bits, those of `slot_thread` thread bits. */
typedef struct lilac_plan_reduce {
    const lilac_arch *arch;
    lilac_plan_region region; /* its operands belong to the caller */
    uint32_t axis, num_warps;
    lilac_layout_columns source, result; /* of a scalar result: rank 0 */
    bool scalar;
    uint32_t kept_bits; /* of a coordinate of the result */
    /* Registers. `group_major`: all registers of a group are combined before those of the next. */
    uint32_t group_bits, group_register[LILAC_PLAN_MAX_COMBINED];
    uint32_t fold_bits, fold_masks[LILAC_PLAN_MAX_COMBINED];
    bool group_major;
    /* Lanes: butterfly i exchanges lanes whose numbers differ by lane_masks[i]; they are executed
     * from the last to the first. In the first `give_steps` of them each lane sends the half of its
     * groups with one setting of bit give_group[] and keeps the other half. */
    uint32_t lane_steps, lane_masks[LILAC_PLAN_MAX_COMBINED], lane_pivots[LILAC_PLAN_MAX_COMBINED];
    uint32_t give_steps, give_group[LILAC_PLAN_MAX_COMBINED];
    /* Warps, and lanes that only another register cancels. 0 slot bits: no shared memory. */
    uint32_t slot_bits, slot_thread[LILAC_PLAN_MAX_COMBINED];
    uint32_t idle_threads; /* bits that are 0 in the threads that store */
    /* The index of a partial in memory is linear in its element and its slot: the xor of
     * element_place[i] over the set bits of the element's coordinate in the result, and of
     * 1 << slot_place[i] over those of the slot. store_thread and load_thread are its columns for
     * the bits of the thread that stores it and of the one that loads it. */
    uint64_t element_place[LILAC_LAYOUT_MAX_BITS];
    uint32_t slot_place[LILAC_PLAN_MAX_COMBINED];
    uint64_t store_thread[LILAC_LAYOUT_MAX_BITS], load_thread[LILAC_LAYOUT_MAX_BITS];
    uint32_t store_bits, store_group[4]; /* the bits of a stored vector: bits of groups */
    uint32_t load_bits,
        load_register[4]; /* of a loaded one: registers, or LILAC_PLAN_SLOT + slot */
    /* Not 0: the lanes whose numbers differ in these bits need the same elements. Each loads one
     * partial of them, and butterflies combine the partials. */
    uint32_t loading_lanes;
    /* Set: each thread finishes the elements of its `share`, which a conversion moves to the
     * result. Otherwise each thread finishes the elements of the result that it holds. */
    bool shares;
    lilac_layout_columns share;
    /* Without shared memory: register bit i of the result is the group result_group[i]; or a
     * conversion (`moves`) leads from the groups to the result. */
    uint32_t result_group[LILAC_LAYOUT_MAX_BITS];
    bool moves;
    uint64_t bytes; /* of shared memory, without that of the conversions */
    /* The reduction's own costs, without the conversions to the result. `combines`: executions of
     * the region by a warp, summed over all warps; price.cycles contains them. */
    lilac_plan_price price;
    uint64_t combines;
} lilac_plan_reduce;

/* Plans the reduction of a tensor in the layout `source` along a dimension, with its results in the
 * layout `result` (NULL: scalars). `region` may have any number of operands, which belong to the
 * caller and outlive the plan. The blocks of `result` hold the elements that those of `source` do.
 * Refused: an axis that is distributed over the blocks of a cluster; layouts that
 * lilac_plan_columns_init refuses. Cost: a few eliminations over the columns. */
LILAC_API LILAC_MUST_USE bool lilac_plan_reduce_init(lilac_plan_reduce *plan,
                                                     const lilac_layout *source,
                                                     const lilac_layout *result, uint32_t axis,
                                                     const lilac_plan_region *region,
                                                     const lilac_target *target, lilac_reason *why);
/* The same from the columns of both layouts on the target (lilac_plan_columns_init). */
LILAC_API LILAC_MUST_USE bool lilac_plan_reduce_init_columns(
    lilac_plan_reduce *plan, const lilac_layout_columns *source, const lilac_layout_columns *result,
    uint32_t axis, const lilac_plan_region *region, const lilac_target *target, lilac_reason *why);
/* The part of a coordinate of the source that the result keeps: its coordinate there. */
LILAC_API uint64_t lilac_plan_reduce_kept(const lilac_plan_reduce *plan, uint64_t coordinate);
/* The index part of an element of the result. */
LILAC_API uint64_t lilac_plan_reduce_place(const lilac_plan_reduce *plan, uint64_t element);
/* The columns of the elements that each thread finishes: what it loads from shared memory, or its
 * groups where no partials are stored. False: each thread finishes the scalar. */
LILAC_API bool lilac_plan_reduce_finished(const lilac_plan_reduce *plan,
                                          lilac_layout_columns *columns);
/* The conversion of result number `operand` from the elements that each thread finishes to the
 * result's layout, where the plan `moves` or `shares`. Only distinct registers are converted. */
LILAC_API LILAC_MUST_USE bool lilac_plan_reduce_conversion(lilac_plan_conversion *result,
                                                           const lilac_plan_reduce *plan,
                                                           uint32_t operand, lilac_reason *why);
/* The costs of the whole operation: the reduction's own and those of the conversions of all
 * results. Refused when a conversion is. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_reduce_price(lilac_plan_price *result, const lilac_plan_reduce *plan, lilac_reason *why);
/* Lower bound of the wavefronts of this plan's stores and loads in any order of memory: one for
 * each transaction, and one for each 128 bytes (all banks) of the different bytes of an access. */
LILAC_API void lilac_plan_reduce_bound(lilac_plan_bound *result, const lilac_plan_reduce *plan);
/* Text for people: the class of every bit, the steps, the memory, the totals. The second function
 * prints one JSON object on one line. */
LILAC_API void lilac_plan_reduce_explain(lilac_text *out, const lilac_plan_reduce *plan);
LILAC_API void lilac_plan_reduce_json(lilac_text *out, const lilac_plan_reduce *plan);

/* ---- scans -------------------------------------------------------------------------------- */

enum { LILAC_PLAN_MAX_SCAN = 32 }; /* bits of the axis */

typedef enum lilac_plan_scan_kind {
    LILAC_PLAN_SCAN_REGISTERS,
    LILAC_PLAN_SCAN_LANES,
    LILAC_PLAN_SCAN_MEMORY
} lilac_plan_scan_kind;

/* Consecutive bits of the axis of one kind. The items of a run are numbered by the register bits
 * that no run below it uses. */
typedef struct lilac_plan_scan_run {
    lilac_plan_scan_kind kind;
    uint32_t count;
    uint8_t place[LILAC_PLAN_MAX_SCAN]; /* the register or thread bits, lowest axis bit first */
    uint32_t in_threads;                /* mask of those that are thread bits */
    uint32_t items;                     /* mask of the register bits that number items */
} lilac_plan_scan_run;

/* The plan of tt.scan. The bits of the axis, lowest first, form runs of registers and lanes; from
 * the first warp bit up, one run in shared memory:
 *
 *     blocked, 4 registers a thread     r r l l l l l r        memory
 *                                       └0┘ └───1───┘ 2      w w r
 *
 * Each run is scanned upwards without what is before its blocks, and passes the totals of its
 * blocks to the next; downwards each run receives the prefix before each of its blocks. */
typedef struct lilac_plan_scan {
    const lilac_arch *arch;
    lilac_plan_region region; /* its operands belong to the caller */
    uint32_t axis, num_warps;
    lilac_layout_columns source, result;
    /* The layout that is scanned: every column along the axis is one unit vector that no other
     * column has, and the lanes' are below the warps'. */
    lilac_layout_columns scanned;
    bool moves_operands; /* `scanned` is not the operands' layout: a conversion leads to it */
    bool moves_results;  /* … from it to the results */
    uint32_t run_count;
    lilac_plan_scan_run runs[LILAC_PLAN_MAX_SCAN];
    uint8_t line_place
        [LILAC_LAYOUT_MAX_BITS]; /* of each bit of a line's number, in the memory's order */
    uint64_t bytes;              /* of shared memory, without that of the conversions */
    /* Own costs, without the conversions; combines as in lilac_plan_reduce. */
    lilac_plan_price price;
    uint64_t combines;
} lilac_plan_scan;

/* Plans the scan of a tensor in the layout `source` along a dimension, with results in `result`;
 * all operands have one layout, and so have all results. Refused: an axis of more than
 * LILAC_PLAN_MAX_SCAN bits, or that is distributed over the blocks of a cluster; layouts that
 * lilac_plan_columns_init refuses. */
LILAC_API LILAC_MUST_USE bool lilac_plan_scan_init(lilac_plan_scan *plan,
                                                   const lilac_layout *source,
                                                   const lilac_layout *result, uint32_t axis,
                                                   const lilac_plan_region *region,
                                                   const lilac_target *target, lilac_reason *why);
/* The same from the columns of both layouts on the target (lilac_plan_columns_init). */
LILAC_API LILAC_MUST_USE bool lilac_plan_scan_init_columns(
    lilac_plan_scan *plan, const lilac_layout_columns *source, const lilac_layout_columns *result,
    uint32_t axis, const lilac_plan_region *region, const lilac_target *target, lilac_reason *why);
/* The index of a block's total in the memory of an operand. A line is one setting of the coordinates
 * off the axis. A thread loads the totals of a line in vectors of 2^v; equal vectors of all lines are
 * contiguous, and the lines of a warp's lanes come first, so that lanes access different banks:
 *
 *     | low v bits of the block | line: bits of lanes, then others | high bits of the block | */
LILAC_API uint64_t lilac_plan_scan_slot(const lilac_plan_scan *plan, uint32_t operand,
                                        uint64_t coordinate);
/* The index of the first total of vector number `vector` of the coordinate's line. */
LILAC_API uint64_t lilac_plan_scan_vector(const lilac_plan_scan *plan, uint32_t operand,
                                          uint64_t coordinate, uint32_t vector);
/* log2 of the totals that one load accesses. */
LILAC_API uint32_t lilac_plan_scan_vector_bits(const lilac_plan_scan *plan, uint32_t operand);
/* Mask of the lane bits of the runs below the last: of a block, its last lane stores the total. */
LILAC_API uint32_t lilac_plan_scan_lower_lanes(const lilac_plan_scan *plan);
/* The conversions of operand number `operand` to the scanned layout, where the plan moves_operands,
 * and from it to the result's layout, where the plan moves_results. Only distinct registers are
 * converted. */
LILAC_API LILAC_MUST_USE bool lilac_plan_scan_operand_conversion(lilac_plan_conversion *result,
                                                                 const lilac_plan_scan *plan,
                                                                 uint32_t operand,
                                                                 lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_plan_scan_result_conversion(lilac_plan_conversion *result,
                                                                const lilac_plan_scan *plan,
                                                                uint32_t operand,
                                                                lilac_reason *why);
/* The costs of the whole operation: the scan's own and those of the conversions of all operands and
 * results. Refused when a conversion is. */
LILAC_API LILAC_MUST_USE bool lilac_plan_scan_price(lilac_plan_price *result,
                                                    const lilac_plan_scan *plan, lilac_reason *why);
/* As lilac_plan_reduce_bound, _explain and _json. */
LILAC_API void lilac_plan_scan_bound(lilac_plan_bound *result, const lilac_plan_scan *plan);
LILAC_API void lilac_plan_scan_explain(lilac_text *out, const lilac_plan_scan *plan);
LILAC_API void lilac_plan_scan_json(lilac_text *out, const lilac_plan_scan *plan);

/* ---- gathers ------------------------------------------------------------------------------ */

/* The work of tt.gather in a layout, per thread, without copies. */
typedef struct lilac_plan_gather_work {
    uint32_t element_bits, num_warps;
    uint32_t own, results; /* registers of the source and of the result */
    uint32_t varying_bits; /* log2 of the source registers that an index may select */
    bool moves;            /* an index may select other lanes */
} lilac_plan_gather_work;

/* log2 of the selectable elements that share one word. */
LILAC_API uint32_t lilac_plan_gather_within(const lilac_plan_gather_work *work);
/* The price of the gather by shuffles and permutes (*price: its counts), and by shared memory, for
 * all warps. The caller counts the stores and loads of shared memory in `accesses`. Both include
 * the cost of spilled registers. */
LILAC_API uint64_t lilac_plan_price_gather_shuffles(lilac_plan_price *price,
                                                    const lilac_plan_gather_work *work,
                                                    const lilac_arch *arch);
LILAC_API uint64_t lilac_plan_price_gather_memory(const lilac_plan_gather_work *work,
                                                  const lilac_plan_price *accesses,
                                                  lilac_plan_barrier barrier,
                                                  const lilac_arch *arch);

/* How a gather reads elements of other threads. */
typedef enum lilac_plan_gather_kind {
    LILAC_PLAN_GATHER_SHUFFLES,
    LILAC_PLAN_GATHER_MEMORY,
    LILAC_PLAN_GATHER_ROUNDS /* through memory, one part of the source at a time */
} lilac_plan_gather_kind;

/* The plan of tt.gather. Register r of thread t needs the element that is off the axis where r and
 * t say, and along the axis where the index says. Its place is linear in all three: a register and
 * a lane of the source, or an offset in memory.
 *
 * Places in registers and lanes: the mask of the source's distinct registers, numbered without
 * gaps, in the low bits; from LILAC_PLAN_LANE_MARK up the bits of the lane's number that change. */
enum { LILAC_PLAN_LANE_MARK = 32 };

typedef struct lilac_plan_gather {
    const lilac_arch *arch;
    lilac_plan_gather_kind kind;
    lilac_plan_gather_work work;
    uint32_t axis;
    lilac_layout_columns source, result; /* the index has the layout of the result */
    /* Every element is in the warp that needs it: found by lanes, and no warp bit holds copies. */
    bool by_lanes, in_warp;
    uint64_t of_register[LILAC_LAYOUT_MAX_BITS], of_thread[LILAC_LAYOUT_MAX_BITS];
    uint64_t of_index[LILAC_LAYOUT_MAX_BITS];
    uint32_t varying; /* mask of the numbered registers that the thread or the index select */
    /* Memory. Coordinates of the source whose bits are in `rounds` differ in the number of the
     * round; `stored`: the register bits of the source whose settings are stored in one round. */
    uint64_t rounds;
    uint32_t stored;
    lilac_layout memory;
    lilac_plan_access store;
    /* The offset of an element, in elements, is the xor of result_register[i], result_thread[i] and
     * index_offset[i] over the set bits of r, t and the index. */
    uint64_t result_register[LILAC_LAYOUT_MAX_BITS], result_thread[LILAC_LAYOUT_MAX_BITS];
    uint64_t index_offset[LILAC_LAYOUT_MAX_BITS];
    /* The number of the round in which an element is, by the same three. */
    uint32_t round_register[LILAC_LAYOUT_MAX_BITS], round_thread[LILAC_LAYOUT_MAX_BITS];
    uint32_t round_index[LILAC_LAYOUT_MAX_BITS];
    uint64_t bytes;             /* of shared memory; 0: shuffles */
    lilac_plan_barrier barrier; /* between the stores and the loads */
    /* Loads whose address depends on the index are expected to conflict as random ones do: the
     * wavefronts of such loads are an expectation, those of all other accesses are exact. */
    bool exact;
    lilac_plan_price price;
} lilac_plan_gather;

typedef struct lilac_plan_gather_options {
    uint32_t axis, element_bits;
    lilac_plan_strategy strategy;
    uint64_t scratch_bytes; /* most bytes of shared memory; 0: all of the device's */
} lilac_plan_gather_options;

/* Plans the gather from a tensor in the layout `source` along a dimension, with the index and the
 * result in the layout `result`.
 *
 * Refused, with the reason: layouts of different rank; a dimension off the axis that is larger in
 * the result; a source that is distributed over the blocks of a cluster; shuffles, where an index
 * may select an element that only another warp holds; a source that does not fit the shared memory
 * and that no register bits split into smaller rounds (then plan->bytes is what it needs,
 * otherwise 0). */
LILAC_API LILAC_MUST_USE bool lilac_plan_gather_init(lilac_plan_gather *plan,
                                                     const lilac_layout *source,
                                                     const lilac_layout *result,
                                                     const lilac_plan_gather_options *options,
                                                     const lilac_target *target, lilac_reason *why);
/* The same from the columns of both layouts on the target (lilac_plan_columns_init). */
LILAC_API LILAC_MUST_USE bool lilac_plan_gather_init_columns(
    lilac_plan_gather *plan, const lilac_layout_columns *source, const lilac_layout_columns *result,
    const lilac_plan_gather_options *options, const lilac_target *target, lilac_reason *why);
/* The number of the round that a coordinate of the source is stored in. */
LILAC_API uint32_t lilac_plan_gather_round(const lilac_plan_gather *plan, uint64_t coordinate);
/* As lilac_plan_reduce_bound, _explain and _json. Loads of random addresses have no better bound
 * than one wavefront for a transaction. */
LILAC_API void lilac_plan_gather_bound(lilac_plan_bound *result, const lilac_plan_gather *plan);
LILAC_API void lilac_plan_gather_explain(lilac_text *out, const lilac_plan_gather *plan);
LILAC_API void lilac_plan_gather_json(lilac_text *out, const lilac_plan_gather *plan);

/* ---- histograms --------------------------------------------------------------------------- */

/* The plan of tt.histogram: counts in shared memory.
 *
 *     clear the counts ‖ barrier ‖ one atomic addition for each element ‖ barrier ‖ load the counts */
typedef struct lilac_plan_histogram {
    const lilac_arch *arch;
    uint32_t num_warps, bins;
    lilac_layout_columns numbers, result;
    /* Threads 0 … clear_threads - 1 clear the counts: each stores clear_vector counts at a time,
     * from its index times clear_vector on, in steps of the counts that all threads clear. */
    uint32_t clear_threads, clear_vector;
    uint64_t bytes;
    /* Atomic additions of all warps if every element is counted; one holder of each element counts
     * it. Their wavefronts are expected ones, of random numbers: each reads and writes a word. */
    uint64_t atomics, atomic_wavefronts;
    lilac_plan_price price; /* price.cycles contains the atomics */
} lilac_plan_histogram;

enum { LILAC_PLAN_MAX_BIN_BITS = 16 };

/* Plans the histogram of numbers in the layout `numbers` with as many bins as `result`, a layout
 * of one dimension, has elements. Refused, with the reason: numbers that are distributed over the
 * blocks of a cluster; more than 2^LILAC_PLAN_MAX_BIN_BITS bins (then plan->bytes is what they
 * need, otherwise 0). */
LILAC_API LILAC_MUST_USE bool lilac_plan_histogram_init(lilac_plan_histogram *plan,
                                                        const lilac_layout *numbers,
                                                        const lilac_layout *result,
                                                        const lilac_target *target,
                                                        lilac_reason *why);
/* The same from the columns of both layouts on the target (lilac_plan_columns_init). */
LILAC_API LILAC_MUST_USE bool lilac_plan_histogram_init_columns(lilac_plan_histogram *plan,
                                                                const lilac_layout_columns *numbers,
                                                                const lilac_layout_columns *result,
                                                                const lilac_target *target,
                                                                lilac_reason *why);
/* As lilac_plan_reduce_bound, _explain and _json; without the atomics. */
LILAC_API void lilac_plan_histogram_bound(lilac_plan_bound *result,
                                          const lilac_plan_histogram *plan);
LILAC_API void lilac_plan_histogram_explain(lilac_text *out, const lilac_plan_histogram *plan);
LILAC_API void lilac_plan_histogram_json(lilac_text *out, const lilac_plan_histogram *plan);

LILAC_END

#endif
