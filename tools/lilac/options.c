/* Options by table: a row has an option's name, kind, destination and help. Both the reader and the
 * help text are derived from the rows.
 */
#include "command.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strings_add(string_list *strings, const char *string) {
    if ((strings->count & (strings->count - 1)) == 0) {
        const size_t capacity = strings->count == 0 ? 1 : 2 * (size_t)strings->count;
        strings->list = lilac_heap_grow(strings->list, capacity * sizeof *strings->list);
    }
    strings->list[strings->count++] = string;
}

void strings_clear(string_list *strings) {
    lilac_heap_free(strings->list);
    strings->list = NULL;
    strings->count = 0;
}

int check_one_file(const subcommand *command, const string_list *operands, const char *done) {
    if (operands->count == 1) {
        return -1;
    }
    return usage_error(
        command, operands->count == 0 ? "which file is to be %s?" : "one file at a time can be %s",
        done);
}

bool read_number(const char *string, uint64_t most, uint64_t *value) {
    uint64_t sum = 0;
    if (*string == '\0') {
        return false;
    }
    for (; *string != '\0'; string++) {
        if (*string < '0' || *string > '9') {
            return false;
        }
        const uint64_t digit = (uint64_t)(*string - '0');
        if (sum > (most - digit) / 10 || digit > most) {
            return false;
        }
        sum = 10 * sum + digit;
    }
    *value = sum;
    return true;
}

/* ---- hints ------------------------------------------------------------------------------ */

int choice_read(const subcommand *command, const char *option, const char *word,
                const choice *choices, int *value) {
    enum { MOST = 16 };
    const char *names[MOST];
    uint32_t count = 0;
    lilac_text list;
    for (; choices[count].name != NULL; count++) {
        if (strcmp(word, choices[count].name) == 0) {
            *value = choices[count].value;
            return -1;
        }
        assert(count < MOST);
        names[count] = choices[count].name;
    }
    lilac_text_init(&list);
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_printf(&list, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", names[i]);
    }
    const char *near = lilac_nearest_name(word, strlen(word), names, count);
    const int status = usage_error(command, "%s takes %s, not '%s'%s%s%s", option,
                                   lilac_text_get(&list), word, LILAC_DID_YOU_MEAN(near));
    lilac_text_clear(&list);
    return status;
}

/* ---- help ------------------------------------------------------------------------------- */

enum { HELP_COLUMN = 28 };

static void put_option_help(lilac_text *out, const option_row *option) {
    const size_t start = out->length;
    lilac_text_printf(out, "  %s%s%s", option->brief ? option->brief : "",
                      option->brief ? ", " : "", option->name);
    if (option->value != NULL) {
        lilac_text_printf(out, " %s", option->value);
    }
    size_t width = out->length - start;
    if (width >= HELP_COLUMN) {
        lilac_text_char(out, '\n');
        width = 0;
    }
    for (const char *line = option->help; line != NULL;) {
        const char *end = strchr(line, '\n');
        lilac_text_repeat(out, ' ', HELP_COLUMN - width);
        lilac_text_put(out, line, end != NULL ? (size_t)(end - line) : strlen(line));
        lilac_text_char(out, '\n');
        line = end != NULL ? end + 1 : NULL;
        width = 0;
    }
}

static const option_row help_option = {
    "--help", "-h", OPTION_FLAG, NULL, NULL, "print this and exit",
};

void command_help(const subcommand *command, const option_row *table, lilac_text *out) {
    lilac_text_printf(out, "usage: lilac %s %s\n\n%s\n\noptions:\n", command->name, command->usage,
                      command->help);
    for (const option_row *row = table; row->name != NULL; row++) {
        put_option_help(out, row);
    }
    put_option_help(out, &help_option);
}

int usage_error(const subcommand *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("lilac: error: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (command != NULL) {
        fprintf(stderr, "\nusage: lilac %s %s\n       lilac %s --help says more\n", command->name,
                command->usage, command->name);
    } else {
        fputs("\n       lilac --help lists the subcommands\n", stderr);
    }
    return STATUS_USAGE;
}

