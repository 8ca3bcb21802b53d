/* Printing locations. Each distinct one is numbered at its first use and defined behind the module,
 * as MLIR does for most: loc(#loc3) … #loc3 = loc("kernels.py":17:16). read_locations.c reads
 * them. */
#include "internal.h"

#include <string.h>

/* "#loc3", numbering it when it is new. */
static void print_location_name(tile_printer *printer, lilac_location location) {
    const lilac_location_info *key = lilac_location_look(printer->module->context, location);
    if (key->kind == LILAC_LOCATION_UNKNOWN) {
        lilac_text_puts(printer->out, "unknown");
        return;
    }
    void **number = tile_table_at(&printer->location_numbers, key);
    if (!*number) {
        if (printer->numbered_count == printer->numbered_capacity) {
            printer->numbered_capacity =
                printer->numbered_capacity ? printer->numbered_capacity * 2 : 64;
            printer->numbered = lilac_heap_grow(printer->numbered, sizeof *printer->numbered *
                                                                       printer->numbered_capacity);
        }
        printer->numbered[printer->numbered_count++] = location;
        *number = (void *)(uintptr_t)printer->numbered_count;
    }
    lilac_text_puts(printer->out, "#loc");
    lilac_text_unsigned(printer->out, (uint64_t)(uintptr_t)*number);
}

void tile_print_location(tile_printer *printer, lilac_location location) {
    if (!printer->locations) {
        return;
    }
    lilac_text_puts(printer->out, " loc(");
    print_location_name(printer, location);
    lilac_text_char(printer->out, ')');
}

static void print_location_definition(tile_printer *printer, lilac_location location) {
    const lilac_location_info *info = lilac_location_look(printer->module->context, location);
    lilac_text *out = printer->out;
    switch (info->kind) {
    case LILAC_LOCATION_UNKNOWN:
    case LILAC_LOCATION_TEXT:
        lilac_text_puts(out, "unknown");
        return;
    case LILAC_LOCATION_FILE:
        lilac_text_printf(out, "\"%s\":%u:%u", info->name, info->line, info->column);
        return;
    case LILAC_LOCATION_NAME:
        lilac_text_printf(out, "\"%s\"", info->name);
        if (lilac_location_look(printer->module->context, info->a)->kind ==
            LILAC_LOCATION_UNKNOWN) {
            return;
        }
        lilac_text_char(out, '(');
        print_location_name(printer, info->a);
        lilac_text_char(out, ')');
        return;
    case LILAC_LOCATION_CALLSITE:
        lilac_text_puts(out, "callsite(");
        print_location_name(printer, info->a);
        lilac_text_puts(out, " at ");
        print_location_name(printer, info->b);
        lilac_text_char(out, ')');
        return;
    case LILAC_LOCATION_FUSED:
        lilac_text_puts(out, "fused[");
        for (uint32_t i = 0; i < info->count; i++) {
            if (i) {
                lilac_text_puts(out, ", ");
            }
            print_location_name(printer, info->list[i]);
        }
        lilac_text_char(out, ']');
        return;
    }
}

static void print_location_after_parts(tile_printer *printer, bool *is_printed,
                                       lilac_location location);

/* The definitions of the locations that a location names. */
static void print_location_parts(tile_printer *printer, bool *is_printed,
                                 const lilac_location_info *info) {
    if (info->kind == LILAC_LOCATION_NAME || info->kind == LILAC_LOCATION_CALLSITE) {
        print_location_after_parts(printer, is_printed, info->a);
    }
    if (info->kind == LILAC_LOCATION_CALLSITE) {
        print_location_after_parts(printer, is_printed, info->b);
    }
    for (uint32_t i = 0; info->kind == LILAC_LOCATION_FUSED && i < info->count; i++) {
        print_location_after_parts(printer, is_printed, info->list[i]);
    }
}

/* MLIR requires that a definition names only locations that are defined above it. The recursion is
 * as deep as locations are nested, which the reader limits. */
static void print_location_after_parts(tile_printer *printer, bool *is_printed,
                                       lilac_location location) {
    const lilac_location_info *info = lilac_location_look(printer->module->context, location);
    const uintptr_t number = (uintptr_t)tile_table_get(&printer->location_numbers, info);
    if (number == 0 || is_printed[number - 1]) {
        return;
    }
    is_printed[number - 1] = true;
    print_location_parts(printer, is_printed, info);
    lilac_text_printf(printer->out, "#loc%u = loc(", (unsigned)number);
    print_location_definition(printer, location);
    lilac_text_puts(printer->out, ")\n");
}

/* Printing a definition numbers the locations that it names, so the definitions are printed twice:
 * first into a text that is dropped. */
void tile_print_location_definitions(tile_printer *printer) {
    lilac_text *out = printer->out, numbering = {0};
    printer->out = &numbering;
    for (uint32_t i = 0; i < printer->numbered_count; i++) {
        print_location_definition(printer, printer->numbered[i]);
        lilac_text_reset(&numbering);
    }
    printer->out = out;
    lilac_text_clear(&numbering);
    bool *is_printed = lilac_heap_grow(NULL, printer->numbered_count + 1);
    memset(is_printed, 0, printer->numbered_count + 1);
    for (uint32_t i = 0; i < printer->numbered_count; i++) {
        print_location_after_parts(printer, is_printed, printer->numbered[i]);
    }
    lilac_heap_free(is_printed);
}
