/* What traps and findings say: the operation, the block and thread, and what was missed by how
 * much. The diagnostic's location is the instruction's, so its line is the user's. */
#include "report.h"

#define NOWHERE    ((lilac_position){0})
#define NEAR       (UINT64_C(1) << 35) /* half of what lilac_sim_place leaves between buffers */
#define NULL_REACH (INT64_C(1) << 32)

static const char *name_of(const lilac_simt_instruction *instruction) {
    return lilac_simt_op_info_get((lilac_simt_opcode)instruction->code)->name;
}

/* "block (3, 0, 0)", with the rank where a program has several blocks. */
void lilac_sim_put_block(lilac_text *out, const lilac_sim_launch *launch, uint64_t block) {
    uint32_t ctas = launch->kernel->num_ctas;
    uint64_t program = block / ctas, x = launch->grid[0], y = launch->grid[1];
    lilac_text_printf(out, "block (%llu, %llu, %llu)", (unsigned long long)(program % x),
                      (unsigned long long)(program / x % y), (unsigned long long)(program / x / y));
    if (ctas > 1)
        lilac_text_printf(out, ", rank %llu", (unsigned long long)(block % ctas));
}

/* "block (3, 0, 0), thread 17" */
void lilac_sim_put_place(lilac_text *out, const lilac_sim_launch *launch, uint64_t block,
                         uint32_t thread) {
    lilac_sim_put_block(out, launch, block);
    lilac_text_printf(out, ", thread %u", thread);
}

static uint64_t distance(const lilac_sim_buffer *buffer, uint64_t address) {
    if (address < buffer->address)
        return buffer->address - address;
    uint64_t offset = address - buffer->address;
    return offset > buffer->size ? offset - buffer->size : 0;
}

/* The buffer next to an address, or NULL when all are far away. */
static const lilac_sim_buffer *find_nearest(const lilac_sim_memory *memory, uint64_t address) {
    const lilac_sim_buffer *nearest = NULL;
    for (uint32_t k = 0; k < memory->count; k++)
        if (!nearest || distance(memory->buffers[k], address) < distance(nearest, address))
            nearest = memory->buffers[k];
    return nearest && distance(nearest, address) <= NEAR ? nearest : NULL;
}

/* Is the address a null pointer, or one with an offset? */
static bool is_null(const lilac_sim_memory *memory, uint64_t address) {
    int64_t offset = (int64_t)address;
    return offset > -NULL_REACH && offset < NULL_REACH && !find_nearest(memory, address);
}

/* "ld.global of 4 bytes through a null pointer, 16 bytes behind it", and the parameters that are
 * null. */
static void report_null(lilac_context *context, const lilac_sim_launch *launch,
                        const lilac_sim_trap *trap) {
    const lilac_simt_kernel *kernel = launch->kernel;
    int64_t offset = (int64_t)trap->address;
    lilac_text text = {0};
    lilac_sim_put_place(&text, launch, trap->block, trap->thread);
    lilac_text_printf(&text, ": %s of %u bytes through a null pointer", name_of(trap->at),
                      trap->size);
    if (offset)
        lilac_text_printf(&text, ", %lld bytes %s it", (long long)(offset < 0 ? -offset : offset),
                          offset < 0 ? "before" : "past");
    lilac_error(context, NOWHERE, trap->at->location, "null-pointer", "%s", lilac_text_get(&text));
    for (uint32_t k = 0; k < kernel->parameter_count; k++)
        if (kernel->parameters[k].is_pointer && launch->arguments[k] == 0)
            lilac_note(context, NOWHERE, 0, "parameter '%s' is null",
                       kernel->parameters[k].name ? kernel->parameters[k].name : "?");
    lilac_text_clear(&text);
}

