/* SPDX-License-Identifier: MIT */
/*
 * quorum_job.c - a job that runs on one host at a time, guarded by five servers of which two are killed meanwhile
 *
 * The lock has to outlive any of its servers, memory and all: two of the five are killed in turn while the job runs, and
 * started again with nothing. A redlock does not notice, as three of five are a majority, and a server that has just started
 * has no vote. With --unsafe it has one at once, and all but two servers are killed: what they granted is forgotten, and two
 * hosts are at it.
 *
 * The servers are processes of this program, on ports of this machine.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERVERS = 5, LEASE_MS = 2000, TURN_MS = 20, LONG_MS = 900, STEP_MS = 5, BEGIN_MS = 30000, VOTES_AGAIN_MS = 4500 };

static struct shared {
    int turns;       /* begun so far */
    int overlaps;    /* turns in which another one began while the lock was still held */
    int inside_long; /* one of them lasts for long */
    int done;        /* the hosts are */
} *shared;

static int ports[SERVERS];
static pid_t servers[SERVERS];
static char url[256];

/* --- servers -------------------------------------------------------------------------------------------------- */

static int free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        perror("quorum_job: no port");
        exit(1);
    }
    close(fd);
    return ntohs(address.sin_port);
}

static void server_start(int i)
{
    char port[16];
    const char *program = getenv("LATCHKEY_TEST_SERVER");
    program = program != NULL && program[0] != '\0' ? program : "redis-server";
    snprintf(port, sizeof port, "%d", ports[i]);
    servers[i] = child_start();
    if (servers[i] != 0)
        return;
    if (freopen("/dev/null", "w", stdout) != NULL)
        execlp(program, program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
               "--maxmemory-policy", "noeviction", (char *)NULL);
    _exit(127);
}

static void server_kill(int i)
{
    kill(servers[i], SIGKILL);
    waitpid(servers[i], NULL, 0);
}

static void servers_start(void)
{
    size_t length = (size_t)snprintf(url, sizeof url, "redis-quorum://");
    for (int i = 0; i < SERVERS; i++) {
        ports[i] = free_port();
        length += (size_t)snprintf(url + length, sizeof url - length, "%s127.0.0.1:%d", i > 0 ? "," : "", ports[i]);
    }
    snprintf(url + length, sizeof url - length, "?lease=%dms&command_timeout=300ms&retry_max=40ms", LEASE_MS);
    for (int i = 0; i < SERVERS; i++)
        server_start(i);
}

/* Those from `first` on, so many, all at once; they come back with nothing. */
static void kill_some(int first, int count)
{
    for (int i = 0; i < count; i++)
        server_kill((first + i) % SERVERS);
    for (int i = 0; i < count; i++)
        server_start((first + i) % SERVERS);
}

static bool is_set(const int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_SEQ_CST) != 0;
}

/*
 * Until the hosts are done, during long turns. Servers that came back have their votes before others are killed.
 * Returns how many were killed.
 */
static int kill_servers(bool unsafe)
{
    int killed = 0;
    for (int first = 0; !is_set(&shared->done); first += 2) {
        while (!is_set(&shared->inside_long) && !is_set(&shared->done))
            pause_ms(5);
        if (is_set(&shared->done))
            break;
        kill_some(first, unsafe ? SERVERS - 2 : 2);
        killed += unsafe ? SERVERS - 2 : 2;
        for (int ms = 0; ms < (unsafe ? LONG_MS : VOTES_AGAIN_MS) && !is_set(&shared->done); ms += 20)
            pause_ms(20);
    }
    return killed;
}

/* --- the job -------------------------------------------------------------------------------------------------- */

/*
 * Has another host begun while this one has the lock? Who has lost it knows that, does no more than it must, and others may
 * go on: so the other host is looked for first, then the lock.
 */
