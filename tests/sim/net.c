/* SPDX-License-Identifier: MIT */
/*
 * net.c - connections: streams of bytes that take their time, keep their order, and can be cut anywhere
 */
#include "sim.h"
#include "diary.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define RETRY_NS NS_PER_S /* of a connection that a full queue did not take */

/* --- segments ----------------------------------------------------------------------------------------------------- */

static struct segment *new_segment(int kind, const void *bytes, size_t length)
{
    struct segment *segment = sim_alloc(sizeof *segment + length);
    *segment = (struct segment){ .length = (uint32_t)length, .kind = (uint8_t)kind };
    if (length > 0)
        memcpy(segment->bytes, bytes, length);
    return segment;
}

static void free_segment(struct segment *segment)
{
    sim_free(segment, sizeof *segment + segment->length);
}

static void free_segments(struct segment **first, struct segment ***last)
{
    for (struct segment *next, *segment = *first; segment != NULL; segment = next) {
        next = segment->next;
        free_segment(segment);
    }
    *first = NULL;
    *last = first;
}

static void take_in(struct file *file, struct segment *segment)
{
    segment->next = NULL;
    if (segment->kind == BYTES) {
        *file->in_last = segment;
        file->in_last = &segment->next;
        file->in_bytes += segment->length;
    } else {
        if (segment->kind == RESET) {
            file->broken = true;
            file->error = ECONNRESET;
        }
        file->eof = true;
        free_segment(segment);
    }
    sim_changed(file);
}

static uint64_t delay_ns(void)
{
    return world->set.delay_min_ns + (world->set.delay_ns > 0 ? sim_drawabout(NETWORK, world->set.delay_ns) : 0);
}

static struct segment *first_on_the_way(struct file *file)
{
    struct segment *segment = file->way_first;
    file->way_first = segment->next;
    if (file->way_first == NULL)
        file->way_last = &file->way_first;
    file->way_bytes -= segment->length;
    return segment;
}

/* Within a machine the end of a connection is there at once, behind all that was sent. */
static void send_segment(struct file *to, struct segment *segment)
{
    if (to->is_pair || (!world->set.far && segment->kind != BYTES)) {
        while (to->way_first != NULL)
            take_in(to, first_on_the_way(to));
        take_in(to, segment);
        return;
    }
    uint64_t at_ns = world->now_ns + delay_ns();
    if (at_ns < to->last_arrival_ns)
        at_ns = to->last_arrival_ns;
    to->last_arrival_ns = at_ns;
    segment->next = NULL;
    *to->way_last = segment;
    to->way_last = &segment->next;
    to->way_bytes += segment->length;
    sim_event(DELIVERY, at_ns, sim_number(to), to->generation);
}

static uint64_t held_until(const struct file *file)
{
    uint64_t until_ns = file->held_until_ns, in_ns = world->procs[file->proc].in_held_until_ns;
    uint64_t out_ns = file->peer != 0 ? world->procs[world->files[file->peer].proc].out_held_until_ns : 0;
    if (file->is_pair)
        return 0;
    if (until_ns < in_ns)
        until_ns = in_ns;
    return until_ns < out_ns ? out_ns : until_ns;
}

void sim_deliver(uint32_t number, uint32_t generation)
{
    struct file *file = &world->files[number];
    if (file->generation != generation || file->way_first == NULL)
        return;
    uint64_t held_until_ns = held_until(file);
    if (held_until_ns > world->now_ns) {
        sim_event(DELIVERY, held_until_ns, number, generation);
        return;
    }
    struct segment *segment = first_on_the_way(file);
    if (world->set.trace)
        diary_write("   %u bytes arrive at %s.%u, file %u%s", segment->length, world->procs[file->proc].name,
                    file->proc, number,
                    segment->kind == END     ? ", the end"
                    : segment->kind == RESET ? ", a reset"
                                             : "");
    take_in(file, segment);
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static bool read_address(const struct sockaddr *address, socklen_t length, char text[ADDRESS_MAX])
{
    const struct sockaddr_in *in = (const void *)address;
    const struct sockaddr_in6 *in6 = (const void *)address;
    const struct sockaddr_un *un = (const void *)address;
    char host[INET6_ADDRSTRLEN];
    switch (address->sa_family) {
    case AF_UNIX:
        snprintf(text, ADDRESS_MAX, "%.*s", (int)(length - offsetof(struct sockaddr_un, sun_path)), un->sun_path);
        return true;
    case AF_INET:
        snprintf(text, ADDRESS_MAX, "%s:%d", inet_ntop(AF_INET, &in->sin_addr, host, sizeof host), ntohs(in->sin_port));
        return true;
    case AF_INET6:
        snprintf(text, ADDRESS_MAX, "[%s]:%d", inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host),
                 ntohs(in6->sin6_port));
        return true;
    default:
        return false;
    }
}