/* "it begins 12 bytes past the end of 'x' (4096 bytes)"; a buffer far away says nothing. */
static void put_nearest(lilac_text *out, const lilac_sim_memory *memory, uint64_t address,
                        uint32_t size) {
    const lilac_sim_buffer *nearest = find_nearest(memory, address);
    if (!nearest) {
        lilac_text_puts(out, "; none is near");
        return;
    }
    const char *name = nearest->name ? nearest->name : "?";
    unsigned long long length = nearest->size, away = distance(nearest, address);
    if (address < nearest->address)
        lilac_text_printf(out, "; it begins %llu bytes before the start of '%s' (%llu bytes)", away,
                          name, length);
    else if (away)
        lilac_text_printf(out, "; it begins %llu bytes past the end of '%s' (%llu bytes)", away,
                          name, length);
    else if (address - nearest->address == nearest->size)
        lilac_text_printf(out, "; it begins at the end of '%s' (%llu bytes)", name, length);
    else
        lilac_text_printf(out, "; it runs %llu bytes past the end of '%s' (%llu bytes)",
                          (unsigned long long)(address - nearest->address + size - nearest->size),
                          name, length);
}

/* "'x' + 16" or the bare address. */
void lilac_sim_put_address(lilac_text *out, const lilac_sim_memory *memory, uint64_t address) {
    const lilac_sim_buffer *buffer = lilac_sim_memory_find(memory, address, 1);
    if (buffer)
        lilac_text_printf(out, "'%s' + %llu", buffer->name ? buffer->name : "?",
                          (unsigned long long)(address - buffer->address));
    else
        lilac_text_printf(out, "0x%llx", (unsigned long long)address);
}

/* Whose shared memory, where there is a choice. */
void lilac_sim_put_rank(lilac_text *out, const lilac_sim_launch *launch, uint32_t rank) {
    if (launch->kernel->num_ctas > 1)
        lilac_text_printf(out, " of rank %u", rank);
}

/* "warp 3" of all the cluster's warps. */
void lilac_sim_put_warp(lilac_text *out, const lilac_sim_launch *launch, uint32_t warp) {
    uint32_t warps = launch->kernel->num_warps;
    lilac_text_printf(out, "warp %u", warp % warps);
    lilac_sim_put_rank(out, launch, warp / warps);
}

static const char *trap_id(lilac_sim_trap_kind kind) {
    static const char *const ids[] = {
        [TRAP_NONE] = "",
        [TRAP_GLOBAL_BOUNDS] = "out-of-bounds",
        [TRAP_SHARED_BOUNDS] = "out-of-bounds",
        [TRAP_MISALIGNED] = "misaligned-access",
        [TRAP_READ_ONLY] = "read-only",
        [TRAP_DIVERGENT] = "divergent-branch",
        [TRAP_ASSERT] = "assertion-failed",
        [TRAP_DIVISION] = "division-by-zero",
        [TRAP_STEP] = "loop-step",
        [TRAP_LIMIT] = "instruction-limit",
        [TRAP_LIMIT_IN_LOOP] = "instruction-limit",
        [TRAP_INTERVAL] = "outside-interval",
        [TRAP_RANK] = "out-of-bounds",
        [TRAP_PREDICATE] = "divergent-predicate",
        [TRAP_GROUP_NUMBER] = "group-barrier",
        [TRAP_GROUP_SIZE] = "group-barrier",
        [TRAP_COPY_BYTES] = "copy-size",
        [TRAP_WARPGROUP] = "divergent-operand",
        [TRAP_BULK_SIZE] = "copy-size",
        [TRAP_BULK_ALIGNMENT] = "misaligned-access",
        [TRAP_MULTICAST_MASK] = "multicast-mask",
        [TRAP_MBARRIER_NONE] = "mbarrier-missing",
        [TRAP_MBARRIER_INIT] = "mbarrier-in-use",
        [TRAP_MBARRIER_RANGE] = "mbarrier-range",
        [TRAP_MBARRIER_COUNT] = "mbarrier-count",
        [TRAP_MBARRIER_BYTES] = "mbarrier-bytes",
        [TRAP_NAMED_COUNT] = "named-barrier-count",
        [TRAP_NAMED_TWICE] = "named-barrier-reuse",
        [TRAP_REGISTERS] = "register-budget",
        [TRAP_DEADLOCK] = "deadlock",
    };
    return ids[kind];
}

