/* SPDX-License-Identifier: MIT */
/*
 * clocks_test.c - the clock of a minority of the servers jumps: they forget too soon, or too late, and nobody notices
 *
 * simulated: yes
 * seconds: 26
 */
#include "news.h"
#include "quorum.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef SERVER_CLOCK

enum { HOUR_MS = 3600000 };

static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1, .node_timeout_ms = 200 };

static char clock_path[sizeof "/tmp/lk-clock-XXXXXX"];
static int64_t *offset_us;

/* Servers that are started from now on have our clock, until it is taken away again. */
static void make_a_clock(void)
{
    strcpy(clock_path, "/tmp/lk-clock-XXXXXX");
    int fd = mkstemp(clock_path);
    assert_that(fd >= 0 && ftruncate(fd, sizeof *offset_us) == 0);
    offset_us = mmap(NULL, sizeof *offset_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_that(offset_us != MAP_FAILED);
    close(fd);
    setenv("SERVER_CLOCK", clock_path, 1);
    setenv("LD_PRELOAD", SERVER_CLOCK, 1);
}

static void take_the_clock_away(void)
{
    unsetenv("LD_PRELOAD");
    unlink(clock_path);
}

/* Two of five have it. */
static struct quorum *begin(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    make_a_clock();
    for (int i = 0; i < 2; i++) {
        quorum_kill(q, i);
        quorum_start(q, i);
    }
    take_the_clock_away();
    return q;
}

static void jump(struct quorum *q, int64_t ms)
{
    int64_t before_s = quorum_int(q, 0, "EVAL %s 0", "return redis.call('TIME')[1]");
    __atomic_add_fetch(offset_us, ms * 1000, __ATOMIC_SEQ_CST);
    int64_t after_s = quorum_int(q, 0, "EVAL %s 0", "return redis.call('TIME')[1]");
    assert_between((after_s - before_s) * 1000, ms - 1000, ms + 5000);
}

/* EIO: of what got no answer it cannot tell when that is past, by a clock that went back. */
static void close_either_way(struct world *w, lk_client_t *client)
{
    int rc = close_by_hand(w, client);
    assert_true(rc == 0 || rc == EIO);
}

static void a_minority_may_jump(struct world *w)
{
    struct quorum *q = begin(w);
    static const char times[] = "lease=3600ms&command_timeout=1100ms";
    lk_client_t *client = quorum_client(q, times), *rival = quorum_client(q, times);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait), *other = quorum_redlock(w, rival, "jobs", &no_wait);
    struct news *n = news_of(w, client, "jobs");
    for (int turn = 0; turn < 2; turn++) {
        quorum_lockall(q, r, "jobs");
        jump(q, turn == 0 ? HOUR_MS : -HOUR_MS);
        for (int i = 0; i < 20; i++, sleep_ms(200)) { /* longer than the lease */
            int rc = lk_redlock_trylock(other);
            assert_true(rc == EBUSY || rc == ENOTCONN);
            assert_answer(0, lk_redlock_check(r));
        }
        assert_lk(0, lk_redlock_unlock(r));
        assert_lk(0, lk_redlock_lockfor(other, 10000));
        assert_lk(0, lk_redlock_unlock(other));
    }
    assert_same(0, news(n, LK_EVENT_LOST));
    eventually(quorum_having(q, "jobs") == 0, 10000);
    close_either_way(w, rival);
    close_either_way(w, client);
}

/* What got no answer while the clock was ahead is past by our clock long before it is by that one, which went back. */
static void a_close_does_not_wait_for_a_clock_that_went_back(struct world *w)
{
    struct quorum *q = begin(w);
    lk_client_t *client = quorum_client(q, "lease=3600ms&command_timeout=1100ms");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait);
    quorum_lockall(q, r, "jobs");
    jump(q, HOUR_MS);
    for (int i = 0; i < 5; i++) { /* the client learns how late it is there */
        assert_lk(0, lk_redlock_unlock(r));
        assert_lk(0, lk_redlock_lockfor(r, 10000));
    }
    assert_lk(0, lk_redlock_unlock(r));
    quorum_stop(q, 0);
    assert_lk(0, lk_redlock_lockfor(r, 10000));
    quorum_cont(q, 0);
    jump(q, -HOUR_MS);
    assert_lk(0, lk_redlock_unlock(r));
    eventually(quorum_having(q, "jobs") == 0, 10000);
    sleep_ms(4000); /* a lease: nothing of it is under way any more */
    world_close(w, client);
}

/*
 * A machine starts its server, and then sets its clock. By that the server has run for an hour, and it has forgotten what it
 * granted. With another one that never had it, it would be a majority for a client that has not met it before.
 */
static void no_server_is_old_by_its_own_clock_alone(struct world *w)
{
    static const char times[] = "lease=6s&command_timeout=1100ms";
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, times);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", NULL);
    int64_t left_ms;
    assert_lk(0, lk_redlock_lockfor(r, QUORUM_WITHIN_MS));
    assert_lk(0, lk_redlock_unlock(r));
    sleep_ms(2500); /* a client that comes later cuts off fractions of seconds */
    quorum_lockall(q, r, "jobs");
    quorum_int(q, 2, "DEL jobs"); /* as if it had not been reached */
    quorum_kill(q, 0);
    make_a_clock();
    quorum_start(q, 0);
    take_the_clock_away();
    jump(q, HOUR_MS);

    lk_client_t *rival = quorum_client(q, times);
    lk_redlock_t *other = quorum_redlock(w, rival, "jobs", NULL), *free = quorum_redlock(w, rival, "free", NULL);
    for (int i = 0; i < 10; i++, sleep_ms(50))
        if (lk_redlock_trylock(other) == 0) /* the next renewals found out: then it was told, and given back where it was */
            assert_lk(ESTALE, lk_redlock_remaining(r, &left_ms));
    eventually(lk_redlock_trylock(free) == 0, 2000); /* the others are as old for a client that has just come */
    assert_lk(0, lk_redlock_unlock(free));
    while (lk_redlock_unlock(other) == 0) /* once for each time that it was locked */
        ;
    (void)lk_redlock_unlock(r);
    eventually(quorum_having(q, "jobs") == 0, 10000);
    close_either_way(w, rival);
    close_either_way(w, client);
}

int main(void)
{
    return world_run(a_minority_may_jump, a_close_does_not_wait_for_a_clock_that_went_back,
                     no_server_is_old_by_its_own_clock_alone);
}

#else /* built with a sanitizer, which a preloaded library would have to be, too */

int main(void)
{
    return 77;
}

#endif
