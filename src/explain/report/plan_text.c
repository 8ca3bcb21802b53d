/* A plan in words and as JSON, for the kinds whose component has none: accesses to shared memory
 * and products. */
#include "internal.h"

const char *explain_plan_kind(const lilac_lowered_plan *plan) {
    static const char *const names[] = {
        [LILAC_LOWERED_ACCESS] = "access",       [LILAC_LOWERED_CONVERSION] = "conversion",
        [LILAC_LOWERED_REDUCTION] = "reduction", [LILAC_LOWERED_SCAN] = "scan",
        [LILAC_LOWERED_GATHER] = "gather",       [LILAC_LOWERED_HISTOGRAM] = "histogram",
        [LILAC_LOWERED_SHARED] = "shared",       [LILAC_LOWERED_DOT] = "dot"};
    return names[plan->kind];
}

uint64_t explain_plan_cycles(const lilac_explanation *e, const lilac_lowered_plan *plan) {
    switch (plan->kind) {
    case LILAC_LOWERED_ACCESS:
        return plan->is.access->cycles;
    case LILAC_LOWERED_CONVERSION:
        return plan->is.conversion->price.cycles;
    case LILAC_LOWERED_REDUCTION:
        return plan->is.reduction->price.cycles;
    case LILAC_LOWERED_SCAN:
        return plan->is.scan->price.cycles;
    case LILAC_LOWERED_GATHER:
        return plan->is.gather->price.cycles;
    case LILAC_LOWERED_HISTOGRAM:
        return plan->is.histogram->price.cycles;
    case LILAC_LOWERED_SHARED:
        return explain_shared_cycles(e, plan->is.shared);
    case LILAC_LOWERED_DOT:
        break;
    }
    return 0;
}

/* ---- shared memory ------------------------------------------------------------------------ */

static const char *instruction_name(const lilac_lowered_shared *plan) {
    switch (plan->access.instruction) {
    case LILAC_PLAN_MATRIX:
        return plan->loads ? "ldmatrix" : "stmatrix";
    case LILAC_PLAN_MATRIX_TRANSPOSED:
        return plan->loads ? "ldmatrix.trans" : "stmatrix.trans";
    case LILAC_PLAN_VECTOR:
        break;
    }
    return plan->loads ? "ld.shared" : "st.shared";
}

static void shared_text(lilac_text *out, const lilac_lowered_shared *plan) {
    const lilac_plan_access *a = &plan->access;
    lilac_text_printf(out, "%s of %u bytes per thread: %llu wavefronts in %llu instructions",
                      instruction_name(plan), a->element_bytes << a->vector_bits,
                      (unsigned long long)a->wavefronts, (unsigned long long)a->instructions);
    if (a->conflicts == 0) {
        lilac_text_puts(out, ", no bank conflicts\n");
    } else {
        lilac_text_printf(out, ": %u-way bank conflicts\n", a->transaction_wavefronts);
    }
}

static void shared_json(lilac_text *out, const lilac_lowered_shared *plan) {
    const lilac_plan_access *a = &plan->access;
    lilac_text_printf(out,
                      "{\"loads\": %s, \"instruction\": \"%s\", \"name\": \"%s\", \"bytes\": %u, "
                      "\"instructions\": %llu, \"wavefronts\": %llu, "
                      "\"transaction_lanes\": %u, \"transaction_wavefronts\": %u, "
                      "\"conflicts\": %u, \"replicated_threads\": %u}",
                      plan->loads ? "true" : "false", lilac_plan_instruction_name(a->instruction),
                      instruction_name(plan), a->element_bytes << a->vector_bits,
                      (unsigned long long)a->instructions, (unsigned long long)a->wavefronts,
                      a->transaction_lanes, a->transaction_wavefronts, a->conflicts,
                      plan->replicas);
}

/* ---- products ----------------------------------------------------------------------------- */

void explain_dot_name(lilac_text *out, const lilac_lowered_dot *dot) {
    const lilac_matrix_shape *s = &dot->plan.shape;
    if (dot->plan.unit == LILAC_PLAN_DOT_FMA) {
        lilac_text_puts(out, "multiply-adds");
        return;
    }
    lilac_text_printf(out, "%s.m%un%uk%u.%s.%s.%s",
                      dot->plan.unit == LILAC_PLAN_DOT_WGMMA ? "wgmma" : "mma", s->m, s->n, s->k,
                      lilac_matrix_type_name(s->d), lilac_matrix_type_name(s->a),
                      lilac_matrix_type_name(s->b));
}