static void report_limit(lilac_context *context, const lilac_sim_launch *launch,
                         const lilac_sim_trap *trap) {
    lilac_text text = {0};
    lilac_sim_put_block(&text, launch, trap->block);
    if (trap->kind == TRAP_LIMIT_IN_LOOP)
        lilac_text_puts(&text, ": this loop still runs when the block reaches its limit of ");
    else
        lilac_text_printf(&text, ": the block reaches %s with its limit of ", name_of(trap->at));
    lilac_text_printf(&text, "%llu instructions",
                      (unsigned long long)(launch->instruction_limit ? launch->instruction_limit
                                                                     : LILAC_SIM_LIMIT));
    lilac_error(context, NOWHERE, trap->at->location, trap_id(trap->kind), "%s",
                lilac_text_get(&text));
    lilac_note(context, NOWHERE, 0,
               "the limit counts instructions of all warps of the block; --limit N sets it");
    lilac_text_clear(&text);
}

/* ---- loops that do not end -------------------------------------------------------------- */

/* The resident cluster with the least number that is at least `from`, or NULL. */
static const lilac_sim_cluster *next_resident(const lilac_sim_schedule *s, uint64_t from) {
    const lilac_sim_cluster *least = NULL;
    for (uint32_t k = 0; k < s->count; k++) {
        for (uint32_t r = 0; r < s->workers[k].resident_count; r++) {
            const lilac_sim_cluster *c = s->workers[k].residents[r];
            if (c->number >= from && (!least || c->number < least->number))
                least = c;
        }
    }
    return least;
}

/* The first block of the cluster that is in a loop; num_ctas: none. */
static uint32_t looping_rank(const lilac_sim_cluster *cluster, uint32_t ctas) {
    uint32_t rank = 0;
    while (rank < ctas && (cluster->blocks[rank].ended || !cluster->blocks[rank].loop))
        rank++;
    return rank;
}

static void put_stall(lilac_text *out, const lilac_sim_launch *launch, lilac_sim_stall stall) {
    if (stall == STALL_REPEATS)
        lilac_text_puts(out, ": this loop does not end: it repeats the same state, and no block "
                             "that has begun changes global memory any more");
    else
        lilac_text_printf(out,
                          ": this loop does not seem to end: for %g s, no block has ended and no "
                          "byte of global memory has changed",
                          launch->stall_seconds > 0 ? launch->stall_seconds
                                                    : (double)LILAC_SIM_STALL_SECONDS);
}

