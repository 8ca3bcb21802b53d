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

#include <lilac/plan.h>
#include <lilac/tile.h>

LILAC_BEGIN

/* What is known of the elements of a value along each dimension (a scalar has one dimension).
 * A block of c neighbours along a dimension is aligned: it starts at a multiple of c.
 *
 *   contiguity    in every block of this many, each element is one more than the one before
 *                 (for pointers: one pointee further)
 *   divisibility  the first element of every such block is a multiple of this (bytes for pointers)
 *   constancy     the elements of every block of this many are equal
 *
 *        value     24 25 26 27 | 32 33 34 35         0 0 0 0 | 5 5 5 5
 *        contiguity 4  divisibility 8  constancy 1   contiguity 1  divisibility 1  constancy 4
 *
 * All are powers of two, contiguity and constancy at most the size of the dimension, divisibility
 * at most 2^62. They bound what a program can do: a contiguity of 4 may be one of 8 in fact.
 *
 * Integers are taken as signed; the facts hold for every run in which no addition, subtraction,
 * multiplication, left shift or conversion to fewer bits overflows its type as a signed number
 * where a run of neighbours or a sign depends on it, as Triton assumes of offsets. Divisibility
 * needs no such promise: powers of two survive wrapping. */
typedef struct lilac_axis_facts {
    uint32_t rank;
    int64_t contiguity[LILAC_MAX_RANK];
    int64_t divisibility[LILAC_MAX_RANK];
    int64_t constancy[LILAC_MAX_RANK];
    bool non_negative; /* every element, as a signed number */
    bool constant;     /* every element is `value` */
    int64_t value;
    /* Along a dimension whose bit is set: each element is `stride` more than the one before (for
     * pointers: pointees further on), everywhere. And what divides the element at coordinates 0
     * (bytes for pointers), a power of two; 0 means 1. */
    uint32_t stride_known;
    int64_t stride[LILAC_MAX_RANK];
    int64_t origin;
} lilac_axis_facts;

/* The facts of a function's values, by value id. */
typedef struct lilac_axis_analysis {
    uint32_t count;
    lilac_axis_facts **facts; /* NULL: nothing known */
} lilac_axis_analysis;

/* The facts of every value of a function, by value id (lilac_tile_number is called here, so they
 * hold until values are numbered anew). Parameter attributes tt.divisibility, tt.contiguity,
 * tt.constancy and op attributes of the same names are the sources; they are believed. Loops are
 * taken to their fixpoint. Cost: a few passes over the function. */
LILAC_API void lilac_engine_axis_facts(lilac_axis_analysis *result, lilac_arena *arena,
                                       lilac_tile_function *function);
/* Never NULL: a value nothing is known of has all ones. */
LILAC_API const lilac_axis_facts *lilac_axis_facts_of(const lilac_axis_analysis *analysis,
                                                      const lilac_tile_value *value);
/* Elements (a power of two, at least 1) that one vector access through this pointer tensor may take
 * along dimension `dim`: contiguous, aligned to their own size, and at most vector_bytes. An
 * aligned block of so many elements may be read or written at once wherever its mask is equal in
 * all. */
LILAC_API uint32_t lilac_axis_vector(const lilac_axis_analysis *analysis,
                                     const lilac_tile_value *pointer, uint32_t dim,
                                     uint32_t vector_bytes);

/* The same for a vector that takes dimension `dim` whole and goes on along `next`: where the
 * elements of a tile stand one after another in memory across both. 1 when they do not. */
LILAC_API uint32_t lilac_axis_vector_across(const lilac_axis_analysis *analysis,
                                            const lilac_tile_value *pointer, uint32_t dim,
                                            uint32_t next, uint32_t vector_bytes);

/* Passes. */

/* Branches between blocks (cf.br, cf.cond_br, as early returns leave them) become scf.if: every
 * region is one block afterwards. Refused with `unsupported-control-flow`: branches that go back,
 * conditions nested deeper than half of lilac_nesting_limit(). Linear in the size of the module, but for many targets that are
 * still open at once. */
