/* Executes an access to shared memory on the simulator.
 *
 *   thread:  address = xor over the set bits of lane and warp of their byte offsets
 *            pattern = xor over the same bits of what names their elements
 *   step i:  st.shared.vN [address ^ step offset], pattern ^ constants
 *   barrier, and all of shared memory is copied to a buffer
 *
 * The pattern of an element is its position in the tensor, folded to the width of an element. It is
 * linear too, so the kernel computes the stored value from the tensor's layout as it computes the
 * address from the access. The kernel contains nothing of the memory's layout except the offsets
 * under test; the expected contents of memory follow from that layout.
 */
#include "simulate.h"

#include <string.h>

typedef struct store_kernel {
    lilac_simt_builder b;
    const lilac_plan_access *access;
    const lilac_layout *distributed, *memory;
    uint64_t bytes; /* of memory's elements, without padding */
    uint64_t free;  /* offset bits: where one is set, an element is meant that is held elsewhere */
    lilac_simt_value address, pattern; /* of the thread */
} store_kernel;

/* The name of an element in every element of a 32-bit word; the xor of names is the name of the
 * xor. */
static uint32_t element_pattern(uint64_t element, uint32_t bytes) {
    uint32_t word = (uint32_t)(element ^ element >> 32);
    if (bytes >= 4) {
        return word;
    }
    word = (word ^ word >> 16) & 0xFFFF;
    if (bytes == 1) {
        word = (word ^ word >> 8) & 0xFF;
        word |= word << 8;
    }
    return word | word << 16;
}

static lilac_simt_value constant(store_kernel *k, uint64_t value) {
    return lilac_simt_constant(&k->b, LILAC_SIMT_I32, value);
}

static lilac_simt_value leaf(store_kernel *k, lilac_simt_opcode code) {
    const lilac_simt_instruction like = {.code = (uint16_t)code};
    const lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(&k->b, &like, 0, NULL, 1, &type);
}

static void effect(store_kernel *k, lilac_simt_opcode code) {
    const lilac_simt_instruction like = {.code = (uint16_t)code};
    (void)lilac_simt_build(&k->b, &like, 0, NULL, 0, NULL);
}

static lilac_simt_value op(store_kernel *k, lilac_simt_opcode code, lilac_simt_value a,
                           lilac_simt_value c) {
    return lilac_simt_op2(&k->b, code, LILAC_SIMT_I32, a, c);
}

/* Adds what the bits of `index` contribute to the thread's address and pattern. */
static void add_bits(store_kernel *k, lilac_simt_value index, const uint64_t *offsets,
                     const char *in, uint32_t bits) {
    for (uint32_t i = 0; i < bits; i++) {
        const lilac_simt_value bit = op(k, LILAC_SIMT_OP_AND, index, constant(k, 1U << i));
        const lilac_simt_value set =
            lilac_simt_compare_values(&k->b, LILAC_SIMT_NE, bit, constant(k, 0));
        const uint64_t offset = offsets[i] * k->access->element_bytes;
        const uint32_t name =
            element_pattern(lilac_layout_column(k->distributed, in, i), k->access->element_bytes);
        k->address = op(k, LILAC_SIMT_OP_XOR, k->address,
                        lilac_simt_op3(&k->b, LILAC_SIMT_OP_SELECT, LILAC_SIMT_I32, set,
                                       constant(k, offset), constant(k, 0)));
        k->pattern = op(k, LILAC_SIMT_OP_XOR, k->pattern,
                        lilac_simt_op3(&k->b, LILAC_SIMT_OP_SELECT, LILAC_SIMT_I32, set,
                                       constant(k, name), constant(k, 0)));
    }
}

/* The place in the tensor of the register bits of an instruction's element, without the thread's.
 */
static uint64_t register_element(const store_kernel *k, uint64_t step, uint32_t element) {
    uint64_t place = 0;
    for (uint32_t i = 0; i < k->access->step_bits; i++) {
        if (step >> i & 1) {
            place ^= lilac_layout_column(k->distributed, "register", k->access->step_register[i]);
        }
    }
    for (uint32_t i = 0; i < k->access->vector_bits; i++) {
        if (element >> i & 1) {
            place ^= lilac_layout_column(k->distributed, "register", k->access->vector_register[i]);
        }
    }
    return place;
}

