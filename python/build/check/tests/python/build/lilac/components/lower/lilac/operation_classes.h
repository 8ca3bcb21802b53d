#include "/work/wt/descs/src/tile/operation_classes.h"
