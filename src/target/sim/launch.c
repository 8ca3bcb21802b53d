/* A launch: checked, decoded once, its clusters handed to workers in order, their records merged.
 *
 * What is reported must not depend on how the host schedules: counters are sums; clusters are taken
 * in ascending order, so a worker's first findings are enough to know the launch's first; and when
 * a cluster traps, every one before it is still run, so that the first one to trap is the same each
 * time. */
#include "counters/profile.h"
#include "report.h"
#include "schedule.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOWHERE       ((lilac_position){0})
#define FIRST_ADDRESS (UINT64_C(1) << 56)
#define MOST_BLOCKS   (UINT64_C(1) << 48)

void lilac_sim_place(lilac_sim_buffer *buffers, uint32_t count) {
    uint64_t address = FIRST_ADDRESS;
    for (uint32_t k = 0; k < count; k++) {
        buffers[k].address = address;
        address += (buffers[k].size + 255) / 256 * 256 + (UINT64_C(1) << 36);
    }
}

/* ---- checks ----------------------------------------------------------------------------- */

/* Every tensor map is one of the launch's, and within the limits of the device. */
static bool check_tensor_maps(lilac_context *context, const lilac_sim_launch *launch) {
    const lilac_simt_kernel *kernel = launch->kernel;
    for (uint32_t k = 0; k < kernel->parameter_count; k++) {
        const char *name = kernel->parameters[k].name ? kernel->parameters[k].name : "?";
        uint64_t number = launch->arguments[k];
        if (!kernel->parameters[k].is_tensor_map) {
            continue;
        }
        if (number >= launch->tensor_map_count) {
            lilac_error(context, NOWHERE, kernel->location, "tensor-map",
                        "parameter '%s' is tensor map %llu, and the launch has %u tensor maps",
                        name, (unsigned long long)number, launch->tensor_map_count);
            return false;
        }
        if (!lilac_tensor_map_check(context, &launch->tensor_maps[number], name)) {
            return false;
        }
    }
    return true;
}

static bool check_shape(lilac_context *context, const lilac_sim_launch *launch) {
    const lilac_simt_kernel *kernel = launch->kernel;
    const uint32_t most[3] = {INT32_MAX, UINT16_MAX, UINT16_MAX};
    uint64_t blocks = kernel->num_ctas;
    if (launch->argument_count != kernel->parameter_count) {
        lilac_error(context, NOWHERE, kernel->location, "argument-count",
                    "kernel '%s' has %u parameters and the launch %u arguments", kernel->name,
                    kernel->parameter_count, launch->argument_count);
        return false;
    }
    if (kernel->num_ctas > LILAC_SIM_MOST_BLOCKS) {
        lilac_error(context, NOWHERE, kernel->location, "grid-size",
                    "a cluster of %u blocks: the simulator runs at most %u side by side",
                    kernel->num_ctas, LILAC_SIM_MOST_BLOCKS);
        return false;
    }
    for (uint32_t k = 0; k < 3; k++) {
        if (launch->grid[k] > most[k] ||
            (launch->grid[k] && blocks > MOST_BLOCKS / launch->grid[k])) {
            lilac_error(context, NOWHERE, kernel->location, "grid-size",
                        "the grid is %u along %c: at most %u, and 2^48 blocks in all",
                        launch->grid[k], "xyz"[k], most[k]);
            return false;
        }
        blocks *= launch->grid[k] ? launch->grid[k] : 1;
    }
    return true;
}

