/* Layouts from layouts: the algebra, and the table of LayoutBase's methods.
 *
 * What the library only asserts (a permutation, the number of a dimension, a name's length) is
 * checked here, since the caller is Python.
 */
#include "module.h"

#include <string.h>

typedef bool unary_operation(lilac_layout *, const lilac_layout *, lilac_reason *);
typedef bool binary_operation(lilac_layout *, const lilac_layout *, const lilac_layout *,
                              lilac_reason *);

static PyObject *unary(PyObject *self, unary_operation *operation) {
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    return layout_done(result, operation(&result->layout, layout_of(self), &why), &why);
}

static PyObject *binary(PyObject *class_of, PyObject *a, PyObject *b, binary_operation *operation) {
    if (!expect_layout(a) || !expect_layout(b))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(class_of));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    return layout_done(result, operation(&result->layout, layout_of(a), layout_of(b), &why), &why);
}

static PyObject *inverse(PyObject *self, PyObject *Py_UNUSED(none)) {
    return unary(self, lilac_layout_invert);
}

static PyObject *pseudoinverse(PyObject *self, PyObject *Py_UNUSED(none)) {
    return unary(self, lilac_layout_pseudoinvert);
}

static PyObject *compose(PyObject *self, PyObject *outer) {
    return binary(self, outer, self, lilac_layout_compose);
}

static PyObject *invert_and_compose(PyObject *self, PyObject *other) {
    return binary(self, self, other, lilac_layout_invert_compose);
}

static PyObject *divide_left(PyObject *self, PyObject *tile) {
    return binary(self, self, tile, lilac_layout_divide_left);
}

static PyObject *divide_right(PyObject *self, PyObject *tile) {
    return binary(self, self, tile, lilac_layout_divide_right);
}

static PyObject *concat_ins(PyObject *self, PyObject *other) {
    return binary(self, self, other, lilac_layout_concat_ins);
}

static PyObject *concat_outs(PyObject *self, PyObject *other) {
    return binary(self, self, other, lilac_layout_concat_outs);
}

/* ---- division --------------------------------------------------------------------------- */

/* _divide(tile, at): at holds a mask for each of the tile's outputs, or is None. */
static PyObject *divide(PyObject *self, PyObject *arguments) {
    PyObject *tile, *sequence;
    uint64_t at[LILAC_LAYOUT_MAX_DIMS];
    uint32_t count;
    if (!PyArg_ParseTuple(arguments, "OO", &tile, &sequence) || !expect_layout(tile))
        return NULL;
    if (sequence != Py_None) {
        if (!read_words(at, LILAC_LAYOUT_MAX_DIMS, &count, sequence))
            return NULL;
        if (count != layout_of(tile)->out_count)
            return PyErr_Format(layout_error, "%d masks for the tile's %d outputs", (int)count,
                                (int)layout_of(tile)->out_count);
    }
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_divide(&result->layout, layout_of(self), layout_of(tile),
                                          sequence == Py_None ? NULL : at, NULL, &why);
    return layout_done(result, done, &why);
}

/* _division_order(tile, input, right) */
static PyObject *division_order(PyObject *self, PyObject *arguments) {
    PyObject *tile, *input;
    int right;
    dim_name name;
    if (!PyArg_ParseTuple(arguments, "OOp", &tile, &input, &right) || !expect_layout(tile) ||
        !read_name(&name, input))
        return NULL;
    uint8_t order[LILAC_LAYOUT_MAX_BITS];
    uint64_t words[LILAC_LAYOUT_MAX_BITS];
    lilac_reason why;
    if (!lilac_layout_division_order(order, layout_of(self), layout_of(tile), name.text, right != 0,
                                     &why)) {
        PyErr_SetString(layout_error, why.text);
        return NULL;
    }
    const uint32_t bits = lilac_layout_in_bits(layout_of(self), name.text);
    for (uint32_t i = 0; i < bits; i++)
        words[i] = order[i];
    return tuple_of_words(words, bits);
}

