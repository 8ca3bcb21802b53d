#include "/work/wt/descs/include/lilac/plan.h"
