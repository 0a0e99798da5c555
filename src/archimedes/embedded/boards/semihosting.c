/* Arm semihosting, "Semihosting for AArch32 and AArch64" (Arm, 2.0); RISC-V uses the same calls
   ("RISC-V Semihosting" 0.3) with its own trap sequence. */
#include "semihosting.h"

#include <stdint.h>

enum {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE0 = 0x04,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_EXIT_EXTENDED = 0x20
};

enum { OPEN_READ_BINARY = 1, OPEN_WRITE_BINARY = 5 };

static const uintptr_t application_exit = 0x20026;

static intptr_t host(uintptr_t operation, const volatile void *block)
{
#if defined(__arm__)
    register uintptr_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = (uintptr_t)block;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (intptr_t)r0;
#elif defined(__riscv)
    register uintptr_t a0 __asm__("a0") = operation;
    register uintptr_t a1 __asm__("a1") = (uintptr_t)block;
    /* The three instructions are uncompressed and on one page: that is how they are recognised. */
    __asm__ volatile(".option push\n.option norvc\n.balign 16\n"
                     "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return (intptr_t)a0;
#else
#error "no semihosting for this processor"
#endif
}

void board_print(const char *text)
{
    (void)host(SYS_WRITE0, text);
}

int board_open(const char *name, int write)
{
    size_t length = 0;
    while (name[length] != '\0') {
        length++;
    }
    uintptr_t block[3] = {(uintptr_t)name, write ? OPEN_WRITE_BINARY : OPEN_READ_BINARY, length};
    return (int)host(SYS_OPEN, block);
}

int board_read(int file, void *to, size_t size)
{
    uintptr_t block[3] = {(uintptr_t)file, (uintptr_t)to, size};
    return size == 0 ? 0 : (int)host(SYS_READ, block);
}

int board_write(int file, const void *from, size_t size)
{
    uintptr_t block[3] = {(uintptr_t)file, (uintptr_t)from, size};
    return size == 0 ? 0 : (int)host(SYS_WRITE, block);
}

void board_close(int file)
{
    uintptr_t block[1] = {(uintptr_t)file};
    (void)host(SYS_CLOSE, block);
}

void board_exit(int status)
{
    uintptr_t block[2] = {application_exit, (uintptr_t)status};
    for (;;) {
        (void)host(SYS_EXIT_EXTENDED, block);
    }
}
