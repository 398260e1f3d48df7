/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GOVERNANCE_EDIT_H
#define RINGBUS_BUS_GOVERNANCE_EDIT_H
/*
 * bus/governance_edit.h - single changes that an operator makes to what runs (isolate, weight,
 * limit and the like), as a layer of their own: a list of values that is written as a text of
 * bus/governance.h and read from one. Pure, but for the memory of list and text.
 */
#include "bus/governance.h"

#define RBI_EDIT_KEY_MAX   15U
#define RBI_EDIT_VALUE_MAX 63U

/** One value. Texts are terminated. */
struct rbi_edit {
    char target[RBI_PATH_MAX + 1];   /* path of an instance, or pattern of clusters */
    char list[RBI_EDIT_KEY_MAX + 1]; /* of clusters: "limits", "degrade"; of instances: "" */
    char id[RBI_LABEL_MAX + 1];      /* of its item; of instances: "" */
    char key[RBI_EDIT_KEY_MAX + 1];
    char value[RBI_EDIT_VALUE_MAX + 1];
};

struct rbi_edits {
    struct rbi_edit *items; /* ascending by target, list, id, key */
    uint32_t count;
    uint32_t capacity;
};

#define RBI_EDITS_NULL ((struct rbi_edits){.items = NULL})

/** Accepts RBI_EDITS_NULL. */
void rbi_edits_deinit(struct rbi_edits *edits);
/** Reads what rbi_edits_print() has written; other keys are left out. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_edits_load(struct rbi_edits *edits, const struct rbi_governance *from);
/** Enters a value, in the place of one for the same. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_edits_set(struct rbi_edits *edits, const struct rbi_edit *edit);
/** Takes a value out, whatever it is; of an item, all of its values when the key is "". */
void rbi_edits_clear(struct rbi_edits *edits, const struct rbi_edit *edit);
/**
 * Writes the text.
 * @param text  allocated, to be freed; terminated behind @p size bytes
 * @retval 0; -ENOMEM
 */
RBI_MUST_CHECK int rbi_edits_print(const struct rbi_edits *edits, char **text, size_t *size);

#endif
