/* The errors of traps: the operation, its block and thread, the address or number, and what is
 * allowed. The location is the instruction's, so the line is the user's. */
#include "report.h"

#define NOWHERE ((lilac_position){0})
/* Half of the distance that lilac_sim_place leaves between buffers. */
#define NEAR       (UINT64_C(1) << 35)
#define NULL_REACH (INT64_C(1) << 32)

/* ---- the buffer near an address --------------------------------------------------------- */

static uint64_t distance(const lilac_sim_buffer *buffer, uint64_t address) {
    if (address < buffer->address) {
        return buffer->address - address;
    }
    uint64_t offset = address - buffer->address;
    return offset > buffer->size ? offset - buffer->size : 0;
}

/* The nearest buffer, or NULL if none is within NEAR bytes. */
static const lilac_sim_buffer *find_nearest(const lilac_sim_memory *memory, uint64_t address) {
    const lilac_sim_buffer *nearest = NULL;
    for (uint32_t k = 0; k < memory->count; k++) {
        if (!nearest || distance(memory->buffers[k], address) < distance(nearest, address)) {
            nearest = memory->buffers[k];
        }
    }
    return nearest && distance(nearest, address) <= NEAR ? nearest : NULL;
}

/* The address is null plus an offset, and no buffer is near. */
static bool is_null(const lilac_sim_memory *memory, uint64_t address) {
    int64_t offset = (int64_t)address;
    return offset > -NULL_REACH && offset < NULL_REACH && !find_nearest(memory, address);
}

/* "it begins 12 bytes past the end of 'x' (4096 bytes)", or "none is near". */
static void put_nearest(lilac_text *out, const lilac_sim_memory *memory, uint64_t address,
                        uint32_t size) {
    const lilac_sim_buffer *nearest = find_nearest(memory, address);
    if (!nearest) {
        lilac_text_puts(out, "; none is near");
        return;
    }
    const char *name = nearest->name ? nearest->name : "?";
    unsigned long long length = nearest->size, away = distance(nearest, address);
    if (address < nearest->address) {
        lilac_text_printf(out, "; it begins %llu bytes before the start of '%s' (%llu bytes)", away,
                          name, length);
    } else if (away) {
        lilac_text_printf(out, "; it begins %llu bytes past the end of '%s' (%llu bytes)", away,
                          name, length);
    } else if (address - nearest->address == nearest->size) {
        lilac_text_printf(out, "; it begins at the end of '%s' (%llu bytes)", name, length);
    } else {
        lilac_text_printf(out, "; it runs %llu bytes past the end of '%s' (%llu bytes)",
                          (unsigned long long)(address - nearest->address + size - nearest->size),
                          name, length);
    }
}

/* ---- texts ------------------------------------------------------------------------------ */

/* The launch and the memory that the texts name. */
typedef struct trap_scene {
    const lilac_sim_launch *launch;
    const lilac_sim_memory *memory;
} trap_scene;

static void put_global_bounds(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    lilac_text_printf(out, "%s of %u bytes at 0x%llx is outside every buffer",
                      lilac_sim_name_of(trap->at), trap->size, (unsigned long long)trap->address);
    put_nearest(out, x->memory, trap->address, trap->size);
}

static void put_shared_bounds(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    lilac_text_printf(out, "%s of %u bytes at %d", lilac_sim_name_of(trap->at), trap->size,
                      (int)(int32_t)trap->address);
    lilac_sim_put_rank(out, x->launch, trap->rank);
    lilac_text_printf(out, " is outside the block's %u bytes", x->launch->kernel->shared_bytes);
}

static void put_interval(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out, "%s of %u bytes at %llu is outside the bytes %u to %u it promises",
                      lilac_sim_name_of(trap->at), trap->size, (unsigned long long)trap->address,
                      trap->at->shared_begin, trap->at->shared_end);
}

static void put_rank_trap(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    lilac_text_printf(out, "%s at 0x%llx: no address of a block of this cluster of %u",
                      lilac_sim_name_of(trap->at), (unsigned long long)trap->address,
                      x->launch->kernel->num_ctas);
}

static void put_predicate(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out, "the predicate of '%s' differs within the warp",
                      lilac_sim_name_of(trap->at));
}

static void put_group_number(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out, "the number of '%s' is above 14 or differs between threads of one group",
                      lilac_sim_name_of(trap->at));
}

static void put_group_size(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out,
                      "%u warps meet at group %llu of '%s', which is a barrier of %lld threads",
                      trap->size, (unsigned long long)trap->address, lilac_sim_name_of(trap->at),
                      (long long)trap->at->immediate);
}

