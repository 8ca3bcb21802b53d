#include "/work/wt/descs/include/lilac/access.h"
