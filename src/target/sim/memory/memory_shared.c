/* Accesses to shared memory: the block's own, another block's, and matrices.
 *
 * All blocks of a cluster have their shared memory in one array, so that an access is a place in it
 * whosever block it is of (shared.h keeps the accounts of races there).
 *
 * A matrix access is done as one of 16 bytes by each lane that gives a row's address; only how the
 * words of the rows lie in the registers is different. */
#include "memory/access.h"

#include <string.h>

/* ---- wavefronts ------------------------------------------------------------------------- */

/* The most distinct words that one bank gets from the lanes [first, last). */
static uint32_t transaction_wavefronts(const lilac_sim_active *lanes, uint32_t first, uint32_t last,
                                       uint32_t words, const lilac_arch *arch) {
    enum { MAX_BANKS = 64 };
    uint64_t word[MAX_LANES * 8];
    uint16_t next[MAX_LANES * 8], head[MAX_BANKS];
    uint32_t depth[MAX_BANKS], count = 0, most = 0;
    uint64_t least = UINT64_MAX, greatest = 0;
    for (uint32_t l = first; l < last; l++) {
        uint64_t at = lanes->address[l] / arch->bank_bytes;
        least = at < least ? at : least;
        greatest = at + words - 1 > greatest ? at + words - 1 : greatest;
    }
    if (greatest - least < arch->banks) {
        return 1; /* no two words here share a bank */
    }
    memset(depth, 0, sizeof depth);
    for (uint32_t l = first; l < last; l++) {
        for (uint32_t k = 0; k < words; k++) {
            uint64_t at = lanes->address[l] / arch->bank_bytes + k;
            uint32_t bank = (uint32_t)(at % arch->banks), seen = depth[bank];
            uint32_t entry = head[bank];
            while (seen > 0 && word[entry] != at) {
                entry = next[entry];
                seen--;
            }
            if (seen > 0) {
                continue;
            }
            word[count] = at;
            next[count] = depth[bank] ? head[bank] : 0;
            head[bank] = (uint16_t)count++;
            most = ++depth[bank] > most ? depth[bank] : most;
        }
    }
    return most;
}

/* Do neighbours `distance` apart, where both are active, have the same address? */
static bool are_copies(const lilac_sim_active *lanes, uint32_t distance) {
    uint64_t address[MAX_LANES];
    uint64_t seen = 0;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint32_t lane = lanes->thread[l] % MAX_LANES, other = lane ^ distance;
        if ((seen >> other & 1) && address[other] != lanes->address[l]) {
            return false;
        }
        address[lane] = lanes->address[l];
        seen |= UINT64_C(1) << lane;
    }
    return true;
}

uint32_t lilac_sim_count_wavefronts(const lilac_sim_active *lanes, uint32_t size,
                                    const lilac_arch *arch, bool load) {
    uint32_t words = size > arch->bank_bytes ? size / arch->bank_bytes : 1;
    uint32_t group = arch->banks / words, wavefronts = 0;
    if (load && words > 1 && (are_copies(lanes, 1) || are_copies(lanes, 2))) {
        group *= 2;
    }
    for (uint32_t first = 0, last; first < lanes->count; first = last) {
        uint32_t which = lanes->thread[first] % arch->warp_size / group;
        for (last = first; last < lanes->count; last++) {
            if (lanes->thread[last] % arch->warp_size / group != which) {
                break;
            }
        }
        wavefronts += transaction_wavefronts(lanes, first, last, words, arch);
    }
    return wavefronts;
}

/* The lanes' accesses, sorted by whose memory they are to: each block has banks of its own. */
static uint32_t count_cluster_wavefronts(const lilac_sim_active *lanes, uint32_t size,
                                         const lilac_sim_worker *w, bool load) {
    uint32_t wavefronts = 0;
    for (uint32_t rank = 0; rank < w->shared.blocks; rank++) {
        lilac_sim_active part;
        part.count = 0;
        for (uint32_t l = 0; l < lanes->count; l++) {
            if (lanes->address[l] / w->shared.stride == rank) {
                part.thread[part.count] = lanes->thread[l];
                part.address[part.count++] = lanes->address[l];
            }
        }
        if (part.count > 0) {
            wavefronts += lilac_sim_count_wavefronts(&part, size, w->program->arch, load);
        }
    }
    return wavefronts;
}

