/* SPDX-License-Identifier: MIT */
/*
 * tls_certificates_test.c - F43: who may be a server, who may be a client, and what is said of those who may not
 *
 * A client that is not sure whom it talks to says nothing, least of all its password, and never goes on without TLS.
 *
 * labels: threads memory
 */
#include "certificates.h"
#include "log.h"
#include "world.h"

#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Have the server show a certificate from now on. */
static void show(struct world *w, const char *name)
{
    world_redis(w, "CONFIG SET tls-cert-file %s/%s.pem tls-key-file %s/%s.key", w->dir, name, w->dir, name);
}

static void make(struct world *w, struct certificate certificate)
{
    certificate_make(w->dir, &certificate);
}

/* What a client is told that opens "rediss://<server>?<options>", in a while; "" if it is let in, and works. */
static const char *told(struct world *w, int code, const char *server, const char *options)
{
    char url[512];
    lk_client_t *client = NULL;
    const char *patience = strstr(options, "connect_timeout") == NULL ? "&lease=60s&connect_timeout=10s" : "";
    snprintf(url, sizeof url, "rediss://%s:%d?protocol=2%s%s%s", server, w->tls_port, options[0] != 0 ? "&" : "",
             options, patience);
    assert_lk(code, lk_client_open(&client, url));
    if (code != 0)
        return lk_errortext();
    lk_mutex_t *m = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(m));
    assert_lk(0, lk_mutex_unlock(m));
    world_close(w, m);
    assert_lk(0, lk_client_close(client));
    return "";
}

/* Texts of a test: good until the 32nd next one. */
static const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *text(const char *format, ...)
{
    static char texts[32][256];
    static unsigned next;
    char *one = texts[next++ % 32];
    va_list args;
    va_start(args, format);
    vsnprintf(one, sizeof texts[0], format, args);
    va_end(args);
    return one;
}

/* An option with the path of a file in the world's folder. */
static const char *option(struct world *w, const char *name, const char *file)
{
    return text("%s=%s/%s", name, w->dir, file);
}

static const char *both(const char *one, const char *other)
{
    return text("%s&%s", one, other);
}

static void expect_words(const char *told, const char *words)
{
    if (strstr(told, words) == NULL)
        fail_msg("not there: \"%s\", but: %s", words, told);
}

static void by_name_and_by_address(struct world *w)
{
    const char *trusted = option(w, "cacert", "ca.pem");
    told(w, 0, "localhost", trusted);
    told(w, 0, "127.0.0.1", trusted);
    told(w, 0, "127.0.0.1", both(trusted, "verify=yes"));
}

static void a_server_that_has_another_name(struct world *w)
{
    const char *trusted = option(w, "cacert", "ca.pem");
    make(w, (struct certificate){ "elsewhere", "ca", "DNS:cache.example,DNS:*.cache.example", 0, 0 });
    show(w, "elsewhere");
    expect_words(told(w, ENOTCONN, "127.0.0.1", trusted),
                 "certificate is for cache.example, *.cache.example, not for 127.0.0.1: connect by a name");
    expect_words(told(w, ENOTCONN, "localhost", trusted), "not for localhost");
    told(w, 0, "127.0.0.1", both(trusted, "sni=cache.example"));
    told(w, 0, "127.0.0.1", both(trusted, "sni=eu.cache.example"));
    expect_words(told(w, ENOTCONN, "127.0.0.1", both(trusted, "sni=a.eu.cache.example")), "not for a.eu.cache");
    expect_words(told(w, ENOTCONN, "127.0.0.1", both(trusted, "sni=example")), "not for example");
}

/* Only subjectAltName says which hosts a certificate is for. */
static void a_subject_is_no_name(struct world *w)
{
    const char *trusted = option(w, "cacert", "ca.pem");
    make(w, (struct certificate){ .name = "localhost", .signer = "ca" });
    show(w, "localhost");
    expect_words(told(w, ENOTCONN, "localhost", trusted),
                 "names no host (subjectAltName), so it is not for localhost");
    expect_words(told(w, ENOTCONN, "127.0.0.1", both(trusted, "sni=localhost")), "not for localhost");
    make(w, (struct certificate){ "localhost", "ca", "IP:127.0.0.2", 0, 0 });
    show(w, "localhost");
    expect_words(told(w, ENOTCONN, "localhost", trusted), "not for localhost");
}

/* A certificate says whom it names in whatever bytes it likes: none of them begins a line, or is a command of a terminal. */
static void names_are_printed_with_care(struct world *w)
{
    make(w, (struct certificate){ "sly", "ca", "DNS:a\nlatchkey: all is well\033[0m", 0, 0 });
    show(w, "sly");
    const char *words = told(w, ENOTCONN, "127.0.0.1", option(w, "cacert", "ca.pem"));
    expect_words(words, "a?latchkey:?all?is?well?[0m");
}

