/* SPDX-License-Identifier: MIT */
/*
 * record.c - see record.h
 */
#include "record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct record) == 64, "a record is a line of the cache");

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool tape_open(struct tape *tape, const char *dir, int process, int incarnation, int thread)
{
    char path[600];
    snprintf(path, sizeof path, "%s/p%d.%d.t%d.tape", dir, process, incarnation, thread);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)sizeof(struct record) * TAPE_RECORDS) != 0)
        return false;
    void *memory = mmap(NULL, sizeof(struct record) * TAPE_RECORDS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    *tape = (struct tape){ .records = memory,
                           .process = (uint16_t)process,
                           .incarnation = (uint16_t)incarnation,
                           .thread = (uint16_t)thread };
    return memory != MAP_FAILED;
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

const char *op_name(enum op op)
{
    static const char *const names[OPS] = { "?",     "take", "share",  "check", "give",   "nest",   "unnest", "down",
                                            "write", "exit", "fork",   "ask",   "extend", "repair", "force",  "resize",
                                            "add",   "make", "set",    "count", "wait",   "sleep",  "signal", "move",
                                            "meet",  "result", "reset", "lost",  "open",   "close",  "heard",  "late",
                                            "busy",  "left", "value" };
    return names[op < OPS ? op : 0];
}
