/* A launcher of Triton's kernels that makes tensor maps from the arguments
 * (lilac/triton/mapped.py).
 *
 *   MappedLauncher(plain, code, one_block, kinds, recipes, boxes, cooperative, counts)
 *
 *   plain     Triton's launcher of the plain kernel: what a launch calls that cannot use the maps
 *   code      (the CUfunction of the kernel with maps, its warps, its bytes of shared memory)
 *   one_block the same for launches whose blocks have a multiprocessor each, or None
 *   kinds     a character for each argument of the kernel; a tuple is in parentheses:
 *             p pointer; ? b h i q integers of 1, 8, 16, 32, 64 bits; B H I Q unsigned ones;
 *             e f16, y bf16, f f32, d f64; x an argument that is no parameter (a constant)
 *   recipes   see recipes.c
 *   boxes     (element, swizzle, box) of each map, as in run.c
 *   counts    the address of seven counters of 64 bits: launches with maps; without them because of
 *             a condition, of a limit of tensor maps, of an argument (or in a thread that has no
 *             context yet), of few iterations; with maps and several blocks for each program; with
 *             maps, of one_block
 *
 * Its call has the arguments of Triton's launchers: grid x, y, z, stream, function, packed
 * metadata, launch metadata, enter hook, exit hook, and then the kernel's. Arguments that Triton
 * would refuse go to the plain launcher, which raises its exception.
 */
#include "module.h"

#include <lilac/runtime.h>

#include <math.h>
#include <string.h>
#include <structmember.h>

enum { GRID, STREAM = 3, LAUNCH_METADATA = 6, ENTER_HOOK, EXIT_HOOK, FIRST };
enum { MAPPED, CONDITION, LIMIT, ARGUMENT, FEW, DIVIDED, ONE_BLOCK };

typedef struct launcher_object {
    PyObject_HEAD PyObject *plain;
    lilac_mapped_kernel *kernel;
    char *kinds;
    uint64_t *counts;
} launcher_object;

/* The driver's library, opened once in a process. */
static lilac_cuda *cuda;
static PyObject *data_ptr;

/* ---- arguments: false, without an exception, where Triton's launcher reports the error ------ */

static bool no_exception(void) {
    PyErr_Clear();
    return false;
}

static bool put_pointer(int64_t *value, PyObject *argument) {
    uint64_t address = 0;
    if (argument == Py_None) {
        *value = 0;
        return true;
    }
    if (PyLong_Check(argument)) {
        address = PyLong_AsUnsignedLongLong(argument);
        *value = (int64_t)address;
        return !(address == UINT64_MAX && PyErr_Occurred()) || no_exception();
    }
    PyObject *result = PyObject_CallMethodObjArgs(argument, data_ptr, NULL);
    const bool good = result != NULL && PyLong_Check(result);
    address = good ? PyLong_AsUnsignedLongLong(result) : 0;
    Py_XDECREF(result);
    if (!good || PyErr_Occurred()) {
        return no_exception();
    }
    const bool known = address == 0 || lilac_cuda_device_address(cuda, &address);
    *value = (int64_t)address;
    return known;
}

static uint32_t bits_of(char kind) {
    return kind == '?'                  ? 1
           : kind == 'b' || kind == 'B' ? 8
           : kind == 'h' || kind == 'H' ? 16
           : kind == 'i' || kind == 'I' ? 32
                                        : 64;
}

static bool put_integer(int64_t *value, char kind, PyObject *argument) {
    const uint32_t bits = bits_of(kind);
    int overflow = 0;
    PyObject *number = PyLong_Check(argument) ? argument : PyNumber_Index(argument);
    if (number == NULL) {
        return no_exception();
    }
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    bool good = overflow == 0;
    if (good && bits < 64) {
        const bool is_signed = kind >= 'a';
        const int64_t most = (INT64_C(1) << (bits - is_signed)) - 1;
        good = *value <= most && *value >= (is_signed ? -most - 1 : 0);
    } else if (kind == 'Q') {
        good = overflow > 0 || (good && *value >= 0);
        if (overflow > 0) {
            *value = (int64_t)PyLong_AsUnsignedLongLong(number);
        }
    }
    if (number != argument) {
        Py_DECREF(number);
    }
    return (good && !PyErr_Occurred()) || no_exception();
}

static bool put_float(int64_t *value, char kind, PyObject *argument) {
    const double number = PyFloat_AsDouble(argument);
    const float narrow = (float)number;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (number == -1 && PyErr_Occurred()) {
        return no_exception();
    }
    switch (kind) {
    case 'd':
        memcpy(value, &number, sizeof number);
        return true;
    case 'f':
        *value = bits;
        return true;
    case 'y': /* as Triton's launcher does: truncated */
        *value = bits >> 16;
        return true;
    default:
        *value = (int64_t)lilac_scalar_encode(LILAC_F16, number, LILAC_ROUND_NEAREST_EVEN, false);
        return isfinite(lilac_scalar_decode(LILAC_F16, (uint64_t)*value)) || !isfinite(number);
    }
}

