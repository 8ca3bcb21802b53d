/* The wavefront model of shared memory, in linear algebra.
 *
 *   A = M⁻¹ ∘ D            register × lane × warp → offset
 *
 *   registers:  Dependent registers (copies) are dropped. Bits with offsets 1, 2, 4 … are the vector;
 *               the others number the instructions.
 *
 *   words:      The byte addresses of a transaction are  a ⊕ span(lane bytes) ⊕ [0, vector bytes)
 *               with a constant a. Dropping the bits within a word is linear, so the words are a
 *               coset a' ⊕ S, where S = span(lane words ∪ {1, 2, …} of the vector's words).
 *
 *   banks:      The bank is a projection β of the word. Each bank in β(a' ⊕ S) holds |S ∩ ker β|
 *               words of the coset. So a transaction takes
 *
 *                   2^(dim S − dim β(S))  wavefronts
 *
 *               for every a: all transactions, instructions and warps cost the same.
 *
 * Copies among the lanes change neither dimension, so broadcasts cost nothing. Lemma 9.4 of the
 * paper is the case in which every lane accesses whole words.
 */
#include <lilac/f2.h>
#include <lilac/plan.h>

#include <string.h>

/* More than any device has; prevents overflow below. */
enum { MAX_OFFSET_BITS = 30 };
enum { MATRIX_ROWS = 8, MATRIX_ROW_BYTES = 16 };

static uint64_t low_mask(uint32_t bits) {
    return (UINT64_C(1) << bits) - 1;
}

/* ---- transactions ----------------------------------------------------------------------- */

uint32_t lilac_plan_transaction_lanes(const lilac_arch *arch, uint32_t bytes) {
    const uint32_t words = bytes > arch->bank_bytes ? bytes / arch->bank_bytes : 1;
    const uint32_t lanes = words < arch->banks ? arch->banks / words : 1;
    return lanes < arch->warp_size ? lanes : arch->warp_size;
}

uint32_t lilac_plan_transaction_wavefronts(const lilac_arch *arch, uint32_t bytes,
                                           const uint64_t *lanes, uint32_t lane_bits) {
    const uint32_t word_shift = log2_of(arch->bank_bytes);
    lilac_f2_basis words, banks;
    uint32_t excess = 0;
    lilac_f2_basis_init(&words);
    lilac_f2_basis_init(&banks);
    for (uint32_t i = 0; i < lane_bits; i++) {
        excess += lilac_f2_basis_add(&words, lanes[i] >> word_shift, 0);
        excess -= lilac_f2_basis_add(&banks, lanes[i] >> word_shift & (arch->banks - 1), 0);
    }
    for (uint32_t next = 1; next < bytes >> word_shift; next *= 2) {
        excess += lilac_f2_basis_add(&words, next, 0);
        excess -= lilac_f2_basis_add(&banks, next & (arch->banks - 1), 0);
    }
    return UINT32_C(1) << excess;
}

/* ---- padding ---------------------------------------------------------------------------- */

static uint64_t padded(const lilac_plan_padding *padding, uint64_t offset) {
    uint64_t sum = offset;
    for (uint32_t i = 0; i < padding->count; i++) {
        sum += (offset >> log2_of(padding->interval[i])) * padding->padding[i];
    }
    return sum;
}

/* The longest vector, in elements, that crosses no padding and stays aligned. */
static uint64_t most_elements(const lilac_plan_padding *padding) {
    uint64_t most = UINT64_C(1) << 32;
    for (uint32_t i = 0; i < padding->count; i++) {
        most = padding->interval[i] < most ? padding->interval[i] : most;
        most = padding->padding[i] < most ? padding->padding[i] : most;
    }
    return most;
}

static bool check_padding(const lilac_plan_padding *padding, lilac_reason *why) {
    for (uint32_t i = 0; i < padding->count; i++) {
        if (!is_power_of_two(padding->interval[i]) || !is_power_of_two(padding->padding[i])) {
            return lilac_layout_refuse(
                why, "a padding of %u after each %u elements is not of powers of two",
                padding->padding[i], padding->interval[i]);
        }
    }
    return true;
}

