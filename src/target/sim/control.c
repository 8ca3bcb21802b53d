/* The loop over the steps of an agent, and the steps that change its control flow or may wait.
 *
 * Control flow is uniform over the threads of an agent. The agent therefore has one position and no
 * mask; where a condition or a bound may differ between threads, its values are compared, and a
 * difference is a trap. */
#include "lanes/multiply.h"
#include "counters/profile.h"
#include "steps.h"
#include "async/wgmma.h"

/* ---- conditions and loops --------------------------------------------------------------- */

/* Traps if operand k of a control step, whose array is at the offset, differs between threads. */
static bool check_agreement(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t k,
                            uint32_t offset, uint32_t entry_bytes) {
    const uint8_t *array = w->registers + offset;
    if (!(s->varies >> k & 1)) {
        return true;
    }
    uint64_t first = read_entry(array, entry_bytes, w->first_thread);
    for (uint32_t t = w->first_thread + 1; t < w->end_thread; t++) {
        if (read_entry(array, entry_bytes, t) != first) {
            return lilac_sim_worker_trap(w, TRAP_DIVERGENT, s, t);
        }
    }
    return true;
}

static int64_t read_signed(const lilac_sim_worker *w, uint32_t offset, uint32_t entry_bytes) {
    uint32_t shift = 64 - 8 * entry_bytes;
    uint64_t bits = read_entry(w->registers + offset, entry_bytes, w->first_thread);
    return (int64_t)(bits << shift) >> shift;
}

/* Sets the loop counter. True: it is below the upper bound. */
static bool set_counter(const lilac_sim_worker *w, const lilac_sim_step *s, uint64_t value) {
    uint32_t entry_bytes = (uint32_t)s->immediate;
    uint8_t *counter = w->registers + s->out + (size_t)w->first_thread * entry_bytes;
    write_entry(counter, entry_bytes, 0, value);
    if (s->fill) {
        fill_entries(counter, entry_bytes, w->threads);
    }
    return read_signed(w, s->out, entry_bytes) < read_signed(w, s->b, entry_bytes);
}

static bool begin_loop(lilac_sim_worker *w, const lilac_sim_step *s, bool *runs) {
    uint32_t entry_bytes = (uint32_t)s->immediate;
    if (!check_agreement(w, s, 0, s->a, entry_bytes) ||
        !check_agreement(w, s, 1, s->b, entry_bytes) ||
        !check_agreement(w, s, 2, s->c, entry_bytes)) {
        return false;
    }
    if (read_signed(w, s->c, entry_bytes) <= 0) {
        return lilac_sim_worker_trap(w, TRAP_STEP, s, 0);
    }
    *runs = set_counter(w, s, read_entry(w->registers + s->a, entry_bytes, w->first_thread));
    return true;
}

static bool next_iteration(const lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t entry_bytes = (uint32_t)s->immediate;
    return set_counter(w, s,
                       read_entry(w->registers + s->out, entry_bytes, w->first_thread) +
                           read_entry(w->registers + s->c, entry_bytes, w->first_thread));
}

/* ---- the step at which a turn ends ------------------------------------------------------- */

/* The innermost loop around a step, or NULL. */
static const lilac_sim_step *innermost_loop(const lilac_sim_program *p, const lilac_sim_step *s) {
    uint32_t number = (uint32_t)(s - p->steps);
    for (uint32_t k = number; k < p->step_count; k++) {
        const lilac_sim_step *back = &p->steps[k];
        if ((back->kind == STEP_JUMP_BACK || back->kind == STEP_LOOP_NEXT) &&
            back->target <= number) {
            return back;
        }
    }
    return NULL;
}

static lilac_sim_outcome stop_at_limit(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_step *loop = innermost_loop(w->program, s);
    lilac_sim_worker_trap(w, loop ? TRAP_LIMIT_IN_LOOP : TRAP_LIMIT, loop ? loop : s, 0);
    return OUTCOME_TRAPPED;
}

/* The agent will continue at this step. */
static lilac_sim_outcome leave_at(lilac_sim_agent *agent, const lilac_sim_step *at,
                                  lilac_sim_outcome outcome) {
    agent->at = at;
    return outcome;
}

/* The turn ends at the back edge of a loop; the agent will continue after step s. */
static lilac_sim_outcome pause_after(lilac_sim_worker *w, lilac_sim_agent *agent,
                                     const lilac_sim_step *back, const lilac_sim_step *s,
                                     lilac_sim_outcome outcome) {
    w->blocks[w->rank].loop = back->source;
    return leave_at(agent, s + 1, outcome);
}

/* ---- control steps ---------------------------------------------------------------------- */

/* A jump sets *at to the step before its target: the loop of lilac_sim_run_agent increments it. */
static void jump(const lilac_sim_worker *w, const lilac_sim_step **at) {
    *at = w->program->steps + (*at)->target - 1;
}

