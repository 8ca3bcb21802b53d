/* Declarations that the files of tt.scan share. They execute the plan of a scan
 * (lilac/collective.h).
 *
 *   scan_runs.c     the runs of registers and lanes
 *   scan_memory.c   the run in shared memory
 *   scan.c          the walk over the runs, upwards and downwards */
#ifndef LILAC_LOWER_SCAN_H
#define LILAC_LOWER_SCAN_H

#include "coordinates.h"

/* Values of `valid` where it is known at compile time whether an item has a prefix. */
#define LILAC_SCAN_NEVER  0
#define LILAC_SCAN_ALWAYS (~(lilac_simt_value)0)

typedef lilac_plan_scan_run lilac_scan_run;

typedef struct lilac_scan {
    lilac_lowering *l;
    const lilac_tile_op *op;
    const lilac_plan_scan *plan;
    const lilac_lower_view *view; /* the layout that is scanned */
    const lilac_simt_type *types;
    uint32_t operands;
} lilac_scan;

/* The items of one run: a list of elements, each with one value for each operand. */
typedef struct lilac_scan_level {
    uint32_t count;
    lilac_simt_value *values;
    lilac_simt_value *scanned;
} lilac_scan_level;

/* The prefix before each item, and a predicate: does the item have a prefix? */
typedef struct lilac_scan_prefix {
    lilac_simt_value *values;
    lilac_simt_value *valid;
} lilac_scan_prefix;

/* ---- runs of registers and lanes (scan_runs.c) ------------------------------------------- */

/* The bit of an item's number that a register bit corresponds to. */
uint32_t lilac_scan_item_bit(const lilac_scan_run *r, uint32_t where);
/* The bits of an item's number that a run of registers uses, by position in the run; in a reversed
 * scan position 0 is the last register. */
uint32_t lilac_scan_item_of(const lilac_scan *s, const lilac_scan_run *r, uint32_t position);
/* The bits of an item's number that a run of registers uses. */
uint32_t lilac_scan_run_items(const lilac_scan_run *r);
/* The number of the item in the next run that represents the block of `item`. */
uint32_t lilac_scan_block_of(const lilac_scan_run *r, uint32_t item);
/* The bits of the thread's index in this run. */
uint32_t lilac_scan_thread_mask(const lilac_scan_run *r);
/* Allocates `count` elements of all operands. */
lilac_simt_value *lilac_scan_elements(const lilac_scan *s, uint32_t count);
/* A constant of type i32. */
lilac_simt_value lilac_scan_constant(const lilac_scan *s, uint32_t number);
/* Builds an operation on `a` and a constant, of type i32. */
lilac_simt_value lilac_scan_bits_of(const lilac_scan *s, lilac_simt_opcode code, lilac_simt_value a,
                                    uint32_t mask);
/* The index of the lane or of the thread, as `code` says. */
lilac_simt_value lilac_scan_index_of(const lilac_scan *s, lilac_simt_opcode code);
/* A predicate: do any of these bits of the thread's index differ from those of the first
 * position of the scan? */
lilac_simt_value lilac_scan_is_later(const lilac_scan *s, uint32_t mask);
/* The lane whose bits in the mask are those of the last position of the scan. */
lilac_simt_value lilac_scan_last_lane(const lilac_scan *s, lilac_simt_value lane, uint32_t mask);
/* Stores into `to` the combination of `before` and `own`, or `own` if `valid` is false. */
bool lilac_scan_put_before(const lilac_scan *s, const lilac_simt_value *before,
                           lilac_simt_value valid, const lilac_simt_value *own,
                           lilac_simt_value *to);
/* Shuffles elements of all operands. */
void lilac_scan_shuffle_all(const lilac_scan *s, lilac_simt_shuffle kind, lilac_simt_value lane,
                            uint32_t count, const lilac_simt_value *from, lilac_simt_value *to);
/* Scans each of the thread's blocks separately. */
bool lilac_scan_registers(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at);
/* Combines the prefix before each block with the block's items. If a predicate says whether the
 * prefix exists, the block is scanned again from its first item on, which needs one select only. */
bool lilac_scan_finish_registers(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at,
                                 const lilac_scan_prefix *before);
/* Computes the prefix before each item of a run of registers. */
void lilac_scan_before_registers(const lilac_scan *s, const lilac_scan_run *r,
                                 const lilac_scan_level *at, const lilac_scan_prefix *before,
                                 lilac_scan_prefix *result);
/* Scans each block of lanes separately. */
bool lilac_scan_lanes(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at);
/* Combines the prefix before each item with the item. */
bool lilac_scan_finish_lanes(const lilac_scan *s, lilac_scan_level *at,
                             const lilac_scan_prefix *before);
/* Computes the prefix before each item of a run of lanes. */
void lilac_scan_before_lanes(const lilac_scan *s, const lilac_scan_run *r,
                             const lilac_scan_level *at, const lilac_scan_prefix *before,
                             lilac_scan_prefix *result);

/* ---- the run in memory (scan_memory.c) --------------------------------------------------- */

/* Computes the prefix before each item of the run in memory, which is the last run. */
bool lilac_scan_before_memory(const lilac_scan *s, const lilac_scan_run *r,
                              const lilac_scan_level *at, lilac_scan_prefix *result);

#endif
