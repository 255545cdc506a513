/* SPDX-License-Identifier: MIT */
/*
 * fenced_leader.c - a leader sleeps through the end of its lease, wakes up and writes; the resource refuses
 *
 * The leader has just seen that it leads when its whole process stops: a suspended laptop, a paused virtual
 * machine, here SIGSTOP. Its lease ends, another becomes leader and writes. Then the first one goes on where
 * it was, with its write. No lock can prevent that: it is the resource that must refuse, by the fencing token,
 * which is larger for each new leader. With --unsafe it ignores the token, and the new leader's write is gone.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEASE_MS = 300, OLD = 1, NEW = 2 };
enum { REFUSED = 10, WRITTEN = 11 }; /* exit codes of the leader that was stopped */

struct result {
    int stopped, refused, told, overwritten;
};

static struct result *result;

/* The resource: a database would do this in one step, UPDATE ... WHERE token <= ?. */
struct record {
    uint64_t token;
    int writer;
};

static struct record *record; /* of each worker */

static int record_write(struct record *to, int writer, uint64_t token, bool ignore_token)
{
    if (token < to->token && !ignore_token)
        return ESTALE;
    *to = (struct record){ token > to->token ? token : to->token, writer };
    return 0;
}

/* Of who is going to be stopped. */
static const lk_mutexattr_t short_lease = { .size = sizeof short_lease, .lease_ms = LEASE_MS };

static int complain(void)
{
    fprintf(stderr, "fenced_leader: %s\n", lk_errortext());
    return 1;
}

static void name_it(char *name, size_t size, const struct options *options)
{
    snprintf(name, size, "samples:leader:%d", options->worker);
}

/* The leader that is stopped between a look at its lease and its write. Runs in a process of its own. */
static int old_leader(const struct options *options)
{
    char name[48];
    name_it(name, sizeof name, options);
    lk_mutex_t leader = LK_MUTEX_INITIALIZER_ATTR(name, &short_lease);
    uint64_t token;
    int64_t left_ms;
    lk_addlog(NULL, LK_LOG_WARNING, NULL, NULL); /* that the lease is lost in the end is no news here */
    if (lk_mutex_lock(&leader) != 0 || lk_mutex_token(&leader, &token) != 0 ||
        lk_mutex_remaining(&leader, &left_ms) != 0) /* 0: it leads, at this moment */
        return complain();

    raise(SIGSTOP); /* all threads, so no lease is renewed; goes on here at SIGCONT */

    int rc = record_write(&record[options->worker], OLD, token, options->unsafe);
    if (lk_mutex_unlock(&leader) == ESTALE) /* it learns of it, too late */
        __atomic_fetch_add(&result->told, 1, __ATOMIC_RELAXED);
    return rc == 0 ? WRITTEN : REFUSED;
}

/* Become the next leader, write, wake the old one up, and see what is left of the write. */
static int new_leader(const struct options *options, pid_t old)
{
    char name[48];
    name_it(name, sizeof name, options);
    lk_mutex_t leader = LK_MUTEX_INITIALIZER(name);
    struct record *own = &record[options->worker];
    uint64_t token;
    int status;
    if (lk_mutex_lock(&leader) != 0) /* waits for the end of the lease */
        return complain();
    int rc = lk_mutex_token(&leader, &token);
    if (rc == 0)
        rc = record_write(own, NEW, token, options->unsafe);

    kill(old, SIGCONT);
    waitpid(old, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
        __atomic_fetch_add(&result->refused, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&result->overwritten, own->writer != NEW, __ATOMIC_RELAXED);

    int unlocked = lk_mutex_unlock(&leader);
    lk_mutex_destroy(&leader);
    return rc != 0 || unlocked != 0 ? complain() : 0;
}

/* Each worker has a mutex and a record of its own, and starts the leaders that are to be stopped. */
static int lead(const struct options *options)
{
    for (int i = 0; i < options->rounds; i++) {
        int status;
        pid_t old = child_start();
        if (old == 0)
            _exit(old_leader(options));
        if (old < 0 || waitpid(old, &status, WUNTRACED) != old || !WIFSTOPPED(status))
            return 1;
        __atomic_fetch_add(&result->stopped, 1, __ATOMIC_RELAXED);
        int rc = new_leader(options, old);
        if (rc != 0) {
            kill(old, SIGKILL);
            return rc;
        }
        round_done();
    }
    return 0;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 4, .rounds = 6, .unsafe_means = "let the resource ignore the fencing token" };
    options_read(&options, argc, argv,
                 "A leader is stopped beyond its lease and writes late. Rounds: leaders stopped.");
    result = shared_memory(sizeof *result);
    record = shared_memory((size_t)options.workers * sizeof *record);

    printf("%d leaders at work, each stopped %d times for longer than its lease, tokens %s\n", options.workers,
           options.rounds, options.unsafe ? "ignored" : "compared");
    long total = (long)options.workers * options.rounds;
    int failed = workers_run(&options, total, lead);

    bool held = failed == 0 && result->overwritten == 0 && result->refused == total;
    return verdict("no late write gets in", held,
                   "%d leaders stopped, %d late writes refused, %d new ones overwritten, %d told that they lost it",
                   result->stopped, result->refused, result->overwritten, result->told);
}
