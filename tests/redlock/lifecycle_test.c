/* SPDX-License-Identifier: MIT */
/*
 * lifecycle_test.c - a redlock in programs that are unkind to it: hundreds of threads at its first use, forks in the middle
 * of a lock, a close with threads inside, a plugin that is unloaded, no descriptors for a client, a thread that stands
 * still
 *
 * labels: threads memory
 * seconds: 15
 */
#include "descriptors.h"
#include "quorum.h"
#include "still.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 3, MANY = SANITIZED ? 200 : 500, INSIDE = 32, WITHIN_MS = 30000 };

#define TIMES "lease=30s&connect_timeout=10s&command_timeout=9s"

/* A busy machine may take a while to answer five hundred threads. */
static const lk_redlockattr_t patient = { .size = sizeof patient, .fenced = 1, .longest_lease_ms = -1,
                                          .node_timeout_ms = 2000 };
static const lk_redlockattr_t brief = { .size = sizeof brief, .fenced = 1, .longest_lease_ms = -1,
                                        .node_timeout_ms = 300 };
static const lk_redlockattr_t leisurely = { .size = sizeof leisurely, .fenced = 1, .longest_lease_ms = -1,
                                            .node_timeout_ms = 10000 };

/* Connections of the library that stand at a node. */
static int connections(struct quorum *q, int node)
{
    return library_clients(quorum_str(q, node, "CLIENT LIST"));
}

static int lock_once(lk_redlock_t *r)
{
    uint64_t token;
    int rc = lk_redlock_lockfor(r, WITHIN_MS);
    if (rc != 0)
        return rc;
    rc = lk_redlock_token(r, &token);
    int given = lk_redlock_unlock(r);
    return rc != 0 ? rc : given;
}

/* --- many at once ------------------------------------------------------------------------------------------------------ */

/* Most have one of their own; some want the same. */
static int use_first(int index, void *shared)
{
    lk_redlock_t r;
    char name[16];
    if (index % 50 == 0)
        return lock_once(shared);
    snprintf(name, sizeof name, "jobs-%d", index);
    int rc = lk_redlock_init(&r, NULL, name, &patient);
    if (rc != 0)
        return rc;
    rc = lock_once(&r);
    int destroyed = lk_redlock_destroy(&r);
    return rc != 0 ? rc : destroyed;
}

/* One of them opens the default client, with two connections for each server, and the others wait for it. */
static void hundreds_of_threads_open_one_client(struct world *w)
{
    lk_redlock_t shared;
    struct quorum *q = quorum_begin(w, NODES);
    use_default(quorum_url(q, TIMES));
    descriptors_most(512);
    assert_lk(0, lk_redlock_init(&shared, NULL, "jobs", &patient));
    assert_lk(0, run_threads(MANY, use_first, &shared));
    assert_lk(0, lk_redlock_destroy(&shared));
    for (int node = 0; node < NODES; node++)
        assert_between(connections(q, node), 1, 2);
    close_default();
    descriptors_lift();
}

/* --- forks -------------------------------------------------------------------------------------------------------------- */

struct loop {
    lk_redlock_t r;
    struct gate stop;
};

static int lock_on_and_on(void *arg)
{
    struct loop *loop = arg;
    int rc = 0;
    while (rc == 0 && !gate_is_open(&loop->stop))
        rc = lock_once(&loop->r);
    return rc;
}

/* The child has neither the hold nor the client, and the same redlock is of use to it. */
static int use_beside_the_parent(struct world *w, void *arg)
{
    struct loop *loop = arg;
    world_ready(w);
    assert_lk(EPERM, lk_redlock_unlock(&loop->r));
    assert_lk(0, lock_once(&loop->r));
    assert_lk(0, lk_redlock_destroy(&loop->r));
    close_default();
    return 0;
}

