/* SPDX-License-Identifier: MIT */
/*
 * keys_test.c - which stripe a key belongs to, in which slots stripes lie, and what they cost
 *
 * labels: memory
 * simulated: yes
 * support: failing
 */
#include "failing/failing.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static lk_client_t *client;

/* Figures that zlib.crc32() gives: what other languages compute is what we do. */
static void a_key_s_stripe_is_its_crc32_modulo_n(struct world *w)
{
    static const struct {
        const char *key;
        size_t length;
        uint32_t crc;
    } known[] = {
        { "", 0, 0 },
        { "a", 1, 0xe8b7be43 },
        { "123456789", 9, 0xcbf43926 },
        { "The quick brown fox jumps over the lazy dog", 43, 0x414fa339 },
        { "\0\0\0\0", 4, 0x2144df1c },
        { "\xff\xff\xff\xff", 4, 0xffffffff },
    };
    static const unsigned counts[] = { 1, 2, 7, 64, 1000, LK_STRIPES_MAX };
    client = world_client(w, "");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        lk_stripes_t *s = world_stripes(w, client, "stock", counts[i], NULL);
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            unsigned index = lk_stripes_index(s, known[k].key, known[k].length);
            assert_int_equal(known[k].crc % counts[i], index);
            assert_ptr_equal(lk_stripes_at(s, index), lk_stripes_of(s, known[k].key, known[k].length));
        }
        assert_int_equal(0, lk_stripes_index(s, NULL, 0));
        world_close(w, s);
    }
}

/* Numbers one after another, as accounts have them, are shared out evenly. */
static void keys_spread_over_the_stripes(struct world *w)
{
    enum { KEYS = 64000 };
    static const unsigned counts[] = { 3, 8, 10, 64, 100 };
    client = world_client(w, "");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        lk_stripes_t *s = world_stripes(w, client, "account", counts[i], NULL);
        unsigned of[100] = { 0 };
        for (int k = 0; k < KEYS; k++) {
            char key[32];
            int length = snprintf(key, sizeof key, "account:%d", k);
            of[lk_stripes_index(s, key, (size_t)length)]++;
        }
        for (unsigned at = 0; at < counts[i]; at++)
            assert_between(of[at], KEYS / counts[i] * 3 / 4, KEYS / counts[i] * 5 / 4);
        world_close(w, s);
    }
}

enum { SLOTS = 16384 };

static unsigned slot_of(const char *name)
{
    uint16_t crc = 0;
    for (; *name != '\0'; name++) {
        crc ^= (uint16_t)(*name << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc % SLOTS;
}

/* `n` stripes over this many nodes of a cluster, each with as many slots: at least `percent` of an even share each. */
static void check_spread(const char *name, unsigned n, unsigned nodes, unsigned percent)
{
    unsigned of[16] = { 0 };
    for (unsigned i = 0; i < n; i++) {
        char stripe[64];
        snprintf(stripe, sizeof stripe, "%s:%u", name, i);
        of[slot_of(stripe) * nodes / SLOTS]++;
    }
    for (unsigned node = 0; node < nodes; node++)
        if (of[node] * nodes * 100 < n * percent)
            fail_msg("%s, %u stripes, node %u of %u: %u", name, n, node, nodes, of[node]);
}

/* The names of stripes lie in slots all over a cluster: no node has them all, nor is one left out. */
static void stripes_spread_over_a_cluster(struct world *w)
{
    static const char *const names[] = { "stock", "account", "shop:orders", "a", "sale:2026-11-27" };
    (void)w;
    assert_int_equal(12739, slot_of("123456789")); /* as the cluster specification has it: 0x31c3 */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (unsigned n = 4; n <= 1024; n *= 2)
            for (unsigned nodes = 2; nodes <= (n < 64 ? 4 : 6); nodes++)
                check_spread(names[i], n, nodes, n < 64 ? 50 : 60);
    }
}

enum { N = 2000 };

static void use(lk_stripes_t *s)
{
    for (unsigned i = 0; i < N; i++) {
        assert_lk(0, lk_mutex_trylock(lk_stripes_at(s, i)));
        assert_lk(0, lk_mutex_unlock(lk_stripes_at(s, i)));
    }
}

static void stripes_are_paid_for_when_they_are_used(struct world *w)
{
    lk_stripes_t s;
    client = world_client(w, "");
    for (int i = 0; i < 2; i++) { /* tables that double have their final size the second time */
        long before = failing_bytes();
        assert_lk(0, lk_stripes_init(&s, client, "stock", N));
        assert_between((failing_bytes() - before) / N, 1, 80);
        use(&s);
        if (i == 1)
            assert_between((failing_bytes() - before) / N, 80, 800);
        for (unsigned at = 0; at < N; at++)
            assert_lk(0, lk_mutex_destroy(lk_stripes_at(&s, at)));
        if (i == 1)
            assert_between((failing_bytes() - before) / N, 1, 80);
        assert_lk(0, lk_stripes_destroy(&s));
        if (i == 1)
            assert_between(failing_bytes() - before, -1000, 1000);
    }
}

int main(void)
{
    return world_run(a_key_s_stripe_is_its_crc32_modulo_n, keys_spread_over_the_stripes, stripes_spread_over_a_cluster,
                     stripes_are_paid_for_when_they_are_used);
}
