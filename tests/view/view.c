/* Views: whole texts of small layouts, owners against brute force, figures that are well-formed and
 * have a cell for each element, and every refusal. */

#include <lilac/view.h>

#include "support/test.h"

/* ---- layouts ---------------------------------------------------------------------------- */

typedef struct input {
    const char *name;
    uint32_t bits;
    uint64_t columns[16];
} input;

typedef struct output {
    const char *name;
    uint32_t bits;
} output;

static lilac_layout build(const output *outs, uint32_t out_count, const input *ins,
                          uint32_t in_count) {
    lilac_layout layout;
    lilac_layout_init(&layout);
    for (uint32_t i = 0; i < out_count; i++) {
        assert_true(lilac_layout_add_out(&layout, outs[i].name, outs[i].bits, NULL));
    }
    for (uint32_t i = 0; i < in_count; i++) {
        assert_true(lilac_layout_add_in(&layout, ins[i].name, ins[i].bits, ins[i].columns, NULL));
    }
    return layout;
}

#define BUILD(outs, ins)                                                                           \
    build(outs, sizeof(outs) / sizeof(outs)[0], ins, sizeof(ins) / sizeof(ins)[0])

/* Layout A of the paper's section 4.1: dim0 in bits 0-3, dim1 in bits 4-7. */
static lilac_layout layout_a(void) {
    static const output outs[] = {{"dim0", 4}, {"dim1", 4}};
    static const input ins[] = {{"register", 2, {0x10, 0x01}},
                                {"lane", 5, {0x20, 0x40, 0x80, 0x02, 0x04}},
                                {"warp", 1, {0x08}}};
    return BUILD(outs, ins);
}

/* 4 × 4, two registers, two of four lanes' bits and the warp hold copies. */
static lilac_layout with_copies(void) {
    static const output outs[] = {{"dim0", 2}, {"dim1", 2}};
    static const input ins[] = {
        {"register", 1, {0x4}}, {"lane", 4, {0x0, 0x8, 0x0, 0x1}}, {"warp", 2, {0x0, 0x2}}};
    return BUILD(outs, ins);
}

/* 8 × 64 f16 in rows of 128 bytes, groups of 8 exchanged by the row's number. */
static lilac_layout swizzled(void) {
    static const output outs[] = {{"dim0", 3}, {"dim1", 6}};
    static const input ins[] = {
        {"offset", 9, {0x8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x41, 0x82, 0x104}}};
    return BUILD(outs, ins);
}

static lilac_layout rank_one(void) {
    static const output outs[] = {{"dim0", 4}};
    static const input ins[] = {{"register", 1, {1}}, {"lane", 3, {2, 4, 8}}};
    return BUILD(outs, ins);
}

static lilac_layout rank_three(void) {
    static const output outs[] = {{"dim0", 1}, {"dim1", 1}, {"dim2", 2}};
    static const input ins[] = {{"register", 2, {4, 1}}, {"lane", 2, {8, 2}}};
    return BUILD(outs, ins);
}

/* Columns of all kinds: dependent, equal, zero, and outputs that nothing reaches. */
static lilac_layout random_layout(lilac_random *random) {
    const bool memory = lilac_random_below(random, 3) == 0;
    const bool alone = memory && lilac_random_below(random, 2) == 0; /* of one block */
    const char *const names[] = {memory ? "offset" : "register", "lane", "warp", "block"};
    lilac_layout layout;
    lilac_layout_init(&layout);
    const uint32_t outs = (uint32_t)lilac_random_below(random, 4);
    for (uint32_t d = 0; d < outs; d++) {
        const char name[] = {'d', 'i', 'm', (char)('0' + d), '\0'};
        assert_true(
            lilac_layout_add_out(&layout, name, (uint32_t)lilac_random_below(random, 4), NULL));
    }
    const uint64_t mask = (UINT64_C(1) << layout.out_bits) - 1;
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t columns[4];
        for (uint32_t k = 0; k < 4; k++) {
            columns[k] = lilac_random_next(random) & mask;
            columns[k] = lilac_random_below(random, 4) == 0 ? 0 : columns[k];
        }
        const uint32_t bits = (uint32_t)lilac_random_below(random, 4);
        assert_true(
            lilac_layout_add_in(&layout, names[i], alone && i != 0 ? 0 : bits, columns, NULL));
    }
    return layout;
}