static void forks_in_the_middle_of_locks_disturb_nobody(struct world *w)
{
    struct worker worker;
    struct loop loop = { .stop = { 0 } };
    if (SANITIZED)
        skip(); /* their own locks may be taken at that moment */
    struct quorum *q = quorum_begin(w, NODES);
    use_default(quorum_url(q, TIMES));
    assert_lk(0, lk_redlock_init(&loop.r, NULL, "jobs", &brief));
    worker_start(&worker, lock_on_and_on, &loop);
    for (int i = 0; i < 8; i++)
        assert_int_equal(0, world_wait(w, world_fork(w, use_beside_the_parent, &loop)));
    gate_open(&loop.stop);
    assert_lk(0, worker_join(&worker));
    assert_lk(0, lk_redlock_destroy(&loop.r));
    close_default();
    eventually(quorum_having(q, "jobs") == 0, WITHIN_MS);
}

/* --- a close with threads inside ---------------------------------------------------------------------------------------- */

struct crowd {
    lk_client_t *client;
    int turns, inside; /* atomic */
};

static int is_a_code_of_the_closed(int rc)
{
    return rc == ECANCELED || rc == EPERM || rc == ESTALE || rc == EIO;
}

/* Until the client is closed; every other one tries. */
static int lock_until_closed(int index, void *arg)
{
    struct crowd *crowd = arg;
    lk_redlock_t r;
    char name[16];
    snprintf(name, sizeof name, "jobs-%d", index % 4);
    int rc = lk_redlock_init(&r, crowd->client, name, &brief);
    if (rc != 0)
        return rc;
    __atomic_add_fetch(&crowd->inside, 1, __ATOMIC_SEQ_CST); /* nobody names the client any more */
    while (rc == 0 || rc == EBUSY || rc == ENOTCONN) {
        rc = index % 2 ? lk_redlock_trylock(&r) : lk_redlock_lockfor(&r, WITHIN_MS);
        if (rc == 0)
            rc = lk_redlock_unlock(&r);
        __atomic_add_fetch(&crowd->turns, rc == 0, __ATOMIC_SEQ_CST);
    }
    bool told = is_a_code_of_the_closed(rc) && lk_redlock_trylock(&r) == ECANCELED;
    return lk_redlock_destroy(&r) == 0 && told ? 0 : rc;
}

WORK(lock_all_until_closed, arg, run_threads(INSIDE, lock_until_closed, arg))

static void a_close_ends_all_who_are_inside(struct world *w)
{
    struct quorum *q = quorum_begin(w, NODES);
    for (int i = 0; i < 3; i++) {
        struct crowd crowd = { 0 };
        struct worker worker;
        assert_lk(0, open_patiently(&crowd.client, quorum_url(q, "lease=8s&command_timeout=2500ms")));
        worker_start(&worker, lock_all_until_closed, &crowd);
        eventually(__atomic_load_n(&crowd.inside, __ATOMIC_SEQ_CST) == INSIDE, WITHIN_MS);
        eventually(__atomic_load_n(&crowd.turns, __ATOMIC_SEQ_CST) > 20, WITHIN_MS);
        int rc = lk_client_close(crowd.client);
        assert_true(rc == 0 || rc == EIO);
        assert_lk(0, worker_join(&worker));
        for (int j = 0; j < 4; j++) {
            char name[16];
            snprintf(name, sizeof name, "jobs-%d", j);
            eventually(quorum_having(q, name) == 0, rc == 0 ? 1000 : 8000 + SLACK_MS);
        }
    }
}

/*
 * Of the servers that were not waited for, as a majority had answered, what was asked of them may come later: until it is
 * sure that it does not, which is within a command timeout.
 */
static void a_close_knows_that_all_is_given_back(struct world *w)
{
    struct quorum *q = quorum_begin(w, NODES);
    lk_client_t *client = quorum_client(q, "lease=60s&command_timeout=1500ms");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &leisurely);
    for (int i = 0; i < 10; i++)
        assert_lk(0, lock_once(r));
    quorum_lockall(q, r, "jobs"); /* all are connected */
    assert_lk(0, lk_redlock_unlock(r));
    quorum_stop(q, NODES - 1); /* it is asked, and not waited for */
    assert_lk(0, lock_once(r));
    quorum_cont(q, NODES - 1);
    int64_t began_ms = now_ms();
    world_close(w, client);
    assert_between(now_ms() - began_ms, 0, 2 * 1500 + SLACK_MS);
}

