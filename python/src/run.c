/* Kernels on the simulator: a module is compiled to SIMT IR, or read as SIMT text, and the
 * simulator runs it on memory that belongs to Python.
 *
 *   prepare(text, file, target, num_warps, num_ctas, num_stages, flags, kernel)
 *       → (program, metadata, [(name, type, divisor, rank) of each parameter])
 *       → (None, [diagnostics as JSON], [diagnostics as text])
 *   simulate(program, grid, arguments, buffers, maps, recipes, threads, limit)
 *       → (completed, counters, printed, [diagnostics as JSON], [diagnostics as text])
 *
 *   rank       of the tensor descriptor whose base pointer the parameter is: its i64 shape, i64
 *              strides and i1 padding are the next parameters; 0: it is no base
 *   argument   a number: its bits; a pointer: (buffer, offset in bytes), or 0 for the null pointer;
 *              a tensor map: its index in `maps`
 *   buffer     (name, address, size, address of the written bytes or 0, is read-only); a written
 *              byte is nonzero if the byte of the buffer holds data; 0: all bytes hold data
 *   map        (buffer, offset, element, swizzle, fill, promotion, sizes, strides, box): the fields
 *              of lilac_tensor_map, the contiguous dimension first; buffer None: a recipe says it
 *   recipes    ([(parameter, base, offset, sizes, strides)], grid, parameters): the fields of
 *              lilac_launch_maps as the metadata contain them (recipes.c)
 *
 * lilac/simulator.py checks the NumPy arrays and keeps their memory alive.
 */
#include "module.h"

#include <lilac/sim.h>

#include <string.h>

#define PROGRAM "lilac.program"