/* permute_bits(input, order) */
static PyObject *permute_bits(PyObject *self, PyObject *arguments) {
    PyObject *input, *sequence;
    dim_name name;
    uint64_t words[LILAC_LAYOUT_MAX_BITS], seen = 0;
    uint8_t order[LILAC_LAYOUT_MAX_BITS];
    uint32_t count;
    if (!PyArg_ParseTuple(arguments, "OO", &input, &sequence) || !read_name(&name, input) ||
        !read_words(words, LILAC_LAYOUT_MAX_BITS, &count, sequence))
        return NULL;
    const uint32_t bits = lilac_layout_in_bits(layout_of(self), name.text);
    for (uint32_t i = 0; i < count && words[i] < LILAC_LAYOUT_MAX_BITS; i++) {
        order[i] = (uint8_t)words[i];
        seen |= UINT64_C(1) << words[i];
    }
    if (count != bits || seen != low_bits(bits))
        return PyErr_Format(layout_error, "%R does not put %R's %d bits in an order", sequence,
                            input, (int)bits);
    layout_object *result = layout_new(Py_TYPE(self));
    if (result != NULL)
        lilac_layout_permute_bits(&result->layout, layout_of(self), name.text, order);
    return (PyObject *)result;
}

/* ---- parts ------------------------------------------------------------------------------ */

/* sublayout(ins=None, outs=None) */
static PyObject *sublayout(PyObject *self, PyObject *arguments, PyObject *words) {
    static char *keys[] = {"ins", "outs", NULL};
    PyObject *in_sequence = Py_None, *out_sequence = Py_None;
    name_list ins, outs;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "|OO", keys, &in_sequence, &out_sequence) ||
        !read_names(&ins, in_sequence) || !read_names(&outs, out_sequence))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done =
        lilac_layout_sublayout(&result->layout, layout_of(self), ins.list, outs.list, &why);
    return layout_done(result, done, &why);
}

static PyObject *slice(PyObject *self, PyObject *dim) {
    const lilac_layout *layout = layout_of(self);
    uint32_t index;
    if (!read_dim(&index, layout->out, layout->out_count, dim))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result != NULL)
        lilac_layout_slice(&result->layout, layout, index);
    return (PyObject *)result;
}

static PyObject *drop_free(PyObject *self, PyObject *input) {
    dim_name name;
    if (!read_name(&name, input))
        return NULL;
    if (lilac_layout_in(layout_of(self), name.text) < 0)
        return PyErr_Format(layout_error, "the layout has no input %R", input);
    layout_object *result = layout_new(Py_TYPE(self));
    if (result != NULL)
        lilac_layout_drop_free(&result->layout, layout_of(self), name.text);
    return (PyObject *)result;
}

static PyObject *quotient(PyObject *self, PyObject *sequence) {
    name_list names;
    if (!read_names(&names, sequence))
        return NULL;
    if (names.list == NULL) {
        PyErr_SetString(PyExc_TypeError, "expected a sequence of names, not None");
        return NULL;
    }
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_quotient(&result->layout, layout_of(self), names.list, &why);
    return layout_done(result, done, &why);
}

static PyObject *drop_empty(PyObject *self, PyObject *Py_UNUSED(none)) {
    layout_object *result = layout_new(Py_TYPE(self));
    if (result != NULL)
        lilac_layout_drop_empty(&result->layout, layout_of(self));
    return (PyObject *)result;
}

/* ---- orders, names and sizes ------------------------------------------------------------ */

typedef void permutation(lilac_layout *, const lilac_layout *, const uint32_t *);

static PyObject *permute(PyObject *self, PyObject *sequence, bool of_ins, permutation *operation) {
    const lilac_layout *layout = layout_of(self);
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    if (!read_order(order, of_ins ? layout->in : layout->out,
                    of_ins ? layout->in_count : layout->out_count, sequence))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result != NULL)
        operation(&result->layout, layout, order);
    return (PyObject *)result;
}

static PyObject *permute_ins(PyObject *self, PyObject *sequence) {
    return permute(self, sequence, true, lilac_layout_permute_ins);
}

static PyObject *permute_outs(PyObject *self, PyObject *sequence) {
    return permute(self, sequence, false, lilac_layout_permute_outs);
}

static PyObject *transpose(PyObject *self, PyObject *sequence) {
    return permute(self, sequence, false, lilac_layout_transpose);
}

typedef bool renaming(lilac_layout *, const lilac_layout *, const char *, const char *,
                      lilac_reason *);

static PyObject *rename_dim(PyObject *self, PyObject *arguments, renaming *operation) {
    PyObject *old, *new;
    dim_name from, to;
    if (!PyArg_ParseTuple(arguments, "OO", &old, &new) || !read_name(&from, old) ||
        !read_name(&to, new))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = operation(&result->layout, layout_of(self), from.text, to.text, &why);
    return layout_done(result, done, &why);
}

