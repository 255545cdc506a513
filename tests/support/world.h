/* SPDX-License-Identifier: MIT */
/*
 * world.h - a private redis-server for each test, and processes to use it
 *
 * Server   $LATCHKEY_TEST_SERVER, else redis-server from the PATH, in a directory of its own, on a
 *          unix socket and no port, without persistence. None there: the test program exits 77.
 * TLS      with LATCHKEY_TEST_TLS=yes in the environment, clients of world_url() and of proxies go to a port of the
 *          server that has TLS; certificates for it, and others, lie in its directory: certificates.h
 * Children die with the test, as the server does. They share what world_shared() gives out. Fork before
 *          the test opens a client or starts a thread where that is possible: ThreadSanitizer does not
 *          follow a fork out of a process with threads, and a child should see a process at rest:
 *          under AddressSanitizer world_rest() waits for that.
 * End      what world_client(), world_mutex() and their like make is destroyed and closed behind the test's last line,
 *          youngest first, and each of these calls has to return 0. Then world_end() fails the test if anything
 *          is left: keys, channels, threads, descriptors. A test that failed is not tidied up.
 * Threads  everything here is for the thread that runs the test, and the main thread of a child.
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include "assert_lk.h"

#include <latchkey/latchkey.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WORLD_CHILDREN_MAX 64

struct redisContext;
struct redisReply;

struct gate;
struct world;
struct world_ending;
typedef void world_test_fn(struct world *w);

struct world {
    world_test_fn *test; /* the one that runs, or NULL */
    bool passed;
    char dir[64];
    char socket[80];
    int tls_port;               /* of 127.0.0.1; 0: no TLS */
    pid_t server;               /* 0: not running */
    char server_args[256];      /* beyond the usual ones; used again by a restart */
    struct redisContext *redis; /* of process `redis_of` */
    pid_t redis_of;
    struct redisContext *ears; /* what world_subscribe() opened */
    struct world_arena *arena; /* shared with the children */
    pid_t children[WORLD_CHILDREN_MAX];
    int child_count;
    int me; /* in a child: its index */
    int threads_before, descriptors_before;
    char allowed[24][64]; /* patterns of keys that may be left */
    int allowed_count;
    struct world_ending *endings; /* what is still to be ended, oldest first */
    size_t ending_count, ending_room;
    char complaint[512]; /* first thing world_end() has to say */
};

/* Functions that take a struct world, each with one of its own: `return world_run(this, that);` in main(). */
#define world_run(...) world_run_with(world_teardown, __VA_ARGS__)

/* Likewise with a teardown of one's own, which calls world_teardown(). */
#define world_run_with(teardown, ...) world_run_tests(teardown, #__VA_ARGS__, (world_test_fn *const[]){ __VA_ARGS__ })
int world_run_tests(CMFixtureFunction teardown, const char *names, world_test_fn *const tests[]);
int world_teardown(void **state);

/* A world by hand; `server_args` are further options of the server, divided by blanks, or NULL. */
struct world *world_begin(const char *server_args);
void world_end(struct world *w);

/* Keys of this glob pattern may be left at the end, with a TTL or without. */
void world_allow(struct world *w, const char *pattern);

/*
 * Options of a client, with describe=no where they say nothing of that: tests are of what calls send, so that nothing else
 * is sent beside. Clients of clusters, of quorums, of Sentinels, of samples and of the soak are described, as users' are.
 */
enum { WORLD_OPTIONS = 900 };
const char *world_options(char all[WORLD_OPTIONS], const char *options);

/* "unix://SOCKET?OPTIONS" with these options, or rediss://127.0.0.1:PORT with who is trusted, and OPTIONS; good until the eighth next call. */
const char *world_url(struct world *w, const char *options);

/* With the certificate of this world's server, at a port. */
const char *world_tlsurl(struct world *w, int port, const char *options);

int free_port(void); /* one of 127.0.0.1 that nobody has, a moment ago at least */

/* lk_errortext() of this thread has these words; also usable in a child. */
#define assert_says(words) assert_says_result((words), __FILE__, __LINE__)
void assert_says_result(const char *words, const char *file, int line);

/* --- what ends with the test, or with world_close(); failures fail the test -------------------------- */

lk_client_t *world_client(struct world *w, const char *options); /* as world_url() has them */
lk_client_t *world_open(struct world *w, const char *options);   /* which the test itself closes */
lk_mutex_t *world_mutex(struct world *w, lk_client_t *client, const char *name, const lk_mutexattr_t *attr);
lk_stripes_t *world_stripes(struct world *w, lk_client_t *client, const char *name, unsigned n,
                            const lk_mutexattr_t *attr);
