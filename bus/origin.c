/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/origin.h"

#include "bus/record_inline.h"

#include <errno.h>
#include <string.h>

#define WORD       8U
#define HOPS_SHIFT 8U
#define PATH_SHIFT 16U
#define FIXED      3U

static unsigned path_words(size_t length)
{
    return (unsigned)((length + WORD - 1) / WORD);
}

unsigned rbi_origin_words(const struct rbi_origin *origin)
{
    return FIXED + origin->hops + path_words(strnlen(origin->path, RBI_PATH_MAX));
}

void rbi_origin_encode(const struct rbi_origin *origin, unsigned char *at)
{
    const size_t length = strnlen(origin->path, RBI_PATH_MAX);
    const uint64_t head = rbi_origin_words(origin) | (uint64_t)origin->hops << HOPS_SHIFT |
                          (uint64_t)length << PATH_SHIFT;
    memcpy(at, &head, sizeof head);
    memcpy(at + WORD, &origin->pidf, sizeof origin->pidf);
    at += (size_t)FIXED * WORD;
    memcpy(at, origin->via, origin->hops * sizeof origin->via[0]);
    at += origin->hops * sizeof origin->via[0];
    memset(at, 0, (size_t)path_words(length) * WORD);
    memcpy(at, origin->path, length);
}

static void take(const unsigned char **at, void *to, unsigned words)
{
    unsigned char *out = to;
    for (unsigned i = 0; i < words; i++) {
        const uint64_t word = rbi_record_word(*at);
        memcpy(out + (size_t)i * WORD, &word, sizeof word);
        *at += WORD;
    }
}

int rbi_origin_decode(const unsigned char *at, unsigned words, struct rbi_origin *out)
{
    struct rbi_origin got;
    struct rbi_path_info info;
    struct rbi_pidf named;
    char path[RBI_PATH_MAX + 1 + WORD];
    memset(&got, 0, sizeof got);
    if (words < FIXED) {
        return -EPROTO;
    }
    const uint64_t head = rbi_record_word(at);
    const unsigned total = head & 0xffU;
    const size_t length = head >> PATH_SHIFT & 0xffU;
    got.hops = head >> HOPS_SHIFT & 0xffU;
    if (got.hops == 0 || got.hops > RBI_HOPS_MAX || length == 0 || total > words ||
        FIXED + got.hops + path_words(length) > total) {
        return -EPROTO;
    }
    at += WORD;
    take(&at, &got.pidf, 2);
    take(&at, got.via, got.hops);
    take(&at, path, path_words(length));
    /* One is not of the other: whoever wrote it made it up. */
    if (rbi_pidf_parse(path, length, &named, &info) != 0 ||
        info.elements != RBI_PATH_INSTANCE_ELEMENTS || named.cluster != got.pidf.cluster ||
        named.instance != got.pidf.instance) {
        return -EPROTO;
    }
    memcpy(got.path, path, length);
    *out = got;
    return 0;
}

int rbi_origin_pass(struct rbi_origin *origin, uint64_t broker)
{
    for (unsigned i = 0; i < origin->hops; i++) {
        if (origin->via[i] == broker) {
            return 1;
        }
    }
    if (origin->hops == RBI_HOPS_MAX) {
        return 2;
    }
    origin->via[origin->hops++] = broker;
    return 0;
}
