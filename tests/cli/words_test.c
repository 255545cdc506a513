/* SPDX-License-Identifier: MIT */
/*
 * words_test.c - --help, the manual and the completion of shells name the same commands and options
 *
 * seconds: 3
 */
#include "command.h"

#include <stdio.h>
#include <string.h>

/* The commands, as --help lists them, into the file commands; a blank in a name becomes an underscore. */
static void list_commands(struct world *w)
{
    assert_exits(0, w, "latchkey --help | sed -n '/^Commands:/,/^$/s/^  \\([a-z-]*\\( [a-z-]\\+\\)\\?\\)  .*/\\1/p' "
                       "| tr ' ' _ >commands && "
                       "[ $(wc -l <commands) -ge 12 ]");
}

/* What a terminal of 80 columns shows fits it, and says the same words. */
static void help_fits_the_terminal(struct world *w)
{
    if (command(w, "command -v script")->code != 0)
        return;
    list_commands(w);
    assert_exits(0, w, "export TERM=xterm; echo 'for c in $(cat commands) _; do latchkey $(echo $c | tr _ \" \") --help; done' >line; "
                       ON_TERMINAL("stty cols 80; bash line", "shown") "; tr -d '\\r' <shown | sed '/the-end/d' >lines; "
                       "! awk 'length > 80' lines | grep . || exit 1; "
                       "bash line | tr -s ' \\n' '\\n' >words; tr -s ' \\n' '\\n' <lines | cmp - words || exit 2; "
                       "[ $(grep -c '^Usage: latchkey ' lines) -gt $(wc -l <commands) ]");
}

static void each_command_has_help(struct world *w)
{
    list_commands(w);
    assert_exits(0, w, "for c in $(cat commands); do c=$(echo $c | tr _ ' '); latchkey $c --help >help && "
                       "grep -q \"^Usage: latchkey $c \\[OPTION...\\]\" help && latchkey $c -h | cmp - help && grep "
                       "-q -- --help help || "
                       "{ echo $c; exit 1; }; done");
    assert_exits(0, w, "latchkey -h >help && latchkey --help | cmp - help");
}

/* The synopsis of each command is that of its --help; the manual explains each option, and no other. */
static void the_manual_says_what_help_says(struct world *w)
{
    list_commands(w);
    assert_exits(0, w, "sed 's/\\\\f[BIRP]//g; s/\\\\-/-/g; s/\\\\ / /g' %s/cli/latchkey.1 >man && "
                       "for c in $(cat commands); do c=$(echo $c | tr _ ' '); "
                       "latchkey $c --help | sed -n '1s/Usage: //p' >usage; grep -qxFf usage man || { cat usage; "
                       "exit 1; }; done && "
                       "[ $(grep -c '^latchkey [a-z-]* .*OPTION' man) = $(wc -l <commands) ]", LK_SOURCE_DIR);
    assert_exits(0, w, "for c in $(cat commands); do latchkey $(echo $c | tr _ ' ') --help; done | "
                       "sed -n '/^ /p' | grep -oE -- '^ +(-.,)? *--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u "
                       ">helped && "
                       "sed -n '/^.SH OPTIONS/,/^.SH \"EXIT/p' man | grep -A1 '^.TP' | grep -oE -- '--[a-z-]+' | "
                       "sort -u >explained && "
                       "diff helped explained");
    assert_exits(0, w, "sed -n '/^.SH OPTIONS/,/^.SH \"EXIT/p' man | grep -A1 '^.TP' | grep -oE -- ' -[a-zA-Z] "
                       "|^.B[IR]* -[a-zA-Z] ' | "
                       "grep -oE -- '-[a-zA-Z]' | sort -u >letters; for c in $(cat commands); do latchkey $(echo $c "
                       "| tr _ ' ') --help; done | "
                       "grep -oE -- '^  -[a-zA-Z],' | grep -oE -- '-[a-zA-Z]' | sort -u | diff letters -");
}

/* What bash offers behind these words. */
static const char offers[] =
    "offers() { COMP_WORDS=(latchkey \"$@\" ''); COMP_CWORD=$(($# + 1)); COMPREPLY=(); _latchkey; printf '%s\\n' "
    "\"${COMPREPLY[@]}\"; }";

static void shells_offer_all_commands_and_options(struct world *w)
{
    list_commands(w);
    assert_exits(0, w, "cat >script <<'END'\n. <(latchkey completion bash) || exit 1\n%s\n"
                       "offers | grep -v ^- | sort >offered; sed 's/_.*//' commands | sort -u | diff - offered || "
                       "exit 1\n"
                       "for c in $(cat commands); do c=${c/_/ }\n"
                       "latchkey $c --help | sed -n '/^ /p' | grep -oE -- '^ +(-.,)? *--[a-z-]+' | grep -oE -- "
                       "'--[a-z-]+' | sort >a\n"
                       "offers $c | grep -- ^-- | sort | diff a - || { echo $c; exit 1; }; done\n"
                       "[ \"$(echo $(offers latch))\" = 'create count-down wait status' ] || exit 2\n"
                       "[ \"$(echo $(offers completion))\" = '-h --help bash zsh fish' ] || exit 3\n"
                       "offers run a -- | grep -qx true || exit 4\nEND\nbash script", offers);
    assert_exits(0, w, "latchkey completion zsh | tail -n +2 >z && latchkey completion bash | cmp - z");
    assert_exits(0, w, "latchkey completion fish >f && for c in $(cat commands); do for o in $(latchkey $(echo $c | "
                       "tr _ ' ') --help | "
                       "grep -oE -- '^  (    |-., )--[a-z-]+[= ]' | grep -oE -- '--[a-z-]+' | cut -c3- | grep -vx "
                       "-e ttl -e wait); do "
                       "grep -q -- \"from $(echo ${c%%%%_*})[^']*' -l $o\\b\" f || { echo $c $o; exit 1; }; done; "
                       "done");
    /* no variable is put in, as that of a URL has a password */
    assert_exits(0, w, "grep -q 'else .$LATCHKEY_URL, .$REDIS_URL' f && ! sed 's/\\\\.//g' f | grep '\\$'");
}

int main(void)
{
    return world_run(each_command_has_help, help_fits_the_terminal, the_manual_says_what_help_says, shells_offer_all_commands_and_options);
}
