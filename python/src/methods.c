/* Operations on layouts, and the table of LayoutBase's methods.
 *
 * Preconditions that the library only asserts (a permutation, the number of a dimension, the length
 * of a name) are checked here, because the caller is Python.
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
static PyObject *permute_bits(PyObject *self, PyObject *arguments, PyObject *words_given) {
    static char *keys[] = {"input", "order", NULL};
    PyObject *input, *sequence;
    dim_name name;
    uint64_t words[LILAC_LAYOUT_MAX_BITS], seen = 0;
    uint8_t order[LILAC_LAYOUT_MAX_BITS];
    uint32_t count;
    if (!PyArg_ParseTupleAndKeywords(arguments, words_given, "OO:permute_bits", keys, &input,
                                     &sequence) ||
        !read_name(&name, input) || !read_words(words, LILAC_LAYOUT_MAX_BITS, &count, sequence))
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
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "|OO:sublayout", keys, &in_sequence,
                                     &out_sequence) ||
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

static PyObject *rename_dim(PyObject *self, PyObject *arguments, PyObject *words, const char *form,
                            renaming *operation) {
    static char *keys[] = {"old", "new", NULL};
    PyObject *old, *new;
    dim_name from, to;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, form, keys, &old, &new) ||
        !read_name(&from, old) || !read_name(&to, new))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = operation(&result->layout, layout_of(self), from.text, to.text, &why);
    return layout_done(result, done, &why);
}

static PyObject *rename_in(PyObject *self, PyObject *arguments, PyObject *words) {
    return rename_dim(self, arguments, words, "OO:rename_in", lilac_layout_rename_in);
}

static PyObject *rename_out(PyObject *self, PyObject *arguments, PyObject *words) {
    return rename_dim(self, arguments, words, "OO:rename_out", lilac_layout_rename_out);
}

typedef bool resizing(lilac_layout *, const lilac_layout *, const char *, uint32_t, lilac_reason *);

static PyObject *resize(PyObject *self, PyObject *arguments, PyObject *words, const char *form,
                        resizing *operation) {
    static char *keys[] = {"name", "size", NULL};
    PyObject *text, *size;
    dim_name name;
    uint32_t bits;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, form, keys, &text, &size) ||
        !read_name(&name, text) || !read_size(&bits, size))
        return NULL;
    layout_object *result = layout_new(Py_TYPE(self));
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = operation(&result->layout, layout_of(self), name.text, bits, &why);
    return layout_done(result, done, &why);
}

static PyObject *resize_in(PyObject *self, PyObject *arguments, PyObject *words) {
    return resize(self, arguments, words, "OO:resize_in", lilac_layout_resize_in);
}

static PyObject *resize_out(PyObject *self, PyObject *arguments, PyObject *words) {
    return resize(self, arguments, words, "OO:resize_out", lilac_layout_resize_out);
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

BY_NAME(compose, "compose", "outer")
BY_NAME(invert_and_compose, "invert_and_compose", "other")
BY_NAME(divide_left, "divide_left", "tile")
BY_NAME(divide_right, "divide_right", "tile")
BY_NAME(concat_ins, "concat_ins", "other")
BY_NAME(concat_outs, "concat_outs", "other")
BY_NAME(slice, "slice", "dim")
BY_NAME(drop_free, "drop_free", "input")
BY_NAME(quotient, "quotient", "names")
BY_NAME(permute_ins, "permute_ins", "order")
BY_NAME(permute_outs, "permute_outs", "order")
BY_NAME(transpose, "transpose", "order")
BY_NAME(reshape_ins, "reshape_ins", "dims")
BY_NAME(reshape_outs, "reshape_outs", "dims")
BY_NAME(flatten_ins, "flatten_ins", "name")
BY_NAME(flatten_outs, "flatten_outs", "name")
BY_NAME(reshape, "reshape", "shape")
BY_NAME(expand, "expand", "axis")
BY_NAME(layout_apply, "apply", "index")
BY_NAME(layout_equivalent, "equivalent", "other")
BY_NAME(layout_free_bits, "free_bits", "input")
BY_NAME(layout_is_identity_over, "is_identity_over", "names")
BY_NAME(layout_is_trivial_over, "is_trivial_over", "names")

/* The first line of each text is the signature that inspect.signature reads. */
/* clang-format off */
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
    {"apply", BY_KEYWORDS(layout_apply_by_name),
     "apply($self, index)\n--\n\n"
     "The element at an index.\n\n"
     "index: an int, the flattened inputs with the first input in the lowest bits; or a dict\n"
     "    {input name: index}, 0 for inputs that it does not name; or an array of ints, of flattened\n"
     "    inputs; or a dict of arrays, which broadcast together.\n"
     "Returns an int, the flattened outputs; or {output name: coordinate}; or a uint64 array of the\n"
     "index's shape; or {output name: int64 array}.\n"
     "Raises LayoutError for an index outside its input and for a name that is not an input's."},
    {"inverse", inverse, METH_NOARGS,
     "inverse($self)\n--\n\n"
     "The inverse of a bijective layout; also ~layout.\n\n"
     "Raises LayoutError for a layout that is not bijective."},
    {"pseudoinverse", pseudoinverse, METH_NOARGS,
     "pseudoinverse($self)\n--\n\n"
     "The right inverse of a surjective layout (Definition 4.5) that never sets a free bit.\n\n"
     "layout @ layout.pseudoinverse() is the identity.\n"
     "Raises LayoutError for a layout that is not surjective."},
    {"compose", BY_KEYWORDS(compose_by_name),
     "compose($self, outer)\n--\n\n"
     "outer @ self: this layout, then `outer`.\n\n"
     "outer: a Layout whose inputs are this layout's outputs.\n"
     "Raises LayoutError when names or sizes differ."},
    {"invert_and_compose", BY_KEYWORDS(invert_and_compose_by_name),
     "invert_and_compose($self, other)\n--\n\n"
     "other^-1 @ self (section 5.4): from this layout's inputs to the inputs of `other`.\n\n"
     "The result is where `other` holds each element of this layout: other @ result == self. It is the\n"
     "identity on each input whose columns are the same in both, and otherwise the smallest index that\n"
     "holds the element.\n"
     "Raises LayoutError when the outputs differ or `other` is not surjective."},
    {"divide_left", BY_KEYWORDS(divide_left_by_name),
     "divide_left($self, tile)\n--\n\n"
     "The layout c with tile * c == self; also self / tile (Definition 4.4).\n\n"
     "Raises LayoutError when there is none."},
    {"divide_right", BY_KEYWORDS(divide_right_by_name),
     "divide_right($self, tile)\n--\n\n"
     "The layout c with c * tile == self.\n\n"
     "Raises LayoutError when there is none."},
    {"permute_bits", BY_KEYWORDS(permute_bits),
     "permute_bits($self, input, order)\n--\n\n"
     "The layout with the bits of one input in another order.\n\n"
     "order: a permutation of the input's bit numbers; bit i of the result is bit order[i] of this\n"
     "    layout.\n"
     "Raises LayoutError when `order` is not a permutation."},
    {"concat_ins", BY_KEYWORDS(concat_ins_by_name),
     "concat_ins($self, other)\n--\n\n"
     "(x, y) -> self(x) xor other(y).\n\n"
     "Raises LayoutError when the outputs differ or an input has a name of the other layout's."},
    {"concat_outs", BY_KEYWORDS(concat_outs_by_name),
     "concat_outs($self, other)\n--\n\n"
     "x -> (self(x), other(x)).\n\n"
     "Raises LayoutError when the inputs differ or an output has a name of the other layout's."},
    {"sublayout", BY_KEYWORDS(sublayout),
     "sublayout($self, ins=None, outs=None)\n--\n\n"
     "The layout restricted to the named inputs and outputs.\n\n"
     "ins, outs: sequences of names, in any order; None: all of that side.\n"
     "Raises LayoutError for a name that the layout does not have."},
    {"slice", BY_KEYWORDS(slice_by_name),
     "slice($self, dim)\n--\n\n"
     "The layout without one output: the layout of a #ttg.slice.\n\n"
     "dim: the output's number (negative: from the end) or name. Outputs above it are renamed\n"
     "    dim0, dim1 ...; register bases that become zero are removed.\n"
     "Raises LayoutError when there is no such output."},
    {"drop_free", BY_KEYWORDS(drop_free_by_name),
     "drop_free($self, input)\n--\n\n"
     "The layout without the zero bases of an input.\n\n"
     "Raises LayoutError when there is no such input."},
    {"quotient", BY_KEYWORDS(quotient_by_name),
     "quotient($self, names)\n--\n\n"
     "The layout without the named dimensions on both sides.\n\n"
     "Raises LayoutError unless the layout is the identity over these dimensions and no other\n"
     "dimension maps to or from them."},
    {"drop_empty", drop_empty, METH_NOARGS,
     "drop_empty($self)\n--\n\n"
     "The layout without the dimensions of size 1, on both sides."},
    {"permute_ins", BY_KEYWORDS(permute_ins_by_name),
     "permute_ins($self, order)\n--\n\n"
     "The layout with its inputs in another order.\n\n"
     "order: numbers or names of all inputs.\n"
     "Raises LayoutError when `order` is not a permutation."},
    {"permute_outs", BY_KEYWORDS(permute_outs_by_name),
     "permute_outs($self, order)\n--\n\n"
     "The layout with its outputs in another order; the outputs keep their names.\n\n"
     "order: numbers or names of all outputs.\n"
     "Raises LayoutError when `order` is not a permutation."},
    {"transpose", BY_KEYWORDS(transpose_by_name),
     "transpose($self, order)\n--\n\n"
     "The layout of the transposed tensor.\n\n"
     "order: numbers or names of all outputs; output i of the result is output order[i] of this\n"
     "    layout, and the outputs are renamed dim0, dim1 ...\n"
     "Raises LayoutError when `order` is not a permutation."},
    {"rename_in", BY_KEYWORDS(rename_in),
     "rename_in($self, old, new)\n--\n\n"
     "The layout with an input renamed.\n\n"
     "Raises LayoutError when there is no input `old` or there is one named `new`. A name has 1 to 14\n"
     "characters."},
    {"rename_out", BY_KEYWORDS(rename_out),
     "rename_out($self, old, new)\n--\n\n"
     "The layout with an output renamed.\n\n"
     "Raises LayoutError when there is no output `old` or there is one named `new`. A name has 1 to 14\n"
     "characters."},
    {"resize_in", BY_KEYWORDS(resize_in),
     "resize_in($self, name, size)\n--\n\n"
     "The layout with an input of another size.\n\n"
     "size: a power of two. A smaller size keeps the low bits; a larger size adds bits with zero bases.\n"
     "Raises LayoutError for other sizes and when there is no such input."},
    {"resize_out", BY_KEYWORDS(resize_out),
     "resize_out($self, name, size)\n--\n\n"
     "The layout with an output of another size.\n\n"
     "size: a power of two. A smaller size takes coordinates modulo the size; a larger size adds\n"
     "    coordinates that no index maps to.\n"
     "Raises LayoutError for other sizes and when there is no such output."},
    {"reshape_ins", BY_KEYWORDS(reshape_ins_by_name),
     "reshape_ins($self, dims)\n--\n\n"
     "The layout with the flattened inputs split anew.\n\n"
     "dims: {name: size}, lowest bits first; the sizes are powers of two whose product is the number of\n"
     "    indices.\n"
     "Raises LayoutError when the product differs."},
    {"reshape_outs", BY_KEYWORDS(reshape_outs_by_name),
     "reshape_outs($self, dims)\n--\n\n"
     "The layout with the flattened outputs split anew.\n\n"
     "dims: {name: size}, lowest bits first; the sizes are powers of two whose product is the number of\n"
     "    elements.\n"
     "Raises LayoutError when the product differs."},
    {"flatten_ins", BY_KEYWORDS(flatten_ins_by_name),
     "flatten_ins($self, name)\n--\n\n"
     "The layout with all inputs flattened to one of this name."},
    {"flatten_outs", BY_KEYWORDS(flatten_outs_by_name),
     "flatten_outs($self, name)\n--\n\n"
     "The layout with all outputs flattened to one of this name."},
    {"reshape", BY_KEYWORDS(reshape_by_name),
     "reshape($self, shape)\n--\n\n"
     "The layout after a row-major reshape of the tensor.\n\n"
     "shape: a sequence of powers of two, the last dimension fastest; the outputs become dim0, dim1 ...\n"
     "Raises LayoutError when the number of elements differs."},
    {"expand", BY_KEYWORDS(expand_by_name),
     "expand($self, axis)\n--\n\n"
     "The layout with a new output of size 1 at position `axis`; the outputs become dim0, dim1 ...\n\n"
     "Raises LayoutError for a position below -rank - 1 or above rank."},
    {"equivalent", BY_KEYWORDS(layout_equivalent_by_name),
     "equivalent($self, other)\n--\n\n"
     "Whether the two layouts are equal once their dimensions are in the same order."},
    {"free_bits", BY_KEYWORDS(layout_free_bits_by_name),
     "free_bits($self, input)\n--\n\n"
     "The bits of an input that do not change the element, as a mask.\n\n"
     "The indices whose free bits are 0 hold each element once.\n"
     "Raises LayoutError when there is no such input."},
    {"additive_bits", BY_KEYWORDS(layout_additive_bits),
     "additive_bits($self, input, touched=0)\n--\n\n"
     "The bits of an input, as a mask, that may be added instead of xored.\n\n"
     "layout(x) is layout(x without these bits) + layout(these bits of x), as flattened numbers.\n"
     "touched: a mask of the output bits that an offset from elsewhere may set.\n"
     "Raises LayoutError when there is no such input."},
    {"is_zero_over", BY_KEYWORDS(layout_is_zero_over),
     "is_zero_over($self, ins=None, outs=None)\n--\n\n"
     "Whether these inputs change no coordinate of these outputs.\n\n"
     "ins, outs: sequences of names; None: all of that side."},
    {"is_identity_over", BY_KEYWORDS(layout_is_identity_over_by_name),
     "is_identity_over($self, names)\n--\n\n"
     "Whether the layout maps each of the named dimensions of its inputs to the output of that name,\n"
     "bit by bit. None: all."},
    {"is_trivial_over", BY_KEYWORDS(layout_is_trivial_over_by_name),
     "is_trivial_over($self, names)\n--\n\n"
     "Whether `is_identity_over` holds, and no other dimension maps to or from the named ones."},
    {"consecutive", BY_KEYWORDS(layout_consecutive),
     "consecutive($self, order=None, input='register')\n--\n\n"
     "The number of consecutive elements that indices 0, 1, 2 ... of an input hold, whatever the other\n"
     "inputs are (section 5.1).\n\n"
     "order: numbers or names of all outputs, fastest first; None: the last one fastest."},
    {"_bases_json", layout_json, METH_NOARGS, NULL},
    {"to_cute", layout_cute, METH_NOARGS,
     "to_cute($self)\n--\n\n"
     "The CuTe layout, as text.\n\n"
     "A memory layout: from its dimensions to the offset. A distributed layout: from (thread, value) to\n"
     "the number of the element, first dimension fastest.\n"
     "Raises LayoutError, with the reason, when there is none."},
    {NULL, NULL, 0, NULL},
};
/* clang-format on */
