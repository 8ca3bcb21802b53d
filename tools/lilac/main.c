/* lilac: the command. Each row of the table is a subcommand with its own file. */
#include "command.h"

#include <stdio.h>
#include <string.h>

#ifndef LILAC_VERSION
#error "the build says which version this is"
#endif

static const subcommand *const commands[] = {&compile_command, &explain_command,   &explore_command,
                                             &opt_command,     &run_command,       &bench_command,
                                             &layout_command,  &conflicts_command, &convert_command,
                                             &swizzle_command, &view_command};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static const subcommand *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static int print_text(const char *string) {
    return file_write(NULL, string, strlen(string)) ? STATUS_DONE : STATUS_REFUSED;
}

static int print_help(void) {
    lilac_text text;
    lilac_text_init(&text);
    lilac_text_puts(&text, "usage: lilac SUBCOMMAND …\n\n"
                           "Linear layouts for GPU kernels: reads the tile kernels that Triton's "
                           "front end writes,\nchooses layouts, writes PTX, and runs the same code "
                           "on a simulator\nor a GPU.\n\nsubcommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        lilac_text_printf(&text, "  %-10s%s\n", commands[i]->name, commands[i]->summary);
    }
    lilac_text_puts(
        &text, "\n  lilac SUBCOMMAND --help  says what it takes; so does lilac help SUBCOMMAND\n"
               "  lilac --version, -v      prints the version\n"
               "  lilac --list-devices     prints the devices; --list-passes, the passes\n\n"
               "exit status: 0 done; 1 the input was refused (why is on standard error);\n"
               "             2 wrong usage; 3 a check that the command makes itself failed\n");
    const int status = print_text(lilac_text_get(&text));
    lilac_text_clear(&text);
    return status;
}

static int unknown_command(const char *name) {
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i]->name;
    }
    const char *near = lilac_nearest_name(name, strlen(name), names, COMMAND_COUNT);
    if (near != NULL) {
        return usage_error(NULL, "unknown subcommand '%s'; did you mean '%s'?", name, near);
    }
    return usage_error(NULL, "unknown subcommand '%s'", name);
}

static int help_on(int argc, char **argv) {
    if (argc < 3) {
        return print_help();
    }
    const subcommand *command = find_command(argv[2]);
    if (command == NULL) {
        return unknown_command(argv[2]);
    }
    char help[] = "--help";
    char *arguments[] = {argv[2], help, NULL};
    return command->run(command, 2, arguments);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        return usage_error(NULL, "a subcommand is missing");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        return print_help();
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0) {
        return print_text("lilac " LILAC_VERSION "\n");
    }
    if (strcmp(argv[1], "--list-devices") == 0) {
        return list_devices();
    }
    if (strcmp(argv[1], "--list-passes") == 0) {
        return list_passes();
    }
    if (strcmp(argv[1], "help") == 0) {
        return help_on(argc, argv);
    }
    const subcommand *command = find_command(argv[1]);
    if (command == NULL) {
        return unknown_command(argv[1]);
    }
    return command->run(command, argc - 1, argv + 1);
}
