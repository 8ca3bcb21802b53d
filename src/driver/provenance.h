/* The numbers of tile operations in the locations of SIMT instructions. */
#ifndef LILAC_DRIVER_PROVENANCE_H
#define LILAC_DRIVER_PROVENANCE_H

#include <lilac/driver.h>

/* Wraps the location of each operation of each function in one with its number. */
void lilac_number_operations(lilac_tile_module *module);

#endif
