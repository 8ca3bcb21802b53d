/* The reader's regions, blocks and names; see read_module.c for the whole of it.
 *
 *   region   { operations  ^name(%a: type, …): operations … }
 *
 * Names map to values through one hash table; a scope that ends takes its names out. A name that is
 * visible cannot be defined again.
 *
 * After an error the reader goes on at the next operation: the next token that begins a line and
 * stands where as many brackets are open as where the bad operation began. The bad one's results
 * keep their names, so that their uses are not reported as well.
 */
#include "internal.h"

#include <string.h>

/* What a name means: `count` values of one operation, or a definition that was wrong (NULL). */
typedef struct binding {
    lilac_tile_value *first;
    uint32_t count;
    bool defined;
} binding;

typedef struct tile_label {
    lilac_name name;
    lilac_tile_block *block;
    lilac_position position; /* of the first use */
    bool defined;
} label;

/* ---- values ----------------------------------------------------------------------------- */

void tile_scope_open(tile_reader *reader, uint32_t *mark) {
    *mark = reader->log_count;
}

void tile_scope_close(tile_reader *reader, uint32_t mark) {
    while (reader->log_count > mark) {
        binding *b = tile_table_get(&reader->values, reader->log[--reader->log_count]);
        b->defined = false;
    }
}

bool tile_define_value(tile_reader *reader, lilac_name name, lilac_position position,
                       lilac_tile_value *value, uint32_t count) {
    binding **slot = (binding **)tile_table_at(&reader->values, name);
    if (!*slot) {
        *slot = lilac_arena_new(reader->scratch, binding);
    }
    if ((*slot)->defined) {
        if (!value) {
            return false; /* what comes from a bad operation says no more */
        }
        return tile_fail(reader, position, "redefinition", "'%%%s' is defined twice", name);
    }
    **slot = (binding){value, count, true};
    if (reader->log_count == reader->log_capacity) {
        reader->log_capacity = reader->log_capacity ? reader->log_capacity * 2 : 256;
        reader->log = lilac_heap_grow(reader->log, sizeof *reader->log * reader->log_capacity);
    }
    reader->log[reader->log_count++] = name;
    return true;
}

/* Numbers are what printing gives to values without a name. */
lilac_name tile_kept_name(lilac_name name) {
    bool digit = name[0] >= '0' && name[0] <= '9';
    return digit && strspn(name, "0123456789") == strlen(name) ? NULL : name;
}

bool tile_read_operand(tile_reader *reader, tile_operands *operands) {
    lilac_scanner *scan = &reader->scan;
    tile_operand operand = {.position = lilac_scanner_position(scan)};
    if (scan->kind != LILAC_TOKEN_VALUE) {
        return lilac_scanner_expected(scan, "a value");
    }
    lilac_name name = tile_token_name(reader);
    lilac_scanner_next(scan);
    binding *b = tile_table_get(&reader->values, name);
    if (!b || !b->defined) {
        return tile_fail(reader, operand.position, "undefined-value", "'%%%s' is not defined",
                         name);
    }
    uint64_t index = 0;
    if (scan->kind == LILAC_TOKEN_HASH && scan->offset == scan->previous_end) {
        for (uint32_t i = 0; i < scan->word_length; i++) {
            if (scan->word[i] < '0' || scan->word[i] > '9' || index > UINT32_MAX) {
                return lilac_scanner_expected(scan, "a result's number");
            }
            index = index * 10 + (uint64_t)(scan->word[i] - '0');
        }
        lilac_scanner_next(scan);
    }
    if (!b->first) {
        reader->failed = true;
        return false;
    }
    if (index >= b->count) {
        return tile_fail(reader, operand.position, "undefined-value",
                         "'%%%s#%llu' is not defined: it has %u results", name,
                         (unsigned long long)index, b->count);
    }
    operand.value = b->first + index;
    tile_operands_push(reader, operands, operand);
    return true;
}

bool tile_read_operands(tile_reader *reader, tile_operands *operands) {
    if (reader->scan.kind != LILAC_TOKEN_VALUE) {
        return true;
    }
    do {
        if (!tile_read_operand(reader, operands)) {
            return false;
        }
    } while (lilac_scanner_accept(&reader->scan, ','));
    return true;
}

