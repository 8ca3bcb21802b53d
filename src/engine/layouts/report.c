/* report: the conversions that remain in a function, and the price of each of them.
 *
 * Every ttg.convert_layout is planned as the lowering plans it. The operation that defines the
 * tensor and the first user of the converted tensor show why it is needed.
 */
#include "internal.h"

#include <lilac/tile_loops.h>

typedef struct conversion_list {
    const lilac_target *target;
    lilac_conversion *conversions;
    uint32_t count;
    uint64_t cycles;
} conversion_list;

static void describe(conversion_list *list, const lilac_tile_op *op, uint32_t loops) {
    lilac_conversion *conversion = &list->conversions[list->count];
    const lilac_tile_value *value = op->operands[0].value;
    const lilac_tile_use *use = op->results[0].uses;
    lilac_plan_conversion plan;
    lilac_reason why;
    list->count++;
    *conversion = (lilac_conversion){.op = op,
                                     .source = value->op,
                                     .user = use != NULL ? use->op : NULL,
                                     .from = value->type->layout,
                                     .to = op->results[0].type->layout,
                                     .element_bits = lilac_tile_element_bits(value->type),
                                     .loops = loops};
    for (; use != NULL; use = use->next) {
        if (use->op->position.offset < conversion->user->position.offset) {
            conversion->user = use->op;
        }
    }
    const lilac_plan_options options = {.strategy = lilac_engine_strategy(op)};
    uint32_t bits = conversion->element_bits < 8 ? 8 : conversion->element_bits;
    if (conversion->from == NULL || conversion->to == NULL ||
        !lilac_plan_conversion_init(&plan, conversion->from, conversion->to, bits, &options,
                                    list->target->arch, &why)) {
        return;
    }
    conversion->kind = plan.kind;
    conversion->price = plan.price;
    list->cycles += plan.price.cycles;
}

/* Counts the conversions while the list is NULL; then describes them. */
static void visit(conversion_list *list, const lilac_tile_region *region, uint32_t loops) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            bool loop = lilac_tile_is_loop(op);
            if (op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT) {
                if (list->conversions != NULL) {
                    describe(list, op, loops);
                } else {
                    list->count++;
                }
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit(list, op->regions[r], loops + loop);
            }
        }
    }
}

void lilac_engine_conversions(lilac_conversion_report *result, lilac_arena *arena,
                              const lilac_tile_function *function, const lilac_target *target) {
    conversion_list list = {.target = target};
    *result = (lilac_conversion_report){.count = 0};
    if (function->body == NULL) {
        return;
    }
    visit(&list, function->body, 0);
    if (list.count == 0) {
        return;
    }
    list.conversions = lilac_arena_array(arena, lilac_conversion, list.count);
    list.count = 0;
    visit(&list, function->body, 0);
    *result = (lilac_conversion_report){list.count, list.conversions, list.cycles};
}
