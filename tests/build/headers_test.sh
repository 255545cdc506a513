#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Public headers, what their macros make, and the example in the comment of a type, which each has that can be initialised
# statically, compile in each language without a warning; those that are meant come.
#   headers_test.sh <include folder> <C compiler> <C++ compiler>
set -euo pipefail
include=$1 cc=$2 cxx=$3
strict=(-Wno-unknown-warning-option -Wall -Wextra -Wpedantic -Wconversion -Werror)
plus=(-Wold-style-cast -Wuseless-cast -Wzero-as-null-pointer-constant)
c=(c11 c2x) cpp=(c++11 c++17 c++20)

# The lines between "For example:" and the end of that comment.
example_of() {
    awk '/^ \*\// { inside = 0 } inside { sub(/^ \*/, ""); sub(/^     /, ""); print } /^ \* .*For example:$/ { inside = 1 }' "$1"
}

failed=0 count=0 examples=0
# compile <standard>: what stdin has, as far as warnings go
compile() {
    case $1 in
        c++*) "$cxx" -std="$1" "${strict[@]}" "${plus[@]}" -I "$include" -S -o /dev/null -x c++ - ;;
        *) "$cc" -std="$1" "${strict[@]}" -I "$include" -S -o /dev/null -x c - ;;
    esac
}

for path in "$include"/latchkey/*.h; do
    header=latchkey/${path##*/}
    count=$((count + 1))
    # The second include proves the guard; the type is there because ISO C wants something in a file.
    program=$(printf '#include <%s>\n' "$header" "$header" && echo 'typedef int something;')
    for standard in "${c[@]}" "${cpp[@]}"; do
        compile "$standard" <<<"$program" || { echo "$header: no $standard"; failed=1; }
    done

    grep -q -e '^#define LK_[A-Z]*_INITIALIZER(' -e 'For example:$' "$path" || continue
    example=$(example_of "$path")
    [[ -n $example ]] || { echo "$header: no example"; failed=1; continue; }
    examples=$((examples + 1))
    program=$(printf '#include <%s>\n' "$header" && echo "$example")
    for standard in "${c[@]}" "${cpp[@]}"; do
        compile "$standard" <<<"$program" || { echo "$header: the example is no $standard"; failed=1; }
    done
done

# All that initialisers can be made of, and a program that does its best and looks no further.
uses='#include <latchkey/latchkey.h>
extern lk_mutex_t m[2];
extern lk_rwlock_t rw[2];
extern lk_sem_t s[2];
extern lk_latch_t l;
extern lk_once_t o;
extern lk_barrier_t b;
extern lk_redlock_t r;
int use(unsigned value);
static lk_mutexattr_t mutexattr = LK_MUTEXATTR_INIT;
static lk_rwlockattr_t rwlockattr = LK_RWLOCKATTR_INIT;
static lk_semattr_t semattr = LK_SEMATTR_INIT;
extern lk_clientattr_t clientattr;
lk_clientattr_t clientattr = LK_CLIENTATTR_INIT;
lk_mutex_t m[2] = { LK_MUTEX_INITIALIZER("a"), LK_MUTEX_INITIALIZER_ATTR("a", &mutexattr) };
lk_rwlock_t rw[2] = { LK_RWLOCK_INITIALIZER("a"), LK_RWLOCK_INITIALIZER_ATTR("a", &rwlockattr) };
lk_sem_t s[2] = { LK_SEM_INITIALIZER("a", 3), LK_SEM_INITIALIZER_ATTR("a", 3, &semattr) };
lk_latch_t l = LK_LATCH_INITIALIZER("a");
lk_once_t o = LK_ONCE_INITIALIZER("a");
lk_barrier_t b = LK_BARRIER_INITIALIZER("a", 3);
lk_redlock_t r;
int use(unsigned value)
{
    lk_sem_t some[2] = { LK_SEM_INITIALIZER("a", value), LK_SEM_INITIALIZER_ATTR("a", value, &semattr) };
    lk_latchattr_t latchattr = LK_LATCHATTR_INIT;
    lk_barrier_t barrier = LK_BARRIER_INITIALIZER("a", value);
    lk_onceattr_t onceattr = LK_ONCEATTR_INIT;
    lk_barrierattr_t barrierattr = LK_BARRIERATTR_INIT;
    lk_onceinfo_t onceinfo = LK_ONCEINFO_INIT;
    lk_barrierinfo_t barrierinfo = LK_BARRIERINFO_INIT;
    lk_redlockattr_t redlockattr = LK_REDLOCKATTR_INIT;
    lk_redlockinfo_t redlockinfo = LK_REDLOCKINFO_INIT;
    lk_inspectattr_t inspectattr = LK_INSPECTATTR_INIT;
    lk_inspected_t inspected = LK_INSPECTED_INIT;
    lk_inspectstats_t inspectstats = LK_INSPECTSTATS_INIT;
    lk_who_t who = LK_WHO_INIT;
    lk_mutexinfo_t mutexinfo = LK_MUTEXINFO_INIT;
    lk_rwlockinfo_t rwlockinfo = LK_RWLOCKINFO_INIT;
    lk_seminfo_t seminfo = LK_SEMINFO_INIT;
    lk_latchinfo_t latchinfo = LK_LATCHINFO_INIT;
    lk_event_t event = LK_EVENT_INIT;
    lk_how_t how = LK_HOW_INIT;
    (void)latchattr, (void)mutexinfo, (void)rwlockinfo, (void)seminfo, (void)latchinfo, (void)event, (void)how;
    (void)lk_redlock_unlock(&r), (void)redlockattr, (void)redlockinfo;
    (void)inspectattr, (void)inspected, (void)inspectstats, (void)who;
    (void)barrier, (void)onceattr, (void)barrierattr, (void)onceinfo, (void)barrierinfo;
    if (lk_mutex_trylock(&m[0]) == 0)
        (void)lk_mutex_unlock(&m[0]);
    (void)lk_latch_countdown(&l);
    return lk_sem_waitfor(&some[0], LK_FOREVER) + lk_mutex_lockwith(&m[1], &how);
}'
for standard in "${c[@]}" "${cpp[@]}"; do
    compile "$standard" <<<"$uses" || { echo "no $standard"; failed=1; }
