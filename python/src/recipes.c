/* Recipes of tensor maps that the launcher makes, as the metadata contain them:
 *
 *   recipes    ([(parameter, base, offset, sizes, strides, pitch, multiples)], grid, parameters, split,
 *              least); the pitch may be missing: 0; and the multiples, or be empty: 1 for each size
 *   split      (iterations, divisor, clocks, loads, bytes): the launcher may start several blocks for each
 *              program; may be missing or None
 *   least      (iterations, divisor, least): with fewer iterations, launches are faster without maps; may
 *              be missing or None
 *   sum        [[factor, parameter, …], …]: an offset, each size, each stride; a parameter may be
 *              [parameter, divisor]
 */
#include "module.h"

#include <string.h>

static bool read_index(uint32_t *index, uint32_t parameters, PyObject *object) {
    uint64_t word;
    if (!read_word(&word, object)) {
        return false;
    }
    *index = (uint32_t)word;
    return word < parameters || (PyErr_SetString(PyExc_IndexError, "no such parameter"), false);
}

/* The length of a list of at most `most` items; -1 with an exception. */
static Py_ssize_t length_of(PyObject *list, Py_ssize_t most) {
    const Py_ssize_t count = PyList_Size(list);
    if (count > most) {
        PyErr_SetString(PyExc_ValueError, "a recipe of a tensor map is too long");
        return -1;
    }
    return count;
}

/* A parameter, or a list of a parameter and a divisor. */
static bool read_factor(uint32_t *parameter, uint32_t *divisor, uint32_t parameters,
                        PyObject *object) {
    if (object == NULL || !PyList_Check(object)) {
        return object != NULL && read_index(parameter, parameters, object);
    }
    uint64_t word;
    if (length_of(object, 2) != 2 ||
        !read_index(parameter, parameters, PyList_GetItem(object, 0)) ||
        !read_word(&word, PyList_GetItem(object, 1))) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "a quotient is a list of a parameter and a divisor");
        }
        return false;
    }
    *divisor = (uint32_t)word;
    return (word > 0 && word <= INT32_MAX) ||
           (PyErr_SetString(PyExc_ValueError, "the divisor of a quotient is 1 to 2^31 - 1"), false);
}

static bool read_term(lilac_launch_term *term, uint32_t parameters, PyObject *list) {
    const Py_ssize_t count = length_of(list, 1 + LILAC_LAUNCH_FACTORS);
    PyObject *factor = count < 0 ? NULL : PyList_GetItem(list, 0);
    if (factor == NULL) {
        return false;
    }
    term->factor = PyLong_AsLongLong(factor);
    term->parameter_count = (uint32_t)count - 1;
    for (Py_ssize_t i = 1; i < count; i++) {
        if (!read_factor(&term->parameters[i - 1], &term->divisors[i - 1], parameters,
                         PyList_GetItem(list, i))) {
            return false;
        }
    }
    return PyErr_Occurred() == NULL;
}

static bool read_sum(lilac_launch_sum *sum, uint32_t parameters, PyObject *list) {
    const Py_ssize_t count = length_of(list, LILAC_LAUNCH_TERMS);
    sum->count = count < 0 ? 0 : (uint32_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!read_term(&sum->terms[i], parameters, PyList_GetItem(list, i))) {
            return false;
        }
    }
    return count >= 0;
}

static bool read_sums(lilac_launch_sum *sums, uint32_t parameters, PyObject *list,
                      Py_ssize_t expected) {
    if (length_of(list, expected) != expected) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "a recipe of a tensor map is too short");
        }
        return false;
    }
    for (Py_ssize_t i = 0; i < expected; i++) {
        if (!read_sum(&sums[i], parameters, PyList_GetItem(list, i))) {
            return false;
        }
    }
    return true;
}

static bool read_multiples(lilac_launch_map *recipe, PyObject *list) {
    const Py_ssize_t count = list == NULL ? 0 : length_of(list, recipe->rank);
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t multiple;
        if (!read_word(&multiple, PyList_GetItem(list, i))) {
            return false;
        }
        recipe->multiples[i] = (uint32_t)multiple;
    }
    return count >= 0;
}

