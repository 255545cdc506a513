/* SPDX-License-Identifier: MIT */
/*
 * login.h - who a client says that it is, to servers and to Sentinels
 *
 * What the options say is the beginning. A password from a file is read anew after a refusal; a program that has a
 * function for it is asked for each connection. All of it is for the connector's thread alone.
 */
#ifndef LK__LOGIN_H
#define LK__LOGIN_H

#include "redis/server.h"

/* NULL: none. Good until it is asked for or renewed. */
struct lk__login {
    const char *user, *password;
};

struct lk__login lk__login_of(const struct lk__server *server, enum lk__peer peer);

/* A connection to such a one is to be made: ask the program, if it wants to be. 0, or with words ENOMEM, EACCES. */
int lk__login_ask(struct lk__server *server, enum lk__peer peer, char *why, size_t size);
/* It was refused. Is there another one by now? */
bool lk__login_renew(struct lk__server *server, enum lk__peer peer);

#endif
