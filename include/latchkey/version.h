/* SPDX-License-Identifier: MIT */
/*
 * version.h - the one place where the version lives
 *
 * The build reads these three numbers; a program may compare them with
 * lk_version(), which tells what it runs with.
 */
#ifndef LATCHKEY_VERSION_H
#define LATCHKEY_VERSION_H

#define LK_VERSION_MAJOR 0
#define LK_VERSION_MINOR 1
#define LK_VERSION_PATCH 0

#endif
