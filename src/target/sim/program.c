/* Decoding a kernel into steps, in two walks over its bodies.
 *
 * survey   what differs between threads, and when values die (survey.c)
 *
 * emit     gives values arrays of the register file and writes the steps. Results get arrays before
 *          the operands' are given back, so no step writes what it reads.
 *
 *   loop    inits → arguments; LOOP_BEGIN exit; body: …, yields → arguments; LOOP_NEXT body; exit:
 *           arguments → results
 *   if      BRANCH other; …, yields → results; JUMP end; other: …, yields → results; end:
 *   while   inits → before's arguments; before: …, passed → after's arguments and results;
 *           BRANCH end; after: …, yields → before's arguments; JUMP_BACK before; end:
 *
 * Yields assign in parallel: a value that is itself one of the targets goes through a spare array.
 */
#include "bulk.h"
#include "decoder.h"
#include "multiply.h"
#include "shared.h"

#include <string.h>

static lilac_simt_type type_of(const lilac_sim_decoder *d, lilac_simt_value value) {
    return (lilac_simt_type)d->kernel->values[value].type;
}

static bool varies(const lilac_sim_decoder *d, lilac_simt_value value) {
    return d->values[value].varies;
}

static void refuse(lilac_sim_decoder *d, const lilac_simt_instruction *instruction,
                   const char *why) {
    const lilac_simt_op_info *info = lilac_simt_op_info_get((lilac_simt_opcode)instruction->code);
    lilac_error(d->context, (lilac_position){0}, instruction->location, "unsupported-instruction",
                "the simulator cannot run '%s': %s", info->name, why);
    d->failed = true;
}

/* ---- the register file ------------------------------------------------------------------ */

static uint32_t size_class(uint32_t entry_bytes) {
    return entry_bytes == 1 ? 0 : entry_bytes == 2 ? 1 : entry_bytes == 4 ? 2 : 3;
}

/* An array of its own: what is set once at the start of a block must outlive every reuse. */
static uint32_t new_array(lilac_sim_decoder *d, uint32_t entry_bytes) {
    uint64_t offset = d->program->register_bytes;
    d->program->register_bytes += ((uint64_t)d->program->threads * entry_bytes + 63) / 64 * 64;
    return (uint32_t)offset; /* a file above 2 GiB is refused before it is used */
}

static uint32_t take_array(lilac_sim_decoder *d, uint32_t entry_bytes) {
    uint32_t class = size_class(entry_bytes);
    if (d->free_count[class])
        return d->free_arrays[class][--d->free_count[class]];
    return new_array(d, entry_bytes);
}

static void give_array(lilac_sim_decoder *d, uint32_t offset, uint32_t entry_bytes) {
    uint32_t class = size_class(entry_bytes);
    if (d->free_count[class] == d->free_capacity[class]) {
        d->free_capacity[class] = d->free_capacity[class] * 2 + 64;
        d->free_arrays[class] =
            lilac_heap_grow(d->free_arrays[class], sizeof(uint32_t) * d->free_capacity[class]);
    }
    d->free_arrays[class][d->free_count[class]++] = offset;
}

static uint32_t entry_bytes(const lilac_sim_decoder *d, lilac_simt_value value) {
    return lilac_sim_lane_bytes(type_of(d, value));
}

/* Gives values their arrays, to be given back when they die. */
static void place(lilac_sim_decoder *d, lilac_simt_value first, uint32_t count) {
    for (lilac_simt_value v = first; v < first + count; v++) {
        lilac_sim_value *state = &d->values[v];
        state->offset = take_array(d, entry_bytes(d, v));
        state->placed = true;
        state->next = d->dying[state->last_use];
        d->dying[state->last_use] = v;
    }
}

static void release(lilac_sim_decoder *d, uint32_t number) {
    for (uint32_t v = d->dying[number]; v; v = d->values[v].next)
        give_array(d, d->values[v].offset, entry_bytes(d, v));
}

/* ---- emit ------------------------------------------------------------------------------- */

static lilac_sim_step *add_step(lilac_sim_decoder *d, lilac_sim_step_kind kind,
                                const lilac_simt_instruction *source) {
    lilac_sim_program *p = d->program;
    if (p->step_count == p->step_capacity) {
        p->step_capacity = p->step_capacity * 2 + 256;
        p->steps = lilac_heap_grow(p->steps, sizeof *p->steps * p->step_capacity);
    }
    lilac_sim_step *step = &p->steps[p->step_count++];
    memset(step, 0, sizeof *step);
    step->kind = (uint8_t)kind;
    step->source = source;
    step->entry_bytes = 1;
    step->n = d->threads;
    return step;
}