lk_multi_t *world_multi(struct world *w, lk_client_t *client); /* without members; ended before that client's objects are */
lk_rwlock_t *world_rwlock(struct world *w, lk_client_t *client, const char *name, const lk_rwlockattr_t *attr);
lk_sem_t *world_sem(struct world *w, lk_client_t *client, const char *name, unsigned value, const lk_semattr_t *attr);
lk_latch_t *world_latch(struct world *w, lk_client_t *client, const char *name);
lk_latch_t *world_latchwith(struct world *w, lk_client_t *client, const char *name, const lk_latchattr_t *attr);
lk_once_t *world_once(struct world *w, lk_client_t *client, const char *name, const lk_onceattr_t *attr);
lk_barrier_t *world_barrier(struct world *w, lk_client_t *client, const char *name, unsigned parties,
                            const lk_barrierattr_t *attr);
lk_cond_t *world_cond(struct world *w, lk_client_t *client, const char *name, const lk_condattr_t *attr);
lk_events_t *world_events(struct world *w, lk_client_t *client);
lk_owner_t *world_newowner(struct world *w, lk_client_t *client);

/*
 * lk_client_open(), again if it had too little time: where leases are short, so is the time to connect, and a busy machine
 * may need longer.
 */
int open_patiently(lk_client_t **client, const char *url);

/* Another server, with a world of its own, which ends with this one. */
struct world *world_second(struct world *w);

/* A client of another server than the world's: `parent` is ended after it, and may be NULL. */
lk_client_t *world_client_at(struct world *w, const void *parent, const char *url);

/* End an object, or a client and its objects, before the test ends; NULL: everything. */
void world_close(struct world *w, const void *object);

/*
 * Is all through that goes on in the background for calls of this client that are over? What is sent next is then a
 * call's, or a renewal, and no copy of a request that got no answer takes effect any more.
 */
bool client_settled(lk_client_t *client);

/* lk_client_close(), where that is the matter: its objects stay. */
int close_by_hand(struct world *w, lk_client_t *client);

/*
 * Have `end` called with `object` at the end of the test, or with world_close() of it or of `parent`, which may be NULL.
 * What came later is ended earlier. In a child: at the end of its function, if that returns 0.
 */
void world_at_end(struct world *w, const void *parent, void *object, void (*end)(void *object));

/* The test ends it itself, or leaves it. */
void world_forget(struct world *w, const void *object);

/* --- a plain client of the test: commands as redisCommand() takes them; errors fail the test ----- */

void world_redis(struct world *w, const char *format, ...);
int64_t world_int(struct world *w, const char *format, ...);      /* integer; a number as text too; nil: -1 */
const char *world_str(struct world *w, const char *format, ...);  /* good until the eighth next call; nil: "" */
int64_t world_elements(struct world *w, const char *format, ...); /* how many an array has */
int64_t world_lasting(struct world *w);                           /* how many keys have no end */

int64_t world_pttl(struct world *w, const char *name);
bool world_exists(struct world *w, const char *key);
/* What is left of the last lease of a mutex, read-write lock or leased semaphore; 0 when it is free. */
int64_t world_leaseleft(struct world *w, const char *name);
int64_t world_queued(struct world *w, const char *name);      /* waiters in the queue of a mutex */
int64_t world_rwqueued(struct world *w, const char *name);    /* likewise of a read-write lock */
const char *alive_of(const char *queue);                      /* the kind whose `alive` that queue has, as "rw" for "readers" */
int64_t world_semqueued(struct world *w, const char *name);   /* and of a semaphore, leased or not */
int64_t world_condqueued(struct world *w, const char *name);  /* who waits for a condition, and was not moved */
int64_t world_rwholds(struct world *w, const char *name);     /* readers and writers that have it */
bool world_listening(struct world *w, const char *object);    /* do all waiters of "rw:{name}" hear messages by now? */
/* A script: how many of those who wait, by their signs of life in KEYS[1], do not. */
#define WORLD_DEAF                                                                                                     \
    "local deaf = 0 for _, life in ipairs(redis.call('HVALS', KEYS[1])) do "                                           \
    "deaf = deaf + (string.sub(life, -2) == ' 1' and 1 or 0) end return deaf"
