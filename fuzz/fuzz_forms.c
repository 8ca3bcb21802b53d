/* Fuzz target: CuTe layouts and memory forms, from any bytes.
 *
 * Whatever the bytes, the reader answers with a layout or with a diagnostic. What it accepts prints
 * to a text that reads back and prints the same; where it is linear the map equals the definition
 * in integers at many coordinates; and a linear map comes back as a CuTe layout of the same map. */
#include <lilac/cute.h>
#include <lilac/memory_form.h>

#include <stdint.h>
#include <string.h>

static void check(bool holds) {
    if (!holds) {
        __builtin_trap();
    }
}

static void print(lilac_text *text, bool named, const lilac_cute *cute,
                  const lilac_memory_form *form) {
    lilac_text_reset(text);
    if (named) {
        lilac_memory_form_print(text, form);
    } else {
        lilac_cute_print(text, cute);
    }
}

static bool read_form(lilac_context *context, const char *bytes, size_t length, bool *named,
                      lilac_cute *cute, lilac_memory_form *form) {
    const uint32_t source = lilac_source_add(context, "fuzz", bytes, length);
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, source);
    *named = lilac_memory_form_at(&scanner);
    return (*named ? lilac_memory_form_read(&scanner, form) : lilac_cute_read(&scanner, cute)) &&
           scanner.kind == LILAC_TOKEN_END && lilac_error_count(context) == 0;
}

/* Coordinates from a number, mode after mode. */
static void coordinates_of(uint64_t *at, const lilac_layout *map, uint64_t index) {
    for (uint32_t d = 0; d < map->in_count; d++) {
        at[d] = index & ((UINT64_C(1) << map->in[d].bits) - 1);
        index >>= map->in[d].bits;
    }
}

static void check_cute(const lilac_cute *cute) {
    lilac_layout map, again;
    lilac_cute back;
    lilac_reason why;
    if (!lilac_cute_map(&map, cute, &why)) {
        return;
    }
    lilac_random random;
    lilac_random_seed(&random, 1);
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t at[LILAC_CUTE_MAX_RANK];
        const uint64_t index = lilac_random_next(&random) & ((UINT64_C(1) << map.in_bits) - 1);
        coordinates_of(at, &map, index);
        check(lilac_layout_apply(&map, index) == lilac_cute_offset(cute, at));
    }
    if (map.out_bits <= 62) {
        check(lilac_cute_of_map(&back, &map, &why));
        check(lilac_cute_map(&again, &back, &why) && lilac_layout_equal(&map, &again));
    }
    if (lilac_cute_memory(&again, cute, &why) && map.out_bits <= 62) {
        check(lilac_cute_of_layout(&back, &again, &why));
        check(lilac_cute_map(&again, &back, &why) && lilac_layout_equal(&map, &again));
    }
}

static void check_form(const lilac_memory_form *form) {
    lilac_layout layout;
    lilac_cute cute;
    lilac_reason why;
    const bool injective = lilac_memory_form_is_injective(form, &why);
    check(!lilac_memory_form_layout(&layout, form, &why) || injective);
    if (lilac_memory_form_cute(&cute, form, &why)) {
        lilac_random random;
        lilac_random_seed(&random, 2);
        for (uint32_t i = 0; i < 64; i++) {
            uint64_t at[LILAC_LAYOUT_MAX_DIMS];
            for (uint32_t d = 0; d < form->rank; d++) {
                at[d] = lilac_random_below(&random, form->shape[d]);
            }
            check(lilac_cute_offset(&cute, at) == lilac_memory_form_address(form, at));
        }
        check_cute(&cute);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    lilac_context *context = lilac_context_create();
    lilac_cute cute;
    lilac_memory_form form;
    bool named, again;
    if (read_form(context, (const char *)bytes, size, &named, &cute, &form)) {
        lilac_text first = {0}, second = {0};
        print(&first, named, &cute, &form);
        check(read_form(context, lilac_text_get(&first), first.length, &again, &cute, &form));
        print(&second, named, &cute, &form);
        check(again == named && strcmp(lilac_text_get(&first), lilac_text_get(&second)) == 0);
        if (named) {
            check_form(&form);
        } else {
            check_cute(&cute);
        }
        lilac_text_clear(&first);
        lilac_text_clear(&second);
    }
    lilac_context_destroy(context);
    return 0;
}
