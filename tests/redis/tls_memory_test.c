/* SPDX-License-Identifier: MIT */
/*
 * tls_memory_test.c - OpenSSL gets no memory, once, wherever it asks: a connection ends, and nothing else
 *
 * labels: memory
 * seconds: 10
 */
#include "world.h"

#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { AT_ONCE = SANITIZED ? 211 : 23 }; /* of so many requests for memory one is tried */

/* --- memory of OpenSSL's ------------------------------------------------------------------------------------- */

static atomic_long asked, fails_at; /* so many times; that one fails, 0: none */

static bool fails(void)
{
    return atomic_fetch_add(&asked, 1) + 1 == atomic_load(&fails_at);
}

static void *get(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return fails() ? NULL : malloc(size);
}

static void *change(void *memory, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return fails() ? NULL : realloc(memory, size);
}

static void give(void *memory, const char *file, int line)
{
    (void)file, (void)line;
    free(memory);
}

/* The one that comes so many later fails. */
static void fail_later(long later)
{
    atomic_store(&fails_at, later > 0 ? atomic_load(&asked) + later : 0);
}

static bool has_failed(void)
{
    return atomic_load(&asked) >= atomic_load(&fails_at);
}

/* --- tests ------------------------------------------------------------------------------------------------------ */

static void a_client_is_opened_or_not(struct world *w)
{
    bool reached = true;
    for (long later = 1; reached; later += AT_ONCE) {
        lk_client_t *client = NULL;
        fail_later(later);
        int rc = lk_client_open(&client, world_url(w, "lease=60s&connect_timeout=10s"));
        reached = has_failed();
        fail_later(0);
        assert_true(rc == 0 || rc == ENOMEM || rc == ENOTCONN);
        if (rc == 0)
            assert_lk(0, lk_client_close(client));
        assert_true(reached || rc == 0);
    }
}

/* Whose connection ends is connected anew; what is held stays so, and what is given back is so. */
static void a_client_goes_on(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&retry_max=20ms");
    lk_mutex_t *kept = world_mutex(w, client, "kept", NULL), *orders = world_mutex(w, client, "orders", NULL);
    int64_t left_ms;
    assert_lk(0, lk_mutex_lock(kept));
    for (long later = 1; later < 2000; later += 3 * AT_ONCE) {
        fail_later(later);
        world_killcommands(w);
        for (int i = 0; i < 20; i++) {
            assert_lk(0, lk_mutex_lock(orders));
            assert_lk(0, lk_mutex_unlock(orders));
        }
        fail_later(0);
        eventually(!world_exists(w, "orders"), 3000);
        assert_lk(0, lk_mutex_remaining(kept, &left_ms));
    }
    assert_lk(0, lk_mutex_unlock(kept));
}

int main(void)
{
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    if (CRYPTO_set_mem_functions(get, change, give) != 1)
        return 1;
    return world_run(a_client_is_opened_or_not, a_client_goes_on);
}