/* One note a further loop, for the first few. */
static void note_loops(lilac_context *context, const lilac_sim_launch *launch,
                       const lilac_sim_schedule *s, const lilac_sim_cluster *cluster,
                       uint64_t *stuck) {
    enum { MOST = 4 };
    const lilac_simt_instruction *seen[MOST + 1];
    uint32_t count = 0, ctas = launch->kernel->num_ctas;
    for (*stuck = 0; cluster; cluster = next_resident(s, cluster->number + 1)) {
        uint32_t rank = looping_rank(cluster, ctas), k = 0;
        ++*stuck;
        if (rank == ctas || count > MOST)
            continue;
        const lilac_simt_instruction *loop = cluster->blocks[rank].loop;
        while (k < count && seen[k] != loop)
            k++;
        if (k < count)
            continue;
        seen[count++] = loop;
        if (count == 1) /* the diagnostic itself */
            continue;
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
    while (cluster && (rank = looping_rank(cluster, ctas)) == ctas)
        cluster = next_resident(s, cluster->number + 1);
    lilac_text text = {0};
    if (cluster)
        lilac_sim_put_block(&text, launch, cluster->number * ctas + rank);
    put_stall(&text, launch, (lilac_sim_stall)atomic_load(&s->stall));
    lilac_error(context, NOWHERE,
                cluster ? cluster->blocks[rank].loop->location : launch->kernel->location,
                "endless-loop", "%s", lilac_text_get(&text));
    note_loops(context, launch, s, cluster, &stuck);
    if (stuck > 1)
        lilac_note(context, NOWHERE, 0, "%llu blocks have begun and not ended",
                   (unsigned long long)stuck);
    if (next < s->clusters)
        lilac_note(context, NOWHERE, 0,
                   "%llu blocks have not begun: the simulator holds at most %u at a time",
                   (unsigned long long)(s->clusters - next), s->most_residents * s->count);
    lilac_note(context, NOWHERE, 0,
               "--limit N runs every block for up to N instructions, whatever time that takes");
    lilac_text_clear(&text);
}

/* ---- traps ------------------------------------------------------------------------------ */

void lilac_sim_report_trap(lilac_context *context, const lilac_sim_launch *launch,
                           const lilac_sim_memory *memory, const lilac_sim_trap *trap) {
    lilac_text text = {0};
    const char *name = name_of(trap->at);
    unsigned long long address = trap->address;
    if (trap->kind == TRAP_LIMIT || trap->kind == TRAP_LIMIT_IN_LOOP) {
        report_limit(context, launch, trap);
        return;
    }
    if (trap->kind == TRAP_DEADLOCK) {
        lilac_sim_report_deadlock(context, launch, trap);
        return;
    }
    if (trap->kind >= TRAP_MBARRIER_NONE && trap->kind <= TRAP_MBARRIER_BYTES) {
        lilac_sim_report_mbarrier_trap(context, launch, trap, trap_id(trap->kind));
        return;
    }
    if (trap->kind >= TRAP_NAMED_COUNT && trap->kind <= TRAP_REGISTERS) {
        lilac_sim_report_program_trap(context, launch, trap, trap_id(trap->kind));
        return;
    }
    if (trap->kind == TRAP_GLOBAL_BOUNDS && is_null(memory, trap->address)) {
        report_null(context, launch, trap);
        return;
    }
    lilac_sim_put_place(&text, launch, trap->block, trap->thread);
    lilac_text_puts(&text, ": ");
    switch (trap->kind) {
    case TRAP_GLOBAL_BOUNDS:
        lilac_text_printf(&text, "%s of %u bytes at 0x%llx is outside every buffer", name,
                          trap->size, address);
        put_nearest(&text, memory, trap->address, trap->size);
        break;
    case TRAP_SHARED_BOUNDS:
        lilac_text_printf(&text, "%s of %u bytes at %lld", name, trap->size,
                          (long long)trap->address);
        lilac_sim_put_rank(&text, launch, trap->rank);
        lilac_text_printf(&text, " is outside the block's %u bytes", launch->kernel->shared_bytes);
        break;
    case TRAP_INTERVAL:
        lilac_text_printf(&text, "%s of %u bytes at %llu is outside the bytes %u to %u it promises",
                          name, trap->size, address, trap->at->shared_begin, trap->at->shared_end);
        break;
    case TRAP_RANK:
        lilac_text_printf(&text, "%s at 0x%llx: no address of a block of this cluster of %u", name,
                          address, launch->kernel->num_ctas);
        break;
    case TRAP_PREDICATE:
        lilac_text_printf(&text, "the predicate of '%s' differs within the warp", name);
        break;
    case TRAP_GROUP_NUMBER:
        lilac_text_printf(&text, "the number of '%s' is above 14 or differs among warps that meet",
                          name);
        break;
    case TRAP_GROUP_SIZE:
        lilac_text_printf(&text, "%u warps meet at group %llu of '%s', which says %lld threads",
                          trap->size, address, name, (long long)trap->at->immediate);
        break;
    case TRAP_COPY_BYTES:
        lilac_text_printf(&text, "%s of %u bytes is to read %llu", name, trap->size, address);
        break;
    case TRAP_WARPGROUP:
        lilac_text_printf(
            &text, "a descriptor or the predicate of '%s' differs within the warpgroup", name);
        break;
    case TRAP_BULK_SIZE:
    case TRAP_BULK_ALIGNMENT:
    case TRAP_MULTICAST_MASK:
        lilac_sim_put_bulk_trap(&text, memory, trap);
        break;
    case TRAP_MISALIGNED:
        lilac_text_printf(&text, "%s of %u bytes at ", name, trap->size);
        if (!trap->global)
            lilac_text_printf(&text, "%llu", address);
        else
            lilac_sim_put_address(&text, memory, trap->address);
        lilac_text_printf(&text, " is misaligned by %llu", address % trap->size);
        break;
    case TRAP_READ_ONLY:
        lilac_text_printf(&text, "%s of %u bytes at ", name, trap->size);
        lilac_sim_put_address(&text, memory, trap->address);
        lilac_text_puts(&text, ": the buffer is read-only");
        break;
    case TRAP_DIVERGENT:
        lilac_text_printf(&text, "the condition of '%s' differs from thread 0's", name);
        break;
    case TRAP_ASSERT:
        lilac_text_printf(&text, "assertion failed: %s",
                          trap->at->text ? trap->at->text : "(no message)");
        break;
    case TRAP_DIVISION:
        lilac_text_printf(&text, "%s by zero reaches the %s of %s in thread %u", name, trap->what,
                          name_of(trap->use), trap->use_thread);
        break;
    case TRAP_STEP:
        lilac_text_puts(&text, "the loop's step is not positive");
        break;
    default:
        break;
    }
    lilac_error(context, NOWHERE, trap->at->location, trap_id(trap->kind), "%s",
                lilac_text_get(&text));
    if (trap->use)
        lilac_note(context, NOWHERE, trap->use->location, "%s uses the result here, in thread %u",
                   name_of(trap->use), trap->use_thread);
    lilac_text_clear(&text);
}

/* The earlier access, in a note. */
static void note_other(lilac_context *context, const lilac_sim_launch *launch,
                       const lilac_sim_finding *finding, const char *did) {
    lilac_text text = {0};
    lilac_text_printf(&text, "%s by %s in ", did, name_of(finding->other));
    if (finding->other_warp != finding->warp)
        lilac_sim_put_warp(&text, launch, finding->other_warp);
    else
        lilac_text_puts(&text, "this warp and in others");
    lilac_note(context, NOWHERE, finding->other->location, "%s", lilac_text_get(&text));
    lilac_text_clear(&text);
}

static void report_uninitialised(lilac_context *context, const lilac_sim_launch *launch,
                                 const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                                 lilac_text *text) {
    lilac_text_printf(text, ": %s reads ", name_of(finding->at));
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
                  lilac_text_get(text), name_of(finding->at), (unsigned long long)finding->address,
                  finding->rank, ended ? "have ended" : "not have begun",
                  ended ? "comes after" : "came before");
}

