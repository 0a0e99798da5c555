/* Numbers of a thread between kernels: those of the threads of a block lie next to each other. */
template <typename T, unsigned B> struct arc_far {
    T *at;
    __device__ __forceinline__ T &operator[](unsigned k) const { return at[k * B]; }
};
