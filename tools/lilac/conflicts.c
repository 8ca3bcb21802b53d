/* lilac conflicts: wavefronts of storing a tensor in shared memory, or loading it from there.
 *
 * Each pair is answered twice, by the formula of `movement` and by a kernel on the simulator that
 * stores the tensor and looks at what memory then holds; where they differ, the exit status says
 * so. Pairs on standard input are one source text with a tab between the two types of a line, read
 * by holding the scanner's end at the tab and at the end of the line.
 */
#include "simulate.h"

#include <stdio.h>
#include <string.h>

typedef struct conflicts_answers {
    bool json;
    bool refused;           /* any of them */
    bool disagree;          /* any simulation with its formula */
    const lilac_arch *arch; /* NULL: by the tensor's lanes */
    lilac_text text;
} conflicts_answers;

/* One line's pair: two ranges of the source that the scanner reads. */
typedef struct conflicts_pair {
    lilac_encoding_tensor tensor;
    lilac_encoding_memdesc memory;
    lilac_position memory_position;
    const char *tensor_text, *memory_text;
    size_t tensor_length, memory_length;
    const lilac_arch *arch;
    lilac_movement_access access;
    simulated_access simulated;
} conflicts_pair;

/* ---- one pair --------------------------------------------------------------------------- */

static bool at_end(lilac_scanner *scanner) {
    return scanner->kind == LILAC_TOKEN_END ||
           lilac_scanner_expected(scanner, "the end of the type");
}

static bool read_tensor(lilac_scanner *scanner, conflicts_pair *pair) {
    return lilac_encoding_read_tensor(scanner, NULL, &pair->tensor) && at_end(scanner);
}

static bool read_memory(lilac_scanner *scanner, conflicts_pair *pair) {
    pair->memory_position = lilac_scanner_position(scanner);
    return lilac_encoding_read_memdesc(scanner, NULL, &pair->memory) && at_end(scanner);
}

static bool refuse(lilac_context *context, const conflicts_pair *pair, const char *id,
                   const char *text) {
    lilac_error(context, pair->memory_position, 0, id, "%s", text);
    return false;
}

/* A device whose warps have the tensor's lanes, unless one was named. */
static const lilac_arch *choose_arch(const conflicts_answers *answers, const lilac_layout *layout) {
    if (answers->arch != NULL) {
        return answers->arch;
    }
    return lilac_arch_find(lilac_layout_in_bits(layout, "lane") == 6 ? "gfx942" : "sm_90a");
}

static uint32_t element_bits(lilac_scalar scalar) {
    return scalar == LILAC_TF32 ? 32 : lilac_scalar_bits(scalar);
}

static void padding_of(lilac_movement_padding *padding, const lilac_encoding *encoding) {
    *padding = (lilac_movement_padding){0};
    if (encoding->kind != LILAC_ENCODING_PADDED_SHARED) {
        return;
    }
    for (uint32_t i = 0; i < encoding->as.padded_shared.count; i++) {
        padding->interval[i] = encoding->as.padded_shared.interval[i];
        padding->padding[i] = encoding->as.padded_shared.padding[i];
    }
    padding->count = encoding->as.padded_shared.count;
}

static bool work_out(conflicts_answers *answers, lilac_context *context, conflicts_pair *pair) {
    lilac_reason why;
    if (pair->tensor.pointers || pair->tensor.scalar != pair->memory.scalar) {
        return refuse(context, pair, "element-types-differ",
                      "the memory's elements are not of the tensor's type");
    }
    pair->arch = choose_arch(answers, &pair->tensor.layout);
    lilac_movement_padding padding;
    padding_of(&padding, pair->memory.encoding);
    if (!lilac_movement_access_init_padded(&pair->access, &pair->tensor.layout,
                                           &pair->memory.layout, &padding,
                                           element_bits(pair->tensor.scalar), pair->arch, &why)) {
        return refuse(context, pair, "no-shared-access", why.text);
    }
    return simulate_access(&pair->simulated, context, &pair->access, &pair->tensor.layout,
                           &pair->memory.layout, pair->arch);
}

static bool agrees(const conflicts_pair *pair) {
    return pair->simulated.correct && pair->simulated.wavefronts == pair->access.wavefronts &&
           pair->simulated.instructions == pair->access.instructions;
}

/* ---- the table -------------------------------------------------------------------------- */

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

static uint32_t words_of_lane(const conflicts_pair *pair) {
    const uint32_t bytes = pair->access.element_bytes << pair->access.vector_bits;
    return bytes > pair->arch->bank_bytes ? bytes / pair->arch->bank_bytes : 1;
}

static uint64_t word_of_lane(const conflicts_pair *pair, uint32_t lane) {
    return lilac_movement_access_offset(&pair->access, 0, lane, 0) * pair->access.element_bytes /
           pair->arch->bank_bytes;
}

/* The lanes that share one word of the bank, joined by +, and the word's byte address. */
static void put_word(lilac_text *out, const conflicts_pair *pair, uint32_t first, uint64_t word) {
    bool joined = false;
    for (uint32_t lane = first; lane < pair->access.transaction_lanes; lane++) {
        if (word_of_lane(pair, lane) == word) {
            lilac_text_printf(out, "%s%u", joined ? "+" : "", lane);
            joined = true;
        }
    }
    lilac_text_printf(out, "@%llu", (unsigned long long)(word * pair->arch->bank_bytes));
}

