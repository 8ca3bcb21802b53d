/* The declarations that the files of `simt` share; private to the component. */
#ifndef LILAC_SIMT_INTERNAL_H
#define LILAC_SIMT_INTERNAL_H

#include <lilac/bits.h>
#include <lilac/simt.h>

/* ---- types and opcodes (ops.c) ---------------------------------------------------------- */

/* The tables behind lilac_simt_op_info_get and lilac_simt_type_bits, for inner loops. */
extern const lilac_simt_op_info lilac_simt_op_infos[LILAC_SIMT_OP_COUNT];
extern const uint8_t lilac_simt_type_widths[LILAC_SIMT_TYPE_COUNT];

static inline uint64_t lilac_simt_type_mask(lilac_simt_type type) {
    return low_bits(lilac_simt_type_widths[type]);
}

static inline bool lilac_simt_type_is_integer(lilac_simt_type type) {
    return type >= LILAC_SIMT_I1 && type <= LILAC_SIMT_I64;
}

static inline bool lilac_simt_type_is_packed(lilac_simt_type type) {
    return type == LILAC_SIMT_F16X2 || type == LILAC_SIMT_BF16X2;
}

/* The bits of an integer type as a signed number. */
static inline int64_t lilac_simt_signed(lilac_simt_type type, uint64_t bits) {
    uint32_t width = lilac_simt_type_widths[type];
    return width >= 64 ? (int64_t)bits : (int64_t)(bits << (64 - width)) >> (64 - width);
}

/* The scalar that holds the type's bits (a packed type: one element's). */
lilac_scalar lilac_simt_scalar_of(lilac_simt_type type);
bool lilac_simt_type_read(const char *bytes, size_t length, lilac_simt_type *type);
/* The comparison that gives the opposite answer, and the one with its operands exchanged. */
lilac_simt_compare lilac_simt_compare_inverse(lilac_simt_compare kind, bool is_float);
lilac_simt_compare lilac_simt_compare_swapped(lilac_simt_compare kind);
bool lilac_simt_compare_fits(lilac_simt_compare kind, bool is_float);

static inline bool lilac_simt_has_trait(uint32_t code, uint32_t traits) {
    return (lilac_simt_op_infos[code < LILAC_SIMT_OP_COUNT ? code : 0].traits & traits) != 0;
}

/* lilac_simt_is_constant, for inner loops. */
static inline bool lilac_simt_constant_bits(const lilac_simt_kernel *kernel, lilac_simt_value value,
                                            uint64_t *bits) {
    const lilac_simt_instruction *definition = kernel->values[value].definition;
    if (definition == NULL || definition->code != LILAC_SIMT_OP_CONST) {
        return false;
    }
    *bits = (uint64_t)definition->immediate;
    return true;
}

static inline bool lilac_simt_is_access(uint32_t code) {
    return lilac_simt_has_trait(code, LILAC_SIMT_GLOBAL | LILAC_SIMT_SHARED);
}

static inline bool lilac_simt_is_shared_access(uint32_t code) {
    return lilac_simt_has_trait(code, LILAC_SIMT_SHARED);
}

static inline bool lilac_simt_is_atomic(uint32_t code) {
    return code == LILAC_SIMT_OP_ATOMIC_GLOBAL || code == LILAC_SIMT_OP_CAS_GLOBAL ||
           code == LILAC_SIMT_OP_ATOMIC_SHARED;
}

static inline bool lilac_simt_is_named_barrier(uint32_t code) {
    return code == LILAC_SIMT_OP_NAMED_BARRIER_SYNC || code == LILAC_SIMT_OP_NAMED_BARRIER_ARRIVE;
}

static inline bool lilac_simt_is_matrix(uint32_t code) {
    return code == LILAC_SIMT_OP_LD_MATRIX || code == LILAC_SIMT_OP_ST_MATRIX;
}

static inline bool lilac_simt_is_load(uint32_t code) {
    return code == LILAC_SIMT_OP_LD_GLOBAL || code == LILAC_SIMT_OP_LD_SHARED ||
           code == LILAC_SIMT_OP_LD_CLUSTER || code == LILAC_SIMT_OP_LD_MATRIX;
}

