/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_EXAMPLES_FILES_H
#define RINGBUS_EXAMPLES_FILES_H
/*
 * files.h - the demo's input: every regular file below a directory. Contents stay in
 * memory up to a budget; files beyond it are read again each time.
 */
#include <stddef.h>
#include <stdint.h>

struct file {
    char *path;          /* owned */
    unsigned char *data; /* owned; NULL: not kept */
    size_t size;
    uint64_t key; /* of its name */
    unsigned char hash[16];
    unsigned char answered; /* at least once, rightly */
    unsigned char pending;  /* asked for now */
};

struct files {
    struct file *items;
    size_t count;
    size_t room;
    size_t skipped; /* too large or not readable: said on standard error */
    uint64_t bytes; /* of all together */
    size_t largest;
    unsigned char *scratch; /* content of the file that was read last and is not kept */
};

/** Reads the names and contents. @return 0, or -1 after a message on standard error */
int files_load(struct files *files, const char *directory);
/**
 * Content of a file; hash and size belong to it.
 * @return NULL when it can be read no more; else valid until the next call
 */
const unsigned char *files_content(struct files *files, struct file *file);
void files_free(struct files *files);

#endif
