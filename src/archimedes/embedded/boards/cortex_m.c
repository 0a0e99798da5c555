/* Start of a Cortex-M program: vectors, memory, floating-point unit, main. */
#include "semihosting.h"

#include <stdint.h>

extern uint32_t board_data_image[], board_data_start[], board_data_end[];
extern uint32_t board_bss_start[], board_bss_end[], board_stack_top[];

int main(void);
void board_reset(void) __attribute__((noreturn));
static void fault(void) __attribute__((noreturn));

/* Armv7-M Architecture Reference Manual, B1.5.3: stack pointer, then handlers of exceptions 1-15. */
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)board_stack_top,
    (uintptr_t)board_reset,
    (uintptr_t)fault, /* NMI */
    (uintptr_t)fault, /* HardFault */
    (uintptr_t)fault, /* MemManage */
    (uintptr_t)fault, /* BusFault */
    (uintptr_t)fault, /* UsageFault */
    0, 0, 0, 0,
    (uintptr_t)fault, /* SVCall */
    (uintptr_t)fault, /* DebugMonitor */
    0,
    (uintptr_t)fault, /* PendSV */
    (uintptr_t)fault, /* SysTick */
};

static void fault(void)
{
    board_print("the processor took an exception (fault)\n");
    board_exit(70);
}

void board_reset(void)
{
    const uint32_t *from = board_data_image;
    for (uint32_t *to = board_data_start; to < board_data_end;) {
        *to++ = *from++;
    }
    for (uint32_t *to = board_bss_start; to < board_bss_end;) {
        *to++ = 0;
    }
#if defined(__ARM_FP)
    /* Full access to coprocessors 10 and 11, the floating-point unit (B3.2.20, CPACR). */
    volatile uint32_t *const cpacr = (volatile uint32_t *)0xE000ED88u;
    *cpacr |= 0xFu << 20;
    __asm__ volatile("dsb\nisb" ::: "memory");
#endif
    board_exit(main());
}
