/* SPDX-License-Identifier: MIT */
/*
 * fuzz.c - see fuzz.h
 */
#include "fuzz.h"

#include <latchkey/latchkey.h>

static void say_nothing(void *arg, int level, const char *line)
{
    (void)level, (void)arg;
    require(is_one_line(line));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    require(lk_addlog(say_nothing, LK_LOG_DEBUG, NULL, NULL) == 0);
    return 0;
}

uint8_t take_byte(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

uint64_t take_number(struct input *input, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)take_byte(input) << 8 * i;
    return number;
}

char *text_of(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);
    require(text != NULL);
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool is_one_line(const char *errmsg)
{
    for (; *errmsg != '\0'; errmsg++)
        if ((unsigned char)*errmsg < ' ' || *errmsg == 0x7f)
            return false;
    return true;
}
