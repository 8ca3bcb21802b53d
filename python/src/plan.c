/* Plans between layouts, and accesses to shared memory: planned, executed on the simulator, and
 * returned as dicts, which lilac/plans.py converts to objects.
 *
 * The simulation and the names of memory layouts come from the sources of the command
 * (tools/lilac/plan_check.h, simulate.h, offsets.h, names.h), so `lilac convert` and lilac.convert
 * report the same.
 */
#include "module.h"

#include <lilac.h>

#include "names.h"
#include "offsets.h"
#include "plan_check.h"
#include "simulate.h"

#include <string.h>

/* ---- dicts ------------------------------------------------------------------------------------
 */

/* Adds a new reference; false when it is NULL. */
static bool put(PyObject *dict, const char *key, PyObject *value) {
    const bool good = value != NULL && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return good;
}

/* None for an empty text. */
static PyObject *text_or_none(lilac_text *text) {
    if (text->length != 0)
        return take_text(text);
    lilac_text_clear(text);
    Py_RETURN_NONE;
}

static PyObject *new_layout(PyObject *like, const lilac_layout *layout) {
    layout_object *result = layout_new(Py_TYPE(like));
    if (result != NULL)
        result->layout = *layout;
    return (PyObject *)result;
}

/* The device of that name; without one, a device with the layout's lanes. */
static const lilac_arch *find_device(const char *name, const lilac_layout *layout) {
    const uint32_t lane_bits = lilac_layout_in_bits(layout, "lane");
    const lilac_arch *arch = lilac_arch_find(name != NULL     ? name
                                             : lane_bits == 6 ? "gfx942"
                                                              : "sm_90a");
    if (arch == NULL)
        PyErr_Format(input_error, "there is no device '%s'; lilac.devices() lists them", name);
    return arch;
}

/* ---- plans ------------------------------------------------------------------------------------
 */

typedef struct planned {
    PyObject *source, *target; /* borrowed */
    uint32_t element_bits;
    lilac_plan_options options;
    const lilac_arch *arch;
    lilac_plan_conversion plan;
    lilac_context *context;
    lilac_simt_module *module; /* the kernel that carries the plan out */
    plan_check checked;
    lilac_text said;
} planned;

static void planned_clear(planned *p) {
    lilac_simt_module_destroy(p->module);
    if (p->context != NULL)
        lilac_context_destroy(p->context);
    lilac_text_clear(&p->said);
}

/* Limits accesses to this number of bytes and excludes matrix instructions; 0: no limit. */
static lilac_arch narrowed(const lilac_arch *arch, uint32_t vector_bytes) {
    lilac_arch narrow = *arch;
    if (vector_bytes != 0 && vector_bytes <= arch->vector_bytes) {
        narrow.vector_bytes = vector_bytes;
        narrow.features &= ~(uint32_t)(LILAC_HAS_LDMATRIX | LILAC_HAS_STMATRIX);
    }
    return narrow;
}

static bool make_plan(planned *p, uint32_t vector_bytes) {
    lilac_reason why;
    if (lilac_layout_in_bits(layout_of(p->source), "block") > 0 &&
        !lilac_arch_has(p->arch, LILAC_HAS_CLUSTERS)) {
        PyErr_Format(layout_error, "%s has no clusters of blocks", p->arch->name);
        return false;
    }
    const lilac_arch narrow = narrowed(p->arch, vector_bytes);
    if (!lilac_plan_conversion_init(&p->plan, layout_of(p->source), layout_of(p->target),
                                    p->element_bits, &p->options, &narrow, &why)) {
        PyErr_SetString(layout_error, why.text);
        return false;
    }
    p->plan.arch = p->arch;
    p->context = lilac_context_create();
    p->module = lilac_lower_movement_kernel(p->context, &p->plan);
    if (p->module == NULL)
        PyErr_NoMemory();
    return p->module != NULL;
}

/* The arguments that plan() and plan_text() have in common. */
static bool read_plan(planned *p, PyObject *arguments, PyObject **last) {
    const char *device;
    unsigned way, vector_bytes;
    unsigned long long scratch;
    if (!PyArg_ParseTuple(arguments, "OOIIKzIO", &p->source, &p->target, &p->element_bits, &way,
                          &scratch, &device, &vector_bytes, last) ||
        !expect_layout(p->source) || !expect_layout(p->target))
        return false;
    if (way > LILAC_PLAN_UNSWIZZLED) {
        PyErr_SetString(input_error, "no such way");
        return false;
    }
    p->options.strategy = (lilac_plan_strategy)way;
    p->options.scratch_bytes = scratch;
    p->arch = find_device(device, layout_of(p->source));
    return p->arch != NULL && make_plan(p, vector_bytes);
}

