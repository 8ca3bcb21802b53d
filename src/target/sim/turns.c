/* The turns of blocks in while loops: when a turn ends, and when a block repeats its state.
 *
 * At the back edge of a while loop, the state of a block is its registers and its shared memory. A
 * snapshot is taken at every 2nd, 4th, 8th … back edge of a turn and compared at the next ones:
 *
 *     back edge   8    9   10   11 …   16   17 …
 *                 snapshot, compared with each of the next 64 at the same place
 *
 * A loop of n iterations thus costs log n snapshots, and a loop that repeats a state is recognised
 * after a few iterations. An effect outside the state (print, the clock) discards the snapshot.
 */
#include "schedule.h"

#include <string.h>

enum { FIRST_VISIT = 2, COMPARES = 64, LOOK = 1 << 14 };

/* ---- time ------------------------------------------------------------------------------- */

bool lilac_sim_turn_look(lilac_sim_worker *w, bool in_while) {
    lilac_sim_schedule *s = w->schedule;
    uint64_t now = lilac_sim_now();
    uint64_t patience = (uint64_t)(1e9 * (w->launch->stall_seconds > 0 ? w->launch->stall_seconds
                                                                       : LILAC_SIM_STALL_SECONDS));
    w->look_at = w->issued + LOOK;
    if (w->changed) {
        w->changed = false;
        w->snapshot.disturbed = true;
        w->progressed = true;
    }
    if (w->progressed || !in_while) {
        lilac_sim_schedule_alive(s, now);
    }
    uint64_t alive = atomic_load(&s->alive);
    if (alive != w->alive_seen) { /* by whichever worker: all residents get turns after it */
        w->alive_seen = alive;
        w->fruitless = 0;
    }
    if (!w->launch->instruction_limit && w->fruitless > w->resident_count &&
        now > alive + patience) {
        lilac_sim_schedule_stall(w);
    }
    w->progressed = false;
    lilac_sim_schedule_report(s, now);
    return atomic_load(&s->stall) == STALL_NONE;
}

/* ---- states ----------------------------------------------------------------------------- */

static const uint8_t *shared_bytes(const lilac_sim_worker *w) {
    return w->shared.bytes + (size_t)w->rank * w->shared.stride;
}

static void take_snapshot(lilac_sim_worker *w, const lilac_sim_step *step) {
    lilac_sim_snapshot *s = &w->snapshot;
    size_t registers = (size_t)w->program->register_bytes, shared = w->shared.size;
    if (s->capacity < registers + shared) {
        s->capacity = registers + shared;
        s->bytes = lilac_heap_grow(s->bytes, s->capacity);
    }
    w->progressed |= w->changed;
    w->changed = false;
    s->at = step;
    s->compares = COMPARES;
    s->disturbed = false;
    s->version = lilac_sim_schedule_version(w->schedule);
    memcpy(s->bytes, w->registers, registers);
    memcpy(s->bytes + registers, shared_bytes(w), shared);
}

/* Is the state that of the snapshot, with nothing in between that a repetition could change? */
static bool repeats(lilac_sim_worker *w, const lilac_sim_step *step) {
    lilac_sim_snapshot *s = &w->snapshot;
    size_t registers = (size_t)w->program->register_bytes, shared = w->shared.size;
    s->visits++;
    if (s->visits < FIRST_VISIT) {
        return false;
    }
    if ((s->visits & (s->visits - 1)) == 0) {
        take_snapshot(w, step);
        return false;
    }
    if (s->at != step || s->compares == 0) {
        return false;
    }
    s->compares--;
    return !s->disturbed && !w->changed && memcmp(s->bytes, w->registers, registers) == 0 &&
           memcmp(s->bytes + registers, shared_bytes(w), shared) == 0 &&
           s->version == lilac_sim_schedule_version(w->schedule);
}

/* ---- turns ------------------------------------------------------------------------------ */

lilac_sim_outcome lilac_sim_turn_back(lilac_sim_worker *w, const lilac_sim_step *step) {
    if (w->issued >= w->look_at && !lilac_sim_turn_look(w, true)) {
        return OUTCOME_YIELDS;
    }
    bool alone =
        w->program->kernel->num_ctas == 1 && !w->program->mbarriers && !w->program->parts_wait;
    if (alone && repeats(w, step)) {
        return w->launch->instruction_limit ? OUTCOME_YIELDS : OUTCOME_SLEEPS;
    }
    return w->issued >= w->turn_end ? OUTCOME_YIELDS : OUTCOME_GOES_ON;
}
