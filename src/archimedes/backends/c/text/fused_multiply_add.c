/* a * b + c with one rounding: the processor's instruction where there is one, else integers, with
   the same bits. ARC_SOFT_FMA selects the integers. */

// The product has 106 bits and the summand 53; both are put into 126 bits of a pair of words. The one
// with the smaller exponent is shifted right with its lost bits or-ed into the last (which matters only
// where the other is at least four times as large), and the sum is rounded once.

//: arc_soft_fma
typedef struct {
    uint64_t high;
    uint64_t low;
} arc_wide;

ARC_UNUSED static inline arc_wide arc_wide_left(arc_wide x, int64_t n)
{
    if (n >= 64) {
        x.high = x.low << (n - 64);
        x.low = 0;
    } else if (n > 0) {
        x.high = (x.high << n) | (x.low >> (64 - n));
        x.low <<= n;
    }
    return x;
}

/* Shift right; lost bits set the last one. */
ARC_UNUSED static inline arc_wide arc_wide_right(arc_wide x, int64_t n)
{
    uint64_t lost = 0;
    if (n >= 128) {
        lost = x.high | x.low;
        x.high = 0;
        x.low = 0;
    } else if (n >= 64) {
        lost = x.low | (n > 64 ? x.high << (128 - n) : 0);
        x.low = x.high >> (n - 64);
        x.high = 0;
    } else if (n > 0) {
        lost = x.low << (64 - n);
        x.low = (x.low >> n) | (x.high << (64 - n));
        x.high >>= n;
    }
    x.low |= lost != 0 ? 1U : 0U;
    return x;
}

/* Significand of 53 bits of a finite x that is not zero; x = m * 2^e. */
ARC_UNUSED static inline uint64_t arc_parts(double x, int64_t *e)
{
    const uint64_t one = UINT64_C(1) << 52;
    const uint64_t bits = (uint64_t)arc_bits(x);
    uint64_t m = bits & (one - 1);
    *e = (int64_t)((bits >> 52) & 0x7FF) - 1075;
    if (*e == -1075) {
        *e = -1074;
        while (m < one) {
            m <<= 1;
            --*e;
        }
    } else {
        m |= one;
    }
    return m;
}

ARC_UNUSED static double arc_soft_fma(double a, double b, double c)
{
    const double product = a * b;
    const double limit = ARC_INF;
    const uint64_t word = UINT64_C(0xFFFFFFFF);
    bool minus = (arc_bits(a) < 0) != (arc_bits(b) < 0);
    int64_t ea, eb, ec, e, last;
    uint64_t ma, mb, cross, up, rest, half, q;
    arc_wide x, y;
    /* Nothing is rounded before the sum where a factor is zero, infinite or nan. */
    if (!(arc_fabs(a) < limit) || !(arc_fabs(b) < limit) || a == 0.0 || b == 0.0) {
        return product + c;
    }
    if (!(arc_fabs(c) < limit)) {
        return c;
    }
    ma = arc_parts(a, &ea);
    mb = arc_parts(b, &eb);
    x.low = (ma & word) * (mb & word);
    cross = (ma >> 32) * (mb & word) + (x.low >> 32);
    up = (ma & word) * (mb >> 32) + (cross & word);
    x.low = (x.low & word) | (up << 32);
    x.high = (ma >> 32) * (mb >> 32) + (cross >> 32) + (up >> 32);
    x = arc_wide_left(x, 20);
    e = ea + eb - 20;
    if (c != 0.0) {
        const bool opposite = minus != (arc_bits(c) < 0);
        y.low = 0;
        y.high = arc_parts(c, &ec) << 9;
        ec -= 73;
        if (ec > e) {
            x = arc_wide_right(x, ec - e);
            e = ec;
        } else {
            y = arc_wide_right(y, e - ec);
        }
        if (!opposite) {
            x.low += y.low;
            x.high += y.high + (x.low < y.low ? 1U : 0U);
        } else {
            if (x.high < y.high || (x.high == y.high && x.low < y.low)) {
                const arc_wide held = x;
                x = y;
                y = held;
                minus = !minus;
            }
            x.high -= y.high + (x.low < y.low ? 1U : 0U);
            x.low -= y.low;
        }
    }
    if ((x.high | x.low) == 0) {
        return 0.0;
    }
    while (x.high >> 62 == 0) {
        x = arc_wide_left(x, 1);
        --e;
    }
    /* The top bit is number 126 now; the last bit of the result stands for 2^last. */
    last = e + 74 < -1074 ? -1074 : e + 74;
    x = arc_wide_right(x, last - e - 64);
    half = UINT64_C(1) << 63;
    q = x.high;
    rest = x.low;
    q += rest > half || (rest == half && (q & 1) != 0) ? 1U : 0U;
    if (last > 971) {
        q = UINT64_C(0x7FF) << 52;
    } else {
        q += (uint64_t)(last + 1074) << 52;
    }
    return arc_from_bits((int64_t)(q | (minus ? half : 0)));
}