/* The largest number of different words of a transaction in one bank, counted word by word. */
static uint32_t count_transaction(const lilac_plan_access *access, const lilac_arch *arch,
                                  uint64_t step, uint32_t first_lane, uint32_t warp) {
    enum { MAX_WORDS = 1 << (LILAC_PLAN_MAX_LANE_BITS + 2) };
    const uint32_t bytes = access->element_bytes << access->vector_bits;
    const uint32_t words = bytes > arch->bank_bytes ? bytes / arch->bank_bytes : 1;
    uint64_t seen[MAX_WORDS];
    uint32_t count = 0, most = 0;
    for (uint32_t lane = first_lane; lane < first_lane + access->transaction_lanes; lane++) {
        const uint64_t offset = lilac_plan_access_offset(access, step, lane, warp);
        for (uint32_t i = 0; i < words; i++) {
            const uint64_t word = offset * access->element_bytes / arch->bank_bytes + i;
            uint32_t depth = 1;
            bool known = false;
            for (uint32_t k = 0; k < count; k++) {
                known = known || seen[k] == word;
                depth += seen[k] % arch->banks == word % arch->banks;
            }
            if (!known) {
                seen[count++] = word;
                most = depth > most ? depth : most;
            }
        }
    }
    return most;
}

static void count_padded(lilac_plan_access *access, const lilac_arch *arch) {
    access->wavefronts = 0;
    access->transaction_wavefronts = 0;
    for (uint64_t step = 0; step >> access->step_bits == 0; step++) {
        for (uint32_t warp = 0; warp >> access->warp_bits == 0; warp++) {
            for (uint32_t lane = 0; lane < arch->warp_size; lane += access->transaction_lanes) {
                const uint32_t count = count_transaction(access, arch, step, lane, warp);
                access->wavefronts += count;
                if (count > access->transaction_wavefronts) {
                    access->transaction_wavefronts = count;
                }
            }
        }
    }
    access->conflicts = access->transaction_wavefronts - 1;
}

/* ---- offsets of registers and threads ---------------------------------------------------- */

/* The columns of a named input of A, reduced to the offset. `foreign` accumulates their coordinates
 * in the other outputs. */
static uint32_t offset_columns(uint64_t *columns, uint64_t *foreign, const lilac_layout *places,
                               const char *in) {
    const uint32_t bits = lilac_layout_in_bits(places, in);
    const int offset = lilac_layout_out(places, "offset");
    for (uint32_t i = 0; i < bits; i++) {
        const uint64_t column = lilac_layout_column(places, in, i);
        columns[i] = offset >= 0 ? lilac_layout_coordinate(places, column, (uint32_t)offset) : 0;
        for (uint32_t out = 0; out < places->out_count; out++) {
            if ((int)out != offset) {
                *foreign |= lilac_layout_coordinate(places, column, out);
            }
        }
    }
    return bits;
}

/* The register bits whose columns are independent of those before them, with their offsets. */
typedef struct register_bits {
    uint32_t count;
    uint64_t offset[LILAC_LAYOUT_MAX_BITS];
    uint8_t bit[LILAC_LAYOUT_MAX_BITS];
} register_bits;

static void independent_bits(register_bits *registers, const uint64_t *columns, uint32_t count) {
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    registers->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (lilac_f2_basis_add(&span, columns[i], 0)) {
            registers->bit[registers->count] = (uint8_t)i;
            registers->offset[registers->count++] = columns[i];
        }
    }
}

static bool has_column(const uint64_t *columns, uint32_t count, uint64_t wanted) {
    for (uint32_t i = 0; i < count; i++) {
        if (columns[i] == wanted) {
            return true;
        }
    }
    return false;
}

/* Whether all columns keep an access of 2^vector_bits elements aligned. With `vector_too`, columns
 * within the vector are excepted. */
static bool keeps_aligned(const uint64_t *columns, uint32_t count, uint32_t vector_bits,
                          bool vector_too) {
    const uint64_t within = low_mask(vector_bits);
    for (uint32_t i = 0; i < count; i++) {
        const bool of_vector =
            vector_too && is_power_of_two(columns[i]) && (columns[i] & within) != 0;
        if ((columns[i] & within) != 0 && !of_vector) {
            return false;
        }
    }
    return true;
}

static uint32_t widest_vector(const lilac_plan_access *access, const register_bits *registers,
                              uint32_t most_bytes) {
    const uint64_t most = most_elements(&access->padding);
    uint32_t bits = 0;
    while (UINT64_C(2) << bits <= most &&
           (uint64_t)access->element_bytes << (bits + 1) <= most_bytes &&
           has_column(registers->offset, registers->count, UINT64_C(1) << bits) &&
           keeps_aligned(registers->offset, registers->count, bits + 1, true) &&
           keeps_aligned(access->lane, access->lane_bits, bits + 1, false) &&
           keeps_aligned(access->warp, access->warp_bits, bits + 1, false)) {
        bits++;
    }
    return bits;
}

