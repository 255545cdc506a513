/* SPDX-License-Identifier: MIT */
/*
 * acknowledged_test.c - every allocation and every system call fails while replicas acknowledge what is taken
 *
 * labels: memory
 * simulated: yes
 * seconds: 15
 * processors: 10
 * support: failing
 */
#include "failing/failing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 5000

static char acknowledged[160]; /* options */
static bool connected;         /* the connection for grants is up before anything fails: it needs no memory then */

/* On a busy machine the replica may be too slow, whatever fails: once more then. */
static bool is_slow(int rc)
{
    return rc == ENOTCONN && strstr(lk_errortext(), "fewer than 1 replicas") != NULL;
}

static int lock_m(lk_mutex_t *m)
{
    int rc, tries = 0;
    do
        rc = lk_mutex_lockfor(m, failing_patience_ms());
    while (is_slow(rc) && ++tries < 50);
    return rc;
}

static int wait_s(lk_sem_t *s)
{
    int rc, tries = 0;
    do
        rc = lk_sem_waitfor(s, failing_patience_ms());
    while (is_slow(rc) && ++tries < 50);
    return rc;
}

static void finish(struct world *w, lk_client_t *client)
{
    failing_end();
    lk_mutex_t again;
    if (client == NULL)
        client = world_open(w, acknowledged);
    assert_lk(0, lk_mutex_init(&again, client, "again", NULL));
    eventually(lk_mutex_lockfor(&again, LONG_MS) == 0, 4 * LONG_MS); /* the replica may be slow on a busy machine */
    assert_lk(0, lk_mutex_unlock(&again));
    assert_lk(0, lk_mutex_destroy(&again));
    (void)lk_client_close(client);
}

static void open_it(struct world *w)
{
    lk_client_t *client = NULL;
    const char *url = world_url(w, acknowledged);
    failing_begin();
    tried(0, lk_client_open(&client, url), ENOMEM, ENOTCONN);
    finish(w, client);
}

static void take(struct world *w)
{
    lk_client_t *client = world_open(w, acknowledged);
    lk_mutex_t m;
    lk_sem_t s;
    world_redis(w, "DEL s"); /* the last run may have kept its permit */
    assert_lk(0, lk_mutex_init(&m, client, "m", NULL));
    assert_lk(0, lk_sem_init(&s, client, "s", 1, NULL));
    if (connected) {
        assert_lk(0, lock_m(&m));
        assert_lk(0, lk_mutex_unlock(&m));
        assert_lk(0, wait_s(&s));
        assert_lk(0, lk_sem_post(&s));
    }
    failing_begin();
    if (tried(0, lock_m(&m), ENOMEM, ENOTCONN, EIO, ETIMEDOUT) == 0)
        tried(0, lk_mutex_unlock(&m), ENOTCONN, EIO, ESTALE);
    if (tried(0, wait_s(&s), ENOMEM, ENOTCONN, EIO, ETIMEDOUT) == 0)
        tried(0, lk_sem_post(&s), ENOMEM, ENOTCONN, EIO);
    failing_end();
    (void)lk_mutex_destroy(&m);
    (void)lk_sem_destroy(&s);
    finish(w, client);
}

/* A replica of this process's server, which ends with it. */
static pid_t replicate(struct world *w, int port)
{
    char own[16], master[32];
    snprintf(own, sizeof own, "%d", free_port());
    snprintf(master, sizeof master, "127.0.0.1 %d", port);
    world_redis(w, "CONFIG SET port %d", port);
    world_redis(w, "CONFIG SET repl-diskless-sync-delay 0");
    pid_t pid = fork();
    assert_that(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const char *binary = getenv("LATCHKEY_TEST_SERVER");
        binary = binary != NULL && binary[0] != 0 ? binary : "redis-server";
        execlp(binary, binary, "--port", own, "--bind", "127.0.0.1", "--save", "", "--dir", w->dir, "--logfile",
               "replica.log", "--replicaof", master, (char *)NULL);
        _exit(127);
    }
    world_redis(w, "INCR replicated");
    eventually(world_int(w, "WAIT 1 1000") == 1, 20000);
    world_redis(w, "DEL replicated");
    return pid;
}

static void all_of(struct world *w, enum failing kind)
{
    pid_t replica = replicate(w, free_port());
    world_allow(w, "s");
    world_allow(w, "latchkey:*:{s}");
    snprintf(acknowledged, sizeof acknowledged, "%s&wait_replicas=1", failing_options());
    connected = kind == FAIL_ALLOCATION;
    each_failure(w, "open acknowledged", kind, open_it);
    each_failure(w, "take acknowledged", kind, take);
    kill(replica, SIGKILL);
    waitpid(replica, NULL, 0);
}

int main(void)
{
    failing_sparsely(SANITIZED ? 6 : 3);
    return all_failures(all_of);
}
