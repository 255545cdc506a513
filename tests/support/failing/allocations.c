/* SPDX-License-Identifier: MIT */
/*
 * allocations.c - malloc() and its kin in front of the C library's: they fail when told, and remember each block
 * of the library and of what it stands on
 *
 * Guards: busy, the table of blocks.
 */
#include "failing/failing.h"

#include <execinfo.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A sanitizer has a malloc() of its own, under this name too. */
#ifdef BELOW_A_SANITIZER
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *memory, size_t size);
void REAL(free)(void *memory);

enum { PLACES = 1 << 15 }; /* a power of two, never nearly full */

static struct block {
    void *memory; /* NULL: a free place */
    size_t size;
    void *caller;
    long serial;
} blocks[PLACES];
static atomic_flag busy = ATOMIC_FLAG_INIT;
static long count, bytes, serial;
static const char *secret;
static bool spilled;

static void enter(void)
{
    while (atomic_flag_test_and_set(&busy))
        sched_yield();
}

static void leave(void)
{
    atomic_flag_clear(&busy);
}

static size_t home_of(const void *memory)
{
    return ((uintptr_t)memory >> 4) * 0x9e3779b97f4a7c15U >> (64 - 15);
}

static size_t next_place(size_t place)
{
    return (place + 1) & (PLACES - 1);
}

/* Where it is, or the free place where it would be. */
static size_t place_of(const void *memory)
{
    size_t place = home_of(memory);
    while (blocks[place].memory != NULL && blocks[place].memory != memory)
        place = next_place(place);
    return place;
}

/* What the C library takes for a block of that size. */
static long cost_of(size_t size)
{
    size_t whole = (size + sizeof(size_t) + 15) & ~(size_t)15;
    return (long)(whole < 32 ? 32 : whole);
}

static void remember(void *memory, size_t size, void *caller)
{
    if (memory == NULL || failing_code(caller) == CODE_ELSEWHERE)
        return;
    enter();
    blocks[place_of(memory)] = (struct block){ memory, size, caller, serial++ };
    count++;
    bytes += cost_of(size);
    leave();
}

/* Take a block out, and move up those that were driven from their places. */
static void empty(size_t hole)
{
    for (size_t place = next_place(hole); blocks[place].memory != NULL; place = next_place(place)) {
        size_t home = home_of(blocks[place].memory);
        if (((place - home) & (PLACES - 1)) >= ((place - hole) & (PLACES - 1))) {
            blocks[hole] = blocks[place];
            hole = place;
        }
    }
    blocks[hole].memory = NULL;
}

/* As memmem() would; a sanitizer has one of its own, which takes long for a large block. */
static bool holds_secret(const char *memory, size_t size)
{
    size_t length = strlen(secret);
    for (const char *at = memory; at + length <= memory + size; at++)
        if (*at == *secret && memcmp(at, secret, length) == 0)
            return true;
    return false;
}

static void forget(void *memory, const void *caller)
{
    if (memory == NULL)
        return;
    enter();
    size_t place = place_of(memory);
    if (blocks[place].memory != NULL) {
        if (secret != NULL && failing_code(caller) == CODE_HERE && holds_secret(memory, blocks[place].size))
            spilled = true;
        bytes -= cost_of(blocks[place].size);
        empty(place);
        count--;
    }
    leave();
}

static bool fails(const char *name, const void *caller)
{
    if (failing_code(caller) == CODE_ELSEWHERE || !failing_now(FAIL_ALLOCATION, name))
        return false;
    errno = ENOMEM;
    return true;
}

static void *take(const char *name, size_t size, bool zeroed, void *caller)
{
    if (fails(name, caller))
        return NULL;
    void *memory = zeroed ? REAL(calloc)(1, size) : REAL(malloc)(size);
    remember(memory, size, caller);
    return memory;
}

void *malloc(size_t size)
{
    return take("malloc", size, false, __builtin_return_address(0));
}

void *calloc(size_t members, size_t size)
{
    return take("calloc", members * size, true, __builtin_return_address(0));
}

void *realloc(void *memory, size_t size)
{
    void *caller = __builtin_return_address(0);
    if (fails("realloc", caller))
        return NULL;
    forget(memory, NULL);
    memory = REAL(realloc)(memory, size);
    remember(memory, size, caller);
    return memory;
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = take("strdup", size, false, __builtin_return_address(0));
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

void free(void *memory)
{
    forget(memory, __builtin_return_address(0));
    REAL(free)(memory);
}

long failing_blocks(void)
{
    enter();
    long now = count;
    leave();
    return now;
}

long failing_bytes(void)
{
    enter();
    long now = bytes;
    leave();
    return now;
}

long failing_serial(void)
{
    enter();
    long now = serial;
    leave();
    return now;
}

void failing_print_blocks(long since)
{
    for (size_t i = 0; i < PLACES; i++)
        if (blocks[i].memory != NULL && blocks[i].serial >= since) {
            print_error("%zu bytes, asked for at\n", blocks[i].size);
            backtrace_symbols_fd(&blocks[i].caller, 1, STDERR_FILENO);
        }
}

void failing_secret(const char *text)
{
    secret = text;
    spilled = false;
}

bool failing_spilled(void)
{
    return spilled;
}
