#include "/work/wt/descs/src/base/bits.h"
