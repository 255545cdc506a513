/* SPDX-License-Identifier: MIT */
/*
 * fake_server.h - a server that answers what the test wants: hostile, broken or foreign
 *
 * A child process listens on a unix socket. It answers the greeting of a client as a real server would,
 * until the test gives a command another answer. Begin it before the test opens a client.
 */
#ifndef TESTS_FAKE_SERVER_H
#define TESTS_FAKE_SERVER_H

#include "world.h"

#define FAKE_SILENT "\1silent" /* says nothing */
#define FAKE_CLOSE "\1close"   /* ends the connection */
#define FAKE_ECHO "\1echo"     /* says the first argument: what ECHO is answered unless told otherwise */

struct fake;

struct fake *fake_begin(struct world *w);
void fake_end(struct fake *f); /* and of its clients; at the end of the test it comes by itself */

/* As world_url() and world_client(), to the fake server. */
const char *fake_url(struct fake *f, const char *options);
lk_client_t *fake_client(struct fake *f, const char *options);

/*
 * A '#' in an answer that is an array stands for the last word of what it answers: for a script the request's number.
 *
 * From now on `command` (its first word, upper case) is answered with these bytes, as they are: a whole
 * reply with its line ends, a part of one, or several. fake_answer() takes a text without NULs.
 */
void fake_answer(struct fake *f, const char *command, const char *reply);
void fake_answer_bytes(struct fake *f, const char *command, const char *bytes, size_t length);

/* From now on scripts (EVALSHA) are answered that much later. */
void fake_pause(struct fake *f, int64_t ms);

/* How often the command was asked so far. */
int64_t fake_asked(struct fake *f, const char *command);

#endif
