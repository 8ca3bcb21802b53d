/* tile: tile IR, the operations that Triton's front end produces (TTIR), with or without layouts.
 *
 *   module ── functions ── region ── block ── op ── regions …
 *                                     │        │
 *                                  arguments  results      = values, each with a type and uses
 *
 * SSA with regions. Everything lives in the module's arena; types are interned (equal types are the
 * same pointer). One table, lilac/tile_ops.def, yields the opcodes, the reader's keywords, the
 * printer, the verifier's signature checks and the docs. A second one, lilac/tile_effects.def, has
 * the effects of operations on memory, by resource and time.
 *
 * What is printed reads back to the same thing, and the text is MLIR's custom assembly as Triton
 * prints it. Types of tensors and of memory carry a linear layout or none; the named layout that a
 * text gave them (see encoding.h) is kept with it, so that it prints as it was read.
 * The pass assign_layouts chooses a layout where there is none.
 *
 * Invariants: an operand is a use, linked in its value's list; an operation stands in one block at
 * a time; the first block of a function's body has the parameters as arguments. Everything else
 * that a pass may rely on is what lilac_tile_verify checks. Two values may have the same name:
 * the printer makes names unique.
 *
 * Values are visible as in MLIR: in the block after their definition, in what is inside those
 * operations, and in the blocks that the block dominates.
 */
#ifndef LILAC_TILE_H
#define LILAC_TILE_H

#include <lilac/encoding.h>

LILAC_BEGIN

/* ---- types ------------------------------------------------------------------------------ */

typedef enum lilac_tile_type_kind {
    LILAC_TILE_SCALAR,
    LILAC_TILE_POINTER,    /* !tt.ptr<element, address_space>; element may be a tensor */
    LILAC_TILE_TENSOR,     /* tensor<shape x element, layout>; element is a scalar or a pointer */
    LILAC_TILE_DESCRIPTOR, /* !tt.tensordesc<tensor<…>>; element is the tensor */
    LILAC_TILE_TOKEN,      /* !ttg.async.token */
    LILAC_TILE_INTEGER,    /* an integer that is no lilac_scalar, as i7: pointers may have it */
    LILAC_TILE_MEMDESC     /* !ttg.memdesc<shape x element, layout, space, mutable, allocation> */
} lilac_tile_type_kind;

typedef struct lilac_tile_type {
    lilac_tile_type_kind kind;
    lilac_scalar scalar;                   /* of a scalar, or of a tensor or memory of scalars */
    const struct lilac_tile_type *element; /* pointer: pointee; tensor, memory: its element type */
    uint32_t address_space;                /* pointers: 1 is global */
    uint32_t width;                        /* LILAC_TILE_INTEGER: bits */
    char sign;                             /* of a descriptor's integers: 's', 'u', or 0: none */
    uint32_t rank;
    const int64_t *shape;
    const lilac_layout *layout; /* tensors, memory; NULL: none chosen yet */
    /* The named layout that was written for it, and its text with the aliases of the module; NULL:
     * none was. Types that are written with different named layouts are different types, as in
     * MLIR, even where they mean the same. */
    const lilac_encoding *encoding;
    lilac_name spelling;
    /* Of memory. Its layout is that of the last layout->out_count dimensions of the allocation that
     * it is a part of, whose sizes these are: where the part begins in it, the views say that made
     * it. One dimension more in front counts buffers, one after another. */
    bool is_mutable;
    bool is_tensor_memory;
    uint32_t alloc_rank; /* of the allocation that it is a part of; when all of it, its own */
    const int64_t *alloc_shape;
    uint32_t id; /* dense, in order of creation */
} lilac_tile_type;

/* ---- attributes ------------------------------------------------------------------------- */

