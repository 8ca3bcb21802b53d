/* Races in global memory: records of accesses, and the order between them (races.c, order.c,
 * roots.c).
 *
 * Two accesses race when they access a common byte, at least one writes it, they are not both
 * atomic, and nothing orders them. An access has a record: block, thread, step and the epoch of
 * shared.h. A place (a granule of a page, as wide as the narrowest access to the page) has sets of
 * records:
 *
 *     writes    the last plain writes, all of the value that memory holds
 *     differs   the last plain write of another value than that
 *     reads     reads since then, without those that are ordered before a later read of the set
 *     atomics   atomic operations since the last plain write, with the same exception
 *
 * An access is ordered before another one by
 *
 *     the same warp       the order of its instructions (its threads run in step)
 *     the same cluster    a chain of barriers, as in shared memory
 *     release, acquire    what a warp's release publishes is ordered before what follows an
 *                         acquire at the same place, in another block too (order.c)
 *
 * Nothing else orders blocks. A race between blocks that do not synchronise is therefore found in
 * every schedule of the host.
 *
 * Only buffers that the kernel may write are watched (roots.c). Pages are shared by the workers;
 * each belongs to one of 64 stripes with a mutex, and an access holds those of all its pages.
 */
#ifndef LILAC_SIM_RACES_H
#define LILAC_SIM_RACES_H

#include "program.h"

#include <pthread.h>

struct lilac_sim_worker;
struct lilac_sim_active;
struct lilac_sim_memory;

typedef struct lilac_sim_record {
    uint32_t block; /* plus one; 0: none; LILAC_SIM_LISTED: who is the first node of a list,
                       epoch their number */
    uint32_t epoch;
    uint32_t who; /* step << 11 | thread */
} lilac_sim_record;

#define LILAC_SIM_LISTED UINT32_MAX
enum { LILAC_SIM_WHO_THREAD_BITS = 11, LILAC_SIM_STRIPES = 64, LILAC_SIM_PAGE_BITS = 12 };

static inline uint32_t lilac_sim_thread_of(const lilac_sim_record *record) {
    return record->who & ((1u << LILAC_SIM_WHO_THREAD_BITS) - 1);
}

static inline uint32_t lilac_sim_step_of(const lilac_sim_record *record) {
    return record->who >> LILAC_SIM_WHO_THREAD_BITS;
}

/* ---- release and acquire (order.c) ------------------------------------------------------ */

struct lilac_sim_knowledge;

/* What a warp published at a place: its accesses up to `epoch`, all warps' up to `floor`, those of
 * each warp up to `row` (NULL without partial barriers), and what it knew. Immutable. */
typedef struct lilac_sim_release {
    const struct lilac_sim_release *before; /* at the same place */
    const struct lilac_sim_knowledge *known;
    const uint32_t *row;
    uint64_t block;
    uint32_t warp; /* of all the cluster's */
    uint32_t floor, epoch;
    bool block_scope;
    uint64_t visit; /* the last search that came here */
} lilac_sim_release;

/* What a warp acquired: the releases at a place, and what it knew before. Immutable. */
typedef struct lilac_sim_knowledge {
    lilac_sim_release *source; /* may be NULL */
    struct lilac_sim_knowledge *one, *other;
    uint64_t block; /* that acquired it */
    bool block_scope;
    uint64_t visit;
} lilac_sim_knowledge;

/* How far a warp's knowledge reaches in one cluster: epochs of its warps. */
typedef struct lilac_sim_reach {
    const lilac_sim_knowledge *head; /* NULL: a free entry */
    uint64_t cluster;
    uint32_t *epochs;
} lilac_sim_reach;

enum { LILAC_SIM_REACHES = 64 };

/* A worker's part: what the warps of the cluster in execution know. */
typedef struct lilac_sim_order {
    lilac_sim_knowledge **known; /* of the cluster in execution, by warp; NULL: the kernel does not
                                    synchronise blocks */
    lilac_sim_reach reaches[LILAC_SIM_REACHES];
    void **stack; /* of a search */
    uint32_t stack_capacity;
} lilac_sim_order;

