/* --list-devices and --list-passes: the tables of the library, for people. */
#include "command.h"

static int print_list(lilac_text *text) {
    const bool written = file_write(NULL, lilac_text_get(text), text->length);
    lilac_text_clear(text);
    return written ? STATUS_DONE : STATUS_REFUSED;
}

int list_devices(void) {
    lilac_text text;
    lilac_text_init(&text);
    lilac_text_puts(&text, "device     lanes  warps  shared bytes  what\n");
    for (size_t i = 0; lilac_arch_at(i) != NULL; i++) {
        const lilac_arch *arch = lilac_arch_at(i);
        lilac_text_printf(&text, "%-10s %5u %6u %13u  %s%s\n", arch->name, arch->warp_size,
                          arch->max_warps, arch->shared_bytes, arch->description,
                          arch->vendor == LILAC_NVIDIA ? "" : "; simulator only");
    }
    return print_list(&text);
}

int list_passes(void) {
    lilac_text text;
    lilac_text_init(&text);
    for (uint32_t i = 0; lilac_pass_name(i) != NULL; i++) {
        lilac_text_printf(&text, "%s\n", lilac_pass_name(i));
    }
    return print_list(&text);
}
