/* The whole compiler on arbitrary bytes: it ends with PTX or with diagnostics, and the IR verifies
 * after every pass. Modules that would take seconds are passed over: registers of a thread are
 * values of SIMT IR, so a tensor of very many elements for few threads is a very long program.
 *
 * The first line may have options: `//!` and letters, m (launch_maps), s (split_sums), b (one_block), w (4 warps for 1 and
 * 8 for 2 of them), or after `=` a schedule that is requested of the loops with products. */
#include <lilac/driver.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ELEMENTS = 1 << 13, MOST_OPERATIONS = 200 };

typedef struct survey {
    uint64_t elements, operations;
} survey;

static void look_at(void *data, lilac_tile_op *op) {
    survey *s = data;
    s->operations++;
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        uint64_t elements = (uint64_t)lilac_tile_element_count(type);
        if (elements > s->elements) {
            s->elements = elements;
        }
    }
}

/* Whether a module is small enough to be compiled here. */
static bool is_small(lilac_context *context, uint32_t source) {
    survey s = {0};
    lilac_tile_module *module = lilac_tile_read(context, source);
    for (lilac_tile_function *f = module ? module->functions : NULL; f; f = f->next) {
        if (f->body) {
            lilac_tile_walk(f->body, look_at, &s);
        }
    }
    lilac_tile_module_destroy(module);
    return module && s.elements <= MOST_ELEMENTS && s.operations <= MOST_OPERATIONS;
}

/* Reads the options of the first line. The schedule is written to `request`. */
static void read_options(lilac_options *options, lilac_text *request, const uint8_t *data,
                         size_t size) {
    if (size < 3 || memcmp(data, "//!", 3) != 0) {
        return;
    }
    for (size_t i = 3; i < size && data[i] != '\n'; i++) {
        options->target.launch_maps |= data[i] == 'm' || data[i] == 's';
        options->target.split_sums |= data[i] == 's';
        options->target.one_block |= data[i] == 'b';
        if (data[i] == 'w') {
            options->target.num_warps = options->target.num_warps == 0 ? 4 : 8;
        } else if (data[i] == '=') {
            while (++i < size && data[i] != '\n') {
                lilac_text_char(request, (char)data[i]);
            }
            break;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "input", (const char *)data, size);
    if (is_small(context, source)) {
        lilac_options options;
        lilac_compilation compilation;
        lilac_text request = {0};
        lilac_options_init(&options);
        options.verify = true;
        read_options(&options, &request, data, size);
        const char *schedule = lilac_text_get(&request);
        options.schedules = &schedule;
        options.schedule_count = request.length > 0;
        if (!lilac_compile(&compilation, context, source, &options) &&
            lilac_error_count(context) == 0) {
            abort();
        }
        lilac_compilation_clear(&compilation);
        lilac_text_clear(&request);
    }
    lilac_context_destroy(context);
    return 0;
}
