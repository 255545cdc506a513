/* SPDX-License-Identifier: MIT */
/*
 * help.c - --help, made from the tables
 */
#include "command.h"
#include "terminal.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INDENT = 33, WIDE = 120 };

static int output_error; /* of the first attempt that failed: others may change errno before it is told */

void show_output(void)
{
    if (fflush(stdout) != 0 && output_error == 0)
        output_error = errno;
}

int flush_output(void)
{
    show_output();
    if (!ferror(stdout))
        return EXIT_OK;
    complain("standard output: %s", output_error != 0 ? strerror(output_error) : "not all of it could be written");
    return EXIT_OUTPUT;
}

/* As wide as the terminal; what is piped stays as it is. */
static int width(void)
{
    return isatty(STDOUT_FILENO) ? terminal_width() : WIDE;
}

/* With an empty line behind it. A list, which has wide gaps, stays as it is. */
static void print_paragraph(const char *text)
{
    if (width() >= WIDE || strstr(text, "  ") != NULL)
        fputs(text, stdout);
    else
        print_wrapped(0, width(), text);
    putchar('\n');
}

int print_help(void)
{
    puts("Usage: latchkey COMMAND [OPTION...] [OPERAND...]\n");
    print_paragraph("Locks that processes on different machines share, kept in Redis or Valkey. While the remaining\n"
                    "time of a hold is above zero nobody else is granted the same name. A holder that is suspended\n"
                    "can outlive its lease: its fencing token lets the resource refuse it.\n");
    puts("Commands:");
    for (const struct command *command = commands; command->name != NULL; command++)
        printf("  %-17s %s\n", command->name, command->summary);
    puts("\n'latchkey COMMAND --help' tells the options of a command; latchkey(1) tells all.");
    return flush_output();
}

static void print_option(const struct option_words *option)
{
    char names[64], letter[8] = "    ";
    if (option->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(names, sizeof names, "%s--%s%s%s", letter, option->name, option->argument != NULL ? "=" : "",
             option->argument != NULL ? option->argument : "");
    printf("  %-30s ", names);
    print_wrapped(INDENT, width(), option->help);
    if (option->synonym != NULL)
        printf("      --%-24s the same\n", option->synonym);
}

int print_command_help(const struct command *command)
{
    printf("Usage: latchkey %s [OPTION...]%s%s\n\n", command->name, command->arguments[0] != 0 ? " " : "",
           command->arguments);
    if (command->about[0] != 0)
        print_paragraph(command->about);
    puts("Options:");
    for (int i = 0; i < OPT_COUNT; i++)
        if (command->options >> i & 1)
            print_option(&options[i]);
    return flush_output();
}
