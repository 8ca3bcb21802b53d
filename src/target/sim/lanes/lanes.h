/* Lane loops: one pure operation on all threads of a block.
 *
 * Registers are kept as structure of arrays: a value is an array with one entry for each thread,
 * of
 *
 *   1 byte   i1 (0 or 1), i8        2 bytes  i16 f16 bf16
 *   4 bytes  i32 f32 f16x2 bf16x2   8 bytes  i64 f64
 *
 * A loop reads n entries of its operand arrays and writes n of `out`, which overlaps none of them.
 * Unused operands point at something readable. Packed types run the 16-bit loops on 2n entries.
 */
#ifndef LILAC_SIM_LANES_H
#define LILAC_SIM_LANES_H

#include <lilac/simt.h>
#include <string.h>

/* The same bytes are read as integers and as floats. */
#if defined(__GNUC__)
#define LILAC_SIM_ALIAS __attribute__((may_alias))
#else
#define LILAC_SIM_ALIAS
#endif
typedef uint8_t LILAC_SIM_ALIAS lane_u8;
typedef uint16_t LILAC_SIM_ALIAS lane_u16;
typedef uint32_t LILAC_SIM_ALIAS lane_u32;
typedef uint64_t LILAC_SIM_ALIAS lane_u64;
typedef float LILAC_SIM_ALIAS lane_f32;
typedef double LILAC_SIM_ALIAS lane_f64;

/* Copies entry 0 to all n entries. */
static inline void fill_entries(uint8_t *array, uint32_t entry_bytes, uint32_t n) {
    switch (entry_bytes) {
    case 1:
        memset(array, array[0], n);
        break;
    case 2:
        for (uint32_t t = 1; t < n; t++) {
            ((lane_u16 *)(void *)array)[t] = ((lane_u16 *)(void *)array)[0];
        }
        break;
    case 4:
        for (uint32_t t = 1; t < n; t++) {
            ((lane_u32 *)(void *)array)[t] = ((lane_u32 *)(void *)array)[0];
        }
        break;
    default:
        for (uint32_t t = 1; t < n; t++) {
            ((lane_u64 *)(void *)array)[t] = ((lane_u64 *)(void *)array)[0];
        }
        break;
    }
}

/* The entry of one thread, as bits. */
static inline uint64_t read_entry(const uint8_t *array, uint32_t entry_bytes, uint32_t thread) {
    switch (entry_bytes) {
    case 1:
        return array[thread];
    case 2:
        return ((const lane_u16 *)(const void *)array)[thread];
    case 4:
        return ((const lane_u32 *)(const void *)array)[thread];
    default:
        return ((const lane_u64 *)(const void *)array)[thread];
    }
}

static inline void write_entry(uint8_t *array, uint32_t entry_bytes, uint32_t thread,
                               uint64_t bits) {
    switch (entry_bytes) {
    case 1:
        array[thread] = (uint8_t)bits;
        break;
    case 2:
        ((lane_u16 *)(void *)array)[thread] = (uint16_t)bits;
        break;
    case 4:
        ((lane_u32 *)(void *)array)[thread] = (uint32_t)bits;
        break;
    default:
        ((lane_u64 *)(void *)array)[thread] = bits;
        break;
    }
}

typedef void lane_loop(uint32_t n, uint64_t immediate, void *restrict out, const void *x,
                       const void *y, const void *z);

/* Bytes of a register entry. */
uint32_t lilac_sim_lane_bytes(lilac_simt_type type);

/* The loop of a pure instruction with one result, from its operand type (of a select: the second
 * operand's) and its result type; NULL when the operation does not exist on these types.
 * *immediate is set to the argument of the loop. */
lane_loop *lilac_sim_integer_loop(const lilac_simt_instruction *instruction, lilac_simt_type from,
                                  lilac_simt_type to, uint64_t *immediate);
lane_loop *lilac_sim_float_loop(const lilac_simt_instruction *instruction, lilac_simt_type from,
                                lilac_simt_type to, uint64_t *immediate);
lane_loop *lilac_sim_convert_loop(const lilac_simt_instruction *instruction, lilac_simt_type from,
                                  lilac_simt_type to, uint64_t *immediate);

/* One part of a pack (immediate: the part's first bit; 0 begins the value, others add to it) and
 * of an unpack (immediate: the first bit). */
lane_loop *lilac_sim_pack_loop(lilac_simt_type part, lilac_simt_type whole);
lane_loop *lilac_sim_unpack_loop(lilac_simt_type whole, lilac_simt_type part);

/* Copies entries of `immediate` bytes. */
lane_loop lilac_sim_copy;
/* f32 with subnormals made zero. */
lane_loop lilac_sim_flush;

#endif
