/* SPDX-License-Identifier: MIT */
/*
 * echo.c - is an answer in its place?
 *
 * Answers are told apart by their order alone. A line that somebody else wrote into a connection brings an error
 * that looks like any other; all later answers then come one place too late. What our scripts answer cannot be
 * mistaken for that, but an error carries nothing of its request. So a number follows it: only when the server
 * says it back in its place, the error was in its own.
 */
#include "redis/stream.h"

#include <stdio.h>
#include <string.h>

void lk__echo_print(char bytes[LK__ECHO_LENGTH + 1], uint64_t number)
{
    snprintf(bytes, LK__ECHO_LENGTH + 1, "*2\r\n$4\r\nECHO\r\n$20\r\n%020llu\r\n", (unsigned long long)number);
}

/* Access rules were changed: they refuse ECHO now. The words name it, in any version's wording. */
static bool is_denied(const struct lk__reply *reply)
{
    return lk__reply_is(reply, "NOPERM") && strstr(lk__reply_text(reply, 0), "echo") != NULL;
}

/* What a server says to every command, ECHO included: it is busy with somebody's script, or wants a password. */
static bool is_for_all(const struct lk__reply *reply)
{
    return lk__reply_is(reply, "BUSY") || lk__reply_is(reply, "NOAUTH");
}

bool lk__echo_proves(const struct lk__reply *reply, uint64_t number, const char *error)
{
    const char *says = lk__reply_text(reply, 0);
    char expected[24];
    if (reply->type == LK__ERROR) /* two stray lines bring the same error twice: alike is not enough */
        return is_denied(reply) || (is_for_all(reply) && strcmp(says, error) == 0);
    snprintf(expected, sizeof expected, "%020llu", (unsigned long long)number);
    return reply->type == LK__TEXT && strcmp(says, expected) == 0;
}