typedef struct program {
    lilac_context *context;
    lilac_compilation compilation;
    const lilac_tile_function *function; /* NULL for SIMT text */
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

static bool is_named(const char *candidate, const char *name) {
    return name == NULL || strcmp(candidate, name) == 0;
}

/* Finds the kernel with this name. Without a name it finds the first kernel. */
static bool find_kernel(program *self, const char *name) {
    const char *sought = name;
    if (self->compilation.tile != NULL) {
        const lilac_tile_function *function = self->compilation.tile->functions;
        while (function != NULL &&
               !(function->is_public && function->body != NULL && is_named(function->name, name))) {
            function = function->next;
        }
        self->function = function;
        sought = function != NULL ? function->name : name;
    }
    const lilac_simt_kernel *kernel = self->compilation.simt->kernels;
    while (kernel != NULL && !is_named(kernel->name, sought)) {
        kernel = kernel->next;
    }
    self->kernel = kernel;
    if (kernel != NULL && (self->function != NULL || self->compilation.tile == NULL)) {
        return true;
    }
    lilac_error(self->context, (lilac_position){0, 0}, 0, "unknown-kernel",
                "the module has no kernel '%s'", name != NULL ? name : "");
    return false;
}

/* One (name, type, divisor, rank) of the list; `type` is a new reference. */
static PyObject *parameter_row(const char *name, PyObject *type, int64_t divisor, uint32_t rank) {
    return Py_BuildValue("sNLI", name != NULL ? name : "", type, (long long)divisor, rank);
}

/* The rank of the tensor descriptor whose base is parameter `index` and whose other parts follow it;
 * 0: it is no base. */
static uint32_t descriptor_rank(const lilac_tile_function *function, uint32_t index) {
    const lilac_tile_attribute *descriptor =
        lilac_tile_find(&function->parameter_attributes[index], "lilac.descriptor");
    const lilac_tile_type *type = descriptor != NULL ? descriptor->type : NULL;
    const uint32_t rank =
        type != NULL && type->kind == LILAC_TILE_DESCRIPTOR ? type->element->rank : 0;
    return rank <= 5 && index + 2 * rank + 1 < function->parameter_count ? rank : 0;
}

static PyObject *tile_parameter(const program *self, uint32_t index) {
    const lilac_tile_value *parameter = self->function->parameters[index];
    lilac_text type = {0};
    lilac_tile_print_type(&type, parameter->type);
    return parameter_row(
        parameter->name, take_text(&type),
        lilac_tile_find_integer(&self->function->parameter_attributes[index], "tt.divisibility", 1),
        descriptor_rank(self->function, index));
}

/* The types are spelled as in SIMT text: "i64 ptr", "i64 tensor_map", "i32". */
static PyObject *simt_parameter(const program *self, uint32_t index) {
    const lilac_simt_parameter *parameter = &self->kernel->parameters[index];
    const char *type = parameter->is_pointer      ? "i64 ptr"
                       : parameter->is_tensor_map ? "i64 tensor_map"
                                                  : lilac_simt_type_name(parameter->type);
    return parameter_row(parameter->name, PyUnicode_FromString(type),
                         parameter->alignment > 1 ? parameter->alignment : 1, 0);
}

static PyObject *parameter_list(const program *self) {
    const uint32_t count =
        self->function != NULL ? self->function->parameter_count : self->kernel->parameter_count;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = self->function != NULL ? tile_parameter(self, i) : simt_parameter(self, i);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

/* SIMT text has no tile function and therefore no metadata for launchers. Its header has the facts
 * that a lilac.Run reports. */
static void put_header_json(lilac_text *out, const program *self) {
    const lilac_simt_kernel *kernel = self->kernel;
    lilac_text_puts(out, "{\"name\": ");
    lilac_text_json(out, kernel->name, strlen(kernel->name));
    lilac_text_printf(out, ", \"target\": \"%s\", \"num_warps\": %u, \"shared\": %u}",
                      self->compilation.target.arch->name, kernel->num_warps, kernel->shared_bytes);
}

static PyObject *prepared(program *self, const lilac_options *options) {
    PyObject *items[3];
    lilac_text metadata = {0};
    if (self->function != NULL) {
        lilac_compilation_json(&metadata, &self->compilation, options);
    } else {
        put_header_json(&metadata, self);
    }
    items[1] = take_text(&metadata);
    items[2] = parameter_list(self);
    items[0] = PyCapsule_New(self, PROGRAM, capsule_destroy);
    if (items[0] == NULL) {
        program_destroy(self);
    }
    return tuple_of(items, 3);
}

/* Compiles tile IR to SIMT IR. No pass runs on SIMT text. */
static bool compile_source(program *self, uint32_t source, const lilac_options *options) {
    const lilac_pass_selection selection = {.after = LILAC_STAGE_SIMT};
    return lilac_source_is_simt(self->context, source)
               ? lilac_run_passes(&self->compilation, self->context, source, options, &selection)
               : lilac_compile(&self->compilation, self->context, source, options);
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
    good = source != 0 && compile_source(self, source, &options) && find_kernel(self, name);
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
    lilac_tensor_map *maps;
    launch_recipes recipes;
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

/* The address of a byte of a buffer. The buffers have their addresses. */
static bool address_of(uint64_t *address, const launch *self, unsigned long long buffer,
                       unsigned long long offset) {
    if (buffer >= self->sim.buffer_count) {
        PyErr_SetString(PyExc_IndexError, "no such buffer");
        return false;
    }
    *address = self->buffers[buffer].address + offset;
    return true;
}

static bool read_pointer(uint64_t *address, const launch *self, PyObject *pair) {
    unsigned long long buffer, offset;
    return PyArg_ParseTuple(pair, "KK", &buffer, &offset) &&
           address_of(address, self, buffer, offset);
}

/* ---- tensor maps ---- */

/* The first `count` numbers of a tuple, at most LILAC_TENSOR_RANK of them. */
static bool read_numbers(uint64_t numbers[LILAC_TENSOR_RANK], PyObject *tuple, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count && i < LILAC_TENSOR_RANK; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (item == NULL || !read_word(&numbers[i], item)) {
            return false;
        }
    }
    return true;
}

/* The simulator checks the fields. It refuses a rank above 5 before it reads the arrays. */
static bool read_map(lilac_tensor_map *map, const launch *self, PyObject *row) {
    unsigned long long offset;
    unsigned element, swizzle, fill;
    uint64_t buffer;
    PyObject *in, *sizes, *strides, *box;
    uint64_t byte_strides[LILAC_TENSOR_RANK] = {0}, box_sizes[LILAC_TENSOR_RANK] = {0};
    memset(map, 0, sizeof *map);
    if (!PyArg_ParseTuple(row, "OKIIIIO!O!O!", &in, &offset, &element, &swizzle, &fill,
                          &map->l2_promotion, &PyTuple_Type, &sizes, &PyTuple_Type, &strides,
                          &PyTuple_Type, &box)) {
        return false;
    }
    const Py_ssize_t rank = PyTuple_Size(sizes);
    if ((in != Py_None &&
         (!read_word(&buffer, in) || !address_of(&map->address, self, buffer, offset))) ||
        !read_numbers(map->dims, sizes, rank) || !read_numbers(byte_strides, strides, rank - 1) ||
        !read_numbers(box_sizes, box, rank)) {
        return false;
    }
    map->element = (lilac_tensor_element)element;
    map->swizzle = (lilac_tensor_swizzle)swizzle;
    map->fill = (lilac_tensor_fill)fill;
    map->rank = (uint32_t)rank;
    for (uint32_t i = 0; i < LILAC_TENSOR_RANK; i++) {
        map->box[i] = (uint32_t)box_sizes[i];
        map->element_strides[i] = 1;
    }
    memcpy(map->strides, byte_strides, sizeof map->strides);
    return true;
}

static bool read_maps(launch *self, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    if (count < 0) {
        return false;
    }
    self->maps = lilac_heap_grow(NULL, ((size_t)count + 1) * sizeof *self->maps);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!read_map(&self->maps[i], self, PyList_GetItem(list, i))) {
            return false;
        }
    }
    self->sim.tensor_maps = self->maps;
    self->sim.tensor_map_count = (uint32_t)count;
    return true;
}