static int port_of(const char *text)
{
    const char *colon = strrchr(text, ':');
    return colon != NULL ? atoi(colon + 1) : 0;
}

static socklen_t write_in(const struct file *file, const char *text, struct sockaddr_in6 *address)
{
    struct sockaddr_in *in = (void *)address;
    char host[ADDRESS_MAX];
    snprintf(host, sizeof host, "%.*s", (int)strcspn(text, file->is_six ? "]" : ":"), text);
    in->sin_family = file->is_six ? AF_INET6 : AF_INET;
    in->sin_port = htons((uint16_t)port_of(text)); /* both have it there */
    if (text[0] != 0 && file->is_six)
        inet_pton(AF_INET6, host + 1, &address->sin6_addr);
    else if (text[0] != 0)
        inet_pton(AF_INET, host, &in->sin_addr);
    return file->is_six ? sizeof *address : sizeof *in;
}

static int write_address(const struct file *file, const char *text, struct sockaddr *address, socklen_t *length)
{
    struct sockaddr_in6 in = { 0 };
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    if (address == NULL || length == NULL)
        return 0;
    socklen_t is = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (text[0] != 0 ? strlen(text) + 1 : 0));
    if (file->is_tcp)
        is = write_in(file, text, &in);
    else
        snprintf(un.sun_path, sizeof un.sun_path, "%s", text);
    memcpy(address, file->is_tcp ? (const void *)&in : &un, is < *length ? is : *length);
    *length = is;
    return 0;
}

