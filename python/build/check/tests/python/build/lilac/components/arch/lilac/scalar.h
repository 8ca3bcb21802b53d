#include "/work/wt/descs/include/lilac/scalar.h"
