/* SPDX-License-Identifier: MIT */
/*
 * json_tokens.h - JSON in tokens so short that jansson cannot lose a part of one
 *
 * jansson collects each token in a buffer that grows with it, and does not notice when that fails: characters are
 * missing then, of a password or an address, and without its closing quote a text is read beyond its end. The
 * buffer it begins with holds the longest token of what is made here.
 */
#ifndef LK__CONFIG_JSON_TOKENS_H
#define LK__CONFIG_JSON_TOKENS_H

#include "config/file.h"

#include <jansson.h>

struct lk__jsontokens {
    char *text; /* as the file's, line by line, but a long string is "#" and where it is in `strings` */
    size_t length;
    char *strings; /* the long strings, decoded */
    size_t used;
    bool too_deep;      /* with EINVAL: values are nested deeper than any setting is */
    json_error_t error; /* with EINVAL: jansson's words, and the line in the file */
};

/* Returns 0, ENOMEM or EINVAL. The caller wipes `tokens` in each case. */
int lk__jsontokens_split(struct lk__jsontokens *tokens, const struct lk__file *file);
void lk__jsontokens_wipe(struct lk__jsontokens *tokens); /* overwrites and frees */

/* A key or a string of the parsed text as the file has it; valid as long as both exist. NULL: none. */
const char *lk__jsontokens_string(const struct lk__jsontokens *tokens, const char *text);

/* As json_loadb(), but tells the codes apart: 0, ENOMEM, EINVAL with `error` set. */
int lk__parse(const char *text, size_t length, size_t flags, json_t **root, json_error_t *error);

#endif
