/* kernel: restricts a module to one kernel and the functions that it calls, directly or not. */
#include "target.h"

#include <string.h>

static lilac_tile_function *find_function(const lilac_tile_module *module, const char *name) {
    lilac_tile_function *function = module->functions;
    while (function != NULL && strcmp(function->name, name) != 0) {
        function = function->next;
    }
    return function;
}

static bool is_kernel(const lilac_tile_function *function) {
    return function->is_public && function->body != NULL;
}

/* The functions that the kernel needs, each once. */
typedef struct reached_functions {
    const lilac_tile_module *module;
    lilac_tile_function **list;
    uint32_t count;
} reached_functions;

static bool has(const reached_functions *reached, const lilac_tile_function *function) {
    for (uint32_t i = 0; i < reached->count; i++) {
        if (reached->list[i] == function) {
            return true;
        }
    }
    return false;
}

static void add_callee(void *data, lilac_tile_op *op) {
    reached_functions *reached = data;
    const lilac_tile_attribute *callee = lilac_tile_find(&op->attributes, "callee");
    if (op->code != LILAC_TILE_OP_TT_CALL || callee == NULL) {
        return;
    }
    lilac_tile_function *function = find_function(reached->module, callee->text);
    if (function != NULL && !has(reached, function)) {
        reached->list[reached->count++] = function;
    }
}

static void refuse_kernel(const lilac_tile_module *module, uint32_t source, const char *name) {
    lilac_error(module->context, (lilac_position){source, 0}, 0, "unknown-kernel",
                "this module has no kernel '%s'", name);
    for (const lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (is_kernel(f)) {
            lilac_note(module->context, f->position, f->location, "kernel '%s' is here", f->name);
        }
    }
}

bool lilac_kernel_select(lilac_tile_module *module, uint32_t source, const char *name) {
    lilac_tile_function *kernel = find_function(module, name);
    if (kernel == NULL || !is_kernel(kernel)) {
        refuse_kernel(module, source, name);
        return false;
    }
    uint32_t count = 0;
    for (const lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        count++;
    }
    reached_functions reached = {
        .module = module,
        .list = lilac_arena_array(module->arena, lilac_tile_function *, count),
        .count = 1,
    };
    reached.list[0] = kernel;
    for (uint32_t i = 0; i < reached.count; i++) {
        if (reached.list[i]->body != NULL) {
            lilac_tile_walk(reached.list[i]->body, add_callee, &reached);
        }
    }
    lilac_tile_function **link = &module->functions;
    while (*link != NULL) {
        if (has(&reached, *link)) {
            (*link)->is_public = *link == kernel;
            link = &(*link)->next;
        } else {
            *link = (*link)->next;
        }
    }
    return true;
}
