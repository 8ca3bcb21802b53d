/* SIMT IR → PTX text: the module, its entries, and the walk over instructions.
 *
 *   .version .target .address_size
 *   what the entry refers to: shared memory, the strings of assertions
 *   .visible .entry name(parameters)  .reqntid
 *   {
 *       registers            written last, when it is known which there are
 *       constants that need one
 *       code                 one walk in order, bodies nested
 *       failed assertions
 *   }
 *   .file …
 */
#include "emit.h"

#include <lilac/simt_matrix.h>
#include <lilac/tensor_map.h>

/* ---- source lines ----------------------------------------------------------------------- */

static uint32_t file_number(lilac_ptx_emitter *e, lilac_name file) {
    for (uint32_t k = e->file_count; k > 0; k--) {
        if (e->files[k - 1] == file) {
            return k;
        }
    }
    if (e->file_count == e->file_capacity) {
        e->file_capacity = e->file_capacity ? e->file_capacity * 2 : 8;
        e->files = lilac_heap_grow(e->files, e->file_capacity * sizeof *e->files);
    }
    e->files[e->file_count++] = file;
    return e->file_count;
}

/* Says where the next instructions come from, when that is new. */
static void source_line(lilac_ptx_emitter *e, lilac_location location) {
    e->location = location;
    lilac_name file = NULL;
    uint32_t line = 0, column = 0;
    if (!lilac_location_file(e->module->context, location, &file, &line, &column) || !file) {
        return;
    }
    if (file == e->file && line == e->line && column == e->column) {
        return;
    }
    e->file = file;
    e->line = line;
    e->column = column;
    lilac_ptx_reserve(&e->code, LILAC_PTX_LINE + strlen(file));
    if (e->options->comments) {
        put_string(&e->code, "\t// ");
        const char *slash = strrchr(file, '/');
        for (const char *c = slash ? slash + 1 : file; *c; c++) { /* the user's text: one line */
            put_char(&e->code, (unsigned char)*c < ' ' ? '?' : *c);
        }
        put_char(&e->code, ':');
        lilac_ptx_put_unsigned(&e->code, line);
        put_char(&e->code, ':');
        lilac_ptx_put_unsigned(&e->code, column);
        put_char(&e->code, '\n');
    }
    if (e->options->line_info) {
        put_string(&e->code, "\t.loc ");
        lilac_ptx_put_unsigned(&e->code, file_number(e, file));
        put_char(&e->code, ' ');
        lilac_ptx_put_unsigned(&e->code, line);
        put_char(&e->code, ' ');
        lilac_ptx_put_unsigned(&e->code, column);
        put_char(&e->code, '\n');
    }
}

static void put_files(lilac_ptx_emitter *e) {
    for (uint32_t k = 0; k < e->file_count; k++) {
        lilac_text_puts(e->out, "\t.file ");
        lilac_text_unsigned(e->out, k + 1);
        lilac_text_puts(e->out, " \"");
        for (const char *c = e->files[k]; *c; c++) { /* PTX's strings have no escapes */
            lilac_text_char(e->out, *c == '"' ? '\'' : (unsigned char)*c < ' ' ? '?' : *c);
        }
        lilac_text_puts(e->out, "\"\n");
    }
}

/* ---- what the launch gives a thread ----------------------------------------------------- */

/* Parameters of an entry have a scope of their own, so their place names them. */
static void parameter(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type type = type_of(e, i->result);
    if (lilac_ptx_tensor_map(e, i)) {
        return;
    }
    lilac_ptx_piece place = lilac_ptx_concatenate(
        e, 3,
        (lilac_ptx_piece[]){PIECE("[parameter_"), lilac_ptx_decimal(e, i->immediate), PIECE("]")});
    if (type == LILAC_SIMT_I1) {
        lilac_ptx_piece byte = lilac_ptx_temporary(e, LILAC_PTX_BITS16);
        lilac_ptx_piece bit = lilac_ptx_temporary(e, LILAC_PTX_BITS16);
        lilac_ptx_line2(e, "ld.param.b8", byte, place);
        lilac_ptx_line3(e, "and.b16", bit, byte, PIECE("1"));
        lilac_ptx_line3(e, "setp.ne.b16", lilac_ptx_define(e, i->result), bit, PIECE("0"));
        return;
    }
    uint32_t bits = lilac_simt_type_bits(type);
    lilac_ptx_line2(e,
                    bits == 8    ? "ld.param.b8"
                    : bits == 16 ? "ld.param.b16"
                    : bits == 32 ? "ld.param.b32"
                                 : "ld.param.b64",
                    lilac_ptx_define(e, i->result), place);
}

