/* What the files of target/ptx share: the emitter, its text, and the registers of values.
 *
 * A kernel's instructions are written first, into `code`; which registers it needs is known only
 * then, so the declarations and the registers of constants are written after and put before it.
 *
 *   value        register        declared as
 *   i1           %p12            .pred
 *   i8 i16       %rs12           .b16    an i8 has garbage above its low 8 bits: whoever reads
 *   f16 bf16     %h12            .b16    those bits extends it first
 *   i32 packed   %r12            .b32
 *   f32          %f12            .b32
 *   i64, f64     %rd12, %fd12    .b64
 *
 * 12 is the value's number in SIMT IR; a value with a name is %r12_name. Numbers are unique, so
 * names are. Temporaries count on their own: %tp %ts %tr %td.
 *
 * A constant is an immediate where PTX takes one and otherwise lives in a register that the
 * kernel's first lines set. A renaming (bitcast, a loop's result) is no instruction: the value's
 * place is that of the value it renames, its `home`.
 */
#ifndef LILAC_PTX_EMIT_H
#define LILAC_PTX_EMIT_H

#include <lilac/ptx.h>
#include <string.h>

typedef struct lilac_ptx_buffer {
    char *bytes;
    size_t length, capacity;
} lilac_ptx_buffer;

/* An operand's text; lives as long as the emitter. */
typedef struct lilac_ptx_piece {
    const char *bytes;
    uint32_t length;
} lilac_ptx_piece;

typedef struct lilac_ptx_place {
    lilac_ptx_piece text;        /* its register, or the constant as an immediate */
    lilac_ptx_piece in_register; /* a constant's register, once one was needed */
    lilac_simt_value home;       /* the value whose register this is; itself for constants */
    bool constant;
    uint64_t bits; /* of a constant, zero-extended */
} lilac_ptx_place;

/* Register files by declaration; the first four are also the classes of temporaries. */
typedef enum lilac_ptx_class {
    LILAC_PTX_PREDICATE,
    LILAC_PTX_BITS16,
    LILAC_PTX_BITS32,
    LILAC_PTX_BITS64,
    LILAC_PTX_CLASS_COUNT
} lilac_ptx_class;

#define LILAC_PTX_PREFIX_COUNT 7

typedef struct lilac_ptx_emitter {
    const lilac_simt_module *module;
    const lilac_arch *arch;
    const lilac_ptx_options *options;
    lilac_arena *arena; /* of names */
    lilac_text *out;

    /* of the kernel at hand */
    const lilac_simt_kernel *kernel;
    lilac_ptx_buffer head; /* what stands before the entry */
    lilac_ptx_buffer code;
    lilac_ptx_buffer out_of_line; /* blocks that are left for good: failed assertions */
    lilac_ptx_place *places;
    lilac_ptx_buffer named[LILAC_PTX_PREFIX_COUNT]; /* "%r3_x, %r7_y" */
    uint32_t numbered[LILAC_PTX_PREFIX_COUNT];      /* one more than the largest %rN, or 0 */
    uint32_t line_fill[LILAC_PTX_PREFIX_COUNT];     /* of named's last line */
    uint32_t temporaries[LILAC_PTX_CLASS_COUNT];
    lilac_simt_value *forced; /* constants that need a register */
    uint32_t forced_count, forced_capacity;
    uint32_t *pending;       /* by home: parallel copies that still read it; zero between copies */
    lilac_simt_value *homes; /* lilac_simt_register_homes; NULL: the kernel has no wgmma */
    uint32_t labels;
    uint32_t schedule_barriers; /* so far */
    uint32_t policies;          /* by lilac_simt_evict: a set of the eviction policies in use */
    lilac_ptx_piece zero[2];    /* registers of 32 and 64 bits with the opaque zero, once used */
    bool guarded;               /* a guard was written: the line is already begun */
    lilac_simt_value branched;  /* the predicate of the branch around what is written; 0: none */
    const lilac_simt_instruction *branch_last; /* of those under it */
    uint32_t branch;                           /* the number of its label */
    char *names;                               /* memory for more names */
    size_t names_left;

    /* source lines */
    lilac_location location; /* last looked at */
    lilac_name file;
    uint32_t line, column;
    lilac_name *files; /* by .file number - 1 */
    uint32_t file_count, file_capacity;

    uint32_t version;    /* PTX ISA version that is needed so far, times ten; version.c */
    size_t first_origin; /* the first of options->origins that is of the kernel at hand */

    size_t version_at; /* where its digits stand in `out` */
    lilac_location at; /* of the instruction that is written, or of the kernel */

    uint32_t assertions, prints;
    bool shared, shared_declared; /* global_smem is named; is declared */
    bool ok;
} lilac_ptx_emitter;

