// Hand-written kernels with the launch shape of the corpus' reductions: what a launch, the traffic of
// its tiles, and the whole reduction take at best. bench/reduce_floor.py runs them.
//
// Every kernel has the parameters of reduce2d and its launcher's two scratch pointers, and blocks of
// 128 threads. A thread reads 8 or 32 vectors of 16 bytes:
//
//   nothing    returns at once
//   read       adds up what it reads; thread 0 stores one value a block
//   traffic    the same, and as many values are stored as the reduction has results
//   bulk       the tile is copied to shared memory at once, and added up from there
//   reduce     sum and arg-max, the first of equal ones, along the axis
#include <stdint.h>

// At least `blocks` on a multiprocessor: ptxas keeps to as few registers.
#define KERNEL(blocks) extern "C" __global__ void __launch_bounds__(128, blocks)
#define PARAMETERS const float *x, float *y, int *z, void *, void *

enum hint { PLAIN, NO_ALLOCATE, FIRST }; // caches' hints: not in L1; first to leave L2

template <int HINT> __device__ float4 read(const float *p) {
    float4 v;
    if (HINT == PLAIN)
        asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    else if (HINT == NO_ALLOCATE)
        asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    else {
        uint64_t policy;
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
        asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p), "l"(policy));
    }
    return v;
}

// LANES lanes side by side along a row of ROW floats, the others below them, a thread's next vector
// below those; WARPS_ACROSS of the four warps side by side.
template <int ROW, int LANES, int WARPS_ACROSS> struct place {
    static constexpr int warps_down = 4 / WARPS_ACROSS;
    static constexpr int step = 32 / LANES; // rows from one vector to the next
    int column, row;                        // of the first vector
    __device__ place(int count) {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        column = (warp % WARPS_ACROSS) * LANES * 4 + lane % LANES * 4;
        row = warp / WARPS_ACROSS * count * step + lane / LANES;
    }
};

// ---- traffic -----------------------------------------------------------------------------------

template <int COUNT, int ROW, int LANES, int WARPS_ACROSS, int HINT>
__device__ float add_up(const float *x) {
    using shape = place<ROW, LANES, WARPS_ACROSS>;
    shape at(COUNT);
    const float *p = x + (size_t)blockIdx.x * COUNT * 512 + at.row * ROW + at.column;
    float4 v[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] = read<HINT>(p + i * shape::step * ROW);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) sum += v[i].x + v[i].y + (v[i].z + v[i].w);
    return sum;
}

#define READ(name, blocks, ...)                                                                    \
    KERNEL(blocks) name(PARAMETERS) {                                                              \
        float sum = add_up<__VA_ARGS__>(x);                                                        \
        if (threadIdx.x == 0 || sum == 1e38f) y[blockIdx.x] = sum;                                 \
    }
#define TRAFFIC(name, results, ...)                                                                \
    KERNEL(1) name(PARAMETERS) {                                                                   \
        float sum = add_up<__VA_ARGS__>(x);                                                        \
        if (threadIdx.x < results) {                                                               \
            y[blockIdx.x * results + threadIdx.x] = sum;                                           \
            z[blockIdx.x * results + threadIdx.x] = (int)threadIdx.x;                              \
        }                                                                                          \
    }

// Through shared memory, in four parts; a part is added up as soon as it is there.
template <int COUNT> __device__ void bulk(const float *x, float *y) {
    extern __shared__ __align__(128) float tile[];
    __shared__ __align__(8) uint64_t full[4];
    constexpr int bytes = COUNT * 2048 / 4;
    uint32_t bar = (uint32_t)__cvta_generic_to_shared(full);
    uint32_t to = (uint32_t)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; i++)
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar + 8 * i));
        asm volatile("fence.proxy.async;");
        const char *from = (const char *)(x + (size_t)blockIdx.x * COUNT * 512);
        for (int i = 0; i < 4; i++) {
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar + 8 * i),
                         "r"(bytes));
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];" ::"r"(to + i * bytes), "l"(from + i * bytes),
                         "r"(bytes), "r"(bar + 8 * i) : "memory");
        }
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n"
                     "@!p bra again; }" ::"r"(bar + 8 * i) : "memory");
