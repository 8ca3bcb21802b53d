/* access: the accesses of tile operations to global memory, in the form that the component `plan`
 * reads.
 *
 * The engine compares the plans of an access in several layouts. The lowering executes the plan of
 * the chosen layout. Both read the operation here. */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <string.h>

/* The largest number of elements that one atomic instruction accesses. sm_90 and newer devices have
 * vector instructions for additions of floats. Older ones add a pair of 16-bit floats as a word. */
static uint32_t most_elements(const lilac_tile_op *op, const lilac_arch *arch) {
    lilac_name kind = op->code == LILAC_TILE_OP_TT_ATOMIC_RMW
                          ? lilac_tile_find_text(&op->attributes, "atomic_rmw_op")
                          : NULL;
    if (kind == NULL || strcmp(kind, "fadd") != 0) {
        return 1;
    }
    switch (lilac_tile_element(lilac_tile_operand(op, 1)->type)->scalar) {
    case LILAC_F32:
        return arch->capability >= 90 ? 4 : 1;
    case LILAC_F16:
    case LILAC_BF16:
        return arch->capability >= 90 ? 8 : 2;
    default:
        return 1;
    }
}

void lilac_axis_access_facts(lilac_plan_global_facts *result, const lilac_axis_facts *facts,
                             const lilac_tile_type *pointers) {
    const bool tensor = pointers->kind == LILAC_TILE_TENSOR;
    *result =
        (lilac_plan_global_facts){.rank = tensor ? pointers->rank : 0,
                                  .shape = pointers->shape,
                                  .contiguity = facts->contiguity,
                                  .divisibility = facts->divisibility,
                                  .stride = facts->stride,
                                  .stride_known = facts->stride_known,
                                  .stride_typical = facts->stride_typical,
                                  .origin = max_i64(facts->origin, 1),
                                  .same_pointer = lilac_axis_same_coordinates(facts, pointers)};
}

void lilac_engine_access(lilac_plan_global *result, const lilac_tile_op *op,
                         const lilac_axis_analysis *analysis, const lilac_arch *arch) {
    const lilac_tile_value *pointer = lilac_tile_operand(op, 0), *mask = NULL;
    lilac_plan_global_kind kind = LILAC_PLAN_ATOMIC;
    uint32_t most = 0;
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
        kind = LILAC_PLAN_LOAD;
        mask = lilac_tile_operand(op, 1);
        break;
    case LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL:
        kind = LILAC_PLAN_COPY;
        mask = lilac_tile_operand(op, 2);
        break;
    case LILAC_TILE_OP_TT_STORE:
        kind = LILAC_PLAN_STORE;
        mask = lilac_tile_operand(op, 2);
        break;
    case LILAC_TILE_OP_TT_ATOMIC_RMW:
        mask = lilac_tile_operand(op, 2);
        most = most_elements(op, arch);
        break;
    default: /* tt.atomic_cas has no mask */
        most = most_elements(op, arch);
        break;
    }
    lilac_plan_global_facts facts;
    lilac_axis_access_facts(&facts, lilac_axis_facts_of(analysis, pointer), pointer->type);
    facts.constancy = mask != NULL ? lilac_axis_facts_of(analysis, mask)->constancy : NULL;
    if (kind == LILAC_PLAN_LOAD) {
        const lilac_tile_value *loaded = &op->results[0];
        facts.same_value =
            lilac_axis_same_coordinates(lilac_axis_facts_of(analysis, loaded), loaded->type);
    }
    lilac_plan_global_init(result, kind, (uint32_t)lilac_axis_unit(pointer->type), most, &facts,
                           arch);
}

/* The type whose layout the plan of an access has; NULL: another operation. */
static const lilac_tile_type *accessed_type(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
        return op->results[0].type;
    case LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL:
    case LILAC_TILE_OP_TT_STORE:
    case LILAC_TILE_OP_TT_ATOMIC_RMW:
    case LILAC_TILE_OP_TT_ATOMIC_CAS:
        return lilac_tile_operand(op, 0)->type;
    default:
        return NULL;
    }
}

void lilac_engine_plan_access(lilac_plan_global_access *result, const lilac_tile_op *op,
                              const lilac_axis_analysis *analysis, const lilac_target *target) {
    const bool load = op->code == LILAC_TILE_OP_TT_LOAD;
    const lilac_tile_type *type = accessed_type(op);
    const bool tensor = lilac_tile_is_tensor(type);
    const int64_t idle =
        load && tensor ? lilac_tile_find_integer(&op->attributes, "lilac.idle", 0) : 0;
    lilac_plan_global global;
    lilac_engine_access(&global, op, analysis, target->arch);
    lilac_plan_global_access_init(result, &global, tensor ? type->layout : NULL, (uint32_t)idle,
                                  target);
}

