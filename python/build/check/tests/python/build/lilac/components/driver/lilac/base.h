#include "/work/wt/descs/include/lilac/base.h"
