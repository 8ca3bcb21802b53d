#include "/work/wt/descs/include/lilac/collective.h"
