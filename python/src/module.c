/* The extension module lilac._core: the class LayoutBase, whose objects hold an lilac_layout by
 * value, with its operators; the compiler (compile.c), the simulator (run.c) and plans (plan.c).
 *
 * lilac.Layout derives from it in Python and adds what need not be fast. An operator's result is of
 * its left operand's class. A refusal of the library becomes LayoutError with the library's reason.
 */
#include "module.h"

#include <string.h>

PyTypeObject *layout_type;
PyObject *input_error, *layout_error;

/* ---- helpers ---------------------------------------------------------------------------- */

layout_object *layout_new(PyTypeObject *type) {
    return (layout_object *)PyType_GenericAlloc(type, 0);
}

PyObject *layout_done(layout_object *result, bool done, const lilac_reason *why) {
    if (done)
        return (PyObject *)result;
    Py_DECREF(result);
    PyErr_SetString(layout_error, why->text);
    return NULL;
}

static PyObject *names_of(const lilac_layout_dim *dims, uint32_t count) {
    PyObject *names = PyTuple_New(count);
    for (uint32_t i = 0; names != NULL && i < count; i++) {
        PyObject *name = PyUnicode_InternFromString(dims[i].name);
        if (name == NULL || PyTuple_SetItem(names, i, name) < 0)
            Py_CLEAR(names);
    }
    return names;
}

PyObject *layout_in_names(layout_object *self) {
    if (self->in_names == NULL)
        self->in_names = names_of(self->layout.in, self->layout.in_count);
    return self->in_names;
}

PyObject *layout_out_names(layout_object *self) {
    if (self->out_names == NULL)
        self->out_names = names_of(self->layout.out, self->layout.out_count);
    return self->out_names;
}

PyObject *power_of_two(uint32_t bits) {
    if (bits < 64)
        return PyLong_FromUnsignedLongLong(1ULL << bits);
    return PyLong_FromString("18446744073709551616", NULL, 10);
}

PyObject *take_text(lilac_text *text) {
    PyObject *result =
        PyUnicode_DecodeUTF8(lilac_text_get(text), (Py_ssize_t)text->length, "replace");
    lilac_text_clear(text);
    return result;
}

PyObject *tuple_of_words(const uint64_t *words, uint32_t count) {
    PyObject *result = PyTuple_New(count);
    for (uint32_t i = 0; result != NULL && i < count; i++) {
        PyObject *word = PyLong_FromUnsignedLongLong(words[i]);
        if (word == NULL || PyTuple_SetItem(result, i, word) < 0)
            Py_CLEAR(result);
    }
    return result;
}

PyObject *tuple_of(PyObject **items, Py_ssize_t count) {
    PyObject *result = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (result == NULL || items[i] == NULL) {
            Py_XDECREF(items[i]);
            Py_CLEAR(result);
        } else if (PyTuple_SetItem(result, i, items[i]) < 0) {
            Py_CLEAR(result);
        }
    }
    return result;
}

static bool append_text(PyObject *list, lilac_text *text) {
    PyObject *item = take_text(text);
    const bool good = item != NULL && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return good;
}

bool diagnostic_lists(PyObject *lists[2], lilac_context *context) {
    lists[0] = PyList_New(0);
    lists[1] = PyList_New(0);
    bool good = lists[0] != NULL && lists[1] != NULL;
    for (const lilac_diagnostic *d = lilac_diagnostics(context); good && d != NULL; d = d->next) {
        lilac_text as_json = {0}, as_printed = {0};
        lilac_diagnostic_json(&as_json, context, d);
        lilac_diagnostic_print(&as_printed, context, d, false);
        good = append_text(lists[0], &as_json);
        good &= append_text(lists[1], &as_printed);
    }
    if (!good) {
        Py_CLEAR(lists[0]);
        Py_CLEAR(lists[1]);
    }
    return good;
}

/* ---- the class -------------------------------------------------------------------------- */

static PyObject *create(PyTypeObject *type, PyObject *arguments, PyObject *words) {
    if (PyTuple_Size(arguments) != 0 || (words != NULL && PyDict_Size(words) != 0)) {
        PyErr_SetString(PyExc_TypeError, "Layout() takes no arguments; see Layout.from_bases, "
                                         "Layout.identity, Layout.from_triton …");
        return NULL;
    }
    return (PyObject *)layout_new(type);
}

