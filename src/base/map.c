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

/* The table, and how many buckets it has: a power of two. */
static struct lk__entry *const *table_of(const struct lk__map *map, unsigned *capacity)
{
    *capacity = map->many != NULL ? map->capacity : LK__BUCKETS_FEW;
    return map->many != NULL ? map->many : map->few;
}

static struct lk__entry **bucket_of(struct lk__map *map, int kind, const char *key, size_t length)
{
    unsigned capacity;
    struct lk__entry **table = (struct lk__entry **)table_of(map, &capacity);
    return &table[hash_of(kind, key, length) & (capacity - 1)];
}

struct lk__entry *lk__map_find(const struct lk__map *map, int kind, const char *key, size_t length)
{
    unsigned capacity;
    struct lk__entry *const *table = table_of(map, &capacity);
    struct lk__entry *entry = table[hash_of(kind, key, length) & (capacity - 1)];
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

static void grow(struct lk__map *map)
{
    unsigned capacity;
    struct lk__entry *const *before = table_of(map, &capacity);
    struct lk__entry **many =
        map->count >= CHAIN_MAX * capacity ? lk__alloc(2 * capacity * sizeof(struct lk__entry *)) : NULL;
    if (many == NULL)
        return;
    struct lk__map grown = { .many = many, .capacity = 2 * capacity, .count = map->count };
    for (size_t i = 0; i < capacity; i++) {
        struct lk__entry *next;
        for (struct lk__entry *entry = before[i]; entry != NULL; entry = next) {
            next = entry->next;
            push(&grown, entry);
        }
    }
    lk__free(map->many);
    *map = grown;
}

void lk__map_insert(struct lk__map *map, struct lk__entry *entry)
{
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
    unsigned capacity;
    struct lk__entry *const *table = table_of(map, &capacity);
    for (size_t i = 0; i < capacity; i++) {
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