static void report_race(lilac_context *context, const lilac_sim_launch *launch,
                        const lilac_sim_finding *finding, lilac_text *text) {
    bool read = finding->kind == FINDING_READ_AFTER_WRITE;
    bool after_read = finding->kind == FINDING_WRITE_AFTER_READ;
    lilac_text_puts(text, " (");
    lilac_sim_put_warp(text, launch, finding->warp);
    lilac_text_printf(text, "): %s %s shared byte %llu", name_of(finding->at),
                      read ? "reads" : "writes", (unsigned long long)finding->address);
    lilac_sim_put_rank(text, launch, finding->rank);
    lilac_warning(context, NOWHERE, finding->at->location, "shared-race",
                  "%s, which another warp %s with no barrier between", lilac_text_get(text),
                  after_read ? "read" : "wrote");
    note_other(context, launch, finding, after_read ? "read" : "written");
}

/* What an access to global memory does to it. */
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
    lilac_text_printf(text, ": %s %s ", name_of(finding->at), verb_of(finding->at));
    if (offset % finding->width == 0)
        lilac_text_printf(text, "element %llu of '%s'",
                          (unsigned long long)(offset / finding->width), name);
    else
        lilac_sim_put_address(text, memory, finding->address);
    lilac_text_printf(text, ", which %s in ", name_of(finding->other));
    lilac_sim_put_place(text, launch, finding->other_block, finding->other_thread);
    lilac_warning(context, NOWHERE, finding->at->location, "global-race",
                  "%s %s; nothing orders the two", lilac_text_get(text), verb_of(finding->other));
    lilac_note(context, NOWHERE, finding->other->location, "%s %s it here", name_of(finding->other),
               verb_of(finding->other));
}

