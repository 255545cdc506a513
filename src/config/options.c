/* SPDX-License-Identifier: MIT */
/* options.c - options that were read: printing them without their secrets, and freeing them */
#include "config/options.h"

#include <stdio.h>
#include <string.h>

void lk__options_clear(struct lk__options *options)
{
    lk__free(options->path);
    lk__free(options->host);
    lk__free(options->user);
    lk__wipe(options->password);
    lk__free(options->client_name);
    lk__free(options->prefix);
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

static void print_server(struct printer *printer, const struct lk__options *options)
{
    char port[16];
    bool ipv6 = strchr(options->host, ':') != NULL;
    snprintf(port, sizeof port, ":%d", options->port);
    print(printer, ipv6 ? "[" : "");
    print_encoded(printer, options->host, ":");
    print(printer, ipv6 ? "]" : "");
    print(printer, port);
}

void lk__options_print(const struct lk__options *options, char *text, size_t size)
{
    if (size == 0)
        return;
    struct printer printer = { text, size - 1 };
    char db[16];
    snprintf(db, sizeof db, "%d", options->db);
    print(&printer, options->path != NULL ? "unix://" : "redis://");
    print_credentials(&printer, options);
    if (options->path != NULL) {
        print_encoded(&printer, options->path, "/");
        print(&printer, "?db=");
    } else {
        print_server(&printer, options);
        print(&printer, "/");
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

void lk__options_quote(const struct lk__options *options, const char *says, char *text, size_t size)
{
    const char *password = options->password != NULL ? options->password : "";
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
