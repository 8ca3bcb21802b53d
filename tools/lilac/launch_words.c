/* What a command line says of a launch: the grid, and pairs NAME=VALUE. */
#include "launch.h"

#include <string.h>

bool read_grid(const char *string, uint32_t blocks[3]) {
    static const uint64_t most[3] = {INT32_MAX, 65535, 65535};
    char part[16];
    blocks[0] = blocks[1] = blocks[2] = 1;
    for (int i = 0; i < 3; i++) {
        const size_t length = strcspn(string, ",");
        uint64_t value = 0;
        if (length >= sizeof part) {
            return false;
        }
        memcpy(part, string, length);
        part[length] = '\0';
        if (!read_number(part, most[i], &value) || value == 0) {
            return false;
        }
        blocks[i] = (uint32_t)value;
        if (string[length] == '\0') {
            return true;
        }
        string += length + 1;
    }
    return false;
}

int check_pairs(const subcommand *command, const string_list *pairs, const char *option,
                const char *form) {
    for (uint32_t i = 0; i < pairs->count; i++) {
        const char *equals = strchr(pairs->list[i], '=');
        if (equals == NULL || equals == pairs->list[i] || equals[1] == '\0') {
            return usage_error(command, "%s takes %s, not '%s'", option, form, pairs->list[i]);
        }
    }
    return -1;
}
