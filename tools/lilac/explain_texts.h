/* The contents of the files that the locations of a kernel name; the command and the Python package
 * read them. */
#ifndef LILAC_EXPLAIN_TEXTS_H
#define LILAC_EXPLAIN_TEXTS_H

#include <lilac/explain.h>

/* Adds those that are on this machine. */
void explain_add_texts(lilac_explanation *explanation);

#endif
