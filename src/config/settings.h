/* SPDX-License-Identifier: MIT */
/*
 * settings.h - the table of settings, which URLs and JSON files share, and the options while they are read
 *
 * A reader (url.c, json.c) puts the text of each setting that it meets into a builder, and finishes it. A failed step
 * keeps its words in the builder; the reader adds where it was reading. Other folders include options.h.
 */
#ifndef LK__CONFIG_SETTINGS_H
#define LK__CONFIG_SETTINGS_H

#include "config/options.h"

#define LK__SECOND_MS INT64_C(1000)
#define LK__DAY_MS (24 * 60 * 60 * LK__SECOND_MS) /* the longest time that a setting accepts */

enum lk__source { LK__FROM_URL, LK__FROM_JSON };
enum lk__mode { LK__MODE_OPEN, LK__SINGLE, LK__SENTINEL, LK__CLUSTER, LK__QUORUM };

struct lk__builder {
    struct lk__options options; /* the settings given so far; owns its strings */
    enum lk__source source;     /* what settings are called in error texts */
    enum lk__mode mode;         /* by the scheme of a URL, or by `mode` */
    uint64_t given;             /* bit i: the URL has lk__settings[i] */
    bool server, password;      /* given, by any setting, since the URL below a file was read */
    bool sentinel_password;     /* likewise */
    bool secret;                /* a password stands in the text itself */
    bool shared;                /* other libraries read it, too, and know other parameters */
    bool silent;                /* likewise, and what was left out was told before */

    /* the failure */
    const char *subject; /* which setting it is about; NULL: the text says it */
    char errmsg[224];    /* never a password */
    char name[48];       /* a subject that is stored nowhere else */
};

/* How the text of a value is read. */
enum lk__type {
    LK__TEXT, /* this type and the next four have a string in the options */
    LK__CLIENT_NAME,
    LK__PREFIX,
    LK__PASSWORD,
    LK__PASSWORD_FILE, /* its row stands behind that of its password */
    LK__DURATION,
    LK__DURATION_OR_NO,
    LK__NUMBER,
    LK__YES, /* a flag that "yes" sets */
    LK__NO,  /* a flag that "no" sets */
    LK__MODE,
    LK__ADDRESS,
    LK__NODES,
    LK__PATH,
    LK__GROUP, /* an object of others; where tls is one, there is TLS */
    LK__URL
};

struct lk__setting {
    const char *url;  /* name of the parameter; NULL: not in a URL */
    const char *json; /* path of the key */
    enum lk__type type;
    size_t field;         /* in struct lk__options */
    int64_t least, most;  /* of a number */
    int64_t otherwise_ms; /* a time that is not given: this, */
    int64_t share;        /* or, if that is less, one of so many parts of the lease; 0: no part */
};

enum { LK__SETTINGS_MAX = 64 };
extern const struct lk__setting lk__settings[];
extern const size_t lk__settings_count;

/* The setting named `name` in `source`, or NULL. */
const struct lk__setting *lk__setting_find(enum lk__source source, const char *name);
/* What `source` calls it. */
const char *lk__setting_name(enum lk__source source, const struct lk__setting *setting);

/* Keep the words of a failure and return `code`. `subject` is kept as a pointer. */
int lk__builder_fail(struct lk__builder *builder, int code, const char *subject, const char *format, ...)
    LK__PRINTF(4, 5);
int lk__builder_nomem(struct lk__builder *builder);
/* Fail because builder->name is not known; the words have the nearest name that is. `noun`: what it is called there. */
int lk__builder_unknown(struct lk__builder *builder, const char *noun);

/* --- values.c ------------------------------------------------------------------------------------------- */

/* Read `text` into the setting's field. EINVAL, ENOMEM. */
int lk__setting_put(struct lk__builder *builder, const struct lk__setting *setting, const char *text);
/* Fail because JSON has another form of value. */
int lk__setting_misformed(struct lk__builder *builder, const struct lk__setting *setting);

/* Where servers are: "host", "host:port" or "[IPv6]:port", or several with commas between; "" means 127.0.0.1. */
int lk__builder_servers(struct lk__builder *builder, const char *subject, const char *text);
/* The path of a unix socket. */
int lk__builder_socket(struct lk__builder *builder, const char *subject, const char *path);

/* --- secret.c ------------------------------------------------------------------------------------------- */

/* Set a password: in a file `${NAME}` and `${NAME:-default}` are looked up in the environment. */
int lk__put_password(struct lk__builder *builder, const struct lk__setting *setting, const char *text);
/* Set it to the content of a file, without the newline at its end. */
int lk__put_password_file(struct lk__builder *builder, const struct lk__setting *setting, const char *path);

/* --- options.c, url.c --------------------------------------------------------------------------------------- */

/* Fill in defaults, check what was given, and move the whole to `options`, on success only. */
int lk__builder_finish(struct lk__builder *builder, struct lk__options *options);
/* Add what a URL says. EINVAL, ENOMEM; what is wrong is called as in URLs. */
int lk__builder_url(struct lk__builder *builder, const char *url);

#endif
