/* SPDX-License-Identifier: MIT */
/*
 * tls_fork_test.c - a program forks while its connections are being made: the child's own client gets its connections
 *
 * At the fork a thread of the library may have a lock of OpenSSL's, which nobody would give back in the child; one that
 * ends takes such locks as well.
 *
 * seconds: 10
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 300, CLIENTS = 4 };

static struct gate stop;
static const char *url;

/* A client after the other is opened, that is, connected and greeted. */
static int open_all(int index, void *arg)
{
    (void)index, (void)arg;
    while (!gate_is_open(&stop)) {
        lk_client_t *client;
        int rc = lk_client_open(&client, url);
        if (rc == 0)
            rc = lk_client_close(client);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int run_openers(void *arg)
{
    return run_threads(CLIENTS, open_all, arg);
}

static int child(void)
{
    lk_client_t *client;
    int rc = lk_client_open(&client, url);
    return rc != 0 ? rc : lk_client_close(client);
}

static void children_are_served(struct world *w)
{
    if (SANITIZED)
        skip(); /* its own locks are not there for a child */
    struct worker openers;
    url = world_url(w, "lease=60s&connect_timeout=20s");
    worker_start(&openers, run_openers, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(child());
        assert_true(pid > 0);
        eventually(waitpid(pid, &status, WNOHANG) == pid, 30000);
        assert_true(WIFEXITED(status));
        assert_int_equal(0, WEXITSTATUS(status));
    }
    gate_open(&stop);
    assert_int_equal(0, worker_join(&openers));
}

int main(void)
{
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return world_run(children_are_served);
}
