/* Live registers and memory of a block, by place. */
#include "products/live_ranges.h"

#include <lilac/bits.h>

/* The memory that a value is a view of. */
static const lilac_tile_value *memory_of(const lilac_tile_value *value) {
    while (value->op != NULL && (value->op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS ||
                                 value->op->code == LILAC_TILE_OP_TTG_MEMDESC_SUBSLICE ||
                                 value->op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX)) {
        value = value->op->operands[0].value;
    }
    return value;
}

/* Notes what an operation of the block, or one in its regions, defines and uses at this place. */
static void note(lilac_live_ranges *r, const lilac_tile_op *op, uint32_t place) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        r->last[op->operands[i].value->id] = place;
        r->last[memory_of(op->operands[i].value)->id] = place;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        r->place[op->results[i].id] = place;
    }
    for (uint32_t k = 0; k < op->region_count; k++) {
        for (const lilac_tile_block *block = op->regions[k]->first; block != NULL;
             block = block->next) {
            for (const lilac_tile_op *inner = block->first; inner != NULL; inner = inner->next) {
                note(r, inner, place);
            }
        }
    }
}

static void note_waits(lilac_live_ranges *r) {
    uint32_t wait = r->count - 1;
    for (uint32_t place = r->count; place-- > 0;) {
        const lilac_tile_op *op = r->ops[place];
        wait = op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT ? place : wait;
        for (uint32_t i = 0; i < 2 && op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT; i++) {
            uint32_t *last = &r->last[memory_of(op->operands[i].value)->id];
            *last = max_u32(*last, wait);
        }
    }
}

void lilac_live_ranges_init(lilac_live_ranges *r, const lilac_tile_function *function,
                            const lilac_tile_block *block) {
    *r = (lilac_live_ranges){.arena = lilac_arena_create()};
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        r->count++;
    }
    r->ops = lilac_arena_array(r->arena, lilac_tile_op *, r->count + 1);
    r->place = lilac_arena_array(r->arena, uint32_t, function->value_count + 1);
    r->last = lilac_arena_array(r->arena, uint32_t, function->value_count + 1);
    r->words = lilac_arena_array(r->arena, uint64_t, r->count + 1);
    r->bytes = lilac_arena_array(r->arena, uint64_t, r->count + 1);
    uint32_t place = 0;
    for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        r->ops[place] = op;
        note(r, op, place++);
    }
    note_waits(r);
    for (place = 0; place < r->count; place++) {
        const lilac_tile_op *op = r->ops[place];
        for (uint32_t i = 0; i < op->result_count; i++) {
            const lilac_tile_value *result = &op->results[i];
            const uint32_t last = r->last[result->id];
            lilac_live_add(r->words, place, last, lilac_engine_words(result->type));
            if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
                lilac_live_add(r->bytes, place, last, lilac_engine_bytes(result->type));
            }
        }
    }
}

void lilac_live_ranges_destroy(lilac_live_ranges *r) {
    lilac_arena_destroy(r->arena);
}

uint64_t lilac_live_most(const uint64_t *numbers, uint32_t from, uint32_t to) {
    uint64_t found = 0;
    for (uint32_t place = from; place < to; place++) {
        found = max_u64(found, numbers[place]);
    }
    return found;
}

void lilac_live_add(uint64_t *numbers, uint32_t from, uint32_t to, uint64_t number) {
    for (uint32_t place = from; place < to; place++) {
        numbers[place] += number;
    }
}

uint64_t lilac_live_bytes_allowed(const lilac_live_ranges *r, const lilac_target *target) {
    const uint64_t words = lilac_live_most(r->words, 0, r->count) + LILAC_ENGINE_OTHER_REGISTERS;
    const lilac_block_demand demand = {.warps = target->num_warps,
                                       .registers = (uint32_t)min_u64(words, LILAC_MOST_REGISTERS)};
    const uint32_t blocks = max_u32(lilac_resident_blocks(target->arch, &demand), 1);
    return max_u64(lilac_live_most(r->bytes, 0, r->count),
                   lilac_shared_for_blocks(target->arch, blocks) / 8 * 7);
}