/* Any view, of memory with any elements and, where that may be, with padding. */
static lilac_view_options random_options(lilac_random *random, const lilac_layout *layout,
                                         lilac_view_padding *padding) {
    lilac_view_options options = {.kind = (lilac_view_kind)lilac_random_below(random, 3)};
    options.element_bits = 1U << lilac_random_below(random, 8);
    options.banks = 4U << lilac_random_below(random, 5);
    options.colour = lilac_random_below(random, 2) == 0;
    *padding = (lilac_view_padding){UINT64_C(1) << lilac_random_below(random, 4),
                                    1 + lilac_random_below(random, 9)};
    if (lilac_layout_in(layout, "offset") >= 0 &&
        layout->in_bits == lilac_layout_in_bits(layout, "offset")) {
        options.paddings = padding;
        options.padding_count = 1;
    }
    return options;
}

/* ---- texts ------------------------------------------------------------------------------ */

static void assert_text(const lilac_layout *layout, const lilac_view_options *options,
                        const char *expected) {
    lilac_text text;
    lilac_reason why;
    lilac_text_init(&text);
    assert_true(lilac_view_text(&text, layout, options, &why));
    assert_string_equal(lilac_text_get(&text), expected);
    lilac_text_clear(&text);
}

static void paper_layout_as_cells(void **state) {
    (void)state;
    const lilac_layout layout = layout_a();
    /* r1 of t9 at (2, 3), r0 of t10 at (2, 4), as section 4.1 says */
    assert_text(&layout, &(lilac_view_options){.rows = {0, 4}, .columns = {0, 6}},
                "16×16 tensor, where each element is: w warp (2), t lane (32), r register (4)\n"
                "\n"
                "      dim1\n"
                "dim0  0          1          2          3          4          5\n"
                "0     w0 t0  r0  w0 t0  r1  w0 t1  r0  w0 t1  r1  w0 t2  r0  w0 t2  r1\n"
                "1     w0 t0  r2  w0 t0  r3  w0 t1  r2  w0 t1  r3  w0 t2  r2  w0 t2  r3\n"
                "2     w0 t8  r0  w0 t8  r1  w0 t9  r0  w0 t9  r1  w0 t10 r0  w0 t10 r1\n"
                "3     w0 t8  r2  w0 t8  r3  w0 t9  r2  w0 t9  r3  w0 t10 r2  w0 t10 r3\n"
                "left out: rows 4–15 of 16; columns 6–15 of 16\n");
}

static void paper_layout_as_hardware(void **state) {
    (void)state;
    const lilac_layout layout = layout_a();
    assert_text(
        &layout, &(lilac_view_options){.kind = LILAC_VIEW_HARDWARE, .rows = {30, 4}},
        "16×16 tensor, which element each slot holds: w warp (2), t lane (32), r register (4)\n"
        "\n"
        "        register\n"
        "        0      1      2      3\n"
        "w0 t30  6,12   6,13   7,12   7,13\n"
        "w0 t31  6,14   6,15   7,14   7,15\n"
        "w1 t0   8,0    8,1    9,0    9,1\n"
        "w1 t1   8,2    8,3    9,2    9,3\n"
        "left out: rows 0–29 and 34–63 of 64\n");
}

static void paper_layout_as_matrix(void **state) {
    (void)state;
    const lilac_layout layout = layout_a();
    assert_text(&layout, &(lilac_view_options){.kind = LILAC_VIEW_MATRIX},
                "8×8 bit matrix of rank 8: every element is held once\n"
                "\n"
                "         register  lane       warp\n"
                "         0 1       0 1 2 3 4  0\n"
                "dim1  0  1 ·       · · · · ·  ·\n"
                "      1  · ·       1 · · · ·  ·\n"
                "      2  · ·       · 1 · · ·  ·\n"
                "      3  · ·       · · 1 · ·  ·\n"
                "dim0  0  · 1       · · · · ·  ·\n"
                "      1  · ·       · · · 1 ·  ·\n"
                "      2  · ·       · · · · 1  ·\n"
                "      3  · ·       · · · · ·  1\n");
    assert_text(&layout, &(lilac_view_options){.kind = LILAC_VIEW_MATRIX, .width = 24},
                "8×8 bit matrix of rank 8: every element is held once\n"
                "\n"
                "         register  lane\n"
                "         01        01234\n"
                "dim1  0  1·        ·····\n"
                "      1  ··        1····\n"
                "      2  ··        ·1···\n"
                "      3  ··        ··1··\n"
                "dim0  0  ·1        ·····\n"
                "      1  ··        ···1·\n"
                "      2  ··        ····1\n"
                "      3  ··        ·····\n"
                "\n"
                "         warp\n"
                "         0\n"
                "dim1  0  ·\n"
                "      1  ·\n"
                "      2  ·\n"
                "      3  ·\n"
                "dim0  0  ·\n"
                "      1  ·\n"
                "      2  ·\n"
                "      3  1\n");
}

