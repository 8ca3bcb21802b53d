/* A kernel becomes a program: the walk over its regions, and the function that decodes each
 * operation (decode/decoder.h).
 */
#include "decode/decoder.h"
#include "memory/shared.h"

#include <string.h>

/* ---- presets ---------------------------------------------------------------------------- */

static void decode_preset(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_add_preset(d, i, kind, 0);
}

static void decode_const(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_add_preset(d, i, kind, (uint64_t)i->immediate);
}

static void decode_parameter(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    if (i->immediate < 0 || i->immediate >= (int64_t)d->launch->argument_count) {
        lilac_sim_refuse(d, i, "there is no such parameter");
        return;
    }
    lilac_sim_add_preset(d, i, kind, d->launch->arguments[i->immediate]);
}

static void decode_grid(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    const uint32_t axis = i->detail % 3, parts = d->launch->parts;
    lilac_sim_add_preset(d, i, kind, axis == 2 && parts > 1 ? parts : d->launch->grid[axis]);
}

/* Scratch memory holds tensor maps only, which are not in any buffer, and each block has its own: one
 * address serves all (made_maps.c). */
static void decode_scratch(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_add_preset(d, i, kind, UINT64_C(1) << 62);
}

static void decode_block(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    const uint32_t axis = i->detail % 3;
    const bool rank = axis == 2 && d->launch->parts > 1; /* the cluster is along z */
    lilac_sim_add_preset(d, i, rank ? PRESET_CTA : kind, axis);
}

/* ---- single steps ----------------------------------------------------------------------- */

/* A terminator is decoded by the operation with the region. The other operations have no effect in
 * the simulator: prefetches, scheduling barriers, and fences of mbarrier.init, whose write is
 * visible at once. */
static void decode_nothing(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    (void)d, (void)i, (void)kind;
}

static void decode_step(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_add_issued_step(d, kind, i);
}

static void decode_immediate_step(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                                  uint8_t kind) {
    lilac_sim_add_issued_step(d, kind, i)->immediate = (uint64_t)i->immediate;
}

static void decode_detail_step(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                               uint8_t kind) {
    lilac_sim_add_issued_step(d, kind, i)->immediate = i->detail;
}

static void decode_wait_all(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_add_issued_step(d, kind, i)->immediate = UINT64_MAX;
}

static void decode_timer(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_add_issued_step(d, kind, i)->out = d->values[i->result].offset;
}

/* A step at which one of several warp programs may wait for the others. */
static void decode_program_step(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                                uint8_t kind) {
    decode_immediate_step(d, i, kind);
    d->program->partial = d->program->parts_wait = true;
}

static void decode_group_barrier(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                                 uint8_t kind) {
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    step->a = lilac_sim_offset_of(d, i, i->operands[0]);
    step->immediate = (uint64_t)i->immediate;
    d->program->partial = true;
}

static void decode_assert(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    step->a = lilac_sim_offset_of(d, i, i->operands[0]);
    step->n = value_varies(d, i->operands[0]) ? d->threads : 1;
}

/* The diagnostic shows the first line of the assembly that is not empty. */
static void refuse_assembly(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    (void)kind;
    const char *text = i->text + strspn(i->text, " \t\r\n{");
    lilac_error(d->context, (lilac_position){0}, i->location, "unsupported-instruction",
                "the simulator cannot run assembly: '%.*s'", (int)strcspn(text, "\r\n"), text);
    d->failed = true;
}

/* ---- operations ------------------------------------------------------------------------- */

enum { SET, OWN };

typedef struct operation {
    lilac_sim_decode *decode;
    uint8_t kind;    /* of the step or of the preset */
    uint8_t results; /* SET: have arrays before the function is called; OWN: it reserves them */
} operation;

