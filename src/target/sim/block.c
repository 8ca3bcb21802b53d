/* Running a cluster: its agents in turn, one step after another, each for all its threads.
 *
 * An agent is a block, or one of the programs of a block. Control flow is the same for all its
 * threads, so it has one place in the program and no mask; a condition is compared over the threads
 * where it may differ. */
#include "multiply.h"
#include "schedule.h"
#include "wgmma.h"

#include <string.h>

enum { GROUPS = 15, MOST_WARPS = 64, TURN = 1 << 14 /* instructions of each warp */ };

bool lilac_sim_worker_trap(lilac_sim_worker *w, lilac_sim_trap_kind kind,
                           const lilac_sim_step *step, uint32_t thread) {
    w->trap.kind = kind;
    w->trap.at = step->source;
    w->trap.block = w->block;
    w->trap.thread = thread;
    return false;
}

/* One line may be many instructions, one for each register of a tensor. */
static bool same_line(const lilac_simt_instruction *a, const lilac_simt_instruction *b) {
    return a == b || (a && b && a->location && a->location == b->location && a->code == b->code);
}

bool lilac_sim_same_finding(const lilac_sim_finding *a, const lilac_sim_finding *b) {
    return a->kind == b->kind && same_line(a->at, b->at) && same_line(a->other, b->other);
}

/* Clusters need not come in order: of equal findings the first cluster's is kept, and of too many
 * those of the first clusters. */
void lilac_sim_worker_find(lilac_sim_worker *w, lilac_sim_finding finding) {
    uint32_t ctas = w->program->kernel->num_ctas, replaced = w->finding_count;
    uint64_t cluster = finding.block / ctas, last = cluster;
    bool full = w->kept[finding.kind] == LILAC_SIM_FINDINGS;
    for (uint32_t k = 0; k < w->finding_count; k++) {
        const lilac_sim_finding *f = &w->findings[k];
        if (lilac_sim_same_finding(f, &finding)) {
            if (f->block / ctas <= cluster)
                return;
            replaced = k;
            full = false;
            break;
        }
        if (full && f->kind == finding.kind && f->block / ctas > last) {
            last = f->block / ctas;
            replaced = k;
        }
    }
    if (full && replaced == w->finding_count)
        return;
    if (replaced < w->finding_count) {
        w->finding_count--;
        memmove(w->findings + replaced, w->findings + replaced + 1,
                sizeof *w->findings * (w->finding_count - replaced));
    } else {
        w->kept[finding.kind]++;
    }
    w->findings[w->finding_count++] = finding;
}

/* ---- presets ---------------------------------------------------------------------------- */

static void apply_preset(lilac_sim_worker *w, const lilac_sim_preset *preset) {
    const lilac_sim_program *p = w->program;
    uint8_t *array = w->registers + preset->out;
    uint32_t size = p->arch->warp_size;
    switch (preset->kind) {
    case PRESET_THREAD:
    case PRESET_LANE:
    case PRESET_WARP:
    case PRESET_ELECTED:
        for (uint32_t t = 0; t < p->threads; t++)
            write_entry(array, preset->entry_bytes, t,
                        preset->kind == PRESET_THREAD ? t
                        : preset->kind == PRESET_LANE ? t % size
                        : preset->kind == PRESET_WARP ? t / size
                                                      : t % size == 0);
        return;
    case PRESET_BLOCK:
        write_entry(array, preset->entry_bytes, 0, w->place[preset->bits]);
        break;
    case PRESET_CTA:
        write_entry(array, preset->entry_bytes, 0, w->rank);
        break;
    default:
        write_entry(array, preset->entry_bytes, 0, preset->bits);
        break;
    }
    fill_entries(array, preset->entry_bytes, p->threads);
}

static bool is_for_each_block(const lilac_sim_preset *preset) {
    return preset->kind == PRESET_BLOCK || preset->kind == PRESET_CTA;
}

