/* SPDX-License-Identifier: MIT */
/*
 * json.c - options from a JSON file
 *
 * jansson reads the file in short tokens (json_tokens.c), and tells the line of a mistake of syntax only. It returns
 * keys in the order of the text, so a scanner that goes from key to key in step with it knows the line of each.
 */
#include "config/builder.h"
#include "config/file.h"
#include "config/json_tokens.h"
#include "config/name.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define TLS "tls"   /* the group that says by being there that there is TLS */

/* --- lines -------------------------------------------------------------------------------------------- */

struct scanner {
    const char *at, *end;
    int line; /* where `at` is */
};

/* Skip the string that begins here. In JSON no string contains a raw newline. */
static void skip_string(struct scanner *scanner)
{
    for (scanner->at++; scanner->at < scanner->end && *scanner->at != '"'; scanner->at++)
        if (*scanner->at == '\\' && scanner->at + 1 < scanner->end)
            scanner->at++;
    if (scanner->at < scanner->end)
        scanner->at++;
}

/* Skip the next string, or the next character outside strings; returns its first character. */
static char skip(struct scanner *scanner)
{
    char first = *scanner->at;
    if (first == '"')
        skip_string(scanner);
    else
        scanner->at++;
    scanner->line += first == '\n';
    return first;
}

/* Skip the next key, which is a string followed by a colon, and return its line. */
static int next_key(struct scanner *scanner)
{
    while (scanner->at < scanner->end) {
        if (skip(scanner) != '"')
            continue;
        const char *behind = scanner->at;
        while (behind < scanner->end && strchr(" \t\r\n", *behind) != NULL)
            behind++;
        if (behind < scanner->end && *behind == ':')
            break;
    }
    return scanner->line;
}

/* Copy the last string before `end`, as the file writes it, into builder->name. */
static void last_string(struct lk__builder *builder, const char *text, const char *end)
{
    struct scanner scanner = { text, end, 1 };
    while (scanner.at < end) {
        const char *at = scanner.at;
        if (skip(&scanner) == '"' && scanner.at >= at + 2)
            lk__name_print(builder->name, sizeof builder->name, at + 1, (size_t)(scanner.at - at) - 2);
    }
}

/* --- from keys to settings ------------------------------------------------------------------------------ */

enum { GROUPS = 3 };

struct reader {
    struct lk__builder builder;
    struct lk__jsontokens tokens;
    struct scanner scanner;
    bool grouped[GROUPS]; /* the group was given: group_of() - 1 */
    bool in_url;          /* what is being read is the value of url */
    int line;             /* the line of the failure; 0: the file as a whole */
    int lines[64];        /* the line of each setting in lk__settings */
    char number[24];
};

static const char *const must_be[] = {
    [LK__STRING] = "a string",
    [LK__DURATION] = "a string with a unit, such as \"500ms\"",
    [LK__DURATION_OR_NO] = "a string with a unit, such as \"15s\", or false",
    [LK__NUMBER] = "a whole number",
    [LK__FLAG] = "true or false",
    [LK__LIST] = "a list of strings, \"host:port\"",
};

/* The strings of a list with commas between, in memory to be freed; NULL: it has none, or others. */
static int join(struct reader *reader, const json_t *list, char **joined)
{
    size_t size = 1, used = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = lk__jsontokens_string(&reader->tokens, json_string_value(json_array_get(list, i)));
        if (text == NULL || *text == '\0' || strchr(text, ',') != NULL)
            return 0;
        size += strlen(text) + 1;
    }
    if (size == 1)
        return 0;
    *joined = lk__alloc(size);
    if (*joined == NULL)
        return lk__builder_nomem(&reader->builder);
    for (size_t i = 0; i < json_array_size(list); i++)
        used += (size_t)snprintf(*joined + used, size - used, "%s%s", i > 0 ? "," : "",
                                 lk__jsontokens_string(&reader->tokens, json_string_value(json_array_get(list, i))));
    return 0;
}

