/* A tile kernel to PTX: compile FILE.ttir */
#include <lilac.h>

#include <stdio.h>

static int compile(const char *name, const char *text, size_t length) {
    lilac_context *context = lilac_context_create();
    lilac_options options;
    lilac_options_init(&options);
    options.target.num_warps = 8;
    lilac_compilation result;
    const bool compiled =
        lilac_compile(&result, context, lilac_source_add(context, name, text, length), &options);
    if (compiled) {
        puts(lilac_text_get(&result.ptx));
    }
    lilac_text message;
    lilac_text_init(&message);
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        lilac_diagnostic_print(&message, context, d, false); /* file:line:column, line and caret */
    }
    fputs(lilac_text_get(&message), stderr);
    lilac_text_clear(&message);
    lilac_compilation_clear(&result);
    lilac_context_destroy(context);
    return compiled ? 0 : 1;
}

int main(int argc, char **argv) {
    static char text[1 << 20];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: %s FILE.ttir\n", argv[0]);
        return 2;
    }
    const size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    return compile(argv[1], text, length);
}
