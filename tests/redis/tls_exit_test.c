/* SPDX-License-Identifier: MIT */
/*
 * tls_exit_test.c - exit() while a hundred threads wait over TLS: the program ends, at once and as it wants
 *
 * exit() runs what libraries left there while all threads go on: OpenSSL would take away what they are using. The program
 * may have begun to use OpenSSL before the library did, and then it does so.
 *
 * seconds: 12
 */
#include "world.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NDEBUG /* as users get it */
enum { TIMES = 200 };
#else
enum { TIMES = 40 };
#endif
enum { THREADS = 100, CODE = 7 };

/* --- the program that exits ---------------------------------------------------------------------------------- */

static lk_mutex_t wanted;
static bool exiting;

/*
 * Asked by LeakSanitizer. A thread whose connection ends once OpenSSL may be gone leaves what OpenSSL has of it, as exit()
 * takes it all.
 */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return exiting;
}

static void *wait_for_it(void *arg)
{
    (void)arg;
    if (lk_mutex_lock(&wanted) == 0)
        abort(); /* somebody else has it */
    return NULL;
}

static int wait_and_exit(const char *url, const char *who, int after_ms)
{
    lk_client_t *client;
    pthread_attr_t attr;
    pthread_t thread;
    if (strcmp(who, "program") == 0 && OPENSSL_init_ssl(0, NULL) != 1)
        return 1;
    if (lk_client_open(&client, url) != 0 || lk_mutex_init(&wanted, client, "orders", NULL) != 0)
        return 2;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 32768);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, &attr, wait_for_it, NULL) != 0)
            return 3;
    sleep_ms(after_ms);
    exiting = true;
    exit(CODE);
}

/* --- the test --------------------------------------------------------------------------------------------------- */

static pid_t start(const char *url, const char *who, int after_ms)
{
    char after[16];
    snprintf(after, sizeof after, "%d", after_ms);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "exit", url, who, after, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void it_ends(pid_t pid)
{
    int status = -1;
    eventually(waitpid(pid, &status, WNOHANG) == pid, 10000);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != CODE)
        fail_msg("it ended with %#x", (unsigned)status);
}

/* At many moments: threads may be on their way to the server, ask, wait, or hear from it. */
static void exit_times(struct world *w, const char *who)
{
    world_redis(w, "HSET orders somebody:1:1 1");
    world_redis(w, "PEXPIRE orders 600000");
    for (int i = 0; i < TIMES / 2; i++)
        it_ends(start(world_url(w, "lease=6s&poll=10ms"), who, i * 7919 % 60));
    world_redis(w, "DEL orders");
    world_allow(w, "latchkey:*");
    world_allow(w, "redisson_lock_token:*");
}

static void a_library_that_begins_with_openssl(struct world *w)
{
    exit_times(w, "library");
}

static void a_program_that_began_with_openssl(struct world *w)
{
    exit_times(w, "program");
}

int main(int argc, char *argv[])
{
    if (argc == 4)
        return wait_and_exit(argv[1], argv[2], atoi(argv[3]));
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return world_run(a_library_that_begins_with_openssl, a_program_that_began_with_openssl);
}
