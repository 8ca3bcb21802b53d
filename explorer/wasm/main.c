/* The command for WebAssembly: the subcommands that need no GPU and no files.
 *
 * The page starts one instance for each question, with the words of a command line as its arguments and
 * the text of a kernel as its standard input, and reads standard output, standard error and the exit
 * status. An answer is therefore the text that the native command prints.
 */
#include "command.h"

#include <stdio.h>
#include <string.h>

static const subcommand *const commands[] = {&compile_command, &explain_command,   &opt_command,
                                             &layout_command,  &conflicts_command, &convert_command,
                                             &swizzle_command};

int main(int argc, char **argv) {
    if (argc < 2) {
        return usage_error(NULL, "a subcommand is missing");
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i]->name, argv[1]) == 0) {
            return commands[i]->run(commands[i], argc - 1, argv + 1);
        }
    }
    return usage_error(NULL, "no subcommand '%s' in the page", argv[1]);
}