bool tile_check_operand(tile_reader *reader, const tile_draft *draft, uint32_t index,
                        const lilac_tile_type *type) {
    const tile_operand *operand = &draft->operands.list[index];
    if (operand->value->type == type) {
        return true;
    }
    return tile_fail(reader, operand->position, "type-mismatch",
                     "operand %u of '%s' has type '%s', but '%s' is needed here", index + 1,
                     lilac_tile_op_info_get(draft->code)->name,
                     tile_type_text(reader->module, operand->value->type),
                     tile_type_text(reader->module, type));
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* Labels of one region: the part of the list from its first label on. */
static label *find_label(tile_reader *reader, lilac_name name) {
    for (uint32_t i = reader->label_base; i < reader->label_count; i++) {
        if (reader->labels[i].name == name) {
            return &reader->labels[i];
        }
    }
    if (reader->label_count - reader->label_base >= 1024) {
        return NULL;
    }
    if (reader->label_count == reader->label_capacity) {
        reader->label_capacity = reader->label_capacity ? reader->label_capacity * 2 : 16;
        reader->labels =
            lilac_heap_grow(reader->labels, sizeof *reader->labels * reader->label_capacity);
    }
    label *fresh = &reader->labels[reader->label_count++];
    *fresh = (label){.name = name, .block = tile_block_create(reader->module)};
    fresh->block->name = name;
    return fresh;
}

lilac_tile_block *tile_use_label(tile_reader *reader, lilac_name name, lilac_position position) {
    label *found = find_label(reader, name);
    if (!found) {
        (void)tile_fail(reader, position, "too-many-blocks", "more than 1024 blocks in one region");
        return NULL;
    }
    if (!found->defined && !found->position.source) {
        found->position = position;
    }
    return found->block;
}

bool tile_check_parameter_attributes(tile_reader *reader, const lilac_tile_attributes *attributes,
                                     lilac_position position) {
    for (uint32_t i = 0; i < attributes->count; i++) {
        if (!strchr(attributes->list[i].name, '.')) {
            return tile_fail(reader, position, "bad-attribute",
                             "attribute '%s' of a parameter is of no dialect: its name needs a "
                             "prefix, as 'tt.%s'",
                             attributes->list[i].name, attributes->list[i].name);
        }
    }
    return true;
}

bool tile_read_arguments(tile_reader *reader, lilac_tile_block *block,
                         lilac_tile_attributes **attributes, bool *unnamed) {
    lilac_scanner *scan = &reader->scan;
    uint32_t capacity = 0;
    if (lilac_scanner_accept(scan, ')')) {
        return true;
    }
    do {
        lilac_position position = lilac_scanner_position(scan);
        lilac_name name = NULL;
        if (scan->kind == LILAC_TOKEN_VALUE) {
            name = tile_token_name(reader);
            lilac_scanner_next(scan);
            if (!lilac_scanner_expect(scan, ':')) {
                return false;
            }
        } else if (unnamed) {
            *unnamed = true;
        } else {
            return lilac_scanner_expected(scan, "an argument's name");
        }
        const lilac_tile_type *type = tile_read_type(reader);
        if (!type) {
            return false;
        }
        lilac_tile_value *value = lilac_tile_add_argument(reader->module, block, type,
                                                          name ? tile_kept_name(name) : NULL, 0);
        lilac_tile_attributes own = {0};
        if (attributes) {
            lilac_position place = lilac_scanner_position(&reader->scan);
            if (!tile_read_dictionary(reader, &own) ||
                !tile_check_parameter_attributes(reader, &own, place)) {
                return false;
            }
            if (value->index == capacity) {
                capacity = capacity ? capacity * 2 : 8;
                lilac_tile_attributes *list =
                    lilac_arena_array(reader->module->arena, lilac_tile_attributes, capacity);
                if (value->index) {
                    memcpy(list, *attributes, sizeof *list * value->index);
                }
                *attributes = list;
            }
            (*attributes)[value->index] = own;
        }
        if (!tile_read_location(reader, &value->location) ||
            (name && !tile_define_value(reader, name, position, value, 1))) {
            return false;
        }
    } while (lilac_scanner_accept(scan, ','));
    return lilac_scanner_expect(scan, ')');
}

/* ---- recovery --------------------------------------------------------------------------- */

static bool begins_line(const lilac_scanner *scan) {
    uint32_t at = scan->offset;
    while (at > 0 && (scan->text[at - 1] == ' ' || scan->text[at - 1] == '\t')) {
        at--;
    }
    return at == 0 || scan->text[at - 1] == '\n';
}

static int bracket_change(char c) {
    return (c == '{' || c == '(' || c == '[') - (c == '}' || c == ')' || c == ']');
}

/* Brackets left open by the bytes from `begin` to `end`, which have been scanned before: so that
 * nothing is reported twice, bytes are looked at here and not tokens. */
static int open_brackets(const lilac_scanner *scan, uint32_t begin, uint32_t end) {
    int open = 0;
    for (uint32_t at = begin; at < end; at++) {
        char c = scan->text[at];
        if (c == '"') {
            for (at++; at < end && scan->text[at] != '"' && scan->text[at] != '\n'; at++) {
                at += scan->text[at] == '\\';
            }
        } else if (c == '/' && at + 1 < end && scan->text[at + 1] == '/') {
            while (at < end && scan->text[at] != '\n') {
                at++;
            }
        } else {
            open += bracket_change(c);
        }
    }
    return open > 0 ? open : 0;
}

void tile_skip_operation(tile_reader *reader, uint32_t begin) {
    lilac_scanner *scan = &reader->scan;
    int open = open_brackets(scan, begin, scan->offset);
    if (scan->offset == begin && scan->kind != LILAC_TOKEN_END) {
        open += bracket_change(scan->punctuation);
        lilac_scanner_next(scan);
    }
    while (scan->kind != LILAC_TOKEN_END) {
        int change = bracket_change(scan->punctuation);
        if (open <= 0 && (begins_line(scan) || (change < 0 && scan->punctuation == '}'))) {
            return;
        }
        open += change;
        lilac_scanner_next(scan);
    }
}

/* ---- regions ---------------------------------------------------------------------------- */

static bool read_block_label(tile_reader *reader, lilac_tile_block **block) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    lilac_name name = tile_token_name(reader);
    lilac_scanner_next(scan);
    label *found = find_label(reader, name);
    if (!found) {
        return tile_fail(reader, position, "too-many-blocks",
                         "more than 1024 blocks in one region");
    }
    if (found->defined) {
        return tile_fail(reader, position, "redefinition", "'^%s' is defined twice", name);
    }
    found->defined = true;
    *block = found->block;
    if (lilac_scanner_accept(scan, '(') && !tile_read_arguments(reader, *block, NULL, NULL)) {
        return false;
    }
    return lilac_scanner_expect(scan, ':');
}

