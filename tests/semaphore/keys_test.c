/* SPDX-License-Identifier: MIT */
/*
 * keys_test.c - docs/keys.md tells what is in Redis: compared after each operation, key by key
 *
 * labels: threads memory
 * simulated: yes
 */
#include "page.h"

static struct page page;
static lk_client_t *client, *other;
static lk_sem_t *pool, *same;

static void compare(struct world *w, const char *when)
{
    print_message("             %s\n", when);
    page_compare(w, &page, NULL);
}

WORK(wait_for_two, arg, lk_sem_acquire(arg, 2, 20000))

struct child {
    const lk_semattr_t *attr;
    struct gate *go; /* NULL: at once */
};

static int wait_forever(struct world *w, void *arg)
{
    struct child *child = arg;
    lk_sem_t s;
    assert_lk(0, lk_sem_init(&s, world_open(w, ""), "pool", 3, child->attr));
    world_ready(w);
    if (child->go != NULL)
        gate_pass(child->go);
    return lk_sem_acquire(&s, 1, LK_FOREVER); /* it keeps what it takes */
}

static void run_through(struct world *w, const lk_semattr_t *attr)
{
    struct worker waiter;
    struct child child = { attr, NULL };
    pid_t doomed = world_fork(w, wait_forever, &child);
    assert_int_equal(0, world_wait(w, doomed)); /* it takes the first of three */
    client = world_client(w, "");
    other = world_client(w, "");
    pool = world_sem(w, client, "pool", 3, attr);
    same = world_sem(w, other, "pool", 3, attr);
    compare(w, "after a wait");
    if (attr != NULL)
        world_redis(w, "DEL latchkey:permits:{pool}");
    else
        world_redis(w, "SET pool 3");
    assert_lk(EEXIST, lk_sem_trysetpermits(pool, 3));
    compare(w, "after trysetpermits");
    assert_lk(0, lk_sem_acquire(pool, 3, 0));
    compare(w, "after acquire");
    assert_lk(EAGAIN, lk_sem_trywait(same));
    assert_lk(ETIMEDOUT, lk_sem_waitfor(same, 20));
    compare(w, "after a timeout");
    worker_start(&waiter, wait_for_two, same);
    eventually(world_elements(w, "KEYS latchkey:queue:*") == 1, 3000);
    compare(w, "while one waits");
    assert_lk(0, lk_sem_release(pool, 2));
    compare(w, "after a hand-over");
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_sem_addpermits(pool, 2));
    assert_lk(0, lk_sem_addpermits(pool, -1));
    compare(w, "after addpermits");
    assert_lk(0, lk_sem_post(pool));
    compare(w, "after post");
    world_close(w, client);
}

static void a_counting_semaphores_keys(struct world *w)
{
    unsigned taken;
    world_allow(w, "*pool*");
    page_read(&page, "a counting semaphore", "pool", 0);
    struct child child = { NULL, world_shared(w, sizeof(struct gate)) };
    pid_t doomed = world_fork(w, wait_forever, &child);
    run_through(w, NULL);
    assert_lk(0, lk_sem_drain(same, &taken));
    compare(w, "after drain");

    /* A claim lasts only if its waiter does not look: one that is stopped. */
    gate_open(child.go);
    eventually(world_exists(w, "latchkey:queue:sem:{pool}") && world_listening(w, "sem:{pool}"), 3000);
    world_stop(doomed);
    assert_lk(0, lk_sem_post(same));
    compare(w, "with a claim");
    world_kill(w, doomed);
    world_close(w, other);
    page_was_seen(&page); /* semaphore/anonymous looks at the others */
}

static void a_leased_semaphores_keys(struct world *w)
{
    static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1, .lease_ms = 5000 };
    char id[LK_PERMIT_ID];
    world_allow(w, "*pool*");
    page_read(&page, "a leased semaphore", "pool", 0);
    run_through(w, &leased);
    assert_lk(0, lk_sem_acquireid(same, 0, id));
    compare(w, "after acquireid");
    assert_true(world_int(w, "ZSCORE latchkey:permits:{pool} %s", id) > 0);
    assert_lk(0, lk_sem_releaseid(same, id));
    world_close(w, other);
    page_was_seen(&page); /* semaphore/anonymous looks at the others */
}

int main(void)
{
    return world_run(a_counting_semaphores_keys, a_leased_semaphores_keys);
}
