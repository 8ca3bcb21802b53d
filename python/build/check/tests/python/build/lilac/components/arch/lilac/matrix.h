#include "/work/wt/descs/include/lilac/matrix.h"
