/* SPDX-License-Identifier: MIT */
/* java.c - see java.h */
#include "java.h"

#include "world_parts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define JAR LK_SOURCE_DIR "/.cache/redisson-all.jar" /* as in scripts/interop */
#define PEER LK_SOURCE_DIR "/tests/interop/Peer.java"

enum { WHO = 128, ANSWER_MAX = 160, ANSWERS_WITHIN_MS = 60000 };

struct java {
    pid_t pid;
    int input, output;             /* of that process */
    char line[ANSWER_MAX];         /* what was read of a line that is not whole yet */
    size_t length;                 /* of that */
    char answers[WHO][ANSWER_MAX]; /* the last one of each thread */
    bool answered[WHO];            /* and nobody asked for it yet */
};

static struct java shared;

/* --- the process -------------------------------------------------------------------------------------- */

static const char *jar(void)
{
    const char *path = getenv("LATCHKEY_REDISSON_JAR");
    return path != NULL && path[0] != '\0' ? path : JAR;
}

static void lack(const char *what)
{
    print_message("skipped: there is no %s. scripts/interop installs java, fetches Redisson and runs these tests;\n"
                  "         LATCHKEY_REDISSON_JAR says where a redisson-all.jar is that is here already\n",
                  what);
    exit(77);
}

static bool has_java(void)
{
    return system("{ command -v java && command -v javac; } >/dev/null 2>&1") == 0;
}

/* A small process, as what it does is little: it shares the processors with all other tests. */
static void exec_java(int input, int output)
{
    dup2(input, 0);
    dup2(output, 1);
    if (getenv("LATCHKEY_TEST_JAVA") == NULL) /* set: shows what it has to say otherwise */
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
    execlp("java", "java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jar(), PEER, (char *)NULL);
    _exit(127);
}

static void start(struct java *java)
{
    int input[2], output[2];
    pid_t parent = getpid();
    assert_that(pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0);
    world_rest();
    *java = (struct java){ .pid = fork(), .input = input[1], .output = output[0] };
    assert_that(java->pid >= 0);
    if (java->pid == 0) {
        die_with_parent(parent);
        exec_java(input[0], output[1]);
    }
    close(input[0]);
    close(output[1]);
}

static void end(struct java *java)
{
    if (java->pid == 0)
        return;
    kill(java->pid, SIGKILL);
    waitpid(java->pid, NULL, 0);
    close(java->input);
    close(java->output);
    java->pid = 0;
}

int64_t java_kill(struct world *w, struct java *java, const char *name)
{
    world_stop(java->pid);
    int64_t left_ms = world_leaseleft(w, name);
    end(java);
    return left_ms;
}

static void end_shared(void)
{
    if (!in_child)
        end(&shared);
}

void java_begin(void)
{
    if (access(jar(), R_OK) != 0)
        lack("Redisson");
    if (!has_java())
        lack("java");
    signal(SIGPIPE, SIG_IGN);
    start(&shared);
    atexit(end_shared);
}

/* --- its server ----------------------------------------------------------------------------------------- */

static int port_of(struct world *w)
{
    int64_t port = world_counter(w, "tcp_port");
    if (port == 0) {
        port = free_port();
        world_redis(w, "CONFIG SET bind 127.0.0.1");
        world_redis(w, "CONFIG SET port %d", (int)port);
    }
    return (int)port;
}

static struct java *checked(struct java *java, const char *answer)
{
    if (strcmp(answer, "ok") != 0)
        assert_failed(__FILE__, __LINE__, "Redisson does not start: \"%s\"", answer);
    return java;
}

static struct java *opened(struct java *java, struct world *w, int watchdog_ms)
{
    return checked(java, java_does(java, '-', "open redis://127.0.0.1:%d %d", port_of(w), watchdog_ms));
}

struct java *java_join(struct cluster *c, int watchdog_ms)
{
    return checked(&shared,
                   java_does(&shared, '-', "join redis://127.0.0.1:%d,redis://127.0.0.1:%d %d %s %s",
                             cluster_port(c, 0), cluster_port(c, 1), watchdog_ms, CLUSTER_USER, CLUSTER_PASSWORD));
}

struct java *java_open(struct world *w, int watchdog_ms)
{
    return opened(&shared, w, watchdog_ms);
}

void java_quorum(struct java *java, struct quorum *q, int watchdog_ms)
{
    checked(java, java_does(java, '-', "quorum %s %d", quorum_url(q, ""), watchdog_ms));
}

static void end_own(void *java)
{
    end(java);
    free(java);
}

struct java *java_start(struct world *w, int watchdog_ms)
{
    struct java *java = malloc(sizeof *java);
    assert_that(java != NULL);
    start(java);
    world_at_end(w, NULL, java, end_own);
    return opened(java, w, watchdog_ms);
}

/* --- what it is told and says --------------------------------------------------------------------------- */

static void tell(struct java *java, char who, const char *format, va_list args)
{
    char line[256];
    int length = snprintf(line, sizeof line, "%c ", who);
    length += vsnprintf(line + length, sizeof line - (size_t)length, format, args);
    assert_that(length < (int)sizeof line - 1);
    line[length++] = '\n';
    java->answered[(int)who] = false;
    assert_that(write(java->input, line, (size_t)length) == length);
}

void java_tell(struct java *java, char who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell(java, who, format, args);
    va_end(args);
}

/* A line is "WHO ANSWER". */
static void keep_line(struct java *java)
{
    int who = java->line[0];
    assert_that(java->length >= 2 && who > 0 && who < WHO);
    memcpy(java->answers[who], java->line + 2, java->length - 2);
    java->answers[who][java->length - 2] = '\0';
    java->answered[who] = true;
    java->length = 0;
}

/* Read what it says until then, at least what is there already. */
static void listen_to(struct java *java, int64_t until_ms)
{
    char text[1024];
    struct pollfd there = { java->output, POLLIN, 0 };
    int64_t left_ms = until_ms - now_ms();
    if (poll(&there, 1, left_ms > 0 ? (int)left_ms : 0) <= 0)
        return;
    ssize_t length = read(java->output, text, sizeof text);
    if (length <= 0)
        assert_failed(__FILE__, __LINE__, "java ended; LATCHKEY_TEST_JAVA=1 shows its words");
    for (ssize_t i = 0; i < length; i++)
        if (text[i] == '\n')
            keep_line(java);
        else if (java->length < sizeof java->line - 1) /* words of an exception may be long */
            java->line[java->length++] = text[i];
}

const char *java_says(struct java *java, char who, int64_t ms)
{
    for (int64_t until_ms = now_ms() + ms; !java->answered[(int)who] && now_ms() <= until_ms;)
        listen_to(java, until_ms);
    bool answered = java->answered[(int)who];
    java->answered[(int)who] = false;
    return answered ? java->answers[(int)who] : "";
}

const char *java_does(struct java *java, char who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell(java, who, format, args);
    va_end(args);
    return java_says(java, who, ANSWERS_WITHIN_MS);
}