lilac_sim_cluster *lilac_sim_cluster_create(lilac_sim_worker *w) {
    const lilac_sim_program *program = w->program;
    uint32_t blocks = program->kernel->num_ctas;
    size_t bytes = (size_t)program->register_bytes * blocks;
    lilac_sim_cluster *c = lilac_heap_grow(NULL, sizeof *c);
    *c = (lilac_sim_cluster){.register_files = lilac_heap_grow(NULL, bytes + 1),
                             .blocks = lilac_heap_grow(NULL, sizeof *c->blocks * blocks)};
    memset(c->register_files, 0, bytes);
    lilac_sim_shared_init(&c->shared, program);
    lilac_sim_bulks_init(&c->bulks, program);
    c->wgmmas = lilac_sim_wgmmas_create(program);
    c->known = lilac_sim_order_create(w);
    for (uint32_t rank = 0; rank < blocks; rank++) {
        lilac_sim_agents_create(w, &c->blocks[rank]);
        w->registers = c->register_files + program->register_bytes * rank;
        for (uint32_t k = 0; k < program->preset_count; k++)
            if (!is_for_each_block(&program->presets[k]))
                apply_preset(w, &program->presets[k]);
    }
    return c;
}

void lilac_sim_cluster_destroy(lilac_sim_cluster *cluster) {
    for (uint32_t rank = 0; rank < cluster->shared.blocks; rank++)
        lilac_sim_agents_destroy(&cluster->blocks[rank]);
    lilac_heap_free(cluster->register_files);
    lilac_heap_free(cluster->blocks);
    lilac_heap_free(cluster->known);
    lilac_sim_shared_clear(&cluster->shared);
    lilac_sim_poison_clear(&cluster->poison);
    lilac_sim_copies_clear(&cluster->copies);
    lilac_sim_bulks_clear(&cluster->bulks);
    lilac_sim_mbarriers_clear(&cluster->mbarriers);
    lilac_sim_wgmmas_destroy(cluster->wgmmas);
    lilac_heap_free(cluster);
}

void lilac_sim_worker_init(lilac_sim_worker *w, const lilac_sim_program *program,
                           const lilac_sim_launch *launch, const lilac_sim_memory *memory) {
    *w = (lilac_sim_worker){.program = program, .launch = launch, .memory = memory};
    atomic_init(&w->version, 0);
}

void lilac_sim_worker_clear(lilac_sim_worker *w) {
    for (uint32_t k = 0; k < w->resident_count; k++)
        lilac_sim_cluster_destroy(w->residents[k]);
    for (uint32_t k = 0; k < w->spare_count; k++)
        lilac_sim_cluster_destroy(w->spares[k]);
    lilac_heap_free(w->residents);
    lilac_heap_free(w->spares);
    lilac_heap_free(w->snapshot.bytes);
    lilac_heap_free(w->printed);
    lilac_text_clear(&w->text);
    lilac_sim_order_clear(&w->order);
}

/* ---- steps ------------------------------------------------------------------------------ */

/* The entries of the threads in execution. */
static uint8_t *entries(const lilac_sim_worker *w, uint32_t offset, uint32_t width) {
    return w->registers + offset + (size_t)w->first_thread * width;
}

static void run_lanes(const lilac_sim_worker *w, const lilac_sim_step *s) {
    uint8_t *out = entries(w, s->out, s->width[3]);
    s->loop(s->n, s->immediate, out, entries(w, s->a, s->width[0]), entries(w, s->b, s->width[1]),
            entries(w, s->c, s->width[2]));
    if (s->fill)
        fill_entries(out, s->entry_bytes, w->threads);
}

static void run_flushed(const lilac_sim_worker *w, const lilac_sim_step *s) {
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
    if (s->fill)
        fill_entries(out, s->entry_bytes, w->threads);
}

static void run_divide(lilac_sim_worker *w, const lilac_sim_step *s) {
    for (uint32_t t = 0; t < s->n; t++) {
        if (read_entry(w->registers + s->b, s->entry_bytes, w->first_thread + t) == 0) {
            lilac_sim_poison_divide(w, s);
            return;
        }
    }
    run_lanes(w, s);
}

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

static void run_shuffle(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size;
    const lane_u32 *values = (const void *)(w->registers + s->a);
    const lane_u32 *operands = (const void *)(w->registers + s->b);
    lane_u32 *out = (void *)(w->registers + s->out);
    for (uint32_t first = w->first_thread; first < w->end_thread; first += size)
        for (uint32_t lane = 0; lane < size; lane++)
            out[first + lane] =
                values[first + lilac_sim_partner(s->immediate, lane, operands[first + lane], size)];
    w->counters.shuffles += w->end_warp - w->first_warp;
}

