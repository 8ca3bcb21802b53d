/* The contents of the files that the locations of a kernel name. */
#include "explain_texts.h"

#include <stdio.h>

void explain_add_texts(lilac_explanation *explanation) {
    for (uint32_t f = 1; lilac_explain_file(explanation, f) != NULL; f++) {
        FILE *file = fopen(lilac_explain_file(explanation, f), "rb");
        if (file == NULL) {
            continue;
        }
        char buffer[4096];
        lilac_text text = {0};
        for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) {
            lilac_text_put(&text, buffer, n);
        }
        fclose(file);
        lilac_explain_add_text(explanation, f, lilac_text_get(&text), text.length);
        lilac_text_clear(&text);
    }
}