//: arc_soft_fmaf
/* The product is exact in double; the sum is rounded there to odd, and then to float. */
ARC_UNUSED static float arc_soft_fmaf(float a, float b, float c)
{
    const double x = (double)a * (double)b;
    const double y = (double)c;
    const double sum = x + y;
    const double t = sum - x;
    const double u = sum - t;
    const double left = x - u;
    const double right = y - t;
    const double error = left + right;
    int64_t bits = arc_bits(sum);
    if (arc_fabs(sum) < ARC_INF && error != 0.0 && (bits & 1) == 0) {
        bits += (error > 0.0) == (sum > 0.0) ? 1 : -1;
    }
    return arc_single(arc_from_bits(bits));
}

//: arc_fma
/* a * b + c with one rounding. */
static inline double arc_fma(double a, double b, double c)
{
#if defined(ARC_SOFT_FMA) || !defined(__GNUC__)
    return arc_soft_fma(a, b, c);
#elif defined(__FMA__)
    double r = c;
    __asm__("vfmadd231sd %2, %1, %0" : "+x"(r) : "x"(a), "x"(b));
    return r;
#elif defined(__aarch64__)
    double r = c;
    __asm__("fmadd %d0, %d1, %d2, %d0" : "+w"(r) : "w"(a), "w"(b));
    return r;
#elif defined(__ARM_FEATURE_FMA) && (__ARM_FP & 8)
    double r = c;
    __asm__("vfma.f64 %P0, %P1, %P2" : "+w"(r) : "w"(a), "w"(b));
    return r;
#elif defined(__riscv_flen) && __riscv_flen >= 64
    double r = c;
    __asm__("fmadd.d %0, %1, %2, %0" : "+f"(r) : "f"(a), "f"(b));
    return r;
#else
    return arc_soft_fma(a, b, c);
#endif
}

//: arc_fmaf
/* a * b + c with one rounding. */
static inline float arc_fmaf(float a, float b, float c)
{
#if defined(ARC_SOFT_FMA) || !defined(__GNUC__)
    return arc_soft_fmaf(a, b, c);
#elif defined(__FMA__)
    float r = c;
    __asm__("vfmadd231ss %2, %1, %0" : "+x"(r) : "x"(a), "x"(b));
    return r;
#elif defined(__aarch64__)
    float r = c;
    __asm__("fmadd %s0, %s1, %s2, %s0" : "+w"(r) : "w"(a), "w"(b));
    return r;
#elif defined(__ARM_FEATURE_FMA) && (__ARM_FP & 4)
    float r = c;
    __asm__("vfma.f32 %0, %1, %2" : "+t"(r) : "t"(a), "t"(b));
    return r;
#elif defined(__riscv_flen) && __riscv_flen >= 32
    float r = c;
    __asm__("fmadd.s %0, %1, %2, %0" : "+f"(r) : "f"(a), "f"(b));
    return r;
#else
    return arc_soft_fmaf(a, b, c);
#endif
}
