/* The warp programs of a block: their begin and end, named barriers, and register budgets.
 *
 *     block's agent   ──fork──▶ waits ─────────────────────────▶ continues when all have ended
 *     program 0                 ── arrive ──────────── end
 *     program 1                 ── … ── sync: waits ── … ── end
 *
 * A program executes until it waits or ends, or until its turn ends; then the next one executes. A fork
 * and a join order no accesses. At a named barrier every arrival releases the clock of its warp, and a warp that
 * waits acquires all of them when the last arrival comes. Registers are a number for each block: a
 * decrease adds to it, an increase waits until there are enough. */
#include "memory/access.h"

#include <string.h>

enum { MOST_REGISTERS = 256, REGISTER_STEP = 8 };

/* ---- storage ---------------------------------------------------------------------------- */

void lilac_sim_agents_create(const lilac_sim_worker *w, lilac_sim_block *block) {
    const lilac_sim_program *p = w->program;
    uint32_t warps = p->warps * p->kernel->num_ctas;
    size_t clock = (p->async_clocks ? 2 : 1) * (size_t)warps;
    *block = (lilac_sim_block){0};
    block->agents = lilac_heap_grow(NULL, sizeof *block->agents * (p->most_parts + 1));
    for (uint32_t k = 0; k < LILAC_SIM_NAMED && p->parts_wait; k++) {
        block->named[k].gathered = lilac_heap_grow(NULL, clock * sizeof *block->named[k].gathered);
    }
}

void lilac_sim_agents_destroy(lilac_sim_block *block) {
    lilac_heap_free(block->agents);
    for (uint32_t k = 0; k < LILAC_SIM_NAMED; k++) {
        lilac_heap_free(block->named[k].gathered);
    }
}

static void reset(const lilac_sim_worker *w, lilac_sim_named *barrier) {
    uint32_t *clock = barrier->gathered;
    memset(clock, 0, sizeof *clock * w->shared.clocks);
    *barrier = (lilac_sim_named){.gathered = clock};
}

/* Registers of a thread if one block occupies the multiprocessor. */
static uint32_t registers_at_entry(const lilac_sim_program *p) {
    uint32_t each = p->arch->registers / p->threads;
    each = each < MOST_REGISTERS ? each : MOST_REGISTERS;
    return each / REGISTER_STEP * REGISTER_STEP;
}

void lilac_sim_agents_begin(const lilac_sim_worker *w, lilac_sim_block *block) {
    const lilac_sim_program *p = w->program;
    uint32_t registers = registers_at_entry(p);
    for (uint32_t k = 0; k < LILAC_SIM_NAMED && p->parts_wait; k++) {
        reset(w, &block->named[k]);
    }
    block->agents[0] =
        (lilac_sim_agent){.at = p->steps, .end_warp = p->warps, .registers = registers};
    block->free_registers = p->arch->registers - registers * p->threads;
    block->programs = 0;
    block->executed = 0;
    block->loop = NULL;
    block->ended = block->waits = false;
    block->reached.at = NULL;
}

/* ---- programs --------------------------------------------------------------------------- */

void lilac_sim_fork(lilac_sim_worker *w, const lilac_sim_step *step) {
    lilac_sim_block *block = &w->blocks[w->rank];
    const lilac_sim_agent *own = &block->agents[0];
    for (uint32_t k = 0; k < step->n; k++) {
        const lilac_sim_part *part = &w->program->parts[step->access + k];
        block->agents[1 + k] = (lilac_sim_agent){.at = w->program->steps + part->first,
                                                 .first_warp = part->first_warp,
                                                 .end_warp = part->end_warp,
                                                 .issued = w->issued,
                                                 .registers = own->registers};
    }
    block->programs = step->n;
}

void lilac_sim_join(lilac_sim_worker *w) {
    lilac_sim_block *block = &w->blocks[w->rank];
    uint64_t issued = 0;
    for (uint32_t k = 1; k <= block->programs; k++) {
        if (!block->agents[k].ended) {
            return;
        }
        issued = block->agents[k].issued > issued ? block->agents[k].issued : issued;
    }
    block->agents[0].issued = issued;
    block->programs = 0;
}

