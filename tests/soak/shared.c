/* SPDX-License-Identifier: MIT */
/*
 * shared.c - names, tapes, the table and numbers from a seed: see soak.h
 */
#include "soak.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct record) == 64, "a record is a line of the cache");

#define KIND_NAME(name, constant) #name,
#define OP_NAME(name) #name,
static const char *const kinds[KINDS] = { KINDS_ALL(KIND_NAME) };
static const char *const ops[OPS] = { "?", OPS_ALL(OP_NAME) };

const char *kind_name(enum kind kind)
{
    return (unsigned)kind < KINDS ? kinds[kind] : "none";
}

const char *op_name(enum op op)
{
    return ops[op < OPS ? op : 0];
}

void object_name(char *name, size_t room, uint32_t object, uint32_t instance)
{
    if (kind_of(object) == STRIPED) /* as lk_stripes_init() names them */
        snprintf(name, room, "soak:%s:%u", kind_name(STRIPED), index_of(object));
    else
        snprintf(name, room, "soak:%s:%u:%u", kind_name(kind_of(object)), index_of(object), instance);
}

int object_named(const char *name, uint32_t *object, uint32_t *instance)
{
    char kind[16];
    unsigned index, number = 0;
    const char *begin = strstr(name, "soak:");
    if (begin == NULL || sscanf(begin, "soak:%15[a-z]:%u:%u", kind, &index, &number) < 2 || index >= INDEX_MAX)
        return -1;
    for (unsigned i = 0; i < KINDS; i++)
        if (strcmp(kind, kinds[i]) == 0) {
            *object = object_of((enum kind)i, index);
            *instance = number;
            return 0;
        }
    return -1;
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void nap(void)
{
    nanosleep(&(struct timespec){ 0, 5 * NS_PER_MS }, NULL);
}

/* Mapped by all who open it; NULL: it cannot be. */
static void *map_file(const char *path, size_t size, bool make)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_TRUNC : 0), 0600);
    if (fd < 0)
        return NULL;
    void *memory = MAP_FAILED;
    if (!make || ftruncate(fd, (off_t)size) == 0)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory != MAP_FAILED ? memory : NULL;
}

bool tape_open(struct tape *tape, const char *dir, int process, int incarnation, int thread)
{
    char path[600];
    snprintf(path, sizeof path, "%s/p%d.%d.t%d.tape", dir, process, incarnation, thread);
    *tape = (struct tape){ .records = map_file(path, sizeof(struct record) * TAPE_RECORDS, true),
                           .process = (uint16_t)process,
                           .incarnation = (uint16_t)incarnation,
                           .thread = (uint16_t)thread };
    return tape->records != NULL;
}

void tape_close(struct tape *tape)
{
    munmap(tape->records, sizeof(struct record) * TAPE_RECORDS);
    tape->records = NULL;
}

struct record *tape_begin(struct tape *tape, enum op op, uint32_t object, uint32_t instance)
{
    if (tape->count == TAPE_RECORDS)
        return NULL;
    struct record *record = &tape->records[tape->count++];
    record->object = object;
    record->instance = instance;
    record->process = tape->process;
    record->incarnation = tape->incarnation;
    record->thread = tape->thread;
    record->op = (uint8_t)op;
    __atomic_store_n(&record->invoke_ns, now_ns(), __ATOMIC_RELEASE); /* last: from now on it counts */
    return record;
}

void tape_end(struct record *record, int code)
{
    record->code = (int16_t)code;
    __atomic_store_n(&record->return_ns, now_ns(), __ATOMIC_RELEASE);
}

bool fault_write(const char *dir, const struct fault *fault)
{
    char path[600];
    snprintf(path, sizeof path, "%s/faults", dir);
    FILE *file = fopen(path, "a");
    if (file == NULL)
        return false;
    bool written = fwrite(fault, sizeof *fault, 1, file) == 1;
    return fclose(file) == 0 && written;
}

struct table *table_map(const char *dir, bool make)
{
    char path[600];
    snprintf(path, sizeof path, "%s/table", dir);
    return map_file(path, sizeof(struct table), make);
}

void table_unmap(struct table *table)
{
    munmap(table, sizeof *table);
}

uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

unsigned draw_below(uint64_t *state, unsigned limit)
{
    return (unsigned)(draw(state) % limit);
}
