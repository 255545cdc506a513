/* SPDX-License-Identifier: MIT */
/*
 * secret.c - passwords from the environment or a file, and reading files that may hold one
 *
 * What held a password is overwritten before it is freed.
 */
#include "config/builder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1 << 20)

void lk__wipe(char *secret)
{
    if (secret == NULL)
        return;
    explicit_bzero(secret, strlen(secret));
    lk__free(secret);
}

/* --- files ------------------------------------------------------------------------------------------ */

/* Errors that mean this process has no more to give. */
static int code_of(int error)
{
    return error == EMFILE || error == ENFILE ? ENOMEM : error;
}

/* Read to the end, or one byte more than a file may have. */
static int read_all(struct lk__file *file, int fd)
{
    while (file->length <= FILE_MAX) {
        ssize_t got = read(fd, file->text + file->length, FILE_MAX + 1 - file->length);
        if (got == 0)
            return 0;
        if (got > 0)
            file->length += (size_t)got;
        else if (errno != EINTR)
            return code_of(errno);
    }
    return EFBIG;
}

/* One allocation for whatever comes: one that grows would leave copies behind. */
static int read_open(struct lk__file *file, int fd)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return code_of(errno);
    file->mode = about.st_mode;
    file->text = lk__alloc(FILE_MAX + 2);
    return file->text != NULL ? read_all(file, fd) : ENOMEM;
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

const char *lk__file_words(int code)
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

/* --- passwords -------------------------------------------------------------------------------------- */

static int keep_password(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    if (builder->options.password != NULL)
        return lk__draft_fail(builder, EINVAL, setting->json, "there is a password already: password or password_file");
    builder->options.password = lk__strdup(text);
    return builder->options.password != NULL ? 0 : lk__draft_nomem(builder);
}

/* How long the variable's name at `text` is; 0: no name. */
static size_t variable_length(const char *text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return *text >= '0' && *text <= '9' ? 0 : strspn(text, allowed);
}

/* `text` is what follows "${", with the last '}' cut off. */
static int put_variable(struct lk__draft *builder, const struct lk__setting *setting, char *text)
{
    size_t length = variable_length(text);
    char *otherwise = NULL;
    if (length > 0 && strncmp(text + length, ":-", 2) == 0)
        otherwise = text + length + 2;
    else if (length == 0 || text[length] != '\0')
        return lk__draft_fail(builder, EINVAL, setting->json,
                              "looks like a variable, but is no ${NAME} or ${NAME:-text}");

    builder->secret = otherwise != NULL && *otherwise != '\0';
    text[length] = '\0';
    const char *value = getenv(text);
    if (value != NULL && *value != '\0')
        return keep_password(builder, setting, value);
    if (otherwise == NULL)
        return lk__draft_fail(builder, EINVAL, setting->json, "the environment variable %.64s is not set", text);
    return keep_password(builder, setting, otherwise);
}

int lk__put_password(struct lk__draft *builder, const struct lk__setting *setting, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(text, "${", 2) != 0 || text[length - 1] != '}') {
        builder->secret = true;
        return keep_password(builder, setting, text);
    }

    char *inner = lk__strdup(text + 2);
    if (inner == NULL)
        return lk__draft_nomem(builder);
    inner[length - 3] = '\0';
    int rc = put_variable(builder, setting, inner);
    explicit_bzero(inner, length - 2);
    lk__free(inner);
    return rc;
}

int lk__put_password_file(struct lk__draft *builder, const struct lk__setting *setting, const char *path)
{
    struct lk__file file;
    int rc = lk__file_read(&file, path);
    if (rc == ENOMEM)
        return lk__draft_nomem(builder);
    if (rc != 0)
        return lk__draft_fail(builder, EINVAL, setting->json, "%s", lk__file_words(rc));

    if (file.length > 0 && file.text[file.length - 1] == '\n')
        file.text[--file.length] = '\0';
    if (file.length > 0 && file.text[file.length - 1] == '\r')
        file.text[--file.length] = '\0';
    if (file.length == 0 || strlen(file.text) != file.length)
        rc = lk__draft_fail(builder, EINVAL, setting->json, "the file %s",
                            file.length == 0 ? "is empty" : "has a NUL in it");
    else
        rc = keep_password(builder, setting, file.text);
    lk__file_wipe(&file);
    return rc;
}
