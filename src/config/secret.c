/* SPDX-License-Identifier: MIT */
/*
 * secret.c - passwords: as they stand, from the environment, or from a file of their own
 *
 * Memory that held a secret is overwritten before it is freed.
 */
#include "config/settings.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1 << 20)

/* Errors that say this process is out of memory or descriptors. */
static int code_of(int error)
{
    return error == EMFILE || error == ENFILE ? ENOMEM : error;
}

/* One allocation of the largest size: one that grows would leave copies of the password in freed memory. */
static int read_open(struct lk__file *file, int fd)
{
    struct stat about;
    ssize_t got = 1;
    if (fstat(fd, &about) != 0)
        return code_of(errno);
    file->mode = about.st_mode;
    file->text = lk__alloc(FILE_MAX + 2);
    if (file->text == NULL)
        return ENOMEM;
    while (got != 0 && file->length <= FILE_MAX) {
        got = read(fd, file->text + file->length, FILE_MAX + 1 - file->length);
        if (got < 0 && errno != EINTR)
            return code_of(errno);
        file->length += got > 0 ? (size_t)got : 0;
    }
    return file->length <= FILE_MAX ? 0 : EFBIG;
}

int lk__file_read(struct lk__file *file, const char *path)
{
    memset(file, 0, sizeof *file);
    int fd = lk__fd_ours(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (fd < 0)
        return code_of(errno);
    int rc = read_open(file, fd);
    lk__fd_close(fd);
    if (rc != 0)
        lk__file_wipe(file);
    return rc;
}

void lk__file_wipe(struct lk__file *file)
{
    if (file->text != NULL)
        explicit_bzero(file->text, file->length);
    lk__free(file->text);
    memset(file, 0, sizeof *file);
}

const char *lk__file_errmsg(int code)
{
    switch (code) {
    case ENOENT:
        return "no such file";
    case EACCES:
    case EPERM:
        return "no permission to read it";
    case EISDIR:
        return "is a directory";
    case EFBIG:
        return "is larger than 1 MiB";
    case ENOMEM:
        return "out of memory or descriptors";
    default:
        return "cannot be read";
    }
}

/* --- passwords -------------------------------------------------------------------------------------------- */

/* Set the password of `setting`, which was found in `file`; NULL: elsewhere. */
static int keep_password(struct lk__builder *builder, const struct lk__setting *setting, const char *text,
                         const char *file)
{
    const struct lk__setting *password = setting->type == LK__PASSWORD ? setting : setting - 1;
    struct lk__options *o = &builder->options;
    bool sentinel = password->field == offsetof(struct lk__options, sentinel_password);
    bool *given = sentinel ? &builder->sentinel_password : &builder->password;
    char **kept = sentinel ? &o->sentinel_password : &o->password;
    char **kept_file = sentinel ? &o->sentinel_password_file : &o->password_file;
    if (*given)
        return lk__builder_fail(builder, EINVAL, setting->json, "there is a password already: %s or %s_file",
                                password->json, password->json);
    *given = true;
    lk__wipe(*kept); /* of the URL below a file */
    lk__free(*kept_file);
    *kept = lk__strdup(text);
    *kept_file = file != NULL ? lk__strdup(file) : NULL;
    return *kept != NULL && (file == NULL || *kept_file != NULL) ? 0 : lk__builder_nomem(builder);
}

/* `text` is a copy of "${...}". */
static int put_variable(struct lk__builder *builder, const struct lk__setting *setting, char *text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    char *name = text + 2, *otherwise = NULL;
    size_t length = *name >= '0' && *name <= '9' ? 0 : strspn(name, allowed);
    text[strlen(text) - 1] = '\0';
    if (length > 0 && strncmp(name + length, ":-", 2) == 0)
        otherwise = name + length + 2;
    else if (length == 0 || name[length] != '\0')
        return lk__builder_fail(builder, EINVAL, setting->json,
                                "looks like a variable, but is no ${NAME} or ${NAME:-text}");
    builder->secret |= otherwise != NULL && *otherwise != '\0';
    name[length] = '\0';
    const char *value = getenv(name);
    if (value != NULL && *value != '\0')
        return keep_password(builder, setting, value, NULL);
    if (otherwise == NULL)
        return lk__builder_fail(builder, EINVAL, setting->json, "the environment variable %.64s is not set", name);
    return keep_password(builder, setting, otherwise, NULL);
}

int lk__put_password(struct lk__builder *builder, const struct lk__setting *setting, const char *text)
{
    size_t length = strlen(text);
    if (builder->source == LK__FROM_URL || strncmp(text, "${", 2) != 0 || text[length - 1] != '}') {
        builder->secret = true;
        return keep_password(builder, setting, text, NULL);
    }
    char *copy = lk__strdup(text);
    if (copy == NULL)
        return lk__builder_nomem(builder);
    int rc = put_variable(builder, setting, copy);
    explicit_bzero(copy, length);
    lk__free(copy);
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
    const char *flaw = rc != 0 ? lk__file_errmsg(rc) : trim(&file);
    rc = flaw != NULL ? lk__builder_fail(builder, EINVAL, setting->json, "%s", flaw)
                      : keep_password(builder, setting, file.text, path);
    lk__file_wipe(&file);
    return rc;
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

/* How many bytes at `says` are the password, or enough of its beginning to reveal it. */
static size_t secret_at(const char *says, const char *password)
{
    enum { TELLING = 6 };
    size_t same = 0;
    while (password[same] != '\0' && says[same] == password[same])
        same++;
    return password[same] == '\0' || same >= TELLING ? same : 0;
}

void lk__secret_hide(const char *password, const char *says, char *text, size_t size)
{
    for (size_t room = size - 1; *says != '\0' && room > 0;) {
        size_t secret = password != NULL ? secret_at(says, password) : 0;
        size_t length = secret == 0 ? 1 : room < 3 ? room : 3;
        memcpy(text, secret > 0 ? "***" : says, length);
        text += length;
        room -= length;
        says += secret > 0 ? secret : 1;
    }
    *text = '\0';
}