static void add_preset(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                       lilac_sim_preset_kind kind, uint64_t bits) {
    lilac_sim_program *p = d->program;
    lilac_sim_value *state = &d->values[i->result];
    if (p->preset_count == p->preset_capacity) {
        p->preset_capacity = p->preset_capacity * 2 + 64;
        p->presets = lilac_heap_grow(p->presets, sizeof *p->presets * p->preset_capacity);
    }
    if (type_of(d, i->result) == LILAC_SIMT_I1)
        bits &= 1;
    state->offset = new_array(d, entry_bytes(d, i->result));
    state->placed = true;
    p->presets[p->preset_count++] =
        (lilac_sim_preset){.kind = (uint8_t)kind,
                           .entry_bytes = (uint8_t)entry_bytes(d, i->result),
                           .out = state->offset,
                           .bits = bits};
}

/* Marks a step's result: how many entries it computes and whether they are spread. */
static void set_result(lilac_sim_decoder *d, lilac_sim_step *step, lilac_simt_value value) {
    const lilac_sim_value *state = &d->values[value];
    step->out = state->offset;
    step->entry_bytes = step->width[3] = (uint8_t)entry_bytes(d, value);
    step->n = state->varies ? d->threads : 1;
    step->fill = !state->varies && state->fill;
}

/* A value that a body may not see has no array: verified kernels have none. */
static uint32_t offset_of(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                          lilac_simt_value value) {
    if (!d->values[value].placed && !d->failed)
        refuse(d, i, "an operand has no definition before it");
    return d->values[value].offset;
}

static void add_copy(lilac_sim_decoder *d, const lilac_simt_instruction *i, lilac_simt_value target,
                     uint32_t from) {
    lilac_sim_step *step = add_step(d, STEP_LANES, i);
    set_result(d, step, target);
    step->loop = lilac_sim_copy;
    step->immediate = step->entry_bytes;
    step->a = step->b = step->c = from;
    memset(step->width, step->entry_bytes, sizeof step->width);
}

static lilac_sim_step *last_step(lilac_sim_decoder *d) {
    return &d->program->steps[d->program->step_count - 1];
}

/* A copy whose step says of which values it is. */
static void add_value_copy(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                           lilac_simt_value target, lilac_simt_value source) {
    add_copy(d, i, target, offset_of(d, i, source));
    last_step(d)->access = target;
    last_step(d)->target = source;
}

/* targets first … first + count - 1 = sources, all at once. */
static void add_copies(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                       lilac_simt_value first, const lilac_simt_value *sources, uint32_t count) {
    uint32_t *spare = lilac_heap_grow(NULL, sizeof *spare * (count + 1));
    for (uint32_t k = 0; k < count; k++) {
        uint32_t other = sources[k] - first; /* the source is target `other` when below count */
        spare[k] = LILAC_SIM_NONE;
        if (sources[k] < first || other >= k)
            continue; /* not a target, or not yet overwritten when its turn comes */
        spare[k] = take_array(d, entry_bytes(d, sources[k]));
        add_copy(d, i, first + k, d->values[sources[k]].offset);
        last_step(d)->out = spare[k];
        last_step(d)->target = sources[k];
    }
    for (uint32_t k = 0; k < count; k++) {
        if (spare[k] != LILAC_SIM_NONE) {
            add_copy(d, i, first + k, spare[k]);
            last_step(d)->access = first + k;
            give_array(d, spare[k], entry_bytes(d, sources[k]));
        } else if (sources[k] != first + k) {
            add_value_copy(d, i, first + k, sources[k]);
        }
    }
    lilac_heap_free(spare);
}

static void emit_body(lilac_sim_decoder *d, const lilac_simt_body *body);

static void set_operands(lilac_sim_decoder *d, lilac_sim_step *step,
                         const lilac_simt_instruction *i) {
    uint32_t *slots[] = {&step->a, &step->b, &step->c};
    for (uint32_t k = 0; k < 3; k++) {
        lilac_simt_value value = k < i->operand_count ? i->operands[k] : i->operands[0];
        *slots[k] = offset_of(d, i, value);
        step->width[k] = (uint8_t)entry_bytes(d, value);
        if (k < i->operand_count && varies(d, value))
            step->varies |= (uint8_t)(1 << k);
    }
}

/* ftz exists on f32: which of the operands and (bit 3) the result are f32. */
static uint8_t flushed(const lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    uint8_t mask = type_of(d, i->result) == LILAC_SIMT_F32 ? 8 : 0;
    for (uint32_t k = 0; k < i->operand_count && k < 3; k++)
        if (type_of(d, i->operands[k]) == LILAC_SIMT_F32)
            mask |= (uint8_t)(1 << k);
    return mask;
}