static void read_block(tile_reader *reader, lilac_tile_block *block) {
    lilac_scanner *scan = &reader->scan;
    while (scan->kind != LILAC_TOKEN_END && scan->kind != LILAC_TOKEN_BLOCK &&
           !lilac_scanner_is(scan, '}')) {
        uint32_t begin = scan->offset;
        tile_result_names names = {0};
        reader->failed = false;
        uint32_t before = lilac_error_count(reader->context);
        if (tile_read_op(reader, block, &names)) {
            continue;
        }
        if (!reader->failed && lilac_error_count(reader->context) == before &&
            scan->kind != LILAC_TOKEN_ERROR) {
            (void)lilac_scanner_expected(scan, "an operation");
        }
        reader->bad = true;
        tile_skip_operation(reader, begin);
        tile_define_results(reader, &names, NULL);
    }
}

static bool check_labels(tile_reader *reader, uint32_t begin) {
    bool good = true;
    for (uint32_t i = begin; i < reader->label_count; i++) {
        if (!reader->labels[i].defined) {
            (void)tile_fail(reader, reader->labels[i].position, "undefined-block",
                            "'^%s' is not defined", reader->labels[i].name);
            good = false;
        }
    }
    return good;
}

static bool read_blocks(tile_reader *reader, lilac_tile_region *region, lilac_tile_block *entry) {
    lilac_scanner *scan = &reader->scan;
    lilac_tile_block **end = &region->first;
    lilac_tile_block *block = entry;
    if (!block && !lilac_scanner_is(scan, '}') && scan->kind != LILAC_TOKEN_BLOCK) {
        block = tile_block_create(reader->module);
    }
    for (;;) {
        if (block) {
            block->parent = region;
            *end = block;
            end = &block->next;
            read_block(reader, block);
            block = NULL;
        }
        if (scan->kind != LILAC_TOKEN_BLOCK) {
            break;
        }
        if (!read_block_label(reader, &block)) {
            return false;
        }
    }
    return lilac_scanner_expect(scan, '}');
}

/* The limit, asked for when `depth` regions are open, which have taken some of the stack. */
static uint32_t nesting_limit(uint32_t depth) {
    uint32_t limit = lilac_nesting_limit() + depth / 2;
    return limit < LILAC_MAX_NESTING ? limit : LILAC_MAX_NESTING;
}

bool tile_read_region(tile_reader *reader, lilac_tile_region *region, lilac_tile_block *entry) {
    if (reader->depth >= LILAC_MIN_NESTING && reader->deepest == 0) {
        reader->deepest = nesting_limit(reader->depth);
    }
    if (reader->depth >= LILAC_MIN_NESTING && reader->depth >= reader->deepest) {
        return tile_fail(reader, lilac_scanner_position(&reader->scan), "nested-too-deep",
                         "this region is inside %u others; %u levels are the most for the stack of "
                         "this thread",
                         reader->depth, reader->deepest);
    }
    if (!lilac_scanner_expect(&reader->scan, '{')) {
        return false;
    }
    uint32_t mark, labels = reader->label_count, base = reader->label_base;
    tile_scope_open(reader, &mark);
    reader->label_base = labels;
    reader->depth++;
    bool good = read_blocks(reader, region, entry);
    good = check_labels(reader, labels) && good;
    reader->depth--;
    reader->label_count = labels;
    reader->label_base = base;
    tile_scope_close(reader, mark);
    return good;
}
