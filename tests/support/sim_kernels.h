/* Builds and launches small kernels for the tests of the simulator. A `rig` owns a kernel under
 * construction and its launch. sim_apply runs one pure operation on many operands: its kernel
 * loads the operands, applies the operation and stores the results. */
#ifndef LILAC_TESTS_SIM_KERNELS_H
#define LILAC_TESTS_SIM_KERNELS_H

#include <lilac/sim.h>
#include <stdlib.h>
#include <string.h>

typedef struct rig {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_kernel *kernel;
    lilac_simt_builder b;
    lilac_simt_value tid;
    lilac_sim_buffer buffers[8];
    uint64_t arguments[8];
    uint32_t parameters;
    lilac_sim_launch launch;
    lilac_sim_counters counters;
} rig;

/* A kernel of `warps` warps whose `parameters` are all i64 pointers. */
static inline void rig_init_on(rig *r, const char *arch, uint32_t warps, uint32_t parameters,
                               uint32_t shared_bytes) {
    memset(r, 0, sizeof *r);
    r->context = lilac_context_create();
    r->module = lilac_simt_module_create(r->context, lilac_arch_find(arch));
    r->kernel = lilac_simt_kernel_create(r->module, lilac_intern_string(r->context, "k"),
                                         parameters, warps, 1);
    for (uint32_t k = 0; k < parameters; k++) {
        r->kernel->parameters[k].name = lilac_intern_string(r->context, "p");
        r->kernel->parameters[k].type = LILAC_SIMT_I64;
        r->kernel->parameters[k].is_pointer = true;
    }
    r->kernel->shared_bytes = shared_bytes;
    r->parameters = parameters;
    lilac_simt_builder_init(&r->b, r->kernel);
    r->launch = (lilac_sim_launch){.kernel = r->kernel,
                                   .grid = {1, 1, 1},
                                   .arguments = r->arguments,
                                   .argument_count = parameters,
                                   .buffers = r->buffers,
                                   .threads = 1};
}

static inline void rig_init(rig *r, uint32_t warps, uint32_t parameters, uint32_t shared_bytes) {
    rig_init_on(r, "sm_90a", warps, parameters, shared_bytes);
}

/* Operations without operands. */
static inline lilac_simt_value leaf(rig *r, lilac_simt_opcode code, uint8_t detail) {
    lilac_simt_instruction like = {.code = (uint16_t)code, .detail = detail};
    lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(&r->b, &like, 0, NULL, 1, &type);
}

static inline void effect(rig *r, lilac_simt_opcode code) {
    lilac_simt_instruction like = {.code = (uint16_t)code};
    lilac_simt_build(&r->b, &like, 0, NULL, 0, NULL);
}

static inline lilac_simt_value word(rig *r, uint64_t bits) {
    return lilac_simt_constant(&r->b, LILAC_SIMT_I32, bits);
}

static inline lilac_simt_value thread(rig *r) {
    if (!r->tid) {
        r->tid = leaf(r, LILAC_SIMT_OP_THREAD, 0);
    }
    return r->tid;
}

static inline lilac_simt_value op2(rig *r, lilac_simt_opcode code, lilac_simt_value a,
                                   lilac_simt_value c) {
    return lilac_simt_op2(&r->b, code, LILAC_SIMT_I32, a, c);
}

/* parameter + index * scale (index: i32) */
static inline lilac_simt_value element(rig *r, uint32_t parameter, lilac_simt_value index,
                                       uint64_t scale) {
    lilac_simt_value wide = lilac_simt_op1(&r->b, LILAC_SIMT_OP_SEXT, LILAC_SIMT_I64, index);
    wide = lilac_simt_op2(&r->b, LILAC_SIMT_OP_MUL, LILAC_SIMT_I64, wide,
                          lilac_simt_constant(&r->b, LILAC_SIMT_I64, scale));
    return lilac_simt_op2(&r->b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64,
                          lilac_simt_parameter_value(&r->b, parameter), wide);
}

static inline lilac_simt_value load(rig *r, lilac_simt_opcode code, lilac_simt_type type,
                                    lilac_simt_value address) {
    return lilac_simt_load(&r->b, code, type, 1, address, 0, 0, NULL, NULL);
}

static inline void store(rig *r, lilac_simt_opcode code, lilac_simt_value value,
                         lilac_simt_value address) {
    lilac_simt_store(&r->b, code, 1, &value, address, 0, 0, NULL);
}

/* Sets the source line of the operations that are built after this call. */
static inline void at_line(rig *r, uint32_t line) {
    lilac_location_info info = {.kind = LILAC_LOCATION_FILE,
                                .name = lilac_intern_string(r->context, "kernel.py"),
                                .line = line,
                                .column = 1};
    r->b.location = lilac_location_get(r->context, &info);
}

static inline void give(rig *r, uint32_t parameter, const char *name, void *bytes, uint64_t size) {
    r->buffers[parameter] = (lilac_sim_buffer){.name = name, .bytes = bytes, .size = size};
}

