/* The tour of layouts in C: a layout made by products, inverted, composed and divided.
 *
 * docs/layouts.md shows this program's parts and what each prints.
 * With lilac installed: cc -std=c17 tour.c $(pkg-config --cflags --libs lilac) -o tour
 */
#include <lilac.h>

#include <stdio.h>
#include <stdlib.h>

/* The examples below cannot fail; a program that works on its user's layouts shows the reason. */
static void must(bool good, const lilac_reason *why) {
    if (!good) {
        fprintf(stderr, "refused: %s\n", why->text);
        exit(1);
    }
}

static void show(const char *name, const lilac_layout *layout) {
    lilac_text text = {0};
    lilac_layout_json(&text, layout);
    printf("%-9s %s\n", name, lilac_text_get(&text));
    lilac_text_clear(&text);
}

/* result × (in → out, the identity on 2^bits): one more factor. */
static void times(lilac_layout *result, uint32_t bits, const char *in, const char *out) {
    lilac_layout factor;
    lilac_reason why;
    lilac_layout_identity(&factor, bits, in, out);
    must(lilac_layout_product(result, result, &factor, &why), &why);
}

/* Registers, then lanes, then warps, each with dim1 first: a blocked layout of order [1, 0]. */
static void build(lilac_layout *blocked) {
    static const char *const dims[] = {"dim0", "dim1", NULL};
    lilac_reason why;
    lilac_layout_init(blocked);
    times(blocked, 1, "register", "dim1");
    times(blocked, 1, "register", "dim0");
    times(blocked, 3, "lane", "dim1");
    times(blocked, 2, "lane", "dim0");
    times(blocked, 1, "warp", "dim0");
    /* The first factor brought dim1; coordinates are to be printed as (dim0, dim1). */
    must(lilac_layout_order_outs(blocked, blocked, dims, &why), &why);
}

static void evaluate(const lilac_layout *blocked) {
    const uint64_t index = 1 | 9 << 2; /* register 1 of lane 9: registers are the low two bits */
    const uint64_t element = lilac_layout_apply(blocked, index);
    printf("register 1 of lane 9 holds (%u, %u)\n",
           (unsigned)lilac_layout_coordinate(blocked, element, 0),
           (unsigned)lilac_layout_coordinate(blocked, element, 1));
}

static void invert(const lilac_layout *blocked) {
    lilac_layout inverse, back;
    lilac_reason why;
    must(lilac_layout_invert(&inverse, blocked, &why), &why);
    show("inverse", &inverse);
    must(lilac_layout_compose(&back, &inverse, blocked, &why), &why);
    show("back", &back);
}

/* From where an element is in `blocked` to where it is in the same layout of the transposed tensor:
 * inverse of the one after the other. */
static void convert(const lilac_layout *blocked) {
    static const uint32_t swapped[] = {1, 0};
    lilac_layout transposed, conversion;
    lilac_reason why;
    lilac_layout_transpose(&transposed, blocked, swapped);
    must(lilac_layout_invert_compose(&conversion, blocked, &transposed, &why), &why);
    show("convert", &conversion);
}

/* Do the registers begin with two elements along dim1? With four? */
static void divide(const lilac_layout *blocked) {
    for (uint32_t bits = 1; bits <= 2; bits++) {
        lilac_layout tile, rest;
        lilac_reason why;
        lilac_layout_identity(&tile, bits, "register", "dim1");
        if (lilac_layout_divide_left(&rest, blocked, &tile, &why)) {
            show("rest", &rest);
        } else {
            printf("%u along dim1: %s\n", 1u << bits, why.text);
        }
    }
}

int main(void) {
    lilac_layout blocked;
    build(&blocked);
    show("blocked", &blocked);
    evaluate(&blocked);
    invert(&blocked);
    convert(&blocked);
    divide(&blocked);
    return 0;
}
