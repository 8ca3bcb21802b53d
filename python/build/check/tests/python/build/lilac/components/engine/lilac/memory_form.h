#include "/work/wt/descs/include/lilac/memory_form.h"
