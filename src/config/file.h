/* SPDX-License-Identifier: MIT */
/* file.h - files that may hold a password */
#ifndef LK__CONFIG_FILE_H
#define LK__CONFIG_FILE_H

#include "base/base.h"

#include <sys/stat.h>

struct lk__file {
    char *text; /* with a NUL at its end */
    size_t length;
    mode_t mode; /* type and permissions */
};

/*
 * Read a file of at most 1 MiB. 0; ENOMEM (memory, descriptors), else another errno for
 * lk__file_errmsg(), EFBIG when it is too large.
 */
int lk__file_read(struct lk__file *file, const char *path);
void lk__file_wipe(struct lk__file *file); /* overwrites and frees; accepts zeroes */
const char *lk__file_errmsg(int code);

#endif
