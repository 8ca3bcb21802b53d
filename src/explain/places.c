/* Where an operation is: in the user's program, and in the text that was compiled. */
#include "internal.h"

#include <string.h>

bool explain_input(const lilac_explanation *e, const lilac_tile_op *op, uint32_t *line,
                   uint32_t *column) {
    const lilac_position position = lilac_tile_position(op);
    if (position.source != e->source) {
        return false;
    }
    lilac_position_resolve(e->context, position, line, column);
    return true;
}

bool explain_place(const lilac_explanation *e, const lilac_tile_op *op, uint32_t *file,
                   uint32_t *line, uint32_t *column) {
    lilac_name name;
    if (!lilac_location_file(e->context, op->location, &name, line, column)) {
        return false;
    }
    for (uint32_t f = 1; f < e->file_count; f++) {
        if (e->files[f].name == name) {
            *file = f;
            return true;
        }
    }
    return false;
}

static void split_lines(lilac_explanation *e, explain_file *file) {
    const char *text = lilac_text_get(&file->text);
    uint32_t count = 0;
    for (const char *c = text; *c != '\0'; c = strchr(c, '\n') + 1) {
        count++;
        if (strchr(c, '\n') == NULL) {
            break;
        }
    }
    file->lines = lilac_arena_array(e->arena, const char *, count + 1);
    file->count = count;
    for (uint32_t i = 0; i < count; i++) {
        file->lines[i] = text;
        text = i + 1 < count ? strchr(text, '\n') + 1 : text;
    }
}

void explain_find_files(lilac_explanation *e) {
    size_t length;
    const char *bytes = lilac_source_bytes(e->context, e->source, &length);
    e->files = lilac_arena_array(e->arena, explain_file, e->count + 2);
    e->files[0].name = lilac_source_name(e->context, e->source);
    e->file_count = 1;
    lilac_explain_add_text(e, 0, bytes, length);
    for (uint32_t i = 0; i < e->count; i++) {
        lilac_name name;
        uint32_t file, line, column;
        const lilac_tile_op *op = e->operations[i].op;
        if (!explain_place(e, op, &file, &line, &column) &&
            lilac_location_file(e->context, op->location, &name, &line, &column)) {
            e->files[e->file_count++].name = name;
        }
    }
}

void explain_clear_files(lilac_explanation *e) {
    for (uint32_t f = 0; f < e->file_count; f++) {
        lilac_text_clear(&e->files[f].text);
    }
}

const char *lilac_explain_file(const lilac_explanation *e, uint32_t index) {
    return index < e->file_count ? e->files[index].name : NULL;
}

void lilac_explain_add_text(lilac_explanation *e, uint32_t index, const char *bytes,
                            size_t length) {
    explain_file *file = &e->files[index];
    lilac_text_reset(&file->text);
    lilac_text_put(&file->text, bytes, length);
    split_lines(e, file);
}
