/* SPDX-License-Identifier: MIT */
/*
 * stray_answers_test.c - answers that nobody asked for, and answers that never come, at every point of every
 * operation: none is taken for that of something else
 *
 * Answers belong to requests by their order, so one too many or too few moves all that follow. Each point is met by
 * each kind of it; what is said to be held is looked up at the server, and what somebody else holds is never given.
 *
 * labels: threads memory
 * seconds: 10
 * processors: 2
 */
#include "proxy.h"
#include "subject.h"

#include <stdio.h>
#include <string.h>

#define COMMAND (SANITIZED ? "250ms" : "120ms")

enum { KINDS = 6, SETTLED_MS = 8000, POINTS_MAX = 200 };

static const char *const strays[] = {
    "-ERR unknown command 'hello'\r\n",
    "-NOSCRIPT No matching script.\r\n",
    "+OK\r\n",
    ":1\r\n",
    "*2\r\n$1\r\n1\r\n$1\r\n1\r\n",
    "$-1\r\n",
    NULL, /* an answer is missing */
};
enum { STRAYS = sizeof strays / sizeof strays[0] };

/* One process: a client behind a proxy, another one that holds something of each kind, and the run between them. */
struct party {
    struct world *w;
    struct proxy *proxy;
    int stray; /* its index */
    lk_client_t *here, *there;
    struct subject mine[KINDS], barred[KINDS], theirs[KINDS];
    lk_latch_t latch, shut;
};

static bool is_one_of(int code, const int codes[], int count)
{
    for (int i = 0; i < count; i++)
        if (code == codes[i])
            return true;
    return false;
}

#define legal(party, what, code, ...)                                                                                  \
    assert_legal(party, what, code, (const int[]){ __VA_ARGS__ }, sizeof(int[]){ __VA_ARGS__ } / sizeof(int))

static void assert_legal(const struct party *party, const char *what, int code, const int codes[], size_t count)
{
    if (!is_one_of(code, codes, (int)count))
        assert_failed(__FILE__, __LINE__, "%s with %s: %s", what,
                      strays[party->stray] != NULL ? strays[party->stray] : "an answer missing", code_name(code));
}

/* --- the run ---------------------------------------------------------------------------------------------- */

/*
 * Give it back. "Nothing was done" leaves a permit without a lease with its caller, who does it again; with whatever else
 * failed the library goes on.
 */
static int give(struct subject *mine)
{
    int64_t until_ms = now_ms() + SETTLED_MS;
    int code;
    do
        code = subject_give(mine);
    while (code == ENOTCONN && !mine->kind->leased && now_ms() < until_ms);
    return code;
}

/* Levels, and a renewal on the watchdog's connection. */
static void nest(struct party *party, lk_mutex_t *m)
{
    int code = lk_mutex_lockfor(m, 0);
    legal(party, "nested lock", code, 0, EIO, EPROTO, ENOTCONN);
    legal(party, "extend", lk_mutex_extend(m, 6000), 0, EIO, EPROTO, ENOTCONN);
    legal(party, "check", lk_mutex_check(m), 0, EIO, EPROTO, ENOTCONN);
    if (code == 0)
        legal(party, "nested unlock", lk_mutex_unlock(m), 0, EIO, EPROTO, ENOTCONN);
}

static void take_and_give(struct party *party, int i)
{
    struct subject *mine = &party->mine[i];
    int taken = subject_take(mine, 0);
    legal(party, mine->kind->name, taken, 0, EIO, EPROTO, ENOTCONN);
    if (taken == 0)
        assert_that(subject_held(party->w, mine) == 1);
    /* What somebody else holds all the time. */
    legal(party, "another's", subject_take(&party->barred[i], 0), EBUSY, EAGAIN, ETIMEDOUT, EIO, EPROTO, ENOTCONN);
    if (taken != 0)
        return;
    if (i == 0)
        nest(party, &mine->mutex);
    int given = give(mine);
    legal(party, mine->kind->name, given, 0, EIO, EPROTO, ENOTCONN);
    if (given == 0)
        assert_that(subject_held(party->w, mine) == 0);
}

static void count_down(struct party *party)
{
    unsigned left = 1;
    int set = lk_latch_trysetcount(&party->latch, 1);
    legal(party, "latch set", set, 0, EEXIST, EIO, EPROTO, ENOTCONN);
    legal(party, "shut latch", lk_latch_waitfor(&party->shut, 0), ETIMEDOUT, EIO, EPROTO, ENOTCONN);
    int counted = lk_latch_countdown(&party->latch);
    legal(party, "countdown", counted, 0, ENOENT, EIO, EPROTO, ENOTCONN);
    int got = lk_latch_getcount(&party->latch, &left);
    legal(party, "getcount", got, 0, ENOENT, EIO, EPROTO, ENOTCONN);
    if (set == 0 && counted == 0 && got == 0)
        assert_that(left == 0);
    legal(party, "open latch", lk_latch_waitfor(&party->latch, 0), 0, ENOENT, ETIMEDOUT, EIO, EPROTO, ENOTCONN);
}