/* What the warps of a new cluster know; NULL: the kernel does not synchronise blocks. Of the heap. */
lilac_sim_knowledge **lilac_sim_order_create(const struct lilac_sim_worker *worker);
void lilac_sim_order_clear(lilac_sim_order *order);
/* At the start of a cluster. */
void lilac_sim_order_forget(struct lilac_sim_worker *worker);
/* A barrier of these warps: each knows what any of them knew. */
void lilac_sim_order_join(struct lilac_sim_worker *worker, const uint32_t *warps, uint32_t count);
/* Adds the releases that a warp has acquired to those that a barrier's phase has gathered, and the
 * reverse. */
void lilac_sim_order_release(struct lilac_sim_worker *worker, uint32_t warp,
                             lilac_sim_knowledge **gathered);
void lilac_sim_order_acquire(struct lilac_sim_worker *worker, uint32_t warp,
                             lilac_sim_knowledge *gathered);
/* Is the recorded access ordered before what the thread of the block in execution does now? */
bool lilac_sim_is_ordered(struct lilac_sim_worker *worker, const lilac_sim_record *record,
                          const lilac_sim_record *now);
/* An acquire by a warp of what was released at a place, and a release there. */
void lilac_sim_acquire(struct lilac_sim_worker *worker, lilac_sim_release *source, uint32_t thread,
                       bool block_scope);
lilac_sim_release *lilac_sim_publish(struct lilac_sim_worker *worker, lilac_sim_release *before,
                                     uint32_t thread, bool block_scope);

/* ---- places (races.c) ------------------------------------------------------------------- */

typedef struct lilac_sim_page lilac_sim_page;

typedef struct lilac_sim_places {
    lilac_sim_page **pages; /* NULL: the buffer is not watched */
} lilac_sim_places;

typedef struct lilac_sim_races {
    lilac_sim_places *buffers; /* as in the launch */
    uint32_t buffer_count;
    bool shared;       /* by several workers */
    bool synchronises; /* the kernel has releases and acquires */
    bool scoped;       /* some atomic operation has the scope of a block */
    bool precise;      /* sets keep the records of all blocks */
    pthread_mutex_t stripes[LILAC_SIM_STRIPES];
    pthread_mutex_t order; /* of the releases and what follows */
    void **chunks;         /* of releases and knowledge */
    uint32_t chunk_count;
    size_t chunk_used;
    uint64_t visits;
} lilac_sim_races;

/* Watches the buffers that the kernel may write. */
void lilac_sim_races_init(lilac_sim_races *races, const lilac_sim_program *program,
                          const lilac_sim_launch *launch, const struct lilac_sim_memory *memory,
                          uint32_t workers);
void lilac_sim_races_clear(lilac_sim_races *races, const lilac_sim_launch *launch);
void *lilac_sim_races_allocate(lilac_sim_races *races, size_t size);

/* A warp's access to global memory, from open to close; open says whether any buffer is watched.
 * `size` is that of a lane's access. */
bool lilac_sim_races_open(struct lilac_sim_worker *worker, const struct lilac_sim_active *lanes,
                          const lilac_sim_buffer *const *buffers, uint32_t size, uint64_t *stripes);
void lilac_sim_races_close(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                           uint64_t stripes);
void lilac_sim_races_load(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                          const struct lilac_sim_active *lanes,
                          const lilac_sim_buffer *const *buffers, uint32_t size);
/* Also moves the data: what memory holds before each lane's store decides. */
void lilac_sim_races_store(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                           struct lilac_sim_active *lanes, const lilac_sim_buffer *const *buffers,
                           uint32_t size);
/* The same for bytes that lie together in `data`, lane after lane, and are no operands of the step. */
void lilac_sim_races_put(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                         const struct lilac_sim_active *lanes,
                         const lilac_sim_buffer *const *buffers, uint32_t size,
                         const uint8_t *data);
/* An element of lane l's atomic operation; `writes`: not a compare-and-swap that failed. */
void lilac_sim_races_atomic(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                            const struct lilac_sim_active *lanes,
                            const lilac_sim_buffer *const *buffers, uint32_t l, uint64_t address,
                            bool writes);

/* ---- roots.c ---------------------------------------------------------------------------- */

/* Bit k, below 63: the kernel may store or act at addresses computed from parameter k; bit 63: at
 * others, or that is not known. */
#define LILAC_SIM_ANY_ROOT (UINT64_C(1) << 63)
uint64_t lilac_sim_stored_roots(const lilac_simt_kernel *kernel);

#endif
