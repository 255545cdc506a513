/* SPDX-License-Identifier: MIT */
/* map.c - a hash table with chains; 256 buckets are plenty for the names one process uses */
#include "base/base.h"

#include <string.h>

/* FNV-1a; no defence against chosen names is needed, they come from the program itself. */
static size_t bucket_of(int kind, const char *key, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325ULL ^ (uint64_t)kind;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3ULL;
    return (size_t)(hash >> 32 ^ hash) % 256;
}

struct lk__entry *lk__map_find(const struct lk__map *map, int kind, const char *key, size_t length)
{
    struct lk__entry *entry = map->buckets[bucket_of(kind, key, length)];
    while (entry != NULL && (entry->kind != kind || entry->length != length || memcmp(entry->key, key, length) != 0))
        entry = entry->next;
    return entry;
}

void lk__map_insert(struct lk__map *map, struct lk__entry *entry)
{
    struct lk__entry **bucket = &map->buckets[bucket_of(entry->kind, entry->key, entry->length)];
    entry->next = *bucket;
    *bucket = entry;
    map->count++;
}

void lk__map_remove(struct lk__map *map, struct lk__entry *entry)
{
    struct lk__entry **place = &map->buckets[bucket_of(entry->kind, entry->key, entry->length)];
    while (*place != NULL && *place != entry)
        place = &(*place)->next;
    if (*place == NULL)
        return;
    *place = entry->next;
    map->count--;
}

void lk__map_each(struct lk__map *map, void (*visit)(struct lk__entry *entry, void *arg), void *arg)
{
    for (size_t i = 0; i < 256; i++) {
        struct lk__entry *next;
        for (struct lk__entry *entry = map->buckets[i]; entry != NULL; entry = next) {
            next = entry->next;
            visit(entry, arg);
        }
    }
}
