/* Arguments: Python objects to values of the library. A wrong type or a number outside the range
 * raises an exception. */
#include "module.h"

#include <string.h>

PyObject *one_argument(PyObject *arguments, PyObject *words, const char *method, const char *name) {
    const Py_ssize_t count = PyTuple_Size(arguments);
    const Py_ssize_t named = words == NULL ? 0 : PyDict_Size(words);
    PyObject *argument = NULL;
    if (count == 1 && named == 0)
        argument = PyTuple_GetItem(arguments, 0);
    else if (count == 0 && named == 1)
        argument = PyDict_GetItemString(words, name);
    if (argument == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s() takes one argument, '%s'", method, name);
    return argument;
}

bool expect_layout(PyObject *object) {
    if (is_layout(object))
        return true;
    PyErr_Format(PyExc_TypeError, "expected a Layout, not %R", object);
    return false;
}

bool read_name(dim_name *name, PyObject *object) {
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "a dimension's name is a str, not %R", object);
        return false;
    }
    PyObject *bytes = PyUnicode_AsUTF8String(object);
    if (bytes == NULL)
        return false;
    const size_t whole = (size_t)PyBytes_Size(bytes);
    const size_t length = whole < 15 ? whole : 15;
    memset(name, 0, sizeof *name);
    memcpy(name->text, PyBytes_AsString(bytes), length);
    Py_DECREF(bytes);
    if (strlen(name->text) == length)
        return true;
    PyErr_SetString(layout_error, "a dimension's name has a NUL in it");
    return false;
}

bool read_names(name_list *names, PyObject *sequence) {
    names->list = NULL;
    if (sequence == Py_None)
        return true;
    if (PyUnicode_Check(sequence)) {
        PyErr_SetString(PyExc_TypeError, "expected a sequence of names, not one str");
        return false;
    }
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0)
        return false;
    if (count > LILAC_LAYOUT_MAX_DIMS) {
        PyErr_Format(layout_error, "more than %d names", LILAC_LAYOUT_MAX_DIMS);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        const bool good = item != NULL && read_name(&names->names[i], item);
        Py_XDECREF(item);
        if (!good)
            return false;
        names->pointers[i] = names->names[i].text;
    }
    names->pointers[count] = NULL;
    names->list = names->pointers;
    return true;
}

bool read_word(uint64_t *word, PyObject *object) {
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return false;
    *word = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(layout_error, "%R is not a number from 0 to 2^64 - 1", number);
        Py_DECREF(number);
        return false;
    }
    Py_DECREF(number);
    return true;
}

bool read_words(uint64_t *words, uint32_t max, uint32_t *count, PyObject *sequence) {
    const Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0)
        return false;
    if (size > (Py_ssize_t)max) {
        PyErr_Format(layout_error, "%zd numbers where there can be %d", size, (int)max);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        const bool good = item != NULL && read_word(&words[i], item);
        Py_XDECREF(item);
        if (!good)
            return false;
    }
    *count = (uint32_t)size;
    return true;
}

/* Sizes may exceed 2^64, so that the library reports that they are too large. */
static bool large_size(uint32_t *bits, PyObject *number) {
    PyObject *one = PyLong_FromLong(1);
    PyObject *less = one != NULL ? PyNumber_Subtract(number, one) : NULL;
    PyObject *common = less != NULL ? PyNumber_And(number, less) : NULL;
    const int rest = common != NULL ? PyObject_IsTrue(common) : -1;
    PyObject *length = rest == 0 ? PyObject_CallMethod(number, "bit_length", NULL) : NULL;
    bool good = false;
    if (length != NULL) {
        const unsigned long long value = PyLong_AsUnsignedLongLong(length);
        *bits = value > 256 ? 255 : (uint32_t)value - 1;
        good = !PyErr_Occurred();
    }
    Py_XDECREF(length);
    Py_XDECREF(common);
    Py_XDECREF(less);
    Py_XDECREF(one);
    return good;
}

