/* Square roots: the processor's instruction where there is one, else the same bits in integers.
   __builtin_sqrt will not do: compilers that honour errno call the C library for negative arguments,
   and always without optimisation. ARC_SOFT_SQRT selects the integers. */

// One binary digit of the root a turn, as with pencil and paper (Knuth, TAOCP vol. 2, section 4.3.1,
// answer 4): remainder and root fit 64 bits. The root of a float64 is never halfway between two, since
// its square would need twice the bits, so the 54th digit rounds. A float's root in double rounds to
// the right float.

//: arc_soft_sqrt
/* Correctly rounded, in integers. */
ARC_UNUSED static inline double arc_soft_sqrt(double x)
{
    const uint64_t one = UINT64_C(1) << 52;
    const uint64_t bits = (uint64_t)arc_bits(x);
    int64_t exponent = (int64_t)((bits >> 52) & 0x7FF);
    uint64_t m = bits & (one - 1);
    uint64_t root = 0;
    uint64_t rest = 0;
    if (!(x > 0.0)) {
        return x < 0.0 ? ARC_NAN : x;
    }
    if (exponent == 0x7FF) {
        return x;
    }
    if (exponent == 0) {
        exponent = 1;
        while (m < one) {
            m <<= 1;
            --exponent;
        }
    } else {
        m |= one;
    }
    exponent -= 1075;
    if (exponent % 2 != 0) {
        m <<= 1;
        --exponent;
    }
    for (int turn = 26; turn > -28; --turn) {
        const uint64_t digits = turn < 0 ? 0 : (m >> (2 * turn)) & 3;
        const uint64_t trial = (root << 2) | 1;
        rest = (rest << 2) | digits;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1;
        }
    }
    root = (root >> 1) + (root & 1);
    return arc_from_bits((int64_t)(((uint64_t)(exponent / 2 + 1048) << 52) + root));
}

//: arc_sqrt
static inline double arc_sqrt(double x)
{
#if defined(ARC_SOFT_SQRT) || !defined(__GNUC__)
    return arc_soft_sqrt(x);
#elif defined(__AVX__)
    double root;
    __asm__("vsqrtsd %1, %1, %0" : "=x"(root) : "x"(x));
    return root;
#elif defined(__SSE2__)
    double root;
    __asm__("sqrtsd %1, %0" : "=x"(root) : "x"(x));
    return root;
#elif defined(__aarch64__)
    double root;
    __asm__("fsqrt %d0, %d1" : "=w"(root) : "w"(x));
    return root;
#elif defined(__ARM_FP) && (__ARM_FP & 8)
    double root;
    __asm__("vsqrt.f64 %P0, %P1" : "=w"(root) : "w"(x));
    return root;
#elif defined(__riscv_flen) && __riscv_flen >= 64
    double root;
    __asm__("fsqrt.d %0, %1" : "=f"(root) : "f"(x));
    return root;
#else
    return arc_soft_sqrt(x);
#endif
}

//: arc_sqrtf
static inline float arc_sqrtf(float x)
{
#if defined(ARC_SOFT_SQRT) || !defined(__GNUC__)
    return arc_single(arc_soft_sqrt((double)x));
#elif defined(__AVX__)
    float root;
    __asm__("vsqrtss %1, %1, %0" : "=x"(root) : "x"(x));
    return root;
#elif defined(__SSE2__)
    float root;
    __asm__("sqrtss %1, %0" : "=x"(root) : "x"(x));
    return root;
#elif defined(__aarch64__)
    float root;
    __asm__("fsqrt %s0, %s1" : "=w"(root) : "w"(x));
    return root;
#elif defined(__ARM_FP) && (__ARM_FP & 4)
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
    return root;
#elif defined(__riscv_flen) && __riscv_flen >= 32
    float root;
    __asm__("fsqrt.s %0, %1" : "=f"(root) : "f"(x));
    return root;
#else
    return arc_single(arc_soft_sqrt((double)x));
#endif
}
