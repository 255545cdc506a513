/* SPDX-License-Identifier: MIT */
/*
 * prefix_test.c - each script may fail at any of its commands, and leaves what everybody can go on with
 *
 * The server takes nothing back. So each script is run on each state that matters, once for each command that
 * could fail (the k-th one, or every one of a name, as an access rule would have it), and what is left is
 * looked at: keys have an end, nobody is half an owner, no permit is lost or made up, and the next ones can
 * work. Likewise on a server that is out of memory: what takes is refused and leaves nothing, what gives back
 * is done.
 *
 * seconds: 26
 * processors: 5
 */
#include "rights.h"

#include "barrier/scripts.h"
#include "client/scripts.h"
#include "cond/scripts.h"
#include "inspect/scripts.h"
#include "latch/scripts.h"
#include "lock/scripts.h"
#include "once/scripts.h"
#include "redlock/scripts.h"
#include "redis/redis.h"
#include "rwlock/scripts.h"
#include "semaphore/scripts.h"

#include <glob.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Owners: A asks, B listens, C's client does not. */
#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1:1"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:1:1"
#define C "cccccccccccccccccccccccccccccccc:1:1"
#define D "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1:2" /* A again, who waits for a condition */
#define EARS "latchkey:client:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define A_CLIENT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B_CLIENT "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C_CLIENT "cccccccccccccccccccccccccccccccc"
#define TERMS "5000 3000 0" /* of a client, as its asks tell them */

#define LATER_US "4000000000000000" /* a deadline that no test outlives */
#define LATER_MS "4000000000000"

/* Keys of an object called x, as the C files make them: a test of theirs compares those with the docs. */
#define MUTEX                                                                                                          \
    "x", "redisson_lock_token:{x}", "latchkey:queue:mutex:{x}", "latchkey:alive:mutex:{x}", "latchkey:robust:mutex:{x}"
#define RW                                                                                                             \
    "latchkey:rw:{x}", "redisson_lock_token:{x}", "latchkey:queue:readers:{x}", "latchkey:queue:writers:{x}",          \
        "latchkey:alive:rw:{x}", "latchkey:robust:rw:{x}"
#define SEM "x", "latchkey:claims:{x}", "latchkey:queue:sem:{x}", "latchkey:alive:sem:{x}", "latchkey:once:{x}"
#define SEM_TOTAL SEM, "latchkey:total:sem:{x}"
#define PERMITS "latchkey:permits:{x}", "latchkey:total:{x}", "latchkey:queue:permits:{x}", "latchkey:alive:permits:{x}"
#define LATCH "x", "latchkey:opened:{x}", "latchkey:once:{x}"
#define COND_RECORD "latchkey:cond:{x}"
#define COND_NOTES COND_RECORD, "latchkey:queue:cond:{x}", "latchkey:alive:cond:{x}", "latchkey:moved:cond:{x}"
#define COND MUTEX, COND_NOTES
#define LATCH_USED "x", "latchkey:opened:{x}", "latchkey:users:latch:{x}"
#define ONCE "latchkey:run:{x}", "latchkey:done:{x}"
#define HOLDERS "x", "latchkey:rw:{x}", "latchkey:run:{x}"
#define RUNS(id) "SET latchkey:run:{x} \"" id " 7\" PX 50000;"
#define RAN(id) "HSET latchkey:done:{x} result good id " id " token 7;"
#define ONCE_CHANNEL "latchkey:ran:{x}"
#define MEETING "latchkey:barrier:{x}", "latchkey:parties:{x}"
#define BARRIER MEETING, "latchkey:past:{x}", "latchkey:once:{x}"
#define ROUND(broken)                                                                                                  \
    "HSET latchkey:barrier:{x} parties 2 generation 7 first 5 ended 3 before 1 broken \"" broken                       \
    "\";PEXPIRE latchkey:barrier:{x} 50000;"
#define WAITS(party, until) "ZADD latchkey:parties:{x} " until " " party ";PEXPIRE latchkey:parties:{x} 50000;"
#define BARRIER_CHANNEL "latchkey:met:{x}"
#define LOCK_CHANNEL "redisson_lock__channel:{x}"
#define LATCH_CHANNEL "redisson_countdownlatch__channel__{x}"
#define SEM_CHANNEL "redisson_sc:{x}"

/* What was there before: commands, divided by ';'. */
#define LIVES " \"" LATER_MS " 5000 3000 0\""
#define QUEUED(kind, first, second)                                                                                    \
    "ZADD latchkey:queue:" kind ":{x} 1 " first " 2 " second ";HSET latchkey:alive:" kind ":{x} " A_CLIENT LIVES       \
    " " B_CLIENT LIVES " " C_CLIENT LIVES ";PEXPIRE latchkey:queue:" kind ":{x} 50000;PEXPIRE latchkey:alive:" kind    \
    ":{x} 50000;"
#define RW_QUEUED(first_queue, first, second_queue, second)                                                            \
    "ZADD latchkey:queue:" first_queue ":{x} 1 " first ";ZADD latchkey:queue:" second_queue ":{x} 2 " second           \
    ";HSET latchkey:alive:rw:{x} " A_CLIENT LIVES " " B_CLIENT LIVES " " C_CLIENT LIVES                                \
    ";PEXPIRE latchkey:queue:" first_queue ":{x} 50000;PEXPIRE latchkey:queue:" second_queue ":{x} 50000"             \
    ";PEXPIRE latchkey:alive:rw:{x} 50000;"
#define HELD(id) "HSET x " id " 1;PEXPIRE x 50000;SET redisson_lock_token:{x} 7 EX 86400;"
#define USER(kind, id) "ZADD latchkey:users:" kind ":{x} " LATER_MS " " id ";PEXPIRE latchkey:users:" kind ":{x} 50000;"
#define SHARED(id) "ZADD latchkey:rw:{x} " LATER_MS " " id ";PEXPIRE latchkey:rw:{x} 50000;"
#define MARK(kind, id) "SET latchkey:robust:" kind ":{x} \"" id "\";"
#define SETTINGS(kind) "SET latchkey:settings:" kind ":{x} others EX 3600;"
#define JAVAS_TURN                                                                                                     \
    "EVAL \"local t = redis.call('TIME') redis.call('HSET', KEYS[1], 'java', t[1] .. string.sub('00000' .. t[2], -6, -4) " \
    "+ 9 .. ' 0 0 0') redis.call('PEXPIRE', KEYS[1], 50000)\" 1 latchkey:alive:mutex:{x};"
#define RECORD(result)                                                                                                 \
    "HSET latchkey:once:{x} aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:s1 \"1 " result                                           \
    " 9999999999000000\";EXPIRE latchkey:once:{x} 60;"

/* A record that lasts, as its slot was used a moment ago, and permits one of which was lent a moment ago. */
#define A_MOMENT_AGO "local t = redis.call('TIME') t = t[1] .. string.sub('00000' .. t[2], -6) "
#define RECENT                                                                                                         \
    "EVAL \"" A_MOMENT_AGO "redis.call('HSET', KEYS[1], 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:s1', '0 -5 ' .. t) "         \
    "redis.call('EXPIRE', KEYS[1], 90)\" 1 latchkey:once:{x};"
#define LENT                                                                                                           \
    "EVAL \"" A_MOMENT_AGO "redis.call('ZADD', KEYS[1], '-' .. t, 'token') "                                           \
    "redis.call('EXPIRE', KEYS[1], 86400)\" 1 latchkey:permits:{x};"

#define SLOT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:s1", "1" /* who asks, and the number of the request */
#define TAKER(n) "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:s1:1:" n

enum manner { TAKES, GIVES, LOOKS };

struct row {
    const struct lk__script *script;
    enum manner manner;
    const char *before;
    const char *keys[9];
    const char *args[14];
};

/* Flags of scripts of the mutex: of who asks, and who gives back. The last argument is the request's number. */
#define TELL "1"
#define FAIR_TELL "33"
#define FAIR_ROBUST_TELL "97"
#define ROBUST_TELL "65"
#define SHARED_TELL "129"
#define SHARED_ROBUST_TELL "193"
#define NO_FLAGS "0"
#define ROBUST "64"
#define UNREPAIRED "4"
#define ROBUST_UNREPAIRED "68"
#define ROBUST_UNTOLD "72"
#define WITH_JAVA "128"
#define SEM_SHARED "16" /* of the semaphore's */
#define TRIES "128"
#define TELLS_TOTAL "256"
#define SETS "512"
#define COMPARES "1024"

#define MUTEX_ASK(flags) "30000", flags, A, LATER_US, TERMS, "0", "1"
#define MUTEX_RELEASE(flags, keep) LOCK_CHANNEL, flags, A, keep, "1"
#define LATCH_COUNT(n) n, LATCH_CHANNEL, NO_FLAGS, SLOT, LATER_US, "1"
#define LATCH_SET(n, ttl, flags) n, ttl, LATCH_CHANNEL, flags, SLOT, LATER_US, "1"
#define LATCH_DELETE(flags) LATCH_CHANNEL, flags, SLOT, LATER_US, "1"
#define REPLACE "32" /* of the latch */
#define ARRIVE(wanted, flags) wanted, "30000", A, BARRIER_CHANNEL, flags, SLOT, LATER_US, "1"
#define ANONYMOUS "16"

/* Likewise of the read-write lock. */
#define RW_ROBUST "32"
#define RW_ROBUST_UNREPAIRED "36"
#define RW_ROBUST_UNTOLD "40"
#define RW_ROBUST_TELL "33"
#define RW_WRITERS_FIRST_TELL "257"
#define RW_PHASE_FAIR "512"
#define RW_PHASE_FAIR_TELL "513"