typedef enum lilac_tile_attribute_kind {
    LILAC_TILE_ATTR_UNIT,
    LILAC_TILE_ATTR_BOOL,
    LILAC_TILE_ATTR_INTEGER, /* integer, with type */
    LILAC_TILE_ATTR_FLOAT,   /* bits of its scalar type in integer */
    LILAC_TILE_ATTR_STRING,
    LILAC_TILE_ATTR_KEYWORD, /* a bare word: slt, acq_rel, x, tf32; a list of flags: nsw, nuw */
    LILAC_TILE_ATTR_SYMBOL,
    LILAC_TILE_ATTR_TYPE,
    LILAC_TILE_ATTR_INTEGERS, /* array<i32: …> */
    LILAC_TILE_ATTR_ARRAY,    /* […] of attributes */
    LILAC_TILE_ATTR_DENSE,    /* dense<…>: one element (a splat) or all, as bits */
    LILAC_TILE_ATTR_DICTIONARY,
    LILAC_TILE_ATTR_FUNCTION, /* (types) -> types: two arrays of types, in elements */
    LILAC_TILE_ATTR_LLVM /* #llvm.loop_annotation<…>: text, with the module's aliases; the first
                            element's text has their definitions instead */
} lilac_tile_attribute_kind;

typedef struct lilac_tile_attribute {
    lilac_tile_attribute_kind kind;
    lilac_name name; /* within its owner; NULL inside arrays */
    const lilac_tile_type *type;
    int64_t integer; /* INTEGER, BOOL, FLOAT (bits) */
    lilac_name text; /* STRING (as written between the quotes), KEYWORD, SYMBOL */
    uint32_t count;
    const int64_t *integers;                     /* INTEGERS, DENSE (bits of each element) */
    const struct lilac_tile_attribute *elements; /* ARRAY, DICTIONARY, FUNCTION */
} lilac_tile_attribute;

typedef struct lilac_tile_attributes {
    uint32_t count;
    lilac_tile_attribute *list; /* in the order written */
} lilac_tile_attributes;

/* ---- the IR ----------------------------------------------------------------------------- */

typedef enum lilac_tile_opcode {
    LILAC_TILE_OP_NONE,
#define OP(code, ...) LILAC_TILE_OP_##code,
#include <lilac/tile_ops.def>
#undef OP
    LILAC_TILE_OP_COUNT
} lilac_tile_opcode;

/* Traits, from the table. Effects are in a table of their own, see below. */
typedef enum lilac_tile_trait {
    LILAC_TILE_PURE = 1 << 0,        /* no effect; may be removed, repeated, moved */
    LILAC_TILE_ELEMENTWISE = 1 << 1, /* result element i from operand elements i only */
    LILAC_TILE_TERMINATOR = 1 << 2,
    LILAC_TILE_SHAPE = 1 << 3, /* moves no data: maps coordinates to coordinates */
    LILAC_TILE_COMMUTATIVE = 1 << 4,
    LILAC_TILE_GENERIC = 1 << 5, /* printed in generic form: "tt.reduce"(…) <{…}> ({…}) : … */
    LILAC_TILE_LISTS = 1 << 6    /* starred operands may differ in number: operandSegmentSizes */
} lilac_tile_trait;

typedef struct lilac_tile_op_info {
    const char *name; /* "tt.load" */
    uint32_t traits;
    const char *signature; /* operand and result types; see lilac/tile_ops.def */
    const char *format;    /* custom assembly; see lilac/tile_ops.def */
    const char *doc;
    int8_t operands; /* exact number, or -1: any */
    int8_t results;
    int8_t regions;
} lilac_tile_op_info;

/* The row of the table; never NULL. */
LILAC_API const lilac_tile_op_info *lilac_tile_op_info_get(lilac_tile_opcode code);

typedef struct lilac_tile_value lilac_tile_value;
typedef struct lilac_tile_use lilac_tile_use;
typedef struct lilac_tile_op lilac_tile_op;
typedef struct lilac_tile_block lilac_tile_block;
typedef struct lilac_tile_region lilac_tile_region;
typedef struct lilac_tile_function lilac_tile_function;
typedef struct lilac_tile_module lilac_tile_module;