/* ---- accounts --------------------------------------------------------------------------- */

static void find_race(lilac_sim_worker *w, const lilac_sim_step *step,
                      const lilac_sim_conflict *conflict, uint32_t thread, uint64_t at) {
    static const lilac_sim_finding_kind kinds[] = {
        [CONFLICT_READ_AFTER_WRITE] = FINDING_READ_AFTER_WRITE,
        [CONFLICT_WRITE_AFTER_READ] = FINDING_WRITE_AFTER_READ,
        [CONFLICT_WRITE_AFTER_WRITE] = FINDING_WRITE_AFTER_WRITE};
    const lilac_sim_program *p = w->program;
    uint64_t byte = at + conflict->byte;
    w->counters.races++;
    lilac_sim_worker_find(
        w, (lilac_sim_finding){.kind = kinds[conflict->kind],
                               .at = step->source,
                               .other = p->steps[conflict->step].source,
                               .block = w->block,
                               .address = byte % w->shared.stride,
                               .rank = (uint32_t)(byte / w->shared.stride),
                               .thread = thread,
                               .warp = w->rank * p->warps + thread / p->arch->warp_size,
                               .other_warp = conflict->warp % (w->shared.blocks * p->warps)});
}

static void find_unwritten(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                           uint64_t byte) {
    w->counters.uninitialised_reads++;
    lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_UNINITIALISED_SHARED,
                                                 .at = step->source,
                                                 .block = w->block,
                                                 .address = byte % w->shared.stride,
                                                 .rank = (uint32_t)(byte / w->shared.stride),
                                                 .thread = thread});
}

static bool any_in_flight(const lilac_sim_shared *s, uint64_t at, uint32_t size) {
    bool any = false;
    for (uint32_t b = 0; b < size; b++) {
        any |= s->in_flight[at + b] != 0;
    }
    return any;
}

/* Operations on an mbarrier are atomic, but for the two that begin and end its life. */
static bool is_atomic(const lilac_sim_step *step) {
    return step->kind == STEP_ATOMIC_SHARED || step->kind == STEP_MBARRIER_WAIT ||
           (step->kind == STEP_MBARRIER && step->immediate != LILAC_SIMT_OP_MBARRIER_INIT &&
            step->immediate != LILAC_SIMT_OP_MBARRIER_INVALIDATE);
}

/* Keeps the first race, the first access to bytes of an incomplete copy and the first read of nothing of a warp's access. */
void lilac_sim_account_shared(lilac_sim_worker *w, const lilac_sim_step *step,
                              const lilac_sim_active *lanes, uint32_t size, bool load) {
    lilac_sim_shared *s = &w->shared;
    uint32_t warp = w->rank * s->warps + lanes->thread[0] / w->program->arch->warp_size;
    uint32_t index = (uint32_t)(step - w->program->steps);
    lilac_sim_conflict conflict = {.kind = CONFLICT_NONE};
    bool unwritten = false, in_flight = false, atomic = is_atomic(step);
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint64_t at = lanes->address[l];
        bool flies = s->in_flight && any_in_flight(s, at, size);
        lilac_sim_conflict *wanted = conflict.kind == CONFLICT_NONE && !flies ? &conflict : NULL;
        if (flies && !in_flight) {
            lilac_sim_find_in_flight(w, step, lanes->thread[l], at, size, load);
        }
        in_flight |= flies;
        if (load ||
            (step->kind == STEP_ATOMIC_SHARED && step->immediate != LILAC_SIMT_ATOMIC_EXCHANGE)) {
            const uint8_t *hole = unwritten ? NULL : memchr(s->written + at, 0, size);
            if (hole) {
                find_unwritten(w, step, lanes->thread[l], (uint64_t)(hole - s->written));
            }
            unwritten |= hole != NULL;
        }
        if (load) {
            lilac_sim_shared_read(s, at, size, warp, index, wanted);
        } else if (atomic) {
            lilac_sim_shared_atomic(s, at, size, warp, index, wanted);
        } else {
            lilac_sim_shared_write(s, at, size, warp, index, wanted);
        }
        if (s->proxies.writes && !load) {
            lilac_sim_proxies_write(w, step, lanes->thread[l], at, size);
            lilac_sim_bulk_find_written(w, step, lanes->thread[l], at, size);
        }
        if (wanted && conflict.kind != CONFLICT_NONE) {
            find_race(w, step, &conflict, lanes->thread[l], at);
        }
    }
}

