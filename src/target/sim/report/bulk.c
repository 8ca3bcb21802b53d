/* The diagnostics of bulk copies and of the async proxy: the bytes, the copy, the other access,
 * and the wait or the fence that is missing between them. */
#include "report.h"

#define NOWHERE ((lilac_position){0})

void lilac_sim_put_bulk_trap(lilac_text *text, const lilac_sim_memory *memory,
                             const lilac_sim_trap *trap) {
    unsigned long long address = trap->address;
    if (trap->kind == TRAP_BULK_SIZE) {
        lilac_text_printf(text, "%s of %llu bytes: the size is a multiple of %u",
                          lilac_sim_name_of(trap->at), address, LILAC_SIM_BULK_BYTES);
        return;
    }
    if (trap->kind == TRAP_TENSOR_MAP) {
        lilac_text_printf(text,
                          "%s finds no tensor map that it can use for address 0x%llx of scratch "
                          "memory: none is there, its fields exceed the limits of the device, or "
                          "its rank or elements are others",
                          lilac_sim_name_of(trap->at), address);
        return;
    }
    if (trap->kind == TRAP_MULTICAST_MASK) {
        lilac_text_printf(text,
                          "the multicast mask of %s is 0x%llx: it names at least one block, and "
                          "the blocks of the cluster are 0 to %u",
                          lilac_sim_name_of(trap->at), address, trap->size - 1);
        return;
    }
    lilac_text_printf(text, "the %s address of %s, ", trap->global ? "global" : "shared",
                      lilac_sim_name_of(trap->at));
    if (!trap->global) {
        lilac_text_printf(text, "%llu", address);
    } else {
        lilac_sim_put_address(text, memory, trap->address);
    }
    lilac_text_printf(text, ", is no multiple of %u bytes", trap->size);
}

void lilac_sim_report_bulk(lilac_context *context, const lilac_sim_launch *launch,
                           const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                           lilac_text *text) {
    bool source = finding->kind == FINDING_SOURCE_WRITTEN;
    lilac_text_puts(text, " (");
    lilac_sim_put_warp(text, launch, finding->warp);
    lilac_text_printf(text, "): %s ", lilac_sim_name_of(finding->at));
    if (source) {
        lilac_text_printf(text, "writes shared byte %llu", (unsigned long long)finding->address);
        lilac_sim_put_rank(text, launch, finding->rank);
    } else {
        lilac_text_puts(text, "accesses ");
        lilac_sim_put_address(text, memory, finding->address);
    }
    lilac_warning(context, NOWHERE, finding->at->location,
                  source ? "copy-source-written" : "copy-in-flight", "%s while a copy %s it",
                  lilac_text_get(text), source ? "reads" : "writes");
    lilac_text_reset(text);
    lilac_sim_put_warp(text, launch, finding->other_warp);
    lilac_note(context, NOWHERE, finding->other->location,
               "%s of thread %u (%s) starts the copy, and no %s has completed it",
               lilac_sim_name_of(finding->other), finding->other_thread, lilac_text_get(text),
               source ? "bulk.wait_read" : "bulk.wait");
}

void lilac_sim_report_multicast(lilac_context *context, const lilac_sim_finding *finding,
                                lilac_text *text) {
    lilac_warning(context, NOWHERE, finding->at->location, "copy-not-awaited",
                  "%s: %s is still in flight into the block of rank %u when that block ends",
                  lilac_text_get(text), lilac_sim_name_of(finding->at), finding->rank);
}

void lilac_sim_report_map(lilac_context *context, const lilac_sim_finding *finding,
                          lilac_text *text) {
    const bool in_use = finding->kind == FINDING_MAP_IN_USE;
    lilac_warning(context, NOWHERE, finding->at->location,
                  in_use ? "tensor-map-in-use" : "tensor-map-not-acquired",
                  in_use ? "%s: %s replaces a tensor map that an incomplete copy uses"
                         : "%s: %s uses a tensor map that neither its warp nor one that a barrier "
                           "orders before has acquired since it was published",
                  lilac_text_get(text), lilac_sim_name_of(finding->at));
    lilac_note(context, NOWHERE, finding->other->location,
               in_use ? "%s starts the copy" : "%s publishes the map",
               lilac_sim_name_of(finding->other));
}

void lilac_sim_report_swizzle(lilac_context *context, const lilac_sim_finding *finding,
                              lilac_text *text) {
    lilac_warning(context, NOWHERE, finding->at->location, "swizzle-base",
                  "%s: the box of %s begins at shared byte %llu, and its swizzle repeats every %u "
                  "bytes: a multiple of that is needed for the pattern to begin there",
                  lilac_text_get(text), lilac_sim_name_of(finding->at),
                  (unsigned long long)finding->address, finding->width);
}

void lilac_sim_report_proxy(lilac_context *context, const lilac_sim_launch *launch,
                            const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                            lilac_text *text) {
    bool fenced = finding->width != 0;
    lilac_text_puts(text, " (");
    lilac_sim_put_warp(text, launch, finding->warp);
    lilac_text_printf(text, "): %s accesses ", lilac_sim_name_of(finding->at));
    if (finding->kind == FINDING_PROXY_GLOBAL) {
        lilac_sim_put_address(text, memory, finding->address);
    } else {
        lilac_text_printf(text, "shared byte %llu", (unsigned long long)finding->address);
        lilac_sim_put_rank(text, launch, finding->rank);
    }
    lilac_text_puts(text, " through the async proxy, which thread ");
    lilac_text_printf(text, "%u (", finding->other_thread);
    lilac_sim_put_warp(text, launch, finding->other_warp);
    lilac_warning(context, NOWHERE, finding->at->location, "missing-proxy-fence",
                  "%s) wrote with %s, %s", lilac_text_get(text), lilac_sim_name_of(finding->other),
                  fenced ? "and no barrier orders that thread's fence.proxy_async before"
                         : "and that thread executed no fence.proxy_async after it");
    lilac_note(context, NOWHERE, finding->other->location, "%s writes it here",
               lilac_sim_name_of(finding->other));
}
