/* simt_matrix: the matrix instructions of SIMT IR.
 *
 * Part of the component `simt`. The operands of these instructions are groups of registers, whose
 * sizes follow from the payload:
 *
 *     %d… = mma %a…, %b…, %c… {a = f16, b = f16, d = f32, m = 16, n = 8, k = 16}
 *     %d… = wgmma %c…, %a…, %b, %accumulate {…}
 *
 * The fragments are those of matrix.h. A register of A and B is any type of 32 bits (f64: f64); of C
 * and D it is f32, f16x2, i32 or f64, as d says.
 *
 * wgmma is asynchronous: it reads its operands and writes its results at any time up to the wgmma.wait
 * that covers it. Its results are in the registers of its first operands (they are tied), so a chain
 * of wgmmas on the same accumulators needs no copies. Only a wgmma that continues the chain, a wait
 * and the yields that carry the chain around a loop may use a result before that wait:
 *
 *     wgmma.fence                            the registers are as the instructions before left them
 *     %1… = wgmma %0…, %a, %b, %true {…}     ┐ one group
 *     %2… = wgmma %1…, %a1, %b1, %true {…}   │ %0, %1 are gone: their registers are %2's
 *     wgmma.commit                           ┘
 *     %3… = wgmma.wait %2… {groups = 0}      %3 may be used; the bytes of A and B may be overwritten
 *                                            by threads ordered behind this wait in each warp
 */
#ifndef LILAC_SIMT_MATRIX_H
#define LILAC_SIMT_MATRIX_H

#include <lilac/matrix.h>
#include <lilac/simt.h>

LILAC_BEGIN

/* Consecutive operands of an instruction. */
typedef struct lilac_simt_group {
    const lilac_simt_value *values;
    uint32_t count;
} lilac_simt_group;

enum { LILAC_SIMT_MOST_GROUPS = 4 };

/* The named group number k of the instruction's signature (simt_ops.def), as far as the instruction
 * has operands for it. Of operations all of whose operands are in named groups. */
LILAC_API lilac_simt_group lilac_simt_group_of(const lilac_simt_instruction *instruction,
                                               uint32_t k);
/* How many operands the group has by the payload. */
LILAC_API uint32_t lilac_simt_group_size(const lilac_simt_instruction *instruction, uint32_t k);

/* The types and sizes that a payload says. */
LILAC_API lilac_matrix_shape lilac_simt_matrix_shape(const lilac_simt_instruction *instruction);
/* The type of a register of C and D. */
LILAC_API lilac_simt_type lilac_simt_accumulator_type(lilac_matrix_type d);
/* Is result k of the instruction in the register of its operand k? */
LILAC_API bool lilac_simt_is_tied(lilac_simt_opcode code);

/* homes[v], for each value v: the value in whose register v is because an instruction updates that
 * register in place. The results of a wgmma are in the registers of its accumulators where these have no
 * other use; otherwise a printer must copy the accumulators first. `homes` has kernel->value_count
 * entries. */
LILAC_API void lilac_simt_register_homes(const lilac_simt_kernel *kernel, lilac_simt_value *homes);

/* mma: `a`, `b` and `c` have as many registers as the shape says. The first result. */
LILAC_API lilac_simt_value lilac_simt_mma(lilac_simt_builder *b,
                                          const lilac_simt_matrix_payload *kind,
                                          const lilac_simt_value *a, const lilac_simt_value *bs,
                                          const lilac_simt_value *c);
/* wgmma: A is a descriptor (i64), or four registers where kind->registers is set. `accumulate` (i1,
 * the same in all threads): false means D = A·B. The first result. */
LILAC_API lilac_simt_value lilac_simt_wgmma(lilac_simt_builder *b,
                                            const lilac_simt_matrix_payload *kind,
                                            const lilac_simt_value *c, const lilac_simt_value *a,
                                            lilac_simt_value descriptor,
                                            lilac_simt_value accumulate);
LILAC_API void lilac_simt_wgmma_fence(lilac_simt_builder *b);
LILAC_API void lilac_simt_wgmma_commit(lilac_simt_builder *b);
/* Waits until at most `groups` groups are incomplete (above 7: 7). `values`: results of wgmmas that
 * are complete then; the first of the values after the wait, 0 when there are none. */
LILAC_API lilac_simt_value lilac_simt_wgmma_wait(lilac_simt_builder *b, uint32_t groups,
                                                 uint32_t count, const lilac_simt_value *values);
/* The descriptor (i64) of a matrix that starts at the shared address `start` (i32, a multiple of 16,
 * the same in all lanes of a warp) plus `offset` (likewise, within the block's memory; 0: none), which a loop
 * adds to what is computed before it; like->start is not used. Where a value is not known to be uniform,
 * lane 0's is broadcast: assemblers then keep the descriptor in a uniform register. Advance it by
 * adding bytes / 16.
 *
 * A descriptor is a sum of 64 bits, or two words where that would add a negative number (swizzles of 32 and 64
 * bytes): from such sums with one address, ptxas of CUDA 12.8 makes code that reads a uniform register that
 * nothing wrote (tests/data/products/states.ttir). */
LILAC_API lilac_simt_value lilac_simt_matrix_descriptor(lilac_simt_builder *b,
                                                        lilac_simt_value start,
                                                        lilac_simt_value offset,
                                                        const lilac_matrix_descriptor *like);

LILAC_END

#endif
