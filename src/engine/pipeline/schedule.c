/* schedule: the text of a schedule, and the attributes of loops that have it (lilac/schedule.h). */
#include "pipeline/schedule.h"

#include <stdlib.h>
#include <string.h>

/* A key is a number from 1 to `most`, or one of `words`. */
typedef struct key_row {
    const char *name;
    const char *words[4];
    uint32_t most;
} key_row;

/* clang-format off */
static const key_row rows[LILAC_SCHEDULE_KEYS] = {
    /*                            name         words                                       most */
    [LILAC_SCHEDULE_PRODUCTS]  = {"products",  {"wait", "overlap", "in_flight", "delay"},    3},
    [LILAC_SCHEDULE_ROTATE]    = {"rotate",    {"no", "yes"},                                1},
    [LILAC_SCHEDULE_COPIES]    = {"copies",    {"first", "behind", "last"},                  2},
    [LILAC_SCHEDULE_DISTANCE]  = {"distance",  {NULL},                                      32},
    [LILAC_SCHEDULE_BUFFERS]   = {"buffers",   {NULL},                                      34},
    [LILAC_SCHEDULE_LATE]      = {"late",      {"no", "yes"},                                1},
    [LILAC_SCHEDULE_MULTICAST] = {"multicast", {"no", "yes"},                                1},
    [LILAC_SCHEDULE_PRODUCER]  = {"producer",  {"no", "yes"},                                1},
    [LILAC_SCHEDULE_REGISTERS] = {"registers", {NULL},                                     232},
    [LILAC_SCHEDULE_DECOUPLE]  = {"decouple",  {"no", "yes"},                                1},
};
/* clang-format on */

/* What a schedule of a pass of its own needs; NULL: that pass says what is wrong. */
static const char *needs_of(lilac_schedule_key key) {
    switch (key) {
    case LILAC_SCHEDULE_ROTATE:
        return "what is rotated is computed by pure operations from loads, and the loop does not "
               "write";
    case LILAC_SCHEDULE_PRODUCER:
        return "a producer needs tensor copies for all loads, 4 or 8 warps, and a loop that is in "
               "a "
               "loop over tiles or in none";
    case LILAC_SCHEDULE_DECOUPLE:
        return "warps are decoupled in loops with delayed products, copies by threads, 8 warps or "
               "more, and no other barriers";
    default:
        return NULL;
    }
}

static const char RECORD[] = "lilac.schedule", ASKED[] = "lilac.asked_schedule";

const char *lilac_schedule_key_name(lilac_schedule_key key) {
    return rows[key].name;
}

uint32_t lilac_schedule_most(lilac_schedule_key key) {
    return rows[key].most;
}

bool lilac_schedule_is_number(lilac_schedule_key key) {
    return rows[key].words[0] == NULL;
}

void lilac_schedule_add(lilac_schedule *schedule, lilac_schedule_key key, uint32_t value) {
    schedule->has[key] = true;
    schedule->values[key] = value;
}

bool lilac_schedule_equal(const lilac_schedule *a, const lilac_schedule *b) {
    return memcmp(a->values, b->values, sizeof a->values) == 0;
}

/* ---- the text ------------------------------------------------------------------------------- */

static void put_pair(lilac_text *out, lilac_schedule_key key, uint32_t value) {
    lilac_text_printf(out, "%s=", rows[key].name);
    if (lilac_schedule_is_number(key)) {
        lilac_text_printf(out, "%u", value);
    } else {
        lilac_text_puts(out, rows[key].words[value]);
    }
}

void lilac_schedule_print(lilac_text *out, const lilac_schedule *schedule) {
    const char *comma = "";
    for (uint32_t k = 0; k < LILAC_SCHEDULE_KEYS; k++) {
        if (schedule->has[k]) {
            lilac_text_puts(out, comma);
            put_pair(out, (lilac_schedule_key)k, schedule->values[k]);
            comma = ",";
        }
    }
}

