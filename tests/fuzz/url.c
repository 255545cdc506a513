/* SPDX-License-Identifier: MIT */
/*
 * url.c - a URL: what it says can be worked with and printed, and read again says the same; no password shows
 *
 * The byte 1 in the input stands for a password.
 */
#include "options_check.h"

enum { URL_MAX = 2048 };

static char *with_secrets(const uint8_t *bytes, size_t size)
{
    char *url = malloc(size * strlen(SECRET) + 1), *end = url;
    require(url != NULL);
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == 1)
            end = stpcpy(end, SECRET);
        else
            *end++ = (char)bytes[i];
    *end = '\0';
    return url;
}

/* Behind the @ words may quote names of parameters, wherever those got them from. */
static bool secret_is_userinfo(const char *url)
{
    const char *at = strchr(url, '@');
    return at != NULL && strstr(at, SECRET) == NULL;
}

/* Printed and read again, the server is the same; everything else has its default. */
static void check_printed(const struct lk__options *options)
{
    char text[3 * URL_MAX * sizeof SECRET], again[sizeof text], small[8];
    struct lk__options read;
    lk__options_print(options, text, sizeof text);
    require(is_one_line(text) && strstr(text, SECRET) == NULL);
    require(lk__options_url(&read, text) == 0);
    require(same_text(read.path, options->path) && same_servers(&read, options));
    require(same_text(read.service, options->service) && read.db == options->db);
    require(read.cluster == options->cluster && read.quorum == options->quorum);
    require(same_text(read.user, options->user));
    require(same_text(read.password, options->password != NULL ? "***" : NULL));
    lk__options_print(&read, again, sizeof again);
    require(strcmp(again, text) == 0);
    lk__options_clear(&read);
    lk__options_print(options, small, sizeof small);
    require(strlen(small) == sizeof small - 1 && memcmp(small, text, sizeof small - 1) == 0);
}

/* Read as other libraries' URL, which refuses less and reads the rest alike. */
static void check_shared(const char *url, const struct lk__options *strict)
{
    struct lk__options options;
    int rc = lk__options_sharedurl(&options, url);
    require(strict == NULL || rc == 0);
    if (rc != 0)
        return;
    check_options(&options);
    require(strict == NULL || (same_text(options.path, strict->path) && same_servers(&options, strict)));
    require(strict == NULL || (same_text(options.user, strict->user) && same_text(options.prefix, strict->prefix)));
    require(strict == NULL || (options.db == strict->db && options.lease_ms == strict->lease_ms));
    lk__options_clear(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lk__options options, before;
    if (size > URL_MAX)
        return 0;
    memset(&options, 0xa5, sizeof options);
    before = options;
    char *url = with_secrets(bytes, size);
    errno = 4711;
    int rc = lk__options_url(&options, url);
    check_outcome(rc, &options, &before);
    require(rc != ENOENT);
    if (rc != 0 && secret_is_userinfo(url))
        require(strstr(lk_errortext(), SECRET) == NULL);
    check_shared(url, rc == 0 ? &options : NULL);
    if (rc == 0) {
        check_options(&options);
        check_printed(&options);
        lk__options_clear(&options);
    }
    free(url);
    return 0;
}
