/* SPDX-License-Identifier: MIT */
/*
 * builder.h - how options are read: one table of settings, which URLs and JSON files share
 *
 * A reader (url.c, json.c) begins a builder, puts each setting it meets into it as text, and finishes it.
 * A failed step keeps its error text in the builder; the reader adds where it was reading and hands them on.
 * For the files of this folder only; the others know options.h.
 */
#ifndef LK__CONFIG_BUILDER_H
#define LK__CONFIG_BUILDER_H

#include "config/address.h"
#include "config/options.h"

#define LK__SECOND_MS INT64_C(1000)

enum lk__source { LK__FROM_URL, LK__FROM_JSON };

struct lk__builder {
    struct lk__options options; /* the settings given so far; owns its strings */
    enum lk__source source;     /* what settings are called in error texts */
    uint64_t given;             /* bit i: lk__settings[i] was given, in this layer */
    bool server, password;      /* likewise, by any setting */
    bool sentinel_password;     /* likewise */
    bool single;                /* mode: single was given */
    bool sentinels;             /* likewise sentinel, or a URL says so */
    bool cluster;               /* likewise cluster */
    bool quorum;                /* likewise quorum */
    bool secret;                /* a password stands in the text itself */
    bool shared;                /* other libraries read it, too, and know other parameters */
    bool silent;                /* likewise, and what was left out was told before */

    /* the failure */
    const char *subject; /* which setting it is about; NULL: the text says it */
    char errmsg[224];    /* never a password */
    char name[48];       /* a subject that is stored nowhere else */
};

/* The form of a value in JSON. In a URL each value is text. */
enum lk__form { LK__STRING, LK__DURATION, LK__DURATION_OR_NO, LK__NUMBER, LK__FLAG, LK__LIST, LK__ANYTHING };

struct lk__setting {
    const char *url;  /* name of the parameter; NULL: not in a URL */
    const char *json; /* path of the key; NULL: not in a file */
    enum lk__form form;
    int (*put)(struct lk__builder *builder, const struct lk__setting *setting, const char *text);
    size_t field; /* where `put` writes, an offset in struct lk__options; 0: `put` knows the field */
};

extern const struct lk__setting lk__settings[];
extern const size_t lk__settings_count;

/* The setting named `name` in `source`, or NULL. */
const struct lk__setting *lk__setting_find(enum lk__source source, const char *name, size_t length);
/* What `source` calls it. */
const char *lk__setting_name(enum lk__source source, const struct lk__setting *setting);

void lk__builder_begin(struct lk__builder *builder, enum lk__source source);

/* What was given until now is the ground: each of it may be given once more, and is replaced then. */
void lk__builder_layer(struct lk__builder *builder);

/* Add a setting. EINVAL also when it was given before; ENOTSUP, ENOMEM. */
int lk__setting_put(struct lk__builder *builder, const struct lk__setting *setting, const char *text);

/* Fail as builder->name is not known; the words have the nearest name that is. `noun`: what it is called there. */
int lk__builder_unknown(struct lk__builder *builder, const char *noun);

/* Add what a URL says. EINVAL, ENOTSUP, ENOMEM; what is wrong is called as in URLs. */
int lk__builder_url(struct lk__builder *builder, const char *url);

/* --- address.c ------------------------------------------------------------------------------------- */

/* Say where servers are: "host", "host:port" or "[IPv6]:port", or several with commas between; "" means 127.0.0.1. */
int lk__builder_servers(struct lk__builder *builder, const char *subject, const char *text);

/* Of those that were said without a port fill it in: it depends on what listens there. */
void lk__builder_ports(struct lk__builder *builder);

/* Add the server: the path of a unix socket. */
int lk__builder_socket(struct lk__builder *builder, const char *subject, const char *path);

/* Fill in defaults, check what was given, and move the whole to `options`, on success only. */
int lk__builder_finish(struct lk__builder *builder, struct lk__options *options);

/* Free what a builder still holds. */
void lk__builder_drop(struct lk__builder *builder);

/* Keep the text of a failure and return `code`. `subject` is kept as a pointer. */
int lk__builder_fail(struct lk__builder *builder, int code, const char *subject, const char *format, ...)
    LK__PRINTF(4, 5);
int lk__builder_nomem(struct lk__builder *builder);

/* Leave a setting out that failed, with a warning. */
void lk__builder_leaveout(struct lk__builder *builder);

/* --- secret.c: passwords ------------------------------------------------------------------------- */

/* Set a password: in a file `${NAME}` and `${NAME:-default}` are looked up in the environment. */
int lk__put_password(struct lk__builder *builder, const struct lk__setting *setting, const char *text);

/* Set the password to the content of a file, without the newline at its end. */
int lk__put_password_file(struct lk__builder *builder, const struct lk__setting *setting, const char *path);

#endif
