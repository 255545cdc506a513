/* SPDX-License-Identifier: MIT */
/*
 * certificates.h - certificates for servers and clients of a test, and those who sign them
 */
#ifndef TESTS_CERTIFICATES_H
#define TESTS_CERTIFICATES_H

#include <stdbool.h>

/* Signed by another one that was made before in the same folder, or by itself. */
struct certificate {
    const char *name;     /* of its files: NAME.pem and NAME.key */
    const char *signer;   /* name of that one; NULL: itself, and it may sign others */
    const char *names;    /* whom it is for: "DNS:localhost,IP:127.0.0.1"; NULL: only its subject, which is NAME */
    int begins_s, ends_s; /* of its validity, from now on; both 0: an hour around now */
};

void certificate_make(const char *folder, const struct certificate *certificate);

/* Those of a usual world: "ca" has signed "server", which is for localhost, and "client". "stranger" is trusted by nobody. */
void certificates_make(const char *folder);

#endif
