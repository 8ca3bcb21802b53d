/* Advice: variants of the compilation that were compiled, and are predicted faster. */
#include "json.h"

void explain_json_advice(lilac_text *out, lilac_explanation *e) {
    (void)e;
    lilac_text_puts(out, ", \"advice\": []");
}
