/* engine: the passes on tile IR. They simplify a function and assign a layout to every tensor of
 * it.
 *
 *   axis facts ─▶ coalesced layouts for memory operations (anchors) ─▶ propagation to all other
 *   values ─▶ where two layouts meet: rematerialisation of cheap values, ttg.convert_layout for the
 *   others
 *
 * Each pass is one file with one function of the same name. It returns false after it has recorded
 * an error, and sets `changed` if it changed the module. The driver runs the passes from its table.
 */
#ifndef LILAC_ENGINE_H
#define LILAC_ENGINE_H

#include <lilac/access.h>
#include <lilac/collective.h>
#include <lilac/dot.h>
#include <lilac/plan.h>
#include <lilac/tile.h>

LILAC_BEGIN

/* Facts about the elements of a value along each dimension (a scalar has one dimension). A block
 * of c consecutive elements along a dimension is aligned: it starts at a multiple of c.
 *
 *   contiguity    in every block of this many, each element is one more than the one before
 *                 (for pointers: one pointee further)
 *   divisibility  the first element of every such block is a multiple of this (bytes for pointers)
 *   constancy     the elements of every block of this many are equal
 *
 *   period        elements whose coordinates differ by a multiple of this are equal
 *
 *        value     24 25 26 27 | 32 33 34 35         0 0 0 0 | 5 5 5 5
 *        contiguity 4  divisibility 8  constancy 1   contiguity 1  divisibility 1  constancy 4
 *
 * All are powers of two. Contiguity and constancy are at most the size of the dimension,
 * divisibility and period at most 2^62. They are lower bounds, period is an upper bound: the true
 * contiguity may be larger. A period of the size of the dimension or more says nothing.
 *
 * Floats have constancy and periods only. Integers are signed.
 * The facts hold for every execution in which no addition, subtraction,
 * multiplication, left shift or conversion to fewer bits overflows as a signed number where a run
 * of consecutive elements or a sign depends on it; Triton assumes the same of offsets. Divisibility
 * needs no such assumption, since powers of two survive wrapping. */
typedef struct lilac_axis_facts {
    uint32_t rank;
    int64_t contiguity[LILAC_MAX_RANK];
    int64_t divisibility[LILAC_MAX_RANK];
    int64_t constancy[LILAC_MAX_RANK];
    int64_t period[LILAC_MAX_RANK];
    bool non_negative; /* every element, as a signed number */
    bool constant;     /* every element is `value` */
    int64_t value;
    /* Along a dimension whose bit is set in stride_known, every element is `stride` more than the
     * one before it (for pointers: in pointees). origin: a power of two that divides the element at
     * coordinates 0 (bytes for pointers); 0 means 1. Where its bit is set in stride_typical
     * instead, most neighbours differ by `stride`: it is used to estimate, never to prove. */
    uint32_t stride_known, stride_typical;
    int64_t stride[LILAC_MAX_RANK];
    int64_t origin;
} lilac_axis_facts;

/* The facts of a function's values, by value id. */
typedef struct lilac_axis_analysis {
    uint32_t count;
    lilac_axis_facts **facts; /* NULL: no facts */
} lilac_axis_analysis;

/* Computes the facts of every value of a function, by value id. The function numbers the values
 * (lilac_tile_number), so the result is valid until they are numbered again. The attributes
 * tt.divisibility, tt.contiguity and tt.constancy of parameters and operations are assumed to be
 * true. Facts of loops are a fixpoint. Cost: a few passes over the function. */
LILAC_API void lilac_engine_axis_facts(lilac_axis_analysis *result, lilac_arena *arena,
                                       lilac_tile_function *function);
/* Never NULL: a value without facts has contiguity, divisibility and constancy 1. */
LILAC_API const lilac_axis_facts *lilac_axis_facts_of(const lilac_axis_analysis *analysis,
                                                      const lilac_tile_value *value);
/* The facts of pointers of type `pointers` in the form that a plan of an access reads, without a
 * mask. The result borrows the arrays of `facts` and the shape of the type. */
LILAC_API void lilac_axis_access_facts(lilac_plan_global_facts *result,
                                       const lilac_axis_facts *facts,
                                       const lilac_tile_type *pointers);
/* The bits of flat coordinates in a tensor type that change no element of a value with these facts:
 * those below the constancy and those from the period on. 0 unless all sizes are powers of two. */
LILAC_API uint64_t lilac_axis_same_coordinates(const lilac_axis_facts *facts,
                                               const lilac_tile_type *type);