static bool is_word(const char *word, const char *text, size_t length) {
    return word != NULL && strlen(word) == length && memcmp(word, text, length) == 0;
}

static bool read_value(uint32_t *value, const key_row *row, const char *text, size_t length,
                       lilac_text *why) {
    if (row->words[0] == NULL) {
        uint64_t number = 0;
        bool digits = length > 0 && length < 10;
        for (size_t i = 0; i < length && digits; i++) {
            digits = text[i] >= '0' && text[i] <= '9';
            number = 10 * number + (uint64_t)(text[i] - '0');
        }
        *value = (uint32_t)number;
        if (!digits || number == 0 || number > row->most) {
            lilac_text_printf(why, "%s is a number from 1 to %u, not '%.*s'", row->name, row->most,
                              (int)length, text);
            return false;
        }
        return true;
    }
    for (uint32_t i = 0; i <= row->most; i++) {
        if (is_word(row->words[i], text, length)) {
            *value = i;
            return true;
        }
    }
    lilac_text_printf(why, "%s is ", row->name);
    for (uint32_t i = 0; i <= row->most; i++) {
        lilac_text_printf(why, "%s%s", i == 0 ? "" : i == row->most ? " or " : ", ", row->words[i]);
    }
    lilac_text_printf(why, ", not '%.*s'", (int)length, text);
    return false;
}

/* The key of that name; LILAC_SCHEDULE_KEYS: there is none. */
static uint32_t find_key(const char *text, size_t length) {
    uint32_t k = 0;
    while (k < LILAC_SCHEDULE_KEYS && !is_word(rows[k].name, text, length)) {
        k++;
    }
    return k;
}

static void put_keys(lilac_text *why) {
    for (uint32_t k = 0; k < LILAC_SCHEDULE_KEYS; k++) {
        lilac_text_printf(why, "%s%s",
                          k == 0                         ? ""
                          : k + 1 == LILAC_SCHEDULE_KEYS ? " and "
                                                         : ", ",
                          rows[k].name);
    }
}

bool lilac_schedule_read(lilac_schedule *schedule, const char *text, lilac_text *why) {
    *schedule = (lilac_schedule){.has = {false}};
    do {
        const size_t length = strcspn(text, ",");
        const size_t name = strcspn(text, "=,");
        const uint32_t key = find_key(text, name);
        uint32_t value;
        if (key == LILAC_SCHEDULE_KEYS) {
            lilac_text_printf(why, "a schedule has no '%.*s'; it has ", (int)name, text);
            put_keys(why);
            return false;
        }
        if (schedule->has[key]) {
            lilac_text_printf(why, "%s is there twice", rows[key].name);
            return false;
        }
        const size_t begin = name < length ? name + 1 : length;
        if (!read_value(&value, &rows[key], text + begin, length - begin, why)) {
            return false;
        }
        lilac_schedule_add(schedule, (lilac_schedule_key)key, value);
        text += length;
    } while (*text++ == ',');
    return true;
}

/* ---- attributes ----------------------------------------------------------------------------- */

static bool read_attribute(lilac_schedule *schedule, const lilac_tile_op *loop, const char *name) {
    const lilac_name text = lilac_tile_find_text(&loop->attributes, name);
    lilac_text why = {0};
    *schedule = (lilac_schedule){.has = {false}};
    const bool good = text != NULL && lilac_schedule_read(schedule, text, &why);
    lilac_text_clear(&why);
    return good;
}

static void set_attribute(lilac_tile_module *module, lilac_tile_op *loop, const char *name,
                          const lilac_schedule *schedule) {
    lilac_text text = {0};
    lilac_schedule_print(&text, schedule);
    const lilac_tile_attribute attribute = {
        .kind = LILAC_TILE_ATTR_STRING,
        .name = lilac_intern_string(module->context, name),
        .text = lilac_intern_string(module->context, lilac_text_get(&text))};
    lilac_tile_set_attribute(module, &loop->attributes, &attribute);
    lilac_text_clear(&text);
}

