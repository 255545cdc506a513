/* SPDX-License-Identifier: MIT */
/*
 * servers.c - see servers.h
 *
 * Six processes and their files. A program of yours has none of this: it is given a URL.
 */
#include "servers.h"

#include "../common.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MASTER, REPLICAS = 2, SENTINELS = 3, SENTINEL = 1 + REPLICAS, ALL = SENTINEL + SENTINELS, PATIENCE = 300 };

static struct server {
    pid_t pid;
    int port;
} servers[ALL];

static char folder[256]; /* in $TMPDIR */

static void remove_file(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* Whatever is there: a replica keeps what it was sent, and who is killed may just have been writing. */
static void remove_folder(void)
{
    DIR *files = opendir(folder);
    if (files == NULL)
        return;
    for (const struct dirent *file; (file = readdir(files)) != NULL;)
        remove_file(file->d_name);
    closedir(files);
    rmdir(folder);
}

void servers_end(void)
{
    for (int i = 0; i < ALL; i++) {
        if (servers[i].pid > 0) {
            kill(servers[i].pid, SIGKILL);
            waitpid(servers[i].pid, NULL, 0);
        }
        servers[i].pid = 0;
    }
    remove_folder();
}

static void give_up(const char *what)
{
    fprintf(stderr, "failover: %s\n", what);
    servers_end();
    exit(1);
}

/* All at once, so that they differ. */
static void choose_ports(void)
{
    int sockets[ALL];
    for (int i = 0; i < ALL; i++) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof address;
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(sockets[i], (struct sockaddr *)&address, size) != 0 ||
            getsockname(sockets[i], (struct sockaddr *)&address, &size) != 0)
            give_up("no free port");
        servers[i].port = ntohs(address.sin_port);
    }
    for (int i = 0; i < ALL; i++)
        close(sockets[i]);
}

static void path_of(int i, char *path, size_t size)
{
    snprintf(path, size, "%s/%d.conf", folder, i);
}

/*
 * They would find replicas and each other by themselves, but slowly. The first one is the first to act, so that they do not get
 * in each other's way.
 */
static void write_sentinel(FILE *file, int i)
{
    fprintf(file, "sentinel myid %040d\nsentinel monitor samples 127.0.0.1 %d 2\n", i, servers[MASTER].port);
    fprintf(file, "sentinel down-after-milliseconds samples %d\n", i == SENTINEL ? 600 : 500);
    fprintf(file, "sentinel failover-timeout samples 4000\nsentinel parallel-syncs samples 2\n");
    for (int other = 1; other < ALL; other++)
        if (other < SENTINEL)
            fprintf(file, "sentinel known-replica samples 127.0.0.1 %d\n", servers[other].port);
        else if (other != i)
            fprintf(file, "sentinel known-sentinel samples 127.0.0.1 %d %040d\n", servers[other].port, other);
}

static void write_config(int i)
{
    char path[320];
    path_of(i, path, sizeof path);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        give_up("cannot write to its folder");
    fprintf(file, "port %d\nbind 127.0.0.1\ndir %s\nlogfile /dev/null\n", servers[i].port, folder);
    if (i < SENTINEL)
        fprintf(file, "save \"\"\nappendonly no\nmaxmemory-policy noeviction\nrepl-diskless-sync-delay 0\n");
    if (i > MASTER && i < SENTINEL)
        fprintf(file, "replicaof 127.0.0.1 %d\n", servers[MASTER].port);
    if (i >= SENTINEL)
        write_sentinel(file, i);
    fclose(file);
}

static void start(int i)
{
    char path[320];
    write_config(i);
    path_of(i, path, sizeof path);
    servers[i].pid = child_start();
    if (servers[i].pid != 0)
        return;
    dup2(open("/dev/null", O_RDWR), STDOUT_FILENO);
    execlp("redis-server", "redis-server", path, i >= SENTINEL ? "--sentinel" : (char *)NULL, (char *)NULL);
    _exit(127);
}

/* Does the answer of one of them to this command say that? */
static bool says(int i, const char *command, const char *words)
{
    char line[160], text[4096];
    snprintf(line, sizeof line, "redis-cli -p %d %s 2>/dev/null", servers[i].port, command);
    FILE *answer = popen(line, "r");
    size_t length = answer != NULL ? fread(text, 1, sizeof text - 1, answer) : 0;
    text[length] = '\0';
    if (answer != NULL)
        pclose(answer);
    return strstr(text, words) != NULL;
}

static void await(int i, const char *command, const char *words)
{
    for (int tries = 0; !says(i, command, words); tries++) {
        if (tries == PATIENCE)
            give_up("the servers do not find together");
        pause_ms(100);
    }
}

void servers_start(void)
{
    if (system("redis-server --version >/dev/null 2>&1 && redis-cli --version >/dev/null 2>&1") != 0) {
        fprintf(stderr, "failover: there is no redis-server, or no redis-cli\n");
        exit(77);
    }
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/latchkey-failover-XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL)
        give_up("no folder can be made in $TMPDIR or /tmp");
    choose_ports();
    for (int i = 0; i < SENTINEL; i++)
        start(i);
    await(MASTER, "info replication", "slave1:");
    for (int i = SENTINEL; i < ALL; i++)
        start(i);
    for (int i = SENTINEL; i < ALL; i++)
        await(i, "sentinel ckquorum samples", "OK 3");
    for (int i = SENTINEL; i < ALL; i++)
        await(i, "info sentinel", "slaves=2,sentinels=3");
}

const char *servers_url(void)
{
    static char url[160];
    snprintf(url, sizeof url,
             "redis-sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/samples?lease=2s&clock_skew=50ms",
             servers[SENTINEL].port, servers[SENTINEL + 1].port, servers[SENTINEL + 2].port);
    return url;
}

/* They stand still, so they do not connect again before they go on; by then the master is dead. */
void servers_cutreplicas(void)
{
    for (int i = 1; i <= REPLICAS; i++)
        kill(servers[i].pid, SIGSTOP);
    says(MASTER, "client kill type replica", "2");
}

void servers_killmaster(void)
{
    kill(servers[MASTER].pid, SIGKILL);
    for (int i = 1; i <= REPLICAS; i++)
        kill(servers[i].pid, SIGCONT);
}