static bool has_company(lk_redlock_t *r, int turn)
{
    int64_t left_ms;
    return __atomic_load_n(&shared->turns, __ATOMIC_SEQ_CST) != turn && lk_redlock_remaining(r, &left_ms) == 0;
}

static void take_turn(lk_redlock_t *r, bool is_long)
{
    int turn = __atomic_add_fetch(&shared->turns, 1, __ATOMIC_SEQ_CST);
    bool alone = true;
    if (is_long)
        __atomic_store_n(&shared->inside_long, 1, __ATOMIC_SEQ_CST);
    for (int ms = 0; ms < (is_long ? LONG_MS : TURN_MS); ms += STEP_MS) {
        pause_ms(STEP_MS);
        alone &= !has_company(r, turn);
    }
    if (is_long)
        __atomic_store_n(&shared->inside_long, 0, __ATOMIC_SEQ_CST);
    if (!alone)
        __atomic_add_fetch(&shared->overlaps, 1, __ATOMIC_SEQ_CST);
}

static int run(const struct options *options, lk_redlock_t *r)
{
    for (int i = 0; i < options->rounds; i++) {
        int rc = lk_redlock_lockfor(r, BEGIN_MS);
        if (rc != 0) {
            fprintf(stderr, "quorum_job: %s\n", lk_errortext());
            return 1;
        }
        take_turn(r, i % 8 == 0);
        rc = lk_redlock_unlock(r); /* EIO: no majority confirms it just now; it ends with its lease */
        if (rc != 0 && rc != ESTALE && rc != EIO)
            return 1;
        round_done();
        pause_ms(random_below(5));
    }
    return 0;
}

/* One host. */
static int host(const struct options *options)
{
    const lk_redlockattr_t attr = { .size = sizeof attr, .longest_lease_ms = options->unsafe ? -1 : LEASE_MS };
    lk_client_t *client = NULL;
    lk_redlock_t r;
    lk_addlog(NULL, LK_LOG_ERROR, NULL, NULL); /* that servers come and go is no news here */
    int rc = ENOTCONN;
    for (int ms = 0; rc == ENOTCONN && ms < BEGIN_MS; ms += 50) {
        rc = lk_client_open(&client, url);
        if (rc == ENOTCONN) /* they are just starting */
            pause_ms(50);
    }
    if (rc == 0)
        rc = lk_redlock_init(&r, client, "samples:quorum", &attr);
    if (rc != 0) {
        fprintf(stderr, "quorum_job: %s\n", lk_errortext());
        return 1;
    }
    int failed = run(options, &r);
    (void)lk_redlock_destroy(&r);
    (void)lk_client_close(client); /* EIO: a server that is away was not told of the last release */
    return failed;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 4,
                               .rounds = 40,
                               .unsafe_means = "kill a majority, and let servers vote that have just started" };
    options_read(&options, argc, argv, "Hosts run a job in turn, guarded by five servers, while some of these are killed.");
    shared = shared_memory(sizeof *shared);
    servers_start();
    printf("%d hosts, %d turns each, five servers of which %s are killed again and again\n", options.workers,
           options.rounds, options.unsafe ? "three" : "two");
    fflush(stdout);

    pid_t hosts = child_start();
    if (hosts == 0) {
        int failed = workers_run(&options, (long)options.workers * options.rounds, host);
        __atomic_store_n(&shared->done, 1, __ATOMIC_SEQ_CST);
        _exit(failed);
    }
    if (!options.unsafe)
        pause_ms(VOTES_AGAIN_MS); /* all have just started: nobody votes before that */
    int killed = kill_servers(options.unsafe);
    int status = 1;
    waitpid(hosts, &status, 0);
    for (int i = 0; i < SERVERS; i++)
        server_kill(i);
    return verdict("one host at a time", status == 0 && shared->overlaps == 0,
                   "%d turns, %d servers killed, %d turns not alone", options.workers * options.rounds, killed,
                   shared->overlaps);
}