/* ---- arguments and results ---- */

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
    PyObject *capsule, *values, *buffers, *maps, *recipes;
    launch self = {0};
    unsigned *grid = self.sim.grid;
    unsigned long long limit;
    if (!PyArg_ParseTuple(arguments, "O(III)O!O!O!O!IK:simulate", &capsule, &grid[0], &grid[1],
                          &grid[2], &PyList_Type, &values, &PyList_Type, &buffers, &PyList_Type,
                          &maps, &PyTuple_Type, &recipes, &self.sim.threads, &limit))
        return NULL;
    program *of = PyCapsule_GetPointer(capsule, PROGRAM);
    if (of == NULL)
        return NULL;
    self.sim.kernel = of->kernel;
    self.sim.instruction_limit = limit;
    self.sim.printed = &self.printed;
    PyObject *result = NULL;
    if (read_buffers(&self, buffers) && read_maps(&self, maps) && read_arguments(&self, values) &&
        read_recipes(&self.recipes, recipes, of->kernel->parameter_count)) {
        bool completed;
        /* clang-format off */
        Py_BEGIN_ALLOW_THREADS
        completed = lilac_launch_maps_make(of->context, self.maps, &self.recipes.launch, of->kernel,
                                           self.sim.grid, self.arguments) &&
                    lilac_sim_run(of->context, &self.sim, &self.counters);
        Py_END_ALLOW_THREADS
            /* clang-format on */
            result = outcome(&self, of, completed);
    }
    lilac_heap_free(self.buffers);
    lilac_heap_free(self.maps);
    launch_recipes_clear(&self.recipes);
    lilac_heap_free(self.arguments);
    lilac_text_clear(&self.printed);
    return result;
}

/* ---- scalar arguments -------------------------------------------------------------------------
 */

/* encode(type, value) → the bits of a float parameter. A finite value that overflows raises Error.
 */
static PyObject *encode(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *name;
    double value;
    lilac_scalar scalar;
    if (!PyArg_ParseTuple(arguments, "sd:encode", &name, &value))
        return NULL;
    if (!lilac_scalar_read(name, strlen(name), &scalar) || !lilac_scalar_is_float(scalar))
        return PyErr_Format(input_error, "%s is not a floating-point type", name);
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
     "simulate($module, program, grid, arguments, buffers, maps, recipes, threads, limit, /)\n"
     "--\n\n"},
    {"encode", encode, METH_VARARGS, "encode($module, type, value, /)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};
