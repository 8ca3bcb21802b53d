/* The parts of the JSON. */
#ifndef LILAC_EXPLAIN_JSON_H
#define LILAC_EXPLAIN_JSON_H

#include "internal.h"

/* A string; NULL: null. The second function clears the text. */
void explain_json_string(lilac_text *out, const char *string);
void explain_json_text(lilac_text *out, lilac_text *text);
/* Objects without the counters that are 0. */
void explain_json_counts(lilac_text *out, const lilac_explain_counts *counts);
void explain_json_issue(lilac_text *out, const lilac_explain_counts *counts);
void explain_json_budget(lilac_text *out, const lilac_explanation *e);
/* ", \"operations\": […]" (json_operations.c), ", \"advice\": […]" (advice.c) */
void explain_json_operations(lilac_text *out, lilac_explanation *e);
void explain_json_advice(lilac_text *out, lilac_explanation *e);
/* ", \"schedules\": […]" (schedules.c) */
void explain_json_schedules(lilac_text *out, lilac_explanation *e);

#endif