bool lilac_schedule_of(lilac_schedule *schedule, const lilac_tile_op *loop) {
    return read_attribute(schedule, loop, RECORD);
}

bool lilac_engine_asked(lilac_schedule *asked, const lilac_tile_op *loop) {
    return read_attribute(asked, loop, ASKED);
}

bool lilac_engine_is_asked(const lilac_tile_op *loop, lilac_schedule_key key, uint32_t value) {
    lilac_schedule asked;
    return lilac_engine_asked(&asked, loop) && asked.has[key] && asked.values[key] == value;
}

void lilac_engine_begin_record(lilac_tile_module *module, lilac_tile_op *loop) {
    lilac_schedule record, started = {.has = {false}};
    if (lilac_schedule_of(&record, loop) && record.has[LILAC_SCHEDULE_ROTATE]) {
        lilac_schedule_add(&started, LILAC_SCHEDULE_ROTATE, record.values[LILAC_SCHEDULE_ROTATE]);
    }
    set_attribute(module, loop, RECORD, &started);
}

void lilac_engine_record(lilac_tile_module *module, lilac_tile_op *loop, lilac_schedule_key key,
                         uint32_t value) {
    lilac_schedule record;
    (void)lilac_schedule_of(&record, loop);
    lilac_schedule_add(&record, key, value);
    set_attribute(module, loop, RECORD, &record);
}

/* ---- requests ------------------------------------------------------------------------------- */

typedef struct request {
    lilac_tile_module *module;
    lilac_schedule schedule;
    uint32_t number; /* of the loop; 0: all loops */
    uint32_t count;  /* loops with products so far */
    uint32_t found;  /* loops that have the request */
    bool good;
} request;

static void find_parts(void *data, lilac_tile_op *op) {
    bool *const parts = data; /* loops, products */
    parts[0] |= lilac_tile_is_loop(op);
    parts[1] |= op->code == LILAC_TILE_OP_TT_DOT || op->code == LILAC_TILE_OP_TT_DOT_SCALED ||
                op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
}

bool lilac_schedule_is_for(const lilac_tile_op *loop) {
    bool parts[2] = {false, false};
    if (loop->code != LILAC_TILE_OP_SCF_FOR) {
        return false;
    }
    lilac_tile_walk(loop->regions[0], find_parts, parts);
    return !parts[0] && parts[1];
}

static bool walk(lilac_tile_module *module, void (*visit)(void *, lilac_tile_op *), request *r) {
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->body != NULL) {
            lilac_tile_walk(f->body, visit, r);
        }
    }
    return r->good;
}

/* "N:KEY=VALUE,…" */
static bool read_request(request *r, const char *text, lilac_text *why) {
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    if (end != text && *end == ':') {
        r->number = (uint32_t)number;
        text = end + 1;
        if (number == 0 || number > UINT16_MAX) {
            lilac_text_puts(why, "loops are numbered from 1");
            return false;
        }
    }
    return lilac_schedule_read(&r->schedule, text, why);
}

static void ask(void *data, lilac_tile_op *op) {
    request *r = data;
    lilac_schedule asked;
    if (!lilac_schedule_is_for(op) || (r->count++, r->number != 0 && r->count != r->number)) {
        return;
    }
    r->found++;
    (void)lilac_engine_asked(&asked, op);
    for (uint32_t k = 0; k < LILAC_SCHEDULE_KEYS; k++) {
        if (r->schedule.has[k]) {
            lilac_schedule_add(&asked, (lilac_schedule_key)k, r->schedule.values[k]);
        }
    }
    set_attribute(r->module, op, ASKED, &asked);
}

