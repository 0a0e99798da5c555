/* What is one instruction of a GPU, in place of the functions of C with these names. */

//: arc_single
__device__ static inline float arc_single(double x)
{
    return __double2float_rn(x);
}

//: arc_single_of_int
__device__ static inline float arc_single_of_int(int64_t x)
{
    return __ll2float_rn(x);
}

//: arc_bits
__device__ static inline int64_t arc_bits(double x)
{
    return __double_as_longlong(x);
}

//: arc_from_bits
__device__ static inline double arc_from_bits(int64_t x)
{
    return __longlong_as_double(x);
}

//: arc_word
__device__ static inline uint32_t arc_word(float x)
{
    return __float_as_uint(x);
}

//: arc_from_word
__device__ static inline float arc_from_word(uint32_t x)
{
    return __uint_as_float(x);
}

//: arc_sinf
__device__ static inline float arc_sinf(float x)
{
    return arc_single(arc_sin((double)x));
}

//: arc_cosf
__device__ static inline float arc_cosf(float x)
{
    return arc_single(arc_cos((double)x));
}

//: arc_sqrt
__device__ static inline double arc_sqrt(double x)
{
    return __dsqrt_rn(x);
}

//: arc_sqrtf
__device__ static inline float arc_sqrtf(float x)
{
    return __fsqrt_rn(x);
}

//: arc_fma
__device__ static inline double arc_fma(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}

//: arc_fmaf
__device__ static inline float arc_fmaf(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}

//: arc_fabs@
__device__ static inline T arc_fabs@(T x)
{
    return fabs@(x);
}

//: arc_copysign@
__device__ static inline T arc_copysign@(T x, T sign)
{
    return copysign@(x, sign);
}

//: arc_rint@
__device__ static inline T arc_rint@(T x)
{
    return rint@(x);
}

//: arc_floor@
__device__ static inline T arc_floor@(T x)
{
    return floor@(x);
}

//: arc_ceil@
__device__ static inline T arc_ceil@(T x)
{
    return ceil@(x);
}

//: arc_trunc@
__device__ static inline T arc_trunc@(T x)
{
    return trunc@(x);
}

// A quotient by a constant c with 1 / c about high + low (exact_division.py); numerators other than 0
// whose bits without the sign, twice, are at most limit are divided.

//: arc_divided
__device__ static inline double arc_divided(double x, double c, double high, double low, uint64_t limit)
{
    const uint64_t bits = (uint64_t)__double_as_longlong(x);
    double quotient = __fma_rn(x, high, x * low);
    if (bits + bits - 1 < limit) {
        quotient = x / c;
    }
    return quotient;
}

//: arc_sincosf
__device__ static float arc_sincosf(float x, float *cosine)
{
    double c;
    const double s = arc_sincos((double)x, &c);
    *cosine = arc_single(c);
    return arc_single(s);
}