/* ---- what a pointer is computed from ----------------------------------------------------- */

const lilac_tile_value *lilac_engine_pointer_root(const lilac_tile_value *pointer) {
    for (uint32_t depth = 0; depth < 64; depth++) {
        const lilac_tile_op *op = pointer->op;
        if (op == NULL) {
            const lilac_tile_op *owner =
                pointer->block != NULL ? pointer->block->parent->parent : NULL;
            if (owner == NULL) {
                return pointer;
            }
            if (owner->code != LILAC_TILE_OP_SCF_FOR || pointer->index == 0) {
                return NULL;
            }
            pointer = owner->operands[2 + pointer->index].value; /* its initial value */
            continue;
        }
        switch (op->code) {
        case LILAC_TILE_OP_TT_ADDPTR:
        case LILAC_TILE_OP_TT_SPLAT:
        case LILAC_TILE_OP_TT_BROADCAST:
        case LILAC_TILE_OP_TT_EXPAND_DIMS:
        case LILAC_TILE_OP_TT_RESHAPE:
        case LILAC_TILE_OP_TT_TRANS:
        case LILAC_TILE_OP_TT_BITCAST:
        case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
        case LILAC_TILE_OP_TT_MAKE_TENSOR_DESCRIPTOR:
            pointer = op->operands[0].value;
            break;
        default:
            return NULL;
        }
    }
    return NULL;
}

/* ---- report ------------------------------------------------------------------------------ */

typedef struct access_list {
    const lilac_target *target;
    const lilac_axis_analysis *analysis;
    lilac_access *accesses; /* NULL: the accesses are counted only */
    uint32_t count;
    uint64_t cycles;
} access_list;

static bool has_plan(const lilac_tile_op *op) {
    const lilac_tile_type *type = accessed_type(op);
    return type != NULL && (type->layout != NULL || !lilac_tile_is_tensor(type));
}

static void list_accesses(access_list *list, const lilac_tile_region *region, uint32_t loops) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            const bool loop = lilac_tile_is_loop(op);
            if (has_plan(op) && list->accesses != NULL) {
                lilac_access *access = &list->accesses[list->count];
                *access = (lilac_access){.op = op, .loops = loops};
                lilac_engine_plan_access(&access->plan, op, list->analysis, list->target);
                list->cycles += access->plan.cycles;
            }
            list->count += has_plan(op);
            for (uint32_t r = 0; r < op->region_count; r++) {
                list_accesses(list, op->regions[r], loops + loop);
            }
        }
    }
}

void lilac_engine_accesses(lilac_access_report *result, lilac_arena *arena,
                           lilac_tile_function *function, const lilac_target *target) {
    access_list list = {.target = target};
    *result = (lilac_access_report){.count = 0};
    if (function->body == NULL) {
        return;
    }
    list_accesses(&list, function->body, 0);
    if (list.count == 0) {
        return;
    }
    lilac_axis_analysis analysis;
    lilac_engine_axis_facts(&analysis, arena, function);
    list.analysis = &analysis;
    list.accesses = lilac_arena_array(arena, lilac_access, list.count);
    list.count = 0;
    list_accesses(&list, function->body, 0);
    *result = (lilac_access_report){list.count, list.accesses, list.cycles};
}

/* ---- writes ---------------------------------------------------------------------------------- */

typedef struct write_search {
    uint64_t parameters;
    bool found; /* the kernel writes there, or inline assembly may order accesses */
} write_search;

static void find_write(void *data, lilac_tile_op *op) {
    write_search *w = data;
    uint32_t count;
    const lilac_tile_effect *effects = lilac_tile_effects(op->code, &count);
    for (uint32_t i = 0; i < count; i++) {
        w->found |= (effects[i].resources & LILAC_TILE_TEXT) != 0;
        if ((effects[i].resources & LILAC_TILE_GLOBAL_MEMORY) == 0 ||
            (effects[i].access & LILAC_TILE_WRITES) == 0) {
            continue;
        }
        const lilac_tile_value *root =
            op->operand_count > 0 ? lilac_engine_pointer_root(op->operands[0].value) : NULL;
        w->found |= root == NULL || root->index >= 64 || ((w->parameters >> root->index) & 1) != 0;
    }
}

bool lilac_engine_is_only_read(const lilac_tile_function *function, uint64_t parameters) {
    write_search w = {.parameters = parameters};
    lilac_tile_walk(function->body, find_write, &w);
    return !w.found;
}