done

# warns <yes or no> <standard> <statement>
warns() {
    local said=no
    printf '%s\n' '#include <latchkey/latchkey.h>' 'void use(void);' 'extern lk_mutex_t *m;' 'extern lk_rwlock_t *rw;' \
        'extern lk_sem_t *s;' 'extern lk_multi_t *multi;' 'extern lk_redlock_t *r;' 'extern lk_once_t *o;' \
        'extern lk_cond_t *c;' 'extern lk_barrier_t *b;' 'extern lk_latch_t *l;' 'extern lk_client_t **client;' \
        'extern int (*run)(void *);' 'extern lk_mutexattr_t *attr;' "void use(void) { $3 }" |
        compile "$2" 2>/dev/null || said=yes
    [[ $said == "$1" ]] || { echo "$2: $3: a warning? $said, not $1"; failed=1; }
}

# A call that acquires or waits: a program that ignores a failure goes on without the lock.
acquires='lk_mutex_lock(m) lk_mutex_trylock(m) lk_mutex_lockfor(m,1) lk_rwlock_rdlock(rw) lk_rwlock_trywrlock(rw) lk_sem_wait(s)
    lk_sem_acquire(s,2,1) lk_multi_lock(multi) lk_redlock_lock(r) lk_once_call(o,run,m) lk_cond_wait(c,m) lk_barrier_wait(b)
    lk_latch_wait(l) lk_mutex_init(m,client[0],"a",attr) lk_client_open(client,"")'
for standard in c11 c++11 c2x c++17 c++20; do
    for call in $acquires; do
        warns yes "$standard" "$call;"
        warns no "$standard" "if ($call != 0) {}"
    done
done
for standard in c2x c++17 c++20; do
    warns yes "$standard" 'lk_latch_countdown(l);'
    warns no "$standard" '(void)lk_mutex_trylock(m);'
done
for standard in c11 c++11; do
    warns no "$standard" 'lk_latch_countdown(l);'
done

# Every function with such a name needs the mark, also in headers that are yet to come.
unmarked=$(grep -hE '^LK_API .*\blk_[a-z]+_([a-z]*lock(for|with|any|anyby)?|[a-z]*wait(for)?|[a-z]*acquire(with|id|idwith)?|[a-z]*begin(with)?)\(' \
    "$include"/latchkey/*.h | grep -vE 'unlock|LK_MUST_CHECK') || true
[[ -z $unmarked ]] || { echo "$unmarked"; echo 'these acquire or wait, and are not LK_MUST_CHECK'; failed=1; }

echo "$count headers, $examples examples"
exit $((failed || count == 0 || examples == 0))
