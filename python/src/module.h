/* Shared by the files of the extension module. The module uses only the stable C interface of
 * CPython 3.9, so that one build works with every later version. */
#ifndef LILAC_PYTHON_MODULE_H
#define LILAC_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <lilac/driver.h>
#include <lilac/layout.h>

/* An immutable layout. The names of its dimensions become Python strings at their first
 * use. */
typedef struct layout_object {
    PyObject_HEAD PyObject *in_names, *out_names; /* tuples of interned strings, or NULL */
    lilac_layout layout;
} layout_object;

extern PyTypeObject *layout_type; /* the base class of lilac.Layout */
extern PyObject *input_error;     /* lilac.Error (lilac/errors.py) */
extern PyObject *layout_error;    /* lilac.LayoutError, which derives from it */

static inline bool is_layout(PyObject *object) {
    return PyObject_TypeCheck(object, layout_type);
}

static inline const lilac_layout *layout_of(PyObject *object) {
    return &((layout_object *)object)->layout;
}

static inline uint64_t low_bits(uint32_t count) {
    return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}

/* A new object of a class derived from layout_type; its layout is zeroed: the unit. NULL with an
 * exception when there is no memory. */
layout_object *layout_new(PyTypeObject *type);
/* The object if the operation succeeded; otherwise releases it and raises LayoutError. */
PyObject *layout_done(layout_object *result, bool done, const lilac_reason *why);

/* The tuple of the names of inputs or outputs, borrowed; NULL with an exception. */
PyObject *layout_in_names(layout_object *self);
PyObject *layout_out_names(layout_object *self);

/* ---- arguments (arguments.c): false with an exception when they are not what is expected ---- */

/* The only argument of a method, positional or by name, as a borrowed reference. NULL with a
 * TypeError for other arguments. */
PyObject *one_argument(PyObject *arguments, PyObject *words, const char *method, const char *name);

/* A function for the method table with one argument, positional or by name. */
#define BY_NAME(function, method, name)                                                            \
    static PyObject *function##_by_name(PyObject *self, PyObject *arguments, PyObject *words) {    \
        PyObject *argument = one_argument(arguments, words, method, name);                         \
        return argument == NULL ? NULL : function(self, argument);                                 \
    }
/* A method with named arguments has another type than the rows of a method table. */
#define BY_KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

/* A dimension's name from a str. Longer ones are cut to 15 characters, which the library refuses.
 */
typedef struct dim_name {
    char text[16];
} dim_name;
bool read_name(dim_name *name, PyObject *object);

/* Names from a sequence of str, in the form of the library; `list` is NULL for None. */
typedef struct name_list {
    const char *const *list; /* NULL-terminated */
    const char *pointers[LILAC_LAYOUT_MAX_DIMS + 1];
    dim_name names[LILAC_LAYOUT_MAX_DIMS];
} name_list;
bool read_names(name_list *names, PyObject *sequence);

/* An integer from 0 to 2^64 - 1. */
bool read_word(uint64_t *word, PyObject *object);
/* A sequence of them; LayoutError for more than `max`. */
bool read_words(uint64_t *words, uint32_t max, uint32_t *count, PyObject *sequence);
/* A power of two as its log2; LayoutError for other integers. 2^255 and above become 255. */
bool read_size(uint32_t *bits, PyObject *object);
/* A sequence of them. */
bool read_sizes(uint32_t *bits, uint32_t *count, PyObject *sequence);
/* A mapping from names to sizes; with `infer`, a size of None is LILAC_LAYOUT_INFER. */
typedef struct dim_list {
    uint32_t count;
    lilac_layout_dim dims[LILAC_LAYOUT_MAX_DIMS];
} dim_list;
bool read_dims(dim_list *dims, PyObject *mapping, bool infer);
/* A permutation of a layout's inputs or outputs, by number (negative: from the end) or by name. */
bool read_order(uint32_t *order, const lilac_layout_dim *dims, uint32_t count, PyObject *sequence);
/* One of them. */
bool read_dim(uint32_t *index, const lilac_layout_dim *dims, uint32_t count, PyObject *object);
/* TypeError for what is no layout. */
bool expect_layout(PyObject *object);

/* ---- results ----------------------------------------------------------------------------------
 */

/* 2^bits, also of 64. */
PyObject *power_of_two(uint32_t bits);
/* The contents of an lilac_text as a str; frees the text. */
PyObject *take_text(lilac_text *text);

/* A tuple of integers. */
PyObject *tuple_of_words(const uint64_t *words, uint32_t count);

/* Recipes of tensor maps that the launcher makes (recipes.c). */
typedef struct launch_recipes {
    lilac_launch_maps launch;
    lilac_launch_map *maps;
} launch_recipes;
/* From their tuple, for a kernel with this number of parameters. Clear in either case. */
bool read_recipes(launch_recipes *result, PyObject *recipes, uint32_t parameters);
void launch_recipes_clear(launch_recipes *recipes);

/* The options of a compilation (compile.c): a device's name or NULL; warps, blocks of a cluster and
 * stages, where 0 means absent; the flags of lilac/compiler.py. Error for an unknown device.
 */
bool read_options(lilac_options *options, const char *target, const unsigned launch[3],
                  uint32_t flags);
/* A tuple of new references; releases them when one is NULL. */
PyObject *tuple_of(PyObject **items, Py_ssize_t count);
/* The context's diagnostics as two lists: each as JSON, and each as the command prints it. False
 * with an exception. lilac/errors.py makes an exception of them. */
bool diagnostic_lists(PyObject *lists[2], lilac_context *context);

extern PyType_Spec launcher_spec; /* MappedLauncher (launcher.c) */

/* The rows of the class, by file. */
extern PyMethodDef layout_methods[];    /* methods.c */
extern PyGetSetDef layout_getters[];    /* facts.c */
extern PyMethodDef read_functions[];    /* read.c */
extern PyMethodDef compile_functions[]; /* compile.c */
extern PyMethodDef explain_functions[]; /* explain.c */
extern PyMethodDef run_functions[];     /* run.c */
extern PyMethodDef plan_functions[];    /* plan.c */

#define METHOD(name) PyObject *name(PyObject *self, PyObject *argument)
METHOD(layout_from_bases); /* build.c */
METHOD(layout_from_masks);
METHOD(layout_zeros);
METHOD(layout_strided);
METHOD(layout_standard);
METHOD(layout_apply); /* apply.c */
METHOD(layout_bulk);
METHOD(layout_coordinates);
METHOD(layout_equivalent); /* facts.c */
METHOD(layout_free_bits);
METHOD(layout_is_identity_over);
METHOD(layout_is_trivial_over);
METHOD(layout_json);
METHOD(layout_view); /* view.c */
METHOD(layout_cute); /* read.c */
PyObject *layout_additive_bits(PyObject *self, PyObject *arguments, PyObject *words);
PyObject *layout_is_zero_over(PyObject *self, PyObject *arguments, PyObject *words);
PyObject *layout_consecutive(PyObject *self, PyObject *arguments, PyObject *words);
PyObject *layout_call(PyObject *self, PyObject *arguments, PyObject *words); /* apply.c */

#endif
