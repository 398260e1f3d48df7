/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libFuzzer: feeds each file named, or found in a directory named, to the target. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define INPUT_MAX (1U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replay_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    uint8_t *data = malloc(INPUT_MAX);
    if (data == NULL) {
        exit(1);
    }
    const size_t size = fread(data, 1, INPUT_MAX, file);
    (void)fclose(file);
    /* Exactly as large as the input, so that a sanitizer sees every byte too far. */
    uint8_t *exact = realloc(data, size > 0 ? size : 1);
    if (exact == NULL) {
        exit(1);
    }
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static unsigned replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return replay_file(path);
    }
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, NULL, alphasort);
    unsigned replayed = 0;
    for (int i = 0; i < count; i++) {
        char name[4096];
        const int len = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && len > 0 && (size_t)len < sizeof name) {
            replayed += replay_file(name);
        }
        free(entries[i]);
    }
    free(entries);
    return replayed;
}

int main(int argc, char **argv)
{
    unsigned replayed = 0;
    for (int i = 1; i < argc; i++) {
        replayed += replay(argv[i]);
    }
    (void)printf("replayed %u inputs\n", replayed);
    return replayed > 0 ? 0 : 1;
}