static bool is_any(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

/* Does one stand for the other, too? */
static bool covers(const char *any, const char *address)
{
    return is_any(any) && (any[0] == '[') == (address[0] == '[') && port_of(any) == port_of(address);
}

static struct file *find_listener(const char *address)
{
    for (uint32_t i = 1; i <= world->file_count; i++) {
        struct file *file = &world->files[i];
        if (file->type == SOCKET && file->state == LISTENING &&
            (strcmp(file->address, address) == 0 || (file->is_tcp && covers(file->address, address))))
            return file;
    }
    return NULL;
}

static bool is_taken(const struct file *me, const char *address)
{
    for (uint32_t i = 1; i <= world->file_count; i++) {
        const struct file *file = &world->files[i];
        if (file != me && file->type == SOCKET && file->state == LISTENING &&
            (strcmp(file->address, address) == 0 || covers(file->address, address) || covers(address, file->address)))
            return true;
    }
    return false;
}

static void take_some_port(struct file *file, const char *host)
{
    snprintf(file->address, sizeof file->address, "%s:%u", host, 40000 + world->next_port++ % 20000);
}

static void take_some_address(struct file *file)
{
    take_some_port(file, file->is_six ? "[::1]" : "127.0.0.1");
}

/* --- to come into being ------------------------------------------------------------------------------------------- */

static int open_flags(int type)
{
    return ((type & SOCK_CLOEXEC) != 0 ? O_CLOEXEC : 0) | ((type & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0);
}

int socket(int domain, int type, int protocol)
{
    if (!sim_on() || (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) || (type & 0xf) == SOCK_DGRAM)
        return (int)sim_kernel(SYS_socket, domain, type, protocol);
    sim_point("socket", 0);
    uint32_t number = sim_newfile(SOCKET);
    world->files[number].is_tcp = domain != AF_UNIX;
    world->files[number].is_six = domain == AF_INET6;
    return sim_open(number, open_flags(type));
}

static void join(uint32_t one, uint32_t other)
{
    world->files[one].peer = other;
    world->files[other].peer = one;
    world->files[one].state = world->files[other].state = CONNECTED;
}

int socketpair(int domain, int type, int protocol, int pair[2])
{
    if (!sim_on())
        return (int)sim_kernel(SYS_socketpair, domain, type, protocol, pair);
    sim_point("socketpair", 0);
    uint32_t ends[2] = { sim_newfile(SOCKET), sim_newfile(SOCKET) };
    for (int i = 0; i < 2; i++) {
        world->files[ends[i]].is_pair = true;
        world->files[ends[i]].packets = (type & 0xf) == SOCK_SEQPACKET;
    }
    join(ends[0], ends[1]);
    pair[0] = sim_open(ends[0], open_flags(type));
    if (pair[0] < 0)
        return -1;
    pair[1] = sim_open(ends[1], open_flags(type));
    return pair[1] < 0 ? -1 : 0;
}

/* A pipe that a child may inherit as its output stays the kernel's. */
int pipe2(int pair[2], int flags)
{
    if (!sim_on() || (flags & O_CLOEXEC) == 0)
        return (int)sim_kernel(SYS_pipe2, pair, flags);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | ((flags & O_NONBLOCK) != 0 ? SOCK_NONBLOCK : 0), 0, pair) != 0)
        return -1;
    sim_file(pair[0])->no_more_out = true;
    sim_file(pair[1])->no_more_in = true;
    return 0;
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_bind, fd, address, length);
    char text[ADDRESS_MAX];
    sim_point("bind", 0);
    if (!read_address(address, length, text)) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    if (file->is_tcp && port_of(text) == 0) {
        *strrchr(text, ':') = 0;
        take_some_port(file, text);
        return 0;
    }
    if (file->is_tcp && is_taken(file, text)) {
        errno = EADDRINUSE;
        return -1;
    }
    if (!file->is_tcp && sim_kernel(SYS_mknodat, AT_FDCWD, text, S_IFSOCK | 0777, 0) != 0) {
        if (errno == EEXIST)
            errno = EADDRINUSE;
        return -1;
    }
    memcpy(file->address, text, sizeof text);
    return 0;
}

int listen(int fd, int backlog)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_listen, fd, backlog);
    sim_point("listen", 0);
    if (file->is_tcp && is_taken(file, file->address)) {
        errno = EADDRINUSE;
        return -1;
    }
    if (file->address[0] == 0)
        take_some_address(file);
    file->state = LISTENING;
    file->backlog_max = (uint32_t)(backlog < 0 ? 0 : backlog) + 1;
    return 0;
}

/* The server's end, which waits to be accepted. False: there is no room. */
static bool queue_connection(struct file *listener, uint32_t client)
{
    if (listener->backlog_count >= listener->backlog_max)
        return false;
    uint32_t number = sim_newfile(SOCKET);
    struct file *file = &world->files[number];
    file->refs = 1;
    file->proc = listener->proc;
    file->is_tcp = listener->is_tcp;
    file->is_six = listener->is_six;
    memcpy(file->address, world->files[client].peer_address, sizeof file->address);
    memcpy(file->peer_address, world->files[client].address, sizeof file->peer_address);
    join(client, number);
    if (listener->backlog_last != 0)
        world->files[listener->backlog_last].backlog_next = number;
    else
        listener->backlog_first = number;
    listener->backlog_last = number;
    listener->backlog_count++;
    sim_changed(listener);
    return true;
}

/* A request for a connection has arrived, or its turn has come again. */
void sim_connected(uint32_t number, uint32_t generation)
{
    struct file *file = &world->files[number], *listener;
    if (file->generation != generation || file->state != CONNECTING)
        return;
    if (file->held_until_ns > world->now_ns) {
        sim_event(CONNECTION, file->held_until_ns, number, generation);
        return;
    }
    listener = find_listener(file->peer_address);
    if (listener == NULL) {
        file->state = FAILED;
        file->error = ECONNREFUSED;
    } else if (!queue_connection(listener, number)) {
        sim_event(CONNECTION, world->now_ns + RETRY_NS, number, generation);
        return;
    }
    sim_changed(file);
}

