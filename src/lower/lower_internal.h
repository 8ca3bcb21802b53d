/* What the files of the room `lower` share.
 *
 *   tile value ──▶ lilac_lower_value: one SIMT value for each register of its layout
 *
 *   register r of a thread   =   base[r] + offsets[r]
 *                                 │         └ a constant, known now
 *                                 └ a SIMT value, mostly the same one for many registers
 *
 * Offsets exist for integers of 32 and 64 bits and for pointers, so that ranges and addresses keep
 * their constant parts apart until an instruction wants the sum: a memory access takes them as its
 * immediate offset, anything else through lilac_lower_get. */
#ifndef LILAC_LOWER_INTERNAL_H
#define LILAC_LOWER_INTERNAL_H

#include <lilac/bits.h>
#include <lilac/engine.h>
#include <lilac/f2.h>
#include <lilac/lower.h>

/* ---- views: a layout as the lowering reads it (coordinates.c) ---------------------------- */

/* Coordinates are flat: the bits of dim0 lowest, as in a column of the layout. `thread` bits are
 * the lane's and above them the warp's, the bits of the thread's index in its block. */
typedef struct lilac_lower_view {
    const lilac_layout *layout;
    uint32_t rank;
    uint32_t start[LILAC_MAX_RANK], bits[LILAC_MAX_RANK]; /* of each dimension in a coordinate */
    uint32_t register_bits, lane_bits, thread_bits, block_bits;
    uint64_t registers[LILAC_LAYOUT_MAX_BITS]; /* columns */
    uint64_t threads[LILAC_LAYOUT_MAX_BITS];
    uint64_t blocks[LILAC_LAYOUT_MAX_BITS];
    uint32_t count;        /* registers: 2^register_bits */
    uint64_t *coordinates; /* of each register in thread 0 */
    uint32_t *canonical;   /* the lowest register that holds the same element */
    uint32_t free_threads; /* masks of the bits that only make copies */
    uint32_t free_blocks;
    struct lilac_lower_view *next;
} lilac_lower_view;

/* ---- values ------------------------------------------------------------------------------ */

typedef struct lilac_lower_value {
    const lilac_tile_type *type;
    const lilac_lower_view *view; /* NULL: a scalar */
    uint32_t count;               /* registers; 1 for a scalar */
    lilac_simt_type simt;
    lilac_simt_value *base;
    const int64_t *offsets; /* NULL: all 0 */
    /* base + offset does not wrap as a signed number (true without offsets) */
    bool exact;
    int64_t low, high;               /* what base is known to lie between, signed, inclusive */
    int64_t offset_low, offset_high; /* the same of the offsets */
    const struct lilac_lower_memory *memory; /* shared memory (local.c); nothing else is set then */
} lilac_lower_value;

typedef struct lilac_lowering {
    lilac_context *context;
    const lilac_target *target;
    lilac_arena *arena; /* goes with the lowering */
    lilac_tile_function *function;
    lilac_axis_analysis facts;
    lilac_simt_kernel *kernel;
    lilac_simt_builder builder;
    lilac_lower_value *values; /* by tile value id */
    lilac_lower_view *views;
    const lilac_tile_op *op; /* being lowered */
    uint32_t shared_bytes;   /* in all: what local_alloc has, and scratch after it */
    uint32_t scratch_begin, scratch_next;
    uint32_t again_begin, again_end; /* what lilac_lower_scratch_again gave last */
    lilac_simt_value active; /* lanes that are meant, where control differs between them; 0: all */
    const struct lilac_lower_scalars *scalars; /* see scalars.c */
    bool failed;
} lilac_lowering;

/* Records an error at the operation that is being lowered; always false. */
bool lilac_lower_refuse(lilac_lowering *l, const char *id, const char *format, ...)
    LILAC_PRINTF(3, 4);
bool lilac_lower_unsupported(lilac_lowering *l, const char *why); /* why may be NULL */

/* The SIMT type of a tile type's elements; refuses those that have none. */
bool lilac_lower_type(lilac_lowering *l, const lilac_tile_type *type, lilac_simt_type *result);
/* The value of an operand, lowered before. NULL for an operand that is not there. */
const lilac_lower_value *lilac_lower_operand(lilac_lowering *l, const lilac_tile_op *op,
                                             uint32_t index);