static void split_registers(lilac_plan_access *access, const register_bits *registers,
                            uint32_t most_bytes) {
    access->vector_bits = widest_vector(access, registers, most_bytes);
    for (uint32_t i = 0; i < registers->count; i++) {
        const uint64_t offset = registers->offset[i];
        if ((offset & low_mask(access->vector_bits)) != 0) {
            access->vector_register[log2_of(offset)] = registers->bit[i];
        } else {
            access->step_register[access->step_bits] = registers->bit[i];
            access->step[access->step_bits++] = offset;
        }
    }
}

static bool only_inputs(const lilac_layout *layout, const char *const *names, const char *what,
                        lilac_reason *why) {
    for (uint32_t i = 0; i < layout->in_count; i++) {
        bool known = false;
        for (const char *const *name = names; *name != NULL; name++) {
            known = known || strcmp(*name, layout->in[i].name) == 0;
        }
        if (!known) {
            return lilac_layout_refuse(
                why,
                "%s has an input '%s', and shared memory is reached by ld.shared and "
                "st.shared through offsets only",
                what, layout->in[i].name);
        }
    }
    return true;
}

/* Sets all fields but those of the registers, whose columns are returned in `registers`. */
static bool read_places(lilac_plan_access *access, uint64_t *registers, uint32_t *count,
                        const lilac_layout *places, const lilac_arch *arch, lilac_reason *why) {
    const uint32_t lane_bits = lilac_layout_in_bits(places, "lane");
    const uint32_t warp_bits = lilac_layout_in_bits(places, "warp");
    if (lane_bits > LILAC_PLAN_MAX_LANE_BITS || 1U << lane_bits != arch->warp_size) {
        return lilac_layout_refuse(why, "the tensor's layout has 2^%u lanes a warp, and %s has %u",
                                   lane_bits, arch->name, arch->warp_size);
    }
    if (warp_bits > LILAC_PLAN_MAX_WARP_BITS || 1U << warp_bits > arch->max_warps) {
        return lilac_layout_refuse(
            why, "the tensor's layout has 2^%u warps, and a block of %s at most %u", warp_bits,
            arch->name, arch->max_warps);
    }
    uint64_t foreign = 0, blocks[LILAC_LAYOUT_MAX_BITS], elsewhere = 0;
    *count = offset_columns(registers, &foreign, places, "register");
    access->lane_bits = offset_columns(access->lane, &foreign, places, "lane");
    access->warp_bits = offset_columns(access->warp, &foreign, places, "warp");
    const uint32_t block_bits = offset_columns(blocks, &elsewhere, places, "block");
    for (uint32_t i = 0; i < block_bits; i++) {
        const int out = lilac_layout_out(places, "block");
        const uint64_t column = lilac_layout_column(places, "block", i);
        const uint64_t block = out < 0 ? 0 : lilac_layout_coordinate(places, column, (uint32_t)out);
        /* A block that holds a copy of the tensor keeps it in its own memory. */
        if (blocks[i] != 0 || (block != 0 && block != UINT64_C(1) << i)) {
            foreign = 1;
        }
    }
    if (foreign != 0) {
        return lilac_layout_refuse(
            why, "some elements of the tensor are in the shared memory of another block");
    }
    return true;
}

static bool element_size(lilac_plan_access *access, uint32_t bits, const lilac_arch *arch,
                         lilac_reason *why) {
    const uint32_t bytes = bits == 1 ? 1 : bits / 8;
    if ((bits != 1 && bits % 8 != 0) || !is_power_of_two(bytes) || bytes > arch->vector_bytes) {
        return lilac_layout_refuse(
            why,
            "elements of %u bits: an access takes elements of whole bytes, a power of two "
            "of at most %u",
            bits, arch->vector_bytes);
    }
    access->element_bytes = bytes;
    return true;
}

static void count_wavefronts(lilac_plan_access *access, uint32_t transaction_lanes,
                             const lilac_arch *arch) {
    const bool matrix = access->instruction != LILAC_PLAN_VECTOR;
    const uint32_t bytes = matrix ? MATRIX_ROW_BYTES : access->element_bytes << access->vector_bits;
    uint64_t lanes[LILAC_PLAN_MAX_LANE_BITS];
    for (uint32_t i = 0; i < access->lane_bits; i++) {
        lanes[i] = access->lane[i] * access->element_bytes;
    }
    access->transaction_lanes = transaction_lanes;
    access->transactions =
        matrix ? UINT32_C(1) << access->matrix_bits : arch->warp_size / transaction_lanes;
    access->transaction_wavefronts =
        lilac_plan_transaction_wavefronts(arch, bytes, lanes, log2_of(access->transaction_lanes));
    access->conflicts = access->transaction_wavefronts - 1;
    access->instructions = UINT64_C(1) << (access->step_bits + access->warp_bits);
    access->wavefronts =
        access->instructions * access->transactions * access->transaction_wavefronts;
}

