/* SPDX-License-Identifier: MIT */
/* slots.c - in which slot of a cluster a key is: CRC-16/XMODEM of its hash tag, of which 14 bits count */
#include "redis/slots.h"

#include <stdint.h>
#include <string.h>

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
