/* The diagnostics of mbarriers, named barriers and register budgets: the operation, the phase
 * with its missing arrivals and bytes, and in a note the last arrival or the init. */
#include "report.h"

#define NOWHERE ((lilac_position){0})

/* "the mbarrier at shared byte 64" */
static void put_mbarrier(lilac_text *out, const lilac_sim_launch *launch, uint64_t address,
                         uint32_t rank) {
    lilac_text_printf(out, "the mbarrier at shared byte %llu", (unsigned long long)address);
    lilac_sim_put_rank(out, launch, rank);
}

/* "phase 3 has 1 of 2 arrivals and 64 missing bytes" */
static void put_phase(lilac_text *out, const lilac_sim_phase *phase) {
    lilac_text_printf(out, "phase %llu has %u of %u arrivals", (unsigned long long)phase->number,
                      phase->count - phase->pending, phase->count);
    if (phase->bytes > 0) {
        lilac_text_printf(out, " and %lld missing bytes", (long long)phase->bytes);
    } else if (phase->bytes < 0) {
        lilac_text_printf(out, " and %lld bytes that were not announced", (long long)-phase->bytes);
    }
}

/* Adds a note with the last arrival, or with the init of an mbarrier without arrivals. */
static void note_last(lilac_context *context, const lilac_simt_instruction *last) {
    lilac_note(context, NOWHERE, last->location,
               last->code == LILAC_SIMT_OP_MBARRIER_INIT ? "%s initialises it here"
                                                         : "the last arrival is by %s here",
               lilac_sim_name_of(last));
}

void lilac_sim_report_mbarrier_trap(lilac_context *context, const lilac_sim_launch *launch,
                                    const lilac_sim_trap *trap, const char *id) {
    lilac_text text = {0};
    lilac_sim_put_place(&text, launch, trap->block, trap->thread);
    lilac_text_printf(&text, ": %s ", lilac_sim_name_of(trap->at));
    switch (trap->kind) {
    case TRAP_MBARRIER_NONE:
        lilac_text_printf(&text, "at shared byte %llu", (unsigned long long)trap->address);
        lilac_sim_put_rank(&text, launch, trap->rank);
        lilac_text_puts(&text, ", where there is no mbarrier: mbarrier.init comes first");
        break;
    case TRAP_MBARRIER_RANGE:
        lilac_text_printf(&text, "of %u: 1 to 1048575 are allowed", trap->size);
        break;
    case TRAP_MBARRIER_INIT:
        lilac_text_puts(&text, "of ");
        put_mbarrier(&text, launch, trap->address, trap->rank);
        lilac_text_puts(&text, ", which is in use: ");
        put_phase(&text, &trap->phase);
        break;
    case TRAP_MBARRIER_COUNT:
        lilac_text_printf(&text, "adds %u arrivals to ", trap->size);
        put_mbarrier(&text, launch, trap->address, trap->rank);
        lilac_text_puts(&text, ", more than are missing: ");
        put_phase(&text, &trap->phase);
        break;
    default:
        lilac_text_puts(&text, "completes more bytes than were announced to ");
        put_mbarrier(&text, launch, trap->address, trap->rank);
        lilac_text_puts(&text, ": ");
        put_phase(&text, &trap->phase);
        break;
    }
    lilac_error(context, NOWHERE, trap->at->location, id, "%s", lilac_text_get(&text));
    if (trap->use) {
        note_last(context, trap->use);
    }
    lilac_text_clear(&text);
}

/* "for parity 1 of the mbarrier at shared byte 64: phase 0 has …" */
static void put_wait(lilac_text *text, const lilac_sim_launch *launch,
                     const lilac_sim_stuck *stuck) {
    lilac_text_printf(text, "for parity %u of ", stuck->parity);
    put_mbarrier(text, launch, stuck->address, stuck->rank);
    lilac_text_puts(text, ": ");
    put_phase(text, &stuck->phase);
}

static void put_reason(lilac_text *text, const lilac_sim_launch *launch,
                       const lilac_sim_stuck *stuck) {
    switch (stuck->at->code) {
    case LILAC_SIMT_OP_NAMED_BARRIER_SYNC:
        lilac_text_printf(text, "at named barrier %u: %u of %lld threads have arrived",
                          stuck->at->detail, stuck->count, (long long)stuck->at->immediate);
        break;
    case LILAC_SIMT_OP_SET_MAX_REGISTERS:
        lilac_text_printf(text, "for %lld registers a thread; %u more are free",
                          (long long)stuck->at->immediate, stuck->count);
        break;
    default:
        put_wait(text, launch, stuck);
        break;
    }
}

