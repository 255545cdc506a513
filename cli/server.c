/* SPDX-License-Identifier: MIT */
/*
 * server.c - `latchkey server`: a Redis or Valkey that is gone with its folder when the command ends
 */
#include "command.h"
#include "grant.h"
#include "words.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_MS = 10000, ASK_MS = 20, FOLDER_MAX = 512, URL_MAX = 3 * FOLDER_MAX + 32 };

static const int endings[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD };

struct server {
    pid_t pid; /* 0: it ended */
    char folder[FOLDER_MAX], url[URL_MAX];
};

/* By its socket, where nobody else can be. What else a URL would take for its own is said as %XX. */
static void write_socket_url(const struct server *server, char url[URL_MAX])
{
    char *end = stpcpy(url, "unix://");
    for (const char *c = server->folder; *c != 0; c++)
        if (isalnum((unsigned char)*c) || strchr("/._-", *c) != NULL)
            *end++ = *c;
        else
            end += sprintf(end, "%%%02X", (unsigned char)*c);
    strcpy(end, "/redis.sock");
}

static bool make_folder(struct server *server)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(server->folder, sizeof server->folder, "%s/latchkey-XXXXXX", tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (mkdtemp(server->folder) != NULL)
        return true;
    complain("server: %s: %s", server->folder, strerror(errno));
    return false;
}

/* What the server left in its folder: its socket and its log. */
static void remove_folder(const struct server *server)
{
    DIR *folder = opendir(server->folder);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder != NULL)
        closedir(folder);
    rmdir(server->folder);
}

/* In the child. The server ends with latchkey, whatever becomes of that; Ctrl-C is for latchkey. */
static _Noreturn void become_server(const struct server *server, int port, pid_t parent)
{
    char number[8], socket[600], log[600];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(0);
    snprintf(number, sizeof number, "%d", port);
    snprintf(socket, sizeof socket, "%s/redis.sock", server->folder);
    snprintf(log, sizeof log, "%s/log", server->folder);
    const char *const words[] = { "latchkey-server", "--port", number, "--bind", "127.0.0.1", "--unixsocket", socket,
                                  "--unixsocketperm", "700", "--dir", server->folder, "--save", "", "--appendonly", "no",
                                  "--maxmemory-policy", "noeviction", "--daemonize", "no", "--logfile", log, NULL };
    execvp("redis-server", (char *const *)words);
    execvp("valkey-server", (char *const *)words);
    complain("server: neither redis-server nor valkey-server is in the PATH");
    _exit(EXIT_NOT_FOUND);
}

/* 0 when it answers: it and no other one, which may have the port already. */
static int await_ready(struct server *server)
{
    lk_client_t *client;
    char url[URL_MAX];
    write_socket_url(server, url);
    lk_addlog(NULL, LK_LOG_WARNING, NULL, NULL); /* the first attempts come too early */
    for (int64_t until = boot_ms() + READY_MS; boot_ms() < until; poll(NULL, 0, ASK_MS)) {
        if (waitpid(server->pid, NULL, WNOHANG) != 0) {
            server->pid = 0;
            return -1;
        }
        if (lk_client_open(&client, url) == 0)
            return lk_client_close(client);
    }
    return -1;
}

static void explain(const struct server *server)
{
    char path[600], line[512];
    snprintf(path, sizeof path, "%s/log", server->folder);
    FILE *log = fopen(path, "r");
    complain("server: it does not start");
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        fputs(line, stderr);
    if (log != NULL)
        fclose(log);
}

static int say_where(const struct server *server, const struct settings *s)
{
    if (s->json) {
        json_t *object = json_pack("{s:s, s:i}", "url", server->url, "pid", (int)server->pid);
        json_dumpf(object, stdout, JSON_COMPACT);
        json_decref(object);
        putchar('\n');
    } else {
        puts(server->url);
    }
    int code = flush_output();
    if (code == 0 && !s->quiet && !s->json)
        fprintf(stderr, "In other terminals: export LATCHKEY_URL='%s'\nCtrl-C ends it.\n", server->url);
    return code;
}

/* Until a signal comes, or the server ends by itself. */
static int stay(struct server *server, int signals)
{
    struct signalfd_siginfo info;
    struct pollfd one = { signals, POLLIN, 0 };
    for (;;) {
        if (poll(&one, 1, -1) < 0 || read(signals, &info, sizeof info) != sizeof info)
            continue;
        if (info.ssi_signo != SIGCHLD)
            return EXIT_OK;
        if (waitpid(server->pid, NULL, WNOHANG) != server->pid)
            continue;
        complain("server: it ended");
        server->pid = 0;
        return EXIT_UNREACHABLE;
    }
}

static void end_server(struct server *server)
{
    if (server->pid > 0) {
        kill(server->pid, SIGTERM);
        waitpid(server->pid, NULL, 0);
    }
    remove_folder(server);
}

int run_server(struct settings *s, int count, char **operands)
{
    struct server server = { 0 };
    pid_t me = getpid();
    (void)count, (void)operands;
    signal(SIGCHLD, SIG_DFL);
    int signals = hear_signals(endings, sizeof endings / sizeof endings[0]);
    if (signals < 0 || !make_folder(&server))
        return EXIT_INTERNAL;
    if (s->port != 0)
        snprintf(server.url, sizeof server.url, "redis://127.0.0.1:%d", s->port);
    else
        write_socket_url(&server, server.url);

    server.pid = fork();
    if (server.pid == 0)
        become_server(&server, s->port, me);
    int code = EXIT_UNREACHABLE;
    if (server.pid > 0 && await_ready(&server) == 0) {
        code = say_where(&server, s);
        if (code == 0)
            code = stay(&server, signals);
    } else {
        explain(&server);
    }
    end_server(&server);
    return code;
}