static void copies_are_marked(void **state) {
    (void)state;
    const lilac_layout layout = with_copies();
    assert_text(
        &layout, &(lilac_view_options){.columns = {0, 3}},
        "4×4 tensor, where each element is: w warp (4), t lane (16), r register (2)\n"
        "\n"
        "      dim1\n"
        "dim0  0                    1                    2\n"
        "0     w0,1 t0,1,4,…    r0  w0,1 t0,1,4,…    r1  w0,1 t2,3,6,…    r0\n"
        "1     w0,1 t8,9,12,…   r0  w0,1 t8,9,12,…   r1  w0,1 t10,11,14,… r0\n"
        "2     w2,3 t0,1,4,…    r0  w2,3 t0,1,4,…    r1  w2,3 t2,3,6,…    r0\n"
        "3     w2,3 t8,9,12,…   r0  w2,3 t8,9,12,…   r1  w2,3 t10,11,14,… r0\n"
        "copies: each element is held 8 times; another is at lane ^ 1 or lane ^ 4 or warp ^ 1\n"
        "left out: columns 3 of 4\n");
    /* a slice's copies are whole runs, or everything */
    static const output outs[] = {{"dim0", 2}};
    static const input ins[] = {{"lane", 4, {0, 0, 1, 2}}, {"warp", 1, {0}}};
    const lilac_layout slice = BUILD(outs, ins);
    assert_text(&slice, NULL,
                "4-element tensor, where each element is: w warp (2), t lane (16)\n"
                "\n"
                "  dim0\n"
                "  0          1          2          3\n"
                "  w* t0–3    w* t4–7    w* t8–11   w* t12–15\n"
                "copies: each element is held 8 times; another is at lane ^ 1 or lane ^ 2 or "
                "warp ^ 1\n");
}

static void copies_in_hardware(void **state) {
    (void)state;
    const lilac_layout layout = with_copies();
    assert_text(
        &layout, &(lilac_view_options){.kind = LILAC_VIEW_HARDWARE, .rows = {0, 4}},
        "4×4 tensor, which element each slot holds: w warp (4), t lane (16), r register (2)\n"
        "\n"
        "       register\n"
        "       0     1\n"
        "w0 t0  0,0   0,1\n"
        "w0 t1  0,0'  0,1'\n"
        "w0 t2  0,2   0,3\n"
        "w0 t3  0,2'  0,3'\n"
        "copies: each element is held 8 times; another is at lane ^ 1 or lane ^ 4 or warp ^ 1\n"
        "' a copy of what an earlier slot holds\n"
        "left out: rows 4–63 of 64\n");
}

/* Where copies run across inputs, or nothing is there. */
static void odd_layouts(void **state) {
    (void)state;
    static const output outs[] = {{"dim0", 1}, {"dim1", 1}};
    static const input ins[] = {{"register", 1, {1}}, {"lane", 1, {1}}};
    const lilac_layout layout = BUILD(outs, ins);
    assert_text(&layout, NULL,
                "2×2 tensor, where each element is: t lane (2), r register (2)\n"
                "\n"
                "      dim1\n"
                "dim0  0         1\n"
                "0     t0 r0 ×2  ·\n"
                "1     t0 r1 ×2  ·\n"
                "copies: each element is held 2 times; another is at register ^ 1 with lane ^ 1\n"
                "· no slot holds this element\n");
    lilac_layout nothing;
    lilac_layout_init(&nothing);
    assert_text(&nothing, NULL, "scalar, where each element is\n\n\n  0\n");
}

