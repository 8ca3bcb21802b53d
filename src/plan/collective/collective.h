/* Declarations that the plans of collective operations share: the cost of accesses whose addresses
 * are linear in the thread, of shuffles of rows, and the text of totals. */
#ifndef LILAC_PLAN_COLLECTIVE_INTERNAL_H
#define LILAC_PLAN_COLLECTIVE_INTERNAL_H

#include <lilac/bits.h>
#include <lilac/collective.h>
#include <lilac/f2.h>

/* The part of a coordinate off the axis, with the dimensions above the axis moved down. */
uint64_t lilac_plan_columns_off(const lilac_layout_columns *columns, uint32_t axis,
                                uint64_t coordinate);
/* The coordinate along the axis. */
uint64_t lilac_plan_columns_along(const lilac_layout_columns *columns, uint32_t axis,
                                  uint64_t coordinate);

/* Are the elements along the axis in one block? Refused otherwise; `plan`: what it is, "a scan". */
bool lilac_plan_check_axis(const lilac_layout_columns *columns, uint32_t axis, const char *plan,
                           lilac_reason *why);

/* Bytes of an element in shared memory. */
static inline uint32_t lilac_plan_stored_bytes(uint32_t element_bits) {
    return element_bits < 8 ? 1 : element_bits / 8;
}

/* 32-bit words that a shuffle of `count` elements moves: two for an element of 64 bits, one for two
 * of 16 bits where their number is even, one for any other. */
uint64_t lilac_plan_row_words(uint32_t element_bits, uint64_t count);
/* Adds the shuffles of `count` elements of one operand by `warps` warps, and the elements that this
 * packs into words and extracts from them. */
void lilac_plan_add_shuffles(lilac_plan_price *price, uint32_t element_bits, uint64_t count,
                             uint32_t warps);
/* Adds selects of `count` elements by `warps` warps; an element of 64 bits takes two. */
void lilac_plan_add_selects(lilac_plan_price *price, uint32_t element_bits, uint64_t count,
                            uint32_t warps);

/* Accesses of shared memory by all threads but those whose index has a bit of `idle`. Lane l of a
 * warp accesses `bytes` bytes at the xor of lanes[i] over the set bits of l. */
typedef struct lilac_plan_linear_access {
    const lilac_arch *arch;
    uint32_t bytes, lane_bits, warp_bits;
    const uint64_t *lanes; /* in bytes */
    uint32_t idle;         /* mask of lane bits, then warp bits */
} lilac_plan_linear_access;

/* Add `count` such accesses of each warp to a price. Transactions of lanes that load the same are
 * merged (lilac_plan_access_as_load). */
void lilac_plan_add_stores(lilac_plan_price *price, const lilac_plan_linear_access *access,
                           uint64_t count);
void lilac_plan_add_loads(lilac_plan_price *price, const lilac_plan_linear_access *access,
                          uint64_t count);
/* The fewest wavefronts that `count` such accesses of each warp take wherever the elements are: one
 * for each transaction, and one for the bytes of all banks of what the lanes access. */
uint64_t lilac_plan_least_wavefronts(const lilac_plan_linear_access *access, uint64_t count,
                                     bool load);

/* How all warps store and load the elements of one operand in an exchange through shared memory. */
typedef struct lilac_plan_exchange {
    uint64_t store_lanes[LILAC_PLAN_MAX_LANE_BITS], load_lanes[LILAC_PLAN_MAX_LANE_BITS];
    lilac_plan_linear_access store, load; /* their lanes are these */
    uint64_t stores, loads;               /* of a warp */
} lilac_plan_exchange;

/* Adds the fewest wavefronts of an exchange to a bound. */
void lilac_plan_bound_add(lilac_plan_bound *bound, const lilac_plan_exchange *exchange);
/* Does the price meet the bound? Sets the bound's other fields. */
void lilac_plan_bound_compare(lilac_plan_bound *bound, const lilac_plan_price *price);

/* The barrier of all threads of a block: a block of one warp needs only the warp's. */
static inline lilac_plan_barrier lilac_plan_block_barrier(uint32_t num_warps) {
    return num_warps == 1 ? LILAC_PLAN_BARRIER_WARP : LILAC_PLAN_BARRIER_BLOCK;
}

/* The conversion of one operand of a region between two layouts of one tensor. */
bool lilac_plan_operand_conversion(lilac_plan_conversion *result,
                                   const lilac_layout_columns *source,
                                   const lilac_layout_columns *target,
                                   const lilac_plan_region *region, uint32_t operand,
                                   const lilac_arch *arch, lilac_reason *why);
/* Adds the costs of the conversions of all operands of a region between two layouts of one tensor.
 * Refused when a conversion is. */
bool lilac_plan_add_conversions(lilac_plan_price *price, const lilac_layout_columns *source,
                                const lilac_layout_columns *target, const lilac_plan_region *region,
                                const lilac_arch *arch, lilac_reason *why);

/* ---- explanations ------------------------------------------------------------------------- */

/* Prints a bit of the layout's input: "register 3", "lane 0", "warp 1". `bit` counts register
 * bits, then thread bits. */
void lilac_plan_put_bit(lilac_text *out, const lilac_layout_columns *columns, uint32_t bit);
/* Prints one line of the table of bits: the bit and its class. */
void lilac_plan_put_class(lilac_text *out, const lilac_layout_columns *columns, uint32_t bit,
                          const char *what);
/* The totals with which every explanation ends, as text and as members of an object. `bytes`: of
 * shared memory. */
void lilac_plan_explain_totals(lilac_text *out, const lilac_plan_price *price,
                               const lilac_plan_bound *bound, uint64_t bytes);
void lilac_plan_json_totals(lilac_text *out, const lilac_plan_price *price,
                            const lilac_plan_bound *bound, uint64_t bytes);

#endif