/* clang-format off */
static const operation operations[LILAC_SIMT_OP_COUNT] = {
    [LILAC_SIMT_OP_CONST]                  = {decode_const,              PRESET_BITS,          OWN},
    [LILAC_SIMT_OP_PARAM]                  = {decode_parameter,          PRESET_BITS,          OWN},
    [LILAC_SIMT_OP_GRID]                   = {decode_grid,               PRESET_BITS,          OWN},
    [LILAC_SIMT_OP_GLOBAL_SCRATCH]         = {decode_scratch,            PRESET_BITS,          OWN},
    [LILAC_SIMT_OP_SHARED_BASE]            = {decode_preset,             PRESET_BITS,          OWN},
    [LILAC_SIMT_OP_THREAD]                 = {decode_preset,             PRESET_THREAD,        OWN},
    [LILAC_SIMT_OP_LANE]                   = {decode_preset,             PRESET_LANE,          OWN},
    [LILAC_SIMT_OP_WARP]                   = {decode_preset,             PRESET_WARP,          OWN},
    [LILAC_SIMT_OP_ELECT]                  = {decode_preset,             PRESET_ELECTED,       OWN},
    [LILAC_SIMT_OP_BLOCK]                  = {decode_block,              PRESET_BLOCK,         OWN},
    [LILAC_SIMT_OP_CTA]                    = {decode_preset,             PRESET_CTA,           OWN},
    [LILAC_SIMT_OP_LOOP]                   = {lilac_sim_decode_loop,     STEP_LOOP_BEGIN,      OWN},
    [LILAC_SIMT_OP_IF]                     = {lilac_sim_decode_if,       STEP_BRANCH,          OWN},
    [LILAC_SIMT_OP_WHILE]                  = {lilac_sim_decode_while,    STEP_BRANCH,          OWN},
    [LILAC_SIMT_OP_PROGRAMS]               = {lilac_sim_decode_programs, STEP_FORK,            OWN},
    [LILAC_SIMT_OP_YIELD]                  = {decode_nothing,            0,                    SET},
    [LILAC_SIMT_OP_CONDITION]              = {decode_nothing,            0,                    SET},
    [LILAC_SIMT_OP_RETURN]                 = {decode_nothing,            0,                    SET},
    [LILAC_SIMT_OP_SCHEDULE_ACCESSES]      = {decode_nothing,            0,                    SET},
    [LILAC_SIMT_OP_SCHEDULE_BARRIER]       = {decode_nothing,            0,                    SET},
    [LILAC_SIMT_OP_PREFETCH_TENSOR_MAP]    = {decode_nothing,            0,                    SET},
    [LILAC_SIMT_OP_FENCE_MBARRIER_INIT]    = {decode_nothing,            0,                    SET},
    [LILAC_SIMT_OP_LD_GLOBAL]              = {lilac_sim_decode_access,   STEP_LOAD_GLOBAL,     SET},
    [LILAC_SIMT_OP_ST_GLOBAL]              = {lilac_sim_decode_access,   STEP_STORE_GLOBAL,    SET},
    [LILAC_SIMT_OP_LD_SHARED]              = {lilac_sim_decode_access,   STEP_LOAD_SHARED,     SET},
    [LILAC_SIMT_OP_ST_SHARED]              = {lilac_sim_decode_access,   STEP_STORE_SHARED,    SET},
    [LILAC_SIMT_OP_LD_CLUSTER]             = {lilac_sim_decode_access,   STEP_LOAD_CLUSTER,    SET},
    [LILAC_SIMT_OP_ST_CLUSTER]             = {lilac_sim_decode_access,   STEP_STORE_CLUSTER,   SET},
    [LILAC_SIMT_OP_LD_MATRIX]              = {lilac_sim_decode_access,   STEP_LOAD_MATRIX,     SET},
    [LILAC_SIMT_OP_ST_MATRIX]              = {lilac_sim_decode_access,   STEP_STORE_MATRIX,    SET},
    [LILAC_SIMT_OP_ATOMIC_GLOBAL]          = {lilac_sim_decode_atomic,   STEP_ATOMIC_GLOBAL,   SET},
    [LILAC_SIMT_OP_CAS_GLOBAL]             = {lilac_sim_decode_atomic,   STEP_ATOMIC_GLOBAL,   SET},
    [LILAC_SIMT_OP_ATOMIC_SHARED]          = {lilac_sim_decode_atomic,   STEP_ATOMIC_SHARED,   SET},
    [LILAC_SIMT_OP_CP_ASYNC]               = {lilac_sim_decode_copy,     STEP_COPY,            SET},
    [LILAC_SIMT_OP_CP_ASYNC_COMMIT]        = {decode_step,               STEP_COPY_COMMIT,     SET},
    [LILAC_SIMT_OP_CP_ASYNC_WAIT]          = {decode_immediate_step,     STEP_COPY_WAIT,       SET},
    [LILAC_SIMT_OP_CP_ASYNC_WAIT_ALL]      = {decode_wait_all,           STEP_COPY_WAIT,       SET},
    [LILAC_SIMT_OP_CP_BULK_LOAD]           = {lilac_sim_decode_bulk,     STEP_BULK_START,      SET},
    [LILAC_SIMT_OP_CP_BULK_STORE]          = {lilac_sim_decode_bulk,     STEP_BULK_START,      SET},
    [LILAC_SIMT_OP_CP_BULK_REDUCE]         = {lilac_sim_decode_bulk,     STEP_BULK_START,      SET},
    [LILAC_SIMT_OP_CP_TENSOR_LOAD]         = {lilac_sim_decode_bulk,     STEP_BULK_START,      SET},
    [LILAC_SIMT_OP_CP_TENSOR_STORE]        = {lilac_sim_decode_bulk,     STEP_BULK_START,      SET},
    [LILAC_SIMT_OP_CP_TENSOR_REDUCE]       = {lilac_sim_decode_bulk,     STEP_BULK_START,      SET},
    [LILAC_SIMT_OP_BULK_COMMIT]            = {decode_step,               STEP_BULK_COMMIT,     SET},
    [LILAC_SIMT_OP_BULK_WAIT]              = {decode_immediate_step,     STEP_BULK_WAIT,       SET},
    [LILAC_SIMT_OP_BULK_WAIT_READ]         = {decode_immediate_step,     STEP_BULK_WAIT,       SET},
    [LILAC_SIMT_OP_TENSOR_MAP_SET]         = {lilac_sim_decode_made_map, STEP_MADE_MAP,        SET},
    [LILAC_SIMT_OP_TENSOR_MAP_PUBLISH]     = {lilac_sim_decode_made_map, STEP_MADE_MAP,        SET},
    [LILAC_SIMT_OP_TENSOR_MAP_ACQUIRE]     = {lilac_sim_decode_made_map, STEP_MADE_MAP,        SET},
    [LILAC_SIMT_OP_FENCE_PROXY_ASYNC]      = {decode_detail_step,        STEP_FENCE_PROXY,     SET},
    [LILAC_SIMT_OP_MBARRIER_INIT]          = {lilac_sim_decode_mbarrier, STEP_MBARRIER,        SET},
    [LILAC_SIMT_OP_MBARRIER_INVALIDATE]    = {lilac_sim_decode_mbarrier, STEP_MBARRIER,        SET},
    [LILAC_SIMT_OP_MBARRIER_ARRIVE]        = {lilac_sim_decode_mbarrier, STEP_MBARRIER,        SET},
    [LILAC_SIMT_OP_MBARRIER_ARRIVE_CLUSTER]= {lilac_sim_decode_mbarrier, STEP_MBARRIER,        SET},
    [LILAC_SIMT_OP_MBARRIER_EXPECT]        = {lilac_sim_decode_mbarrier, STEP_MBARRIER,        SET},
    [LILAC_SIMT_OP_MBARRIER_TRY_WAIT]      = {lilac_sim_decode_mbarrier, STEP_MBARRIER,        SET},
    [LILAC_SIMT_OP_MBARRIER_TEST]          = {lilac_sim_decode_mbarrier, STEP_MBARRIER,        SET},
    [LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE]= {lilac_sim_decode_mbarrier, STEP_MBARRIER,        SET},
    [LILAC_SIMT_OP_MBARRIER_WAIT]          = {lilac_sim_decode_mbarrier, STEP_MBARRIER_WAIT,   SET},
    [LILAC_SIMT_OP_MMA]                    = {lilac_sim_decode_matrix,   STEP_MMA,             SET},
    [LILAC_SIMT_OP_WGMMA]                  = {lilac_sim_decode_matrix,   STEP_WGMMA,           SET},
    [LILAC_SIMT_OP_WGMMA_FENCE]            = {lilac_sim_decode_wgmma,    STEP_WGMMA_FENCE,     SET},
    [LILAC_SIMT_OP_WGMMA_COMMIT]           = {lilac_sim_decode_wgmma,    STEP_WGMMA_COMMIT,    SET},
    [LILAC_SIMT_OP_WGMMA_WAIT]             = {lilac_sim_decode_wgmma,    STEP_WGMMA_WAIT,      SET},
    [LILAC_SIMT_OP_SHUFFLE]                = {lilac_sim_decode_exchange, STEP_SHUFFLE,         SET},
    [LILAC_SIMT_OP_BALLOT]                 = {lilac_sim_decode_exchange, STEP_BALLOT,          SET},
    [LILAC_SIMT_OP_VOTE]                   = {lilac_sim_decode_exchange, STEP_VOTE,            SET},
    [LILAC_SIMT_OP_MATCH]                  = {lilac_sim_decode_exchange, STEP_MATCH,           SET},
    [LILAC_SIMT_OP_REDUX]                  = {lilac_sim_decode_exchange, STEP_REDUX,           SET},
    [LILAC_SIMT_OP_PACK]                   = {lilac_sim_decode_pack,     STEP_LANES,           SET},
    [LILAC_SIMT_OP_UNPACK]                 = {lilac_sim_decode_pack,     STEP_LANES,           SET},
    [LILAC_SIMT_OP_BARRIER]                = {decode_step,               STEP_BARRIER,         SET},
    [LILAC_SIMT_OP_WARP_BARRIER]           = {decode_step,               STEP_WARP_BARRIER,    SET},
    [LILAC_SIMT_OP_CLUSTER_BARRIER]        = {decode_step,               STEP_CLUSTER_BARRIER, SET},
    [LILAC_SIMT_OP_GROUP_BARRIER]          = {decode_group_barrier,      STEP_GROUP_BARRIER,   SET},
    [LILAC_SIMT_OP_NAMED_BARRIER_SYNC]     = {decode_program_step,       STEP_NAMED_BARRIER,   SET},
    [LILAC_SIMT_OP_NAMED_BARRIER_ARRIVE]   = {decode_program_step,       STEP_NAMED_BARRIER,   SET},
    [LILAC_SIMT_OP_SET_MAX_REGISTERS]      = {decode_program_step,       STEP_SET_REGISTERS,   SET},
    [LILAC_SIMT_OP_ASSERT]                 = {decode_assert,             STEP_ASSERT,          SET},
    [LILAC_SIMT_OP_PRINT]                  = {lilac_sim_decode_print,    STEP_PRINT,           SET},
    [LILAC_SIMT_OP_TIMER]                  = {decode_timer,              STEP_TIMER,           SET},
    [LILAC_SIMT_OP_ASM]                    = {refuse_assembly,           0,                    SET},
    [LILAC_SIMT_OP_ASM_VOLATILE]           = {refuse_assembly,           0,                    SET},
};
/* clang-format on */

