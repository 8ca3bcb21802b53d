/* Properties and predicates of a layout. */
#include "module.h"

/* ---- questions -------------------------------------------------------------------------- */

PyObject *layout_equivalent(PyObject *self, PyObject *other) {
    if (!expect_layout(other))
        return NULL;
    return PyBool_FromLong(lilac_layout_equivalent(layout_of(self), layout_of(other)));
}

/* The name of an input that the layout has. */
static bool read_input(dim_name *name, PyObject *self, PyObject *object) {
    if (!read_name(name, object))
        return false;
    if (lilac_layout_in(layout_of(self), name->text) >= 0)
        return true;
    PyErr_Format(layout_error, "the layout has no input %R", object);
    return false;
}

PyObject *layout_free_bits(PyObject *self, PyObject *input) {
    dim_name name;
    if (!read_input(&name, self, input))
        return NULL;
    return PyLong_FromUnsignedLongLong(lilac_layout_free_bits(layout_of(self), name.text));
}

/* additive_bits(input, touched=0) */
PyObject *layout_additive_bits(PyObject *self, PyObject *arguments, PyObject *words) {
    static char *keys[] = {"input", "touched", NULL};
    PyObject *input, *mask = NULL;
    dim_name name;
    uint64_t touched = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "O|O:additive_bits", keys, &input, &mask) ||
        !read_input(&name, self, input) || (mask != NULL && !read_word(&touched, mask)))
        return NULL;
    return PyLong_FromUnsignedLongLong(
        lilac_layout_additive_bits(layout_of(self), name.text, touched));
}

/* is_zero_over(ins=None, outs=None) */
PyObject *layout_is_zero_over(PyObject *self, PyObject *arguments, PyObject *words) {
    static char *keys[] = {"ins", "outs", NULL};
    PyObject *in_sequence = Py_None, *out_sequence = Py_None;
    name_list ins, outs;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "|OO:is_zero_over", keys, &in_sequence,
                                     &out_sequence) ||
        !read_names(&ins, in_sequence) || !read_names(&outs, out_sequence))
        return NULL;
    return PyBool_FromLong(lilac_layout_is_zero_over(layout_of(self), ins.list, outs.list));
}

PyObject *layout_is_identity_over(PyObject *self, PyObject *sequence) {
    name_list names;
    if (!read_names(&names, sequence))
        return NULL;
    return PyBool_FromLong(lilac_layout_is_identity_over(layout_of(self), names.list));
}

PyObject *layout_is_trivial_over(PyObject *self, PyObject *sequence) {
    name_list names;
    if (!read_names(&names, sequence))
        return NULL;
    return PyBool_FromLong(lilac_layout_is_trivial_over(layout_of(self), names.list));
}

/* consecutive(order=None, input="register") */
PyObject *layout_consecutive(PyObject *self, PyObject *arguments, PyObject *words) {
    static char *keys[] = {"order", "input", NULL};
    const lilac_layout *layout = layout_of(self);
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    PyObject *sequence = Py_None, *input = NULL;
    dim_name name = {"register"};
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "|OO:consecutive", keys, &sequence,
                                     &input) ||
        (input != NULL && !read_input(&name, self, input)) ||
        (sequence != Py_None && !read_order(order, layout->out, layout->out_count, sequence)))
        return NULL;
    return power_of_two(
        lilac_layout_consecutive_in(layout, name.text, sequence == Py_None ? NULL : order));
}

PyObject *layout_json(PyObject *self, PyObject *Py_UNUSED(none)) {
    lilac_text text = {0};
    lilac_layout_json(&text, layout_of(self));
    return take_text(&text);
}

/* ---- properties ------------------------------------------------------------------------- */

static PyObject *sizes(PyObject *names, const lilac_layout_dim *dims, uint32_t count) {
    PyObject *result = names == NULL ? NULL : PyDict_New();
    for (uint32_t i = 0; result != NULL && i < count; i++) {
        PyObject *size = power_of_two(dims[i].bits);
        if (size == NULL || PyDict_SetItem(result, PyTuple_GetItem(names, i), size) < 0)
            Py_CLEAR(result);
        Py_XDECREF(size);
    }
    return result;
}

static PyObject *get_in_dims(PyObject *self, void *Py_UNUSED(closure)) {
    const lilac_layout *layout = layout_of(self);
    return sizes(layout_in_names((layout_object *)self), layout->in, layout->in_count);
}

static PyObject *get_out_dims(PyObject *self, void *Py_UNUSED(closure)) {
    const lilac_layout *layout = layout_of(self);
    return sizes(layout_out_names((layout_object *)self), layout->out, layout->out_count);
}

static PyObject *get_in_bits(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromLong(layout_of(self)->in_bits);
}

static PyObject *get_out_bits(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromLong(layout_of(self)->out_bits);
}

static PyObject *get_columns(PyObject *self, void *Py_UNUSED(closure)) {
    const lilac_layout *layout = layout_of(self);
    return tuple_of_words(layout->columns, layout->in_bits);
}

static PyObject *get_masks(PyObject *self, void *Py_UNUSED(closure)) {
    uint64_t masks[LILAC_LAYOUT_MAX_BITS];
    lilac_layout_masks(masks, layout_of(self));
    return tuple_of_words(masks, layout_of(self)->out_bits);
}

static PyObject *get_rank(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLong(lilac_layout_rank(layout_of(self)));
}

static PyObject *get_free_mask(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(lilac_layout_free_mask(layout_of(self)));
}

/* The predicates; the closure selects one. */
typedef struct predicate {
    bool (*holds)(const lilac_layout *layout);
} predicate;

static predicate injective = {lilac_layout_is_injective};
static predicate surjective = {lilac_layout_is_surjective};
static predicate bijective = {lilac_layout_is_bijective};
static predicate distributed = {lilac_layout_is_distributed};
static predicate memory = {lilac_layout_is_memory};

static PyObject *get_predicate(PyObject *self, void *closure) {
    return PyBool_FromLong(((const predicate *)closure)->holds(layout_of(self)));
}

PyGetSetDef layout_getters[] = {
    {"in_dims", get_in_dims, NULL, "{input name: size}, lowest bits first.", NULL},
    {"out_dims", get_out_dims, NULL, "{output name: size}, lowest bits first.", NULL},
    {"in_bits", get_in_bits, NULL, "log2 of the number of indices.", NULL},
    {"out_bits", get_out_bits, NULL, "log2 of the product of the outputs' sizes.", NULL},
    {"columns", get_columns, NULL, "Flattened output of each input bit: the matrix's columns.",
     NULL},
    {"masks", get_masks, NULL, "Input bits that make each output bit: the matrix's rows.", NULL},
    {"rank", get_rank, NULL, "Rank of the bit matrix.", NULL},
    {"free_mask", get_free_mask, NULL,
     "Bits of the flattened input that do not change the element, as a mask; see free_bits.", NULL},
    {"is_injective", get_predicate, NULL, "No two indices hold the same element.", &injective},
    {"is_surjective", get_predicate, NULL, "Every element is held.", &surjective},
    {"is_bijective", get_predicate, NULL, "Each element is held exactly once.", &bijective},
    {"is_distributed", get_predicate, NULL,
     "A distributed layout (Definition 4.10): surjective, columns zero or distinct unit vectors.",
     &distributed},
    {"is_memory", get_predicate, NULL,
     "A memory layout (Definition 4.14): bijective, columns of one or two set bits.", &memory},
    {NULL, NULL, NULL, NULL, NULL},
};