static void special(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const char *const blocks[2][3] = {{"%ctaid.x", "%ctaid.y", "%ctaid.z"},
                                             {"%clusterid.x", "%clusterid.y", "%clusterid.z"}};
    static const char *const grids[2][3] = {{"%nctaid.x", "%nctaid.y", "%nctaid.z"},
                                            {"%nclusterid.x", "%nclusterid.y", "%nclusterid.z"}};
    bool cluster = e->kernel->num_ctas > 1;
    lilac_ptx_piece d = lilac_ptx_define(e, i->result);
    const char *source = NULL;
    switch (i->code) {
    case LILAC_SIMT_OP_THREAD:
        source = "%tid.x";
        break;
    case LILAC_SIMT_OP_LANE:
    case LILAC_SIMT_OP_WARP: {
        bool lane = i->code == LILAC_SIMT_OP_LANE;
        lilac_ptx_piece thread = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_line2(e, "mov.u32", thread, PIECE("%tid.x"));
        lilac_ptx_line3(e, lane ? "and.b32" : "shr.u32", d, thread,
                        lane ? PIECE("31") : PIECE("5"));
        return;
    }
    case LILAC_SIMT_OP_SHARED_BASE:
        source = "global_smem";
        e->shared = true;
        break;
    case LILAC_SIMT_OP_CTA:
        source = cluster ? "%cluster_ctarank" : "0";
        break;
    default:
        if (i->detail > 2) {
            lilac_ptx_refuse(e, i, "a grid has axes 0, 1 and 2, not %u", i->detail);
            return;
        }
        source =
            i->code == LILAC_SIMT_OP_BLOCK ? blocks[cluster][i->detail] : grids[cluster][i->detail];
        break;
    }
    lilac_ptx_line2(e, "mov.u32", d, (lilac_ptx_piece){source, (uint32_t)strlen(source)});
}

/* ---- instructions ----------------------------------------------------------------------- */

typedef void writer(lilac_ptx_emitter *e, const lilac_simt_instruction *i);

static void constant(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_constant(e, i->result, (uint64_t)i->immediate);
}

static void timer(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_line2(e, "mov.u64", lilac_ptx_define(e, i->result),
                    i->detail ? PIECE("%clock64") : PIECE("%globaltimer"));
}

/* The function that writes an operation. lilac_ptx_arithmetic writes the pure operations that have
 * no row, and refuses those that its own table lacks. */
