#include "/work/wt/descs/include/lilac/cute.h"