/* "warps 0 to 3 wait here …" */
static void note_stuck(lilac_context *context, const lilac_sim_launch *launch,
                       const lilac_sim_stuck *stuck) {
    lilac_text text = {0};
    lilac_sim_put_block(&text, launch, stuck->block);
    lilac_text_printf(&text, ": warps %u to %u wait here ", stuck->first_warp,
                      stuck->first_warp + stuck->warps - 1);
    put_reason(&text, launch, stuck);
    lilac_note(context, NOWHERE, stuck->at->location, "%s", lilac_text_get(&text));
    if (stuck->last) {
        note_last(context, stuck->last);
    }
    lilac_text_clear(&text);
}

void lilac_sim_report_deadlock(lilac_context *context, const lilac_sim_launch *launch,
                               const lilac_sim_trap *trap) {
    lilac_text text = {0};
    lilac_sim_put_block(&text, launch, trap->block);
    lilac_error(context, NOWHERE, trap->at->location, "deadlock", "%s: no warp can go on",
                lilac_text_get(&text));
    for (uint32_t k = 0; k < trap->stuck_count; k++) {
        note_stuck(context, launch, &trap->stuck[k]);
    }
    lilac_text_clear(&text);
}

void lilac_sim_report_program_trap(lilac_context *context, const lilac_sim_launch *launch,
                                   const lilac_sim_trap *trap, const char *id) {
    lilac_text text = {0};
    lilac_sim_put_place(&text, launch, trap->block, trap->thread);
    lilac_text_printf(&text, ": %s ", lilac_sim_name_of(trap->at));
    if (trap->kind == TRAP_REGISTERS) {
        lilac_text_printf(&text, "%s to %lld registers; a thread has %u",
                          trap->at->detail ? "inc" : "dec", (long long)trap->at->immediate,
                          trap->size);
    } else if (trap->kind == TRAP_NAMED_COUNT) {
        lilac_text_printf(&text, "is the arrival of %u threads at barrier %u, which has %lld",
                          trap->size, trap->at->detail, (long long)trap->at->immediate);
    } else {
        lilac_text_printf(&text,
                          "arrives again at barrier %u before it completes: %u of %lld threads "
                          "have arrived",
                          trap->at->detail, trap->size, (long long)trap->at->immediate);
    }
    lilac_error(context, NOWHERE, trap->at->location, id, "%s", lilac_text_get(&text));
    if (trap->use) {
        note_last(context, trap->use);
    }
    lilac_text_clear(&text);
}

void lilac_sim_report_named_finding(lilac_context *context, const lilac_sim_launch *launch,
                                    const lilac_sim_finding *finding) {
    lilac_text text = {0};
    lilac_sim_put_block(&text, launch, finding->block);
    lilac_warning(context, NOWHERE, finding->at->location, "named-barrier-unfinished",
                  "%s: %u of %lld threads have arrived at named barrier %llu when the block ends",
                  lilac_text_get(&text), finding->width, (long long)finding->at->immediate,
                  (unsigned long long)finding->address);
    note_last(context, finding->at);
    lilac_text_clear(&text);
}

void lilac_sim_report_mbarrier_finding(lilac_context *context, const lilac_sim_launch *launch,
                                       const lilac_sim_finding *finding) {
    bool missed = finding->kind == FINDING_MBARRIER_MISSED;
    lilac_text text = {0};
    if (missed) {
        lilac_sim_put_place(&text, launch, finding->block, finding->thread);
    } else {
        lilac_sim_put_block(&text, launch, finding->block);
    }
    lilac_text_puts(&text, ": ");
    if (missed) {
        lilac_text_printf(&text, "%s of warp %u at ", lilac_sim_name_of(finding->at),
                          finding->warp % launch->kernel->num_warps);
        put_mbarrier(&text, launch, finding->address, finding->rank);
        lilac_text_printf(&text,
                          " comes after %u phases that the warp has not waited for; their parity "
                          "does not identify one of them",
                          finding->width);
    } else {
        put_mbarrier(&text, launch, finding->address, finding->rank);
        lilac_text_puts(&text, " is not between two phases when the block ends: ");
        put_phase(&text, &finding->phase);
    }
    lilac_warning(context, NOWHERE, finding->at->location,
                  missed ? "mbarrier-missed" : "mbarrier-unfinished", "%s", lilac_text_get(&text));
    note_last(context, finding->other);
    lilac_text_clear(&text);
}