/* The text that a URL would have for `value`, or NULL if the form is wrong; lives as long as both. */
static const char *text_of(struct reader *reader, enum lk__form form, const json_t *value)
{
    if (form == LK__ANYTHING)
        return "";
    if (form == LK__NUMBER) {
        snprintf(reader->number, sizeof reader->number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return json_is_integer(value) ? reader->number : NULL;
    }
    if (json_is_true(value) && form == LK__FLAG)
        return "yes";
    if (json_is_false(value) && (form == LK__FLAG || form == LK__DURATION_OR_NO))
        return "no";
    return lk__jsontokens_string(&reader->tokens, json_string_value(value));
}

static int put_text(struct reader *reader, const struct lk__setting *setting, const char *text)
{
    if (text == NULL)
        return lk__builder_fail(&reader->builder, EINVAL, setting->json, "must be %s", must_be[setting->form]);
    return lk__setting_put(&reader->builder, setting, text);
}

static int put(struct reader *reader, const struct lk__setting *setting, const json_t *value)
{
    char *joined = NULL;
    reader->lines[setting - lk__settings] = reader->line;
    if (setting->form != LK__LIST)
        return put_text(reader, setting, text_of(reader, setting->form, value));
    int rc = join(reader, value, &joined);
    if (rc == 0)
        rc = put_text(reader, setting, joined);
    lk__free(joined);
    return rc;
}

/* Write "group.key" into builder->name; a longer one is cut, and then no known setting. */
static const char *path_of(struct reader *reader, const char *group, const char *key)
{
    char *name = reader->builder.name;
    size_t size = sizeof reader->builder.name, used = 0;
    if (group != NULL)
        used = (size_t)snprintf(name, size, "%s.", group);
    lk__name_print(name + used, size - used, key, strlen(key));
    return name;
}

/* The group named `name`, from 1 on; 0: there is none. */
static int group_of(const char *key)
{
    static const char *const groups[GROUPS] = { "timeouts", "retry", TLS };
    for (int i = 0; i < GROUPS; i++)
        if (strcmp(key, groups[i]) == 0)
            return i + 1;
    return 0;
}

static int read_object(struct reader *reader, const char *group, json_t *object);

static int read_group(struct reader *reader, const char *group, json_t *object)
{
    bool *given = &reader->grouped[group_of(group) - 1];
    const char *path = path_of(reader, NULL, group);
    if (*given) /* written in another way, or jansson would have said so */
        return lk__builder_fail(&reader->builder, EINVAL, path, "is given twice");
    *given = true;
    if (!json_is_object(object))
        return lk__builder_fail(&reader->builder, EINVAL, path, "must be an object");
    if (strcmp(group, TLS) == 0)
        reader->builder.options.tls.on = true;
    return read_object(reader, group, object);
}

static int read_key(struct reader *reader, const char *group, const char *key, json_t *value)
{
    key = lk__jsontokens_string(&reader->tokens, key);
    reader->line = next_key(&reader->scanner);
    const char *path = path_of(reader, group, key);
    if (group == NULL && group_of(key) != 0)
        return read_group(reader, key, value);
    /* A dot parts a group from its key; a key that has one is no setting. */
    const struct lk__setting *setting = lk__setting_find(LK__FROM_JSON, path, strlen(path));
    if (setting == NULL)
        return lk__builder_unknown(&reader->builder, "key");
    if (strchr(key, '.') != NULL)
        return lk__builder_fail(&reader->builder, EINVAL, path, "no such key: what stands before the dot is an object");
    return put(reader, setting, value);
}

static int read_object(struct reader *reader, const char *group, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        int rc = read_key(reader, group, key, value);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* --- the URL, on which all other keys are laid ------------------------------------------------------------ */

static void skip_keys(struct reader *reader, json_t *value)
{
    const char *key;
    json_t *inner;
    size_t i;
    json_object_foreach(value, key, inner)
    {
        next_key(&reader->scanner);
        skip_keys(reader, inner);
    }
    json_array_foreach(value, i, inner) skip_keys(reader, inner);
}

static int put_ground(struct reader *reader, const char *url)
{
    struct lk__builder *builder = &reader->builder;
    reader->in_url = true;
    int rc = lk__builder_url(builder, url);
    if (rc != 0)
        return rc;
    reader->in_url = false;
    builder->source = LK__FROM_JSON;
    builder->secret = builder->options.password != NULL || builder->options.sentinel_password != NULL;
    for (size_t i = 0; i < lk__settings_count; i++)
        if ((builder->given & UINT64_C(1) << i) != 0)
            reader->lines[i] = reader->line;
    lk__builder_layer(builder);
    return 0;
}

/* Read the URL, wherever in the object it stands. */
static int read_ground(struct reader *reader, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        reader->line = next_key(&reader->scanner);
        if (json_is_string(value) && strcmp(lk__jsontokens_string(&reader->tokens, key), "url") == 0)
            return put_ground(reader, lk__jsontokens_string(&reader->tokens, json_string_value(value)));
        skip_keys(reader, value);
    }
    return 0;
}

/* --- a file ----------------------------------------------------------------------------------------------- */

/* jansson's own words quote the text, which may hold a password. */
static int bad_syntax(struct reader *reader)
{
    struct lk__builder *builder = &reader->builder;
    const struct lk__jsontokens *tokens = &reader->tokens;
    const json_error_t *error = &tokens->error;
    reader->line = error->line;
    if (tokens->too_deep)
        return lk__builder_fail(builder, EINVAL, NULL, "values are nested too deep");
    switch (json_error_code(error)) {
    case json_error_duplicate_key:
        last_string(builder, tokens->text, tokens->text + error->position);
        return lk__builder_fail(builder, EINVAL, builder->name, "is given twice");
    case json_error_premature_end_of_input:
        return lk__builder_fail(builder, EINVAL, NULL, "the text ends too early: a quote or bracket is not closed");
    case json_error_invalid_utf8:
        return lk__builder_fail(builder, EINVAL, NULL, "the text is not UTF-8");
    default:
        return lk__builder_fail(builder, EINVAL, NULL,
                                "no JSON: look for a comma, quote or bracket too many or too few");
    }
}

/* Overwrite what may hold a password in a parsed text: jansson frees without. */
static void wipe_strings(json_t *root)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        if (json_is_string(value))
            explicit_bzero((char *)json_string_value(value), json_string_length(value));
    }
}

