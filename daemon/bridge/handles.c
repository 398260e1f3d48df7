/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/handles.h"

#include <stdlib.h>

#define NONE       UINT32_MAX
#define PLACE_BITS 16U
#define ROOM_FIRST 16U

struct rbi_handle_slot {
    void *item;    /* NULL: free */
    uint32_t uses; /* part of the number, never 0 */
    uint32_t next_free;
};

void rbi_handles_init(struct rbi_handles *handles)
{
    *handles = (struct rbi_handles){.first_free = NONE, .last_free = NONE};
}

void rbi_handles_deinit(struct rbi_handles *handles)
{
    free(handles->slots);
    rbi_handles_init(handles);
}

/* A new place while the table is young, so that numbers come back late. NONE: no memory */
static uint32_t take_place(struct rbi_handles *handles)
{
    const bool reuse = handles->count == RBI_HANDLES_MAX ||
                       (handles->first_free != NONE && handles->count == handles->room);
    if (reuse) {
        const uint32_t place = handles->first_free;
        if (place != NONE) {
            handles->first_free = handles->slots[place].next_free;
            handles->last_free = handles->first_free == NONE ? NONE : handles->last_free;
        }
        return place;
    }
    if (handles->count == handles->room) {
        const uint32_t room = handles->room == 0 ? ROOM_FIRST : handles->room * 2;
        struct rbi_handle_slot *slots = realloc(handles->slots, room * sizeof *slots);
        if (slots == NULL) {
            return NONE;
        }
        handles->slots = slots;
        handles->room = room;
    }
    handles->slots[handles->count] = (struct rbi_handle_slot){.next_free = NONE};
    return handles->count++;
}

uint32_t rbi_handles_give(struct rbi_handles *handles, void *item)
{
    const uint32_t place = take_place(handles);
    if (place == NONE) {
        return 0;
    }
    struct rbi_handle_slot *slot = &handles->slots[place];
    slot->item = item;
    slot->next_free = NONE;
    slot->uses = (slot->uses + 1) & 0xffffU;
    slot->uses += slot->uses == 0 ? 1U : 0U;
    return slot->uses << PLACE_BITS | place;
}

static struct rbi_handle_slot *slot_of(const struct rbi_handles *handles, uint32_t handle)
{
    const uint32_t place = handle & 0xffffU;
    struct rbi_handle_slot *slot = place < handles->count ? &handles->slots[place] : NULL;
    return slot != NULL && slot->item != NULL && slot->uses == handle >> PLACE_BITS ? slot : NULL;
}

void *rbi_handles_get(const struct rbi_handles *handles, uint32_t handle)
{
    const struct rbi_handle_slot *slot = slot_of(handles, handle);
    return slot != NULL ? slot->item : NULL;
}

void rbi_handles_free(struct rbi_handles *handles, uint32_t handle)
{
    struct rbi_handle_slot *slot = slot_of(handles, handle);
    if (slot == NULL) {
        return;
    }
    const uint32_t place = handle & 0xffffU;
    slot->item = NULL;
    if (handles->last_free == NONE) {
        handles->first_free = place;
    } else {
        handles->slots[handles->last_free].next_free = place;
    }
    handles->last_free = place;
}

uint32_t rbi_handles_any(const struct rbi_handles *handles, void **item)
{
    for (uint32_t place = handles->count; place-- > 0;) {
        if (handles->slots[place].item != NULL) {
            *item = handles->slots[place].item;
            return handles->slots[place].uses << PLACE_BITS | place;
        }
    }
    return 0;
}
