#include "/work/wt/descs/include/lilac/tile.h"