/* A fresh value for result number `index` (registers still to be given), or NULL when refused. */
lilac_lower_value *lilac_lower_result(lilac_lowering *l, const lilac_tile_op *op, uint32_t index);
/* The same for any tile value. */
lilac_lower_value *lilac_lower_define(lilac_lowering *l, const lilac_tile_value *value);
/* Register r whole: base plus offset. */
lilac_simt_value lilac_lower_get(lilac_lowering *l, const lilac_lower_value *value, uint32_t r);
/* Register 0 of a scalar, with its bits when it is a constant. */
bool lilac_lower_constant(lilac_lowering *l, const lilac_lower_value *value, int64_t *number);

/* Lowers the operations of a block up to its terminator, which is returned (NULL: failed). */
const lilac_tile_op *lilac_lower_block(lilac_lowering *l, const lilac_tile_block *block);

/* The text of an attribute with its escapes (\\HH, \\n, \\t …) undone; NULL when there is none
 * (print.c). */
lilac_name lilac_lower_text(lilac_lowering *l, const lilac_tile_op *op, const char *name);
/* Which of the words an attribute is; `otherwise` where there is none, -1 where it is another. */
int lilac_lower_word(const lilac_tile_op *op, const char *attribute, int count,
                     const char *const *words, int otherwise);

/* ---- building ---------------------------------------------------------------------------- */

/* An operation with modifiers. */
lilac_simt_value lilac_lower_flagged(lilac_lowering *l, lilac_simt_opcode code,
                                     lilac_simt_type type, uint8_t flags, uint32_t operands,
                                     const lilac_simt_value *values);
lilac_simt_value lilac_lower_integer(lilac_lowering *l, lilac_simt_type type, int64_t number);
/* A floating-point constant of any float type, rounded to nearest. */
lilac_simt_value lilac_lower_float(lilac_lowering *l, lilac_simt_type type, double number);
lilac_simt_value lilac_lower_not(lilac_lowering *l, lilac_simt_value predicate);
/* Two predicates at once; 0 is true. */
lilac_simt_value lilac_lower_both(lilac_lowering *l, lilac_simt_value a, lilac_simt_value b);
/* elements.c: does a lane of the warp have the predicate? A condition for if and while. */
lilac_simt_value lilac_lower_any_lane(lilac_lowering *l, lilac_simt_value predicate);
lilac_simt_value lilac_lower_select(lilac_lowering *l, lilac_simt_value condition,
                                    lilac_simt_value yes, lilac_simt_value no);
/* Between f16, bf16, f32 and f64, rounded once. */
lilac_simt_value lilac_lower_convert(lilac_lowering *l, lilac_simt_value value,
                                     lilac_simt_type type, lilac_rounding rounding);
/* Conversions of 8-bit floats by integer instructions (f8.c): two of them, packed into an i16, to
 * an f16x2; an f32 to an i8, rounded to nearest even and saturating. `scalar` is f8E4M3FN or
 * f8E5M2. */
lilac_simt_value lilac_lower_f8_unpack(lilac_lowering *l, lilac_scalar scalar,
                                       lilac_simt_value pair);
lilac_simt_value lilac_lower_f8_round(lilac_lowering *l, lilac_scalar scalar,
                                      lilac_simt_value value);

/* ---- coordinates and renamings (coordinates.c) ------------------------------------------- */

const lilac_lower_view *lilac_lower_view_of(lilac_lowering *l, const lilac_tile_type *type);
/* Fills in what follows from a new view's columns: coordinates, canonical registers, free bits. */
void lilac_lower_find_copies(lilac_lowering *l, lilac_lower_view *view);
/* Mask of the registers' bits that move something of their own: the canonical registers. */
uint32_t lilac_lower_own_registers(const lilac_lower_view *view);
/* The bits of `index` put at the set bits of `mask`. */
uint32_t lilac_lower_deposit(uint32_t index, uint32_t mask);
/* A view as a layout of the tensor that `shape` is a view of, with the registers of a mask. */
bool lilac_lower_layout_of(lilac_layout *layout, const lilac_lower_view *shape,
                           const lilac_lower_view *view, uint32_t registers, lilac_reason *why);
/* xor of columns[i] over the set bits i < bits of the thread's index (and of block_columns over the
 * block's rank in its cluster); higher bits count for nothing. */
lilac_simt_value lilac_lower_linear(lilac_simt_builder *b, uint32_t bits, const uint64_t *columns,
                                    uint32_t block_bits, const uint64_t *block_columns);
