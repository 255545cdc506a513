/* SPDX-License-Identifier: MIT */
/*
 * log.c - lines for whoever reads the log, written where nothing waits for their sinks
 *
 * A sink may block: it is a user's function, or a pipe that nobody reads. So a thread calls it only between
 * two calls of the library, with no lock held. What a thread of the library has to say, or a caller in the
 * middle of a call, goes into a ring; a thread that is started for it writes what is there, and ends. What
 * does not fit is counted, and told when lines flow again.
 *
 * Guards: ring->mu the ring; the innermost lock of all, held for moments only.
 */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { LINES = 256, STUCK_US = 500000, FLUSH_US = 4 * STUCK_US };

struct ring {
    uintptr_t process; /* the process that uses this ring */
    struct ring *parents;
    struct lk__mu mu;
    pthread_cond_t rest; /* with mu: the writer has nothing more to write */
    struct {
        int level;
        char text[LK__LINE_SIZE];
    } lines[LINES];             /* under mu: `count` of them, from `first` on */
    unsigned first, count;      /* under mu */
    unsigned long long dropped; /* under mu: since it was last told */
    bool writing;               /* under mu: the writer runs */
    bool ended;                 /* under mu: it ran, and is to be joined */
    int64_t since_us;           /* under mu: since when it is in the sink; 0: it is not */
    pthread_t writer;
};

static struct ring first; /* the ring of the first process */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(struct ring *) latest; /* NULL: not used yet */

/*
 * Has the byte to go, as a terminal may obey it? Those above ASCII that terminals obey are two bytes in UTF-8, or stand by
 * themselves; all others are the end of a character.
 */
static bool is_control(unsigned char before, unsigned char byte)
{
    return byte < ' ' || byte == 0x7f || (byte >= 0x80 && byte < 0xa0 && (before < 0x80 || before == 0xc2));
}

/* What is said of a name, or by a server, may hold anything. */
void lk__line_print(char *line, size_t size, const char *format, va_list args)
{
    unsigned char before = '\0';
    vsnprintf(line, size, format, args);
    for (; *line != '\0'; before = (unsigned char)*line++) {
        if (!is_control(before, (unsigned char)*line))
            continue;
        if (before == 0xc2)
            line[-1] = '?';
        *line = '?';
    }
}

/* --- writing: no lock is held, and no call is under way ------------------------------------------------------ */

/* Under ring->mu, left and taken again. */
static bool deliver_patiently(struct ring *ring, int level, const char *text)
{
    assert(lk__mu_held(&ring->mu));
    ring->since_us = lk__now_us();
    lk__mu_unlock(&ring->mu);
    bool written = lk__sinks_write(level, text, -1);
    lk__mu_lock(&ring->mu);
    ring->since_us = 0;
    return written;
}

/* Under ring->mu, left and taken again. */
static bool write_line(struct ring *ring)
{
    assert(lk__mu_held(&ring->mu));
    int level = ring->lines[ring->first].level;
    char text[LK__LINE_SIZE];
    memcpy(text, ring->lines[ring->first].text, sizeof text);
    ring->first = (ring->first + 1) % LINES;
    ring->count--;
    return deliver_patiently(ring, level, text);
}

/* Under ring->mu, left and taken again. */
static bool tell_dropped(struct ring *ring)
{
    assert(lk__mu_held(&ring->mu));
    unsigned long long dropped = ring->dropped;
    char text[LK__LINE_SIZE];
    snprintf(text, sizeof text, "the log was behind: %llu lines were dropped", dropped);
    ring->dropped = 0;
    bool told = deliver_patiently(ring, LK_LOG_WARNING, text);
    ring->dropped += told ? 0 : dropped;
    return told;
}

static void *run(void *arg)
{
    struct ring *ring = arg;
    lk__mu_lock(&ring->mu);
    for (bool flows = true; ring->count > 0 || (ring->dropped > 0 && flows);) {
        if (ring->count == 0)
            flows = tell_dropped(ring);
        else if (!write_line(ring))
            ring->dropped++;
    }
    ring->writing = false;
    ring->ended = true;
    pthread_cond_broadcast(&ring->rest);
    lk__mu_unlock(&ring->mu);
    return NULL;
}

/* --- what a line says, and how many are said -------------------------------------------------------------------- */

enum { LINE_PAUSE_US = 100000 };

