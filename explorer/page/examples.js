// Examples of the workbench and of kernels.

const blocked = (shape, size, threads, warps, order) =>
  `tensor<${shape}, #ttg.blocked<{sizePerThread = [${size}], threadsPerWarp = [${threads}], warpsPerCTA = [${warps}],`
  + ` order = [${order}]}>>`;

export const PAIRS = [
  {
    name: "Transpose of 16×32 words by one warp", vector: 4,
    a: "16x32xf32\nregister = m0 m1 m2 m3\nlane = n0 n1 n2 n3 n4",
    b: "16x32xf32\nregister = n1 n2 n3 n4\nlane = m0 m1 m2 m3 n0",
  },
  {
    name: "Transpose of 64×64 halves by four warps", vector: 16,
    a: blocked("64x64xf16", "1, 8", "4, 8", "4, 1", "1, 0"),
    b: blocked("64x64xf16", "8, 1", "8, 4", "1, 4", "0, 1"),
  },
  {
    name: "Rows and columns of a 32×32 array", vector: 4,
    a: "32x32xf32\nregister = m0 m1 m2 m3 m4\nlane = n0 n1 n2 n3 n4",
    b: "32x32xf32\nregister = n0 n1 n2 n3 n4\nlane = m0 m1 m2 m3 m4",
  },
  {
    name: "The paper's blocked layout of 16×16 (Figure 1), and its transpose", vector: 16,
    a: blocked("16x16xf32", "2, 2", "4, 8", "2, 1", "1, 0"),
    b: blocked("16x16xf32", "2, 2", "8, 4", "1, 2", "0, 1"),
  },
  {
    name: "An accumulator of mma to rows for a store", vector: 16,
    a: "tensor<64x64xf16, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>>",
    b: blocked("64x64xf16", "1, 8", "4, 8", "4, 1", "1, 0"),
  },
  {
    name: "Rows to an operand of mma", vector: 16,
    a: blocked("64x64xf16", "1, 8", "4, 8", "4, 1", "1, 0"),
    b: "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>\n"
      + "tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>",
  },
  {
    name: "Memory of 64 channels, row-major and in blocks of 32 (NCHW, NCHW_VECT_C)", view: "layouts",
    a: "row_major(1x64x8x8)",
    b: "tiled(1x64x8x8, NC/32HW32)",
  },
  {
    name: "Within a warp: shuffles suffice", vector: 16,
    a: "8x32xf32\nregister = n0 n1 m0\nlane = n2 n3 n4 m1 m2",
    b: "8x32xf32\nregister = m0 n0 n2\nlane = n1 n3 n4 m1 m2",
  },
  {
    name: "Bytes: elements narrower than a bank", vector: 16,
    a: "32x64xi8\nregister = m0 m1 m2 m3 m4 n5\nlane = n0 n1 n2 n3 n4",
    b: "32x64xi8\nregister = n0 n1 n2 n3 n4 n5\nlane = m0 m1 m2 m3 m4",
  },
  {
    name: "A tensor and a swizzled memory: bank conflicts", vector: 16,
    a: blocked("32x32xf32", "1, 1", "32, 1", "1, 1", "1, 0"),
    b: "!ttg.memdesc<32x32xf32, #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>, #ttg.shared_memory>",
  },
  {
    name: "A tensor and row-major memory as CuTe writes it", vector: 16,
    a: blocked("32x32xf32", "1, 1", "32, 1", "1, 1", "1, 0"),
    b: "(32,32):(32,1)",
  },
  {
    name: "CuTe's thread-value layout of an accumulator, and rows", vector: 16,
    a: "tv(16x8xf32) ((4,8),(2,2)):((32,1),(16,8))",
    b: "16x8xf32\nregister = n0 n1\nlane = n2 m0 m1 m2 m3",
  },
  {
    name: "A bit matrix (columns: registers, lanes)", vector: 16,
    a: "8x16xf32 register:2 lane:5\n10 00000\n01 00000\n00 10000\n00 01000\n00 00100\n00 00010\n00 00001",
    b: "8x16xf32 register:2 lane:5\n00 10000\n00 01000\n10 00000\n01 00000\n00 00100\n00 00010\n00 00001",
  },
];
