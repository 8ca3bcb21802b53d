/* Declarations shared by the files of the component tile and by no other component. */
#ifndef LILAC_TILE_INTERNAL_H
#define LILAC_TILE_INTERNAL_H

#include <lilac/tile.h>

/* Nesting of types and attributes that the reader accepts. That of regions: lilac_nesting_limit. */
enum { TILE_MAX_TYPE_DEPTH = 8, TILE_MAX_ATTRIBUTE_DEPTH = 16 };
/* Elements of a tensor, as in Triton. */
#define TILE_MAX_ELEMENTS (INT64_C(1) << 20)

/* ---- pointer tables --------------------------------------------------------------------- */

/* A hash table from pointers to pointers, open addressing, on the heap. Zero-initialise. Nothing is
 * ever removed; a NULL value is as good as none. */
typedef struct tile_table {
    struct tile_entry {
        const void *key;
        void *value;
    } * entries;
    uint32_t capacity, count;
} tile_table;

void **tile_table_at(tile_table *table, const void *key); /* inserts a NULL */
void *tile_table_get(const tile_table *table, const void *key);
void tile_table_clear(tile_table *table);

/* ---- types ------------------------------------------------------------------------------ */

struct lilac_tile_types *tile_types_create(lilac_arena *arena);
/* The interned type equal to `type`, whose shape and layout are copied when it is new. */
const lilac_tile_type *tile_type_intern(lilac_tile_module *module, const lilac_tile_type *type);
void tile_types_clear(struct lilac_tile_types *types);
/* The same shape and layout with another element type. */
const lilac_tile_type *tile_with_element(lilac_tile_module *module, const lilac_tile_type *type,
                                         const lilac_tile_type *element);
bool tile_same_shape(const lilac_tile_type *a, const lilac_tile_type *b);

/* How a named layout is written in a module. */
typedef struct tile_spelling {
    const lilac_encoding *encoding;
    lilac_name spelling; /* with the module's aliases */
} tile_spelling;

/* A name at the top of the module's text: #blocked = #ttg.blocked<{…}>, #smem = … */
struct lilac_tile_alias {
    lilac_name name;       /* without the # */
    lilac_name definition; /* what it stands for, with the aliases before it */
    struct lilac_tile_alias *next;
};

/* A text of an attribute with the module's aliases in it. */
lilac_name tile_alias_abbreviate(const lilac_tile_module *module, const char *text);
bool tile_alias_exists(const lilac_tile_module *module, const char *text);
void tile_alias_define(lilac_tile_module *module, lilac_name name, const char *text);
const tile_spelling *tile_spelling_intern(lilac_tile_module *module,
                                          const lilac_encoding *encoding);
/* A tensor type with the layout that `encoding` has for its shape. */
const lilac_tile_type *tile_tensor_spelled(lilac_tile_module *module,
                                           const lilac_tile_type *element, uint32_t rank,
                                           const int64_t *shape, const lilac_layout *layout,
                                           const lilac_encoding *encoding);

/* ---- attributes ------------------------------------------------------------------------- */

void tile_attribute_append(lilac_arena *arena, lilac_tile_attributes *attributes,
                           const lilac_tile_attribute *attribute);
void tile_attribute_remove(lilac_tile_attributes *attributes, const char *name, size_t length);
const lilac_tile_attribute *tile_attribute_find(const lilac_tile_attributes *attributes,
                                                const char *name, size_t length);

/* Sets of keywords that attributes take, by name. */
typedef struct tile_keywords {
    const char *name;
    const char *separator; /* NULL: one keyword; else a list, printed with this between */
    const char *absent;    /* the keyword that is not written, or NULL */
    int64_t first;         /* the integer of the first keyword in generic form */
    const char *words;     /* separated by blanks, in the order of their integers */
} tile_keywords;

const tile_keywords *tile_keywords_find(const char *name, size_t length);
bool tile_keywords_has(const tile_keywords *set, const char *word, size_t length);
/* The keyword of an integer in generic form; NULL: none. */
const char *tile_keywords_of(const tile_keywords *set, int64_t integer, size_t *length);

/* ---- floating point text ---------------------------------------------------------------- */

/* In MLIR's spelling: 1.000000e+00, 6.28318548, 0xFF800000. */
void tile_print_float(lilac_text *out, lilac_scalar scalar, uint64_t bits);
/* Bits of a decimal literal, rounded to the scalar float. */
uint64_t tile_read_float(lilac_scalar scalar, const char *text, size_t length, bool negative);

/* ---- signatures ------------------------------------------------------------------------- */

enum { TILE_MAX_ITEMS = 8, TILE_MAX_CONSTRAINTS = 4 };