struct lilac_tile_value {
    const lilac_tile_type *type;
    lilac_name name;   /* without %, NULL: number it when printing; results of one op share it */
    lilac_tile_op *op; /* the operation whose result this is, or NULL … */
    lilac_tile_block *block; /* … for an argument of this block */
    uint32_t index;          /* among its op's results or block's arguments */
    uint32_t id;             /* dense over the function, see lilac_tile_number; for side tables */
    lilac_tile_use *uses;    /* first use, linked by next */
    lilac_location location; /* block arguments */
};

struct lilac_tile_use {
    lilac_tile_value *value; /* what operand number `index` of `op` is */
    lilac_tile_op *op;
    uint32_t index;
    lilac_tile_use *next, **previous; /* other uses of the same value */
};

struct lilac_tile_op {
    lilac_tile_opcode code;
    uint32_t operand_count, result_count, region_count;
    uint32_t successor_count;
    lilac_tile_use *operands;  /* operand i is operands[i].value */
    lilac_tile_value *results; /* an array */
    lilac_tile_region **regions;
    lilac_tile_block **successors; /* cf.br, cf.cond_br */
    lilac_tile_attributes attributes;
    lilac_location location; /* the user's line */
    lilac_position position; /* where it was read */
    lilac_tile_block *parent;
    lilac_tile_op *next, *previous;
};

struct lilac_tile_block {
    uint32_t argument_count;
    lilac_tile_value **arguments;
    lilac_tile_op *first, *last;
    lilac_tile_region *parent;
    lilac_tile_block *next;
    lilac_name name; /* NULL: none written */
};

struct lilac_tile_region {
    lilac_tile_block *first; /* NULL: empty region (scf.if without else) */
    lilac_tile_op *parent;   /* or NULL for a function's body */
    lilac_tile_function *function;
};

struct lilac_tile_function {
    lilac_name name;
    bool is_public;
    uint32_t parameter_count;
    lilac_tile_value **parameters;               /* = arguments of the body's first block */
    lilac_tile_attributes *parameter_attributes; /* one for each */
    uint32_t result_count;
    const lilac_tile_type **results;
    lilac_tile_attributes attributes; /* {noinline = false} */
    lilac_tile_region *body;          /* NULL: declared only; its parameters are in no block */
    lilac_location location;
    lilac_position position;
    lilac_tile_module *module;
    lilac_tile_function *next;
    uint32_t value_count; /* after lilac_tile_number */
};

struct lilac_tile_module {
    lilac_context *context;
    lilac_arena *arena;
    lilac_tile_function *functions; /* in order, linked by next */
    lilac_tile_attributes attributes;
    lilac_location location;
    struct lilac_tile_types *types;   /* the interner */
    struct lilac_tile_alias *aliases; /* names of layouts and memory spaces, printed in front */
};

/* ---- modules and types ------------------------------------------------------------------ */

/* Reads a module: custom assembly, or generic form, for each operation. Returns NULL
 * when there was an error; all that could be found in one run are recorded as diagnostics at their
 * places. Whatever the bytes, it terminates without crashing.
 *
 * Refused, because limits keep bad input harmless: regions nested deeper than
 * lilac_nesting_limit(), types than 8, attributes than 16, locations than 200; more than 1024
 * blocks in a region or results of an operation, 64 attributes in one place, 2^20 elements of a
 * tensor; a use before the definition in the text (MLIR prints none where blocks stand in the order
 * of dominance). Not supported, and so refused: attributes of dialects other than #arith flags,
 * layouts and #llvm.loop_…, attributes of results, types other than those above.
 *
 * Cost: linear in the text, some 7 nanoseconds a byte. The module is not verified. */
LILAC_API LILAC_MUST_USE lilac_tile_module *lilac_tile_read(lilac_context *context,
                                                            uint32_t source);
LILAC_API lilac_tile_module *lilac_tile_module_create(lilac_context *context);
LILAC_API void lilac_tile_module_destroy(lilac_tile_module *module);
/* MLIR's custom assembly, with loc(…) when `locations`. A module that verifies reads back to one
 * that prints the same. What does not have the parts that its custom form writes is printed in
 * generic form, so a module that does not verify can be printed too. */