static void begin_keys(struct reader *reader, const struct lk__file *file)
{
    reader->scanner = (struct scanner){ file->text, file->text + file->length, 1 };
}

static int read_root(struct reader *reader, const struct lk__file *file, json_t *root)
{
    if (!json_is_object(root))
        return lk__builder_fail(&reader->builder, EINVAL, NULL, "the text must be an object: { ... }");
    begin_keys(reader, file);
    int rc = read_ground(reader, root);
    if (rc != 0)
        return rc;
    begin_keys(reader, file);
    return read_object(reader, NULL, root);
}

static int read_chopped(struct reader *reader, const struct lk__file *file)
{
    struct lk__jsontokens *tokens = &reader->tokens;
    json_t *root;
    int rc = lk__jsontokens_split(tokens, file);
    if (rc == 0)
        rc = lk__parse(tokens->text, tokens->length, JSON_REJECT_DUPLICATES, &root, &tokens->error);
    if (rc != 0)
        return rc == ENOMEM ? lk__builder_nomem(&reader->builder) : bad_syntax(reader);

    rc = read_root(reader, file, root);
    wipe_strings(root);
    json_decref(root);
    return rc;
}

static int read_text(struct reader *reader, const struct lk__file *file)
{
    int rc = read_chopped(reader, file);
    lk__jsontokens_wipe(&reader->tokens);
    return rc;
}

/* Fill in defaults and check; a setting that does not fit is reported on its own line. */
static int finish(struct reader *reader, struct lk__options *options)
{
    int rc = lk__builder_finish(&reader->builder, options);
    const char *subject = reader->builder.subject;
    reader->line = 0;
    for (size_t i = 0; rc != 0 && subject != NULL && i < lk__settings_count; i++)
        if (lk__settings[i].json != NULL && strcmp(lk__settings[i].json, subject) == 0)
            reader->line = reader->lines[i];
    return rc;
}

/* The end of a long path, which says most, so that the words after it fit. */
static const char *short_path(const char *path)
{
    size_t length = strlen(path);
    return length <= 100 ? path : path + length - 100;
}

static void report(const struct reader *reader, int code, const char *path)
{
    const char *subject = reader->builder.subject;
    char line[16] = "";
    if (reader->line > 0)
        snprintf(line, sizeof line, ":%d", reader->line);
    lk__fail(code, "%s%s: %s%s%s%s", short_path(path), line, reader->in_url ? "url: " : "",
             subject != NULL ? subject : "", subject != NULL ? ": " : "", reader->builder.errmsg);
}

static void warn_if_open(const struct reader *reader, const struct lk__file *file, const char *path)
{
    if (reader->builder.secret && S_ISREG(file->mode) && (file->mode & (S_IRGRP | S_IROTH)) != 0)
        lk__log(LK_LOG_WARNING, "%s holds a password and others may read it: chmod 600, or use password_file",
                short_path(path));
}

static int read_file(struct reader *reader, struct lk__options *options, const char *path)
{
    struct lk__file file;
    int rc = lk__file_read(&file, path);
    if (rc != 0)
        return lk__builder_fail(&reader->builder, rc == ENOENT || rc == ENOMEM ? rc : EINVAL, NULL, "%s",
                                lk__file_errmsg(rc));
    rc = read_text(reader, &file);
    if (rc == 0)
        rc = finish(reader, options);
    if (rc == 0)
        warn_if_open(reader, &file, path);
    lk__file_wipe(&file);
    return rc;
}

int lk__options_file(struct lk__options *options, const char *path)
{
    struct reader reader = { .line = 0 };
    int before = errno;
    lk__builder_begin(&reader.builder, LK__FROM_JSON);
    int rc = read_file(&reader, options, path);
    if (rc != 0)
        report(&reader, rc, path);
    lk__builder_drop(&reader.builder);
    errno = before;
    return rc;
}