/* One item of a signature (see tile_ops.def). */
typedef struct tile_item {
    char variable; /* 'T', or 0 when the type is derived */
    char derive;   /* 'i' i1(of), 'o' of(of), 'e' elem(of), 's' a scalar, 't' a token */
    char of;
    char many; /* '?', '*' or 0 */
    lilac_scalar scalar;
    uint32_t constraint_count;
    struct tile_constraint {
        char kind; /* see signature.c */
        char of;
    } constraints[TILE_MAX_CONSTRAINTS];
} tile_item;

typedef struct tile_signature {
    uint32_t operand_items, result_items;
    tile_item items[TILE_MAX_ITEMS]; /* operands, then results */
} tile_signature;

/* Where each group of operands begins; starts[n] is the number of operands. */
typedef struct tile_groups {
    uint32_t starts[TILE_MAX_ITEMS + 1];
} tile_groups;

/* What the variables of a signature stand for in one operation. */
typedef struct tile_binding {
    const lilac_tile_type *types[26];
} tile_binding;

void tile_signature_parse(tile_signature *signature, const char *text);
/* Parts `count` operands into the groups of the signature. False when they do not fit. */
bool tile_signature_groups(const tile_signature *signature, uint32_t count,
                           const lilac_tile_attributes *attributes, tile_groups *groups);
/* The group whose types the variable lists, or -1 when it is bound to one type. */
int tile_signature_list(const tile_signature *signature, char variable);
/* The type of an item: bound, or derived from what is bound; NULL when that cannot be. */
const lilac_tile_type *tile_item_type(lilac_tile_module *module, const tile_item *item,
                                      const tile_binding *binding);
/* What the item's constraints miss in `type`, as words for a message; NULL: nothing. */
const char *tile_item_misses(lilac_tile_module *module, const tile_item *item,
                             const tile_binding *binding, const lilac_tile_type *type,
                             const lilac_tile_type **other);
/* Checks operands and results of a whole operation and reports the first thing that is wrong. */
bool tile_signature_check(lilac_tile_module *module, const lilac_tile_op *op);

/* ---- operations ------------------------------------------------------------------------- */

lilac_tile_opcode tile_opcode_find(const char *name, size_t length);
/* The name nearest to one that is not found, or NULL. Not in the reader's files: its frames nest.
 * */
const char *tile_opcode_nearest(const char *name, size_t length);
lilac_tile_region *tile_region_create(lilac_tile_module *module, lilac_tile_function *function);
/* Makes a detached block that tile_block_insert puts at the end of a region, after `last`. */
lilac_tile_block *tile_block_create(lilac_tile_module *module);
/* The first operands of scf.for and of scf.condition that are passed on. */
enum { TILE_FOR_INITS = 3, TILE_CONDITION_PASSED = 1 };
/* Of ttg.warp_specialize: a block has 16 barriers, one for each partition, one for the default
 * region and one for all. */
enum { TILE_MOST_PARTITIONS = 14, TILE_MOST_REGIONS = 1 + TILE_MOST_PARTITIONS };
/* Enters an operand into the list of uses of a value. */
void tile_use_link(lilac_tile_use *use, lilac_tile_value *value);
/* Makes a list of results: those that are not removed (NULL: all), then `added` more. Removed ones
 * must be unused. */
void tile_change_results(lilac_tile_module *module, lilac_tile_op *op, const bool *removed,
                         uint32_t added, const lilac_tile_type *const *types);
/* Removes unused arguments of a block; removed[i] is for argument first + i. */
void tile_remove_arguments(lilac_tile_block *block, uint32_t first, const bool *removed);
/* Reports at an operation. */
void tile_op_error(const lilac_tile_module *module, const lilac_tile_op *op, const char *id,
                   const char *format, ...) LILAC_PRINTF(4, 5);
/* A type's text in the context's arena, for messages. */
const char *tile_type_text(const lilac_tile_module *module, const lilac_tile_type *type);

/* ---- values' names when printing -------------------------------------------------------- */

typedef struct tile_namer tile_namer;

tile_namer *tile_namer_create(lilac_context *context);
void tile_namer_destroy(tile_namer *namer);
void tile_namer_function(tile_namer *namer, const lilac_tile_function *function);
/* A detached operation and what is inside. */
void tile_namer_op(tile_namer *namer, const lilac_tile_op *op);
const char *tile_namer_get(const tile_namer *namer, const lilac_tile_value *value);
/* How many results from `index` on share one name and are written %name:n. */
uint32_t tile_result_pack(const lilac_tile_op *op, uint32_t index);

/* ---- printing --------------------------------------------------------------------------- */

/* Where each operation begins in the text. */
typedef struct tile_places {
    struct {
        lilac_tile_op *op;
        size_t offset;
    } * list;
    uint32_t count, capacity;
} tile_places;

