/* SPDX-License-Identifier: MIT */
/*
 * eviction_test.c - F25: a server that runs out of memory evicts locks, as its policy tells it to
 *
 * That such a server is warned of, or refused with strict=yes, is proved by lock/no_server_test.c.
 *
 * labels: memory
 * simulated: yes
 * seconds: 10
 */
#include "robbery.h"

static void evict(struct world *w, const char *key, const char *policy)
{
    world_redis(w, "CONFIG SET maxmemory-policy %s", policy);
    world_redis(w, "CONFIG SET maxmemory 1");
    eventually(!world_exists(w, key), 2000);
    world_redis(w, "CONFIG SET maxmemory 0");
    world_redis(w, "CONFIG SET maxmemory-policy noeviction");
}

static void evict_what_ends(struct world *w, const char *key)
{
    evict(w, key, "volatile-ttl");
}

static void evict_what_is_old(struct world *w, const char *key)
{
    evict(w, key, "allkeys-lru");
}

int main(void)
{
    static const struct robbery robberies[] = {
        { .name = "volatile-ttl", .commit = evict_what_ends, .leases_only = true },
        { .name = "allkeys-lru", .commit = evict_what_is_old },
        { 0 },
    };
    return robbery_tests(robberies);
}