static void put_copy_bytes(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out, "%s writes %u bytes and would read %llu, more than it writes",
                      lilac_sim_name_of(trap->at), trap->size, (unsigned long long)trap->address);
}

static void put_warpgroup(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out, "a descriptor or the predicate of '%s' differs within the warpgroup",
                      lilac_sim_name_of(trap->at));
}

static void put_misaligned(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    lilac_text_printf(out, "%s of %u bytes at ", lilac_sim_name_of(trap->at), trap->size);
    if (!trap->global) {
        lilac_text_printf(out, "%llu", (unsigned long long)trap->address);
    } else {
        lilac_sim_put_address(out, x->memory, trap->address);
    }
    lilac_text_printf(out, " is misaligned by %llu",
                      (unsigned long long)trap->address % trap->size);
}

static void put_read_only(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    lilac_text_printf(out, "%s of %u bytes at ", lilac_sim_name_of(trap->at), trap->size);
    lilac_sim_put_address(out, x->memory, trap->address);
    lilac_text_puts(out, ": the buffer is read-only");
}

static void put_divergent(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out, "the condition of '%s' differs from that of the first thread",
                      lilac_sim_name_of(trap->at));
}

static void put_assert(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out, "assertion failed: %s",
                      trap->at->text ? trap->at->text : "(no message)");
}

static void put_division(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    lilac_text_printf(out, "%s by zero reaches the %s of %s in thread %u",
                      lilac_sim_name_of(trap->at), trap->what, lilac_sim_name_of(trap->use),
                      trap->use_thread);
}

static void put_step(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    (void)x;
    (void)trap;
    lilac_text_puts(out, "the loop's step is not positive");
}

static void put_bulk(lilac_text *out, const trap_scene *x, const lilac_sim_trap *trap) {
    lilac_sim_put_bulk_trap(out, x->memory, trap);
}

/* Every kind has an id. `put` writes the text after the block and thread; kinds without it have a
 * report function of their own (lilac_sim_report_trap). */
typedef struct trap_row {
    const char *id;
    void (*put)(lilac_text *out, const trap_scene *scene, const lilac_sim_trap *trap);
} trap_row;

/* clang-format off */
static const trap_row trap_rows[] = {
    [TRAP_NONE]            = {"",                       NULL},
    [TRAP_GLOBAL_BOUNDS]   = {"out-of-bounds",          put_global_bounds},
    [TRAP_SHARED_BOUNDS]   = {"out-of-bounds",          put_shared_bounds},
    [TRAP_MISALIGNED]      = {"misaligned-access",      put_misaligned},
    [TRAP_READ_ONLY]       = {"read-only",              put_read_only},
    [TRAP_DIVERGENT]       = {"divergent-branch",       put_divergent},
    [TRAP_ASSERT]          = {"assertion-failed",       put_assert},
    [TRAP_DIVISION]        = {"division-by-zero",       put_division},
    [TRAP_STEP]            = {"loop-step",              put_step},
    [TRAP_LIMIT]           = {"instruction-limit",      NULL},
    [TRAP_LIMIT_IN_LOOP]   = {"instruction-limit",      NULL},
    [TRAP_INTERVAL]        = {"outside-interval",       put_interval},
    [TRAP_RANK]            = {"out-of-bounds",          put_rank_trap},
    [TRAP_PREDICATE]       = {"divergent-predicate",    put_predicate},
    [TRAP_GROUP_NUMBER]    = {"group-barrier",          put_group_number},
    [TRAP_GROUP_SIZE]      = {"group-barrier",          put_group_size},
    [TRAP_COPY_BYTES]      = {"copy-size",              put_copy_bytes},
    [TRAP_WARPGROUP]       = {"divergent-operand",      put_warpgroup},
    [TRAP_BULK_SIZE]       = {"copy-size",              put_bulk},
    [TRAP_BULK_ALIGNMENT]  = {"misaligned-access",      put_bulk},
    [TRAP_TENSOR_MAP]      = {"tensor-map",             put_bulk},
    [TRAP_MULTICAST_MASK]  = {"multicast-mask",         put_bulk},
    [TRAP_MBARRIER_NONE]   = {"mbarrier-missing",       NULL},
    [TRAP_MBARRIER_INIT]   = {"mbarrier-in-use",        NULL},
    [TRAP_MBARRIER_RANGE]  = {"mbarrier-range",         NULL},
    [TRAP_MBARRIER_COUNT]  = {"mbarrier-count",         NULL},
    [TRAP_MBARRIER_BYTES]  = {"mbarrier-bytes",         NULL},
    [TRAP_NAMED_COUNT]     = {"named-barrier-count",    NULL},
    [TRAP_NAMED_TWICE]     = {"named-barrier-reuse",    NULL},
    [TRAP_REGISTERS]       = {"register-budget",        NULL},
    [TRAP_DEADLOCK]        = {"deadlock",               NULL},
};
/* clang-format on */

