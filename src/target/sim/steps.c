/* The steps of one agent, without control flow: each acts for all threads of the agent, and either
 * completes or traps. */
#include "steps.h"
#include "lanes/multiply.h"
#include "async/wgmma.h"

#include <string.h>

enum { GROUPS = 15, MOST_WARPS = 64 };

/* ---- arithmetic ------------------------------------------------------------------------- */

/* The entry of the first thread in execution. */
static uint8_t *entries(const lilac_sim_worker *w, uint32_t offset, uint32_t width) {
    return w->registers + offset + (size_t)w->first_thread * width;
}

static bool run_lanes(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint8_t *out = entries(w, s->out, s->width[3]);
    s->loop(s->n, s->immediate, out, entries(w, s->a, s->width[0]), entries(w, s->b, s->width[1]),
            entries(w, s->c, s->width[2]));
    if (s->fill) {
        fill_entries(out, s->entry_bytes, w->threads);
    }
    return true;
}

static bool run_flushed(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_program *p = w->program;
    uint8_t *r = w->registers, *out = entries(w, s->out, s->width[3]);
    const uint32_t from[3] = {s->a, s->b, s->c};
    const void *operands[3];
    for (uint32_t k = 0; k < 3; k++) {
        operands[k] = entries(w, from[k], s->width[k]);
        if (s->varies >> k & 1) {
            lilac_sim_flush(s->n, 0, r + p->scratch[k], operands[k], NULL, NULL);
            operands[k] = r + p->scratch[k];
        }
    }
    if (s->varies >> 3 & 1) {
        void *result = r + p->scratch[3];
        s->loop(s->n, s->immediate, result, operands[0], operands[1], operands[2]);
        lilac_sim_flush(s->n, 0, out, result, NULL, NULL);
    } else {
        s->loop(s->n, s->immediate, out, operands[0], operands[1], operands[2]);
    }
    if (s->fill) {
        fill_entries(out, s->entry_bytes, w->threads);
    }
    return true;
}

static bool run_divide(lilac_sim_worker *w, const lilac_sim_step *s) {
    for (uint32_t t = 0; t < s->n; t++) {
        if (read_entry(w->registers + s->b, s->entry_bytes, w->first_thread + t) == 0) {
            lilac_sim_poison_divide(w, s);
            return true;
        }
    }
    return run_lanes(w, s);
}

/* ---- exchanges between lanes ------------------------------------------------------------ */

uint32_t lilac_sim_partner(uint64_t kind, uint32_t lane, uint32_t operand, uint32_t warp_size) {
    operand &= warp_size - 1;
    switch (kind) {
    case LILAC_SIMT_SHFL_IDX:
        return operand;
    case LILAC_SIMT_SHFL_XOR:
        return lane ^ operand;
    case LILAC_SIMT_SHFL_UP:
        return lane >= operand ? lane - operand : lane;
    default:
        return lane + operand < warp_size ? lane + operand : lane;
    }
}

static bool run_shuffle(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size;
    const lane_u32 *values = (const void *)(w->registers + s->a);
    const lane_u32 *operands = (const void *)(w->registers + s->b);
    lane_u32 *out = (void *)(w->registers + s->out);
    for (uint32_t first = w->first_thread; first < w->end_thread; first += size) {
        for (uint32_t lane = 0; lane < size; lane++) {
            out[first + lane] =
                values[first + lilac_sim_partner(s->immediate, lane, operands[first + lane], size)];
        }
    }
    w->counters.shuffles += w->end_warp - w->first_warp;
    return true;
}

static bool run_ballot(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size;
    const lane_u8 *conditions = w->registers + s->a;
    lane_u32 *out = (void *)(w->registers + s->out);
    for (uint32_t first = w->first_thread; first < w->end_thread; first += size) {
        uint32_t votes = 0;
        for (uint32_t lane = 0; lane < size; lane++) {
            votes |= (uint32_t)(conditions[first + lane] != 0) << lane;
        }
        for (uint32_t lane = 0; lane < size; lane++) {
            out[first + lane] = votes;
        }
    }
    w->counters.votes += w->end_warp - w->first_warp;
    return true;
}

/* ---- barriers --------------------------------------------------------------------------- */

static bool run_barrier(lilac_sim_worker *w, const lilac_sim_step *s) {
    (void)s;
    uint32_t warps[MOST_WARPS], count = w->program->warps;
    for (uint32_t k = 0; k < count; k++) {
        warps[k] = w->rank * count + k;
    }
    lilac_sim_shared_order(&w->shared, warps, count);
    lilac_sim_order_join(w, warps, count);
    w->counters.barriers++;
    return true;
}