WORK(lock_patiently, redlock, lk_redlock_lockfor(redlock, WITHIN_MS))

/* Who waits has it in use. */
static void nothing_is_destroyed_under_a_waiter(struct world *w)
{
    struct quorum *q = quorum_begin(w, NODES);
    lk_redlock_t *held = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &brief), r, same;
    lk_client_t *client = quorum_client(q, TIMES);
    struct worker waiter;
    assert_lk(0, lk_redlock_init(&r, client, "jobs", &brief));
    assert_lk(0, lk_redlock_lock(held));
    worker_start(&waiter, lock_patiently, &r);
    eventually(lk_redlock_init(&same, client, "jobs", &brief) == 0 && lk_redlock_destroy(&same) == EBUSY, WITHIN_MS);
    assert_lk(EBUSY, lk_redlock_destroy(&r));
    assert_lk(0, lk_redlock_unlock(held));
    assert_lk(0, worker_join(&waiter));
    assert_lk(EPERM, lk_redlock_unlock(&r)); /* it was the other thread's, and ends with its lease */
    assert_lk(0, close_by_hand(w, client));
    assert_lk(0, lk_redlock_destroy(&same));
    assert_lk(0, lk_redlock_destroy(&r));
}

/* --- a plugin -------------------------------------------------------------------------------------------------------------- */

struct plugin {
    const char *url;
    int (*vote)(const char *url);
    struct gate used, unloaded;
};

static int vote_and_live_on(void *arg)
{
    struct plugin *plugin = arg;
    int rc = plugin->vote(plugin->url);
    gate_open(&plugin->used);
    gate_pass(&plugin->unloaded);
    return rc;
}

/* None of its threads, of which a quorum has some for each server, is left when it is unloaded. */
static int unload_it(struct world *w, void *url)
{
    struct plugin plugin = { .url = url };
    struct worker user;
    world_ready(w);
    for (int i = 0; i < 3; i++) {
        void *handle = dlopen(LK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
        assert_that(handle != NULL);
        *(void **)&plugin.vote = dlsym(handle, "plugin_vote");
        assert_that(plugin.vote != NULL);
        plugin.used.open = plugin.unloaded.open = 0;
        worker_start(&user, vote_and_live_on, &plugin);
        gate_pass(&plugin.used);
        assert_lk(0, plugin.vote(plugin.url));
        assert_that(dlclose(handle) == 0);
        assert_that(dlopen(LK_PLUGIN, RTLD_NOW | RTLD_NOLOAD) == NULL); /* or nothing is shown */
        gate_open(&plugin.unloaded);
        assert_lk(0, worker_join(&user));
    }
    return 0;
}

static void a_plugin_can_be_unloaded(struct world *w)
{
    if (SANITIZED)
        skip(); /* what is unloaded has no names in their reports */
    struct quorum *q = quorum_begin(w, NODES);
    char *url = strdup(quorum_url(q, TIMES));
    assert_int_equal(0, world_wait(w, world_fork(w, unload_it, url)));
    free(url);
}

/* --- descriptors --------------------------------------------------------------------------------------------------------- */

/* Opened, or refused without anything left; with too few for all of its servers it may have a majority. */
static void a_client_has_its_descriptors_or_is_refused(struct world *w)
{
    lk_client_t *client = NULL;
    struct quorum *q = quorum_begin(w, NODES);
    const char *url = quorum_url(q, "lease=10s&command_timeout=2500ms&connect_timeout=500ms");
    int rc = ENOMEM, refusals = 0;
    while (rc != 0) {
        assert_that(refusals < 60);
        descriptors_more(refusals);
        rc = open_patiently(&client, url);
        descriptors_lift();
        assert_true(rc == 0 || rc == ENOMEM);
        refusals += rc != 0;
    }
    assert_true(refusals > 2);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &brief);
    assert_lk(0, lk_redlock_lockfor(r, WITHIN_MS));
    assert_lk(0, lk_redlock_unlock(r));
    world_close(w, r);
    assert_lk(0, lk_client_close(client));
}

