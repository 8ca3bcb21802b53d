/* Declarations shared by the files of the component `encoding`.
 *
 * Each kind of layout is one row of the table in table.c; what the row names is in the file of its
 * family (blocked.c, linear.c, dot.c, nvidia.c, amd.c, intel.c, shared.c, tensor_memory.c).
 */
#ifndef LILAC_ENCODING_INTERNAL_H
#define LILAC_ENCODING_INTERNAL_H

#include <lilac/encoding.h>

#include <string.h>

static inline bool text_is(const char *bytes, size_t length, const char *string) {
    return strlen(string) == length && memcmp(bytes, string, length) == 0;
}

/* ---- the table -------------------------------------------------------------------------- */

typedef struct lilac_encoding_reader {
    lilac_scanner *scanner;
    const lilac_encoding_aliases *aliases;
    uint32_t depth;
} lilac_encoding_reader;

static inline lilac_position here(const lilac_encoding_reader *r) {
    return lilac_scanner_position(r->scanner);
}

/* A shape in bits, log2 of each size. */
typedef struct lilac_encoding_shape {
    uint32_t rank;
    uint32_t bits[LILAC_MAX_RANK];
    uint32_t element_bits; /* 0: not said */
} lilac_encoding_shape;

typedef bool (*lilac_encoding_read_function)(lilac_encoding_reader *, lilac_encoding *);
typedef void (*lilac_encoding_print_function)(lilac_text *, const lilac_encoding *);
typedef bool (*lilac_encoding_layout_function)(lilac_context *, lilac_layout *,
                                               const lilac_encoding *,
                                               const lilac_encoding_shape *);

typedef struct lilac_encoding_row {
    const char *spelling; /* with its dialect, without the sigil */
    lilac_encoding_place place;
    lilac_encoding_read_function read;     /* after the name: "<{…}>" */
    lilac_encoding_print_function print;   /* after the name */
    lilac_encoding_layout_function layout; /* the encoding's rank is the shape's */
    /* As a parent of #ttg.dot_op: its operand's layout, given the dot_op; NULL: cannot be one. */
    lilac_encoding_layout_function dot_layout;
} lilac_encoding_row;

const lilac_encoding_row *lilac_encoding_row_of(lilac_encoding_kind kind);
bool lilac_encoding_kind_named(lilac_encoding_kind *kind, const char *name, size_t length);

#define LILAC_ENCODING_HOOKS(name)                                                                 \
    bool lilac_encoding_##name##_read(lilac_encoding_reader *r, lilac_encoding *encoding);         \
    void lilac_encoding_##name##_print(lilac_text *out, const lilac_encoding *encoding);           \
    bool lilac_encoding_##name##_layout(lilac_context *context, lilac_layout *result,              \
                                        const lilac_encoding *encoding,                            \
                                        const lilac_encoding_shape *shape)
#define LILAC_ENCODING_DOT_HOOK(name)                                                              \
    bool lilac_encoding_##name##_dot_layout(lilac_context *context, lilac_layout *result,          \
                                            const lilac_encoding *dot,                             \
                                            const lilac_encoding_shape *shape)

LILAC_ENCODING_HOOKS(blocked);
LILAC_ENCODING_HOOKS(slice);
LILAC_ENCODING_HOOKS(linear);
LILAC_ENCODING_HOOKS(generic_linear);
LILAC_ENCODING_HOOKS(dot_operand);
LILAC_ENCODING_HOOKS(nvidia_mma);
LILAC_ENCODING_HOOKS(amd_mfma);
LILAC_ENCODING_HOOKS(amd_wmma);
LILAC_ENCODING_HOOKS(intel_dpas);
LILAC_ENCODING_HOOKS(swizzled_shared);
LILAC_ENCODING_HOOKS(amd_rotating_shared);
LILAC_ENCODING_HOOKS(nvmma_shared);
LILAC_ENCODING_HOOKS(padded_shared);
LILAC_ENCODING_HOOKS(shared_linear);
LILAC_ENCODING_HOOKS(partitioned_shared);
LILAC_ENCODING_HOOKS(tensor_memory);
LILAC_ENCODING_HOOKS(tensor_memory_scales);
LILAC_ENCODING_HOOKS(tensor_memory_linear);
LILAC_ENCODING_DOT_HOOK(blocked);
LILAC_ENCODING_DOT_HOOK(nvidia_mma);
LILAC_ENCODING_DOT_HOOK(amd_mfma);
LILAC_ENCODING_DOT_HOOK(amd_wmma);
LILAC_ENCODING_DOT_HOOK(intel_dpas);