/* ---- text ------------------------------------------------------------------------------- */

void lilac_ptx_reserve(lilac_ptx_buffer *buffer, size_t more);

/* put_… append to a buffer that has room: lilac_ptx_begin reserves a line's. */
static inline void put_bytes(lilac_ptx_buffer *buffer, const char *bytes, size_t length) {
    if (length) {
        memcpy(buffer->bytes + buffer->length, bytes, length);
    }
    buffer->length += length;
}

static inline void put_char(lilac_ptx_buffer *buffer, char c) {
    buffer->bytes[buffer->length++] = c;
}

static inline void put_string(lilac_ptx_buffer *buffer, const char *string) {
    put_bytes(buffer, string, strlen(string));
}

static inline void put_piece(lilac_ptx_buffer *buffer, lilac_ptx_piece piece) {
    put_bytes(buffer, piece.bytes, piece.length);
}

void lilac_ptx_put_unsigned(lilac_ptx_buffer *buffer, uint64_t value);
void lilac_ptx_put_signed(lilac_ptx_buffer *buffer, int64_t value);
/* These reserve for themselves. */
void lilac_ptx_append(lilac_ptx_buffer *buffer, const char *string);
void lilac_ptx_append_unsigned(lilac_ptx_buffer *buffer, uint64_t value);

#define LILAC_PTX_LINE 1024 /* more than any line but a string takes */

#define PIECE(literal) ((lilac_ptx_piece){"" literal, sizeof(literal) - 1})

/* ---- instructions ----------------------------------------------------------------------- */

/* "⇥@p ": the next line's predicate. */
void lilac_ptx_guard(lilac_ptx_emitter *e, lilac_ptx_piece predicate, bool negate);
/* The same for a predicate of an instruction, unless the code is under a branch for it. */
void lilac_ptx_predicate(lilac_ptx_emitter *e, lilac_simt_value predicate);
/* "⇥mnemonic"; put_string more of the mnemonic, then finish. */
static inline void lilac_ptx_begin(lilac_ptx_emitter *e, const char *mnemonic) {
    if (e->guarded) {
        e->guarded = false;
    } else {
        if (e->code.capacity - e->code.length < LILAC_PTX_LINE) {
            lilac_ptx_reserve(&e->code, LILAC_PTX_LINE);
        }
        put_char(&e->code, '\t');
    }
    put_string(&e->code, mnemonic);
}
/* " a, b;" and the end of the line. */
void lilac_ptx_finish(lilac_ptx_emitter *e, uint32_t count, const lilac_ptx_piece *operands);
/* A whole line. */
void lilac_ptx_line1(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece a);
void lilac_ptx_line2(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece d,
                     lilac_ptx_piece a);
void lilac_ptx_line3(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece d,
                     lilac_ptx_piece a, lilac_ptx_piece b);
void lilac_ptx_line4(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece d,
                     lilac_ptx_piece a, lilac_ptx_piece b, lilac_ptx_piece c);
/* "{a, b}" as one operand. */
lilac_ptx_piece lilac_ptx_tuple(lilac_ptx_emitter *e, uint32_t count,
                                const lilac_ptx_piece *operands);
