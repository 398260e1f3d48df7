/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/owned.c - which keys are ours: the table that callers of our own set and place use for
 * messages of our kind, plain ones or of our first tag, made from the same snapshot, compared with
 * the one before. What comes is judged by the class that its sender saw in it.
 */
#include "bus/label.h"
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- refusing ------------------------------------------------------------------------------- */

static bool owns(const struct rbi_owned *owned, int32_t self, uint64_t key)
{
    if (owned->fingerprint == 0) {
        return true; /* not known yet: nobody is refused for that */
    }
    const uint32_t slot = rbi_table_slot(key, owned->table.shape.slots);
    const uint16_t owner = rbi_table_owner(owned->owners, owned->table.shape.slots, 0, slot);
    return owner < owned->table.member_count && owned->members[owner].instance == self;
}

/* A message of most is dealt by the table that was told. */
static bool is_plain(const struct rbi_owned *owned, const struct ringbus_attributes *said)
{
    return owned->class.tag[0] == '\0' && rbi_route_classless(&owned->cluster->classes) &&
           (said == NULL || said->tag[0] == '\0');
}

/* @return whether it was dealt to us; also if that cannot be said */
static bool is_ours(struct ringbus *bus, const struct ringbus_message *message)
{
    const struct rbi_owned *owned = bus->owned;
    const struct ringbus_attributes *said = message->attributes;
    if (owned->fingerprint == 0 || is_plain(owned, said)) {
        return owns(owned, bus->self.instance, message->key);
    }
    struct rbi_cluster *cluster = owned->cluster;
    struct rbi_pick pick = {.keyed = true, .key = message->key};
    if (said != NULL) {
        pick.tag = said->tag;
        pick.method = said->method;
        memcpy(pick.labels, said->labels, sizeof pick.labels);
    }
    const struct rbi_choice_class class = rbi_cluster_class_of(cluster, &pick);
    struct rbi_choice *choice = rbi_cluster_class_choice(bus, cluster, &class);
    if (choice == NULL || !choice->by_key || choice->keyed.realm != cluster ||
        ((choice->keyed.stale & RBI_KEYED_STALE) != 0 &&
         rbi_keyed_make(bus, cluster, choice) != 0)) {
        return true;
    }
    return rbi_keyed_owner(choice, cluster->id, message->key) == bus->self.instance;
}

/* Stands before the application's callback, so that nobody else pays for the question. */
static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    const unsigned dealt = RINGBUS_MESSAGE_KEY | RINGBUS_MESSAGE_ANY;
    if ((message->flags & dealt) == dealt && message->reply_to.id != 0 &&
        (message->flags & (RINGBUS_MESSAGE_REDELIVERED | RINGBUS_MESSAGE_DIVERTED)) == 0 &&
        !is_ours(bus, message)) {
        rbi_count(bus, RBI_COUNTER_not_owner, 1);
        (void)rbi_reply_refused(bus, &message->reply_to, RINGBUS_E_NOT_OWNER, 0);
        return;
    }
    if (bus->owned->on_message != NULL) {
        bus->owned->on_message(bus, message, user);
    } else if (message->reply_to.id != 0) {
        (void)ringbus_reply_error(bus, &message->reply_to, "this endpoint takes no messages");
    }
}

/* ---- following ------------------------------------------------------------------------------ */

int rbi_owned_open(struct ringbus *bus, int option)
{
    if (option == RINGBUS_SLOTS_OFF) {
        return 0;
    }
    if ((option != RINGBUS_SLOTS_REPORT && option != RINGBUS_SLOTS_REFUSE) ||
        bus->self_path[0] == '\0') {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT,
                        "slots %d: RINGBUS_SLOTS_*, for an endpoint that has a path", option);
    }
    const char *name = strrchr(bus->self_path, '/');
    bus->owned = calloc(1, sizeof *bus->owned);
    struct rbi_cluster *cluster = bus->owned != NULL ? calloc(1, sizeof *cluster) : NULL;
    if (cluster == NULL) {
        return rbi_fail_errno(bus, -ENOMEM, "slots");
    }
    memcpy(cluster->path, bus->self_path, (size_t)(name - bus->self_path));
    cluster->id = rbi_cluster_id(cluster->path, strlen(cluster->path));
    cluster->all = true; /* whoever is there is a member, linked to us or not */
    cluster->dispatch_stale = RBI_DISPATCH_STALE;
    cluster->again_ns = RBI_NEVER;
    bus->owned->cluster = cluster;
    bus->owned->refuse = option == RINGBUS_SLOTS_REFUSE;
    if (bus->owned->refuse) {
        bus->owned->on_message = bus->on_message;
        bus->on_message = on_message;
    }
    return 0;
}

void rbi_owned_free(struct ringbus *bus)
{
    if (bus->owned != NULL) {
        rbi_cluster_free(bus->owned->cluster);
        free(bus->owned->owners);
        free(bus->owned->members);
        free(bus->owned);
        bus->owned = NULL;
    }
}

/* ---- telling -------------------------------------------------------------------------------- */

/* @return how many there are; as many as @p max are written */
static size_t collect(const struct rbi_table *from,
                      const struct rbi_table *to,
                      int32_t self,
                      struct ringbus_slot_range *out,
                      size_t max)
{
    uint32_t cursor = 0;
    size_t count = 0;
    struct rbi_table_range range;
    while (rbi_table_gained(from, to, self, &cursor, &range)) {
        if (count < max) {
            out[count] = (struct ringbus_slot_range){.first = range.first, .last = range.last};
        }
        count++;
    }
    return count;
}

