/* SPDX-License-Identifier: MIT */
/* A C program of a user: exits 0 if the library has the version that is its argument. */
#include <latchkey/latchkey.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    printf("C: %s\n", lk_version());
    return argc == 2 && strcmp(lk_version(), argv[1]) == 0 ? 0 : 1;
}
