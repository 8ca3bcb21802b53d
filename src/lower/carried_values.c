/* Values that loops carry and that regions pass on, as SIMT values.
 *
 * A memory descriptor becomes its address (memory/descriptor.h), a token nothing. A tensor becomes
 * one SIMT value for each distinct register, or packed words, or the distinct bases of its
 * pointers. */
#include "carried_values.h"
#include "coordinates.h"
#include "memory/descriptor.h"
#include "pack_words.h"

#include <string.h>

static const bool moves_words[LILAC_TILE_OP_COUNT] = {
#define PACKED(code) [LILAC_TILE_OP_##code] = true,
#include <lilac/operations.def>
};

static bool travels_in_words(const lilac_tile_op *op) {
    return op != NULL && moves_words[op->code];
}

/* Is the value an operand of a product in registers, perhaps transposed? */
static bool is_multiplied(const lilac_tile_value *value) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (op->code == LILAC_TILE_OP_TT_TRANS
                ? is_multiplied(&op->results[0])
                : op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT && use->index == 0) {
            return true;
        }
    }
    return false;
}

bool lilac_lower_is_carried_packed(const lilac_tile_value *inside, const lilac_tile_value *next) {
    uint32_t bits = lilac_tile_element_bits(inside->type);
    if (!lilac_tile_is_tensor(inside->type) || (bits != 8 && bits != 16)) {
        return false;
    }
    bool wanted = travels_in_words(next->op) || (bits == 8 && is_multiplied(inside));
    for (const lilac_tile_use *use = inside->uses; use != NULL && !wanted; use = use->next) {
        wanted = travels_in_words(use->op);
    }
    return wanted;
}

/* Plans to carry each canonical register. */
static void carry_registers(lilac_lowering *l, const lilac_lower_value *like, bool packed,
                            carried_value *c) {
    memset(c, 0, sizeof *c);
    c->registers = lilac_arena_array(l->arena, uint32_t, like->count);
    c->places = lilac_arena_array(l->arena, uint32_t, like->count);
    for (uint32_t r = 0; r < like->count; r++) {
        uint32_t same = like->view == NULL ? r : like->view->canonical[r];
        if (same == r) {
            c->registers[c->count] = r;
            c->places[r] = c->count++;
        } else {
            c->places[r] = c->places[same];
        }
    }
    c->packed = packed;
    c->type = packed ? LILAC_SIMT_I32 : like->simt;
    c->width =
        packed ? lilac_plan_words(log2_of(c->count), lilac_simt_type_bits(like->simt)) : c->count;
}

void lilac_lower_carry_value(lilac_lowering *l, const lilac_lower_value *like, bool packed,
                             carried_value *c) {
    if (like->kind == LILAC_LOWER_REGISTERS) {
        carry_registers(l, like, packed, c);
        return;
    }
    memset(c, 0, sizeof *c);
    c->is_reference = true;
    c->type = LILAC_SIMT_I32;
    c->width = lilac_lower_carried_width(l, like);
}

void lilac_lower_receive_value(lilac_lowering *l, const carried_value *c, lilac_lower_value *value,
                               lilac_simt_value first) {
    if (c->is_reference) {
        lilac_lower_receive_memory(l, value, first, first + 1);
        return;
    }
    lilac_simt_value *registers = NULL;
    if (c->packed) {
        lilac_lower_words words = {.register_bits = log2_of(c->count),
                                   .element_bits = lilac_simt_type_bits(value->simt),
                                   .count = c->width};
        words.list = lilac_arena_array(l->arena, lilac_simt_value, c->width);
        registers = lilac_arena_array(l->arena, lilac_simt_value, c->count);
        for (uint32_t i = 0; i < c->width; i++) {
            words.list[i] = first + i;
        }
        lilac_lower_unpack_words(&l->builder, value->simt, &words, registers);
    }
    for (uint32_t r = 0; r < value->count; r++) {
        value->base[r] = registers != NULL ? registers[c->places[r]] : first + c->places[r];
    }
    if (c->by_base) {
        value->offsets = c->offsets;
        value->offset_low = c->offset_low;
        value->offset_high = c->offset_high;
        value->exact = false;
    }
}

