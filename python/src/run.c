/* Kernels on the simulator: a module compiled up to the SIMT IR that the simulator runs, and a
 * launch of it on memory that is Python's.
 *
 *   prepare(text, file, target, num_warps, num_ctas, num_stages, flags, kernel)
 *       → (program, metadata, [(name, type, divisibility) of each parameter])
 *       → (None, [diagnostics as JSON], [as printed])
 *   simulate(program, grid, arguments, buffers, threads, limit)
 *       → (completed, counters, printed, [diagnostics as JSON], [as printed])
 *
 * An argument is its bits, or (number of a buffer, offset in bytes) for a pointer. A buffer is
 * (name, address, size, address of a byte for each byte that says whether it is written or 0, read
 * only). What NumPy has to do with it is in lilac/simulator.py, which also keeps the memory alive.
 */
#include "module.h"

#include <lilac/sim.h>

#include <string.h>

#define PROGRAM "lilac.program"

typedef struct program {
    lilac_context *context;
    lilac_compilation compilation;
    const lilac_tile_function *function; /* as Python declares it, and as the simulator runs it */
    const lilac_simt_kernel *kernel;
} program;

static void program_destroy(program *self) {
    lilac_compilation_clear(&self->compilation);
    lilac_context_destroy(self->context);
    PyMem_Free(self);
}

static void capsule_destroy(PyObject *capsule) {
    program_destroy(PyCapsule_GetPointer(capsule, PROGRAM));
}

/* ---- prepare ----------------------------------------------------------------------------------
 */

/* The kernel of that name; without a name, the first. */
static bool find_kernel(program *self, const char *name) {
    const lilac_tile_function *function = self->compilation.tile->functions;
    for (; function != NULL; function = function->next) {
        if (function->is_public && function->body != NULL &&
            (name == NULL || strcmp(function->name, name) == 0))
            break;
    }
    const lilac_simt_kernel *kernel = self->compilation.simt->kernels;
    while (function != NULL && kernel != NULL && strcmp(kernel->name, function->name) != 0)
        kernel = kernel->next;
    self->function = function;
    self->kernel = kernel;
    if (function != NULL && kernel != NULL)
        return true;
    lilac_error(self->context, (lilac_position){0, 0}, 0, "unknown-kernel",
                "the module has no kernel '%s'", name != NULL ? name : "");
    return false;
}

static PyObject *parameter_list(const lilac_tile_function *function) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < function->parameter_count; i++) {
        const lilac_tile_value *parameter = function->parameters[i];
        lilac_text type = {0};
        lilac_tile_print_type(&type, parameter->type);
        PyObject *row =
            Py_BuildValue("sNL", parameter->name != NULL ? parameter->name : "", take_text(&type),
                          (long long)lilac_tile_find_integer(&function->parameter_attributes[i],
                                                             "tt.divisibility", 1));
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *prepared(program *self, const lilac_options *options) {
    PyObject *items[3];
    lilac_text metadata = {0};
    lilac_compilation_json(&metadata, &self->compilation, options);
    items[1] = take_text(&metadata);
    items[2] = parameter_list(self->function);
    items[0] = PyCapsule_New(self, PROGRAM, capsule_destroy);
    if (items[0] == NULL)
        program_destroy(self);
    return tuple_of(items, 3);
}

static PyObject *prepare(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *text, *file, *target, *name;
    Py_ssize_t length;
    unsigned launch[3];
    uint32_t flags;
    lilac_options options;
    if (!PyArg_ParseTuple(arguments, "s#szIIIIz:prepare", &text, &length, &file, &target,
                          &launch[0], &launch[1], &launch[2], &flags, &name) ||
        !read_options(&options, target, launch, flags))
        return NULL;
    options.stop_at = LILAC_STAGE_SIMT;
    program *self = PyMem_Malloc(sizeof *self);
    if (self == NULL)
        return PyErr_NoMemory();
    memset(self, 0, sizeof *self);
    self->context = lilac_context_create();
    bool good;
    /* clang-format off */
    Py_BEGIN_ALLOW_THREADS
    const uint32_t source = lilac_source_add(self->context, file, text, (size_t)length);
    good = source != 0 && lilac_compile(&self->compilation, self->context, source, &options) &&
           find_kernel(self, name);
    Py_END_ALLOW_THREADS
        /* clang-format on */
        if (good) return prepared(self, &options);
    PyObject *items[3];
    Py_INCREF(Py_None);
    items[0] = Py_None;
    (void)diagnostic_lists(&items[1], self->context);
    program_destroy(self);
    return tuple_of(items, 3);
}

/* ---- simulate ---------------------------------------------------------------------------------
 */

typedef struct launch {
    lilac_sim_launch sim;
    lilac_sim_buffer *buffers;
    uint64_t *arguments;
    lilac_sim_counters counters;
    lilac_text printed;
} launch;

static bool read_buffers(launch *self, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return false;
    self->buffers = lilac_heap_grow(NULL, ((size_t)count + 1) * sizeof *self->buffers);
    for (Py_ssize_t i = 0; i < count; i++) {
        lilac_sim_buffer *buffer = &self->buffers[i];
        unsigned long long bytes, size, written;
        int read_only;
        memset(buffer, 0, sizeof *buffer);
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sKKKp", &buffer->name, &bytes, &size,
                              &written, &read_only))
            return false;
        buffer->bytes = (uint8_t *)(uintptr_t)bytes;
        buffer->size = size;
        buffer->written = (uint8_t *)(uintptr_t)written;
        buffer->read_only = read_only != 0;
    }
    self->sim.buffers = self->buffers;
    self->sim.buffer_count = (uint32_t)count;
    lilac_sim_place(self->buffers, (uint32_t)count);
    return true;
}

