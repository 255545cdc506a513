/* SPDX-License-Identifier: MIT */
/*
 * completion.c - `latchkey completion`: what shells offer, made from the tables
 */
#include "command.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

/* All words that may follow `before`, the first word of a command or "": each once. */
static void print_words(const char *before)
{
    const char *last = "";
    size_t length = strlen(before);
    for (const struct command *command = commands; command->name != NULL; command++) {
        const char *word = command->name;
        if (strncmp(word, before, length) != 0)
            continue;
        word += length;
        size_t size = strcspn(word, " ");
        if (strncmp(word, last, size) != 0 || last[size] != (word[size] != 0 ? ' ' : 0))
            printf(" %.*s", (int)size, word);
        last = word;
    }
}

static void print_options(const struct command *command)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!(command->options >> i & 1))
            continue;
        if (options[i].letter != 0)
            printf(" -%c", options[i].letter);
        printf(" --%s", options[i].name);
        if (options[i].synonym != NULL)
            printf(" --%s", options[i].synonym);
    }
}

/* After the command's own words: its options; a path for --config. What is run by `run` completes as itself. */
static void print_bash(void)
{
    puts("_latchkey() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i words=''\n"
         "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "        [[ ${COMP_WORDS[1]} != run || ${COMP_WORDS[i]} != -- ]] || {\n"
         "            COMPREPLY=($(compgen -c -- \"$word\")); return; }\n"
         "    done\n"
         "    [[ $before != --config ]] || { COMPREPLY=($(compgen -f -- \"$word\")); return; }\n"
         "    if ((COMP_CWORD == 1)); then");
    printf("        words='");
    print_words("");
    puts(" --help'\n    else case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in");
    for (const struct command *command = commands; command->name != NULL; command++) {
        bool pair = strchr(command->name, ' ') != NULL;
        printf("        \"%s%s) words='", command->name, pair ? "\"" : " \"*");
        print_options(command);
        puts(strcmp(command->name, "completion") == 0 ? " bash zsh fish' ;;" : "' ;;");
    }
    for (const char *const *first = (const char *const[]){ "sem ", "latch ", NULL }; *first != NULL; first++) {
        printf("        \"%s\"*) words='", *first);
        print_words(*first);
        puts("' ;;");
    }
    puts("    esac; fi\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -F _latchkey latchkey");
}

/* A text in the quotes of fish, which would put the value of a variable in: that of a URL has a password. */
static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text != 0; text++)
        printf(strchr("\"$\\", *text) != NULL ? "\\%c" : "%c", *text);
    putchar('"');
}

static void print_fish_options(const struct command *command, const char *condition)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!(command->options >> i & 1))
            continue;
        printf("complete -c latchkey -f -n '%s' -l %s", condition, options[i].name);
        if (options[i].letter != 0)
            printf(" -s %c", options[i].letter);
        printf("%s -d ", options[i].argument != NULL ? " -r" : "");
        print_quoted(options[i].help);
        putchar('\n');
    }
}

static void print_fish(void)
{
    char condition[160];
    printf("complete -c latchkey -f -n __fish_use_subcommand -a '");
    print_words("");
    puts("'");
    for (const char *const *first = (const char *const[]){ "sem ", "latch ", NULL }; *first != NULL; first++) {
        printf("complete -c latchkey -f -n '__fish_seen_subcommand_from %s' -a '", *first);
        print_words(*first);
        puts("'");
    }
    puts("complete -c latchkey -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'");
    for (const struct command *command = commands; command->name != NULL; command++) {
        const char *second = strchr(command->name, ' ');
        int length = second != NULL ? (int)(second - command->name) : (int)strlen(command->name);
        snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %.*s%s%s", length, command->name,
                 second != NULL ? "; and __fish_seen_subcommand_from" : "", second != NULL ? second : "");
        print_fish_options(command, condition);
    }
}

int run_completion(struct settings *s, int count, char **operands)
{
    (void)s, (void)count;
    if (strcmp(operands[0], "bash") == 0) {
        print_bash();
    } else if (strcmp(operands[0], "zsh") == 0) {
        puts("autoload -Uz bashcompinit && bashcompinit");
        print_bash();
    } else if (strcmp(operands[0], "fish") == 0) {
        print_fish();
    } else {
        complain("completion: '%s' is none of bash, zsh and fish", operands[0]);
        return EXIT_USE;
    }
    return flush_output();
}
