/* SPDX-License-Identifier: MIT */
/* json.c - JSON, read where it stands */
#include "config/json.h"

#include <string.h>

bool lk__json_bad(struct lk__json *json)
{
    json->flaw = json->at == json->end ? "the text ends too early: a quote or bracket is not closed"
                                       : "no JSON: look for a comma, quote or bracket too many or too few";
    return false;
}

char lk__json_next(struct lk__json *json)
{
    for (; *json->at != '\0' && strchr(" \t\r\n", *json->at) != NULL; json->at++)
        json->line += *json->at == '\n';
    return *json->at;
}

bool lk__json_skip(struct lk__json *json, char c)
{
    bool found = lk__json_next(json) == c;
    json->at += found;
    return found;
}

bool lk__json_ended(struct lk__json *json)
{
    return (lk__json_next(json) == '\0' && json->at == json->end) || lk__json_bad(json);
}

int lk__hexdigit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Bytes of the UTF-8 character at `at`; 0: there is none. */
static size_t character_length(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;
    size_t length = *byte < 0x80 ? 1 : *byte < 0xc2 ? 0 : *byte < 0xe0 ? 2 : *byte < 0xf0 ? 3 : *byte < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < length; i++)
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*byte == 0xe0 && byte[1] < 0xa0) || (*byte == 0xf0 && byte[1] < 0x90);
    bool beyond = (*byte == 0xed && byte[1] >= 0xa0) || (*byte == 0xf4 && byte[1] >= 0x90);
    return overlong || beyond ? 0 : length;
}

bool lk__json_isutf8(const char *text)
{
    size_t length = 1;
    for (; *text != '\0' && length > 0; text += length)
        length = character_length(text);
    return length > 0;
}

/* The number in "\u1234" at `at`; -1: there is no such escape. */
static int code_unit(const char *at)
{
    int code = 0;
    if (at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = lk__hexdigit(at[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* Write a character at `*to`, never longer than its escape, in UTF-8. */
static void put_character(char **to, int code)
{
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; /* bytes behind the first */
    static const int first[] = { 0, 0xc0, 0xe0, 0xf0 };
    *(*to)++ = (char)(first[more] | code >> 6 * more);
    while (more-- > 0)
        *(*to)++ = (char)(0x80 | (code >> 6 * more & 0x3f));
}

/* Decode the escape that is next to `*to`. False: it is none, or NUL. */
static bool read_escape(struct lk__json *json, char **to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = json->at[1] != '\0' ? strchr(letters, json->at[1]) : NULL;
    int code = code_unit(json->at), low;
    if (letter != NULL) {
        *(*to)++ = meanings[letter - letters];
        json->at += 2;
        return true;
    }
    if (code >= 0xd800 && code < 0xdc00) { /* the first half of a pair */
        low = code_unit(json->at + 6);
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00) : -1;
        json->at += code > 0 ? 6 : 0;
    }
    if (code <= 0 || (code >= 0xd800 && code < 0xe000))
        return false;
    put_character(to, code);
    json->at += 6;
    return true;
}

bool lk__json_string(struct lk__json *json, char **to)
{
    for (json->at++; *json->at != '"';) {
        size_t length = character_length(json->at);
        if (*json->at == '\\') {
            if (!read_escape(json, to))
                return lk__json_bad(json);
        } else if ((unsigned char)*json->at < ' ') {
            return lk__json_bad(json);
        } else if (length == 0) {
            json->flaw = "the text is not UTF-8";
            return false;
        } else {
            memmove(*to, json->at, length);
            *to += length;
            json->at += length;
        }
    }
    json->at++;
    **to = '\0';
    return true;
}

static bool read_word(struct lk__json *json, struct lk__jsonvalue *value)
{
    const size_t length = strspn(json->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    const size_t digits = strspn(json->at, "-0123456789");
    char *word = memmove(json->at - 1, json->at, length);
    word[length] = '\0';
    value->text = word;
    if (digits > 0)
        value->form = digits == length && (*word != '0' || length == 1) ? '0' : '-';
    else if (strcmp(word, "true") != 0 && strcmp(word, "false") != 0 && strcmp(word, "null") != 0)
        return lk__json_bad(json);
    json->at += length;
    return true;
}

bool lk__json_value(struct lk__json *json, struct lk__jsonvalue *value)
{
    value->form = lk__json_next(json);
    char *to = json->at + 1;
    value->text = to;
    if (value->form == '"')
        return lk__json_string(json, &to);
    return value->form == '[' || value->form == '{' || read_word(json, value);
}

int lk__json_key(struct lk__json *json, const char **key)
{
    struct lk__jsonvalue value;
    if (lk__json_next(json) != '"')
        return lk__json_bad(json);
    int line = json->line;
    if (!lk__json_value(json, &value))
        return 0;
    *key = value.text;
    return lk__json_skip(json, ':') ? line : lk__json_bad(json);
}
