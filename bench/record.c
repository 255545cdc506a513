/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 40, NUMBERS_MAX = 16, WARM_PAIRS = 20, LINE_MAX_ = 1 << 16, CLOCK_DIGITS = 16 };

/* What stands in a word for the name of the object and for the next number that counts. */
#define NAME_MARK '\1'
#define NUMBER_MARK '\2'

static const char never_us[] = "4000000000000000"; /* server's clock, in the year 2096 */

struct command {
    int words;
    char *word[WORDS_MAX];
    int numbers;
    int64_t first[NUMBERS_MAX], step[NUMBERS_MAX]; /* number n of turn t is first[n] + t * step[n] */
};

struct record {
    char name[32]; /* of the object that was listened to */
    struct command take, give;
    int64_t took, gave; /* how the server answers each */
};

static void unlike(const char *one, const char *other)
{
    fprintf(stderr, "two pairs differ in what cannot be replayed: %s %s\n", one, other);
    exit(1);
}

/* --- what MONITOR says ------------------------------------------------------------------------------------ */

/* The character that `*at` begins with, an escape or not; moves `*at` behind it. */
static char unescape(const char **at)
{
    static const char letters[] = "nrtab", meanings[] = "\n\r\t\a\b";
    char c = *(*at)++;
    if (c != '\\')
        return c;
    c = *(*at)++;
    if (c == 'x') {
        char digits[3] = { (*at)[0], (*at)[1], '\0' };
        *at += 2;
        return (char)strtol(digits, NULL, 16);
    }
    const char *found = strchr(letters, c);
    return found != NULL && c != '\0' ? meanings[found - letters] : c;
}

/* Read `... [0 unix:/path] "EVALSHA" "..." ...` */
static void read_words(struct command *command, const char *line)
{
    command->words = 0;
    for (const char *at = strstr(line, "] \""); at != NULL && (at = strchr(at, '"')) != NULL;) {
        size_t length = 0;
        char *word = malloc(strlen(at) + 1);
        for (at++; *at != '"' && *at != '\0';)
            word[length++] = unescape(&at);
        word[length] = '\0';
        if (command->words == WORDS_MAX)
            unlike("too many words:", word);
        command->word[command->words++] = word;
        at += *at == '"';
    }
}

/* The next command that names the object, but those inside a script. */
static void hear(struct wire *monitor, const char *name, struct command *command)
{
    static char line[LINE_MAX_];
    do {
        struct wire_reply reply = wire_read(monitor);
        snprintf(line, sizeof line, "%.*s", (int)reply.length, reply.bytes);
    } while (strstr(line, name) == NULL || strstr(line, " lua] ") != NULL);
    read_words(command, line);
}

static void forget(struct command *command)
{
    for (int i = 0; i < command->words; i++)
        free(command->word[i]);
}

/* --- what differs between two pairs ------------------------------------------------------------------------- */

static size_t digits_at(const char *at)
{
    size_t count = 0;
    while (isdigit((unsigned char)at[count]))
        count++;
    return count;
}

/* Write what stands for a run of digits that is `one` in the first pair and `other` in the second. */
static char *put_number(struct command *command, char *to, const char *one, const char *other)
{
    size_t length = digits_at(one);
    if (length == digits_at(other) && memcmp(one, other, length) == 0)
        return (char *)memcpy(to, one, length) + length;
    if (length >= CLOCK_DIGITS)
        return stpcpy(to, never_us);
    if (command->numbers == NUMBERS_MAX)
        unlike(one, other);
    int64_t first = strtoll(one, NULL, 10), step = strtoll(other, NULL, 10) - first;
    command->first[command->numbers] = first + 2 * step; /* the replay follows on the second pair */
    command->step[command->numbers++] = step;
    *to = NUMBER_MARK;
    return to + 1;
}

/* The word with marks for what differs, of which `one` and `other` are two examples. */
static char *pattern_of(struct command *command, const char *name, const char *one, const char *other)
{
    char *pattern = malloc(strlen(one) + sizeof never_us), *to = pattern;
    while (*one != '\0') {
        if (strncmp(one, name, strlen(name)) == 0) {
            *to++ = NAME_MARK;
            one += strlen(name);
            other += strlen(name);
        } else if (digits_at(one) > 0 && digits_at(other) > 0) {
            to = put_number(command, to, one, other);
            one += digits_at(one);
            other += digits_at(other);
        } else if (*one == *other) {
            *to++ = *one++;
            other++;
        } else {
            unlike(one, other);
        }
    }
    if (*other != '\0')
        unlike(one, other);
    *to = '\0';
    return pattern;
}

