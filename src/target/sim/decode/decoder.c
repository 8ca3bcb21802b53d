/* The register file that decoding builds, and steps with their operands.
 *
 * A result gets an array before the arrays of the operands that die are returned, so no step
 * writes an array that it reads. */
#include "decoder.h"

#include <string.h>

void lilac_sim_refuse(lilac_sim_decoder *d, const lilac_simt_instruction *instruction,
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

/* Allocates an array that is never reused. Presets need one: they are written once, when a block
 * begins or before. */
static uint32_t new_array(lilac_sim_decoder *d, uint32_t entry_bytes) {
    uint64_t offset = d->program->register_bytes;
    d->program->register_bytes += ((uint64_t)d->program->threads * entry_bytes + 63) / 64 * 64;
    return (uint32_t)offset; /* the caller refuses a register file above 2 GiB */
}

uint32_t lilac_sim_reserve_array(lilac_sim_decoder *d, uint32_t entry_bytes) {
    uint32_t class = size_class(entry_bytes);
    if (d->free_count[class]) {
        return d->free_arrays[class][--d->free_count[class]];
    }
    return new_array(d, entry_bytes);
}

static void return_array(lilac_sim_decoder *d, uint32_t offset, uint32_t entry_bytes) {
    uint32_t class = size_class(entry_bytes);
    if (d->free_count[class] == d->free_capacity[class]) {
        d->free_capacity[class] = d->free_capacity[class] * 2 + 64;
        d->free_arrays[class] =
            lilac_heap_grow(d->free_arrays[class], sizeof(uint32_t) * d->free_capacity[class]);
    }
    d->free_arrays[class][d->free_count[class]++] = offset;
}

void lilac_sim_place_values(lilac_sim_decoder *d, lilac_simt_value first, uint32_t count) {
    for (lilac_simt_value v = first; v < first + count; v++) {
        lilac_sim_value *state = &d->values[v];
        /* A value that is kept to the end may be in use when the next iteration of a loop begins: its
         * array must not be one that an earlier instruction of the body writes. */
        state->offset = state->last_use == d->numbers
                            ? new_array(d, value_bytes(d, v))
                            : lilac_sim_reserve_array(d, value_bytes(d, v));
        state->placed = true;
        state->next = d->dying[state->last_use];
        d->dying[state->last_use] = v;
    }
}

void lilac_sim_release_dead(lilac_sim_decoder *d, uint32_t number) {
    for (uint32_t v = d->dying[number]; v; v = d->values[v].next) {
        return_array(d, d->values[v].offset, value_bytes(d, v));
    }
}

/* ---- steps ------------------------------------------------------------------------------ */

lilac_sim_step *lilac_sim_add_step(lilac_sim_decoder *d, uint8_t kind,
                                   const lilac_simt_instruction *source) {
    lilac_sim_program *p = d->program;
    if (p->step_count == p->step_capacity) {
        p->step_capacity = p->step_capacity * 2 + 256;
        p->steps = lilac_heap_grow(p->steps, sizeof *p->steps * p->step_capacity);
    }
    lilac_sim_step *step = &p->steps[p->step_count++];
    memset(step, 0, sizeof *step);
    step->kind = kind;
    step->source = source;
    step->entry_bytes = 1;
    step->n = d->threads;
    return step;
}

lilac_sim_step *lilac_sim_add_issued_step(lilac_sim_decoder *d, uint8_t kind,
                                          const lilac_simt_instruction *source) {
    lilac_sim_step *step = lilac_sim_add_step(d, kind, source);
    step->issues = 1;
    return step;
}

void lilac_sim_add_preset(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind,
                          uint64_t bits) {
    lilac_sim_program *p = d->program;
    lilac_sim_value *state = &d->values[i->result];
    if (p->preset_count == p->preset_capacity) {
        p->preset_capacity = p->preset_capacity * 2 + 64;
        p->presets = lilac_heap_grow(p->presets, sizeof *p->presets * p->preset_capacity);
    }
    if (value_type(d, i->result) == LILAC_SIMT_I1) {
        bits &= 1;
    }
    state->offset = new_array(d, value_bytes(d, i->result));
    state->placed = true;
    p->presets[p->preset_count++] =
        (lilac_sim_preset){.kind = kind,
                           .entry_bytes = (uint8_t)value_bytes(d, i->result),
                           .out = state->offset,
                           .bits = bits};
}

void lilac_sim_set_result(lilac_sim_decoder *d, lilac_sim_step *step, lilac_simt_value value) {
    const lilac_sim_value *state = &d->values[value];
    step->out = state->offset;
    step->entry_bytes = step->width[3] = (uint8_t)value_bytes(d, value);
    step->n = state->varies ? d->threads : 1;
    step->fill = !state->varies && state->fill;
}

/* A verified kernel reads no value that is not visible, so every operand has an array. */
uint32_t lilac_sim_offset_of(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                             lilac_simt_value value) {
    if (!d->values[value].placed && !d->failed) {
        lilac_sim_refuse(d, i, "an operand has no definition before it");
    }
    return d->values[value].offset;
}

void lilac_sim_set_operands(lilac_sim_decoder *d, lilac_sim_step *step,
                            const lilac_simt_instruction *i) {
    uint32_t *slots[] = {&step->a, &step->b, &step->c};
    for (uint32_t k = 0; k < 3; k++) {
        lilac_simt_value value = k < i->operand_count ? i->operands[k] : i->operands[0];
        *slots[k] = lilac_sim_offset_of(d, i, value);
        step->width[k] = (uint8_t)value_bytes(d, value);
        if (k < i->operand_count && value_varies(d, value)) {
            step->varies |= (uint8_t)(1 << k);
        }
    }
}

lilac_sim_access *lilac_sim_add_access(lilac_sim_decoder *d, lilac_sim_step *step,
                                       const lilac_simt_instruction *i,
                                       lilac_simt_value predicate) {
    lilac_sim_program *p = d->program;
    if (p->access_count == p->access_capacity) {
        p->access_capacity = p->access_capacity * 2 + 64;
        p->accesses = lilac_heap_grow(p->accesses, sizeof *p->accesses * p->access_capacity);
    }
    step->access = p->access_count++;
    lilac_sim_access *access = &p->accesses[step->access];
    *access =
        (lilac_sim_access){.offset = i->immediate, .begin = i->shared_begin, .end = i->shared_end};
    access->predicate = predicate ? lilac_sim_offset_of(d, i, predicate) : LILAC_SIM_NONE;
    return access;
}

/* ---- copies ----------------------------------------------------------------------------- */

static void add_copy(lilac_sim_decoder *d, const lilac_simt_instruction *i, lilac_simt_value target,
                     uint32_t from) {
    lilac_sim_step *step = lilac_sim_add_step(d, STEP_LANES, i);
    lilac_sim_set_result(d, step, target);
    step->loop = lilac_sim_copy;
    step->immediate = step->entry_bytes;
    step->a = step->b = step->c = from;
    memset(step->width, step->entry_bytes, sizeof step->width);
}

static lilac_sim_step *last_step(lilac_sim_decoder *d) {
    return &d->program->steps[d->program->step_count - 1];
}

void lilac_sim_copy_value(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                          lilac_simt_value target, lilac_simt_value source) {
    add_copy(d, i, target, lilac_sim_offset_of(d, i, source));
    last_step(d)->access = target;
    last_step(d)->target = source;
}

void lilac_sim_copy_values(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                           lilac_simt_value first, const lilac_simt_value *sources,
                           uint32_t count) {
    uint32_t *spare = lilac_heap_grow(NULL, sizeof *spare * (count + 1));
    for (uint32_t k = 0; k < count; k++) {
        uint32_t other = sources[k] - first; /* below count: the source is target `other` */
        spare[k] = LILAC_SIM_NONE;
        if (sources[k] < first || other >= k) {
            continue; /* the source is no target, or is read before it is overwritten */
        }
        spare[k] = lilac_sim_reserve_array(d, value_bytes(d, sources[k]));
        add_copy(d, i, first + k, d->values[sources[k]].offset);
        last_step(d)->out = spare[k];
        last_step(d)->target = sources[k];
    }
    for (uint32_t k = 0; k < count; k++) {
        if (spare[k] != LILAC_SIM_NONE) {
            add_copy(d, i, first + k, spare[k]);
            last_step(d)->access = first + k;
            return_array(d, spare[k], value_bytes(d, sources[k]));
        } else if (sources[k] != first + k) {
            lilac_sim_copy_value(d, i, first + k, sources[k]);
        }
    }
    lilac_heap_free(spare);
}
