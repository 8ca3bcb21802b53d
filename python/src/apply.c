/* Application of layouts to one index, flattened or by names, and to arrays of flattened indices.
 *
 * The key of an input is usually the same string object as in the layout, because both are
 * interned. A dictionary is therefore traversed once, and its keys are compared by address first.
 */
#include "module.h"

static bool is_same_name(PyObject *a, PyObject *b) {
    return a == b || (PyUnicode_Check(a) && PyUnicode_Compare(a, b) == 0);
}

/* The number of the input that `key` names; -1 with an exception when there is none. `guess` is
 * looked at first. */
static int find_input(layout_object *self, PyObject *names, PyObject *key, uint32_t guess) {
    const uint32_t count = self->layout.in_count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = guess + i < count ? guess + i : guess + i - count;
        if (key == PyTuple_GetItem(names, at))
            return (int)at;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_same_name(key, PyTuple_GetItem(names, i)))
            return (int)i;
    }
    PyErr_Format(layout_error, "the layout has no input %R; its inputs are %R", key, names);
    return -1;
}

/* An index below 2^bits. Sets an exception and returns false for others; `not_scalar` says whether
 * that is because the object is no integer, and then there is no exception. */
static bool read_index(uint64_t *value, PyObject *object, uint32_t bits, PyObject *name,
                       bool *not_scalar) {
    if (!PyLong_Check(object)) {
        if (!PyIndex_Check(object)) {
            *not_scalar = true;
            return false;
        }
        PyObject *number = PyNumber_Index(object);
        if (number == NULL) { /* an array of more than one element says so here */
            PyErr_Clear();
            *not_scalar = true;
            return false;
        }
        const bool good = read_index(value, number, bits, name, not_scalar);
        Py_DECREF(number);
        return good;
    }
    *value = PyLong_AsUnsignedLongLong(object);
    if (*value == (uint64_t)-1 && PyErr_Occurred()) { /* negative, or of more than 64 bits */
        PyErr_Clear();
    } else if ((*value & ~low_bits(bits)) == 0) {
        return true;
    }
    PyObject *size = power_of_two(bits);
    if (size != NULL) {
        PyErr_Format(layout_error, "index %R is outside %U of size %R", object, name, size);
        Py_DECREF(size);
    }
    return false;
}

static PyObject *apply_names(layout_object *self, PyObject *indices) {
    const lilac_layout *layout = &self->layout;
    PyObject *names = layout_in_names(self);
    PyObject *outs = layout_out_names(self);
    if (names == NULL || outs == NULL)
        return NULL;
    uint8_t starts[LILAC_LAYOUT_MAX_DIMS];
    uint32_t start = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        starts[i] = (uint8_t)start;
        start += layout->in[i].bits;
    }
    uint64_t flat = 0;
    PyObject *key, *item;
    Py_ssize_t place = 0;
    for (uint32_t guess = 0; PyDict_Next(indices, &place, &key, &item); guess++) {
        const int in = find_input(self, names, key, guess < layout->in_count ? guess : 0);
        if (in < 0)
            return NULL;
        uint64_t value;
        bool not_scalar = false;
        if (!read_index(&value, item, layout->in[in].bits, key, &not_scalar)) {
            if (not_scalar)
                return PyObject_CallMethod((PyObject *)self, "_apply_arrays", "O", indices);
            return NULL;
        }
        if (layout->in[in].bits != 0)
            flat |= value << starts[in];
    }
    flat = lilac_layout_apply(layout, flat);
    PyObject *result = PyDict_New();
    start = 0;
    for (uint32_t i = 0; result != NULL && i < layout->out_count; i++) {
        const uint32_t bits = layout->out[i].bits;
        const uint64_t coordinate = bits == 0 ? 0 : flat >> start & low_bits(bits);
        PyObject *number = PyLong_FromUnsignedLongLong(coordinate);
        if (number == NULL || PyDict_SetItem(result, PyTuple_GetItem(outs, i), number) < 0)
            Py_CLEAR(result);
        Py_XDECREF(number);
        start += bits;
    }
    return result;
}

