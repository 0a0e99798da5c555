/* Integer arithmetic as NumPy does it: it wraps around, and is never undefined. */

//: arc_add
static inline int64_t arc_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

//: arc_sub
static inline int64_t arc_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

//: arc_mul
static inline int64_t arc_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

//: arc_neg
static inline int64_t arc_neg(int64_t a)
{
    return (int64_t)(UINT64_C(0) - (uint64_t)a);
}

//: arc_abs
static inline int64_t arc_abs(int64_t a)
{
    return a < 0 ? arc_neg(a) : a;
}

//: arc_quotient
/* Toward zero; zero for a zero divisor. */
static inline int64_t arc_quotient(int64_t a, int64_t b)
{
    if (b == 0) {
        return 0;
    }
    return b == -1 ? arc_neg(a) : a / b;
}

//: arc_modulo
/* Remainder with the sign of a; zero for a zero divisor. */
static inline int64_t arc_modulo(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

//: arc_shl
static inline int64_t arc_shl(int64_t a, int64_t n)
{
    return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)a << n);
}

//: arc_shr
/* Fills with the sign. */
static inline int64_t arc_shr(int64_t a, int64_t n)
{
    const int64_t count = n < 0 || n > 63 ? 63 : n;
    return a < 0 ? ~(~a >> count) : a >> count;
}

//: arc_lshr
/* Fills with zeros. */
static inline int64_t arc_lshr(int64_t a, int64_t n)
{
    return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)a >> n);
}

//: arc_index
/* An index clamped to a table whose last element has the number last. */
static inline size_t arc_index(int64_t i, int64_t last)
{
    return (size_t)(i < 0 ? 0 : i > last ? last : i);
}