#pragma unroll
        for (int k = 0; k < COUNT / 4; k++) {
            float4 v = *(const float4 *)(tile + i * (bytes / 4) + k * 512 + threadIdx.x * 4);
            sum += v.x + v.y + (v.z + v.w);
        }
    }
    if (threadIdx.x == 0 || sum == 1e38f) y[blockIdx.x] = sum;
}

KERNEL(1) nothing(PARAMETERS) {}
KERNEL(1) bulk_8(PARAMETERS) { bulk<8>(x, y); }
KERNEL(1) bulk_32(PARAMETERS) { bulk<32>(x, y); }
READ(read_8, 1, 8, 128, 32, 1, PLAIN)
READ(read_8_no_allocate, 1, 8, 128, 32, 1, NO_ALLOCATE)
READ(read_8_first, 1, 8, 128, 32, 1, FIRST)
READ(read_8_blocks16, 16, 8, 128, 32, 1, PLAIN)
READ(read_32, 1, 32, 128, 32, 1, PLAIN)
READ(read_32_no_allocate, 1, 32, 128, 32, 1, NO_ALLOCATE)
READ(read_32_first, 1, 32, 128, 32, 1, FIRST)
READ(read_32_blocks8, 8, 32, 128, 32, 1, PLAIN)
READ(read_32_blocks16, 16, 32, 128, 32, 1, PLAIN)
READ(read_64x64_segment64, 1, 8, 64, 4, 4, PLAIN) // of a row that one warp takes, in bytes
READ(read_64x64_segment128, 1, 8, 64, 8, 2, PLAIN)
TRAFFIC(traffic_64x64, 64, 8, 64, 8, 2, PLAIN)
TRAFFIC(traffic_64x64_first, 64, 8, 64, 8, 2, FIRST)
TRAFFIC(traffic_16x256, 16, 8, 128, 32, 1, PLAIN)
TRAFFIC(traffic_16x256_first, 16, 8, 128, 32, 1, FIRST)
TRAFFIC(traffic_128x128, 128, 32, 128, 8, 4, PLAIN)
TRAFFIC(traffic_128x128_first, 128, 32, 128, 8, 4, FIRST)

// ---- the whole reduction -----------------------------------------------------------------------

struct partial { float sum, best; int index; };

__device__ __forceinline__ partial join(partial a, partial b) {
    bool left = a.best > b.best || (a.best == b.best && a.index < b.index);
    return {a.sum + b.sum, left ? a.best : b.best, left ? a.index : b.index};
}
__device__ __forceinline__ partial shuffle(partial a, int mask) {
    return {__shfl_xor_sync(~0u, a.sum, mask), __shfl_xor_sync(~0u, a.best, mask),
            __shfl_xor_sync(~0u, a.index, mask)};
}
// Of two elements each of a pair of lanes keeps one: the upper lane b.
__device__ __forceinline__ partial give(partial a, partial b, int mask, bool upper) {
    partial keeps = upper ? b : a;
    return join(keeps, shuffle(upper ? a : b, mask));
}
__device__ __forceinline__ partial take(partial c, float e, int index) {
    bool more = e > c.best;
    return {c.sum + e, more ? e : c.best, more ? index : c.index};
}

// Along columns: DEPTH vectors are on their way while those before them are taken up.
template <int COUNT, int ROW, int LANES, int WARPS_ACROSS, int DEPTH, int HINT>
__device__ void reduce_columns(const float *x, float *y, int *z) {
    using shape = place<ROW, LANES, WARPS_ACROSS>;
    shape at(COUNT);
    const float *p = x + (size_t)blockIdx.x * COUNT * 512 + at.row * ROW + at.column;
    float4 v[COUNT];
    partial c[4];
#pragma unroll
    for (int i = 0; i < DEPTH; i++) v[i] = read<HINT>(p + i * shape::step * ROW);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const float e[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
#pragma unroll
        for (int k = 0; k < 4; k++)
            c[k] = i == 0 ? partial{e[k], e[k], 0} : take(c[k], e[k], i * shape::step);
        if (i + DEPTH < COUNT) v[i + DEPTH] = read<HINT>(p + (i + DEPTH) * shape::step * ROW);
    }
    int lane = threadIdx.x % 32, column = at.column;
#pragma unroll
    for (int k = 0; k < 4; k++) c[k].index += at.row;
    c[0] = give(c[0], c[2], 16, lane & 16), c[1] = give(c[1], c[3], 16, lane & 16);
    c[0] = give(c[0], c[1], 8, lane & 8);
    column += (lane & 16 ? 2 : 0) + (lane & 8 ? 1 : 0);
    if (LANES == 4) c[0] = join(c[0], shuffle(c[0], 4));
    if (shape::warps_down > 1) {
        __shared__ partial all[shape::warps_down][ROW];
        all[threadIdx.x / 32 / WARPS_ACROSS][column] = c[0];
        __syncthreads();
        if (threadIdx.x >= ROW) return;
        column = threadIdx.x;
        c[0] = all[0][column];
#pragma unroll
        for (int i = 1; i < shape::warps_down; i++) c[0] = join(c[0], all[i][column]);
    }
    y[blockIdx.x * ROW + column] = c[0].sum;
    z[blockIdx.x * ROW + column] = c[0].index;
}

