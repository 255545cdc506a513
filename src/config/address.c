/* SPDX-License-Identifier: MIT */
/* address.c - where the server is: a host and port, or the path of a unix socket */
#include "config/builder.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/un.h>

enum { PORT = 6379 };

/* Read a decimal number of `least` to `most`. */
bool lk__read_number(const char *text, int64_t least, int64_t most, int *number)
{
    int64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (*text - '0');
        if (value > most)
            return false;
    }
    *number = (int)value;
    return value >= least;
}

/* What a host name is made of. */
static const char host_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

static bool is_host(const char *text, size_t length)
{
    return length <= 255 && strspn(text, host_letters) >= length;
}

/* "::1" or, with the interface it is reached by, "fe80::1%eth0". */
static bool is_ipv6(const char *text, size_t length)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    const char *zone = memchr(text, '%', length);
    size_t end = zone != NULL ? (size_t)(zone - text) : length;
    if (zone != NULL && (end + 1 == length || !is_host(zone + 1, length - end - 1)))
        return false;
    if (end >= sizeof address)
        return false;
    memcpy(address, text, end);
    address[end] = '\0';
    return inet_pton(AF_INET6, address, &ignored) == 1;
}

/* Split the host from the port, which is not read yet. NULL, or words for what is no host. */
static const char *split_server(const char *text, const char **host, size_t *length, const char **port)
{
    if (*text == '[') {
        *host = text + 1;
        *length = strcspn(text + 1, "]");
        *port = *host + *length + 1;
        if ((*host)[*length] == '\0' || !is_ipv6(*host, *length))
            return "what stands in [ ] is no IPv6 address";
    } else {
        *host = text;
        *length = strcspn(text, ":");
        *port = *host + *length;
        if (!is_host(*host, *length))
            return "a host has letters, digits, dots, - and _ only, or is an IPv6 address in [ ]";
    }
    return NULL;
}

/* Make room for a server. A client has one: fail if it was given already. */
static int begin_server(struct lk__builder *builder, const char *subject)
{
    struct lk__options *options = &builder->options;
    if (builder->server)
        return lk__builder_fail(builder, EINVAL, subject, "there is a server already: one of address, nodes and path");
    builder->server = true;
    lk__free(options->host);
    lk__free(options->path);
    options->host = options->path = NULL;
    options->port = 0;
    return 0;
}

int lk__builder_server(struct lk__builder *builder, const char *subject, const char *text)
{
    struct lk__options *options = &builder->options;
    const char *host, *port;
    size_t length;
    int rc = begin_server(builder, subject);
    if (rc != 0)
        return rc;
    if (strchr(text, ',') != NULL)
        return lk__builder_fail(builder, ENOTSUP, subject,
                                "several hosts are for Sentinel and Cluster, not in this version");

    const char *flaw = split_server(text, &host, &length, &port);
    if (flaw != NULL)
        return lk__builder_fail(builder, EINVAL, subject, "%s", flaw);
    options->port = PORT;
    if (*port != '\0' && (*port != ':' || !lk__read_number(port + 1, 1, UINT16_MAX, &options->port)))
        return lk__builder_fail(builder, EINVAL, subject,
                                "the port behind the host must be 1 to 65535 (an IPv6 address stands in [ ])");

    options->host = length == 0 ? lk__strdup("127.0.0.1") : lk__alloc(length + 1);
    if (options->host == NULL)
        return lk__builder_nomem(builder);
    memcpy(options->host, host, length);
    return 0;
}

int lk__builder_socket(struct lk__builder *builder, const char *subject, const char *path)
{
    const size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    int rc = begin_server(builder, subject);
    if (rc != 0)
        return rc;
    if (*path == '\0')
        return lk__builder_fail(builder, EINVAL, subject, "the path of the socket is missing");
    if (strlen(path) > most)
        return lk__builder_fail(builder, EINVAL, subject, "the path of a socket has at most %zu bytes", most);
    builder->options.path = lk__strdup(path);
    return builder->options.path != NULL ? 0 : lk__builder_nomem(builder);
}