static void memory_in_runs(void **state) {
    (void)state;
    const lilac_layout layout = swizzled();
    lilac_view_options options = {.kind = LILAC_VIEW_HARDWARE, .element_bits = 16, .rows = {0, 3}};
    assert_text(&layout, &options,
                "8×64 tensor of 16-bit elements in memory of 32 banks of 4 bytes: offset (512)\n"
                "\n"
                "      bank\n"
                "byte  0        4        8        12       16       20       24       28\n"
                "0     0,0–7    0,8–15   0,16–23  0,24–31  0,32–39  0,40–47  0,48–55  0,56–63\n"
                "128   1,8–15   1,0–7    1,24–31  1,16–23  1,40–47  1,32–39  1,56–63  1,48–55\n"
                "256   2,16–23  2,24–31  2,0–7    2,8–15   2,48–55  2,56–63  2,32–39  2,40–47\n"
                "left out: rows 3–7 of 8\n");
    options.columns = (lilac_view_range){7, 3}; /* no whole run: element by element */
    assert_text(&layout, &options,
                "8×64 tensor of 16-bit elements in memory of 32 banks of 4 bytes: offset (512)\n"
                "\n"
                "      bank\n"
                "byte        4\n"
                "0     0,7   0,8   0,9\n"
                "128   1,15  1,0   1,1\n"
                "256   2,23  2,24  2,25\n"
                "left out: rows 3–7 of 8; columns 0–6 and 10–63 of 64\n");
    options = (lilac_view_options){.element_bits = 16, .rows = {1, 1}, .columns = {16, 16}};
    assert_text(&layout, &options,
                "8×64 tensor, where each element is: offset (512)\n"
                "\n"
                "      dim1\n"
                "dim0  16       24\n"
                "1     88–95    80–87\n"
                "left out: rows 0 and 2–7 of 8; columns 0–15 and 32–63 of 64\n");
}

/* 4 × 16 with 8 elements of padding after each row of 16, in memory of 8 banks: rows of 16. */
static void padded_memory(void **state) {
    (void)state;
    lilac_layout layout;
    static const output outs[] = {{"dim0", 2}, {"dim1", 4}};
    static const input ins[] = {{"offset", 6, {4, 8, 16, 32, 1, 2}}};
    layout = BUILD(outs, ins);
    lilac_view_options options = {.kind = LILAC_VIEW_HARDWARE,
                                  .element_bits = 16,
                                  .banks = 8,
                                  .paddings = &(lilac_view_padding){16, 8},
                                  .padding_count = 1};
    assert_text(&layout, &options,
                "4×16 tensor of 16-bit elements in memory of 8 banks of 4 bytes: offset (64)\n"
                "\n"
                "      bank\n"
                "byte  0        4\n"
                "0     0,0–7    0,8–15\n"
                "32    ·        1,0–7\n"
                "64    1,8–15   ·\n"
                "96    2,0–7    2,8–15\n"
                "128   ·        3,0–7\n"
                "160   3,8–15   ·\n"
                "· padding\n"
                "padding: 8 elements after every 16\n");
    options.kind = LILAC_VIEW_CELLS;
    assert_text(&layout, &options,
                "4×16 tensor, where each element is: offset (64)\n"
                "\n"
                "      dim1\n"
                "dim0  0      8\n"
                "0     0–7    8–15\n"
                "1     24–31  32–39\n"
                "2     48–55  56–63\n"
                "3     72–79  80–87\n"
                "padding: 8 elements after every 16\n");
    lilac_text text;
    lilac_reason why;
    lilac_text_init(&text);
    options.paddings = &(lilac_view_padding){12, 4};
    assert_false(lilac_view_text(&text, &layout, &options, &why));
    assert_string_equal(why.text, "padding of 4 after every 12: not after a power of two");
    options.paddings = &(lilac_view_padding){16, 8};
    layout = layout_a();
    assert_false(lilac_view_svg(&text, &layout, &options, &why));
    assert_string_equal(why.text, "padding is shown for memory of one block only");
    lilac_text_clear(&text);
}