static int connect_here(struct file *file)
{
    struct file *listener;
    while ((listener = find_listener(file->peer_address)) != NULL) {
        if (queue_connection(listener, sim_number(file)))
            return 0;
        if (file->nonblocking) {
            errno = EAGAIN;
            return -1;
        }
        if (!sim_waitfile("connect", listener, world->now_ns + NS_PER_MS) && errno == EINTR)
            return -1;
    }
    errno = sim_kernel(SYS_faccessat, AT_FDCWD, file->peer_address, 0) == 0 ? ECONNREFUSED : ENOENT;
    return -1;
}

static int take_error(struct file *file)
{
    int error = file->error;
    file->error = 0;
    return error;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_connect, fd, address, length);
    sim_point("connect", 0);
    pthread_testcancel();
    if (file->state == CONNECTED || file->state == CONNECTING) {
        errno = file->state == CONNECTED ? EISCONN : EALREADY;
        return -1;
    }
    if (file->state == FAILED) {
        errno = take_error(file) != 0 ? ECONNREFUSED : ECONNABORTED;
        return -1;
    }
    if (!read_address(address, length, file->peer_address)) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    if (!file->is_tcp)
        return connect_here(file);
    if (file->address[0] == 0)
        take_some_address(file);
    file->state = CONNECTING;
    sim_event(CONNECTION, world->now_ns + 2 * delay_ns(), sim_number(file), file->generation);
    if (file->nonblocking) {
        errno = EINPROGRESS;
        return -1;
    }
    while (file->state == CONNECTING)
        if (!sim_waitfile("connect", file, NEVER))
            return -1;
    errno = file->state == FAILED ? take_error(file) : errno;
    return file->state == FAILED ? -1 : 0;
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_accept4, fd, address, length, flags);
    sim_point("accept", 0);
    while (file->backlog_count == 0) {
        if (file->nonblocking) {
            errno = EAGAIN;
            return -1;
        }
        if (!sim_waitfile("accept", file, NEVER))
            return -1;
    }
    uint32_t number = file->backlog_first;
    int accepted = sim_open(number, open_flags(flags));
    if (accepted < 0)
        return -1; /* and that connection is gone */
    file->backlog_first = world->files[number].backlog_next;
    if (--file->backlog_count == 0)
        file->backlog_last = 0;
    world->files[number].refs--; /* the queue's */
    world->files[number].proc = sim_proc();
    sim_changed(file);
    write_address(&world->files[number], world->files[number].peer_address, address, length);
    return accepted;
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
    return accept4(fd, address, length, 0);
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static size_t take_bytes(struct file *file, char *bytes, size_t length, bool peeks)
{
    size_t taken = 0;
    if (world->set.far && world->set.short_reads != 0 && length > 1 && !file->is_pair && !peeks &&
        sim_drawbelow(NETWORK, world->set.short_reads) == 0)
        length = 1 + sim_drawbelow(NETWORK, length < 64 ? length : 64);
    for (struct segment *segment = file->in_first; segment != NULL && taken < length; segment = file->in_first) {
        size_t left = segment->length - segment->used, part = left < length - taken ? left : length - taken;
        memcpy(bytes + taken, segment->bytes + segment->used, part);
        taken += part;
        if (peeks)
            break;
        segment->used += (uint32_t)part;
        file->in_bytes -= (uint32_t)part;
        if (segment->used < segment->length && !file->packets)
            break;
        file->in_bytes -= segment->length - segment->used;
        file->in_first = segment->next;
        if (file->in_first == NULL)
            file->in_last = &file->in_first;
        free_segment(segment);
        if (file->packets)
            break;
    }
    return taken;
}

static uint64_t limit_ns(uint64_t ns)
{
    return ns != 0 ? world->now_ns + ns : NEVER;
}