/* The predicate that is true in one of the threads that hold copies of an element; 0: no copies. */
lilac_simt_value lilac_lower_one_copy(lilac_lowering *l, uint32_t free_threads,
                                      uint32_t free_blocks);
/* The same for a tensor's view; NULL: for a scalar, which every thread has. */
lilac_simt_value lilac_lower_one_copy_of(lilac_lowering *l, const lilac_lower_view *view);
/* registers[r] is given for the canonical r: gives the others. */
void lilac_lower_give_copies(const lilac_lower_view *view, lilac_simt_value *registers);

/* Where the elements of a result stand in an operand: bit j of the operand's coordinate is bit
 * bits[j] of the result's, or `constant`'s where that is -1. */
typedef struct lilac_lower_map {
    uint32_t count; /* bits of an operand's coordinate */
    int8_t bits[LILAC_LAYOUT_MAX_BITS];
    uint64_t constant;
} lilac_lower_map;

void lilac_lower_map_identity(lilac_lower_map *map, uint32_t bits);
uint64_t lilac_lower_map_apply(const lilac_lower_map *map, uint64_t coordinate);
/* For each register of `result` the register of `operand` that holds, in the same thread, the
 * element at the mapped coordinates. False when there is none. NULL *source: the same register. */
bool lilac_lower_rename(lilac_lowering *l, const lilac_lower_view *operand,
                        const lilac_lower_view *result, const lilac_lower_map *map,
                        const uint32_t **source);
/* Which register of `operand` stands for register r of a result with this view: renames when the
 * layouts differ. Refuses with `layout-conversion`. */
bool lilac_lower_align(lilac_lowering *l, const lilac_lower_value *operand,
                       const lilac_lower_view *view, const uint32_t **source);

static inline uint32_t lilac_lower_index(const lilac_lower_value *operand, const uint32_t *source,
                                         uint32_t r) {
    return operand->count == 1 ? 0 : source != NULL ? source[r] : r;
}

/* An operand beside others (memory.c): its value (NULL: it is not there), and which of its
 * registers stands for register r of theirs. */
typedef struct lilac_lower_companion {
    const lilac_lower_value *value;
    const uint32_t *source;
} lilac_lower_companion;

bool lilac_lower_accompany(lilac_lowering *l, const lilac_tile_op *op, uint32_t index,
                           const lilac_lower_view *view, lilac_lower_companion *companion);
lilac_simt_value lilac_lower_of_companion(lilac_lowering *l, const lilac_lower_companion *companion,
                                          uint32_t r);

/* Mask of the register bits that never change the value, by the facts known of it. */
uint32_t lilac_lower_constant_bits(lilac_lowering *l, const lilac_tile_value *value,
                                   const lilac_lower_view *view);

/* ---- elementwise ------------------------------------------------------------------------- */

/* Computes the results of one element. */
typedef void (*lilac_lower_element)(lilac_lowering *l, const lilac_tile_op *op,
                                    const lilac_simt_value *operands, lilac_simt_value *results);
/* Applies it to every register, once where operands or facts say that registers are equal. */
bool lilac_lower_elementwise(lilac_lowering *l, const lilac_tile_op *op,
                             lilac_lower_element element);

/* Is a number of 64 bits another one and a step? Then so are sums of both with something else, and
 * one addition leads from register to register. (memory.c) */
bool lilac_lower_is_step(lilac_lowering *l, lilac_simt_value value, lilac_simt_value from,
                         lilac_simt_value *step);

/* ---- vectors (memory.c) ------------------------------------------------------------------ */

/* Loads 2^k elements that stand one after another, sub-word ones packed in words. `others`: what a
 * false predicate gives, or NULL. The access must be aligned to its size and at most 16 bytes. */
void lilac_lower_load_vector(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_type type,
                             uint32_t count, lilac_simt_value address, int64_t offset,
                             lilac_simt_value predicate, const lilac_simt_value *others,
                             const lilac_simt_instruction *modifiers, lilac_simt_value *results);
void lilac_lower_store_vector(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_type type,
                              uint32_t count, const lilac_simt_value *values,
                              lilac_simt_value address, int64_t offset, lilac_simt_value predicate,
                              const lilac_simt_instruction *modifiers);

/* The registers of one access: element j is register r with the bits of j put at `bits`. */
typedef struct lilac_lower_vector {
    uint32_t log2_size;
    uint32_t bits[4]; /* register bits, lowest element bit first */
    uint32_t mask;    /* of them */
} lilac_lower_vector;

