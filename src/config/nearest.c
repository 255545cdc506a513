/* SPDX-License-Identifier: MIT */
/* nearest.c - what the writer of an unknown name probably meant */
#include "config/builder.h"

#include <ctype.h>
#include <string.h>

enum { LENGTH_MAX = sizeof((struct lk__builder *)NULL)->name, FAR = 4 };

/* A known name, or the part of one that names its group; how far the unknown one is from it. */
struct candidate {
    const char *name;
    int length, far;
};

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * How many characters are missing, too many, wrong, or have changed places with their neighbours: the optimal string
 * alignment distance. Case does not count.
 */
static int distance(const char *a, int a_length, const char *b, int b_length)
{
    int rows[3][LENGTH_MAX];
    for (int j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (int i = 1; i <= a_length; i++) {
        int *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            row[j] = lesser(lesser(last[j], row[j - 1]) + 1, last[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = lesser(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

/* With one mistake in three characters a name is still itself. */
static void consider(struct candidate *nearest, const char *name, const char *known, int length)
{
    int name_length = (int)strlen(name);
    int far = distance(name, name_length, known, length);
    if (far < nearest->far && far <= lesser(name_length, length) / 3)
        *nearest = (struct candidate){ known, length, far };
}

/* What is named in another kind of source by just this name is meant, however little the two have in common. */
static struct candidate find(enum lk__source source, const char *name)
{
    struct candidate nearest = { NULL, 0, FAR };
    const enum lk__source other = source == LK__FROM_URL ? LK__FROM_JSON : LK__FROM_URL;
    const struct lk__setting *namesake = lk__setting_find(other, name, strlen(name));
    for (size_t i = 0; i < lk__settings_count; i++) {
        const struct lk__setting *setting = &lk__settings[i];
        const char *known = lk__setting_name(source, setting);
        if (known == NULL || setting->form == LK__ANYTHING) /* not supported */
            continue;
        if (setting == namesake)
            return (struct candidate){ known, (int)strlen(known), 0 };
        consider(&nearest, name, known, (int)strlen(known));
        consider(&nearest, name, known, (int)strcspn(known, "."));
    }
    return nearest;
}

int lk__builder_unknown(struct lk__builder *builder, const char *noun)
{
    struct candidate nearest = find(builder->source, builder->name);
    if (nearest.name == NULL)
        return lk__builder_fail(builder, EINVAL, builder->name, "no such %s", noun);
    return lk__builder_fail(builder, EINVAL, builder->name, "no such %s; did you mean %.*s?", noun, nearest.length,
                            nearest.name);
}
