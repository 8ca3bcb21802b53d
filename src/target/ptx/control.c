/* Structured control flow as labels and branches.
 *
 *   loop lower, upper, step           if c                      while
 *       mov counter, lower                @!c bra else              mov before's, initial
 *       mov carried, initial              … mov results, …      while:
 *       setp.ge p, lower, upper           bra end                   … before, giving c
 *       @p bra end                    else:                         mov after's, passed
 *   loop:                                 … mov results, …          @!c bra end
 *       … body                        end:                          … after
 *       mov carried, next                                           mov before's, next
 *       add counter, step                                           bra while
 *       setp.lt p, counter, upper                               end:
 *       @p bra loop
 *   end:
 *
 * An if whose one body is empty moves that body's values into the results in front of the branch.
 *
 * Conditions are uniform, so branches are bra.uni. But ptxas unrolls a loop, so that loads of several
 * iterations are in flight, only if the branch back is not marked uniform. It is a plain bra in loops
 * that load from global memory, unless a store, a barrier or an exchange between threads keeps the
 * loads in their iteration. A loop's results
 * are its carried registers, a while's are the registers of what is passed to "after". As in MLIR, a
 * loop whose counter overflows has no meaning.
 *
 * Carried values change all at once: the moves are a parallel copy, in which a move may run once
 * nobody still reads its target; what is left are cycles, each broken by one temporary.
 */
#include "emit.h"

#include <lilac/simt_matrix.h>

typedef struct move {
    lilac_simt_value target, source; /* homes; 0: a constant */
    lilac_ptx_piece text;            /* of the source */
    bool done;
} move;

static void move_value(lilac_ptx_emitter *e, lilac_simt_value target, lilac_ptx_piece source) {
    lilac_ptx_line2(e, lilac_ptx_mov(type_of(e, target)), e->places[target].text, source);
}

/* The same for a register operand of a wgmma: with an instruction that the assembler does not take for a
 * move. It would give both values one register, although the source is computed while the wgmma of this
 * iteration reads the target, and serialise the wgmmas (C7513). */
static void move_operand(lilac_ptx_emitter *e, lilac_simt_value target, lilac_ptx_piece source) {
    lilac_ptx_line4(e, "prmt.b32", e->places[target].text, source, source, PIECE("0x7210"));
}

/* `first` … `first + count - 1` become `sources`, all at once. `operands`: which of them wgmmas read from
 * registers; NULL: none. e->pending[v] counts the moves still
 * to run that read v's register; it is zero for all values before and after. */
static void parallel_copy(lilac_ptx_emitter *e, uint32_t count, lilac_simt_value first,
                          const lilac_simt_value *sources, const bool *operands) {
    move *moves = lilac_arena_array(e->arena, move, count);
    uint32_t *ready = lilac_arena_array(e->arena, uint32_t, count);  /* a queue of moves */
    uint32_t *writer = lilac_arena_array(e->arena, uint32_t, count); /* of each target: move + 1 */
    lilac_ptx_piece *saved = lilac_arena_array(e->arena, lilac_ptx_piece, count);
    uint32_t used = 0, ready_count = 0;
    for (uint32_t k = 0; k < count; k++) {
        const lilac_ptx_place *source = &e->places[sources[k]];
        if (!source->constant && source->home == first + k) {
            continue;
        }
        lilac_simt_value home = source->constant ? 0 : source->home;
        moves[used] = (move){first + k, home, lilac_ptx_bits(e, sources[k]), false};
        writer[k] = ++used;
        if (home) {
            e->pending[home]++;
        }
    }
    for (uint32_t k = 0; k < used; k++) {
        if (!e->pending[moves[k].target]) {
            ready[ready_count++] = k;
        }
    }
    for (uint32_t head = 0, cycle = 0; head < used;) {
        if (head == ready_count) { /* only cycles are left: keep one target's value aside */
            while (moves[cycle].done) {
                cycle++;
            }
            lilac_simt_value target = moves[cycle].target;
            lilac_simt_type type = type_of(e, target);
            lilac_ptx_piece aside = lilac_ptx_temporary(e, lilac_ptx_class_of(type));
            lilac_ptx_line2(e, lilac_ptx_mov(type), aside, e->places[target].text);
            saved[target - first] = aside;
            e->pending[target] = 0;
            ready[ready_count++] = cycle;
        }
        move *run = &moves[ready[head++]];
        bool own = run->source >= first && run->source - first < count;
        run->done = true;
        if (own && saved[run->source - first].bytes) {
            move_value(e, run->target, saved[run->source - first]);
            continue;
        }
        if (operands != NULL && operands[run->target - first] && run->source) {
            move_operand(e, run->target, run->text);
        } else {
            move_value(e, run->target, run->text);
        }
        if (!run->source || --e->pending[run->source] || !own) {
            continue;
        }
        uint32_t freed = writer[run->source - first];
        if (freed && !moves[freed - 1].done) {
            ready[ready_count++] = freed - 1;
        }
    }
}