/* The 32-bit word number `word` of an instruction's vector: the patterns of its elements. */
static uint32_t vector_word(const store_kernel *k, uint64_t step, uint32_t word) {
    const uint32_t bytes = k->access->element_bytes;
    if (bytes >= 4) {
        return element_pattern(register_element(k, step, word / (bytes / 4)), bytes);
    }
    const uint32_t per_word = 4 / bytes, elements = 1U << k->access->vector_bits;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < per_word && i < elements; i++) {
        const uint32_t mask = (bytes == 1 ? 0xFFU : 0xFFFFU) << 8 * bytes * i;
        bits |= element_pattern(register_element(k, step, word * per_word + i), bytes) & mask;
    }
    return bits;
}

/* The byte address with padding of one without. */
static lilac_simt_value build_padding(store_kernel *k, lilac_simt_value address) {
    const lilac_plan_padding *padding = &k->access->padding;
    const uint32_t bytes = k->access->element_bytes;
    lilac_simt_value sum = address;
    for (uint32_t i = 0; i < padding->count; i++) {
        const uint32_t shift = (uint32_t)__builtin_ctzll((uint64_t)padding->interval[i] * bytes);
        const lilac_simt_value intervals = op(k, LILAC_SIMT_OP_SHR_U, address, constant(k, shift));
        sum = op(k, LILAC_SIMT_OP_ADD, sum,
                 op(k, LILAC_SIMT_OP_MUL, intervals, constant(k, padding->padding[i] * bytes)));
    }
    return sum;
}

static void build_store(store_kernel *k, uint64_t step) {
    const uint32_t bytes = k->access->element_bytes << k->access->vector_bits;
    uint64_t offset = 0;
    for (uint32_t i = 0; i < k->access->step_bits; i++) {
        offset ^= step >> i & 1 ? k->access->step[i] : 0;
    }
    const lilac_simt_value address = build_padding(
        k, op(k, LILAC_SIMT_OP_XOR, k->address, constant(k, offset * k->access->element_bytes)));
    lilac_simt_value values[8];
    uint32_t count = 0;
    for (uint32_t word = 0; word == 0 || word < bytes / 4; word++) {
        values[count++] =
            op(k, LILAC_SIMT_OP_XOR, k->pattern, constant(k, vector_word(k, step, word)));
    }
    if (bytes < 4) {
        values[0] = lilac_simt_op1(&k->b, LILAC_SIMT_OP_TRUNC,
                                   bytes == 1 ? LILAC_SIMT_I8 : LILAC_SIMT_I16, values[0]);
    }
    lilac_simt_store(&k->b, LILAC_SIMT_OP_ST_SHARED, count, values, address, 0, 0, NULL);
}

/* Thread t copies elements (words of them) t, t + threads … to the buffer, without the padding and
 * but for those that are held elsewhere too, where nothing is. */
static void build_copy(store_kernel *k, uint32_t threads) {
    const uint32_t unit = k->access->element_bytes < 4 ? k->access->element_bytes : 4;
    const lilac_simt_type type = unit == 4   ? LILAC_SIMT_I32
                                 : unit == 2 ? LILAC_SIMT_I16
                                             : LILAC_SIMT_I8;
    const lilac_simt_value thread = leaf(k, LILAC_SIMT_OP_THREAD);
    const uint64_t rounds = (k->bytes / unit + threads - 1) / threads;
    lilac_simt_value round;
    lilac_simt_instruction *loop = lilac_simt_loop_begin(&k->b, constant(k, 0), constant(k, rounds),
                                                         constant(k, 1), 0, NULL, &round);
    lilac_simt_value at = op(k, LILAC_SIMT_OP_MUL, round, constant(k, threads));
    at = op(k, LILAC_SIMT_OP_ADD, at, thread);
    const lilac_simt_value held = lilac_simt_compare_values(
        &k->b, LILAC_SIMT_EQ,
        op(k, LILAC_SIMT_OP_AND, at, constant(k, k->free * (k->access->element_bytes / unit))),
        constant(k, 0));
    const lilac_simt_value inside = lilac_simt_op2(
        &k->b, LILAC_SIMT_OP_AND, LILAC_SIMT_I1, held,
        lilac_simt_compare_values(&k->b, LILAC_SIMT_ULT, at, constant(k, k->bytes / unit)));
    at = op(k, LILAC_SIMT_OP_MUL, at, constant(k, unit));
    const lilac_simt_value value = lilac_simt_load(&k->b, LILAC_SIMT_OP_LD_SHARED, type, 1,
                                                   build_padding(k, at), 0, inside, NULL, NULL);
    const lilac_simt_value wide = lilac_simt_op1(&k->b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64, at);
    const lilac_simt_value to = lilac_simt_op2(&k->b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64,
                                               lilac_simt_parameter_value(&k->b, 0), wide);
    lilac_simt_store(&k->b, LILAC_SIMT_OP_ST_GLOBAL, 1, &value, to, 0, inside, NULL);
    (void)lilac_simt_loop_end(&k->b, loop, NULL);
}