/* Whatever happened, it passes: all is free, and everything works. */
static void recover(struct party *party)
{
    for (int i = 0; i < KINDS; i++) {
        eventually(subject_held(party->w, &party->mine[i]) == 0, SETTLED_MS);
        eventually(subject_take(&party->mine[i], 200) == 0, SETTLED_MS);
        assert_that(subject_held(party->w, &party->mine[i]) == 1);
        legal(party, "release in the end", give(&party->mine[i]), 0, EIO, ENOTCONN);
        eventually(subject_held(party->w, &party->mine[i]) == 0, SETTLED_MS);
        assert_that(subject_held(party->w, &party->theirs[i]) == 1);
    }
}

static void run_all(struct party *party)
{
    for (int i = 0; i < KINDS; i++)
        take_and_give(party, i);
    count_down(party);
}

/* --- the parties -------------------------------------------------------------------------------------------- */

static void name_it(char name[32], const char *what, int i, const struct party *party)
{
    snprintf(name, 32, "%s-%d-%d", what, i, party->stray);
}

static void open_party(struct party *party)
{
    char url[512], name[32];
    snprintf(url, sizeof url, "lease=5s&poll=100ms&command_timeout=%s", COMMAND);
    eventually(lk_client_open(&party->here, proxy_url(party->proxy, url)) == 0, SETTLED_MS);
    party->there = world_open(party->w, "lease=60s");
    for (int i = 0; i < KINDS; i++) {
        const struct subject_kind *kind = &subject_kinds[i];
        name_it(name, "mine", i, party);
        subject_init(party->w, &party->mine[i], kind, party->here, name, 0);
        name_it(name, "theirs", i, party);
        subject_init(party->w, &party->barred[i], kind, party->here, name, 0);
        subject_init(party->w, &party->theirs[i], subject_keeper(kind), party->there, name, 0);
        assert_lk(0, subject_take(&party->theirs[i], PATIENT_MS));
    }
    name_it(name, "latch", 0, party);
    assert_lk(0, lk_latch_init(&party->latch, party->here, name, NULL));
    name_it(name, "shut", 0, party);
    assert_lk(0, lk_latch_init(&party->shut, party->here, name, NULL));
    world_redis(party->w, "SET %s 1", name);
}

static void close_party(struct party *party)
{
    for (int i = 0; i < KINDS; i++) {
        assert_lk(0, subject_destroy(&party->mine[i]));
        assert_lk(0, subject_destroy(&party->barred[i]));
        assert_lk(0, subject_give(&party->theirs[i]));
        assert_lk(0, subject_destroy(&party->theirs[i]));
    }
    assert_lk(0, lk_latch_destroy(&party->latch));
    assert_lk(0, lk_latch_destroy(&party->shut));
    int code = lk_client_close(party->here);
    assert_that(code == 0 || code == EIO);
    assert_lk(0, lk_client_close(party->there));
}

/* The fault comes at one point later each time, until a run has fewer. */
static int meet_each_point(struct world *w, void *arg)
{
    struct party *party = arg;
    int64_t faults = 0;
    int point = 1;
    party->w = w;
    open_party(party);
    world_ready(w);
    run_all(party); /* once without: the scripts are known */
    for (; point < POINTS_MAX; point++) {
        proxy_misplace(party->proxy, point, strays[party->stray]);
        run_all(party);
        bool met = proxy_faults(party->proxy) > faults;
        faults = proxy_faults(party->proxy);
        proxy_misplace(party->proxy, 0, NULL);
        recover(party);
        if (!met)
            break;
    }
    assert_that(point > 20 && point < POINTS_MAX);
    close_party(party);
    return 0;
}

static void none_is_taken_for_another(struct world *w)
{
    static struct party parties[STRAYS];
    pid_t pids[STRAYS];
    world_allow(w, "*-[0-9]*");
    for (int i = 0; i < STRAYS; i++)
        parties[i] = (struct party){ .stray = i, .proxy = proxy_begin(w) };
    for (int i = 0; i < STRAYS; i++)
        pids[i] = world_fork(w, meet_each_point, &parties[i]);
    for (int i = 0; i < STRAYS; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
}

int main(void)
{
    return world_run(none_is_taken_for_another);
}