static inline bool lilac_simt_is_tensor_copy(uint32_t code) {
    return code == LILAC_SIMT_OP_CP_TENSOR_LOAD || code == LILAC_SIMT_OP_CP_TENSOR_STORE ||
           code == LILAC_SIMT_OP_CP_TENSOR_REDUCE;
}

static inline bool lilac_simt_is_bulk_copy(uint32_t code) {
    return code == LILAC_SIMT_OP_CP_BULK_LOAD || code == LILAC_SIMT_OP_CP_BULK_STORE ||
           code == LILAC_SIMT_OP_CP_BULK_REDUCE || lilac_simt_is_tensor_copy(code);
}

/* Is the operation a bulk or tensor load? */
static inline bool lilac_simt_completes_at_mbarrier(uint32_t code) {
    return code == LILAC_SIMT_OP_CP_BULK_LOAD || code == LILAC_SIMT_OP_CP_TENSOR_LOAD;
}

/* The number of the operand that is the address of a bulk or tensor load's mbarrier: the last one,
 * or the one before the mask of a multicast. */
static inline uint32_t lilac_simt_mbarrier_operand(const lilac_simt_instruction *i) {
    return i->operand_count - 1u - i->payload.bulk.multicast;
}

/* Does the immediate say how many groups of copies may be incomplete? */
static inline bool lilac_simt_awaits_groups(uint32_t code) {
    return code == LILAC_SIMT_OP_CP_ASYNC_WAIT || code == LILAC_SIMT_OP_BULK_WAIT ||
           code == LILAC_SIMT_OP_BULK_WAIT_READ;
}

/* May a division trap? A constant divisor that is not zero cannot. */
bool lilac_simt_may_trap(const lilac_simt_kernel *kernel,
                         const lilac_simt_instruction *instruction);

/* ---- the IR's links (kernel.c) ---------------------------------------------------------- */

/* `count` new values of the types (consecutive numbers); returns the first, 0 when there are none.
 */
lilac_simt_value lilac_simt_new_values(lilac_simt_kernel *kernel, uint32_t count,
                                       const lilac_simt_type *types,
                                       lilac_simt_instruction *definition, lilac_simt_body *body);
/* A copy of `like` with these operands, no results, not linked into a body. */
lilac_simt_instruction *lilac_simt_new_instruction(lilac_simt_kernel *kernel,
                                                   const lilac_simt_instruction *like,
                                                   uint32_t operands,
                                                   const lilac_simt_value *values);
/* Gives a linked instruction its results. */
void lilac_simt_give_results(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction,
                             uint32_t results, const lilac_simt_type *types);
lilac_simt_body *lilac_simt_new_body(lilac_simt_kernel *kernel, lilac_simt_instruction *parent,
                                     uint32_t arguments, const lilac_simt_type *types);
/* Links before `where`, at the end when that is NULL. */
void lilac_simt_link(lilac_simt_body *body, lilac_simt_instruction *where,
                     lilac_simt_instruction *instruction);
void lilac_simt_unlink(lilac_simt_instruction *instruction);
/* Moves an instruction in front of another, in that one's body. */
void lilac_simt_move(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction,
                     lilac_simt_instruction *where);
/* Is the value defined in the body or in a body inside? */
bool lilac_simt_is_inside(const lilac_simt_kernel *kernel, lilac_simt_value value,
                          const lilac_simt_body *body);
/* Adds values that a loop carries, of the types of `inits`; all values that it carries get new numbers.
 * Returns the argument of the first one. The terminator of the body gets their next values afterwards
 * (lilac_simt_add_operands). */
lilac_simt_value lilac_simt_add_carried(lilac_simt_kernel *kernel, lilac_simt_instruction *loop,
                                        uint32_t count, const lilac_simt_value *inits);
/* Adds operands behind the others. */
void lilac_simt_add_operands(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction,
                             uint32_t count, const lilac_simt_value *added);
