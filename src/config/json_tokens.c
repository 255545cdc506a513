/* SPDX-License-Identifier: MIT */
/*
 * json_tokens.c - see json_tokens.h
 *
 * A long string is read in pieces: jansson reads each as a text of its own, and no piece ends within an escape, a
 * pair of surrogates or a character. A long number or word is cut: no setting accepts one, whole or cut.
 */
#include "config/json_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKEN_MAX = 15,             /* jansson's buffer has 16 bytes, one of them for the NUL */
    STRING_MAX = TOKEN_MAX - 2, /* without its quotes */
    WORD_MAX = TOKEN_MAX - 1,   /* a number is read with the character that ends it */
    GROWTH = 4,                 /* the least string that is replaced, "#", becomes "#1048576" */
    DEPTH_MAX = 8               /* the parser's stack grows with the depth, and the caller's stack may be small */
};

/* jansson reports a string that it has no memory for as a missing string. */
static bool is_nomem(const json_error_t *error)
{
    static const char *const errmsg[] = { "invalid token near '\"", "string or '}' expected near '\"" };
    if (error->text[0] == '\0' || json_error_code(error) == json_error_out_of_memory)
        return true;
    for (size_t i = 0; i < sizeof errmsg / sizeof *errmsg; i++)
        if (strncmp(error->text, errmsg[i], strlen(errmsg[i])) == 0)
            return true;
    return false;
}

int lk__parse(const char *text, size_t length, size_t flags, json_t **root, json_error_t *error)
{
    *root = json_loadb(text, length, flags, error);
    if (*root != NULL)
        return 0;
    return is_nomem(error) ? ENOMEM : EINVAL;
}

/* --- a long string ------------------------------------------------------------------------------------ */

static bool is_escape(const char *at, const char *end)
{
    return end - at >= 6 && at[0] == '\\' && at[1] == 'u';
}

/* "\ud83d": this escape and the next one are one character. */
static bool is_high_surrogate(const char *at, const char *end)
{
    return is_escape(at, end) && (at[2] == 'd' || at[2] == 'D') && at[3] != '\0' && strchr("89abAB", at[3]) != NULL;
}

/* Length of the character that begins here, in bytes of the file. */
static size_t character_length(const char *at, const char *end)
{
    size_t length = 1;
    if (is_high_surrogate(at, end))
        length = is_escape(at + 6, end) ? 12 : 6;
    else if (is_escape(at, end))
        length = 6;
    else if (*at == '\\')
        length = 2;
    else
        while (at + length < end && ((unsigned char)at[length] & 0xc0) == 0x80 && length < 4)
            length++;
    return length <= (size_t)(end - at) ? length : (size_t)(end - at);
}

static size_t piece_length(const char *at, const char *end)
{
    const char *next = at;
    while (next < end && next + character_length(next, end) <= at + STRING_MAX)
        next += character_length(next, end);
    return (size_t)(next - at);
}

/* Decode the piece and append it to the pieces before it. */
static int read_piece(struct lk__jsontokens *tokens, const char *piece, size_t length)
{
    char quoted[TOKEN_MAX + 1];
    json_t *string;
    int size = snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)length, piece);
    int rc = lk__parse(quoted, (size_t)size, JSON_DECODE_ANY, &string, &tokens->error);
    explicit_bzero(quoted, sizeof quoted);
    if (rc != 0)
        return rc;
    memcpy(tokens->strings + tokens->used, json_string_value(string), json_string_length(string));
    tokens->used += json_string_length(string);
    explicit_bzero((char *)json_string_value(string), json_string_length(string));
    json_decref(string);
    return 0;
}

static int read_string(struct lk__jsontokens *tokens, const char *at, const char *end)
{
    int rc = 0;
    while (rc == 0 && at < end) {
        size_t length = piece_length(at, end);
        rc = read_piece(tokens, at, length);
        at += length;
    }
    tokens->strings[tokens->used++] = '\0';
    return rc;
}

/* --- the text ------------------------------------------------------------------------------------------- */

static void put(struct lk__jsontokens *tokens, const char *bytes, size_t length)
{
    memcpy(tokens->text + tokens->length, bytes, length);
    tokens->length += length;
}

/* Where the string ends that begins at `at`: at its quote, at what must not be in a string, or with the text. */
static const char *end_of_string(const char *at, const char *end)
{
    while (at < end && *at != '"' && (unsigned char)*at >= ' ')
        at += *at == '\\' && at + 1 < end && (unsigned char)at[1] >= ' ' ? 2 : 1;
    return at;
}

/* Would it be read as a reference, as it is or decoded? */
static bool is_like_reference(const char *begin, const char *behind)
{
    return *begin == '#' || (behind - begin >= 6 && memcmp(begin, "\\u0023", 6) == 0);
}

/* Copy the string that begins after `*at`, or a reference to it. */
static int split_string(struct lk__jsontokens *tokens, const char **at, const char *end)
{
    const char *begin = *at + 1, *behind = end_of_string(begin, end);
    bool whole = behind < end && *behind == '"';
    char reference[16];
    int rc = 0;
    *at = whole ? behind + 1 : behind;
    if (!whole) { /* jansson reports the mistake */
        put(tokens, "\"", 1);
    } else if (behind - begin <= STRING_MAX && !is_like_reference(begin, behind)) {
        put(tokens, begin - 1, (size_t)(behind - begin) + 2);
    } else {
        int length = snprintf(reference, sizeof reference, "\"#%zu\"", tokens->used);
        put(tokens, reference, (size_t)length);
        rc = read_string(tokens, begin, behind);
    }
    return rc;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
           c == '.';
}

static void split_word(struct lk__jsontokens *tokens, const char **at, const char *end)
{
    const char *begin = *at;
    while (*at < end && is_word(**at))
        ++*at;
    put(tokens, begin, *at - begin <= WORD_MAX ? (size_t)(*at - begin) : WORD_MAX);
}

int lk__jsontokens_split(struct lk__jsontokens *tokens, const struct lk__file *file)
{
    const char *at = file->text, *end = file->text + file->length;
    int rc = 0, line = 1, depth = 0;
    *tokens =
        (struct lk__jsontokens){ .text = lk__alloc(GROWTH * file->length + 1), .strings = lk__alloc(file->length + 1) };
    if (tokens->text == NULL || tokens->strings == NULL)
        return ENOMEM;
    while (rc == 0 && at < end) {
        line += *at == '\n';
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        tokens->too_deep = depth > DEPTH_MAX;
        if (*at == '"')
            rc = split_string(tokens, &at, end);
        else if (tokens->too_deep)
            rc = EINVAL;
        else if (is_word(*at))
            split_word(tokens, &at, end);
        else
            put(tokens, at++, 1);
    }
    tokens->error.line = line;
    return rc;
}

void lk__jsontokens_wipe(struct lk__jsontokens *tokens)
{
    if (tokens->text != NULL)
        explicit_bzero(tokens->text, tokens->length);
    if (tokens->strings != NULL)
        explicit_bzero(tokens->strings, tokens->used);
    lk__free(tokens->text);
    lk__free(tokens->strings);
}

const char *lk__jsontokens_string(const struct lk__jsontokens *tokens, const char *text)
{
    if (text == NULL || text[0] != '#')
        return text;
    size_t at = strtoul(text + 1, NULL, 10);
    return at < tokens->used ? tokens->strings + at : NULL;
}
