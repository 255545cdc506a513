/* SPDX-License-Identifier: MIT */
/*
 * survey.h - what the servers of a client say of themselves: for tools that look whether they are fit for locks, as
 * `latchkey doctor` does
 */
#ifndef LATCHKEY_SURVEY_H
#define LATCHKEY_SURVEY_H

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Open a client, ask each server that grants its locks for INFO, a few settings (CONFIG GET) and the time, and close it.
 * Nothing is written there.
 *
 *   attr      as of lk_client_openwith(): where the servers are, and who the client is
 *   json      receives the answers as a JSON text, on success only: docs/command.md has the fields. A server that did not
 *             answer is in it with the words why; what access rules keep from this user is null
 *
 * Returns     0          one server answered at least; of a quorum a majority
 *             EINVAL     json is NULL, and as lk_client_openwith(), whose other codes come likewise
 * Threads     any; takes the time to connect twice at most
 * Round trips 1 to connect, 1 pipeline of probes and questions, to each server at the same time
 * Frees       lk_free(*json)
 */
LK_API LK_SHOULD_CHECK int lk_survey(const lk_clientattr_t *attr, char **json);

#ifdef __cplusplus
}
#endif

#endif
