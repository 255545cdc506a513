/* SPDX-License-Identifier: MIT */
/* options.c - options that were read: printing them without their secrets, and freeing them */
#include "config/options.h"

#include <stdio.h>
#include <string.h>

void lk__options_clearservers(struct lk__options *options)
{
    lk__free(options->path);
    for (unsigned i = 0; i < options->server_count; i++)
        lk__free(options->servers[i].host);
    lk__free(options->servers);
    options->path = NULL;
    options->servers = NULL;
    options->server_count = 0;
}

void lk__options_clear(struct lk__options *options)
{
    lk__options_clearservers(options);
    lk__free(options->service);
    lk__free(options->sentinel_user);
    lk__wipe(options->sentinel_password);
    lk__free(options->sentinel_password_file);
    lk__free(options->user);
    lk__wipe(options->password);
    lk__free(options->password_file);
    lk__free(options->client_name);
    lk__free(options->prefix);
    lk__free(options->program);
    lk__free(options->arguments);
    lk__free(options->why);
    lk__free(options->tls.cacert);
    lk__free(options->tls.capath);
    lk__free(options->tls.certificate);
    lk__free(options->tls.key);
    lk__free(options->tls.sni);
    memset(options, 0, sizeof *options);
}

struct printer {
    char *text;
    size_t room; /* for characters, not counting the NUL */
};

static void print_char(struct printer *printer, char c)
{
    if (printer->room == 0)
        return;
    *printer->text++ = c;
    printer->room--;
}

static void print(struct printer *printer, const char *text)
{
    while (*text != '\0')
        print_char(printer, *text++);
}

/* RFC 3986, 2.3. */
static const char unreserved[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

/* Print as in a URL: characters neither unreserved nor in `also` as %XX. */
static void print_encoded(struct printer *printer, const char *text, const char *also)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *text != '\0'; text++) {
        if (strchr(unreserved, *text) != NULL || strchr(also, *text) != NULL) {
            print_char(printer, *text);
            continue;
        }
        print_char(printer, '%');
        print_char(printer, hex[(unsigned char)*text >> 4]);
        print_char(printer, hex[(unsigned char)*text & 15]);
    }
}

static void print_credentials(struct printer *printer, const struct lk__options *options)
{
    if (options->password == NULL)
        return;
    if (options->user != NULL)
        print_encoded(printer, options->user, "");
    print(printer, ":***@");
}

static void print_address(struct printer *printer, const struct lk__address *address)
{
    char port[16];
    bool ipv6 = strchr(address->host, ':') != NULL;
    snprintf(port, sizeof port, ":%d", address->port);
    print(printer, ipv6 ? "[" : "");
    print_encoded(printer, address->host, ":");
    print(printer, ipv6 ? "]" : "");
    print(printer, port);
}

static void print_servers(struct printer *printer, const struct lk__options *options)
{
    for (unsigned i = 0; i < options->server_count; i++) {
        print(printer, i > 0 ? "," : "");
        print_address(printer, &options->servers[i]);
    }
    print(printer, "/");
    if (options->service == NULL)
        return;
    print_encoded(printer, options->service, "");
    print(printer, "/");
}

static const char *scheme_of(const struct lk__options *options)
{
    if (options->path != NULL)
        return "unix://";
    if (options->service != NULL)
        return options->tls.on ? "rediss-sentinel://" : "redis-sentinel://";
    if (options->cluster)
        return options->tls.on ? "rediss-cluster://" : "redis-cluster://";
    if (options->quorum && options->server_count > 1) /* else one of its nodes is meant */
        return options->tls.on ? "rediss-quorum://" : "redis-quorum://";
    return options->tls.on ? "rediss://" : "redis://";
}

void lk__options_print(const struct lk__options *options, char *text, size_t size)
{
    if (size == 0)
        return;
    struct printer printer = { text, size - 1 };
    char db[16];
    snprintf(db, sizeof db, "%d", options->db);
    print(&printer, scheme_of(options));
    print_credentials(&printer, options);
    if (options->path != NULL) {
        print_encoded(&printer, options->path, "/");
        print(&printer, "?db=");
    } else {
        print_servers(&printer, options);
    }
    print(&printer, db);
    *printer.text = '\0';
}

/* How many bytes at `says` are the password, or enough of its beginning to reveal it. */
static size_t secret_at(const char *says, const char *password)
{
    enum { TELLING = 6 };
    size_t same = 0;
    while (password[same] != '\0' && says[same] == password[same])
        same++;
    return password[same] == '\0' || same >= TELLING ? same : 0;
}

void lk__secret_hide(const char *password, const char *says, char *text, size_t size)
{
    password = password != NULL ? password : "";
    struct printer printer = { text, size - 1 };
    while (*says != '\0') {
        size_t secret = secret_at(says, password);
        if (secret > 0)
            print(&printer, "***");
        else
            print(&printer, (char[]){ *says, '\0' });
        says += secret > 0 ? secret : 1;
    }
    *printer.text = '\0';
}