/* The access of tt.load, tt.store, tt.atomic_rmw, tt.atomic_cas or ttg.async_copy_global_to_local
 * to global memory, without a layout. The passes that compare layouts and the lowering both read
 * it. */
LILAC_API void lilac_engine_access(lilac_plan_global *result, const lilac_tile_op *op,
                                   const lilac_axis_analysis *analysis, const lilac_arch *arch);
/* The plan of that access in the layout of the loaded tensor, or of the pointers. Warps that
 * the attribute lilac.idle of a load marks have no part in it. The tensor has a layout. */
LILAC_API void lilac_engine_plan_access(lilac_plan_global_access *result, const lilac_tile_op *op,
                                        const lilac_axis_analysis *analysis,
                                        const lilac_target *target);

/* Bounds of all elements of an integer, inclusive, as signed numbers. */
typedef struct lilac_range {
    int64_t low, high;
} lilac_range;

/* The ranges of a function's values, by value id (lilac_tile_number). Values that are not integers
 * have the widest range. Arithmetic that may wrap has the range of its type, except that products
 * and sums of program ids are assumed not to wrap. Conditions of branches, loops and assertions
 * count for what is computed where they hold. Linear in the size of the function. */
LILAC_API void lilac_engine_ranges(lilac_range *result, const lilac_tile_function *function);

/* Passes. */

/* Turns branches between blocks (cf.br, cf.cond_br, as early returns produce them) into scf.if.
 * Every region then has one block. Refused with `unsupported-control-flow`: backward branches and
 * conditions nested deeper than half of lilac_nesting_limit(). Linear in the size of the module
 * times the number of branch targets that are open at the same time. */
LILAC_API LILAC_MUST_USE bool lilac_engine_structurize(lilac_tile_module *module,
                                                       const lilac_target *target, bool *changed);
/* Replaces calls by the bodies of the callees and removes functions that were only called. Bodies
 * must have one block. Refused: `recursive-call`, `unsupported-call` (of a function that is
 * only declared), `too-many-calls` (a quarter of a million operations copied), `nested-too-deep`
 * (more regions within regions than lilac_nesting_limit()). */
LILAC_API LILAC_MUST_USE bool lilac_engine_inline(lilac_tile_module *module,
                                                  const lilac_target *target, bool *changed);
/* Replaces products that no matrix instruction computes: tt.dot_scaled by tt.dot of bf16 or f16,
 * tt.dot with inputPrecision tf32x3, bf16x3 or bf16x6 by several dots, and 8-bit floats by f16
 * where the device has no instruction for them. Dots whose tensors have layouts remain. Refused
 * with `unsupported-operation`: element types e2m3 and e3m2. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_decompose_dots(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Replaces tensor descriptors by their parts (base pointer, shape, strides, padding) and accesses
 * through them by accesses through pointers. A descriptor that is a parameter becomes the
 * parameters of Triton's launcher: base pointer, i64 shape, i64 strides, i1 padding; the attribute
 * `lilac.descriptor` of the base has the old type. A function that uses descriptors in other
 * operations, or whose tensors have layouts, keeps them. Refused with `unsupported-descriptor`: a
 * last stride that is not the constant 1, a reduction that the element type does not have. Linear
 * in the size of the module, apart from values that nested loops carry.
 *
 * Where the device has tensor copies and wgmma, a parameter whose blocks (lilac_engine_box) are
 * only loaded, one of them in a loop with a matrix product, also stays as a parameter with the
 * attribute `lilac.tensor_map`, and its loads have a lilac.tensor_box as operand, which
 * pipeline_loops and copy_boxes turn into tensor copies. copy_boxes removes the parts of such a
 * parameter. */
LILAC_API LILAC_MUST_USE bool lilac_engine_expand_descriptors(lilac_tile_module *module,
                                                              const lilac_target *target,
                                                              bool *changed);
/* Makes one loop of two loops with the same loads and products, if the second one begins at the upper bound of
 * the first one (causal attention). Operations that only one body has are in a conditional. Each iteration computes
 * the same values as before. The loop has the attribute LILAC_JOINED_LOOPS = 2. Loops of tensors with layouts stay as
 * they are. Never fails. Linear in the size of the module, and quadratic in the operations of such a pair of loops. */
LILAC_API LILAC_MUST_USE bool lilac_engine_join_loops(lilac_tile_module *module,
                                                      const lilac_target *target, bool *changed);
