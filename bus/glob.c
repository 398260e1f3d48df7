/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/glob.c - a pattern as a machine that is in several places at once: each byte of the text
 * moves every place that fits one further. So there is nothing to go back to, and the cost is
 * bounded by the product of the lengths.
 */
#include "bus/glob.h"

#include <string.h>

static bool path_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '/';
}

enum rbi_glob_error rbi_glob_check(const char *pattern, size_t length, unsigned *offset)
{
    unsigned ignored = 0;
    unsigned *at = offset != NULL ? offset : &ignored;
    if (length == 0) {
        *at = 0;
        return RBI_GLOB_EMPTY;
    }
    if (length > RBI_GLOB_BYTES_MAX) {
        *at = RBI_GLOB_BYTES_MAX;
        return RBI_GLOB_TOO_LONG;
    }
    unsigned stars = 0;
    for (unsigned i = 0; i < length; i++) {
        stars = pattern[i] == '*' ? stars + 1 : 0;
        if (stars > 2 || (stars == 0 && !path_byte(pattern[i]))) {
            *at = i;
            return stars > 2 ? RBI_GLOB_STARS : RBI_GLOB_BAD_BYTE;
        }
    }
    return RBI_GLOB_OK;
}

const char *rbi_glob_error_text(enum rbi_glob_error error)
{
    switch (error) {
    case RBI_GLOB_OK:
        return "no error";
    case RBI_GLOB_EMPTY:
        return "empty";
    case RBI_GLOB_TOO_LONG:
        return "longer than 255 bytes";
    case RBI_GLOB_BAD_BYTE:
        return "byte that is neither '*' nor one of a path";
    case RBI_GLOB_STARS:
        return "three '*' in a row";
    }
    return "unknown error";
}

/* Stars at this place of the pattern: 0, 1, or 2 for "**". */
static unsigned stars_at(const char *pattern, size_t length, size_t place)
{
    if (place >= length || pattern[place] != '*') {
        return 0;
    }
    return place + 1 < length && pattern[place + 1] == '*' ? 2 : 1;
}

/* Adds a place, and those behind the stars there: a star may stand for nothing. */
static void enter(bool *places, const char *pattern, size_t length, size_t place)
{
    places[place] = true;
    unsigned stars;
    while ((stars = stars_at(pattern, length, place)) > 0) {
        place += stars;
        places[place] = true;
    }
}

/** The pattern begins and ends with a star, and has something between them. */
static bool
match_places(const char *pattern, size_t pattern_length, const char *text, size_t length)
{
    bool rows[2][RBI_GLOB_BYTES_MAX + 1] = {{false}};
    bool *now = rows[0];
    bool *next = rows[1];
    enter(now, pattern, pattern_length, 0);
    for (size_t i = 0; i < length; i++) {
        bool any = false;
        memset(next, 0, pattern_length + 1);
        for (size_t place = 0; place < pattern_length; place++) {
            if (!now[place]) {
                continue;
            }
            const unsigned stars = stars_at(pattern, pattern_length, place);
            if (stars == 2 || (stars == 1 && text[i] != '/')) {
                enter(next, pattern, pattern_length, place);
                any = true;
            } else if (stars == 0 && pattern[place] == text[i]) {
                enter(next, pattern, pattern_length, place + 1);
                any = true;
            }
        }
        if (!any) {
            return false;
        }
        bool *const swap = now;
        now = next;
        next = swap;
    }
    return now[pattern_length];
}

bool rbi_glob_match(const char *pattern, size_t pattern_length, const char *text, size_t length)
{
    const char *first = memchr(pattern, '*', pattern_length);
    if (pattern_length > RBI_GLOB_BYTES_MAX || !first) {
        return pattern_length == length && pattern_length <= RBI_GLOB_BYTES_MAX &&
               memcmp(pattern, text, length) == 0;
    }
    /* Most patterns are not about this text: their ends, before and behind all stars, say so. */
    const char *last = memrchr(first, '*', pattern_length - (size_t)(first - pattern));
    const size_t before = (size_t)(first - pattern);
    const size_t behind = pattern_length - (size_t)(last - pattern) - 1;
    if (before + behind > length || memcmp(pattern, text, before) != 0 ||
        memcmp(last + 1, text + length - behind, behind) != 0) {
        return false;
    }
    const char *rest = text + before;
    const size_t rest_length = length - before - behind;
    const size_t stars = (size_t)(last - first) + 1;
    if (stars == 1) {
        return memchr(rest, '/', rest_length) == NULL;
    }
    return stars == 2 || match_places(first, stars, rest, rest_length);
}

/* ---- two patterns ------------------------------------------------------------------------- */

/** Two patterns, and which of their rests meet: of three places of the one, of all of the other. */
struct meeting {
    const char *a;
    const char *b;
    size_t a_length;
    size_t b_length;
    bool rests[3][RBI_GLOB_BYTES_MAX + 2];
};

static bool *rests_from(struct meeting *m, size_t i)
{
    return m->rests[i % 3];
}

/* Stars stand for nothing, or for the next byte of the other. */
static bool rests_meet(struct meeting *m, size_t i, size_t j)
{
    const unsigned a_stars = stars_at(m->a, m->a_length, i);
    const unsigned b_stars = stars_at(m->b, m->b_length, j);
    const bool a_over = i == m->a_length;
    const bool b_over = j == m->b_length;
    if ((a_stars != 0 && rests_from(m, i + a_stars)[j]) ||
        (b_stars != 0 && rests_from(m, i)[j + b_stars])) {
        return true;
    }
    if (a_over || b_over || (a_stars != 0 && b_stars != 0)) {
        return a_over && b_over;
    }
    if (a_stars != 0) {
        return (a_stars == 2 || m->b[j] != '/') && rests_from(m, i)[j + 1];
    }
    if (b_stars != 0) {
        return (b_stars == 2 || m->a[i] != '/') && rests_from(m, i + 1)[j];
    }
    return m->a[i] == m->b[j] && rests_from(m, i + 1)[j + 1];
}

bool rbi_glob_meet(const char *a, size_t a_length, const char *b, size_t b_length)
{
    struct meeting m = {.a = a, .b = b, .a_length = a_length, .b_length = b_length};
    if (a_length > RBI_GLOB_BYTES_MAX || b_length > RBI_GLOB_BYTES_MAX) {
        return false;
    }
    for (size_t i = a_length + 1; i-- > 0;) {
        for (size_t j = b_length + 1; j-- > 0;) {
            rests_from(&m, i)[j] = rests_meet(&m, i, j);
        }
    }
    return rests_from(&m, 0)[0];
}