LILAC_API void lilac_tile_print(lilac_text *out, const lilac_tile_module *module, bool locations);
/* Gives the layouts of tensors the names that Triton's verifier requires (slices for operands of
 * tt.expand_dims) or that are shortest (blocked, else linear), as aliases in front of the module.
 * Values keep their layouts; where two names of one layout are required, a ttg.convert_layout that
 * moves nothing is inserted. A module that has named layouts of tensors is not changed. */
LILAC_API void lilac_tile_name_layouts(lilac_tile_module *module);
/* Registers the module's text, without locations, as a source of that name and makes the position
 * of each operation its place there, so that a diagnostic shows the line of the IR. Returns the
 * source; 0 after a diagnostic, when the text is too large. */
LILAC_API uint32_t lilac_tile_print_source(lilac_tile_module *module, const char *name);
/* One operation, with the names that it has in its function. */
LILAC_API void lilac_tile_print_op(lilac_text *out, const lilac_tile_module *module,
                                   const lilac_tile_op *op);
LILAC_API void lilac_tile_print_type(lilac_text *out, const lilac_tile_type *type);
/* Checks every rule of the IR (operand counts and types by the table, dominance, terminators,
 * layouts that cover their tensors, are of the threads that the module's attributes say, and agree
 * among the operands and results of elementwise operations; when `layouts`, all must be there,
 * those of memory too).
 * Errors as diagnostics at each op's position. How the layouts
 * of shape operations (trans, expand_dims …) relate is not a rule: who lowers them says what it
 * needs. Cost: a few hundred nanoseconds an operation. */
LILAC_API LILAC_MUST_USE bool lilac_tile_verify(const lilac_tile_module *module, bool layouts);

/* Types, interned in the module: scalars, pointers, tensors of scalars or pointers (the shape and
 * the layout are copied; layout NULL: none chosen). */
LILAC_API const lilac_tile_type *lilac_tile_scalar(lilac_tile_module *module, lilac_scalar scalar);
LILAC_API const lilac_tile_type *lilac_tile_pointer(lilac_tile_module *module,
                                                    const lilac_tile_type *pointee,
                                                    uint32_t address_space);
LILAC_API const lilac_tile_type *lilac_tile_tensor(lilac_tile_module *module,
                                                   const lilac_tile_type *element, uint32_t rank,
                                                   const int64_t *shape,
                                                   const lilac_layout *layout);
/* A tensor descriptor of blocks of this tensor type. */
LILAC_API const lilac_tile_type *lilac_tile_descriptor(lilac_tile_module *module,
                                                       const lilac_tile_type *tensor);
/* Memory; the layout is the allocation's, as types have it. A layout without inputs: none is chosen
 * yet. The encoding may be NULL, and must live as long as the module when it is not. */
LILAC_API const lilac_tile_type *lilac_tile_memory(lilac_tile_module *module,
                                                   const lilac_encoding_memdesc *memory);
/* !ttg.async.token */
LILAC_API const lilac_tile_type *lilac_tile_token(lilac_tile_module *module);
/* The same tensor type with another layout (scalars and pointers: unchanged). */
LILAC_API const lilac_tile_type *lilac_tile_with_layout(lilac_tile_module *module,
                                                        const lilac_tile_type *type,
                                                        const lilac_layout *layout);
/* The module's copy of a layout, which types that are made with it have: equal layouts without an
 * encoding have one copy, so their addresses may be compared. */
LILAC_API const lilac_layout *lilac_tile_intern_layout(lilac_tile_module *module,
                                                       const lilac_layout *layout);
/* The type of an element: of a tensor or memory its element type, else the type itself. */
LILAC_API const lilac_tile_type *lilac_tile_element(const lilac_tile_type *type);
LILAC_API bool lilac_tile_is_tensor(const lilac_tile_type *type);
LILAC_API bool lilac_tile_is_pointer(const lilac_tile_type *type); /* or tensor of pointers */
/* Bits of an element; pointers have 64. */
LILAC_API uint32_t lilac_tile_element_bits(const lilac_tile_type *type);
LILAC_API int64_t lilac_tile_element_count(const lilac_tile_type *type); /* 1 for scalars */

