/* Decoding of a kernel into the steps of program.h.
 *
 *   survey.c        walk 1: which values differ between threads, and where each value is read last
 *   ../program.c    walk 2: a table with the function that decodes each operation
 *   decoder.c       the register file, and steps with their operands
 *   arithmetic.c    pure operations, and exchanges between the lanes of a warp
 *   accesses.c      synchronous accesses to memory, and print
 *   asynchronous.c  copies, mbarriers and matrix instructions
 *   control.c       operations with regions
 *
 * Both walks number the instructions in order. An operation with regions has two numbers: one
 * where it begins and one where it ends.
 */
#ifndef LILAC_SIM_DECODER_H
#define LILAC_SIM_DECODER_H

#include "program.h"

typedef struct lilac_sim_value {
    uint32_t offset;   /* of the value's array in the register file */
    uint32_t defined;  /* number of the definition */
    uint32_t last_use; /* number after which the array is free */
    uint32_t next;     /* next value with the same last_use; 0: none */
    bool placed;       /* has an array */
    bool varies;       /* may differ between threads */
    bool fill;         /* is uniform, but an operation reads the entry of each thread */
} lilac_sim_value;

typedef struct lilac_sim_span {
    uint32_t begin, end;
} lilac_sim_span;

typedef struct lilac_sim_decoder {
    lilac_context *context;
    const lilac_sim_launch *launch;
    const lilac_simt_kernel *kernel;
    lilac_sim_program *program;
    lilac_sim_value *values;
    uint32_t *ends;        /* ends[n]: the second number of the operation whose first number is n */
    uint32_t *dying;       /* dying[n]: the first value with last_use n; 0: none */
    uint32_t numbers;      /* of instructions and ends of operations with regions */
    uint32_t number;       /* current position of the walk */
    lilac_sim_span *loops; /* the loops that enclose the position, outermost first */
    uint32_t loop_depth;   /* number of these loops */
    uint32_t depth;        /* greatest nesting depth of regions */
    uint32_t whiles;       /* number of while loops that enclose the position */
    uint32_t threads;      /* of the warp program that encloses the position, or of the block */
    bool changed;          /* the current walk marked a value as varying */
    bool failed;           /* a diagnostic was reported */
    uint32_t *free_arrays[4]; /* by size of an entry: 1, 2, 4 and 8 bytes */
    uint32_t free_count[4], free_capacity[4];
} lilac_sim_decoder;

/* Walk 1. Sets the values (except their offsets), ends, dying and loops. The decoder frees these
 * arrays. */
void lilac_sim_survey(lilac_sim_decoder *decoder);
/* Walk 2 over a region without its terminator. */
void lilac_sim_decode_body(lilac_sim_decoder *decoder, const lilac_simt_body *body);

static inline lilac_simt_type value_type(const lilac_sim_decoder *decoder, lilac_simt_value value) {
    return (lilac_simt_type)decoder->kernel->values[value].type;
}

static inline bool value_varies(const lilac_sim_decoder *decoder, lilac_simt_value value) {
    return decoder->values[value].varies;
}

/* The size of a register entry of the value. */
static inline uint32_t value_bytes(const lilac_sim_decoder *decoder, lilac_simt_value value) {
    return lilac_sim_lane_bytes(value_type(decoder, value));
}

/* ---- decoder.c -------------------------------------------------------------------------- */

/* Reports the error `unsupported-instruction` and sets decoder->failed. */
void lilac_sim_refuse(lilac_sim_decoder *decoder, const lilac_simt_instruction *instruction,
                      const char *why);

/* An array of the register file, which is free or new. */
uint32_t lilac_sim_reserve_array(lilac_sim_decoder *decoder, uint32_t entry_bytes);
/* Reserves arrays for `count` values; lilac_sim_release_dead returns each after its last use. */
void lilac_sim_place_values(lilac_sim_decoder *decoder, lilac_simt_value first, uint32_t count);
/* Returns the arrays of the values whose last use has this number. */
void lilac_sim_release_dead(lilac_sim_decoder *decoder, uint32_t number);

