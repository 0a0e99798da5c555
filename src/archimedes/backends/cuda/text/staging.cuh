#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define ARC_COPIES 1
#else
#define ARC_COPIES 0
#endif

/* Begin to copy a number, or 16 bytes, to shared memory; arc_arrived waits for all of them. */
template <typename T>
__device__ static __forceinline__ void arc_begin(T *to, const T *from)
{
#if ARC_COPIES
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (sizeof(T) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    } else if (sizeof(T) == 8) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
    }
#else
    *to = *from;
#endif
}

__device__ static __forceinline__ void arc_arrived(void)
{
#if ARC_COPIES
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}

/* Whether a whole block's rows are copied 16 bytes at a time: as they lie, from there on. */
template <typename T, unsigned N, unsigned S, unsigned B>
__device__ static __forceinline__ bool arc_wide(const T *far, unsigned n)
{
    return S == N && B * N * sizeof(T) % 16 == 0 && n == B && (uint64_t)far % 16 == 0;
}

/* A block's n rows of N numbers, from memory to rows of S numbers in shared memory. */
template <typename T, unsigned N, unsigned S, unsigned B>
__device__ static __forceinline__ void arc_fetch(T *rows, const T *__restrict__ from, unsigned n)
{
    if (arc_wide<T, N, S, B>(from, n)) {
#pragma unroll 16
        for (unsigned k = threadIdx.x; k < B * N * sizeof(T) / 16; k += B) {
            arc_begin((uint4 *)rows + k, (const uint4 *)from + k);
        }
    } else {
#pragma unroll 4
        for (unsigned k = threadIdx.x; k < n * N; k += B) {
            arc_begin(rows + (S == N ? k : k / N * S + k % N), from + k);
        }
    }
}

/* The way back. */
template <typename T, unsigned N, unsigned S, unsigned B>
__device__ static __forceinline__ void arc_put(T *__restrict__ to, const T *rows, unsigned n)
{
    if (arc_wide<T, N, S, B>(to, n)) {
#pragma unroll 16
        for (unsigned k = threadIdx.x; k < B * N * sizeof(T) / 16; k += B) {
            ((uint4 *)to)[k] = ((const uint4 *)rows)[k];
        }
    } else {
#pragma unroll 4
        for (unsigned k = threadIdx.x; k < n * N; k += B) {
            to[k] = rows[S == N ? k : k / N * S + k % N];
        }
    }
}
