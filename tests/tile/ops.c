/* A kernel that has each operation of the table at least once, with and without its optional
 * parts. The printed text must equal the text that was read. */
#include <lilac/tile.h>

#include "support/tile_harness.h"

#define MEMORY(shape, layout, rest) "!ttg.memdesc<" shape "xf32, #" layout ", #smem" rest ">"

#define BARRIER "!ttg.memdesc<1xi64, #shared2, #smem, mutable>"

static const char *const lines[] = {
    ("#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 2, order = [1, 0]}>\n"),
    ("#shared1 = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 2, order = [0, 1]}>\n"),
    ("#shared2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"),
    "#smem = #ttg.shared_memory\n",
    "module {\n",
    "  tt.func private @g(i32, f32) -> (i32, f32)\n",
    "  tt.func private @h()\n",
    ("  tt.func public @f(%i: i32, %f: f32, %t: tensor<8xi32>, %x: tensor<8xf32>, %p: "
     "!tt.ptr<f32>, %square: tensor<8x8xf32>, %fp4: tensor<8x16xi8>, %fp4_t: "
     "tensor<16x8xi8>, %scale: tensor<8x1xi8>) -> f32 {\n"),
    "    %c = arith.constant true\n",
    "    %addi = arith.addi %i, %i : i32\n",
    "    %subi = arith.subi %i, %i : i32\n",
    "    %muli = arith.muli %i, %i : i32\n",
    "    %shli = arith.shli %i, %i : i32\n",
    "    %divsi = arith.divsi %i, %i : i32\n",
    "    %divui = arith.divui %i, %i : i32\n",
    "    %remsi = arith.remsi %i, %i : i32\n",
    "    %remui = arith.remui %i, %i : i32\n",
    "    %ceildivsi = arith.ceildivsi %i, %i : i32\n",
    "    %ceildivui = arith.ceildivui %i, %i : i32\n",
    "    %floordivsi = arith.floordivsi %i, %i : i32\n",
    "    %andi = arith.andi %i, %i : i32\n",
    "    %ori = arith.ori %i, %i : i32\n",
    "    %xori = arith.xori %i, %i : i32\n",
    "    %shrsi = arith.shrsi %i, %i : i32\n",
    "    %shrui = arith.shrui %i, %i : i32\n",
    "    %minsi = arith.minsi %i, %i : i32\n",
    "    %minui = arith.minui %i, %i : i32\n",
    "    %maxsi = arith.maxsi %i, %i : i32\n",
    "    %maxui = arith.maxui %i, %i : i32\n",
    "    %low, %high = arith.mulsi_extended %i, %i : i32\n",
    "    %ulow, %uhigh = arith.mului_extended %t, %t : tensor<8xi32>\n",
    "    %cmpi = arith.cmpi ult, %t, %t : tensor<8xi32>\n",
    "    %addf = arith.addf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %subf = arith.subf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %mulf = arith.mulf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %divf = arith.divf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %remf = arith.remf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %minnumf = arith.minnumf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %maxnumf = arith.maxnumf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %minimumf = arith.minimumf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %maximumf = arith.maximumf %x, %x fastmath<fast> : tensor<8xf32>\n",
    "    %negf = arith.negf %f : f32\n",
    "    %cmpf = arith.cmpf une, %f, %f fastmath<nnan,ninf> : f32\n",
    "    %select = arith.select %cmpi, %x, %x : tensor<8xi1>, tensor<8xf32>\n",
    "    %select_0 = arith.select %c, %x, %x : tensor<8xf32>\n",
    "    %extsi = arith.extsi %i : i32 to i64\n",
    "    %extui = arith.extui %c : i1 to i8\n",
    "    %trunci = arith.trunci %t overflow<nsw, nuw> : tensor<8xi32> to tensor<8xi16>\n",
    "    %extf = arith.extf %f : f32 to f64\n",
    "    %truncf = arith.truncf %x to_nearest_even : tensor<8xf32> to tensor<8xbf16>\n",
    "    %truncf_1 = arith.truncf %x {a} : tensor<8xf32> to tensor<8xf16>\n",
    "    %sitofp = arith.sitofp %i : i32 to f16\n",
    "    %uitofp = arith.uitofp %i : i32 to f16\n",
    "    %fptosi = arith.fptosi %f : f32 to i8\n",
    "    %fptoui = arith.fptoui %f : f32 to i8\n",
    "    %bitcast = arith.bitcast %f : f32 to i32\n",
    "    %index = arith.index_cast %i : i32 to index\n",
    "    %index_2 = arith.index_castui %index : index to i64\n",
    "    %poison = ub.poison : tensor<8xf32>\n",
    "    %exp = math.exp %f : f32\n",
    "    %exp2 = math.exp2 %f : f32\n",
    "    %log = math.log %f : f32\n",
    "    %log2 = math.log2 %f : f32\n",
    "    %sqrt = math.sqrt %f : f32\n",
    "    %rsqrt = math.rsqrt %f : f32\n",
    "    %sin = math.sin %f : f32\n",
    "    %cos = math.cos %f : f32\n",
    "    %tanh = math.tanh %f : f32\n",
    "    %erf = math.erf %f : f32\n",
    "    %floor = math.floor %f : f32\n",
    "    %ceil = math.ceil %f : f32\n",
    "    %absf = math.absf %f : f32\n",
    "    %absi = math.absi %i : i32\n",
    "    %fma = math.fma %x, %x, %x fastmath<contract> : tensor<8xf32>\n",
    ("    %for:2 = scf.for %k = %index to %index step %index iter_args(%k0 = %f, %k1 = "
     "%t) -> (f32, tensor<8xi32>) {\n"),
    "      scf.yield %k0, %k1 : f32, tensor<8xi32>\n",
    "    }\n",
    "    scf.for unsigned %k = %i to %i step %i  : i32 {\n",
    "    } {tt.num_stages = 2 : i32}\n",
    "    scf.if %c {\n",
    "    } else {\n",
    "    }\n",
    "    %if = scf.if %c -> (f32) {\n",
    "      scf.yield %f : f32\n",
    "    } else {\n",
    "      scf.yield %for#0 : f32\n",
    "    } {hint}\n",
    "    %while:2 = scf.while (%w = %i) : (i32) -> (i32, f32) {\n",
    "      scf.condition(%c) %w, %f : i32, f32\n",
    "    } do {\n",
    "    ^bb0(%w0: i32, %w1: f32):\n",
    "      scf.yield %w0 : i32\n",
    "    } attributes {a = \"b\"}\n",
    "    cf.assert %c, \"no \\22 way\"\n",
    "    ttg.warp_specialize()\n",
    "    default {\n",
    "      ttg.warp_yield\n",
    "    } : () -> ()\n",
    ("    %ws:2 = ttg.warp_specialize(%i, %p) attributes {requestedRegisters = array<i32: 24, "
     "40>}\n"),
    "    default {\n",
    "      ttg.warp_yield %f, %t : f32, tensor<8xi32>\n",
    "    }\n",
    "    partition0(%w2: i32, %w3: !tt.ptr<f32>) num_warps(1) {\n",
    "      %sum = arith.addi %w2, %w2 : i32\n",
    "      ttg.warp_return\n",
    "    }\n",
    "    partition1(%w4: i32, %w5: !tt.ptr<f32>) num_warps(4) {\n",
    "      ttg.warp_return\n",
    "    } : (i32, !tt.ptr<f32>) -> (f32, tensor<8xi32>)\n",
    "    llvm.intr.assume %c : i1\n",
    "    gpu.barrier\n",
    "    %blocks = lilac.sum_blocks %t : tensor<8xi32>\n",
    "    %call:2 = tt.call @g(%i, %f) : (i32, f32) -> (i32, f32)\n",
    "    tt.call @h() {a} : () -> ()\n",
    "    %pid = tt.get_program_id x : i32\n",
    "    %programs = tt.get_num_programs z : i32\n",
    "    %range = tt.make_range {end = 12 : i32, start = 4 : i32} : tensor<8xi32>\n",
    "    %splat = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>\n",
    "    %one = tt.splat %i : i32 -> tensor<1x1xi32>\n",
    "    %unsplat = tt.unsplat %one : tensor<1x1xi32>\n",
    ("    %expand = tt.expand_dims %x {axis = 1 : i32} : tensor<8xf32> -> "
     "tensor<8x1xf32>\n"),
    "    %broadcast = tt.broadcast %expand : tensor<8x1xf32> -> tensor<8x16xf32>\n",
    ("    %reshape = tt.reshape %broadcast allow_reorder efficient_layout : "
     "tensor<8x16xf32> -> tensor<128xf32>\n"),
    "    %reshape_3 = tt.reshape %broadcast : tensor<8x16xf32> -> tensor<4x32xf32>\n",
    ("    %trans = tt.trans %broadcast {order = array<i32: 1, 0>} : tensor<8x16xf32> -> "
     "tensor<16x8xf32>\n"),
    "    %join = tt.join %x, %x : tensor<8xf32> -> tensor<8x2xf32>\n",
    "    %left, %right = tt.split %join : tensor<8x2xf32> -> tensor<8xf32>\n",
    "    %cat = tt.cat %x, %x : tensor<8xf32> -> tensor<16xf32>\n",
    ("    %gather = tt.gather %x[%range] {axis = 0 : i32, efficient_layout} : "
     "(tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>\n"),
    "    %histogram = tt.histogram %t, %cmpi : tensor<8xi32> -> tensor<4xi32>\n",
    "    %histogram_4 = tt.histogram %t : tensor<8xi32> -> tensor<4xi32>\n",
    "    %convert = ttg.convert_layout %x : tensor<8xf32> -> tensor<8xf32>\n",
    "    %buffers = ttg.local_alloc : () -> " MEMORY("3x8x8", "shared", ", mutable") "\n",
    "    %one_row = ttg.local_alloc : () -> " MEMORY("8", "shared2", ", mutable") "\n",
    "    %scratch_a = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : "
    "!tt.ptr<i8>\n",
    "    %square_desc = ttng.reinterpret_tensor_descriptor %scratch_a : !tt.ptr<i8> to "
    "!tt.tensordesc<tensor<8x8xf32, #shared>>\n",
    ("    %alloc = ttg.local_alloc %x {allocation.offset = 0 : i32} : (tensor<8xf32>) -> " MEMORY(
        "8", "shared2", "") "\n"),
    ("    %buffer = ttg.memdesc_index %buffers[%i] : " MEMORY(
        "3x8x8", "shared", ", mutable") " -> " MEMORY("8x8", "shared", ", mutable") "\n"),
    ("    ttg.local_store %square, %buffer : tensor<8x8xf32> -> " MEMORY("8x8", "shared",
                                                                         ", mutable") "\n"),
    ("    %slice_of = ttg.memdesc_subslice %buffer[4, 0] : " MEMORY(
        "8x8", "shared", ", mutable") " -> " MEMORY("4x8", "shared", ", 8x8") "\n"),
    ("    %turned = ttg.memdesc_trans %slice_of {order = array<i32: 1, 0>} : " MEMORY(
        "4x8", "shared", ", 8x8") " -> " MEMORY("8x4", "shared1", ", 8x8") "\n"),
    ("    %shaped = ttg.memdesc_reshape %alloc : " MEMORY("8", "shared2", "") " -> " MEMORY(
        "8", "shared2", "") "\n"),
    ("    %other = ttg.memdesc_reinterpret %shaped : " MEMORY(
        "8", "shared2", "") " -> !ttg.memdesc<8xi16, #shared2, #smem>\n"),
    ("    %local = ttg.local_load %turned : " MEMORY("8x4", "shared1",
                                                     ", 8x8") " -> tensor<8x4xf32>\n"),
    "    ttg.local_barrier\n",
    "    %copy = ttg.async_copy_global_to_local %splat, %one_row : tensor<8x!tt.ptr<f32>> -> "
    "<8xf32, #shared2, #smem, mutable>\n",
    "    %copy_m = ttg.async_copy_global_to_local %splat, %one_row mask %cmpi other %x "
    "cacheModifier = cg {contiguity = 4 : i32} : tensor<8x!tt.ptr<f32>> -> <8xf32, #shared2, "
    "#smem, mutable>\n",
    "    %group = ttg.async_commit_group tokens %copy, %copy_m\n",
    "    %empty = ttg.async_commit_group\n",
    "    %waited = ttg.async_wait %group, %empty {num = 2 : i32}\n",
    "    %waited_a = ttg.async_wait {num = 0 : i32}\n",
    ("    %local_b = ttg.local_load %one_row token %waited : " MEMORY(
        "8", "shared2", ", mutable") " -> tensor<8xf32>\n"),
    "    %scratch = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : "
    "!tt.ptr<i8>\n",
    "    %bytes = ttg.fp4_to_fp %fp4 {axis = 1 : i32} : tensor<8x16xi8> -> tensor<8x32xbf16>\n",
    ("    %wg = ttng.warp_group_dot %square, %buffer, %square {isAsync = true} : tensor<8x8xf32> "
     "* " MEMORY("8x8", "shared", ", mutable") " -> tensor<8x8xf32>\n"),
    ("    %wg_a = ttng.warp_group_dot %buffer, %buffer, %wg, %c {isAsync = true} : " MEMORY(
        "8x8", "shared", ", mutable") " * " MEMORY("8x8", "shared",
                                                   ", mutable") " -> tensor<8x8xf32>\n"),
    ("    %wgw:2 = ttng.warp_group_dot_wait %wg_a, %buffer {pendings = 0 : i32} : "
     "tensor<8x8xf32>, " MEMORY("8x8", "shared", ", mutable") "\n"),
    "    ttng.fence_async_shared {bCluster = false}\n",
    "    %bar = ttg.local_alloc : () -> " BARRIER "\n",
    "    ttng.init_barrier %bar, 1 : " BARRIER "\n",
    "    ttng.barrier_expect %bar, 256, %c : " BARRIER "\n",
    "    ttng.arrive_barrier %bar, 2, %c : " BARRIER "\n",
    "    ttng.async_copy_mbarrier_arrive %bar {noIncrement} : " BARRIER "\n",
    "    ttng.async_tma_copy_global_to_local %square_desc[%i, %i] %buffer, %bar, %c : "
    "!tt.tensordesc<tensor<8x8xf32, #shared>>, " BARRIER
    " -> " MEMORY("8x8", "shared", ", mutable") "\n",
    "    ttng.wait_barrier %bar, %i : " BARRIER "\n",
    "    ttng.wait_barrier %bar, %i, %c : " BARRIER "\n",
    "    ttng.wait_barrier %bar, %i deps %buffer : " BARRIER
    ", " MEMORY("8x8", "shared", ", mutable") "\n",
    "    ttng.wait_barrier %bar, %i, %c deps %buffer, %buffer : " BARRIER
    ", " MEMORY("8x8", "shared", ", mutable") ", " MEMORY("8x8", "shared", ", mutable") "\n",
    "    ttng.async_tma_copy_local_to_global %square_desc[%i, %i] %buffer : "
    "!tt.tensordesc<tensor<8x8xf32, #shared>>, " MEMORY("8x8", "shared", ", mutable") "\n",
    "    ttng.async_tma_reduce add, %square_desc[%i, %i] %buffer : "
    "!tt.tensordesc<tensor<8x8xf32, #shared>>, " MEMORY("8x8", "shared", ", mutable") "\n",
    "    ttng.async_tma_store_wait {pendings = 0 : i32}\n",
    "    ttng.inval_barrier %bar : " BARRIER "\n",
    "    ttng.tensormap_create %scratch, %p, [%i, %i], [%i, %i], [%extsi], [%i, %i] {elem_type = 6 "
    ": i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : "
    "(!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()\n",
    "    ttng.tensormap_fenceproxy_acquire %scratch : !tt.ptr<i8>\n",
    "    ttg.local_dealloc %buffers : " MEMORY("3x8x8", "shared", ", mutable") "\n",
    "    %q = tt.addptr %splat, %range : tensor<8x!tt.ptr<f32>>, tensor<8xi32>\n",
    "    %s = tt.addptr %p, %extsi : !tt.ptr<f32>, i64\n",
    "    %cast = tt.bitcast %q : tensor<8x!tt.ptr<f32>> -> tensor<8x!tt.ptr<i32>>\n",
    "    %number = tt.ptr_to_int %p : !tt.ptr<f32> -> i64\n",
    "    %pointer = tt.int_to_ptr %number : i64 -> !tt.ptr<f16, 3>\n",
    "    %load = tt.load %q : tensor<8x!tt.ptr<f32>>\n",
    "    %load_5 = tt.load %q, %cmpi : tensor<8x!tt.ptr<f32>>\n",
    ("    %load_6 = tt.load %q, %cmpi, %x cacheModifier = ca evictionPolicy = evict_last "
     "{isVolatile = true} : tensor<8x!tt.ptr<f32>>\n"),
    "    tt.store %q, %x, %cmpi evictionPolicy = evict_first : tensor<8x!tt.ptr<f32>>\n",
    "    tt.store %p, %f cacheModifier = wt : !tt.ptr<f32>\n",
    ("    %rmw = tt.atomic_rmw fadd, relaxed, sys, %q, %x, %cmpi : "
     "(tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>\n"),
    "    %rmw_7 = tt.atomic_rmw exch, acq_rel, cta, %p, %f : (!tt.ptr<f32>, f32) -> f32\n",
    ("    %cas = tt.atomic_cas acquire, gpu, %cast, %t, %t : (tensor<8x!tt.ptr<i32>>, "
     "tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>\n"),
    ("    %block = tt.make_tensor_ptr %p, [%extsi, %extsi], [%extsi, %extsi], [%i, %i] "
     "{order = array<i32: 1, 0>} : <tensor<8x16xf32>>\n"),
    "    %block_8 = tt.advance %block, [%i, %i] : <tensor<8x16xf32>>\n",
    ("    %tile = tt.load %block_8 {boundaryCheck = array<i32: 0, 1>} : "
     "!tt.ptr<tensor<8x16xf32>>\n"),
    "    tt.store %block_8, %tile : !tt.ptr<tensor<8x16xf32>>\n",
    ("    %desc = tt.make_tensor_descriptor %p, [%i, %i], [%extsi, %extsi] : <f32>, "
     "<tensor<8x16xf32>>\n"),
    ("    %part = tt.descriptor_load %desc[%i, %i] cacheModifier = cg : "
     "!tt.tensordesc<tensor<8x16xf32>> -> tensor<8x16xf32>\n"),
    "    %box = lilac.tensor_box %desc[%i, %i] : !tt.tensordesc<tensor<8x16xf32>>\n",
    ("    tt.descriptor_store %desc[%i, %i], %part : !tt.tensordesc<tensor<8x16xf32>>, "
     "tensor<8x16xf32>\n"),
    ("    tt.descriptor_reduce max, %desc[%i, %i], %part : "
     "!tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>\n"),
    ("    %row = tt.make_tensor_descriptor %p, [%i, %i], [%extsi, %extsi] : <f32>, "
     "<tensor<1x16xf32>>\n"),
    ("    %rows = tt.descriptor_gather %row[%range, %i] : "
     "(!tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32) -> tensor<8x16xf32>\n"),
    ("    tt.descriptor_scatter %row[%range, %i], %rows : "
     "!tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32, tensor<8x16xf32>\n"),
    "    %mulhiui = tt.mulhiui %i, %i : i32\n",
    "    %clampf = tt.clampf %x, %x, %x, propagateNan = all : tensor<8xf32>\n",
    "    %psqrt = tt.precise_sqrt %f : f32\n",
    "    %pdiv = tt.precise_divf %f, %f : f32\n",
    "    %f8 = tt.fp_to_fp %x, rounding = rtne : tensor<8xf32> -> tensor<8xf8E4M3FN>\n",
    "    %f16 = tt.fp_to_fp %f8 : tensor<8xf8E4M3FN> -> tensor<8xf16>\n",
    ("    %extern = tt.extern_elementwise %x, %x {libname = \"\", libpath = \"\", pure = "
     "true, symbol = \"__nv_powf\"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>\n"),
    ("    %asm:2 = tt.elementwise_inline_asm \"mov.b32 $0, $2;\\0A\" {constraints = "
     "\"=r,=r,r,r\", packed_element = 1 : i32, pure = true} %t, %x : tensor<8xi32>, "
     "tensor<8xf32> -> tensor<8xi32>, tensor<8xf32>\n"),
    ("    %dot = tt.dot %broadcast, %trans, %square, inputPrecision = tf32x3 "
     "{maxNumImpreciseAcc = 7 : i32} : tensor<8x16xf32> * tensor<16x8xf32> -> "
     "tensor<8x8xf32>\n"),
    ("    %dot_9 = tt.dot %broadcast, %trans, %dot : tensor<8x16xf32> * tensor<16x8xf32> "
     "-> tensor<8x8xf32>\n"),
    ("    %scaled = tt.dot_scaled %fp4 scale %scale, %fp4_t scale %scale, %dot lhs = e2m1 "
     "rhs = e2m1 {fastMath = false} : tensor<8x16xi8>, tensor<8x1xi8> * tensor<16x8xi8>, "
     "tensor<8x1xi8> -> tensor<8x8xf32>\n"),
    ("    %scaled_10 = tt.dot_scaled %fp4, %fp4_t scale %scale, %dot lhs = e2m1 rhs = "
     "e2m1 {fastMath = true} : tensor<8x16xi8> * tensor<16x8xi8>, tensor<8x1xi8> -> "
     "tensor<8x8xf32>\n"),
    "    %reduce:2 = \"tt.reduce\"(%x, %t) <{axis = 0 : i32}> ({\n",
    "    ^bb0(%r0: f32, %r1: i32, %r2: f32, %r3: i32):\n",
    "      tt.reduce.return %r0, %r3 : f32, i32\n",
    "    }) {tt.note} : (tensor<8xf32>, tensor<8xi32>) -> (f32, i32)\n",
    "    %scan = \"tt.scan\"(%broadcast) <{axis = 1 : i32, reverse = true}> ({\n",
    "    ^bb0(%r0: f32, %r1: f32):\n",
    "      tt.scan.return %r1 : f32\n",
    "    }) : (tensor<8x16xf32>) -> tensor<8x16xf32>\n",
    "    %map = \"tt.map_elementwise\"(%x) <{pack = 2 : i32}> ({\n",
    "    ^bb0(%r0: f32, %r1: f32):\n",
    "      tt.map_elementwise.return %r1, %r0 : f32, f32\n",
    "    }) : (tensor<8xf32>) -> tensor<8xf32>\n",
    "    tt.assert %cmpi, \"message\" : tensor<8xi1>\n",
    ("    tt.print \" x: \" {hex = false, isSigned = array<i32: 1, 0>} : %t, %x : "
     "tensor<8xi32>, tensor<8xf32>\n"),
    "    tt.print \"only text\" {hex = false, isSigned = array<i32>}\n",
    "    cf.cond_br %c, ^bb1(%i, %f : i32, f32), ^bb2\n",
    "  ^bb1(%b0: i32, %b1: f32):\n",
    "    cf.br ^bb2\n",
    "  ^bb2:\n",
    "    tt.return %f : f32\n",
    "  }\n",
    "}\n",
};

