/* SPDX-License-Identifier: MIT */
/*
 * table.c - see table.h
 */
#include "table.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static struct table *map(const char *dir, int flags)
{
    char path[600];
    snprintf(path, sizeof path, "%s/table", dir);
    int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0 || (flags != 0 && ftruncate(fd, sizeof(struct table)) != 0))
        return NULL;
    void *memory = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory != MAP_FAILED ? memory : NULL;
}

struct table *table_make(const char *dir)
{
    return map(dir, O_CREAT | O_TRUNC);
}

struct table *table_open(const char *dir)
{
    return map(dir, 0);
}

void table_close(struct table *table)
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