static writer *const writers[LILAC_SIMT_OP_COUNT] = {
    /* clang-format off */
    [LILAC_SIMT_OP_CONST] =                    constant,
    [LILAC_SIMT_OP_PARAM] =                    parameter,
    [LILAC_SIMT_OP_THREAD] =                   special,
    [LILAC_SIMT_OP_LANE] =                     special,
    [LILAC_SIMT_OP_WARP] =                     special,
    [LILAC_SIMT_OP_BLOCK] =                    special,
    [LILAC_SIMT_OP_GRID] =                     special,
    [LILAC_SIMT_OP_CTA] =                      special,
    [LILAC_SIMT_OP_SHARED_BASE] =              special,
    [LILAC_SIMT_OP_GLOBAL_SCRATCH] =           lilac_ptx_global_scratch,
    [LILAC_SIMT_OP_FFLOOR] =                   lilac_ptx_round,
    [LILAC_SIMT_OP_FCEIL] =                    lilac_ptx_round,
    [LILAC_SIMT_OP_FTRUNC] =                   lilac_ptx_round,
    [LILAC_SIMT_OP_FRINT] =                    lilac_ptx_round,
    [LILAC_SIMT_OP_CMP] =                      lilac_ptx_compare,
    [LILAC_SIMT_OP_SELECT] =                   lilac_ptx_select,
    [LILAC_SIMT_OP_SEXT] =                     lilac_ptx_convert,
    [LILAC_SIMT_OP_ZEXT] =                     lilac_ptx_convert,
    [LILAC_SIMT_OP_TRUNC] =                    lilac_ptx_convert,
    [LILAC_SIMT_OP_BITCAST] =                  lilac_ptx_convert,
    [LILAC_SIMT_OP_S2F] =                      lilac_ptx_convert,
    [LILAC_SIMT_OP_U2F] =                      lilac_ptx_convert,
    [LILAC_SIMT_OP_F2S] =                      lilac_ptx_convert,
    [LILAC_SIMT_OP_F2U] =                      lilac_ptx_convert,
    [LILAC_SIMT_OP_FCVT] =                     lilac_ptx_float_convert,
    [LILAC_SIMT_OP_F8_UNPACK] =                lilac_ptx_f8,
    [LILAC_SIMT_OP_F8_PACK] =                  lilac_ptx_f8,
    [LILAC_SIMT_OP_PACK] =                     lilac_ptx_pack,
    [LILAC_SIMT_OP_UNPACK] =                   lilac_ptx_unpack,
    [LILAC_SIMT_OP_LD_GLOBAL] =                lilac_ptx_memory,
    [LILAC_SIMT_OP_ST_GLOBAL] =                lilac_ptx_memory,
    [LILAC_SIMT_OP_LD_SHARED] =                lilac_ptx_memory,
    [LILAC_SIMT_OP_ST_SHARED] =                lilac_ptx_memory,
    [LILAC_SIMT_OP_LD_CLUSTER] =               lilac_ptx_memory,
    [LILAC_SIMT_OP_ST_CLUSTER] =               lilac_ptx_memory,
    [LILAC_SIMT_OP_LD_MATRIX] =                lilac_ptx_matrix,
    [LILAC_SIMT_OP_ST_MATRIX] =                lilac_ptx_matrix,
    [LILAC_SIMT_OP_MMA] =                      lilac_ptx_multiply,
    [LILAC_SIMT_OP_WGMMA] =                    lilac_ptx_multiply,
    [LILAC_SIMT_OP_WGMMA_FENCE] =              lilac_ptx_multiply,
    [LILAC_SIMT_OP_WGMMA_COMMIT] =             lilac_ptx_multiply,
    [LILAC_SIMT_OP_WGMMA_WAIT] =               lilac_ptx_multiply,
    [LILAC_SIMT_OP_CP_ASYNC] =                 lilac_ptx_copy,
    [LILAC_SIMT_OP_CP_ASYNC_COMMIT] =          lilac_ptx_copy,
    [LILAC_SIMT_OP_CP_ASYNC_WAIT] =            lilac_ptx_copy,
    [LILAC_SIMT_OP_CP_ASYNC_WAIT_ALL] =        lilac_ptx_copy,
    [LILAC_SIMT_OP_CP_BULK_STORE] =            lilac_ptx_bulk,
    [LILAC_SIMT_OP_CP_BULK_REDUCE] =           lilac_ptx_bulk,
    [LILAC_SIMT_OP_CP_BULK_LOAD] =             lilac_ptx_bulk,
    [LILAC_SIMT_OP_CP_TENSOR_LOAD] =           lilac_ptx_bulk,
    [LILAC_SIMT_OP_CP_TENSOR_STORE] =          lilac_ptx_bulk,
    [LILAC_SIMT_OP_CP_TENSOR_REDUCE] =         lilac_ptx_bulk,
    [LILAC_SIMT_OP_BULK_COMMIT] =              lilac_ptx_bulk,
    [LILAC_SIMT_OP_BULK_WAIT] =                lilac_ptx_bulk,
    [LILAC_SIMT_OP_BULK_WAIT_READ] =           lilac_ptx_bulk,
    [LILAC_SIMT_OP_PREFETCH_TENSOR_MAP] =      lilac_ptx_bulk,
    [LILAC_SIMT_OP_TENSOR_MAP_SET] =           lilac_ptx_made_map,
    [LILAC_SIMT_OP_TENSOR_MAP_PUBLISH] =       lilac_ptx_made_map,
    [LILAC_SIMT_OP_TENSOR_MAP_ACQUIRE] =       lilac_ptx_made_map,
    [LILAC_SIMT_OP_FENCE_PROXY_ASYNC] =        lilac_ptx_bulk,
    [LILAC_SIMT_OP_ATOMIC_GLOBAL] =            lilac_ptx_atomic,
    [LILAC_SIMT_OP_CAS_GLOBAL] =               lilac_ptx_atomic,
    [LILAC_SIMT_OP_ATOMIC_SHARED] =            lilac_ptx_atomic,
    [LILAC_SIMT_OP_VOTE] =                     lilac_ptx_vote,
    [LILAC_SIMT_OP_MATCH] =                    lilac_ptx_vote,
    [LILAC_SIMT_OP_REDUX] =                    lilac_ptx_vote,
    [LILAC_SIMT_OP_PRINT] =                    lilac_ptx_print,
    [LILAC_SIMT_OP_ASM] =                      lilac_ptx_assembly,
    [LILAC_SIMT_OP_ASM_VOLATILE] =             lilac_ptx_assembly,
    [LILAC_SIMT_OP_TIMER] =                    timer,
    [LILAC_SIMT_OP_MAP_SHARED] =               lilac_ptx_map_shared,
    [LILAC_SIMT_OP_SHUFFLE] =                  lilac_ptx_exchange,
    [LILAC_SIMT_OP_BALLOT] =                   lilac_ptx_exchange,
    [LILAC_SIMT_OP_BARRIER] =                  lilac_ptx_exchange,
    [LILAC_SIMT_OP_WARP_BARRIER] =             lilac_ptx_exchange,
    [LILAC_SIMT_OP_GROUP_BARRIER] =            lilac_ptx_exchange,
    [LILAC_SIMT_OP_CLUSTER_BARRIER] =          lilac_ptx_exchange,
    [LILAC_SIMT_OP_MBARRIER_INIT] =            lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_MBARRIER_INVALIDATE] =      lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_MBARRIER_ARRIVE] =          lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_MBARRIER_ARRIVE_CLUSTER] =  lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_MBARRIER_EXPECT] =          lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_MBARRIER_WAIT] =            lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_MBARRIER_TRY_WAIT] =        lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_MBARRIER_TEST] =            lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE] = lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_FENCE_MBARRIER_INIT] =      lilac_ptx_mbarrier,
    [LILAC_SIMT_OP_NAMED_BARRIER_SYNC] =       lilac_ptx_named_barrier,
    [LILAC_SIMT_OP_NAMED_BARRIER_ARRIVE] =     lilac_ptx_named_barrier,
    [LILAC_SIMT_OP_SET_MAX_REGISTERS] =        lilac_ptx_set_max_registers,
    [LILAC_SIMT_OP_ELECT] =                    lilac_ptx_elect,
    [LILAC_SIMT_OP_PROGRAMS] =                 lilac_ptx_programs,
    [LILAC_SIMT_OP_SCHEDULE_ACCESSES] =        lilac_ptx_exchange,
    [LILAC_SIMT_OP_SCHEDULE_BARRIER] =         lilac_ptx_schedule_barrier,
    [LILAC_SIMT_OP_OPAQUE] =                   lilac_ptx_opaque,
    [LILAC_SIMT_OP_ASSERT] =                   lilac_ptx_assert,
    [LILAC_SIMT_OP_LOOP] =                     lilac_ptx_control,
    [LILAC_SIMT_OP_IF] =                       lilac_ptx_control,
    [LILAC_SIMT_OP_WHILE] =                    lilac_ptx_control,
    /* clang-format on */
};

