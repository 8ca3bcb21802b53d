#include "/work/wt/descs/include/lilac/tensor_map.h"
