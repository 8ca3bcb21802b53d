/* Tile IR from arbitrary bytes: the reader must end with a module or diagnostics. What it reads and
 * the verifier accepts is printed and read back, with and without locations, to the same text; what
 * the verifier refuses can still be printed. */
#include <lilac/tile.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prints, reads back, prints again. The first text may rename what clashes; it has no second form.
 */
static void round_trip(lilac_context *context, const lilac_tile_module *module, bool locations) {
    lilac_text first = {0}, second = {0};
    lilac_tile_print(&first, module, locations);
    uint32_t source = lilac_source_add(context, "printed", first.bytes, first.length);
    lilac_tile_module *again = lilac_tile_read(context, source);
    if (!again || !lilac_tile_verify(again, false)) {
        abort();
    }
    lilac_tile_print(&second, again, locations);
    if (strcmp(lilac_text_get(&first), lilac_text_get(&second)) != 0) {
        abort();
    }
    lilac_tile_module_destroy(again);
    lilac_text_clear(&first);
    lilac_text_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "input", (const char *)data, size);
    lilac_tile_module *module = lilac_tile_read(context, source);
    if (!module) {
        if (lilac_error_count(context) == 0) {
            abort();
        }
    } else if (lilac_tile_verify(module, false)) {
        round_trip(context, module, false);
        round_trip(context, module, true);
    } else {
        if (lilac_error_count(context) == 0) {
            abort();
        }
        lilac_text text = {0};
        lilac_tile_print(&text, module, true);
        lilac_text_clear(&text);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    return 0;
}