LILAC_API LILAC_MUST_USE bool lilac_engine_structurize(lilac_tile_module *module,
                                                       const lilac_target *target, bool *changed);
/* Calls become the bodies of what they call, and functions that were only called are dropped.
 * Bodies must be one block. Refused: `recursive-call`, `unsupported-call` (of a function that is
 * only declared), `too-many-calls` (a quarter of a million operations copied), `nested-too-deep`
 * (more regions within regions than lilac_nesting_limit()). */
LILAC_API LILAC_MUST_USE bool lilac_engine_inline(lilac_tile_module *module,
                                                  const lilac_target *target, bool *changed);
/* Memory descriptors and tokens that loops and conditionals pass on, and that are the same value on
 * every path, become uses of that value, and the loops and conditionals lose them. Others stay; the
 * lowering refuses them. Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_buffers(lilac_tile_module *module,
                                                   const lilac_target *target, bool *changed);
/* Tensors of pointers, and of 32 and 64-bit offsets, that loops carry and advance by the same step
 * everywhere become scalars that advance and tensors that do not change; what used them is made of
 * both where it is used. Never fails. Linear in the size of the module, but for loops in loops. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_reduce_strength(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Folds scalar integers, merges equal pure operations, moves pure operations out of loops they do
 * not depend on, and removes what nothing uses. Linear in the size of the module. Never fails. */
LILAC_API LILAC_MUST_USE bool lilac_engine_simplify(lilac_tile_module *module,
                                                    const lilac_target *target, bool *changed);
/* Reductions of the same elements along the same axis become one of several operands, where one does
 * not depend on the other. Never fails. Linear in the size of the module, but for chains of pure
 * operations that move up with what they make. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_fuse_reductions(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Gives every tensor a layout with inputs register, lane, warp, block, in this order; afterwards
 * lilac_tile_verify(module, true) holds. Functions whose tensors have layouts already keep every
 * one of them. Refused with diagnostics: `unsupported-operation` (an operation on tensors that has
 * no layout rule, named, at its place), `unsupported-clusters` (num_ctas above 1), `shape` (a
 * tensor that no layout of powers of two covers), `mixed-layouts` (some tensors of one function
 * with a layout, some without), `layout-of-other-threads` (one that is not for the target's lanes,
 * warps and blocks). */
LILAC_API LILAC_MUST_USE bool
lilac_engine_assign_layouts(lilac_tile_module *module, const lilac_target *target, bool *changed);

/* Loads of which no thread needs a copy that it holds beside others say so: threads whose index has
 * a bit of the attribute `lilac.idle` set may skip them, and what these get is undefined. For
 * functions with layouts; whole warps only. Never fails. Cost: a few passes over the function, none
 * where no load has copies. */
LILAC_API LILAC_MUST_USE bool lilac_engine_eliminate_redundant_loads(lilac_tile_module *module,
                                                                     const lilac_target *target,
                                                                     bool *changed);

/* A conversion that is left in a function with layouts: one ttg.convert_layout. */
typedef struct lilac_conversion {
    const lilac_tile_op *op;
    const lilac_tile_op *source; /* that makes the tensor; NULL: a block's argument */
    const lilac_tile_op *user;   /* the first that wants it in the other layout; NULL: none */
    const lilac_layout *from, *to;
    uint32_t element_bits;
    uint32_t loops;         /* around it */
    lilac_plan_kind kind;   /* of its plan */
    lilac_plan_price price; /* of its plan, once; cycles are 1/16 clocks */
} lilac_conversion;

typedef struct lilac_conversion_report {
    uint32_t count;
    const lilac_conversion *conversions; /* in program order */
    uint64_t cycles;                     /* of all of them, each once */
} lilac_conversion_report;

/* What conversions a function keeps, and what each costs on the target. Whatever is not known of
 * one (a layout that no plan takes) is 0. */
LILAC_API void lilac_engine_conversions(lilac_conversion_report *result, lilac_arena *arena,
                                        const lilac_tile_function *function,
                                        const lilac_target *target);

LILAC_END

#endif