static void other_ranks(void **state) {
    (void)state;
    lilac_layout layout = rank_one();
    assert_text(&layout, &(lilac_view_options){.width = 34},
                "16-element tensor, where each element is: t lane (8), r register (2)\n"
                "\n"
                "      +\n"
                "dim0  0      1      2      3\n"
                "0     t0 r0  t0 r1  t1 r0  t1 r1\n"
                "4     t2 r0  t2 r1  t3 r0  t3 r1\n"
                "8     t4 r0  t4 r1  t5 r0  t5 r1\n"
                "12    t6 r0  t6 r1  t7 r0  t7 r1\n");
    layout = rank_three();
    assert_text(&layout, &(lilac_view_options){.slices = {1, 1}},
                "2×2×4 tensor, where each element is: t lane (4), r register (4)\n"
                "\n"
                "dim0 = 1\n"
                "\n"
                "      dim2\n"
                "dim1  0      1      2      3\n"
                "0     t0 r2  t0 r3  t1 r2  t1 r3\n"
                "1     t2 r2  t2 r3  t3 r2  t3 r3\n"
                "left out: slices 0 of 2\n");
}

static void colours_set_both_grounds(void **state) {
    (void)state;
    const lilac_layout layout = rank_one();
    assert_text(&layout,
                &(lilac_view_options){.colour = true,
                                      .colour_by = "register",
                                      .rows = {0, 1},
                                      .columns = {0, 2},
                                      .width = 20},
                "16-element tensor, where each element is: t lane (8), r register (2)\n"
                "\n"
                "      +\n"
                "dim0  0      1\n"
                "0     \x1b[38;5;16;48;5;153mt0 r0\x1b[0m  \x1b[38;5;16;48;5;223mt0 r1\x1b[0m\n"
                "colours: \x1b[38;5;16;48;5;153mregister 0\x1b[0m "
                "\x1b[38;5;16;48;5;223mregister 1\x1b[0m\n"
                "left out: rows 1–7 of 8\n");
}

/* Lines are no wider than asked for, down to one column of cells. */
static void lines_fit(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 11);
    for (int round = 0; round < 200; round++) {
        const lilac_layout layout = random_layout(&random);
        lilac_view_padding padding;
        lilac_view_options options = random_options(&random, &layout, &padding);
        options.colour = false;
        lilac_text text;
        lilac_text_init(&text);
        assert_true(lilac_view_text(&text, &layout, &options, NULL));
        const char *line = strchr(lilac_text_get(&text), '\n') + 1; /* the heading is prose */
        for (; *line != '\0'; line = strchr(line, '\n') + 1) {
            uint32_t width = 0;
            for (const char *c = line; *c != '\n'; c++) {
                width += ((unsigned char)*c & 0xC0) != 0x80;
            }
            const bool prose = strncmp(line, "copies", 6) == 0 || strncmp(line, "left", 4) == 0;
            assert_true(prose || width <= 100);
            assert_true(width == 0 || strchr(line, '\n')[-1] != ' ');
        }
        lilac_text_clear(&text);
    }
}

/* ---- owners ----------------------------------------------------------------------------- */

static void owners_are_the_preimage(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 7);
    for (int round = 0; round < 300; round++) {
        const lilac_layout layout = random_layout(&random);
        lilac_view_owners owners;
        lilac_view_owners_init(&owners, &layout);
        for (uint64_t element = 0; element >> layout.out_bits == 0; element++) {
            uint64_t copy = 0, owner = 0;
            for (uint64_t index = 0; index >> layout.in_bits == 0; index++) {
                if (lilac_layout_apply(&layout, index) != element) {
                    continue;
                }
                assert_true(copy >> owners.copy_bits == 0);
                assert_true(lilac_view_owner(&owners, element, copy++, &owner));
                assert_true(owner == index); /* ascending, and all of them */
            }
            if (copy == 0) {
                assert_false(lilac_view_owner(&owners, element, 0, &owner));
            } else {
                assert_true(copy == UINT64_C(1) << owners.copy_bits);
            }
        }
    }
}

/* ---- figures ---------------------------------------------------------------------------- */

static size_t count_of(const char *text, const char *what) {
    size_t count = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what)) {
        count++;
    }
    return count;
}