/* The layout of a shape whose rank is the encoding's, by its row. */
LILAC_MUST_USE bool lilac_encoding_layout_of(lilac_context *context, lilac_layout *result,
                                             const lilac_encoding *encoding,
                                             const lilac_encoding_shape *shape);

/* ---- reading ---------------------------------------------------------------------------- */

/* The lists of one attribute have one rank: that of the first one read. */
typedef struct lilac_encoding_rank {
    bool known;
    uint32_t rank;
} lilac_encoding_rank;

typedef struct lilac_encoding_list {
    uint32_t count;
    uint32_t at[LILAC_MAX_RANK];
} lilac_encoding_list;

/* [[0, 1], [0, 2], …]: coordinates of columns. */
typedef struct lilac_encoding_bases {
    uint32_t count;
    uint64_t at[LILAC_LAYOUT_MAX_BITS][LILAC_MAX_RANK];
} lilac_encoding_bases;

/* A parameter "name = value". `read` fills in what `into` points at; the readers below say what
 * that must be. What a missing one leaves there is what was there before. */
typedef struct lilac_encoding_param {
    const char *name;
    bool (*read)(lilac_encoding_reader *r, lilac_encoding_rank *rank, void *into);
    void *into;
    bool optional;
    /* Filled in: */
    bool given;
    lilac_position position; /* of its value */
} lilac_encoding_param;

