/* Files and console of the machine that runs the emulator or debugger (Arm semihosting). */
#ifndef BOARD_SEMIHOSTING_H
#define BOARD_SEMIHOSTING_H

#include <stddef.h>

/* Print a text on the host's console. */
void board_print(const char *text);

/* Open a file of the host: for reading, or (write not 0) anew for writing. Negative: failed. */
int board_open(const char *name, int write);

/* Read or write exactly size bytes. Returns 0 when all of them were moved. */
int board_read(int file, void *to, size_t size);
int board_write(int file, const void *from, size_t size);

void board_close(int file);

/* End the program; the emulator ends with this status. */
void board_exit(int status) __attribute__((noreturn));

#endif
