/* SPDX-License-Identifier: MIT */
/* address.c - where servers are: hosts and ports, or the path of a unix socket */
#include "config/builder.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/un.h>

enum { PORT = 6379, SENTINEL_PORT = 26379 };

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

/* Make room for servers. They are said once: fail if they were given already. */
static int begin_servers(struct lk__builder *builder, const char *subject)
{
    if (builder->server)
        return lk__builder_fail(builder, EINVAL, subject, "there is a server already: one of address, nodes and path");
    builder->server = true;
    lk__options_clearservers(&builder->options);
    return 0;
}

/* Add the one that `text` names. */
static int add_server(struct lk__builder *builder, const char *subject, const char *text)
{
    struct lk__options *options = &builder->options;
    struct lk__address *address = &options->servers[options->server_count];
    const char *host, *port;
    size_t length;
    const char *flaw = split_server(text, &host, &length, &port);
    if (flaw != NULL)
        return lk__builder_fail(builder, EINVAL, subject, "%s", flaw);
    address->port = 0;
    if (*port != '\0' && (*port != ':' || !lk__read_number(port + 1, 1, UINT16_MAX, &address->port)))
        return lk__builder_fail(builder, EINVAL, subject,
                                "the port behind the host must be 1 to 65535 (an IPv6 address stands in [ ])");

    address->host = length == 0 ? lk__strdup("127.0.0.1") : lk__alloc(length + 1);
    if (address->host == NULL)
        return lk__builder_nomem(builder);
    memcpy(address->host, host, length);
    options->server_count++;
    return 0;
}

/* Add those between the commas of `list`, which is written to. */
static int add_servers(struct lk__builder *builder, const char *subject, char *list)
{
    unsigned count = 1;
    for (const char *c = list; *c != '\0'; c++)
        count += *c == ',';
    if (count > LK__SERVERS_MAX)
        return lk__builder_fail(builder, EINVAL, subject, "there may be %d addresses at most", LK__SERVERS_MAX);
    builder->options.servers = lk__alloc(count * sizeof *builder->options.servers);
    if (builder->options.servers == NULL)
        return lk__builder_nomem(builder);
    for (char *rest = list, *text; (text = strsep(&rest, ",")) != NULL;) {
        if (*text == '\0' && count > 1)
            return lk__builder_fail(builder, EINVAL, subject, "an address is missing beside a comma");
        int rc = add_server(builder, subject, text);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int lk__builder_servers(struct lk__builder *builder, const char *subject, const char *text)
{
    int rc = begin_servers(builder, subject);
    if (rc != 0)
        return rc;
    char *list = lk__strdup(text);
    if (list == NULL)
        return lk__builder_nomem(builder);
    rc = add_servers(builder, subject, list);
    lk__wipe(list); /* a URL that is not clear may have its password there */
    return rc;
}

void lk__builder_ports(struct lk__builder *builder)
{
    struct lk__options *options = &builder->options;
    for (unsigned i = 0; i < options->server_count; i++)
        if (options->servers[i].port == 0)
            options->servers[i].port = options->service != NULL ? SENTINEL_PORT : PORT;
}

int lk__builder_socket(struct lk__builder *builder, const char *subject, const char *path)
{
    const size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    int rc = begin_servers(builder, subject);
    if (rc != 0)
        return rc;
    if (*path == '\0')
        return lk__builder_fail(builder, EINVAL, subject, "the path of the socket is missing");
    if (strlen(path) > most)
        return lk__builder_fail(builder, EINVAL, subject, "the path of a socket has at most %zu bytes", most);
    builder->options.path = lk__strdup(path);
    return builder->options.path != NULL ? 0 : lk__builder_nomem(builder);
}