static void run_ballot(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size;
    const lane_u8 *conditions = w->registers + s->a;
    lane_u32 *out = (void *)(w->registers + s->out);
    for (uint32_t first = w->first_thread; first < w->end_thread; first += size) {
        uint32_t votes = 0;
        for (uint32_t lane = 0; lane < size; lane++)
            votes |= (uint32_t)(conditions[first + lane] != 0) << lane;
        for (uint32_t lane = 0; lane < size; lane++)
            out[first + lane] = votes;
    }
    w->counters.votes += w->end_warp - w->first_warp;
}

static bool run_assert(lilac_sim_worker *w, const lilac_sim_step *s) {
    for (uint32_t t = w->first_thread; t < w->first_thread + s->n; t++)
        if (!w->registers[s->a + t])
            return lilac_sim_worker_trap(w, TRAP_ASSERT, s, t);
    return true;
}

/* Is operand k of a control step, at an offset, the same for all threads? */
static bool check_agreement(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t k,
                            uint32_t offset, uint32_t entry_bytes) {
    const uint8_t *array = w->registers + offset;
    if (!(s->varies >> k & 1))
        return true;
    uint64_t first = read_entry(array, entry_bytes, w->first_thread);
    for (uint32_t t = w->first_thread + 1; t < w->end_thread; t++)
        if (read_entry(array, entry_bytes, t) != first)
            return lilac_sim_worker_trap(w, TRAP_DIVERGENT, s, t);
    return true;
}

static int64_t read_signed(const lilac_sim_worker *w, uint32_t offset, uint32_t entry_bytes) {
    uint32_t shift = 64 - 8 * entry_bytes;
    uint64_t bits = read_entry(w->registers + offset, entry_bytes, w->first_thread);
    return (int64_t)(bits << shift) >> shift;
}

/* The counter's next value; whether there is an iteration for it. */
static bool set_counter(const lilac_sim_worker *w, const lilac_sim_step *s, uint64_t value) {
    uint32_t entry_bytes = (uint32_t)s->immediate;
    uint8_t *counter = entries(w, s->out, entry_bytes);
    write_entry(counter, entry_bytes, 0, value);
    if (s->fill)
        fill_entries(counter, entry_bytes, w->threads);
    return read_signed(w, s->out, entry_bytes) < read_signed(w, s->b, entry_bytes);
}

static bool begin_loop(lilac_sim_worker *w, const lilac_sim_step *s, bool *runs) {
    uint32_t entry_bytes = (uint32_t)s->immediate;
    if (!check_agreement(w, s, 0, s->a, entry_bytes) ||
        !check_agreement(w, s, 1, s->b, entry_bytes) ||
        !check_agreement(w, s, 2, s->c, entry_bytes))
        return false;
    if (read_signed(w, s->c, entry_bytes) <= 0)
        return lilac_sim_worker_trap(w, TRAP_STEP, s, 0);
    *runs = set_counter(w, s, read_entry(w->registers + s->a, entry_bytes, w->first_thread));
    return true;
}

static bool next_iteration(const lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t entry_bytes = (uint32_t)s->immediate;
    return set_counter(w, s,
                       read_entry(w->registers + s->out, entry_bytes, w->first_thread) +
                           read_entry(w->registers + s->c, entry_bytes, w->first_thread));
}

/* The warps of the block in execution, ordered among themselves. */
static void run_barrier(lilac_sim_worker *w) {
    uint32_t warps[MOST_WARPS], count = w->program->warps;
    for (uint32_t k = 0; k < count; k++)
        warps[k] = w->rank * count + k;
    lilac_sim_shared_order(&w->shared, warps, count);
    lilac_sim_order_join(w, warps, count);
    w->counters.barriers++;
}