static void instruction(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_op_info *info = lilac_simt_op_info_get((lilac_simt_opcode)i->code);
    writer *write = i->code < LILAC_SIMT_OP_COUNT ? writers[i->code] : NULL;
    if (write != NULL) {
        write(e, i);
    } else if (info->traits & LILAC_SIMT_PURE) {
        lilac_ptx_arithmetic(e, i);
    } else {
        lilac_ptx_refuse(e, i, "there is no PTX for %s", info->name);
    }
}

/* The code that follows has this location. */
static void put_origin(const lilac_ptx_emitter *e, lilac_location location) {
    lilac_ptx_origins *origins = e->options->origins;
    if (origins == NULL || (origins->count > e->first_origin &&
                            origins->list[origins->count - 1].location == location)) {
        return;
    }
    if (origins->count == origins->capacity) {
        origins->capacity = origins->capacity > 0 ? 2 * origins->capacity : 256;
        origins->list = lilac_heap_grow(origins->list, origins->capacity * sizeof *origins->list);
    }
    origins->list[origins->count++] = (lilac_ptx_origin){e->code.length, location};
}

/* The kernel's code is written behind `shift` bytes of text. */
static void shift_origins(const lilac_ptx_emitter *e, size_t shift) {
    lilac_ptx_origins *origins = e->options->origins;
    put_origin(e, 0);
    for (size_t i = e->first_origin; origins != NULL && i < origins->count; i++) {
        origins->list[i].offset += shift;
    }
}

