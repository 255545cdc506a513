/* SPDX-License-Identifier: MIT */
/*
 * tls_first_use_test.c - a program forks while its first connection of TLS is made, or closes a client meanwhile
 *
 * OpenSSL prepares itself on its first use, under locks of its own, and reads its configuration there. That is a pipe here,
 * so a program can keep the thread in OpenSSL for as long as it wants. Each case is a program that starts anew.
 *
 * seconds: 6
 */
#include "world.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = SANITIZED ? 0 : 40, LIMIT_MS = 2000, WITHIN_S = 15 };

static lk_mutex_t orders = LK_MUTEX_INITIALIZER("orders");

/* --- the programs: 0, or the number of what went wrong ------------------------------------------------------------ */

static void *lock_once(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lockfor(&orders, 10000);
    if (rc == 0)
        rc = lk_mutex_unlock(&orders);
    return (void *)(intptr_t)rc;
}

/* The code that lock gives in the child of a fork, or 200: it took too long. */
static int code_in_child(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        int64_t began_ms = now_ms();
        alarm(WITHIN_S);
        int rc = lk_mutex_lockfor(&orders, LIMIT_MS);
        if (rc == 0)
            rc = lk_mutex_unlock(&orders);
        _exit(now_ms() - began_ms > LIMIT_MS + 1000 + SLACK_MS ? 200 : rc);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

/* Until a thread reads the configuration. It does until the descriptor that is returned is closed. */
static int await_reader(void)
{
    int fd;
    while ((fd = open(getenv("OPENSSL_CONF"), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        sleep_ms(1);
    return fd;
}

static void *close_soon(void *fd)
{
    sleep_ms(100);
    close((int)(intptr_t)fd);
    return NULL;
}

static int join(pthread_t thread)
{
    void *result;
    pthread_join(thread, &result);
    return (int)(intptr_t)result;
}

static int fork_in_the_middle(const char *url)
{
    pthread_t opener, closer;
    (void)url;
    pthread_create(&opener, NULL, lock_once, NULL);
    pthread_create(&closer, NULL, close_soon, (void *)(intptr_t)await_reader());
    int code = code_in_child();
    pthread_join(closer, NULL);
    return join(opener) != 0 ? 100 : code;
}

/* No fork waits for so long. The child says so, and its parent goes on. */
static int fork_without_end(const char *url)
{
    pthread_t opener;
    (void)url;
    pthread_create(&opener, NULL, lock_once, NULL);
    int fd = await_reader(), code = code_in_child();
    close(fd);
    join(opener); /* it may have been out of time to connect */
    return code != ENOTCONN ? code : (int)(intptr_t)lock_once(NULL);
}

static int fork_at_some_moment(const char *after_us)
{
    pthread_t opener;
    unsetenv("OPENSSL_CONF");
    pthread_create(&opener, NULL, lock_once, NULL);
    usleep((useconds_t)atoi(after_us));
    int code = code_in_child();
    return join(opener) != 0 ? 100 : code;
}

static void *open_one(void *url)
{
    lk_client_t *client;
    int rc = lk_client_open(&client, url);
    if (rc == 0)
        rc = lk_client_close(client);
    return (void *)(intptr_t)rc;
}

/* A client that is not opened in time is taken apart, while the thread that connects goes on in OpenSSL. */
static int close_in_the_middle(const char *url)
{
    pthread_t opener;
    char in_time[1000];
    int64_t began_ms = now_ms();
    snprintf(in_time, sizeof in_time, "%s&connect_timeout=300ms", url);
    pthread_create(&opener, NULL, open_one, in_time);
    int fd = await_reader(), rc = join(opener);
    if (rc != ENOTCONN || now_ms() - began_ms > 2000 + SLACK_MS)
        return rc == 0 ? 100 : 101;
    memset(in_time, '#', sizeof in_time);
    close(fd);
    return (int)(intptr_t)open_one((void *)(intptr_t)url);
}

static const struct program {
    const char *name;
    int (*run)(const char *arg);
} programs[] = { { "middle", fork_in_the_middle },
                 { "long", fork_without_end },
                 { "moment", fork_at_some_moment },
                 { "close", close_in_the_middle } };

static int run_program(const char *name, const char *arg)
{
    alarm(WITHIN_S);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].name, name) == 0)
            return programs[i].run(arg);
    return 127;
}

/* --- the test --------------------------------------------------------------------------------------------------- */

/* `arg` NULL: the URL. */
static void it_ends_well(struct world *w, const char *name, const char *arg)
{
    char configuration[128], url[1000];
    int status = -1;
    if (SANITIZED)
        skip(); /* its own locks are not there for a child */
    snprintf(configuration, sizeof configuration, "%s/openssl.fifo", w->dir);
    snprintf(url, sizeof url, "%s", world_url(w, "lease=30s&command_timeout=1s"));
    mkfifo(configuration, 0600);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("OPENSSL_CONF", configuration, 1);
        setenv("LATCHKEY_URL", url, 1);
        execl("/proc/self/exe", "first", name, arg != NULL ? arg : url, (char *)NULL);
        _exit(127);
    }
    eventually(waitpid(pid, &status, WNOHANG) == pid, 2000 * WITHIN_S);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s %s: it ended with %#x", name, arg, (unsigned)status);
}

static void a_fork_waits_for_the_first_use(struct world *w)
{
    it_ends_well(w, "middle", NULL);
}

static void a_child_of_a_fork_that_cannot_wait_is_told(struct world *w)
{
    it_ends_well(w, "long", NULL);
}

static void a_fork_at_any_moment(struct world *w)
{
    char after_us[16];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(after_us, sizeof after_us, "%d", i * 7919 % 6000);
        it_ends_well(w, "moment", after_us);
    }
}

static void a_client_is_closed_meanwhile(struct world *w)
{
    it_ends_well(w, "close", NULL);
}

int main(int argc, char *argv[])
{
    if (argc == 3)
        return run_program(argv[1], argv[2]);
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return world_run(a_fork_waits_for_the_first_use, a_child_of_a_fork_that_cannot_wait_is_told,
                     a_client_is_closed_meanwhile, a_fork_at_any_moment);
}
