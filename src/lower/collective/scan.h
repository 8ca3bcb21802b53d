/* What the files of tt.scan share: they execute the plan of a scan (lilac/collective.h).
 *
 *   scan_runs.c     the runs of registers and lanes
 *   scan_memory.c   the run that goes through memory
 *   scan.c          from run to run, up and down */
#ifndef LILAC_LOWER_SCAN_H
#define LILAC_LOWER_SCAN_H

#include "coordinates.h"

/* Instead of a predicate: whether anything stands before an item. */
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

/* One level of the way up: a list of elements, `operands` values each. */
typedef struct lilac_scan_level {
    uint32_t count;
    lilac_simt_value *values;
    lilac_simt_value *scanned;
} lilac_scan_level;

/* What stands before each item, and whether it does. */
typedef struct lilac_scan_prefix {
    lilac_simt_value *values;
    lilac_simt_value *valid;
} lilac_scan_prefix;

/* ---- runs of registers and lanes (scan_runs.c) ------------------------------------------- */

/* Where a register bit stands in the number of an item. */
uint32_t lilac_scan_item_bit(const lilac_scan_run *r, uint32_t where);
/* The bits of an item's number that a run of registers uses, by position in the run; in a reversed
 * scan position 0 is the last register. */
uint32_t lilac_scan_item_of(const lilac_scan *s, const lilac_scan_run *r, uint32_t position);
/* The bits of an item's number that a run of registers uses. */
uint32_t lilac_scan_run_items(const lilac_scan_run *r);
/* The item of the next run that a block of this one is. */
uint32_t lilac_scan_block_of(const lilac_scan_run *r, uint32_t item);
/* The bits of the thread's index in this run. */
uint32_t lilac_scan_thread_mask(const lilac_scan_run *r);
/* Room for this many elements, of all operands. */
lilac_simt_value *lilac_scan_elements(const lilac_scan *s, uint32_t count);
/* Of i32. */
lilac_simt_value lilac_scan_constant(const lilac_scan *s, uint32_t number);
/* One operation of i32 with a constant. */
lilac_simt_value lilac_scan_bits_of(const lilac_scan *s, lilac_simt_opcode code, lilac_simt_value a,
                                    uint32_t mask);
/* The lane or the thread. */
lilac_simt_value lilac_scan_index_of(const lilac_scan *s, lilac_simt_opcode code);
/* Are any of these bits of the thread's index other than in the first place of the scan? */
lilac_simt_value lilac_scan_is_later(const lilac_scan *s, uint32_t mask);
/* The lane with these bits in the last place of the scan. */
lilac_simt_value lilac_scan_last_lane(const lilac_scan *s, lilac_simt_value lane, uint32_t mask);
/* to = before combined with own, or own where `valid` is false. */
bool lilac_scan_put_before(const lilac_scan *s, const lilac_simt_value *before,
                           lilac_simt_value valid, const lilac_simt_value *own,
                           lilac_simt_value *to);
/* Shuffles elements of all operands. */
void lilac_scan_shuffle_all(const lilac_scan *s, lilac_simt_shuffle kind, lilac_simt_value lane,
                            uint32_t count, const lilac_simt_value *from, lilac_simt_value *to);
/* Scans each of the thread's blocks by itself. */
bool lilac_scan_registers(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at);
/* With what stands before the blocks: all items whole. Where a predicate says whether anything
 * does, the block is scanned once more from its first item on, which takes one select. */
bool lilac_scan_finish_registers(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at,
                                 const lilac_scan_prefix *before);
/* What stands before each item of a run of registers. */
void lilac_scan_before_registers(const lilac_scan *s, const lilac_scan_run *r,
                                 const lilac_scan_level *at, const lilac_scan_prefix *before,
                                 lilac_scan_prefix *result);
/* Scans each block of lanes by itself. */
bool lilac_scan_lanes(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at);
/* With what stands before each item: all items whole. */
bool lilac_scan_finish_lanes(const lilac_scan *s, lilac_scan_level *at,
                             const lilac_scan_prefix *before);
/* What stands before each item of a run of lanes. */
void lilac_scan_before_lanes(const lilac_scan *s, const lilac_scan_run *r,
                             const lilac_scan_level *at, const lilac_scan_prefix *before,
                             lilac_scan_prefix *result);

/* ---- the run in memory (scan_memory.c) --------------------------------------------------- */

/* What stands before each item of the run in memory, which is the last. */
bool lilac_scan_before_memory(const lilac_scan *s, const lilac_scan_run *r,
                              const lilac_scan_level *at, lilac_scan_prefix *result);

#endif
