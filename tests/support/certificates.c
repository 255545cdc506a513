/* SPDX-License-Identifier: MIT */
/* certificates.c - see certificates.h */
#include "certificates.h"
#include "assert_lk.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOUR_S = 3600 };

static FILE *open_file(const char *folder, const char *name, const char *kind, const char *mode)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, kind);
    FILE *file = fopen(path, mode);
    assert_that(file != NULL);
    return file;
}

static void extend(X509 *certificate, X509 *signer, int what, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, signer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, what, value);
    assert_that(extension != NULL && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static void describe(X509 *certificate, const struct certificate *c)
{
    static long serial = 1;
    X509_NAME *subject = X509_get_subject_name(certificate);
    bool usual = c->begins_s == 0 && c->ends_s == 0;
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), (long)getpid() * 1000 + serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), usual ? -HOUR_S : c->begins_s);
    X509_gmtime_adj(X509_getm_notAfter(certificate), usual ? HOUR_S : c->ends_s);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)c->name, -1, -1, 0);
}

static void write_pem(const char *folder, const char *name, X509 *certificate, EVP_PKEY *key)
{
    FILE *file = open_file(folder, name, "pem", "w");
    assert_that(PEM_write_X509(file, certificate) == 1 && fclose(file) == 0);
    file = open_file(folder, name, "key", "w");
    assert_that(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(file) == 0);
}

static X509 *read_certificate(const char *folder, const char *name)
{
    FILE *file = open_file(folder, name, "pem", "r");
    X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
    assert_that(certificate != NULL && fclose(file) == 0);
    return certificate;
}

static EVP_PKEY *read_key(const char *folder, const char *name)
{
    FILE *file = open_file(folder, name, "key", "r");
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    assert_that(key != NULL && fclose(file) == 0);
    return key;
}

void certificate_make(const char *folder, const struct certificate *c)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); /* as the library does: who comes first decides */
    EVP_PKEY *key = EVP_EC_gen("P-256"), *signing = c->signer != NULL ? read_key(folder, c->signer) : key;
    X509 *certificate = X509_new(), *signer = c->signer != NULL ? read_certificate(folder, c->signer) : certificate;
    assert_that(key != NULL && certificate != NULL);
    describe(certificate, c);
    assert_that(X509_set_pubkey(certificate, key) == 1);
    assert_that(X509_set_issuer_name(certificate, X509_get_subject_name(signer)) == 1);
    extend(certificate, signer, NID_basic_constraints, c->signer == NULL ? "critical,CA:TRUE" : "CA:FALSE");
    if (c->names != NULL)
        extend(certificate, signer, NID_subject_alt_name, c->names);
    assert_that(X509_sign(certificate, signing, EVP_sha256()) > 0);
    write_pem(folder, c->name, certificate, key);
    if (signer != certificate) {
        X509_free(signer);
        EVP_PKEY_free(signing);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void certificates_make(const char *folder)
{
    certificate_make(folder, &(struct certificate){ .name = "ca" });
    certificate_make(folder, &(struct certificate){ "server", "ca", "DNS:localhost,IP:127.0.0.1", 0, 0 });
    certificate_make(folder, &(struct certificate){ .name = "client", .signer = "ca" });
    certificate_make(folder, &(struct certificate){ .name = "stranger" });
}