static int by_address(const void *a, const void *b) {
    const lilac_sim_buffer *x = *(const lilac_sim_buffer *const *)a;
    const lilac_sim_buffer *y = *(const lilac_sim_buffer *const *)b;
    if (x->address != y->address) {
        return x->address < y->address ? -1 : 1;
    }
    if (x->size != y->size) {
        return x->size < y->size ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* entries of one array */
}

/* Sorts the buffers; false when two of them overlap. */
static bool collect_buffers(lilac_context *context, const lilac_sim_launch *launch,
                            lilac_sim_memory *memory) {
    memory->count = launch->buffer_count;
    memory->buffers = lilac_heap_grow(NULL, sizeof *memory->buffers * (memory->count + 1u));
    for (uint32_t k = 0; k < memory->count; k++) {
        assert(launch->buffers[k].bytes || launch->buffers[k].size == 0);
        memory->buffers[k] = &launch->buffers[k];
    }
    qsort(memory->buffers, memory->count, sizeof *memory->buffers, by_address);
    for (uint32_t k = 0; k < memory->count; k++) {
        const lilac_sim_buffer *b = memory->buffers[k];
        bool wraps = b->size > UINT64_MAX - b->address;
        if (wraps ||
            (k + 1 < memory->count && memory->buffers[k + 1]->address - b->address < b->size)) {
            lilac_error(context, NOWHERE, launch->kernel->location, "buffer-overlap",
                        "buffer '%s' overlaps %s", b->name ? b->name : "?",
                        wraps ? "the end of the address space" : "the next one");
            return false;
        }
    }
    return true;
}

/* ---- workers ---------------------------------------------------------------------------- */

static uint32_t choose_threads(const lilac_sim_launch *launch, uint64_t clusters) {
    uint64_t threads = launch->threads;
    if (threads == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        threads = cores > 0 ? (uint64_t)cores : 1;
    }
    if (threads > 256) {
        threads = 256;
    }
    return (uint32_t)(threads < clusters ? threads : clusters);
}

/* ---- merging ---------------------------------------------------------------------------- */

static void add_counters(lilac_sim_counters *sum, const lilac_sim_counters *part) {
    uint64_t to[sizeof *sum / sizeof(uint64_t)], from[sizeof *sum / sizeof(uint64_t)];
    memcpy(to, sum, sizeof to);
    memcpy(from, part, sizeof from);
    for (size_t k = 0; k < sizeof to / sizeof *to; k++) {
        to[k] += from[k];
    }
    memcpy(sum, to, sizeof to);
}

static int by_cluster(const void *a, const void *b) {
    const lilac_sim_printed *x = a, *y = b;
    if (x->cluster != y->cluster) {
        return x->cluster < y->cluster ? -1 : 1;
    }
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* A worker's findings and texts in order of clusters; those of one cluster stay in their order. */
static void sort_records(lilac_sim_worker *w) {
    uint32_t ctas = w->program->kernel->num_ctas;
    for (uint32_t k = 1; k < w->finding_count; k++) {
        lilac_sim_finding finding = w->findings[k];
        uint32_t at = k;
        for (; at > 0 && w->findings[at - 1].block / ctas > finding.block / ctas; at--) {
            w->findings[at] = w->findings[at - 1];
        }
        w->findings[at] = finding;
    }
    if (w->printed_count > 1) {
        qsort(w->printed, w->printed_count, sizeof *w->printed, by_cluster);
    }
}

/* The launch's first findings: no cluster has two workers, so the least cluster among the heads of
 * their sorted lists is next. */
static void report_findings(lilac_context *context, const lilac_sim_launch *launch,
                            const lilac_sim_memory *memory, const lilac_sim_schedule *s,
                            uint32_t count) {
    lilac_sim_finding reported[FINDING_KINDS * LILAC_SIM_FINDINGS];
    uint32_t reported_count = 0, reported_of[FINDING_KINDS] = {0};
    uint32_t *head = lilac_heap_grow(NULL, sizeof *head * count);
    memset(head, 0, sizeof *head * count);
    uint64_t last = atomic_load(&s->first), ctas = launch->kernel->num_ctas;
    for (;;) {
        uint32_t best = count;
        for (uint32_t k = 0; k < count; k++) {
            const lilac_sim_worker *w = &s->workers[k];
            if (head[k] < w->finding_count &&
                (best == count || w->findings[head[k]].block / ctas <
                                      s->workers[best].findings[head[best]].block / ctas)) {
                best = k;
            }
        }
        if (best == count) {
            break;
        }
        const lilac_sim_finding *f = &s->workers[best].findings[head[best]++];
        bool known = f->block / ctas > last || reported_of[f->kind] == LILAC_SIM_FINDINGS;
        for (uint32_t k = 0; k < reported_count && !known; k++) {
            known = lilac_sim_same_finding(&reported[k], f);
        }
        if (known) {
            continue;
        }
        reported_of[f->kind]++;
        reported[reported_count++] = *f;
        lilac_sim_report_finding(context, launch, memory, f);
    }
    lilac_heap_free(head);
}

/* What the clusters printed, in their order, up to the first that trapped. */
static void give_printed(lilac_context *context, const lilac_sim_launch *launch,
                         const lilac_sim_schedule *s, uint32_t count) {
    lilac_text gathered = {0}, *out = launch->printed ? launch->printed : &gathered;
    uint32_t *head = lilac_heap_grow(NULL, sizeof *head * count);
    memset(head, 0, sizeof *head * count);
    for (uint64_t last = atomic_load(&s->first);;) {
        const lilac_sim_printed *next = NULL;
        uint32_t of = 0;
        for (uint32_t k = 0; k < count; k++) {
            const lilac_sim_worker *w = &s->workers[k];
            if (head[k] < w->printed_count &&
                (!next || w->printed[head[k]].cluster < next->cluster)) {
                next = &w->printed[head[k]];
                of = k;
            }
        }
        if (!next || next->cluster > last) {
            break;
        }
        head[of]++;
        lilac_text_put(out, s->workers[of].text.bytes + next->begin, next->end - next->begin);
    }
    if (!launch->printed && gathered.length) {
        lilac_warning(context, NOWHERE, launch->kernel->location, "printed",
                      "kernel '%s' prints\n%s", launch->kernel->name, lilac_text_get(&gathered));
    }
    lilac_text_clear(&gathered);
    lilac_heap_free(head);
}

/* How many clusters a worker holds at most: together they take a gibibyte. */
static uint32_t most_residents(const lilac_sim_program *program, uint32_t workers) {
    enum {
        STATE = 27,
        PROXIES = 16,
        LEAST = 4,
        MOST = 1 << 16
    }; /* bytes for a byte of shared memory */
    uint64_t state = STATE + (program->proxies ? PROXIES : 0);
    uint64_t each = program->register_bytes + (uint64_t)program->kernel->shared_bytes * state + 1;
    uint64_t most = (UINT64_C(1) << 30) / workers / (each * program->kernel->num_ctas);
    return most < LEAST ? LEAST : most > MOST ? MOST : (uint32_t)most;
}

/* The traps, or the loops that do not end; false when the launch has failed. */
static bool report_end(lilac_context *context, const lilac_sim_launch *launch,
                       const lilac_sim_memory *memory, const lilac_sim_schedule *s) {
    uint64_t first = atomic_load(&s->first);
    for (uint32_t k = 0; k < s->count; k++) {
        const lilac_sim_worker *w = &s->workers[k];
        if (w->trap.kind != TRAP_NONE && w->trap.block / launch->kernel->num_ctas == first) {
            lilac_sim_report_trap(context, launch, memory, &w->trap);
        }
    }
    if (first == s->clusters && atomic_load(&s->stall) != STALL_NONE) {
        lilac_sim_report_stall(context, launch, s);
    }
    return first == s->clusters && atomic_load(&s->stall) == STALL_NONE;
}

static bool run_program(lilac_context *context, const lilac_sim_launch *launch,
                        const lilac_sim_program *program, const lilac_sim_memory *memory,
                        uint64_t clusters, lilac_sim_counters *counters) {
    lilac_sim_schedule s = {.launch = launch,
                            .count = choose_threads(launch, clusters),
                            .clusters = clusters,
                            .started = lilac_sim_now()};
    s.most_residents = most_residents(program, s.count);
    atomic_init(&s.next, 0);
    atomic_init(&s.first, clusters);
    atomic_init(&s.ended, 0);
    atomic_init(&s.alive, s.started);
    atomic_init(&s.report_at, s.started);
    atomic_init(&s.stall, STALL_NONE);
    pthread_mutex_init(&s.lock, NULL);
    s.workers = lilac_heap_grow(NULL, sizeof *s.workers * s.count);
    for (uint32_t k = 0; k < s.count; k++) {
        lilac_sim_worker_init(&s.workers[k], program, launch, memory);
        s.workers[k].schedule = &s;
        lilac_sim_profile_begin(&s.workers[k]);
    }
    lilac_sim_schedule_run(&s);

    for (uint32_t k = 0; k < s.count; k++) {
        sort_records(&s.workers[k]);
        add_counters(counters, &s.workers[k].counters);
    }
    give_printed(context, launch, &s, s.count);
    report_findings(context, launch, memory, &s, s.count);
    bool done = report_end(context, launch, memory, &s);
    if (done && launch->profile != NULL) {
        lilac_sim_profile_end(&s, program);
    }
    for (uint32_t k = 0; k < s.count; k++) {
        lilac_sim_worker_clear(&s.workers[k]);
    }
    lilac_heap_free(s.workers);
    pthread_mutex_destroy(&s.lock);
    if (!done) {
        *counters = (lilac_sim_counters){0};
    }
    return done;
}

/* A launch whose programs are several blocks: the kernel as one that has such clusters. */
static bool divide(lilac_context *context, lilac_sim_launch *launch, lilac_simt_kernel *kernel) {
    if (launch->parts <= 1) {
        return true;
    }
    if (kernel->num_ctas != 1 || launch->grid[2] > 1) {
        lilac_error(
            context, NOWHERE, kernel->location, "grid-size",
            "%u blocks for each program: the kernel has %u blocks a cluster and the grid %u "
            "programs along z, and both must be 1",
            launch->parts, kernel->num_ctas, launch->grid[2]);
        return false;
    }
    kernel->num_ctas = launch->parts;
    launch->kernel = kernel;
    return true;
}

bool lilac_sim_run(lilac_context *context, const lilac_sim_launch *given,
                   lilac_sim_counters *counters) {
    assert(context && given && given->kernel && counters);
    assert(given->arguments || given->argument_count == 0);
    assert(given->buffers || given->buffer_count == 0);
    *counters = (lilac_sim_counters){0};
    lilac_sim_launch divided = *given;
    const lilac_sim_launch *launch = &divided;
    lilac_simt_kernel kernel = *given->kernel;
    if (!divide(context, &divided, &kernel) || !lilac_simt_verify(launch->kernel->module) ||
        !check_shape(context, launch) || !check_tensor_maps(context, launch)) {
        return false;
    }
    uint64_t clusters = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    pthread_mutex_t atomics = PTHREAD_MUTEX_INITIALIZER;
    lilac_sim_races races = {0};
    lilac_sim_memory memory = {.atomics = &atomics, .races = &races};
    lilac_sim_program program = {0};
    bool done = collect_buffers(context, launch, &memory) &&
                lilac_sim_program_init(&program, context, launch);
    if (done && clusters) {
        lilac_sim_races_init(&races, &program, launch, &memory, choose_threads(launch, clusters));
        done = run_program(context, launch, &program, &memory, clusters, counters);
        lilac_sim_races_clear(&races, launch);
    }
    lilac_sim_program_clear(&program);
    lilac_heap_free(memory.buffers);
    return done;
}