typedef struct tile_printer {
    lilac_text *out;
    tile_places *places; /* NULL: not asked for */
    const lilac_tile_module *module;
    tile_namer *namer;
    bool locations;
    uint32_t indent;
    lilac_location *numbered; /* location aliases in order of first use */
    uint32_t numbered_count, numbered_capacity;
    tile_table location_numbers;
} tile_printer;

void tile_print_value(tile_printer *printer, const lilac_tile_value *value);
void tile_print_values(tile_printer *printer, const lilac_tile_op *op, uint32_t begin,
                       uint32_t end);
void tile_print_operand_types(tile_printer *printer, const lilac_tile_op *op, uint32_t begin,
                              uint32_t end);
/* Results as in a function type: () or one or (a, b). */
void tile_print_result_types(tile_printer *printer, const lilac_tile_op *op);
void tile_print_attribute_value(lilac_text *out, const lilac_tile_attribute *attribute);
/* " {a = 1 : i32}" of the attributes that `hidden` does not name; nothing when there are none.
 * `before` is what stands before the brace. */
void tile_print_dictionary(tile_printer *printer, const char *before,
                           const lilac_tile_attributes *attributes, const char *const *hidden);
void tile_print_location(tile_printer *printer, lilac_location location);
/* The definitions of all locations that were printed. */
void tile_print_location_definitions(tile_printer *printer);
void tile_print_symbol(lilac_text *out, lilac_name name);
/* " {" newline, the blocks, "}". The last operation of a block is left out when it is an
 * scf.yield of nothing and `implicit` says so. */
void tile_print_region(tile_printer *printer, const lilac_tile_region *region, bool entry_label,
                       bool implicit);
void tile_print_indent(tile_printer *printer);
void tile_print_block_name(tile_printer *printer, const lilac_tile_block *block);
void tile_print_custom(tile_printer *printer, const lilac_tile_op *op); /* custom_assembly.c */
void tile_print_warp_specialize(tile_printer *printer, const lilac_tile_op *op);
/* Has ttg.warp_specialize the parts that its custom form writes? */
bool tile_fits_warp_specialize(const lilac_tile_op *op);
void tile_print_format(tile_printer *printer, const lilac_tile_op *op);

/* ---- reading ---------------------------------------------------------------------------- */

typedef struct tile_reader tile_reader;

/* An operand as written: the value and where. */
typedef struct tile_operand {
    lilac_tile_value *value;
    lilac_position position;
} tile_operand;

/* Growable lists on the reader's scratch arena. */
typedef struct tile_operands {
    tile_operand *list;
    uint32_t count, capacity;
} tile_operands;

typedef struct tile_type_list {
    const lilac_tile_type **list;
    uint32_t count, capacity;
} tile_type_list;

/* An operation while it is read. */
typedef struct tile_draft {
    lilac_tile_opcode code;
    lilac_position position;
    tile_operands operands;
    tile_type_list results;
    lilac_tile_attributes attributes;
    lilac_tile_region *regions[TILE_MOST_REGIONS];
    uint32_t region_count;
    struct {
        lilac_name name;
        lilac_position position;
    } successors[2];
    uint32_t successor_count;
    bool implicit_yields; /* regions' last blocks get an scf.yield when they lack one */
} tile_draft;

/* The names before an operation's "=". */
typedef struct tile_result_name {
    lilac_name name;
    lilac_position position;
    uint32_t count;
} tile_result_name;

typedef struct tile_result_names {
    tile_result_name *list;
    uint32_t count, capacity, total;
} tile_result_names;

struct tile_reader {
    lilac_scanner scan;
    lilac_context *context;
    lilac_tile_module *module;
    lilac_arena *scratch;
    lilac_encoding_aliases encodings;
    lilac_tile_function *function;
    uint32_t depth, deepest; /* of regions: how many are open, and the limit where it is known */
    tile_table opcodes;      /* name → opcode */
    tile_table types;        /* text → type */
    const tile_signature *signatures[LILAC_TILE_OP_COUNT]; /* of operations met so far */
    tile_table values;                                     /* name → struct binding */
    tile_table functions, encoding_names;                  /* to refuse second definitions */
    tile_table llvm_names; /* name of an alias → text of its attribute of the LLVM dialect */
    lilac_name *log;       /* names defined, in order, so that a scope can be undone */
    uint32_t log_count, log_capacity;
    struct tile_label *labels; /* blocks of the regions now open */
    uint32_t label_count, label_capacity, label_base;
    lilac_tile_function **function_end;
    tile_table locations;                /* alias name → struct location_alias */
    struct tile_location_alias *aliases; /* those definitions, the last one first */
    struct tile_pending *pending, **pending_end, *pending_last;
    bool failed; /* a use of a value whose definition was wrong: fail without a word */
    bool bad;    /* something was wrong */
};

#define tile_fail(reader, position, id, ...)                                                       \
    (lilac_error((reader)->context, (position), 0, (id), __VA_ARGS__), false)