/* Whether a lane before this one accesses the same word: its word is listed there. */
static bool listed(const conflicts_pair *pair, uint32_t lane) {
    for (uint32_t before = 0; before < lane; before++) {
        if (word_of_lane(pair, before) == word_of_lane(pair, lane)) {
            return true;
        }
    }
    return false;
}

/* A row for each bank at which vectors start; the next banks of the vectors are alike. */
static void put_banks(lilac_text *out, const conflicts_pair *pair) {
    const uint32_t words = words_of_lane(pair);
    lilac_text_printf(
        out,
        "\nthe first transaction, lanes 0 to %u: those in one row wait for each other\n"
        "(lane@byte address; lanes joined by + share a word)\n",
        pair->access.transaction_lanes - 1);
    for (uint32_t bank = 0; bank < pair->arch->banks; bank += words) {
        bool any = false;
        for (uint32_t lane = 0; lane < pair->access.transaction_lanes; lane++) {
            if (word_of_lane(pair, lane) % pair->arch->banks != bank || listed(pair, lane)) {
                continue;
            }
            if (!any && words > 1) {
                lilac_text_printf(out, "  banks %2u-%-2u ", bank, bank + words - 1);
            } else if (!any) {
                lilac_text_printf(out, "  bank %2u ", bank);
            }
            lilac_text_puts(out, "  ");
            put_word(out, pair, lane, word_of_lane(pair, lane));
            any = true;
        }
        if (any) {
            lilac_text_char(out, '\n');
        }
    }
}

static void put_table(lilac_text *out, const conflicts_pair *pair) {
    const lilac_movement_access *a = &pair->access;
    const uint64_t least = a->instructions * a->transactions;
    const uint32_t elements = 1U << a->vector_bits;
    lilac_text_put(out, pair->tensor_text, pair->tensor_length);
    lilac_text_puts(out, "\nin ");
    lilac_text_put(out, pair->memory_text, pair->memory_length);
    lilac_text_printf(out, "\non %s, %u banks of %u bytes\n\n", pair->arch->name, pair->arch->banks,
                      pair->arch->bank_bytes);
    lilac_text_printf(out, "  a thread        %llu instruction%s of %u element%s, %u byte%s\n",
                      1ULL << a->step_bits, plural(1ULL << a->step_bits), elements,
                      plural(elements), a->element_bytes * elements,
                      plural(a->element_bytes * elements));
    lilac_text_printf(out, "  an instruction  %u transaction%s of %u lanes\n", a->transactions,
                      plural(a->transactions), a->transaction_lanes);
    lilac_text_printf(out, "  a transaction   %s%u wavefront%s: %u conflict%s\n",
                      a->padding.count == 0 ? "" : "at most ", a->transaction_wavefronts,
                      plural(a->transaction_wavefronts), a->conflicts, plural(a->conflicts));
    lilac_text_printf(
        out, "  %2u warp%s        %llu instruction%s, %llu wavefront%s; without conflicts %llu\n",
        1U << a->warp_bits, a->warp_bits == 0 ? " " : "s", (unsigned long long)a->instructions,
        plural(a->instructions), (unsigned long long)a->wavefronts, plural(a->wavefronts),
        (unsigned long long)least);
    lilac_text_printf(out, "  simulated       %llu wavefront%s\n",
                      (unsigned long long)pair->simulated.wavefronts,
                      plural(pair->simulated.wavefronts));
    if (a->conflicts > 0) {
        put_banks(out, pair);
    }
}

static void put_json(lilac_text *out, const conflicts_pair *pair) {
    lilac_text_printf(out,
                      "{\"instructions\": %llu, \"wavefronts\": %llu, \"conflicts\": %u, "
                      "\"simulated_wavefronts\": %llu}\n",
                      (unsigned long long)pair->access.instructions,
                      (unsigned long long)pair->access.wavefronts, pair->access.conflicts,
                      (unsigned long long)pair->simulated.wavefronts);
}

static void put_disagreement(const conflicts_pair *pair) {
    if (!pair->simulated.correct) {
        fprintf(stderr,
                "lilac: the simulated stores left another element at offset %llu than the memory's "
                "layout has there\n",
                (unsigned long long)pair->simulated.wrong_offset);
        return;
    }
    fprintf(stderr,
            "lilac: the simulation counted %llu instructions and %llu wavefronts, the formula %llu "
            "and %llu\n",
            (unsigned long long)pair->simulated.instructions,
            (unsigned long long)pair->simulated.wavefronts,
            (unsigned long long)pair->access.instructions,
            (unsigned long long)pair->access.wavefronts);
}

/* ---- all of them ------------------------------------------------------------------------ */

