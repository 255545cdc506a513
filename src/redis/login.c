/* SPDX-License-Identifier: MIT */
/* login.c - who a client says that it is: as the options have it, a file, or the program */
#include "redis/login.h"
#include "redis/stream.h"

#include <stdio.h>
#include <string.h>

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* NULL, or words for what is wrong. */
static const char *flaw_of(const lk_credentials_t *said)
{
    if (!is_text(said->user, sizeof said->user) || !is_text(said->password, sizeof said->password))
        return "a text that does not end";
    return said->user[0] != '\0' && said->password[0] == '\0' ? "a user without a password" : NULL;
}

/* An empty text is none. False: no memory. */
static bool copy(char **text, const char *said)
{
    *text = said[0] != '\0' ? lk__strdup(said) : NULL;
    return *text != NULL || said[0] == '\0';
}

static void forget(struct lk__found *found)
{
    lk__free(found->user);
    lk__wipe(found->password);
    *found = (struct lk__found){ 0 };
}

/* Keep what the program said, or why it is of no use. */
static int keep(struct lk__found *found, const lk_credentials_t *said, char *why, size_t size)
{
    const char *flaw = flaw_of(said);
    if (flaw != NULL) {
        snprintf(why, size, "the program's function for credentials gave %s", flaw);
        return EACCES;
    }
    struct lk__found fresh = { 0 };
    if (!copy(&fresh.user, said->user) || !copy(&fresh.password, said->password)) {
        forget(&fresh);
        snprintf(why, size, "out of memory while connecting");
        return ENOMEM;
    }
    forget(found);
    *found = fresh;
    return 0;
}

static const char *words_of(int code)
{
    const char *words = strerrordesc_np(code);
    return words != NULL ? words : "a code that nobody knows";
}

static int ask(struct lk__server *server, enum lk__peer peer, bool refused, char *why, size_t size)
{
    lk_credentials_t *said = lk__alloc(sizeof *said);
    if (said == NULL) {
        snprintf(why, size, "out of memory while connecting");
        return ENOMEM;
    }
    said->size = sizeof *said;
    said->sentinel = peer == LK__PEER_SENTINEL;
    said->refused = refused;
    int rc = server->options.provider(said, server->options.provider_arg);
    if (rc != 0)
        snprintf(why, size, "the program gave no credentials: %s", words_of(rc));
    rc = rc != 0 ? EACCES : keep(&server->found[peer], said, why, size);
    explicit_bzero(said, sizeof *said);
    lk__free(said);
    return rc;
}

/* For Sentinels the program is asked only if the options say nothing. */
static bool is_provided(const struct lk__server *server, enum lk__peer peer)
{
    return server->options.provider != NULL && (peer == LK__PEER_SERVER || server->options.sentinel_password == NULL);
}

static bool is_same(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

static bool renew_provided(struct lk__server *server, enum lk__peer peer)
{
    char why[LK__ERRMSG_MAX];
    struct lk__found old = server->found[peer], *found = &server->found[peer];
    *found = (struct lk__found){ 0 };
    bool renewed = ask(server, peer, true, why, sizeof why) == 0 &&
                   !(is_same(old.user, found->user) && is_same(old.password, found->password));
    forget(&old);
    return renewed;
}

static bool renew_from_file(struct lk__server *server, enum lk__peer peer)
{
    const struct lk__options *o = &server->options;
    const char *old = lk__login_of(server, peer).password;
    const char *file = peer == LK__PEER_SERVER ? o->password_file : o->sentinel_password_file;
    char *password = old != NULL ? lk__password_reread(file, old) : NULL;
    if (password == NULL)
        return false;
    lk__wipe(server->found[peer].password);
    server->found[peer].password = password;
    return true;
}

struct lk__login lk__login_of(const struct lk__server *server, enum lk__peer peer)
{
    const struct lk__options *o = &server->options;
    const struct lk__found *found = &server->found[peer];
    if (is_provided(server, peer))
        return (struct lk__login){ found->user, found->password };
    struct lk__login login = { o->user, o->password };
    if (peer == LK__PEER_SENTINEL)
        login = (struct lk__login){ o->sentinel_user, o->sentinel_password };
    if (found->password != NULL)
        login.password = found->password;
    return login;
}

int lk__login_ask(struct lk__server *server, enum lk__peer peer, char *why, size_t size)
{
    return is_provided(server, peer) ? ask(server, peer, false, why, size) : 0;
}

bool lk__login_renew(struct lk__server *server, enum lk__peer peer)
{
    return is_provided(server, peer) ? renew_provided(server, peer) : renew_from_file(server, peer);
}
