/* Clusters in turn on the host's threads (schedule.h). */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, nanosleep */

#include "schedule.h"

#include <string.h>
#include <time.h>

#define REPORT_INTERVAL UINT64_C(100000000) /* nanoseconds */
#define IDLE_INTERVAL   100000

uint64_t lilac_sim_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t lilac_sim_schedule_version(const lilac_sim_schedule *s) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        sum += atomic_load_explicit(&s->workers[k].version, memory_order_acquire);
    }
    return sum;
}

void lilac_sim_schedule_alive(lilac_sim_schedule *s, uint64_t now) {
    atomic_store_explicit(&s->alive, now, memory_order_relaxed);
}

void lilac_sim_schedule_report(lilac_sim_schedule *s, uint64_t now) {
    const lilac_sim_launch *launch = s->launch;
    uint_fast64_t at = atomic_load_explicit(&s->report_at, memory_order_relaxed);
    if (!launch->progress || now < at ||
        !atomic_compare_exchange_strong(&s->report_at, &at, now + REPORT_INTERVAL) ||
        pthread_mutex_trylock(&s->lock) != 0) {
        return;
    }
    lilac_sim_progress progress = {.blocks_ended =
                                       atomic_load(&s->ended) * launch->kernel->num_ctas,
                                   .blocks = s->clusters * launch->kernel->num_ctas,
                                   .seconds = 1e-9 * (double)(now - s->started)};
    launch->progress(launch->progress_data, &progress);
    pthread_mutex_unlock(&s->lock);
}

/* ---- giving up -------------------------------------------------------------------------- */

void lilac_sim_schedule_stall(lilac_sim_worker *w) {
    lilac_sim_schedule *s = w->schedule;
    bool all = true;
    pthread_mutex_lock(&s->lock);
    w->spins = true;
    for (uint32_t k = 0; k < s->count; k++) {
        all &= s->workers[k].spins || s->workers[k].idle || s->workers[k].gone;
    }
    if (all) {
        atomic_store(&s->stall, STALL_TIME);
    }
    pthread_mutex_unlock(&s->lock);
}

/* The worker has nothing that can run. When that holds for all of them, and none has changed memory
 * since another one looked, it holds for ever. */
static void wait_for_others(lilac_sim_worker *w) {
    lilac_sim_schedule *s = w->schedule;
    const struct timespec pause = {.tv_nsec = IDLE_INTERVAL};
    bool all = true;
    pthread_mutex_lock(&s->lock);
    uint64_t version = lilac_sim_schedule_version(s);
    for (uint32_t k = 0; k < w->resident_count; k++) {
        all &= w->residents[k]->version == version;
    }
    w->idle = all;
    w->idle_version = version;
    for (uint32_t k = 0; k < s->count; k++) {
        all &= s->workers[k].gone || (s->workers[k].idle && s->workers[k].idle_version == version);
    }
    if (all) {
        atomic_store(&s->stall, STALL_REPEATS);
    }
    pthread_mutex_unlock(&s->lock);
    if (!all) {
        nanosleep(&pause, NULL);
    }
    lilac_sim_schedule_report(s, lilac_sim_now());
}

static void set_busy(lilac_sim_worker *w) {
    if (!w->idle && !w->spins) {
        return;
    }
    pthread_mutex_lock(&w->schedule->lock);
    w->idle = w->spins = false;
    pthread_mutex_unlock(&w->schedule->lock);
}

/* ---- residents -------------------------------------------------------------------------- */

static void push(lilac_sim_cluster ***list, uint32_t *count, uint32_t *capacity,
                 lilac_sim_cluster *cluster) {
    if (*count == *capacity) {
        *capacity = *capacity * 2 + 4;
        *list = lilac_heap_grow(*list, sizeof **list * *capacity);
    }
    (*list)[(*count)++] = cluster;
}

/* A resident becomes storage for another one. */
static void remove_resident(lilac_sim_worker *w, uint32_t index) {
    push(&w->spares, &w->spare_count, &w->spare_capacity, w->residents[index]);
    w->resident_count--;
    memmove(w->residents + index, w->residents + index + 1,
            sizeof *w->residents * (w->resident_count - index));
    if (index < w->next_resident) {
        w->next_resident--;
    }
}