void lilac_sim_account_mbarrier(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                                uint64_t place) {
    uint32_t warp = w->rank * w->shared.warps + thread / w->program->arch->warp_size;
    lilac_sim_conflict conflict = {.kind = CONFLICT_NONE};
    lilac_sim_shared_find_write(&w->shared, place, sizeof(uint64_t), warp, &conflict);
    if (conflict.kind != CONFLICT_NONE) {
        find_race(w, step, &conflict, thread, place);
    }
}

/* An access to another block's memory: that block must have begun, which only a cluster barrier
 * before says, and must not end, which only one after prevents (lilac_sim_worker_run looks). */
void lilac_sim_account_reach(lilac_sim_worker *w, const lilac_sim_step *step,
                             const lilac_sim_active *lanes) {
    bool found = false;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint32_t rank = (uint32_t)(lanes->address[l] / w->shared.stride);
        if (rank == w->rank) {
            continue;
        }
        uint32_t warp = lanes->thread[l] / w->program->arch->warp_size;
        lilac_sim_finding finding = {.kind = FINDING_NOT_BEGUN,
                                     .at = step->source,
                                     .block = w->block,
                                     .address = lanes->address[l] % w->shared.stride,
                                     .rank = rank,
                                     .thread = lanes->thread[l],
                                     .warp = w->rank * w->program->warps + warp};
        if (w->phase == 0 && !found) {
            found = true;
            w->counters.races++;
            lilac_sim_worker_find(w, finding);
        }
        if (!w->blocks[rank].reached.at) {
            finding.kind = FINDING_ENDED;
            w->blocks[rank].reached = finding;
        }
    }
}

/* ---- accesses --------------------------------------------------------------------------- */

/* Checks the addresses and makes them places in the cluster's memory. */
bool lilac_sim_resolve_shared(lilac_sim_worker *w, const lilac_sim_step *step,
                              const lilac_sim_access *access, lilac_sim_active *lanes,
                              uint32_t size) {
    const lilac_sim_shared *s = &w->shared;
    w->trap.global = false;
    bool cluster =
        step->kind == STEP_LOAD_CLUSTER || step->kind == STEP_STORE_CLUSTER ||
        (step->kind == STEP_MBARRIER && step->immediate == LILAC_SIMT_OP_MBARRIER_ARRIVE_CLUSTER);
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint64_t address = lanes->address[l];
        uint64_t rank = w->rank;
        if (cluster) {
            uint64_t mapped =
                address >> LILAC_SIM_RANK_SHIFT; /* 0: an address of the block's own */
            address &= (UINT64_C(1) << LILAC_SIM_RANK_SHIFT) - 1;
            rank = mapped ? mapped - 1 : rank;
        }
        w->trap.rank = (uint32_t)(rank < s->blocks ? rank : s->blocks);
        if (rank >= s->blocks) {
            return lilac_sim_trap_access(w, step, TRAP_RANK, lanes, l, size);
        }
        lanes->address[l] = address;
        if (size > s->size || address > s->size - size) {
            return lilac_sim_trap_access(w, step, TRAP_SHARED_BOUNDS, lanes, l, size);
        }
        if (address & (size - 1)) {
            return lilac_sim_trap_access(w, step, TRAP_MISALIGNED, lanes, l, size);
        }
        if (access->end && (address < access->begin || address + size > access->end)) {
            return lilac_sim_trap_access(w, step, TRAP_INTERVAL, lanes, l, size);
        }
        lanes->address[l] += rank * s->stride;
        lanes->host[l] = s->bytes + lanes->address[l];
    }
    return true;
}

