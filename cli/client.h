/* SPDX-License-Identifier: MIT */
/*
 * client.h - the client of a command: where its server is, and what its log says
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "command.h"

#include <latchkey/latchkey.h>

/* Choose the server, and fill in `source`; 0, or an exit code: complained. */
int find_server(struct settings *settings);

/* Fill in `server`, too; 0, or an exit code: complained. lk_client_close() ends it. */
int open_client(struct settings *settings, lk_client_t **client);

/* The exit code when one could not be opened. */
int open_code_of(int rc);

/* Close it; what remains open ends with its lease. */
void close_client(lk_client_t *client);

/* "<client id>:<owner>", with which the owner's ids in Redis begin; no round trip. */
void name_owner(lk_client_t *client, const lk_owner_t *owner, char *text, unsigned size);

#endif
