// Hand-written kernels with the launch shape of the corpus' gathers: what a launch, the traffic, and the
// whole take at best. bench/gather_floor.py runs them.
//
// Every kernel has the parameters of gather_rows and its launcher's two scratch pointers, and blocks of
// 128 threads, one block a tile of N elements:
//
//   nothing    returns at once
//   copy       reads the tile and its indices, writes as much as a gather does
//   persist    the same by as many blocks as fit at once, which go from tile to tile
//   bulk       one thread has both copied to shared memory and what is written copied from there
//   gather     four gathers along an axis, in several ways
#include <stdint.h>

#define PARAMETERS const float *src, const int *idx, float *out, void *, void *
#define KERNEL(blocks) extern "C" __global__ void __launch_bounds__(128, blocks)

KERNEL(1) nothing(PARAMETERS) {}

// What the caches are told: of loads, of stores.
enum hint { PLAIN, FIRST, NO_L1, STREAM };

__device__ uint64_t evict_first() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

template <int HINT> __device__ int4 read(const void *p) {
    int4 v;
#define READ(text)                                                                                   \
    asm volatile("ld.global" text ".v4.b32 {%0, %1, %2, %3}, [%4];"                                  \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p))
    if (HINT == PLAIN) READ("");
    else if (HINT == NO_L1) READ(".L1::no_allocate");
    else if (HINT == STREAM) READ(".cs");
    else
        asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p), "l"(evict_first()));
    return v;
}

template <int HINT> __device__ int read_one(const void *p) {
    int v;
    if (HINT == FIRST)
        asm volatile("ld.global.L1::no_allocate.L2::cache_hint.b32 %0, [%1], %2;"
                     : "=r"(v) : "l"(p), "l"(evict_first()));
    else asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

template <int HINT> __device__ void write(void *p, int4 v) {
    if (HINT == FIRST)
        asm volatile("st.global.L2::cache_hint.v4.b32 [%0], {%1, %2, %3, %4}, %5;"
                     :: "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "l"(evict_first()) : "memory");
    else if (HINT == STREAM)
        asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};"
                     :: "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
    else *(int4 *)p = v;
}

__device__ int4 mix(int4 a, int4 b) {
    return make_int4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

// N elements, each thread's vectors 512 apart: a warp's instruction takes 512 bytes.
template <int N, int LOAD, int STORE> __device__ void copy_tile(PARAMETERS, size_t tile) {
    constexpr int count = N / 512;
    size_t at = tile * N + threadIdx.x * 4;
    int4 s[count], i[count];
#pragma unroll
    for (int k = 0; k < count; k++) s[k] = read<LOAD>(src + at + 512 * k);
#pragma unroll
    for (int k = 0; k < count; k++) i[k] = read<LOAD>(idx + at + 512 * k);
#pragma unroll
    for (int k = 0; k < count; k++) write<STORE>(out + at + 512 * k, mix(s[k], i[k]));
}

#define COPY(N, name, load, store, blocks)                                                           \
    KERNEL(blocks) copy_##N##_##name(PARAMETERS) {                                                   \
        copy_tile<N, load, store>(src, idx, out, 0, 0, blockIdx.x);                                  \
    }
#define COPIES(N)                                                                                    \
    COPY(N, plain, PLAIN, PLAIN, 1)                                                                  \
    COPY(N, full, PLAIN, PLAIN, 16)                                                                  \
    COPY(N, no_l1, NO_L1, PLAIN, 1)                                                                  \
    COPY(N, stream, STREAM, STREAM, 1)                                                               \
    COPY(N, loads_first, FIRST, PLAIN, 1)                                                            \
    COPY(N, both_first, FIRST, FIRST, 1)                                                             \
    KERNEL(8) persist_##N##_plain(PARAMETERS) {                                                      \
        for (size_t tile = blockIdx.x; tile < 4096; tile += gridDim.x)                               \
            copy_tile<N, PLAIN, PLAIN>(src, idx, out, 0, 0, tile);                                   \
    }                                                                                                \
    KERNEL(8) persist_##N##_both_first(PARAMETERS) {                                                 \
        for (size_t tile = blockIdx.x; tile < 4096; tile += gridDim.x)                               \
            copy_tile<N, FIRST, FIRST>(src, idx, out, 0, 0, tile);                                   \
    }