/* Ends the kernel and runs it. The buffers are its arguments in order. */
static inline bool rig_run(rig *r) {
    effect(r, LILAC_SIMT_OP_RETURN);
    r->launch.buffer_count = r->parameters;
    lilac_sim_place(r->buffers, r->parameters);
    for (uint32_t k = 0; k < r->parameters; k++) {
        r->arguments[k] = r->buffers[k].address;
    }
    return lilac_sim_run(r->context, &r->launch, &r->counters);
}

static inline void rig_clear(rig *r) {
    lilac_simt_builder_clear(&r->b);
    lilac_simt_module_destroy(r->module);
    lilac_context_destroy(r->context);
}

/* Returns the number of diagnostics with this id, and the first of them in *first. */
static inline uint32_t reported(const rig *r, const char *id, const lilac_diagnostic **first) {
    uint32_t count = 0;
    for (const lilac_diagnostic *d = lilac_diagnostics(r->context); d; d = d->next) {
        if (d->id && strcmp(d->id, id) == 0 && count++ == 0 && first) {
            *first = d;
        }
    }
    return count;
}

/* ---- one operation on many operands ------------------------------------------------------ */

typedef struct sim_operation {
    lilac_simt_opcode code;
    lilac_simt_type result;
    lilac_simt_type operands[4];
    uint32_t operand_count;
    uint32_t result_count; /* 0: one */
    uint8_t detail, flags, scalar;
} sim_operation;

static inline uint32_t sim_bytes(lilac_simt_type type) {
    uint32_t bits = lilac_simt_type_bits(type);
    return bits < 8 ? 1 : bits / 8;
}

/* inputs[k][i] is operand k of case i; result j of case i goes to outputs[j * n + i]. i1 operands
 * and results travel as bytes. */
static inline bool sim_apply(const sim_operation *operation, uint32_t n,
                             const uint64_t *const *inputs, uint64_t *outputs) {
    enum { WARPS = 4, THREADS = 32 * WARPS };
    uint32_t blocks = (n + THREADS - 1) / THREADS, padded = blocks * THREADS;
    uint32_t count = operation->operand_count;
    uint32_t results = operation->result_count ? operation->result_count : 1;
    uint32_t total = count + results;
    uint8_t *bytes[8];
    lilac_simt_value values[4];
    lilac_simt_type types[4];
    rig r;
    rig_init(&r, WARPS, total, 0);
    r.launch.threads = 2;
    r.launch.grid[0] = blocks;
    lilac_simt_value index =
        op2(&r, LILAC_SIMT_OP_ADD,
            op2(&r, LILAC_SIMT_OP_MUL, leaf(&r, LILAC_SIMT_OP_BLOCK, 0), word(&r, THREADS)),
            thread(&r));
    for (uint32_t k = 0; k < total; k++) {
        lilac_simt_type type = k < count ? operation->operands[k] : operation->result;
        uint32_t size = sim_bytes(type);
        bytes[k] = calloc(padded, size);
        give(&r, k, "case", bytes[k], (uint64_t)padded * size);
        for (uint32_t i = 0; k < count && i < padded; i++) {
            memcpy(bytes[k] + (size_t)i * size, &inputs[k][i % n], size);
        }
        if (k >= count) {
            continue;
        }
        bool bit = type == LILAC_SIMT_I1;
        values[k] = load(&r, LILAC_SIMT_OP_LD_GLOBAL, bit ? LILAC_SIMT_I8 : type,
                         element(&r, k, index, size));
        if (bit) {
            values[k] = lilac_simt_op1(&r.b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I1, values[k]);
        }
    }
    for (uint32_t j = 0; j < 4; j++) {
        types[j] = operation->result;
    }
    lilac_simt_instruction like = {.code = (uint16_t)operation->code,
                                   .detail = operation->detail,
                                   .flags = operation->flags,
                                   .scalar = operation->scalar};
    lilac_simt_value result = lilac_simt_build(&r.b, &like, count, values, results, types);
    for (uint32_t j = 0; j < results; j++) {
        lilac_simt_value out = result + j;
        if (operation->result == LILAC_SIMT_I1) {
            out = lilac_simt_op1(&r.b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I8, out);
        }
        store(&r, LILAC_SIMT_OP_ST_GLOBAL, out,
              element(&r, count + j, index, sim_bytes(operation->result)));
    }
    bool done = rig_run(&r);
    for (uint32_t j = 0; j < results; j++) {
        uint32_t size = sim_bytes(operation->result);
        for (uint32_t i = 0; i < n; i++) {
            outputs[j * n + i] = 0;
            memcpy(&outputs[j * n + i], bytes[count + j] + (size_t)i * size, size);
        }
    }
    for (uint32_t k = 0; k < total; k++) {
        free(bytes[k]);
    }
    rig_clear(&r);
    return done;
}

#endif