void lilac_ptx_origins_clear(lilac_ptx_origins *origins) {
    lilac_heap_free(origins->list);
    *origins = (lilac_ptx_origins){0};
}

void lilac_ptx_body(lilac_ptx_emitter *e, const lilac_simt_body *body) {
    bool lines = e->options->comments || e->options->line_info;
    for (const lilac_simt_instruction *i = body->first; i != body->last; i = i->next) {
        lilac_position text;
        if (lines && i->location && i->location != e->location && i->code != LILAC_SIMT_OP_CONST &&
            !lilac_location_text(e->module->context, i->location, &text)) {
            source_line(e, i->location);
        }
        e->at = i->location;
        put_origin(e, i->location);
        lilac_ptx_before_copies(e, i);
        instruction(e, i);
        lilac_ptx_after_copies(e, i);
        if (i->body_count > 0) { /* the end of a loop is its own, not its last instruction's */
            put_origin(e, i->location);
        }
        if (!e->ok) { /* what a refused instruction defines has no register to name */
            return;
        }
    }
}

/* ---- kernels ---------------------------------------------------------------------------- */

static void put_parameters(lilac_ptx_emitter *e) {
    static const char *const types[LILAC_SIMT_TYPE_COUNT] = {[LILAC_SIMT_I1] = ".u8 ",
                                                             [LILAC_SIMT_I8] = ".u8 ",
                                                             [LILAC_SIMT_I16] = ".u16 ",
                                                             [LILAC_SIMT_I32] = ".u32 ",
                                                             [LILAC_SIMT_I64] = ".u64 ",
                                                             [LILAC_SIMT_F16] = ".align 2 .b8 ",
                                                             [LILAC_SIMT_BF16] = ".align 2 .b8 ",
                                                             [LILAC_SIMT_F32] = ".f32 ",
                                                             [LILAC_SIMT_F64] = ".f64 ",
                                                             [LILAC_SIMT_F16X2] = ".u32 ",
                                                             [LILAC_SIMT_BF16X2] = ".u32 "};
    const lilac_simt_kernel *kernel = e->kernel;
    lilac_text *out = e->out;
    for (uint32_t k = 0; k < kernel->parameter_count; k++) {
        const lilac_simt_parameter *p = &kernel->parameters[k];
        lilac_text_puts(out, "\t.param ");
        lilac_text_puts(out, p->is_tensor_map ? ".align 64 .b8 "
                             : p->is_pointer  ? ".u64 .ptr .global .align 1 "
                                              : types[p->type]);
        lilac_text_puts(out, "parameter_");
        lilac_text_unsigned(out, k);
        bool half = p->type == LILAC_SIMT_F16 || p->type == LILAC_SIMT_BF16;
        lilac_text_puts(out, p->is_tensor_map ? "[128]," : !p->is_pointer && half ? "[2]," : ",");
        if (p->name && e->options->comments) {
            lilac_text_puts(out, " // ");
            for (const char *c = p->name; *c; c++) {
                lilac_text_char(out, (unsigned char)*c < ' ' ? '?' : *c);
            }
        }
        lilac_text_puts(out, "\n");
    }
    lilac_text_puts(out, "\t.param .u64 .ptr .global .align 1 global_scratch,\n"
                         "\t.param .u64 .ptr .global .align 1 profile_scratch\n)\n");
}