static PyObject *rename_in(PyObject *self, PyObject *arguments) {
    return rename_dim(self, arguments, lilac_layout_rename_in);
}

static PyObject *rename_out(PyObject *self, PyObject *arguments) {
    return rename_dim(self, arguments, lilac_layout_rename_out);
}

typedef bool resizing(lilac_layout *, const lilac_layout *, const char *, uint32_t, lilac_reason *);

static PyObject *resize(PyObject *self, PyObject *arguments, resizing *operation) {
    PyObject *text, *size;
    dim_name name;
    uint32_t bits;
    if (!PyArg_ParseTuple(arguments, "OO", &text, &size) || !read_name(&name, text) ||
        !read_size(&bits, size))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = operation(&result->layout, layout_of(self), name.text, bits, &why);
    return layout_done(result, done, &why);
}

static PyObject *resize_in(PyObject *self, PyObject *arguments) {
    return resize(self, arguments, lilac_layout_resize_in);
}

static PyObject *resize_out(PyObject *self, PyObject *arguments) {
    return resize(self, arguments, lilac_layout_resize_out);
}

typedef bool cutting(lilac_layout *, const lilac_layout *, uint32_t, const lilac_layout_dim *,
                     lilac_reason *);

static PyObject *cut(PyObject *self, PyObject *mapping, cutting *operation) {
    dim_list dims;
    if (!read_dims(&dims, mapping, false))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = operation(&result->layout, layout_of(self), dims.count, dims.dims, &why);
    return layout_done(result, done, &why);
}

static PyObject *reshape_ins(PyObject *self, PyObject *mapping) {
    return cut(self, mapping, lilac_layout_reshape_ins);
}

static PyObject *reshape_outs(PyObject *self, PyObject *mapping) {
    return cut(self, mapping, lilac_layout_reshape_outs);
}

typedef void flattening(lilac_layout *, const lilac_layout *, const char *);

static PyObject *flatten(PyObject *self, PyObject *text, flattening *operation) {
    dim_name name;
    if (!read_name(&name, text))
        return NULL;
    const size_t length = strlen(name.text);
    if (length == 0 || length >= sizeof layout_of(self)->in[0].name) {
        PyErr_SetString(layout_error, "a dimension's name has 1 to 14 characters");
        return NULL;
    }
    layout_object *result = layout_new(Py_TYPE(self));
    if (result != NULL)
        operation(&result->layout, layout_of(self), name.text);
    return (PyObject *)result;
}

static PyObject *flatten_ins(PyObject *self, PyObject *name) {
    return flatten(self, name, lilac_layout_flatten_ins);
}

static PyObject *flatten_outs(PyObject *self, PyObject *name) {
    return flatten(self, name, lilac_layout_flatten_outs);
}

static PyObject *reshape(PyObject *self, PyObject *shape) {
    uint32_t bits[LILAC_LAYOUT_MAX_DIMS], rank;
    if (!read_sizes(bits, &rank, shape))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_reshape(&result->layout, layout_of(self), rank, bits, &why);
    return layout_done(result, done, &why);
}

static PyObject *expand(PyObject *self, PyObject *axis) {
    const lilac_layout *layout = layout_of(self);
    lilac_layout_dim any[LILAC_LAYOUT_MAX_DIMS + 1] = {0}; /* so that a name is none of them */
    uint32_t index;
    if (layout->out_count == LILAC_LAYOUT_MAX_DIMS)
        return PyErr_Format(layout_error, "more than %d outputs", LILAC_LAYOUT_MAX_DIMS);
    if (!read_dim(&index, any, layout->out_count + 1U, axis))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result != NULL)
        lilac_layout_expand(&result->layout, layout, index);
    return (PyObject *)result;
}

