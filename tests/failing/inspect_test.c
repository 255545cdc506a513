/* SPDX-License-Identifier: MIT */
/*
 * inspect_test.c - every allocation and every system call fails while somebody walks through a server, asks for
 * holders and who they are: who is told so goes on, and nothing is missed
 *
 * labels: memory
 * seconds: 10
 * support: failing
 */
#include "failing/failing.h"

#include <string.h>

/* What failed once is asked again: the walk stands where it stood. */
static void walk_through(lk_inspect_t *walk)
{
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    int rc = ENOMEM;
    for (int i = 0; i < 3 && rc != 0; i++)
        rc = tried(0, lk_inspect_next(walk, &object), ENOMEM, UNREACHABLE);
    if (rc == 0) {
        assert_that(strcmp(object.name, "orders") == 0 && object.holders == 1);
        tried(ENOENT, lk_inspect_next(walk, &object));
    }
    tried(0, lk_inspect_stats(walk, &stats));
    assert_that(stats.servers == 1 && (rc == 0 ? stats.keys > 0 : stats.keys == 0));
}

static void look(struct world *w)
{
    lk_inspectattr_t attr = LK_INSPECTATTR_INIT;
    lk_inspect_t *walk = NULL;
    lk_holder_t holder;
    unsigned count = 77;
    lk_client_t *client = world_client(w, failing_options());
    world_redis(w, "HSET orders 285475da-9152-4c83-822a-67ee2f116a79:1 1"); /* Redisson's: no failure here ends it */
    attr.pattern = "ord*";
    failing_begin();
    if (tried(0, lk_inspect_open(&walk, client, &attr), ENOMEM) == 0)
        walk_through(walk);
    else
        assert_that(walk == NULL);
    lk_inspect_close(walk);
    if (tried(0, lk_inspect_holders(client, LK_KIND_MUTEX, "orders", &holder, sizeof holder, 1, &count), ENOMEM,
              UNREACHABLE) == 0)
        assert_that(count == 1 && holder.id[0] != '\0');
    else
        assert_that(count == 77);
    failing_end();
    world_close(w, client);
    world_redis(w, "DEL orders");
}

/* The words of a client are parsed, which takes memory. */
static void ask_who(struct world *w)
{
    char id[LK_PERMIT_ID] = "0123456789abcdef0123456789abcdef";
    lk_who_t who = LK_WHO_INIT;
    lk_client_t *client = world_client(w, failing_options());
    world_redis(w, "SET latchkey:who:%s %s PX 60000", id,
                "{\"pid\":7,\"host\":\"h\",\"program\":\"nightly\",\"why\":\"an export that is somewhat long\"}");
    failing_begin();
    if (tried(0, lk_inspect_who(client, id, &who), ENOMEM, UNREACHABLE) == 0)
        assert_that(who.pid == 7 && strcmp(who.program, "nightly") == 0 &&
                    strcmp(who.why, "an export that is somewhat long") == 0);
    else
        assert_that(who.pid == 0 && who.why[0] == '\0');
    failing_end();
    world_close(w, client);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "inspect", kind, look);
    each_failure(w, "who", kind, ask_who);
}

int main(void)
{
    return all_failures(all_of);
}
