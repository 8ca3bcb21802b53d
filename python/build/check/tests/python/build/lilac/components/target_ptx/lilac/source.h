#include "/work/wt/descs/include/lilac/source.h"