bool lilac_sim_access_shared(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    bool load = step->kind == STEP_LOAD_SHARED || step->kind == STEP_LOAD_CLUSTER;
    bool cluster = step->kind == STEP_LOAD_CLUSTER || step->kind == STEP_STORE_CLUSTER;
    uint32_t size = access->count * access->width;
    lilac_sim_counters *c = &w->counters;
    lilac_sim_active lanes;
    if (load) {
        lilac_sim_give_others(w, access);
    }
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        lilac_sim_gather(&lanes, w, access, warp, true);
        if (lanes.count == 0) {
            continue;
        }
        if (!lilac_sim_resolve_shared(w, step, access, &lanes, size)) {
            return lilac_sim_poison_blame(w, step, access);
        }
        if (w->poison.live) {
            lilac_sim_poison_shared(w, step, access, &lanes, load);
        }
        if (lanes.count == 0) {
            continue;
        }
        *(load ? &c->shared_loads : &c->shared_stores) += 1;
        *(load ? &c->shared_load_wavefronts : &c->shared_store_wavefronts) +=
            cluster ? count_cluster_wavefronts(&lanes, size, w, load)
                    : lilac_sim_count_wavefronts(&lanes, size, w->program->arch, load);
        *(load ? &c->shared_load_bytes : &c->shared_store_bytes) += (uint64_t)lanes.count * size;
        if (cluster) {
            *(load ? &c->cluster_loads : &c->cluster_stores) += 1;
            lilac_sim_account_reach(w, step, &lanes);
        }
        lilac_sim_move(w->registers, access, &lanes, load);
        lilac_sim_account_shared(w, step, &lanes, size, load);
    }
    return true;
}

/* ---- matrices --------------------------------------------------------------------------- */

enum { ROW_BYTES = 16, ROWS = 8 };

/* The place of one 16-bit half of a lane's word of a matrix. */
static uint8_t *half_of(uint8_t *const *rows, uint32_t lane, uint32_t half, bool transposed) {
    return transposed ? rows[2 * (lane % 4) + half] + 2 * (lane / 4)
                      : rows[lane / 4] + 4 * (lane % 4) + 2 * half;
}

static void move_matrices(lilac_sim_worker *w, const lilac_sim_access *access,
                          const lilac_sim_active *lanes, uint32_t first, bool load,
                          bool transposed) {
    for (uint32_t k = 0; k < access->count; k++) {
        lane_u16 *halves =
            (lane_u16 *)(void *)(w->registers + access->values[k]) + 2 * (size_t)first;
        for (uint32_t h = 0; h < 64; h++) {
            uint8_t *place = half_of(lanes->host + ROWS * k, h / 2, h % 2, transposed);
            if (load) {
                memcpy(&halves[h], place, sizeof *halves);
            } else {
                memcpy(place, &halves[h], sizeof *halves);
            }
            if (w->poison.live) {
                lilac_sim_poison_half(w, access->values[k], h % 2, first + h / 2,
                                      (uint64_t)(place - w->shared.bytes), load);
            }
        }
    }
}

/* Is the predicate the same in all lanes, and which? */
static bool agree_in_warp(lilac_sim_worker *w, const lilac_sim_step *step,
                          const lilac_sim_access *access, uint32_t first, bool *active) {
    *active = true;
    if (access->predicate == LILAC_SIM_NONE) {
        return true;
    }
    const lane_u8 *predicate = w->registers + access->predicate + first;
    for (uint32_t l = 1; l < w->program->arch->warp_size; l++) {
        if (predicate[l] != predicate[0]) {
            return lilac_sim_worker_trap(w, TRAP_PREDICATE, step, first + l);
        }
    }
    *active = predicate[0];
    return true;
}

bool lilac_sim_access_matrix(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    bool load = step->kind == STEP_LOAD_MATRIX, active;
    lilac_sim_counters *c = &w->counters;
    lilac_sim_active lanes;
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        uint32_t first = warp * w->program->arch->warp_size;
        if (!agree_in_warp(w, step, access, first, &active)) {
            return false;
        }
        if (!active) {
            continue;
        }
        lilac_sim_gather(&lanes, w, access, warp, true);
        lanes.count = ROWS * access->count; /* lanes beyond give no address */
        if (!lilac_sim_resolve_shared(w, step, access, &lanes, ROW_BYTES)) {
            return false;
        }
        *(load ? &c->shared_loads : &c->shared_stores) += 1;
        *(load ? &c->matrix_loads : &c->matrix_stores) += 1;
        *(load ? &c->shared_load_wavefronts : &c->shared_store_wavefronts) +=
            lilac_sim_count_wavefronts(&lanes, ROW_BYTES, w->program->arch, false);
        *(load ? &c->shared_load_bytes : &c->shared_store_bytes) +=
            (uint64_t)lanes.count * ROW_BYTES;
        move_matrices(w, access, &lanes, first, load, step->immediate != 0);
        lilac_sim_account_shared(w, step, &lanes, ROW_BYTES, load);
    }
    return true;
}
