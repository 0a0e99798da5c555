/* Instructions executed so far, when the emulator counts them (its option -icount). */
#ifndef BOARD_COUNTING_H
#define BOARD_COUNTING_H

#include <stdint.h>

void board_count_start(void);
uint32_t board_count(void);

/* Where the caller's frame ends. */
static inline uintptr_t board_stack_pointer(void)
{
    uintptr_t here;
#if defined(__arm__)
    __asm__ volatile("mov %0, sp" : "=r"(here));
#elif defined(__riscv)
    __asm__ volatile("mv %0, sp" : "=r"(here));
#endif
    return here;
}

/* Mark the free stack below an address; then tell how many bytes below it were used. The first
   128 are always taken for used: functions that mark and look live there themselves. */
void board_stack_paint(uintptr_t top);
uint32_t board_stack_used(uintptr_t top);

#endif