#define LILAC_JOINED_LOOPS "lilac.joined_loops"
/* Replaces loads through pointers that are operands of products in loops by loads through tensor
 * descriptors that the launcher makes, if target->launch_maps is set and the device has tensor
 * copies. The descriptors are parameters behind the others. The attribute `lilac.launch_map` of
 * each says how the launcher makes it from the other arguments, and `lilac.launch_conditions` of
 * the function which arguments must not be negative; `lilac.launch_least` says with how few
 * iterations a launch is faster without maps (write_launch_maps.c has the form). Never fails. Linear in the size of the module, apart from bounded searches for each load. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_describe_loads(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* The number of warps with which a module without layouts is compiled: four or eight, where wgmma
 * computes the products of its loops and that is faster than target->num_warps; target->num_warps for
 * all other modules, for those that say `ttg.num-warps`, and with target->keep_warps. `why`: the
 * reason for another number. Numbers the values of the kernel. Linear in the size of the module for
 * each loop with products. */
LILAC_API uint32_t lilac_engine_choose_warps(lilac_tile_module *module, const lilac_target *target,
                                             lilac_reason *why);
/* Changes the length along k of the tiles of loops whose loads describe_loads has described: several
 * iterations with shorter tiles where shared memory has too few buffers for theirs or threads too few
 * registers, one of several where their rows are shorter than a line. The terms of a sum are added in
 * the same order. Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_resize_tiles(lilac_tile_module *module,
                                                        const lilac_target *target, bool *changed);
/* Lets the launcher start several blocks for each program of a kernel whose loads describe_loads has
 * described, if target->split_sums is set: blocks of one cluster, along z, that divide the iterations
 * of the loop with products and add up their sums (lilac.sum_blocks). The attribute
 * `lilac.launch_split` of the function describes the number of iterations (write_launch_maps.c has
 * the form). Launched with one block for each program, the kernel computes the same. Never fails.
 * Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_split_sums(lilac_tile_module *module,
                                                      const lilac_target *target, bool *changed);
/* Lets the programs of a kernel start in the order of decreasing work, where the numbers of iterations of
 * its loops with products grow or shrink along one axis of the grid: a permutation of the numbers that
 * tt.get_program_id gives, made by lilac_lower. The attribute LILAC_PROGRAM_ORDER of the function is 1, 2 or
 * 3 for numbers along x, y or z that are given from 0 up, as an outermost loop would, negative for the last one
 * first. Not with target->keep_order, for clusters, for kernels with `lilac.launch_split`, and for those with
 * atomic or volatile accesses or inline assembly in scf.while. Never fails. Linear in the size of the module,
 * apart from bounded searches for the bounds of each loop. */
LILAC_API LILAC_MUST_USE bool lilac_engine_order_programs(lilac_tile_module *module,
                                                          const lilac_target *target,
                                                          bool *changed);
#define LILAC_PROGRAM_ORDER "lilac.program_order"
/* Counts the programs of a launch, where the masks of all stores bound their numbers by constants: the attribute
 * LILAC_PROGRAMS of the function. It is a hint. Not for clusters. Never fails. Linear in the size of the module,
 * apart from bounded searches for the bounds of each mask. */
LILAC_API LILAC_MUST_USE bool lilac_engine_count_programs(lilac_tile_module *module,
                                                          const lilac_target *target,
                                                          bool *changed);
#define LILAC_PROGRAMS "lilac.programs"
/* How tensor copies move a block of a descriptor: boxes of `sizes` elements, as many as the block
 * has. The memory has the layout of #ttg.nvmma_shared with that swizzle, not transposed. */
typedef struct lilac_box {
    uint32_t rank;          /* of the block */
    uint32_t swizzle_bytes; /* 32, 64, 128; 0: none */
    uint32_t sizes[5];      /* of one copy, in the order of the block's dimensions: at most 256 */
} lilac_box;
/* The swizzle is that of the block's encoding, if it is an #ttg.nvmma_shared, else the widest that
 * rows and columns fill. False: tensor copies do not move blocks of this type: ranks above 5, rows
 * of less than 16 bytes, elements of other sizes than 8, 16, 32 and 64 bits, or sizes that are no
 * powers of two. */
LILAC_API bool lilac_engine_box(lilac_box *box, const lilac_tile_type *block);
/* The block's element type as tensormap.replace.elemtype of the PTX ISA numbers it, which Triton's
 * launcher expects, too. The host's numbers (tensor_map.h) differ for f64 and bf16. */
