/* The four functions that GCC may call in freestanding code. */
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *left, const void *right, size_t size);

void *memcpy(void *to, const void *from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    while (size-- > 0) {
        *t++ = *f++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if (t < f) {
        return memcpy(to, from, size);
    }
    while (size-- > 0) {
        t[size] = f[size];
    }
    return to;
}

void *memset(void *to, int value, size_t size)
{
    unsigned char *t = to;
    while (size-- > 0) {
        *t++ = (unsigned char)value;
    }
    return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *l = left;
    const unsigned char *r = right;
    for (; size > 0; size--, l++, r++) {
        if (*l != *r) {
            return *l < *r ? -1 : 1;
        }
    }
    return 0;
}