// Along 16 rows of 256 floats: LANES lanes to a row.
template <int LANES, int DEPTH, int HINT>
__device__ void reduce_rows(const float *x, float *y, int *z) {
    constexpr int across = 256 / (LANES * 4), down = 8 / across, rows = 32 / LANES;
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 4 + lane / LANES, column = lane % LANES * 4;
    const float *p = x + (size_t)blockIdx.x * 4096 + row * 256 + column;
    float4 v[8];
    partial c[down];
    auto from = [&](int i) { return p + i / across * rows * 256 + i % across * LANES * 4; };
#pragma unroll
    for (int i = 0; i < DEPTH; i++) v[i] = read<HINT>(from(i));
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float e[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
        partial &to = c[i / across];
#pragma unroll
        for (int k = 0; k < 4; k++)
            to = i % across + k == 0 ? partial{e[0], e[0], 0}
                                     : take(to, e[k], i % across * LANES * 4 + k);
        if (i + DEPTH < 8) v[i + DEPTH] = read<HINT>(from(i + DEPTH));
    }
#pragma unroll
    for (int d = 0; d < down; d++) c[d].index += column;
    int left = LANES / 2;
    if (down == 2) {
        c[0] = give(c[0], c[1], left, lane & left);
        row += lane & left ? rows : 0;
        left /= 2;
    }
    for (; left > 0; left /= 2) c[0] = join(c[0], shuffle(c[0], left));
    if (lane % (LANES / down) == 0) {
        y[blockIdx.x * 16 + row] = c[0].sum;
        z[blockIdx.x * 16 + row] = c[0].index;
    }
}

#define COLUMNS(name, blocks, ...)                                                                 \
    KERNEL(blocks) name(PARAMETERS) { reduce_columns<__VA_ARGS__>(x, y, z); }
#define ROWS(name, blocks, ...)                                                                    \
    KERNEL(blocks) name(PARAMETERS) { reduce_rows<__VA_ARGS__>(x, y, z); }
COLUMNS(reduce_64x64_axis0_segment64, 1, 8, 64, 4, 4, 8, PLAIN)
COLUMNS(reduce_64x64_axis0_segment128, 1, 8, 64, 8, 2, 8, PLAIN)
COLUMNS(reduce_64x64_axis0_segment128_blocks12, 12, 8, 64, 8, 2, 6, PLAIN)
COLUMNS(reduce_64x64_axis0_segment128_first, 1, 8, 64, 8, 2, 8, FIRST)
COLUMNS(reduce_128x128_axis0_depth32, 1, 32, 128, 8, 4, 32, PLAIN)
COLUMNS(reduce_128x128_axis0_depth16_blocks5, 5, 32, 128, 8, 4, 16, PLAIN)
COLUMNS(reduce_128x128_axis0_depth8_blocks8, 8, 32, 128, 8, 4, 8, PLAIN)
COLUMNS(reduce_128x128_axis0_depth3_blocks16, 16, 32, 128, 8, 4, 3, PLAIN)
COLUMNS(reduce_128x128_axis0_depth16_blocks5_first, 5, 32, 128, 8, 4, 16, FIRST)
ROWS(reduce_16x256_axis1_lanes8, 1, 8, 8, PLAIN)
ROWS(reduce_16x256_axis1_lanes8_blocks16, 16, 8, 4, PLAIN)
ROWS(reduce_16x256_axis1_lanes16, 1, 16, 8, PLAIN)
ROWS(reduce_16x256_axis1_lanes8_first, 1, 8, 8, FIRST)