/* Writes the SIMT values that represent a carried value into the list. */
static bool send(lilac_lowering *l, const carried_value *c, const lilac_lower_value *value,
                 const lilac_lower_value *like, lilac_simt_value *list) {
    if (c->is_reference) {
        lilac_lower_send_memory(l, value, like, list);
        return true;
    }
    const uint32_t *source;
    if (!lilac_lower_align(l, value, like->view, &source)) {
        return false;
    }
    lilac_simt_value *registers =
        c->packed ? lilac_arena_array(l->arena, lilac_simt_value, c->count) : list;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t r = lilac_lower_index(value, source, c->registers[i]);
        registers[i] = c->by_base ? value->base[r] : lilac_lower_get(l, value, r);
    }
    if (c->packed) {
        lilac_lower_words words;
        lilac_lower_pack_words(&l->builder, l->arena, like->simt, log2_of(c->count),
                               lilac_simt_type_bits(like->simt), registers, &words);
        memcpy(list, words.list, c->width * sizeof *list);
    }
    for (uint32_t r = 0; c->by_base && r < like->count; r++) {
        if (value->offsets == NULL || value->offsets[r] != c->offsets[r] ||
            value->base[r] != list[c->places[r]]) {
            return lilac_lower_unsupported(
                l, "a loop-carried pointer does not keep the constant offsets of its "
                   "initial value");
        }
    }
    return true;
}

void lilac_lower_loop_values_fill(lilac_lowering *l, loop_values *b) {
    b->width = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        b->width += b->plans[i].width;
    }
    b->values = lilac_arena_array(l->arena, lilac_simt_value, b->width);
    b->types = lilac_arena_array(l->arena, lilac_simt_type, b->width);
    for (uint32_t i = 0, at = 0; i < b->count; i++) {
        for (uint32_t k = 0; k < b->plans[i].width; k++) {
            b->types[at++] = b->plans[i].type;
        }
    }
}

loop_values lilac_lower_loop_values_make(lilac_lowering *l, uint32_t count,
                                         lilac_lower_value *const *like,
                                         lilac_tile_value *const *tiles, const lilac_tile_op *next,
                                         uint32_t first) {
    loop_values b = {.count = count};
    b.plans = lilac_arena_array(l->arena, carried_value, count);
    for (uint32_t i = 0; i < count; i++) {
        bool sends = next != NULL && first + i < next->operand_count;
        lilac_lower_carry_value(
            l, like[i],
            sends && lilac_lower_is_carried_packed(tiles[i], next->operands[first + i].value),
            &b.plans[i]);
    }
    lilac_lower_loop_values_fill(l, &b);
    return b;
}

bool lilac_lower_loop_values_send(lilac_lowering *l, loop_values *b, const lilac_tile_op *op,
                                  uint32_t first, lilac_lower_value *const *like) {
    if (op->operand_count != first + b->count) {
        return lilac_lower_unsupported(l, "it has %u operands; expected %u", op->operand_count,
                                       first + b->count);
    }
    for (uint32_t i = 0, at = 0; i < b->count; at += b->plans[i++].width) {
        const lilac_lower_value *value = lilac_lower_operand(l, op, first + i);
        if (!send(l, &b->plans[i], value, like[i], b->values + at)) {
            return false;
        }
    }
    return true;
}

void lilac_lower_loop_values_receive(lilac_lowering *l, const loop_values *b,
                                     lilac_lower_value *const *values, lilac_simt_value first) {
    for (uint32_t i = 0, at = 0; i < b->count; at += b->plans[i++].width) {
        lilac_lower_receive_value(l, &b->plans[i], values[i], first + at);
    }
}
