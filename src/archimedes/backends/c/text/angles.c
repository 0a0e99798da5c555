/* Sine and cosine of huge angles and of floats.

   arc_huge_angle is the program of graph/elementary/trigonometric.py as a loop. Written from the graph it
   has its 21 products of limbs one by one, in 64 bits, which takes twice the flash; few programs ever
   reduce such an angle, but all that have a sine carry it.

   The sine of a float is that of double, rounded once, or by integers where doubles are software: a
   microcontroller that calculates floats by hardware and doubles by software would spend 2,000
   instructions and 3 kB of flash on it. The integer version has the same bits: its result is within
   2^-58 and rounded to 53 bits before it is rounded to 24, as double's is. That was tried for every
   float (python -m tests.c.every_angle). Q numbers are 2^-64 of an unsigned integer of 64 bits. */

//: arc_two_over_pi
/* 2/pi in digits of 26 bits, behind four zeros. */
static const uint32_t arc_two_over_pi[52] = {
    0, 0, 0, 0, 42722829, 48555073, 21659401, 56087029, 13858563,
    28715353, 38736100, 4324945, 26128250, 62674459, 29957006, 37899730, 58726692, 49193117,
    6588223, 35515164, 46442140, 65964067, 24988590, 54822121, 41009306, 54917092, 5137525,
    37323603, 15192690, 4585659, 58608142, 52426903, 67074070, 25231090, 63202006, 34237727,
    28629499, 15891632, 40752081, 37709470, 25143477, 55737260, 33225084, 24853767, 15195689,
    19476134, 50255852, 18845021, 2185228, 50622407, 47901436, 13614112
};

//: arc_huge_angle
/* An angle of 1e5 or more as a number of right angles and a rest, reduced[0] - reduced[1]: Payne
   and Hanek's method. */
static void arc_huge_angle(double x, double *reduced, int64_t *quadrant)
{
    const uint32_t mask = 67108863U;
    const int64_t bits = arc_bits(arc_fabs(x));
    const uint64_t one = UINT64_C(1) << 52;
    const uint64_t significand = ((uint64_t)bits & (one - 1)) | one;
    const uint32_t exponent = (uint32_t)(bits >> 52) - 997U;
    const uint32_t q = (exponent * 2521U) >> 16;
    const uint32_t s = exponent - 26U * q;
    const uint64_t low = (significand & mask) << s;
    const uint64_t high = ((significand >> 26) << s) + (low >> 26);
    const uint32_t limbs[3] = {(uint32_t)low & mask, (uint32_t)high & mask, (uint32_t)(high >> 26)};
    uint32_t digits[7];
    uint64_t sum = 0;
    for (uint32_t k = 7; k-- > 0;) {
        const uint32_t *const at = &arc_two_over_pi[q + k];
        for (uint32_t j = 0; j < 3; ++j) {
            sum += (uint64_t)limbs[j] * at[j];
        }
        digits[k] = (uint32_t)sum & mask;
        sum >>= 26;
    }
    const uint32_t up = digits[1] >> 25;
    const int64_t first = (int64_t)digits[1] - (int64_t)(up << 26);
    const double top = (double)(first * 67108864 + (int64_t)digits[2]) * 2.220446049250313e-16;
    const double middle =
        (double)(int64_t)(((uint64_t)digits[3] << 26) | digits[4]) * 4.930380657631324e-32;
    const double last = (double)digits[5] * 7.346839692639297e-40;
    double angle[2];
    arc_angle_of_turns(top, middle, last, angle);
    const double high_part = exponent < 1050U ? angle[0] : ARC_NAN;
    const int64_t turns = (int64_t)digits[0] + (int64_t)up;
    const bool negative = arc_bits(x) < 0 && bits <= INT64_C(9218868437227405312);
    reduced[0] = negative ? -high_part : high_part;
    reduced[1] = negative ? angle[1] : -angle[1];
    quadrant[0] = negative ? -turns : turns;
}

//: arc_angle
#if defined(ARC_SOFT_DOUBLE)
static const uint32_t arc_digits[10] = {
    0x00000000U, 0x00000000U, 0xa2f9836eU, 0x4e441529U, 0xfc2757d1U,
    0xf534ddc0U, 0xdb629599U, 0x3c439041U, 0xfe5163abU, 0xdebbc561U
};

/* 2^64 / n! for n from 2 on. */
static const uint64_t arc_factors[18] = {
    UINT64_C(0x8000000000000000), UINT64_C(0x2aaaaaaaaaaaaaab), UINT64_C(0xaaaaaaaaaaaaaab),
    UINT64_C(0x222222222222222), UINT64_C(0x5b05b05b05b05b), UINT64_C(0xd00d00d00d00d),
    UINT64_C(0x1a01a01a01a02), UINT64_C(0x2e3bc74aad8e), UINT64_C(0x49f93edde28),
    UINT64_C(0x6b99159fd5), UINT64_C(0x8f76c77fc), UINT64_C(0xb092309d),
    UINT64_C(0xc9cba54), UINT64_C(0xd73f9f), UINT64_C(0xd73fa),
    UINT64_C(0xca96), UINT64_C(0xb41), UINT64_C(0x98)
};

