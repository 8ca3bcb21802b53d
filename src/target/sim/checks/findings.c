/* Records of traps and findings. report/ makes diagnostics of them after the launch. */
#include "block.h"

#include <string.h>

bool lilac_sim_worker_trap(lilac_sim_worker *w, lilac_sim_trap_kind kind,
                           const lilac_sim_step *step, uint32_t thread) {
    w->trap.kind = kind;
    w->trap.at = step->source;
    w->trap.block = w->block;
    w->trap.thread = thread;
    return false;
}

/* One line of the source may become many instructions, one for each register of a tensor. */
static bool same_line(const lilac_simt_instruction *a, const lilac_simt_instruction *b) {
    return a == b || (a && b && a->location && a->location == b->location && a->code == b->code);
}

bool lilac_sim_same_finding(const lilac_sim_finding *a, const lilac_sim_finding *b) {
    return a->kind == b->kind && same_line(a->at, b->at) && same_line(a->other, b->other);
}

/* Clusters need not run in ascending order. Of equal findings, that of the cluster with the lowest
 * number is kept; if there are too many findings of one kind, those of the lowest numbers. */
void lilac_sim_worker_find(lilac_sim_worker *w, lilac_sim_finding finding) {
    uint32_t ctas = w->program->kernel->num_ctas, replaced = w->finding_count;
    uint64_t cluster = finding.block / ctas, last = cluster;
    bool full = w->kept[finding.kind] == LILAC_SIM_FINDINGS;
    for (uint32_t k = 0; k < w->finding_count; k++) {
        const lilac_sim_finding *f = &w->findings[k];
        if (lilac_sim_same_finding(f, &finding)) {
            if (f->block / ctas <= cluster) {
                return;
            }
            replaced = k;
            full = false;
            break;
        }
        if (full && f->kind == finding.kind && f->block / ctas > last) {
            last = f->block / ctas;
            replaced = k;
        }
    }
    if (full && replaced == w->finding_count) {
        return;
    }
    if (replaced < w->finding_count) {
        w->finding_count--;
        memmove(w->findings + replaced, w->findings + replaced + 1,
                sizeof *w->findings * (w->finding_count - replaced));
    } else {
        w->kept[finding.kind]++;
    }
    w->findings[w->finding_count++] = finding;
}
