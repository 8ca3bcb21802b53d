/* Texts: types and attributes in Triton's spelling, CuTe layouts and memory layouts by name are
 * read, with the library's diagnostics as the exception. */
#include "module.h"

#include <lilac/cute.h>
#include <lilac/encoding.h>
#include <lilac/memory_form.h>

#include <string.h>

/* Raises LayoutError with all the diagnostics as its message and their ids as its `ids`. */
static void raise_diagnostics(lilac_context *context) {
    lilac_text text = {0};
    PyObject *ids = PyList_New(0);
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        lilac_diagnostic_print(&text, context, d, false);
        PyObject *id = PyUnicode_FromString(d->id != NULL ? d->id : "");
        if (id != NULL && ids != NULL)
            PyList_Append(ids, id);
        Py_XDECREF(id);
    }
    while (text.length > 0 && text.bytes[text.length - 1] == '\n')
        text.length--;
    PyObject *message = take_text(&text);
    PyObject *error = message == NULL || ids == NULL || PyErr_Occurred()
                          ? NULL
                          : PyObject_CallFunctionObjArgs(layout_error, message, NULL);
    if (error != NULL && PyObject_SetAttrString(error, "ids", ids) == 0)
        PyErr_SetObject(layout_error, error);
    Py_XDECREF(error);
    Py_XDECREF(message);
    Py_XDECREF(ids);
}

/* A shape for an attribute; rank LILAC_MAX_RANK + 1 says that there is none. */
typedef struct shape_argument {
    uint32_t rank;
    int64_t sizes[LILAC_MAX_RANK];
} shape_argument;

static bool read_shape(shape_argument *shape, PyObject *sequence) {
    uint64_t sizes[LILAC_MAX_RANK];
    shape->rank = LILAC_MAX_RANK + 1;
    if (sequence == Py_None)
        return true;
    if (!read_words(sizes, LILAC_MAX_RANK, &shape->rank, sequence))
        return false;
    for (uint32_t i = 0; i < shape->rank; i++)
        shape->sizes[i] = sizes[i] > INT64_MAX ? INT64_MAX : (int64_t)sizes[i];
    return true;
}

/* All of the text must have been it. */
static bool at_end(lilac_scanner *scanner, const char *what) {
    return scanner->kind == LILAC_TOKEN_END || lilac_scanner_expected(scanner, what);
}

static bool read_type(lilac_scanner *scanner, lilac_layout *layout) {
    if (scanner->kind == LILAC_TOKEN_BANG) {
        lilac_encoding_memdesc memdesc;
        if (!lilac_encoding_read_memdesc(scanner, NULL, &memdesc))
            return false;
        *layout = memdesc.layout;
    } else {
        lilac_encoding_tensor tensor;
        if (!lilac_encoding_read_tensor(scanner, NULL, &tensor))
            return false;
        *layout = tensor.layout;
    }
    return at_end(scanner, "the end of the type");
}

static bool read_attribute(lilac_scanner *scanner, const shape_argument *shape,
                           lilac_layout *layout) {
    const lilac_encoding *encoding = lilac_encoding_read(scanner, NULL);
    return encoding != NULL && at_end(scanner, "the end of the attribute") &&
           lilac_encoding_layout(scanner->context, layout, encoding, shape->rank, shape->sizes);
}

/* What has a reading but no linear layout. */
static bool linear(lilac_scanner *scanner, lilac_position position, bool good,
                   const lilac_reason *why) {
    if (!good)
        lilac_error(scanner->context, position, 0, "no-linear-layout", "%s", why->text);
    return good;
}

static bool read_cute(lilac_scanner *scanner, bool offsets, lilac_layout *layout) {
    const lilac_position position = lilac_scanner_position(scanner);
    lilac_cute cute;
    lilac_reason why = {""};
    if (!lilac_cute_read(scanner, &cute) || !at_end(scanner, "the end of the layout"))
        return false;
    const bool good =
        offsets ? lilac_cute_map(layout, &cute, &why) : lilac_cute_memory(layout, &cute, &why);
    return linear(scanner, position, good, &why);
}

static bool read_memory(lilac_scanner *scanner, bool offsets, lilac_layout *layout) {
    const lilac_position position = lilac_scanner_position(scanner);
    lilac_memory_form form;
    lilac_reason why = {""};
    if (!lilac_memory_form_read(scanner, &form) || !at_end(scanner, "the end of the layout"))
        return false;
    const bool good = offsets ? lilac_memory_form_map(layout, &form, &why)
                              : lilac_memory_form_layout(layout, &form, &why);
    return linear(scanner, position, good, &why);
}

/* read(class, text, spelling, shape, offsets). Spelling is "triton": a type, or with a shape an
 * attribute; "cute" or "memory": the layout of memory, or with `offsets` the map to offsets. */
static PyObject *read_text(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *class, *sequence;
    const char *bytes, *spelling;
    Py_ssize_t length;
    int offsets;
    shape_argument shape;
    if (!PyArg_ParseTuple(arguments, "Os#sOp", &class, &bytes, &length, &spelling, &sequence,
                          &offsets) ||
        !read_shape(&shape, sequence))
        return NULL;
    if (!PyType_Check(class) || !PyType_IsSubtype((PyTypeObject *)class, layout_type)) {
        PyErr_SetString(PyExc_TypeError, "not a class of layouts");
        return NULL;
    }
    layout_object *result = layout_new((PyTypeObject *)class);
    if (result == NULL)
        return NULL;
    lilac_layout *layout = &result->layout;
    lilac_context *context = lilac_context_create();
    const uint32_t source = lilac_source_add(context, "<text>", bytes, (size_t)length);
    bool good = source != 0;
    if (good) {
        lilac_scanner scanner;
        lilac_scanner_init(&scanner, context, source);
        if (strcmp(spelling, "cute") == 0)
            good = read_cute(&scanner, offsets != 0, layout);
        else if (strcmp(spelling, "memory") == 0)
            good = read_memory(&scanner, offsets != 0, layout);
        else if (shape.rank > LILAC_MAX_RANK)
            good = read_type(&scanner, layout);
        else
            good = read_attribute(&scanner, &shape, layout);
        good = good && lilac_error_count(context) == 0;
    }
    if (!good) {
        raise_diagnostics(context);
        Py_CLEAR(result);
    }
    lilac_context_destroy(context);
    return (PyObject *)result;
}

PyObject *layout_cute(PyObject *self, PyObject *Py_UNUSED(none)) {
    lilac_cute cute;
    lilac_reason why = {""};
    if (!lilac_cute_of_layout(&cute, layout_of(self), &why)) {
        PyErr_SetString(layout_error, why.text);
        return NULL;
    }
    lilac_text text = {0};
    lilac_cute_print(&text, &cute);
    return take_text(&text);
}

PyMethodDef read_functions[] = {
    {"read", read_text, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