/* "⇥bra.uni $L_kind_number;" and "$L_kind_number:". */
void lilac_ptx_branch(lilac_ptx_emitter *e, const char *kind, uint32_t number);
/* The same without .uni: lanes of a warp may differ. */
void lilac_ptx_diverging_branch(lilac_ptx_emitter *e, const char *kind, uint32_t number);
void lilac_ptx_label(lilac_ptx_emitter *e, const char *kind, uint32_t number);
/* "%rd1+16" and the like as one piece. */
lilac_ptx_piece lilac_ptx_concatenate(lilac_ptx_emitter *e, uint32_t count,
                                      const lilac_ptx_piece *parts);
/* An error at the instruction; id unsupported-on-target. */
void lilac_ptx_refuse(lilac_ptx_emitter *e, const lilac_simt_instruction *instruction,
                      const char *format, ...) LILAC_PRINTF(3, 4);

/* ---- values ----------------------------------------------------------------------------- */

static inline lilac_simt_type type_of(const lilac_ptx_emitter *e, lilac_simt_value value) {
    return (lilac_simt_type)e->kernel->values[value].type;
}

/* Gives a value its own register; one that is computed again keeps it. */
lilac_ptx_piece lilac_ptx_define(lilac_ptx_emitter *e, lilac_simt_value value);
/* Says that it is another name of `of`, of the same class. */
void lilac_ptx_rename(lilac_ptx_emitter *e, lilac_simt_value value, lilac_simt_value of);
void lilac_ptx_constant(lilac_ptx_emitter *e, lilac_simt_value value, uint64_t bits);
/* Always a register. */
lilac_ptx_piece lilac_ptx_register(lilac_ptx_emitter *e, lilac_simt_value value);
/* A register or an immediate: for .b… (`bits`) or arithmetic operands. */
static inline lilac_ptx_piece lilac_ptx_bits(lilac_ptx_emitter *e, lilac_simt_value value) {
    if (e->places[value].constant && e->kernel->values[value].type == LILAC_SIMT_I1) {
        return lilac_ptx_register(e, value);
    }
    return e->places[value].text;
}
static inline lilac_ptx_piece lilac_ptx_operand(lilac_ptx_emitter *e, lilac_simt_value value) {
    if (!e->places[value].constant) {
        return e->places[value].text;
    }
    lilac_simt_type type = type_of(e, value);
    bool immediate = type == LILAC_SIMT_I8 || type == LILAC_SIMT_I16 || type == LILAC_SIMT_I32 ||
                     type == LILAC_SIMT_I64 || type == LILAC_SIMT_F32 || type == LILAC_SIMT_F64;
    return immediate ? e->places[value].text : lilac_ptx_register(e, value);
}
lilac_ptx_piece lilac_ptx_temporary(lilac_ptx_emitter *e, lilac_ptx_class class);
lilac_ptx_class lilac_ptx_class_of(lilac_simt_type type);
/* "mov.b32" and so on, for values of this type. */
const char *lilac_ptx_mov(lilac_simt_type type);
/* A decimal immediate. */
lilac_ptx_piece lilac_ptx_decimal(lilac_ptx_emitter *e, int64_t value);
/* An i8 extended to 16 bits, other types as they are. */
lilac_ptx_piece lilac_ptx_extended(lilac_ptx_emitter *e, lilac_simt_value value, bool is_signed);
/* An f16 or bf16 as f32. */
lilac_ptx_piece lilac_ptx_as_f32(lilac_ptx_emitter *e, lilac_simt_value value);
void lilac_ptx_widen(lilac_ptx_emitter *e, lilac_simt_type type, lilac_ptx_piece d,
                     lilac_ptx_piece a);

/* The f32 `a`, subnormals flushed to zero, when the instruction says ftz; else `a`. */
lilac_ptx_piece lilac_ptx_flushed(lilac_ptx_emitter *e, const lilac_simt_instruction *i,
                                  lilac_ptx_piece a);

