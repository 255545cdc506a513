/* SPDX-License-Identifier: MIT */
/*
 * latchkey.h - pthreads for a fleet: all of Latchkey's public headers
 *
 * Promise   While a hold's remaining time is above zero, no other client is
 *           granted a conflicting hold, provided clock rates differ by less
 *           than 1 %, the server's clock does not jump and the server loses
 *           no acknowledged write. (A failover to a server whose clock differs
 *           is a jump: up to clock_skew it is covered.) Tokens of one name
 *           strictly increase, also across restart and failover, unless the
 *           clock of a server that lost the last one, or never had it, is behind
 *           by more than the time between the two grants: clock_skew is no cover.
 * Not       promised: exclusivity after lost writes, or while a virtual machine
 *           is paused with its clocks stopped; nor that a suspended holder
 *           stops in time. A resource that compares fencing tokens is safe in
 *           these cases too, one that ignores them is not. Nor anything between
 *           two copies of one process, from a snapshot of its machine or a saved
 *           image of it: they have one identity.
 *
 * Replicas  With the option wait_replicas=n a grant or a renewal counts when n
 *           replicas acknowledged it, and takes a round trip more: what is held
 *           then outlives a failover to one of them.
 *
 * Codes     Functions return 0 or a positive errno value and leave errno alone.
 *           lk_errortext() has the words of the calling thread's last failure.
 *
 *   EBUSY ETIMEDOUT   a try failed; not within the time. Both: confirmed not held
 *   EPERM             the caller never held it, or gave it back
 *   ESTALE            the caller held it, but the lease was lost: the answer to
 *                     every call of that owner until each unlock was made.
 *                     Of a latch: the count that was waited for is lost
 *   EALREADY          what is to be done once is done
 *   EDEADLK           would deadlock
 *   EAGAIN            a limit of recursion or of readers was reached; no permit to try for
 *   EOVERFLOW         a number would be above its maximum
 *   EOWNERDEAD        held now; its previous holder died holding it
 *   ENOTRECOVERABLE   a robust object was given back unrepaired
 *   ENOTCONN          no server would serve it, nothing was done. With wait_replicas
 *                     also: it was granted, too few replicas acknowledged that, and
 *                     it was given back; a wait that has time left ends so, too
 *   EIO               sent, and the outcome is unknown
 *   EPROTO            unreadable answer, or the key is of another type
 *   EACCES            credentials or access rules refuse it
 *   ENOSPC            the server is out of memory
 *   ENOTSUP           this server or this build cannot
 *   ENOENT EEXIST     no such latch; a latch or a semaphore that has a count already
 *   ECANCELED         the client was closed, or belongs to a process forked from;
 *                     the latch was deleted
 *   EINVAL            a visible mistake of the caller
 *   ENOMEM            local allocation failed
 */
#ifndef LATCHKEY_LATCHKEY_H
#define LATCHKEY_LATCHKEY_H

#include <latchkey/version.h>
#include <latchkey/api.h>
#include <latchkey/client.h>
#include <latchkey/owner.h>
#include <latchkey/mutex.h>
#include <latchkey/rwlock.h>
#include <latchkey/latch.h>
#include <latchkey/barrier.h>
#include <latchkey/once.h>
#include <latchkey/semaphore.h>
#include <latchkey/stripes.h>
#include <latchkey/cond.h>
#include <latchkey/multi.h>
#include <latchkey/redlock.h>
#include <latchkey/inspect.h>
#include <latchkey/survey.h>

#endif
