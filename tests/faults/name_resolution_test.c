/* SPDX-License-Identifier: MIT */
/*
 * name_resolution_test.c - F13: the server's name cannot be resolved, or the resolver thinks for long
 *
 * This program has a getaddrinfo() of its own, which the library calls, too. It knows one name.
 *
 * labels: memory
 * simulated: yes
 * seconds: 42
 */
#include "blackout.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char name[] = "redis.invalid"; /* RFC 6761: nobody's */

enum resolver { KNOWS, DENIES, FAILS, THINKS };
static atomic_int resolver;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT,
                                                                                                "getaddrinfo");
    if (strcmp(node, name) != 0)
        return real(node, service, hints, found);
    while (atomic_load(&resolver) == THINKS)
        sleep_ms(5);
    if (atomic_load(&resolver) == FAILS)
        return EAI_AGAIN;
    return atomic_load(&resolver) == DENIES ? EAI_NONAME : real("127.0.0.1", service, hints, found);
}

/* The name is of no use any more: not for the connections that stand, nor for one that was just being made. */
static void change(enum resolver to, struct proxy *p)
{
    atomic_store(&resolver, to);
    proxy_reset(p);
    sleep_ms(100);
    proxy_reset(p);
}

static void forget(struct rig *rig, struct proxy *p)
{
    (void)rig;
    change(DENIES, p);
}

static void think(struct rig *rig, struct proxy *p)
{
    (void)rig;
    change(THINKS, p);
}

static void know(struct rig *rig, struct proxy *p)
{
    (void)rig;
    (void)p;
    atomic_store(&resolver, KNOWS);
}

static void a_name_that_is_unknown(struct world *w)
{
    static const struct blackout blackout = { "F13: the name is unknown", name, forget, know };
    blackout_meets_all(w, &blackout);
}

static void a_resolver_that_thinks(struct world *w)
{
    static const struct blackout blackout = { "F13: the resolver thinks", name, think, know };
    blackout_meets_all(w, &blackout);
}

#define PATIENTLY "lease=10s&command_timeout=2s&poll=200ms" /* of the other client */

/* Who is connected does not ask for the name any more: renewals and calls go on, and other clients' as well. */
static void connections_that_stand_need_no_resolver(struct world *w)
{
    struct proxy *p = proxy_begin_tcp(w);
    char url[256];
    int64_t ms;
    snprintf(url, sizeof url, "redis://%s:%d?lease=%dms&command_timeout=1100ms&poll=200ms", name, proxy_port(p),
             RIG_LEASE_MS); /* an answer that is late ends a connection, and there is no other */
    struct rig *rig = rig_begin(w, url, PATIENTLY);
    for_each_place(place, rig)
        place_take(place);
    atomic_store(&resolver, THINKS);
    sleep_ms(RIG_LEASE_MS + RIG_LEASE_MS / 3);
    for_each_place(place, rig) {
        assert_lk(0, subject_remaining(&place->mine, &ms));
        place_give(rig, &place->mine);
    }
    rig_works(rig);
    assert_int_equal(0, rig_count(&rig->at_risk));
    atomic_store(&resolver, KNOWS);
}

/* A resolver that has no answer says nothing about the server, which is where it was. */
static void a_resolver_that_fails_costs_no_connection(struct world *w)
{
    struct proxy *p = proxy_begin_tcp(w);
    char url[256];
    snprintf(url, sizeof url, "redis://%s:%d?" RIG_OPTIONS, name, proxy_port(p));
    struct rig *rig = rig_begin(w, url, PATIENTLY);
    for_each_place(place, rig)
        place_take(place);
    atomic_store(&resolver, FAILS);
    proxy_reset(p);
    sleep_ms(RIG_LEASE_MS + RIG_LEASE_MS / 3);
    for_each_place(place, rig)
        place_give(rig, &place->mine);
    assert_int_equal(0, rig_count(&rig->lost));
    rig_works(rig);
    atomic_store(&resolver, KNOWS);
}

/* A client that cannot be opened is not opened, within the connect timeout if the resolver lets it; else it is closed. */
static void opening_without_the_name_fails(struct world *w)
{
    struct proxy *p = proxy_begin_tcp(w);
    lk_client_t *client;
    char url[256];
    snprintf(url, sizeof url, "redis://%s:%d?connect_timeout=300ms", name, proxy_port(p));
    atomic_store(&resolver, FAILS);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_client_open(&client, url));
    assert_non_null(strstr(lk_errortext(), name));
    assert_between(now_ms() - began_ms, 0, 300 + RIG_SLACK_MS);
    atomic_store(&resolver, THINKS);
    began_ms = now_ms();
    assert_lk(ENOTCONN, lk_client_open(&client, url));
    assert_between(now_ms() - began_ms, 0, 300 + RIG_SLACK_MS);
    atomic_store(&resolver, KNOWS);
}

int main(void)
{
    return world_run(a_name_that_is_unknown, a_resolver_that_thinks, connections_that_stand_need_no_resolver,
                     a_resolver_that_fails_costs_no_connection, opening_without_the_name_fails);
}