COPIES(1024)
COPIES(2048)

// ---- the copy engine -------------------------------------------------------------------------

__device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

template <int N> __device__ void bulk_tile(PARAMETERS) {
    extern __shared__ __align__(128) int memory[]; // src, then idx
    __shared__ __align__(8) uint64_t barrier;
    uint32_t bar = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar));
        asm volatile("fence.proxy.async.shared::cta;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(bar), "r"(8 * N));
        const void *from[2] = {src + (size_t)blockIdx.x * N, idx + (size_t)blockIdx.x * N};
        for (int k = 0; k < 2; k++)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];"
                         :: "r"(shared_address(memory + N * k)), "l"(from[k]), "r"(4 * N), "r"(bar)
                         : "memory");
    }
    __syncthreads();
    asm volatile("{\n\t.reg .pred p;\nagain:\n\t"
                 "mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n\t@!p bra again;\n\t}"
                 :: "r"(bar) : "memory");
    int4 *s = (int4 *)memory, *i = (int4 *)(memory + N);
#pragma unroll
    for (int k = 0; k < N / 512; k++)
        s[threadIdx.x + 128 * k] = mix(s[threadIdx.x + 128 * k], i[threadIdx.x + 128 * k]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     :: "l"(out + (size_t)blockIdx.x * N), "r"(shared_address(memory)), "r"(4 * N)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

KERNEL(1) bulk_1024(PARAMETERS) { bulk_tile<1024>(src, idx, out, 0, 0); }
KERNEL(1) bulk_2048(PARAMETERS) { bulk_tile<2048>(src, idx, out, 0, 0); }

// ---- gathers ---------------------------------------------------------------------------------

enum { TIMES = 4 };

// Along rows of ROW ≤ 32: a lane a column, one word an access, the index names the lane.
template <int N, int ROW, int HINT> __device__ void rows_by_words(PARAMETERS) {
    constexpr int count = N / 128;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t at = (size_t)blockIdx.x * N + warp * (N / 4) + lane;
    int v[count], from[count];
#pragma unroll
    for (int k = 0; k < count; k++) v[k] = read_one<HINT>(src + at + 32 * k);
#pragma unroll
    for (int k = 0; k < count; k++) from[k] = read_one<HINT>(idx + at + 32 * k);
#pragma unroll
    for (int k = 0; k < count; k++) {
        from[k] = (from[k] & (ROW - 1)) | (lane & ~(ROW - 1));
#pragma unroll
        for (int t = 0; t < TIMES; t++) v[k] = __shfl_sync(~0u, v[k], from[k]);
        out[at + 32 * k] = __int_as_float(v[k]);
    }
}

// The same with accesses of 16 bytes: through a warp's own shared memory into words a lane and back.
template <int N, int ROW, int HINT> __device__ void rows_by_vectors(PARAMETERS) {
    constexpr int count = N / 128;
    __shared__ __align__(16) int memory[4][N / 4];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t at = (size_t)blockIdx.x * N + warp * (N / 4);
    int4 s[count / 4], i[count / 4];
    int v[count], from[count];
#pragma unroll
    for (int k = 0; k < count / 4; k++) s[k] = read<HINT>(src + at + 128 * k + 4 * lane);
#pragma unroll
    for (int k = 0; k < count / 4; k++) i[k] = read<HINT>(idx + at + 128 * k + 4 * lane);
#pragma unroll
    for (int k = 0; k < count / 4; k++) *(int4 *)&memory[warp][128 * k + 4 * lane] = s[k];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < count; k++) v[k] = memory[warp][32 * k + lane];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < count / 4; k++) *(int4 *)&memory[warp][128 * k + 4 * lane] = i[k];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < count; k++) {
        from[k] = (memory[warp][32 * k + lane] & (ROW - 1)) | (lane & ~(ROW - 1));
#pragma unroll
        for (int t = 0; t < TIMES; t++) v[k] = __shfl_sync(~0u, v[k], from[k]);
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < count; k++) memory[warp][32 * k + lane] = v[k];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < count / 4; k++)
        write<PLAIN>(out + at + 128 * k + 4 * lane, *(int4 *)&memory[warp][128 * k + 4 * lane]);
}

