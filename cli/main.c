/* SPDX-License-Identifier: MIT */
/*
 * main.c - `latchkey`: finds the command, reads its options, finds the server, runs the command
 */
#include "client.h"
#include "command.h"
#include "words.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where 0, 1 or 2 were closed, nothing else may get these numbers; a child finds them closed as they were. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* "latchkey latch" alone, or a word that is no command. */
static int no_command(const char *word)
{
    bool found = false;
    for (const struct command *command = commands; command->name != NULL; command++)
        if (strncmp(command->name, word, strlen(word)) == 0 && command->name[strlen(word)] == ' ') {
            fprintf(stderr, "Usage: latchkey %s [OPTION...] %s\n", command->name, command->arguments);
            found = true;
        }
    if (!found)
        complain("'%s' is no command; 'latchkey --help' lists them", word);
    return EXIT_USE;
}

int main(int argc, char **argv)
{
    struct settings settings = { 0 };
    fill_standard_descriptors();
    if (argc < 2) {
        complain("a command is missing; 'latchkey --help' lists them");
        return EXIT_USE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    const char *first = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    settings.command = command_of(first, argc > 2 ? argv[2] : NULL);
    if (settings.command == NULL)
        return no_command(first);

    int words = strchr(settings.command->name, ' ') != NULL ? 2 : 1;
    int operand = read_options(&settings, argc - words, argv + words);
    if (operand < 0)
        return EXIT_USE;
    if (settings.given >> OPT_HELP & 1)
        return print_command_help(settings.command);
    int code = settings.command->options >> OPT_URL & 1 ? find_server(&settings) : EXIT_OK;
    if (code != EXIT_OK)
        return code;
    return settings.command->run(&settings, argc - words - operand, argv + words + operand);
}
