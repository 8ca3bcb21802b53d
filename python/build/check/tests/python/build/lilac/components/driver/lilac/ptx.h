#include "/work/wt/descs/include/lilac/ptx.h"
