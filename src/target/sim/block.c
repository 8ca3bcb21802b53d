/* Running a cluster: its blocks in turn, one step after another, each for all threads.
 *
 * Control flow is the same for all threads, so there is one place in the program and no mask; a
 * condition is compared over the threads where it may differ. */
#include "schedule.h"

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
        for (uint32_t t = 0; t < p->threads; t++)
            write_entry(array, preset->entry_bytes, t,
                        preset->kind == PRESET_THREAD ? t
                        : preset->kind == PRESET_LANE ? t % size
                                                      : t / size);
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
    c->known = lilac_sim_order_create(w);
    for (uint32_t rank = 0; rank < blocks; rank++) {
        w->registers = c->register_files + program->register_bytes * rank;
        for (uint32_t k = 0; k < program->preset_count; k++)
            if (!is_for_each_block(&program->presets[k]))
                apply_preset(w, &program->presets[k]);
    }
    return c;
}

void lilac_sim_cluster_destroy(lilac_sim_cluster *cluster) {
    lilac_heap_free(cluster->register_files);
    lilac_heap_free(cluster->blocks);
    lilac_heap_free(cluster->known);
    lilac_sim_shared_clear(&cluster->shared);
    lilac_sim_poison_clear(&cluster->poison);
    lilac_sim_copies_clear(&cluster->copies);
    lilac_sim_bulks_clear(&cluster->bulks);
    lilac_sim_mbarriers_clear(&cluster->mbarriers);
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

static void run_lanes(const lilac_sim_worker *w, const lilac_sim_step *s) {
    uint8_t *r = w->registers;
    s->loop(s->n, s->immediate, r + s->out, r + s->a, r + s->b, r + s->c);
    if (s->fill)
        fill_entries(r + s->out, s->entry_bytes, w->program->threads);
}

static void run_flushed(const lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_program *p = w->program;
    uint8_t *r = w->registers;
    const uint32_t from[3] = {s->a, s->b, s->c};
    const void *operands[3];
    for (uint32_t k = 0; k < 3; k++) {
        operands[k] = r + from[k];
        if (s->varies >> k & 1) {
            lilac_sim_flush(s->n, 0, r + p->scratch[k], operands[k], NULL, NULL);
            operands[k] = r + p->scratch[k];
        }
    }
    if (s->varies >> 3 & 1) {
        void *result = r + p->scratch[3];
        s->loop(s->n, s->immediate, result, operands[0], operands[1], operands[2]);
        lilac_sim_flush(s->n, 0, r + s->out, result, NULL, NULL);
    } else {
        s->loop(s->n, s->immediate, r + s->out, operands[0], operands[1], operands[2]);
    }
    if (s->fill)
        fill_entries(r + s->out, s->entry_bytes, p->threads);
}

static void run_divide(lilac_sim_worker *w, const lilac_sim_step *s) {
    for (uint32_t t = 0; t < s->n; t++) {
        if (read_entry(w->registers + s->b, s->entry_bytes, t) == 0) {
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
    for (uint32_t first = 0; first < w->program->threads; first += size)
        for (uint32_t lane = 0; lane < size; lane++)
            out[first + lane] =
                values[first + lilac_sim_partner(s->immediate, lane, operands[first + lane], size)];
    w->counters.shuffles += w->program->warps;
}

static void run_ballot(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size;
    const lane_u8 *conditions = w->registers + s->a;
    lane_u32 *out = (void *)(w->registers + s->out);
    for (uint32_t first = 0; first < w->program->threads; first += size) {
        uint32_t votes = 0;
        for (uint32_t lane = 0; lane < size; lane++)
            votes |= (uint32_t)(conditions[first + lane] != 0) << lane;
        for (uint32_t lane = 0; lane < size; lane++)
            out[first + lane] = votes;
    }
    w->counters.votes += w->program->warps;
}

static bool run_assert(lilac_sim_worker *w, const lilac_sim_step *s) {
    for (uint32_t t = 0; t < s->n; t++)
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
    uint64_t first = read_entry(array, entry_bytes, 0);
    for (uint32_t t = 1; t < w->program->threads; t++)
        if (read_entry(array, entry_bytes, t) != first)
            return lilac_sim_worker_trap(w, TRAP_DIVERGENT, s, t);
    return true;
}

static int64_t read_signed(const lilac_sim_worker *w, uint32_t offset, uint32_t entry_bytes) {
    uint32_t shift = 64 - 8 * entry_bytes;
    return (int64_t)(read_entry(w->registers + offset, entry_bytes, 0) << shift) >> shift;
}

/* The counter's next value; whether there is an iteration for it. */
static bool set_counter(const lilac_sim_worker *w, const lilac_sim_step *s, uint64_t value) {
    uint32_t entry_bytes = (uint32_t)s->immediate;
    write_entry(w->registers + s->out, entry_bytes, 0, value);
    if (s->fill)
        fill_entries(w->registers + s->out, entry_bytes, w->program->threads);
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
    *runs = set_counter(w, s, read_entry(w->registers + s->a, entry_bytes, 0));
    return true;
}

static bool next_iteration(const lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t entry_bytes = (uint32_t)s->immediate;
    return set_counter(w, s,
                       read_entry(w->registers + s->out, entry_bytes, 0) +
                           read_entry(w->registers + s->c, entry_bytes, 0));
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
        uint32_t apart = s->source->shared_apart; /* whom the barrier says it meets */
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

/* The turn ends after a loop's back edge; the block goes on after step s. */
static lilac_sim_outcome pause_after(lilac_sim_worker *w, const lilac_sim_step *back,
                                     const lilac_sim_step *s, const lilac_sim_step **at,
                                     lilac_sim_outcome outcome) {
    w->blocks[w->rank].loop = back->source;
    *at = s + 1;
    return outcome;
}

/* Goes on with the block in execution; *at is where. */
static lilac_sim_outcome run_steps(lilac_sim_worker *w, const lilac_sim_step **at,
                                   lilac_sim_waiting *waiting) {
    const lilac_sim_program *p = w->program;
    uint64_t limit =
        (w->launch->instruction_limit ? w->launch->instruction_limit : LILAC_SIM_LIMIT) / p->warps;
    const lilac_sim_step *s = *at, *back;
    lilac_sim_outcome turn;
    for (;; s++) {
        w->issued += s->issues;
        if (w->issued > limit)
            return stop_at_limit(w, s);
        w->tally[s->tally]++;
        bool runs = true;
        if (w->poison.live && !lilac_sim_poison_step(w, s))
            return OUTCOME_TRAPPED;
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
        case STEP_MBARRIER:
            if (!lilac_sim_mbarrier_step(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_MBARRIER_WAIT:
            if (!lilac_sim_mbarrier_wait(w, s, waiting))
                return OUTCOME_TRAPPED;
            if (!waiting->step)
                break;
            *at = s + 1;
            return OUTCOME_BLOCKED;
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
            write_entry(w->registers + s->out, 8, 0, w->issued * p->warps);
            fill_entries(w->registers + s->out, 8, p->threads);
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
            w->counters.warp_barriers += p->warps;
            break;
        case STEP_GROUP_BARRIER:
            if (!run_group_barrier(w, s))
                return OUTCOME_TRAPPED;
            break;
        case STEP_CLUSTER_BARRIER:
            *at = s + 1;
            return OUTCOME_WAITS;
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
                return pause_after(w, back, s, at, OUTCOME_YIELDS);
            break;
        case STEP_BRANCH:
            if (!check_agreement(w, s, 0, s->a, 1))
                return OUTCOME_TRAPPED;
            if (!w->registers[s->a])
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
                return pause_after(w, back, s, at, turn);
            break;
        case STEP_END:
            lilac_sim_copies_end(w);
            return lilac_sim_bulks_end(w) ? OUTCOME_ENDED : OUTCOME_TRAPPED;
        }
    }
}

/* Makes the block of that rank the one in execution. */
static void enter(lilac_sim_worker *w, uint64_t cluster, uint32_t rank) {
    w->rank = rank;
    w->block = cluster * w->program->kernel->num_ctas + rank;
    w->registers = w->register_files + w->program->register_bytes * rank;
    w->issued = w->blocks[rank].issued;
}

static void begin_block(lilac_sim_worker *w, uint64_t cluster, uint32_t rank) {
    const lilac_sim_program *p = w->program;
    w->blocks[rank] = (lilac_sim_block){.at = p->steps};
    enter(w, cluster, rank);
    for (uint32_t k = 0; k < p->preset_count; k++)
        if (is_for_each_block(&p->presets[k]))
            apply_preset(w, &p->presets[k]);
}

/* What copies have begun takes place as late as possible: now. False: there is nothing, or a trap. */
static bool fire(lilac_sim_worker *w, uint64_t cluster) {
    if (w->mbarriers.arrival_count == 0)
        return lilac_sim_bulk_land(w);
    enter(w, cluster, w->mbarriers.arrivals[0].rank);
    return lilac_sim_arrivals_fire(w);
}

/* What the round of turns of a cluster's blocks came to. */
typedef struct turns {
    lilac_sim_outcome outcome;
    bool progress, blocked; /* some block went on; some block waits at an mbarrier */
} turns;

/* Gives every block that can go on a turn. ENDED: no block's turn ended in a loop. */
static turns run_round(lilac_sim_worker *w, uint64_t cluster) {
    turns all = {.outcome = OUTCOME_ENDED};
    for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++) {
        lilac_sim_block *block = &w->blocks[rank];
        if (block->ended || block->waits)
            continue;
        enter(w, cluster, rank);
        if (block->waiting.step && !lilac_sim_mbarrier_passes(w, &block->waiting)) {
            all.blocked = true;
            continue;
        }
        all.progress = true;
        w->turn_end = w->issued + TURN;
        w->look_at = w->issued + w->look_rest;
        w->snapshot.visits = 0;
        w->snapshot.at = NULL;
        block->loop = NULL;
        lilac_sim_outcome end = run_steps(w, &block->at, &block->waiting);
        w->look_rest = w->look_at > w->issued ? w->look_at - w->issued : 0;
        block->issued = w->issued;
        block->ended = end == OUTCOME_ENDED;
        block->waits = end == OUTCOME_WAITS;
        all.blocked |= end == OUTCOME_BLOCKED;
        if (end == OUTCOME_YIELDS || end == OUTCOME_SLEEPS || end == OUTCOME_TRAPPED)
            all.outcome = end;
        if (end == OUTCOME_TRAPPED)
            break;
    }
    return all;
}

static void add_stuck(lilac_sim_worker *w, const lilac_sim_block *block, uint64_t number) {
    const lilac_sim_mbarrier *b = lilac_sim_mbarrier_at(w, block->waiting.place);
    if (w->trap.stuck_count < LILAC_SIM_MOST_STUCK)
        w->trap.stuck[w->trap.stuck_count++] =
            (lilac_sim_stuck){.at = block->waiting.step->source,
                              .last = b->last->source,
                              .phase = b->now,
                              .block = number,
                              .address = b->place % w->shared.stride,
                              .rank = (uint32_t)(b->place / w->shared.stride),
                              .warps = w->program->warps,
                              .parity = block->waiting.parity};
}

/* No warp of the cluster can go on. */
static lilac_sim_outcome trap_deadlock(lilac_sim_worker *w, uint64_t cluster) {
    const lilac_sim_step *first = NULL;
    w->trap.stuck_count = 0;
    for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++) {
        const lilac_sim_block *block = &w->blocks[rank];
        if (!block->waiting.step)
            continue;
        if (!first)
            enter(w, cluster, rank);
        first = first ? first : block->waiting.step;
        add_stuck(w, block, cluster * w->program->kernel->num_ctas + rank);
    }
    lilac_sim_worker_trap(w, TRAP_DEADLOCK, first, 0);
    return OUTCOME_TRAPPED;
}

/* Turns of all blocks that are not at the cluster barrier. ENDED: all blocks have ended or are at
 * the barrier. Copies arrive at mbarriers when no block can go on without. */
static lilac_sim_outcome run_phase(lilac_sim_worker *w, uint64_t cluster) {
    for (;;) {
        turns all = run_round(w, cluster);
        if (!all.blocked || all.outcome != OUTCOME_ENDED)
            return all.outcome;
        if (all.progress)
            continue;
        if (!fire(w, cluster))
            return w->trap.kind == TRAP_NONE ? trap_deadlock(w, cluster) : OUTCOME_TRAPPED;
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
        w->counters.instructions += w->blocks[rank].issued * p->warps;
    w->counters.selects += w->tally[TALLY_SELECT] * p->warps;
    w->counters.permutes += w->tally[TALLY_PERMUTE] * p->warps;
}

void lilac_sim_cluster_begin(lilac_sim_worker *w, lilac_sim_cluster *c, uint64_t number) {
    c->number = number;
    c->phase = 0;
    c->printed = 0;
    c->sleeps = false;
    memset(c->tally, 0, sizeof c->tally);
    lilac_sim_shared_forget(&c->shared);
    lilac_sim_copies_forget(&c->copies);
    lilac_sim_bulks_forget(&c->bulks);
    lilac_sim_mbarriers_forget(&c->mbarriers);
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
    if (outcome == OUTCOME_ENDED) {
        lilac_sim_mbarriers_end(w);
        count_cluster(w);
    }
    suspend(w, c);
    c->sleeps = outcome == OUTCOME_SLEEPS;
    c->version = w->snapshot.version;
    return outcome;
}