static bool run_group_barrier(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size, count = w->program->warps;
    uint32_t warps[GROUPS][MOST_WARPS], members[GROUPS] = {0};
    const lane_u32 *numbers = (const void *)(w->registers + s->a);
    for (uint32_t warp = 0; warp < count; warp++) {
        uint32_t number = numbers[warp * size];
        uint32_t apart = s->source->shared_partition; /* whom the barrier says it meets */
        bool meets = !apart || numbers[(warp & apart) * size] == number;
        for (uint32_t lane = 0; lane < size; lane++)
            if (numbers[warp * size + lane] != number || number >= GROUPS || !meets)
                return lilac_sim_worker_trap(w, TRAP_GROUP_NUMBER, s, warp * size + lane);
        warps[number][members[number]++] = w->rank * count + warp;
    }
    for (uint32_t k = 0; k < GROUPS; k++) {
        if (members[k] && members[k] * size != s->immediate) {
            w->trap.address = k;
            w->trap.size = members[k];
            return lilac_sim_worker_trap(w, TRAP_GROUP_SIZE, s, warps[k][0] % count * size);
        }
        if (!members[k])
            continue;
        lilac_sim_shared_order(&w->shared, warps[k], members[k]);
        lilac_sim_order_join(w, warps[k], members[k]);
    }
    w->counters.group_barriers += count;
    return true;
}

/* The innermost loop around a step, or NULL. */
static const lilac_sim_step *innermost_loop(const lilac_sim_program *p, const lilac_sim_step *s) {
    uint32_t number = (uint32_t)(s - p->steps);
    for (uint32_t k = number; k < p->step_count; k++) {
        const lilac_sim_step *back = &p->steps[k];
        if ((back->kind == STEP_JUMP_BACK || back->kind == STEP_LOOP_NEXT) &&
            back->target <= number)
            return back;
    }
    return NULL;
}

static lilac_sim_outcome stop_at_limit(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_step *loop = innermost_loop(w->program, s);
    lilac_sim_worker_trap(w, loop ? TRAP_LIMIT_IN_LOOP : TRAP_LIMIT, loop ? loop : s, 0);
    return OUTCOME_TRAPPED;
}

/* The agent goes on there. */
static lilac_sim_outcome leave_at(lilac_sim_agent *agent, const lilac_sim_step *at,
                                  lilac_sim_outcome outcome) {
    agent->at = at;
    return outcome;
}

/* The turn ends after a loop's back edge; the agent goes on after step s. */
static lilac_sim_outcome pause_after(lilac_sim_worker *w, lilac_sim_agent *agent,
                                     const lilac_sim_step *back, const lilac_sim_step *s,
                                     lilac_sim_outcome outcome) {
    w->blocks[w->rank].loop = back->source;
    return leave_at(agent, s + 1, outcome);
}