/* Gives registers to fresh values and moves there what they start with. */
static void start_values(lilac_ptx_emitter *e, uint32_t count, lilac_simt_value first,
                         const lilac_simt_value *sources) {
    for (uint32_t k = 0; k < count; k++) {
        lilac_ptx_define(e, first + k);
        move_value(e, first + k, lilac_ptx_bits(e, sources[k]));
    }
}

static void branch_unless(lilac_ptx_emitter *e, lilac_ptx_piece condition, const char *kind,
                          uint32_t number) {
    lilac_ptx_guard(e, condition, true);
    lilac_ptx_branch(e, kind, number);
}

/* The traits that some instruction of the body has. */
static uint32_t traits_in(const lilac_simt_body *body) {
    uint32_t traits = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        traits |= lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits;
        for (uint32_t k = 0; k < i->body_count; k++) {
            traits |= traits_in(i->bodies[k]);
        }
    }
    return traits;
}

/* Does a loop load from global memory, with nothing that keeps the loads in their iteration? */
static bool gains_by_unrolling(const lilac_simt_body *body) {
    const uint32_t loads = LILAC_SIMT_READS | LILAC_SIMT_GLOBAL;
    const uint32_t keeps = LILAC_SIMT_CONVERGENT | LILAC_SIMT_SYNC | LILAC_SIMT_WRITES;
    return (traits_in(body) & (loads | keeps)) == loads;
}

/* Which of the carried values of a loop are register operands of wgmmas in its body. */
static const bool *find_operands(lilac_ptx_emitter *e, const lilac_simt_body *body,
                                 uint32_t carried) {
    const lilac_simt_value first = body->argument + 1;
    bool *operands = lilac_arena_array(e->arena, bool, carried + 1);
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code != LILAC_SIMT_OP_WGMMA || !i->payload.matrix.registers) {
            continue;
        }
        const lilac_simt_group a = lilac_simt_group_of(i, 1);
        for (uint32_t k = 0; k < a.count; k++) {
            const lilac_simt_value value = a.values[k];
            if (value >= first && value - first < carried &&
                lilac_simt_type_bits(type_of(e, value)) == 32) {
                operands[value - first] = true;
            }
        }
    }
    return operands;
}

static void loop(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_body *body = i->bodies[0];
    lilac_simt_value lower = i->operands[0], upper = i->operands[1], step = i->operands[2];
    lilac_simt_value counter = body->argument;
    uint32_t carried = i->operand_count - 3, number = e->labels++;
    bool wide = type_of(e, counter) == LILAC_SIMT_I64;
    if (!wide && type_of(e, counter) != LILAC_SIMT_I32) {
        lilac_ptx_refuse(e, i, "a loop counts in i32 or i64, not in %s",
                         lilac_simt_type_name(type_of(e, counter)));
        return;
    }
    const lilac_simt_instruction *yield = body->last;
    start_values(e, 1, counter, &lower);
    start_values(e, carried, counter + 1, i->operands + 3);

    const lilac_ptx_place *from = &e->places[lower], *to = &e->places[upper];
    bool entered = false; /* surely runs once */
    if (from->constant && to->constant) {
        entered = wide ? (int64_t)from->bits < (int64_t)to->bits
                       : (int32_t)from->bits < (int32_t)to->bits;
    }
    if (!entered) {
        lilac_ptx_piece skip = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
        lilac_ptx_line3(e, wide ? "setp.ge.s64" : "setp.ge.s32", skip, e->places[counter].text,
                        lilac_ptx_operand(e, upper));
        lilac_ptx_guard(e, skip, false);
        lilac_ptx_branch(e, "loop_end", number);
    }
    lilac_ptx_label(e, "loop", number);
    lilac_ptx_body(e, body);
    parallel_copy(e, carried, counter + 1, yield->operands, find_operands(e, body, carried));
    lilac_ptx_piece again = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
    lilac_ptx_piece count = e->places[counter].text;
    lilac_ptx_line3(e, wide ? "add.s64" : "add.s32", count, count, lilac_ptx_operand(e, step));
    lilac_ptx_line3(e, wide ? "setp.lt.s64" : "setp.lt.s32", again, count,
                    lilac_ptx_operand(e, upper));
    lilac_ptx_guard(e, again, false);
    if (gains_by_unrolling(body)) {
        lilac_ptx_diverging_branch(e, "loop", number);
    } else {
        lilac_ptx_branch(e, "loop", number);
    }
    lilac_ptx_label(e, "loop_end", number);
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_ptx_rename(e, i->result + k, counter + 1 + k);
    }
}