ssize_t sim_receive(struct file *file, void *bytes, size_t length, int flags)
{
    uint64_t deadline_ns = limit_ns(file->receive_ns);
    while (file->in_first == NULL) {
        if (file->state != CONNECTED) {
            errno = file->state == FAILED ? take_error(file) : file->state == CONNECTING ? EAGAIN : ENOTCONN;
            return -1;
        }
        if (file->error != 0) {
            errno = take_error(file);
            return -1;
        }
        if (file->eof || file->no_more_in)
            return 0;
        if (file->nonblocking || (flags & MSG_DONTWAIT) != 0) {
            errno = EAGAIN;
            return -1;
        }
        if (!sim_waitfile("recv", file, deadline_ns))
            return -1;
    }
    bool was_full = file->in_bytes + file->way_bytes >= FULL; /* whoever could not send */
    size_t taken = take_bytes(file, bytes, length, (flags & MSG_PEEK) != 0);
    sim_acquired(world->files);
    if (file->peer != 0 && was_full)
        sim_changed(&world->files[file->peer]);
    return (ssize_t)taken;
}

static ssize_t broken_pipe(int flags)
{
    if ((flags & MSG_NOSIGNAL) == 0) {
        sim_self()->signals |= 1ULL << SIGPIPE;
        sim_takesignals();
    }
    errno = EPIPE;
    return -1;
}

/* The other end is gone: bytes that still come to it are answered with a reset. */
static ssize_t send_to_nobody(struct file *file, size_t length)
{
    if (!file->is_deaf) {
        file->is_deaf = true;
        send_segment(file, new_segment(RESET, NULL, 0));
    }
    return (ssize_t)length;
}

ssize_t sim_send(struct file *file, const void *bytes, size_t length, int flags)
{
    uint64_t deadline_ns = limit_ns(file->send_ns);
    for (;;) {
        if (file->state == CONNECTING || file->state == FRESH) {
            errno = file->state == CONNECTING ? EAGAIN : ENOTCONN;
            return -1;
        }
        if (file->error != 0) {
            errno = take_error(file);
            return -1;
        }
        if (file->broken || file->no_more_out || file->state == FAILED || (file->peer == 0 && !file->is_tcp))
            return broken_pipe(flags);
        if (file->peer == 0)
            return send_to_nobody(file, length);
        struct file *peer = &world->files[file->peer];
        uint32_t used = peer->in_bytes + peer->way_bytes;
        if (used < FULL) {
            sim_released(world->files); /* on the way through a server, it may come to any other connection */
            size_t part = length < 2 * FULL - used || file->packets ? length : 2 * FULL - used;
            send_segment(peer, new_segment(BYTES, bytes, part));
            if (__builtin_expect(world->is_storm, 0))
                sim_trouble(file);
            return (ssize_t)part;
        }
        if (file->nonblocking || (flags & MSG_DONTWAIT) != 0) {
            errno = EAGAIN;
            return -1;
        }
        if (!sim_waitfile("send", file, deadline_ns))
            return -1;
    }
}

ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return sim_kernel(SYS_recvfrom, fd, bytes, length, flags, NULL, NULL);
    sim_point("recv", (uint64_t)fd);
    pthread_testcancel();
    return sim_receive(file, bytes, length, flags);
}