static void join_lines(lilac_text *text) {
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        lilac_text_puts(text, lines[i]);
    }
}

static void count_visit(void *data, lilac_tile_op *op) {
    uint32_t *counts = data;
    counts[op->code]++;
}

static void every_operation_reads_and_prints(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0}, printed = {0};
    join_lines(&text);
    lilac_tile_module *module = read_tile(context, lilac_text_get(&text));
    lilac_tile_print(&printed, module, false);
    assert_string_equal(lilac_text_get(&printed), lilac_text_get(&text));
    lilac_text_clear(&printed);
    lilac_text_clear(&text);
    uint32_t counts[LILAC_TILE_OP_COUNT] = {0};
    for (lilac_tile_function *f = module->functions; f; f = f->next) {
        if (f->body) {
            lilac_tile_walk(f->body, count_visit, counts);
        }
    }
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        if (!counts[code]) {
            fail_msg("the text has no '%s'", lilac_tile_op_info_get((lilac_tile_opcode)code)->name);
        }
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void clone_visit(void *data, lilac_tile_op *op) {
    lilac_tile_module *module = data;
    if (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) {
        return;
    }
    lilac_tile_op *copy = lilac_tile_clone(module, op);
    assert_int_equal(copy->operand_count, op->operand_count);
    assert_int_equal(copy->attributes.count, op->attributes.count);
    lilac_tile_insert_before(op, copy);
}

/* Each operation twice: the clones verify, and print as text that reads back to itself. */
static void every_operation_clones(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0}, first = {0}, second = {0};
    join_lines(&text);
    lilac_tile_module *module = read_tile(context, lilac_text_get(&text));
    for (lilac_tile_function *f = module->functions; f; f = f->next) {
        if (f->body) {
            lilac_tile_walk(f->body, clone_visit, module);
        }
    }
    assert_true(lilac_tile_verify(module, false));
    lilac_tile_print(&first, module, true);
    lilac_tile_module *again = read_tile(context, lilac_text_get(&first));
    lilac_tile_print(&second, again, true);
    assert_string_equal(lilac_text_get(&first), lilac_text_get(&second));
    lilac_text_clear(&text);
    lilac_text_clear(&first);
    lilac_text_clear(&second);
    lilac_tile_module_destroy(again);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_reads_and_prints),
        cmocka_unit_test(every_operation_clones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
