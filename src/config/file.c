/* SPDX-License-Identifier: MIT */
/*
 * file.c - options from a JSON file
 *
 * All values are put into the options when the whole text was read: the URL first, because others replace its settings.
 * A value of a form that its setting does not have is refused where it begins.
 */
#include "config/json.h"
#include "config/name.h"
#include "config/settings.h"

#include <stdio.h>
#include <string.h>

struct value {
    const struct lk__setting *setting;
    struct lk__jsonvalue json;
    int line; /* of its key */
};

struct reader {
    struct lk__builder builder;
    struct lk__json json;
    int line; /* where the failure is; 0: the file as a whole */
    size_t count;
    struct value values[LK__SETTINGS_MAX]; /* in the order of the text, each setting once */
};

static int bad_syntax(struct reader *reader)
{
    reader->line = reader->json.line;
    return lk__builder_fail(&reader->builder, EINVAL, NULL, "%s", reader->json.flaw);
}

/* The value is of no form that the setting has. */
static int misformed(struct reader *reader, const struct value *value)
{
    reader->line = value->line;
    return lk__setting_misformed(&reader->builder, value->setting);
}

/* The strings of a list, with commas between, where it stood. */
static int read_list(struct reader *reader, struct value *value)
{
    struct lk__json *json = &reader->json;
    char *to = json->at++;
    value->json.text = to;
    do {
        if (to > value->json.text)
            *to++ = ',';
        const char *text = to;
        if (lk__json_next(json) != '"')
            return misformed(reader, value);
        if (!lk__json_string(json, &to))
            return bad_syntax(reader);
        if (to == text || strchr(text, ',') != NULL)
            return misformed(reader, value);
    } while (lk__json_skip(json, ','));
    return lk__json_skip(json, ']') || lk__json_bad(json) ? 0 : bad_syntax(reader);
}

static int read_object(struct reader *reader, const char *group);

static int read_value(struct reader *reader, struct value *value)
{
    const enum lk__type type = value->setting->type;
    if (!lk__json_value(&reader->json, &value->json))
        return bad_syntax(reader);
    if (value->json.form == '[')
        return type == LK__NODES ? read_list(reader, value) : misformed(reader, value);
    if (value->json.form == '{')
        return type == LK__GROUP ? read_object(reader, value->setting->json) : misformed(reader, value);
    return 0;
}

/* `group`: the key of the object; NULL: the whole text is it. */
static int read_key(struct reader *reader, const char *group)
{
    struct lk__builder *builder = &reader->builder;
    struct value *value = &reader->values[reader->count];
    const char *key;
    reader->line = lk__json_key(&reader->json, &key);
    if (reader->line == 0)
        return bad_syntax(reader);
    int used = group != NULL ? snprintf(builder->name, sizeof builder->name, "%s.", group) : 0;
    lk__name_print(builder->name + used, sizeof builder->name - (size_t)used, key, strlen(key));
    *value = (struct value){ .setting = lk__setting_find(LK__FROM_JSON, builder->name), .line = reader->line };
    if (value->setting == NULL)
        return lk__builder_unknown(builder, "key");
    if (strchr(key, '.') != NULL)
        return lk__builder_fail(builder, EINVAL, builder->name,
                                "no such key: what stands before the dot is an object");
    for (size_t i = 0; i < reader->count; i++)
        if (reader->values[i].setting == value->setting)
            return lk__builder_fail(builder, EINVAL, value->setting->json, "is given twice");
    reader->count++;
    return read_value(reader, value);
}

/* Read from "{" to "}". */
static int read_object(struct reader *reader, const char *group)
{
    struct lk__json *json = &reader->json;
    int rc;
    json->at++;
    if (lk__json_skip(json, '}'))
        return 0;
    do
        rc = read_key(reader, group);
    while (rc == 0 && lk__json_skip(json, ','));
    return rc != 0 || lk__json_skip(json, '}') || lk__json_bad(json) ? rc : bad_syntax(reader);
}

