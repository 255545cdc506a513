/* SPDX-License-Identifier: MIT */
/*
 * proxy.c - see proxy.h. One loop over poll(): a link is a client's connection and ours to the server, a
 * lane one direction of it, with a queue of chunks that wait to be delivered.
 */
#include "proxy.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LINKS_MAX 256
#define CHUNK_MAX 65536

struct counters { /* shared, atomic builtins */
    int64_t connections, bytes[2], faults;
};

struct proxy {
    char socket[96];
    char server[96];
    struct world *world;
    struct counters *counters;
    pid_t pid;
    int control[2]; /* ours, the child's */
};

enum verb { STALL, RESUME, DELAY, CUT, CUT_AFTER, ONCE, RELEASE, REFUSE };

struct order {
    enum verb verb;
    int which; /* directions or fault */
    int64_t number;
    char text[128];
};

struct chunk {
    struct chunk *next;
    int64_t due_ms;
    size_t length, sent;
    char bytes[];
};

struct lane {
    int from, to;
    struct chunk *first, **last;
    bool ended; /* `from` will bring no more */
    bool held;
};

struct link {
    bool open;
    int client, server;
    struct lane lane[2];
    enum { ANSWER, LOSE_ANSWER, END_AT_ANSWER } reply; /* what happens to the next chunk from the server */
};

struct relay { /* state of the child */
    struct proxy *proxy;
    int listener;
    struct link links[LINKS_MAX];
    int stalled;
    int64_t delay_ms;
    int64_t budget[2]; /* -1: none */
    struct order once; /* number: matching chunks still to come, 0: no fault is due */
};

static int proxy_run(struct world *w, void *arg);

static void give_order(struct proxy *p, const struct order *order)
{
    char done;
    assert_that(send(p->control[0], order, sizeof *order, MSG_NOSIGNAL) == (ssize_t)sizeof *order);
    assert_that(recv(p->control[0], &done, 1, 0) == 1);
}

struct proxy *proxy_begin(struct world *w)
{
    struct proxy *p = calloc(1, sizeof *p);
    assert_that(p != NULL);
    p->world = w;
    p->counters = world_shared(w, sizeof *p->counters);
    snprintf(p->socket, sizeof p->socket, "%s/proxy.sock", w->dir);
    snprintf(p->server, sizeof p->server, "%s", w->socket);
    assert_that(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->control) == 0);
    p->pid = world_fork(w, proxy_run, p);
    close(p->control[1]);
    return p;
}

void proxy_end(struct proxy *p)
{
    world_kill(p->world, p->pid);
    close(p->control[0]);
    free(p);
}

const char *proxy_url(struct proxy *p, const char *options)
{
    static char url[512];
    snprintf(url, sizeof url, "unix://%s%s%s", p->socket, options[0] != 0 ? "?" : "", options);
    return url;
}

void proxy_stall(struct proxy *p, int directions)
{
    give_order(p, &(struct order){ .verb = STALL, .which = directions });
}

void proxy_resume(struct proxy *p)
{
    give_order(p, &(struct order){ .verb = RESUME });
}

void proxy_delay(struct proxy *p, int64_t ms)
{
    give_order(p, &(struct order){ .verb = DELAY, .number = ms });
}

void proxy_cut(struct proxy *p)
{
    give_order(p, &(struct order){ .verb = CUT });
}

void proxy_cut_after(struct proxy *p, int direction, int64_t bytes)
{
    give_order(p, &(struct order){ .verb = CUT_AFTER, .which = direction, .number = bytes });
}

void proxy_once(struct proxy *p, enum proxy_fault fault, int k, const char *text)
{
    struct order order = { .verb = ONCE, .which = (int)fault, .number = k };
    snprintf(order.text, sizeof order.text, "%s", text != NULL ? text : "");
    give_order(p, &order);
}

void proxy_release(struct proxy *p)
{
    give_order(p, &(struct order){ .verb = RELEASE });
}

void proxy_refuse(struct proxy *p, bool refuse)
{
    give_order(p, &(struct order){ .verb = REFUSE, .number = refuse });
}

int64_t proxy_connections(struct proxy *p)
{
    return __atomic_load_n(&p->counters->connections, __ATOMIC_ACQUIRE);
}

int64_t proxy_bytes(struct proxy *p, int direction)
{
    return __atomic_load_n(&p->counters->bytes[direction - 1], __ATOMIC_ACQUIRE);
}

int64_t proxy_faults(struct proxy *p)
{
    return __atomic_load_n(&p->counters->faults, __ATOMIC_ACQUIRE);
}

/* --- the child ---------------------------------------------------------------------------------------- */

