/* The constructors: class methods with positional arguments. lilac/layout.py adds the defaults and
 * the documentation. */
#include "module.h"

/* Bases as coordinates, row after row, are at most this many numbers. */
enum { MAX_COORDINATES = LILAC_LAYOUT_MAX_BITS * LILAC_LAYOUT_MAX_DIMS };

/* _from_bases(ins, outs, coordinates): dicts of sizes, those of outs None to infer; the coordinates
 * of all the bases one after another. */
PyObject *layout_from_bases(PyObject *class, PyObject *arguments) {
    PyObject *in_dict, *out_dict, *sequence;
    dim_list ins, outs;
    uint64_t coordinates[MAX_COORDINATES + 1] = {0};
    uint32_t count, bits = 0;
    if (!PyArg_ParseTuple(arguments, "OOO", &in_dict, &out_dict, &sequence) ||
        !read_dims(&ins, in_dict, false) || !read_dims(&outs, out_dict, true))
        return NULL;
    for (uint32_t i = 0; i < ins.count; i++)
        bits += ins.dims[i].bits;
    if (bits > LILAC_LAYOUT_MAX_BITS)
        return PyErr_Format(layout_error, "more than %d input bits", LILAC_LAYOUT_MAX_BITS);
    if (!read_words(coordinates, MAX_COORDINATES, &count, sequence))
        return NULL;
    if (count != bits * outs.count)
        return PyErr_Format(layout_error, "%d coordinates for %d bases of %d", (int)count,
                            (int)bits, (int)outs.count);
    layout_object *result = layout_new((PyTypeObject *)class);
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_from_bases(&result->layout, ins.count, ins.dims, outs.count,
                                              outs.dims, coordinates, &why);
    return layout_done(result, done, &why);
}

/* _from_masks(ins, outs, masks): dicts of sizes, the masks one after another. */
PyObject *layout_from_masks(PyObject *class, PyObject *arguments) {
    PyObject *in_dict, *out_dict, *sequence;
    dim_list ins, outs;
    uint64_t masks[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t count, bits = 0;
    if (!PyArg_ParseTuple(arguments, "OOO", &in_dict, &out_dict, &sequence) ||
        !read_dims(&ins, in_dict, false) || !read_dims(&outs, out_dict, false) ||
        !read_words(masks, LILAC_LAYOUT_MAX_BITS, &count, sequence))
        return NULL;
    for (uint32_t i = 0; i < outs.count; i++)
        bits += outs.dims[i].bits;
    if (count != bits)
        return PyErr_Format(layout_error, "%d masks for %d output bits", (int)count, (int)bits);
    layout_object *result = layout_new((PyTypeObject *)class);
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_from_masks(&result->layout, ins.count, ins.dims, outs.count,
                                              outs.dims, masks, &why);
    return layout_done(result, done, &why);
}

/* _strided(size, stride, input, output) */
PyObject *layout_strided(PyObject *class, PyObject *arguments) {
    PyObject *size, *step, *input, *output;
    uint32_t bits;
    uint64_t stride;
    dim_name in, out;
    if (!PyArg_ParseTuple(arguments, "OOOO", &size, &step, &input, &output) ||
        !read_size(&bits, size) || !read_word(&stride, step) || !read_name(&in, input) ||
        !read_name(&out, output))
        return NULL;
    layout_object *result = layout_new((PyTypeObject *)class);
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_strided(&result->layout, bits, stride, in.text, out.text, &why);
    return layout_done(result, done, &why);
}

/* _zeros(size, input, output, output_size) */
PyObject *layout_zeros(PyObject *class, PyObject *arguments) {
    const uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    PyObject *size, *input, *output, *output_size;
    uint32_t bits, out_bits;
    dim_name in, out;
    if (!PyArg_ParseTuple(arguments, "OOOO", &size, &input, &output, &output_size) ||
        !read_size(&bits, size) || !read_name(&in, input) || !read_name(&out, output) ||
        !read_size(&out_bits, output_size))
        return NULL;
    layout_object *result = layout_new((PyTypeObject *)class);
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_add_out(&result->layout, out.text, out_bits, &why) &&
                      lilac_layout_add_in(&result->layout, in.text, bits, columns, &why);
    return layout_done(result, done, &why);
}

/* _standard(shape, order, input): order None for the last dimension fastest. */
PyObject *layout_standard(PyObject *class, PyObject *arguments) {
    PyObject *shape, *order_sequence, *input;
    uint32_t bits[LILAC_LAYOUT_MAX_DIMS];
    uint64_t order_words[LILAC_LAYOUT_MAX_DIMS];
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    dim_name in;
    if (!PyArg_ParseTuple(arguments, "OOO", &shape, &order_sequence, &input))
        return NULL;
    uint32_t rank, given;
    if (!read_name(&in, input) || !read_sizes(bits, &rank, shape))
        return NULL;
    if (order_sequence != Py_None) {
        if (!read_words(order_words, LILAC_LAYOUT_MAX_DIMS, &given, order_sequence))
            return NULL;
        if (given != rank)
            return PyErr_Format(layout_error, "an order of %d for %d dimensions", (int)given,
                                (int)rank);
        for (uint32_t i = 0; i < rank; i++)
            order[i] = order_words[i] < UINT32_MAX ? (uint32_t)order_words[i] : UINT32_MAX;
    }
    layout_object *result = layout_new((PyTypeObject *)class);
    if (result == NULL)
        return NULL;
    lilac_reason why;
    const bool done = lilac_layout_standard(&result->layout, in.text, rank, bits,
                                            order_sequence == Py_None ? NULL : order, &why);
    return layout_done(result, done, &why);
}