/* replacement[v], unless it is 0, takes the place of each value v below `known` in the body. */
void lilac_simt_replace_uses(lilac_simt_body *body, uint32_t known,
                             const lilac_simt_value *replacement);
/* The results of a replaced instruction were known uniform by a mark: so is what replaces them. */
void lilac_simt_inherit(lilac_simt_kernel *kernel, lilac_simt_value from, lilac_simt_value to);
/* uses[v] += how often the value v is an operand in a body and the bodies inside. */
void lilac_simt_count_uses(const lilac_simt_body *body, uint32_t *uses);

/* ---- registers and blocks (pressure.c, opt_occupancy.c) ---------------------------------- */

/* Are there registers for `more` words that are live together with all others? They must neither
 * spill nor cost a resident block. */
bool lilac_simt_has_registers(const lilac_simt_kernel *kernel, uint32_t more);

/* Does a barrier in it make warps wait for others? */
bool lilac_simt_waits(const lilac_simt_body *body);

/* ---- programs (programs.c) --------------------------------------------------------------- */

bool lilac_simt_has_programs(const lilac_simt_kernel *kernel);
/* The rules for programs, named barriers and set_max_registers over a whole kernel. */
bool lilac_simt_verify_programs(const lilac_simt_kernel *kernel);
/* An error of the verifier at an instruction (NULL: the kernel), which a note prints (verify.c). */
void lilac_simt_verify_error(const lilac_simt_kernel *kernel,
                             const lilac_simt_instruction *instruction, const char *id,
                             const char *format, ...) LILAC_PRINTF(4, 5);

/* ---- uniformity (uniform.c) ------------------------------------------------------------- */

/* Of an instruction without bodies. */
bool lilac_simt_is_uniform(const lilac_simt_kernel *kernel,
                           const lilac_simt_instruction *instruction);
/* The results and arguments of a closed loop, if or while, and all within. */
void lilac_simt_settle_uniform(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction);

/* ---- the memo: what is already computed (memo.c) ---------------------------------------- */

/* Expressions by code and operands. Entries stand in the order they came, so closing a body takes
 * the newest away again; linear probing allows that without marking deleted slots. */
typedef struct lilac_simt_table {
    struct lilac_simt_table_entry {
        uint32_t hash;
        lilac_simt_value value;
    } * entries;
    uint32_t count, capacity;
    uint32_t *slots; /* entry + 1; 0: free */
    uint32_t slot_count;
} lilac_simt_table;

struct lilac_simt_memo {
    lilac_simt_table leaves; /* no operands: they stand at the head of the kernel's body */
    lilac_simt_table expressions;
    lilac_simt_instruction *last_leaf;
    lilac_simt_instruction *before; /* where the builder builds; NULL: at the end of its body */
    uint64_t *zeros;                /* of each value: bits known to be 0 */
    uint32_t zeros_count;
};

/* A zeroed memo is an empty one; clear frees what it holds. create also takes in the leaves that
 * stand at the head of the kernel. */
void lilac_simt_memo_clear(struct lilac_simt_memo *memo);
struct lilac_simt_memo *lilac_simt_memo_create(lilac_simt_kernel *kernel);
void lilac_simt_memo_destroy(struct lilac_simt_memo *memo);
uint32_t lilac_simt_memo_open(const struct lilac_simt_memo *memo);
void lilac_simt_memo_close(struct lilac_simt_memo *memo, uint32_t mark);
/* An instruction that computes the same as `like` (operands included) with first result of this
 * type and as many results: its first result, or 0. Wrap flags are not compared; *hash is for
 * lilac_simt_memo_add. */
lilac_simt_value lilac_simt_memo_find(const struct lilac_simt_memo *memo,
                                      const lilac_simt_kernel *kernel,
                                      const lilac_simt_instruction *like, uint32_t results,
                                      lilac_simt_type type, uint32_t *hash);
void lilac_simt_memo_add(struct lilac_simt_memo *memo, const lilac_simt_instruction *instruction,
                         uint32_t hash);

/* Bits of the value that are 0 in every thread, and the others. */
static inline uint64_t lilac_simt_zeros(const lilac_simt_builder *b, lilac_simt_value value) {
    return value < b->memo->zeros_count ? b->memo->zeros[value] : 0;
}

