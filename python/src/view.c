/* Layouts drawn: the library's views, as terminal text, as SVG and as JSON. */
#include "module.h"

#include <lilac/view.h>

#include <string.h>

/* None, or a pair of where to begin and how many. */
static bool read_range(lilac_view_range *range, PyObject *pair) {
    if (pair == Py_None)
        return true;
    unsigned long long first, count;
    if (!PyArg_ParseTuple(pair, "KK", &first, &count))
        return false;
    range->first = first;
    range->count = count;
    return true;
}

static bool read_kind(lilac_view_kind *kind, const char *name) {
    static const char *const names[] = {"cells", "hardware", "matrix"};
    static const lilac_view_kind kinds[] = {LILAC_VIEW_CELLS, LILAC_VIEW_HARDWARE,
                                            LILAC_VIEW_MATRIX};
    for (uint32_t i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0) {
            *kind = kinds[i];
            return true;
        }
    }
    PyErr_Format(layout_error, "there is no view '%s'; views are cells, hardware and matrix", name);
    return false;
}

/* [(interval, padding), …] in elements; at most `capacity`. */
static bool read_paddings(lilac_view_padding *paddings, uint32_t capacity, uint32_t *count,
                          PyObject *list) {
    const Py_ssize_t given = PyList_Size(list);
    if (given < 0)
        return false;
    if (given > (Py_ssize_t)capacity) {
        PyErr_Format(layout_error, "more than %d paddings", (int)capacity);
        return false;
    }
    for (Py_ssize_t i = 0; i < given; i++) {
        unsigned long long interval, padding;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "KK", &interval, &padding))
            return false;
        paddings[i] = (lilac_view_padding){interval, padding};
    }
    *count = (uint32_t)given;
    return true;
}

enum { MAX_PADDINGS = 16 };

/* _view(form, kind, width, colour, colour_by, slices, rows, columns, element_bits, banks,
 * bank_bytes, title, paddings) */
PyObject *layout_view(PyObject *self, PyObject *arguments) {
    const char *form, *kind, *colour_by, *title;
    PyObject *slices, *rows, *columns, *paddings;
    int colour;
    lilac_view_options options;
    lilac_view_padding padding[MAX_PADDINGS];
    memset(&options, 0, sizeof options);
    if (!PyArg_ParseTuple(arguments, "ssIpzOOOIIIzO!", &form, &kind, &options.width, &colour,
                          &colour_by, &slices, &rows, &columns, &options.element_bits,
                          &options.banks, &options.bank_bytes, &title, &PyList_Type, &paddings) ||
        !read_kind(&options.kind, kind) || !read_range(&options.slices, slices) ||
        !read_range(&options.rows, rows) || !read_range(&options.columns, columns) ||
        !read_paddings(padding, MAX_PADDINGS, &options.padding_count, paddings))
        return NULL;
    options.paddings = padding;
    options.colour = colour != 0;
    options.colour_by = colour_by;
    options.title = title;
    lilac_text text = {0};
    lilac_reason why = {""};
    const bool done =
        strcmp(form, "svg") == 0    ? lilac_view_svg(&text, layout_of(self), &options, &why)
        : strcmp(form, "json") == 0 ? lilac_view_json(&text, layout_of(self), &options, &why)
                                    : lilac_view_text(&text, layout_of(self), &options, &why);
    if (done)
        return take_text(&text);
    lilac_text_clear(&text);
    PyErr_SetString(layout_error, why.text);
    return NULL;
}
