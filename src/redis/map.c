/* SPDX-License-Identifier: MIT */
/*
 * map.c - what a node of a cluster says of all: its words taken apart
 *
 * CLUSTER NODES is one text, which the parser of answers takes as it is, however the slots are scattered; it also tells
 * the host names that certificates are of. All of it comes from a server, and is believed in nothing but its form.
 */
#include "redis/cluster.h"

#include <stdlib.h>
#include <string.h>
#include <stdint.h>

enum { HOST_MAX = 255 };

/* A word of the line, and what is behind it. */
static const char *next_word(const char **at, size_t *length)
{
    *at += strspn(*at, " ");
    const char *word = *at;
    *length = strcspn(word, " \r\n");
    *at += *length;
    return word;
}

static bool copy(char to[HOST_MAX + 1], const char *from, size_t length)
{
    if (length > HOST_MAX)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

/* "<host>:<port>", the port behind the last colon, as in "::1:6379". */
static bool read_place(const char *text, size_t length, char host[HOST_MAX + 1], int *port)
{
    const char *colon = memrchr(text, ':', length);
    if (colon == NULL || !copy(host, text, (size_t)(colon - text)))
        return false;
    char *end;
    long number = strtol(colon + 1, &end, 10);
    *port = (int)number;
    return end == text + length && end > colon + 1 && number >= 1 && number <= UINT16_MAX;
}

/* "10.0.0.7:6379@16379,name.example,shard-id=...": the last ones may be missing. */
static bool read_address(const char *word, size_t length, struct lk__told *told)
{
    const char *end = word + length, *comma = memchr(word, ',', length), *stop = comma != NULL ? comma : end;
    const char *bus = memchr(word, '@', (size_t)(stop - word));
    if (!read_place(word, (size_t)((bus != NULL ? bus : stop) - word), told->host, &told->port))
        return false;
    told->name[0] = '\0';
    if (comma == NULL)
        return true;
    const char *name = comma + 1, *next = memchr(name, ',', (size_t)(end - name));
    size_t name_length = (size_t)((next != NULL ? next : end) - name);
    return memchr(name, '=', name_length) != NULL || copy(told->name, name, name_length);
}

/* Is `flag` among those between commas? */
static bool has_flag(const char *flags, size_t length, const char *flag)
{
    size_t size = strlen(flag);
    for (const char *at = flags, *end = flags + length; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t this = (size_t)((comma != NULL ? comma : end) - at);
        if (this == size && memcmp(at, flag, size) == 0)
            return true;
        at += this + 1;
    }
    return false;
}

/* "<id> <address> <flags> <master> <ping> <pong> <epoch> <link> <slots>..." */
static bool read_line(const char *line, struct lk__told *told)
{
    enum { BETWEEN = 5 };
    size_t length;
    next_word(&line, &length);
    const char *address = next_word(&line, &length);
    size_t address_length = length;
    const char *flags = next_word(&line, &length);
    told->replica = has_flag(flags, length, "slave");
    if (!(told->replica || has_flag(flags, length, "master")) || has_flag(flags, length, "noaddr") ||
        has_flag(flags, length, "handshake"))
        return false;
    told->failed = has_flag(flags, length, "fail");
    told->myself = has_flag(flags, length, "myself");
    for (int i = 0; i < BETWEEN; i++)
        next_word(&line, &length);
    told->slots = line;
    return read_address(address, address_length, told) && (told->host[0] != '\0' || told->myself);
}

const char *lk__told_host(const struct lk__told *told, const struct lk__options *options)
{
    return told->name[0] != '\0' && options->tls.on ? told->name : told->host;
}

bool lk__told_next(const char **text, struct lk__told *told)
{
    while (**text != '\0') {
        const char *line = *text;
        *text += strcspn(line, "\n");
        *text += **text == '\n';
        if (read_line(line, told))
            return true;
    }
    return false;
}

/* Slots that come or go, "[93-<-...]", belong to whom they come from until they are there. */
bool lk__told_slots(struct lk__told *told, unsigned *first, unsigned *last)
{
    for (;;) {
        size_t length;
        char *end;
        const char *word = next_word(&told->slots, &length);
        if (length == 0)
            return false;
        if (*word < '0' || *word > '9')
            continue;
        unsigned long from = strtoul(word, &end, 10), to = *end == '-' ? strtoul(end + 1, &end, 10) : from;
        if (end != word + length || from > to || to >= LK__SLOTS)
            continue;
        *first = (unsigned)from;
        *last = (unsigned)to;
        return true;
    }
}

bool lk__told_redirect(const char *says, unsigned *slot, char host[HOST_MAX + 1], int *port)
{
    size_t length;
    const char *word = next_word(&says, &length);
    if (strncmp(word, "MOVED ", 6) != 0 && strncmp(word, "ASK ", 4) != 0)
        return false;
    const char *number = next_word(&says, &length);
    char *end;
    unsigned long which = strtoul(number, &end, 10);
    if (length == 0 || end != number + length || which >= LK__SLOTS)
        return false;
    *slot = (unsigned)which;
    const char *place = next_word(&says, &length);
    return read_place(place, length, host, port);
}

/* --- in which slot of a cluster a key is: CRC-16/XMODEM of its hash tag, of which 14 bits count ------------------- */

/* Four bits at a time: a table of 32 bytes, which stays in the cache beside what else a call needs. */
static unsigned crc16(const char *bytes, size_t length)
{
    static const uint16_t of_nibble[16] = { 0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                            0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef };
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        crc = (crc << 4 ^ of_nibble[(crc >> 12 ^ byte >> 4) & 15]) & 0xffff;
        crc = (crc << 4 ^ of_nibble[(crc >> 12 ^ byte) & 15]) & 0xffff;
    }
    return crc;
}

unsigned lk__slot_of(const char *key, size_t length)
{
    const char *open = memchr(key, '{', length);
    if (open != NULL) {
        const char *tag = open + 1, *close = memchr(tag, '}', length - (size_t)(tag - key));
        if (close != NULL && close > tag)
            return crc16(tag, (size_t)(close - tag)) % LK__SLOTS;
    }
    return crc16(key, length) % LK__SLOTS;
}
