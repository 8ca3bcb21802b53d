/* Counters by instruction: what the counters grow by in each step of the program. */
#include "counters/profile.h"

#include <string.h>

/* A structure of uint64_t only. */
enum { COUNTERS = sizeof(lilac_sim_counters) / sizeof(uint64_t) };

static void add(lilac_sim_counters *sum, const lilac_sim_counters *plus,
                const lilac_sim_counters *minus) {
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)plus;
    const uint64_t *less = (const uint64_t *)(const void *)minus;
    for (uint32_t k = 0; k < COUNTERS; k++) {
        to[k] += from[k] - (less != NULL ? less[k] : 0);
    }
}

void lilac_sim_profile_begin(lilac_sim_worker *w) {
    const lilac_sim_program *p = w->program;
    if (w->launch->profile == NULL) {
        return;
    }
    w->sites = lilac_heap_grow(NULL, sizeof *w->sites * p->step_count);
    memset(w->sites, 0, sizeof *w->sites * p->step_count);
}

bool lilac_sim_profile_step(lilac_sim_worker *w, const lilac_sim_step *step,
                            lilac_sim_action *action) {
    lilac_sim_site *site = &w->sites[step - w->program->steps];
    const lilac_sim_counters before = w->counters;
    const bool good = action(w, step);
    add(&site->counters, &w->counters, &before);
    return good;
}

void lilac_sim_profile_issue(lilac_sim_worker *w, const lilac_sim_step *step) {
    lilac_sim_site *site = &w->sites[step - w->program->steps];
    const uint64_t warps = w->end_warp - w->first_warp;
    site->executions += warps;
    site->counters.instructions += step->issues * warps;
    site->counters.selects += step->tally == TALLY_SELECT ? warps : 0;
    site->counters.permutes += step->tally == TALLY_PERMUTE ? warps : 0;
}

/* The steps of one instruction become one site; it is executed as often as the first of them. */
void lilac_sim_profile_end(const lilac_sim_schedule *s, const lilac_sim_program *p) {
    lilac_sim_profile *profile = s->launch->profile;
    *profile = (lilac_sim_profile){0};
    profile->sites = lilac_heap_grow(NULL, sizeof *profile->sites * (p->step_count + 1));
    for (uint32_t k = 0; k < p->step_count; k++) {
        const lilac_simt_instruction *instruction = p->steps[k].source;
        if (instruction == NULL) {
            continue;
        }
        const bool first =
            profile->count == 0 || profile->sites[profile->count - 1].instruction != instruction;
        lilac_sim_site *site = &profile->sites[first ? profile->count++ : profile->count - 1];
        if (first) {
            *site = (lilac_sim_site){.instruction = instruction};
        }
        for (uint32_t worker = 0; worker < s->count; worker++) {
            const lilac_sim_site *part = &s->workers[worker].sites[k];
            add(&site->counters, &part->counters, NULL);
            site->executions += first ? part->executions : 0;
        }
    }
}

void lilac_sim_profile_clear(lilac_sim_profile *profile) {
    lilac_heap_free(profile->sites);
    *profile = (lilac_sim_profile){0};
}