bool lk__linepause_over(struct lk__linepause *pause, int64_t now_us)
{
    int64_t until_us = atomic_load(&pause->until_us);
    return now_us >= until_us && atomic_compare_exchange_strong(&pause->until_us, &until_us, now_us + LINE_PAUSE_US);
}

struct lk__timetext lk__time_text(int64_t ms)
{
    struct lk__timetext time;
    bool whole = ms % 1000 == 0;
    snprintf(time.text, sizeof time.text, whole ? "%lld s" : "%lld ms", (long long)(whole ? ms / 1000 : ms));
    return time;
}

/* --- the ring --------------------------------------------------------------------------------------------------- */

static void prepare(struct ring *ring, struct ring *parents)
{
    ring->process = lk__process();
    ring->parents = parents;
    lk__mu_init(&ring->mu, LK__MU_LOG);
    lk__cond_init(&ring->rest);
}

static void prepare_first(void)
{
    prepare(&first, NULL);
    atomic_store(&latest, &first);
}

/* A fork's child leaves the lines to its parent, whose thread writes them. NULL when out of memory. */
static struct ring *ring_here(void)
{
    pthread_once(&once, prepare_first);
    struct ring *ring = atomic_load(&latest);
    while (ring->process != lk__process()) {
        struct ring *fresh = lk__alloc(sizeof *fresh);
        if (fresh == NULL)
            return NULL;
        prepare(fresh, ring);
        if (atomic_compare_exchange_strong(&latest, &ring, fresh))
            return fresh;
        pthread_cond_destroy(&fresh->rest);
        lk__mu_destroy(&fresh->mu);
        lk__free(fresh);
    }
    return ring;
}

/* Join a writer that ended; it is at its last instruction. */
static void join_writer(struct ring *ring)
{
    assert(lk__mu_held(&ring->mu));
    if (ring->ended)
        pthread_join(ring->writer, NULL);
    ring->ended = false;
}

/* Without a thread to be had, the lines wait for the next attempt. */
static void start_writer(struct ring *ring)
{
    assert(lk__mu_held(&ring->mu));
    if (ring->writing)
        return;
    join_writer(ring);
    ring->writing = lk__thread_spawn(&ring->writer, "lk-log", run, ring) == 0;
}

/* `text` NULL: count a line that was not written. */
static void put(int level, const char *text)
{
    struct ring *ring = ring_here();
    if (ring == NULL)
        return;
    lk__mu_lock(&ring->mu);
    if (text == NULL || ring->count == LINES) {
        ring->dropped++;
    } else {
        unsigned place = (ring->first + ring->count++) % LINES;
        ring->lines[place].level = level;
        memcpy(ring->lines[place].text, text, strlen(text) + 1);
    }
    start_writer(ring);
    lk__mu_unlock(&ring->mu);
}

void lk__log_flush(void)
{
    struct ring *ring = atomic_load(&latest);
    if (ring == NULL || ring->process != lk__process())
        return;
    lk__mu_lock(&ring->mu);
    int64_t now_us = lk__now_us(), until_us = now_us + FLUSH_US;
    bool own = ring->writing && pthread_equal(ring->writer, pthread_self());
    if (ring->count > 0)
        start_writer(ring);
    while (ring->writing && !own && now_us < until_us && (ring->since_us == 0 || now_us < ring->since_us + STUCK_US)) {
        lk__cond_wait(&ring->rest, &ring->mu, ring->since_us != 0 ? ring->since_us + STUCK_US : now_us + STUCK_US);
        now_us = lk__now_us();
    }
    join_writer(ring);
    lk__mu_unlock(&ring->mu);
}

/* A plugin that is unloaded takes the code of the thread with it. */
__attribute__((destructor)) static void end(void)
{
    struct ring *ring = atomic_load(&latest);
    if (ring == NULL || ring->process != lk__process())
        return;
    lk__mu_lock(&ring->mu);
    join_writer(ring);
    lk__mu_unlock(&ring->mu);
}

/* --- what others call ----------------------------------------------------------------------------------------------- */

void lk__log(int level, const char *format, ...)
{
    if (!lk__sinks_want(level))
        return;
    char text[LK__LINE_SIZE];
    va_list args;
    int before = errno;
    va_start(args, format);
    lk__line_print(text, sizeof text, format, args);
    va_end(args);
    if (lk__thread_isinside() || lk__sinks_ishere())
        put(level, text);
    else if (!lk__sinks_write(level, text, 0))
        put(level, NULL);
    errno = before;
}