/* --- a thread that stands still -------------------------------------------------------------------------------------------- */

/* However long it takes until it stands still, on a busy machine. */
WORK(lock_at_last, redlock, lk_redlock_lockfor(redlock, 3 * WITHIN_MS))

/* In the middle of a round, or between two: others of that client lock and unlock, and it gets its turn later. */
static void one_that_stands_still_holds_up_nobody(struct world *w)
{
    struct quorum *q = quorum_begin(w, NODES);
    lk_client_t *client = quorum_client(q, TIMES);
    lk_redlock_t *held = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &patient);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &patient), *other = quorum_redlock(w, client, "more", &patient);
    struct worker waiter;
    assert_lk(0, lock_once(other));
    assert_lk(0, lk_redlock_lock(held));
    worker_start(&waiter, lock_at_last, r);
    for (int i = 0; i < 5; i++) {
        sleep_ms(20 + 17 * i);
        still_begin(&waiter);
        for (int j = 0; j < 3; j++)
            assert_lk(0, lock_once(other));
        still_end();
    }
    assert_lk(0, lk_redlock_unlock(held));
    assert_lk(0, worker_join(&waiter)); /* its thread has ended: so does the hold, by a close at the latest */
}

static __thread bool is_to_stand;
static struct gate stands, goes_on;
static int (*poll_of_c)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

__attribute__((constructor)) static void find_poll(void)
{
    void *found = dlsym(RTLD_NEXT, "ppoll");
    memcpy(&poll_of_c, &found, sizeof poll_of_c);
}

/* In front of the C library's: the thread stands still where it is about to read what a server says. */
int ppoll(struct pollfd *polled, nfds_t count, const struct timespec *left, const sigset_t *mask)
{
    if (is_to_stand) {
        is_to_stand = false;
        gate_open(&stands);
        while (!gate_is_open(&goes_on))
            syscall(SYS_nanosleep, &(struct timespec){ 0, 5000000 }, NULL);
    }
    return poll_of_c(polled, count, left, mask);
}

static int stand_still_locking(void *redlock)
{
    is_to_stand = true;
    return lock_at_last(redlock);
}

/* It reads for all at one of the servers, and another one is away: of the three that one is needed. */
static void what_it_should_have_read_is_read_by_others(struct world *w)
{
    struct quorum *q = quorum_begin(w, NODES);
    lk_client_t *client = quorum_client(q, "lease=30s&connect_timeout=10s&command_timeout=2s");
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &patient), *other = quorum_redlock(w, client, "more", &patient);
    struct worker still;
    quorum_lockall(q, other, "more"); /* all are connected */
    assert_lk(0, lk_redlock_unlock(other));
    worker_start(&still, stand_still_locking, r);
    gate_pass(&stands);
    quorum_kill(q, NODES - 1);
    for (int i = 0; i < 3; i++) {
        assert_lk(0, lk_redlock_lockfor(other, WITHIN_MS / 3));
        assert_lk(0, lk_redlock_check(other));
        assert_lk(0, lk_redlock_unlock(other));
    }
    quorum_start(q, NODES - 1);
    gate_open(&goes_on);
    assert_lk(0, worker_join(&still));
}

int main(void)
{
    return world_run(hundreds_of_threads_open_one_client, forks_in_the_middle_of_locks_disturb_nobody,
                     a_close_ends_all_who_are_inside, a_close_knows_that_all_is_given_back,
                     nothing_is_destroyed_under_a_waiter, a_plugin_can_be_unloaded,
                     a_client_has_its_descriptors_or_is_refused, one_that_stands_still_holds_up_nobody,
                     what_it_should_have_read_is_read_by_others);
}