/* The answer to a pair that was read or not; its diagnostics are in the context. */
static void answer(conflicts_answers *answers, lilac_context *context, conflicts_pair *pair,
                   bool read) {
    if (!read || lilac_error_count(context) != 0 || !work_out(answers, context, pair)) {
        lilac_text_puts(&answers->text, "null\n");
        answers->refused = true;
    } else {
        if (answers->json) {
            put_json(&answers->text, pair);
        } else {
            put_table(&answers->text, pair);
        }
        if (!agrees(pair)) {
            put_disagreement(pair);
            answers->disagree = true;
        }
    }
    print_diagnostics(context);
}

static bool open_argument(lilac_scanner *scanner, lilac_context *context, const char *text,
                          uint32_t number) {
    char name[32];
    snprintf(name, sizeof name, "<argument %u>", number);
    const uint32_t source = lilac_source_add(context, name, text, strlen(text));
    if (source != 0) {
        lilac_scanner_init(scanner, context, source);
    }
    return source != 0;
}

static void answer_arguments(conflicts_answers *answers, const char *tensor, const char *memory) {
    lilac_context *context = lilac_context_create();
    conflicts_pair pair = {.tensor_text = tensor,
                           .tensor_length = strlen(tensor),
                           .memory_text = memory,
                           .memory_length = strlen(memory)};
    lilac_scanner scanner;
    bool read = open_argument(&scanner, context, tensor, 1) && read_tensor(&scanner, &pair);
    read = open_argument(&scanner, context, memory, 2) && read_memory(&scanner, &pair) && read;
    answer(answers, context, &pair, read);
    lilac_context_destroy(context);
}

static void refuse_rest(void *data, lilac_context *context) {
    conflicts_answers *answers = data;
    lilac_text_puts(&answers->text, "null\n");
    answers->refused = true;
    print_diagnostics(context);
}

static void answer_line(void *data, lilac_scanner *scanner, size_t start, size_t end) {
    const char *line = scanner->text + start, *tab = memchr(line, '\t', end - start);
    conflicts_pair pair = {.tensor_text = line};
    bool read = false;
    if (tab == NULL) {
        scanner_hold(scanner, start, end);
        lilac_error(scanner->context, lilac_scanner_position(scanner), 0, "pair-expected",
                    "expected two types with a tab between them");
    } else {
        const size_t middle = start + (size_t)(tab - line);
        pair.tensor_length = middle - start;
        pair.memory_text = tab + 1;
        pair.memory_length = end - middle - 1;
        scanner_hold(scanner, start, middle);
        read = read_tensor(scanner, &pair);
        scanner_hold(scanner, middle + 1, end);
        read = read_memory(scanner, &pair) && read;
    }
    answer(data, scanner->context, &pair, read);
}

static int answer_all(conflicts_answers *answers, const string_list *types) {
    bool good = true;
    if (types->count == 1) {
        good = each_line(&(line_answers){answer_line, refuse_rest}, answers);
    } else {
        answer_arguments(answers, types->list[0], types->list[1]);
    }
    good &= file_write(NULL, lilac_text_get(&answers->text), answers->text.length);
    if (answers->disagree) {
        return STATUS_CHECK;
    }
    return good && !answers->refused ? STATUS_DONE : STATUS_REFUSED;
}

static int check_operands(const subcommand *command, const string_list *types) {
    if (types->count == 2 || (types->count == 1 && strcmp(types->list[0], "-") == 0)) {
        return -1;
    }
    return usage_error(command, "a tensor type and a memdesc type, or - for pairs of them");
}

static int conflicts_run(const subcommand *command, int argc, char **argv) {
    conflicts_answers answers = {0};
    const char *target = NULL;
    string_list types = {0};
    const option_row table[] = {
        {"--json", NULL, OPTION_FLAG, &answers.json, NULL,
         "one JSON value a pair: {\"instructions\": n, \"wavefronts\": n,\n"
         "\"conflicts\": n, \"simulated_wavefronts\": n}"},
        {"--target", NULL, OPTION_TEXT, &target, "DEVICE",
         "whose shared memory (sm_90a; gfx942 for tensors with 64 lanes a warp)"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &types);
    if (status < 0 && target != NULL && (answers.arch = lilac_arch_find(target)) == NULL) {
        status = usage_error(command, "--target: there is no device '%s'", target);
    }
    if (status < 0) {
        status = check_operands(command, &types);
    }
    if (status < 0) {
        status = answer_all(&answers, &types);
    }
    strings_clear(&types);
    lilac_text_clear(&answers.text);
    return status;
}

const subcommand conflicts_command = {
    .name = "conflicts",
    .usage = "TYPE MEMDESC [--json] [--target DEVICE]",
    .summary = "bank conflicts of a tensor in shared memory",
    .help = "Counts the wavefronts of storing a tensor in shared memory, which are also those of\n"
            "loading it, by formula and on the simulator. Instructions and wavefronts are of all\n"
            "the warps of a block; conflicts are the wavefronts of a transaction (a whole\n"
            "instruction, unless its lanes take more than one word a bank) beyond the first.\n"
            "- instead of the types stands for standard input, one pair a line with a tab between\n"
            "the two. A pair that is refused answers null, and the exit status is 1; it is 3 when\n"
            "the simulation of a pair and the formula disagree.",
    .run = conflicts_run,
};
