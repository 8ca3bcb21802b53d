/* The compiler: a module's text to PTX, and what a launcher must know of it, as text.
 *
 *   compile(text, file, target, num_warps, num_ctas, num_stages, flags, newest_ptx)
 *       → (ptx, metadata, None)                      compiled
 *       → (None, [diagnostics as JSON], [as printed]) refused
 *
 * Every call has a context of its own and holds nothing of Python's while it compiles, so threads
 * compile side by side. What Python makes of the two outcomes is in lilac/compiler.py.
 */
#include "module.h"

#include <lilac/arch.h>
#include <lilac/driver.h>

#include <string.h>

/* The flags, as lilac/compiler.py gives them. */
enum { LINE_INFO = 1, NO_CONTRACTION = 2, TILE = 4, SIMT = 8, ALL_FLAGS = 15 };

typedef struct job {
    const char *text, *file;
    Py_ssize_t length;
    lilac_options options;
    uint32_t flags;
    bool compiled;
    lilac_text ptx, metadata, tile, simt;
    uint32_t count; /* of diagnostics, when it was refused */
    lilac_text *as_json, *as_printed;
} job;

static void take_diagnostics(job *work, lilac_context *context) {
    uint32_t count = 0;
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next)
        count++;
    work->as_json = lilac_heap_grow(NULL, count * sizeof *work->as_json);
    work->as_printed = lilac_heap_grow(NULL, count * sizeof *work->as_printed);
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        lilac_text_init(&work->as_json[work->count]);
        lilac_text_init(&work->as_printed[work->count]);
        lilac_diagnostic_json(&work->as_json[work->count], context, d);
        lilac_diagnostic_print(&work->as_printed[work->count], context, d, false);
        work->count++;
    }
}

/* Runs without Python's lock. */
static void run(job *work) {
    lilac_context *context = lilac_context_create();
    lilac_compilation compilation = {0};
    const uint32_t source = lilac_source_add(context, work->file, work->text, (size_t)work->length);
    work->compiled = source != 0 && lilac_compile(&compilation, context, source, &work->options);
    if (work->compiled) {
        work->ptx = compilation.ptx; /* taken */
        lilac_text_init(&compilation.ptx);
        lilac_compilation_json(&work->metadata, &compilation, &work->options);
        if (work->flags & TILE)
            lilac_tile_print(&work->tile, compilation.tile, true);
        if (work->flags & SIMT)
            lilac_simt_print(&work->simt, compilation.simt);
    } else {
        take_diagnostics(work, context);
    }
    lilac_compilation_clear(&compilation);
    lilac_context_destroy(context);
}

static PyObject *take_list(lilac_text *texts, uint32_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; i < count; i++) {
        PyObject *item = take_text(&texts[i]);
        if (item == NULL || list == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            if (list == NULL)
                Py_XDECREF(item);
            Py_CLEAR(list);
        }
    }
    lilac_heap_free(texts);
    return list;
}

/* A tuple of new references; lets go of them when one is missing. */
static PyObject *tuple_of(PyObject **items, Py_ssize_t count) {
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

static PyObject *outcome(job *work) {
    PyObject *items[4];
    if (!work->compiled) {
        Py_INCREF(Py_None);
        items[0] = Py_None;
        items[1] = take_list(work->as_json, work->count);
        items[2] = take_list(work->as_printed, work->count);
        return tuple_of(items, 3);
    }
    lilac_text *const texts[] = {&work->ptx, &work->metadata, &work->tile, &work->simt};
    for (int i = 0; i < 4; i++)
        items[i] = take_text(texts[i]);
    return tuple_of(items, 4);
}

static PyObject *compile(PyObject *Py_UNUSED(module), PyObject *arguments) {
    job work = {0};
    const char *target;
    unsigned num_warps, num_ctas, num_stages, newest_ptx;
    if (!PyArg_ParseTuple(arguments, "s#szIIIII:compile", &work.text, &work.length, &work.file,
                          &target, &num_warps, &num_ctas, &num_stages, &work.flags, &newest_ptx))
        return NULL;
    lilac_options_init(&work.options);
    work.options.line_info = work.options.comments = (work.flags & LINE_INFO) != 0;
    work.options.no_contraction = (work.flags & NO_CONTRACTION) != 0;
    work.options.target.arch = target != NULL ? lilac_arch_find(target) : NULL;
    work.options.newest_ptx = newest_ptx;
    work.options.target.num_warps = num_warps;
    work.options.target.num_ctas = num_ctas;
    if (num_stages != 0)
        work.options.target.num_stages = num_stages;
    if (target != NULL && work.options.target.arch == NULL) {
        PyErr_Format(PyExc_ValueError, "there is no device '%s'", target);
        return NULL;
    }
    if (work.flags & ~(uint32_t)ALL_FLAGS) {
        PyErr_Format(PyExc_ValueError, "flags %u", work.flags);
        return NULL;
    }
    /* clang-format off */
    Py_BEGIN_ALLOW_THREADS
    run(&work);
    Py_END_ALLOW_THREADS
        /* clang-format on */
        return outcome(&work);
}

/* The names of the devices, in the order of the table. */
static PyObject *devices(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && lilac_arch_at(i) != NULL; i++) {
        PyObject *name = PyUnicode_FromString(lilac_arch_at(i)->name);
        if (name == NULL || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* The newest PTX ISA version, times ten, of a CUDA release; 0: too old. */
static PyObject *ptx_version_of_cuda(PyObject *Py_UNUSED(module), PyObject *arguments) {
    unsigned cuda;
    if (!PyArg_ParseTuple(arguments, "I:ptx_version_of_cuda", &cuda))
        return NULL;
    return PyLong_FromUnsignedLong(lilac_ptx_version_of_cuda(cuda));
}

PyMethodDef compile_functions[] = {
    {"compile", compile, METH_VARARGS, NULL},
    {"devices", devices, METH_NOARGS, NULL},
    {"ptx_version_of_cuda", ptx_version_of_cuda, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