static PyObject *bit_list(const lilac_layout *offsets, const lilac_layout *memory, const char *to) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < lilac_layout_in_bits(memory, to); i++) {
        lilac_text text = {0};
        offsets_put_bit(&text, offsets, to, i);
        PyObject *bit = take_text(&text);
        if (bit == NULL || PyList_Append(list, bit) < 0)
            Py_CLEAR(list);
        Py_XDECREF(bit);
    }
    return list;
}

/* The memory layout of the shared-memory exchange, with its names. */
static bool put_memory(PyObject *dict, planned *p) {
    const lilac_layout *memory = &p->plan.staging.memory;
    lilac_text named = {0}, cute_text = {0}, formula = {0};
    lilac_cute cute;
    lilac_layout offsets;
    (void)names_put_triton(&named, p->context, memory, p->element_bits);
    if (lilac_cute_of_layout(&cute, memory, NULL))
        lilac_cute_print(&cute_text, &cute);
    const bool invertible = offsets_of(&offsets, memory, NULL);
    if (invertible)
        offsets_put_formula(&formula, &offsets);
    bool good = put(dict, "memory", new_layout(p->source, memory));
    good &= put(dict, "named", text_or_none(&named));
    good &= put(dict, "cute", text_or_none(&cute_text));
    good &= put(dict, "formula", text_or_none(&formula));
    good &= put(dict, "bits", invertible ? bit_list(&offsets, memory, "offset") : PyList_New(0));
    good &=
        put(dict, "block_bits", invertible ? bit_list(&offsets, memory, "block") : PyList_New(0));
    return good;
}

static PyObject *count_list(const plan_check *checked) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < JUDGED_COUNTS; i++) {
        const checked_count *count = &checked->counts[i];
        PyObject *row = Py_BuildValue("sKK", count->name, (unsigned long long)count->planned,
                                      (unsigned long long)count->simulated);
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *layouts_between(const planned *p) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 1; list != NULL && i <= p->plan.step_count; i++) {
        lilac_layout layout;
        lilac_plan_conversion_layout(&layout, &p->plan, layout_of(p->source), i);
        PyObject *item = new_layout(p->source, &layout);
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *plan_dict(planned *p, bool checked) {
    lilac_text json = {0}, explanation = {0};
    PyObject *dict = PyDict_New();
    if (dict == NULL)
        return NULL;
    lilac_plan_conversion_json(&json, &p->plan);
    lilac_plan_conversion_explain(&explanation, &p->plan, layout_of(p->source),
                                  layout_of(p->target));
    bool good = put(dict, "plan", take_text(&json));
    good &= put(dict, "explanation", take_text(&explanation));
    good &= put(dict, "device", PyUnicode_FromString(p->arch->name));
    good &= put(dict, "layouts", layouts_between(p));
    good &= put(dict, "blocks", PyLong_FromUnsignedLong(1UL << p->plan.block_bits));
    if (p->plan.kind >= LILAC_PLAN_SHARED)
        good &= put_memory(dict, p);
    if (checked) {
        good &= put(dict, "counts", count_list(&p->checked));
        good &= put(dict, "correct", PyBool_FromLong(p->checked.ran && p->checked.correct));
        good &= put(dict, "as_planned", PyBool_FromLong(p->checked.ran && p->checked.agrees));
        good &= put(dict, "said", take_text(&p->said));
    }
    if (!good)
        Py_CLEAR(dict);
    return dict;
}

/* plan(source, target, element_bits, way, scratch, device, vector_bytes, check) */
static PyObject *plan(PyObject *Py_UNUSED(module), PyObject *arguments) {
    planned p = {0};
    PyObject *check, *result = NULL;
    if (read_plan(&p, arguments, &check)) {
        const bool checked = PyObject_IsTrue(check) == 1;
        if (checked) {
            /* clang-format off */
            Py_BEGIN_ALLOW_THREADS
            check_plan(&p.checked, &p.said, p.context, p.module, &p.plan, layout_of(p.source),
                           layout_of(p.target));
            Py_END_ALLOW_THREADS
            /* clang-format on */
        }
        result = plan_dict(&p, checked);
    }
    planned_clear(&p);
    return result;
}

/* plan_text(source, target, element_bits, way, scratch, device, vector_bytes, form): the kernel,
 * after the passes of compile, as "ptx" or "simt". */
static PyObject *plan_text(PyObject *Py_UNUSED(module), PyObject *arguments) {
    planned p = {0};
    PyObject *form, *result = NULL;
    if (read_plan(&p, arguments, &form)) {
        lilac_text text = {0};
        lilac_run_simt_passes(p.module);
        const bool simt =
            PyUnicode_Check(form) && PyUnicode_CompareWithASCIIString(form, "simt") == 0;
        bool good = true;
        if (simt)
            lilac_simt_print(&text, p.module);
        else
            good = lilac_ptx_write(&text, p.module, &(lilac_ptx_options){0});
        if (good) {
            result = take_text(&text);
        } else {
            lilac_text_clear(&text);
            PyErr_Format(layout_error, "%s has no PTX", p.arch->name);
        }
    }
    planned_clear(&p);
    return result;
}

/* ---- accesses ---------------------------------------------------------------------------------
 */

static bool read_paddings(lilac_plan_padding *padding, PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return false;
    if (count > LILAC_PLAN_MAX_PADDINGS) {
        PyErr_Format(layout_error, "more than %d paddings", LILAC_PLAN_MAX_PADDINGS);
        return false;
    }
    padding->count = (uint32_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "II", &padding->interval[i],
                              &padding->padding[i]))
            return false;
    }
    return true;
}

