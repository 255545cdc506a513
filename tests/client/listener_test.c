/* SPDX-License-Identifier: MIT */
/*
 * listener_test.c - several listeners and queues of one client: each hears of everything, and goes when it wants to
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "client/client.h"
#include "world.h"

#include <poll.h>
#include <stdio.h>

enum { LOSSES = 3 };

static lk_client_t *client;
static lk_mutex_t *objects[LOSSES];
static struct gate gate;
static pthread_mutex_t of_program = PTHREAD_MUTEX_INITIALIZER;

/* One of several users of the client. Counters are reached with atomic builtins. */
struct user {
    uint64_t handle, other; /* of its listener, and of another one that it removes */
    int heard, inside, code;
    lk_events_t *queue; /* that it closes */
};

static struct user users[2];

static int count(const int *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static void note(int *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static void open_client(struct world *w)
{
    users[0] = users[1] = (struct user){ .code = -1 };
    gate = (struct gate){ 0 };
    client = world_client(w, "connect_timeout=10s");
}

static void add(struct user *user, lk_listener_t listener)
{
    assert_lk(0, lk_client_addlistener(client, listener, user, &user->handle));
}

/* Held by a thread that cannot unlock in time: each of them is an event. */
static void lose(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fixed = 1;
    attr.lease_ms = 200;
    for (int i = 0; i < LOSSES; i++) {
        char name[16];
        snprintf(name, sizeof name, "object-%d", i);
        objects[i] = world_mutex(w, client, name, &attr);
        assert_lk(0, lk_mutex_lock(objects[i]));
    }
}

static void expect_losses(void)
{
    int64_t left_ms;
    for (int i = 0; i < LOSSES; i++) {
        eventually(lk_mutex_remaining(objects[i], &left_ms) == ESTALE, 5000);
        assert_lk(ESTALE, lk_mutex_unlock(objects[i]));
    }
}

/* --- listeners ---------------------------------------------------------------------------------------------- */

static void hear(const lk_event_t *event, void *arg)
{
    struct user *user = arg;
    if (event->type == LK_EVENT_LOST && event->count == 1 && event->size == sizeof *event)
        note(&user->heard);
}

static void end_thread(const lk_event_t *event, void *arg)
{
    hear(event, arg);
    pthread_exit(NULL);
}

static void enter_and_wait(const lk_event_t *event, void *arg)
{
    struct user *user = arg;
    hear(event, user);
    note(&user->inside);
    gate_pass(&gate);
    note(&user->inside);
}

static void take_lock(const lk_event_t *event, void *arg)
{
    pthread_mutex_lock(&of_program);
    hear(event, arg);
    pthread_mutex_unlock(&of_program);
}

static void remove_itself(const lk_event_t *event, void *arg)
{
    struct user *user = arg;
    hear(event, user);
    __atomic_store_n(&user->code, lk_client_removelistener(client, user->handle), __ATOMIC_SEQ_CST);
}

static void remove_another(const lk_event_t *event, void *arg)
{
    struct user *user = arg;
    hear(event, user);
    if (user->other != 0)
        __atomic_store_n(&user->code, lk_client_removelistener(client, user->other), __ATOMIC_SEQ_CST);
    user->other = 0;
}

static void wait_and_close_queue(const lk_event_t *event, void *arg)
{
    struct user *user = arg;
    hear(event, user);
    note(&user->inside);
    gate_pass(&gate);
    if (user->queue != NULL)
        __atomic_store_n(&user->code, lk_events_close(user->queue), __ATOMIC_SEQ_CST);
    user->queue = NULL;
}

static void add_another(const lk_event_t *event, void *arg)
{
    struct user *user = arg;
    hear(event, user);
    if (users[1].handle == 0)
        __atomic_store_n(&user->code, lk_client_addlistener(client, hear, &users[1], &users[1].handle),
                         __ATOMIC_SEQ_CST);
}

/* --- who hears what ----------------------------------------------------------------------------------------- */

static int fetch(lk_events_t *queue)
{
    lk_event_t event = LK_EVENT_INIT;
    int losses = 0;
    while (lk_events_next(queue, &event) == 0)
        losses += event.type == LK_EVENT_LOST;
    return losses;
}

static bool is_readable(lk_events_t *queue)
{
    struct pollfd polled = { .events = POLLIN };
    assert_lk(0, lk_events_fd(queue, &polled.fd));
    return poll(&polled, 1, 0) == 1;
}

static void everybody_hears_of_everything(struct world *w)
{
    open_client(w);
    lk_events_t *queues[2] = { world_events(w, client), world_events(w, client) };
    add(&users[0], hear);
    add(&users[1], hear);
    assert_false(is_readable(queues[0]));
    lose(w);
    expect_losses();
    for (int i = 0; i < 2; i++) {
        eventually(count(&users[i].heard) == LOSSES, 5000);
        assert_true(is_readable(queues[i])); /* also where it is asked for its descriptor only now */
        assert_int_equal(LOSSES, fetch(queues[i]));
        assert_false(is_readable(queues[i]));
    }
}

/* What happened before somebody came is no news to that one, and what happens after somebody left is not kept. */
static void events_count_from_joining_to_leaving(struct world *w)
{
    open_client(w);
    lk_events_t *early = world_events(w, client);
    add(&users[0], hear);
    lose(w);
    expect_losses();
    lk_events_t *late = world_events(w, client);
    eventually(count(&users[0].heard) == LOSSES, 5000);
    assert_lk(0, lk_client_removelistener(client, users[0].handle));
    for (int i = 0; i < LOSSES; i++)
        world_close(w, objects[i]);
    lose(w);
    expect_losses();
    assert_int_equal(LOSSES, count(&users[0].heard));
    assert_int_equal(2 * LOSSES, fetch(early));
    assert_int_equal(LOSSES, fetch(late));
}

/* Another thread tells the rest, and nobody waits for the one that is over. */
static void a_listener_may_end_its_thread(struct world *w)
{
    open_client(w);
    add(&users[0], end_thread);
    add(&users[1], hear);
    lose(w);
    eventually(count(&users[0].heard) == LOSSES && count(&users[1].heard) == LOSSES, 5000);
    assert_lk(0, lk_client_removelistener(client, users[0].handle));
    expect_losses();
}

static int open_gate(void *arg)
{
    (void)arg;
    sleep_ms(200);
    gate_open(&gate);
    return 0;
}

/* A new one does not wait for those that run, so its program may hold what it wants. */
static void a_new_listener_waits_for_nobody(struct world *w)
{
    struct worker opener;
    open_client(w);
    add(&users[0], enter_and_wait);
    lose(w);
    eventually(count(&users[0].inside) == 1, 5000);
    pthread_mutex_lock(&of_program);
    worker_start(&opener, open_gate, NULL);
    add(&users[1], take_lock);
    pthread_mutex_unlock(&of_program);
    assert_int_equal(0, worker_join(&opener));
    expect_losses();
}

/* --- going -------------------------------------------------------------------------------------------------- */

static int remove_first(void *arg)
{
    (void)arg;
    int rc = lk_client_removelistener(client, users[0].handle);
    return count(&users[0].inside) == 2 ? rc : -1;
}

/* Who is still to be told of what happens. */
static unsigned listeners(void)
{
    unsigned count = 0;
    lk__mu_lock(&client->events.mu);
    for (struct lk__link *l = client->events.queues.next; l != &client->events.queues; l = l->next)
        count++;
    lk__mu_unlock(&client->events.mu);
    return count;
}

/* Memory and code of the listener may go when the call returns, also that of who comes second. */
static void who_removes_a_listener_waits_until_it_is_not_running(struct world *w)
{
    struct worker removers[2], opener;
    open_client(w);
    add(&users[0], enter_and_wait);
    lose(w);
    eventually(count(&users[0].inside) == 1, 5000);
    worker_start(&removers[0], remove_first, NULL);
    worker_start(&removers[1], remove_first, NULL);
    eventually(listeners() == 0, 5000); /* one of them is at it */
    worker_start(&opener, open_gate, NULL);
    int codes[2] = { worker_join(&removers[0]), worker_join(&removers[1]) };
    assert_true((codes[0] == 0 && codes[1] == ENOENT) || (codes[0] == ENOENT && codes[1] == 0));
    assert_int_equal(0, worker_join(&opener));
    assert_int_equal(1, count(&users[0].heard)); /* and is told no more */
    expect_losses();
}

static void a_listener_removes_itself(struct world *w)
{
    open_client(w);
    add(&users[0], remove_itself);
    add(&users[1], hear);
    lose(w);
    eventually(count(&users[1].heard) == LOSSES, 5000);
    assert_int_equal(0, count(&users[0].code));
    assert_int_equal(1, count(&users[0].heard));
    assert_lk(ENOENT, lk_client_removelistener(client, users[0].handle));
    expect_losses();
}

static void a_listener_removes_another(struct world *w)
{
    open_client(w);
    add(&users[0], remove_another);
    add(&users[1], hear);
    users[0].other = users[1].handle;
    lose(w);
    eventually(count(&users[0].heard) == LOSSES, 5000);
    assert_int_equal(0, count(&users[0].code));
    assert_true(count(&users[1].heard) <= 1);
    assert_lk(ENOENT, lk_client_removelistener(client, users[1].handle));
    expect_losses();
}

static void a_listener_adds_another(struct world *w)
{
    open_client(w);
    add(&users[0], add_another);
    lose(w);
    eventually(count(&users[0].heard) == LOSSES, 5000);
    assert_int_equal(0, count(&users[0].code));
    expect_losses();
}

/* The close tells each listener the rest. One that has enough of it goes, then as ever. */
static void a_listener_removes_itself_while_its_client_closes(struct world *w)
{
    open_client(w);
    users[1].other = 0;
    add(&users[0], enter_and_wait);
    add(&users[1], remove_itself);
    lose(w);
    eventually(count(&users[0].inside) == 1, 5000);
    expect_losses();
    struct worker opener;
    worker_start(&opener, open_gate, NULL);
    for (int i = 0; i < LOSSES; i++)
        world_close(w, objects[i]);
    world_close(w, client);
    assert_int_equal(0, worker_join(&opener));
    assert_int_equal(LOSSES, count(&users[0].heard));
    assert_int_equal(1, count(&users[1].heard));
    assert_int_equal(0, count(&users[1].code));
}

static void mistakes_are_told(struct world *w)
{
    lk_events_t *queue;
    uint64_t handle = 7;
    int fd = 7;
    open_client(w);
    assert_lk(EINVAL, lk_client_addlistener(client, NULL, NULL, &handle));
    assert_lk(EINVAL, lk_client_addlistener(NULL, hear, NULL, &handle));
    assert_lk(ENOENT, lk_client_removelistener(client, 0));
    assert_lk(ENOENT, lk_client_removelistener(client, 7));
    assert_lk(EINVAL, lk_client_removelistener(NULL, 7));
    assert_lk(EINVAL, lk_events_open(client, NULL));
    assert_lk(EINVAL, lk_events_open(NULL, &queue));
    assert_lk(EINVAL, lk_events_fd(NULL, &fd));
    assert_lk(EINVAL, lk_events_fd(world_events(w, client), NULL));
    assert_lk(EINVAL, lk_events_next(NULL, &(lk_event_t)LK_EVENT_INIT));
    assert_lk(0, lk_events_close(NULL));
    assert_true(handle == 7 && fd == 7);
}

/* A program that polls is woken, and finds out; it closes the queue when it comes to that. */
static void a_queue_outlives_its_client(struct world *w)
{
    lk_event_t event = LK_EVENT_INIT;
    lk_events_t *queue = NULL, *silent = NULL;
    struct pollfd polled = { .events = POLLIN };
    open_client(w);
    assert_lk(0, lk_events_open(client, &queue));
    assert_lk(0, lk_events_open(client, &silent));
    assert_lk(0, lk_events_fd(queue, &polled.fd));
    world_close(w, client);
    assert_int_equal(1, poll(&polled, 1, 0));
    assert_lk(ECANCELED, lk_events_next(queue, &event));
    assert_lk(ECANCELED, lk_events_fd(queue, &polled.fd));
    assert_lk(0, lk_events_close(queue));
    assert_lk(0, lk_events_close(silent));
}

/* What was not fetched before the close is told by its number. */
static void a_close_leaves_the_number_of_losses(struct world *w)
{
    lk_event_t event = LK_EVENT_INIT;
    lk_events_t *queue = NULL;
    open_client(w);
    assert_lk(0, lk_events_open(client, &queue));
    lose(w);
    expect_losses();
    assert_lk(0, lk_events_next(queue, &event));
    world_close(w, client);
    assert_lk(0, lk_events_next(queue, &event));
    assert_true(event.type == LK_EVENT_LOST && event.count == LOSSES - 1 && event.name[0] == '\0');
    assert_lk(ECANCELED, lk_events_next(queue, &event));
    assert_lk(0, lk_events_close(queue));
}

static int close_client(void *arg)
{
    (void)arg;
    return lk_client_close(client);
}

static int close_events(void *queue)
{
    return lk_events_close(queue);
}

/* Here by the listener that the close waits for, and by another thread, which waits for the close. */
static void queues_are_closed_while_their_client_closes(struct world *w)
{
    struct worker closers[2];
    lk_event_t event = LK_EVENT_INIT;
    lk_events_t *queues[2] = { NULL, NULL };
    open_client(w);
    world_forget(w, client);
    assert_lk(0, lk_events_open(client, &queues[0]));
    assert_lk(0, lk_events_open(client, &queues[1]));
    users[0].queue = queues[0];
    add(&users[0], wait_and_close_queue);
    lose(w);
    eventually(count(&users[0].inside) == 1, 5000);
    expect_losses();
    for (int i = 0; i < LOSSES; i++)
        world_close(w, objects[i]);
    worker_start(&closers[0], close_client, NULL);
    while (lk_events_next(queues[1], &event) == 0)
        sleep_ms(1);
    worker_start(&closers[1], close_events, queues[1]);
    sleep_ms(100);
    gate_open(&gate);
    assert_int_equal(0, worker_join(&closers[0]));
    assert_int_equal(0, worker_join(&closers[1]));
    assert_int_equal(0, count(&users[0].code));
    assert_int_equal(LOSSES, count(&users[0].heard));
}

/* --- all at once ---------------------------------------------------------------------------------------------- */

static int come_and_go(int index, void *arg)
{
    struct user mine = { 0 };
    lk_events_t *queue;
    lk_event_t event = LK_EVENT_INIT;
    struct gate *stop = arg;
    int rc = 0;
    while (rc == 0 && !gate_is_open(stop)) {
        rc = index % 2 == 0 ? lk_client_addlistener(client, hear, &mine, &mine.handle) : lk_events_open(client, &queue);
        sleep_ms(index);
        if (rc == 0 && index % 2 == 0)
            rc = lk_client_removelistener(client, mine.handle);
        if (rc == 0 && index % 2 == 1) {
            rc = lk_events_next(queue, &event);
            rc = rc == EAGAIN || rc == 0 ? lk_events_close(queue) : rc;
        }
    }
    return rc;
}

static int come_and_go_all(void *arg)
{
    return run_threads(6, come_and_go, arg);
}

/* Whoever stays misses nothing, whoever else comes and goes. */
static void losses_reach_those_who_stay(struct world *w)
{
    enum { ROUNDS = 5 };
    struct gate stop = { 0 };
    struct worker restless;
    open_client(w);
    lk_events_t *queue = world_events(w, client);
    add(&users[0], hear);
    worker_start(&restless, come_and_go_all, &stop);
    for (int i = 0; i < ROUNDS; i++) {
        lose(w);
        expect_losses();
        for (int j = 0; j < LOSSES; j++)
            world_close(w, objects[j]);
    }
    gate_open(&stop);
    assert_int_equal(0, worker_join(&restless));
    assert_int_equal(ROUNDS * LOSSES, fetch(queue));
    eventually(count(&users[0].heard) == ROUNDS * LOSSES, 5000);
}

static void hear_slowly(const lk_event_t *event, void *arg)
{
    (void)event;
    note(&((struct user *)arg)->heard);
    sleep_ms(1);
}

/* Losses without end. False: nobody stopped it. */
static int raise_storm(int index, void *arg)
{
    enum { LASTS_MS = 5000 };
    int64_t until_ms = now_ms() + LASTS_MS;
    (void)index;
    while (!gate_is_open(arg) && now_ms() < until_ms)
        for (int i = 0; i < 10000; i++)
            lk__events_ofobject(&client->events, LK_EVENT_LOST, LK_KIND_MUTEX, "orders", 0);
    return now_ms() < until_ms ? 0 : -1;
}

/* So much the first listener was not told yet. */
static unsigned untold(void)
{
    lk__mu_lock(&client->events.mu);
    unsigned count = LK__CONTAINER(lk__list_first(&client->events.queues), struct lk_events, link)->count;
    lk__mu_unlock(&client->events.mu);
    return count;
}

static int raise_storms(void *arg)
{
    return run_threads(8, raise_storm, arg);
}

/* It is told no more, so it need not wait until nothing happens. */
static void a_listener_goes_while_there_are_news(struct world *w)
{
    struct gate calm = { 0 };
    struct worker storm;
    open_client(w);
    add(&users[0], hear_slowly);
    worker_start(&storm, raise_storms, &calm);
    eventually(untold() > 1000, 5000);
    assert_lk(0, lk_client_removelistener(client, users[0].handle));
    gate_open(&calm);
    assert_int_equal(0, worker_join(&storm));
}

int main(void)
{
    return world_run(everybody_hears_of_everything, events_count_from_joining_to_leaving, a_listener_may_end_its_thread,
                     a_new_listener_waits_for_nobody, who_removes_a_listener_waits_until_it_is_not_running,
                     a_listener_removes_itself, a_listener_removes_another, a_listener_adds_another,
                     a_listener_removes_itself_while_its_client_closes, mistakes_are_told, a_queue_outlives_its_client,
                     a_close_leaves_the_number_of_losses, queues_are_closed_while_their_client_closes,
                     losses_reach_those_who_stay, a_listener_goes_while_there_are_news);
}
