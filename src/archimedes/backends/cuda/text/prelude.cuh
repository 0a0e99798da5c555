typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#define UINT32_C(x) x##U
#define INT64_MAX 9223372036854775807LL
#define INT64_MIN (-INT64_MAX - 1)
#define ARC_UNUSED
#define ARC_INF __builtin_bit_cast(double, 0x7FF0000000000000ULL)
#define ARC_NAN __builtin_bit_cast(double, 0x7FF8000000000000ULL)
#define ARC_INFF __builtin_bit_cast(float, 0x7F800000U)
#define ARC_NANF __builtin_bit_cast(float, 0x7FC00000U)
