/* The diagnostic of a launch without progress: the loops in which its blocks are. */
#include "report.h"

#define NOWHERE ((lilac_position){0})

/* The resident cluster with the lowest number that is not below `from`, or NULL. */
static const lilac_sim_cluster *next_resident(const lilac_sim_schedule *s, uint64_t from) {
    const lilac_sim_cluster *least = NULL;
    for (uint32_t k = 0; k < s->count; k++) {
        for (uint32_t r = 0; r < s->workers[k].resident_count; r++) {
            const lilac_sim_cluster *c = s->workers[k].residents[r];
            if (c->number >= from && (!least || c->number < least->number)) {
                least = c;
            }
        }
    }
    return least;
}

/* The lowest rank of a block of the cluster that is in a loop; num_ctas: there is none. */
static uint32_t looping_rank(const lilac_sim_cluster *cluster, uint32_t ctas) {
    uint32_t rank = 0;
    while (rank < ctas && (cluster->blocks[rank].ended || !cluster->blocks[rank].loop)) {
        rank++;
    }
    return rank;
}

static void put_stall(lilac_text *out, const lilac_sim_launch *launch, lilac_sim_stall stall) {
    if (stall == STALL_REPEATS) {
        lilac_text_puts(out, ": this loop does not end: it repeats the same state, and no block "
                             "that has begun changes global memory any more");
    } else {
        lilac_text_printf(out,
                          ": this loop does not seem to end: for %g s, no block has ended and no "
                          "byte of global memory has changed",
                          launch->stall_seconds > 0 ? launch->stall_seconds
                                                    : (double)LILAC_SIM_STALL_SECONDS);
    }
}

/* Adds a note for each of the next four loops. Sets *stuck to the number of resident clusters from
 * `cluster` on. */
static void note_loops(lilac_context *context, const lilac_sim_launch *launch,
                       const lilac_sim_schedule *s, const lilac_sim_cluster *cluster,
                       uint64_t *stuck) {
    enum { MOST = 4 };
    const lilac_simt_instruction *seen[MOST + 1];
    uint32_t count = 0, ctas = launch->kernel->num_ctas;
    for (*stuck = 0; cluster; cluster = next_resident(s, cluster->number + 1)) {
        uint32_t rank = looping_rank(cluster, ctas), k = 0;
        ++*stuck;
        if (rank == ctas || count > MOST) {
            continue;
        }
        const lilac_simt_instruction *loop = cluster->blocks[rank].loop;
        while (k < count && seen[k] != loop) {
            k++;
        }
        if (k < count) {
            continue;
        }
        seen[count++] = loop;
        if (count == 1) { /* the diagnostic itself */
            continue;
        }
        lilac_text text = {0};
        lilac_sim_put_block(&text, launch, cluster->number * ctas + rank);
        lilac_note(context, NOWHERE, loop->location, "%s is in this loop", lilac_text_get(&text));
        lilac_text_clear(&text);
    }
}

void lilac_sim_report_stall(lilac_context *context, const lilac_sim_launch *launch,
                            const lilac_sim_schedule *s) {
    uint32_t ctas = launch->kernel->num_ctas, rank = ctas;
    uint64_t stuck, next = atomic_load(&s->next);
    const lilac_sim_cluster *cluster = next_resident(s, 0);
    while (cluster && (rank = looping_rank(cluster, ctas)) == ctas) {
        cluster = next_resident(s, cluster->number + 1);
    }
    lilac_text text = {0};
    if (cluster) {
        lilac_sim_put_block(&text, launch, cluster->number * ctas + rank);
    }
    put_stall(&text, launch, (lilac_sim_stall)atomic_load(&s->stall));
    lilac_error(context, NOWHERE,
                cluster ? cluster->blocks[rank].loop->location : launch->kernel->location,
                "endless-loop", "%s", lilac_text_get(&text));
    note_loops(context, launch, s, cluster, &stuck);
    if (stuck > 1) {
        lilac_note(context, NOWHERE, 0, "%llu blocks have begun and not ended",
                   (unsigned long long)stuck);
    }
    if (next < s->clusters) {
        lilac_note(context, NOWHERE, 0,
                   "%llu blocks have not begun: the simulator holds at most %u at a time",
                   (unsigned long long)(s->clusters - next), s->most_residents * s->count);
    }
    lilac_note(context, NOWHERE, 0,
               "--limit N runs every block for up to N instructions, whatever time that takes");
    lilac_text_clear(&text);
}