uint32_t lilac_lower_register_at(const lilac_lower_vector *vector, uint32_t r, uint32_t element);
/* The widest vector over all dimensions that the facts allow: of the operation's first operand,
 * pointers, contiguous and aligned, with one value of the mask (or NULL). */
lilac_lower_vector lilac_lower_choose_vector(lilac_lowering *l, const lilac_tile_op *op,
                                             const lilac_lower_view *view,
                                             const lilac_tile_value *mask);
/* The address in register r, and the constant part that an access takes as its immediate. */
lilac_simt_value lilac_lower_address(lilac_lowering *l, const lilac_lower_value *pointer,
                                     uint32_t r, int64_t *immediate);

/* ---- words (words.c) --------------------------------------------------------------------- */

/* A thread's 2^register_bits registers as 32-bit words, as movement plans count them: elements
 * narrower than a word packed, the lowest bits of the register index within the word; wider ones
 * take several words, low half first. */
typedef struct lilac_lower_words {
    uint32_t register_bits;
    uint32_t element_bits; /* 8 … 128 */
    uint32_t count;
    lilac_simt_value *list;
    /* Elements of 64 and 128 bits may stay in values of this type, 64 bits each, two words at a
     * time: `list` and `count` are then of those. LILAC_SIMT_VOID: words of 32 bits. */
    lilac_simt_type whole;
} lilac_lower_words;

/* Elements of part of a byte travel as bytes. */
static inline uint32_t lilac_lower_carried_bits(uint32_t element_bits) {
    return element_bits < 8 ? 8 : element_bits;
}
/* `values`: one a register, of this type; two i64 when elements have 128 bits. */
void lilac_lower_pack_words(lilac_simt_builder *b, lilac_arena *arena, lilac_simt_type type,
                            uint32_t register_bits, uint32_t element_bits,
                            const lilac_simt_value *values, lilac_lower_words *words);
void lilac_lower_unpack_words(lilac_simt_builder *b, lilac_simt_type type,
                              const lilac_lower_words *words, lilac_simt_value *values);
/* The same for accesses only, and renamings: values of 64 bits stay whole. */
void lilac_lower_pack_whole(lilac_simt_builder *b, lilac_arena *arena, lilac_simt_type type,
                            uint32_t register_bits, uint32_t element_bits,
                            const lilac_simt_value *values, lilac_lower_words *words);
/* Words to be loaded: how many, and whether they stay whole. */
lilac_lower_words lilac_lower_words_like(uint32_t register_bits, uint32_t element_bits,
                                         lilac_simt_type whole);
static inline lilac_simt_type lilac_lower_whole_type(lilac_simt_type type, uint32_t element_bits) {
    return element_bits == 64 ? type : element_bits == 128 ? LILAC_SIMT_I64 : LILAC_SIMT_VOID;
}
/* Carries out a network (network.c): new words in place of the old. `register_bits`: of the result.
 */
void lilac_lower_network(lilac_simt_builder *b, lilac_arena *arena,
                         const lilac_plan_network *network, uint32_t thread_bits,
                         uint32_t register_bits, lilac_lower_words *words);

/* ---- shared memory (access.c) ------------------------------------------------------------ */

/* Where an access's offset 0 stands, and who takes part. */
typedef struct lilac_lower_place {
    uint64_t offset; /* bytes from the beginning of the block's shared memory */
    uint64_t bytes;  /* that the accesses stay within */
    uint32_t apart;  /* warps that differ in these bits of their number share no byte here. Each has
                        the part that the highest bits of the offset tell, in the order of its own
                        bits: then other operations may have the same bytes (simt.h) */
    uint32_t copies; /* threads with one of these bits set hold what others hold, who store it */
    uint64_t shift;  /* elements, xored to every offset, before padding */
    lilac_simt_value dynamic; /* bytes, added; 0: none */
    int64_t constant;         /* the same, known now */
    uint32_t registers;     /* or-ed to the registers that the access numbers: those of one round */
    const uint64_t *blocks; /* offsets to xor over the bits of the block's rank; NULL: none */
    const lilac_plan_trip *remote; /* loads come from other blocks' memory; or NULL */
} lilac_lower_place;

/* Stores words, and loads them: every register of `words` that the access names. */
void lilac_lower_store_access(lilac_simt_builder *b, lilac_arena *arena,
                              const lilac_plan_access *access, const lilac_lower_place *place,
                              const lilac_lower_words *words);
