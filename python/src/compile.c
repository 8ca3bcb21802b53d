/* The compiler: the text of a module to PTX and to the metadata for launchers, as text.
 *
 *   compile(text, file, target, num_warps, num_ctas, num_stages, flags, newest_ptx)
 *       → (ptx, metadata, None)                      compiled
 *       → (None, [diagnostics as JSON], [diagnostics as text]) refused
 *
 * Every call has a separate context and releases Python's lock while it compiles, so threads
 * compile concurrently. lilac/compiler.py turns the result into a Kernel or an exception.
 */
#include "module.h"

#include <lilac/arch.h>
#include <lilac/driver.h>

#include <string.h>

/* The flags, with the values of lilac/compiler.py. */
enum {
    LINE_INFO = 1,
    NO_CONTRACTION = 2,
    TILE = 4,
    SIMT = 8,
    KEEP_SUBNORMALS = 16,
    TILE_IR = 32, /* the text of `lilac compile --emit tile` in place of TTGIR */
    LAUNCH_MAPS = 64,
    SPLIT_SUMS = 128,
    KEEP_WARPS = 256,
    KEEP_ORDER = 512,
    ONE_BLOCK = 1024,
    ALL_FLAGS = 2047
};

typedef struct job {
    const char *text, *file;
    Py_ssize_t length;
    lilac_options options;
    uint32_t flags;
    lilac_context *context;
    bool compiled;
    lilac_text ptx, metadata, tile, simt;
} job;

/* Runs without Python's lock. */
static void run(job *work) {
    lilac_compilation compilation = {0};
    work->context = lilac_context_create();
    const uint32_t source =
        lilac_source_add(work->context, work->file, work->text, (size_t)work->length);
    work->compiled =
        source != 0 && lilac_compile(&compilation, work->context, source, &work->options);
    if (work->compiled) {
        work->ptx = compilation.ptx; /* taken */
        lilac_text_init(&compilation.ptx);
        lilac_compilation_json(&work->metadata, &compilation, &work->options);
        if (work->flags & TILE_IR)
            lilac_tile_print(&work->tile, compilation.tile, true);
        else if (work->flags & TILE)
            lilac_compilation_ttgir(&work->tile, &compilation, true);
        if (work->flags & SIMT)
            lilac_simt_print(&work->simt, compilation.simt);
    }
    lilac_compilation_clear(&compilation);
}

static PyObject *outcome(job *work) {
    PyObject *items[4];
    if (!work->compiled) {
        Py_INCREF(Py_None);
        items[0] = Py_None;
        (void)diagnostic_lists(&items[1], work->context);
        return tuple_of(items, 3);
    }
    lilac_text *const texts[] = {&work->ptx, &work->metadata, &work->tile, &work->simt};
    for (int i = 0; i < 4; i++)
        items[i] = take_text(texts[i]);
    return tuple_of(items, 4);
}

/* The fields that compile() and prepare() have in common. Error for a device that there is not. */
bool read_options(lilac_options *options, const char *target, const unsigned launch[3],
                  uint32_t flags) {
    lilac_options_init(options);
    options->line_info = options->comments = (flags & LINE_INFO) != 0;
    options->no_contraction = (flags & NO_CONTRACTION) != 0;
    options->keep_subnormals = (flags & KEEP_SUBNORMALS) != 0;
    options->target.launch_maps = (flags & LAUNCH_MAPS) != 0;
    options->target.split_sums = (flags & SPLIT_SUMS) != 0;
    options->target.keep_warps = (flags & KEEP_WARPS) != 0;
    options->target.keep_order = (flags & KEEP_ORDER) != 0;
    options->target.one_block = (flags & ONE_BLOCK) != 0;
    options->target.arch = target != NULL ? lilac_arch_find(target) : NULL;
    options->target.num_warps = launch[0];
    options->target.num_ctas = launch[1];
    if (launch[2] != 0)
        options->target.num_stages = launch[2];
    if (target != NULL && options->target.arch == NULL) {
        PyErr_Format(input_error, "there is no device '%s'; lilac.devices() lists them", target);
        return false;
    }
    if (flags & ~(uint32_t)ALL_FLAGS) {
        PyErr_Format(input_error, "flags %u", flags);
        return false;
    }
    return true;
}

static PyObject *compile(PyObject *Py_UNUSED(module), PyObject *arguments) {
    job work = {0};
    const char *target;
    unsigned launch[3], newest_ptx;
    if (!PyArg_ParseTuple(arguments, "s#szIIIII:compile", &work.text, &work.length, &work.file,
                          &target, &launch[0], &launch[1], &launch[2], &work.flags, &newest_ptx) ||
        !read_options(&work.options, target, launch, work.flags))
        return NULL;
    work.options.newest_ptx = newest_ptx;
    /* clang-format off */
    Py_BEGIN_ALLOW_THREADS
    run(&work);
    Py_END_ALLOW_THREADS
        /* clang-format on */
        PyObject *result = outcome(&work);
    lilac_context_destroy(work.context);
    return result;
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
    {"compile", compile, METH_VARARGS,
     "compile($module, text, file, target, num_warps, num_ctas, num_stages, flags, newest_ptx, "
     "/)\n--\n\n"},
    {"devices", devices, METH_NOARGS, "devices($module)\n--\n\n"},
    {"ptx_version_of_cuda", ptx_version_of_cuda, METH_VARARGS,
     "ptx_version_of_cuda($module, cuda, /)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};
