/* lower: tile IR with layouts → SIMT IR.
 *
 *   tensor       in every thread, one value for each register of its layout; copies share a value
 *   scalar       one value, the same in all threads
 *   pointer      i64; an address is a value and a constant, which accesses take as immediate offset
 *   tt.load      as wide as contiguity, alignment and mask allow, at most 16 bytes a thread;
 *   tt.store     elements under 32 bits packed in words; of several copies one is stored
 *   tt.reduce    in the thread, by shuffles, then through shared memory; any region, axis, layout
 *   tt.scan      in the thread, by shuffles, then one barrier; any region, axis, layout, direction
 *   tt.gather    by shuffles, in the warp's part of shared memory or in the block's, by price
 *   functions    math.* and tt.extern_elementwise of libdevice's names: f32 by the machine's
 *                approximations where Triton takes them, else within 2 ulp (the Bessel functions
 *                J and Y of f64: see libdevice.c); what is not known by name is refused
 *   histograms   by atomics in shared memory; tt.cat as a renaming
 *   atomics      of several copies one acts, all get what was there; adjacent floats at once
 *   tt.print     a line an element, by one of the threads that hold it
 *   inline PTX   known instructions as operations, the rest as it stands
 *   shapes       renamings of registers, where the layouts allow it; else as conversions
 *   conversions  ttg.convert_layout carries out a movement plan (plan.h); its attribute
 *                lilac.movement, "shuffles", "shared" or "unswizzled", is the way to take
 *   memory       ttg.local_alloc … placed by their lives; stores and loads are the accesses of
 *                the tensor's layout to the memory's
 *
 * Shared memory: what is allocated, then scratch for trips and reductions. Every access says which
 * bytes it may touch, and a barrier stands wherever one may be needed: the kernel is right as it
 * is, and lilac_simt_opt_barriers takes away the barriers that order nothing.
 *
 * Each family of operations is one file (src/lower/): arithmetic, floats, conversions, math,
 * memory, local, shape, convert, reduce, scan, gather, histogram, cat, atomics, print, inline_asm,
 * control, and sources for what has no tensor operand. libdevice.c has the table of functions by
 * name, functions.h what they are made of.
 */
#ifndef LILAC_LOWER_H
#define LILAC_LOWER_H

#include <lilac/plan.h>
#include <lilac/simt.h>
#include <lilac/tile.h>

LILAC_BEGIN

/* Every public function with a body becomes a kernel. NULL with diagnostics (at the operation's
 * position and the user's line) for what has no lowering: ids `unsupported-operation`,
 * `unsupported-type`, `layout-conversion`, `too-much-shared-memory`, `unknown-function`. */
LILAC_API LILAC_MUST_USE lilac_simt_module *lilac_lower(lilac_tile_module *module,
                                                        const lilac_target *target);

/* Carries out a movement plan in a kernel that is being built: `values` are a thread's registers of
 * the plan's source, one SIMT value of the element's type each (128-bit elements: two of 64 bits
 * each, low half first), `results` those of its target. `scratch` is the offset of the trip's bytes
 * in the block's shared memory; the caller sees to it that nobody still uses them. The arena holds
 * what it works with. False: out of memory. */
LILAC_API LILAC_MUST_USE bool lilac_lower_movement(lilac_simt_builder *builder, lilac_arena *arena,
                                                   const lilac_plan_conversion *plan,
                                                   lilac_simt_type type,
                                                   const lilac_simt_value *values, uint64_t scratch,
                                                   lilac_simt_value *results);
/* A kernel that carries out one plan and nothing else, to be judged: `convert(source, target)`, two
 * pointers to global memory in which thread t of block b (its rank in the cluster) has its
 * registers, in order, from element ((b << thread bits) + t) << register bits. It loads all of the
 * source's registers, copies too, carries the plan out, and stores all of the target's. */
LILAC_API LILAC_MUST_USE lilac_simt_module *
lilac_lower_movement_kernel(lilac_context *context, const lilac_plan_conversion *plan);

LILAC_END

#endif