static bool is_empty(const lilac_simt_body *body) {
    return body->first == body->last;
}

static bool is_straight(const lilac_simt_body *body) {
    bool straight = true;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        straight &= i->body_count == 0;
    }
    return straight;
}

static void move_results(lilac_ptx_emitter *e, const lilac_simt_instruction *i,
                         const lilac_simt_body *body) {
    for (uint32_t k = 0; k < i->result_count; k++) {
        const lilac_ptx_place *source = &e->places[body->last->operands[k]];
        if (source->constant || source->home != e->places[i->result + k].home) {
            move_value(e, i->result + k, lilac_ptx_bits(e, body->last->operands[k]));
        }
    }
}

/* One body computes nothing, so the results are its values unless the other body replaces them. ptxas then
 * gives a result and its usual value one register. */
static void skip(lilac_ptx_emitter *e, const lilac_simt_instruction *i, lilac_ptx_piece condition,
                 bool skipped, uint32_t number) {
    const lilac_simt_body *body = i->bodies[skipped ? 1 : 0];
    move_results(e, i, i->bodies[skipped ? 0 : 1]);
    lilac_ptx_guard(e, condition, !skipped);
    lilac_ptx_branch(e, "endif", number);
    lilac_ptx_body(e, body);
    move_results(e, i, body);
    lilac_ptx_label(e, "endif", number);
}

static void branch(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    uint32_t number = e->labels++;
    const lilac_simt_body *yes = i->bodies[0], *no = i->bodies[1];
    bool has_else = i->result_count || no->first != no->last;
    lilac_ptx_piece condition = lilac_ptx_register(e, i->operands[0]);
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_ptx_define(e, i->result + k);
    }
    if (is_empty(yes) != is_empty(no) && is_straight(is_empty(yes) ? no : yes)) {
        skip(e, i, condition, is_empty(yes), number);
        return;
    }
    branch_unless(e, condition, has_else ? "else" : "endif", number);
    lilac_ptx_body(e, yes);
    move_results(e, i, yes);
    if (has_else) {
        lilac_ptx_branch(e, "endif", number);
        lilac_ptx_label(e, "else", number);
        lilac_ptx_body(e, no);
        move_results(e, i, no);
    }
    lilac_ptx_label(e, "endif", number);
}

static void while_loop(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    uint32_t number = e->labels++;
    const lilac_simt_body *before = i->bodies[0], *after = i->bodies[1];
    const lilac_simt_instruction *condition = before->last, *yield = after->last;
    start_values(e, i->operand_count, before->argument, i->operands);
    lilac_ptx_label(e, "while", number);
    lilac_ptx_body(e, before);
    start_values(e, condition->operand_count - 1u, after->argument, condition->operands + 1);
    branch_unless(e, lilac_ptx_register(e, condition->operands[0]), "while_end", number);
    lilac_ptx_body(e, after);
    parallel_copy(e, before->argument_count, before->argument, yield->operands, NULL);
    lilac_ptx_branch(e, "while", number);
    lilac_ptx_label(e, "while_end", number);
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_ptx_rename(e, i->result + k, after->argument + k);
    }
}

void lilac_ptx_control(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP:
        loop(e, i);
        break;
    case LILAC_SIMT_OP_IF:
        branch(e, i);
        break;
    default:
        while_loop(e, i);
        break;
    }
}
