/* Scheduling borders: loads that the code puts in a row leave in a row.
 *
 *     ld.global %a …                       LDG a                      LDG a
 *     ld.global %b …                       … long work on a           LDG b
 *     … long work on a       ptxas  →      LDG b           instead of … work on a
 *     … long work on b                     … long work on b           … work on b
 *
 * In long straight-line code ptxas saves registers by issuing a load only where its value is
 * wanted; then the thread waits for memory once for each of them. It moves nothing across the end
 * of a basic block, so one is made behind the last load of a row: a branch on a condition that is
 * never true and that no assembler can know (a grid has fewer than 2^31 blocks along x).
 *
 * A row is at least two loads with less than WORK of arithmetic on what they load between any two.
 * It gets a border when at least WORK operations on what it loads follow before a shuffle, a store
 * or other control: work that waits for none of it is better left where ptxas wants it. A border
 * costs the registers of the row, so it is made where they are well spent: not in loops, where the
 * loads of one iteration are short of room already, and not in kernels whose blocks wait at
 * barriers, where other blocks do more good than loads in a row (occupancy.c), nor where a row is
 * very long or all the rows together leave room for one block only. */
#include "emit.h"

enum { WORK = 100, MOST_WORDS = 64 };

static bool ends_row(const lilac_simt_instruction *i) {
    return lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits &
           (LILAC_SIMT_WRITES | LILAC_SIMT_SYNC | LILAC_SIMT_REGIONS | LILAC_SIMT_TERMINATOR |
            LILAC_SIMT_CONVERGENT);
}

/* Does it work on what the row at hand loads? Then so does what works on its results. */
static bool works_on_row(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        if (e->rows[i->operands[k]] == e->row) {
            for (uint32_t r = 0; r < i->result_count; r++) {
                e->rows[i->result + r] = e->row;
            }
            return true;
        }
    }
    return false;
}

static uint32_t words_of(lilac_ptx_emitter *e, const lilac_simt_instruction *load) {
    return load->result_count * ((lilac_simt_type_bits(type_of(e, load->result)) + 31) / 32);
}

const lilac_simt_instruction *lilac_ptx_next_border(lilac_ptx_emitter *e,
                                                    const lilac_simt_instruction *from) {
    const lilac_simt_instruction *last = NULL;
    uint32_t loads = 0, words = 0, work = 0;
    e->row++;
    for (const lilac_simt_instruction *i = from; i != NULL; i = i->next) {
        bool load = i->code == LILAC_SIMT_OP_LD_GLOBAL;
        if (ends_row(i) || (load && work >= WORK)) {
            loads = words = work = 0;
            e->row++;
        }
        if (load) {
            last = i;
            loads++;
            words += words_of(e, i);
            work = 0;
            for (uint32_t r = 0; r < i->result_count; r++) {
                e->rows[i->result + r] = e->row;
            }
        } else if (works_on_row(e, i) && ++work >= WORK && loads > 1 && words <= MOST_WORDS) {
            return last;
        }
    }
    return NULL;
}

bool lilac_ptx_takes_borders(const lilac_simt_kernel *kernel) {
    return !lilac_ptx_waits(kernel->body) &&
           lilac_simt_resident_blocks(kernel, lilac_simt_pressure(kernel, false)) > 1;
}

/* The number in the condition differs from border to border, or only the first would stay. */
void lilac_ptx_border(lilac_ptx_emitter *e) {
    lilac_ptx_piece blocks = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_piece never = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
    lilac_ptx_line2(e, "mov.u32", blocks, PIECE("%nctaid.x"));
    lilac_ptx_line3(e, "setp.eq.u32", never, blocks,
                    lilac_ptx_decimal(e, INT64_C(0x80000001) + e->borders));
    lilac_ptx_guard(e, never, false);
    lilac_ptx_branch(e, "end", 0);
    e->borders++;
}
