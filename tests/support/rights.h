/* SPDX-License-Identifier: MIT */
/*
 * rights.h - the access rule of docs/security.md, word by word, and users made of it
 */
#ifndef TESTS_RIGHTS_H
#define TESTS_RIGHTS_H

#include "redis/redis.h"
#include "world.h"

enum { WORDS_MAX = 128 };

/* Texts in the order they came, each once. */
struct words {
    char at[WORDS_MAX][48];
    int count;
};

void words_add(struct words *words, const char *word, size_t length);
bool words_have(const struct words *words, const char *word);
int words_compare(const struct words *a, const struct words *b, const char *a_name,
                  const char *b_name); /* differences, printed */

/* A file of the source tree; to be freed. Fails the test if it is not there. */
char *source_text(const char *path);

/* What a server gets to know a script by, with plain messages; to be freed. */
char *text_of_script(const struct lk__script *script);

/* The words of the rule in docs/security.md that begin with '+', '~' or '&', as they stand there. */
void rights_documented(struct words *rights);

/*
 * Make the user `app` with the password "secret" and these rights but `without` (NULL: all). `names` is the
 * pattern of names in place of the documented PREFIX*.
 */
void rights_user(struct world *w, const struct words *rights, const char *names, const char *without);

/* The URL of that user. */
const char *rights_url(struct world *w, const char *options);

#endif
