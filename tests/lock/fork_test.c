/* SPDX-License-Identifier: MIT */
/*
 * fork_test.c - after a fork parent and child are two: the child owns nothing of what the parent holds
 *
 * labels: threads memory
 * simulated: yes
 */
#include "subject.h"

#include <stdlib.h>
#include <unistd.h>

static lk_mutex_t inherited = LK_MUTEX_INITIALIZER("orders");

/* What the child inherits from the parent, opened before the fork on purpose. */
struct inheritance {
    lk_client_t *client;
    lk_mutex_t mutex;
    lk_events_t *events;
    uint64_t listener;
    struct gate *done;
};

/* ThreadSanitizer cannot follow a fork out of a process with threads when the child starts its own. */
static void use_server(struct world *w)
{
    use_default(world_url(w, "lease=3s"));
}

static int child_of_a_holder(struct world *w, void *subject)
{
    struct subject *s = subject;
    int64_t left_ms;
    uint64_t token;
    if (s->kind->leased) {
        assert_lk(EPERM, subject_give(s));
        assert_lk(EPERM, subject_remaining(s, &left_ms));
        assert_lk(s->kind->fenced ? EPERM : 0, s->kind->fenced ? s->kind->token(s, &token) : 0);
    }
    if (subject_keeper(s->kind) == s->kind)
        assert_lk(ETIMEDOUT, subject_take(s, 0)); /* somebody else has it: the parent */
    world_ready(w);
    assert_lk(0, subject_take(s, 10000));
    assert_lk(0, subject_give(s));
    assert_lk(0, subject_destroy(s));
    close_default();
    return 0;
}

/* A server that forks its workers needs no change: the same object of the default client, each process for itself. */
static void what_is_of_the_default_client_works_in_parent_and_child(struct world *w, const struct subject_kind *kind)
{
    struct subject mine;
    if (THREAD_SANITIZED)
        return;
    use_server(w);
    subject_init(w, &mine, kind, NULL, "thing", 0);
    assert_lk(0, subject_take(&mine, 5000));
    pid_t child = world_fork(w, child_of_a_holder, &mine);
    sleep_ms(3400); /* longer than the lease: the parent's renewals go on */
    assert_lk(0, kind->leased ? subject_check(&mine) : 0);
    assert_lk(0, subject_give(&mine));
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, subject_take(&mine, 0));
    assert_lk(0, subject_give(&mine));
    assert_lk(0, subject_destroy(&mine));
    close_default();
}

static void ignore(const lk_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
}

static int child_of_an_open_client(struct world *w, void *arg)
{
    struct inheritance *from = arg;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    lk_mutex_t fresh;
    uint64_t token;
    lk_events_t *queue;
    lk_event_t event = LK_EVENT_INIT;
    uint64_t handle;
    int fd;
    assert_lk(ECANCELED, lk_mutex_lock(&from->mutex));
    assert_lk(ECANCELED, lk_mutex_trylock(&from->mutex));
    assert_lk(ECANCELED, lk_mutex_lockfor(&from->mutex, 100));
    assert_lk(EPERM, lk_mutex_unlock(&from->mutex));
    assert_lk(ECANCELED, lk_mutex_token(&from->mutex, &token));
    assert_lk(ECANCELED, lk_mutex_info(&from->mutex, &info));
    assert_lk(ECANCELED, lk_mutex_init(&fresh, from->client, "other", NULL));
    assert_lk(ECANCELED, lk_events_open(from->client, &queue));
    assert_lk(ECANCELED, lk_events_fd(from->events, &fd));
    assert_lk(ECANCELED, lk_events_next(from->events, &event));
    assert_lk(0, lk_events_close(from->events));
    assert_lk(ECANCELED, lk_client_addlistener(from->client, ignore, NULL, &handle));
    assert_lk(ECANCELED, lk_client_removelistener(from->client, from->listener));
    assert_lk(0, lk_mutex_destroy(&from->mutex));
    assert_lk(0, lk_client_close(from->client));
    lk_client_t *own = world_client(w, ""); /* a client of its own is fine */
    assert_lk(0, lk_mutex_init(&fresh, own, "other", NULL));
    assert_lk(0, lock_and_unlock(&fresh));
    assert_lk(0, lk_mutex_destroy(&fresh));
    world_close(w, own);
    world_ready(w);
    return 0;
}

