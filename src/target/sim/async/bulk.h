/* Bulk and tensor copies through the async proxy, from their start to their completion.
 *
 *     cp.bulk.store     one thread starts a copy; its shared bytes are read …
 *     bulk.commit       the thread's copies since its last commit are a group
 *     bulk.wait_read N  … until here: all groups but the newest N have read shared memory
 *     bulk.wait N       … and until here they write global memory
 *
 *     cp.bulk.load      reads its source; its shared bytes are in flight …
 *     mbarrier.wait     … until the phase to which it belongs is complete
 *
 * A copy happens as late as the waits allow. A store reads its source at the first wait that
 * requires it and writes global memory at the first bulk.wait that requires it, or when its block
 * ends; in between a write to its source and an access of its cluster to its destination are
 * findings. A load completes when no block of the cluster can go on, when a try_wait finds its
 * phase incomplete, or at every other mbarrier.test: it reads its source again, which must not
 * have changed, writes shared memory under the asynchronous clock of its warp (shared.h), and
 * completes its bytes at the mbarrier.
 *
 * A multicast load is one copy for each block of its mask; each completes by itself (multicast.c).
 *
 * A copy is a list of pieces of `unit` bytes, each with its address in global memory and its place
 * in shared memory. Pieces outside of the tensor have no address: loads fill them, stores drop
 * them. What is incomplete belongs to a cluster, each copy to a thread of one of its blocks;
 * groups are counted by warp, since the threads of a warp execute the same instructions. */
#ifndef LILAC_SIM_BULK_H
#define LILAC_SIM_BULK_H

#include "program.h"

#include <lilac/tensor_map.h>

struct lilac_sim_worker;
struct lilac_sim_active;

typedef struct lilac_sim_piece {
    uint64_t global, shared;
    const lilac_sim_buffer *buffer; /* NULL until it is found */
    bool outside;                   /* of the tensor */
} lilac_sim_piece;

typedef struct lilac_sim_bulk {
    const lilac_sim_step *step;
    const lilac_tensor_map *map; /* NULL: consecutive bytes */
    uint64_t made;               /* where the kernel has made the map; 0: it is an argument */
    lilac_tensor_map own;        /* a copy of a map that the kernel has made */
    uint32_t rank, thread;       /* that started it */
    uint32_t to;                 /* rank of the block whose shared memory it accesses */
    uint64_t at, bytes;          /* of shared memory */
    bool load;
    bool read;         /* of a store: the source has been read, into data */
    uint64_t group;    /* of a store: commits of its warp before its start */
    uint64_t mbarrier; /* of a load: its place in the cluster's shared memory */
    uint32_t unit, count, capacity;
    lilac_sim_piece *pieces;
    uint8_t *data; /* of the pieces in turn */
} lilac_sim_bulk;

/* A tensor map that a block of the cluster has published. */
typedef struct lilac_sim_made_map {
    uint64_t address;
    lilac_tensor_map map;
    const lilac_simt_instruction *at;
    uint32_t warp, epoch; /* of the publication */
    uint32_t
        *acquired; /* of each warp: the epoch of its first acquisition since then + 1; 0: none */
} lilac_sim_made_map;

typedef struct lilac_sim_bulks {
    lilac_sim_bulk **flying; /* in the order of their starts */
    uint32_t count, capacity;
    lilac_sim_made_map *maps;
    uint32_t map_count;
    uint64_t *commits; /* of each warp of the cluster; NULL: the program has no bulk copies */
    uint32_t warps;
} lilac_sim_bulks;

void lilac_sim_bulks_init(lilac_sim_bulks *bulks, const lilac_sim_program *program);
void lilac_sim_bulks_clear(lilac_sim_bulks *bulks);
/* At the start of a cluster: nothing is incomplete. */
void lilac_sim_bulks_forget(lilac_sim_bulks *bulks);

/* A start, commit or wait of the block in execution; false after a trap. */
LILAC_MUST_USE bool lilac_sim_bulk_step(struct lilac_sim_worker *worker,
                                        const lilac_sim_step *step);
/* The block ends: reports what still accesses its shared memory, and completes the rest. */
LILAC_MUST_USE bool lilac_sim_bulks_end(struct lilac_sim_worker *worker);