static void nobody_who_is_trusted_signed_it(struct world *w)
{
    expect_words(told(w, ENOTCONN, "127.0.0.1", ""), "nobody who is trusted here signed");
    expect_words(told(w, ENOTCONN, "127.0.0.1", option(w, "cacert", "stranger.pem")), "by cacert");
    make(w, (struct certificate){ .name = "self", .names = "IP:127.0.0.1" });
    show(w, "self");
    expect_words(told(w, ENOTCONN, "127.0.0.1", option(w, "cacert", "ca.pem")), "that of self");
    told(w, 0, "127.0.0.1", option(w, "cacert", "self.pem"));
}

/* Under the name by which OpenSSL looks for it. */
static void a_folder_of_those_who_are_trusted(struct world *w)
{
    char folder[96], from[128], path[160];
    snprintf(folder, sizeof folder, "%s/trusted", w->dir);
    snprintf(from, sizeof from, "%s/ca.pem", w->dir);
    FILE *file = fopen(from, "r");
    X509 *ca = PEM_read_X509(file, NULL, NULL, NULL);
    snprintf(path, sizeof path, "%s/%08lx.0", folder, X509_NAME_hash_ex(X509_get_subject_name(ca), NULL, NULL, NULL));
    X509_free(ca);
    fclose(file);
    assert_int_equal(mkdir(folder, 0700), 0);
    expect_words(told(w, ENOTCONN, "127.0.0.1", option(w, "capath", "trusted")), "nobody who is trusted");
    assert_int_equal(symlink(from, path), 0);
    told(w, 0, "127.0.0.1", option(w, "capath", "trusted"));
    told(w, 0, "127.0.0.1", both(option(w, "capath", "trusted"), option(w, "cacert", "stranger.pem")));
}

static void not_any_more_and_not_yet(struct world *w)
{
    const char *trusted = option(w, "cacert", "ca.pem");
    make(w, (struct certificate){ "old", "ca", "IP:127.0.0.1", -7200, -3600 });
    make(w, (struct certificate){ "new", "ca", "IP:127.0.0.1", 3600, 7200 });
    show(w, "old");
    expect_words(told(w, ENOTCONN, "127.0.0.1", trusted), "expired on 20");
    show(w, "new");
    expect_words(told(w, ENOTCONN, "127.0.0.1", trusted), "is not valid before 20");
    expect_words(lk_errortext(), "clock");
}

/* Whatever is wrong with the server is left alone then, and that is said once. */
static void whoever_answers(struct world *w)
{
    make(w, (struct certificate){ "old", NULL, "DNS:cache.example", -7200, -3600 });
    show(w, "old");
    assert_lk(0, log_keep(LK_LOG_WARNING));
    told(w, 0, "127.0.0.1", "verify=no");
    const char *first = log_kept(), *once = strstr(first, "verify=no");
    assert_non_null(once);
    assert_null(strstr(once + 1, "verify=no"));
    told(w, ENOTCONN, "127.0.0.1", "verify=yes");
}

static void a_port_without_tls(struct world *w)
{
    char server[32];
    lk_client_t *client = NULL;
    int port = free_port(), tls_port = w->tls_port;
    world_redis(w, "CONFIG SET port %d", port);
    int64_t began_ms = now_ms();
    w->tls_port = port;
    expect_words(told(w, ENOTCONN, "127.0.0.1", both(option(w, "cacert", "ca.pem"), "connect_timeout=2s")),
                 "the port of TLS may be another one");
    assert_between(now_ms() - began_ms, 0, 2000 + SLACK_MS);
    w->tls_port = tls_port;
    snprintf(server, sizeof server, "redis://127.0.0.1:%d", tls_port);
    int code = lk_client_open(&client, server); /* and the other way round */
    assert_true(code == ENOTCONN || code == EPROTO);
    expect_words(lk_errortext(), "rediss://");
}

static void clients_have_to_say_who_they_are(struct world *w)
{
    static const char *const versions[] = { "TLSv1.3", "TLSv1.2" };
    const char *trusted = option(w, "cacert", "ca.pem");
    const char *client = both(option(w, "cert", "client.pem"), option(w, "key", "client.key"));
    const char *stranger = both(option(w, "cert", "stranger.pem"), option(w, "key", "stranger.key"));
    world_redis(w, "CONFIG SET tls-auth-clients yes");
    for (int i = 0; i < 2; i++) {
        world_redis(w, "CONFIG SET tls-protocols %s", versions[i]);
        expect_words(told(w, EACCES, "127.0.0.1", trusted), "the server wants a certificate of the client");
        expect_words(told(w, EACCES, "127.0.0.1", both(trusted, stranger)), "refuses the client's certificate");
        told(w, 0, "127.0.0.1", both(trusted, client));
    }
}

