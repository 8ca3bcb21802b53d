/* lilac conflicts: wavefronts of storing a tensor in shared memory, or loading it from there.
 *
 * Each pair is computed twice: by the formula of the component `plan`, and by a kernel on the
 * simulator that stores the tensor and checks the contents of memory. If they differ, the exit
 * status is 3.
 */
#include "simulate.h"
#include "types.h"

#include <stdio.h>
#include <string.h>

typedef struct conflicts_answers {
    pair_answers all; /* they disagree: a simulation with its formula */
    bool json;
    const lilac_arch *arch; /* NULL: by the tensor's lanes */
} conflicts_answers;

typedef struct conflicts_pair {
    const type_pair *types;
    const lilac_arch *arch;
    lilac_plan_access access;
    simulated_access simulated;
} conflicts_pair;

/* ---- one pair --------------------------------------------------------------------------- */

/* Larger numbers become one that is no power of two, which is refused. */
static uint32_t clamp(uint64_t number) {
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static void padding_of(lilac_plan_padding *padding, const laid_out_type *memory) {
    *padding = (lilac_plan_padding){.count = memory->padding_count};
    for (uint32_t i = 0; i < memory->padding_count; i++) {
        padding->interval[i] = clamp(memory->padding[i].interval);
        padding->padding[i] = clamp(memory->padding[i].padding);
    }
}

static bool check_types(lilac_context *context, const type_pair *types) {
    const laid_out_type *tensor = &types->type[0], *memory = &types->type[1];
    if (!type_is_distributed(tensor)) {
        return pair_refuse(context, types, 0, "layout-of-memory",
                           "expected a tensor that registers, lanes and warps hold");
    }
    if (type_is_distributed(memory)) {
        return pair_refuse(context, types, 1, "layout-of-tensor", "expected memory's layout");
    }
    /* A layout that is written out is one of elements of any type. */
    return memory->element_bits == 0 || pair_same_elements(context, types);
}

static bool work_out(conflicts_answers *answers, lilac_context *context, conflicts_pair *pair) {
    const laid_out_type *tensor = &pair->types->type[0], *memory = &pair->types->type[1];
    lilac_reason why;
    if (!check_types(context, pair->types)) {
        return false;
    }
    pair->arch = answers->arch != NULL ? answers->arch : type_device(tensor);
    lilac_plan_padding padding;
    padding_of(&padding, memory);
    if (!lilac_plan_access_init_padded(&pair->access, &tensor->layout, &memory->layout, &padding,
                                       tensor->element_bits, pair->arch, &why)) {
        return pair_refuse(context, pair->types, 1, "no-shared-access", why.text);
    }
    return simulate_access(&pair->simulated, context, &pair->access, &tensor->layout,
                           &memory->layout, pair->arch);
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
    return lilac_plan_access_offset(&pair->access, 0, lane, 0) * pair->access.element_bytes /
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

/* One row for each bank at which vectors start; the other banks of the vectors have the same
 * lanes. */
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
    const lilac_plan_access *a = &pair->access;
    const uint64_t least = a->instructions * a->transactions;
    const uint32_t elements = 1U << a->vector_bits;
    put_pair_place(out, pair->types);
    lilac_text_put(out, pair->types->text[0], pair->types->length[0]);
    lilac_text_puts(out, "\nin ");
    lilac_text_put(out, pair->types->text[1], pair->types->length[1]);
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

static void answer(void *data, lilac_context *context, const type_pair *types) {
    conflicts_answers *answers = data;
    conflicts_pair pair = {.types = types};
    if (types == NULL || !work_out(answers, context, &pair)) {
        pair_refused(&answers->all);
        return;
    }
    (answers->json ? put_json : put_table)(&answers->all.text, &pair);
    if (!agrees(&pair)) {
        put_disagreement(&pair);
        answers->all.disagree = true;
    }
}

/* The tensor and the memory of an access to shared memory. Asynchronous copies have no tensor: their
 * elements come from global memory. */
static bool pair_of_access(const lilac_tile_op *op, const lilac_tile_type *types[2]) {
    lilac_tile_value *memory, *tensor;
    if (!lilac_tile_shared_access((lilac_tile_op *)(uintptr_t)op, &memory, &tensor) ||
        lilac_tile_is_pointer(tensor->type)) {
        return false;
    }
    types[0] = tensor->type;
    types[1] = memory->type;
    return true;
}

static int conflicts_run(const subcommand *command, int argc, char **argv) {
    conflicts_answers answers = {0};
    const char *target = NULL;
    type_scope scope = {0};
    string_list types = {0};
    const option_row table[] = {
        {"--json", NULL, OPTION_FLAG, &answers.json, NULL,
         "one JSON value a pair: {\"instructions\": n, \"wavefronts\": n,\n"
         "\"conflicts\": n, \"simulated_wavefronts\": n}"},
        TYPE_SCOPE_ROWS(scope),
        {"--target", NULL, OPTION_TEXT, &target, "DEVICE",
         "whose shared memory (sm_90a; gfx942 for tensors with 64 lanes a warp)"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &types);
    if (status < 0) {
        status = device_find(command, &answers.arch, target);
    }
    if (status < 0) {
        status = type_scope_check(command, &scope);
    }
    if (status < 0) {
        const pair_source source = {"a tensor type and a layout of memory", pair_of_access, &scope};
        status = pairs_run(command, &types, &source, answer, &answers);
    }
    strings_clear(&types);
    type_scope_clear(&scope);
    lilac_text_clear(&answers.all.text);
    return status;
}

const subcommand conflicts_command = {
    .name = "conflicts",
    .usage = "TYPE MEMORY|FILE [--json] [--target DEVICE]",
    .summary = "bank conflicts of a tensor in shared memory",
    .help =
        "Counts the wavefronts of storing a tensor in shared memory, which are also those of\n"
        "loading it, by formula and on the simulator. Instructions and wavefronts are of all\n"
        "the warps of a block; conflicts are the wavefronts of a transaction (a whole\n"
        "instruction, unless its lanes take more than one word a bank) beyond the first.\n"
        "MEMORY is a memdesc type, a CuTe layout such as (32,32):(32,1), or a form of memory\n"
        "such as row_major, as `lilac layout` takes them.\n"
        "Instead of the types a file, or - for standard input, gives one pair a line with a tab\n"
        "between the two, or is a TTGIR module, each of whose accesses to shared memory\n"
        "(ttg.local_alloc with a value, ttg.local_load, ttg.local_store) is a pair. A pair that\n"
        "is refused answers null, and the exit status is 1; it is 3 when\n"
        "the simulation of a pair and the formula disagree.",
    .run = conflicts_run,
};
