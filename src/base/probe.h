/* SPDX-License-Identifier: MIT */
/*
 * probe.h - static tracepoints (USDT), for bpftrace, SystemTap and perf; docs/statistics.md lists them
 *
 * Each is one nop in the code, and a note in the library that says where, made by <sys/sdt.h> where the build finds that;
 * else nothing. Arguments are at hand there: none is computed for a tracepoint alone.
 */
#ifndef LK__BASE_PROBE_H
#define LK__BASE_PROBE_H

#ifdef __has_include
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define LK__PROBES 1
#endif
#endif

#ifdef LK__PROBES
#define LK__PROBE2(name, a, b) DTRACE_PROBE2(latchkey, name, a, b)
#define LK__PROBE3(name, a, b, c) DTRACE_PROBE3(latchkey, name, a, b, c)
#define LK__PROBE4(name, a, b, c, d) DTRACE_PROBE4(latchkey, name, a, b, c, d)
#else
#define LK__PROBES 0
#define LK__PROBE2(name, a, b) ((void)(a), (void)(b))
#define LK__PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define LK__PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

#endif