static void put_registers(lilac_ptx_emitter *e) {
    static const char *const numbered[LILAC_PTX_PREFIX_COUNT] = {
        "\t.reg .pred %p<", "\t.reg .b16 %rs<", "\t.reg .b16 %h<", "\t.reg .b32 %r<",
        "\t.reg .b32 %f<",  "\t.reg .b64 %rd<", "\t.reg .b64 %fd<"};
    static const char *const named[LILAC_PTX_PREFIX_COUNT] = {
        "\t.reg .pred ", "\t.reg .b16 ", "\t.reg .b16 ", "\t.reg .b32 ",
        "\t.reg .b32 ",  "\t.reg .b64 ", "\t.reg .b64 "};
    static const char *const temporary[LILAC_PTX_CLASS_COUNT] = {
        "\t.reg .pred %tp<", "\t.reg .b16 %ts<", "\t.reg .b32 %tr<", "\t.reg .b64 %td<"};
    lilac_text *out = e->out;
    for (int k = 0; k < LILAC_PTX_PREFIX_COUNT; k++) {
        if (e->numbered[k]) {
            lilac_text_puts(out, numbered[k]);
            lilac_text_unsigned(out, e->numbered[k]);
            lilac_text_puts(out, ">;\n");
        }
        if (e->named[k].length) {
            lilac_text_puts(out, named[k]);
            lilac_text_put(out, e->named[k].bytes, e->named[k].length);
            lilac_text_puts(out, ";\n");
        }
    }
    for (int k = 0; k < LILAC_PTX_CLASS_COUNT; k++) {
        if (e->temporaries[k]) {
            lilac_text_puts(out, temporary[k]);
            lilac_text_unsigned(out, e->temporaries[k]);
            lilac_text_puts(out, ">;\n");
        }
    }
}

static void put_constants(lilac_ptx_emitter *e) {
    lilac_text *out = e->out;
    for (uint32_t k = 0; k < e->forced_count; k++) {
        lilac_simt_value value = e->forced[k];
        const lilac_ptx_place *place = &e->places[value];
        lilac_text_char(out, '\t');
        lilac_text_puts(out, lilac_ptx_mov(type_of(e, value)));
        lilac_text_char(out, ' ');
        lilac_text_put(out, place->in_register.bytes, place->in_register.length);
        lilac_text_puts(out, ", ");
        lilac_text_put(out, place->text.bytes, place->text.length);
        lilac_text_puts(out, ";\n");
    }
}

/* Bytes of an entry's parameters: each is aligned to its size, a tensor map to half of it; the two
 * scratch pointers follow. */
static uint64_t parameter_bytes(const lilac_simt_kernel *kernel) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k <= kernel->parameter_count; k++) {
        bool scratch = k == kernel->parameter_count;
        bool is_map = !scratch && kernel->parameters[k].is_tensor_map;
        uint32_t size = scratch ? 8 : lilac_simt_type_bits(kernel->parameters[k].type) / 8;
        size = is_map ? LILAC_TENSOR_MAP_BYTES : size == 0 ? 1 : size; /* i1 */
        uint32_t alignment = is_map ? LILAC_TENSOR_MAP_ALIGNMENT : size;
        bytes = (bytes + alignment - 1) / alignment * alignment + size;
    }
    return bytes + 8;
}

static void check_parameters(lilac_ptx_emitter *e) {
    enum { USUAL = 4352, MOST = 32764 }; /* bytes; before and from PTX ISA 8.1 on */
    const uint64_t bytes = parameter_bytes(e->kernel);
    if (bytes > MOST) {
        lilac_ptx_refuse(e, NULL,
                         "%u parameters of %llu bytes, two pointers to scratch memory included; a "
                         "kernel has at most %d bytes of parameters",
                         e->kernel->parameter_count, (unsigned long long)bytes, MOST);
    } else if (bytes > USUAL) {
        lilac_ptx_need(e, LILAC_PTX_PARAMETERS);
    }
}