/* ---- building and editing --------------------------------------------------------------- */

/* Makes an op with `results` results of the given types, detached. Regions start empty. */
LILAC_API lilac_tile_op *lilac_tile_op_create(lilac_tile_module *module, lilac_tile_opcode code,
                                              uint32_t operands, lilac_tile_value *const *values,
                                              uint32_t results, const lilac_tile_type *const *types,
                                              uint32_t regions, lilac_location location);
LILAC_API void lilac_tile_append(lilac_tile_block *block, lilac_tile_op *op);
/* ttg.warp_specialize: region 0 is the default region, region 1 + k is partition k. */
LILAC_API uint32_t lilac_tile_partition_count(const lilac_tile_op *op);
LILAC_API uint32_t lilac_tile_partition_warps(const lilac_tile_op *op, uint32_t partition);
/* The registers of a thread that it requests; 0: none. */
LILAC_API uint32_t lilac_tile_partition_registers(const lilac_tile_op *op, uint32_t partition);
/* Has the module a ttg.warp_specialize? */
LILAC_API bool lilac_tile_has_partitions(const lilac_tile_module *module);
/* A detached ttg.warp_specialize with `count` partitions, which have the captures as arguments. Its
 * regions hold their terminators only. `registers`: NULL requests none. */
LILAC_API lilac_tile_op *lilac_tile_create_partitions(lilac_tile_module *module, uint32_t captures,
                                                      lilac_tile_value *const *values,
                                                      uint32_t count, const uint32_t *warps,
                                                      const uint32_t *registers,
                                                      lilac_location location);
/* Values of the default region that are used outside of a ttg.warp_specialize without results
 * become its results, and these uses become uses of the results. */
LILAC_API void lilac_tile_add_partition_results(lilac_tile_module *module, lilac_tile_op *op,
                                                uint32_t count, lilac_tile_value *values);
LILAC_API void lilac_tile_insert_before(lilac_tile_op *place, lilac_tile_op *op);
LILAC_API void lilac_tile_insert_after(lilac_tile_op *place, lilac_tile_op *op);
/* Takes it out of its block, to be inserted elsewhere: what it uses and who uses it stay. */
LILAC_API void lilac_tile_detach(lilac_tile_op *op);
/* Takes it out of its block and drops its operands' uses. Its results must be unused. */
LILAC_API void lilac_tile_remove(lilac_tile_op *op);
/* A deep copy, detached, operands the same values (inner values mapped to the copies). */
LILAC_API lilac_tile_op *lilac_tile_clone(lilac_tile_module *module, const lilac_tile_op *op);
LILAC_API void lilac_tile_set_operand(lilac_tile_op *op, uint32_t index, lilac_tile_value *value);
LILAC_API void lilac_tile_replace_uses(lilac_tile_value *old, lilac_tile_value *with);
LILAC_API lilac_tile_block *lilac_tile_block_create(lilac_tile_module *module,
                                                    lilac_tile_region *region);
LILAC_API lilac_tile_value *lilac_tile_add_argument(lilac_tile_module *module,
                                                    lilac_tile_block *block,
                                                    const lilac_tile_type *type, lilac_name name,
                                                    lilac_location location);
LILAC_API void lilac_tile_set_attribute(lilac_tile_module *module,
                                        lilac_tile_attributes *attributes,
                                        const lilac_tile_attribute *attribute);
/* The same attributes in the same order? */
LILAC_API bool lilac_tile_attributes_equal(const lilac_tile_attributes *a,
                                           const lilac_tile_attributes *b);
LILAC_API const lilac_tile_attribute *lilac_tile_find(const lilac_tile_attributes *attributes,
                                                      const char *name);
/* The integer of an INTEGER or BOOL attribute, or `otherwise`. */
LILAC_API int64_t lilac_tile_find_integer(const lilac_tile_attributes *attributes, const char *name,
                                          int64_t otherwise);
