/* --list-devices and --list-passes print tables of the library as text. */
#include "command.h"

#include <string.h>

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

static int unknown_pass(const subcommand *command, const char *option, const char *name) {
    const char *names[LILAC_MAX_PASSES];
    uint32_t count = 0;
    lilac_text list;
    lilac_text_init(&list);
    for (; lilac_pass_name(count) != NULL; count++) {
        names[count] = lilac_pass_name(count);
        lilac_text_printf(&list, "%s%s", count == 0 ? "" : ", ", names[count]);
    }
    const char *near = lilac_nearest_name(name, strlen(name), names, count);
    const int status = near != NULL
                           ? usage_error(command, "%s: there is no pass '%s'; did you mean '%s'?",
                                         option, name, near)
                           : usage_error(command, "%s: there is no pass '%s'; they are %s%s",
                                         option, name, lilac_text_get(&list),
                                         strcmp(option, "--print-after") == 0 ? ", or all" : "");
    lilac_text_clear(&list);
    return status;
}

static bool is_pass(const char *name) {
    for (uint32_t i = 0; lilac_pass_name(i) != NULL; i++) {
        if (strcmp(lilac_pass_name(i), name) == 0) {
            return true;
        }
    }
    return false;
}

int check_passes(const subcommand *command, const char *option, const char *list) {
    int status = -1;
    while (status < 0 && list != NULL) {
        lilac_text name;
        lilac_text_init(&name);
        lilac_text_put(&name, list, strcspn(list, ","));
        if (!is_pass(lilac_text_get(&name))) {
            status = unknown_pass(command, option, lilac_text_get(&name));
        }
        lilac_text_clear(&name);
        list = strchr(list, ',');
        list = list != NULL ? list + 1 : NULL;
    }
    return status;
}