void lilac_plan_access_as_load(lilac_plan_access *access, const lilac_arch *arch) {
    const uint32_t bytes = access->element_bytes << access->vector_bits;
    const uint32_t lanes = lilac_plan_transaction_lanes(arch, bytes);
    const bool copies = access->lane[0] == 0 || (lanes > 1 && access->lane[1] == 0);
    if (access->instruction == LILAC_PLAN_VECTOR && access->padding.count == 0 && copies &&
        bytes >= 2 * arch->bank_bytes && lanes < arch->warp_size) {
        count_wavefronts(access, 2 * lanes, arch);
    }
}

/* ---- matrix instructions ---------------------------------------------------------------- */

/* Moves the register bit with exactly this offset to the vector. */
static bool take_register(lilac_plan_access *access, register_bits *registers, uint64_t offset) {
    for (uint32_t i = 0; i < registers->count; i++) {
        if (registers->offset[i] == offset) {
            access->vector_register[access->vector_bits++] = registers->bit[i];
            registers->count--;
            memmove(registers->bit + i, registers->bit + i + 1,
                    (registers->count - i) * sizeof registers->bit[0]);
            memmove(registers->offset + i, registers->offset + i + 1,
                    (registers->count - i) * sizeof registers->offset[0]);
            return true;
        }
    }
    return false;
}

/* Theorem 5.1: left division of the offsets of the registers and lanes by the instruction's tile,
 * after a permutation of the registers. A row consists of register bits up to a word (transposed:
 * up to a half word), then lane bits 0, 1 (transposed: 2, 3, 4). No other bit may move within a
 * row. */
static bool split_matrices(lilac_plan_access *access, register_bits *registers, lilac_reason *why) {
    const bool transposed = access->instruction == LILAC_PLAN_MATRIX_TRANSPOSED;
    const uint32_t before = log2_of((transposed ? 2 : 4) / access->element_bytes);
    const uint32_t first = transposed ? 2 : 0, rows = transposed ? 3 : 2;
    uint64_t address[LILAC_PLAN_MAX_LANE_BITS] = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < before; i++) {
        if (!take_register(access, registers, UINT64_C(1) << i)) {
            return lilac_layout_refuse(why, "no register bit is the row's element bit %u", i);
        }
    }
    for (uint32_t i = 0; i < rows; i++) {
        if (access->lane[first + i] != UINT64_C(1) << (before + i)) {
            return lilac_layout_refuse(why, "lane bit %u is not the row's element bit %u",
                                       first + i, before + i);
        }
        access->lane[first + i] = 0;
    }
    if (!keeps_aligned(registers->offset, registers->count, before + rows, false) ||
        !keeps_aligned(access->lane, access->lane_bits, before + rows, false) ||
        !keeps_aligned(access->warp, access->warp_bits, before + rows, false)) {
        return lilac_layout_refuse(
            why, "other bits of registers, lanes or warps move within a row of %u bytes",
            MATRIX_ROW_BYTES);
    }
    if (transposed) {
        if (registers->count == 0) {
            return lilac_layout_refuse(why, "no register bit is left for the halves of words");
        }
        address[next++] = registers->offset[0];
        (void)take_register(access, registers, registers->offset[0]);
    }
    for (uint32_t i = 0; i < access->lane_bits; i++) {
        if (i < first || i >= first + rows) {
            address[next++] = access->lane[i];
        }
    }
    while (access->matrix_bits < 2 && registers->count > 0) {
        address[next++] = registers->offset[0];
        access->matrix_bits++;
        (void)take_register(access, registers, registers->offset[0]);
    }
    memcpy(access->lane, address, sizeof address);
    for (uint32_t i = 0; i < registers->count; i++) {
        access->step_register[access->step_bits] = registers->bit[i];
        access->step[access->step_bits++] = registers->offset[i];
    }
    return true;
}

static bool check_matrices(lilac_plan_instruction instruction, uint32_t element_bytes,
                           const lilac_arch *arch, lilac_reason *why) {
    const uint32_t most = instruction == LILAC_PLAN_MATRIX ? 4 : 2;
    if (!lilac_arch_has(arch, LILAC_HAS_LDMATRIX) && !lilac_arch_has(arch, LILAC_HAS_STMATRIX)) {
        return lilac_layout_refuse(why, "%s has no matrix instructions", arch->name);
    }
    if (element_bytes > most) {
        return lilac_layout_refuse(why,
                                   "elements of %u bits: a row of this matrix takes at most %u",
                                   8 * element_bytes, 8 * most);
    }
    return true;
}

