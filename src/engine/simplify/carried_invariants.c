/* carried_invariants: phis whose receivers always are one value, and phis without users.
 *
 * A phi is invariant if its sources, other than its own receivers, are one value that is defined
 * outside of the operation. Replacing one phi may make another one invariant (a loop that passes a
 * value on to an inner loop and back), so the walk is repeated until nothing changes. */
#include "descriptors/descriptors.h"

#include <lilac/tile_loops.h>

static bool is_receiver(const lilac_tile_phi *phi, const lilac_tile_value *value) {
    for (uint32_t k = 0; k < phi->receiver_count; k++) {
        if (phi->receivers[k] == value) {
            return true;
        }
    }
    return false;
}

/* The value that all receivers of the phi always are; NULL: none is known. */
static lilac_tile_value *only_source(const lilac_tile_op *op, const lilac_tile_phi *phi) {
    lilac_tile_value *only = NULL;
    for (uint32_t k = 0; k < phi->source_count; k++) {
        lilac_tile_value *value = phi->sources[k]->value;
        if (is_receiver(phi, value)) {
            continue;
        }
        if ((only != NULL && value != only) || lilac_tile_is_inside(value, op)) {
            return NULL;
        }
        only = value;
    }
    return only;
}

static void forward(void *data, lilac_tile_op *op) {
    bool *changed = data;
    for (uint32_t i = 0, count = lilac_tile_phi_count(op); i < count; i++) {
        const lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        lilac_tile_value *only = only_source(op, &phi);
        for (uint32_t k = 0; only != NULL && k < phi.receiver_count; k++) {
            *changed |= phi.receivers[k]->uses != NULL;
            lilac_tile_replace_uses(phi.receivers[k], only);
        }
    }
}

void lilac_engine_forward_invariants(lilac_tile_region *region) {
    for (bool changed = true; changed;) {
        changed = false;
        lilac_tile_walk(region, forward, &changed);
    }
}

typedef struct removal {
    lilac_tile_module *module;
    bool changed;
} removal;

static void remove_unused(void *data, lilac_tile_op *op) {
    removal *r = data;
    const uint32_t count = lilac_tile_phi_count(op);
    bool *removed = lilac_arena_array(r->module->arena, bool, count), any = false;
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        removed[i] = true;
        for (uint32_t k = 0; k < phi.receiver_count; k++) {
            removed[i] = removed[i] && phi.receivers[k]->uses == NULL;
        }
        any = any || removed[i];
    }
    if (any && lilac_tile_remove_phis(r->module, op, removed) == NULL) {
        r->changed = true;
    }
}

void lilac_engine_remove_unused_phis(lilac_tile_module *module, lilac_tile_region *region) {
    for (removal r = {module, true}; r.changed;) {
        r.changed = false;
        lilac_tile_walk(region, remove_unused, &r);
    }
}
