/* SPDX-License-Identifier: MIT */
/*
 * objects.h - what a soak works on: objects of each kind by number, and their names
 */
#ifndef TESTS_SOAK_OBJECTS_H
#define TESTS_SOAK_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

enum kind { MUTEX, FAIR, RWLOCK, COUNTING, LEASED, LATCH, KINDS };

#define HOT 2         /* objects of each kind that everybody wants; the others belong to one thread of two processes */
#define INDEX_MAX 256 /* objects of one kind */
#define EPOCHS_MAX 64 /* instances of a counting semaphore */
#define GENERATIONS_MAX 1024 /* instances of a latch */

#define HOT_PERMITS 3 /* of a semaphore */
#define COLD_PERMITS 2
#define LATCH_COUNT 3

static inline uint32_t object_of(enum kind kind, unsigned index)
{
    return (uint32_t)kind * INDEX_MAX + index;
}

static inline enum kind kind_of(uint32_t object)
{
    return (enum kind)(object / INDEX_MAX);
}

static inline unsigned index_of(uint32_t object)
{
    return object % INDEX_MAX;
}

static inline unsigned permits_of(uint32_t object)
{
    return index_of(object) < HOT ? HOT_PERMITS : COLD_PERMITS;
}

const char *kind_name(enum kind kind);

/* "soak:fair:1:0", and back; object_named() returns -1 for a name that is none of ours. */
void object_name(char *name, size_t room, uint32_t object, uint32_t instance);
int object_named(const char *name, uint32_t *object, uint32_t *instance);

#endif
