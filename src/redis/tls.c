/* SPDX-License-Identifier: MIT */
/*
 * tls.c - bytes pass a socket encrypted, to a server that has shown who it is
 *
 * OpenSSL sees the socket through a BIO of our own, as its own one raises SIGPIPE in the program; that also notes what
 * OpenSSL waits for, so that the queue of errors, which is the thread's and so the program's, is left alone unless
 * something fails.
 *
 * A write is one record. One that the socket did not take whole is no use to the server, so its bytes do not count as
 * sent; the next write is of the same bytes, and ends with that record. So what counts as sent is what the server may know.
 *
 * OpenSSL reads as much as there is, and gives out a record at a time: what it keeps, no poll() tells of.
 */
#include "redis/tls.h"
#include "config/options.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <openssl/pem.h>
#include <sys/stat.h>

enum { RECORD_MAX = SSL3_RT_MAX_PLAIN_LENGTH };

/* --- the socket, as OpenSSL sees it ------------------------------------------------------------------------ */

/* What a BIO returns for `rc` bytes, and what it notes when there are none. */
static int passed(BIO *bio, struct lk__socket *socket, ssize_t rc, short waits_for)
{
    BIO_clear_retry_flags(bio);
    if (rc > 0)
        return (int)rc;
    if (rc < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        socket->tls->blocked = waits_for;
        BIO_set_flags(bio, BIO_FLAGS_SHOULD_RETRY | (waits_for == POLLIN ? BIO_FLAGS_READ : BIO_FLAGS_WRITE));
    } else {
        socket->tls->gone = true;
    }
    return -1;
}

static int bio_read(BIO *bio, char *bytes, int count)
{
    struct lk__socket *socket = BIO_get_data(bio);
    ssize_t rc;
    do
        rc = recv(socket->fd, bytes, (size_t)count, MSG_DONTWAIT);
    while (rc < 0 && errno == EINTR);
    return passed(bio, socket, rc, POLLIN);
}

