#include "/work/wt/descs/include/lilac/view.h"
