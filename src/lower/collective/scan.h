/* What the files of tt.scan share.
 *
 *   scan_layout.c   which layouts are scanned as they are, and the one that others are moved to
 *   scan_runs.c     the runs of the axis, and the code of those of registers and lanes
 *   scan_memory.c   the code of the run that goes through memory
 *   scan.c          from run to run, up and down */
#ifndef LILAC_LOWER_SCAN_H
#define LILAC_LOWER_SCAN_H

#include "coordinates.h"

#define LILAC_SCAN_MOST_RUNS 32

/* Instead of a predicate: whether anything stands before an item. */
#define LILAC_SCAN_NEVER  0
#define LILAC_SCAN_ALWAYS (~(lilac_simt_value)0)

typedef enum lilac_scan_run_kind {
    LILAC_SCAN_REGISTERS,
    LILAC_SCAN_LANES,
    LILAC_SCAN_MEMORY
} lilac_scan_run_kind;

typedef struct lilac_scan_run {
    lilac_scan_run_kind kind;
    uint32_t count;
    bool in_thread_bits[LILAC_LAYOUT_MAX_BITS]; /* of memory: a warp's bit, not a register's */
    uint32_t where[LILAC_LAYOUT_MAX_BITS];      /* register or thread bits, lowest axis bit first */
    uint32_t items;                             /* mask of the register bits that number items */
} lilac_scan_run;

typedef struct lilac_scan {
    lilac_lowering *l;
    const lilac_tile_op *op;
    const lilac_lower_view *view;
    const lilac_simt_type *types;
    uint32_t axis, operands;
    bool reverse;
    uint32_t run_count;
    lilac_scan_run runs[LILAC_SCAN_MOST_RUNS];
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

/* ---- layouts (scan_layout.c) ------------------------------------------------------------- */

/* The bits of a coordinate that are the axis. */
uint64_t lilac_scan_axis(const lilac_lower_view *view, uint32_t axis);
/* Is every bit of the axis one column that does nothing else, and all lanes' below all warps'? */
bool lilac_scan_fits(const lilac_lower_view *view, uint32_t axis);
/* A layout near `from` that does. */
const lilac_lower_view *lilac_scan_near(lilac_lowering *l, const lilac_lower_view *from,
                                        uint32_t axis);

/* ---- runs of registers and lanes (scan_runs.c) ------------------------------------------- */

/* Fills in the runs of the axis. */
void lilac_scan_find_runs(lilac_scan *s);
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
