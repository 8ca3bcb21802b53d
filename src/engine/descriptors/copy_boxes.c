/* copy_boxes: the loads of a tensor descriptor's blocks that pipeline_loops has left become tensor
 * copies, and so do its stores (store_boxes.c). The operations that make descriptors make tensor maps
 * (make_maps.c), and the parts of the others leave the function.
 *
 *     %t = lilac.tensor_box %d[%y, %x]               %bar = ttg.local_alloc            one mbarrier
 *     %a = tt.load %pointers, %mask, %zero, %t       ttng.init_barrier %bar, 1
 *                                              →     %m = ttg.local_alloc
 *                                                    ttng.barrier_expect %bar, bytes
 *                                                    ttng.async_tma_copy_global_to_local %d[%y, %x] %m, %bar
 *                                                    ttng.wait_barrier %bar, 0
 *                                                    %a = ttg.local_load %m
 *
 * Earlier passes need the pointers and the mask of such a load, which describe the block in global
 * memory. Nothing computes them any more. */
#include "descriptors/boxes.h"
#include "descriptors/descriptors.h"
#include "descriptors/make_maps.h"
#include "descriptors/store_boxes.h"
#include "products/block_demand.h"

#include <lilac/tile_loops.h>

#include <string.h>

/* Has expand_descriptors put this parameter in front of the parts of its descriptor? Does a tensor
 * copy execute this store? */
static bool is_marked(const lilac_tile_attributes *attributes) {
    return lilac_tile_find(attributes, "lilac.tensor_map") != NULL;
}

/* What the pass replaces in a function, in the order of the program. */
typedef struct replaced {
    lilac_tile_op **loads, **stores, **makers; /* NULL: they are counted only */
    uint32_t load_count, store_count, maker_count;
} replaced;

/* Replaces the result of the load by what is in memory: a tensor of this type, which in a cluster
 * may have other blocks than the result. */
static void replace_uses(const lilac_emitter *e, lilac_tile_op *load, const lilac_tile_type *tensor,
                         lilac_tile_value *memory) {
    lilac_tile_value *result = &load->results[0];
    for (const lilac_tile_use *use = result->uses, *next; use != NULL && tensor != result->type;
         use = next) {
        next = use->next;
        lilac_tile_op *op = use->op;
        if (op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT &&
            lilac_layout_same_blocks(op->results[0].type->layout, tensor->layout)) {
            lilac_tile_replace_uses(
                &op->results[0],
                lilac_emit_unary(e, LILAC_TILE_OP_TTG_LOCAL_LOAD, op->results[0].type, memory));
            lilac_tile_remove(op);
        }
    }
    if (result->uses == NULL) {
        return;
    }
    lilac_tile_value *loaded = lilac_emit_unary(e, LILAC_TILE_OP_TTG_LOCAL_LOAD, tensor, memory);
    loaded->name = result->name;
    if (tensor != result->type) {
        loaded = lilac_emit_unary(e, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, result->type, loaded);
    }
    lilac_tile_replace_uses(result, loaded);
}

static void copy(lilac_tile_module *module, lilac_tile_op *load, lilac_tile_value *box,
                 const lilac_target *target) {
    const lilac_emitter e = {module, load};
    const lilac_tile_type *tensor = lilac_box_loaded(module, load);
    const lilac_tile_type *type =
        lilac_box_memory(module, tensor, box->op->operands[0].value->type);
    const lilac_tile_type *i1 = lilac_tile_scalar(module, LILAC_I1),
                          *i32 = lilac_tile_scalar(module, LILAC_I32);
    lilac_tile_value *memory =
        lilac_emit(&e, LILAC_TILE_OP_TTG_LOCAL_ALLOC, type, 0, NULL)->results;
    lilac_tile_value *barriers = lilac_box_make_barriers(&e, target->num_ctas, 1, 1);
    lilac_tile_value *zero = lilac_emit_integer(&e, i32, 0), *yes = lilac_emit_integer(&e, i1, 1);
    lilac_tile_value *barrier = lilac_box_barrier(&e, barriers, zero);
    (void)lilac_box_expect(&e, barrier, lilac_engine_bytes(type), yes);
    (void)lilac_box_start(&e, box, memory, barrier, yes);
    lilac_box_wait(&e, barrier, zero);
    replace_uses(&e, load, tensor, memory);
    lilac_box_remove_barriers(&e, barriers, 1);
    (void)lilac_emit(&e, LILAC_TILE_OP_TTG_LOCAL_DEALLOC, NULL, 1, &memory);
    lilac_tile_remove(load);
}

static void add(lilac_tile_op **list, uint32_t *count, lilac_tile_op *op) {
    if (list != NULL) {
        list[*count] = op;
    }
    ++*count;
}

static void list_op(void *data, lilac_tile_op *op) {
    replaced *r = data;
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
        if (lilac_box_of(op) != NULL) {
            add(r->loads, &r->load_count, op);
        }
        break;
    case LILAC_TILE_OP_TT_DESCRIPTOR_STORE:
    case LILAC_TILE_OP_TT_DESCRIPTOR_REDUCE:
        if (is_marked(&op->attributes)) {
            add(r->stores, &r->store_count, op);
        }
        break;
    case LILAC_TILE_OP_TT_MAKE_TENSOR_DESCRIPTOR:
        add(r->makers, &r->maker_count, op);
        break;
    default:
        break;
    }
}

static void list_ops(replaced *r, lilac_arena *arena, const lilac_tile_function *f) {
    *r = (replaced){0};
    lilac_tile_walk(f->body, list_op, r);
    r->loads = lilac_arena_array(arena, lilac_tile_op *, r->load_count + 1);
    r->stores = lilac_arena_array(arena, lilac_tile_op *, r->store_count + 1);
    r->makers = lilac_arena_array(arena, lilac_tile_op *, r->maker_count + 1);
    r->load_count = r->store_count = r->maker_count = 0;
    lilac_tile_walk(f->body, list_op, r);
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

static void remove_mark(lilac_tile_attributes *attributes) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < attributes->count; i++) {
        if (strcmp(attributes->list[i].name, "lilac.tensor_map") != 0) {
            attributes->list[kept++] = attributes->list[i];
        }
    }
    attributes->count = kept;
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
            remove_mark(&f->parameter_attributes[kept]);
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

static bool copy_function(lilac_tile_function *f, lilac_arena *arena, const lilac_target *target) {
    replaced r;
    list_ops(&r, arena, f);
    const bool maps = f->parameter_attributes != NULL && has_maps(f);
    if (!maps && r.load_count == 0 && r.store_count == 0) {
        return false;
    }
    for (uint32_t i = 0; i < r.load_count; i++) {
        copy(f->module, r.loads[i], lilac_box_of(r.loads[i]), target);
    }
    lilac_store_boxes(f, r.stores, r.store_count, target);
    for (uint32_t i = 0; i < r.maker_count; i++) {
        lilac_make_map(f->module, r.makers[i]);
    }
    lilac_engine_remove_unused_phis(f->module, f->body);
    remove_unused(f->body);
    if (maps) {
        remove_parts(f);
    }
    lilac_tile_number(f);
    return true;
}

bool lilac_engine_copy_boxes(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    lilac_arena *arena = lilac_arena_create();
    *changed = false;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        *changed |= f->body != NULL && copy_function(f, arena, target);
    }
    lilac_arena_destroy(arena);
    return true;
}