/* An access to a shared byte of an incomplete copy, with the copy in a note. */
static void report_in_flight(lilac_context *context, const lilac_sim_launch *launch,
                             const lilac_sim_finding *finding, lilac_text *text) {
    lilac_text_puts(text, " (");
    lilac_sim_put_warp(text, launch, finding->warp);
    lilac_text_printf(text, "): %s %s shared byte %llu", name_of(finding->at),
                      finding->kind == FINDING_READ_IN_FLIGHT ? "reads" : "writes",
                      (unsigned long long)finding->address);
    lilac_sim_put_rank(text, launch, finding->rank);
    lilac_warning(context, NOWHERE, finding->at->location, "copy-in-flight",
                  "%s while a copy into it is in flight", lilac_text_get(text));
    lilac_text_reset(text);
    lilac_sim_put_warp(text, launch, finding->other_warp);
    lilac_note(context, NOWHERE, finding->other->location,
               "%s in %s starts the copy, and no wait has completed it", name_of(finding->other),
               lilac_text_get(text));
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
                      name_of(finding->at));
        return;
    }
    lilac_text_printf(text, ": %s reads ", name_of(finding->at));
    lilac_sim_put_address(text, memory, finding->address);
    lilac_warning(context, NOWHERE, finding->at->location, "copy-source-changed",
                  "%s, which changes while the copy is in flight", lilac_text_get(text));
    lilac_note(context, NOWHERE, finding->other->location,
               finding->other->code == LILAC_SIMT_OP_MBARRIER_INIT
                   ? "%s: the copy completes at this mbarrier"
                   : "%s completes the copy",
               name_of(finding->other));
}

static void report_wgmma(lilac_context *context, const lilac_sim_finding *f, lilac_text *text) {
    const char *id = "", *note = "%s is in flight";
    lilac_text_printf(text, ": %s ", name_of(f->at));
    switch (f->kind) {
    case FINDING_WGMMA_REGISTER:
        id = "wgmma-register";
        lilac_text_puts(text, f->other ? "uses a result of a wgmma that no wait has completed"
                                       : "uses an accumulator whose register a wgmma has taken");
        break;
    case FINDING_WGMMA_SERIALISED:
        id = "wgmma-serialised";
        lilac_text_puts(text,
                        "copies a result of a wgmma in flight to another register: the wgmmas "
                        "would be serialised");
        break;
    case FINDING_WGMMA_OPERAND:
        id = "wgmma-operand-changed";
        lilac_text_printf(text, "reads byte %llu of row %llu of %s, which changes before the wait",
                          (unsigned long long)(f->address % 32),
                          (unsigned long long)(f->address / 32), f->width ? "B" : "A");
        note = "%s completes it";
        break;
    case FINDING_WGMMA_FENCE:
        id = "missing-wgmma-fence";
        lilac_text_puts(text, "follows accesses to its registers with no wgmma.fence between");
        break;
    case FINDING_WGMMA_UNCOMMITTED:
        id = "wgmma-not-committed";
        lilac_text_puts(text, "belongs to no group when a wait is executed");
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
            "has an operand whose groups of 8 rows are %llu bytes apart; a group has %u "
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
    if (f->other)
        lilac_note(context, NOWHERE, f->other->location, note, name_of(f->other));
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
