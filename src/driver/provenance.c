/* provenance: which tile operation a SIMT instruction was lowered from.
 *
 *   loc("kernel.py":7:3)  ──▶  loc("operation 12"(loc("kernel.py":7:3)))
 *
 * A location is the one property of an operation that every instruction of its lowering has, and
 * that the passes on SIMT IR keep. The number is the line of the location that wraps the
 * operation's own. MLIR's named locations have no line, so it is 0 in those of the user's program.
 */
#include "provenance.h"

typedef struct numbering {
    lilac_context *context;
    lilac_name name;
    uint32_t count;
} numbering;

static void number(void *data, lilac_tile_op *op) {
    numbering *n = data;
    const lilac_location inner = op->location != 0
                                     ? op->location
                                     : lilac_location_of_text(n->context, lilac_tile_position(op));
    n->count++;
    op->location = lilac_location_get(
        n->context,
        &(lilac_location_info){
            .kind = LILAC_LOCATION_NAME, .name = n->name, .line = n->count, .a = inner});
}

void lilac_number_operations(lilac_tile_module *module) {
    numbering n = {.context = module->context,
                   .name = lilac_intern_string(module->context, "operation")};
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        n.count = 0;
        if (f->body != NULL) {
            lilac_tile_walk(f->body, number, &n);
        }
    }
}

uint32_t lilac_operation_number(const lilac_context *context, lilac_location location) {
    const lilac_location_info *info = lilac_location_look(context, location);
    return info->kind == LILAC_LOCATION_NAME ? info->line : 0;
}
