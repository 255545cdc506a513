/* SPDX-License-Identifier: MIT */
/*
 * echo.c - is an answer in its place?
 *
 * Answers belong to requests by their order. A line that another program wrote into the connection brings an error
 * that looks like any other, and all later answers then come one place too late. Answers of our scripts say the number
 * of their request, but an error carries nothing of its request. So a number is sent after it, by ECHO: when the server
 * says the number back in its place, the error was in its place.
 */
#include "redis/stream.h"

#include <string.h>

enum { DIGITS = 20 };

/* Not by printf(), which needs 2 KiB of stack: this runs where answers are read. */
static void print_digits(char *to, uint64_t number)
{
    for (int i = DIGITS - 1; i >= 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
}

void lk__echo_print(char bytes[LK__ECHO_LENGTH + 1], uint64_t number)
{
    static const char form[] = "*2\r\n$4\r\nECHO\r\n$20\r\n00000000000000000000\r\n";
    _Static_assert(sizeof form == LK__ECHO_LENGTH + 1, "its length");
    memcpy(bytes, form, sizeof form);
    print_digits(bytes + LK__ECHO_LENGTH - 2 - DIGITS, number);
}

/* Is this a refusal of ECHO, by access rules that were changed? Each version's text names the command. */
static bool is_denied(const struct lk__reply *reply)
{
    return lk__reply_is(reply, "NOPERM") && strstr(lk__reply_text(reply, 0), "echo") != NULL;
}

/* Is this an error that every command gets, ECHO included: BUSY with a script, or NOAUTH? */
static bool is_for_all(const struct lk__reply *reply)
{
    return lk__reply_is(reply, "BUSY") || lk__reply_is(reply, "NOAUTH");
}

bool lk__echo_proves(const struct lk__reply *reply, uint64_t number, const char *error)
{
    const char *says = lk__reply_text(reply, 0);
    char expected[DIGITS + 1] = "";
    if (reply->type == LK__ERROR) /* two stray lines bring the same error twice, so equal texts prove nothing */
        return is_denied(reply) || (is_for_all(reply) && strcmp(says, error) == 0);
    print_digits(expected, number);
    return reply->type == LK__TEXT && strcmp(says, expected) == 0;
}
