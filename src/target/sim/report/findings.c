/* The warnings of findings: the operation, its block and thread, the byte or register, and in a
 * note the other access or the wait. */
#include "report.h"

#define NOWHERE ((lilac_position){0})

/* Adds a note with the earlier access. */
static void note_other(lilac_context *context, const lilac_sim_launch *launch,
                       const lilac_sim_finding *finding, const char *did) {
    lilac_text text = {0};
    lilac_text_printf(&text, "%s by %s in ", did, lilac_sim_name_of(finding->other));
    if (finding->other_warp != finding->warp) {
        lilac_sim_put_warp(&text, launch, finding->other_warp);
    } else {
        lilac_text_puts(&text, "this warp and in others");
    }
    lilac_note(context, NOWHERE, finding->other->location, "%s", lilac_text_get(&text));
    lilac_text_clear(&text);
}

static void report_uninitialised(lilac_context *context, const lilac_sim_launch *launch,
                                 const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                                 lilac_text *text) {
    lilac_text_printf(text, ": %s reads ", lilac_sim_name_of(finding->at));
    if (finding->kind == FINDING_UNINITIALISED_GLOBAL) {
        lilac_sim_put_address(text, memory, finding->address);
    } else {
        lilac_text_printf(text, "shared byte %llu", (unsigned long long)finding->address);
        lilac_sim_put_rank(text, launch, finding->rank);
    }
    lilac_text_puts(text, ", which nothing has written");
    lilac_warning(context, NOWHERE, finding->at->location, "uninitialised-read", "%s",
                  lilac_text_get(text));
}

static void report_lifetime(lilac_context *context, const lilac_sim_finding *finding,
                            lilac_text *text) {
    bool ended = finding->kind == FINDING_ENDED;
    lilac_warning(context, NOWHERE, finding->at->location, "shared-lifetime",
                  "%s: %s reaches shared byte %llu of rank %u, which may %s: no cluster barrier %s",
                  lilac_text_get(text), lilac_sim_name_of(finding->at),
                  (unsigned long long)finding->address, finding->rank,
                  ended ? "have ended" : "not have begun", ended ? "comes after" : "came before");
}

static void report_race(lilac_context *context, const lilac_sim_launch *launch,
                        const lilac_sim_finding *finding, lilac_text *text) {
    bool read = finding->kind == FINDING_READ_AFTER_WRITE;
    bool after_read = finding->kind == FINDING_WRITE_AFTER_READ;
    lilac_text_puts(text, " (");
    lilac_sim_put_warp(text, launch, finding->warp);
    lilac_text_printf(text, "): %s %s shared byte %llu", lilac_sim_name_of(finding->at),
                      read ? "reads" : "writes", (unsigned long long)finding->address);
    lilac_sim_put_rank(text, launch, finding->rank);
    lilac_warning(context, NOWHERE, finding->at->location, "shared-race",
                  "%s, which another warp %s with no barrier between", lilac_text_get(text),
                  after_read ? "read" : "wrote");
    note_other(context, launch, finding, after_read ? "read" : "written");
}

/* The verb for an access to global memory. */
static const char *verb_of(const lilac_simt_instruction *instruction) {
    switch (instruction->code) {
    case LILAC_SIMT_OP_LD_GLOBAL:
    case LILAC_SIMT_OP_CP_ASYNC:
    case LILAC_SIMT_OP_CP_BULK_LOAD:
    case LILAC_SIMT_OP_CP_TENSOR_LOAD:
        return "reads";
    case LILAC_SIMT_OP_ST_GLOBAL:
    case LILAC_SIMT_OP_CP_BULK_STORE:
    case LILAC_SIMT_OP_CP_TENSOR_STORE:
        return "writes";
    default:
        return "changes";
    }
}