static bool run_group_barrier(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size, count = w->program->warps;
    uint32_t warps[GROUPS][MOST_WARPS], members[GROUPS] = {0};
    const lane_u32 *numbers = (const void *)(w->registers + s->a);
    for (uint32_t warp = 0; warp < count; warp++) {
        uint32_t number = numbers[warp * size];
        uint32_t apart =
            s->source->shared_partition; /* warps equal in these bits must be in one group */
        bool meets = !apart || numbers[(warp & apart) * size] == number;
        for (uint32_t lane = 0; lane < size; lane++) {
            if (numbers[warp * size + lane] != number || number >= GROUPS || !meets) {
                return lilac_sim_worker_trap(w, TRAP_GROUP_NUMBER, s, warp * size + lane);
            }
        }
        warps[number][members[number]++] = w->rank * count + warp;
    }
    for (uint32_t k = 0; k < GROUPS; k++) {
        if (members[k] && members[k] * size != s->immediate) {
            w->trap.address = k;
            w->trap.size = members[k];
            return lilac_sim_worker_trap(w, TRAP_GROUP_SIZE, s, warps[k][0] % count * size);
        }
        if (!members[k]) {
            continue;
        }
        lilac_sim_shared_order(&w->shared, warps[k], members[k]);
        lilac_sim_order_join(w, warps[k], members[k]);
    }
    w->counters.group_barriers += count;
    return true;
}

/* ---- other steps ------------------------------------------------------------------------ */

static bool run_assert(lilac_sim_worker *w, const lilac_sim_step *s) {
    for (uint32_t t = w->first_thread; t < w->first_thread + s->n; t++) {
        if (!w->registers[s->a + t]) {
            return lilac_sim_worker_trap(w, TRAP_ASSERT, s, t);
        }
    }
    return true;
}

static bool run_warp_barrier(lilac_sim_worker *w, const lilac_sim_step *s) {
    (void)s;
    w->counters.warp_barriers += w->end_warp - w->first_warp;
    return true;
}

static bool run_timer(lilac_sim_worker *w, const lilac_sim_step *s) {
    w->snapshot.disturbed = true;
    write_entry(entries(w, s->out, 8), 8, 0, w->issued * w->program->warps);
    fill_entries(entries(w, s->out, 8), 8, w->threads);
    return true;
}

static bool run_print(lilac_sim_worker *w, const lilac_sim_step *s) {
    lilac_sim_print(w, s);
    w->snapshot.disturbed = true;
    return true;
}

static bool run_vote(lilac_sim_worker *w, const lilac_sim_step *s) {
    lilac_sim_vote(w, s);
    return true;
}

static bool run_mma(lilac_sim_worker *w, const lilac_sim_step *s) {
    lilac_sim_mma(w, s);
    return true;
}

static bool run_copy_commit(lilac_sim_worker *w, const lilac_sim_step *s) {
    (void)s;
    lilac_sim_copy_commit(w);
    return true;
}

static bool run_copy_wait(lilac_sim_worker *w, const lilac_sim_step *s) {
    lilac_sim_copy_wait(w, s);
    return true;
}

static bool run_fence_proxy(lilac_sim_worker *w, const lilac_sim_step *s) {
    lilac_sim_proxies_fence(w, s);
    return true;
}

/* ---- the table -------------------------------------------------------------------------- */

/* clang-format off */
lilac_sim_action *const lilac_sim_actions[STEP_END + 1] = {
    [STEP_LANES]         = run_lanes,
    [STEP_FLUSHED]       = run_flushed,
    [STEP_DIVIDE]        = run_divide,
    [STEP_LOAD_GLOBAL]   = lilac_sim_access_global,
    [STEP_STORE_GLOBAL]  = lilac_sim_access_global,
    [STEP_LOAD_SHARED]   = lilac_sim_access_shared,
    [STEP_STORE_SHARED]  = lilac_sim_access_shared,
    [STEP_LOAD_CLUSTER]  = lilac_sim_access_shared,
    [STEP_STORE_CLUSTER] = lilac_sim_access_shared,
    [STEP_LOAD_MATRIX]   = lilac_sim_access_matrix,
    [STEP_STORE_MATRIX]  = lilac_sim_access_matrix,
    [STEP_ATOMIC_GLOBAL] = lilac_sim_access_atomic,
    [STEP_ATOMIC_SHARED] = lilac_sim_access_atomic,
    [STEP_COPY]          = lilac_sim_copy_start,
    [STEP_COPY_COMMIT]   = run_copy_commit,
    [STEP_COPY_WAIT]     = run_copy_wait,
    [STEP_BULK_START]    = lilac_sim_bulk_step,
    [STEP_BULK_COMMIT]   = lilac_sim_bulk_step,
    [STEP_BULK_WAIT]     = lilac_sim_bulk_step,
    [STEP_MADE_MAP]      = lilac_sim_made_map_step,
    [STEP_FENCE_PROXY]   = run_fence_proxy,
    [STEP_WGMMA]         = lilac_sim_wgmma_step,
    [STEP_WGMMA_FENCE]   = lilac_sim_wgmma_step,
    [STEP_WGMMA_COMMIT]  = lilac_sim_wgmma_step,
    [STEP_WGMMA_WAIT]    = lilac_sim_wgmma_step,
    [STEP_MMA]           = run_mma,
    [STEP_MBARRIER]      = lilac_sim_mbarrier_step,
    [STEP_SHUFFLE]       = run_shuffle,
    [STEP_BALLOT]        = run_ballot,
    [STEP_VOTE]          = run_vote,
    [STEP_MATCH]         = run_vote,
    [STEP_REDUX]         = run_vote,
    [STEP_BARRIER]       = run_barrier,
    [STEP_WARP_BARRIER]  = run_warp_barrier,
    [STEP_GROUP_BARRIER] = run_group_barrier,
    [STEP_ASSERT]        = run_assert,
    [STEP_PRINT]         = run_print,
    [STEP_TIMER]         = run_timer,
};
/* clang-format on */