/* Grows a list on the scratch arena by one element of `size` bytes. */
void *tile_list_grow(tile_reader *reader, void *old, uint32_t count, uint32_t *capacity,
                     size_t size);
void tile_operands_push(tile_reader *reader, tile_operands *operands, tile_operand operand);
void tile_type_list_push(tile_reader *reader, tile_type_list *list, const lilac_tile_type *type);

/* The token's text, sigil and quotes left out. */
lilac_name tile_token_name(tile_reader *reader);
bool tile_token_is(const lilac_scanner *scan, const char *word);

/* Types, attributes and locations: read_types.c, read_attributes.c, read_locations.c. */
const lilac_tile_type *tile_read_type(tile_reader *reader);
/* What follows !tt.ptr, !tt.tensordesc or !ttg.memdesc (kind), from its "<" on. */
const lilac_tile_type *tile_read_type_rest(tile_reader *reader, lilac_tile_type_kind kind);
bool tile_read_types(tile_reader *reader, tile_type_list *list); /* a, b, c: one or more */
bool tile_read_parenthesized_types(tile_reader *reader, tile_type_list *list);
bool tile_read_function_results(tile_reader *reader, tile_type_list *list);
/* { … } when there; nothing otherwise. */
bool tile_read_dictionary(tile_reader *reader, lilac_tile_attributes *attributes);
/* #llvm.loop_annotation<…> or an alias of it (read_llvm.c). */
bool tile_read_llvm(tile_reader *reader, lilac_tile_attribute *attribute);
/* #name = #llvm.loop_licm<…>, from behind the "=". */
bool tile_define_llvm(tile_reader *reader, lilac_name name);
bool tile_is_llvm(const lilac_scanner *scan);
bool tile_read_attribute_value(tile_reader *reader, lilac_tile_attribute *attribute);
/* loc(…) when there. `slot` gets it, now or when all of the text has been read. */
bool tile_read_location(tile_reader *reader, lilac_location *slot);
/* Gives `other` the location that was just read for `slot`. */
void tile_share_location(tile_reader *reader, const lilac_location *slot, lilac_location *other);
bool tile_define_location(tile_reader *reader, lilac_name name);
void tile_resolve_locations(tile_reader *reader);

/* Values, blocks, regions: read.c. */
/* %a: type {…} loc(…), … up to and with ")", as arguments of `block`. With `attributes`, a
 * function's: they are kept there, and names may be missing, which `unnamed` then says. */
bool tile_read_arguments(tile_reader *reader, lilac_tile_block *block,
                         lilac_tile_attributes **attributes, bool *unnamed);
/* Parameters have attributes of dialects only, as in MLIR. */
bool tile_check_parameter_attributes(tile_reader *reader, const lilac_tile_attributes *attributes,
                                     lilac_position position);
/* Goes from the bad operation that began at `begin` to the next one: past where the error is, with
 * no bracket of the bad one open, at the beginning of a line or at the "}" of the block. */
void tile_skip_operation(tile_reader *reader, uint32_t begin);
bool tile_read_operand(tile_reader *reader, tile_operands *operands);
bool tile_read_operands(tile_reader *reader, tile_operands *operands); /* zero or more */
bool tile_define_value(tile_reader *reader, lilac_name name, lilac_position position,
                       lilac_tile_value *value, uint32_t count);
bool tile_check_operand(tile_reader *reader, const tile_draft *draft, uint32_t index,
                        const lilac_tile_type *type);
/* : (types) -> types, of operands that are read, and of the results. */
bool tile_read_types_of_operation(tile_reader *reader, tile_draft *draft);
/* { blocks }. `entry`: a first block that exists already with its arguments, or NULL. */
bool tile_read_region(tile_reader *reader, lilac_tile_region *region, lilac_tile_block *entry);
void tile_scope_open(tile_reader *reader, uint32_t *mark);
void tile_scope_close(tile_reader *reader, uint32_t mark);

/* The name that a value keeps: NULL for a number, which printing gives to values without one. */
lilac_name tile_kept_name(lilac_name name);
/* The block of this name in the region being read; NULL, with a diagnostic: too many. */
lilac_tile_block *tile_use_label(tile_reader *reader, lilac_name name, lilac_position position);

/* Operations: read_op.c. */
bool tile_read_op(tile_reader *reader, lilac_tile_block *block, tile_result_names *names);
/* Gives the names to the results of `op`; with NULL, to values that are known to be wrong. */
bool tile_define_results(tile_reader *reader, const tile_result_names *names, lilac_tile_op *op);
bool tile_read_custom(tile_reader *reader, tile_draft *draft); /* custom_assembly.c */
bool tile_read_warp_specialize(tile_reader *reader, tile_draft *draft);
bool tile_read_format(tile_reader *reader, tile_draft *draft);

#endif