/* A pointer's address once the buffers have theirs. */
static bool read_pointer(uint64_t *address, const launch *self, PyObject *pair) {
    unsigned long long number, offset;
    if (!PyArg_ParseTuple(pair, "KK", &number, &offset))
        return false;
    if (number >= self->sim.buffer_count) {
        PyErr_SetString(PyExc_IndexError, "no such buffer");
        return false;
    }
    *address = self->buffers[number].address + offset;
    return true;
}

static bool read_arguments(launch *self, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return false;
    self->arguments = lilac_heap_grow(NULL, ((size_t)count + 1) * sizeof *self->arguments);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (!(PyTuple_Check(item) ? read_pointer(&self->arguments[i], self, item)
                                  : read_word(&self->arguments[i], item)))
            return false;
    }
    self->sim.arguments = self->arguments;
    self->sim.argument_count = (uint32_t)count;
    return true;
}

static PyObject *outcome(launch *self, const program *of, bool completed) {
    PyObject *items[5];
    lilac_text counters = {0};
    lilac_sim_counters_json(&counters, &self->counters);
    items[0] = PyBool_FromLong(completed);
    items[1] = take_text(&counters);
    items[2] = take_text(&self->printed);
    (void)diagnostic_lists(&items[3], of->context);
    return tuple_of(items, 5);
}

static PyObject *simulate(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *capsule, *values, *buffers;
    launch self = {0};
    unsigned *grid = self.sim.grid;
    unsigned long long limit;
    if (!PyArg_ParseTuple(arguments, "O(III)O!O!IK:simulate", &capsule, &grid[0], &grid[1],
                          &grid[2], &PyList_Type, &values, &PyList_Type, &buffers,
                          &self.sim.threads, &limit))
        return NULL;
    program *of = PyCapsule_GetPointer(capsule, PROGRAM);
    if (of == NULL)
        return NULL;
    self.sim.kernel = of->kernel;
    self.sim.instruction_limit = limit;
    self.sim.printed = &self.printed;
    PyObject *result = NULL;
    if (read_buffers(&self, buffers) && read_arguments(&self, values)) {
        bool completed;
        /* clang-format off */
        Py_BEGIN_ALLOW_THREADS
        completed = lilac_sim_run(of->context, &self.sim, &self.counters);
        Py_END_ALLOW_THREADS
            /* clang-format on */
            result = outcome(&self, of, completed);
    }
    lilac_heap_free(self.buffers);
    lilac_heap_free(self.arguments);
    lilac_text_clear(&self.printed);
    return result;
}

/* ---- scalar arguments -------------------------------------------------------------------------
 */

/* encode(type, value) → the bits of a float parameter. Error where a finite value overflows. */
static PyObject *encode(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *name;
    double value;
    lilac_scalar scalar;
    if (!PyArg_ParseTuple(arguments, "sd:encode", &name, &value))
        return NULL;
    if (!lilac_scalar_read(name, strlen(name), &scalar) || !lilac_scalar_is_float(scalar))
        return PyErr_Format(input_error, "%s is no floating-point type", name);
    const uint64_t bits = lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
    const double back = lilac_scalar_decode(scalar, bits);
    if (value - value == 0 && !(back - back == 0)) {
        PyObject *number = PyFloat_FromDouble(value);
        if (number != NULL)
            PyErr_Format(input_error, "%R is outside the range of %s", number, name);
        Py_XDECREF(number);
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(bits);
}

PyMethodDef run_functions[] = {
    {"prepare", prepare, METH_VARARGS,
     "prepare($module, text, file, target, num_warps, num_ctas, num_stages, flags, kernel, /)\n"
     "--\n\n"},
    {"simulate", simulate, METH_VARARGS,
     "simulate($module, program, grid, arguments, buffers, threads, limit, /)\n--\n\n"},
    {"encode", encode, METH_VARARGS, "encode($module, type, value, /)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};