static void report_global_race(lilac_context *context, const lilac_sim_launch *launch,
                               const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                               lilac_text *text) {
    const lilac_sim_buffer *buffer = lilac_sim_memory_find(memory, finding->address, 1);
    uint64_t offset = finding->address - buffer->address;
    const char *name = buffer->name ? buffer->name : "?";
    lilac_text_printf(text, ": %s %s ", lilac_sim_name_of(finding->at), verb_of(finding->at));
    if (offset % finding->width == 0) {
        lilac_text_printf(text, "element %llu of '%s'",
                          (unsigned long long)(offset / finding->width), name);
    } else {
        lilac_sim_put_address(text, memory, finding->address);
    }
    lilac_text_printf(text, ", which %s in ", lilac_sim_name_of(finding->other));
    lilac_sim_put_place(text, launch, finding->other_block, finding->other_thread);
    lilac_warning(context, NOWHERE, finding->at->location, "global-race",
                  "%s %s; nothing orders the two", lilac_text_get(text), verb_of(finding->other));
    lilac_note(context, NOWHERE, finding->other->location, "%s %s it here",
               lilac_sim_name_of(finding->other), verb_of(finding->other));
}

/* An access to a shared byte of an incomplete copy, with the copy in a note. */
static void report_in_flight(lilac_context *context, const lilac_sim_launch *launch,
                             const lilac_sim_finding *finding, lilac_text *text) {
    lilac_text_puts(text, " (");
    lilac_sim_put_warp(text, launch, finding->warp);
    lilac_text_printf(text, "): %s %s shared byte %llu", lilac_sim_name_of(finding->at),
                      finding->kind == FINDING_READ_IN_FLIGHT ? "reads" : "writes",
                      (unsigned long long)finding->address);
    lilac_sim_put_rank(text, launch, finding->rank);
    lilac_warning(context, NOWHERE, finding->at->location, "copy-in-flight",
                  "%s while a copy into it is in flight", lilac_text_get(text));
    lilac_text_reset(text);
    lilac_sim_put_warp(text, launch, finding->other_warp);
    lilac_note(context, NOWHERE, finding->other->location,
               "%s in %s starts the copy, and no wait has completed it",
               lilac_sim_name_of(finding->other), lilac_text_get(text));
}

static void report_copy(lilac_context *context, const lilac_sim_memory *memory,
                        const lilac_sim_finding *finding, lilac_text *text) {
    if (finding->kind == FINDING_NOT_AWAITED && finding->width != 0) {
        lilac_sim_report_multicast(context, finding, text);
        return;
    }
    if (finding->kind == FINDING_NOT_AWAITED) {
        lilac_warning(context, NOWHERE, finding->at->location, "copy-not-awaited",
                      "%s: %s is still in flight when the block ends", lilac_text_get(text),
                      lilac_sim_name_of(finding->at));
        return;
    }
    lilac_text_printf(text, ": %s reads ", lilac_sim_name_of(finding->at));
    lilac_sim_put_address(text, memory, finding->address);
    lilac_warning(context, NOWHERE, finding->at->location, "copy-source-changed",
                  "%s, which changes while the copy is in flight", lilac_text_get(text));
    lilac_note(context, NOWHERE, finding->other->location,
               finding->other->code == LILAC_SIMT_OP_MBARRIER_INIT
                   ? "%s: the copy completes at this mbarrier"
                   : "%s completes the copy",
               lilac_sim_name_of(finding->other));
}