/* Goes on with the agent in execution. */
static lilac_sim_outcome run_steps(lilac_sim_worker *w, lilac_sim_agent *agent) {
    const lilac_sim_program *p = w->program;
    uint64_t limit =
        (w->launch->instruction_limit ? w->launch->instruction_limit : LILAC_SIM_LIMIT) / p->warps;
    const lilac_sim_step *s = agent->at, *back;
    lilac_sim_outcome turn;
    for (;; s++) {
        w->issued += s->issues;
        if (w->issued > limit)
            return stop_at_limit(w, s);
        w->tally[s->tally] += w->end_warp - w->first_warp;
        bool runs = true;
        if (w->poison.live && !lilac_sim_poison_step(w, s))
            return OUTCOME_TRAPPED;
        if (w->wgmmas && !lilac_sim_is_wgmma(s))
            lilac_sim_wgmma_watch(w, s);
        switch ((lilac_sim_step_kind)s->kind) {
        case STEP_LANES:
            run_lanes(w, s);
            break;
        case STEP_FLUSHED:
            run_flushed(w, s);
            break;
        case STEP_DIVIDE:
            run_divide(w, s);
            break;
        case STEP_LOAD_GLOBAL:
        case STEP_STORE_GLOBAL:
            if (!lilac_sim_access_global(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_LOAD_SHARED:
        case STEP_STORE_SHARED:
        case STEP_LOAD_CLUSTER:
        case STEP_STORE_CLUSTER:
            if (!lilac_sim_access_shared(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_LOAD_MATRIX:
        case STEP_STORE_MATRIX:
            if (!lilac_sim_access_matrix(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_ATOMIC_GLOBAL:
        case STEP_ATOMIC_SHARED:
            if (!lilac_sim_access_atomic(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_COPY:
            if (!lilac_sim_copy_start(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_COPY_COMMIT:
            lilac_sim_copy_commit(w);
            break;
        case STEP_COPY_WAIT:
            lilac_sim_copy_wait(w, s);
            break;
        case STEP_BULK_START:
        case STEP_BULK_COMMIT:
        case STEP_BULK_WAIT:
            if (!lilac_sim_bulk_step(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_FENCE_PROXY:
            lilac_sim_proxies_fence(w, s);
            break;
        case STEP_WGMMA:
        case STEP_WGMMA_FENCE:
        case STEP_WGMMA_COMMIT:
        case STEP_WGMMA_WAIT:
            if (!lilac_sim_wgmma_step(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_MMA:
            lilac_sim_mma(w, s);
            break;
        case STEP_MBARRIER:
            if (!lilac_sim_mbarrier_step(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_MBARRIER_WAIT:
            if (!lilac_sim_mbarrier_wait(w, s, &agent->waiting))
                return OUTCOME_TRAPPED;
            if (agent->waiting.step)
                return leave_at(agent, s + 1, OUTCOME_BLOCKED);
            break;
        case STEP_NAMED_BARRIER:
        case STEP_SET_REGISTERS:
            if (!(s->kind == STEP_NAMED_BARRIER ? lilac_sim_named_barrier(w, s, agent)
                                                : lilac_sim_set_registers(w, s, agent)))
                return OUTCOME_TRAPPED;
            if (agent->waiting.step)
                return leave_at(agent, s + 1, OUTCOME_BLOCKED);
            break;
        case STEP_FORK:
            lilac_sim_fork(w, s);
            return leave_at(agent, p->steps + s->target, OUTCOME_FORKED);
        case STEP_JOIN:
            agent->ended = true;
            return OUTCOME_JOINED;
        case STEP_VOTE:
        case STEP_MATCH:
        case STEP_REDUX:
            lilac_sim_vote(w, s);
            break;
        case STEP_PRINT:
            lilac_sim_print(w, s);
            w->snapshot.disturbed = true;
            break;
        case STEP_TIMER:
            w->snapshot.disturbed = true;
            write_entry(entries(w, s->out, 8), 8, 0, w->issued * p->warps);
            fill_entries(entries(w, s->out, 8), 8, w->threads);
            break;
        case STEP_SHUFFLE:
            run_shuffle(w, s);
            break;
        case STEP_BALLOT:
            run_ballot(w, s);
            break;
        case STEP_BARRIER:
            run_barrier(w);
            break;
        case STEP_WARP_BARRIER:
            w->counters.warp_barriers += w->end_warp - w->first_warp;
            break;
        case STEP_GROUP_BARRIER:
            if (!run_group_barrier(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_CLUSTER_BARRIER:
            return leave_at(agent, s + 1, OUTCOME_WAITS);
        case STEP_ASSERT:
            if (!run_assert(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_LOOP_BEGIN:
            if (!begin_loop(w, s, &runs))
                return OUTCOME_TRAPPED;
            if (!runs)
                s = p->steps + s->target - 1;
            break;
        case STEP_LOOP_NEXT:
            runs = w->issued < w->look_at || lilac_sim_turn_look(w, s->in_while);
            back = s;
            if (next_iteration(w, s))
                s = p->steps + s->target - 1;
            if (!runs)
                return pause_after(w, agent, back, s, OUTCOME_YIELDS);
            break;
        case STEP_BRANCH:
            if (!check_agreement(w, s, 0, s->a, 1))
                return OUTCOME_TRAPPED;
            if (!w->registers[s->a + w->first_thread])
                s = p->steps + s->target - 1;
            break;
        case STEP_JUMP:
            s = p->steps + s->target - 1;
            break;
        case STEP_JUMP_BACK:
            back = s;
            s = p->steps + s->target - 1;
            turn = lilac_sim_turn_back(w, back);
            if (turn != OUTCOME_GOES_ON)
                return pause_after(w, agent, back, s, turn);
            break;
        case STEP_END:
            lilac_sim_copies_end(w);
            lilac_sim_named_end(w);
            lilac_sim_wgmmas_end(w);
            return lilac_sim_bulks_end(w) ? OUTCOME_ENDED : OUTCOME_TRAPPED;
        }
    }
}

/* Makes an agent of the block of that rank the one in execution. */
static lilac_sim_agent *enter(lilac_sim_worker *w, uint64_t cluster, uint32_t rank,
                              uint32_t number) {
    lilac_sim_agent *agent = &w->blocks[rank].agents[number];
    uint32_t size = w->program->arch->warp_size;
    w->rank = rank;
    w->block = cluster * w->program->kernel->num_ctas + rank;
    w->registers = w->register_files + w->program->register_bytes * rank;
    w->issued = agent->issued;
    w->first_warp = agent->first_warp;
    w->end_warp = agent->end_warp;
    w->first_thread = agent->first_warp * size;
    w->end_thread = agent->end_warp * size;
    w->threads = w->end_thread - w->first_thread;
    return agent;
}

static void begin_block(lilac_sim_worker *w, uint64_t cluster, uint32_t rank) {
    const lilac_sim_program *p = w->program;
    lilac_sim_agents_begin(w, &w->blocks[rank]);
    enter(w, cluster, rank, 0);
    for (uint32_t k = 0; k < p->preset_count; k++)
        if (is_for_each_block(&p->presets[k]))
            apply_preset(w, &p->presets[k]);
}

/* What a round of turns came to. */
typedef struct turns {
    lilac_sim_outcome outcome; /* ENDED: no turn ended in a loop or with a trap */
    bool progress, unfinished; /* some agent went on; some block has neither ended nor waits */
} turns;

/* A turn of the agent in execution. */
static void take_turn(lilac_sim_worker *w, lilac_sim_block *block, lilac_sim_agent *agent,
                      turns *all) {
    uint64_t before = w->issued;
    all->progress = true;
    w->turn_end = w->issued + TURN;
    w->look_at = w->issued + w->look_rest;
    w->snapshot.visits = 0;
    w->snapshot.at = NULL;
    lilac_sim_outcome end = run_steps(w, agent);
    w->look_rest = w->look_at > w->issued ? w->look_at - w->issued : 0;
    agent->issued = w->issued;
    block->executed += (w->issued - before) * (w->end_warp - w->first_warp);
    block->ended = end == OUTCOME_ENDED;
    block->waits = end == OUTCOME_WAITS;
    if (end == OUTCOME_JOINED)
        lilac_sim_join(w);
    if (end == OUTCOME_YIELDS || end == OUTCOME_SLEEPS || end == OUTCOME_TRAPPED)
        all->outcome = end;
}

/* Gives every agent of the block that can go on a turn. */
static void run_block(lilac_sim_worker *w, uint64_t cluster, uint32_t rank, turns *all) {
    lilac_sim_block *block = &w->blocks[rank];
    uint32_t first = block->programs ? 1 : 0, last = block->programs;
    block->loop = NULL;
    for (uint32_t k = first; k <= last && all->outcome != OUTCOME_TRAPPED; k++) {
        lilac_sim_agent *agent = enter(w, cluster, rank, k);
        if (!agent->ended && (!agent->waiting.step || lilac_sim_agent_passes(w, agent)))
            take_turn(w, block, agent, all);
    }
    all->unfinished |= !block->ended && !block->waits;
}

/* Turns of all blocks that are not at the cluster barrier. ENDED: all blocks have ended or are at
 * the barrier. Copies arrive at mbarriers when no agent can go on without. */
static lilac_sim_outcome run_phase(lilac_sim_worker *w, uint64_t cluster) {
    for (;;) {
        turns all = {.outcome = OUTCOME_ENDED};
        for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++)
            if (!w->blocks[rank].ended && !w->blocks[rank].waits && all.outcome != OUTCOME_TRAPPED)
                run_block(w, cluster, rank, &all);
        if (all.outcome != OUTCOME_ENDED || !all.unfinished)
            return all.outcome;
        if (all.progress || lilac_sim_land_oldest(w))
            continue;
        if (w->trap.kind == TRAP_NONE)
            lilac_sim_trap_deadlock(w);
        return OUTCOME_TRAPPED;
    }
}

/* Blocks that have ended while others still reached into their memory. */
static void check_reached(lilac_sim_worker *w) {
    for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++) {
        lilac_sim_block *block = &w->blocks[rank];
        if (block->ended && block->reached.at) {
            w->counters.races++;
            lilac_sim_worker_find(w, block->reached);
        }
        block->reached.at = NULL;
    }
}

/* The cluster barrier, of the blocks that have not ended; false when all have. */
static bool pass_cluster_barrier(lilac_sim_worker *w) {
    uint32_t warps[LILAC_SIM_MOST_BLOCKS * MOST_WARPS], count = 0, each = w->program->warps;
    for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++) {
        if (w->blocks[rank].ended)
            continue;
        w->blocks[rank].waits = false;
        w->counters.cluster_barriers++;
        for (uint32_t k = 0; k < each; k++)
            warps[count++] = rank * each + k;
    }
    if (count == 0)
        return false;
    lilac_sim_shared_order(&w->shared, warps, count);
    lilac_sim_order_join(w, warps, count);
    w->phase++;
    return true;
}

/* ---- clusters --------------------------------------------------------------------------- */

/* The worker holds the cluster's values, and gives them back. */
static void resume(lilac_sim_worker *w, const lilac_sim_cluster *c) {
    const uint32_t *grid = w->launch->grid;
    w->place[0] = (uint32_t)(c->number % grid[0]);
    w->place[1] = (uint32_t)(c->number / grid[0] % grid[1]);
    w->place[2] = (uint32_t)(c->number / grid[0] / grid[1]);
    w->register_files = c->register_files;
    w->shared = c->shared;
    w->poison = c->poison;
    w->copies = c->copies;
    w->bulks = c->bulks;
    w->mbarriers = c->mbarriers;
    w->wgmmas = c->wgmmas;
    w->order.known = c->known;
    w->blocks = c->blocks;
    w->phase = c->phase;
    w->printed_bytes = c->printed;
    memcpy(w->tally, c->tally, sizeof w->tally);
}

static void suspend(const lilac_sim_worker *w, lilac_sim_cluster *c) {
    c->shared = w->shared;
    c->poison = w->poison;
    c->copies = w->copies;
    c->bulks = w->bulks;
    c->mbarriers = w->mbarriers;
    c->phase = w->phase;
    c->printed = w->printed_bytes;
    memcpy(c->tally, w->tally, sizeof c->tally);
}

static void count_cluster(lilac_sim_worker *w) {
    const lilac_sim_program *p = w->program;
    w->counters.blocks += p->kernel->num_ctas;
    for (uint32_t rank = 0; rank < p->kernel->num_ctas; rank++)
        w->counters.instructions += w->blocks[rank].executed;
    w->counters.selects += w->tally[TALLY_SELECT];
    w->counters.permutes += w->tally[TALLY_PERMUTE];
}

void lilac_sim_cluster_begin(lilac_sim_worker *w, lilac_sim_cluster *c, uint64_t number) {
    c->number = number;
    c->phase = 0;
    c->printed = 0;
    c->sleeps = false;
    memset(c->tally, 0, sizeof c->tally);
    lilac_sim_shared_forget(&c->shared);
    lilac_sim_copies_forget(&c->copies, w->program->warps * w->program->kernel->num_ctas);
    lilac_sim_bulks_forget(&c->bulks);
    lilac_sim_mbarriers_forget(&c->mbarriers);
    lilac_sim_wgmmas_forget(c->wgmmas);
    resume(w, c);
    lilac_sim_poison_forget(w);
    lilac_sim_order_forget(w);
    for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++)
        begin_block(w, number, rank);
    suspend(w, c);
}

lilac_sim_outcome lilac_sim_cluster_run(lilac_sim_worker *w, lilac_sim_cluster *c) {
    lilac_sim_outcome outcome;
    resume(w, c);
    do {
        outcome = run_phase(w, c->number);
        if (outcome == OUTCOME_ENDED && w->program->kernel->num_ctas > 1)
            check_reached(w);
    } while (outcome == OUTCOME_ENDED && pass_cluster_barrier(w));
    while (outcome == OUTCOME_ENDED && w->trap.kind == TRAP_NONE && lilac_sim_land_oldest(w))
        ; /* arrivals that no warp has waited for */
    if (w->trap.kind != TRAP_NONE)
        outcome = OUTCOME_TRAPPED;
    if (outcome == OUTCOME_ENDED) {
        lilac_sim_mbarriers_end(w);
        count_cluster(w);
    }
    suspend(w, c);
    c->sleeps = outcome == OUTCOME_SLEEPS;
    c->version = w->snapshot.version;
    return outcome;
}
