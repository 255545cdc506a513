/* SPDX-License-Identifier: MIT */
/*
 * no_url_test.c - a process that uses 127.0.0.1 because nobody gave a URL is warned once
 *
 * labels: threads memory
 */
#include "log.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>

static const char warning[] = "no URL was given: using redis://127.0.0.1:6379; set LATCHKEY_URL to choose a server\n";

static int count_warnings(void)
{
    int count = 0;
    for (const char *at = log_kept(); (at = strstr(at, warning)) != NULL; at++)
        count++;
    return count;
}

/* Whether a server is there does not matter. */
static int open_and_close(int index, void *url)
{
    lk_client_t *client;
    (void)index;
    return lk_client_open(&client, url) == 0 ? lk_client_close(client) : 0;
}

static void a_url_is_no_reason_to_warn(struct world *w)
{
    char *url = strdup(world_url(w, ""));
    assert_lk(0, log_keep(LK_LOG_WARNING));
    unsetenv("LATCHKEY_URL");
    unsetenv("REDIS_URL");
    assert_int_equal(0, open_and_close(0, url));
    setenv("REDIS_URL", url, 1);
    assert_int_equal(0, open_and_close(0, NULL));
    setenv("LATCHKEY_URL", url, 1);
    unsetenv("REDIS_URL");
    assert_int_equal(0, open_and_close(0, NULL));
    assert_int_equal(0, count_warnings());
    unsetenv("LATCHKEY_URL");
    free(url);
}

static void many_threads_without_a_url_are_warned_once(struct world *w)
{
    (void)w;
    setenv("REDIS_URL", "", 1); /* none */
    assert_int_equal(0, run_threads(8, open_and_close, NULL));
    unsetenv("REDIS_URL");
    assert_int_equal(0, open_and_close(0, NULL));
    assert_int_equal(1, count_warnings());
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
}

int main(void)
{
    return world_run(a_url_is_no_reason_to_warn, many_threads_without_a_url_are_warned_once);
}
