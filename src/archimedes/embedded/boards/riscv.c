/* Start of a RISC-V program in machine mode: stack, memory, floating-point unit, main. */
#include "semihosting.h"

#include <stdint.h>

extern uint32_t board_bss_start[], board_bss_end[];

int main(void);
void board_start(void) __attribute__((noreturn, used));
void board_fault(void) __attribute__((noreturn, used, aligned(4)));

/* The control registers are an extension of their own (zicsr) to newer assemblers. */
__asm__(".option arch, +zicsr\n"
        ".section .vectors, \"ax\"\n"
        ".globl _start\n"
        "_start:\n"
        ".option push\n.option norelax\n"
        "la gp, __global_pointer$\n"
        ".option pop\n"
        "la sp, board_stack_top\n"
        "la t0, board_fault\n"
        "csrw mtvec, t0\n"
        "j board_start\n"
        ".text\n");

void board_fault(void)
{
    board_print("the processor took an exception (fault)\n");
    board_exit(70);
}

void board_start(void)
{
    for (uint32_t *to = board_bss_start; to < board_bss_end;) {
        *to++ = 0;
    }
#if defined(__riscv_flen)
    /* mstatus.FS = Initial, and round to nearest without flags (privileged 1.12, 3.1.6.6). */
    __asm__ volatile(".option arch, +zicsr\ncsrs mstatus, %0\nfscsr zero" ::"r"(0x2000));
#endif
    board_exit(main());
}