/* _fit(shape, order, input): order None for the last dimension fastest. */
static PyObject *fit(PyObject *self, PyObject *arguments) {
    const lilac_layout *layout = layout_of(self);
    PyObject *shape, *sequence, *input;
    uint32_t bits[LILAC_LAYOUT_MAX_DIMS], order[LILAC_LAYOUT_MAX_DIMS], rank;
    dim_name name;
    if (!PyArg_ParseTuple(arguments, "OOO", &shape, &sequence, &input) ||
        !read_sizes(bits, &rank, shape) || !read_name(&name, input) ||
        (sequence != Py_None && !read_order(order, layout->out, layout->out_count, sequence)))
        return NULL;
    if (rank != layout->out_count)
        return PyErr_Format(layout_error, "%d sizes for %d outputs", (int)rank,
                            (int)layout->out_count);
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_fit(&result->layout, layout, bits,
                                       sequence == Py_None ? NULL : order, name.text, &why);
    return layout_done(result, done, &why);
}

/* ---- the table -------------------------------------------------------------------------- */

/* A method that takes names of arguments has another type than the table's rows say. */
#define BY_KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

PyMethodDef layout_methods[] = {
    {"_from_bases", layout_from_bases, METH_VARARGS | METH_CLASS, NULL},
    {"_from_masks", layout_from_masks, METH_VARARGS | METH_CLASS, NULL},
    {"_zeros", layout_zeros, METH_VARARGS | METH_CLASS, NULL},
    {"_strided", layout_strided, METH_VARARGS | METH_CLASS, NULL},
    {"_standard", layout_standard, METH_VARARGS | METH_CLASS, NULL},
    {"_bulk", layout_bulk, METH_VARARGS, NULL},
    {"_coordinates", layout_coordinates, METH_VARARGS, NULL},
    {"_divide", divide, METH_VARARGS, NULL},
    {"_division_order", division_order, METH_VARARGS, NULL},
    {"_fit", fit, METH_VARARGS, NULL},
    {"_view", layout_view, METH_VARARGS, NULL},
    {"apply", layout_apply, METH_O,
     "apply(index)\n\n"
     "The element at an index, which may be\n"
     "  an int           the flattened inputs, first input lowest: the flattened outputs, an int;\n"
     "  a dict           {input name: index}, 0 for those not named: {output name: coordinate};\n"
     "  an array of ints flattened inputs: flattened outputs, uint64 of the same shape;\n"
     "  a dict of arrays which broadcast together: {output name: int64 array}.\n"
     "LayoutError for an index outside its input and for a name that is none."},
    {"inverse", inverse, METH_NOARGS,
     "inverse()\n\nThe inverse of a bijective layout; also ~layout. LayoutError for others."},
    {"pseudoinverse", pseudoinverse, METH_NOARGS,
     "pseudoinverse()\n\n"
     "The right inverse of a surjective layout (Definition 4.5) that never sets a free bit:\n"
     "layout @ layout.pseudoinverse() is the identity."},
    {"compose", compose, METH_O,
     "compose(outer)\n\nouter @ self: this layout and then `outer`, which must have its outputs "
     "as inputs."},
    {"invert_and_compose", invert_and_compose, METH_O,
     "invert_and_compose(other)\n\n"
     "other^-1 after self (section 5.4): from self's inputs to other's, where self's element is "
     "in\n"
     "other, so that other @ result == self. The identity on every input whose columns are the "
     "same\n"
     "in both, and otherwise the smallest index that holds the element. The outputs must agree, "
     "and\n"
     "other be surjective."},
    {"divide_left", divide_left, METH_O,
     "divide_left(tile)\n\nThe layout c with tile * c == self; also self / tile (Definition 4.4)."},
    {"divide_right", divide_right, METH_O,
     "divide_right(tile)\n\nThe layout c with c * tile == self."},
    {"permute_bits", permute_bits, METH_VARARGS,
     "permute_bits(input, order)\n\n"
     "With the bits of one input in another order: bit i of the result is bit order[i]."},
    {"concat_ins", concat_ins, METH_O,
     "concat_ins(other)\n\n(x, y) -> self(x) xor other(y); the outputs must be the same."},
    {"concat_outs", concat_outs, METH_O,
     "concat_outs(other)\n\nx -> (self(x), other(x)); the inputs must be the same."},
    {"sublayout", BY_KEYWORDS(sublayout),
     "sublayout(ins=None, outs=None)\n\nOnly the named inputs and outputs; None: all of that "
     "side."},
    {"slice", slice, METH_O,
     "slice(dim)\n\n"
     "Without one output, given by number or name, those above it renamed dim0, dim1 ...; zero\n"
     "register bases are dropped: the layout of a #ttg.slice."},
    {"drop_free", drop_free, METH_O, "drop_free(input)\n\nWithout the zero bases of an input."},
    {"quotient", quotient, METH_O,
     "quotient(names)\n\n"
     "Without the named dimensions on both sides; the layout must be the identity over them and\n"
     "nothing else touch them."},
    {"drop_empty", drop_empty, METH_NOARGS,
     "drop_empty()\n\nWithout the dimensions of size one, on both sides."},
    {"permute_ins", permute_ins, METH_O,
     "permute_ins(order)\n\nThe inputs in another order, by numbers or names."},
    {"permute_outs", permute_outs, METH_O,
     "permute_outs(order)\n\nThe outputs in another order, by numbers or names; names stay."},
    {"transpose", transpose, METH_O,
     "transpose(order)\n\n"
     "The layout of the transposed tensor: output i is output order[i], named dim0, dim1 ... "
     "anew."},
    {"rename_in", rename_in, METH_VARARGS, "rename_in(old, new)\n\nWith an input renamed."},
    {"rename_out", rename_out, METH_VARARGS, "rename_out(old, new)\n\nWith an output renamed."},
    {"resize_in", resize_in, METH_VARARGS,
     "resize_in(name, size)\n\n"
     "With an input of another size: its low bits, or new bits that move nothing."},
    {"resize_out", resize_out, METH_VARARGS,
     "resize_out(name, size)\n\n"
     "With an output of another size: coordinates modulo it, or room above."},
    {"reshape_ins", reshape_ins, METH_O,
     "reshape_ins(dims)\n\nThe flattened inputs cut into {name: size}, lowest bits first."},
    {"reshape_outs", reshape_outs, METH_O,
     "reshape_outs(dims)\n\nThe flattened outputs cut into {name: size}, lowest bits first."},
    {"flatten_ins", flatten_ins, METH_O, "flatten_ins(name)\n\nAll inputs as one of this name."},
    {"flatten_outs", flatten_outs, METH_O,
     "flatten_outs(name)\n\nAll outputs as one of this name."},
    {"reshape", reshape, METH_O,
     "reshape(shape)\n\n"
     "The layout after a row-major reshape of the tensor: outputs dim0, dim1 ... of these sizes, "
     "the\n"
     "last one fastest."},
    {"expand", expand, METH_O,
     "expand(axis)\n\nWith a new output of size 1 at a place among them, all named dim0, dim1 ..."},
    {"equivalent", layout_equivalent, METH_O,
     "equivalent(other)\n\nEqual once the dimensions are put in the same order?"},
    {"free_bits", layout_free_bits, METH_O,
     "free_bits(input)\n\n"
     "The bits of an input that do not change the element, as a mask: each element is held once "
     "by\n"
     "the indices whose free bits are 0."},
    {"additive_bits", BY_KEYWORDS(layout_additive_bits),
     "additive_bits(input, touched=0)\n\n"
     "The bits of an input, as a mask, that may be added instead of xored: layout(x) is\n"
     "layout(rest of x) + layout(these bits of x) as flattened numbers. `touched`: output bits "
     "that\n"
     "an offset from elsewhere may set."},
    {"is_zero_over", layout_is_zero_over, METH_VARARGS,
     "is_zero_over(ins, outs)\n\nDo these inputs move nothing along these outputs? None: all."},
    {"is_identity_over", layout_is_identity_over, METH_O,
     "is_identity_over(names)\n\nAre these dimensions of both sides mapped to themselves?"},
    {"is_trivial_over", layout_is_trivial_over, METH_O,
     "is_trivial_over(names)\n\nAnd does nothing else move along them, nor they along others?"},
    {"consecutive", BY_KEYWORDS(layout_consecutive),
     "consecutive(order=None, input='register')\n\n"
     "How many consecutive elements indices 0, 1, 2 ... of an input hold, wherever the rest "
     "starts\n"
     "(section 5.1). `order` lists the outputs, fastest first; None: the last one fastest."},
    {"to_json", layout_json, METH_NOARGS,
     "to_json()\n\n'{\"register\": [[0,1], ...], \"lane\": ...}', coordinates in output order."},
    {"to_cute", layout_cute, METH_NOARGS,
     "to_cute()\n\n"
     "The CuTe layout, as text: of memory, of its dims to the offset; of a distributed layout, of\n"
     "(thread, value) to the number of the element, first dim fastest. LayoutError when there is\n"
     "none, with the reason."},
    {NULL, NULL, 0, NULL},
};