static int bio_write(BIO *bio, const char *bytes, int count)
{
    struct lk__socket *socket = BIO_get_data(bio);
    ssize_t rc;
    do
        rc = send(socket->fd, bytes, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (rc < 0 && errno == EINTR);
    return passed(bio, socket, rc, POLLOUT);
}

static long bio_ctrl(BIO *bio, int what, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return what == BIO_CTRL_FLUSH; /* nothing is kept back */
}

static BIO *open_bio(struct lk__socket *socket)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "latchkey");
    socket->tls->method = method;
    if (method == NULL || BIO_meth_set_read(method, bio_read) != 1 || BIO_meth_set_write(method, bio_write) != 1 ||
        BIO_meth_set_ctrl(method, bio_ctrl) != 1)
        return NULL;
    BIO *bio = BIO_new(method);
    if (bio != NULL) {
        BIO_set_data(bio, socket);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* --- bytes ---------------------------------------------------------------------------------------------------- */

/* OpenSSL is about to be called. */
static void begin_call(struct lk__tls *tls)
{
    tls->blocked = 0;
    tls->gone = false;
}

/* What OpenSSL was called for did not happen: EAGAIN with what it waits for, or EIO. */
static int failed(struct lk__socket *socket, short *waits_for)
{
    struct lk__tls *tls = socket->tls;
    if (tls->blocked != 0) {
        *waits_for = tls->blocked;
        return EAGAIN;
    }
    unsigned long error = tls->gone ? 0 : ERR_peek_last_error();
    if (tls->code == 0 || error != 0)
        lk__tls_explain(tls, error);
    ERR_clear_error();
    return EIO;
}

static void set_more(struct lk__socket *socket, bool more)
{
    atomic_store_explicit(&socket->more, more, memory_order_relaxed);
}

static ssize_t read_record(struct lk__socket *socket, char *bytes, size_t count)
{
    struct lk__tls *tls = socket->tls;
    size_t got;
    begin_call(tls);
    socket->read_on = POLLIN;
    if (SSL_read_ex(tls->ssl, bytes, count, &got) == 1) {
        tls->heard = true;
        set_more(socket, SSL_has_pending(tls->ssl) == 1);
        return (ssize_t)got;
    }
    set_more(socket, false);
    return -failed(socket, &socket->read_on);
}

static ssize_t write_record(struct lk__socket *socket, const char *bytes, size_t count)
{
    struct lk__tls *tls = socket->tls;
    size_t record = count < RECORD_MAX ? count : RECORD_MAX, taken;
    if (tls->begun != 0)
        record = tls->begun;
    assert(record <= count);
    begin_call(tls);
    tls->begun = 0;
    socket->write_on = POLLOUT;
    if (SSL_write_ex(tls->ssl, bytes, record, &taken) == 1)
        return (ssize_t)taken;
    int rc = failed(socket, &socket->write_on);
    if (rc == EAGAIN)
        tls->begun = record;
    return -rc;
}

static ssize_t tls_read(struct lk__socket *socket, char *bytes, size_t count)
{
    if (!lk__tls_enter())
        return -EIO;
    ssize_t got = read_record(socket, bytes, count);
    lk__tls_leave();
    return got;
}

static ssize_t tls_write(struct lk__socket *socket, const char *bytes, size_t count)
{
    if (!lk__tls_enter())
        return -EIO;
    ssize_t taken = write_record(socket, bytes, count);
    lk__tls_leave();
    return taken;
}

static const char *tls_why(const struct lk__socket *socket, int *code)
{
    const struct lk__tls *tls = socket->tls;
    if (tls == NULL || tls->why[0] == '\0')
        return NULL;
    if (code != NULL)
        *code = tls->code;
    return tls->why;
}

/* No farewell is sent: who closes may not be who reads and writes, and a server does well without it. */
static void tls_close(struct lk__socket *socket)
{
    struct lk__tls *tls = socket->tls;
    if (tls == NULL || !lk__tls_enter())
        return;
    SSL_free(tls->ssl);
    BIO_meth_free(tls->method);
    lk__tls_leave();
    lk__free(tls);
    socket->tls = NULL;
}

/* --- the handshake, on the connector's thread ----------------------------------------------------------------- */

/* OpenSSL has looked at one more certificate of the server's. */
static int on_certificate(int fine, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct lk__tls *tls = SSL_get_app_data(ssl);
    if (!fine && tls->flaw.error == 0)
        lk__tls_noteflaw(&tls->flaw, X509_STORE_CTX_get_current_cert(store), X509_STORE_CTX_get_error(store));
    return fine;
}

/* The server asks who the client is: with the certificate of the options, or none. */
static int on_asked(SSL *ssl, void *arg)
{
    struct lk__tls *tls = SSL_get_app_data(ssl);
    (void)arg;
    tls->asked = true;
    return 1;
}

/* The host, without what only this machine knows of it: an interface behind %, a last dot. */
static bool name_of(const struct lk__options *options, const char *host, char *name, size_t size)
{
    const char *from = options->tls.sni != NULL ? options->tls.sni : host;
    size_t length = strcspn(from, "%");
    if (length > 0 && from[length - 1] == '.')
        length--;
    if (length >= size)
        return false;
    memcpy(name, from, length);
    name[length] = '\0';
    return true;
}

static bool is_address(const char *name)
{
    struct in6_addr address;
    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

/* Whom the certificate has to name. A name is also asked for, as one server may have several; an address cannot be. */
static bool expect(SSL *ssl, const struct lk__options *options, const char *host)
{
    char name[256];
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (!name_of(options, host, name, sizeof name))
        return false;
    if (is_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return SSL_set_tlsext_host_name(ssl, name) == 1 && X509_VERIFY_PARAM_set1_host(param, name, 0) == 1;
}

/* A session over the socket, not begun yet. 0, ENOMEM, EINVAL with words. */
static int open_session(struct lk__socket *socket, const struct lk__options *options, char *errmsg, size_t size)
{
    SSL_CTX *context = NULL;
    struct lk__tls *tls = socket->tls = lk__alloc(sizeof *tls);
    if (tls == NULL)
        return ENOMEM;
    int rc = lk__tls_context(&context, &options->tls, errmsg, size);
    if (rc != 0)
        return rc;
    SSL_CTX_set_cert_cb(context, on_asked, NULL);
    tls->options = options;
    tls->host = socket->host;
    tls->showed = options->tls.certificate != NULL;
    tls->ssl = SSL_new(context);
    SSL_CTX_free(context); /* the session keeps it */
    BIO *bio = tls->ssl != NULL ? open_bio(socket) : NULL;
    if (bio == NULL)
        return ENOMEM;
    SSL_set_bio(tls->ssl, bio, bio);
    if (SSL_set_app_data(tls->ssl, tls) != 1 || !expect(tls->ssl, options, socket->host))
        return ENOMEM;
    if (!options->tls.unverified)
        SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, on_certificate);
    return 0;
}

/* One step of a handshake: 0, EAGAIN, EIO, or ENOTCONN: the process is over. */
static int shake_once(struct lk__socket *socket, short *waits_for)
{
    const char *why;
    int rc = lk__tls_begin(&why);
    if (rc != 0)
        return rc;
    begin_call(socket->tls);
    rc = SSL_connect(socket->tls->ssl) == 1 ? 0 : failed(socket, waits_for);
    lk__tls_end();
    return rc;
}

static int shake_hands(struct lk__socket *socket, int64_t until_us, int cancel_fd, char *errmsg, size_t size)
{
    short waits_for;
    int rc;
    while ((rc = shake_once(socket, &waits_for)) == EAGAIN) {
        rc = lk__socket_await(socket->fd, waits_for, until_us, cancel_fd);
        if (rc != 0)
            return rc;
    }
    if (rc != EIO)
        return rc; /* done, or the process is over */
    snprintf(errmsg, size, "%s", socket->tls->why);
    return socket->tls->code;
}

/* Likewise, what comes before. */
static int prepare(struct lk__socket *socket, const struct lk__options *options, char *errmsg, size_t size)
{
    const char *why;
    int rc = lk__tls_begin(&why);
    if (rc != 0) {
        snprintf(errmsg, size, "%s", why);
        return rc;
    }
    ERR_clear_error();
    rc = open_session(socket, options, errmsg, size);
    ERR_clear_error();
    lk__tls_end();
    return rc;
}

static int tls_connect(struct lk__socket *socket, const struct lk__options *options, int64_t until_us, int cancel_fd,
                       char *errmsg, size_t size)
{
    snprintf(errmsg, size, "the process is over");
    int rc = prepare(socket, options, errmsg, size);
    if (rc == 0)
        rc = shake_hands(socket, until_us, cancel_fd, errmsg, size);
    if (rc == ENOMEM)
        snprintf(errmsg, size, "out of memory for TLS");
    else if (rc == ECANCELED)
        snprintf(errmsg, size, "the client was closed");
    else if (rc == ETIMEDOUT)
        snprintf(errmsg, size, "what is there does not begin TLS in time: the port of TLS may be another one");
    if (socket->tls != NULL) {
        socket->distrusted = rc != 0 && socket->tls->flaw.error != 0;
        socket->tls->options = NULL;
        socket->tls->host = NULL;
    }
    return rc == ETIMEDOUT ? ENOTCONN : rc;
}

const struct lk__transport lk__secured = { tls_connect, tls_read, tls_write, tls_why, tls_close };

/* --- whom a client of TLS trusts, and who it is: by the files that its options name ------------------------------- */

/*
 * Each connection has a context of its own and reads the files anew, so a certificate that was replaced is the next
 * connection's, and no two threads share anything of OpenSSL's but OpenSSL. Files are read as all files of the library
 * are: no descriptor of theirs is 0, 1 or 2 or survives an exec, and what held a key is overwritten.
 */

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