static void an_old_version(struct world *w)
{
    world_redis(w, "CONFIG SET tls-protocols TLSv1.1 tls-ciphers ALL:@SECLEVEL=0");
    expect_words(told(w, ENOTCONN, "127.0.0.1", option(w, "cacert", "ca.pem")), "TLS");
    world_redis(w, "CONFIG SET tls-protocols TLSv1.2 tls-ciphers DEFAULT");
    told(w, 0, "127.0.0.1", option(w, "cacert", "ca.pem"));
}

/* A key with a passphrase. */
static void lock_key(struct world *w)
{
    char path[128];
    snprintf(path, sizeof path, "%s/locked.key", w->dir);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    FILE *file = fopen(path, "w");
    assert_true(PEM_write_PKCS8PrivateKey(file, key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL) == 1);
    fclose(file);
    EVP_PKEY_free(key);
}

static void files_that_are_of_no_use(struct world *w)
{
    const char *trusted = option(w, "cacert", "ca.pem"), *mine = option(w, "cert", "client.pem");
    lock_key(w);
    expect_words(told(w, EINVAL, "127.0.0.1", option(w, "cacert", "none.pem")), "none.pem: no such file");
    expect_words(told(w, EINVAL, "127.0.0.1", option(w, "cacert", "client.key")), "no certificate in PEM form");
    expect_words(told(w, EINVAL, "127.0.0.1", option(w, "capath", "none")), "none: no such file");
    expect_words(told(w, EINVAL, "127.0.0.1", option(w, "capath", "ca.pem")), "ca.pem: is no folder");
    mine = both(trusted, mine);
    expect_words(told(w, EINVAL, "127.0.0.1", both(mine, option(w, "key", "stranger.key"))),
                 "the key is not that of the certificate");
    expect_words(told(w, EINVAL, "127.0.0.1", both(mine, option(w, "key", "client.pem"))), "no private key");
    expect_words(told(w, EINVAL, "127.0.0.1", both(mine, option(w, "key", "locked.key"))), "has a passphrase");
}

static void copy(struct world *w, const char *from, const char *to)
{
    char one[128], other[128], bytes[8192];
    snprintf(one, sizeof one, "%s/%s", w->dir, from);
    snprintf(other, sizeof other, "%s/%s", w->dir, to);
    FILE *in = fopen(one, "r"), *out = fopen(other, "w");
    size_t length = fread(bytes, 1, sizeof bytes, in);
    assert_true(fwrite(bytes, 1, length, out) == length);
    fclose(in);
    fclose(out);
}

/* The attempt before may still be under way, and is what is told then. */
static bool is_refused(lk_mutex_t *m, const char *words)
{
    assert_lk(ENOTCONN, lk_mutex_lockfor(m, 300));
    return strstr(lk_errortext(), words) != NULL;
}

/* Certificates are replaced while clients run: the next connection reads the files anew. */
static void certificates_are_replaced(struct world *w)
{
    copy(w, "ca.pem", "trusted.pem");
    char url[256];
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d?%s&retry_max=50ms", w->tls_port,
             option(w, "cacert", "trusted.pem"));
    lk_client_t *client = world_client_at(w, NULL, url);
    lk_mutex_t *m = world_mutex(w, client, "orders", NULL);
    make(w, (struct certificate){ .name = "authority" });
    make(w, (struct certificate){ "next", "authority", "IP:127.0.0.1", 0, 0 });
    show(w, "next");
    assert_lk(0, lk_mutex_lock(m)); /* on the connection there is */
    world_killcommands(w);
    lk_mutex_t *others = world_mutex(w, client, "others", NULL);
    int code = lk_mutex_lockfor(others, 300);
    assert_true(code == ENOTCONN || code == EIO); /* it may have been sent on the connection that just ended */
    eventually(is_refused(others, "nobody who is trusted"), 10000);
    unlink(text("%s/trusted.pem", w->dir));
    eventually(is_refused(others, "no such file"), 10000);
    copy(w, "authority.pem", "trusted.pem");
    assert_lk(0, lk_mutex_lockfor(others, 5000));
    assert_lk(0, lk_mutex_unlock(others));
    assert_lk(0, lk_mutex_unlock(m)); /* it was not lost */
}

int main(void)
{
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return world_run(by_name_and_by_address, a_server_that_has_another_name, a_subject_is_no_name,
                     names_are_printed_with_care, nobody_who_is_trusted_signed_it, a_folder_of_those_who_are_trusted, not_any_more_and_not_yet,
                     whoever_answers, a_port_without_tls, clients_have_to_say_who_they_are, an_old_version,
                     files_that_are_of_no_use, certificates_are_replaced);
}
