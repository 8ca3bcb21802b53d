#include "/work/wt/descs/include/lilac/driver.h"
