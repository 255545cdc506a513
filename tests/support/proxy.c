/* SPDX-License-Identifier: MIT */
/*
 * proxy.c - see proxy.h. One loop over poll(): a link is a client's connection and ours to the server, a
 * lane one direction of it, with a queue of chunks that wait to be delivered.
 */
#include "proxy.h"

#include <arpa/inet.h>
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
#define FORGED_MAX 1024

struct counters { /* shared, atomic builtins */
    int64_t connections, bytes[2], faults;
};

struct proxy {
    char socket[96];
    char server[96];
    int port, port_holder; /* of TCP: ours also while nobody listens there */
    struct world *world;
    struct counters *counters;
    pid_t pid;
    int control[2]; /* ours, the child's */
};

enum verb {
    STALL,
    RESUME,
    DELAY,
    DRIBBLE,
    CUT,
    RESET,
    HALF_CLOSE,
    CUT_AFTER,
    ONCE,
    RELEASE,
    FORGE,
    MISPLACE,
    REFUSE,
    REFUSE_SILENTLY,
    SERVE,
};

struct order {
    enum verb verb;
    int which; /* directions or fault */
    int64_t number;
    char text[128];
    size_t length; /* of what is forged; 0: nothing */
    char bytes[FORGED_MAX];
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
    int64_t next_ms; /* of a dribble: when the next byte may go */
};

struct link {
    bool open;
    int client, server;
    struct lane lane[2];
    enum { ANSWER, LOSE_ANSWER, END_AT_ANSWER } reply; /* what happens to the next chunk from the server */
    bool scripts;                                      /* a script was asked for here */
    bool forging;                                      /* nothing that the server says gets through */
    int to_forge;                                      /* answers, as soon as it says something */
};

struct relay { /* state of the child */
    struct proxy *proxy;
    int listener;
    struct link links[LINKS_MAX];
    int filler; /* takes the only place of a listener that is to be silent; -1: none */
    int stalled;
    int dribbles; /* directions */
    int64_t pause_ms;
    int64_t delay_ms;
    int64_t budget[2];      /* -1: none */
    struct order once;      /* number: matching chunks still to come, 0: no fault is due */
    struct order forged;    /* length 0: nothing */
    struct order misplaced; /* number: answers still to come, 0: none is due; length 0: one vanishes */
};

static int proxy_run(struct world *w, void *arg);
static int tcp_socket(int port);

static void give_order(struct proxy *p, const struct order *order)
{
    char done;
    assert_that(send(p->control[0], order, sizeof *order, MSG_NOSIGNAL) == (ssize_t)sizeof *order);
    assert_that(recv(p->control[0], &done, 1, 0) == 1);
}

static void end_proxy(void *arg)
{
    struct proxy *p = arg;
    world_kill(p->world, p->pid);
    close(p->control[0]);
    if (p->port_holder >= 0)
        close(p->port_holder);
    free(p);
}

/* Where a proxy finds a server: the path of a socket, or ":PORT". */
static void address_of(const struct world *w, char *address, size_t size)
{
    if (w->tls_port != 0)
        snprintf(address, size, ":%d", w->tls_port);
    else
        snprintf(address, size, "%s", w->socket);
}

static struct proxy *begin(struct world *w, int port, int port_holder)
{
    struct proxy *p = calloc(1, sizeof *p);
    assert_that(p != NULL);
    p->world = w;
    p->port = port;
    p->port_holder = port_holder;
    p->counters = world_shared(w, sizeof *p->counters);
    snprintf(p->socket, sizeof p->socket, "%s/proxy%d.sock", w->dir, w->child_count);
    address_of(w, p->server, sizeof p->server);
    assert_that(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->control) == 0);
    p->pid = world_fork(w, proxy_run, p);
    close(p->control[1]);
    world_at_end(w, NULL, p, end_proxy);
    return p;
}

struct proxy *proxy_begin_tcp(struct world *w)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int holder = tcp_socket(0);
    assert_that(getsockname(holder, (struct sockaddr *)&address, &length) == 0);
    return begin(w, ntohs(address.sin_port), holder);
}

struct proxy *proxy_begin(struct world *w)
{
    return w->tls_port != 0 ? proxy_begin_tcp(w) : begin(w, 0, -1);
}

void proxy_end(struct proxy *p)
{
    world_close(p->world, p);
}

lk_client_t *proxy_client(struct proxy *p, const char *options)
{
    return world_client_at(p->world, p, proxy_url(p, options));
}