/* Appends a step. It is valid until the next one is appended. The issued step counts as one warp
 * instruction. */
lilac_sim_step *lilac_sim_add_step(lilac_sim_decoder *decoder, uint8_t kind,
                                   const lilac_simt_instruction *source);
lilac_sim_step *lilac_sim_add_issued_step(lilac_sim_decoder *decoder, uint8_t kind,
                                          const lilac_simt_instruction *source);
/* Appends a preset of kind lilac_sim_preset_kind for the instruction's result, and places it. */
void lilac_sim_add_preset(lilac_sim_decoder *decoder, const lilac_simt_instruction *instruction,
                          uint8_t kind, uint64_t bits);
/* Sets the step's result, the number of entries that it computes, and whether it fills the others. */
void lilac_sim_set_result(lilac_sim_decoder *decoder, lilac_sim_step *step, lilac_simt_value value);
/* Sets a, b and c to the first three operands. */
void lilac_sim_set_operands(lilac_sim_decoder *decoder, lilac_sim_step *step,
                            const lilac_simt_instruction *instruction);
/* The offset of an operand's array. */
uint32_t lilac_sim_offset_of(lilac_sim_decoder *decoder, const lilac_simt_instruction *instruction,
                             lilac_simt_value value);
/* Adds an access to the step. predicate 0: there is none. */
lilac_sim_access *lilac_sim_add_access(lilac_sim_decoder *decoder, lilac_sim_step *step,
                                       const lilac_simt_instruction *instruction,
                                       lilac_simt_value predicate);

/* Appends a step that copies a value. The step's fields `access` and `target` name both values. */
void lilac_sim_copy_value(lilac_sim_decoder *decoder, const lilac_simt_instruction *instruction,
                          lilac_simt_value target, lilac_simt_value source);
/* Appends steps that assign sources[0 … count) to the values from `first` on, in parallel. A
 * source that is overwritten before it is read is saved in another array first. */
void lilac_sim_copy_values(lilac_sim_decoder *decoder, const lilac_simt_instruction *instruction,
                           lilac_simt_value first, const lilac_simt_value *sources, uint32_t count);

/* ---- operations ------------------------------------------------------------------------- */

/* Appends the steps of an instruction; `kind` is the lilac_sim_step_kind of its row in program.c. */
typedef void lilac_sim_decode(lilac_sim_decoder *decoder, const lilac_simt_instruction *instruction,
                              uint8_t kind);

lilac_sim_decode lilac_sim_decode_lanes;    /* a pure operation */
lilac_sim_decode lilac_sim_decode_pack;     /* pack, unpack */
lilac_sim_decode lilac_sim_decode_exchange; /* shuffle, ballot, vote, match, redux */

lilac_sim_decode lilac_sim_decode_access; /* a load or a store, matrix accesses included */
lilac_sim_decode lilac_sim_decode_atomic;
lilac_sim_decode lilac_sim_decode_print;

lilac_sim_decode lilac_sim_decode_copy;     /* cp.async */
lilac_sim_decode lilac_sim_decode_made_map; /* tensor_map.set, publish, acquire */
lilac_sim_decode lilac_sim_decode_bulk;     /* a bulk or tensor copy */
lilac_sim_decode lilac_sim_decode_mbarrier;
lilac_sim_decode lilac_sim_decode_matrix; /* mma, wgmma */
lilac_sim_decode lilac_sim_decode_wgmma;  /* wgmma.fence, wgmma.commit, wgmma.wait */

lilac_sim_decode lilac_sim_decode_loop;
lilac_sim_decode lilac_sim_decode_programs;
lilac_sim_decode lilac_sim_decode_if;
lilac_sim_decode lilac_sim_decode_while;

#endif