/* The kernel's name can be written, and no other kernel has it. */
static void check_name(lilac_ptx_emitter *e) {
    lilac_text name;
    lilac_text_init(&name);
    lilac_ptx_kernel_name(&name, e->kernel->name);
    if (!lilac_ptx_is_identifier(lilac_text_get(&name))) {
        lilac_ptx_refuse(e, NULL, "'%s' is no name of a kernel in PTX", e->kernel->name);
    }
    for (const lilac_simt_kernel *k = e->module->kernels; k; k = k->next) {
        if (k != e->kernel && strcmp(k->name, lilac_text_get(&name)) == 0) {
            lilac_ptx_refuse(e, NULL,
                             "the name '%s' is reserved in PTX, and '%s', which would replace it, "
                             "is another kernel's",
                             e->kernel->name, k->name);
        }
    }
    lilac_text_clear(&name);
}

static bool check_launch(lilac_ptx_emitter *e) {
    const lilac_simt_kernel *kernel = e->kernel;
    const lilac_arch *arch = e->arch;
    check_name(e);
    check_parameters(e);
    if (kernel->num_warps < 1 || kernel->num_warps > arch->max_warps) {
        lilac_ptx_refuse(e, NULL, "%u warps; a block of %s has 1 to %u", kernel->num_warps,
                         arch->name, arch->max_warps);
    }
    if (kernel->num_ctas > 1 && !lilac_arch_has(arch, LILAC_HAS_CLUSTERS)) {
        lilac_ptx_refuse(e, NULL, "a cluster of %u blocks; %s has no clusters", kernel->num_ctas,
                         arch->name);
    }
    if (kernel->shared_bytes > arch->shared_bytes) {
        lilac_ptx_refuse(e, NULL, "%u bytes of shared memory; a block of %s has at most %u",
                         kernel->shared_bytes, arch->name, arch->shared_bytes);
    }
    return e->ok;
}

/* Does a swizzle of shared addresses depend on where the body's matrices or boxes lie? */
static bool has_swizzles(const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits & LILAC_SIMT_SWIZZLED) {
            return true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (has_swizzles(i->bodies[k])) {
                return true;
            }
        }
    }
    return false;
}

/* The alignment of shared memory, which all kernels of the module share: 1024 bytes, the period of
 * the widest swizzle, when wgmma or tensor copies address it. */
static uint32_t shared_alignment(const lilac_simt_module *module) {
    for (const lilac_simt_kernel *k = module->kernels; k != NULL; k = k->next) {
        if (has_swizzles(k->body)) {
            return 1024;
        }
    }
    return 16;
}

static bool has_wgmma(const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_WGMMA) {
            return true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (has_wgmma(i->bodies[k])) {
                return true;
            }
        }
    }
    return false;
}

/* Resets the state that belongs to one kernel. */
static void begin_kernel(lilac_ptx_emitter *e, const lilac_simt_kernel *kernel) {
    e->places = lilac_arena_array(e->arena, lilac_ptx_place, kernel->value_count + 1);
    e->pending = lilac_arena_array(e->arena, uint32_t, kernel->value_count + 1);
    e->head.length = e->code.length = e->out_of_line.length = 0;
    e->forced_count = 0;
    e->labels = 0;
    e->schedule_barriers = 0;
    e->policies = 0;
    e->homes = NULL;
    if (lilac_arch_has(e->arch, LILAC_HAS_WGMMA) && has_wgmma(kernel->body)) {
        e->homes = lilac_arena_array(e->arena, lilac_simt_value, kernel->value_count + 1);
        lilac_simt_register_homes(kernel, e->homes);
    }
    memset(e->zero, 0, sizeof e->zero);
    e->location = 0;
    e->file = NULL;
    e->first_origin = e->options->origins != NULL ? e->options->origins->count : 0;
    memset(e->numbered, 0, sizeof e->numbered);
    memset(e->temporaries, 0, sizeof e->temporaries);
    memset(e->line_fill, 0, sizeof e->line_fill);
    for (int k = 0; k < LILAC_PTX_PREFIX_COUNT; k++) {
        e->named[k].length = 0;
    }
}

