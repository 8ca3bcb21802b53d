/* Values and building: what every file of the component `lower` uses.
 *
 *   tile value ──▶ lilac_lower_value: one SIMT value for each register of its layout
 *
 *   register r of a thread   =   base[r] + offsets[r]
 *                                 │         └ a constant that the compiler knows
 *                                 └ a SIMT value, usually shared by many registers
 *
 * Offsets exist for integers of 32 and 64 bits and for pointers. Ranges and addresses keep their
 * constant parts separate until an instruction needs the sum. A memory access uses the offset as
 * its immediate; every other user calls lilac_lower_get, which builds the addition.
 *
 * The other headers of the component, by subject:
 *
 *   operations.h             one function for each group of tile operations
 *   coordinates.h            views of layouts, aligned operands
 *   convert_layout.h         a tensor's registers in another layout
 *   pack_words.h             registers as 32-bit words
 *   partitions.h             partitions of warps
 *   control.h                control flow that differs between threads
 *   numeric_casts.h          conversions between number types
 *   memory/access.h          loads and stores of vectors
 *   memory/shared_access.h   accesses of a plan, scratch memory, barriers
 *   memory/buffers.h         allocations of shared memory and what may name them
 *   memory/descriptor.h      memory descriptors as SIMT values
 *   collective/region.h      regions that combine elements, shuffles
 *   math/functions.h         elementary and special functions
 *   assembly/inline_asm.h    inline PTX */
#ifndef LILAC_LOWER_INTERNAL_H
#define LILAC_LOWER_INTERNAL_H

#include <lilac/bits.h>
#include <lilac/engine.h>
#include <lilac/f2.h>
#include <lilac/lower.h>

struct lilac_lower_buffers;
struct lilac_lower_memory;
struct lilac_lower_partitions;
struct lilac_lower_scalars;
struct lilac_lower_view;

/* What represents a tile value. */
typedef enum lilac_lower_kind {
    LILAC_LOWER_REGISTERS, /* a tensor or a scalar, pointers included: SIMT values */
    LILAC_LOWER_MEMORY,    /* a memory descriptor, of an mbarrier too: `memory` */
    LILAC_LOWER_TOKEN      /* a token: nothing; the order of the operations is enough */
} lilac_lower_kind;

typedef struct lilac_lower_value {
    lilac_lower_kind kind;
    const lilac_tile_type *type;
    const struct lilac_lower_view *view; /* coordinates.h; NULL: a scalar */
    uint32_t count;                      /* registers; 1 for a scalar */
    lilac_simt_type simt;
    lilac_simt_value *base;
    const int64_t *offsets; /* NULL: all 0 */
    /* base + offset does not wrap as a signed number (always true without offsets). */
    bool exact;
    int64_t low, high;               /* bounds of base: signed, inclusive */
    int64_t offset_low, offset_high; /* bounds of the offsets: signed, inclusive */
    /* Only for a memory descriptor (memory/descriptor.h). The fields above are only for
     * registers. */
    const struct lilac_lower_memory *memory;
    const lilac_tile_value *tile; /* of a descriptor or token: the value that it represents */
} lilac_lower_value;

typedef struct lilac_lowering {
    lilac_context *context;
    const lilac_target *target;
    const lilac_lower_options *options;
    lilac_arena *arena; /* freed with the lowering */
    lilac_tile_function *function;
    lilac_axis_analysis facts;
    lilac_range *ranges; /* by tile value id */
    lilac_simt_kernel *kernel;
    lilac_simt_builder builder;
    lilac_lower_value *values; /* by tile value id */
    struct lilac_lower_view *views;
    const lilac_tile_op *op; /* the operation that is being lowered */
    uint32_t shared_bytes;   /* total: allocations, then scratch */
    uint32_t scratch_begin, scratch_next;
    const lilac_tile_op *scratch_loop;   /* the loop of the last exchange; NULL: none */
    uint32_t scratch_floor;              /* no scratch memory is in front of this byte */
    uint32_t reused_begin, reused_end;   /* last result of lilac_lower_scratch_reused */
    struct lilac_lower_buffers *buffers; /* memory/buffers.h; NULL: no memory descriptors */
    /* Predicate: this lane executes the enclosing per-element control flow (control.h). 0: all
     * lanes execute it. */
    lilac_simt_value active;
    lilac_simt_value product_base;               /* matrix/warp_group_dot.c; 0: none */
    const struct lilac_lower_scalars *scalars;   /* see scalars.c */
    struct lilac_lower_f32_pending *f32_pending; /* math/f32_elements.c, during one operation */
    struct lilac_lower_partitions
        *partitions; /* partitions.h; NULL: all warps execute one program */
    bool failed;
} lilac_lowering;

