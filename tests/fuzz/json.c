/* SPDX-License-Identifier: MIT */
/*
 * json.c - a JSON file: what it says can be worked with; its passwords show nowhere
 *
 * An input that may name a file of the system as that of the password is passed over: it could be a
 * terminal, and two runs would differ.
 */
#include "options_check.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file of each input, reached by a path of this process. */
static const char *file_with(const uint8_t *bytes, size_t size)
{
    static char path[32];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("options", MFD_CLOEXEC);
        require(fd >= 0 && fchmod(fd, 0600) == 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    require(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
    return path;
}

static bool has(const uint8_t *bytes, size_t size, const char *word)
{
    return memmem(bytes, size, word, strlen(word)) != NULL;
}

/* Might it name a file of the system? The escapes of '_' and '/' begin alike. */
static bool may_name_file(const uint8_t *bytes, size_t size)
{
    bool escaped = has(bytes, size, "\\u00");
    return (escaped || has(bytes, size, "_file")) && (escaped || has(bytes, size, "/"));
}

/* A value is never quoted, a key is: the secret must be there once, and be neither a key nor a part of one. */
static bool secret_is_value(const uint8_t *bytes, size_t size)
{
    static const char value[] = "\"" SECRET "\"";
    const uint8_t *end = bytes + size, *at = memmem(bytes, size, SECRET, strlen(SECRET));
    if (at == NULL || has(at + 1, (size_t)(end - at - 1), SECRET) || !has(bytes, size, value))
        return false;
    for (at += strlen(SECRET) + 1; at < end && memchr(" \t\r\n", *at, 4) != NULL;)
        at++;
    return at == end || *at != ':';
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lk__options options, before;
    if (may_name_file(bytes, size))
        return 0;
    memset(&options, 0xa5, sizeof options);
    before = options;
    const char *path = file_with(bytes, size);
    errno = 4711;
    int rc = lk__options_file(&options, path);
    check_outcome(rc, &options, &before);
    if (rc != 0) {
        require(strncmp(lk_errortext(), path, strlen(path)) == 0);
        require(!secret_is_value(bytes, size) || strstr(lk_errortext(), SECRET) == NULL);
        return 0;
    }
    char text[64];
    check_options(&options);
    lk__options_print(&options, text, sizeof text);
    require(strlen(text) < sizeof text && is_one_line(text));
    lk__options_clear(&options);
    return 0;
}
