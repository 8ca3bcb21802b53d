/* Declarations shared by the files of the component `layout`. */
#ifndef LILAC_LAYOUT_INTERNAL_H
#define LILAC_LAYOUT_INTERNAL_H

#include <lilac/bits.h>
#include <lilac/f2.h>
#include <lilac/layout.h>

#include <string.h>

/* Copies what is in use; the arrays' tails are left as they are. */
void lilac_layout_copy(lilac_layout *result, const lilac_layout *layout);

/* A dimension's name with its padding, as a key to compare with; false when the text is no name. */
bool lilac_layout_key(lilac_layout_dim *key, const char *name);
/* "dim3" */
void lilac_layout_name_out(lilac_layout_dim *dim, uint32_t index);

static inline bool same_name(const lilac_layout_dim *a, const lilac_layout_dim *b) {
    return memcmp(a->name, b->name, sizeof a->name) == 0;
}

static inline int find_dim(const lilac_layout_dim *dims, uint32_t count,
                           const lilac_layout_dim *key) {
    for (uint32_t i = 0; i < count; i++) {
        if (same_name(&dims[i], key)) {
            return (int)i;
        }
    }
    return -1;
}

/* By its name; -1 with a reason for none. */
static inline int find_named(const lilac_layout_dim *dims, uint32_t count, const char *name,
                             const char *what, lilac_reason *why) {
    lilac_layout_dim key;
    int i = lilac_layout_key(&key, name) ? find_dim(dims, count, &key) : -1;
    if (i < 0) {
        (void)lilac_layout_refuse(why, "there is no %s '%.14s'", what, name);
    }
    return i;
}

/* A rearrangement of the bit fields of a flattened index: each field that is kept has its place in
 * the old word and in the new one. */
typedef struct bit_fields {
    uint32_t count;
    bool in_place; /* nothing moves and nothing is dropped */
    struct {
        uint64_t mask; /* of the field's width, at bit 0 */
        uint8_t from, to;
    } at[LILAC_LAYOUT_MAX_DIMS];
} bit_fields;

static inline void add_field(bit_fields *fields, uint32_t from, uint32_t to, uint32_t bits) {
    if (bits == 0) {
        return;
    }
    fields->at[fields->count].mask = low_bits(bits);
    fields->at[fields->count].from = (uint8_t)from;
    fields->at[fields->count].to = (uint8_t)to;
    fields->count++;
    fields->in_place = fields->in_place && from == to;
}

static inline uint64_t move_fields(const bit_fields *fields, uint64_t word) {
    if (fields->in_place) {
        return word;
    }
    uint64_t moved = 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        moved |= (word >> fields->at[i].from & fields->at[i].mask) << fields->at[i].to;
    }
    return moved;
}

/* First bits of all dimensions of a list. */
static inline void dim_starts(uint8_t *starts, const lilac_layout_dim *dims, uint32_t count) {
    uint32_t start = 0;
    for (uint32_t i = 0; i < count; i++) {
        starts[i] = (uint8_t)start;
        start += dims[i].bits;
    }
}

/* Whether an order (NULL: any will do) is a permutation of `count` dimensions. */
bool lilac_layout_order_fits(const uint32_t *order, uint32_t count, lilac_reason *why);

/* The elimination of the columns as a matrix over F2. */
void lilac_layout_reduce(lilac_f2_echelon *result, const lilac_layout *layout);

#endif