static double flops(const lilac_lowered_dot *dot) {
    const lilac_plan_dot_problem *p = &dot->problem;
    return 2.0 * (double)(UINT64_C(1) << (p->batch_bits + p->m_bits + p->n_bits + p->k_bits));
}

static const char *place_of(const lilac_lowered_dot *dot, uint32_t operand) {
    return dot->in_memory[operand] ? "shared memory" : "registers";
}

static void dot_text(lilac_text *out, const lilac_lowered_dot *dot) {
    explain_dot_name(out, dot);
    lilac_text_printf(out, ", A in %s%s, B in %s%s\n", place_of(dot, 0),
                      dot->in_memory[0] && dot->memory[0].transposed ? " (transposed)" : "",
                      place_of(dot, 1),
                      dot->in_memory[1] && dot->memory[1].transposed ? " (transposed)" : "");
}

static void dot_json(lilac_text *out, const lilac_lowered_dot *dot) {
    static const char *const units[] = {[LILAC_PLAN_DOT_FMA] = "fma",
                                        [LILAC_PLAN_DOT_MMA] = "mma",
                                        [LILAC_PLAN_DOT_WGMMA] = "wgmma"};
    const lilac_plan_dot_problem *p = &dot->problem;
    lilac_text_printf(out, "{\"unit\": \"%s\", \"instruction\": \"", units[dot->plan.unit]);
    explain_dot_name(out, dot);
    lilac_text_printf(out,
                      "\", \"m\": %u, \"n\": %u, \"k\": %u, \"a\": \"%s\", \"b\": \"%s\", "
                      "\"flops\": %.0f}",
                      1U << p->m_bits, 1U << p->n_bits, 1U << p->k_bits,
                      dot->in_memory[0] ? "shared" : "registers",
                      dot->in_memory[1] ? "shared" : "registers", flops(dot));
}

/* ---- all ---------------------------------------------------------------------------------- */

static void conversion_text(lilac_text *out, const lilac_lowered_plan *plan) {
    lilac_layout from, to;
    lilac_reason why;
    if (lilac_layout_columns_layout(&from, plan->from, plan->from->distinct, &why) &&
        lilac_layout_columns_layout(&to, plan->to, plan->to->distinct, &why)) {
        lilac_plan_conversion_explain(out, plan->is.conversion, &from, &to);
    }
}

void explain_plan_text(lilac_text *out, lilac_explanation *e, const lilac_lowered_plan *plan) {
    (void)e;
    switch (plan->kind) {
    case LILAC_LOWERED_ACCESS:
        lilac_plan_global_access_explain(out, plan->is.access);
        break;
    case LILAC_LOWERED_CONVERSION:
        conversion_text(out, plan);
        break;
    case LILAC_LOWERED_REDUCTION:
        lilac_plan_reduce_explain(out, plan->is.reduction);
        break;
    case LILAC_LOWERED_SCAN:
        lilac_plan_scan_explain(out, plan->is.scan);
        break;
    case LILAC_LOWERED_GATHER:
        lilac_plan_gather_explain(out, plan->is.gather);
        break;
    case LILAC_LOWERED_HISTOGRAM:
        lilac_plan_histogram_explain(out, plan->is.histogram);
        break;
    case LILAC_LOWERED_SHARED:
        shared_text(out, plan->is.shared);
        break;
    case LILAC_LOWERED_DOT:
        dot_text(out, plan->is.dot);
        break;
    }
}

void explain_plan_json(lilac_text *out, lilac_explanation *e, const lilac_lowered_plan *plan) {
    (void)e;
    switch (plan->kind) {
    case LILAC_LOWERED_ACCESS:
        lilac_plan_global_access_json(out, plan->is.access);
        break;
    case LILAC_LOWERED_CONVERSION:
        lilac_plan_conversion_json(out, plan->is.conversion);
        break;
    case LILAC_LOWERED_REDUCTION:
        lilac_plan_reduce_json(out, plan->is.reduction);
        break;
    case LILAC_LOWERED_SCAN:
        lilac_plan_scan_json(out, plan->is.scan);
        break;
    case LILAC_LOWERED_GATHER:
        lilac_plan_gather_json(out, plan->is.gather);
        break;
    case LILAC_LOWERED_HISTOGRAM:
        lilac_plan_histogram_json(out, plan->is.histogram);
        break;
    case LILAC_LOWERED_SHARED:
        shared_json(out, plan->is.shared);
        break;
    case LILAC_LOWERED_DOT:
        dot_json(out, plan->is.dot);
        break;
    }
}
