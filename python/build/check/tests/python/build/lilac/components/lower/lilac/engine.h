#include "/work/wt/descs/include/lilac/engine.h"