/* ---- reading ---------------------------------------------------------------------------- */

static bool names_option(const option_row *option, const char *string, size_t length) {
    const bool full = strlen(option->name) == length && memcmp(option->name, string, length) == 0;
    const bool brief = option->brief != NULL && strlen(option->brief) == length &&
                       memcmp(option->brief, string, length) == 0;
    return full || brief;
}

static int unknown_option(const subcommand *command, const option_row *table, const char *string,
                          size_t length) {
    enum { MOST = 32 };
    const char *names[MOST];
    size_t count = 0;
    names[count++] = help_option.name;
    for (const option_row *row = table; row->name != NULL && count < MOST; row++) {
        names[count++] = row->name;
    }
    char wanted[64];
    const size_t kept = length < sizeof wanted ? length : sizeof wanted - 1;
    memcpy(wanted, string, kept);
    wanted[kept] = '\0';
    const char *near = lilac_nearest_name(wanted, strlen(wanted), names, count);
    if (near != NULL) {
        return usage_error(command, "unknown option '%s'; did you mean '%s'?", wanted, near);
    }
    return usage_error(command, "unknown option '%s'", wanted);
}

/* Other spellings of a whole number get the spelling that is accepted. */
static int number_error(const subcommand *command, const char *option, const char *value) {
    char *end;
    const double number = strtod(value, &end);
    const bool whole = end != value && *end == '\0' && number >= 0 && number < 4294967295.0 &&
                       number == (double)(uint32_t)number;
    if (whole) {
        return usage_error(command, "%s takes a number in decimal digits: %u, not '%s'", option,
                           (uint32_t)number, value);
    }
    return usage_error(command, "%s takes a number from 0 to %u in decimal digits, not '%s'",
                       option, OPTION_NOT_GIVEN - 1, value);
}

static int store_value(const subcommand *command, const option_row *option, const char *value) {
    uint64_t number = 0;
    switch (option->kind) {
    case OPTION_FLAG:
    case OPTION_FLAG_OFF:
        *(bool *)option->where = option->kind == OPTION_FLAG;
        break;
    case OPTION_TEXT:
        *(const char **)option->where = value;
        break;
    case OPTION_TEXTS:
        strings_add(option->where, value);
        break;
    case OPTION_NUMBER:
        if (!read_number(value, OPTION_NOT_GIVEN - 1, &number)) {
            return number_error(command, option->name, value);
        }
        *(uint32_t *)option->where = (uint32_t)number;
        break;
    case OPTION_COUNT:
        if (!read_number(value, UINT64_MAX, &number)) {
            return usage_error(command, "%s takes a number, not '%s'", option->name, value);
        }
        *(uint64_t *)option->where = number;
        break;
    }
    return -1;
}

/* The option of "-oFILE", whose value follows its letter; NULL: there is none. */
static const option_row *find_attached(const option_row *table, const char *string) {
    for (const option_row *row = table; row->name != NULL; row++) {
        const bool flag = row->kind == OPTION_FLAG || row->kind == OPTION_FLAG_OFF;
        if (!flag && row->brief != NULL && string[1] == row->brief[1] && string[2] != '\0') {
            return row;
        }
    }
    return NULL;
}

/* The option at argv[*index]; advances over its value. */
static int read_option(const subcommand *command, const option_row *table, int argc, char **argv,
                       int *index) {
    const char *string = argv[*index];
    const char *equals = strchr(string, '=');
    const size_t length = equals != NULL ? (size_t)(equals - string) : strlen(string);
    const option_row *row = table;
    while (row->name != NULL && !names_option(row, string, length)) {
        row++;
    }
    if (row->name == NULL) {
        row = find_attached(table, string);
        return row != NULL ? store_value(command, row, string + 2)
                           : unknown_option(command, table, string, length);
    }
    const bool flag = row->kind == OPTION_FLAG || row->kind == OPTION_FLAG_OFF;
    if (flag && equals != NULL) {
        return usage_error(command, "%s takes no value", row->name);
    }
    if (flag || equals != NULL) {
        return store_value(command, row, equals != NULL ? equals + 1 : NULL);
    }
    if (*index + 1 >= argc) {
        return usage_error(command, "%s needs a value: %s %s", row->name, row->name, row->value);
    }
    return store_value(command, row, argv[++*index]);
}

