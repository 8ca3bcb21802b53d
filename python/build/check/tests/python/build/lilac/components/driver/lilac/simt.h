#include "/work/wt/descs/include/lilac/simt.h"