static lilac_simt_kernel *build_kernel(store_kernel *k, lilac_simt_module *module,
                                       lilac_context *context) {
    const lilac_plan_access *access = k->access;
    const uint32_t warps = 1U << access->warp_bits;
    lilac_simt_kernel *kernel =
        lilac_simt_kernel_create(module, lilac_intern_string(context, "store"), 1, warps, 1);
    kernel->parameters[0] = (lilac_simt_parameter){.name = lilac_intern_string(context, "out"),
                                                   .type = LILAC_SIMT_I64,
                                                   .is_pointer = true,
                                                   .alignment = 1};
    kernel->shared_bytes = (uint32_t)access->memory_bytes;
    lilac_simt_builder_init(&k->b, kernel);
    k->address = constant(k, 0);
    k->pattern = constant(k, 0);
    add_bits(k, leaf(k, LILAC_SIMT_OP_LANE), access->lane, "lane", access->lane_bits);
    add_bits(k, leaf(k, LILAC_SIMT_OP_WARP), access->warp, "warp", access->warp_bits);
    for (uint64_t step = 0; step >> access->step_bits == 0; step++) {
        build_store(k, step);
    }
    effect(k, LILAC_SIMT_OP_BARRIER);
    build_copy(k, warps * module->arch->warp_size);
    effect(k, LILAC_SIMT_OP_RETURN);
    lilac_simt_builder_clear(&k->b);
    return kernel;
}

/* Checks that every offset holds the element of the memory's layout. */
static void look_at_memory(simulated_access *result, const uint8_t *bytes, const store_kernel *k) {
    const uint32_t size = k->access->element_bytes;
    for (uint64_t offset = 0; offset < k->bytes / size && result->correct; offset++) {
        const uint32_t wanted = element_pattern(lilac_layout_apply(k->memory, offset), size);
        for (uint32_t i = 0; i < size && (offset & k->free) == 0; i++) {
            if (bytes[offset * size + i] != (uint8_t)(wanted >> 8 * (i % 4))) {
                result->correct = false;
                result->wrong_offset = offset;
            }
        }
    }
}

static bool run(simulated_access *result, lilac_context *context, const lilac_simt_kernel *kernel,
                const store_kernel *k) {
    uint8_t *bytes = lilac_heap_grow(NULL, (size_t)k->bytes);
    memset(bytes, 0, (size_t)k->bytes);
    lilac_sim_buffer buffer = {.name = "out", .bytes = bytes, .size = k->bytes};
    lilac_sim_place(&buffer, 1);
    const lilac_sim_launch launch = {.kernel = kernel,
                                     .grid = {1, 1, 1},
                                     .arguments = &buffer.address,
                                     .argument_count = 1,
                                     .buffers = &buffer,
                                     .buffer_count = 1,
                                     .threads = 1};
    lilac_sim_counters counters;
    const bool ran = lilac_sim_run(context, &launch, &counters);
    if (ran) {
        result->instructions = counters.shared_stores;
        result->wavefronts = counters.shared_store_wavefronts;
        result->correct = counters.uninitialised_reads == 0;
        look_at_memory(result, bytes, k);
        /* Warps that hold the same element store it each, which is a race and does no harm. */
        lilac_diagnostics_reset(context);
    }
    lilac_heap_free(bytes);
    return ran;
}

bool simulate_access(simulated_access *result, lilac_context *context,
                     const lilac_plan_access *access, const lilac_layout *distributed,
                     const lilac_layout *memory, const lilac_arch *arch) {
    store_kernel k = {.access = access,
                      .distributed = distributed,
                      .memory = memory,
                      .bytes = (uint64_t)access->element_bytes
                               << lilac_layout_in_bits(memory, "offset"),
                      .free = lilac_layout_free_bits(memory, "offset")};
    lilac_simt_module *module = lilac_simt_module_create(context, arch);
    *result = (simulated_access){0};
    const bool ran = run(result, context, build_kernel(&k, module, context), &k);
    lilac_simt_module_destroy(module);
    return ran;
}
