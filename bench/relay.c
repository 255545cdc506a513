/* SPDX-License-Identifier: MIT */
#include "relay.h"

#include "measure.h"
#include "wire.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENDS_MAX = 64, CHUNK = 1 << 16 };

struct relay {
    char path[100];
    pid_t pid;
    _Atomic int64_t delay_ns; /* read by the process */
};

/* Bytes on their way, in order of `due_ns`. */
struct chunk {
    struct chunk *next;
    int64_t due_ns;
    size_t length;
    char bytes[];
};

/* One end of a connection; what comes in here goes out at `other`. */
struct end {
    int fd, other;
    struct chunk *first, **last;
};

struct ends {
    struct end end[ENDS_MAX];
    int count;
};

static void add_end(struct ends *ends, int fd, int other)
{
    if (ends->count == ENDS_MAX)
        fail("too many connections for a relay");
    struct end *end = &ends->end[ends->count++];
    *end = (struct end){ .fd = fd, .other = other };
    end->last = &end->first;
}

static void join_ends(struct ends *ends, int listening, const char *address)
{
    int near = accept(listening, NULL, NULL), far = wire_fd(wire_open(address));
    add_end(ends, near, far);
    add_end(ends, far, near);
}

/* Take what came in. One that hung up is asked no more, and its other end learns of it at once. */
static void take_in(struct end *end, int64_t delay_ns)
{
    struct chunk *chunk = malloc(sizeof *chunk + CHUNK);
    ssize_t n = chunk == NULL ? -1 : recv(end->fd, chunk->bytes, CHUNK, 0);
    if (n <= 0) {
        free(chunk);
        shutdown(end->other, SHUT_RDWR);
        end->fd = -1;
        return;
    }
    chunk = realloc(chunk, sizeof *chunk + (size_t)n);
    chunk->next = NULL;
    chunk->due_ns = now_ns() + delay_ns;
    chunk->length = (size_t)n;
    *end->last = chunk;
    end->last = &chunk->next;
}

static void pass_on(struct end *end, int64_t now)
{
    struct chunk *chunk;
    while ((chunk = end->first) != NULL && chunk->due_ns <= now) {
        for (size_t sent = 0; sent < chunk->length;) {
            ssize_t n = send(end->other, chunk->bytes + sent, chunk->length - sent, MSG_NOSIGNAL);
            if (n <= 0)
                break;
            sent += (size_t)n;
        }
        end->first = chunk->next;
        if (end->first == NULL)
            end->last = &end->first;
        free(chunk);
    }
}

/* Until the first chunk is due, ms rounded up; -1: none is on its way. */
static int patience(const struct ends *ends, int64_t now)
{
    int64_t first = INT64_MAX;
    for (int i = 0; i < ends->count; i++)
        if (ends->end[i].first != NULL && ends->end[i].first->due_ns < first)
            first = ends->end[i].first->due_ns;
    return first == INT64_MAX ? -1 : first <= now ? 0 : (int)((first - now) / 1000000 + 1);
}

static void run(struct relay *relay, int listening, const char *address)
{
    static struct ends ends;
    struct pollfd ready[ENDS_MAX + 1];
    while (true) {
        int count = ends.count;
        for (int i = 0; i < count; i++)
            ready[i] = (struct pollfd){ .fd = ends.end[i].fd, .events = POLLIN };
        ready[count] = (struct pollfd){ .fd = listening, .events = POLLIN };
        poll(ready, (nfds_t)count + 1, patience(&ends, now_ns()));
        for (int i = 0; i < count; i++)
            if (ready[i].revents != 0)
                take_in(&ends.end[i], atomic_load(&relay->delay_ns));
        if (ready[count].revents != 0)
            join_ends(&ends, listening, address);
        int64_t now = now_ns();
        for (int i = 0; i < ends.count; i++)
            pass_on(&ends.end[i], now);
    }
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, ENDS_MAX) != 0)
        fail(path);
    return fd;
}

struct relay *relay_begin(const char *address)
{
    struct relay *relay = mmap(NULL, sizeof *relay, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(relay->path, sizeof relay->path, "/tmp/bench-relay-%d.sock", (int)getpid());
    int listening = listen_at(relay->path);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(relay, listening, address);
    }
    if (pid < 0)
        fail("fork");
    relay->pid = pid; /* by the parent alone: both see this memory */
    close(listening);
    return relay;
}

const char *relay_path(const struct relay *relay)
{
    return relay->path;
}

void relay_delay(struct relay *relay, int64_t ms)
{
    atomic_store(&relay->delay_ns, ms * 1000000);
}

void relay_end(struct relay *relay)
{
    kill(relay->pid, SIGKILL);
    waitpid(relay->pid, NULL, 0);
    unlink(relay->path);
    munmap(relay, sizeof *relay);
}