static int unix_socket(const char *path, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int listen_on(const char *path)
{
    struct sockaddr_un address;
    int fd = unix_socket(path, &address);
    unlink(path);
    assert_that(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 128) == 0);
    return fd;
}

static void count(int64_t *counter, int64_t n)
{
    __atomic_add_fetch(counter, n, __ATOMIC_ACQ_REL);
}

static void lane_clear(struct lane *lane)
{
    for (struct chunk *chunk = lane->first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    lane->first = NULL;
    lane->last = &lane->first;
}

static void link_close(struct link *link)
{
    lane_clear(&link->lane[0]);
    lane_clear(&link->lane[1]);
    close(link->client);
    close(link->server);
    link->open = false;
}

static void link_open(struct relay *relay)
{
    struct sockaddr_un address;
    int client = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), i;
    int server = unix_socket(relay->proxy->server, &address);
    if (client < 0)
        return;
    for (i = 0; i < LINKS_MAX - 1 && relay->links[i].open; i++)
        continue;
    if (relay->links[i].open || connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        close(client);
        close(server);
        return;
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    struct link *link = &relay->links[i];
    *link = (struct link){ .open = true, .client = client, .server = server };
    link->lane[0] = (struct lane){ .from = client, .to = server, .last = &link->lane[0].first };
    link->lane[1] = (struct lane){ .from = server, .to = client, .last = &link->lane[1].first };
    count(&relay->proxy->counters->connections, 1);
}

static bool contains(const char *bytes, size_t length, const char *text)
{
    return text[0] == 0 || memmem(bytes, length, text, strlen(text)) != NULL;
}

/* The fault that is due hits this request. */
static void request_fault(struct relay *relay, struct link *link)
{
    count(&relay->proxy->counters->faults, 1);
    switch ((enum proxy_fault)relay->once.which) {
    case PROXY_CUT_REQUEST:
        link_close(link);
        break;
    case PROXY_CUT_REPLY:
        link->reply = END_AT_ANSWER;
        break;
    case PROXY_DROP_REPLY:
        link->reply = LOSE_ANSWER;
        break;
    case PROXY_HOLD_REQUEST:
        link->lane[0].held = true;
        break;
    case PROXY_PARK_REQUEST:
        link->lane[0].held = true;
        link->lane[0].ended = true;
        close(link->client);
        link->client = link->lane[0].from = link->lane[1].to = -1;
        break;
    }
}

/* Take in what a lane's source has. The link may be closed afterwards. */
static void lane_read(struct relay *relay, struct link *link, int way)
{
    static char bytes[CHUNK_MAX];
    struct lane *lane = &link->lane[way];
    ssize_t length = read(lane->from, bytes, sizeof bytes);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        lane->ended = true;
        return;
    }
    if (way == 0 && relay->once.number > 0 && contains(bytes, (size_t)length, relay->once.text) &&
        --relay->once.number == 0)
        request_fault(relay, link);
    count(&relay->proxy->counters->bytes[way], length);
    if (!link->open)
        return;
    if (way == 1 && link->reply != ANSWER) {
        if (link->reply == END_AT_ANSWER)
            link_close(link);
        link->reply = ANSWER;
        return;
    }
    struct chunk *chunk = malloc(sizeof *chunk + (size_t)length);
    assert_that(chunk != NULL);
    *chunk = (struct chunk){ .due_ms = now_ms() + relay->delay_ms, .length = (size_t)length };
    memcpy(chunk->bytes, bytes, (size_t)length);
    *lane->last = chunk;
    lane->last = &chunk->next;
}

static bool may_deliver(const struct relay *relay, const struct lane *lane, int way)
{
    return lane->first != NULL && !lane->held && (relay->stalled & (way + 1)) == 0 && lane->first->due_ms <= now_ms();
}

/* Deliver what may be delivered. The link may be closed afterwards. */
static void lane_write(struct relay *relay, struct link *link, int way)
{
    struct lane *lane = &link->lane[way];
    while (link->open && may_deliver(relay, lane, way)) {
        struct chunk *chunk = lane->first;
        size_t want = chunk->length - chunk->sent;
        bool cut = relay->budget[way] >= 0 && (int64_t)want > relay->budget[way];
        if (cut)
            want = (size_t)relay->budget[way];
        ssize_t sent = want > 0 ? send(lane->to, chunk->bytes + chunk->sent, want, MSG_NOSIGNAL) : 0;
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent < 0 && way == 1 && link->lane[0].first != NULL)
            sent = (ssize_t)want; /* the client is gone, but what it sent is still to arrive */
        if (sent < 0 || (cut && sent == (ssize_t)want)) {
            if (cut)
                relay->budget[way] = -1;
            link_close(link);
            return;
        }
        chunk->sent += (size_t)sent;
        if (relay->budget[way] >= 0)
            relay->budget[way] -= sent;
        if (chunk->sent < chunk->length)
            return;
        lane->first = chunk->next;
        if (lane->first == NULL)
            lane->last = &lane->first;
        free(chunk);
    }
}

