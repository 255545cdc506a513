/* SPDX-License-Identifier: MIT */
/*
 * servers.h - a master with two replicas, and three Sentinels, for the sample alone
 *
 * All are redis-server processes of this program, on ports of 127.0.0.1 that are free, and end with it.
 */
#ifndef SAMPLES_FAILOVER_SERVERS_H
#define SAMPLES_FAILOVER_SERVERS_H

/* Returns when all of them know each other; ends the program where that fails, with 77 if there is no redis-server. */
void servers_start(void);
void servers_end(void);

/* "redis-sentinel://127.0.0.1:...,.../samples?lease=2s"; good as long as the program. */
const char *servers_url(void);

/* From now on replicas hear nothing of the master: what it grants is known to it alone. Then it is killed. */
void servers_cutreplicas(void);
void servers_killmaster(void);

#endif