PyObject *layout_apply(PyObject *self, PyObject *index) {
    const lilac_layout *layout = layout_of(self);
    if (PyDict_Check(index))
        return apply_names((layout_object *)self, index);
    uint64_t value;
    bool not_scalar = false;
    PyObject *name = NULL;
    if (PyLong_Check(index)) {
        value = PyLong_AsUnsignedLongLong(index);
        if ((value & ~low_bits(layout->in_bits)) == 0 &&
            (value != (uint64_t)-1 || !PyErr_Occurred()))
            return PyLong_FromUnsignedLongLong(lilac_layout_apply(layout, value));
        PyErr_Clear();
    }
    name = PyUnicode_InternFromString("the flattened inputs");
    if (name == NULL)
        return NULL;
    const bool good = read_index(&value, index, layout->in_bits, name, &not_scalar);
    Py_DECREF(name);
    if (good)
        return PyLong_FromUnsignedLongLong(lilac_layout_apply(layout, value));
    if (not_scalar)
        return PyObject_CallMethod(self, "_apply_array", "O", index);
    return NULL;
}

PyObject *layout_call(PyObject *self, PyObject *arguments, PyObject *words) {
    const Py_ssize_t count = PyTuple_Size(arguments);
    if (count == 0 && words != NULL)
        return apply_names((layout_object *)self, words);
    if (count == 1 && (words == NULL || PyDict_Size(words) == 0))
        return layout_apply(self, PyTuple_GetItem(arguments, 0));
    if (count == 0) {
        PyObject *none = PyDict_New();
        PyObject *result = none == NULL ? NULL : apply_names((layout_object *)self, none);
        Py_XDECREF(none);
        return result;
    }
    PyErr_SetString(PyExc_TypeError, "a layout is called with one index, or with names");
    return NULL;
}

/* _bulk(out, in, count): addresses of contiguous arrays of `count` uint64. */
PyObject *layout_bulk(PyObject *self, PyObject *arguments) {
    unsigned long long out, in, count;
    if (!PyArg_ParseTuple(arguments, "KKK", &out, &in, &count))
        return NULL;
    bool good;
    lilac_reason why;
    Py_BEGIN_ALLOW_THREADS;
    good = lilac_layout_apply_each((uint64_t *)(uintptr_t)out, layout_of(self),
                                   (const uint64_t *)(uintptr_t)in, count, &why);
    Py_END_ALLOW_THREADS;
    if (good)
        Py_RETURN_NONE;
    PyErr_SetString(layout_error, why.text);
    return NULL;
}

/* _coordinates(out, number): the coordinates along one output of all indices in order, as int32 at
 * an address with room for them; number -1: the flattened outputs, as uint64. */
PyObject *layout_coordinates(PyObject *self, PyObject *arguments) {
    unsigned long long out;
    int number;
    if (!PyArg_ParseTuple(arguments, "Ki", &out, &number))
        return NULL;
    const lilac_layout *layout = layout_of(self);
    if (number < -1 || number >= (int)layout->out_count || layout->in_bits > 62)
        return PyErr_Format(PyExc_ValueError, "no such output, or too many indices");
    const uint64_t count = UINT64_C(1) << layout->in_bits;
    bool good;
    lilac_reason why;
    Py_BEGIN_ALLOW_THREADS;
    if (number < 0)
        good = lilac_layout_apply_range((uint64_t *)(uintptr_t)out, layout, 0, count, &why);
    else
        good = lilac_layout_coordinates32((uint32_t *)(uintptr_t)out, layout, (uint32_t)number, 0,
                                          count, &why);
    Py_END_ALLOW_THREADS;
    if (good)
        Py_RETURN_NONE;
    PyErr_SetString(layout_error, why.text);
    return NULL;
}
