#include "counting.h"

#if defined(__arm__)
/* CMSDK APB timer 0 of the MPS2 boards (Arm DDI 0479, 4.2): counts down at 25 MHz. Of the virtual
   64 ns an instruction takes, one tick is 40. */
static volatile uint32_t *const timer = (volatile uint32_t *)0x40000000u;

void board_count_start(void)
{
    timer[2] = 0xFFFFFFFFu; /* RELOAD */
    timer[1] = 0xFFFFFFFFu; /* VALUE */
    timer[0] = 1u;          /* CTRL: enable */
}

uint32_t board_count(void)
{
    const uint64_t ticks = 0xFFFFFFFFu - timer[1];
    return (uint32_t)(ticks * 5u / 8u);
}
#elif defined(__riscv)
void board_count_start(void)
{
}

uint32_t board_count(void)
{
    uintptr_t count;
    __asm__ volatile(".option arch, +zicsr\ncsrr %0, minstret" : "=r"(count));
    return (uint32_t)count;
}
#endif

#define PAINT 0xC5C5C5C5u

extern uint32_t board_stack_limit[];

static uint32_t *edge_below(uintptr_t top)
{
    return (uint32_t *)((top - 128u) & ~(uintptr_t)7u);
}

void board_stack_paint(uintptr_t top)
{
    const volatile uint32_t *edge = edge_below(top);
    for (volatile uint32_t *word = board_stack_limit; word < edge; word++) {
        *word = PAINT;
    }
}

uint32_t board_stack_used(uintptr_t top)
{
    const volatile uint32_t *edge = edge_below(top);
    const volatile uint32_t *word = board_stack_limit;
    while (word < edge && *word == PAINT) {
        word++;
    }
    return (uint32_t)(top - (uintptr_t)word);
}