static void tell(struct ringbus *bus,
                 enum ringbus_event_type type,
                 const struct rbi_table *from,
                 const struct rbi_table *to,
                 uint64_t epoch)
{
    const int32_t self = bus->self.instance;
    const size_t count = collect(from, to, self, NULL, 0);
    struct ringbus_slot_range *ranges = count > 0 ? malloc(count * sizeof *ranges) : NULL;
    if (ranges == NULL) {
        bus->events.lost = bus->events.lost || count > 0; /* RESYNC: ringbus_slots() has them */
        return;
    }
    (void)collect(from, to, self, ranges, count);
    struct rbi_queued_event *event =
        rbi_emit_simple(bus, type, &bus->self, bus->self_path, RBI_REASON_NONE, 0);
    if (event == NULL) {
        free(ranges);
        return;
    }
    event->slots = ranges;
    event->slot_count = count;
    event->epoch = epoch;
}

/* Takes the table over as the one that was told last. @return false: no memory, as it was */
static bool keep(struct rbi_owned *owned, const struct rbi_keyed *keyed)
{
    const size_t bytes = rbi_table_owner_bytes(&keyed->table.shape);
    const size_t member_bytes = keyed->table.member_count * sizeof *owned->members;
    uint16_t *owners = malloc(bytes);
    struct rbi_table_member *members = malloc(member_bytes + 1);
    if (owners == NULL || members == NULL) {
        free(owners);
        free(members);
        return false;
    }
    memcpy(owners, keyed->owners, bytes);
    memcpy(members, keyed->members, member_bytes);
    free(owned->owners);
    free(owned->members);
    owned->owners = owners;
    owned->members = members;
    owned->table = keyed->table;
    owned->table.owners = owners;
    owned->table.members = members;
    owned->fingerprint = keyed->fingerprint;
    return true;
}

/* Without memory: told with the next tick that has it; better twice than never. */
static void look_again(struct ringbus *bus)
{
    bus->owned->cluster->looked_epoch = 0;
    bus->directory_revision = 0;
}

/* What most messages for us are: of our first tag. */
static void take_class(struct ringbus *bus)
{
    struct rbi_label_part tag;
    const char *rest = bus->labels.tags;
    struct rbi_choice_class *class = &bus->owned->class;
    memset(class, 0, sizeof *class);
    if (rbi_label_next_tag(&rest, &tag)) {
        memcpy(class->tag, tag.text, rbi_min_u64(tag.length, sizeof class->tag - 1));
    }
}

void rbi_owned_look(struct ringbus *bus)
{
    struct rbi_owned *owned = bus->owned;
    struct rbi_cluster *cluster = owned->cluster;
    if (!bus->directory_mapped ||
        rbi_directory_epoch(&bus->directory, cluster->id) == cluster->looked_epoch) {
        return;
    }
    cluster->dispatch_stale |= RBI_DISPATCH_STALE;
    rbi_cluster_refresh(bus, cluster);
    if ((cluster->dispatch_stale & RBI_DISPATCH_STALE) != 0) {
        look_again(bus);
        return;
    }
    take_class(bus);
    struct rbi_choice *choice = rbi_cluster_class_choice(bus, cluster, &owned->class);
    if (choice == NULL) {
        look_again(bus);
        return;
    }
    if (!choice->by_key || choice->keyed.realm != cluster) {
        return;
    }
    if (rbi_keyed_make(bus, cluster, choice) != 0) {
        look_again(bus);
        return;
    }
    if (choice->keyed.fingerprint == owned->fingerprint) {
        return;
    }
    const struct rbi_table *now = &choice->keyed.table;
    const struct rbi_table *before = owned->fingerprint != 0 ? &owned->table : NULL;
    if (before != NULL && before->shape.slots != now->shape.slots) {
        tell(bus, RINGBUS_EVENT_SLOTS_LOST, NULL, before, cluster->epoch);
        before = NULL;
    } else if (before != NULL) {
        tell(bus, RINGBUS_EVENT_SLOTS_LOST, now, before, cluster->epoch);
    }
    tell(bus, RINGBUS_EVENT_SLOTS_GAINED, before, now, cluster->epoch);
    if (!keep(owned, &choice->keyed)) {
        look_again(bus);
    }
}

/* ---- public calls --------------------------------------------------------------------------- */

int ringbus_slots(struct ringbus *bus, struct ringbus_slot_range *out, size_t max)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (bus->owned == NULL || (out == NULL && max > 0)) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "the handle was opened without the option slots");
    } else if (bus->owned->fingerprint != 0) {
        r = (int)collect(NULL, &bus->owned->table, bus->self.instance, out, max);
    }
    rbi_leave(bus);
    return r;
}

int ringbus_owns(struct ringbus *bus, uint64_t key)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (bus->owned == NULL) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "the handle was opened without the option slots");
    } else if (bus->owned->fingerprint == 0) {
        r = rbi_fail(bus, RINGBUS_E_NOT_READY, "no table of %s is known yet", bus->self_path);
    } else {
        r = owns(bus->owned, bus->self.instance, key) ? 1 : 0;
    }
    rbi_leave(bus);
    return r;
}