static PyObject *lane_addresses(const lilac_plan_access *access) {
    PyObject *list = PyList_New(0);
    for (uint32_t lane = 0; list != NULL && lane < access->transaction_lanes; lane++) {
        const uint64_t offset = lilac_plan_access_offset(access, 0, lane, 0);
        PyObject *address = PyLong_FromUnsignedLongLong(offset * access->element_bytes);
        if (address == NULL || PyList_Append(list, address) < 0)
            Py_CLEAR(list);
        Py_XDECREF(address);
    }
    return list;
}

static PyObject *access_dict(const lilac_plan_access *access, const simulated_access *simulated,
                             const lilac_arch *arch) {
    PyObject *dict =
        Py_BuildValue("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:K,s:K,s:I}", "device", arch->name, "banks",
                      (unsigned)arch->banks, "bank_bytes", (unsigned)arch->bank_bytes, "vector",
                      1U << access->vector_bits, "element_bytes", access->element_bytes, "warps",
                      1U << access->warp_bits, "transactions", access->transactions, "instructions",
                      (unsigned long long)access->instructions, "wavefronts",
                      (unsigned long long)access->wavefronts, "conflicts", access->conflicts);
    if (dict == NULL)
        return NULL;
    bool good = put(dict, "transaction_lanes", PyLong_FromUnsignedLong(access->transaction_lanes));
    good &=
        put(dict, "simulated_instructions", PyLong_FromUnsignedLongLong(simulated->instructions));
    good &= put(dict, "simulated_wavefronts", PyLong_FromUnsignedLongLong(simulated->wavefronts));
    good &= put(dict, "correct", PyBool_FromLong(simulated->correct));
    good &= put(dict, "addresses", lane_addresses(access));
    if (!good)
        Py_CLEAR(dict);
    return dict;
}

/* access(distributed, memory, paddings, element_bits, device) */
static PyObject *access_of(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *distributed, *memory, *paddings;
    unsigned element_bits;
    const char *device;
    lilac_plan_padding padding = {0};
    lilac_plan_access access;
    simulated_access simulated = {0};
    lilac_reason why;
    if (!PyArg_ParseTuple(arguments, "OOO!Iz:access", &distributed, &memory, &PyList_Type,
                          &paddings, &element_bits, &device) ||
        !expect_layout(distributed) || !expect_layout(memory) || !read_paddings(&padding, paddings))
        return NULL;
    const lilac_arch *arch = find_device(device, layout_of(distributed));
    if (arch == NULL)
        return NULL;
    if (!lilac_plan_access_init_padded(&access, layout_of(distributed), layout_of(memory), &padding,
                                       element_bits, arch, &why)) {
        PyErr_SetString(layout_error, why.text);
        return NULL;
    }
    lilac_context *context = lilac_context_create();
    const bool ran = simulate_access(&simulated, context, &access, layout_of(distributed),
                                     layout_of(memory), arch);
    PyObject *result = ran ? access_dict(&access, &simulated, arch) : NULL;
    lilac_context_destroy(context);
    if (!ran)
        PyErr_SetString(layout_error, "the simulator refuses this access");
    return result;
}

PyMethodDef plan_functions[] = {
    {"plan", plan, METH_VARARGS,
     "plan($module, source, target, element_bits, way, scratch, device, vector_bytes, check, /)\n"
     "--\n\n"},
    {"plan_text", plan_text, METH_VARARGS,
     "plan_text($module, source, target, element_bits, way, scratch, device, vector_bytes, form, "
     "/)\n--\n\n"},
    {"access", access_of, METH_VARARGS,
     "access($module, distributed, memory, paddings, element_bits, device, /)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};