/* The upper half of a product. */
static uint64_t arc_upper(uint64_t a, uint64_t b)
{
    const uint32_t a0 = (uint32_t)a, a1 = (uint32_t)(a >> 32);
    const uint32_t b0 = (uint32_t)b, b1 = (uint32_t)(b >> 32);
    const uint64_t first = (uint64_t)a1 * b0 + (((uint64_t)a0 * b0) >> 32);
    const uint64_t second = (uint64_t)a0 * b1 + (uint32_t)first;
    return (uint64_t)a1 * b1 + (first >> 32) + (second >> 32);
}

/* z/n! - z^2/(n+2)! + ... with n = 2 + first. */
static uint64_t arc_series(uint64_t z, uint32_t first)
{
    uint64_t sum = 0;
    for (uint32_t k = 9; k-- > 0;) {
        sum = arc_factors[2 * k + first] - arc_upper(z, sum);
    }
    return arc_upper(z, sum);
}

/* x / 2^n, halves to even. */
static uint64_t arc_rounded(uint64_t x, uint32_t n)
{
    return (x + (UINT64_C(1) << (n - 1)) - 1 + ((x >> n) & 1)) >> n;
}

/* x * 2^(exponent - 189), rounded to double and then to float; the lowest bit of sign is its. */
static float arc_packed(uint64_t x, uint32_t exponent, uint32_t sign)
{
    while (x >> 63 == 0) {
        x <<= 1;
        --exponent;
    }
    x = arc_rounded(arc_rounded((x >> 1) | (x & 1), 10), 29);
    return arc_from_word((exponent << 23) + (uint32_t)x + (sign << 31));
}
/* Sine and cosine of a float by integers: the bits of those of double, rounded. */
static float arc_angle(float x, float *cosine)
{
    const uint32_t sign = arc_word(x) >> 31;
    const uint32_t size = arc_word(x) & 0x7FFFFFFFU;
    /* Below 2^-12 the first terms are all that a float holds. */
    if (size < 0x39800000U || size >= 0x7F800000U) {
        *cosine = size < 0x7F800000U ? 1.0f : x - x;
        return size < 0x7F800000U ? x : x - x;
    }
    /* x is m 2^(at - 62): its product with 2/pi, in quarters of 2^128. */
    const uint32_t m = (size & 0x7FFFFFU) | 0x800000U;
    const uint32_t at = (size >> 23) - 88;
    const uint32_t *const digits = &arc_digits[at >> 5];
    uint64_t sum = 0, high = 0, low = 0;
    for (uint32_t k = 4; k-- > 0;) {
        const uint64_t pair = ((uint64_t)digits[k] << 32) | digits[k + 1];
        sum = (sum >> 32) + (uint64_t)m * (uint32_t)((pair << (at & 31)) >> 32);
        low = (low >> 32) | (high << 32);
        high = (high >> 32) | (sum << 32);
    }
    const uint32_t quadrant = (uint32_t)((high + (UINT64_C(1) << 61)) >> 62);
    high -= (uint64_t)quadrant << 62;
    const uint32_t below = (uint32_t)(high >> 63);
    if (below != 0) {
        high = ~high;
        low = ~low;
    }
    uint32_t shift = 0;
    while (high >> 63 == 0) {
        high = (high << 1) | (low >> 63);
        low <<= 1;
        ++shift;
    }
    /* The rest is r 2^(3 - shift) in Q, its square z. */
    const uint64_t r = arc_upper(high, UINT64_C(0xc90fdaa22168c235));
    const uint64_t z = arc_upper(r, r) >> (2 * shift - 6);
    const float s = arc_packed(r - arc_upper(r, arc_series(z, 1)), 128 - shift, below);
    const float c = arc_packed(~arc_series(z, 0), 125, 0);
    const float first = (quadrant & 1) != 0 ? c : s;
    const float second = (quadrant & 1) != 0 ? -s : c;
    *cosine = (quadrant & 2) != 0 ? -second : second;
    return ((quadrant >> 1) ^ sign) & 1 ? -first : first;
}
#endif

//: arc_sincosf
/* Sine and cosine of a float: those of double, rounded. */
static float arc_sincosf(float x, float *cosine)
{
#if defined(ARC_SOFT_DOUBLE)
    return arc_angle(x, cosine);
#else
    double c;
    const double s = arc_sincos((double)x, &c);
    *cosine = arc_single(c);
    return arc_single(s);
#endif
}

//: arc_sinf
static inline float arc_sinf(float x)
{
#if defined(ARC_SOFT_DOUBLE)
    float cosine;
    const float sine = arc_angle(x, &cosine);
    (void)cosine;
    return sine;
#else
    return arc_single(arc_sin((double)x));
#endif
}

//: arc_cosf
static inline float arc_cosf(float x)
{
#if defined(ARC_SOFT_DOUBLE)
    float cosine;
    const float sine = arc_angle(x, &cosine);
    (void)sine;
    return cosine;
#else
    return arc_single(arc_cos((double)x));
#endif
}
