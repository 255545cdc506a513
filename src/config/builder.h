/* SPDX-License-Identifier: MIT */
/*
 * settings.h - the one table of options that URLs and JSON files share
 *
 * A reader (url.c, json.c) begins a draft, puts each setting it meets into it as text, and finishes it.
 * A failed step keeps its words in the draft; the reader adds where it was reading and hands them on.
 * For the files of this folder only; the others know options.h.
 */
#ifndef LK__REDIS_SETTINGS_H
#define LK__REDIS_SETTINGS_H

#include "config/options.h"

#include <sys/stat.h>

enum lk__source { LK__FROM_URL, LK__FROM_JSON };

struct lk__draft {
    struct lk__options options; /* what was said so far; owns its strings */
    enum lk__source source;     /* how settings are called in words */
    uint64_t given;             /* bit i: lk__settings[i] was said */
    bool secret;                /* a password stands in the text itself */

    /* the failure */
    const char *subject; /* which setting it is about; NULL: the words say it */
    char errmsg[224];    /* never a password */
    char name[48];       /* room for a subject that nobody else keeps */
};

/* How JSON writes a value. A URL writes the same as text. */
enum lk__form { LK__STRING, LK__DURATION, LK__DURATION_OR_NO, LK__NUMBER, LK__FLAG, LK__LIST, LK__ANYTHING };

struct lk__setting {
    const char *url;  /* name of the parameter; NULL: not in a URL */
    const char *json; /* path of the key; NULL: not in a file */
    enum lk__form form;
    int (*put)(struct lk__draft *builder, const struct lk__setting *setting, const char *text);
    size_t field; /* where `put` writes, an offset in struct lk__options; 0: it knows itself */
};

extern const struct lk__setting lk__settings[];
extern const size_t lk__settings_count;

/* The setting that is called so in `source`, or NULL. */
const struct lk__setting *lk__setting_find(enum lk__source source, const char *name, size_t length);

void lk__draft_begin(struct lk__draft *builder, enum lk__source source);

/* Take a setting. EINVAL also when it was there before; ENOTSUP, ENOMEM. */
int lk__draft_put(struct lk__draft *builder, const struct lk__setting *setting, const char *text);

/* Take "host", "host:port" or "[IPv6]:port"; no host means 127.0.0.1. */
int lk__draft_server(struct lk__draft *builder, const char *subject, const char *text);

/* Take the path of a unix socket. */
int lk__draft_socket(struct lk__draft *builder, const char *subject, const char *path);

/* Complete what was not said, check what was, and move it all to `options`: on success only. */
int lk__draft_finish(struct lk__draft *builder, struct lk__options *options);

/* Free what a draft still holds. */
void lk__draft_drop(struct lk__draft *builder);

/* Keep the words of a failure and return `code`. `subject` is kept as a pointer. */
int lk__draft_fail(struct lk__draft *builder, int code, const char *subject, const char *format, ...) LK__PRINTF(4, 5);
int lk__draft_nomem(struct lk__draft *builder);

/* --- secret.c: files that may hold a password, and passwords from elsewhere ---------------------- */

struct lk__file {
    char *text; /* NUL behind it */
    size_t length;
    mode_t mode; /* type and permissions */
};

/*
 * Read a file of at most 1 MiB. 0; ENOMEM (memory, descriptors), else another errno for
 * lk__file_words(), EFBIG when it is too large.
 */
int lk__file_read(struct lk__file *file, const char *path);
void lk__file_wipe(struct lk__file *file); /* overwrites and frees; accepts zeroes */
const char *lk__file_words(int code);

/* Take a password: `${NAME}` and `${NAME:-default}` are looked up in the environment. */
int lk__put_password(struct lk__draft *builder, const struct lk__setting *setting, const char *text);

/* Take what a file holds, without the newline at its end, as the password. */
int lk__put_password_file(struct lk__draft *builder, const struct lk__setting *setting, const char *path);

/* Overwrite and free a string; accepts NULL. */
void lk__wipe(char *secret);

#endif
