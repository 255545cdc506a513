/* SPDX-License-Identifier: MIT */
/* secret.c - passwords: as they stand, from the environment, or from a file of their own */
#include "config/builder.h"
#include "config/file.h"

#include <stdlib.h>
#include <string.h>

/* Which password a setting is about: the servers', or the Sentinels'. */
struct secret {
    char **password, **file;
    bool *given;
    const char *prefix; /* of the settings' names */
};

static struct secret secret_of(struct lk__builder *builder, const struct lk__setting *setting)
{
    struct lk__options *o = &builder->options;
    if (setting->field == offsetof(struct lk__options, sentinel_password))
        return (struct secret){ &o->sentinel_password, &o->sentinel_password_file, &builder->sentinel_password,
                                "sentinel_" };
    return (struct secret){ &o->password, &o->password_file, &builder->password, "" };
}

static int keep_password(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    struct secret secret = secret_of(builder, setting);
    if (*secret.given)
        return lk__builder_fail(builder, EINVAL, setting->json,
                                "there is a password already: %spassword or %spassword_file", secret.prefix,
                                secret.prefix);
    *secret.given = true;
    lk__wipe(*secret.password); /* of the layer below */
    lk__free(*secret.file);
    *secret.file = NULL;
    *secret.password = lk__strdup(text);
    return *secret.password != NULL ? 0 : lk__builder_nomem(builder);
}

/* Length of the variable's name at `text`; 0: there is none. */
static size_t variable_length(const char *text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return *text >= '0' && *text <= '9' ? 0 : strspn(text, allowed);
}

/* `text` is what follows "${", with the last '}' cut off. */
static int put_variable(struct lk__builder *builder, const struct lk__setting *setting, char *text)
{
    size_t length = variable_length(text);
    char *otherwise = NULL;
    if (length > 0 && strncmp(text + length, ":-", 2) == 0)
        otherwise = text + length + 2;
    else if (length == 0 || text[length] != '\0')
        return lk__builder_fail(builder, EINVAL, setting->json,
                                "looks like a variable, but is no ${NAME} or ${NAME:-text}");

    builder->secret |= otherwise != NULL && *otherwise != '\0';
    text[length] = '\0';
    const char *value = getenv(text);
    if (value != NULL && *value != '\0')
        return keep_password(builder, setting, value);
    if (otherwise == NULL)
        return lk__builder_fail(builder, EINVAL, setting->json, "the environment variable %.64s is not set", text);
    return keep_password(builder, setting, otherwise);
}

int lk__put_password(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    size_t length = strlen(text);
    if (builder->source == LK__FROM_URL || strncmp(text, "${", 2) != 0 || text[length - 1] != '}') {
        builder->secret = true;
        return keep_password(builder, setting, text);
    }

    char *inner = lk__strdup(text + 2);
    if (inner == NULL)
        return lk__builder_nomem(builder);
    inner[length - 3] = '\0';
    int rc = put_variable(builder, setting, inner);
    explicit_bzero(inner, length - 2);
    lk__free(inner);
    return rc;
}

/* `file` without the newline at its end; NULL, or words of its flaw. */
static const char *trim(struct lk__file *file)
{
    if (file->length > 0 && file->text[file->length - 1] == '\n')
        file->text[--file->length] = '\0';
    if (file->length > 0 && file->text[file->length - 1] == '\r')
        file->text[--file->length] = '\0';
    if (file->length == 0)
        return "the file is empty";
    return strlen(file->text) != file->length ? "the file has a NUL in it" : NULL;
}

int lk__put_password_file(struct lk__builder *builder, const struct lk__setting *setting, const char *path)
{
    struct lk__file file;
    int rc = lk__file_read(&file, path);
    if (rc == ENOMEM)
        return lk__builder_nomem(builder);
    if (rc != 0)
        return lk__builder_fail(builder, EINVAL, setting->json, "%s", lk__file_errmsg(rc));

    const char *flaw = trim(&file);
    rc = flaw != NULL ? lk__builder_fail(builder, EINVAL, setting->json, "%s", flaw)
                      : keep_password(builder, setting, file.text);
    lk__file_wipe(&file);
    if (rc != 0)
        return rc;
    char **kept = secret_of(builder, setting).file;
    *kept = lk__strdup(path);
    return *kept != NULL ? 0 : lk__builder_nomem(builder);
}

char *lk__password_reread(const char *path, const char *old)
{
    struct lk__file file;
    if (path == NULL || lk__file_read(&file, path) != 0)
        return NULL;
    bool another = trim(&file) == NULL && strcmp(file.text, old) != 0;
    char *password = another ? lk__strdup(file.text) : NULL;
    lk__file_wipe(&file);
    return password;
}
