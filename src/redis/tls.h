/* SPDX-License-Identifier: MIT */
/* tls.h - what the files of TLS share; others know transport.h */
#ifndef LK__TLS_H
#define LK__TLS_H

#include "redis/transport.h"

#include <openssl/ssl.h>

enum { LK__TLSWORDS_MAX = 320 };

/* What went wrong with the certificate of the server, as far as it was looked at. */
struct lk__tlsflaw {
    int error;        /* of X.509; 0: none */
    char subject[96]; /* whose certificate it is, or which names it has */
    bool nameless;    /* it has no subjectAltName */
    char date[32];    /* the end of its validity, or the beginning, if that is the flaw */
};

/* A session. */
struct lk__tls {
    SSL *ssl;
    BIO_METHOD *method;
    const struct lk__options *options; /* only while it connects */
    const char *host;                  /* likewise */
    short blocked; /* what poll() has to see before the call that was just made gets on; 0: nothing */
    bool gone;     /* that call found the socket at its end */
    bool asked;    /* the server asked for a certificate of the client ... */
    bool showed;   /* ... and the options have one */
    bool heard;    /* something that the server said was read */
    size_t begun;  /* bytes in the record that waits for the socket to take the rest of it; 0: none */
    struct lk__tlsflaw flaw;
    int code; /* why it is gone, and in words; "": nobody knows */
    char why[LK__TLSWORDS_MAX];
};

/* --- tls_process.c ----------------------------------------------------------------------------------------- */

/* Around all that makes a connection, and so before anything else of OpenSSL's. 0, or ENOMEM or ENOTCONN and words. */
int lk__tls_begin(const char **why);
void lk__tls_end(void);
/* Around all other use of OpenSSL's; false: the process is over, and OpenSSL maybe gone, or its locks are a parent's for ever. */
bool lk__tls_enter(void);
void lk__tls_leave(void);

/* --- tls.c: what the options say, and the files they name ------------------------------------------ */

/* 0; ENOMEM; EINVAL with words: a file cannot be read, or is not what it should be. */
int lk__tls_context(SSL_CTX **context, const struct lk__tlsoptions *options, char *errmsg, size_t size);

/* --- tls_words.c: what is to be told of a failure ------------------------------------------------------------ */

/* Is want of memory among the errors of this thread? They are gone then. */
bool lk__tls_lacksmemory(void);
/* Note what is wrong with `certificate`, for which X.509 has the number `error`. */
void lk__tls_noteflaw(struct lk__tlsflaw *flaw, X509 *certificate, int error);
/* The words and code for the last error of this thread, 0 if there is none, with which the session ended. */
void lk__tls_explain(struct lk__tls *tls, unsigned long error);

#endif
