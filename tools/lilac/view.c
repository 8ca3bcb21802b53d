/* lilac view: displays a layout as the cells of its tensor, the slots of the hardware or the bit
 * matrix, as text, SVG or JSON.
 */
#define _DEFAULT_SOURCE /* struct winsize */

#include "types.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef struct view_request {
    lilac_view_options options;
    const char *kind, *colour, *svg, *rows, *columns, *slices;
    type_scope scope;
    bool json;
} view_request;

static int read_kind(const subcommand *command, view_request *request) {
    static const choice kinds[] = {
        {"cells", LILAC_VIEW_CELLS},
        {"hardware", LILAC_VIEW_HARDWARE},
        {"matrix", LILAC_VIEW_MATRIX},
        {0},
    };
    int kind = 0;
    const int status = choice_read(command, "--as", request->kind, kinds, &kind);
    request->options.kind = (lilac_view_kind)kind;
    return status;
}

/* No colour by default where NO_COLOR is set. */
static bool colour_by_default(void) {
    const char *no_colour = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) == 1 && (no_colour == NULL || *no_colour == '\0');
}

static int read_colour(const subcommand *command, view_request *request) {
    enum { NEVER, ALWAYS, AUTO };
    static const choice words[] = {{"auto", AUTO}, {"always", ALWAYS}, {"never", NEVER}, {0}};
    int colour = NEVER;
    const int status = choice_read(command, "--colour", request->colour, words, &colour);
    request->options.colour = colour == ALWAYS || (colour == AUTO && colour_by_default());
    return status;
}

/* The columns of the terminal that standard output is, or 0: the default width. */
static uint32_t terminal_width(void) {
    enum { LEAST = 40, MOST = 400 };
    struct winsize size = {0};
    if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
        size.ws_col < LEAST) {
        return 0;
    }
    return size.ws_col < MOST ? size.ws_col : MOST;
}

/* FIRST:END, where either number may be missing; or one number. */
static int read_range(const subcommand *command, const char *option, const char *string,
                      lilac_view_range *range) {
    if (string == NULL) {
        return -1;
    }
    char text[64];
    const size_t length = strlen(string);
    uint64_t first = 0, end = UINT64_MAX;
    bool good = length != 0 && length < sizeof text;
    if (good) {
        memcpy(text, string, length + 1);
        char *colon = strchr(text, ':');
        if (colon != NULL) {
            *colon = '\0';
            good = (*text == '\0' || read_number(text, UINT64_MAX - 1, &first)) &&
                   (colon[1] == '\0' || read_number(colon + 1, UINT64_MAX, &end));
        } else {
            good = read_number(text, UINT64_MAX - 1, &first);
            end = first + 1;
        }
    }
    if (!good || first >= end) {
        return usage_error(command, "%s takes FIRST:END with FIRST before END, not '%s'", option,
                           string);
    }
    range->first = first;
    range->count = end - first;
    return -1;
}

static int read_request(const subcommand *command, view_request *request) {
    lilac_view_options *options = &request->options;
    int status = read_kind(command, request);
    if (status < 0) {
        status = read_colour(command, request);
    }
    if (status < 0) {
        status = read_range(command, "--rows", request->rows, &options->rows);
    }
    if (status < 0) {
        status = read_range(command, "--columns", request->columns, &options->columns);
    }
    if (status < 0) {
        status = read_range(command, "--slices", request->slices, &options->slices);
    }
    if (status < 0 && request->json && request->svg != NULL) {
        status = usage_error(command, "--json and --svg are two answers; ask for one");
    }
    return status;
}

static bool draw(lilac_text *out, const lilac_layout *layout, const view_request *request,
                 lilac_reason *why) {
    if (request->svg != NULL) {
        return lilac_view_svg(out, layout, &request->options, why);
    }
    if (!request->json) {
        return lilac_view_text(out, layout, &request->options, why);
    }
    if (!lilac_view_json(out, layout, &request->options, why)) {
        return false;
    }
    lilac_text_char(out, '\n');
    return true;
}