static void destroy(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((layout_object *)self)->in_names);
    Py_XDECREF(((layout_object *)self)->out_names);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *compare(PyObject *a, PyObject *b, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || !is_layout(a) || !is_layout(b))
        Py_RETURN_NOTIMPLEMENTED;
    const bool equal = lilac_layout_equal(layout_of(a), layout_of(b));
    return PyBool_FromLong(equal == (operation == Py_EQ));
}

static Py_hash_t hash(PyObject *self) {
    const Py_hash_t value = (Py_hash_t)lilac_layout_hash(layout_of(self));
    return value == -1 ? -2 : value;
}

static PyObject *print(PyObject *self) {
    lilac_text text = {0};
    lilac_layout_print(&text, layout_of(self));
    return take_text(&text);
}

/* ---- operators -------------------------------------------------------------------------- */

typedef bool binary_operation(lilac_layout *, const lilac_layout *, const lilac_layout *,
                              lilac_reason *);

static PyObject *binary(PyObject *a, PyObject *b, binary_operation *operation) {
    if (!is_layout(a) || !is_layout(b))
        Py_RETURN_NOTIMPLEMENTED;
    layout_object *result = layout_new(Py_TYPE(a));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    return layout_done(result, operation(&result->layout, layout_of(a), layout_of(b), &why), &why);
}

static PyObject *multiply(PyObject *a, PyObject *b) {
    return binary(a, b, lilac_layout_product);
}

static PyObject *divide(PyObject *layout, PyObject *tile) {
    return binary(layout, tile, lilac_layout_divide_left);
}

static PyObject *compose(PyObject *outer, PyObject *inner) {
    return binary(outer, inner, lilac_layout_compose);
}

static PyObject *invert(PyObject *self) {
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    return layout_done(result, lilac_layout_invert(&result->layout, layout_of(self), &why), &why);
}

static PyType_Slot layout_slots[] = {
    {Py_tp_doc, "LayoutBase()\n--\n\nA linear layout; lilac.Layout derives from it."},
    {Py_tp_new, create},
    {Py_tp_dealloc, destroy},
    {Py_tp_richcompare, compare},
    {Py_tp_hash, hash},
    {Py_tp_str, print},
    {Py_tp_call, layout_call},
    {Py_tp_methods, layout_methods},
    {Py_tp_getset, layout_getters},
    {Py_nb_multiply, multiply},
    {Py_nb_true_divide, divide},
    {Py_nb_matrix_multiply, compose},
    {Py_nb_invert, invert},
    {0, NULL},
};

static PyType_Spec layout_spec = {
    .name = "lilac._core.LayoutBase",
    .basicsize = sizeof(layout_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = layout_slots,
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "lilac._core",
    .m_doc = "Linear layouts in C; see the package lilac.",
    .m_size = -1,
    .m_methods = read_functions,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void) {
    PyObject *module = PyModule_Create(&module_definition);
    if (module == NULL)
        return NULL;
    PyObject *errors = PyImport_ImportModule("lilac.errors");
    if (errors == NULL)
        return NULL;
    input_error = PyObject_GetAttrString(errors, "Error");
    layout_error = PyObject_GetAttrString(errors, "LayoutError");
    Py_DECREF(errors);
    layout_type = (PyTypeObject *)PyType_FromSpec(&layout_spec);
    if (input_error == NULL || layout_error == NULL || layout_type == NULL)
        return NULL;
    PyObject *launcher_type = PyType_FromSpec(&launcher_spec);
    if (launcher_type == NULL)
        return NULL;
    Py_INCREF(layout_type);
    if (PyModule_AddObject(module, "LayoutBase", (PyObject *)layout_type) < 0 ||
        PyModule_AddObject(module, "MappedLauncher", launcher_type) < 0 ||
        PyModule_AddStringConstant(module, "version", LILAC_VERSION) < 0 ||
        PyModule_AddFunctions(module, compile_functions) < 0 ||
        PyModule_AddFunctions(module, explain_functions) < 0 ||
        PyModule_AddFunctions(module, run_functions) < 0 ||
        PyModule_AddFunctions(module, plan_functions) < 0)
        return NULL;
    return module;
}