const char *proxy_url(struct proxy *p, const char *options)
{
    static char url[1024];
    char all[WORLD_OPTIONS];
    if (p->world->tls_port != 0)
        snprintf(url, sizeof url, "%s", world_tlsurl(p->world, p->port, options));
    else if (p->port != 0)
        snprintf(url, sizeof url, "redis://127.0.0.1:%d?%s", p->port, world_options(all, options));
    else
        snprintf(url, sizeof url, "unix://%s?%s", p->socket, world_options(all, options));
    return url;
}

int proxy_port(struct proxy *p)
{
    return p->port;
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

void proxy_dribble(struct proxy *p, int directions, int64_t pause_ms)
{
    give_order(p, &(struct order){ .verb = DRIBBLE, .which = pause_ms < 0 ? 0 : directions, .number = pause_ms });
}

void proxy_cut(struct proxy *p)
{
    give_order(p, &(struct order){ .verb = CUT });
}

void proxy_reset(struct proxy *p)
{
    give_order(p, &(struct order){ .verb = RESET });
}

void proxy_half_close(struct proxy *p)
{
    give_order(p, &(struct order){ .verb = HALF_CLOSE });
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

/* Once more, for it is obeyed when what the first one released has been written. */
void proxy_release(struct proxy *p)
{
    give_order(p, &(struct order){ .verb = RELEASE });
    give_order(p, &(struct order){ .verb = RELEASE });
}

void proxy_forge(struct proxy *p, const char *text, const char *bytes, size_t length)
{
    struct order order = { .verb = FORGE, .length = text != NULL ? length : 0 };
    assert_that(order.length <= sizeof order.bytes);
    if (order.length > 0)
        memcpy(order.bytes, bytes, length);
    snprintf(order.text, sizeof order.text, "%s", text != NULL ? text : "");
    give_order(p, &order);
}

void proxy_misplace(struct proxy *p, int k, const char *bytes)
{
    struct order order = { .verb = MISPLACE, .number = k, .length = bytes != NULL ? strlen(bytes) : 0 };
    assert_that(order.length <= sizeof order.bytes);
    if (order.length > 0)
        memcpy(order.bytes, bytes, order.length);
    give_order(p, &order);
}

void proxy_refuse(struct proxy *p, bool refuse)
{
    give_order(p, &(struct order){ .verb = REFUSE, .number = refuse });
}

void proxy_refuse_silently(struct proxy *p, bool refuse)
{
    assert_that(p->port != 0);
    give_order(p, &(struct order){ .verb = REFUSE_SILENTLY, .number = refuse });
}

void proxy_serve(struct proxy *p, const struct world *other)
{
    struct order order = { .verb = SERVE };
    address_of(other, order.text, sizeof order.text);
    give_order(p, &order);
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

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* A socket that has this port, 0: any. Several may, as long as none of them listens. */
static int tcp_socket(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    assert_that(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static int listen_on(const struct proxy *p, int backlog)
{
    struct sockaddr_un address;
    int fd;
    if (p->port != 0) {
        fd = tcp_socket(p->port);
    } else {
        fd = unix_socket(p->socket, &address);
        unlink(p->socket);
        assert_that(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    }
    assert_that(listen(fd, backlog) == 0);
    return fd;
}

static void stop_listening(struct relay *relay)
{
    if (relay->filler >= 0)
        close(relay->filler);
    if (relay->listener >= 0)
        close(relay->listener);
    relay->filler = relay->listener = -1;
}

/* A listener whose queue has one place, which is taken: the kernel drops every further SYN. */
static void listen_to_nobody(struct relay *relay)
{
    struct sockaddr_in address = loopback(relay->proxy->port);
    relay->listener = listen_on(relay->proxy, 0);
    relay->filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_that(connect(relay->filler, (struct sockaddr *)&address, sizeof address) == 0);
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
    if (link->client >= 0)
        close(link->client);
    close(link->server);
    link->open = false;
}

static void link_reset(struct link *link)
{
    struct linger now = { .l_onoff = 1 };
    setsockopt(link->client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    link_close(link);
}

/* A connection with a server, or -1. */
static int connect_to(const char *where)
{
    struct sockaddr_un local;
    struct sockaddr_in address = loopback(where[0] == ':' ? atoi(where + 1) : 0);
    bool tcp = where[0] == ':';
    int fd = tcp ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : unix_socket(where, &local);
    int rc = tcp ? connect(fd, (struct sockaddr *)&address, sizeof address)
                 : connect(fd, (struct sockaddr *)&local, sizeof local);
    if (rc == 0)
        return fd;
    close(fd);
    return -1;
}

/* A link of this client (-1: of nobody) with the server; NULL when there can be none. */
static struct link *link_to_server(struct relay *relay, int client)
{
    int server = connect_to(relay->proxy->server), i;
    for (i = 0; i < LINKS_MAX - 1 && relay->links[i].open; i++)
        continue;
    if (relay->links[i].open || server < 0) {
        if (server >= 0)
            close(server);
        return NULL;
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    struct link *link = &relay->links[i];
    *link = (struct link){ .open = true, .client = client, .server = server };
    link->lane[0] = (struct lane){ .from = client, .to = server, .last = &link->lane[0].first };
    link->lane[1] = (struct lane){ .from = server, .to = client, .last = &link->lane[1].first };
    return link;
}

static void link_open(struct relay *relay)
{
    int client = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    if (link_to_server(relay, client) == NULL)
        close(client);
    else
        count(&relay->proxy->counters->connections, 1);
}

static void lane_add(const struct relay *relay, struct lane *lane, const char *bytes, size_t length)
{
    struct chunk *chunk = malloc(sizeof *chunk + length);
    assert_that(chunk != NULL);
    *chunk = (struct chunk){ .due_ms = now_ms() + relay->delay_ms, .length = length };
    memcpy(chunk->bytes, bytes, length);
    *lane->last = chunk;
    lane->last = &chunk->next;
}

/* What a client sent and then went: it waits for its release, and nobody for an answer. */
static void keep_copy(struct relay *relay, const char *bytes, size_t length)
{
    struct link *link = link_to_server(relay, -1);
    assert_that(link != NULL);
    link->lane[0].held = link->lane[0].ended = true;
    lane_add(relay, &link->lane[0], bytes, length);
}

static bool contains(const char *bytes, size_t length, const char *text)
{
    return text[0] == 0 || memmem(bytes, length, text, strlen(text)) != NULL;
}

/* The fault that is due hits this request. */
static void request_fault(struct relay *relay, struct link *link, const char *bytes, size_t length)
{
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
    case PROXY_COPY_REQUEST:
        keep_copy(relay, bytes, length);
        break;
    case PROXY_DROP_MESSAGE: /* is no request */
        break;
    }
}

/* Is it the turn of the fault that proxy_once() asked for? */
static bool is_due(struct relay *relay, int way, const char *bytes, size_t length)
{
    return relay->once.number > 0 && way == (relay->once.which == PROXY_DROP_MESSAGE) &&
           contains(bytes, length, relay->once.text) && --relay->once.number == 0;
}

/* How many requests these bytes hold; scripts come many at once. */
static int commands_in(const char *bytes, size_t length)
{
    static const char script[] = "\r\nEVAL"; /* or EVALSHA */
    const char *end = bytes + length, *next = bytes;
    int count = 0;
    while ((next = memmem(next, (size_t)(end - next), script, sizeof script - 1)) != NULL) {
        next += sizeof script - 1;
        count++;
    }
    return count > 0 ? count : 1;
}

/* What comes in place of a reply; the link may be closed. */
static void reply_fault(struct relay *relay, struct link *link)
{
    for (; link->to_forge > 0; link->to_forge--)
        lane_add(relay, &link->lane[1], relay->forged.bytes, relay->forged.length);
    if (link->reply == END_AT_ANSWER)
        link_close(link);
    link->reply = ANSWER;
}

/* Where the first answer in these bytes ends; NULL: not in them. */
static const char *answer_end(const char *bytes, const char *end)
{
    const char *line = memchr(bytes, '\n', (size_t)(end - bytes));
    if (line == NULL)
        return NULL;
    long number = strtol(bytes + 1, NULL, 10);
    const char *at = line + 1;
    if (*bytes == '$' && number >= 0)
        return end - at >= number + 2 ? at + number + 2 : NULL;
    for (long i = 0; *bytes == '*' && i < number && at != NULL; i++)
        at = at < end ? answer_end(at, end) : NULL;
    return at;
}

/* An answer more comes before the one that is due, or it does not come at all; the others go their way. */
static void add_misplaced(struct relay *relay, struct lane *lane, const char *bytes, size_t length)
{
    const char *end = bytes + length;
    for (const char *next; bytes < end; bytes = next) {
        next = answer_end(bytes, end);
        if (next == NULL)
            next = end;
        bool due = relay->misplaced.number > 0 && --relay->misplaced.number == 0;
        if (due)
            count(&relay->proxy->counters->faults, 1);
        if (due && relay->misplaced.length > 0)
            lane_add(relay, lane, relay->misplaced.bytes, relay->misplaced.length);
        if (!due || relay->misplaced.length > 0)
            lane_add(relay, lane, bytes, (size_t)(next - bytes));
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
    count(&relay->proxy->counters->bytes[way], length);
    if (is_due(relay, way, bytes, (size_t)length)) {
        count(&relay->proxy->counters->faults, 1);
        if (way == 1)
            return;
        request_fault(relay, link, bytes, (size_t)length);
        if (!link->open)
            return;
    }
    if (way == 0 && relay->forged.length > 0 &&
        (link->forging || contains(bytes, (size_t)length, relay->forged.text))) {
        link->forging = true;
        link->to_forge += commands_in(bytes, (size_t)length);
    }
    link->scripts |= way == 0 && contains(bytes, (size_t)length, "\r\nEVALSHA\r\n");
    if (way == 1 && (link->forging || link->reply != ANSWER))
        reply_fault(relay, link);
    else if (way == 1 && link->scripts && relay->misplaced.number > 0)
        add_misplaced(relay, lane, bytes, (size_t)length);
    else
        lane_add(relay, lane, bytes, (size_t)length);
}

static int64_t due_ms(const struct lane *lane)
{
    return lane->first->due_ms > lane->next_ms ? lane->first->due_ms : lane->next_ms;
}

static bool may_deliver(const struct relay *relay, const struct lane *lane, int way)
{
    return lane->first != NULL && !lane->held && (relay->stalled & (way + 1)) == 0 && due_ms(lane) <= now_ms();
}

/* Deliver what may be delivered. The link may be closed afterwards. */
static void lane_write(struct relay *relay, struct link *link, int way)
{
    struct lane *lane = &link->lane[way];
    while (link->open && may_deliver(relay, lane, way)) {
        struct chunk *chunk = lane->first;
        size_t want = chunk->length - chunk->sent;
        if ((relay->dribbles & (way + 1)) != 0) {
            want = 1;
            lane->next_ms = now_ms() + relay->pause_ms;
        }
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
            continue;
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

static void each_link(struct relay *relay, void (*act)(struct link *link))
{
    for (int i = 0; i < LINKS_MAX; i++)
        if (relay->links[i].open)
            act(&relay->links[i]);
}

static void link_half_close(struct link *link)
{
    shutdown(link->client, SHUT_WR);
}

/* Whom the client of this link was talking to it cannot know: let it begin anew. */
static void link_undeceive(struct link *link)
{
    if (link->forging)
        link_close(link);
}

static void link_release(struct link *link)
{
    link->lane[0].held = false;
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
    case DRIBBLE:
        relay->dribbles = order->which;
        relay->pause_ms = order->number;
        break;
    case CUT:
        each_link(relay, link_close);
        break;
    case RESET:
        each_link(relay, link_reset);
        break;
    case HALF_CLOSE:
        each_link(relay, link_half_close);
        break;
    case CUT_AFTER:
        relay->budget[order->which - 1] = order->number;
        break;
    case ONCE:
        relay->once = *order;
        break;
    case RELEASE:
        each_link(relay, link_release);
        break;
    case FORGE:
        each_link(relay, link_undeceive);
        relay->forged = *order;
        break;
    case MISPLACE:
        relay->misplaced = *order;
        break;
    case SERVE:
        snprintf(relay->proxy->server, sizeof relay->proxy->server, "%s", order->text);
        break;
    case REFUSE:
    case REFUSE_SILENTLY:
        stop_listening(relay);
        if (order->number == 0)
            relay->listener = listen_on(relay->proxy, 128);
        else if (order->verb == REFUSE_SILENTLY)
            listen_to_nobody(relay);
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
            int64_t left_ms = chunk != NULL ? due_ms(&relay->links[i].lane[way]) - now : 0;
            if (left_ms > 0 && (wait_ms < 0 || left_ms < wait_ms))
                wait_ms = left_ms;
        }
    return (int)wait_ms;
}

/* What to wait for: control, listener, then both ends of each link. */
static void prepare(struct relay *relay, struct pollfd *fds)
{
    fds[0] = (struct pollfd){ .fd = relay->proxy->control[1], .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = relay->filler < 0 ? relay->listener : -1, .events = POLLIN };
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
    relay.filler = -1;
    relay.listener = listen_on(relay.proxy, 128);
    close(relay.proxy->control[0]);
    world_ready(w);
    for (;;) {
        int wait_ms = next_due(&relay); /* first: what becomes due meanwhile is prepared for */
        prepare(&relay, fds);
        if (poll(fds, 2 + 2 * LINKS_MAX, wait_ms) < 0)
            continue;
        serve(&relay, fds);
        if (fds[0].revents != 0 && !take_order(&relay))
            return 0;
    }
}
