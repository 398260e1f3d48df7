/* SPDX-License-Identifier: Apache-2.0 */
/* bus/label.c - sets, locations and tags, taken apart where they are. */
#include "bus/label.h"

#include <string.h>

bool rbi_label_equal(struct rbi_label_part a, struct rbi_label_part b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.text, b.text, a.length) == 0);
}

/* Of a set's parts: fewer, so that "." and "*" have their meaning. */
static bool set_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

bool rbi_label_byte(char c)
{
    return set_byte(c) || (c != '\0' && strchr(".*:,=", c) != NULL);
}

/* Up to the next @p separator, which is skipped. */
static struct rbi_label_part take(const char **rest, char separator)
{
    struct rbi_label_part part = {*rest, 0};
    while ((*rest)[part.length] != '\0' && (*rest)[part.length] != separator) {
        part.length++;
    }
    *rest += part.length + ((*rest)[part.length] != '\0' ? 1U : 0U);
    return part;
}

/* ---- sets ------------------------------------------------------------------------------- */

static bool set_part(const char **rest, struct rbi_label_part *part)
{
    *part = take(rest, '.');
    bool valid = part->length > 0;
    for (size_t i = 0; valid && i < part->length; i++) {
        valid = set_byte(part->text[i]);
    }
    return valid;
}

bool rbi_label_set_parse(const char *text, struct rbi_label_set *set)
{
    struct rbi_label_set read = {.all_groups = false};
    const char *rest = text;
    if (!set_part(&rest, &read.name) || !set_part(&rest, &read.area)) {
        return false;
    }
    read.all_groups = strcmp(rest, "*") == 0;
    if (read.all_groups) {
        read.group = (struct rbi_label_part){rest, 1};
    } else if (!set_part(&rest, &read.group) || *rest != '\0' || rest[-1] == '.') {
        return false;
    }
    *set = read;
    return true;
}

bool rbi_label_set_valid(const char *text)
{
    struct rbi_label_set set;
    return text[0] == '\0' || rbi_label_set_parse(text, &set);
}

bool rbi_label_set_same_area(const struct rbi_label_set *a, const struct rbi_label_set *b)
{
    return rbi_label_equal(a->name, b->name) && rbi_label_equal(a->area, b->area);
}

bool rbi_label_set_covers(const char *pattern, const char *text)
{
    struct rbi_label_set wanted;
    struct rbi_label_set given;
    return rbi_label_set_parse(pattern, &wanted) && rbi_label_set_parse(text, &given) &&
           rbi_label_set_same_area(&wanted, &given) &&
           (wanted.all_groups || rbi_label_equal(wanted.group, given.group));
}

/* ---- locations -------------------------------------------------------------------------- */

struct rbi_label_idc rbi_label_idc_parse(const char *text)
{
    const struct rbi_label_idc nowhere = {{NULL, 0}, {NULL, 0}};
    struct rbi_label_idc idc = nowhere;
    const char *rest = text;
    idc.group = take(&rest, '/');
    if (idc.group.length == 0) {
        return nowhere;
    }
    if (text[idc.group.length] == '/') {
        idc.zone = take(&rest, '/');
        if (idc.zone.length == 0 || rest[-1] == '/' || *rest != '\0') {
            return nowhere;
        }
    }
    return idc;
}

bool rbi_label_idc_valid(const char *text)
{
    bool valid = text[0] == '\0' || rbi_label_idc_parse(text).group.length > 0;
    for (; valid && *text != '\0'; text++) {
        valid = rbi_label_byte(*text) || *text == '/';
    }
    return valid;
}

bool rbi_label_idc_covers(const char *pattern, const char *text)
{
    const struct rbi_label_idc wanted = rbi_label_idc_parse(pattern);
    const struct rbi_label_idc given = rbi_label_idc_parse(text);
    return wanted.group.length > 0 && rbi_label_equal(wanted.group, given.group) &&
           (wanted.zone.length == 0 || rbi_label_equal(wanted.zone, given.zone));
}

/* ---- tags ------------------------------------------------------------------------------- */

bool rbi_label_tags_valid(const char *list)
{
    while (rbi_label_byte(*list)) {
        list++;
    }
    return *list == '\0';
}

bool rbi_label_next_tag(const char **rest, struct rbi_label_part *tag)
{
    while (**rest != '\0') {
        const struct rbi_label_part part = take(rest, ',');
        if (part.length > 0) {
            *tag = part;
            return true;
        }
    }
    return false;
}

bool rbi_label_has_tag(const char *list, const char *tag)
{
    const struct rbi_label_part wanted = {tag, strlen(tag)};
    struct rbi_label_part part;
    while (wanted.length > 0 && rbi_label_next_tag(&list, &part)) {
        if (rbi_label_equal(part, wanted)) {
            return true;
        }
    }
    return false;
}

bool rbi_label_tagged(const char *list)
{
    struct rbi_label_part part;
    return rbi_label_next_tag(&list, &part);
}
