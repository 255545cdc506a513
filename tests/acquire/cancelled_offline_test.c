/* SPDX-License-Identifier: MIT */
/*
 * cancelled_offline_test.c - who waits for permits or for a latch can be cancelled though there is no server
 *
 * This program has a getaddrinfo() of its own, which the library calls, too. It knows one name.
 *
 * labels: threads
 * simulated: yes
 */
#include "proxy.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { COMMAND_MS = 300 };
#define OPTIONS "command_timeout=300ms&poll=500ms"

static const char name[] = "redis.invalid"; /* RFC 6761: nobody's */
static atomic_bool thinks;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT,
                                                                                                "getaddrinfo");
    if (node == NULL || strcmp(node, name) != 0)
        return real(node, service, hints, found);
    while (atomic_load(&thinks))
        sleep_ms(5);
    return real("127.0.0.1", service, hints, found);
}

/* What is waited for, one after the other. */
enum { COUNTED, LEASED, LATCH, KINDS };
static lk_sem_t *pools[LATCH];
static lk_latch_t *gate;
static int cleaned;

static void open_all(struct world *w, lk_client_t *client)
{
    lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };
    world_allow(w, "*pool*");
    world_allow(w, "*gate*");
    pools[COUNTED] = world_sem(w, client, "pool", 0, NULL);
    pools[LEASED] = world_sem(w, client, "pool", 0, &leased);
    gate = world_latch(w, client, "gate");
    world_redis(w, "SET gate 1"); /* a call of this client has little time for its answer */
}

static void close_all(struct world *w, lk_client_t *client)
{
    world_close(w, pools[COUNTED]);
    world_close(w, pools[LEASED]);
    world_close(w, gate);
    int rc = lk_client_close(client);
    assert_true(rc == 0 || rc == EIO); /* it may not be through with taking cancelled waiters off their queues */
}

static void clean(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}

static void *wait_here(void *arg)
{
    int kind = *(int *)arg, rc;
    pthread_cleanup_push(clean, NULL);
    rc = kind == LATCH ? lk_latch_wait(gate) : lk_sem_wait(pools[kind]);
    pthread_cleanup_pop(0);
    return rc == 0 ? arg : NULL;
}

struct waiting {
    pthread_t threads[KINDS];
    int kinds[KINDS];
};

static void start(struct waiting *waiting)
{
    for (int kind = 0; kind < KINDS; kind++) {
        waiting->kinds[kind] = kind;
        assert_int_equal(0, pthread_create(&waiting->threads[kind], NULL, wait_here, &waiting->kinds[kind]));
    }
}

/* Who was queued makes sure for one command timeout that it is not any more; nobody takes longer. */
static void cancel(struct waiting *waiting)
{
    for (int kind = 0; kind < KINDS; kind++) {
        void *result;
        int64_t began_ms = now_ms();
        __atomic_store_n(&cleaned, 0, __ATOMIC_SEQ_CST);
        assert_int_equal(0, pthread_cancel(waiting->threads[kind]));
        assert_int_equal(0, pthread_join(waiting->threads[kind], &result));
        assert_between(now_ms() - began_ms, 0, 2 * COMMAND_MS + 2 * SLACK_MS);
        assert_ptr_equal(PTHREAD_CANCELED, result);
        assert_int_equal(1, __atomic_load_n(&cleaned, __ATOMIC_SEQ_CST));
    }
}

/* Threads wait when the server goes, others come when it is away; all of them are cancelled. */
static void meet(struct world *w, lk_client_t *client, void (*goes)(void *), void *arg)
{
    struct waiting before, after;
    open_all(w, client);
    start(&before);
    eventually(world_int(w, "ZCARD latchkey:queue:sem:{pool}") == 1, 3000);
    eventually(world_int(w, "ZCARD latchkey:queue:permits:{pool}") == 1, 3000);
    eventually(world_elements(w, "PUBSUB CHANNELS redisson_countdownlatch*") == 1, 3000);
    goes(arg);
    start(&after);
    sleep_ms(2 * COMMAND_MS);
    cancel(&before);
    cancel(&after);
}

static void server_dies(void *arg)
{
    world_kill_server(arg);
}

static void the_server_is_dead(struct world *w)
{
    lk_client_t *client = world_open(w, OPTIONS);
    meet(w, client, server_dies, w);
    world_restart_server(w);
    close_all(w, client);
}

static void is_refused(void *arg)
{
    proxy_refuse(arg, true);
    proxy_reset(arg);
}

static void connections_are_refused(struct world *w)
{
    struct proxy *p = proxy_begin_tcp(w);
    lk_client_t *client;
    assert_lk(0, open_patiently(&client, proxy_url(p, OPTIONS)));
    meet(w, client, is_refused, p);
    proxy_refuse(p, false);
    close_all(w, client);
}

static void is_not_resolved(void *arg)
{
    atomic_store(&thinks, true);
    proxy_reset(arg);
}

static void the_resolver_hangs(struct world *w)
{
    struct proxy *p = proxy_begin_tcp(w);
    lk_client_t *client;
    char url[256];
    snprintf(url, sizeof url, "redis://%s:%d?" OPTIONS, name, proxy_port(p));
    assert_lk(0, open_patiently(&client, url));
    meet(w, client, is_not_resolved, p);
    atomic_store(&thinks, false);
    close_all(w, client);
}

int main(void)
{
    if (SANITIZED && !THREAD_SANITIZED)
        return 77; /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    return world_run(the_server_is_dead, connections_are_refused, the_resolver_hangs);
}
