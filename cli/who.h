/* SPDX-License-Identifier: MIT */
/*
 * who.h - who an owner, a holder or a waiter is, in its own words, which nobody checks
 */
#ifndef CLI_WHO_H
#define CLI_WHO_H

#include <jansson.h>
#include <latchkey/latchkey.h>
#include <stdbool.h>

enum { PEOPLE_MAX = 10, WHO_WORDS = 1300, CLIENT_ID = 32 /* digits: ids of a client begin with it */ };

struct person {
    char id[160];
    bool known; /* who says something */
    lk_who_t who;
};

/* Those who hold an object, or wait for it: the first of them, and how many there are. */
struct people {
    struct person person[PEOPLE_MAX];
    unsigned count;
};

/* Ask who that is. 0, ENOENT: it says nothing, or another code of the library. */
int ask_who(lk_client_t *client, const char *id, lk_who_t *who);

/* Who holds, and who waits for, the object of `kind` (as of a row) that has the name. 0, or a code of the library. */
int ask_holders(lk_client_t *client, const char *kind, const char *name, struct people *people);
int ask_waiters(lk_client_t *client, const char *kind, const char *name, struct people *people);

/* "web-3:712 nightly --all (export)", as a terminal can show it. */
const char *who_words(char text[WHO_WORDS], const lk_who_t *who);

/* An object of host, pid, program, arguments and why, without those that were not said; the caller's. */
json_t *who_object(const lk_who_t *who);

/* An array of objects of owner and, where it is known, who. */
json_t *people_array(const struct people *people);

#endif