const char *world_owner(struct world *w, const char *name);   /* first field of a mutex; "" when free */
int64_t world_holds(struct world *w, const char *name);       /* its count; -1 when free */
const char *world_keys(struct world *w);                      /* all keys of objects, divided by blanks */
const char *world_left(struct world *w);                      /* a key that should not be left, or NULL */
int64_t world_counter(struct world *w, const char *field);    /* a number from INFO: "total_commands_processed" */
int64_t world_commands(struct world *w, const char *command); /* calls so far: "evalsha" */

/* How many are of the library, of those that CLIENT LIST says of any server. */
int library_clients(const char *list);

/* Hear what is published on a channel from now on; one channel at a time. */
void world_subscribe(struct world *w, const char *channel);
/* The next message, or NULL when none comes within `ms`; good until the eighth next call. */
const char *world_message(struct world *w, int64_t ms);

/* --- faults of the server ------------------------------------------------------------------------ */

void world_stop_server(struct world *w); /* SIGSTOP: connections stay, nothing is answered */
void world_cont_server(struct world *w);
void world_kill_server(struct world *w);    /* SIGKILL */
void world_restart_server(struct world *w); /* on the same directory and socket; returns when it answers */

/* Connections of clients end, all but the test's own; new ones can be made at once. */
void world_killcommands(struct world *w);
void world_killsubscriptions(struct world *w);

/* One of WORLD_BLOWS that nobody may notice: scripts are forgotten, connections of either kind or of both end. */
enum { WORLD_BLOWS = 4 };
void world_blow(struct world *w, int which);

/* A hundred of them while eight threads run `work`, until `stop` opens; 0, or what one of them returned. */
int world_hail(struct world *w, int (*work)(int index, void *arg), struct gate *stop);

/* --- work for worker_start() and in_thread() -------------------------------------------------------- */

int lock_mutex(void *mutex);
int lock_and_unlock(void *mutex);
int lock_rounds(lk_mutex_t *mutex, int rounds); /* lock_and_unlock() so often, or until it fails */
int read_once(void *rwlock);
int write_once(void *rwlock);
int await_latch(void *latch);
int lock_and_unlock_all(void *multi); /* waits 20 s at most */

/* Two threads lock_rounds() at once, each with one of these, so that a mutex goes to and fro. */
void hand_to_and_fro(lk_mutex_t *const mutexes[2], int rounds);

/* The client that static objects and a NULL client use: where it is opened from now on, by $LATCHKEY_URL; and its end. */
void use_default(const char *url);
void close_default(void);

/* --- processes ------------------------------------------------------------------------------------- */

/*
 * Run `fn` in a child; what it returns (0..125) is the child's exit status. Returns its pid once it called
 * world_ready(); a child that ends before that fails the test.
 */
pid_t world_fork(struct world *w, int (*fn)(struct world *w, void *arg), void *arg);
void world_ready(struct world *w);

/*
 * So many children with so many threads each, which all call `visit` so often from one moment on, until it returns something
 * else than 0: that is the child's exit status, and has to be 0. `open`, in each child, makes what they visit, of a client
 * with these options.
 */
struct processes {
    int processes, threads, rounds;
    const char *options;
    void (*open)(struct world *w, lk_client_t *client);
    int (*visit)(int thread, int round);
};
void world_processes(struct world *w, const struct processes *all);

/* Before a fork() by hand, out of a process with threads: world_fork() does so itself. */
void world_rest(void);

/* Until all other threads of the process sleep: one that stands still from then on has none of the library's own locks. */
void threads_rest(void);

/* The exit status, or 128 + the signal that ended it. Waits a minute at most, then kills and fails. */
int world_wait(struct world *w, pid_t pid);
void world_kill(struct world *w, pid_t pid); /* SIGKILL, reaped */
/* Likewise the holder of `name`; what was left of its lease, read when it stood still: its end may take a while. */
int64_t world_killholder(struct world *w, pid_t pid, const char *name);
void world_stop(pid_t pid); /* SIGSTOP; returns when it stands still */
void world_cont(pid_t pid);

/* Zeroed memory that children made later share. */
void *world_shared(struct world *w, size_t size);

/* A gate in shared memory: whoever passes waits until somebody opened it. */
struct gate {
    int open; /* reached with atomic builtins */
};
void gate_open(struct gate *gate);
void gate_pass(struct gate *gate); /* half a minute at most, then fails */
bool gate_is_open(const struct gate *gate);

#endif