static lilac_sim_outcome run_loop_begin(lilac_sim_worker *w, const lilac_sim_step **at) {
    bool runs = false;
    if (!begin_loop(w, *at, &runs)) {
        return OUTCOME_TRAPPED;
    }
    if (!runs) {
        jump(w, at);
    }
    return OUTCOME_GOES_ON;
}

static lilac_sim_outcome run_loop_next(lilac_sim_worker *w, lilac_sim_agent *agent,
                                       const lilac_sim_step **at) {
    const lilac_sim_step *back = *at;
    bool runs = w->issued < w->look_at || lilac_sim_turn_look(w, back->in_while);
    if (next_iteration(w, back)) {
        jump(w, at);
    }
    return runs ? OUTCOME_GOES_ON : pause_after(w, agent, back, *at, OUTCOME_YIELDS);
}

static lilac_sim_outcome run_branch(lilac_sim_worker *w, const lilac_sim_step **at) {
    const lilac_sim_step *s = *at;
    if (!check_agreement(w, s, 0, s->a, 1)) {
        return OUTCOME_TRAPPED;
    }
    if (!w->registers[s->a + w->first_thread]) {
        jump(w, at);
    }
    return OUTCOME_GOES_ON;
}

static lilac_sim_outcome run_jump_back(lilac_sim_worker *w, lilac_sim_agent *agent,
                                       const lilac_sim_step **at) {
    const lilac_sim_step *back = *at;
    jump(w, at);
    lilac_sim_outcome turn = lilac_sim_turn_back(w, back);
    return turn == OUTCOME_GOES_ON ? turn : pause_after(w, agent, back, *at, turn);
}

/* Steps at which the agent may wait for other agents. */
static lilac_sim_outcome run_waiting(lilac_sim_worker *w, lilac_sim_agent *agent,
                                     const lilac_sim_step *s) {
    bool ok = s->kind == STEP_MBARRIER_WAIT   ? lilac_sim_mbarrier_wait(w, s, &agent->waiting)
              : s->kind == STEP_NAMED_BARRIER ? lilac_sim_named_barrier(w, s, agent)
                                              : lilac_sim_set_registers(w, s, agent);
    if (!ok) {
        return OUTCOME_TRAPPED;
    }
    return agent->waiting.step != NULL ? leave_at(agent, s + 1, OUTCOME_BLOCKED) : OUTCOME_GOES_ON;
}

static lilac_sim_outcome end_block(lilac_sim_worker *w) {
    lilac_sim_copies_end(w);
    lilac_sim_named_end(w);
    lilac_sim_wgmmas_end(w);
    return lilac_sim_bulks_end(w) ? OUTCOME_ENDED : OUTCOME_TRAPPED;
}

static lilac_sim_outcome run_control(lilac_sim_worker *w, lilac_sim_agent *agent,
                                     const lilac_sim_step **at) {
    const lilac_sim_step *s = *at;
    switch (s->kind) {
    case STEP_LOOP_BEGIN:
        return run_loop_begin(w, at);
    case STEP_LOOP_NEXT:
        return run_loop_next(w, agent, at);
    case STEP_BRANCH:
        return run_branch(w, at);
    case STEP_JUMP:
        jump(w, at);
        return OUTCOME_GOES_ON;
    case STEP_JUMP_BACK:
        return run_jump_back(w, agent, at);
    case STEP_FORK:
        lilac_sim_fork(w, s);
        return leave_at(agent, w->program->steps + s->target, OUTCOME_FORKED);
    case STEP_JOIN:
        agent->ended = true;
        return OUTCOME_JOINED;
    case STEP_CLUSTER_BARRIER:
        return leave_at(agent, s + 1, OUTCOME_WAITS);
    case STEP_END:
        return end_block(w);
    default:
        return run_waiting(w, agent, s);
    }
}

lilac_sim_outcome lilac_sim_run_agent(lilac_sim_worker *w, lilac_sim_agent *agent) {
    uint64_t limit = w->launch->instruction_limit ? w->launch->instruction_limit : LILAC_SIM_LIMIT;
    limit /= w->program->warps;
    for (const lilac_sim_step *s = agent->at;; s++) {
        w->issued += s->issues;
        if (w->issued > limit) {
            return stop_at_limit(w, s);
        }
        w->tally[s->tally] += w->end_warp - w->first_warp;
        if (w->sites != NULL) {
            lilac_sim_profile_issue(w, s);
        }
        if (w->poison.live && !lilac_sim_poison_step(w, s)) {
            return OUTCOME_TRAPPED;
        }
        if (w->wgmmas != NULL && !lilac_sim_is_wgmma(s)) {
            lilac_sim_wgmma_watch(w, s);
        }
        lilac_sim_action *action = lilac_sim_actions[s->kind];
        if (action != NULL) {
            if (!(w->sites != NULL ? lilac_sim_profile_step(w, s, action) : action(w, s))) {
                return OUTCOME_TRAPPED;
            }
            continue;
        }
        lilac_sim_outcome outcome = run_control(w, agent, &s);
        if (outcome != OUTCOME_GOES_ON) {
            return outcome;
        }
    }
}
