// Stores of rows that start within sectors, divided among lanes and warps in several ways. bench/divided_rows.py runs
// the kernels.
//
// A block of four warps has 16 rows, `width` of up to 64 floats each, which follow each other in memory. LANES lanes lie
// along a row, the others of a warp have further rows. A warp stores eight times, first along a row:
//
//   rows     a warp has 4 whole rows
//   columns  a warp has 16 columns of all rows, so that a row is divided among the warps
//
// store_… writes constants, copy_… what it reads from the same place of another tensor.
template <int LANES, bool COLUMNS> __device__ void place(int k, int &row, int &column) {
    constexpr int rows = 32 / LANES, along = (COLUMNS ? 16 : 64) / LANES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    column = (COLUMNS ? 16 * warp : 0) + k % along * LANES + lane % LANES;
    row = (COLUMNS ? 0 : 4 * warp) + k / along * rows + lane / LANES;
}

template <int LANES, bool COLUMNS, bool READ>
__device__ void divided(const float *in, float *out, int width) {
    float values[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int row, column;
        place<LANES, COLUMNS>(k, row, column);
        values[k] = READ && column < width ? in[(size_t)(16 * blockIdx.x + row) * width + column] : 0;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int row, column;
        place<LANES, COLUMNS>(k, row, column);
        if (column < width)
            out[(size_t)(16 * blockIdx.x + row) * width + column] = values[k] + 1;
    }
}

#define KERNEL(name, lanes, columns, read)                                                         \
    extern "C" __global__ void name(const float *in, float *out, int width) {                      \
        divided<lanes, columns, read>(in, out, width);                                             \
    }
#define KERNELS(prefix, read)                                                                      \
    KERNEL(prefix##_32_rows, 32, false, read)                                                      \
    KERNEL(prefix##_16_rows, 16, false, read)                                                      \
    KERNEL(prefix##_8_rows, 8, false, read)                                                        \
    KERNEL(prefix##_16_columns, 16, true, read)                                                    \
    KERNEL(prefix##_8_columns, 8, true, read)                                                      \
    KERNEL(prefix##_4_columns, 4, true, read)
KERNELS(store, false)
KERNELS(copy, true)
