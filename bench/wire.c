/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { IN_ROOM = 1 << 20 };

struct wire {
    int fd;
    size_t begin, end; /* what was received and not read: in[begin..end) */
    char in[IN_ROOM];
    struct wire_out out; /* see wire_scratch() */
};

static void broken(const char *what, const char *detail, size_t length)
{
    fprintf(stderr, "%s: %.*s\n", what, (int)length, detail);
    exit(1);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

static int connect_tcp(const char *host_port)
{
    char host[100];
    struct addrinfo *found, wanted = { .ai_socktype = SOCK_STREAM };
    const char *port = strrchr(host_port, ':');
    if (port == NULL)
        return -1;
    snprintf(host, sizeof host, "%.*s", (int)(port - host_port), host_port);
    if (getaddrinfo(host, port + 1, &wanted, &found) != 0)
        return -1;
    int one = 1, fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int rc = connect(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return rc == 0 ? fd : -1;
}

struct wire *wire_open(const char *address)
{
    struct wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL || (wire->fd = *address == '/' ? connect_unix(address) : connect_tcp(address)) < 0)
        broken("cannot connect to", address, strlen(address));
    return wire;
}

void wire_close(struct wire *wire)
{
    close(wire->fd);
    free(wire->out.bytes);
    free(wire);
}

int wire_fd(const struct wire *wire)
{
    return wire->fd;
}

static void append(struct wire_out *out, const char *bytes, size_t length)
{
    if (out->length + length > out->room) {
        out->room = 2 * (out->length + length);
        if ((out->bytes = realloc(out->bytes, out->room)) == NULL)
            broken("out of memory", "", 0);
    }
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
}

static void append_header(struct wire_out *out, char type, size_t number)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%c%zu\r\n", type, number);
    append(out, text, (size_t)length);
}

void wire_begin(struct wire_out *out, int words)
{
    append_header(out, '*', (size_t)words);
}

void wire_word(struct wire_out *out, const char *bytes, size_t length)
{
    append_header(out, '$', length);
    append(out, bytes, length);
    append(out, "\r\n", 2);
}

void wire_put(struct wire_out *out, const char *const words[])
{
    int count = 0;
    while (words[count] != NULL)
        count++;
    wire_begin(out, count);
    for (int i = 0; i < count; i++)
        wire_word(out, words[i], strlen(words[i]));
}

void wire_send(struct wire *wire, const struct wire_out *out)
{
    for (size_t sent = 0; sent < out->length;) {
        ssize_t n = send(wire->fd, out->bytes + sent, out->length - sent, MSG_NOSIGNAL);
        if (n <= 0)
            broken("send", "", 0);
        sent += (size_t)n;
    }
}

/* The end of the reply that begins at `at`, NULL while a part of it is missing. */
static const char *end_of_reply(const char *at, const char *end)
{
    const char *line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (line == NULL)
        return NULL;
    const char *next = line + 1;
    long number = strtol(at + 1, NULL, 10);
    if (*at == '$')
        return number < 0 ? next : end - next < number + 2 ? NULL : next + number + 2;
    if (*at == '*' || *at == '>' || *at == '%')
        for (number *= *at == '%' ? 2 : 1; number > 0 && next != NULL; number--)
            next = end_of_reply(next, end);
    return next;
}

/* Receive more; false: nothing is there, and the caller does not wait. */
static bool receive(struct wire *wire, int flags)
{
    if (wire->begin == wire->end)
        wire->begin = wire->end = 0;
    if (wire->end == IN_ROOM) {
        memmove(wire->in, wire->in + wire->begin, wire->end - wire->begin);
        wire->end -= wire->begin;
        wire->begin = 0;
    }
    ssize_t n = recv(wire->fd, wire->in + wire->end, IN_ROOM - wire->end, flags);
    if (n <= 0 && flags == 0)
        broken("the server hung up", "", 0);
    wire->end += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static const char *next_end(const struct wire *wire)
{
    return end_of_reply(wire->in + wire->begin, wire->in + wire->end);
}

bool wire_pending(const struct wire *wire)
{
    return next_end(wire) != NULL;
}

struct wire_reply wire_read(struct wire *wire)
{
    const char *end;
    while ((end = next_end(wire)) == NULL)
        receive(wire, 0);
    struct wire_reply reply = { wire->in + wire->begin, (size_t)(end - wire->in) - wire->begin };
    wire->begin = (size_t)(end - wire->in);
    if (*reply.bytes == '-')
        broken("the server says", reply.bytes, reply.length);
    return reply;
}

void wire_drain(struct wire *wire)
{
    while (receive(wire, MSG_DONTWAIT))
        ;
    while (wire_pending(wire))
        wire_read(wire);
}

struct wire_out *wire_scratch(struct wire *wire)
{
    wire->out.length = 0;
    return &wire->out;
}

struct wire_reply wire_ask(struct wire *wire, const char *const words[])
{
    wire_put(wire_scratch(wire), words);
    wire_send(wire, &wire->out);
    return wire_read(wire);
}

int64_t reply_number(struct wire_reply reply)
{
    const char *at = reply.bytes + 1;
    if (*reply.bytes == '*') /* the first element, without its type */
        at = (const char *)memchr(at, '\n', reply.length - 1) + 2;
    else if (*reply.bytes == '$')
        at = (const char *)memchr(at, '\n', reply.length - 1) + 1;
    return strtoll(at, NULL, 10);
}

bool reply_is_nil(struct wire_reply reply)
{
    return *reply.bytes == '_' || (reply.length > 2 && reply.bytes[1] == '-' && *reply.bytes != ':');
}

void wire_load(struct wire *wire, const char *script, char *sha1)
{
    struct wire_reply reply = wire_ask(wire, WORDS("SCRIPT", "LOAD", script));
    const char *line = memchr(reply.bytes, '\n', reply.length);
    memcpy(sha1, line + 1, 40);
    sha1[40] = '\0';
}