/* The axis of tt.get_program_id and tt.get_num_programs: 0 to 2 for x, y, z; other numbers are invalid. */
LILAC_API int64_t lilac_tile_program_axis(const lilac_tile_op *op);
/* The text of a KEYWORD or STRING attribute, or NULL. */
LILAC_API lilac_name lilac_tile_find_text(const lilac_tile_attributes *attributes,
                                          const char *name);
/* Integer divisions and remainders: by zero, they have no result. */
LILAC_API bool lilac_tile_divides(lilac_tile_opcode code);
/* How a ttg.convert_layout or a tt.gather is to move its elements, by its attribute lilac.movement:
 * "shared" or "shuffles", or "unswizzled": through shared memory in row-major order (a gather: with
 * barriers of the block), to be compared with. Which is an order and no hint: layouts are chosen
 * for it, and what cannot be moved so is refused. */
typedef enum lilac_tile_movement {
    LILAC_TILE_MOVEMENT_ANY, /* as is best: no attribute */
    LILAC_TILE_MOVEMENT_SHARED,
    LILAC_TILE_MOVEMENT_SHUFFLES,
    LILAC_TILE_MOVEMENT_UNSWIZZLED
} lilac_tile_movement;
LILAC_API lilac_tile_movement lilac_tile_movement_of(const lilac_tile_op *op);
/* Must values that do not change in the loop be computed in it? So says
 * {llvm.loop_annotation = #llvm.loop_annotation<licm = #llvm.loop_licm<disable = true>>}. */
LILAC_API bool lilac_tile_keeps_invariants(const lilac_tile_op *loop);
/* Where the operation was read; for one that a pass made, where the operation before it was read,
 * or the one around it. */
LILAC_API lilac_position lilac_tile_position(const lilac_tile_op *op);
/* Gives every value of a function a dense id. */
LILAC_API void lilac_tile_number(lilac_tile_function *function);
/* Visits every op of a region and of the regions inside, parents before children, in order. */
LILAC_API void lilac_tile_walk(lilac_tile_region *region, void (*visit)(void *, lilac_tile_op *),
                               void *data);
/* Is the value made in a region of the op, however deep, or an argument of one? */
LILAC_API bool lilac_tile_is_inside(const lilac_tile_value *value, const lilac_tile_op *op);

/* ---- effects ---------------------------------------------------------------------------- */

/* What operations access besides their operands and results; see lilac/tile_effects.def. A set of
 * resources is the sum of their values. */
typedef enum lilac_tile_resource {
    LILAC_TILE_NO_RESOURCE = 0,
    LILAC_TILE_GLOBAL_MEMORY = 1 << 0,
    LILAC_TILE_SHARED_MEMORY = 1 << 1,
    LILAC_TILE_TENSOR_MEMORY = 1 << 2,
    LILAC_TILE_BARRIER = 1 << 3, /* mbarriers */
    LILAC_TILE_COPIES = 1 << 4,  /* groups of asynchronous copies to shared memory */
    LILAC_TILE_STORES = 1 << 5,  /* groups of tensor copies to global memory */
    LILAC_TILE_DOTS = 1 << 6,    /* groups of asynchronous matrix products */
    LILAC_TILE_OUTPUT = 1 << 7,  /* what the host sees */
    LILAC_TILE_TEXT = 1 << 8     /* what the text of inline assembly does */
} lilac_tile_resource;

typedef enum lilac_tile_access {
    LILAC_TILE_READS = 1 << 0,
    LILAC_TILE_WRITES = 1 << 1,
    LILAC_TILE_WAITS = 1 << 2 /* accesses that complete by the resource are complete afterwards */
} lilac_tile_access;

enum {
    LILAC_TILE_ALL = -1,   /* the whole resource */
    LILAC_TILE_RESULT = -2 /* what the result names */
};

