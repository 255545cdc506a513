/* SPDX-License-Identifier: MIT */
/* describe.h - what a client says of itself at its servers, and under which key */
#ifndef LK__CLIENT_DESCRIBE_H
#define LK__CLIENT_DESCRIBE_H

#include "client/client.h"

enum { LK__WHO_KEY = 64 };

/* Where the client of that id says who it is; more than its client's part of an id is not looked at. */
void lk__who_key(char key[LK__WHO_KEY], const char *id);

/*
 * The notice of a client that has its id and its options: NULL if it is to say nothing. For the watchdog, which has it
 * hang at each server that the client uses, or to be freed by lk__free(). 0, or ENOMEM with an error text.
 */
int lk__client_describe(const lk_client_t *client, struct lk__notice **notice);

#endif
