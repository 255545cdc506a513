/* SPDX-License-Identifier: MIT */
/*
 * key.c - which stripe a key belongs to
 *
 * CRC-32 because nearly every language has it at hand: programs agree on a stripe without code of ours. It is no
 * defence against keys that are chosen to meet; such keys are slow, not unsafe.
 */
#include "stripes/stripes.h"

/* Of the polynomial 0xEDB88320, four bits at a time: small enough to stay in the cache. */
static uint32_t crc32(const unsigned char *bytes, size_t length)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}

/* 0, or why there is none, with an error text. */
static int find(const char *function, lk_stripes_t *s, const void *key, size_t length, struct lk__stripes **stripes,
                unsigned *index)
{
    struct lk__apistate api = lk__api_enter();
    int rc = lk__stripes_get(function, s, stripes);
    if (rc == 0 && key == NULL && length > 0)
        rc = lk__fail(EINVAL, "%s: no key was given", function);
    if (rc == 0)
        *index = crc32(key, length) % (*stripes)->set.count;
    return lk__api_leave(&api, rc);
}

unsigned lk_stripes_index(lk_stripes_t *s, const void *key, size_t length)
{
    struct lk__stripes *stripes;
    unsigned index;
    return find(__func__, s, key, length, &stripes, &index) == 0 ? index : LK_STRIPES_ANY;
}

lk_mutex_t *lk_stripes_of(lk_stripes_t *s, const void *key, size_t length)
{
    struct lk__stripes *stripes;
    unsigned index;
    return find(__func__, s, key, length, &stripes, &index) == 0 ? &stripes->mutexes[index] : NULL;
}
