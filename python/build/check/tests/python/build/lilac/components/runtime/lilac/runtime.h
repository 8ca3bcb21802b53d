#include "/work/wt/descs/include/lilac/runtime.h"