bool lilac_schedule_ask(lilac_tile_module *module, uint32_t source, const char *text) {
    request r = {.module = module, .good = true};
    lilac_text why = {0};
    r.good = read_request(&r, text, &why);
    if (r.good) {
        (void)walk(module, ask, &r);
        r.good = r.found > 0;
        if (r.count == 0) {
            lilac_text_puts(&why, "the module has no innermost scf.for with a matrix product");
        } else if (!r.good) {
            lilac_text_printf(&why, "the module has %u loop%s with matrix products, not %u",
                              r.count, r.count == 1 ? "" : "s", r.number);
        }
    }
    if (!r.good) {
        lilac_error(module->context, (lilac_position){source, 0}, 0, "invalid-schedule",
                    "schedule '%s': %s", text, lilac_text_get(&why));
    }
    lilac_text_clear(&why);
    return r.good;
}

/* ---- the check ------------------------------------------------------------------------------ */

static void refuse(request *r, const lilac_tile_op *op, lilac_schedule_key key, uint32_t asked,
                   const lilac_schedule *record, bool recorded) {
    lilac_text wanted = {0}, found = {0};
    put_pair(&wanted, key, asked);
    if (!recorded) {
        lilac_text_puts(&found, "the loop is not pipelined");
    } else if (record->has[key] || !lilac_schedule_is_number(key)) {
        lilac_text_puts(&found, "the loop has ");
        put_pair(&found, key, record->values[key]);
    } else {
        lilac_text_printf(&found, "the loop has no %s", rows[key].name);
    }
    const char *needs = asked != 0 && recorded ? needs_of(key) : NULL;
    lilac_error(r->module->context, lilac_tile_position(op), op->location, "impossible-schedule",
                "the schedule %s is not possible here: %s%s%s", lilac_text_get(&wanted),
                lilac_text_get(&found), needs != NULL ? "; " : "", needs != NULL ? needs : "");
    lilac_text_clear(&wanted);
    lilac_text_clear(&found);
    r->good = false;
}

/* The request of a loop; an attribute that the text of the module has may be malformed. */
static bool take_request(request *r, lilac_schedule *asked, const lilac_tile_op *op) {
    const lilac_name text = lilac_tile_find_text(&op->attributes, ASKED);
    lilac_text why = {0};
    const bool good = text != NULL && lilac_schedule_read(asked, text, &why);
    if (text != NULL && !good) {
        lilac_error(r->module->context, lilac_tile_position(op), op->location, "invalid-schedule",
                    "%s = \"%s\": %s", ASKED, text, lilac_text_get(&why));
        r->good = false;
    }
    lilac_text_clear(&why);
    return good;
}

static void check_loop(void *data, lilac_tile_op *op) {
    request *r = data;
    lilac_schedule asked, record;
    if (op->code != LILAC_TILE_OP_SCF_FOR || !r->good || !take_request(r, &asked, op)) {
        return;
    }
    const bool recorded = lilac_schedule_of(&record, op) && record.has[LILAC_SCHEDULE_DISTANCE];
    for (uint32_t k = 0; k < LILAC_SCHEDULE_KEYS && r->good; k++) {
        if (asked.has[k] && (!recorded || asked.values[k] != record.values[k])) {
            refuse(r, op, (lilac_schedule_key)k, asked.values[k], &record, recorded);
        }
    }
    bool same = true;
    for (uint32_t k = 0; k < LILAC_SCHEDULE_KEYS; k++) {
        same &= !r->schedule.has[k] || (asked.has[k] && asked.values[k] == r->schedule.values[k]);
    }
    r->found += same;
}

bool lilac_schedule_check(lilac_tile_module *module, uint32_t source, uint32_t count,
                          const char *const *requests) {
    request all = {.module = module, .good = true};
    bool good = walk(module, check_loop, &all);
    for (uint32_t i = 0; i < count && good; i++) {
        request r = {.module = module, .good = true};
        lilac_text why = {0};
        good = read_request(&r, requests[i], &why) && walk(module, check_loop, &r);
        lilac_text_clear(&why);
        if (good && r.found == 0) {
            lilac_error(module->context, (lilac_position){source, 0}, 0, "impossible-schedule",
                        "schedule '%s': no such loop is left", requests[i]);
            good = false;
        }
    }
    return good;
}