/* ---- named barriers --------------------------------------------------------------------- */

static uint32_t id_of(const lilac_sim_step *step) {
    return step->source->detail;
}

static bool trap_barrier(lilac_sim_worker *w, lilac_sim_trap_kind kind, const lilac_sim_step *step,
                         const lilac_sim_named *barrier, uint32_t threads) {
    w->trap.address = id_of(step);
    w->trap.size = threads;
    w->trap.use = barrier->last ? barrier->last->source : NULL;
    return lilac_sim_worker_trap(w, kind, step, w->first_thread);
}

/* The warps of an agent that waits at the barrier acquire its clock. The agent continues. */
static void let_go(lilac_sim_worker *w, const lilac_sim_named *barrier, lilac_sim_agent *agent) {
    for (uint32_t k = agent->first_warp; k < agent->end_warp; k++) {
        uint32_t warp = w->rank * w->program->warps + k;
        lilac_sim_shared_acquire(&w->shared, warp, barrier->gathered);
        lilac_sim_order_acquire(w, warp, barrier->gathered_known);
    }
    agent->waiting.step = NULL;
}

static void complete(lilac_sim_worker *w, lilac_sim_named *barrier, uint32_t id) {
    lilac_sim_block *block = &w->blocks[w->rank];
    for (uint32_t k = 0; k <= block->programs; k++) {
        lilac_sim_agent *agent = &block->agents[k];
        const lilac_sim_step *step = agent->waiting.step;
        if (step && step->kind == STEP_NAMED_BARRIER && id_of(step) == id) {
            let_go(w, barrier, agent);
        }
    }
    reset(w, barrier);
}

bool lilac_sim_named_barrier(lilac_sim_worker *w, const lilac_sim_step *step,
                             lilac_sim_agent *agent) {
    lilac_sim_named *barrier = &w->blocks[w->rank].named[id_of(step)];
    w->snapshot.disturbed = true;
    for (uint32_t k = w->first_warp; k < w->end_warp; k++) {
        uint32_t warp = w->rank * w->program->warps + k;
        if (barrier->warps >> k & 1) {
            return trap_barrier(w, TRAP_NAMED_TWICE, step, barrier, barrier->threads);
        }
        barrier->warps |= UINT64_C(1) << k;
        lilac_sim_shared_release(&w->shared, warp, barrier->gathered);
        lilac_sim_order_release(w, warp, &barrier->gathered_known);
    }
    lilac_sim_shared_tick(&w->shared);
    barrier->threads += w->threads;
    if (barrier->threads > step->immediate) {
        return trap_barrier(w, TRAP_NAMED_COUNT, step, barrier, barrier->threads);
    }
    barrier->last = step;
    if (step->source->code == LILAC_SIMT_OP_NAMED_BARRIER_SYNC) {
        agent->waiting = (lilac_sim_waiting){.step = step};
    }
    if (barrier->threads == step->immediate) {
        complete(w, barrier, id_of(step));
    }
    return true;
}

void lilac_sim_named_end(lilac_sim_worker *w) {
    lilac_sim_block *block = &w->blocks[w->rank];
    for (uint32_t k = 0; k < LILAC_SIM_NAMED; k++) {
        const lilac_sim_named *barrier = &block->named[k];
        if (!barrier->threads) {
            continue;
        }
        w->counters.races++;
        lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_NAMED_UNFINISHED,
                                                     .at = barrier->last->source,
                                                     .block = w->block,
                                                     .address = k,
                                                     .width = barrier->threads});
    }
}

/* ---- registers -------------------------------------------------------------------------- */

