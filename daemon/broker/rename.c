/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/rename.h"

#include <string.h>

#define ELEMENTS RBI_PATH_CLUSTER_ELEMENTS

struct element {
    const char *at;
    size_t length;
};

/** A text taken apart. */
struct parts {
    unsigned count;
    unsigned stars;
    bool rest; /* the last element is ** */
    struct element items[ELEMENTS];
};

static bool is_star(const struct element *element, size_t stars)
{
    return element->length == stars && memcmp(element->at, "**", stars) == 0;
}

/* @return false: it has no such form */
static bool split(const char *text, size_t length, struct parts *out)
{
    const char *end = text + length;
    memset(out, 0, sizeof *out);
    while (text < end) {
        if (*text++ != '/' || out->count == ELEMENTS || out->rest) {
            return false;
        }
        const char *next = memchr(text, '/', (size_t)(end - text));
        struct element *element = &out->items[out->count++];
        *element = (struct element){.at = text, .length = (size_t)((next ? next : end) - text)};
        out->rest = is_star(element, 2);
        out->stars += is_star(element, 1);
        text += element->length;
    }
    return out->rest || out->count == ELEMENTS;
}

static bool is_plain_element(const struct element *element)
{
    char path[RBI_PATH_ELEMENT_MAX + 2] = "/";
    struct rbi_path_info info;
    if (element->length == 0 || element->length > RBI_PATH_ELEMENT_MAX) {
        return false;
    }
    memcpy(path + 1, element->at, element->length);
    return rbi_path_parse(path, element->length + 1, &info) == 0;
}

bool rbi_rename_valid(const char *pattern)
{
    struct parts parts;
    if (!split(pattern, strlen(pattern), &parts)) {
        return false;
    }
    for (unsigned i = 0; i < parts.count; i++) {
        const struct element *element = &parts.items[i];
        if (!is_star(element, 1) && !is_star(element, 2) && !is_plain_element(element)) {
            return false;
        }
    }
    return true;
}

bool rbi_rename_fits(const char *match, const char *as)
{
    struct parts from;
    struct parts to;
    return rbi_rename_valid(match) && rbi_rename_valid(as) && split(match, strlen(match), &from) &&
           split(as, strlen(as), &to) && from.stars == to.stars && from.rest == to.rest &&
           (!from.rest || from.count == to.count);
}

/* @param taken  NULL, or set to what the stars stand for, in order */
static bool matches(const struct parts *pattern, const struct parts *cluster, struct element *taken)
{
    unsigned stars = 0;
    for (unsigned i = 0; i < ELEMENTS; i++) {
        const bool rest = pattern->rest && i >= pattern->count - 1;
        const struct element *element = &cluster->items[i];
        if (!rest && !is_star(&pattern->items[i], 1) &&
            (pattern->items[i].length != element->length ||
             memcmp(pattern->items[i].at, element->at, element->length) != 0)) {
            return false;
        }
        if (taken != NULL && (rest || is_star(&pattern->items[i], 1))) {
            taken[stars++] = *element;
        }
    }
    return true;
}

static bool split_cluster(const char *cluster, size_t length, struct parts *out)
{
    return split(cluster, length, out) && out->count == ELEMENTS && !out->rest;
}

bool rbi_rename_matches(const char *pattern, const char *cluster, size_t length)
{
    struct parts from;
    struct parts parts;
    return split(pattern, strlen(pattern), &from) && split_cluster(cluster, length, &parts) &&
           matches(&from, &parts, NULL);
}

int rbi_rename(const char *match,
               const char *as,
               const char *cluster,
               size_t length,
               char out[RBI_PATH_MAX + 1])
{
    struct parts from;
    struct parts to;
    struct parts parts;
    struct element taken[ELEMENTS];
    unsigned stars = 0;
    size_t used = 0;
    if (!split(match, strlen(match), &from) || !split(as, strlen(as), &to) ||
        !split_cluster(cluster, length, &parts) || !matches(&from, &parts, taken)) {
        return 1;
    }
    for (unsigned i = 0; i < ELEMENTS; i++) {
        const bool rest = to.rest && i >= to.count - 1;
        const struct element *element =
            rest || is_star(&to.items[i], 1) ? &taken[stars++] : &to.items[i];
        if (used + 1 + element->length > RBI_PATH_MAX) {
            return 1;
        }
        out[used++] = '/';
        memcpy(out + used, element->at, element->length);
        used += element->length;
    }
    out[used] = '\0';
    return 0;
}

bool rbi_rename_meet(const char *a, const char *b)
{
    struct parts x;
    struct parts y;
    if (!split(a, strlen(a), &x) || !split(b, strlen(b), &y)) {
        return false;
    }
    for (unsigned i = 0; i < ELEMENTS; i++) {
        const bool any = (x.rest && i >= x.count - 1) || (y.rest && i >= y.count - 1) ||
                         is_star(&x.items[i], 1) || is_star(&y.items[i], 1);
        if (!any && (x.items[i].length != y.items[i].length ||
                     memcmp(x.items[i].at, y.items[i].at, x.items[i].length) != 0)) {
            return false;
        }
    }
    return true;
}

size_t rbi_rename_prefix(const char *pattern)
{
    const char *star = strchr(pattern, '*');
    const size_t length = star != NULL ? (size_t)(star - pattern) : strlen(pattern);
    return star != NULL && length > 0 ? length - 1 : length;
}

bool rbi_rename_is_plain(const char *pattern)
{
    return strchr(pattern, '*') == NULL;
}