// Along columns of 32 rows of 64: a thread has a column's part, the columns stand side by side in
// shared memory, and no index makes a conflict.
template <int HINT> __device__ void columns_by_memory(PARAMETERS) {
    constexpr int ROWS = 32, ROW = 64, count = 16;
    __shared__ int memory[2][ROWS * ROW];
    int column = threadIdx.x % 64, first = threadIdx.x / 64;
    size_t at = (size_t)blockIdx.x * ROWS * ROW + column;
    int v[count], from[count];
#pragma unroll
    for (int k = 0; k < count; k++) v[k] = read_one<HINT>(src + at + (2 * k + first) * ROW);
#pragma unroll
    for (int k = 0; k < count; k++) from[k] = read_one<HINT>(idx + at + (2 * k + first) * ROW);
#pragma unroll
    for (int t = 0; t < TIMES; t++) {
#pragma unroll
        for (int k = 0; k < count; k++) memory[t & 1][(2 * k + first) * ROW + column] = v[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < count; k++)
            v[k] = memory[t & 1][(from[k] & (ROWS - 1)) * ROW + column];
    }
#pragma unroll
    for (int k = 0; k < count; k++) out[at + (2 * k + first) * ROW] = __int_as_float(v[k]);
}

// The same with vectors: a thread has four columns' parts.
template <int HINT> __device__ void columns_by_vectors(PARAMETERS) {
    constexpr int ROWS = 32, ROW = 64, count = 4;
    __shared__ __align__(16) int memory[2][ROWS * ROW];
    int column = threadIdx.x % 16 * 4, first = threadIdx.x / 16;
    size_t at = (size_t)blockIdx.x * ROWS * ROW + column;
    int4 v[count], from[count];
#pragma unroll
    for (int k = 0; k < count; k++) v[k] = read<HINT>(src + at + (8 * k + first) * ROW);
#pragma unroll
    for (int k = 0; k < count; k++) from[k] = read<HINT>(idx + at + (8 * k + first) * ROW);
#pragma unroll
    for (int t = 0; t < TIMES; t++) {
        int *here = memory[t & 1];
#pragma unroll
        for (int k = 0; k < count; k++) *(int4 *)&here[(8 * k + first) * ROW + column] = v[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < count; k++)
            v[k] = make_int4(here[(from[k].x & 31) * ROW + column],
                             here[(from[k].y & 31) * ROW + column + 1],
                             here[(from[k].z & 31) * ROW + column + 2],
                             here[(from[k].w & 31) * ROW + column + 3]);
    }
#pragma unroll
    for (int k = 0; k < count; k++) write<PLAIN>(out + at + (8 * k + first) * ROW, v[k]);
}

#define GATHER(case, name, blocks, call)                                                             \
    KERNEL(blocks) gather_##case##_##name(PARAMETERS) { call(src, idx, out, 0, 0); }
#define GATHERS(case, N, ROW)                                                                        \
    GATHER(case, words, 1, (rows_by_words<N, ROW, PLAIN>))                                           \
    GATHER(case, words_full, 16, (rows_by_words<N, ROW, PLAIN>))                                     \
    GATHER(case, words_first, 1, (rows_by_words<N, ROW, FIRST>))                                     \
    GATHER(case, vectors, 1, (rows_by_vectors<N, ROW, PLAIN>))                                       \
    GATHER(case, vectors_first, 1, (rows_by_vectors<N, ROW, FIRST>))
GATHERS(64x32_axis1, 2048, 32)
GATHERS(128x8_axis1, 1024, 8)
GATHER(32x64_axis0, memory, 1, columns_by_memory<PLAIN>)
GATHER(32x64_axis0, memory_full, 16, columns_by_memory<PLAIN>)
GATHER(32x64_axis0, memory_first, 1, columns_by_memory<FIRST>)
GATHER(32x64_axis0, vectors, 1, columns_by_vectors<PLAIN>)
GATHER(32x64_axis0, vectors_first, 1, columns_by_vectors<FIRST>)