/* Takes the registers that an increase needs, if that many are free. */
static bool take_registers(lilac_sim_worker *w, const lilac_sim_step *step,
                           lilac_sim_agent *agent) {
    lilac_sim_block *block = &w->blocks[w->rank];
    uint32_t more = ((uint32_t)step->immediate - agent->registers) * w->threads;
    if (more > block->free_registers) {
        return false;
    }
    block->free_registers -= more;
    agent->registers = (uint32_t)step->immediate;
    return true;
}

bool lilac_sim_set_registers(lilac_sim_worker *w, const lilac_sim_step *step,
                             lilac_sim_agent *agent) {
    bool increases = step->source->detail == 1;
    if (increases ? step->immediate < agent->registers : step->immediate > agent->registers) {
        w->trap.size = agent->registers;
        return lilac_sim_worker_trap(w, TRAP_REGISTERS, step, w->first_thread);
    }
    if (!increases) {
        uint32_t fewer = agent->registers - (uint32_t)step->immediate;
        w->blocks[w->rank].free_registers += fewer * w->threads;
        agent->registers = (uint32_t)step->immediate;
    } else if (!take_registers(w, step, agent)) {
        agent->waiting = (lilac_sim_waiting){.step = step};
    }
    return true;
}

/* ---- waiting ---------------------------------------------------------------------------- */

bool lilac_sim_agent_passes(lilac_sim_worker *w, lilac_sim_agent *agent) {
    const lilac_sim_step *step = agent->waiting.step;
    switch (step->kind) {
    case STEP_MBARRIER_WAIT:
        return lilac_sim_mbarrier_passes(w, &agent->waiting);
    case STEP_SET_REGISTERS:
        if (!take_registers(w, step, agent)) {
            return false;
        }
        agent->waiting.step = NULL;
        return true;
    default: /* a named barrier lets its agents go when it completes */
        return false;
    }
}

static lilac_sim_stuck describe(const lilac_sim_worker *w, uint32_t rank,
                                const lilac_sim_agent *agent) {
    const lilac_sim_step *step = agent->waiting.step;
    const lilac_sim_block *block = &w->blocks[rank];
    uint64_t first = w->block / w->program->kernel->num_ctas * w->program->kernel->num_ctas;
    lilac_sim_stuck stuck = {.at = step->source,
                             .block = first + rank,
                             .first_warp = agent->first_warp,
                             .warps = agent->end_warp - agent->first_warp};
    if (step->kind == STEP_MBARRIER_WAIT) {
        const lilac_sim_mbarrier *b = lilac_sim_mbarrier_at(w, agent->waiting.place);
        stuck.last = b->last->source;
        stuck.phase = b->now;
        stuck.address = b->place % w->shared.stride;
        stuck.rank = (uint32_t)(b->place / w->shared.stride);
        stuck.parity = agent->waiting.parity;
    } else if (step->kind == STEP_NAMED_BARRIER) {
        const lilac_sim_named *barrier = &block->named[id_of(step)];
        stuck.last = barrier->last->source;
        stuck.count = barrier->threads;
    } else {
        stuck.count = block->free_registers / (w->program->arch->warp_size * stuck.warps);
    }
    return stuck;
}

void lilac_sim_trap_deadlock(lilac_sim_worker *w) {
    const lilac_sim_step *first = NULL;
    uint32_t thread = 0;
    uint64_t block = 0;
    w->trap.stuck_count = 0;
    for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++) {
        for (uint32_t k = 0; k <= w->blocks[rank].programs; k++) {
            const lilac_sim_agent *agent = &w->blocks[rank].agents[k];
            if (!agent->waiting.step || w->trap.stuck_count == LILAC_SIM_MOST_STUCK) {
                continue;
            }
            lilac_sim_stuck stuck = describe(w, rank, agent);
            w->trap.stuck[w->trap.stuck_count++] = stuck;
            thread = first ? thread : agent->first_warp * w->program->arch->warp_size;
            block = first ? block : stuck.block;
            first = first ? first : agent->waiting.step;
        }
    }
    lilac_sim_worker_trap(w, TRAP_DEADLOCK, first, thread);
    w->trap.block = block;
}
