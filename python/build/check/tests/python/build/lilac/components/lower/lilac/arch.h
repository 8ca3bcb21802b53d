#include "/work/wt/descs/include/lilac/arch.h"
