/* SPDX-License-Identifier: MIT */
#include "redisson.h"

#include <stdio.h>

#define LEASE_MS "30000"
#define LATCH_MS "16000"

/* Nil when it is taken, else how long the present lease lasts. */
static const char take_script[] = "local lock, owner = KEYS[1], ARGV[2]\n"
                                  "if redis.call('EXISTS', lock) == 0 or redis.call('HEXISTS', lock, owner) == 1 then\n"
                                  "  redis.call('INCR', KEYS[2])\n"
                                  "  redis.call('HINCRBY', lock, owner, 1)\n"
                                  "  redis.call('PEXPIRE', lock, ARGV[1])\n"
                                  "  return nil\n"
                                  "end\n"
                                  "return redis.call('PTTL', lock)\n";

/* 1: given back, 0: still held by an outer level, nil: it is somebody else's. */
static const char give_script[] = "local lock, channel, latch = KEYS[1], KEYS[2], KEYS[3]\n"
                                  "local before = redis.call('GET', latch)\n"
                                  "if before then\n"
                                  "  return tonumber(before)\n"
                                  "end\n"
                                  "if redis.call('HEXISTS', lock, ARGV[3]) == 0 then\n"
                                  "  return nil\n"
                                  "end\n"
                                  "if redis.call('HINCRBY', lock, ARGV[3], -1) > 0 then\n"
                                  "  redis.call('PEXPIRE', lock, ARGV[2])\n"
                                  "  redis.call('SET', latch, 0, 'PX', ARGV[5])\n"
                                  "  return 0\n"
                                  "end\n"
                                  "redis.call('DEL', lock)\n"
                                  "redis.call(ARGV[4], channel, ARGV[1])\n"
                                  "redis.call('SET', latch, 1, 'PX', ARGV[5])\n"
                                  "return 1\n";

void redisson_init(struct redisson *lock, struct wire *wire, const char *name, int number)
{
    wire_load(wire, take_script, lock->take);
    wire_load(wire, give_script, lock->give);
    snprintf(lock->name, sizeof lock->name, "%s", name);
    snprintf(lock->token, sizeof lock->token, "redisson_lock_token:{%s}", name);
    snprintf(lock->channel, sizeof lock->channel, "redisson_lock__channel:{%s}", name);
    snprintf(lock->owner, sizeof lock->owner, "8743c9c0-0795-4907-87fd-%012x:1", (unsigned)number);
    lock->turn = 0;
}

void redisson_put_take(struct redisson *lock, struct wire_out *out)
{
    wire_put(out, WORDS("EVALSHA", lock->take, "2", lock->name, lock->token, LEASE_MS, lock->owner));
}

void redisson_put_give(struct redisson *lock, struct wire_out *out)
{
    snprintf(lock->latch, sizeof lock->latch, "redisson_unlock_latch:{%s}:%.12s%020llx", lock->name, lock->owner + 24,
             (unsigned long long)lock->turn++);
    wire_put(out, WORDS("EVALSHA", lock->give, "3", lock->name, lock->channel, lock->latch, "0", LEASE_MS, lock->owner,
                        "PUBLISH", LATCH_MS));
}

void redisson_put_forget(struct redisson *lock, struct wire_out *out)
{
    wire_put(out, WORDS("DEL", lock->latch));
}
