/* Clusters in execution: their storage, the turns of their agents, and their barriers.
 *
 * An agent is a block, or one warp program of a block. A turn executes an agent (control.c) until
 * it waits or ends, or until its turn in a loop is over. */
#include "lanes/multiply.h"
#include "steps.h"
#include "async/wgmma.h"

#include <string.h>

enum { MOST_WARPS = 64, TURN = 1 << 14 /* length of a turn in instructions of each warp */ };

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
        for (uint32_t t = 0; t < p->threads; t++) {
            write_entry(array, preset->entry_bytes, t,
                        preset->kind == PRESET_THREAD ? t
                        : preset->kind == PRESET_LANE ? t % size
                        : preset->kind == PRESET_WARP ? t / size
                                                      : t % size == 0);
        }
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

/* ---- storage ---------------------------------------------------------------------------- */

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
        for (uint32_t k = 0; k < program->preset_count; k++) {
            if (!is_for_each_block(&program->presets[k])) {
                apply_preset(w, &program->presets[k]);
            }
        }
    }
    return c;
}

void lilac_sim_cluster_destroy(lilac_sim_cluster *cluster) {
    for (uint32_t rank = 0; rank < cluster->shared.blocks; rank++) {
        lilac_sim_agents_destroy(&cluster->blocks[rank]);
    }
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
    for (uint32_t k = 0; k < w->resident_count; k++) {
        lilac_sim_cluster_destroy(w->residents[k]);
    }
    for (uint32_t k = 0; k < w->spare_count; k++) {
        lilac_sim_cluster_destroy(w->spares[k]);
    }
    lilac_heap_free(w->residents);
    lilac_heap_free(w->spares);
    lilac_heap_free(w->snapshot.bytes);
    lilac_heap_free(w->printed);
    lilac_heap_free(w->sites);
    lilac_text_clear(&w->text);
    lilac_sim_order_clear(&w->order);
}

/* ---- turns ------------------------------------------------------------------------------ */

/* Agent `number` of the block with this rank becomes the one in execution. */
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
    for (uint32_t k = 0; k < p->preset_count; k++) {
        if (is_for_each_block(&p->presets[k])) {
            apply_preset(w, &p->presets[k]);
        }
    }
}

/* The result of one turn of each agent. */
typedef struct turns {
    lilac_sim_outcome outcome; /* ENDED: no turn ended at a back edge or with a trap */
    bool progress;             /* some agent executed a step */
    bool unfinished;           /* some block neither has ended nor waits at the cluster barrier */
} turns;

/* Executes one turn of the agent in execution. */
static void take_turn(lilac_sim_worker *w, lilac_sim_block *block, lilac_sim_agent *agent,
                      turns *all) {
    uint64_t before = w->issued;
    all->progress = true;
    w->turn_end = w->issued + TURN;
    w->look_at = w->issued + w->look_rest;
    w->snapshot.visits = 0;
    w->snapshot.at = NULL;
    lilac_sim_outcome end = lilac_sim_run_agent(w, agent);
    w->look_rest = w->look_at > w->issued ? w->look_at - w->issued : 0;
    agent->issued = w->issued;
    block->executed += (w->issued - before) * (w->end_warp - w->first_warp);
    block->ended = end == OUTCOME_ENDED;
    block->waits = end == OUTCOME_WAITS;
    if (end == OUTCOME_JOINED) {
        lilac_sim_join(w);
    }
    if (end == OUTCOME_YIELDS || end == OUTCOME_SLEEPS || end == OUTCOME_TRAPPED) {
        all->outcome = end;
    }
}

/* Executes one turn of every agent of the block that need not wait. */
static void run_block(lilac_sim_worker *w, uint64_t cluster, uint32_t rank, turns *all) {
    lilac_sim_block *block = &w->blocks[rank];
    uint32_t first = block->programs ? 1 : 0, last = block->programs;
    block->loop = NULL;
    for (uint32_t k = first; k <= last && all->outcome != OUTCOME_TRAPPED; k++) {
        lilac_sim_agent *agent = enter(w, cluster, rank, k);
        if (!agent->ended && (!agent->waiting.step || lilac_sim_agent_passes(w, agent))) {
            take_turn(w, block, agent, all);
        }
    }
    all->unfinished |= !block->ended && !block->waits;
}

/* Executes the blocks until each has ended or waits at the cluster barrier (ENDED), or until one
 * yields, sleeps or traps. When all agents wait, the oldest incomplete copy completes. */
static lilac_sim_outcome run_phase(lilac_sim_worker *w, uint64_t cluster) {
    for (;;) {
        turns all = {.outcome = OUTCOME_ENDED};
        for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++) {
            if (!w->blocks[rank].ended && !w->blocks[rank].waits &&
                all.outcome != OUTCOME_TRAPPED) {
                run_block(w, cluster, rank, &all);
            }
        }
        if (all.outcome != OUTCOME_ENDED || !all.unfinished) {
            return all.outcome;
        }
        if (all.progress || lilac_sim_land_oldest(w)) {
            continue;
        }
        if (w->trap.kind == TRAP_NONE) {
            lilac_sim_trap_deadlock(w);
        }
        return OUTCOME_TRAPPED;
    }
}

/* ---- barriers of the cluster ------------------------------------------------------------ */

/* Reports blocks that have ended although other blocks accessed their memory after the last cluster
 * barrier. */
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

/* Completes the cluster barrier of the blocks that have not ended. False: all have ended. */
static bool pass_cluster_barrier(lilac_sim_worker *w) {
    uint32_t warps[LILAC_SIM_MOST_BLOCKS * MOST_WARPS], count = 0, each = w->program->warps;
    for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++) {
        if (w->blocks[rank].ended) {
            continue;
        }
        w->blocks[rank].waits = false;
        w->counters.cluster_barriers++;
        for (uint32_t k = 0; k < each; k++) {
            warps[count++] = rank * each + k;
        }
    }
    if (count == 0) {
        return false;
    }
    lilac_sim_shared_order(&w->shared, warps, count);
    lilac_sim_order_join(w, warps, count);
    w->phase++;
    return true;
}

/* ---- clusters --------------------------------------------------------------------------- */

/* Copies the state of a cluster into the worker; lilac_sim_cluster_run copies it back. */
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
    for (uint32_t rank = 0; rank < p->kernel->num_ctas; rank++) {
        w->counters.instructions += w->blocks[rank].executed;
    }
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
    for (uint32_t rank = 0; rank < w->program->kernel->num_ctas; rank++) {
        begin_block(w, number, rank);
    }
    suspend(w, c);
}

lilac_sim_outcome lilac_sim_cluster_run(lilac_sim_worker *w, lilac_sim_cluster *c) {
    lilac_sim_outcome outcome;
    resume(w, c);
    do {
        outcome = run_phase(w, c->number);
        if (outcome == OUTCOME_ENDED && w->program->kernel->num_ctas > 1) {
            check_reached(w);
        }
    } while (outcome == OUTCOME_ENDED && pass_cluster_barrier(w));
    while (outcome == OUTCOME_ENDED && w->trap.kind == TRAP_NONE && lilac_sim_land_oldest(w)) {
        ; /* copies that no warp has waited for */
    }
    if (w->trap.kind != TRAP_NONE) {
        outcome = OUTCOME_TRAPPED;
    }
    if (outcome == OUTCOME_ENDED) {
        lilac_sim_mbarriers_end(w);
        count_cluster(w);
    }
    suspend(w, c);
    c->sleeps = outcome == OUTCOME_SLEEPS;
    c->version = w->snapshot.version;
    return outcome;
}