static void emit_lanes(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    if (i->operand_count == 0 || i->operand_count > 3 || i->result_count != 1) {
        refuse(d, i, "not with these operands");
        return;
    }
    bool select = i->code == LILAC_SIMT_OP_SELECT;
    lilac_simt_type from = type_of(d, i->operands[select]), to = type_of(d, i->result);
    uint64_t immediate = 0;
    lane_loop *loop = lilac_sim_integer_loop(i, from, to, &immediate);
    if (!loop)
        loop = lilac_sim_float_loop(i, from, to, &immediate);
    if (!loop)
        loop = lilac_sim_convert_loop(i, from, to, &immediate);
    if (!loop || (i->flags & LILAC_SIMT_SATURATE)) {
        refuse(d, i, loop ? "saturation is not modelled" : "not on these types");
        return;
    }
    lilac_sim_step *step = add_step(d, STEP_LANES, i);
    step->issues = 1;
    set_operands(d, step, i);
    set_result(d, step, i->result);
    step->loop = loop;
    step->immediate = immediate;
    step->tally = select                          ? TALLY_SELECT
                  : i->code == LILAC_SIMT_OP_PRMT ? TALLY_PERMUTE
                                                  : TALLY_OTHER;
    if (lilac_simt_type_is_float(from) && (from == LILAC_SIMT_F16X2 || from == LILAC_SIMT_BF16X2) &&
        loop != lilac_sim_copy && !select)
        step->n *= 2; /* the elements of the pairs */
    if ((i->flags & LILAC_SIMT_FTZ) && flushed(d, i)) {
        step->kind = STEP_FLUSHED;
        step->varies = flushed(d, i);
    }
    if (i->code >= LILAC_SIMT_OP_DIV_S && i->code <= LILAC_SIMT_OP_REM_U)
        step->kind = STEP_DIVIDE;
}

static void emit_pack(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    bool pack = i->code == LILAC_SIMT_OP_PACK;
    uint32_t parts = pack ? i->operand_count : i->result_count;
    lilac_simt_value whole = pack ? i->result : i->operands[0];
    lilac_simt_value part = pack ? i->operands[0] : i->result;
    uint32_t part_bits = lilac_simt_type_bits(type_of(d, part));
    lane_loop *loop = pack ? lilac_sim_pack_loop(type_of(d, part), type_of(d, whole))
                           : lilac_sim_unpack_loop(type_of(d, whole), type_of(d, part));
    if (!loop || parts * part_bits != lilac_simt_type_bits(type_of(d, whole))) {
        refuse(d, i, "not on these types");
        return;
    }
    for (uint32_t k = 0; k < parts; k++) {
        lilac_sim_step *step = add_step(d, STEP_LANES, i);
        step->issues = k == 0;
        set_result(d, step, pack ? whole : part + k);
        step->fill = step->fill && (!pack || k + 1 == parts);
        step->a = step->b = step->c = offset_of(d, i, pack ? i->operands[k] : whole);
        memset(step->width, (int)entry_bytes(d, pack ? i->operands[k] : whole), 3);
        step->loop = loop;
        step->immediate = k * part_bits;
    }
}

static lilac_sim_access *add_access(lilac_sim_decoder *d, lilac_sim_step *step,
                                    const lilac_simt_instruction *i, lilac_simt_value predicate) {
    lilac_sim_program *p = d->program;
    if (p->access_count == p->access_capacity) {
        p->access_capacity = p->access_capacity * 2 + 64;
        p->accesses = lilac_heap_grow(p->accesses, sizeof *p->accesses * p->access_capacity);
    }
    step->access = p->access_count++;
    lilac_sim_access *access = &p->accesses[step->access];
    *access =
        (lilac_sim_access){.offset = i->immediate, .begin = i->shared_begin, .end = i->shared_end};
    access->predicate = predicate ? offset_of(d, i, predicate) : LILAC_SIM_NONE;
    return access;
}

static lilac_sim_step_kind access_kind(const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_LD_GLOBAL:
        return STEP_LOAD_GLOBAL;
    case LILAC_SIMT_OP_ST_GLOBAL:
        return STEP_STORE_GLOBAL;
    case LILAC_SIMT_OP_LD_SHARED:
        return STEP_LOAD_SHARED;
    case LILAC_SIMT_OP_ST_SHARED:
        return STEP_STORE_SHARED;
    case LILAC_SIMT_OP_LD_CLUSTER:
        return STEP_LOAD_CLUSTER;
    case LILAC_SIMT_OP_ST_CLUSTER:
        return STEP_STORE_CLUSTER;
    case LILAC_SIMT_OP_LD_MATRIX:
        return STEP_LOAD_MATRIX;
    default:
        return STEP_STORE_MATRIX;
    }
}

