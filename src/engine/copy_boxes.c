/* copy_boxes: the loads of a tensor descriptor's blocks that pipeline_loops has left become tensor
 * copies, and the descriptors' parts leave the function.
 *
 *     %t = lilac.tensor_box %d[%y, %x]               %bar = ttg.local_alloc            one mbarrier
 *     %a = tt.load %pointers, %mask, %zero, %t       ttng.init_barrier %bar, 1
 *                                              →     %m = ttg.local_alloc
 *                                                    ttng.barrier_expect %bar, bytes
 *                                                    ttng.async_tma_copy_global_to_local %d[%y, %x] %m, %bar
 *                                                    ttng.wait_barrier %bar, 0
 *                                                    %a = ttg.local_load %m
 *
 * The pointers and the mask of such a load told earlier passes how the block lies in global memory;
 * nothing computes them any more. */
#include "boxes.h"
#include "descriptors.h"

#include <lilac/tile_loops.h>

typedef struct copying {
    lilac_tile_module *module;
    bool changed;
} copying;

static uint64_t bytes_of(const lilac_tile_type *type) {
    return (uint64_t)lilac_tile_element_count(type) * lilac_tile_element_bits(type) / 8;
}

static void copy(lilac_tile_module *module, lilac_tile_op *load, lilac_tile_value *box) {
    const lilac_emitter e = {module, load};
    const lilac_tile_type *type = lilac_box_memory(module, box);
    const lilac_tile_type *i1 = lilac_tile_scalar(module, LILAC_I1),
                          *i32 = lilac_tile_scalar(module, LILAC_I32);
    lilac_tile_value *memory =
        lilac_emit(&e, LILAC_TILE_OP_TTG_LOCAL_ALLOC, type, 0, NULL)->results;
    lilac_tile_value *barriers = lilac_box_make_barriers(&e, 1, 1);
    lilac_tile_value *zero = lilac_emit_integer(&e, i32, 0), *yes = lilac_emit_integer(&e, i1, 1);
    lilac_tile_value *barrier = lilac_box_barrier(&e, barriers, zero);
    lilac_box_expect(&e, barrier, bytes_of(type), yes);
    lilac_box_start(&e, box, memory, barrier, yes);
    lilac_box_wait(&e, barrier, zero);
    lilac_tile_value *loaded =
        lilac_emit_unary(&e, LILAC_TILE_OP_TTG_LOCAL_LOAD, load->results[0].type, memory);
    loaded->name = load->results[0].name;
    lilac_tile_replace_uses(&load->results[0], loaded);
    lilac_box_remove_barriers(&e, barriers, 1);
    (void)lilac_emit(&e, LILAC_TILE_OP_TTG_LOCAL_DEALLOC, NULL, 1, &memory);
    lilac_tile_remove(load);
}

static void visit(copying *c, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit(c, op->regions[r]);
            }
            lilac_tile_value *box = lilac_box_of(op);
            if (box != NULL) {
                copy(c->module, op, box);
                c->changed = true;
            }
        }
    }
}

/* ---- what nothing computes any more -------------------------------------------------------- */

static bool is_unused(const lilac_tile_op *op) {
    bool unused = op->result_count > 0 && op->region_count == 0 &&
                  (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
    for (uint32_t i = 0; unused && i < op->result_count; i++) {
        unused = op->results[i].uses == NULL;
    }
    return unused;
}

static void remove_unused(lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->last, *previous; op != NULL; op = previous) {
            previous = op->previous;
            for (uint32_t r = 0; r < op->region_count; r++) {
                remove_unused(op->regions[r]);
            }
            if (is_unused(op)) {
                lilac_tile_remove(op);
            }
        }
    }
}

/* Has expand_descriptors put this parameter in front of the parts of its descriptor? */
static bool is_marked(const lilac_tile_attributes *attributes) {
    return lilac_tile_find(attributes, "lilac.tensor_map") != NULL;
}

/* Removes the parts behind each tensor map from the parameters. What still uses one is passed on by
 * a loop that nothing reads. */
static void remove_parts(lilac_tile_function *f) {
    const lilac_emitter e = {f->module, f->body->first->first};
    uint32_t kept = 0, parts = 0;
    for (uint32_t i = 0; i < f->parameter_count; i++) {
        lilac_tile_value *value = f->parameters[i];
        if (parts > 0) {
            parts--;
            if (value->uses != NULL) {
                lilac_tile_replace_uses(
                    value, lilac_emit(&e, LILAC_TILE_OP_UB_POISON, value->type, 0, NULL)->results);
            }
            continue;
        }
        const bool map = is_marked(&f->parameter_attributes[i]);
        parts = map ? 2 * value->type->element->rank + 2 : 0;
        f->parameters[kept] = value;
        f->parameter_attributes[kept] = f->parameter_attributes[i];
        if (map) {
            f->parameter_attributes[kept].count = 0; /* the mark is its only attribute */
        }
        value->index = kept++;
    }
    f->parameter_count = f->body->first->argument_count = kept;
}

static bool has_maps(const lilac_tile_function *f) {
    bool found = false;
    for (uint32_t i = 0; i < f->parameter_count; i++) {
        found |= is_marked(&f->parameter_attributes[i]);
    }
    return found;
}

bool lilac_engine_copy_boxes(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    (void)target;
    copying c = {.module = module};
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->body != NULL && f->parameter_attributes != NULL && has_maps(f)) {
            visit(&c, f->body);
            lilac_engine_remove_unused_phis(module, f->body);
            remove_unused(f->body);
            remove_parts(f);
            lilac_tile_number(f);
            c.changed = true;
        }
    }
    *changed = c.changed;
    return true;
}
