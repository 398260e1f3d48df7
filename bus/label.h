/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_LABEL_H
#define RINGBUS_BUS_LABEL_H
/*
 * bus/label.h - what an instance says of itself, as text, and how such texts are compared: its set
 * "name.area.group", its location "group" or "group/zone", its tags "tag,tag". Pure; any thread.
 *
 * The group is where it stands: the smallest unit of a location, a room or a rack row. The zone is
 * the logical group that several such groups belong to.
 *
 * Texts are terminated. One that is not of its form counts as not given: so whoever takes one from
 * outside refuses it, or what was to be kept apart would mix without a word.
 */
#include "shm/base.h"

/** A part of a text, which stays where it is. */
struct rbi_label_part {
    const char *text;
    size_t length; /* 0: not given */
};

/** Whether a byte may stand in labels: [A-Za-z0-9_.*:,=-]. */
bool rbi_label_byte(char c);
/** Two parts with the same bytes; two that are not given are equal. */
bool rbi_label_equal(struct rbi_label_part a, struct rbi_label_part b);

/* ---- sets ------------------------------------------------------------------------------- */

struct rbi_label_set {
    struct rbi_label_part name;
    struct rbi_label_part area;
    struct rbi_label_part group;
    bool all_groups; /* the group is "*" */
};

/**
 * Takes a set apart: three parts joined by ".", each of [A-Za-z0-9_-] and not empty; "*" stands for
 * every group, as the third part only.
 * @retval false  not a set, or ""; @p set is untouched
 */
bool rbi_label_set_parse(const char *text, struct rbi_label_set *set);
/** Whether a text is a set, or "". */
bool rbi_label_set_valid(const char *text);
/** Same name and area. */
bool rbi_label_set_same_area(const struct rbi_label_set *a, const struct rbi_label_set *b);
/** Whether @p pattern names @p text: equal, or a set of its area when its group is "*". */
bool rbi_label_set_covers(const char *pattern, const char *text);

/* ---- locations -------------------------------------------------------------------------- */

struct rbi_label_idc {
    struct rbi_label_part group;
    struct rbi_label_part zone;
};

/** Whether a text is a location of bytes of labels, or "". */
bool rbi_label_idc_valid(const char *text);
/** Takes a location apart; more than one "/", or a part that is empty: not given. */
struct rbi_label_idc rbi_label_idc_parse(const char *text);
/** Whether @p pattern names @p text: the same group, and the same zone if the pattern has one. */
bool rbi_label_idc_covers(const char *pattern, const char *text);

/* ---- tags ------------------------------------------------------------------------------- */

/** Whether a list has bytes of labels only; it may be "". */
bool rbi_label_tags_valid(const char *list);
/** Walks a list: @p rest is the list at first. @retval false no more. Empty ones are skipped. */
bool rbi_label_next_tag(const char **rest, struct rbi_label_part *tag);
/** Whether @p tag, not empty, is one of the list. */
bool rbi_label_has_tag(const char *list, const char *tag);
/** Whether the list holds any tag. */
bool rbi_label_tagged(const char *list);

#endif
