#include "/work/wt/descs/include/lilac/sim.h"