/* Loads of several rounds gather in one set of pieces, which lilac_lower_gathered makes words of.
 */
typedef struct lilac_lower_pieces {
    uint32_t bits; /* log2 of the registers of a piece; pieces of a word or more are words */
    lilac_simt_value *list;
} lilac_lower_pieces;
void lilac_lower_load_access(lilac_simt_builder *b, lilac_arena *arena,
                             const lilac_plan_access *access, const lilac_lower_place *place,
                             const lilac_lower_words *words, lilac_lower_pieces *pieces);
void lilac_lower_gathered(lilac_simt_builder *b, lilac_arena *arena,
                          const lilac_lower_pieces *pieces, lilac_lower_words *words);

/* The barrier between a trip's stores and its loads (movement.c). */
void lilac_lower_trip_barrier(lilac_simt_builder *b, const lilac_plan_trip *trip,
                              uint32_t lane_bits, uint32_t warp_bits);

/* ---- scratch memory (scratch.c) ------------------------------------------------------------ */

/* Shared memory for a while: its offset. Whoever takes it must see to barriers. */
uint32_t lilac_lower_scratch(lilac_lowering *l, uint64_t bytes);
/* The same, in the same place as the last time if it can be. */
uint32_t lilac_lower_scratch_again(lilac_lowering *l, uint64_t bytes);

/* ---- movement (convert.c) ---------------------------------------------------------------- */

/* A tensor's registers in another layout of it. `values`: the canonical ones at least; all of the
 * results are given. Refuses with `layout-conversion`. */
bool lilac_lower_move(lilac_lowering *l, lilac_simt_type type, const lilac_lower_view *from,
                      const lilac_lower_view *to, lilac_plan_strategy way,
                      const lilac_simt_value *values, lilac_simt_value *results);
/* All registers of a tensor, in its own layout or another one of it. */
bool lilac_lower_read_as(lilac_lowering *l, const lilac_lower_value *from,
                         const lilac_lower_view *view, lilac_simt_value *registers);
/* Gives a value the elements that it has of `from` by the map, wherever they stand; or two values
 * of the same layout, the second one's elements map->constant further on. */
bool lilac_lower_move_value(lilac_lowering *l, const lilac_lower_value *from,
                            const lilac_lower_map *map, uint32_t results,
                            lilac_lower_value *const *to);

/* ---- copies (atomics.c) ------------------------------------------------------------------ */

/* Values that only one of the threads with copies of an element has right, for all of them:
 * registers[r] for the canonical r of the view (NULL: thread 0's scalar). By shuffles within a
 * warp, else through shared memory. Refuses copies between blocks of a cluster. */
bool lilac_lower_broadcast_copies(lilac_lowering *l, const lilac_lower_view *view,
                                  lilac_simt_value *registers);
/* ---- elements, lanes and scratch of reductions and scans (region.c) ----------------------- */

/* a = region(a, b), by lowering the region's operations on scalars; one value for each operand. */
bool lilac_lower_combine(lilac_lowering *l, const lilac_tile_op *op, lilac_simt_value *a,
                         const lilac_simt_value *b);
/* Shuffles move 32-bit words: narrower values are widened, 64 bits go in two halves. */
lilac_simt_value lilac_lower_shuffle(lilac_lowering *l, lilac_simt_shuffle kind,
                                     lilac_simt_value value, lilac_simt_value lane);
/* Shuffles a row of values (`stride` apart), two 16-bit ones in a word. */
void lilac_lower_shuffle_row(lilac_lowering *l, lilac_simt_shuffle kind, lilac_simt_value lane,
                             uint32_t count, uint32_t stride, const lilac_simt_value *in,
                             lilac_simt_value *out);
/* That an element takes in memory. */
static inline uint32_t lilac_lower_memory_bytes(lilac_simt_type type) {
    uint32_t bits = lilac_simt_type_bits(type);
    return bits < 8 ? 1 : bits / 8;
}
/* The address of a coordinate: the thread's part as a value, then registers' parts one at a time,
 * as an immediate where they touch other bits. */
typedef struct lilac_lower_addressing {
    lilac_simt_value base; /* of the block's shared memory */
    lilac_simt_value thread;
    uint64_t thread_bits; /* that the thread's part may set */
} lilac_lower_addressing;
/* columns[i]: bytes, xored over the set bits i of the thread's index. */
lilac_lower_addressing lilac_lower_address_threads(lilac_lowering *l, uint32_t bits,
                                                   const uint64_t *columns);