static void report_wgmma(lilac_context *context, const lilac_sim_finding *f, lilac_text *text) {
    const char *id = "", *note = "%s is in flight";
    lilac_text_printf(text, ": %s ", lilac_sim_name_of(f->at));
    switch (f->kind) {
    case FINDING_WGMMA_REGISTER:
        id = "wgmma-register";
        lilac_text_puts(text, f->other ? "uses a result of a wgmma that no wait has completed"
                                       : "uses an accumulator that a wgmma has overwritten");
        break;
    case FINDING_WGMMA_SERIALISED:
        id = "wgmma-serialised";
        lilac_text_puts(text, "copies a result of a wgmma in flight to another register: "
                              "assemblers serialise the wgmmas of such a kernel");
        break;
    case FINDING_WGMMA_OPERAND:
        id = "wgmma-operand-changed";
        lilac_text_printf(text,
                          "reads byte %llu of row %llu of %s, which is overwritten before the wait",
                          (unsigned long long)(f->address % 32),
                          (unsigned long long)(f->address / 32), f->width ? "B" : "A");
        note = "%s completes it";
        break;
    case FINDING_WGMMA_FENCE:
        id = "missing-wgmma-fence";
        lilac_text_puts(
            text, "uses registers that other instructions accessed after the last wgmma.fence");
        break;
    case FINDING_WGMMA_UNCOMMITTED:
        id = "wgmma-not-committed";
        lilac_text_puts(text, "is not committed to a group before this wait");
        note = "%s does not wait for it";
        break;
    case FINDING_WGMMA_BASE:
        id = "swizzle-base";
        lilac_text_printf(
            text,
            "has an operand that starts in row %llu of the swizzle's pattern, and its "
            "descriptor has the base offset %u",
            (unsigned long long)f->address, f->width);
        note = "%s computes the descriptor";
        break;
    case FINDING_WGMMA_STRIDE:
        id = "matrix-descriptor";
        lilac_text_printf(
            text,
            "has an operand whose groups of 8 rows have a stride of %llu bytes; a group has %u "
            "bytes",
            (unsigned long long)f->address, f->width);
        note = "%s computes the descriptor";
        break;
    default:
        id = "wgmma-not-awaited";
        lilac_text_puts(text, "is still in flight when the block ends");
        break;
    }
    lilac_warning(context, NOWHERE, f->at->location, id, "%s", lilac_text_get(text));
    if (f->other) {
        lilac_note(context, NOWHERE, f->other->location, note, lilac_sim_name_of(f->other));
    }
}

void lilac_sim_report_finding(lilac_context *context, const lilac_sim_launch *launch,
                              const lilac_sim_memory *memory, const lilac_sim_finding *finding) {
    lilac_text text = {0};
    lilac_sim_put_place(&text, launch, finding->block, finding->thread);
    switch (finding->kind) {
    case FINDING_UNINITIALISED_GLOBAL:
    case FINDING_UNINITIALISED_SHARED:
        report_uninitialised(context, launch, memory, finding, &text);
        break;
    case FINDING_NOT_BEGUN:
    case FINDING_ENDED:
        report_lifetime(context, finding, &text);
        break;
    case FINDING_READ_IN_FLIGHT:
    case FINDING_WRITE_IN_FLIGHT:
        report_in_flight(context, launch, finding, &text);
        break;
    case FINDING_SOURCE_CHANGED:
    case FINDING_NOT_AWAITED:
        report_copy(context, memory, finding, &text);
        break;
    case FINDING_SOURCE_WRITTEN:
    case FINDING_GLOBAL_IN_FLIGHT:
        lilac_sim_report_bulk(context, launch, memory, finding, &text);
        break;
    case FINDING_WGMMA_REGISTER:
    case FINDING_WGMMA_SERIALISED:
    case FINDING_WGMMA_OPERAND:
    case FINDING_WGMMA_FENCE:
    case FINDING_WGMMA_UNCOMMITTED:
    case FINDING_WGMMA_NOT_AWAITED:
    case FINDING_WGMMA_BASE:
    case FINDING_WGMMA_STRIDE:
        report_wgmma(context, finding, &text);
        break;
    case FINDING_MAP_NOT_ACQUIRED:
    case FINDING_MAP_IN_USE:
        lilac_sim_report_map(context, finding, &text);
        break;
    case FINDING_SWIZZLE_BASE:
        lilac_sim_report_swizzle(context, finding, &text);
        break;
    case FINDING_PROXY:
    case FINDING_PROXY_GLOBAL:
        lilac_sim_report_proxy(context, launch, memory, finding, &text);
        break;
    case FINDING_MBARRIER_MISSED:
    case FINDING_MBARRIER_UNFINISHED:
        lilac_sim_report_mbarrier_finding(context, launch, finding);
        break;
    case FINDING_NAMED_UNFINISHED:
        lilac_sim_report_named_finding(context, launch, finding);
        break;
    case FINDING_GLOBAL_RACE:
        report_global_race(context, launch, memory, finding, &text);
        break;
    default:
        report_race(context, launch, finding, &text);
        break;
    }
    lilac_text_clear(&text);
}
