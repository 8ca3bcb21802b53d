#include "/work/wt/descs/include/lilac/layout.h"
