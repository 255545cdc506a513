/* SPDX-License-Identifier: MIT */
/*
 * secured.c - one thread: a pair of a mutex by TCP, and the same by TLS to the same server
 *
 * Both take turns, so that they see the same noise.
 *
 *   tls.us.plain     median of a pair by TCP
 *   tls.us.secured   the same by TLS
 */
#include "measure.h"
#include "subject.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct place place;
    char plain[96], secured[320];
    int at = place_read(&place, argc, argv, "PORT TLS_PORT CACERT");
    if (argc < at + 3)
        fail("PORT TLS_PORT CACERT");
    snprintf(plain, sizeof plain, "redis://127.0.0.1:%s?" PATIENCE, argv[at]);
    snprintf(secured, sizeof secured, "rediss://127.0.0.1:%s?" PATIENCE "&cacert=%s", argv[at + 1], argv[at + 2]);
    lk_client_t *one = open_client(plain), *other = open_client(secured);
    compare_sides((const struct side[2]){ { one, "one-plain", "tls.us.plain" }, { other, "one-safe!", "tls.us.secured" } },
                  place.ms);
    int rc = lk_client_close(one);
    return lk_client_close(other) != 0 || rc != 0;
}
