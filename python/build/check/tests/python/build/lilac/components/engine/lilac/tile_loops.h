#include "/work/wt/descs/include/lilac/tile_loops.h"