/* Records an error at the operation that is being lowered. Returns false. */
bool lilac_lower_refuse(lilac_lowering *l, const char *id, const char *format, ...)
    LILAC_PRINTF(3, 4);
/* Refuses the operation with the id `unsupported-operation`: "'NAME' cannot be lowered: …", and
 * without a reason: the operation has no lowering at all. */
bool lilac_lower_unsupported(lilac_lowering *l, const char *format, ...) LILAC_PRINTF(2, 3);
bool lilac_lower_no_lowering(lilac_lowering *l);
/* The same for an attribute that is absent or whose value is not one of those that `expected`
 * describes. */
bool lilac_lower_bad_attribute(lilac_lowering *l, const char *name, const char *expected);

/* The SIMT type of a tile type's elements; refuses types that have none. */
bool lilac_lower_type(lilac_lowering *l, const lilac_tile_type *type, lilac_simt_type *result);
/* The value of an operand, which was lowered before. NULL for an absent operand. */
const lilac_lower_value *lilac_lower_operand(lilac_lowering *l, const lilac_tile_op *op,
                                             uint32_t index);
/* Defines a descriptor that is a tensor map: base[0] is its address. */
lilac_lower_value *lilac_lower_define_map(lilac_lowering *l, const lilac_tile_value *tile);
/* A new value for result number `index`, or NULL when its type is refused. The caller fills its
 * registers. */
lilac_lower_value *lilac_lower_result(lilac_lowering *l, const lilac_tile_op *op, uint32_t index);
/* The same for any tile value. */
lilac_lower_value *lilac_lower_define(lilac_lowering *l, const lilac_tile_value *value);
/* Register r: base plus offset. */
lilac_simt_value lilac_lower_get(lilac_lowering *l, const lilac_lower_value *value, uint32_t r);
/* Is every register the same constant? *number is its signed value. */
bool lilac_lower_constant(lilac_lowering *l, const lilac_lower_value *value, int64_t *number);

/* Lowers the operations of a block up to its terminator, which it returns. NULL: an operation was
 * refused. */
const lilac_tile_op *lilac_lower_block(lilac_lowering *l, const lilac_tile_block *block);

/* The text of an attribute with its escapes (\\HH, \\n, \\t …) decoded. NULL: no such attribute
 * (print.c). */
lilac_name lilac_lower_text(lilac_lowering *l, const lilac_tile_op *op, const char *name);
/* Index of an attribute's text in a list of words. `otherwise`: the attribute is absent. -1: its
 * text is not in the list. */
int lilac_lower_word(const lilac_tile_op *op, const char *attribute, int count,
                     const char *const *words, int otherwise);

/* ---- building ---------------------------------------------------------------------------- */

/* Builds an instruction with flags. */
lilac_simt_value lilac_lower_flagged(lilac_lowering *l, lilac_simt_opcode code,
                                     lilac_simt_type type, uint8_t flags, uint32_t operands,
                                     const lilac_simt_value *values);
lilac_simt_value lilac_lower_integer(lilac_lowering *l, lilac_simt_type type, int64_t number);
/* A floating-point constant of any float type, rounded to nearest. */
lilac_simt_value lilac_lower_float(lilac_lowering *l, lilac_simt_type type, double number);
lilac_simt_value lilac_lower_not(lilac_lowering *l, lilac_simt_value predicate);
/* The conjunction of two predicates. An operand 0 means true; so does the result 0. */
lilac_simt_value lilac_lower_both(lilac_lowering *l, lilac_simt_value a, lilac_simt_value b);
lilac_simt_value lilac_lower_select(lilac_lowering *l, lilac_simt_value condition,
                                    lilac_simt_value yes, lilac_simt_value no);
/* Is `value` an addition of 64 bits of `from` and *step? Then sums of either with a common term
 * also differ by *step, so one addition computes a register from the previous one
 * (load_store.c). */
bool lilac_lower_is_step(lilac_lowering *l, lilac_simt_value value, lilac_simt_value from,
                         lilac_simt_value *step);

/* A block barrier for shared memory. The lowering builds one before and after everything that it
 * stores there. lilac_simt_opt_barriers removes those that order nothing. It uses the byte
 * interval of each access and follows the paths around loops. */
void lilac_lower_barrier(lilac_lowering *l);

/* ---- elementwise ------------------------------------------------------------------------- */

/* Computes the results of one element. */
typedef void (*lilac_lower_element)(lilac_lowering *l, const lilac_tile_op *op,
                                    const lilac_simt_value *operands, lilac_simt_value *results);
/* Applies the function to each register; once only for registers that are known to be equal. */
bool lilac_lower_elementwise(lilac_lowering *l, const lilac_tile_op *op,
                             lilac_lower_element element);

#endif
