/* SPDX-License-Identifier: MIT */
/*
 * wire.h - a blocking connection to Redis with nothing on top, the yardstick of all figures
 *
 * One thread uses a wire. Whatever goes wrong ends the program: a figure of a broken run is worth nothing.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire;

/* Bytes to be sent: commands one after another. Zeroes are an empty one. */
struct wire_out {
    char *bytes;
    size_t length, room;
};

/* A whole reply with all that is nested in it, valid until the next one is read. */
struct wire_reply {
    const char *bytes; /* the first is the type: + - : $ * _ > */
    size_t length;
};

struct wire *wire_open(const char *address); /* path of a Unix socket, or host:port */
void wire_close(struct wire *wire);
int wire_fd(const struct wire *wire);

void wire_begin(struct wire_out *out, int words); /* a command of so many words follows ... */
void wire_word(struct wire_out *out, const char *bytes, size_t length);
void wire_put(struct wire_out *out, const char *const words[]); /* a whole one; NULL ends the words */

struct wire_out *wire_scratch(struct wire *wire); /* emptied; the wire's own, to be filled for one wire_send() */
void wire_send(struct wire *wire, const struct wire_out *out);
struct wire_reply wire_read(struct wire *wire); /* waits; an error ends the program */
bool wire_pending(const struct wire *wire);     /* a whole reply was received and not read yet */
void wire_drain(struct wire *wire);             /* drop what is there without waiting */

/* One command and its reply. */
struct wire_reply wire_ask(struct wire *wire, const char *const words[]);
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

int64_t reply_number(struct wire_reply reply); /* of an integer, or what a string or an array begins with */
bool reply_is_nil(struct wire_reply reply);

/* Load a script; `sha1` has room for 41 bytes. */
void wire_load(struct wire *wire, const char *script, char *sha1);

#endif
