#include "/work/wt/descs/src/f2/f2.h"