/* The oldest load of the cluster completes. False: there is none, or a trap (worker->trap.kind). */
bool lilac_sim_bulk_land(struct lilac_sim_worker *worker);

/* The step of the incomplete load into one of the bytes, or NULL; the first such byte, and the
 * warp. */
const lilac_sim_step *lilac_sim_bulk_find_loading(const struct lilac_sim_worker *worker,
                                                  uint64_t at, uint32_t size, uint64_t *byte,
                                                  uint32_t *warp);
/* Reports a write to shared bytes that an incomplete copy reads. */
void lilac_sim_bulk_find_written(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                                 uint32_t thread, uint64_t at, uint32_t size);
/* Reports the lanes' accesses to global bytes that an incomplete copy of this cluster writes. */
void lilac_sim_bulk_find_global(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                                const struct lilac_sim_active *lanes, uint32_t size);

/* ---- multicast.c ----------------------------------------------------------------------------- */

/* The blocks into which a thread of the block in execution copies, bit k for rank k; 0: a trap. */
uint32_t lilac_sim_multicast_blocks(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                                    uint32_t thread);
/* Reports a destination that may not have begun or has ended, and an mbarrier.init there that is
 * not ordered before. The copy has its places in shared memory. */
void lilac_sim_multicast_account(struct lilac_sim_worker *worker, const lilac_sim_bulk *copy);

/* ---- made_maps.c ------------------------------------------------------------------------------ */

/* tensor_map.set, publish or acquire of the block in execution; false after a trap. */
LILAC_MUST_USE bool lilac_sim_made_map_step(struct lilac_sim_worker *worker,
                                            const lilac_sim_step *step);
/* The map in scratch memory that a thread's tensor copy uses; NULL: a trap. Reports one that is not
 * acquired. */
const lilac_tensor_map *lilac_sim_made_map_of(struct lilac_sim_worker *worker,
                                              const lilac_sim_step *step, uint32_t thread,
                                              uint64_t *address);
void lilac_sim_made_maps_forget(lilac_sim_bulks *bulks);

/* ---- tensor.c --------------------------------------------------------------------------------- */

bool lilac_sim_is_tensor_copy(const lilac_simt_instruction *instruction);
/* Has a tensor copy with this number of coordinates a meaning for the map? */
bool lilac_sim_can_copy(const lilac_simt_instruction *instruction, const lilac_tensor_map *map,
                        uint32_t coordinates);
/* The map of a tensor copy that is an argument, or NULL; whether the copy can use it. False: an
 * error, `tensor-map`. */
const lilac_tensor_map *lilac_sim_map_of(const lilac_sim_launch *launch,
                                         const lilac_simt_instruction *instruction);
LILAC_MUST_USE bool lilac_sim_check_tensor_copy(lilac_context *context,
                                                const lilac_simt_instruction *instruction,
                                                const lilac_tensor_map *map, uint32_t coordinates);
/* The pieces, unit and bytes of a box, whose shared address the copy has. */
void lilac_sim_tensor_pieces(lilac_sim_bulk *copy, const int32_t *coordinates);

/* ---- the two memories (bulk_memory.c) ------------------------------------------------------- */

lilac_sim_piece *lilac_sim_bulk_add(lilac_sim_bulk *copy);
/* Finds the buffers of all pieces and gives the copy room for their data; false: a trap. */
LILAC_MUST_USE bool lilac_sim_bulk_resolve(struct lilac_sim_worker *worker, lilac_sim_bulk *copy);
/* A store: moves the pieces from shared memory into the copy's data; false: a trap. */
LILAC_MUST_USE bool lilac_sim_bulk_read_shared(struct lilac_sim_worker *worker,
                                               lilac_sim_bulk *copy);
/* A store: stores the copy's data in global memory or combines the two. */
void lilac_sim_bulk_write_global(struct lilac_sim_worker *worker, const lilac_sim_bulk *copy);
/* A load: moves the pieces from global memory into `data`; `first`: reports what nothing wrote. */
void lilac_sim_bulk_read_global(struct lilac_sim_worker *worker, const lilac_sim_bulk *copy,
                                uint8_t *data, bool first);
/* A load: moves the copy's data into shared memory. */
void lilac_sim_bulk_write_shared(struct lilac_sim_worker *worker, const lilac_sim_bulk *copy);

#endif