/* Clusters after the first one that trapped are of no interest. */
static void drop_later(lilac_sim_worker *w) {
    uint64_t first = atomic_load(&w->schedule->first);
    for (uint32_t k = w->resident_count; k > 0 && first < w->schedule->clusters; k--) {
        if (w->residents[k - 1]->number > first) {
            remove_resident(w, k - 1);
        }
    }
}

/* Begins the next cluster, or NULL. */
static lilac_sim_cluster *admit(lilac_sim_worker *w) {
    lilac_sim_schedule *s = w->schedule;
    uint64_t next = atomic_load(&s->next);
    if (w->resident_count >= s->most_residents || next >= s->clusters ||
        next > atomic_load(&s->first)) {
        return NULL;
    }
    next = atomic_fetch_add(&s->next, 1);
    if (next >= s->clusters || next > atomic_load(&s->first)) {
        return NULL;
    }
    lilac_sim_cluster *cluster =
        w->spare_count ? w->spares[--w->spare_count] : lilac_sim_cluster_create(w);
    lilac_sim_cluster_begin(w, cluster, next);
    push(&w->residents, &w->resident_count, &w->resident_capacity, cluster);
    return cluster;
}

/* The cluster whose turn it is; NULL: none can run. After the last resident's turn, a cluster
 * begins. */
static lilac_sim_cluster *choose(lilac_sim_worker *w) {
    uint64_t version = lilac_sim_schedule_version(w->schedule);
    for (uint32_t tried = 0; tried <= w->resident_count; tried++) {
        if (w->next_resident >= w->resident_count) {
            w->next_resident = 0;
            lilac_sim_cluster *begun = admit(w);
            if (begun) {
                return begun;
            }
        }
        if (w->resident_count == 0) {
            return NULL;
        }
        lilac_sim_cluster *cluster = w->residents[w->next_resident++];
        if (!cluster->sleeps || cluster->version != version) {
            return cluster;
        }
    }
    return NULL;
}

static void remove_cluster(lilac_sim_worker *w, const lilac_sim_cluster *cluster) {
    for (uint32_t k = w->resident_count; k > 0; k--) {
        if (w->residents[k - 1] == cluster) {
            remove_resident(w, k - 1);
            return;
        }
    }
}

static void run_cluster(lilac_sim_worker *w, lilac_sim_cluster *cluster) {
    lilac_sim_schedule *s = w->schedule;
    uint64_t number = cluster->number;
    lilac_sim_outcome outcome = lilac_sim_cluster_run(w, cluster);
    if (outcome == OUTCOME_TRAPPED) {
        uint_fast64_t first = atomic_load(&s->first);
        while (number < first && !atomic_compare_exchange_weak(&s->first, &first, number)) {
            ;
        }
    }
    if (outcome == OUTCOME_ENDED) {
        uint64_t now = lilac_sim_now();
        atomic_fetch_add(&s->ended, 1);
        lilac_sim_schedule_alive(s, now);
        lilac_sim_schedule_report(s, now);
        w->fruitless = 0;
    } else {
        w->fruitless++;
    }
    if (outcome == OUTCOME_ENDED || outcome == OUTCOME_TRAPPED) {
        remove_cluster(w, cluster);
    }
}

static void *run_clusters(void *argument) {
    lilac_sim_worker *w = argument;
    while (atomic_load(&w->schedule->stall) == STALL_NONE) {
        drop_later(w);
        lilac_sim_cluster *cluster = choose(w);
        if (cluster) {
            set_busy(w);
            run_cluster(w, cluster);
        } else if (w->resident_count) {
            wait_for_others(w);
        } else {
            break;
        }
    }
    pthread_mutex_lock(&w->schedule->lock);
    w->gone = true;
    pthread_mutex_unlock(&w->schedule->lock);
    return NULL;
}

/* On as many threads as there are workers, this one included; on fewer when the system has no more.
 */
void lilac_sim_schedule_run(lilac_sim_schedule *s) {
    pthread_t *threads = lilac_heap_grow(NULL, sizeof *threads * s->count);
    uint32_t started = 1;
    while (started < s->count &&
           pthread_create(&threads[started], NULL, run_clusters, &s->workers[started]) == 0) {
        started++;
    }
    pthread_mutex_lock(&s->lock);
    for (uint32_t k = started; k < s->count; k++) {
        s->workers[k].gone = true;
    }
    pthread_mutex_unlock(&s->lock);
    run_clusters(&s->workers[0]);
    for (uint32_t k = 1; k < started; k++) {
        pthread_join(threads[k], NULL);
    }
    lilac_heap_free(threads);
}