ssize_t recvfrom(int fd, void *restrict bytes, size_t length, int flags, struct sockaddr *restrict address,
                 socklen_t *restrict address_length)
{
    if (sim_file(fd) == NULL)
        return sim_kernel(SYS_recvfrom, fd, bytes, length, flags, address, address_length);
    return recv(fd, bytes, length, flags);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return sim_kernel(SYS_sendto, fd, bytes, length, flags, NULL, 0);
    sim_point("send", (uint64_t)fd);
    return sim_send(file, bytes, length, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *address,
               socklen_t address_length)
{
    if (sim_file(fd) == NULL)
        return sim_kernel(SYS_sendto, fd, bytes, length, flags, address, address_length);
    return send(fd, bytes, length, flags);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void end_backlog(struct file *file)
{
    for (uint32_t next, number = file->backlog_first; number != 0; number = next) {
        next = world->files[number].backlog_next;
        world->files[number].linger_resets = true;
        sim_unref(number);
    }
    file->backlog_first = 0;
}

/* The last descriptor is closed. Bytes that were sent before arrive first, then the other end hears of the end. */
void sim_closesocket(struct file *file)
{
    struct file *peer = &world->files[file->peer];
    if (file->state == LISTENING)
        end_backlog(file);
    if (file->peer != 0) {
        bool resets = file->in_first != NULL || file->linger_resets || (!world->set.far && file->way_first != NULL);
        peer->peer = 0;
        if (!file->no_more_out || resets)
            send_segment(peer, new_segment(resets ? RESET : END, NULL, 0));
        sim_changed(peer);
    }
    free_segments(&file->in_first, &file->in_last);
    free_segments(&file->way_first, &file->way_last);
}

/* Both ends hear of it: some bytes that are on their way arrive, the others do not. */
void sim_cut(struct file *file)
{
    struct file *ends[2] = { file, &world->files[file->peer] };
    for (int i = 0; i < 2; i++) {
        struct segment *first = ends[i]->way_first;
        if (first != NULL && first->kind == BYTES && first->length > 1) {
            uint32_t kept = (uint32_t)sim_drawbelow(FAULTS, first->length + 1);
            if (kept > 0)
                take_in(ends[i], new_segment(BYTES, first->bytes, kept));
        }
        free_segments(&ends[i]->way_first, &ends[i]->way_last);
        ends[i]->way_bytes = 0;
        ends[i]->generation++;
        ends[i]->peer = 0;
        ends[i]->is_deaf = true;
        send_segment(ends[i], new_segment(RESET, NULL, 0));
    }
}

/* As by a box between them: this end hears of it now; what it sent comes to the other end, late, and then the end. */
void sim_cutlate(struct file *file, uint64_t late_ns)
{
    struct file *peer = &world->files[file->peer];
    if (peer->held_until_ns < world->now_ns + late_ns)
        peer->held_until_ns = world->now_ns + late_ns;
    peer->peer = 0;
    if (!file->no_more_out)
        send_segment(peer, new_segment(END, NULL, 0));
    free_segments(&file->way_first, &file->way_last);
    file->way_bytes = 0;
    file->generation++;
    file->peer = 0;
    file->is_deaf = true;
    send_segment(file, new_segment(RESET, NULL, 0));
}

int shutdown(int fd, int how)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_shutdown, fd, how);
    sim_point("shutdown", (uint64_t)fd);
    if (file->state != CONNECTED) {
        errno = ENOTCONN;
        return -1;
    }
    if (how != SHUT_RD && !file->no_more_out) {
        file->no_more_out = true;
        if (file->peer != 0)
            send_segment(&world->files[file->peer], new_segment(END, NULL, 0));
    }
    if (how != SHUT_WR)
        file->no_more_in = true;
    sim_changed(file);
    return 0;
}

/* --- what one can ask and set ------------------------------------------------------------------------------------- */

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict length)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_getsockopt, fd, level, name, value, length);
    sim_point("getsockopt", (uint64_t)name);
    memset(value, 0, *length);
    if (level == SOL_SOCKET && name == SO_ERROR)
        *(int *)value = take_error(file);
    else if (level == SOL_SOCKET && name == SO_TYPE)
        *(int *)value = file->packets ? SOCK_SEQPACKET : SOCK_STREAM;
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_setsockopt, fd, level, name, value, length);
    sim_point("setsockopt", (uint64_t)name);
    if (level == SOL_SOCKET && name == SO_RCVTIMEO)
        file->receive_ns = sim_ns(value);
    else if (level == SOL_SOCKET && name == SO_SNDTIMEO)
        file->send_ns = sim_ns(value);
    else if (level == SOL_SOCKET && name == SO_LINGER)
        file->linger_resets =
            ((const struct linger *)value)->l_onoff != 0 && ((const struct linger *)value)->l_linger == 0;
    return 0;
}

int getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
    struct file *file = sim_file(fd);
    return file == NULL ? (int)sim_kernel(SYS_getsockname, fd, address, length)
                        : write_address(file, file->address, address, length);
}

int getpeername(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_getpeername, fd, address, length);
    if (file->state != CONNECTED) {
        errno = ENOTCONN;
        return -1;
    }
    return write_address(file, file->peer_address, address, length);
}