/* Elements are closed in order, attributes are quoted, nothing is left unescaped. */
static void assert_well_formed(const char *text) {
    const char *open[16];
    size_t length[16], depth = 0, roots = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '&') {
            assert_true(strncmp(c, "&lt;", 4) == 0 || strncmp(c, "&gt;", 4) == 0 ||
                        strncmp(c, "&amp;", 5) == 0 || strncmp(c, "&quot;", 6) == 0);
        }
        assert_true(*c != '>');
        if (*c != '<') {
            continue;
        }
        const bool closes = c[1] == '/';
        const char *name = c + 1 + closes;
        const size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz");
        bool quoted = false;
        assert_true(size != 0);
        for (c = name + size; *c != '>' || quoted; c++) {
            assert_true(*c != '\0' && *c != '<');
            quoted = quoted != (*c == '"');
        }
        if (closes) {
            assert_true(depth != 0);
            depth--;
            assert_true(length[depth] == size && memcmp(open[depth], name, size) == 0);
        } else if (c[-1] != '/') {
            assert_true(depth < 16);
            roots += depth == 0;
            open[depth] = name;
            length[depth++] = size;
        }
    }
    assert_true(depth == 0 && roots == 1);
}

static void figures(void **state) {
    (void)state;
    const lilac_layout layouts[] = {layout_a(), with_copies(), swizzled(), rank_one(),
                                    rank_three()};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        for (int kind = 0; kind < 3; kind++) {
            const lilac_layout *layout = &layouts[i];
            lilac_view_options options = {.kind = (lilac_view_kind)kind, .title = "A <&\"> title"};
            lilac_text text, again;
            lilac_text_init(&text);
            lilac_text_init(&again);
            assert_true(lilac_view_svg(&text, layout, &options, NULL));
            assert_true(lilac_view_svg(&again, layout, &options, NULL));
            assert_string_equal(text.bytes, again.bytes);
            assert_well_formed(text.bytes);
            assert_int_equal(count_of(text.bytes, "class=\"cell\""),
                             kind == LILAC_VIEW_CELLS      ? 1 << layout->out_bits
                             : kind == LILAC_VIEW_HARDWARE ? 1 << layout->in_bits
                                                           : layout->in_bits * layout->out_bits);
            assert_int_equal(count_of(text.bytes, "<title id="), 1);
            assert_int_equal(count_of(text.bytes, "<desc id="), 1);
            assert_int_equal(count_of(text.bytes, ">A &lt;&amp;&quot;&gt; title<"), 2);
            lilac_text_clear(&text);
            lilac_text_clear(&again);
        }
    }
}

static void random_figures(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 5);
    for (int round = 0; round < 60; round++) {
        const lilac_layout layout = random_layout(&random);
        lilac_view_padding padding;
        lilac_view_options options = random_options(&random, &layout, &padding);
        lilac_text text;
        lilac_text_init(&text);
        assert_true(lilac_view_svg(&text, &layout, &options, NULL));
        assert_well_formed(text.bytes);
        lilac_text_reset(&text);
        assert_true(lilac_view_text(&text, &layout, &options, NULL));
        lilac_text_clear(&text);
    }
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void json(void **state) {
    (void)state;
    const lilac_layout layout = rank_three();
    lilac_text text;
    lilac_text_init(&text);
    lilac_view_options options = {.slices = {1, 1}, .rows = {0, 1}, .columns = {1, 2}};
    assert_true(lilac_view_json(&text, &layout, &options, NULL));
    assert_string_equal(lilac_text_get(&text),
                        "{\"view\": \"cells\", \"shape\": [2,2,4], \"inputs\": "
                        "[\"register\",\"lane\"], \"copies\": 1, \"cells\": "
                        "[{\"element\": [1,0,1], \"owners\": [[3,0]]}, "
                        "{\"element\": [1,0,2], \"owners\": [[2,1]]}]}");
    lilac_text_reset(&text);
    options = (lilac_view_options){.kind = LILAC_VIEW_MATRIX};
    assert_true(lilac_view_json(&text, &layout, &options, NULL));
    assert_string_equal(
        lilac_text_get(&text),
        "{\"view\": \"matrix\", \"inputs\": [{\"name\": \"register\", \"bits\": 2}, "
        "{\"name\": \"lane\", \"bits\": 2}], \"outputs\": [{\"name\": \"dim0\", \"bits\": 1}, "
        "{\"name\": \"dim1\", \"bits\": 1}, {\"name\": \"dim2\", \"bits\": 2}], \"rows\": "
        "[[0,1,0,0], [0,0,0,1], [1,0,0,0], [0,0,1,0]]}");
    lilac_text_clear(&text);
}

/* ---- refusals --------------------------------------------------------------------------- */

