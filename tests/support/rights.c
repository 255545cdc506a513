/* SPDX-License-Identifier: MIT */
/* rights.c - see rights.h */
#include "rights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void words_add(struct words *words, const char *word, size_t length)
{
    char text[sizeof words->at[0]];
    assert_that(length < sizeof text && words->count < WORDS_MAX);
    snprintf(text, sizeof text, "%.*s", (int)length, word);
    if (!words_have(words, text))
        strcpy(words->at[words->count++], text);
}

bool words_have(const struct words *words, const char *word)
{
    for (int i = 0; i < words->count; i++)
        if (strcmp(words->at[i], word) == 0)
            return true;
    return false;
}

static int only_in(const struct words *a, const struct words *b, const char *a_name, const char *b_name)
{
    int count = 0;
    for (int i = 0; i < a->count; i++)
        if (!words_have(b, a->at[i])) {
            print_error("%s is in %s and not in %s\n", a->at[i], a_name, b_name);
            count++;
        }
    return count;
}

int words_compare(const struct words *a, const struct words *b, const char *a_name, const char *b_name)
{
    return only_in(a, b, a_name, b_name) + only_in(b, a, b_name, a_name);
}

char *source_text(const char *path)
{
    char full[512], *text = calloc(1, 1 << 18);
    snprintf(full, sizeof full, "%s%s%s", path[0] == '/' ? "" : LK_SOURCE_DIR, path[0] == '/' ? "" : "/", path);
    FILE *file = fopen(full, "r");
    if (file == NULL || text == NULL)
        assert_failed(__FILE__, __LINE__, "cannot read %s", full);
    size_t length = fread(text, 1, (1 << 18) - 1, file);
    assert_that(feof(file) && length > 0);
    fclose(file);
    return text;
}

char *text_of_script(const struct lk__script *script)
{
    char *text = calloc(1, lk__script_length(script, LK__PUBSUB_PLAIN) + 1);
    assert_that(text != NULL);
    lk__script_write(script, LK__PUBSUB_PLAIN, text);
    return text;
}

void rights_documented(struct words *rights)
{
    char *docs = source_text("docs/security.md"), *rule = strstr(docs, "\n    ACL SETUSER app ");
    assert_that(rule != NULL);
    char *end = strstr(rule, "\n\n"), *save;
    assert_that(end != NULL);
    *end = '\0';
    rights->count = 0;
    for (char *word = strtok_r(rule, " \n", &save); word != NULL; word = strtok_r(NULL, " \n", &save))
        if (strchr("+~&", word[0]) != NULL)
            words_add(rights, word, strlen(word));
    free(docs);
}

void rights_user(struct world *w, const struct words *rights, const char *names, const char *without)
{
    world_redis(w, "ACL SETUSER app reset on >secret resetkeys resetchannels -@all");
    for (int i = 0; i < rights->count; i++) {
        if (without != NULL && strcmp(rights->at[i], without) == 0)
            continue;
        const char *right = strcmp(rights->at[i], "~PREFIX*") == 0 ? names : rights->at[i];
        world_redis(w, "ACL SETUSER app %s", right);
    }
}

const char *rights_url(struct world *w, const char *options)
{
    static char url[4][512];
    static unsigned next;
    char *text = url[next++ % 4];
    snprintf(text, sizeof url[0], "unix://app:secret@%s%s%s", w->socket, options[0] != '\0' ? "?" : "", options);
    return text;
}