/* ---- PTX ISA versions (version.c) ---------------------------------------------------------- */

typedef enum lilac_ptx_feature {
#define FEATURE(name, version, device, what, sample) LILAC_PTX_##name,
#include "features.def"
#undef FEATURE
} lilac_ptx_feature;

/* Says that the module uses a feature, its device, or inline assembly: the version becomes at least
 * theirs. An error of id ptx-version when that is above the newest one allowed. */
void lilac_ptx_need(lilac_ptx_emitter *e, lilac_ptx_feature feature);
/* Likewise of a matrix instruction, whose table says the version. */
void lilac_ptx_need_version(lilac_ptx_emitter *e, uint32_t version, const char *what);
void lilac_ptx_need_device(lilac_ptx_emitter *e);
void lilac_ptx_need_assembly(lilac_ptx_emitter *e);
/* The directive .version, whose number is filled in by the second of these. */
void lilac_ptx_begin_version(lilac_ptx_emitter *e);
void lilac_ptx_end_version(lilac_ptx_emitter *e);

/* Can this name a kernel in PTX, apart from reserved names? (names.c) */
bool lilac_ptx_is_identifier(const char *name);

/* ---- families of operations: each writes one instruction or refuses it ------------------- */

void lilac_ptx_arithmetic(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_boolean(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_compare(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_select(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_round(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_convert(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_float_convert(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_f8(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_pack(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_unpack(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_memory(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* Around the instructions of a body: opens a branch in front of copies that one thread starts, and closes
 * it behind the last of them (bulk.c). */
void lilac_ptx_before_copies(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_after_copies(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_put_policies(lilac_ptx_emitter *e); /* those in use, to `out` */
void lilac_ptx_matrix(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* Matrix instructions (matrix.c). */
void lilac_ptx_multiply(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* cp.async and its groups. */
void lilac_ptx_copy(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* tensor_map.c: tensor_map.set, publish and acquire; the address of scratch memory. */
void lilac_ptx_made_map(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_global_scratch(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* Bulk and tensor copies, their groups and the fences of the async proxy (bulk.c). */
void lilac_ptx_bulk(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* The generic address of a parameter that is a tensor map; false: it is none. */
bool lilac_ptx_tensor_map(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* Programs, named barriers, register budgets, mbarriers (barriers.c). */
void lilac_ptx_programs(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_named_barrier(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_set_max_registers(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_elect(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_mbarrier(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_map_shared(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_exchange(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* "%rd1+16" of an address and an offset; of an access. */
lilac_ptx_piece lilac_ptx_offset(lilac_ptx_emitter *e, lilac_simt_value address, int64_t offset);
lilac_ptx_piece lilac_ptx_address(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_atomic(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_vote(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* ".global .align 1 .b8 kind_3[6] = {104, …, 0};" before the entries. */
void lilac_ptx_declare_string(lilac_ptx_emitter *e, const char *kind, uint32_t number,
                              const char *string);
/* A generic pointer to it, as argument number `argument` of a call. */
void lilac_ptx_pass_string(lilac_ptx_emitter *e, const char *kind, uint32_t number,
                           uint32_t argument);
void lilac_ptx_print(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_assembly(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_assert(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_control(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* All of a body but its terminator. */
void lilac_ptx_body(lilac_ptx_emitter *e, const lilac_simt_body *body);

/* ---- what ptxas must not see through (schedule.c) ---------------------------------------- */

void lilac_ptx_schedule_barrier(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
void lilac_ptx_opaque(lilac_ptx_emitter *e, const lilac_simt_instruction *i);
/* The register of 32 or 64 bits that is zero. */
lilac_ptx_piece lilac_ptx_opaque_zero(lilac_ptx_emitter *e, bool wide);
/* The first lines of the kernel, which compute the opaque zero; nothing where it is not used. */
void lilac_ptx_put_zero(lilac_ptx_emitter *e);

#endif
