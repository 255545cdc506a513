/* SPDX-License-Identifier: MIT */
/*
 * replay_main.c - runs a target on files, or on all files of folders: for builds without libFuzzer
 *
 * The last line of output, when it fails, names the input that did it.
 */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static int replayed;

static uint8_t *read_whole(const char *path, size_t *size)
{
    struct stat about;
    FILE *file = fopen(path, "rb");
    require(file != NULL && fstat(fileno(file), &about) == 0);
    *size = (size_t)about.st_size;
    uint8_t *bytes = malloc(*size > 0 ? *size : 1); /* exactly as long as it is, for AddressSanitizer */
    require(bytes != NULL && fread(bytes, 1, *size, file) == *size);
    fclose(file);
    return bytes;
}

static void replay(const char *path)
{
    size_t size;
    uint8_t *bytes = read_whole(path, &size);
    printf("%s\n", path);
    fflush(stdout);
    require(LLVMFuzzerTestOneInput(bytes, size) == 0);
    free(bytes);
    replayed++;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort);
    require(count >= 0);
    for (int i = 0; i < count; i++) {
        char path[4096];
        require(snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path);
        replay(path);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        struct stat about;
        require(stat(argv[i], &about) == 0);
        if (S_ISDIR(about.st_mode))
            replay_folder(argv[i]);
        else
            replay(argv[i]);
    }
    printf("%d inputs\n", replayed);
    return replayed > 0 ? 0 : 1;
}
