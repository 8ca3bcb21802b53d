/* Readers of texts: types and attributes in Triton's syntax, CuTe layouts, named memory layouts.
 * For a refused text the diagnostics are returned; lilac/errors.py raises them. */
#include "module.h"

#include <lilac/cute.h>
#include <lilac/encoding.h>
#include <lilac/memory_form.h>

#include <string.h>

/* The diagnostics as a tuple of two lists. */
static PyObject *refusal(lilac_context *context) {
    PyObject *lists[2];
    return diagnostic_lists(lists, context) ? tuple_of(lists, 2) : NULL;
}

/* A shape for an attribute; the rank LILAC_MAX_RANK + 1 means no shape. */
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

/* Texts that are valid but have no linear layout. */
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

/* read(class, text, spelling, shape, offsets) → a layout, or the diagnostics. Spelling is "triton":
 * a type, or with a shape an attribute; "cute" or "memory": the layout of memory, or with `offsets`
 * the map to offsets. */
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
    PyObject *answer = good ? (PyObject *)result : refusal(context);
    if (!good)
        Py_DECREF(result);
    lilac_context_destroy(context);
    return answer;
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

/* ---- types, with the facts about their elements ---------------------------------------------- */

/* A tensor type, a memdesc type, or memory written out as CuTe or people write it. */
typedef struct full_type {
    lilac_layout layout;
    const char *element; /* NULL: the text does not name it */
    uint32_t element_bits;
    bool pointers;
    uint32_t padding_count;
    uint64_t intervals[LILAC_ENCODING_MAX_PADDINGS], paddings[LILAC_ENCODING_MAX_PADDINGS];
} full_type;

static void set_element(full_type *type, lilac_scalar scalar, bool pointers) {
    type->element = lilac_scalar_name(scalar);
    type->pointers = pointers;
    type->element_bits = pointers ? 64 : scalar == LILAC_TF32 ? 32 : lilac_scalar_bits(scalar);
}

static bool read_full_memdesc(lilac_scanner *scanner, full_type *type) {
    lilac_encoding_memdesc memdesc;
    if (!lilac_encoding_read_memdesc(scanner, NULL, &memdesc))
        return false;
    type->layout = memdesc.layout;
    set_element(type, memdesc.scalar, false);
    if (memdesc.encoding->kind == LILAC_ENCODING_PADDED_SHARED) {
        type->padding_count = memdesc.encoding->as.padded_shared.count;
        for (uint32_t i = 0; i < type->padding_count; i++) {
            type->intervals[i] = memdesc.encoding->as.padded_shared.interval[i];
            type->paddings[i] = memdesc.encoding->as.padded_shared.padding[i];
        }
    }
    return at_end(scanner, "the end of the type");
}

static bool read_full_form(lilac_scanner *scanner, full_type *type) {
    const lilac_position position = lilac_scanner_position(scanner);
    lilac_memory_form form;
    lilac_reason why = {""};
    if (!lilac_memory_form_at(scanner))
        return read_cute(scanner, false, &type->layout);
    if (!lilac_memory_form_read(scanner, &form) || !at_end(scanner, "the end of the layout"))
        return false;
    type->padding_count = form.padding_count;
    for (uint32_t i = 0; i < form.padding_count; i++) {
        type->intervals[i] = form.padding[i].interval;
        type->paddings[i] = form.padding[i].padding;
    }
    return linear(scanner, position, lilac_memory_form_layout(&type->layout, &form, &why), &why);
}

static bool read_full(lilac_scanner *scanner, full_type *type) {
    if (lilac_memory_form_at(scanner) || lilac_cute_at(scanner))
        return read_full_form(scanner, type);
    if (scanner->kind == LILAC_TOKEN_BANG)
        return read_full_memdesc(scanner, type);
    lilac_encoding_tensor tensor;
    if (!lilac_encoding_read_tensor(scanner, NULL, &tensor))
        return false;
    type->layout = tensor.layout;
    set_element(type, tensor.scalar, tensor.pointers);
    return at_end(scanner, "the end of the type");
}

static PyObject *full_answer(PyObject *class, const full_type *type) {
    PyObject *items[5];
    layout_object *layout = layout_new((PyTypeObject *)class);
    if (layout != NULL)
        layout->layout = type->layout;
    items[0] = (PyObject *)layout;
    items[1] = Py_BuildValue("z", type->element);
    items[2] = PyLong_FromUnsignedLong(type->element_bits);
    items[3] = PyBool_FromLong(type->pointers);
    items[4] = PyList_New(0);
    for (uint32_t i = 0; items[4] != NULL && i < type->padding_count; i++) {
        PyObject *pair = Py_BuildValue("KK", (unsigned long long)type->intervals[i],
                                       (unsigned long long)type->paddings[i]);
        if (pair == NULL || PyList_Append(items[4], pair) < 0)
            Py_CLEAR(items[4]);
        Py_XDECREF(pair);
    }
    return tuple_of(items, 5);
}

/* read_type(class, text, name) → (layout, element or None, its bits or 0, whether elements are
 * pointers, [(interval, padding)] in elements), or the diagnostics, in which `name` is the text's.
 */
static PyObject *read_full_text(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *class;
    const char *bytes, *name;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "Os#s", &class, &bytes, &length, &name))
        return NULL;
    if (!PyType_Check(class) || !PyType_IsSubtype((PyTypeObject *)class, layout_type)) {
        PyErr_SetString(PyExc_TypeError, "not a class of layouts");
        return NULL;
    }
    full_type type = {0};
    lilac_context *context = lilac_context_create();
    const uint32_t source = lilac_source_add(context, name, bytes, (size_t)length);
    bool good = source != 0;
    if (good) {
        lilac_scanner scanner;
        lilac_scanner_init(&scanner, context, source);
        good = read_full(&scanner, &type) && lilac_error_count(context) == 0;
    }
    PyObject *answer = good ? full_answer(class, &type) : refusal(context);
    lilac_context_destroy(context);
    return answer;
}

PyMethodDef read_functions[] = {
    {"read", read_text, METH_VARARGS,
     "read($module, cls, text, spelling, shape, offsets, /)\n--\n\n"},
    {"read_type", read_full_text, METH_VARARGS, "read_type($module, cls, text, name, /)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};