static bool read_recipe(lilac_launch_map *recipe, uint32_t parameters, PyObject *row) {
    PyObject *parameter, *base, *offset, *sizes, *strides, *multiples = NULL;
    memset(recipe, 0, sizeof *recipe);
    if (!PyArg_ParseTuple(row, "OOO!O!O!|IO!", &parameter, &base, &PyList_Type, &offset,
                          &PyList_Type, &sizes, &PyList_Type, &strides, &recipe->pitch,
                          &PyList_Type, &multiples)) {
        return false;
    }
    const Py_ssize_t rank = length_of(sizes, LILAC_TENSOR_RANK);
    recipe->rank = (uint32_t)rank;
    return rank > 0 && read_index(&recipe->parameter, parameters, parameter) &&
           read_index(&recipe->base, parameters, base) &&
           read_sum(&recipe->offset, parameters, offset) &&
           read_sums(recipe->sizes, parameters, sizes, rank) &&
           read_sums(recipe->strides, parameters, strides, rank - 1) &&
           read_multiples(recipe, multiples);
}

static bool read_conditions(lilac_launch_conditions *conditions, uint32_t parameters,
                            PyObject *grid, PyObject *list) {
    const Py_ssize_t count = length_of(list, LILAC_LAUNCH_PARAMETERS);
    for (Py_ssize_t d = 0; d < 3; d++) {
        uint64_t most;
        PyObject *item = PyList_GetItem(grid, d);
        if (item == NULL || !read_word(&most, item)) {
            return false;
        }
        conditions->grid[d] = (uint32_t)most;
    }
    conditions->parameter_count = count < 0 ? 0 : (uint32_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!read_index(&conditions->parameters[i], parameters, PyList_GetItem(list, i))) {
            return false;
        }
    }
    return count >= 0;
}

static bool read_split(lilac_launch_maps *launch, uint32_t parameters, PyObject *row) {
    lilac_launch_split *split = &launch->split;
    PyObject *iterations;
    return PyArg_ParseTuple(row, "O!IIII", &PyList_Type, &iterations, &split->divisor,
                            &split->clocks, &split->loads, &split->bytes) &&
           read_sum(&split->iterations, parameters, iterations);
}

static bool read_least(lilac_launch_maps *launch, uint32_t parameters, PyObject *row) {
    lilac_launch_least *least = &launch->least;
    PyObject *iterations;
    return PyArg_ParseTuple(row, "O!II", &PyList_Type, &iterations, &least->divisor,
                            &least->least) &&
           read_sum(&least->iterations, parameters, iterations);
}

typedef bool recipe_reader(lilac_launch_maps *launch, uint32_t parameters, PyObject *row);

/* A recipe that may be missing or None. */
static bool read_optional(lilac_launch_maps *launch, uint32_t parameters, PyObject *row,
                          recipe_reader *read) {
    if (row == NULL || row == Py_None) {
        return true;
    }
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a recipe of a launch is a tuple or None");
        return false;
    }
    return read(launch, parameters, row);
}

bool read_recipes(launch_recipes *result, PyObject *recipes, uint32_t parameters) {
    PyObject *maps, *grid, *list, *split = NULL, *least = NULL;
    if (!PyArg_ParseTuple(recipes, "O!O!O!|OO", &PyList_Type, &maps, &PyList_Type, &grid,
                          &PyList_Type, &list, &split, &least) ||
        !read_optional(&result->launch, parameters, split, read_split) ||
        !read_optional(&result->launch, parameters, least, read_least) ||
        !read_conditions(&result->launch.conditions, parameters, grid, list)) {
        return false;
    }
    const Py_ssize_t count = PyList_Size(maps);
    result->maps = lilac_heap_grow(NULL, ((size_t)count + 1) * sizeof *result->maps);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!read_recipe(&result->maps[i], parameters, PyList_GetItem(maps, i))) {
            return false;
        }
    }
    result->launch.maps = result->maps;
    result->launch.count = (uint32_t)count;
    return true;
}

void launch_recipes_clear(launch_recipes *recipes) {
    lilac_heap_free(recipes->maps);
    *recipes = (launch_recipes){0};
}
