/* SPDX-License-Identifier: MIT */
/* memory.c - the library's own allocations, in one place where a test can make them fail */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

void *lk__alloc(size_t size)
{
    return calloc(1, size);
}

void *lk__realloc(void *memory, size_t size)
{
    return realloc(memory, size);
}

char *lk__strdup(const char *text)
{
    return strdup(text);
}

void lk__free(void *memory)
{
    free(memory);
}

void lk_free(void *memory)
{
    lk__free(memory);
}