static void emit_access(lilac_sim_decoder *d, const lilac_simt_instruction *i, bool load) {
    lilac_sim_program *p = d->program;
    bool predicated = i->operand_count > 1 &&
                      (i->operands[1] == 0 || type_of(d, i->operands[1]) == LILAC_SIMT_I1);
    uint32_t rest = i->operand_count - 1u - predicated;
    uint32_t count = load ? i->result_count : rest;
    const lilac_simt_value *others = i->operands + 1 + predicated;
    if ((count != 1 && count != 2 && count != 4 && count != 8) ||
        (load && rest != 0 && rest != count)) {
        refuse(d, i, "an access has 1, 2, 4 or 8 elements");
        return;
    }
    lilac_simt_type type = type_of(d, load ? i->result : others[0]);
    uint32_t width = lilac_sim_lane_bytes(type);
    if (type == LILAC_SIMT_I1 || width * count > p->arch->vector_bytes) {
        refuse(d, i,
               type == LILAC_SIMT_I1 ? "an element has at least 8 bits"
                                     : "the access is wider than the device's widest");
        return;
    }
    lilac_sim_step *step = add_step(d, access_kind(i), i);
    step->issues = 1;
    step->immediate = i->detail;
    lilac_sim_access *access = add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = count;
    access->width = width;
    access->address = offset_of(d, i, i->operands[0]);
    for (uint32_t k = 0; k < count; k++) {
        access->values[k] = load ? d->values[i->result + k].offset : offset_of(d, i, others[k]);
        access->others[k] = load && rest && others[k] ? offset_of(d, i, others[k]) : LILAC_SIM_NONE;
    }
}