static inline uint64_t lilac_simt_possible(const lilac_simt_builder *b, lilac_simt_value value) {
    return ~lilac_simt_zeros(b, value) &
           lilac_simt_type_mask((lilac_simt_type)b->kernel->values[value].type);
}

/* Computes what is known of an instruction's first result. */
void lilac_simt_learn(lilac_simt_builder *b, const lilac_simt_instruction *instruction);
/* Adds no-wrap flags that the operands' known bits prove. */
void lilac_simt_infer_wrap(const lilac_simt_builder *b, lilac_simt_instruction *like,
                           lilac_simt_type type);

/* ---- simplification (constant.c, simplify.c, simplify_float.c) -------------------------- */

/* Computes an operation on constants. False when it would trap, is not exactly defined (NaN
 * payloads, approximate functions) or is not pure. */
bool lilac_simt_evaluate(const lilac_simt_instruction *like, const lilac_simt_type *types,
                         const uint64_t *bits, lilac_simt_type type, uint64_t *result);

/* The high half of the product of two unsigned numbers of `width` bits. */
uint64_t lilac_simt_high_unsigned(uint32_t width, uint64_t a, uint64_t b);

/* Simplifies a pure operation with one result that is not in the IR yet. Gives a value that equals
 * it, or 0 after rewriting *like (operands in place, never more of them) as far as possible. */
lilac_simt_value lilac_simt_simplify(lilac_simt_builder *b, lilac_simt_instruction *like,
                                     lilac_simt_type type);
/* Simplify, look it up, and only then build: the way every pure operation is built. */
lilac_simt_value lilac_simt_emit(lilac_simt_builder *b, lilac_simt_instruction *like,
                                 lilac_simt_type type);
lilac_simt_value lilac_simt_op2_flags(lilac_simt_builder *b, lilac_simt_opcode code,
                                      lilac_simt_type type, lilac_simt_value a, lilac_simt_value c,
                                      uint32_t flags);
/* The definition when it is this operation, else NULL. */
static inline const lilac_simt_instruction *
lilac_simt_defined_by(const lilac_simt_builder *b, lilac_simt_value value, lilac_simt_opcode code) {
    const lilac_simt_instruction *d = b->kernel->values[value].definition;
    return d != NULL && d->code == code ? d : NULL;
}
/* Moves the constant part of an access's address into its immediate and drops a predicate that is
 * always true. *like's operands are rewritten in place. Whether anything changed. */
bool lilac_simt_simplify_access(lilac_simt_builder *b, lilac_simt_instruction *like);
/* The parts of a value when they are known without unpacking it. */
bool lilac_simt_known_parts(lilac_simt_builder *b, lilac_simt_value value, lilac_simt_type part,
                            uint32_t count, lilac_simt_value *parts);

/* ---- divisions (opt_expand_divisions.c) -------------------------------------------------- */

/* How often each value divides another one, by value; 0 for values made later. */
typedef struct lilac_simt_divisors {
    const uint32_t *uses;
    uint32_t count;
} lilac_simt_divisors;

/* A value that equals a division or remainder, computed by multiplications; 0: it is not expanded.
 * */
lilac_simt_value lilac_simt_expand_division(lilac_simt_builder *b, const lilac_simt_instruction *i,
                                            lilac_simt_type type,
                                            const lilac_simt_divisors *divisors);
/* The walk of lilac_simt_opt_fold. Expands divisions if `divisors` is not NULL. */
bool lilac_simt_fold_kernel(lilac_simt_kernel *kernel, const lilac_simt_divisors *divisors);

/* ---- matrix instructions (matrix.c) ------------------------------------------------------ */

/* Does the matrix instruction that the payload says exist on the module's device? False with the
 * reason in `why`. The sizes of operand groups mean something only then. */
bool lilac_simt_check_matrix_shape(const lilac_simt_kernel *kernel,
                                   const lilac_simt_instruction *instruction, lilac_text *why);
