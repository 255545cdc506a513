/* SPDX-License-Identifier: MIT */
#include "words.h"

#include <latchkey/latchkey.h>

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { A_YEAR_S = 366 * 24 * 3600 };

/* Would a terminal obey the byte? As in the library's lines: those above ASCII are two bytes of UTF-8, or stand alone. */
static bool is_control(unsigned char before, unsigned char byte)
{
    return byte < ' ' || byte == 0x7f || (byte >= 0x80 && byte < 0xa0 && (before < 0x80 || before == 0xc2));
}

/* One write for a line, so that lines of several processes do not mix. */
void complain(const char *format, ...)
{
    char line[2048];
    va_list words;
    va_start(words, format);
    vsnprintf(line, sizeof line, format, words);
    va_end(words);
    for (char *c = line; *c != 0; c++)
        if (is_control(c > line ? (unsigned char)c[-1] : 0, (unsigned char)*c)) /* of a name, or of what a server said */
            *c = '?';
    fprintf(stderr, "latchkey: %s\n", line);
}

int exit_code_of(int rc)
{
    switch (rc) {
    case 0: return EXIT_OK;
    case EBUSY:
    case EAGAIN:
    case ETIMEDOUT: return EXIT_CONFLICT;
    case ENOENT:
    case EEXIST: return EXIT_NO;
    case EINVAL: return EXIT_USE;
    case EACCES: return EXIT_PERMISSION;
    case ENOTSUP: return EXIT_CONFIGURATION;
    case ESTALE: return EXIT_LOST;
    case ENOTCONN:
    case EIO:
    case ENOSPC:
    case ECANCELED: return EXIT_UNREACHABLE;
    default: return EXIT_INTERNAL;
    }
}

int complain_of(const char *what, int rc)
{
    const char *words = lk_errortext();
    complain("%s: %s", what, words[0] != 0 ? words : lk_strerror(rc));
    return exit_code_of(rc);
}

/* How many milliseconds a unit has; 0: it is none. */
static double unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = { { "", 1e3 }, { "ms", 1 }, { "s", 1e3 }, { "m", 60e3 }, { "h", 3600e3 } };
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ms;
    return 0;
}

bool read_duration(const char *text, int64_t *ms)
{
    char *unit;
    size_t digits = strspn(text, "0123456789.");
    double number = strtod(text, &unit);
    if (!isdigit((unsigned char)text[0]) || unit != text + digits || unit_ms(unit) == 0)
        return false;
    number *= unit_ms(unit);
    if (number > A_YEAR_S * 1e3)
        return false;
    *ms = (int64_t)(number + 0.999); /* a little is not nothing */
    return true;
}

bool read_number(const char *text, long least, long most, long *number)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != 0 || errno != 0 || value < least || value > most)
        return false;
    *number = value;
    return true;
}

int read_signal(const char *text)
{
    long number;
    if (read_number(text, 1, NSIG - 1, &number))
        return (int)number;
    if (strncasecmp(text, "SIG", 3) == 0)
        text += 3;
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np(i) != NULL && strcasecmp(sigabbrev_np(i), text) == 0)
            return i;
    return 0;
}

bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int64_t boot_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t boot_ms(void)
{
    return boot_us() / 1000;
}