static void emit_atomic(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    bool swaps = i->code == LILAC_SIMT_OP_CAS_GLOBAL;
    bool predicated = type_of(d, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *values = i->operands + 1 + predicated;
    uint32_t count = i->operand_count - 1u - predicated;
    lilac_sim_step *step = add_step(
        d, i->code == LILAC_SIMT_OP_ATOMIC_SHARED ? STEP_ATOMIC_SHARED : STEP_ATOMIC_GLOBAL, i);
    step->issues = 1;
    d->program->shared_atomics |= step->kind == STEP_ATOMIC_SHARED;
    step->immediate = swaps ? LILAC_SIMT_ATOMIC_COUNT : i->detail;
    lilac_sim_access *access = add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->address = offset_of(d, i, i->operands[0]);
    access->type = (uint8_t)type_of(d, values[0]);
    access->width = lilac_sim_lane_bytes(type_of(d, values[0]));
    access->count = swaps ? 1 : count;
    for (uint32_t k = 0; k < count; k++) {
        access->values[k] = k < i->result_count ? d->values[i->result + k].offset : LILAC_SIM_NONE;
        access->others[k] = offset_of(d, i, values[k]);
    }
}

static void set_registers(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                          lilac_simt_group group, uint32_t *registers) {
    for (uint32_t k = 0; k < group.count; k++)
        registers[k] = offset_of(d, i, group.values[k]);
}

static void emit_matrix(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    lilac_sim_program *p = d->program;
    bool mma = i->code == LILAC_SIMT_OP_MMA;
    if (p->matrix_count == p->matrix_capacity) {
        p->matrix_capacity = p->matrix_capacity * 2 + 16;
        p->matrices = lilac_heap_grow(p->matrices, sizeof *p->matrices * p->matrix_capacity);
    }
    lilac_sim_matrix *m = &p->matrices[p->matrix_count];
    *m = (lilac_sim_matrix){.shape = lilac_simt_matrix_shape(i), .payload = &i->payload.matrix};
    lilac_simt_group c = lilac_simt_group_of(i, mma ? 2 : 0), a = lilac_simt_group_of(i, !mma);
    lilac_simt_group b = lilac_simt_group_of(i, mma ? 1 : 2);
    m->a_count = a.count;
    m->b_count = b.count;
    m->d_count = c.count;
    set_registers(d, i, a, m->a);
    set_registers(d, i, b, m->b);
    set_registers(d, i, c, m->c);
    for (uint32_t k = 0; k < c.count; k++)
        m->d[k] = d->values[i->result + k].offset;
    if (!mma)
        m->accumulate = offset_of(d, i, lilac_simt_group_of(i, 3).values[0]);
    lilac_sim_step *step = add_step(d, mma ? STEP_MMA : STEP_WGMMA, i);
    step->issues = 1;
    step->access = p->matrix_count++;
    p->proxies |= !mma;
}

/* Fences, commits and waits of wgmma. */
static void emit_wgmma(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    lilac_sim_step *step = add_step(d,
                                    i->code == LILAC_SIMT_OP_WGMMA_FENCE    ? STEP_WGMMA_FENCE
                                    : i->code == LILAC_SIMT_OP_WGMMA_COMMIT ? STEP_WGMMA_COMMIT
                                                                            : STEP_WGMMA_WAIT,
                                    i);
    step->issues = 1;
    if (i->code == LILAC_SIMT_OP_WGMMA_WAIT)
        step->immediate = i->payload.wgmma_wait.groups;
    for (uint32_t k = 0; k < i->result_count; k++)
        add_value_copy(d, i, i->result + k, i->operands[k]);
}

enum { MOST_PRINTED = 8 };

static void emit_copy(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    bool predicated = type_of(d, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    bool partial = i->operand_count > 2u + predicated;
    lilac_sim_step *step = add_step(d, STEP_COPY, i);
    step->issues = 1;
    d->program->copies = true;
    lilac_sim_access *access = add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = 1;
    access->width = i->detail;
    access->address = offset_of(d, i, i->operands[0]);
    access->values[0] = offset_of(d, i, rest[0]);
    access->others[0] = partial ? offset_of(d, i, rest[1]) : LILAC_SIM_NONE;
}

/* The width of a copy's elements, for reports. */
static uint32_t width_of(const lilac_simt_instruction *i, const lilac_tensor_map *map) {
    return map ? lilac_tensor_element_bytes(map->element)
           : i->code == LILAC_SIMT_OP_CP_BULK_REDUCE
               ? lilac_scalar_bits((lilac_scalar)i->scalar) / 8
               : LILAC_SIM_BULK_BYTES;
}

/* A bulk or tensor copy. */
static void emit_bulk(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    bool predicated = type_of(d, i->operands[1]) == LILAC_SIMT_I1;
    bool load = i->code == LILAC_SIMT_OP_CP_BULK_LOAD || i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    bool multicast = i->payload.bulk.multicast;
    uint32_t count =
        i->operand_count - 2u - predicated - load - multicast; /* size or coordinates */
    const lilac_tensor_map *map = lilac_sim_map_of(d->launch, i);
    if (map && !lilac_sim_check_tensor_copy(d->context, i, map, count)) {
        d->failed = true;
        return;
    }
    lilac_sim_step *step = add_step(d, STEP_BULK_START, i);
    step->issues = 1;
    d->program->proxies = true;
    d->program->async_clocks |= load;
    d->program->partial |= load;
    lilac_sim_access *access = add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = count;
    access->width = width_of(i, map);
    access->address = offset_of(d, i, i->operands[0]);
    access->values[0] = offset_of(d, i, rest[0]);
    access->values[1] = load ? offset_of(d, i, rest[1 + count]) : LILAC_SIM_NONE;
    access->values[2] = multicast ? offset_of(d, i, rest[2 + count]) : LILAC_SIM_NONE;
    for (uint32_t k = 0; k < count; k++)
        access->others[k] = offset_of(d, i, rest[1 + k]);
}

static void emit_mbarrier(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    bool predicated = i->operand_count > 1 && type_of(d, i->operands[1]) == LILAC_SIMT_I1;
    bool waits = i->code == LILAC_SIMT_OP_MBARRIER_WAIT;
    lilac_sim_step *step = add_step(d, waits ? STEP_MBARRIER_WAIT : STEP_MBARRIER, i);
    step->issues = 1;
    step->immediate = i->code;
    d->program->mbarriers = d->program->shared_atomics = d->program->partial = true;
    d->program->async_clocks |= i->code == LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE;
    lilac_sim_access *access = add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = 1;
    access->width = sizeof(uint32_t);
    access->address = offset_of(d, i, i->operands[0]);
    access->values[0] = i->result_count ? d->values[i->result].offset : LILAC_SIM_NONE;
    access->others[0] = i->operand_count > 1u + predicated
                            ? offset_of(d, i, i->operands[1 + predicated])
                            : LILAC_SIM_NONE;
}

static void emit_print(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    bool predicated = i->operand_count > 0 && type_of(d, i->operands[0]) == LILAC_SIMT_I1;
    uint32_t count = i->operand_count - (uint32_t)predicated;
    if (count > MOST_PRINTED) {
        refuse(d, i, "it prints more than 8 values at once");
        return;
    }
    lilac_sim_step *step = add_step(d, STEP_PRINT, i);
    step->issues = 1;
    lilac_sim_access *access = add_access(d, step, i, predicated ? i->operands[0] : 0);
    access->count = count;
    for (uint32_t k = 0; k < count; k++)
        access->values[k] = offset_of(d, i, i->operands[predicated + k]);
}

static void emit_loop(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    lilac_sim_program *p = d->program;
    const lilac_simt_body *body = i->bodies[0];
    uint32_t count = i->operand_count - 3u, end = d->ends[d->number - 1];
    place(d, body->argument, body->argument_count);
    add_copies(d, i, body->argument + 1, i->operands + 3, count);
    lilac_sim_step bounds = *add_step(d, STEP_LOOP_BEGIN, i);
    uint32_t begin = p->step_count - 1;
    set_operands(d, &bounds, i);
    set_result(d, &bounds, body->argument);
    bounds.immediate = bounds.entry_bytes;
    bounds.issues = 1;
    uint32_t first = p->step_count;
    emit_body(d, body);
    add_copies(d, body->last, body->argument + 1, body->last->operands, count);
    release(d, d->number - 1);
    lilac_sim_step *next = add_step(d, STEP_LOOP_NEXT, i);
    *next = bounds;
    next->kind = STEP_LOOP_NEXT;
    next->target = first;
    next->in_while = d->whiles > 0;
    bounds.target = p->step_count;
    p->steps[begin] = bounds;
    place(d, i->result, i->result_count);
    for (uint32_t k = 0; k < count; k++)
        add_value_copy(d, i, i->result + k, body->argument + 1 + k);
    d->number++;
    release(d, end);
}

static void emit_programs(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    lilac_sim_program *p = d->program;
    uint32_t end = d->ends[d->number - 1], fork = p->step_count, threads = d->threads;
    uint32_t first = p->part_count, count = i->body_count;
    lilac_sim_step *step = add_step(d, STEP_FORK, i);
    step->issues = 1;
    step->access = first;
    step->n = count;
    p->part_count += count;
    p->most_parts = count > p->most_parts ? count : p->most_parts;
    p->partial = p->parts_wait = true;
    p->parts = lilac_heap_grow(p->parts, sizeof *p->parts * p->part_count);
    for (uint32_t k = 0; k < count; k++) {
        const lilac_simt_body *body = i->bodies[k];
        p->parts[first + k] = (lilac_sim_part){
            .first = p->step_count, .first_warp = body->first_warp, .end_warp = body->end_warp};
        d->threads = (body->end_warp - body->first_warp) * p->arch->warp_size;
        emit_body(d, body);
        release(d, d->number - 1);
        add_step(d, STEP_JOIN, i);
    }
    d->threads = threads;
    p->steps[fork].target = p->step_count;
    d->number++;
    release(d, end);
}

static uint32_t add_branch(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                           lilac_simt_value condition) {
    lilac_sim_step *step = add_step(d, STEP_BRANCH, i);
    step->issues = 1;
    step->width[0] = 1;
    step->a = offset_of(d, i, condition);
    step->varies = varies(d, condition);
    return d->program->step_count - 1;
}

static void emit_if(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    lilac_sim_program *p = d->program;
    uint32_t end = d->ends[d->number - 1];
    place(d, i->result, i->result_count);
    uint32_t branch = add_branch(d, i, i->operands[0]);
    emit_body(d, i->bodies[0]);
    add_copies(d, i->bodies[0]->last, i->result, i->bodies[0]->last->operands, i->result_count);
    release(d, d->number - 1);
    add_step(d, STEP_JUMP, i);
    uint32_t jump = p->step_count - 1;
    p->steps[branch].target = p->step_count;
    emit_body(d, i->bodies[1]);
    add_copies(d, i->bodies[1]->last, i->result, i->bodies[1]->last->operands, i->result_count);
    release(d, d->number - 1);
    p->steps[jump].target = p->step_count;
    d->number++;
    release(d, end);
}

static void emit_while(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    lilac_sim_program *p = d->program;
    const lilac_simt_body *before = i->bodies[0], *after = i->bodies[1];
    uint32_t end = d->ends[d->number - 1];
    place(d, before->argument, before->argument_count);
    place(d, after->argument, after->argument_count);
    place(d, i->result, i->result_count);
    add_copies(d, i, before->argument, i->operands, i->operand_count);
    uint32_t first = p->step_count;
    d->whiles++;
    emit_body(d, before);
    const lilac_simt_instruction *condition = before->last;
    add_copies(d, condition, i->result, condition->operands + 1, i->result_count);
    uint32_t branch = add_branch(d, condition, condition->operands[0]);
    add_copies(d, condition, after->argument, condition->operands + 1, i->result_count);
    release(d, d->number - 1);
    emit_body(d, after);
    add_copies(d, after->last, before->argument, after->last->operands, i->operand_count);
    release(d, d->number - 1);
    d->whiles--;
    add_step(d, STEP_JUMP_BACK, i)->target = first;
    p->steps[branch].target = p->step_count;
    d->number++;
    release(d, end);
}

static void emit_exchange(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    bool ballot = i->code == LILAC_SIMT_OP_BALLOT || i->code == LILAC_SIMT_OP_MATCH;
    if (ballot && d->program->arch->warp_size > 32) {
        refuse(d, i, "a ballot of more than 32 lanes does not fit its result");
        return;
    }
    lilac_sim_step *step = add_step(d,
                                    i->code == LILAC_SIMT_OP_BALLOT  ? STEP_BALLOT
                                    : i->code == LILAC_SIMT_OP_MATCH ? STEP_MATCH
                                    : i->code == LILAC_SIMT_OP_VOTE  ? STEP_VOTE
                                    : i->code == LILAC_SIMT_OP_REDUX ? STEP_REDUX
                                                                     : STEP_SHUFFLE,
                                    i);
    step->issues = 1;
    set_operands(d, step, i);
    set_result(d, step, i->result);
    step->immediate = i->detail;
}

/* Names the assembly by its first line that says something. */
static void refuse_assembly(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    const char *text = i->text + strspn(i->text, " \t\r\n{");
    lilac_error(d->context, (lilac_position){0}, i->location, "unsupported-instruction",
                "the simulator cannot run assembly: '%.*s'", (int)strcspn(text, "\r\n"), text);
    d->failed = true;
}

static void emit(lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    const lilac_sim_launch *launch = d->launch;
    switch (i->code) {
    case LILAC_SIMT_OP_CONST:
        add_preset(d, i, PRESET_BITS, (uint64_t)i->immediate);
        return;
    case LILAC_SIMT_OP_PARAM:
        if (i->immediate < 0 || i->immediate >= (int64_t)launch->argument_count) {
            refuse(d, i, "there is no such parameter");
            return;
        }
        add_preset(d, i, PRESET_BITS, launch->arguments[i->immediate]);
        return;
    case LILAC_SIMT_OP_GRID:
        add_preset(d, i, PRESET_BITS, launch->grid[i->detail % 3]);
        return;
    case LILAC_SIMT_OP_SHARED_BASE:
        add_preset(d, i, PRESET_BITS, 0);
        return;
    case LILAC_SIMT_OP_THREAD:
        add_preset(d, i, PRESET_THREAD, 0);
        return;
    case LILAC_SIMT_OP_LANE:
        add_preset(d, i, PRESET_LANE, 0);
        return;
    case LILAC_SIMT_OP_WARP:
        add_preset(d, i, PRESET_WARP, 0);
        return;
    case LILAC_SIMT_OP_BLOCK:
        add_preset(d, i, PRESET_BLOCK, i->detail % 3);
        return;
    case LILAC_SIMT_OP_CTA:
        add_preset(d, i, PRESET_CTA, 0);
        return;
    case LILAC_SIMT_OP_LOOP:
        emit_loop(d, i);
        return;
    case LILAC_SIMT_OP_IF:
        emit_if(d, i);
        return;
    case LILAC_SIMT_OP_WHILE:
        emit_while(d, i);
        return;
    case LILAC_SIMT_OP_PROGRAMS:
        emit_programs(d, i);
        return;
    case LILAC_SIMT_OP_ELECT:
        add_preset(d, i, PRESET_ELECTED, 0);
        return;
    case LILAC_SIMT_OP_YIELD:
    case LILAC_SIMT_OP_CONDITION:
    case LILAC_SIMT_OP_RETURN:
    case LILAC_SIMT_OP_SCHEDULE_BARRIER:
    case LILAC_SIMT_OP_PREFETCH_TENSOR_MAP:
    case LILAC_SIMT_OP_FENCE_MBARRIER_INIT: /* init takes place at once */
        return;
    default:
        break;
    }
    place(d, i->result, i->result_count);
    switch (i->code) {
    case LILAC_SIMT_OP_LD_GLOBAL:
    case LILAC_SIMT_OP_LD_SHARED:
    case LILAC_SIMT_OP_LD_CLUSTER:
    case LILAC_SIMT_OP_LD_MATRIX:
        emit_access(d, i, true);
        return;
    case LILAC_SIMT_OP_ST_GLOBAL:
    case LILAC_SIMT_OP_ST_SHARED:
    case LILAC_SIMT_OP_ST_CLUSTER:
    case LILAC_SIMT_OP_ST_MATRIX:
        emit_access(d, i, false);
        return;
    case LILAC_SIMT_OP_ATOMIC_GLOBAL:
    case LILAC_SIMT_OP_CAS_GLOBAL:
    case LILAC_SIMT_OP_ATOMIC_SHARED:
        emit_atomic(d, i);
        return;
    case LILAC_SIMT_OP_MMA:
    case LILAC_SIMT_OP_WGMMA:
        emit_matrix(d, i);
        return;
    case LILAC_SIMT_OP_WGMMA_FENCE:
    case LILAC_SIMT_OP_WGMMA_COMMIT:
    case LILAC_SIMT_OP_WGMMA_WAIT:
        emit_wgmma(d, i);
        return;
    case LILAC_SIMT_OP_CP_ASYNC:
        emit_copy(d, i);
        return;
    case LILAC_SIMT_OP_MBARRIER_INIT:
    case LILAC_SIMT_OP_MBARRIER_INVALIDATE:
    case LILAC_SIMT_OP_MBARRIER_ARRIVE:
    case LILAC_SIMT_OP_MBARRIER_ARRIVE_CLUSTER:
    case LILAC_SIMT_OP_MBARRIER_EXPECT:
    case LILAC_SIMT_OP_MBARRIER_WAIT:
    case LILAC_SIMT_OP_MBARRIER_TRY_WAIT:
    case LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE:
        emit_mbarrier(d, i);
        return;
    case LILAC_SIMT_OP_CP_ASYNC_COMMIT:
        add_step(d, STEP_COPY_COMMIT, i)->issues = 1;
        return;
    case LILAC_SIMT_OP_CP_ASYNC_WAIT:
    case LILAC_SIMT_OP_CP_ASYNC_WAIT_ALL: {
        bool all = i->code == LILAC_SIMT_OP_CP_ASYNC_WAIT_ALL;
        lilac_sim_step *step = add_step(d, STEP_COPY_WAIT, i);
        step->issues = 1;
        step->immediate = all ? UINT64_MAX : (uint64_t)i->immediate;
        return;
    }
    case LILAC_SIMT_OP_CP_BULK_STORE:
    case LILAC_SIMT_OP_CP_BULK_REDUCE:
    case LILAC_SIMT_OP_CP_BULK_LOAD:
    case LILAC_SIMT_OP_CP_TENSOR_LOAD:
    case LILAC_SIMT_OP_CP_TENSOR_STORE:
    case LILAC_SIMT_OP_CP_TENSOR_REDUCE:
        emit_bulk(d, i);
        return;
    case LILAC_SIMT_OP_BULK_COMMIT:
        add_step(d, STEP_BULK_COMMIT, i)->issues = 1;
        return;
    case LILAC_SIMT_OP_BULK_WAIT:
    case LILAC_SIMT_OP_BULK_WAIT_READ: {
        lilac_sim_step *step = add_step(d, STEP_BULK_WAIT, i);
        step->issues = 1;
        step->immediate = (uint64_t)i->immediate;
        return;
    }
    case LILAC_SIMT_OP_FENCE_PROXY_ASYNC: {
        lilac_sim_step *step = add_step(d, STEP_FENCE_PROXY, i);
        step->issues = 1;
        step->immediate = i->detail;
        return;
    }
    case LILAC_SIMT_OP_PRINT:
        emit_print(d, i);
        return;
    case LILAC_SIMT_OP_ASM:
    case LILAC_SIMT_OP_ASM_VOLATILE:
        refuse_assembly(d, i);
        return;
    case LILAC_SIMT_OP_TIMER: {
        lilac_sim_step *step = add_step(d, STEP_TIMER, i);
        step->issues = 1;
        step->out = d->values[i->result].offset;
        return;
    }
    case LILAC_SIMT_OP_VOTE:
    case LILAC_SIMT_OP_MATCH:
    case LILAC_SIMT_OP_REDUX:
    case LILAC_SIMT_OP_SHUFFLE:
    case LILAC_SIMT_OP_BALLOT:
        emit_exchange(d, i);
        return;
    case LILAC_SIMT_OP_PACK:
    case LILAC_SIMT_OP_UNPACK:
        emit_pack(d, i);
        return;
    case LILAC_SIMT_OP_BARRIER:
        add_step(d, STEP_BARRIER, i)->issues = 1;
        return;
    case LILAC_SIMT_OP_WARP_BARRIER:
        add_step(d, STEP_WARP_BARRIER, i)->issues = 1;
        return;
    case LILAC_SIMT_OP_NAMED_BARRIER_SYNC:
    case LILAC_SIMT_OP_NAMED_BARRIER_ARRIVE:
    case LILAC_SIMT_OP_SET_MAX_REGISTERS: {
        bool registers = i->code == LILAC_SIMT_OP_SET_MAX_REGISTERS;
        lilac_sim_step *step = add_step(d, registers ? STEP_SET_REGISTERS : STEP_NAMED_BARRIER, i);
        step->issues = 1;
        step->immediate = (uint64_t)i->immediate;
        d->program->partial = d->program->parts_wait = true;
        return;
    }
    case LILAC_SIMT_OP_CLUSTER_BARRIER:
        add_step(d, STEP_CLUSTER_BARRIER, i)->issues = 1;
        return;
    case LILAC_SIMT_OP_GROUP_BARRIER: {
        lilac_sim_step *step = add_step(d, STEP_GROUP_BARRIER, i);
        step->issues = 1;
        step->a = offset_of(d, i, i->operands[0]);
        step->immediate = (uint64_t)i->immediate;
        d->program->partial = true;
        return;
    }
    case LILAC_SIMT_OP_ASSERT: {
        lilac_sim_step *step = add_step(d, STEP_ASSERT, i);
        step->issues = 1;
        step->a = offset_of(d, i, i->operands[0]);
        step->n = varies(d, i->operands[0]) ? d->threads : 1;
        return;
    }
    default: /* emit_lanes refuses the pure operations that have no loop */
        if (lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits & LILAC_SIMT_PURE)
            emit_lanes(d, i);
        else
            refuse(d, i, "it is not simulated");
        return;
    }
}

/* What a terminator reads last is released by the region operation, after its copies; what dies
 * where a region operation begins (initial values), after the whole of it. */
static void emit_body(lilac_sim_decoder *d, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i && !d->failed; i = i->next) {
        uint32_t number = d->number++;
        if (i->next) {
            emit(d, i);
            release(d, number);
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
    for (uint32_t k = 0; k < 4; k++)
        program->scratch[k] = take_array(&d, 8);
    d.number = 0;
    emit_body(&d, kernel->body);
    add_step(&d, STEP_END, NULL);
    if (!d.failed && program->register_bytes > UINT64_C(1) << 31) {
        lilac_error(context, (lilac_position){0}, kernel->location, "too-many-values",
                    "the block's registers take more than 2 GiB in the simulator");
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
    for (uint32_t k = 0; k < 4; k++)
        lilac_heap_free(d.free_arrays[k]);
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
