/* engine: gives every tensor of a tile function its layout.
 *
 *   axis facts → coalesced layouts for memory operations (anchors) → propagation through the rest →
 *   rematerialisation where two layouts meet at cheap values, ttg.convert_layout where they do not
 *
 * Each pass is one file with one function: it returns false when it recorded an error, and says in
 * `changed` whether it did anything. The driver runs them from its table.
 */
#ifndef LILAC_ENGINE_H
#define LILAC_ENGINE_H

#include <lilac/tile.h>

LILAC_BEGIN

/* What is known of the elements of a value along each dimension (a scalar has one dimension):
 *   contiguity    runs of this many neighbours each one more than the one before
 *   divisibility  the first of each such run is a multiple of this (bytes for pointers)
 *   constancy     runs of this many neighbours that are all equal
 * All powers of two (divisibility at most 2^62). `constant` when every element is `value`. */
typedef struct lilac_axis_facts {
    uint32_t rank;
    int64_t contiguity[LILAC_MAX_RANK];
    int64_t divisibility[LILAC_MAX_RANK];
    int64_t constancy[LILAC_MAX_RANK];
    bool constant;
    int64_t value;
} lilac_axis_facts;

/* The facts of every value of a function, by value id (lilac_tile_number is called here). Parameter
 * attributes tt.divisibility, tt.contiguity, tt.constancy and op attributes of the same names are
 * the sources. */
typedef struct lilac_axis_analysis {
    uint32_t count;
    lilac_axis_facts **facts; /* NULL: nothing known */
} lilac_axis_analysis;

LILAC_API void lilac_engine_axis_facts(lilac_axis_analysis *result, lilac_arena *arena,
                                       lilac_tile_function *function);
/* Never NULL: a value nothing is known of has all ones. */
LILAC_API const lilac_axis_facts *lilac_axis_facts_of(const lilac_axis_analysis *analysis,
                                                      const lilac_tile_value *value);
/* Elements (a power of two, at least 1) that one vector access through this pointer tensor may take
 * along dimension `dim`, by contiguity and alignment, capped at vector_bytes; and the elements of a
 * mask that are known equal along it. */
LILAC_API uint32_t lilac_axis_vector(const lilac_axis_analysis *analysis,
                                     const lilac_tile_value *pointer, uint32_t dim,
                                     uint32_t vector_bytes);

/* Passes. */
LILAC_API LILAC_MUST_USE bool lilac_engine_simplify(lilac_tile_module *module,
                                                    const lilac_target *target, bool *changed);
LILAC_API LILAC_MUST_USE bool lilac_engine_assign_layouts(lilac_tile_module *module,
                                                          const lilac_target *target,
                                                          bool *changed);

LILAC_END

#endif