static void compare(struct command *pattern, const char *name, const struct command *one, const struct command *other)
{
    if (one->words != other->words)
        unlike(one->word[0], other->word[0]);
    pattern->words = one->words;
    for (int i = 0; i < one->words; i++)
        pattern->word[i] = pattern_of(pattern, name, one->word[i], other->word[i]);
}

/* --- replay ------------------------------------------------------------------------------------------------- */

static void append(const struct command *command, struct wire_out *out, const char *name, int64_t turn)
{
    char word[1024];
    int number = 0;
    wire_begin(out, command->words);
    for (int i = 0; i < command->words; i++) {
        char *to = word;
        for (const char *at = command->word[i]; *at != '\0'; at++)
            if (*at == NAME_MARK) {
                to = stpcpy(to, name);
            } else if (*at == NUMBER_MARK) {
                int64_t value = command->first[number] + turn * command->step[number];
                to += snprintf(to, 24, "%lld", (long long)value);
                number++;
            } else {
                *to++ = *at;
            }
        wire_word(out, word, (size_t)(to - word));
    }
}

void record_take(const struct record *record, struct wire_out *out, const char *name, int64_t turn)
{
    append(&record->take, out, name, turn);
}

void record_give(const struct record *record, struct wire_out *out, const char *name, int64_t turn)
{
    append(&record->give, out, name, turn);
}

static void check(struct wire *wire, int64_t expected)
{
    struct wire_reply reply = wire_read(wire);
    if (reply_number(reply) != expected) {
        fprintf(stderr, "a replay is answered %.*s\n", (int)reply.length, reply.bytes);
        exit(1);
    }
}

void record_check(const struct record *record, struct wire *wire)
{
    check(wire, record->took);
    check(wire, record->gave);
}

void record_run(const struct record *record, struct wire *wire, const char *name, int64_t turn)
{
    struct wire_out *out = wire_scratch(wire);
    record_take(record, out, name, turn);
    wire_send(wire, out);
    check(wire, record->took);
    out = wire_scratch(wire);
    record_give(record, out, name, turn);
    wire_send(wire, out);
    check(wire, record->gave);
}

/* How the server answers a take of what is free, and a give of what was taken. */
static void learn_answers(struct record *record, struct wire *wire)
{
    struct wire_out out = { 0 };
    record_take(record, &out, record->name, 0);
    record_give(record, &out, record->name, 0);
    wire_send(wire, &out);
    record->took = reply_number(wire_read(wire));
    record->gave = reply_number(wire_read(wire));
    free(out.bytes);
    if (record->took <= 0 || record->gave <= 0)
        unlike("answers of a replay that took or gave nothing:", record->take.word[1]);
}

static void listen_to(struct record *record, struct subject *subject, struct wire *monitor)
{
    struct command take[2], give[2];
    wire_ask(monitor, WORDS("MONITOR"));
    for (int i = 0; i < 2; i++) {
        subject_pair(subject);
        hear(monitor, record->name, &take[i]);
        hear(monitor, record->name, &give[i]);
    }
    compare(&record->take, record->name, &take[0], &take[1]);
    compare(&record->give, record->name, &give[0], &give[1]);
    for (int i = 0; i < 2; i++) {
        forget(&take[i]);
        forget(&give[i]);
    }
}

struct record *record_pair(const struct place *place, lk_client_t *client, const struct subject_kind *kind)
{
    struct record *record = calloc(1, sizeof *record);
    struct wire *monitor = wire_open(place->address), *wire = wire_open(place->address);
    struct subject subject;
    snprintf(record->name, sizeof record->name, "heard-%s", kind->name);
    subject_init(&subject, kind, client, record->name);
    for (int i = 0; i < WARM_PAIRS; i++)
        subject_pair(&subject);
    listen_to(record, &subject, monitor);
    wire_close(monitor);
    learn_answers(record, wire);
    wire_close(wire);
    subject_destroy(&subject);
    return record;
}

void record_free(struct record *record)
{
    forget(&record->take);
    forget(&record->give);
    free(record);
}
