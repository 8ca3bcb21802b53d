/* Texts: types in Triton's spelling are read, with the library's diagnostics as the exception. */
#include "module.h"

#include <lilac/encoding.h>

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

static bool read_type(lilac_scanner *scanner, lilac_layout *layout) {
    lilac_encoding_tensor tensor;
    if (!lilac_encoding_read_tensor(scanner, NULL, &tensor))
        return false;
    if (scanner->kind != LILAC_TOKEN_END)
        return lilac_scanner_expected(scanner, "the end of the type");
    *layout = tensor.layout;
    return true;
}

static bool read_attribute(lilac_scanner *scanner, const shape_argument *shape,
                           lilac_layout *layout) {
    const lilac_encoding *encoding = lilac_encoding_read(scanner, NULL);
    if (encoding == NULL)
        return false;
    if (scanner->kind != LILAC_TOKEN_END)
        return lilac_scanner_expected(scanner, "the end of the attribute");
    return lilac_encoding_layout(scanner->context, layout, encoding, shape->rank, shape->sizes);
}

/* from_triton(class, text, shape): a type, or with a shape an attribute. */
static PyObject *from_triton(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *class, *sequence;
    const char *bytes;
    Py_ssize_t length;
    shape_argument shape;
    if (!PyArg_ParseTuple(arguments, "Os#O", &class, &bytes, &length, &sequence) ||
        !read_shape(&shape, sequence))
        return NULL;
    if (!PyType_Check(class) || !PyType_IsSubtype((PyTypeObject *)class, layout_type)) {
        PyErr_SetString(PyExc_TypeError, "not a class of layouts");
        return NULL;
    }
    layout_object *result = layout_new((PyTypeObject *)class);
    if (result == NULL)
        return NULL;
    lilac_context *context = lilac_context_create();
    const uint32_t source = lilac_source_add(context, "<text>", bytes, (size_t)length);
    bool good = source != 0;
    if (good) {
        lilac_scanner scanner;
        lilac_scanner_init(&scanner, context, source);
        good = shape.rank > LILAC_MAX_RANK ? read_type(&scanner, &result->layout)
                                           : read_attribute(&scanner, &shape, &result->layout);
        good = good && lilac_error_count(context) == 0;
    }
    if (!good) {
        raise_diagnostics(context);
        Py_CLEAR(result);
    }
    lilac_context_destroy(context);
    return (PyObject *)result;
}

PyMethodDef read_functions[] = {
    {"from_triton", from_triton, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