LILAC_API uint32_t lilac_engine_box_element(const lilac_tile_type *block);
/* In clusters, makes the blocks of tensor descriptors that are loaded so small that each block of
 * the cluster copies its own (divide_boxes.c). Before pipeline_loops. Linear in the size of the
 * module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_divide_boxes(lilac_tile_module *module,
                                                        const lilac_target *target, bool *changed);
/* Turns the remaining loads with a lilac.tensor_box into tensor copies that the block waits for,
 * and tt.descriptor_store and tt.descriptor_reduce into tensor copies; makes the tensor maps of
 * descriptors of the kernel; removes the parts of descriptors that are tensor maps from the
 * parameters. After pipeline_loops. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_copy_boxes(lilac_tile_module *module,
                                                      const lilac_target *target, bool *changed);
/* One warp starts the tensor copies of a loop with products, the others multiply: in a loop over
 * tiles or with delayed products if one block is resident, and where tt.warp_specialize asks for
 * it. Makes ttg.warp_specialize. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_specialise_warps(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Strength reduction: a carried tensor of pointers or offsets that a loop advances by one uniform
 * step becomes a carried scalar and an invariant tensor; their sum is formed at each use. Never
 * fails. Linear in the size of the module for loops that are not nested. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_reduce_strength(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Folds scalar integers, merges equal pure operations, hoists loop-invariant pure operations, and
 * removes unused ones. Linear in the size of the module. Never fails. */
LILAC_API LILAC_MUST_USE bool lilac_engine_simplify(lilac_tile_module *module,
                                                    const lilac_target *target, bool *changed);
/* Moves assertions of invariant conditions out of loops that execute at least one iteration, and
 * removes those that an earlier one implies. Never fails. Linear in the size of the module, apart
 * from what is between an assertion and the begin of the body that it leaves. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_hoist_assertions(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Merges independent reductions of tensors of one shape along one axis into one reduction with
 * several operands. Never fails. Linear in the size of the module, apart from chains of pure
 * operations that move with their results. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_fuse_reductions(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Computes minima and maxima of products of a tensor and a positive number from the tensor, where
 * the products are otherwise only added and subtracted. Never fails. Linear in the size of the
 * module. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_scale_extremes(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Inserts assertions that divisors of the numbers of programs are positive, where the widths of
 * accesses depend on it. Never fails. Linear in the size of the module, apart from short searches.
 * */