/* A row of lilac/tile_effects.def. */
typedef struct lilac_tile_effect {
    lilac_tile_opcode code;
    int32_t operand;     /* a group of the signature, LILAC_TILE_ALL or LILAC_TILE_RESULT */
    uint32_t access;     /* lilac_tile_access */
    uint32_t resources;  /* lilac_tile_resource */
    uint32_t completion; /* the resource whose wait completes the access; none: it is complete when
                            the operation is */
} lilac_tile_effect;

/* The rows of an opcode, one after another; *count may be 0. */
LILAC_API const lilac_tile_effect *lilac_tile_effects(lilac_tile_opcode code, uint32_t *count);

/* Sets of resources: what an operation and the operations in its regions do to them. A wait reads
 * and writes what the accesses do that it completes, so no access moves across it. */
typedef struct lilac_tile_effect_summary {
    uint32_t reads, writes;
    uint32_t waits;   /* the resources whose waits it executes */
    uint32_t pending; /* the resources that complete the accesses that it starts */
} lilac_tile_effect_summary;
LILAC_API lilac_tile_effect_summary lilac_tile_summarize_effects(const lilac_tile_op *op);
/* May the order of two operations matter? One writes a resource that the other accesses. Addresses
 * are not compared. */
LILAC_API bool lilac_tile_effects_conflict(const lilac_tile_effect_summary *a,
                                           const lilac_tile_effect_summary *b);
/* The effect on what operand number `index` names, NULL: none. A tensor of pointers, a pointer, a
 * descriptor and memory name something; numbers do not. */
LILAC_API const lilac_tile_effect *lilac_tile_operand_effect(const lilac_tile_op *op,
                                                             uint32_t index);
/* The memory and the tensor of an operation that accesses shared memory (of an asynchronous copy
 * the tensor of pointers); false for all others, and for ttg.local_alloc without an initial value.
 * */
LILAC_API bool lilac_tile_shared_access(lilac_tile_op *op, lilac_tile_value **memory,
                                        lilac_tile_value **tensor);
/* Operands first … end - 1 are those whose memory the result names, wholly or a part of it; false
 * for operations without such a result. */
LILAC_API bool lilac_tile_view_operands(const lilac_tile_op *op, uint32_t *first, uint32_t *end);

/* Operand number `index`; NULL: the operation has fewer.
 *
 *   tt.load   pointer [mask [other]]        tt.store  pointer value [mask]
 *
 * tile_loops.h names the operands of loops and conditionals. */
LILAC_API lilac_tile_value *lilac_tile_operand(const lilac_tile_op *op, uint32_t index);
/* Replaces all operands; `values` is not the operation's own list. */
LILAC_API void lilac_tile_set_operands(lilac_tile_module *module, lilac_tile_op *op, uint32_t count,
                                       lilac_tile_value *const *values);
/* A factor of tt.dot_scaled. */
typedef struct lilac_tile_scaled_factor {
    lilac_tile_value *value;
    lilac_tile_value *scale;    /* NULL: it has none */
    lilac_scalar element;       /* of its numbers */
    bool packed;                /* each byte holds two numbers, neighbours along … */
    uint32_t packed_dim, k_dim; /* … this dimension; the dimension that is summed */
} lilac_tile_scaled_factor;
/* Factor 0 (A) or 1 (B). False: its elements are of a type without numbers here (e2m3, e3m2). */
LILAC_API bool lilac_tile_scaled_factor_get(lilac_tile_scaled_factor *factor,
                                            const lilac_tile_op *op, uint32_t index);
/* Numbers along a dimension, unpacked. */
LILAC_API int64_t lilac_tile_scaled_factor_size(const lilac_tile_scaled_factor *factor,
                                                uint32_t dim);
/* The integer of an arith.constant, a scalar or a splat of integers, signed. False: the value is
 * another one. */
LILAC_API bool lilac_tile_constant(const lilac_tile_value *value, int64_t *result);
/* Is every element 0, or +0 of floats: a constant, its splat, or one of these in another layout? */
LILAC_API bool lilac_tile_is_zero(const lilac_tile_value *value);

LILAC_END

#endif
