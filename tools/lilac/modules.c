/* Modules on a command line: the types, and the pairs of types, of a TTGIR file. */
#include "types.h"

#include <string.h>

bool module_at(const char *text, size_t length) {
    size_t start = 0;
    while (start < length) {
        const char *newline = memchr(text + start, '\n', length - start);
        const size_t end = newline != NULL ? (size_t)(newline - text) : length;
        while (start < end && (text[start] == ' ' || text[start] == '\t')) {
            start++;
        }
        const char *line = text + start;
        const size_t left = end - start;
        if ((left >= 6 && memcmp(line, "module", 6) == 0) ||
            (left >= 7 && memcmp(line, "tt.func", 7) == 0)) {
            return true;
        }
        start = end + 1;
    }
    return false;
}

typedef struct op_visit {
    void (*visit)(void *data, const lilac_tile_op *op);
    void *data;
} op_visit;

static void visit_op(void *data, lilac_tile_op *op) {
    const op_visit *visit = data;
    visit->visit(visit->data, op);
}

bool module_each_op(lilac_context *context, uint32_t source,
                    void (*visit)(void *data, const lilac_tile_op *op), void *data) {
    lilac_tile_module *module = lilac_tile_read(context, source);
    if (module == NULL) {
        return false;
    }
    for (lilac_tile_function *function = module->functions; function; function = function->next) {
        if (function->body != NULL) {
            lilac_tile_walk(function->body, visit_op, &(op_visit){visit, data});
        }
    }
    lilac_tile_module_destroy(module);
    return true;
}