/* ---- construction ----------------------------------------------------------------------- */

/* Sets all fields but those of the registers and the counts. */
static bool start_access(lilac_plan_access *access, register_bits *registers,
                         const lilac_layout *distributed, const lilac_layout *memory,
                         uint32_t element_bits, const lilac_arch *arch, lilac_reason *why) {
    static const char *const thread_inputs[] = {"register", "lane", "warp", "block", NULL};
    static const char *const memory_inputs[] = {"offset", "block", NULL};
    const uint32_t offset_bits = lilac_layout_in_bits(memory, "offset");
    lilac_layout places;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0;
    if (!only_inputs(distributed, thread_inputs, "the tensor's layout", why) ||
        !only_inputs(memory, memory_inputs, "the memory's layout", why) ||
        !check_padding(&access->padding, why) || !element_size(access, element_bits, arch, why) ||
        !lilac_layout_invert_compose(&places, distributed, memory, why) ||
        !read_places(access, columns, &count, &places, arch, why)) {
        return false;
    }
    if (offset_bits > MAX_OFFSET_BITS) {
        return lilac_layout_refuse(
            why, "the memory's layout spans 2^%u elements, which no memory has", offset_bits);
    }
    const uint64_t last = padded(&access->padding, low_mask(offset_bits));
    access->memory_bytes = (last + 1) * access->element_bytes;
    if (access->memory_bytes > arch->shared_bytes) {
        return lilac_layout_refuse(why, "the memory is of %llu bytes, and a block of %s has %u",
                                   (unsigned long long)access->memory_bytes, arch->name,
                                   arch->shared_bytes);
    }
    independent_bits(registers, columns, count);
    return true;
}

bool lilac_plan_access_init_padded(lilac_plan_access *result, const lilac_layout *distributed,
                                   const lilac_layout *memory, const lilac_plan_padding *padding,
                                   uint32_t element_bits, const lilac_arch *arch,
                                   lilac_reason *why) {
    lilac_plan_access access = {.padding = *padding};
    register_bits registers;
    if (!start_access(&access, &registers, distributed, memory, element_bits, arch, why)) {
        return false;
    }
    split_registers(&access, &registers, arch->vector_bytes);
    count_wavefronts(&access,
                     lilac_plan_transaction_lanes(arch, access.element_bytes << access.vector_bits),
                     arch);
    if (padding->count != 0) {
        count_padded(&access, arch);
    }
    *result = access;
    return true;
}

bool lilac_plan_access_init_matrix(lilac_plan_access *result, const lilac_layout *distributed,
                                   const lilac_layout *memory, lilac_plan_instruction instruction,
                                   uint32_t element_bits, const lilac_arch *arch,
                                   lilac_reason *why) {
    lilac_plan_access access = {.instruction = instruction};
    register_bits registers;
    if (instruction == LILAC_PLAN_VECTOR) {
        return lilac_plan_access_init(result, distributed, memory, element_bits, arch, why);
    }
    if (!start_access(&access, &registers, distributed, memory, element_bits, arch, why) ||
        !check_matrices(instruction, access.element_bytes, arch, why)) {
        return false;
    }
    if (!split_matrices(&access, &registers, why)) {
        return false;
    }
    count_wavefronts(&access, MATRIX_ROWS, arch);
    *result = access;
    return true;
}

bool lilac_plan_access_init(lilac_plan_access *result, const lilac_layout *distributed,
                            const lilac_layout *memory, uint32_t element_bits,
                            const lilac_arch *arch, lilac_reason *why) {
    const lilac_plan_padding none = {0};
    return lilac_plan_access_init_padded(result, distributed, memory, &none, element_bits, arch,
                                         why);
}

uint64_t lilac_plan_access_offset(const lilac_plan_access *access, uint64_t step, uint32_t lane,
                                  uint32_t warp) {
    uint64_t offset = 0;
    for (uint32_t i = 0; i < access->step_bits; i++) {
        offset ^= step >> i & 1 ? access->step[i] : 0;
    }
    for (uint32_t i = 0; i < access->lane_bits; i++) {
        offset ^= lane >> i & 1 ? access->lane[i] : 0;
    }
    for (uint32_t i = 0; i < access->warp_bits; i++) {
        offset ^= warp >> i & 1 ? access->warp[i] : 0;
    }
    return padded(&access->padding, offset);
}
