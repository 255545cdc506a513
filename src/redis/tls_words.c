/* SPDX-License-Identifier: MIT */
/* tls_words.c - why there is no session of TLS, in words that say what to do */
#include "redis/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* --- the certificate of the server ------------------------------------------------------------------------- */

/* Append what a certificate says, from whoever wrote it: only what is printable. */
static void append(char *text, size_t size, const char *separator, const unsigned char *says, size_t length)
{
    size_t used = strlen(text);
    if (used > 0)
        used += (size_t)snprintf(text + used, size - used, "%s", separator);
    for (size_t i = 0; i < length && used + 1 < size; i++)
        text[used++] = says[i] > ' ' && says[i] <= '~' ? (char)says[i] : '?';
    if (used < size)
        text[used] = '\0';
}

/* "a.example, b.example", cut to fit; or the subject, where there are no names. */
static void print_names(X509 *certificate, char *text, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    text[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        const ASN1_STRING *says = name->type == GEN_DNS ? name->d.dNSName : NULL;
        if (says != NULL && strlen(text) + 8 < size)
            append(text, size, ", ", ASN1_STRING_get0_data(says), (size_t)ASN1_STRING_length(says));
    }
    GENERAL_NAMES_free(names);
    char subject[96] = "";
    if (text[0] == '\0' &&
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, subject, sizeof subject) > 0)
        append(text, size, "", (const unsigned char *)subject, strlen(subject));
    if (text[0] == '\0')
        snprintf(text, size, "nobody");
}

static void print_date(const ASN1_TIME *date, char *text, size_t size)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(date, &tm) == 1)
        snprintf(text, size, "%04d-%02d-%02d %02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                 tm.tm_min);
    else
        snprintf(text, size, "a date that cannot be read");
}

void lk__tls_noteflaw(struct lk__tlsflaw *flaw, X509 *certificate, int error)
{
    bool early = error == X509_V_ERR_CERT_NOT_YET_VALID;
    flaw->error = error;
    if (certificate == NULL)
        return;
    flaw->nameless = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) < 0;
    print_names(certificate, flaw->subject, sizeof flaw->subject);
    print_date(early ? X509_get0_notBefore(certificate) : X509_get0_notAfter(certificate), flaw->date,
               sizeof flaw->date);
}

static void explain_flaw(struct lk__tls *tls)
{
    const struct lk__tlsflaw *flaw = &tls->flaw;
    const struct lk__options *options = tls->options;
    tls->code = ENOTCONN;
    switch (flaw->error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        if (flaw->nameless)
            snprintf(tls->why, sizeof tls->why,
                     "the server's certificate names no host (subjectAltName), so it is not for %.80s: the server "
                     "needs a new one; its subject does not count",
                     options->tls.sni != NULL ? options->tls.sni : tls->host);
        else
            snprintf(tls->why, sizeof tls->why,
                     "the server's certificate is for %s, not for %.80s: connect by a name it has, or say by sni which "
                     "it is",
                     flaw->subject, options->tls.sni != NULL ? options->tls.sni : tls->host);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        snprintf(tls->why, sizeof tls->why,
                 "the certificate of %s expired on %s: the server needs a new one, if this machine's clock is right",
                 flaw->subject, flaw->date);
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        snprintf(tls->why, sizeof tls->why,
                 "the certificate of %s is not valid before %s: is this machine's clock right?", flaw->subject,
                 flaw->date);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        snprintf(
            tls->why, sizeof tls->why,
            "nobody who is trusted here signed the server's certificate, that of %s: name the file of the authority "
            "that did by cacert",
            flaw->subject);
        break;
    default:
        snprintf(tls->why, sizeof tls->why, "the server's certificate, that of %s, is refused: %s", flaw->subject,
                 X509_verify_cert_error_string(flaw->error));
        break;
    }
}

/* --- everything else ------------------------------------------------------------------------------------------ */

static void say(struct lk__tls *tls, int code, const char *why)
{
    tls->code = code;
    snprintf(tls->why, sizeof tls->why, "%s", why);
}

/* The server has looked at the client's certificate, or seen that there is none. */
static void explain_refusal(struct lk__tls *tls)
{
    say(tls, EACCES,
        tls->showed
            ? "the server refuses the client's certificate (cert, key): it has to trust who signed it"
            : "the server wants a certificate of the client: name its file by cert, and that of its key by key");
}

static void explain_close(struct lk__tls *tls)
{
    bool connecting = tls->options != NULL;
    if (tls->asked && !tls->heard)
        say(tls, ENOTCONN,
            "the server closed the connection when it had asked for a certificate of the client (cert, key)");
    else if (connecting)
        say(tls, ENOTCONN,
            "the server closed the connection instead of beginning TLS: the port of TLS may be another one");
    else
        say(tls, ENOTCONN, "the server closed the connection");
}

static bool is_about_certificate(int reason)
{
    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
        return true;
    default:
        return false;
    }
}

/* Any other reason of OpenSSL's. */
static void quote_reason(struct lk__tls *tls, unsigned long error)
{
    const char *reason = ERR_reason_error_string(error);
    snprintf(tls->why, sizeof tls->why, "TLS failed: %s", reason != NULL ? reason : "nobody says why");
    tls->code = ENOTCONN;
}

/* The handshake did not come to its end. */
static void explain_handshake(struct lk__tls *tls, unsigned long error)
{
    switch (ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_UNEXPECTED_MESSAGE:
        say(tls, ENOTCONN, "what answers does not speak TLS: the port of TLS may be another one");
        break;
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
        say(tls, ENOTCONN, "the server has no version of TLS from 1.2 on, or none that is allowed here");
        break;
    case SSL_R_TLSV1_UNRECOGNIZED_NAME:
        say(tls, ENOTCONN, "the server does not know the name that it is asked for: say by sni which it has");
        break;
    default:
        quote_reason(tls, error);
        break;
    }
}

bool lk__tls_lacksmemory(void)
{
    bool lacks = false;
    for (unsigned long error; (error = ERR_get_error()) != 0;)
        lacks |= ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
    return lacks;
}

void lk__tls_explain(struct lk__tls *tls, unsigned long error)
{
    int reason = ERR_GET_REASON(error);
    if (tls->flaw.error != 0)
        explain_flaw(tls);
    else if (error == 0 || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        explain_close(tls);
    else if (lk__tls_lacksmemory())
        say(tls, ENOMEM, "out of memory for TLS");
    else if (is_about_certificate(reason) && tls->asked && !tls->heard)
        explain_refusal(tls);
    else if (tls->options != NULL)
        explain_handshake(tls, error);
    else
        quote_reason(tls, error);
}
