/* SPDX-License-Identifier: MIT */
/*
 * file.c - reading a file that may hold a password: what held one is overwritten before it is freed
 */
#include "config/file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1 << 20)

/* Errors that say this process is out of memory or descriptors. */
static int code_of(int error)
{
    return error == EMFILE || error == ENFILE ? ENOMEM : error;
}

/* Read to the end, or one byte more than the largest file allowed. */
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

/* One allocation of the largest size: one that grows would leave copies of the password in freed memory. */
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
