#include "/work/wt/descs/include/lilac/simt_matrix.h"
