/* A program outside the tree that uses the installed package. */
#include <lilac.h>

#include <stdio.h>

int main(void) {
    lilac_layout layout;
    lilac_layout_identity(&layout, 5, "lane", "dim0");
    lilac_text text = {0};
    lilac_layout_json(&text, &layout);
    printf("%s\n", lilac_text_get(&text));
    lilac_text_clear(&text);
    return 0;
}