/* An operation without a row is pure; decode_lanes refuses those without a lane loop. */
static void decode_instruction(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    const operation *row = &operations[i->code];
    if (row->results == SET) {
        lilac_sim_place_values(d, i->result, i->result_count);
    }
    if (row->decode != NULL) {
        row->decode(d, i, row->kind);
    } else if (lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits & LILAC_SIMT_PURE) {
        lilac_sim_decode_lanes(d, i, STEP_LANES);
    } else {
        lilac_sim_refuse(d, i, "it is not simulated");
    }
}

/* Values that a terminator reads last are released by the operation with the region, after the
 * copies. Values whose last use is the first number of such an operation (initial values) are
 * released after the whole operation. */
void lilac_sim_decode_body(lilac_sim_decoder *d, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i && !d->failed; i = i->next) {
        uint32_t number = d->number++;
        if (i->next) {
            decode_instruction(d, i);
            lilac_sim_release_dead(d, number);
        }
    }
}

bool lilac_sim_program_init(lilac_sim_program *program, lilac_context *context,
                            const lilac_sim_launch *launch) {
    const lilac_simt_kernel *kernel = launch->kernel;
    lilac_sim_decoder d = {
        .context = context, .launch = launch, .kernel = kernel, .program = program};
    *program = (lilac_sim_program){
        .kernel = kernel, .arch = kernel->module->arch, .partial = kernel->num_ctas > 1};
    program->warps = kernel->num_warps;
    program->threads = d.threads = kernel->num_warps * program->arch->warp_size;
    d.values = lilac_heap_grow(NULL, sizeof *d.values * (kernel->value_count + 1));
    memset(d.values, 0, sizeof *d.values * (kernel->value_count + 1));
    lilac_sim_survey(&d);
    for (uint32_t k = 0; k < 4; k++) {
        program->scratch[k] = lilac_sim_reserve_array(&d, 8);
    }
    d.number = 0;
    lilac_sim_decode_body(&d, kernel->body);
    lilac_sim_add_step(&d, STEP_END, NULL);
    if (!d.failed && program->register_bytes > UINT64_C(1) << 31) {
        lilac_error(context, (lilac_position){0}, kernel->location, "too-many-values",
                    "the registers of a block need more than 2 GiB in the simulator");
        d.failed = true;
    }
    if (!d.failed && program->step_count > LILAC_SIM_MOST_STEPS) {
        lilac_error(context, (lilac_position){0}, kernel->location, "too-many-values",
                    "the kernel has more than %u instructions", LILAC_SIM_MOST_STEPS);
        d.failed = true;
    }
    lilac_heap_free(d.values);
    lilac_heap_free(d.ends);
    lilac_heap_free(d.dying);
    lilac_heap_free(d.loops);
    for (uint32_t k = 0; k < 4; k++) {
        lilac_heap_free(d.free_arrays[k]);
    }
    return !d.failed;
}

void lilac_sim_program_clear(lilac_sim_program *program) {
    lilac_heap_free(program->steps);
    lilac_heap_free(program->accesses);
    lilac_heap_free(program->presets);
    lilac_heap_free(program->matrices);
    lilac_heap_free(program->parts);
    *program = (lilac_sim_program){0};
}