static void refusals(void **state) {
    (void)state;
    const lilac_layout a = layout_a(), memory = swizzled();
    lilac_layout huge;
    lilac_layout_identity(&huge, 40, "offset", "dim0");
    const struct {
        const lilac_layout *layout;
        lilac_view_options options;
        const char *why;
    } cases[] = {
        {&a, {.rows = {16, 1}}, "there is no row 16: there are 16"},
        {&a, {.columns = {99, 0}}, "there is no column 99: there are 16"},
        {&a, {.slices = {1, 0}}, "there is no slice 1: there are 1"},
        {&a, {.colour_by = "bank"}, "the layout has no input 'bank' to colour by"},
        {&huge, {.rows = {0, UINT64_MAX}}, "more than 1048576 cells are asked for"},
        {&memory, {.element_bits = 12}, "powers of two: 32 banks of 4 bytes, elements of 12 bits"},
        {&memory, {.banks = 33}, "powers of two: 33 banks"},
        {&memory, {.banks = 1, .element_bits = 64}, "64 bits is larger than 1 banks of 4 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lilac_text text;
        lilac_reason why;
        lilac_text_init(&text);
        assert_false(lilac_view_text(&text, cases[i].layout, &cases[i].options, &why));
        assert_non_null(strstr(why.text, cases[i].why));
        assert_false(lilac_view_svg(&text, cases[i].layout, &cases[i].options, &why));
        assert_non_null(strstr(why.text, cases[i].why));
        assert_false(lilac_view_json(&text, cases[i].layout, &cases[i].options, &why));
        assert_int_equal(text.length, 0);
    }
    lilac_text text;
    lilac_reason why;
    lilac_layout copies;
    lilac_text_init(&text);
    lilac_layout_zeros(&copies, 30, "lane", "dim0", 0);
    assert_false(lilac_view_json(&text, &copies, NULL, &why));
    assert_non_null(strstr(why.text, "more than 1048576 owners"));
    assert_int_equal(text.length, 0);
    lilac_text_clear(&text);
}

/* What is too large is shown in part, at once. */
static void large_layouts(void **state) {
    (void)state;
    lilac_layout layout;
    lilac_layout_identity(&layout, 64, "register", "dim0");
    for (int kind = 0; kind < 3; kind++) {
        lilac_view_options options = {.kind = (lilac_view_kind)kind};
        lilac_text text;
        lilac_text_init(&text);
        assert_true(lilac_view_text(&text, &layout, &options, NULL));
        assert_true(text.length < 20000);
        lilac_text_reset(&text);
        assert_true(lilac_view_svg(&text, &layout, &options, NULL));
        assert_well_formed(text.bytes);
        lilac_text_clear(&text);
    }
    lilac_layout_zeros(&layout, 64, "lane", "dim0", 0);
    assert_text(
        &layout, NULL,
        "1-element tensor, where each element is: t lane (18446744073709551616)\n\n"
        "  dim0\n  0\n  t*\n"
        "copies: each element is held 18446744073709551616 times; another is at lane ^ 1 or "
        "lane ^ 2 or lane ^ 4 or lane ^ 8 or lane ^ 16 or lane ^ 32 or lane ^ 64 or "
        "lane ^ 128 or …\n");
    /* The legend of a figure lists the colours in use; it does not search 2^60 of them. */
    lilac_layout_zeros(&layout, 60, "lane", "dim0", 0);
    lilac_text text = {0};
    assert_true(lilac_view_svg(&text, &layout, NULL, NULL));
    assert_well_formed(text.bytes);
    assert_true(text.length < 5000);
    lilac_text_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paper_layout_as_cells),
        cmocka_unit_test(paper_layout_as_hardware),
        cmocka_unit_test(paper_layout_as_matrix),
        cmocka_unit_test(copies_are_marked),
        cmocka_unit_test(copies_in_hardware),
        cmocka_unit_test(odd_layouts),
        cmocka_unit_test(memory_in_runs),
        cmocka_unit_test(padded_memory),
        cmocka_unit_test(other_ranks),
        cmocka_unit_test(colours_set_both_grounds),
        cmocka_unit_test(lines_fit),
        cmocka_unit_test(owners_are_the_preimage),
        cmocka_unit_test(figures),
        cmocka_unit_test(random_figures),
        cmocka_unit_test(json),
        cmocka_unit_test(refusals),
        cmocka_unit_test(large_layouts),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