lilac_simt_value lilac_lower_address_of(lilac_lowering *l, const lilac_lower_addressing *a,
                                        uint64_t part, int64_t *immediate);

/* ---- control flow of elements (elements.c) ------------------------------------------------ */

/* Does control in this operation differ from thread to thread, and can it: scalars, no memory? */
bool lilac_lower_differs(lilac_lowering *l, const lilac_tile_op *op);
/* Finds the operations with regions that only compute scalars (scalars.c). */
void lilac_lower_find_scalars(lilac_lowering *l);
/* Do the regions of the operation read or write memory? */
bool lilac_lower_touches_memory(const lilac_lowering *l, const lilac_tile_op *op);
/* Does the operation, which has regions, use scalars only and touch no memory? */
bool lilac_lower_is_scalar(const lilac_lowering *l, const lilac_tile_op *op);
/* Is it in a region that is computed for each element (of a map, a reduction, a scan)? */
bool lilac_lower_is_of_elements(const lilac_lowering *l, const lilac_tile_op *op);
/* Does a value differ between threads that the regions of this operation use from outside, and that
 * no scalar operation around it uses from its outside? */
bool lilac_lower_uses_differ(const lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_if_elements(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_while_elements(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_for_elements(lilac_lowering *l, const lilac_tile_op *op);
/* What to divide by: 1 in lanes that are not meant, where it may be 0. */
lilac_simt_value lilac_lower_divisor(lilac_lowering *l, lilac_simt_value value);

/* ---- families ---------------------------------------------------------------------------- */

bool lilac_lower_integer_op(lilac_lowering *l, const lilac_tile_op *op); /* arithmetic.c */
bool lilac_lower_float_op(lilac_lowering *l, const lilac_tile_op *op);   /* floats.c */
bool lilac_lower_conversion(lilac_lowering *l, const lilac_tile_op *op); /* conversions.c */
bool lilac_lower_math(lilac_lowering *l, const lilac_tile_op *op);       /* math.c */
bool lilac_lower_extern(lilac_lowering *l, const lilac_tile_op *op);     /* libdevice.c */
bool lilac_lower_source(lilac_lowering *l, const lilac_tile_op *op);     /* sources.c */
bool lilac_lower_shape(lilac_lowering *l, const lilac_tile_op *op);      /* shape.c */
bool lilac_lower_pointer(lilac_lowering *l, const lilac_tile_op *op);    /* memory.c */
bool lilac_lower_load(lilac_lowering *l, const lilac_tile_op *op);       /* memory.c */
bool lilac_lower_store(lilac_lowering *l, const lilac_tile_op *op);      /* memory.c */
bool lilac_lower_reduce(lilac_lowering *l, const lilac_tile_op *op);     /* reduce.c */
bool lilac_lower_scan(lilac_lowering *l, const lilac_tile_op *op);       /* scan.c */
bool lilac_lower_gather(lilac_lowering *l, const lilac_tile_op *op);     /* gather.c */
bool lilac_lower_histogram(lilac_lowering *l, const lilac_tile_op *op);  /* histogram.c */
bool lilac_lower_cat(lilac_lowering *l, const lilac_tile_op *op);        /* cat.c */
bool lilac_lower_atomic(lilac_lowering *l, const lilac_tile_op *op);     /* atomics.c */
bool lilac_lower_inline_asm(lilac_lowering *l, const lilac_tile_op *op); /* inline_asm.c */
bool lilac_lower_print(lilac_lowering *l, const lilac_tile_op *op);      /* print.c */
bool lilac_lower_control(lilac_lowering *l, const lilac_tile_op *op);    /* control.c */
bool lilac_lower_elements(lilac_lowering *l, const lilac_tile_op *op);   /* elements.c */
bool lilac_lower_local(lilac_lowering *l, const lilac_tile_op *op);      /* local.c */

/* Gives every local_alloc of the function its place in shared memory, and scratch what is above. */
bool lilac_lower_place_memory(lilac_lowering *l);

/* A barrier of the block, for shared memory: stands before and after everything that is stored
 * there. Those that order nothing are taken away by lilac_simt_opt_barriers, which knows the
 * intervals that all accesses are marked with, and what goes round loops. */
void lilac_lower_barrier(lilac_lowering *l);

#endif