/* The rules of mma, wgmma, wgmma.fence, wgmma.commit and wgmma.wait beyond their payloads and
 * signatures. False with the reason in `why`. */
bool lilac_simt_check_matrix(const lilac_simt_kernel *kernel,
                             const lilac_simt_instruction *instruction, lilac_text *why);

/* ---- bulk copies (bulk.c) ---------------------------------------------------------------- */

/* The rules of an operation of the async proxy beyond its signature. False: `why` says which it
 * breaks. */
bool lilac_simt_check_bulk(const lilac_simt_kernel *kernel,
                           const lilac_simt_instruction *instruction, lilac_text *why);
/* The parameter whose address a value is, if that is a tensor map; else NULL. */
/* ---- tensor maps that the kernel makes (made_maps.c) --------------------------------------- */

/* Is the value the address of the program's scratch memory plus a number? */
bool lilac_simt_is_scratch_address(const lilac_simt_kernel *kernel, lilac_simt_value value);
/* The dimensions of the map that a tensor_map.set writes. */
uint32_t lilac_simt_map_rank(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i);
bool lilac_simt_check_tensor_map(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                                 lilac_text *why);

const lilac_simt_parameter *lilac_simt_tensor_map_of(const lilac_simt_kernel *kernel,
                                                     lilac_simt_value value);
/* The number of the operand that is the instruction's tensor map; UINT32_MAX: it has none. */
uint32_t lilac_simt_map_operand(const lilac_simt_kernel *kernel,
                                const lilac_simt_instruction *instruction);

/* ---- payloads (payload.c) ---------------------------------------------------------------- */

typedef enum lilac_simt_field_kind {
    LILAC_SIMT_FIELD_NUMBER, /* name = 7 */
    LILAC_SIMT_FIELD_CHOICE, /* name = word; the numbers of the words are 0 … most */
    LILAC_SIMT_FIELD_SCALAR, /* name = element type; a lilac_scalar */
    LILAC_SIMT_FIELD_FLAG    /* name; 0 or 1 */
} lilac_simt_field_kind;

/* One field of a payload: where it is in the union and how it is written. */
typedef struct lilac_simt_payload_field {
    uint8_t family, kind;
    uint8_t offset, size; /* bytes; the field is signed where `least` is negative */
    const char *name;
    int64_t least, most;
    const char *const *choices; /* NULL-terminated */
} lilac_simt_payload_field;

/* The first field of the opcode's family (after: NULL), or the one after it; NULL at the end. */
const lilac_simt_payload_field *lilac_simt_payload_next(lilac_simt_opcode code,
                                                        const lilac_simt_payload_field *after);
int64_t lilac_simt_payload_get(const lilac_simt_instruction *instruction,
                               const lilac_simt_payload_field *field);
void lilac_simt_payload_set(lilac_simt_instruction *instruction,
                            const lilac_simt_payload_field *field, int64_t value);
/* Of two instructions with one opcode: the same value in every field. */
bool lilac_simt_payload_equal(const lilac_simt_instruction *a, const lilac_simt_instruction *b);
/* Mixes the fields into a hash. */
uint64_t lilac_simt_payload_hash(const lilac_simt_instruction *instruction, uint64_t hash);

/* ---- text (print.c) --------------------------------------------------------------------- */

/* One instruction on one line, bodies left out, as the module's printer would print it. */
void lilac_simt_print_instruction(lilac_text *out, const lilac_simt_kernel *kernel,
                                  const lilac_simt_instruction *instruction);

extern const char *const lilac_simt_cache_names[];
extern const char *const lilac_simt_evict_names[];
extern const char *const lilac_simt_shuffle_names[];
extern const char *const lilac_simt_rounding_names[];
extern const char *const lilac_simt_atomic_names[];
extern const char *const lilac_simt_order_names[];
extern const char *const lilac_simt_scope_names[];
extern const char *const lilac_simt_vote_names[];
extern const char *const lilac_simt_timer_names[];
extern const char *const lilac_simt_fence_names[];
extern const struct lilac_simt_flag_name {
    const char *name;
    uint8_t flag;
} lilac_simt_flag_names[];

#endif
