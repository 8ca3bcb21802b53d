/* lilac: linear layouts for GPU kernels. This header includes every public header;
 * docs/ARCHITECTURE.md is the map. */
#ifndef LILAC_H
#define LILAC_H

#include <lilac/access.h>
#include <lilac/arch.h>
#include <lilac/base.h>
#include <lilac/collective.h>
#include <lilac/cute.h>
#include <lilac/driver.h>
#include <lilac/encoding.h>
#include <lilac/engine.h>
#include <lilac/explain.h>
#include <lilac/layout.h>
#include <lilac/lower.h>
#include <lilac/matrix.h>
#include <lilac/memory_form.h>
#include <lilac/occupancy.h>
#include <lilac/plan.h>
#include <lilac/ptx.h>
#include <lilac/runtime.h>
#include <lilac/scalar.h>
#include <lilac/sim.h>
#include <lilac/simt.h>
#include <lilac/simt_matrix.h>
#include <lilac/source.h>
#include <lilac/tile.h>
#include <lilac/view.h>

#endif
