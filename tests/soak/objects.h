/* SPDX-License-Identifier: MIT */
/*
 * objects.h - what a soak works on: objects of each kind by number, and their names
 */
#ifndef TESTS_SOAK_OBJECTS_H
#define TESTS_SOAK_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind {
    MUTEX,
    FAIR,
    ROBUST,  /* mutexes, too, as the next five */
    FIXED,   /* its lease is not renewed */
    CAPPED,  /* kept for MIN_HOLD_MS at least, and not renewed after capped_ms() */
    FORCED,  /* now and then an operator takes it away */
    STRIPED, /* one of STRIPES of a name, of which a thread takes this one or any */
    BUFFER,  /* guards a bounded buffer, with two conditions */
    RWLOCK,
    COUNTING,
    GROWN,   /* likewise; now and then there are more for a while */
    PASSING, /* likewise, anonymous: as ANONYMOUS, but what a dead process had is gone with it */
    LEASED,
    BYID,      /* leased permits that belong to who knows their number */
    RESIZED,   /* leased; how many there are in all changes */
    REMOVED,   /* leased; now and then somebody deletes it, or makes it */
    ANONYMOUS, /* leased; there as long as somebody uses it, and every thread has a shell of its own, for a while */
    LATCH,
    ALONE, /* an anonymous latch that one thread uses once */
    BARRIER,
    ONCE, /* a run is held as a mutex is, until it is complete or given up */
    KINDS
};

#define MIN_HOLD_MS 5

#define STRIPES 4
#define HOT 2         /* objects of each kind that everybody wants; the others belong to one thread of two processes */
#define INDEX_MAX 256 /* objects of one kind */
#define EPOCHS_MAX 64 /* instances of a counting semaphore */
#define GENERATIONS_MAX 1024 /* instances of a latch, or of what is done once */

#define HOT_PERMITS 3 /* of a semaphore */
#define COLD_PERMITS 2
#define LATCH_COUNT 3
#define BUFFER_ROOM 3 /* items */
#define LATCH_TTL_MS 300 /* of those that have an end */

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

static inline bool is_mutex(uint32_t object)
{
    return kind_of(object) < RWLOCK;
}

static inline bool is_semaphore(uint32_t object)
{
    return kind_of(object) >= COUNTING && kind_of(object) <= ANONYMOUS;
}

/* Taken and given back, by all who want it. */
static inline bool is_lock(uint32_t object)
{
    return kind_of(object) < LATCH;
}

/* How many meet at a barrier. */
static inline unsigned parties_of(uint32_t object)
{
    return 2 + index_of(object) % 2;
}

/* A plain number: no lease, no owner. */
static inline bool is_counting(uint32_t object)
{
    return kind_of(object) >= COUNTING && kind_of(object) <= PASSING;
}

/* There as long as somebody uses it; every thread has a shell of its own. */
static inline bool is_anonymous(uint32_t object)
{
    return kind_of(object) == PASSING || kind_of(object) == ANONYMOUS;
}

/* Who writes may not lock it again. */
static inline bool is_nonreentrant(uint32_t object)
{
    return kind_of(object) == RWLOCK && index_of(object) % 2 != 0;
}

static inline bool is_latch(uint32_t object)
{
    return kind_of(object) == LATCH || kind_of(object) == ALONE;
}

/* Who waits for it before it is set waits for that. */
static inline bool is_appearing(uint32_t object)
{
    return kind_of(object) == LATCH && index_of(object) % 2 != 0;
}

/* Its count ends after LATCH_TTL_MS, if it did not open. */
static inline bool has_ttl(uint32_t object, uint32_t instance)
{
    return kind_of(object) == LATCH && instance % 4 >= 2;
}

/* Clients of every second process are opened with redisson=yes. */
static inline bool is_as_redisson(int process)
{
    return process % 2 != 0;
}

/* Readers and writers take turns; the others come in in order of arrival. */
static inline bool is_phase_fair(uint32_t object)
{
    return kind_of(object) == RWLOCK && index_of(object) % 4 >= 1;
}

static inline int64_t capped_ms(int64_t lease_ms)
{
    return lease_ms / 2;
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