/* Declarations before the entry, its name, its parameters and its launch bounds. */
static void put_entry(lilac_ptx_emitter *e) {
    const lilac_simt_kernel *kernel = e->kernel;
    lilac_text *out = e->out;
    if (e->shared && !e->shared_declared) {
        lilac_text_printf(out, "\n.extern .shared .align %u .b8 global_smem[];\n",
                          shared_alignment(kernel->module));
        e->shared_declared = true;
    }
    if (e->head.length > 0) {
        lilac_text_char(out, '\n');
        lilac_text_put(out, e->head.bytes, e->head.length);
    }
    lilac_text_puts(out, "\n.visible .entry ");
    lilac_ptx_kernel_name(out, kernel->name);
    lilac_text_puts(out, "(\n");
    put_parameters(e);
    lilac_text_puts(out, ".reqntid ");
    lilac_text_unsigned(out, (uint64_t)e->arch->warp_size * kernel->num_warps);
    if (kernel->num_ctas > 1) {
        lilac_text_puts(out, "\n.explicitcluster\n.reqnctapercluster ");
        lilac_text_unsigned(out, kernel->num_ctas);
    }
    if (kernel->min_blocks > 0) {
        lilac_text_puts(out, "\n.minnctapersm ");
        lilac_text_unsigned(out, kernel->min_blocks);
    }
}

/* The code is generated before the entry is printed, because declarations depend on it. */
static void write_kernel(lilac_ptx_emitter *e, const lilac_simt_kernel *kernel) {
    e->kernel = kernel;
    e->at = kernel->location;
    if (!check_launch(e)) {
        return;
    }
    begin_kernel(e, kernel);
    lilac_ptx_body(e, kernel->body);
    if (!e->ok) {
        return;
    }
    if (e->schedule_barriers > 0) {
        lilac_ptx_label(e, "end", 0);
    }
    put_entry(e);
    lilac_text_puts(e->out, "\n{\n");
    put_registers(e);
    put_constants(e);
    lilac_ptx_put_policies(e);
    lilac_ptx_put_zero(e);
    shift_origins(e, e->out->length);
    if (e->code.length > 0) {
        lilac_text_put(e->out, e->code.bytes, e->code.length);
    }
    lilac_text_puts(e->out, "\tret;\n");
    if (e->out_of_line.length > 0) {
        lilac_text_put(e->out, e->out_of_line.bytes, e->out_of_line.length);
    }
    lilac_text_puts(e->out, "}\n");
}

static void write_module(lilac_ptx_emitter *e) {
    if (e->arch->vendor != LILAC_NVIDIA || e->arch->capability < 80) {
        lilac_ptx_refuse(e, NULL, "PTX is for devices from sm_80 on, not for %s", e->arch->name);
        return;
    }
    lilac_ptx_need_device(e);
    lilac_ptx_begin_version(e);
    lilac_text_puts(e->out, ".target ");
    lilac_text_puts(e->out, e->arch->name);
    lilac_text_puts(e->out, "\n.address_size 64\n");
    for (const lilac_simt_kernel *k = e->module->kernels; k; k = k->next) {
        write_kernel(e, k);
    }
    put_files(e);
    lilac_ptx_end_version(e);
}

bool lilac_ptx_write(lilac_text *out, const lilac_simt_module *module,
                     const lilac_ptx_options *options) {
    size_t before = out->length;
    lilac_ptx_emitter e = {.module = module,
                           .arch = module->arch,
                           .options = options,
                           .arena = lilac_arena_create(),
                           .out = out,
                           .ok = true};
    lilac_ptx_reserve(&e.code, (size_t)1 << 16);
    lilac_ptx_reserve(&e.out_of_line, LILAC_PTX_LINE);
    write_module(&e);
    if (!e.ok && out->bytes) { /* what was written before the refusal goes */
        out->length = before;
        out->bytes[before] = '\0';
    }
    lilac_heap_free(e.head.bytes);
    lilac_heap_free(e.code.bytes);
    lilac_heap_free(e.out_of_line.bytes);
    for (int k = 0; k < LILAC_PTX_PREFIX_COUNT; k++) {
        lilac_heap_free(e.named[k].bytes);
    }
    lilac_heap_free(e.forced);
    lilac_heap_free(e.files);
    lilac_arena_destroy(e.arena);
    return e.ok;
}
