/* SPDX-License-Identifier: MIT */
/* map.c - a hash table with chains, which doubles when they get long; without the memory for that it goes on */
#include "base/base.h"

#include <string.h>

enum { CHAIN_MAX = 2 /* entries for each bucket, on average, before it grows */ };

/* FNV-1a; no defence against chosen names is needed, they come from the program itself. */
static size_t hash_of(int kind, const char *key, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325ULL ^ (uint64_t)kind;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3ULL;
    return (size_t)(hash >> 32 ^ hash);
}

/* How many buckets it has: a power of two. */
static unsigned capacity_of(const struct lk__map *map)
{
    return map->many != NULL ? map->capacity : LK__BUCKETS_FEW;
}

static struct lk__entry **bucket_of(struct lk__map *map, int kind, const char *key, size_t length)
{
    struct lk__entry **table = map->many != NULL ? map->many : map->few;
    return &table[hash_of(kind, key, length) & (capacity_of(map) - 1)];
}

struct lk__entry *lk__map_find(const struct lk__map *map, int kind, const char *key, size_t length)
{
    struct lk__entry *entry = *bucket_of((struct lk__map *)map, kind, key, length);
    while (entry != NULL && (entry->kind != kind || entry->length != length || memcmp(entry->key, key, length) != 0))
        entry = entry->next;
    return entry;
}

static void push(struct lk__map *map, struct lk__entry *entry)
{
    struct lk__entry **bucket = bucket_of(map, entry->kind, entry->key, entry->length);
    entry->next = *bucket;
    *bucket = entry;
}

static void move(struct lk__entry *entry, void *to)
{
    push(to, entry);
}

static void grow(struct lk__map *map)
{
    unsigned capacity = 2 * capacity_of(map);
    struct lk__map grown = { .many = lk__alloc(capacity * sizeof *grown.many), .capacity = capacity, .count = map->count };
    if (grown.many == NULL)
        return;
    lk__map_each(map, move, &grown);
    lk__free(map->many);
    *map = grown;
}

void lk__map_insert(struct lk__map *map, struct lk__entry *entry)
{
    if (map->count >= CHAIN_MAX * capacity_of(map))
        grow(map);
    push(map, entry);
    map->count++;
}

void lk__map_remove(struct lk__map *map, struct lk__entry *entry)
{
    struct lk__entry **place = bucket_of(map, entry->kind, entry->key, entry->length);
    while (*place != NULL && *place != entry)
        place = &(*place)->next;
    if (*place == NULL)
        return;
    *place = entry->next;
    map->count--;
}

void lk__map_each(struct lk__map *map, void (*visit)(struct lk__entry *entry, void *arg), void *arg)
{
    struct lk__entry **table = map->many != NULL ? map->many : map->few;
    for (size_t i = 0, capacity = capacity_of(map); i < capacity; i++) {
        struct lk__entry *next;
        for (struct lk__entry *entry = table[i]; entry != NULL; entry = next) {
            next = entry->next;
            visit(entry, arg);
        }
    }
}

void lk__map_free(struct lk__map *map)
{
    lk__free(map->many);
    *map = (struct lk__map){ 0 };
}
