/* SPDX-License-Identifier: MIT */
/*
 * script.h - scripts as the build makes them from the .lua files, see cmake/scripts.py
 */
#ifndef LK__SCRIPT_H
#define LK__SCRIPT_H

#include "base/base.h"
#include "redis/vocabulary.h"

enum lk__argument_kind {
    LK__ARG_TEXT,        /* a member of the script's args ... */
    LK__ARG_NUMBER,      /* ... likewise */
    LK__ARG_FLAGS,       /* `flags` of its args and those that are sent, as one number */
    LK__ARG_SENT_TEXT,   /* a member of struct lk__sent ... */
    LK__ARG_SENT_NUMBER, /* ... likewise */
    LK__ARG_SENT_FLAGS,  /* the flags of that alone */
    LK__ARG_REQUEST      /* the number of the request */
};

/* One ARGV of a script, and where in its struct the value is. */
struct lk__argument {
    unsigned char kind; /* enum lk__argument_kind */
    unsigned short at;
};

/* How a reply goes on with this verdict, a letter an element: n, t; behind ? they may be missing, * repeats. */
struct lk__shape {
    enum lk__verdict verdict;
    const char *elements;
};

/* Whom a message reaches: all who subscribed, or those who did so where the channel's slot of a cluster is. */
enum lk__pubsub_kind { LK__PUBSUB_PLAIN, LK__PUBSUB_SHARDED, LK__PUBSUB_KINDS };

enum { LK__SHA1_LENGTH = 40 };

struct lk__script {
    const char *name;                   /* "lock/acquire" */
    const char *const *pieces;          /* of its text, up to NULL: what several scripts share is in the library once */
    size_t length;                      /* of all pieces */
    bool publishes;                     /* a line with the name of the command stands in front of them */
    const char *sha1[LK__PUBSUB_KINDS]; /* of each text; all the same if it does not publish */
    int keys;                           /* number of KEYS */

    /* NULL and 0 of one whose callers make the call and read the reply themselves */
    const unsigned short *key_at; /* offsets in the module's struct of keys */
    const struct lk__argument *args;
    int arg_count;
    bool undated;               /* some answers have 0 for the server's time */
    bool takes_settings;        /* a settings mark may come: one key more, and behind the other ARGV one or two */
    unsigned flags, sent_flags; /* those that it takes */
    const struct lk__shape *shapes;
    int shape_count;
    const struct lk__script *batch; /* does for several keys what this one does for its key; or NULL */
    /*
     * What stands for it, step by step, where a cluster refuses it as some of its keys are elsewhere: scripts of one key
     * each, with this one's keys and arguments. The first one is for a mark, or NULL; the second gives back, and answers as
     * this one does. Both NULL: nothing does.
     */
    const struct lk__script *instead[2];
};

/* The text of a script that publishes such messages: how long it is, and to write it, without a NUL. */
size_t lk__script_length(const struct lk__script *script, enum lk__pubsub_kind pubsub);
char *lk__script_write(const struct lk__script *script, enum lk__pubsub_kind pubsub, char *out); /* returns its end */

#endif