/* ---- reports ---------------------------------------------------------------------------- */

/* "ld.global of 4 bytes through a null pointer, 16 bytes behind it", and the parameters that are
 * null. */
static void report_null(lilac_context *context, const lilac_sim_launch *launch,
                        const lilac_sim_trap *trap) {
    const lilac_simt_kernel *kernel = launch->kernel;
    int64_t offset = (int64_t)trap->address;
    lilac_text text = {0};
    lilac_sim_put_place(&text, launch, trap->block, trap->thread);
    lilac_text_printf(&text, ": %s of %u bytes through a null pointer", lilac_sim_name_of(trap->at),
                      trap->size);
    if (offset) {
        lilac_text_printf(&text, ", %lld bytes %s it", (long long)(offset < 0 ? -offset : offset),
                          offset < 0 ? "before" : "past");
    }
    lilac_error(context, NOWHERE, trap->at->location, "null-pointer", "%s", lilac_text_get(&text));
    for (uint32_t k = 0; k < kernel->parameter_count; k++) {
        if (kernel->parameters[k].is_pointer && launch->arguments[k] == 0) {
            lilac_note(context, NOWHERE, 0, "parameter '%s' is null",
                       kernel->parameters[k].name ? kernel->parameters[k].name : "?");
        }
    }
    lilac_text_clear(&text);
}

static void report_limit(lilac_context *context, const lilac_sim_launch *launch,
                         const lilac_sim_trap *trap) {
    lilac_text text = {0};
    lilac_sim_put_block(&text, launch, trap->block);
    if (trap->kind == TRAP_LIMIT_IN_LOOP) {
        lilac_text_puts(&text, ": this loop still runs when the block reaches its limit of ");
    } else {
        lilac_text_printf(&text, ": the block reaches %s with its limit of ",
                          lilac_sim_name_of(trap->at));
    }
    lilac_text_printf(&text, "%llu instructions",
                      (unsigned long long)(launch->instruction_limit ? launch->instruction_limit
                                                                     : LILAC_SIM_LIMIT));
    lilac_error(context, NOWHERE, trap->at->location, trap_rows[trap->kind].id, "%s",
                lilac_text_get(&text));
    lilac_note(context, NOWHERE, 0,
               "the limit counts instructions of all warps of the block; --limit N sets it");
    lilac_text_clear(&text);
}

static void report_text(lilac_context *context, const trap_scene *scene,
                        const lilac_sim_trap *trap) {
    const trap_row *row = &trap_rows[trap->kind];
    lilac_text text = {0};
    lilac_sim_put_place(&text, scene->launch, trap->block, trap->thread);
    lilac_text_puts(&text, ": ");
    if (row->put != NULL) {
        row->put(&text, scene, trap);
    }
    lilac_error(context, NOWHERE, trap->at->location, row->id, "%s", lilac_text_get(&text));
    if (trap->use != NULL) {
        lilac_note(context, NOWHERE, trap->use->location, "%s uses the result here, in thread %u",
                   lilac_sim_name_of(trap->use), trap->use_thread);
    }
    lilac_text_clear(&text);
}

void lilac_sim_report_trap(lilac_context *context, const lilac_sim_launch *launch,
                           const lilac_sim_memory *memory, const lilac_sim_trap *trap) {
    const char *id = trap_rows[trap->kind].id;
    if (trap->kind == TRAP_LIMIT || trap->kind == TRAP_LIMIT_IN_LOOP) {
        report_limit(context, launch, trap);
    } else if (trap->kind == TRAP_DEADLOCK) {
        lilac_sim_report_deadlock(context, launch, trap);
    } else if (trap->kind >= TRAP_MBARRIER_NONE && trap->kind <= TRAP_MBARRIER_BYTES) {
        lilac_sim_report_mbarrier_trap(context, launch, trap, id);
    } else if (trap->kind >= TRAP_NAMED_COUNT && trap->kind <= TRAP_REGISTERS) {
        lilac_sim_report_program_trap(context, launch, trap, id);
    } else if (trap->kind == TRAP_GLOBAL_BOUNDS && is_null(memory, trap->address)) {
        report_null(context, launch, trap);
    } else {
        report_text(context, &(trap_scene){launch, memory}, trap);
    }
}