static int read_text(struct reader *reader)
{
    struct lk__json *json = &reader->json;
    if (lk__json_next(json) == '[')
        return lk__builder_fail(&reader->builder, EINVAL, NULL, "the text must be an object: { ... }");
    if (*json->at != '{') {
        lk__json_bad(json);
        return bad_syntax(reader);
    }
    int rc = read_object(reader, NULL);
    return rc != 0 || lk__json_ended(json) ? rc : bad_syntax(reader);
}

/* The text that a URL would have for `value`; NULL: its form is wrong. */
static const char *text_of(const struct value *value)
{
    const enum lk__type type = value->setting->type;
    const bool flag = type == LK__YES || type == LK__NO;
    if (flag && value->json.form == 't')
        return "yes";
    if ((flag || type == LK__DURATION_OR_NO) && value->json.form == 'f')
        return "no";
    const char form = type == LK__NUMBER ? '0' : type == LK__NODES ? '[' : type == LK__GROUP ? '{' : '"';
    return value->json.form == form ? value->json.text : NULL;
}

/* Put the URL, or all others, into the options. */
static int put_values(struct reader *reader, bool url)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < reader->count; i++) {
        const struct value *value = &reader->values[i];
        const char *text = text_of(value);
        if ((value->setting->type == LK__URL) != url)
            continue;
        reader->line = value->line;
        rc = text == NULL ? misformed(reader, value)
             : url        ? lk__builder_url(&reader->builder, text)
                          : lk__setting_put(&reader->builder, value->setting, text);
    }
    return rc;
}

static int put_all(struct reader *reader)
{
    struct lk__builder *builder = &reader->builder;
    int rc = put_values(reader, true);
    if (rc != 0)
        return rc;
    builder->source = LK__FROM_JSON;
    builder->secret = builder->options.password != NULL || builder->options.sentinel_password != NULL;
    builder->server = builder->password = builder->sentinel_password = false; /* the file may replace those of the URL */
    return put_values(reader, false);
}

/* Fill in defaults and check; a setting that does not fit is reported on its own line, or that of the URL. */
static int finish(struct reader *reader, struct lk__options *options)
{
    int rc = lk__builder_finish(&reader->builder, options);
    const char *subject = reader->builder.subject;
    reader->line = 0;
    for (size_t i = 0; rc != 0 && subject != NULL && i < reader->count; i++) {
        const struct value *value = &reader->values[i];
        if (strcmp(value->setting->json, subject) == 0 || (value->setting->type == LK__URL && reader->line == 0))
            reader->line = value->line;
    }
    return rc;
}

static int read_file(struct reader *reader, struct lk__options *options, const char *path, mode_t *mode)
{
    struct lk__file file;
    int rc = lk__file_read(&file, path);
    if (rc != 0)
        return lk__builder_fail(&reader->builder, rc == ENOENT || rc == ENOMEM ? rc : EINVAL, NULL, "%s",
                                lk__file_errmsg(rc));
    reader->json = (struct lk__json){ .at = file.text, .end = file.text + file.length, .line = 1 };
    *mode = file.mode;
    rc = read_text(reader);
    if (rc == 0)
        rc = put_all(reader);
    lk__file_wipe(&file);
    return rc != 0 ? rc : finish(reader, options);
}

int lk__options_file(struct lk__options *options, const char *path)
{
    struct reader reader = { .builder.source = LK__FROM_JSON };
    const struct lk__builder *builder = &reader.builder;
    const size_t length = strlen(path);
    const char *end = length <= 100 ? path : path + length - 100, *subject; /* says most, and words after it fit */
    char line[16] = "";
    mode_t mode = 0;
    int before = errno, rc = read_file(&reader, options, path, &mode);
    subject = builder->subject;
    if (rc == 0 && builder->secret && S_ISREG(mode) && (mode & (S_IRGRP | S_IROTH)) != 0)
        lk__log(LK_LOG_WARNING, "%s holds a password and others may read it: chmod 600, or use password_file", end);
    if (reader.line > 0)
        snprintf(line, sizeof line, ":%d", reader.line);
    if (rc != 0)
        lk__fail(rc, "%s%s: %s%s%s%s", end, line, builder->source == LK__FROM_URL ? "url: " : "",
                 subject != NULL ? subject : "", subject != NULL ? ": " : "", builder->errmsg);
    lk__options_clear(&reader.builder.options);
    errno = before;
    return rc;
}