bool read_size(uint32_t *bits, PyObject *object) {
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return false;
    const unsigned long long size = PyLong_AsUnsignedLongLong(number);
    bool good;
    if (!PyErr_Occurred()) {
        good = size != 0 && (size & (size - 1)) == 0;
        *bits = good ? (uint32_t)__builtin_ctzll(size) : 0;
    } else {
        PyErr_Clear();
        PyObject *zero = PyLong_FromLong(0);
        good = zero != NULL && PyObject_RichCompareBool(number, zero, Py_GT) == 1 &&
               large_size(bits, number);
        Py_XDECREF(zero);
    }
    if (!good && !PyErr_Occurred())
        PyErr_Format(layout_error, "size %R is not a power of two", number);
    Py_DECREF(number);
    return good;
}

bool read_sizes(uint32_t *bits, uint32_t *count, PyObject *sequence) {
    const Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0)
        return false;
    if (size > LILAC_LAYOUT_MAX_DIMS) {
        PyErr_Format(layout_error, "more than %d dimensions", LILAC_LAYOUT_MAX_DIMS);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        const bool good = item != NULL && read_size(&bits[i], item);
        Py_XDECREF(item);
        if (!good)
            return false;
    }
    *count = (uint32_t)size;
    return true;
}

static bool read_dict(dim_list *dims, PyObject *mapping, bool infer) {
    dims->count = 0;
    PyObject *key, *value;
    Py_ssize_t place = 0;
    while (PyDict_Next(mapping, &place, &key, &value)) {
        if (dims->count == LILAC_LAYOUT_MAX_DIMS) {
            PyErr_Format(layout_error, "more than %d dimensions", LILAC_LAYOUT_MAX_DIMS);
            return false;
        }
        dim_name name;
        uint32_t bits = LILAC_LAYOUT_INFER;
        if (!read_name(&name, key) || (!(infer && value == Py_None) && !read_size(&bits, value)))
            return false;
        if (value != Py_None && bits == LILAC_LAYOUT_INFER)
            bits--; /* too large, all the same */
        lilac_layout_dim *dim = &dims->dims[dims->count++];
        memcpy(dim->name, name.text, sizeof dim->name);
        dim->bits = (uint8_t)bits;
    }
    return true;
}

bool read_dims(dim_list *dims, PyObject *mapping, bool infer) {
    if (PyDict_Check(mapping))
        return read_dict(dims, mapping, infer);
    if (!PyObject_HasAttrString(mapping, "keys")) {
        PyErr_Format(PyExc_TypeError, "expected a dict from names to sizes, not %R", mapping);
        return false;
    }
    PyObject *copy = PyDict_New();
    const bool good =
        copy != NULL && PyDict_Update(copy, mapping) == 0 && read_dict(dims, copy, infer);
    Py_XDECREF(copy);
    return good;
}

bool read_dim(uint32_t *index, const lilac_layout_dim *dims, uint32_t count, PyObject *object) {
    if (PyUnicode_Check(object)) {
        dim_name name;
        if (!read_name(&name, object))
            return false;
        for (uint32_t i = 0; i < count; i++) {
            if (memcmp(dims[i].name, name.text, sizeof dims[i].name) == 0) {
                *index = i;
                return true;
            }
        }
        PyErr_Format(layout_error, "there is no dimension %R", object);
        return false;
    }
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return false;
    long value = PyLong_AsLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        value = LONG_MAX;
    }
    if (value < -(long)count || value >= (long)count) {
        PyErr_Format(layout_error, "there is no dimension number %R among %d", object, (int)count);
        return false;
    }
    *index = (uint32_t)(value < 0 ? value + (long)count : value);
    return true;
}

bool read_order(uint32_t *order, const lilac_layout_dim *dims, uint32_t count, PyObject *sequence) {
    const Py_ssize_t given = PySequence_Size(sequence);
    if (given < 0)
        return false;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count && given == (Py_ssize_t)count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        const bool good = item != NULL && read_dim(&order[i], dims, count, item);
        Py_XDECREF(item);
        if (!good)
            return false;
        seen |= UINT32_C(1) << order[i];
    }
    if (given == (Py_ssize_t)count && seen == (uint32_t)low_bits(count))
        return true;
    PyErr_Format(layout_error, "%R does not put the %d dimensions in an order", sequence,
                 (int)count);
    return false;
}