LILAC_API LILAC_MUST_USE bool
lilac_engine_assert_divisors(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Lets products that read the same tensor from shared memory with the same layout read one copy of it. After
 * assign_layouts. Never fails. Linear in the size of the module, and in that of a block for each copy of a
 * tensor with several. */
LILAC_API LILAC_MUST_USE bool lilac_engine_share_operands(lilac_tile_module *module,
                                                          const lilac_target *target,
                                                          bool *changed);
/* Transposes loaded operands of products, of 8-bit or 32-bit elements, in registers: a conversion
 * to a layout in which they are stored as wgmma reads them, where that costs less than single
 * elements. After assign_layouts. Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_transpose_operands(lilac_tile_module *module,
                                                              const lilac_target *target,
                                                              bool *changed);
/* Holds the first operand of a product of few columns, which all iterations of its loop read, in
 * registers where the buffers of the loop's loads lack that memory for another stage. Functions
 * whose tensors have layouts. Never fails. Linear in the size of the module for each such product. */
LILAC_API LILAC_MUST_USE bool lilac_engine_hold_operands(lilac_tile_module *module,
                                                         const lilac_target *target, bool *changed);
/* Stores operands of products to shared memory before earlier products, where the tensors of a block without
 * loops need more registers than a thread has. Functions whose tensors have layouts. Never fails. Linear in
 * the size of a block for each operand. */
LILAC_API LILAC_MUST_USE bool lilac_engine_raise_operands(lilac_tile_module *module,
                                                          const lilac_target *target,
                                                          bool *changed);
/* Computes masks that only operations behind a matrix product use behind it. Functions whose tensors have
 * layouts. Never fails. Linear in the size of the module for each such mask. */
LILAC_API LILAC_MUST_USE bool lilac_engine_sink_masks(lilac_tile_module *module,
                                                      const lilac_target *target, bool *changed);
/* Reads the operands of products by multiply-adds from shared memory in steps along K, where a thread
 * would hold more than 64 words of them. Functions whose tensors have layouts. False after a
 * diagnostic. Linear in the size of the module and in the number of steps. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_step_products(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Computes the first product of a chain, or the operand of a product in registers, one iteration
 * ahead. Functions whose tensors have layouts. Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_rotate_products(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Executes products of what an iteration computed in the next iteration, where pipeline_loops has
 * marked them. Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_delay_products(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Skips masks of tiles in loops with matrix products where bounds show that they are all true.
 * Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_skip_masks(lilac_tile_module *module,
                                                      const lilac_target *target, bool *changed);
/* Delays the waits for products to the first use of their results. Never fails. Linear in the size
 * of the module. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_overlap_products(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* In pipelined loops with delayed products, warps wait for buffers at mbarriers instead of for each
 * other. Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_decouple_warps(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Exchanges the operands of products, A·B = (Bᵀ·Aᵀ)ᵀ, where wgmma then reads them as they are.
 * Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_orient_dots(lilac_tile_module *module,
                                                       const lilac_target *target, bool *changed);
/* Gives products that wgmma computes operands in shared memory: ttng.warp_group_dot. Products of
 * tensors that have layouts stay. Never fails. Linear in the size of the module. */
LILAC_API LILAC_MUST_USE bool lilac_engine_select_dots(lilac_tile_module *module,
                                                       const lilac_target *target, bool *changed);
/* Assigns every tensor a layout with the inputs register, lane, warp, block, in this order. Then
 * lilac_tile_verify(module, true) holds. A function whose tensors have layouts already keeps them.
 * Refused with diagnostics: `unsupported-operation` (an operation on tensors without a layout rule,
 * at its position), `unsupported-clusters` (num_ctas above 1 on a device without clusters), `shape`
 * (a tensor that no layout of powers of two covers), `mixed-layouts` (some tensors of a function
 * have a layout, some have none), `layout-of-other-threads` (a layout has other numbers of lanes,
 * warps or blocks than the target). Then memory whose type has no layout gets the layout with the
 * cheapest accesses. Refused: `memory-without-layout` (an operation other than a view, a store or a
 * load uses memory without a layout, or no candidate can be lowered), `layout-mismatch` (views or
 * control flow relate memory whose layouts do not follow from each other). */
LILAC_API LILAC_MUST_USE bool
lilac_engine_assign_layouts(lilac_tile_module *module, const lilac_target *target, bool *changed);

/* Software pipelining: loads that feed matrix products become asynchronous copies to rings of
 * buffers in shared memory, num_stages − 1 iterations ahead, and asynchronous products stay in
 * flight over the back edge of the loop. Requires layouts. Obeys tt.num_stages. A loop that cannot
 * be pipelined stays as it is. Refused: as lilac_engine_assign_layouts for the layouts of the
 * rings' memory. Cost: linear in the size of the function for each loop with products. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_pipeline_loops(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Moves the exchanges between threads of a reduction that a loop accumulates behind the loop, where
 * that costs less: in the loop each thread combines its own elements. Reassociates sums and
 * products of floats, as tt.reduce does. Requires layouts. Never fails. Linear in the size of the
 * module. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_split_reductions(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Replaces reductions, scans, gathers and histograms of tensors whose axis the blocks of a cluster
 * divide by operations on one block's elements and conversions, which exchange elements of several
 * blocks. Nothing for clusters of one block. Requires layouts. Fails with a diagnostic
 * (`unsupported-clusters`) where the elements need too many registers. Linear in the size of the
 * module. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_combine_blocks(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Inserts a barrier of the block between two accesses to the memory of one argument if different
 * threads execute them and at least one is a store. Requires layouts. Never fails. Cost: the number
 * of operations times the depth of their nesting. */
LILAC_API LILAC_MUST_USE bool
lilac_engine_order_accesses(lilac_tile_module *module, const lilac_target *target, bool *changed);
/* Marks loads that only some warps need because the others hold replicas: threads whose index has a
 * bit of the attribute `lilac.idle` set may skip the load, and their result is undefined. Requires
 * layouts; marks whole warps only. Never fails. Cost: a few passes over the function, none where no
 * load is replicated. */
LILAC_API LILAC_MUST_USE bool lilac_engine_eliminate_redundant_loads(lilac_tile_module *module,
                                                                     const lilac_target *target,
                                                                     bool *changed);

/* Peels, unrolls and reorders loops so that loads of several iterations are in flight. Requires
 * layouts. Reassociates nothing. Obeys tt.loop_unroll_factor. Never fails. Cost: linear in
 * the size of the function and of the copies, which have a bound for each loop. */
LILAC_API LILAC_MUST_USE bool lilac_engine_unroll_loops(lilac_tile_module *module,
                                                        const lilac_target *target, bool *changed);
/* Moves loads of global memory in front of exchanges between threads that wait for other loads of
 * the same block. Requires layouts. Never fails. Cost: for each exchange, the operations of its
 * block. */
LILAC_API LILAC_MUST_USE bool lilac_engine_raise_loads(lilac_tile_module *module,
                                                       const lilac_target *target, bool *changed);

/* A conversion that remains in a function with layouts: one ttg.convert_layout. */
typedef struct lilac_conversion {
    const lilac_tile_op *op;
    const lilac_tile_op *source; /* defines the tensor; NULL: it is an argument of a block */
    const lilac_tile_op *user;   /* the first user of the converted tensor; NULL: none */
    const lilac_layout *from, *to;
    uint32_t element_bits;
    uint32_t loops;         /* number of enclosing loops */
    lilac_plan_kind kind;   /* of its plan */
    lilac_plan_price price; /* of one execution of its plan; cycles are 1/16 clocks */
} lilac_conversion;

typedef struct lilac_conversion_report {
    uint32_t count;
    const lilac_conversion *conversions; /* in program order */
    uint64_t cycles;                     /* the sum over one execution of each */
} lilac_conversion_report;

/* The conversions in a function and the price of each on the target. The price is 0 if no plan for
 * the layouts exists. */
LILAC_API void lilac_engine_conversions(lilac_conversion_report *result, lilac_arena *arena,
                                        const lilac_tile_function *function,
                                        const lilac_target *target);

/* An access to global memory in a function with layouts. */
typedef struct lilac_access {
    const lilac_tile_op *op;
    uint32_t loops; /* number of enclosing loops */
    lilac_plan_global_access plan;
} lilac_access;

typedef struct lilac_access_report {
    uint32_t count;
    const lilac_access *accesses; /* in program order */
    uint64_t cycles;              /* the sum over one execution of each */
} lilac_access_report;

/* The plans of the accesses of a function, as the lowering executes them. It omits accesses to
 * tensors without a layout. The function numbers its values (lilac_tile_number). */
LILAC_API void lilac_engine_accesses(lilac_access_report *result, lilac_arena *arena,
                                     lilac_tile_function *function, const lilac_target *target);

/* Memory whose layout the pass assign_layouts chose: all values that share the layout, views
 * included. The counts are sums over the accesses, weighted by the estimated trip counts of the
 * loops around them. */
typedef struct lilac_memory_layout {
    const lilac_tile_op *op; /* the first ttg.local_alloc */
    lilac_name name;         /* of the chosen candidate: the attribute lilac.memory */
    uint64_t store_wavefronts, load_wavefronts;
    int64_t cycles; /* 1/16 clocks, all warps of a block together */
} lilac_memory_layout;

typedef struct lilac_memory_layout_report {
    uint32_t count;
    const lilac_memory_layout *layouts; /* in program order */
} lilac_memory_layout_report;

/* The chosen layouts of a function's memory, with the plans of the accesses as the lowering
 * executes them. The function numbers its values (lilac_tile_number). */
LILAC_API void lilac_engine_memory_layouts(lilac_memory_layout_report *result, lilac_arena *arena,
                                           lilac_tile_function *function,
                                           const lilac_target *target);

/* The trip count that prices of layouts assume of a loop; 1 for an operation that is no loop. */
LILAC_API int64_t lilac_engine_estimated_trip_count(const lilac_tile_op *op);
/* The strategy that the attribute `lilac.movement` of a conversion or a gather requests. */
LILAC_API lilac_plan_strategy lilac_engine_strategy(const lilac_tile_op *op);

/* The product that tt.dot or ttng.warp_group_dot computes. Refused: ranks other than 2 and 3. */
LILAC_API LILAC_MUST_USE bool lilac_engine_dot_problem(lilac_plan_dot_problem *problem,
                                                       const lilac_tile_op *op,
                                                       const lilac_target *target,
                                                       lilac_reason *why);
/* wgmma adds products of 8-bit floats with about 14 bits. The number of terms that it may add in
 * this product before f32 adds them to the accumulators: the attribute maxNumImpreciseAcc, of which
 * 0 is 1. 0: any number, also for other types. */
LILAC_API uint32_t lilac_engine_imprecise_terms(const lilac_tile_op *op,
                                                const lilac_plan_dot_problem *problem);

/* The description of a reduction or a scan that its plan reads. The operands are in the arena. */
LILAC_API void lilac_engine_region(lilac_plan_region *result, lilac_arena *arena,
                                   const lilac_tile_op *op);

LILAC_END

#endif