int options_read(const subcommand *command, const option_row *table, int argc, char **argv,
                 string_list *operands) {
    for (int i = 1; i < argc; i++) { /* --help at any position prevails over errors */
        if (strcmp(argv[i], "--") == 0) {
            break;
        }
        if (names_option(&help_option, argv[i], strlen(argv[i]))) {
            lilac_text text;
            lilac_text_init(&text);
            command_help(command, table, &text);
            const bool written = file_write(NULL, lilac_text_get(&text), text.length);
            lilac_text_clear(&text);
            return written ? STATUS_DONE : STATUS_REFUSED;
        }
    }
    bool only_operands = false;
    for (int i = 1; i < argc; i++) {
        if (!only_operands && strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (only_operands || argv[i][0] != '-' || argv[i][1] == '\0') {
            strings_add(operands, argv[i]);
        } else {
            const int status = read_option(command, table, argc, argv, &i);
            if (status >= 0) {
                return status;
            }
        }
    }
    return -1;
}

/* ---- the target ------------------------------------------------------------------------- */

void target_options_init(target_options *target) {
    lilac_options defaults;
    lilac_options_init(&defaults);
    *target = (target_options){.num_warps = OPTION_NOT_GIVEN,
                               .num_stages = defaults.target.num_stages,
                               .num_ctas = OPTION_NOT_GIVEN};
}

void target_options_clear(target_options *target) {
    strings_clear(&target->schedules);
}

static bool is_power_of_two(uint32_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

int device_find(const subcommand *command, const lilac_arch **arch, const char *name) {
    lilac_text known;
    if (name == NULL || (*arch = lilac_arch_find(name)) != NULL) {
        return -1;
    }
    lilac_text_init(&known);
    for (size_t i = 0; lilac_arch_at(i) != NULL; i++) {
        lilac_text_printf(&known, "%s%s", i == 0 ? "" : ", ", lilac_arch_at(i)->name);
    }
    const int status = usage_error(command, "--target: there is no device '%s'; known are %s", name,
                                   lilac_text_get(&known));
    lilac_text_clear(&known);
    return status;
}

int target_options_apply(const subcommand *command, const target_options *target,
                         lilac_options *options) {
    const lilac_arch *arch = NULL;
    const int status = device_find(command, &arch, target->target);
    if (status >= 0) {
        return status;
    }
    const uint32_t most = arch != NULL ? arch->max_warps : 32;
    const bool warps = target->num_warps != OPTION_NOT_GIVEN;
    const bool ctas = target->num_ctas != OPTION_NOT_GIVEN;
    if (warps && (!is_power_of_two(target->num_warps) || target->num_warps > most)) {
        return usage_error(command, "--num-warps: %u is no power of two from 1 to %u",
                           target->num_warps, most);
    }
    if (ctas && (!is_power_of_two(target->num_ctas) || target->num_ctas > 16)) {
        return usage_error(command, "--num-ctas: %u is no power of two from 1 to 16",
                           target->num_ctas);
    }
    if (target->num_stages == 0) {
        return usage_error(command, "--num-stages: a pipeline has at least one stage");
    }
    options->target = (lilac_target){.arch = arch,
                                     .num_warps = warps ? target->num_warps : 0,
                                     .num_ctas = ctas ? target->num_ctas : 0,
                                     .num_stages = target->num_stages,
                                     .launch_maps = target->launch_maps,
                                     .split_sums = target->split_sums,
                                     .keep_warps = target->keep_warps,
                                     .keep_order = target->keep_order,
                                     .one_block = target->one_block};
    options->schedules = target->schedules.list;
    options->schedule_count = target->schedules.count;
    return -1;
}
