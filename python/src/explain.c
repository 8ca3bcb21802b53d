/* Explanations: what became of each line of a kernel.
 *
 *   explain(text, file, target, num_warps, num_ctas, num_stages, flags, registers, advice, grid,
 *           arguments, trip_counts, line, change)
 *       → (text, json, None)                                    explained
 *       → (None, [diagnostics as JSON], [diagnostics as text])  refused
 *
 * advice: whether variants are compiled, too. grid: three numbers, 0 where it is not known.
 * arguments: [(name, bits, contents of its memory or None)]. trip_counts: [(line, iterations)].
 * line: only this line, or 0. change: None, or (num_warps, num_ctas, num_stages, line, layout,
 * words, divisors): what differs with other options (0: the same), with a layout that is forced
 * on the operation of a line (0: none), and with promises about parameters, [(name, divisor)].
 * lilac/explanation.py describes them. */
#include "explain_texts.h"
#include "module.h"

enum { MOST_DIVISORS = 64 };

typedef struct job {
    const char *text, *file;
    Py_ssize_t length;
    lilac_explain_options options;
    lilac_explain_argument *arguments;
    lilac_explain_trip_count *trip_counts;
    lilac_explain_view view;
    /* of a change; NULL: none */
    const char *words, *layout;
    unsigned launch[3], line;
    lilac_assumed_divisor divisors[MOST_DIVISORS];
    uint32_t divisor_count;
    lilac_context *context;
    bool good;
    lilac_text out, json;
} job;

static bool explain_change(job *work, uint32_t source, lilac_explanation *base) {
    lilac_explain_options options = work->options;
    const uint32_t file = lilac_explain_main_file(base);
    const lilac_forced_layout forced = {.file = file > 0 ? lilac_explain_file(base, file) : NULL,
                                        .line = work->line,
                                        .layout = work->layout};
    lilac_target *target = &options.compile.target;
    if (work->launch[0] != 0 || work->line != 0) {
        target->num_warps = work->launch[0] != 0 ? work->launch[0] : lilac_explain_warps(base);
        target->keep_warps = true;
    }
    target->num_ctas = work->launch[1] != 0 ? work->launch[1] : target->num_ctas;
    target->num_stages = work->launch[2] != 0 ? work->launch[2] : target->num_stages;
    options.compile.forced = &forced;
    options.compile.forced_count = work->line != 0;
    options.compile.divisors = work->divisors;
    options.compile.divisor_count = work->divisor_count;
    lilac_explanation *other = lilac_explain(work->context, source, &options);
    if (other != NULL) {
        lilac_explain_compare(&work->out, base, other, work->words);
        lilac_explain_compare_json(&work->json, base, other, work->words);
    }
    lilac_explanation_destroy(other);
    return other != NULL;
}

/* Runs without Python's lock. */
static void run(job *work) {
    work->context = lilac_context_create();
    const uint32_t source =
        lilac_source_add(work->context, work->file, work->text, (size_t)work->length);
    lilac_explanation *e =
        source != 0 ? lilac_explain(work->context, source, &work->options) : NULL;
    if (e == NULL)
        return;
    explain_add_texts(e);
    if (work->words != NULL) {
        work->good = explain_change(work, source, e);
    } else {
        work->good = lilac_explain_text(&work->out, e, &work->view);
        if (work->good)
            lilac_explain_json(&work->json, e);
    }
    lilac_explanation_destroy(e);
}

static PyObject *outcome(job *work) {
    PyObject *items[3];
    if (!work->good) {
        Py_INCREF(Py_None);
        items[0] = Py_None;
        (void)diagnostic_lists(&items[1], work->context);
        return tuple_of(items, 3);
    }
    items[0] = take_text(&work->out);
    items[1] = take_text(&work->json);
    Py_INCREF(Py_None);
    items[2] = Py_None;
    return tuple_of(items, 3);
}

/* The names are borrowed from the list, which the caller holds. */
static bool read_arguments(job *work, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return false;
    work->arguments = PyMem_Calloc((size_t)count + 1, sizeof *work->arguments);
    if (work->arguments == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long long bits;
        Py_ssize_t length = 0;
        lilac_explain_argument *to = &work->arguments[i];
        PyObject *one = PyList_GetItem(list, i);
        if (one == NULL ||
            !PyArg_ParseTuple(one, "sKz#", &to->name, &bits, (const char **)&to->contents, &length))
            return false;
        to->bits = bits;
        to->length = (uint64_t)length;
    }
    work->options.launch.arguments = work->arguments;
    work->options.launch.argument_count = (uint32_t)count;
    return true;
}

static bool read_trip_counts(job *work, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return false;
    work->trip_counts = PyMem_Calloc((size_t)count + 1, sizeof *work->trip_counts);
    if (work->trip_counts == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PyList_GetItem(list, i);
        if (pair == NULL ||
            !PyArg_ParseTuple(pair, "Id", &work->trip_counts[i].line, &work->trip_counts[i].count))
            return false;
    }
    work->options.launch.given_loops = work->trip_counts;
    work->options.launch.given_loop_count = (uint32_t)count;
    return true;
}

static bool read_change(job *work, PyObject *change) {
    PyObject *divisors = NULL;
    if (change == Py_None)
        return true;
    if (!PyArg_ParseTuple(change, "IIIIzsO", &work->launch[0], &work->launch[1], &work->launch[2],
                          &work->line, &work->layout, &work->words, &divisors))
        return false;
    const Py_ssize_t count = PyList_Size(divisors);
    if (count < 0 || count > MOST_DIVISORS) {
        PyErr_Format(input_error, "promises about at most %d parameters", MOST_DIVISORS);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PyList_GetItem(divisors, i);
        if (pair == NULL ||
            !PyArg_ParseTuple(pair, "sI", &work->divisors[i].parameter, &work->divisors[i].divisor))
            return false;
    }
    work->divisor_count = (uint32_t)count;
    return true;
}

static PyObject *explain(PyObject *Py_UNUSED(module), PyObject *arguments) {
    job work = {0};
    const char *target;
    unsigned launch[3], flags, registers, line;
    int advice;
    PyObject *list, *trip_counts, *change, *result = NULL;
    lilac_explain_options_init(&work.options);
    uint32_t *grid = work.options.launch.grid;
    if (!PyArg_ParseTuple(arguments, "s#szIIIIIp(III)OOIO:explain", &work.text, &work.length,
                          &work.file, &target, &launch[0], &launch[1], &launch[2], &flags,
                          &registers, &advice, &grid[0], &grid[1], &grid[2], &list, &trip_counts,
                          &line, &change) ||
        !read_options(&work.options.compile, target, launch, flags) ||
        !read_change(&work, change) || !read_arguments(&work, list)) {
        PyMem_Free(work.arguments);
        return NULL;
    }
    if (!read_trip_counts(&work, trip_counts)) {
        PyMem_Free(work.arguments);
        PyMem_Free(work.trip_counts);
        return NULL;
    }
    work.options.registers = registers;
    work.options.advice = advice != 0;
    work.view.line = line;
    /* clang-format off */
    Py_BEGIN_ALLOW_THREADS
    run(&work);
    Py_END_ALLOW_THREADS
        /* clang-format on */
        result = outcome(&work);
    PyMem_Free(work.arguments);
    PyMem_Free(work.trip_counts);
    lilac_context_destroy(work.context);
    return result;
}

PyMethodDef explain_functions[] = {
    {"explain", explain, METH_VARARGS,
     "explain($module, text, file, target, num_warps, num_ctas, num_stages, flags, registers, "
     "advice, grid, arguments, trip_counts, line, change, /)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};