static int answer(view_request *request, const char *argument) {
    lilac_context *context = lilac_context_create();
    laid_out_type type;
    lilac_text text;
    lilac_text_init(&text);
    type_scope_enter(&request->scope, context);
    bool good = type_read_argument(context, &request->scope, argument, 1, &type);
    print_diagnostics(context);
    if (good) {
        lilac_reason why;
        request->options.paddings = type.padding;
        request->options.padding_count = type.padding_count;
        if (request->options.element_bits == 0) {
            request->options.element_bits = type.element_bits;
        }
        good = draw(&text, &type.layout, request, &why);
        if (!good) {
            file_error("%s", why.text);
        }
    }
    if (good) {
        good = file_write(request->svg, lilac_text_get(&text), text.length);
    }
    lilac_text_clear(&text);
    lilac_context_destroy(context);
    return good ? STATUS_DONE : STATUS_REFUSED;
}

static int view_run(const subcommand *command, int argc, char **argv) {
    view_request request = {.kind = "cells", .colour = "auto"};
    string_list operands = {0}, types = {0};
    const option_row table[] = {
        {"--as", NULL, OPTION_TEXT, &request.kind, "VIEW",
         "cells: the tensor, and who holds each element (default)\n"
         "hardware: the registers of each lane, or the banks of memory,\n"
         "and the element that each holds\n"
         "matrix: the bits of the inputs against those of the tensor"},
        {"--svg", NULL, OPTION_TEXT, &request.svg, "FILE", "a figure, in place of text"},
        {"--title", NULL, OPTION_TEXT, &request.options.title, "TEXT", "over the figure"},
        {"--json", NULL, OPTION_FLAG, &request.json, NULL, "one JSON value, with every cell"},
        {"--width", NULL, OPTION_NUMBER, &request.options.width, "N",
         "characters a line of text may have (default: the terminal's\nwidth; 100 elsewhere)"},
        TYPE_SCOPE_ROWS(request.scope),
        {"--rows", NULL, OPTION_TEXT, &request.rows, "A:B",
         "rows A up to B, B not included, in place of what fits"},
        {"--columns", NULL, OPTION_TEXT, &request.columns, "A:B", "columns"},
        {"--slices", NULL, OPTION_TEXT, &request.slices, "A:B",
         "slices of a tensor of rank 3 or more"},
        {"--colour", NULL, OPTION_TEXT, &request.colour, "WHEN",
         "auto (on a terminal; the default), always or never"},
        {"--colour-by", NULL, OPTION_TEXT, &request.options.colour_by, "INPUT",
         "register, lane, warp or block"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &operands);
    if (status < 0) {
        status = type_scope_check(command, &request.scope);
    }
    if (status < 0 && !type_scope_take(&request.scope, &operands, &types)) {
        status = STATUS_REFUSED;
    }
    if (status < 0) {
        status = types.count == 0  ? usage_error(command, "which type's layout?")
                 : types.count > 1 ? usage_error(command, "one type at a time")
                                   : read_request(command, &request);
    }
    if (status < 0) {
        if (request.options.width == 0 && request.svg == NULL && !request.json) {
            request.options.width = terminal_width();
        }
        status = answer(&request, types.list[0]);
    }
    strings_clear(&types);
    strings_clear(&operands);
    type_scope_clear(&request.scope);
    return status;
}

const subcommand view_command = {
    .name = "view",
    .usage = "TYPE [--as VIEW] [--svg FILE]",
    .summary = "a layout as a table, a hardware view or a bit matrix",
    .help =
        "Shows the linear layout of a type (as 'lilac layout' takes it), say\n"
        "  'tensor<16x16xf32, #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8],\n"
        "   warpsPerCTA = [2, 1], order = [1, 0]}>>'\n"
        "In a cell r is the register, t the lane (thread), w the warp, b the block; w0,2 lists\n"
        "several that hold the same element, w* means all. What does not fit is left out, and\n"
        "the last line says what.",
    .run = view_run,
};
