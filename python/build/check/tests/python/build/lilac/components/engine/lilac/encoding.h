#include "/work/wt/descs/include/lilac/encoding.h"
