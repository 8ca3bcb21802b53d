/* The shared memory of a cluster's blocks side by side, and what orders the accesses to it.
 *
 * Time is counted in epochs: every barrier begins one. An access is stamped with its epoch, its
 * warp and its step, byte by byte: the last write, and the reads that no later read is ordered
 * behind. known[v][u] is the last epoch of warp u whose accesses are ordered before what warp v
 * does now; a barrier of some warps gives each of them the most that any of them knew, and of one
 * another all up to now. So two accesses are ordered when a chain of barriers leads from the one
 * to the other, and only then.
 *
 *     warp 0   write ──┐ group ┌──────────────┐ group ┌─ read    ordered by two barriers, neither
 *     warp 1 ──────────┘       └──┐ group ┌───┘       └─         of which joins warps 0 and 3
 *     warp 3 ─────────────────────┘       └── write              of the write of warp 3: a race
 *
 * An mbarrier orders one way only: an arrival adds its warp's row of known and its epoch to the
 * mbarrier's clock, which a wait adds to the row of its warp. Where an mbarrier orders the writes
 * of copies, known has a second column for each warp, its asynchronous clock. The copies that the
 * warp started write under that clock; their writes are ordered before a warp that has acquired
 * it, and the warp that started them must acquire it too.
 *
 * What lies at or before `floor` is ordered before everything; a barrier of all warps raises it,
 * so kernels with no other barriers never look further.
 */
#ifndef LILAC_SIM_SHARED_H
#define LILAC_SIM_SHARED_H

#include "async/proxies.h"
#include "program.h"

enum {
    LILAC_SIM_RANK_SHIFT = 24,  /* of map_shared's addresses */
    LILAC_SIM_MOST_BLOCKS = 16, /* of a cluster */
    LILAC_SIM_MOST_STEPS = (1 << 21) - 1
};

/* A reader of a byte that another reader is not ordered with. */
typedef struct lilac_sim_reader {
    uint32_t epoch, warp, step;
    uint32_t next; /* 0: none */
} lilac_sim_reader;

typedef struct lilac_sim_shared {
    uint8_t *bytes;
    uint8_t *written; /* in this cluster's run */
    uint8_t
        *in_flight;    /* how many incomplete copies write a byte; NULL: the kernel has no copies */
    uint32_t *reading; /* how many incomplete bulk copies read a byte; NULL: there are none */
    uint64_t *write_stamp, *read_stamp, *atomic_stamp; /* the last: NULL without atomics */
    uint32_t size;                                     /* of a block */
    uint32_t stride;        /* from a block's first byte to the next block's: whole rows of banks */
    uint32_t blocks, warps; /* of the cluster; of a block */
    uint32_t clocks;        /* columns of known */
    uint32_t epoch, floor;
    uint32_t *known;           /* NULL: all barriers are of all warps */
    uint32_t *joined;          /* scratch of a barrier */
    lilac_sim_reader *readers; /* entry 0 is unused */
    uint32_t reader_count, reader_capacity, free_reader;
    lilac_sim_proxies proxies;
} lilac_sim_shared;

typedef enum lilac_sim_conflict_kind {
    CONFLICT_NONE,
    CONFLICT_READ_AFTER_WRITE,
    CONFLICT_WRITE_AFTER_READ,
    CONFLICT_WRITE_AFTER_WRITE
} lilac_sim_conflict_kind;

typedef struct lilac_sim_conflict {
    lilac_sim_conflict_kind kind;
    uint32_t byte;       /* of the access */
    uint32_t warp, step; /* of the earlier access */
} lilac_sim_conflict;

void lilac_sim_shared_init(lilac_sim_shared *shared, const lilac_sim_program *program);
void lilac_sim_shared_clear(lilac_sim_shared *shared);
/* Nothing is written any more, and nothing before is of concern. */
void lilac_sim_shared_forget(lilac_sim_shared *shared);
/* A barrier of `count` warps, numbered over the cluster. */
void lilac_sim_shared_order(lilac_sim_shared *shared, const uint32_t *warps, uint32_t count);

/* Is what warp u did in that epoch ordered before what warp v does now? */
bool lilac_sim_shared_is_ordered(const lilac_sim_shared *shared, uint32_t u, uint32_t epoch,
                                 uint32_t v);
/* An arrival and a wait of a warp: clock[u], for each column of known. The caller begins an epoch
 * after the releases of an instruction. */
void lilac_sim_shared_release(const lilac_sim_shared *shared, uint32_t warp, uint32_t *clock);
void lilac_sim_shared_acquire(lilac_sim_shared *shared, uint32_t warp, const uint32_t *clock);

/* The warp acquires what was written under its own asynchronous clock up to an epoch. */
void lilac_sim_shared_acquire_own(lilac_sim_shared *shared, uint32_t warp, uint32_t epoch);

/* Begins an epoch without ordering anything. */
void lilac_sim_shared_tick(lilac_sim_shared *shared);

/* The accounts of an access of a warp to `size` bytes from `at` on; `conflict` (NULL: not wanted)
 * is set to the first conflict with another warp's access, if there is one. */
void lilac_sim_shared_read(lilac_sim_shared *shared, uint64_t at, uint32_t size, uint32_t warp,
                           uint32_t step, lilac_sim_conflict *conflict);
/* Sets `conflict` for the first byte whose last write is not ordered before what the warp does now. */
void lilac_sim_shared_find_write(const lilac_sim_shared *shared, uint64_t at, uint32_t size,
                                 uint32_t warp, lilac_sim_conflict *conflict);
/* An atomic both reads and writes, but does not conflict with another atomic. */
void lilac_sim_shared_atomic(lilac_sim_shared *shared, uint64_t at, uint32_t size, uint32_t warp,
                             uint32_t step, lilac_sim_conflict *conflict);
void lilac_sim_shared_write(lilac_sim_shared *shared, uint64_t at, uint32_t size, uint32_t warp,
                            uint32_t step, lilac_sim_conflict *conflict);

#endif