/* Puts the arguments of a tuple from item `first` on; `kinds` and `value` move on. */
static bool put_arguments(const char **kinds, int64_t **value, PyObject *tuple, Py_ssize_t first) {
    const Py_ssize_t count = PyTuple_Size(tuple);
    for (Py_ssize_t i = first; i < count; i++) {
        PyObject *argument = PyTuple_GetItem(tuple, i);
        const char kind = *(*kinds)++;
        bool good = true;
        switch (kind) {
        case 'x':
            continue;
        case '(':
            good = PyTuple_Check(argument) && put_arguments(kinds, value, argument, 0) &&
                   *(*kinds)++ == ')';
            break;
        case 'p':
            good = put_pointer((*value)++, argument);
            break;
        case 'd':
        case 'e':
        case 'f':
        case 'y':
            good = put_float((*value)++, kind, argument);
            break;
        case '\0':
        case ')':
            return false;
        default:
            good = put_integer((*value)++, kind, argument);
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool put_grid(lilac_mapped_launch *launch, PyObject *tuple) {
    for (Py_ssize_t d = 0; d < 3; d++) {
        int64_t size;
        if (!put_integer(&size, 'i', PyTuple_GetItem(tuple, GRID + d)) || size <= 0) {
            return false; /* of an empty grid nothing is launched */
        }
        launch->grid[d] = (uint32_t)size;
    }
    return true;
}

static bool put_launch(const launcher_object *self, lilac_mapped_launch *launch, PyObject *tuple) {
    const char *kinds = self->kinds;
    int64_t *value = launch->values, stream;
    if (PyTuple_Size(tuple) < FIRST || !lilac_cuda_has_context(cuda) || !put_grid(launch, tuple) ||
        !put_integer(&stream, 'Q', PyTuple_GetItem(tuple, STREAM)) ||
        !put_arguments(&kinds, &value, tuple, FIRST)) {
        return false;
    }
    launch->stream = (lilac_gpu_stream)(uintptr_t)stream;
    return *kinds == '\0';
}

/* ---- the call ----------------------------------------------------------------------------- */

static bool call_hook(PyObject *tuple, Py_ssize_t index) {
    PyObject *hook = PyTuple_GetItem(tuple, index);
    if (hook == Py_None) {
        return true;
    }
    PyObject *result =
        PyObject_CallFunctionObjArgs(hook, PyTuple_GetItem(tuple, LAUNCH_METADATA), NULL);
    Py_XDECREF(result);
    return result != NULL;
}

static PyObject *launch_mapped(const launcher_object *self, lilac_mapped_launch *launch,
                               PyObject *tuple) {
    int result;
    if (!call_hook(tuple, ENTER_HOOK)) {
        return NULL;
    }
    /* clang-format off */
    Py_BEGIN_ALLOW_THREADS
    result = lilac_mapped_run(self->kernel, launch);
    Py_END_ALLOW_THREADS
        /* clang-format on */
        if (result != 0) {
        PyErr_Format(PyExc_RuntimeError, "Triton Error [CUDA]: %s", lilac_cuda_words(cuda, result));
        return NULL;
    }
    if (!call_hook(tuple, EXIT_HOOK)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *call(PyObject *object, PyObject *tuple, PyObject *words) {
    static const uint8_t reasons[] = {[LILAC_MAPPED_CONDITION] = CONDITION,
                                      [LILAC_MAPPED_LIMIT] = LIMIT,
                                      [LILAC_MAPPED_FEW] = FEW};
    launcher_object *self = (launcher_object *)object;
    lilac_mapped_launch launch;
    if ((words != NULL && PyDict_Size(words) != 0) || !put_launch(self, &launch, tuple)) {
        self->counts[ARGUMENT]++;
        return PyObject_Call(self->plain, tuple, words);
    }
    const lilac_mapped_outcome outcome = lilac_mapped_prepare(self->kernel, &launch);
    if (outcome != LILAC_MAPPED_READY) {
        self->counts[reasons[outcome]]++;
        return PyObject_Call(self->plain, tuple, words);
    }
    self->counts[MAPPED]++;
    self->counts[DIVIDED] += launch.parts > 1;
    self->counts[ONE_BLOCK] += launch.one_block;
    return launch_mapped(self, &launch, tuple);
}

/* Other attributes are those of the plain launcher. */
static PyObject *attribute(PyObject *object, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(object, name);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = PyObject_GetAttr(((launcher_object *)object)->plain, name);
    }
    return found;
}

/* ---- creation ----------------------------------------------------------------------------- */

static bool open_cuda(void) {
    if (cuda == NULL) {
        lilac_context *context = lilac_context_create();
        cuda = lilac_cuda_open(context, NULL);
        if (cuda == NULL) {
            const lilac_diagnostic *why = lilac_diagnostics(context);
            PyErr_SetString(input_error, why != NULL ? why->message : "there is no CUDA driver");
        }
        lilac_context_destroy(context);
    }
    return cuda != NULL;
}

static bool read_box(lilac_tensor_map *map, PyObject *row, uint32_t rank) {
    unsigned element, swizzle;
    PyObject *box;
    memset(map, 0, sizeof *map);
    if (!PyArg_ParseTuple(row, "IIO!I", &element, &swizzle, &PyTuple_Type, &box,
                          &map->l2_promotion)) {
        return false;
    }
    map->element = (lilac_tensor_element)element;
    map->swizzle = (lilac_tensor_swizzle)swizzle;
    map->rank = rank;
    if (PyTuple_Size(box) != (Py_ssize_t)rank || element >= LILAC_TENSOR_ELEMENT_COUNT) {
        PyErr_SetString(PyExc_ValueError, "a box does not fit its recipe");
        return false;
    }
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t size;
        if (!read_word(&size, PyTuple_GetItem(box, (Py_ssize_t)d))) {
            return false;
        }
        map->box[d] = (uint32_t)size;
        map->element_strides[d] = 1;
    }
    return true;
}

static bool describe(launcher_object *self, lilac_mapped_description *description,
                     const launch_recipes *recipes, PyObject *boxes) {
    lilac_tensor_map maps[LILAC_MAPPED_MAPS];
    const uint32_t count = recipes->launch.count;
    for (uint32_t i = 0; i < count && i < LILAC_MAPPED_MAPS; i++) {
        PyObject *row = PyList_GetItem(boxes, (Py_ssize_t)i);
        if (row == NULL || !read_box(&maps[i], row, recipes->maps[i].rank)) {
            return false;
        }
    }
    description->recipes = &recipes->launch;
    description->maps = maps;
    self->kernel = lilac_mapped_create(cuda, description);
    if (self->kernel == NULL) {
        PyErr_SetString(input_error, "the launcher does not have room for these parameters");
    }
    return self->kernel != NULL;
}

static uint32_t count_values(const char *kinds) {
    uint32_t count = 0;
    for (; *kinds != '\0'; kinds++) {
        count += *kinds != 'x' && *kinds != '(' && *kinds != ')';
    }
    return count;
}

static bool read_code(lilac_mapped_code *code, PyObject *row) {
    unsigned long long function;
    if (!PyArg_ParseTuple(row, "KII", &function, &code->num_warps, &code->shared_bytes)) {
        return false;
    }
    code->function = (struct CUfunc_st *)(uintptr_t)function;
    return true;
}

static bool fill(launcher_object *self, PyObject *arguments) {
    lilac_mapped_description description = {0};
    launch_recipes recipes = {0};
    PyObject *plain, *code, *one_block, *rows, *boxes;
    unsigned long long counts;
    const char *kinds;
    int cooperative;
    if (!PyArg_ParseTuple(arguments, "OO!OsO!O!pK:MappedLauncher", &plain, &PyTuple_Type, &code,
                          &one_block, &kinds, &PyTuple_Type, &rows, &PyList_Type, &boxes,
                          &cooperative, &counts) ||
        !read_code(&description.code, code) ||
        (one_block != Py_None && !read_code(&description.one_block, one_block))) {
        return false;
    }
    description.cooperative = cooperative != 0;
    self->counts = (uint64_t *)(uintptr_t)counts;
    Py_INCREF(plain);
    self->plain = plain;
    self->kinds = lilac_heap_grow(NULL, strlen(kinds) + 1);
    memcpy(self->kinds, kinds, strlen(kinds) + 1);
    const uint32_t values = count_values(kinds);
    bool good = read_recipes(&recipes, rows, values + LILAC_MAPPED_MAPS);
    description.parameter_count = values + recipes.launch.count;
    good = good && describe(self, &description, &recipes, boxes);
    launch_recipes_clear(&recipes);
    return good;
}

static PyObject *create(PyTypeObject *type, PyObject *arguments, PyObject *words) {
    (void)words;
    if (data_ptr == NULL && (data_ptr = PyUnicode_InternFromString("data_ptr")) == NULL) {
        return NULL;
    }
    if (!open_cuda()) {
        return NULL;
    }
    launcher_object *self =
        (launcher_object *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self != NULL && !fill(self, arguments)) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void destroy(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    launcher_object *self = (launcher_object *)object;
    Py_XDECREF(self->plain);
    lilac_mapped_destroy(self->kernel);
    lilac_heap_free(self->kinds);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"plain", T_OBJECT_EX, offsetof(launcher_object, plain), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "MappedLauncher(plain, code, one_block, kinds, recipes, boxes, cooperative, "
                "counts)\n--\n\n"},
    {Py_tp_new, create},
    {Py_tp_dealloc, destroy},
    {Py_tp_call, call},
    {Py_tp_getattro, attribute},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec launcher_spec = {
    .name = "lilac._core.MappedLauncher",
    .basicsize = sizeof(launcher_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
