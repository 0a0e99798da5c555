#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compile with -ffp-contract=off: results are the same bits on every machine only if no
   multiplication and addition are fused. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif
#if defined(__FAST_MATH__)
#error "compile without -ffast-math: it changes results"
#endif
#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2)
#error "floating-point arithmetic has excess precision: compile with -msse2 -mfpmath=sse"
#endif

/* Where doubles are calculated by software some functions go other ways, with the same bits. */
#if !defined(ARC_SOFT_DOUBLE)
#if (defined(__arm__) && !(defined(__ARM_FP) && (__ARM_FP & 8))) || defined(__AVR__) || \
    defined(__XTENSA__) || (defined(__riscv) && !(defined(__riscv_flen) && __riscv_flen >= 64))
#define ARC_SOFT_DOUBLE
#endif
#endif

#ifndef ARC_INF
#if defined(__GNUC__)
#define ARC_INF __builtin_inf()
#define ARC_INFF __builtin_inff()
#define ARC_NAN __builtin_nan("")
#define ARC_NANF __builtin_nanf("")
#define ARC_MEMCPY __builtin_memcpy
#define ARC_UNUSED __attribute__((unused))
#else
#ifdef __cplusplus
#include <string.h>
#define ARC_MEMCPY memcpy
#endif
#define ARC_UNUSED
#define ARC_INF (1e300 * 1e300)
#define ARC_INFF ((float)ARC_INF)
#define ARC_NAN (ARC_INF * 0.0)
#define ARC_NANF ((float)ARC_NAN)
#endif
#endif
