/* The parts of the text. */
#ifndef LILAC_EXPLAIN_TEXT_H
#define LILAC_EXPLAIN_TEXT_H

#include "internal.h"

/* A plan of an operation in one line, without the newline. */
void explain_plan_line(lilac_text *out, lilac_explanation *e, uint32_t index,
                       const lilac_lowered_plan *plan);
/* The operations that ask for the two layouts of a conversion, and why. */
void explain_reason_text(lilac_text *out, lilac_explanation *e, uint32_t index);
/* The plans that were not chosen, with their prices. */
void explain_alternatives_text(lilac_text *out, lilac_explanation *e, uint32_t index);
/* The line of an operation in a file; 0: it is not in it. (text.c) */
uint32_t explain_line(const lilac_explanation *e, uint32_t file, uint32_t index);
/* Variants that are predicted faster, if the options ask for them. (advice.c) */
void explain_advice_text(lilac_text *out, lilac_explanation *e);
void explain_budget_text(lilac_text *out, const lilac_explanation *e);
/* The schedules of loops with products, and what bounds them. (schedules.c) */
void explain_schedules_text(lilac_text *out, lilac_explanation *e);

#endif