#define LILAC_ENCODING_REQUIRED(name, read, into)                                                  \
    {                                                                                              \
        name, read, into, false, false, {                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }
#define LILAC_ENCODING_OPTIONAL(name, read, into)                                                  \
    {                                                                                              \
        name, read, into, true, false, {                                                           \
            0, 0                                                                                   \
        }                                                                                          \
    }

/* {name = value, …} in any order, each once; refused: layout-field-unknown, -twice, -missing,
 * layout-older-form. `rank` is of the lists read, not known when there is none. */
LILAC_MUST_USE bool lilac_encoding_read_params(lilac_encoding_reader *r, lilac_position position,
                                               lilac_encoding_param *params, uint32_t count,
                                               lilac_encoding_rank *rank);
/* The same between < and >. */
LILAC_MUST_USE bool lilac_encoding_read_attribute(lilac_encoding_reader *r, lilac_position position,
                                                  lilac_encoding_param *params, uint32_t count,
                                                  lilac_encoding_rank *rank);
/* Without the braces, as tensor memory's: <name = value, …>. */
LILAC_MUST_USE bool lilac_encoding_read_bare_attribute(lilac_encoding_reader *r,
                                                       lilac_position position,
                                                       lilac_encoding_param *params, uint32_t count,
                                                       lilac_encoding_rank *rank);

/* Readers of values, for lilac_encoding_param.read.        into: */
bool lilac_encoding_read_number(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                                void *into); /* uint32_t, any up to 2^31 - 1 */
bool lilac_encoding_read_size(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                              void *into); /* uint32_t, a power of two */
bool lilac_encoding_read_flag(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                              void *into); /* bool: true or false */
bool lilac_encoding_read_sizes(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                               void *into); /* uint32_t[LILAC_MAX_RANK], powers of two */
bool lilac_encoding_read_order(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                               void *into); /* uint32_t[LILAC_MAX_RANK], a permutation */
bool lilac_encoding_read_sizes_of_any_rank(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                                           void *into); /* lilac_encoding_list, powers of two */
bool lilac_encoding_read_bases(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                               void *into); /* lilac_encoding_bases, appended to; each moves along
                                               one dimension at most */
bool lilac_encoding_read_mixed_bases(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                                     void *into); /* lilac_encoding_bases, appended to; any */
bool lilac_encoding_read_blocks(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                                void *into); /* lilac_encoding_blocks: a CGALayout */
bool lilac_encoding_read_parent(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                                void *into); /* const lilac_encoding *: of a tensor */

bool lilac_encoding_read_memory_parent(lilac_encoding_reader *r, lilac_encoding_rank *rank,
                                       void *into); /* const lilac_encoding *: of shared memory */

/* f32, f16, … */
LILAC_MUST_USE bool lilac_encoding_read_scalar(lilac_encoding_reader *r, lilac_scalar *scalar);
/* An integer from 0 to `max`; refused with the id given. */
LILAC_MUST_USE bool lilac_encoding_read_natural(lilac_encoding_reader *r, uint64_t *value,
                                                uint64_t max, const char *id);
/* Any encoding, alias or named; NULL when refused. */
const lilac_encoding *lilac_encoding_read_any(lilac_encoding_reader *r);

/* ---- printing --------------------------------------------------------------------------- */

/* "prefix[1, 2]" */
void lilac_encoding_put_list(lilac_text *out, const char *prefix, const uint32_t *values,
                             uint32_t count);
/* ", CGALayout = [[…], …]", or nothing for one block. */
void lilac_encoding_put_blocks(lilac_text *out, const lilac_encoding *encoding);

/* ---- layouts ---------------------------------------------------------------------------- */

/* Reports at the encoding's position and is false. */
bool lilac_encoding_refuse(lilac_context *context, const lilac_encoding *encoding, const char *id,
                           const char *format, ...) LILAC_PRINTF(4, 5);

uint32_t lilac_encoding_log2(uint64_t power);
/* "dim0" … for d < LILAC_MAX_RANK. */
const char *lilac_encoding_dim_name(uint32_t d);
/* A layout with outputs dim0 … and no inputs. */
LILAC_MUST_USE bool lilac_encoding_outs(lilac_layout *layout, const lilac_encoding_shape *shape,
                                        lilac_reason *why);

/* A layout from the bases of `count` inputs, dimensions as large as the bases reach. Refused: more
 * than 64 bits. */
LILAC_MUST_USE bool lilac_encoding_bases_layout(lilac_layout *layout, uint32_t rank, uint32_t count,
                                                const char *const *names,
                                                const lilac_encoding_bases *const *bases,
                                                lilac_reason *why);
/* Reads the bases of a map that reaches all of its tensor: `count` inputs, at most 4, of which the
 * last `optional` need not be said, and the last is left out of the map when `drop` and it is not.
 */
typedef struct lilac_encoding_inputs {
    const char *const *names;
    uint32_t count, optional;
    bool drop;
    bool mixed; /* bases may move along several dimensions */
} lilac_encoding_inputs;
LILAC_MUST_USE bool lilac_encoding_read_map(lilac_encoding_reader *r, lilac_encoding *encoding,
                                            lilac_layout *layout,
                                            const lilac_encoding_inputs *inputs);
/* "{register = [[0, 1], …], …}" */
void lilac_encoding_put_map(lilac_text *out, const lilac_layout *layout);
/* A memory layout by bases is of one shape only. */
LILAC_MUST_USE bool lilac_encoding_of_shape(lilac_context *context, lilac_layout *result,
                                            const lilac_encoding *encoding,
                                            const lilac_layout *linear,
                                            const lilac_encoding_shape *shape);
/* "register = [[0, 1], …]" */
void lilac_encoding_put_bases(lilac_text *out, const lilac_layout *layout, uint32_t input);
/* The tile of a distributed layout as it is put together, before it meets a tensor: each bit of
 * register, lane and warp goes to one bit of one dimension, or to a place of several such bits, or
 * is a copy. */
typedef enum lilac_encoding_level {
    LILAC_ENCODING_REGISTER,
    LILAC_ENCODING_LANE,
    LILAC_ENCODING_WARP,
    LILAC_ENCODING_LEVELS
} lilac_encoding_level;

enum {
    LILAC_ENCODING_TILE_BITS = 256,
    LILAC_ENCODING_TILE_PLACES = 16,
    LILAC_ENCODING_TILE_COPY = 0xFF,
    LILAC_ENCODING_TILE_PLACE = 0xFE
};

typedef struct lilac_encoding_tile_bit {
    uint8_t
        dim; /* LILAC_ENCODING_TILE_COPY: a copy; LILAC_ENCODING_TILE_PLACE: `bit` is of places */
    uint8_t bit;
} lilac_encoding_tile_bit;

typedef struct lilac_encoding_tile {
    uint32_t rank;
    uint32_t used[LILAC_MAX_RANK]; /* bits of each dimension that the tile has */
    bool full;                     /* more bits than the array holds: refused later */
    uint32_t count[LILAC_ENCODING_LEVELS];
    uint32_t place_count;
    uint64_t places[LILAC_ENCODING_TILE_PLACES][LILAC_MAX_RANK];
    lilac_encoding_tile_bit at[LILAC_ENCODING_LEVELS][LILAC_ENCODING_TILE_BITS];
} lilac_encoding_tile;

void lilac_encoding_tile_init(lilac_encoding_tile *tile, uint32_t rank);
/* `count` more bits of the level: the next bits of the dimension (the product with an identity). */
void lilac_encoding_tile_step(lilac_encoding_tile *tile, lilac_encoding_level level, uint32_t dim,
                              uint32_t count);
/* One more bit of the level: a given bit of the dimension. */
void lilac_encoding_tile_bit_at(lilac_encoding_tile *tile, lilac_encoding_level level, uint32_t dim,
                                uint32_t bit);
/* One more bit of the level, which moves to a place of several bits: a coordinate a dimension. */
void lilac_encoding_tile_place(lilac_encoding_tile *tile, lilac_encoding_level level,
                               const uint64_t *place);
/* `count` copies. */
void lilac_encoding_tile_copies(lilac_encoding_tile *tile, lilac_encoding_level level,
                                uint32_t count);
/* Steps along the dimensions in `order`, fastest first, of sizes that are powers of two; along
 * dimension `broadcast` (-1: none) copies. */
void lilac_encoding_tile_sizes(lilac_encoding_tile *tile, lilac_encoding_level level,
                               const uint32_t *sizes, const uint32_t *order, int broadcast);
/* Fits the tile to a tensor: repeated by registers, dimensions in `order`, until it covers what one
 * block has of it; bits beyond that become copies; blocks above (`blocks` NULL: none). Refused,
 * layout-too-large: more than 64 bits. */
LILAC_MUST_USE bool lilac_encoding_tile_fit(lilac_context *context, lilac_layout *result,
                                            const lilac_encoding *encoding,
                                            const lilac_encoding_tile *tile,
                                            const lilac_encoding_shape *shape,
                                            const uint32_t *order,
                                            const lilac_encoding_blocks *blocks);
/* Bits of each dimension that lie across blocks, at most those of the shape. */
void lilac_encoding_block_bits(uint32_t *taken, const lilac_encoding_blocks *blocks,
                               const lilac_encoding_shape *shape);
/* A column for each block bit: the highest bits of the dimensions. */
void lilac_encoding_block_columns(uint64_t *columns, const lilac_encoding_blocks *blocks,
                                  const lilac_encoding_shape *shape);
/* The parent's blocks without their steps along K: those of a dot operand. */
void lilac_encoding_dot_blocks(lilac_encoding_blocks *result, const lilac_encoding *dot);
/* The dimension of a dot operand that is contracted. */
uint32_t lilac_encoding_dot_k(const lilac_encoding *dot);

/* The log2 of each size; refused when a size is no power of two or there are more than 2^64
 * elements. */
LILAC_MUST_USE bool lilac_encoding_check_shape(lilac_context *context, lilac_position position,
                                               uint32_t rank, const int64_t *shape, uint32_t *bits);

#endif
