#include "/work/wt/descs/src/layout/replication.h"
