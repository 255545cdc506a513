/* SPDX-License-Identifier: MIT */
/*
 * tls_context.c - whom a client of TLS trusts, and who it is: by the files that its options name
 *
 * Each connection has a context of its own and reads the files anew, so a certificate that was replaced is the next
 * connection's, and no two threads share anything of OpenSSL's but OpenSSL. Files are read as all files of the library
 * are: no descriptor of theirs is 0, 1 or 2 or survives an exec, and what held a key is overwritten.
 */
#include "redis/tls.h"
#include "config/file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <sys/stat.h>

/* What the reading of a setting's file needs. */
struct source {
    SSL_CTX *context;
    const char *setting, *path; /* what names the file, and which it is */
    char *errmsg;
    size_t size;
};

static int bad_file(const struct source *source, const char *flaw)
{
    snprintf(source->errmsg, source->size, "%s: %.200s: %s", source->setting, source->path, flaw);
    return EINVAL;
}

/* OpenSSL has used a file, or could not: for want of memory, or because of its flaw. */
static int outcome(const struct source *source, bool used, const char *flaw)
{
    if (lk__tls_lacksmemory())
        return ENOMEM;
    return used ? 0 : bad_file(source, flaw);
}

/* A key with a passphrase is asked for one, on the terminal of the program: there is none. */
static int no_passphrase(char *text, int size, int writing, void *arg)
{
    (void)text, (void)size, (void)writing;
    *(bool *)arg = true;
    return -1;
}

/* The next certificate of a file, or NULL behind the last one. */
static X509 *next_certificate(BIO *text)
{
    return PEM_read_bio_X509(text, NULL, NULL, NULL);
}

/* --- what is made of a file: 0, ENOMEM, EINVAL with words ----------------------------------------------------- */

typedef int reader(const struct source *source, BIO *text);

static int trust(const struct source *source, BIO *text)
{
    X509_STORE *store = SSL_CTX_get_cert_store(source->context);
    X509 *authority;
    int count = 0;
    for (; (authority = next_certificate(text)) != NULL; count++) {
        bool added = X509_STORE_add_cert(store, authority) == 1;
        X509_free(authority);
        if (!added)
            return outcome(source, false, "holds a certificate that cannot be used");
    }
    return outcome(source, count > 0, "holds no certificate in PEM form");
}

/* The first is the client's, the others lead from it to the authority that the server trusts. */
static int show(const struct source *source, BIO *text)
{
    X509 *certificate = next_certificate(text);
    if (certificate == NULL)
        return outcome(source, false, "holds no certificate in PEM form");
    bool used = SSL_CTX_use_certificate(source->context, certificate) == 1;
    X509_free(certificate);
    while (used && (certificate = next_certificate(text)) != NULL) {
        used = SSL_CTX_add1_chain_cert(source->context, certificate) == 1;
        X509_free(certificate);
    }
    return outcome(source, used, "holds a certificate that cannot be used");
}

static int prove(const struct source *source, BIO *text)
{
    bool encrypted = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(text, NULL, no_passphrase, &encrypted);
    if (key == NULL)
        return outcome(source, false,
                       encrypted ? "the key has a passphrase: it has to be stored without one"
                                 : "holds no private key in PEM form");
    bool used = SSL_CTX_use_PrivateKey(source->context, key) == 1;
    EVP_PKEY_free(key);
    return outcome(source, used, "the key is not that of the certificate");
}

static int read_with(reader *read, const struct source *source)
{
    struct lk__file file;
    int rc = lk__file_read(&file, source->path);
    if (rc != 0)
        return rc == ENOMEM ? ENOMEM : bad_file(source, lk__file_errmsg(rc));
    BIO *text = BIO_new_mem_buf(file.text, (int)file.length);
    rc = text != NULL ? read(source, text) : ENOMEM;
    BIO_free(text);
    lk__file_wipe(&file);
    ERR_clear_error(); /* the end of a file is one */
    return rc;
}

/* --- the context ------------------------------------------------------------------------------------------------ */

static int trust_folder(const struct source *source)
{
    struct stat about;
    if (stat(source->path, &about) != 0)
        return bad_file(source, lk__file_errmsg(errno));
    if (!S_ISDIR(about.st_mode))
        return bad_file(source, "is no folder");
    return SSL_CTX_load_verify_dir(source->context, source->path) == 1 ? 0 : ENOMEM;
}

static int read_all(SSL_CTX *context, const struct lk__tlsoptions *options, char *errmsg, size_t size)
{
    const struct {
        const char *setting, *path;
        reader *read;
    } files[] = { { "cacert", options->cacert, trust },
                  { "cert", options->certificate, show },
                  { "key", options->key, prove } };
    int rc = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files && rc == 0; i++)
        if (files[i].path != NULL)
            rc = read_with(files[i].read, &(struct source){ context, files[i].setting, files[i].path, errmsg, size });
    if (rc == 0 && options->capath != NULL)
        rc = trust_folder(&(struct source){ context, "capath", options->capath, errmsg, size });
    if (rc == 0 && options->cacert == NULL && options->capath == NULL)
        rc = SSL_CTX_set_default_verify_paths(context) == 1 ? 0 : ENOMEM;
    return rc;
}

/* TLS 1.2 at least, or what the configuration of this machine asks for, if that is more. */
static bool set_versions(SSL_CTX *context)
{
    return SSL_CTX_get_min_proto_version(context) >= TLS1_2_VERSION ||
           SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

int lk__tls_context(SSL_CTX **context, const struct lk__tlsoptions *options, char *errmsg, size_t size)
{
    SSL_CTX *fresh = SSL_CTX_new(TLS_client_method());
    if (fresh == NULL || !set_versions(fresh)) {
        SSL_CTX_free(fresh);
        return ENOMEM;
    }
    SSL_CTX_set_options(fresh, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(fresh, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER); /* what waits to be sent is moved up */
    SSL_CTX_set_session_cache_mode(fresh, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(fresh, 1);
    int rc = read_all(fresh, options, errmsg, size);
    if (rc != 0)
        SSL_CTX_free(fresh);
    else
        *context = fresh;
    return rc;
}