/* A side that ended takes the link with it, once what it sent was delivered. */
static void link_finish(struct relay *relay, struct link *link)
{
    for (int way = 0; way < 2 && link->open; way++)
        if (link->lane[way].ended && link->lane[way].first == NULL && (relay->stalled & (way + 1)) == 0)
            link_close(link);
}

static void obey(struct relay *relay, const struct order *order)
{
    switch (order->verb) {
    case STALL:
        relay->stalled |= order->which;
        break;
    case RESUME:
        relay->stalled = 0;
        break;
    case DELAY:
        relay->delay_ms = order->number;
        break;
    case CUT:
        for (int i = 0; i < LINKS_MAX; i++)
            if (relay->links[i].open)
                link_close(&relay->links[i]);
        break;
    case CUT_AFTER:
        relay->budget[order->which - 1] = order->number;
        break;
    case ONCE:
        relay->once = *order;
        break;
    case RELEASE:
        for (int i = 0; i < LINKS_MAX; i++)
            relay->links[i].lane[0].held = false;
        break;
    case REFUSE:
        if (order->number != 0 && relay->listener >= 0) {
            close(relay->listener);
            relay->listener = -1;
        } else if (order->number == 0 && relay->listener < 0) {
            relay->listener = listen_on(relay->proxy->socket);
        }
        break;
    }
}

/* Milliseconds until the first delayed chunk is due; -1: there is none. */
static int next_due(const struct relay *relay)
{
    int64_t now = now_ms(), wait_ms = -1;
    for (int i = 0; i < LINKS_MAX; i++)
        for (int way = 0; way < 2 && relay->links[i].open; way++) {
            const struct chunk *chunk = relay->links[i].lane[way].first;
            if (chunk != NULL && chunk->due_ms > now && (wait_ms < 0 || chunk->due_ms - now < wait_ms))
                wait_ms = chunk->due_ms - now;
        }
    return (int)wait_ms;
}

/* What to wait for: control, listener, then both ends of each link. */
static void prepare(struct relay *relay, struct pollfd *fds)
{
    fds[0] = (struct pollfd){ .fd = relay->proxy->control[1], .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = relay->listener, .events = POLLIN };
    for (int i = 0; i < 2 * LINKS_MAX; i++) {
        struct link *link = &relay->links[i / 2];
        struct lane *in = &link->lane[i % 2], *out = &link->lane[1 - i % 2];
        bool writes = link->open && may_deliver(relay, out, 1 - i % 2);
        fds[2 + i].fd = link->open && (!in->ended || writes) ? in->from : -1;
        fds[2 + i].events = (short)((in->ended ? 0 : POLLIN) | (writes ? POLLOUT : 0));
        fds[2 + i].revents = 0;
    }
}

/* Take an order and say that it is in force. False: the test is gone. */
static bool take_order(struct relay *relay)
{
    struct order order;
    if (recv(relay->proxy->control[1], &order, sizeof order, 0) != (ssize_t)sizeof order)
        return false;
    obey(relay, &order);
    return send(relay->proxy->control[1], "", 1, MSG_NOSIGNAL) == 1;
}

static void serve(struct relay *relay, const struct pollfd *fds)
{
    for (int i = 0; i < 2 * LINKS_MAX; i++)
        if (relay->links[i / 2].open && (fds[2 + i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            lane_read(relay, &relay->links[i / 2], i % 2);
    if ((fds[1].revents & POLLIN) != 0)
        link_open(relay);
    for (int i = 0; i < LINKS_MAX; i++) {
        lane_write(relay, &relay->links[i], 0);
        lane_write(relay, &relay->links[i], 1);
        if (relay->links[i].open)
            link_finish(relay, &relay->links[i]);
    }
}

static int proxy_run(struct world *w, void *arg)
{
    static struct relay relay;
    static struct pollfd fds[2 + 2 * LINKS_MAX];
    relay.proxy = arg;
    relay.budget[0] = relay.budget[1] = -1;
    relay.listener = listen_on(relay.proxy->socket);
    close(relay.proxy->control[0]);
    world_ready(w);
    for (;;) {
        prepare(&relay, fds);
        if (poll(fds, 2 + 2 * LINKS_MAX, next_due(&relay)) < 0)
            continue;
        serve(&relay, fds);
        if (fds[0].revents != 0 && !take_order(&relay))
            return 0;
    }
}