/* An explicitly opened client belongs to who opened it; a child that ends it does so for itself only. */
static void an_open_client_answers_ecanceled_in_the_child(struct world *w)
{
    struct inheritance from;
    if (THREAD_SANITIZED)
        skip();
    use_server(w);
    from.client = world_client(w, "lease=3s");
    from.events = world_events(w, from.client);
    assert_lk(0, lk_client_addlistener(from.client, ignore, NULL, &from.listener));
    assert_lk(0, lk_mutex_init(&from.mutex, from.client, "orders", NULL));
    assert_lk(0, lk_mutex_lock(&from.mutex));
    pid_t child = world_fork(w, child_of_an_open_client, &from);
    assert_int_equal(0, world_wait(w, child));
    sleep_ms(3400);
    assert_lk(0, lk_mutex_check(&from.mutex));
    assert_lk(0, lk_mutex_unlock(&from.mutex));
    assert_lk(0, lk_mutex_destroy(&from.mutex));
    world_close(w, from.client);
}

static int child_that_just_ends(struct world *w, void *arg)
{
    (void)arg;
    world_ready(w);
    if (SANITIZED)
        _exit(0); /* a leak check in the child would look for the parent's threads */
    exit(0);      /* with all handlers, as a program that failed to exec */
}

/* A child that ends, even by exit(), sends nothing and releases nothing. */
static void a_child_that_ends_disturbs_nobody(struct world *w)
{
    if (THREAD_SANITIZED)
        skip();
    use_server(w);
    assert_lk(0, lk_mutex_lock(&inherited));
    eventually(world_counter(w, "connected_clients") == 3, 5000); /* the test's, for commands, for renewals */
    for (int i = 0; i < 5; i++)
        assert_int_equal(0, world_wait(w, world_fork(w, child_that_just_ends, NULL)));
    assert_lk(0, lk_mutex_check(&inherited));
    assert_int_equal(3, world_counter(w, "connected_clients"));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(&inherited));
    assert_lk(0, lk_mutex_destroy(&inherited));
    close_default();
}

static int child_with_shared_memory(struct world *w, void *arg)
{
    lk_mutex_t *m = arg;
    int rc;
    world_ready(w);
    rc = lk_mutex_trylock(m);
    assert_that(rc == ECANCELED || rc == EINVAL);
    assert_lk(EPERM, lk_mutex_unlock(m));
    return 0;
}

/* A mutex in memory that another process sees gives it an answer, not a crash. */
static void a_mutex_in_shared_memory_is_no_trap(struct world *w)
{
    struct {
        lk_mutex_t mutex;
    } *shared = world_shared(w, sizeof *shared);
    if (THREAD_SANITIZED)
        skip();
    use_server(w);
    lk_client_t *client = world_client(w, "");
    assert_lk(0, lk_mutex_init(&shared->mutex, client, "orders", NULL));
    assert_lk(0, lk_mutex_lock(&shared->mutex));
    assert_int_equal(0, world_wait(w, world_fork(w, child_with_shared_memory, &shared->mutex)));
    assert_lk(0, lk_mutex_unlock(&shared->mutex));
    assert_lk(0, lk_mutex_destroy(&shared->mutex));
}

int main(void)
{
    int failed = subject_run(what_is_of_the_default_client_works_in_parent_and_child);
    return failed + world_run(an_open_client_answers_ecanceled_in_the_child, a_child_that_ends_disturbs_nobody,
                              a_mutex_in_shared_memory_is_no_trap);
}