#define RW_ASK(mode, flags) "30000", flags, A mode, LATER_US, TERMS, "0", "1"
#define RW_RELEASE(mode, flags) flags, A mode, "1"

#define TAKE(n, initial, flags) initial, SEM_CHANNEL, flags, TAKER(n), LATER_US, TERMS, "0", "1"
#define GIVE(n, initial, flags) n, initial, "2147483647", SEM_CHANNEL, flags, SLOT, LATER_US, "1"
#define PERMIT(n, initial, flags) "30000", initial, flags, A ":" n, LATER_US, TERMS, "0", "1"

/* Of a condition with mutex x. */
#define COND_ROBUST "16"
#define COND_ALL "64"
#define MINE "-- x"
#define MINE_ROBUST "r- x"
#define WAIT(mine, flags, arrival) mine, A, "30000", "2", LOCK_CHANNEL, flags, D, LATER_US, TERMS, arrival, "1"
#define WAITING(mine, first, second) QUEUED("cond", first, second) "SET " COND_RECORD " \"" mine "\" PX 50000;"
#define MOVED(id, until) "ZADD latchkey:moved:cond:{x} " until " " id ";PEXPIRE latchkey:moved:cond:{x} 50000;"

static const struct row rows[] = {
    /* the mutex */
    { &lk__lua_lock_acquire, TAKES, "", { MUTEX }, { MUTEX_ASK(NO_FLAGS) } },
    { &lk__lua_lock_acquire,
      TAKES,
      "SET redisson_lock_token:{x} 4000000000000000 EX 80000;",
      { MUTEX },
      { MUTEX_ASK(NO_FLAGS) } },
    { &lk__lua_lock_acquire, TAKES, HELD(B), { MUTEX }, { MUTEX_ASK(NO_FLAGS) } },
    { &lk__lua_lock_acquire, TAKES, HELD(C) QUEUED("mutex", C, B), { MUTEX }, { MUTEX_ASK(NO_FLAGS) } },
    { &lk__lua_lock_acquire,
      TAKES,
      HELD(C) QUEUED("mutex", C, B) "ZADD latchkey:queue:mutex:{x} 4000000000000000 " B,
      { MUTEX },
      { MUTEX_ASK(NO_FLAGS) } },
    { &lk__lua_lock_release, GIVES, HELD(A), { MUTEX }, { MUTEX_RELEASE(NO_FLAGS, "0") } },
    { &lk__lua_lock_release, GIVES, HELD(A) QUEUED("mutex", B, C), { MUTEX }, { MUTEX_RELEASE(NO_FLAGS, "0") } },
    { &lk__lua_lock_release, GIVES, HELD(A) QUEUED("mutex", C, B), { MUTEX }, { MUTEX_RELEASE(NO_FLAGS, "0") } },
    { &lk__lua_lock_release, GIVES, HELD(A) QUEUED("mutex", A, B), { MUTEX }, { MUTEX_RELEASE(NO_FLAGS, "0") } },
    { &lk__lua_lock_acquire, TAKES, "", { MUTEX }, { MUTEX_ASK(TELL) } },
    { &lk__lua_lock_acquire, TAKES, "", { MUTEX }, { MUTEX_ASK(FAIR_ROBUST_TELL) } },
    { &lk__lua_lock_acquire, TAKES, "", { MUTEX }, { MUTEX_ASK(FAIR_TELL) } },
    { &lk__lua_lock_acquire, TAKES, "", { MUTEX }, { MUTEX_ASK(SHARED_TELL) } },
    { &lk__lua_lock_acquire, TAKES, "", { MUTEX }, { MUTEX_ASK(SHARED_ROBUST_TELL) } },
    { &lk__lua_lock_acquire, TAKES, JAVAS_TURN, { MUTEX }, { MUTEX_ASK(SHARED_TELL) } },
    { &lk__lua_lock_acquire, TAKES, HELD(B), { MUTEX }, { MUTEX_ASK(TELL) } },
    { &lk__lua_lock_acquire, TAKES, HELD(B) QUEUED("mutex", C, B), { MUTEX }, { MUTEX_ASK(FAIR_ROBUST_TELL) } },
    { &lk__lua_lock_acquire,
      TAKES,
      MARK("mutex", B " 7 0") QUEUED("mutex", C, B),
      { MUTEX },
      { MUTEX_ASK(FAIR_ROBUST_TELL) } },
    { &lk__lua_lock_acquire, TAKES, QUEUED("mutex", C, A), { MUTEX }, { MUTEX_ASK(FAIR_ROBUST_TELL) } },
    { &lk__lua_lock_acquire, GIVES, HELD(A), { MUTEX }, { MUTEX_ASK(ROBUST_TELL) } },
    { &lk__lua_lock_acquire,
      TAKES,
      "",
      { MUTEX, "latchkey:settings:mutex:{x}" },
      { MUTEX_ASK(TELL), "fair=no robust=no" } },
    { &lk__lua_lock_acquire,
      LOOKS,
      SETTINGS("mutex"),
      { MUTEX, "latchkey:settings:mutex:{x}" },
      { MUTEX_ASK(TELL), "fair=no robust=no" } },
    { &lk__lua_lock_acquire,
      TAKES,
      HELD(B) SETTINGS("mutex"),
      { MUTEX, "latchkey:settings:mutex:{x}" },
      { MUTEX_ASK(TELL), "fair=no robust=no", "1" } },
    { &lk__lua_lock_release, GIVES, HELD(A), { MUTEX }, { MUTEX_RELEASE(NO_FLAGS, "0") } },
    { &lk__lua_lock_release, GIVES, HELD(A), { MUTEX }, { MUTEX_RELEASE(NO_FLAGS, LATER_US) } },
    { &lk__lua_lock_release,
      GIVES,
      HELD(A) MARK("mutex", A " 7 0") QUEUED("mutex", C, B),
      { MUTEX },
      { MUTEX_RELEASE(ROBUST, "0") } },
    { &lk__lua_lock_release,
      GIVES,
      HELD(A) MARK("mutex", A " 7 1") QUEUED("mutex", C, B),
      { MUTEX },
      { MUTEX_RELEASE(ROBUST_UNREPAIRED, "0") } },
    { &lk__lua_lock_release,
      GIVES,
      HELD(A) MARK("mutex", A " 7 1") QUEUED("mutex", C, B),
      { MUTEX },
      { MUTEX_RELEASE(ROBUST_UNTOLD, "0") } },
    { &lk__lua_lock_release, GIVES, HELD(A) QUEUED("mutex", C, B), { MUTEX }, { MUTEX_RELEASE(WITH_JAVA, "0") } },
    { &lk__lua_lock_release, GIVES, HELD(B) QUEUED("mutex", A, B), { MUTEX }, { MUTEX_RELEASE(NO_FLAGS, "0") } },
    { &lk__lua_lock_release_mark,
      GIVES,
      HELD(A) MARK("mutex", A " 7 0"),
      { "latchkey:robust:mutex:{x}" },
      { NO_FLAGS, A, LATER_US, "1" } },
    { &lk__lua_lock_release_mark,
      GIVES,
      HELD(A) MARK("mutex", A " 7 1"),
      { "latchkey:robust:mutex:{x}" },
      { UNREPAIRED, A, LATER_US, "1" } },
    { &lk__lua_lock_release_mark,
      LOOKS,
      HELD(B) MARK("mutex", B " 7 1"),
      { "latchkey:robust:mutex:{x}" },
      { UNREPAIRED, A, LATER_US, "1" } },
    { &lk__lua_lock_release_hold, GIVES, HELD(A) QUEUED("mutex", C, B), { "x" }, { LOCK_CHANNEL, A, "0", "1" } },
    { &lk__lua_lock_release_hold, GIVES, HELD(A), { "x" }, { LOCK_CHANNEL, A, LATER_US, "1" } },
    { &lk__lua_lock_release_hold, LOOKS, HELD(B), { "x" }, { LOCK_CHANNEL, A, "0", "1" } },
    { &lk__lua_lock_force,
      GIVES,
      HELD(A) MARK("mutex", "unrecoverable") QUEUED("mutex", C, B),
      { MUTEX },
      { LOCK_CHANNEL, ROBUST, LATER_US, "1" } },
    { &lk__lua_redlock_fence,
      TAKES,
      HELD(A) "SET redisson_lock_token:{x} 7 PX 50000;",
      { "x", "redisson_lock_token:{x}" },
      { "4000000000000000", A, LATER_US, "1" } },
    { &lk__lua_lock_nest, GIVES, HELD(A), { "x" }, { "2", A, LATER_US, "30000", "1" } },
    { &lk__lua_lock_renew, GIVES, HELD(A), { "x" }, { LOCK_CHANNEL, A, LATER_US, "30000", "1" } },
    { &lk__lua_lock_renew_batch,
      GIVES,
      HELD(A) "HSET y " B " 1;PEXPIRE y 50000;",
      { "x", "y", "z" },
      { LATER_US, "1", LOCK_CHANNEL, A, "30000", LOCK_CHANNEL, B, "20000", LOCK_CHANNEL, C, "20000" } },
    { &lk__lua_lock_check, LOOKS, HELD(A), { "x" }, { A, "1" } },
    { &lk__lua_lock_info,
      LOOKS,
      HELD(A) QUEUED("mutex", C, B),
      { "x", "redisson_lock_token:{x}", "latchkey:queue:mutex:{x}", "latchkey:robust:mutex:{x}" },
      { "1" } },
    { &lk__lua_lock_queue_page,
      LOOKS,
      QUEUED("mutex", C, B),
      { "latchkey:queue:mutex:{x}" },
      { "0", "49", "1" } },

    /* the read-write lock */
    { &lk__lua_rwlock_acquire, TAKES, "", { RW }, { RW_ASK(":w", NO_FLAGS) } },
    { &lk__lua_rwlock_acquire, TAKES, "", { RW }, { RW_ASK(":r", NO_FLAGS) } },
    { &lk__lua_rwlock_acquire, TAKES, SHARED(B ":r"), { RW }, { RW_ASK(":r", NO_FLAGS) } },
    { &lk__lua_rwlock_acquire, TAKES, SHARED(B ":r"), { RW }, { RW_ASK(":w", NO_FLAGS) } },
    { &lk__lua_rwlock_acquire, TAKES, SHARED(B ":w"), { RW }, { RW_ASK(":r", NO_FLAGS) } },
    { &lk__lua_rwlock_acquire,
      TAKES,
      SHARED(B ":w") RW_QUEUED("writers", C ":w", "readers", B ":r"),
      { RW },
      { RW_ASK(":w", NO_FLAGS) } },
    { &lk__lua_rwlock_acquire,
      TAKES,
      SHARED(B ":r") RW_QUEUED("writers", C ":w", "readers", B ":r"),
      { RW },
      { RW_ASK(":r", NO_FLAGS) } },
    { &lk__lua_rwlock_release, GIVES, SHARED(A ":w"), { RW }, { RW_RELEASE(":w", NO_FLAGS) } },
    { &lk__lua_rwlock_release, GIVES, SHARED(A ":r"), { RW }, { RW_RELEASE(":w", NO_FLAGS) } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":w") RW_QUEUED("writers", B ":w", "writers", C ":w"),
      { RW },
      { RW_RELEASE(":w", NO_FLAGS) } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":w") RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_RELEASE(":w", NO_FLAGS) } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":r") SHARED(C ":r") RW_QUEUED("writers", B ":w", "writers", C ":w"),
      { RW },
      { RW_RELEASE(":r", NO_FLAGS) } },
    { &lk__lua_rwlock_acquire, TAKES, "", { RW }, { RW_ASK(":w", RW_ROBUST_TELL) } },
    { &lk__lua_rwlock_acquire, TAKES, "", { RW }, { RW_ASK(":r", TELL) } },
    { &lk__lua_rwlock_acquire, TAKES, SHARED(B ":r"), { RW }, { RW_ASK(":r", TELL) } },
    { &lk__lua_rwlock_acquire, TAKES, SHARED(B ":r"), { RW }, { RW_ASK(":w", RW_ROBUST_TELL) } },
    { &lk__lua_rwlock_acquire,
      TAKES,
      RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_ASK(":w", RW_ROBUST_TELL) } },
    { &lk__lua_rwlock_acquire,
      TAKES,
      RW_QUEUED("readers", C ":r", "readers", B ":r"),
      { RW },
      { RW_ASK(":r", RW_WRITERS_FIRST_TELL) } },
    { &lk__lua_rwlock_acquire, TAKES, SHARED(B ":r"), { RW }, { RW_ASK(":w", RW_WRITERS_FIRST_TELL) } },
    { &lk__lua_rwlock_acquire,
      TAKES,
      SHARED(B ":w") RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_ASK(":r", RW_PHASE_FAIR) } },
    { &lk__lua_rwlock_acquire,
      TAKES,
      SHARED(B ":r") RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_ASK(":r", RW_PHASE_FAIR) } },
    { &lk__lua_rwlock_acquire,
      TAKES,
      RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_ASK(":r", RW_PHASE_FAIR_TELL) } },
    { &lk__lua_rwlock_acquire, GIVES, SHARED(A ":w"), { RW }, { RW_ASK(":w", RW_ROBUST_TELL) } },
    { &lk__lua_rwlock_acquire,
      TAKES,
      SETTINGS("rw"),
      { RW, "latchkey:settings:rw:{x}" },
      { RW_ASK(":w", TELL), "prefer=fair robust=no", "1" } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":w") MARK("rw", A ":w 7 0") RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_RELEASE(":w", RW_ROBUST) } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":w") MARK("rw", A ":w 7 1") RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_RELEASE(":w", RW_ROBUST_UNREPAIRED) } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":w") MARK("rw", A ":w 7 1") RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_RELEASE(":w", RW_ROBUST_UNTOLD) } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":r") RW_QUEUED("readers", C ":r", "readers", B ":r"),
      { RW },
      { RW_RELEASE(":r", NO_FLAGS) } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":r") RW_QUEUED("readers", B ":r", "writers", C ":w") "HSET latchkey:alive:rw:{x} turn 0;",
      { RW },
      { RW_RELEASE(":r", RW_PHASE_FAIR) } },
    { &lk__lua_rwlock_release,
      GIVES,
      SHARED(A ":w") RW_QUEUED("writers", C ":w", "readers", B ":r"),
      { RW },
      { RW_RELEASE(":w", RW_PHASE_FAIR) } },
    { &lk__lua_rwlock_acquire,
      LOOKS,
      MARK("rw", "unrecoverable") RW_QUEUED("writers", A ":w", "writers", B ":w"),
      { RW },
      { RW_ASK(":w", RW_ROBUST) } },
    { &lk__lua_rwlock_downgrade,
      GIVES,
      SHARED(A ":w") MARK("rw", A ":w 7 0") RW_QUEUED("readers", C ":r", "readers", B ":r"),
      { RW },
      { RW_ROBUST, A ":w", LATER_US, "30000", "1" } },
    { &lk__lua_rwlock_release_mark,
      GIVES,
      SHARED(A ":w") MARK("rw", A ":w 7 1"),
      { "latchkey:robust:rw:{x}" },
      { UNREPAIRED, A ":w", LATER_US, "1" } },
    { &lk__lua_rwlock_release_hold,
      GIVES,
      SHARED(A ":r") SHARED(C ":r") RW_QUEUED("writers", B ":w", "writers", C ":w"),
      { "latchkey:rw:{x}" },
      { A ":w", "1" } },
    { &lk__lua_rwlock_release_hold, LOOKS, SHARED(B ":r"), { "latchkey:rw:{x}" }, { A ":w", "1" } },
    { &lk__lua_rwlock_force,
      GIVES,
      SHARED(A ":w") RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { RW },
      { RW_ROBUST, LATER_US, "1" } },
    { &lk__lua_rwlock_renew, GIVES, SHARED(A ":w"), { "latchkey:rw:{x}" }, { A ":w", LATER_US, "30000", "1" } },
    { &lk__lua_rwlock_renew_batch,
      GIVES,
      SHARED(A ":w"),
      { "latchkey:rw:{x}", "latchkey:rw:{y}" },
      { LATER_US, "1", A ":w", "30000", B ":r", "20000" } },
    { &lk__lua_rwlock_check, LOOKS, SHARED(A ":w"), { "latchkey:rw:{x}" }, { A ":w", "1" } },
    { &lk__lua_rwlock_queue_page,
      LOOKS,
      RW_QUEUED("writers", C ":w", "readers", B ":r"),
      { "latchkey:queue:readers:{x}", "latchkey:queue:writers:{x}" },
      { "0", "49", "1" } },
    { &lk__lua_rwlock_info, LOOKS, SHARED(A ":w") RW_QUEUED("writers", C ":w", "writers", B ":w"),
      { "latchkey:rw:{x}", "redisson_lock_token:{x}", "latchkey:queue:readers:{x}", "latchkey:queue:writers:{x}",
        "latchkey:robust:rw:{x}" }, { "1" } },

    /* the counting semaphore: 5 permits in all, wherever they are */
    { &lk__lua_semaphore_take, TAKES, "SET x 5", { SEM_TOTAL }, { TAKE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_take, TAKES, "", { SEM_TOTAL }, { TAKE("2", "5", TRIES) } },
    { &lk__lua_semaphore_take,
      TAKES,
      "SET x 5;" QUEUED("sem", C ":2", B ":2"),
      { SEM_TOTAL },
      { TAKE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_take,
      TAKES,
      "SET x 5;" QUEUED("sem", B ":2", TAKER("2")),
      { SEM_TOTAL },
      { TAKE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_take,
      TAKES,
      "SET x 3;ZADD latchkey:claims:{x} 5 " C ":2;EXPIRE latchkey:claims:{x} 600",
      { SEM_TOTAL },
      { TAKE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_take,
      GIVES,
      "SET x 3;ZADD latchkey:claims:{x} " LATER_MS " " TAKER("2") ";EXPIRE latchkey:claims:{x} 600",
      { SEM_TOTAL },
      { TAKE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_take,
      TAKES,
      "SET x 5;" SETTINGS("sem"),
      { SEM, "latchkey:settings:sem:{x}" },
      { TAKE("2", "0", NO_FLAGS), "leased=no", "1" } },
    { &lk__lua_semaphore_give, GIVES, "SET x 3", { SEM_TOTAL }, { GIVE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_give, GIVES, "", { SEM_TOTAL }, { GIVE("2", "3", NO_FLAGS) } },
    { &lk__lua_semaphore_give,
      GIVES,
      "SET x 1;ZADD latchkey:claims:{x} 5 " C ":2;EXPIRE latchkey:claims:{x} 600;" QUEUED("sem", C ":1", B ":2"),
      { SEM_TOTAL },
      { GIVE("2", "0", SEM_SHARED) } },
    { &lk__lua_semaphore_take, TAKES, "SET x 5;" RECENT, { SEM_TOTAL }, { TAKE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_take,
      TAKES,
      "SET x 0;ZADD latchkey:claims:{x} " LATER_MS " " C ":5;EXPIRE latchkey:claims:{x} 600;" RECENT,
      { SEM_TOTAL },
      { TAKE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_take,
      GIVES,
      "SET x 3;ZADD latchkey:claims:{x} " LATER_MS " " TAKER("2") ";EXPIRE latchkey:claims:{x} 600;" RECENT,
      { SEM_TOTAL },
      { "0", SEM_CHANNEL, NO_FLAGS, TAKER("2"), LATER_US, TERMS, "7", "1" } },
    { &lk__lua_semaphore_give, GIVES, "SET x 3;" RECENT, { SEM_TOTAL }, { GIVE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_give,
      GIVES,
      "SET x 0;ZADD latchkey:claims:{x} " LATER_MS " " C
      ":3;EXPIRE latchkey:claims:{x} 600;" RECENT QUEUED("sem", B ":2", C ":2"),
      { SEM_TOTAL },
      { GIVE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_give,
      GIVES,
      "SET x 0;ZADD latchkey:claims:{x} " LATER_MS " " C
      ":3;EXPIRE latchkey:claims:{x} 600;" RECENT QUEUED("sem", C ":2", B ":2"),
      { SEM_TOTAL },
      { GIVE("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_leave,
      GIVES,
      "SET x 3;ZADD latchkey:claims:{x} " LATER_MS
      " " TAKER("2") ";EXPIRE latchkey:claims:{x} 600;" QUEUED("sem", C ":1", B ":2"),
      { SEM_TOTAL },
      { SEM_CHANNEL, NO_FLAGS, TAKER("2"), "1" } },
    { &lk__lua_semaphore_leave,
      GIVES,
      "SET x 3;" RECORD("1") QUEUED("sem", C ":1", B ":2"),
      { SEM_TOTAL },
      { SEM_CHANNEL, NO_FLAGS, TAKER("2"), "1" } },
    { &lk__lua_semaphore_leave,
      GIVES,
      "SET x 0;" QUEUED("sem", TAKER("2"), B ":2"),
      { SEM_TOTAL },
      { SEM_CHANNEL, NO_FLAGS, TAKER("2"), "1" } },
    { &lk__lua_semaphore_drain,
      TAKES,
      "SET x 5",
      { "x", "latchkey:claims:{x}", "latchkey:once:{x}", "latchkey:total:sem:{x}" },
      { "0", SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_undrain,
      GIVES,
      "SET x 3;" RECORD("2") QUEUED("sem", C ":1", B ":2"),
      { SEM_TOTAL },
      { SEM_CHANNEL, NO_FLAGS, SLOT, "1" } },
    { &lk__lua_semaphore_undrain, GIVES, "SET x 5", { SEM_TOTAL }, { SEM_CHANNEL, NO_FLAGS, SLOT, "1" } },
    { &lk__lua_semaphore_change,
      GIVES,
      QUEUED("sem", C ":1", B ":2"),
      { SEM_TOTAL },
      { "5", "0", "1000", "0", SEM_CHANNEL, SETS, SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_change,
      GIVES,
      "SET x 3;SET latchkey:total:sem:{x} 5",
      { SEM_TOTAL },
      { "2", "0", "1000", "0", SEM_CHANNEL, NO_FLAGS, SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_take, /* the first waiter, of the same client, does not listen, and yet it is served */
      TAKES,
      "SET x 5;" QUEUED("sem", A_CLIENT ":s9:1:2", B ":2"),
      { SEM_TOTAL },
      { TAKE("2", "0", TELL) } },
    { &lk__lua_semaphore_take,
      TAKES,
      "SET x 5;SET latchkey:total:sem:{x} 5",
      { SEM_TOTAL },
      { TAKE("2", "7", TELLS_TOTAL) } },
    { &lk__lua_semaphore_change,
      GIVES,
      "SET x 3;SET latchkey:total:sem:{x} \"4 77\";" QUEUED("sem", C ":1", B ":2"),
      { SEM_TOTAL },
      { "6", "0", "1000", "4", SEM_CHANNEL, COMPARES, SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_change,
      GIVES,
      "",
      { SEM_TOTAL },
      { "5", "4", "1000", "4", SEM_CHANNEL, COMPARES, SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_delete,
      GIVES,
      "SET x 3;SET latchkey:total:sem:{x} 5;ZADD latchkey:claims:{x} " LATER_MS " " C
      ":2;EXPIRE latchkey:claims:{x} 600;" QUEUED("sem", C ":1", B ":2"),
      { SEM_TOTAL },
      { SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_begin,
      TAKES,
      "",
      { "x", "latchkey:claims:{x}", "latchkey:total:sem:{x}", "latchkey:users:sem:{x}" },
      { "5", A, LATER_US, "30000", "1" } },
    { &lk__lua_semaphore_begin,
      GIVES,
      "SET x 5 PX 50000;SET latchkey:total:sem:{x} 5 PX 50000;" USER("sem", B),
      { "x", "latchkey:claims:{x}", "latchkey:total:sem:{x}", "latchkey:users:sem:{x}" },
      { "5", A, LATER_US, "60000", "1" } },
    { &lk__lua_semaphore_keep,
      GIVES,
      "SET x 5 PX 50000;SET latchkey:total:sem:{x} 5 PX 50000;" USER("sem", A),
      { "x", "latchkey:claims:{x}", "latchkey:total:sem:{x}", "latchkey:users:sem:{x}" },
      { A, LATER_US, "60000", "1" } },
    { &lk__lua_semaphore_end,
      GIVES,
      "SET x 5 PX 50000;SET latchkey:total:sem:{x} 5 PX 50000;" USER("sem", A) QUEUED("sem", C ":1", B ":2"),
      { SEM_TOTAL, "latchkey:users:sem:{x}" },
      { A, "1" } },
    { &lk__lua_semaphore_count,
      LOOKS,
      "SET x 5",
      { "x", "latchkey:claims:{x}", "latchkey:queue:sem:{x}", "latchkey:total:sem:{x}" },
      { "0", "1" } },

    /* the leased semaphore */
    { &lk__lua_semaphore_permit_take, TAKES, "SET latchkey:total:{x} 5", { PERMITS }, { PERMIT("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_permit_take, TAKES, "", { PERMITS }, { PERMIT("2", "5", TRIES) } },
    { &lk__lua_semaphore_permit_take,
      TAKES,
      "SET latchkey:total:{x} 1;" QUEUED("permits", C ":2", B ":2"),
      { PERMITS },
      { PERMIT("1", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_permit_take,
      TAKES,
      "SET latchkey:total:{x} 5;" QUEUED("permits", A_CLIENT ":9:1:2", B ":2"),
      { PERMITS },
      { PERMIT("2", "0", TELL) } },
    { &lk__lua_semaphore_permit_take,
      TAKES,
      "SET latchkey:total:{x} 5;" QUEUED("permits", C ":2", B ":2"),
      { PERMITS },
      { PERMIT("2", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_permit_take,
      TAKES,
      "SET latchkey:total:{x} 5;" SETTINGS("sem"),
      { PERMITS, "latchkey:settings:sem:{x}" },
      { PERMIT("2", "0", NO_FLAGS), "leased=yes", "1" } },
    { &lk__lua_semaphore_permit_release,
      GIVES,
      "SET latchkey:total:{x} 2;ZADD latchkey:permits:{x} " LATER_MS " " A ":2 " LATER_MS " " A
      ":2/2;EXPIRE latchkey:permits:{x} 600;" QUEUED("permits", C ":2", B ":2"),
      { PERMITS },
      { "0", NO_FLAGS, A ":2", "1" } },
    { &lk__lua_semaphore_permit_take,
      TAKES,
      "SET latchkey:total:{x} 5;" LENT,
      { PERMITS },
      { PERMIT("1", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_permit_take,
      TAKES,
      "SET latchkey:total:{x} 1;" LENT "ZADD latchkey:permits:{x} " LATER_MS " " B ":1",
      { PERMITS },
      { PERMIT("1", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_permit_take,
      TAKES,
      "SET latchkey:total:{x} 1;" LENT "ZADD latchkey:permits:{x} " LATER_MS " " B
      ":1;" QUEUED("permits", C ":1", B ":2"),
      { PERMITS },
      { PERMIT("1", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_permit_release,
      GIVES,
      "SET latchkey:total:{x} 1;" LENT "ZADD latchkey:permits:{x} " LATER_MS " " A ":1",
      { PERMITS },
      { "0", NO_FLAGS, A ":1", "1" } },
    { &lk__lua_semaphore_permit_release,
      GIVES,
      "SET latchkey:total:{x} 1;" LENT "ZADD latchkey:permits:{x} " LATER_MS " " A
      ":1;" QUEUED("permits", B ":1", C ":1"),
      { PERMITS },
      { "0", NO_FLAGS, A ":1", "1" } },
    { &lk__lua_semaphore_permit_release,
      GIVES,
      "SET latchkey:total:{x} 1;" LENT "ZADD latchkey:permits:{x} " LATER_MS " " A
      ":1;" QUEUED("permits", C ":1", B ":1"),
      { PERMITS },
      { "0", NO_FLAGS, A ":1", "1" } },
    { &lk__lua_semaphore_permit_release,
      GIVES,
      "SET latchkey:total:{x} 2;" LENT "ZADD latchkey:permits:{x} " LATER_MS " " A
      ":1;" QUEUED("permits", B ":3", B ":1"),
      { PERMITS },
      { "0", NO_FLAGS, A ":1", "1" } },
    { &lk__lua_semaphore_permit_take,
      GIVES, /* more than there are in all, and others waited behind */
      "SET latchkey:total:{x} 2;" LENT QUEUED("permits", A ":3", B ":1"),
      { PERMITS },
      { PERMIT("3", "0", NO_FLAGS) } },
    { &lk__lua_semaphore_permit_release_hold,
      GIVES,
      "SET latchkey:total:{x} 2;ZADD latchkey:permits:{x} " LATER_MS " " A ":2 " LATER_MS " " A
      ":2/2;EXPIRE latchkey:permits:{x} 600;" QUEUED("permits", C ":2", B ":2"),
      { "latchkey:permits:{x}" },
      { "0", A ":2", "1" } },
    { &lk__lua_semaphore_permit_renew,
      GIVES,
      "ZADD latchkey:permits:{x} " LATER_MS " " A ":2 " LATER_MS " " A ":2/2;EXPIRE latchkey:permits:{x} 600",
      { "latchkey:permits:{x}" },
      { A ":2", LATER_US, "30000", "2", "1" } },
    { &lk__lua_semaphore_permit_renew_batch,
      GIVES,
      "ZADD latchkey:permits:{x} " LATER_MS " " A ":2 " LATER_MS " " A ":2/2;EXPIRE latchkey:permits:{x} 600",
      { "latchkey:permits:{x}", "latchkey:permits:{y}" },
      { LATER_US, "1", A ":2", "30000", "2", B ":1", "20000", "1" } },
    { &lk__lua_semaphore_permit_total,
      GIVES,
      "SET latchkey:total:{x} 2;" QUEUED("permits", C ":2", B ":2"),
      { PERMITS, "latchkey:once:{x}" },
      { "2", "0", "1000", "0", NO_FLAGS, SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_permit_total,
      GIVES,
      "",
      { PERMITS, "latchkey:once:{x}" },
      { "2", "0", "1000", "0", SETS, SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_permit_total,
      GIVES,
      "SET latchkey:total:{x} 2;" QUEUED("permits", C ":2", B ":2"),
      { PERMITS, "latchkey:once:{x}" },
      { "4", "0", "1000", "2", COMPARES, SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_permit_delete,
      GIVES,
      "SET latchkey:total:{x} 2;ZADD latchkey:permits:{x} " LATER_MS " " A
      ":1;EXPIRE latchkey:permits:{x} 600;" QUEUED("permits", C ":2", B ":2"),
      { PERMITS, "latchkey:once:{x}" },
      { SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_permit_delete,
      GIVES,
      "SET latchkey:total:{x} 2",
      { PERMITS, "latchkey:once:{x}" },
      { SLOT, LATER_US, "1" } },
    { &lk__lua_semaphore_permit_begin,
      TAKES,
      "",
      { "latchkey:total:{x}", "latchkey:users:permits:{x}" },
      { "5", A, LATER_US, "30000", "1" } },
    { &lk__lua_semaphore_permit_keep,
      GIVES,
      "SET latchkey:total:{x} 5 PX 50000;" USER("permits", A),
      { "latchkey:total:{x}", "latchkey:users:permits:{x}" },
      { A, LATER_US, "60000", "1" } },
    { &lk__lua_semaphore_permit_end,
      GIVES,
      "SET latchkey:total:{x} 5 PX 50000;" USER("permits", A) QUEUED("permits", C ":1", B ":2"),
      { PERMITS, "latchkey:once:{x}", "latchkey:users:permits:{x}" },
      { A, "1" } },
    { &lk__lua_semaphore_permit_count,
      LOOKS,
      "SET latchkey:total:{x} 2",
      { "latchkey:permits:{x}", "latchkey:total:{x}", "latchkey:queue:permits:{x}" },
      { "0", "1" } },
    { &lk__lua_semaphore_queue_page,
      LOOKS,
      QUEUED("permits", C ":1", B ":2"),
      { "latchkey:queue:permits:{x}" },
      { "0", "49", "1" } },
    { &lk__lua_semaphore_permit_check,
      LOOKS,
      "ZADD latchkey:permits:{x} " LATER_MS " " A ":1;EXPIRE latchkey:permits:{x} 600",
      { "latchkey:permits:{x}" },
      { A ":1", "1" } },

    { &lk__lua_semaphore_permit_extend,
      GIVES,
      "ZADD latchkey:permits:{x} " LATER_MS " 0123456789abcdef0123456789abcdef;EXPIRE latchkey:permits:{x} 600",
      { "latchkey:permits:{x}" },
      { "30000", "0123456789abcdef0123456789abcdef", LATER_US, "1" } },

    /* the latch */
    { &lk__lua_latch_set, TAKES, "", { LATCH }, { LATCH_SET("3", "0", NO_FLAGS) } },
    { &lk__lua_latch_set,
      TAKES,
      "SET latchkey:opened:{x} \"opened 7\" EX 600",
      { LATCH },
      { LATCH_SET("3", "5000", NO_FLAGS) } },
    { &lk__lua_latch_set, TAKES, "SET x 3", { LATCH }, { LATCH_SET("5", "0", REPLACE) } },
    { &lk__lua_latch_set,
      TAKES,
      "SET latchkey:opened:{x} \"opened 7 set\" EX 600;SET x 3",
      { LATCH },
      { LATCH_SET("5", "5000", REPLACE) } },
    { &lk__lua_latch_countdown, GIVES, "SET x 3", { LATCH }, { LATCH_COUNT("1") } },
    { &lk__lua_latch_countdown, GIVES, "SET x 1", { LATCH }, { LATCH_COUNT("1") } },
    { &lk__lua_latch_countdown,
      GIVES,
      "SET x 1;SET latchkey:opened:{x} \"opened 7 set\" EX 600",
      { LATCH },
      { LATCH_COUNT("1") } },
    { &lk__lua_latch_set, GIVES, "SET x 5", { LATCH }, { LATCH_SET("3", "0", NO_FLAGS) } },
    { &lk__lua_latch_countdown, GIVES, "", { LATCH }, { LATCH_COUNT("1") } },
    { &lk__lua_latch_delete, GIVES, "", { LATCH }, { LATCH_DELETE(NO_FLAGS) } },
    { &lk__lua_latch_delete, GIVES, "SET x 3", { LATCH }, { LATCH_DELETE(NO_FLAGS) } },
    { &lk__lua_latch_delete,
      GIVES,
      "SET latchkey:opened:{x} \"opened 7\" EX 600",
      { LATCH },
      { LATCH_DELETE(NO_FLAGS) } },
    { &lk__lua_latch_set,
      TAKES,
      "SET latchkey:opened:{x} \"\" PX 50000",
      { LATCH },
      { LATCH_SET("3", "0", ANONYMOUS) } },
    { &lk__lua_latch_countdown,
      GIVES,
      "SET latchkey:opened:{x} \"\" PX 50000;SET x 1 PX 50000",
      { LATCH },
      { "1", LATCH_CHANNEL, ANONYMOUS, SLOT, LATER_US, "1" } },
    { &lk__lua_latch_delete,
      GIVES,
      "SET latchkey:opened:{x} \"\" PX 50000;SET x 3 PX 50000",
      { LATCH },
      { LATCH_DELETE(ANONYMOUS) } },
    { &lk__lua_latch_begin, TAKES, "", { LATCH_USED }, { A, LATER_US, "30000", "1" } },
    { &lk__lua_latch_begin,
      GIVES,
      "SET x 3 PX 50000;SET latchkey:opened:{x} \"opened 7 set\" PX 50000;" USER("latch", B),
      { LATCH_USED },
      { A, LATER_US, "60000", "1" } },
    { &lk__lua_latch_keep,
      GIVES,
      "SET x 3 PX 50000;SET latchkey:opened:{x} \"opened 7 set\" PX 50000;" USER("latch", A),
      { LATCH_USED },
      { A, LATER_US, "60000", "1" } },
    { &lk__lua_latch_end,
      GIVES,
      "SET x 3 PX 50000;SET latchkey:opened:{x} \"opened 7 set\" PX 50000;" USER("latch", A),
      { LATCH, "latchkey:users:latch:{x}" },
      { A, "1" } },
    /* the condition variable */
    { &lk__lua_cond_wait, TAKES, HELD(A), { COND }, { WAIT(MINE, NO_FLAGS, "0") } },
    { &lk__lua_cond_wait, TAKES, HELD(A) QUEUED("mutex", C, B), { COND }, { WAIT(MINE, NO_FLAGS, "0") } },
    { &lk__lua_cond_wait,
      TAKES,
      HELD(A) MARK("mutex", A " 7 0") QUEUED("mutex", C, B),
      { COND },
      { WAIT(MINE_ROBUST, COND_ROBUST, "0") } },
    { &lk__lua_cond_wait, LOOKS, HELD(A) WAITING("-- y", B, C), { COND }, { WAIT(MINE, NO_FLAGS, "0") } },
    { &lk__lua_cond_wait, TAKES, HELD(A) WAITING(MINE, B, C), { COND }, { WAIT(MINE, NO_FLAGS, "0") } },
    { &lk__lua_cond_wait, TAKES, WAITING(MINE, D, B), { COND }, { WAIT(MINE, NO_FLAGS, "1") } },
    { &lk__lua_cond_wait, TAKES, WAITING(MINE, B, D) MOVED(C, "5"), { COND }, { WAIT(MINE, NO_FLAGS, "2") } },
    { &lk__lua_cond_wait, TAKES, WAITING(MINE, D, B) MOVED(C, "5"), { COND }, { WAIT(MINE, NO_FLAGS, "1") } },
    { &lk__lua_cond_wait,
      TAKES,
      QUEUED("mutex", D, B) WAITING(MINE, C, C) MOVED(D, LATER_MS),
      { COND },
      { WAIT(MINE, NO_FLAGS, "1") } },
    { &lk__lua_cond_wait,
      TAKES,
      HELD(C) QUEUED("mutex", B, D) MOVED(D, LATER_MS),
      { COND },
      { WAIT(MINE, NO_FLAGS, "1") } },
    { &lk__lua_cond_wait, TAKES, "", { COND }, { WAIT(MINE_ROBUST, COND_ROBUST, "1") } },
    { &lk__lua_cond_wait, GIVES, HELD(D) MOVED(D, LATER_MS), { COND }, { WAIT(MINE, NO_FLAGS, "1") } },
    { &lk__lua_cond_signal, LOOKS, "", { COND }, { MINE, NO_FLAGS, "1" } },
    { &lk__lua_cond_signal, LOOKS, WAITING("-- y", B, C), { COND }, { MINE, NO_FLAGS, "1" } },
    { &lk__lua_cond_signal, GIVES, HELD(A) WAITING(MINE, B, C), { COND }, { MINE, NO_FLAGS, "1" } },
    { &lk__lua_cond_signal, GIVES, HELD(A) WAITING(MINE, B, C), { COND }, { MINE, COND_ALL, "1" } },
    { &lk__lua_cond_signal, GIVES, WAITING(MINE, C, B), { COND }, { MINE, COND_ALL, "1" } },
    { &lk__lua_cond_signal,
      GIVES,
      WAITING(MINE_ROBUST, B, C) QUEUED("mutex", C, A),
      { COND },
      { MINE_ROBUST, COND_ROBUST, "1" } },
    { &lk__lua_cond_leave, GIVES, WAITING(MINE, D, B), { COND }, { MINE, LOCK_CHANNEL, NO_FLAGS, D, "1" } },
    { &lk__lua_cond_leave,
      GIVES,
      HELD(D) MARK("mutex", D " 7 0") WAITING(MINE_ROBUST, B, C) MOVED(D, LATER_MS),
      { COND },
      { MINE_ROBUST, LOCK_CHANNEL, COND_ROBUST, D, "1" } },
    { &lk__lua_cond_leave,
      GIVES,
      HELD(A) QUEUED("mutex", D, B) WAITING(MINE, C, C) MOVED(D, LATER_MS),
      { COND },
      { MINE, LOCK_CHANNEL, NO_FLAGS, D, "1" } },
    { &lk__lua_cond_info,
      LOOKS,
      WAITING(MINE, B, C),
      { COND_RECORD, "latchkey:queue:cond:{x}", "latchkey:moved:cond:{x}" },
      { "1" } },

    { &lk__lua_latch_look, LOOKS, "SET x 3", { "x", "latchkey:opened:{x}" }, { "1" } },

    /* what is done once */
    { &lk__lua_once_begin, TAKES, "", { ONCE, "redisson_lock_token:{x}" }, { "30000", A, LATER_US, "1" } },
    { &lk__lua_once_begin, GIVES, RUNS(A), { ONCE, "redisson_lock_token:{x}" }, { "30000", A, LATER_US, "1" } },
    { &lk__lua_once_begin, LOOKS, RUNS(B), { ONCE, "redisson_lock_token:{x}" }, { "30000", A, LATER_US, "1" } },
    { &lk__lua_once_begin, LOOKS, RAN(B), { ONCE, "redisson_lock_token:{x}" }, { "30000", A, LATER_US, "1" } },
    { &lk__lua_once_end, GIVES, RUNS(A), { ONCE }, { "good", ONCE_CHANNEL, A, "1" } },
    { &lk__lua_once_end, GIVES, RUNS(A) RAN(A), { ONCE }, { "good", ONCE_CHANNEL, A, "1" } },
    { &lk__lua_once_end, LOOKS, RUNS(B), { ONCE }, { "good", ONCE_CHANNEL, A, "1" } },
    { &lk__lua_once_fail, GIVES, RUNS(A), { "latchkey:run:{x}" }, { ONCE_CHANNEL, A, "1" } },
    { &lk__lua_once_renew, GIVES, RUNS(A), { "latchkey:run:{x}" }, { A, LATER_US, "30000", "1" } },
    { &lk__lua_once_renew_batch,
      GIVES,
      RUNS(A),
      { "latchkey:run:{x}", "latchkey:run:{y}" },
      { LATER_US, "1", A, "30000", B, "20000" } },
    { &lk__lua_once_check, LOOKS, RUNS(A), { "latchkey:run:{x}" }, { A, "1" } },
    { &lk__lua_once_look, LOOKS, RUNS(A), { ONCE }, { "1" } },
    { &lk__lua_once_info, LOOKS, RUNS(A), { ONCE }, { "1" } },
    { &lk__lua_client_describe, TAKES, "", { "latchkey:who:x" }, { "{}", "50000", "0", "1" } },
    { &lk__lua_client_describe, GIVES, "SET latchkey:who:x {} PX 50000", { "latchkey:who:x" }, { "", "0", "16", "1" } },
    { &lk__lua_client_who, LOOKS, "SET latchkey:who:x {} PX 50000", { "latchkey:who:x" }, { "4000", "1" } },
    { &lk__lua_inspect_holders, LOOKS, HELD(A), { HOLDERS }, { "0", "50", "16", "1" } },
    { &lk__lua_inspect_holders, LOOKS, RUNS(A), { HOLDERS }, { "0", "50", "32", "1" } },
    { &lk__lua_inspect_holders, LOOKS, SHARED(B ":r"), { HOLDERS }, { "0", "50", "0", "1" } },
    { &lk__lua_once_info, LOOKS, RAN(A), { ONCE }, { "1" } },
    { &lk__lua_once_result, LOOKS, RAN(A), { "latchkey:done:{x}" }, { "1" } },
    { &lk__lua_once_reset, GIVES, RAN(A), { "latchkey:done:{x}" }, { LATER_US, "1" } },

    /* the barrier */
    { &lk__lua_barrier_arrive, GIVES, "", { BARRIER }, { ARRIVE("2", NO_FLAGS) } },
    { &lk__lua_barrier_arrive, GIVES, ROUND(""), { BARRIER }, { ARRIVE("2", NO_FLAGS) } },
    { &lk__lua_barrier_arrive, GIVES, ROUND(""), { BARRIER }, { ARRIVE("3", NO_FLAGS) } },
    { &lk__lua_barrier_arrive, GIVES, ROUND(""), { BARRIER }, { ARRIVE("2", "16") } },
    { &lk__lua_barrier_arrive, GIVES, ROUND("") WAITS(B, LATER_MS), { BARRIER }, { ARRIVE("2", NO_FLAGS) } },
    { &lk__lua_barrier_arrive, GIVES, ROUND("") WAITS(B, "1"), { BARRIER }, { ARRIVE("2", NO_FLAGS) } },
    { &lk__lua_barrier_arrive, GIVES, ROUND("") WAITS(B, LATER_MS), { BARRIER }, { ARRIVE("3", NO_FLAGS) } },
    { &lk__lua_barrier_arrive, GIVES, ROUND("left b"), { BARRIER }, { ARRIVE("2", NO_FLAGS) } },
    { &lk__lua_barrier_leave, GIVES, ROUND("") WAITS(A, LATER_MS), { MEETING }, { BARRIER_CHANNEL, A, "0", "1" } },
    { &lk__lua_barrier_leave, GIVES, ROUND("") WAITS(B, LATER_MS), { MEETING }, { BARRIER_CHANNEL, A, "7", "1" } },
    { &lk__lua_barrier_leave, LOOKS, ROUND("") WAITS(B, LATER_MS), { MEETING }, { BARRIER_CHANNEL, A, "6", "1" } },
    { &lk__lua_barrier_renew, GIVES, WAITS(A, LATER_MS), { "latchkey:parties:{x}" }, { A, LATER_US, "30000", "1" } },
    { &lk__lua_barrier_renew_batch,
      GIVES,
      WAITS(A, LATER_MS),
      { "latchkey:parties:{x}", "latchkey:parties:{y}" },
      { LATER_US, "1", A, "30000", B, "20000" } },
    { &lk__lua_barrier_look, GIVES, ROUND("") WAITS(A, LATER_MS), { MEETING }, { BARRIER_CHANNEL, "1" } },
    { &lk__lua_barrier_look, GIVES, ROUND("") WAITS(A, "1"), { MEETING }, { BARRIER_CHANNEL, "1" } },
    { &lk__lua_barrier_reset,
      GIVES,
      ROUND("") WAITS(B, LATER_MS),
      { BARRIER },
      { BARRIER_CHANNEL, SLOT, LATER_US, "1" } },
    { &lk__lua_barrier_reset, GIVES, "", { BARRIER }, { BARRIER_CHANNEL, SLOT, LATER_US, "1" } },
    { &lk__lua_barrier_info, LOOKS, ROUND("") WAITS(B, LATER_MS), { MEETING, "latchkey:past:{x}" }, { "1" } },
};

enum { ROWS = sizeof rows / sizeof *rows, FAULTS_MAX = 60 };

/*
 * Put in front of a script: its k-th command fails, or each one of that name. A pcall gets the error as it
 * would from the server.
 */
static const char shim[] = "local server, count = redis, 0\n"
                           "local function fails(name)\n"
                           "count = count + 1\n"
                           "return count == %d or name == '%s'\n"
                           "end\n"
                           "local redis = setmetatable({ call = function(...)\n"
                           "if fails((...)) then error({ err = 'ERR planted' }, 0) end\n"
                           "return server.call(...)\n"
                           "end, pcall = function(...)\n"
                           "if fails((...)) then return { err = 'ERR planted' } end\n"
                           "return server.pcall(...)\n"
                           "end }, { __index = server })\n";

static char where[256]; /* which row and fault, for words */

static int complaints;

/* Said, counted, and the next state is looked at. */
static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (complaints++ < 20)
        vprint_error(format, args);
    print_error("\n");
    va_end(args);
}

static redisReply *run_argv(struct world *w, int argc, const char **argv)
{
    redisReply *reply = redisCommandArgv(w->redis, argc, argv, NULL);
    assert_non_null(reply);
    return reply;
}

/* True: the script ended without an error. */
static bool run_script(struct world *w, const struct row *row, int k, const char *name)
{
    const char *argv[24];
    int argc = 0, keys = 0;
    char count[8], *source = text_of_script(row->script), *text = calloc(1, sizeof shim + strlen(source) + 64);
    sprintf(text, shim, k, name);
    strcat(text, source);
    free(source);
    argv[argc++] = "EVAL";
    argv[argc++] = text;
    argv[argc++] = count;
    while (keys < 9 && row->keys[keys] != NULL)
        argv[argc++] = row->keys[keys++];
    assert_true(row->script->keys == 0 || keys == row->script->keys ||
                (keys == row->script->keys + 1 && row->script->takes_settings));
    snprintf(count, sizeof count, "%d", keys);
    for (int i = 0; i < 14 && row->args[i] != NULL; i++)
        argv[argc++] = row->args[i];
    redisReply *reply = run_argv(w, argc, argv);
    bool good = reply->type != REDIS_REPLY_ERROR;
    if (!good && strstr(reply->str, "planted") == NULL && strncmp(reply->str, "OOM", 3) != 0)
        fail_msg("%s: %s", where, reply->str);
    freeReplyObject(reply);
    free(text);
    return good;
}

static void set_up(struct world *w, const struct row *row)
{
    char commands[2048], *save;
    world_redis(w, "FLUSHALL");
    snprintf(commands, sizeof commands, "%s", row->before);
    for (char *line = strtok_r(commands, ";", &save); line != NULL; line = strtok_r(NULL, ";", &save)) {
        const char *argv[16];
        int argc = 0;
        for (char *at = line; *at != '\0';) {
            bool quoted = *at == '"';
            argv[argc++] = at += quoted;
            at += strcspn(at, quoted ? "\"" : " ");
            if (*at != '\0')
                *at++ = '\0';
            at += strspn(at, " ");
        }
        redisReply *reply = run_argv(w, argc, argv);
        if (reply->type == REDIS_REPLY_ERROR)
            fail_msg("%s: %s: %s", where, line, reply->str);
        freeReplyObject(reply);
    }
}

/* --- what may be left ------------------------------------------------------------------------------------------ */

/* The flags that a script is called with. */
static long flags_of(const struct row *row)
{
    for (int i = 0; i < row->script->arg_count && row->args[i + 1] != NULL; i++)
        if (row->script->args[i].kind == LK__ARG_FLAGS)
            return strtol(row->args[i], NULL, 10);
    return 0;
}

static bool is_cond(const struct row *row)
{
    return strncmp(row->script->name, "cond/", 5) == 0;
}

/* Of a mutex or a read-write lock. */
static bool is_robust(const struct row *row)
{
    bool rwlock = strncmp(row->script->name, "rwlock/", 7) == 0;
    return (flags_of(row) & (rwlock ? LK__RWLOCK_ROBUST : is_cond(row) ? LK__COND_ROBUST : LK__LOCK_ROBUST)) != 0;
}

/* Keys that live on are those that docs/keys.md gives no time to live. */
static bool may_last(const struct row *row, const char *key)
{
    bool number = strncmp(row->script->name, "semaphore/", 10) == 0 || strncmp(row->script->name, "latch/", 6) == 0;
    bool shared = strncmp(row->script->name, "lock/", 5) == 0 && (flags_of(row) & LK__LOCK_SHARED) != 0;
    return (number && strcmp(key, "x") == 0) || strcmp(key, "latchkey:total:{x}") == 0 ||
           strcmp(key, "latchkey:total:sem:{x}") == 0 || strcmp(key, "latchkey:done:{x}") == 0 ||
           strncmp(key, "latchkey:robust:", 16) == 0 || (shared && strncmp(key, "redisson_lock_token", 19) == 0);
}

static void each_key_has_an_end(struct world *w, const struct row *row)
{
    char keys[1024], *save;
    snprintf(keys, sizeof keys, "%s", world_keys(w));
    for (char *key = strtok_r(keys, " ", &save); key != NULL; key = strtok_r(NULL, " ", &save))
        if (!may_last(row, key) && world_int(w, "PTTL %s", key) == -1)
            complain("%s: %s has no end", where, key);
}

/* One owner at most; a new one has the mark that names it, and a token above all before. */
static void a_mutex_has_one_owner(struct world *w, const struct row *row)
{
    char owner[96], held[96];
    if (strncmp(row->script->name, "lock/", 5) != 0 && !is_cond(row))
        return;
    if (world_int(w, "HLEN x") > 1)
        complain("%s: two owners: %s", where, world_owner(w, "x"));
    snprintf(owner, sizeof owner, "%s", world_owner(w, "x"));
    snprintf(held, sizeof held, "HSET x %s", owner);
    if (owner[0] == '\0' || strstr(row->before, held) != NULL)
        return;
    if (world_int(w, "GET redisson_lock_token:{x}") <= 7)
        complain("%s: %s is owner without a token of its own", where, owner);
    if (is_robust(row) && strncmp(world_str(w, "GET latchkey:robust:mutex:{x}"), owner, strlen(owner)) != 0)
        complain("%s: %s is owner without a mark", where, owner);
}

/* Readers or one writer, but for one that is becoming a reader; and a writer has its mark. */
static void a_rwlock_has_readers_or_a_writer(struct world *w, const struct row *row)
{
    if (strncmp(row->script->name, "rwlock/", 7) != 0)
        return;
    int64_t bad =
        world_int(w, "EVAL %s 1 latchkey:rw:{x}",
                  "local writers, others = {}, 0 for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                  "if string.sub(id, -1) == 'w' then table.insert(writers, string.sub(id, 1, -2)) end end "
                  "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                  "if writers[1] and string.sub(id, 1, -2) ~= writers[1] then others = others + 1 end end "
                  "return others + math.max(#writers - 1, 0)");
    if (bad != 0)
        complain("%s: a writer is not alone", where);
    if (is_robust(row) && row->manner == TAKES && world_int(w, "ZCOUNT latchkey:rw:{x} 0 inf") == 1 &&
        world_int(w, "ZSCORE latchkey:rw:{x} %s", A ":w") > 0 && !world_exists(w, "latchkey:robust:rw:{x}"))
        complain("%s: a writer without a mark", where);
}

/* Free permits, claims and what the record says that A has: 5 in all; what A was about to give may be there yet. */
static int64_t permits_in_all(struct world *w)
{
    return world_int(w, "EVAL %s 3 x latchkey:claims:{x} latchkey:once:{x}",
                     "local n = tonumber(redis.call('GET', KEYS[1]) or '0') "
                     "for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do "
                     "n = n + tonumber(string.match(id, '(%d+)$')) end "
                     "local result = string.match(redis.call('HVALS', KEYS[3])[1] or '', '^%d+ (%S+)') "
                     "return n * 1000 + tonumber(result or 99) + 100");
}

/*
 * What the record says is a result only of its own script: a take has 2 more by "1", a drain what it says.
 * Nothing is recorded: nothing was done, or it may be done again.
 */
static void no_permit_is_lost_or_made_up(struct world *w, const struct row *row)
{
    const char *name = row->script->name;
    bool anonymous = strstr(row->before, "users") != NULL || strstr(name, "begin") != NULL;
    if (strncmp(name, "semaphore/", 10) != 0 || strstr(name, "permit_") != NULL || row->manner == LOOKS || anonymous)
        return;
    int64_t sum = permits_in_all(w) / 1000, result = permits_in_all(w) % 1000 - 100;
    bool recorded = result != 99 && result != -5; /* -5: undone */
    int64_t expected = 5, given = strstr(name, "give") != NULL ? 2 : 0;
    if (strstr(name, "take") != NULL && recorded && result == 1)
        sum += 2;
    else if (strstr(name, "drain") != NULL && recorded)
        sum += result;
    else if (strstr(name, "leave") != NULL && strstr(row->before, "latchkey:once") != NULL && result == 1)
        sum += 2; /* A has them yet */
    else if (strstr(name, "leave") != NULL && strstr(row->before, "SET x 0") != NULL)
        expected = 0;
    else if (strstr(name, "change") != NULL && !recorded)
        expected = 3;
    else if (strstr(name, "delete") != NULL && world_exists(w, "x") == world_exists(w, "latchkey:claims:{x}"))
        return; /* both, or neither */
    else if (given != 0 && !recorded)
        expected = 3;
    bool unset = !world_exists(w, "x") && (strstr(row->before, "SET x") == NULL);
    if (sum != expected && !unset)
        complain("%s: %d permits, not %d (result %d)", where, (int)sum, (int)expected, (int)result);
}

/* Each part of a leased permit is a member; there are never more than there may be. */
static void no_more_is_lent_than_there_is(struct world *w)
{
    if (world_exists(w, "latchkey:total:{x}") &&
        world_int(w, "ZCOUNT latchkey:permits:{x} 0 inf") > world_int(w, "GET latchkey:total:{x}"))
        complain("%s: more is lent than there is", where);
}

/* The count goes down by what is recorded, and there is a mark of an end only when it ended. */
static void a_latch_is_open_or_not(struct world *w, const struct row *row)
{
    if (strncmp(row->script->name, "latch/", 6) != 0 || row->manner == LOOKS ||
        row->script == &lk__lua_latch_end) /* takes both along */
        return;
    bool counted = world_exists(w, "x"), recorded = world_exists(w, "latchkey:once:{x}");
    const char *mark = world_str(w, "GET latchkey:opened:{x}");
    bool ended = mark[0] != '\0' && strstr(mark, "set") == NULL && strncmp(mark, "opened 7", 8) != 0;
    if (counted && ended)
        complain("%s: it has a count, and a mark says that it ended: %s", where, mark);
    if (!counted && !ended && strstr(row->before, "SET x") != NULL)
        complain("%s: its count is gone, and no mark says why", where);
    if (strcmp(row->before, "SET x 3") == 0 && strstr(row->script->name, "countdown") != NULL &&
        world_int(w, "GET x") != (recorded ? 2 : 3))
        complain("%s: the count is %d, recorded: %d", where, (int)world_int(w, "GET x"), recorded);
    if (recorded && strstr(row->script->name, "set") != NULL &&
        world_int(w, "GET x") != (strstr(row->before, "SET x") != NULL ? 5 : 3))
        complain("%s: recorded, and the count is %d", where, (int)world_int(w, "GET x"));
    if (recorded && !counted && strncmp(mark, "opened 7", 8) == 0 && strstr(mark, "set") == NULL)
        complain("%s: recorded, and it is open yet", where);
}

/* A run that completes is never gone and not done. */
static void a_run_stands_until_it_is_done(struct world *w, const struct row *row)
{
    if (row->script == &lk__lua_once_end && !world_exists(w, "latchkey:run:{x}") &&
        !world_exists(w, "latchkey:done:{x}"))
        complain("%s: nobody runs it, and it is not done", where);
}

/*
 * The next round begins with nobody, and who waits is counted: a party that is remembered as waiting does, or its round is
 * broken; one that is remembered as the last one has ended its round.
 */
static void a_round_is_full_or_waits(struct world *w, const struct row *row)
{
    if (strncmp(row->script->name, "barrier/", 8) != 0 || row->manner == LOOKS)
        return;
    int64_t generation = world_int(w, "HGET latchkey:barrier:{x} generation");
    int64_t waiting = world_int(w, "ZCARD latchkey:parties:{x}");
    bool broken = world_str(w, "HGET latchkey:barrier:{x} broken")[0] != '\0';
    const char *record = world_str(w, "HGET latchkey:once:{x} aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:s1");
    if (generation > 7 && generation < 100 && waiting > 0)
        complain("%s: the next round begins with %d", where, (int)waiting);
    if (strncmp(record, "1 7 ", 4) == 0 && waiting == 0 && !broken)
        complain("%s: it waits and is not counted", where);
    if (strncmp(record, "1 -7 ", 5) == 0 && generation != 8)
        complain("%s: it was the last one, and the round is not over", where);
    if (row->script == &lk__lua_barrier_arrive && record[0] == '\0' && waiting > 0 && !broken &&
        world_str(w, "ZSCORE latchkey:parties:{x} " A)[0] != '\0')
        complain("%s: it is counted, and would be once more", where);
}

/* Nobody waits for a condition and its mutex at the same time, and those who wait have a record. */
static void a_waiter_is_in_one_queue(struct world *w, const struct row *row)
{
    static const char *const waiters[] = { A, B, C, D };
    if (!is_cond(row))
        return;
    for (size_t i = 0; i < 4; i++)
        if (world_int(w, "ZSCORE latchkey:queue:cond:{x} %s", waiters[i]) > 0 && strstr(row->before, "mutex") == NULL &&
            (world_int(w, "ZSCORE latchkey:queue:mutex:{x} %s", waiters[i]) > 0 ||
             world_int(w, "HEXISTS x %s", waiters[i]) == 1))
            complain("%s: %s is in two places", where, waiters[i]);
}

static void audit(struct world *w, const struct row *row)
{
    a_run_stands_until_it_is_done(w, row);
    a_round_is_full_or_waits(w, row);
    each_key_has_an_end(w, row);
    a_mutex_has_one_owner(w, row);
    a_rwlock_has_readers_or_a_writer(w, row);
    no_permit_is_lost_or_made_up(w, row);
    no_more_is_lent_than_there_is(w);
    a_latch_is_open_or_not(w, row);
    a_waiter_is_in_one_queue(w, row);
}

/* --- tests ----------------------------------------------------------------------------------------------------- */

static void say_where(const struct row *row, const char *fault, int k)
{
    snprintf(where, sizeof where, "row %d, %s, %s %d", (int)(row - rows), row->script->name, fault, k);
}

static void begin(struct world *w)
{
    complaints = 0;
    world_redis(w, "PING");
    world_subscribe(w, EARS);
}

static void end(struct world *w)
{
    world_subscribe(w, "nothing");
    world_redis(w, "FLUSHALL");
    assert_int_equal(0, complaints);
}

/* The k-th command fails, for each k until the script comes through. */
static void a_script_may_fail_at_any_command(struct world *w)
{
    int runs = 0;
    begin(w);
    for (int i = 0; i < ROWS; i++)
        for (int k = 1; k <= FAULTS_MAX; k++, runs++) {
            say_where(&rows[i], "failing command", k);
            set_up(w, &rows[i]);
            run_script(w, &rows[i], k, "");
            audit(w, &rows[i]);
            strcat(where, ", then it is run again");
            if (!run_script(w, &rows[i], 0, ""))
                complain("%s: and fails", where);
            audit(w, &rows[i]);
        }
    print_message("%d runs of %d states\n", runs, ROWS);
    end(w);
}

/* Every command of a name fails: what an access rule without it does. */
static void a_script_may_lack_any_command(struct world *w)
{
    char commands[1024];
    begin(w);
    for (int i = 0; i < ROWS; i++) {
        snprintf(commands, sizeof commands, "%s %s %s %s %s %s %s %s", lk__lua_cond_commands, lk__lua_lock_commands,
                 lk__lua_rwlock_commands, lk__lua_semaphore_commands, lk__lua_latch_commands, lk__lua_once_commands,
                 lk__lua_barrier_commands, lk__lua_redlock_commands);
        char *save;
        for (char *name = strtok_r(commands, " ", &save); name != NULL; name = strtok_r(NULL, " ", &save)) {
            for (char *c = name; *c != '\0'; c++)
                *c = (char)(*c - 'a' + 'A');
            say_where(&rows[i], name, 0);
            set_up(w, &rows[i]);
            run_script(w, &rows[i], 0, name);
            audit(w, &rows[i]);
        }
    }
    end(w);
}

/* What takes is refused and leaves nothing, what gives back is done. */
static void a_server_out_of_memory(struct world *w)
{
    begin(w);
    for (int i = 0; i < ROWS; i++) {
        char was[64];
        say_where(&rows[i], "out of memory", 0);
        set_up(w, &rows[i]);
        snprintf(was, sizeof was, "%s", world_str(w, "DEBUG DIGEST"));
        world_redis(w, "CONFIG SET maxmemory 1");
        bool good = run_script(w, &rows[i], 0, "");
        world_redis(w, "CONFIG SET maxmemory 0");
        if (good != (rows[i].manner != TAKES))
            complain("%s: %s", where, good ? "passes" : "is refused");
        if (!good && strcmp(was, world_str(w, "DEBUG DIGEST")) != 0)
            complain("%s: leaves something", where);
        audit(w, &rows[i]);
    }
    end(w);
}

/* Every script of the tree has its row. */
static void no_script_is_forgotten(void)
{
    glob_t found;
    assert_int_equal(0, glob(LK_SOURCE_DIR "/src/*/*.lua", 0, NULL, &found));
    int scripts = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = source_text(found.gl_pathv[i]), *name = strstr(found.gl_pathv[i], "/src/") + 5;
        /* parts have none */
        bool is_script = strstr(text, "\n-- keys:") != NULL || strstr(text, "\n-- batch:") != NULL, known = false;
        for (int r = 0; r < ROWS; r++)
            known |= strncmp(rows[r].script->name, name, strlen(name) - 4) == 0;
        if (is_script && !known)
            fail_msg("%s has no row here", name);
        scripts += is_script;
        free(text);
    }
    globfree(&found);
    assert_true(scripts >= 30);
}

int main(void)
{
    int failed = plain_run(no_script_is_forgotten);
    return failed + world_run(a_script_may_fail_at_any_command, a_script_may_lack_any_command, a_server_out_of_memory);
}
