#include "/work/wt/descs/include/lilac/lower.h"
