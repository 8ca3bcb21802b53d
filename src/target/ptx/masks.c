/* Masks: what guards many loads and then stores is compared again for the stores.
 *
 *     setp %p0, %a0, %n … setp %p15 …          setp %p0, %a0, %n … setp %p15 …
 *     @%p0 ld … @%p15 ld                       @%p0 ld … @%p15 ld
 *     … work on all of it …             →      … work on all of it …
 *     @%p0 st … @%p15 st                       add %m, %n, %zero
 *                                              setp %p0, %a0, %m   @%p0 st
 *                                              …                   setp %p15 …  @%p15 st
 *
 * A thread has seven predicates. Of many loads whose masks stores still want, ptxas therefore
 * issues a few, waits for memory, works on them and stores, and only then issues the next few: the
 * thread waits several times. A comparison is one or two instructions, a wait hundreds of clocks.
 * So the stores get comparisons of their own. ptxas must not find out that they are the same, so
 * one operand has a second name: the same number and a zero that no assembler can know for one (a
 * grid has fewer than 2^31 blocks along x).
 *
 * Up to MOST masks are left alone: so few cost ptxas little, and more comparisons would. */
#include "emit.h"

enum { MOST = 8 };

enum { GUARDS_LOAD = 1, GUARDS_BOTH };

/* An order of integers, computed in this body? */
static bool is_compared(const lilac_ptx_emitter *e, const lilac_simt_body *body,
                        lilac_simt_value value) {
    const lilac_simt_instruction *d = e->kernel->values[value].definition;
    if (d == NULL || d->code != LILAC_SIMT_OP_CMP || d->parent != body)
        return false;
    lilac_simt_type type = type_of(e, d->operands[0]);
    return type == LILAC_SIMT_I32 || type == LILAC_SIMT_I64;
}

/* Such a comparison, or one of those and something else? */
static bool is_mask(const lilac_ptx_emitter *e, const lilac_simt_body *body,
                    lilac_simt_value value) {
    const lilac_simt_instruction *d = e->kernel->values[value].definition;
    return is_compared(e, body, value) ||
           (d != NULL && d->code == LILAC_SIMT_OP_AND && d->parent == body &&
            (is_compared(e, body, d->operands[0]) || is_compared(e, body, d->operands[1])));
}

static bool is_guarded(const lilac_ptx_emitter *e, const lilac_simt_instruction *i,
                       lilac_simt_opcode code) {
    return i->code == code && i->operand_count > 1 && type_of(e, i->operands[1]) == LILAC_SIMT_I1;
}

void lilac_ptx_find_masks(lilac_ptx_emitter *e, const lilac_simt_body *body) {
    uint32_t both = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (is_guarded(e, i, LILAC_SIMT_OP_LD_GLOBAL)) {
            uint8_t *guards = &e->guards[i->operands[1]];
            *guards = *guards == 0 ? GUARDS_LOAD : *guards;
        } else if (is_guarded(e, i, LILAC_SIMT_OP_ST_GLOBAL) &&
                   e->guards[i->operands[1]] == GUARDS_LOAD && is_mask(e, body, i->operands[1])) {
            e->guards[i->operands[1]] = GUARDS_BOTH;
            both++;
        }
    }
    if (both > MOST)
        return;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (is_guarded(e, i, LILAC_SIMT_OP_ST_GLOBAL))
            e->guards[i->operands[1]] = 0;
    }
}

static lilac_ptx_piece hidden_zero(lilac_ptx_emitter *e, bool wide) {
    for (int k = 0; k <= wide; k++) {
        if (e->zero[k].bytes == NULL)
            e->zero[k] = lilac_ptx_temporary(e, k == 1 ? LILAC_PTX_BITS64 : LILAC_PTX_BITS32);
    }
    return e->zero[wide];
}

/* A value's second name, computed in this body before. */
static lilac_ptx_piece second_name(lilac_ptx_emitter *e, const lilac_simt_body *body,
                                   lilac_simt_value value) {
    lilac_ptx_second_name *second = &e->seconds[value];
    if (second->body != body) {
        bool wide = type_of(e, value) == LILAC_SIMT_I64;
        second->body = body;
        second->name = lilac_ptx_temporary(e, wide ? LILAC_PTX_BITS64 : LILAC_PTX_BITS32);
        lilac_ptx_line3(e, wide ? "add.s64" : "add.s32", second->name, e->places[value].text,
                        hidden_zero(e, wide));
    }
    return second->name;
}

static void compare_again(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_value value = i->operands[e->places[i->operands[1]].constant ? 0 : 1];
    lilac_ptx_piece second = second_name(e, i->parent, value), first = e->places[value].text;
    e->places[value].text = second;
    lilac_ptx_compare(e, i);
    e->places[value].text = first;
}

void lilac_ptx_mask_again(lilac_ptx_emitter *e, const lilac_simt_instruction *store) {
    lilac_simt_value mask = store->operands[1];
    const lilac_simt_instruction *d = e->kernel->values[mask].definition;
    if (e->guards[mask] != GUARDS_BOTH || d->parent != store->parent)
        return;
    if (d->code == LILAC_SIMT_OP_CMP) {
        compare_again(e, d);
        return;
    }
    for (uint32_t k = 0; k < 2; k++) {
        if (is_compared(e, store->parent, d->operands[k]))
            compare_again(e, e->kernel->values[d->operands[k]].definition);
    }
    lilac_ptx_boolean(e, d);
}

void lilac_ptx_put_zero(lilac_ptx_emitter *e) {
    const lilac_ptx_piece *narrow = &e->zero[0], *wide = &e->zero[1];
    if (narrow->bytes == NULL)
        return;
    int length = (int)narrow->length;
    lilac_text_printf(e->out, "\tmov.u32 %.*s, %%nctaid.x;\n\tshr.u32 %.*s, %.*s, 31;\n", length,
                      narrow->bytes, length, narrow->bytes, length, narrow->bytes);
    if (wide->bytes != NULL)
        lilac_text_printf(e->out, "\tcvt.u64.u32 %.*s, %.*s;\n", (int)wide->length, wide->bytes,
                          length, narrow->bytes);
}
