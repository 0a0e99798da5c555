/* Functions of double and float. Those whose names end in @ are written for both types: T is the
   type, @ the suffix of its functions, $ that of its literals. */

// Reinterprets bits: by a union in C, by a copy in C++.

//: arc_bits FROM=double TO=int64_t
//: arc_from_bits FROM=int64_t TO=double
//: arc_word FROM=float TO=uint32_t
//: arc_from_word FROM=uint32_t TO=float
ARC_UNUSED static inline TO NAME(FROM x)
{
#ifdef __cplusplus
    TO y;
    ARC_MEMCPY(&y, &x, sizeof y);
    return y;
#else
    union { FROM from; TO to; } both;
    both.from = x;
    return both.to;
#endif
}

// GCC 12 takes (double)(float)x for x where it vectorises a pair of them, so the rounded value is
// passed through an empty asm statement, behind which GCC does not look.

//: arc_single KIND=double
//: arc_single_of_int KIND=int64_t
/* Rounds to float; GCC 12 may leave the rounding out of vectors unless it is hidden. */
ARC_UNUSED static inline float NAME(KIND x)
{
    float y = (float)x;
#if defined(__GNUC__) && !defined(__clang__)
#if defined(__SSE2__)
    __asm__("" : "+x"(y));
#elif defined(__aarch64__)
    __asm__("" : "+w"(y));
#else
    __asm__("" : "+m"(y));
#endif
#endif
    return y;
}

//: arc_larger
/* a > b of numbers without sign; their bits are in the same order. */
static inline bool arc_larger(double a, double b)
{
#if defined(ARC_SOFT_DOUBLE)
    return arc_bits(a) > arc_bits(b) && arc_bits(a) <= INT64_C(9218868437227405312);
#else
    return a > b;
#endif
}

//: arc_largerf
static inline bool arc_largerf(float a, float b)
{
    return a > b;
}

//: arc_bitsf
static inline int64_t arc_bitsf(float x)
{
    return (int64_t)arc_word(x);
}

//: arc_from_bitsf
static inline float arc_from_bitsf(int64_t i)
{
    return arc_from_word((uint32_t)((uint64_t)i & UINT64_C(0xFFFFFFFF)));
}

//: arc_rint@
/* To the nearest integer, halves to even: above BIG all numbers are whole. */
static inline T arc_rint@(T x)
{
    const T big = BIG;
    const T size = arc_fabs@(x);
    const T moved = size + big;
    return size < big ? arc_copysign@(moved - big, x) : x;
}

//: arc_floor@
static inline T arc_floor@(T x)
{
    const T nearest = arc_rint@(x);
    return arc_copysign@(nearest > x ? nearest - 1.0$ : nearest, x);
}

//: arc_ceil@
static inline T arc_ceil@(T x)
{
    const T nearest = arc_rint@(x);
    return arc_copysign@(nearest < x ? nearest + 1.0$ : nearest, x);
}

//: arc_trunc@
static inline T arc_trunc@(T x)
{
    return arc_copysign@(arc_floor@(arc_fabs@(x)), x);
}

//: arc_fmin@
/* The smaller one; nan if either is nan. */
static inline T arc_fmin@(T a, T b)
{
    return a < b || a != a ? a : b;
}

//: arc_fmax@
/* The larger one; nan if either is nan. */
static inline T arc_fmax@(T a, T b)
{
    return a > b || a != a ? a : b;
}

//: arc_truncate@
/* Toward zero; nan and what int64_t cannot hold give INT64_MIN. */
static inline int64_t arc_truncate@(T x)
{
    return x >= -9223372036854775808.0$ && x < 9223372036854775808.0$ ? (int64_t)x : INT64_MIN;
}

//: arc_solve@
/* Solve a system by elimination with partial pivoting. Each of the n rows of w holds n
   coefficients and m right-hand sides, which the solutions replace. */
static void arc_solve@(T *w, size_t n, size_t m)
{
    const size_t width = n + m;
    for (size_t k = 0; k < n; ++k) {
        T *const first = w + k * width;
        T *pivot = first;
        T best = arc_fabs@(first[k]);
        for (size_t row = k + 1; row < n; ++row) {
            const T size = arc_fabs@(w[row * width + k]);
            if (arc_larger@(size, best)) {
                best = size;
                pivot = w + row * width;
            }
        }
        if (pivot != first) {
            for (size_t c = 0; c < width; ++c) {
                const T held = first[c];
                first[c] = pivot[c];
                pivot[c] = held;
            }
        }
        for (size_t row = k + 1; row < n; ++row) {
            T *const other = w + row * width;
            const T factor = other[k] / first[k];
            for (size_t c = k + 1; c < width; ++c) {
                const T product = factor * first[c];
                other[c] -= product;
            }
        }
    }
    for (size_t k = n; k-- > 0;) {
        T *const row = w + k * width;
        for (size_t j = k + 1; j < n; ++j) {
            const T *const known = w + j * width;
            const T factor = row[j];
            for (size_t c = n; c < width; ++c) {
                const T product = factor * known[c];
                row[c] -= product;
            }
        }
        const T diagonal = row[k];
        for (size_t c = n; c < width; ++c) {
            row[c] /= diagonal;
        }
    }
}

//: arc_fabs@
static inline T arc_fabs@(T x)
{
#if defined(__GNUC__)
    return __builtin_fabs@(x);
#else
    return READ(WRITE(x) & REST);
#endif
}

//: arc_copysign@
static inline T arc_copysign@(T x, T sign)
{
#if defined(__GNUC__)
    return __builtin_copysign@(x, sign);
#else
    return READ((WRITE(x) & REST) | (WRITE(sign) & ~REST));
#endif
}
