/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/cyclone.c - Eclipse Cyclone DDS over loopback, reliable, all history kept
 * within limits, a wait set for reading. Messages are of a type with one sequence of bytes.
 */
#include "bench/loops.h"
#include "blob.h"

#include <dds/dds.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct dds_end {
    dds_entity_t participant;
    dds_entity_t writer;
    dds_entity_t reader;
    dds_entity_t set;
};

static const char config[] =
    "<General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces>"
    "<AllowMulticast>false</AllowMulticast><MaxMessageSize>65500B</MaxMessageSize></General>"
    "<Discovery><ParticipantIndex>auto</ParticipantIndex>"
    "<Peers><Peer Address=\"127.0.0.1\"/></Peers></Discovery>";

static dds_entity_t topic_of(dds_entity_t participant, unsigned number, int side)
{
    char name[48];
    (void)snprintf(name, sizeof name, "bench_%u_%d", number, side);
    return dds_create_topic(participant, &Bench_Blob_desc, name, NULL, NULL);
}

static int make_entities(struct bench_end *end, struct dds_end *d)
{
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    dds_qset_resource_limits(qos, 1024, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
    d->writer = dds_create_writer(
        d->participant, topic_of(d->participant, end->place->number, end->side), qos, NULL);
    d->reader = dds_create_reader(
        d->participant, topic_of(d->participant, end->place->number, !end->side), qos, NULL);
    dds_delete_qos(qos);
    d->set = dds_create_waitset(d->participant);
    const dds_entity_t condition = dds_create_readcondition(d->reader, DDS_ANY_STATE);
    return d->writer > 0 && d->reader > 0 && d->set > 0 &&
                   dds_waitset_attach(d->set, condition, 0) == DDS_RETCODE_OK
               ? 0
               : -1;
}

static int side_open(struct bench_end *end)
{
    struct dds_end *d = calloc(1, sizeof *d);
    end->state = d;
    if (d == NULL) {
        return -1;
    }
    (void)setenv("CYCLONEDDS_URI", config, 1);
    d->participant = dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL);
    if (d->participant < 0 || make_entities(end, d) != 0) {
        return -1;
    }
    for (int i = 0; i < 10000; i++) {
        dds_publication_matched_status_t out = {0};
        dds_subscription_matched_status_t in = {0};
        (void)dds_get_publication_matched_status(d->writer, &out);
        (void)dds_get_subscription_matched_status(d->reader, &in);
        if (out.current_count > 0 && in.current_count > 0) {
            return 0;
        }
        (void)usleep(1000);
    }
    return -1;
}

static void side_close(struct bench_end *end)
{
    struct dds_end *d = end->state;
    if (d != NULL) {
        (void)dds_delete(d->participant);
        free(d);
    }
}

static int send_dds(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct dds_end *d = end->state;
    Bench_Blob blob = {.data = {._maximum = (uint32_t)size,
                                ._length = (uint32_t)size,
                                ._buffer = (uint8_t *)(uintptr_t)data,
                                ._release = false}};
    const dds_return_t r = dds_write(d->writer, &blob);
    return r == DDS_RETCODE_OK ? 1 : r == DDS_RETCODE_TIMEOUT ? 0 : -1;
}

static int poll_dds(struct bench_end *end, unsigned max)
{
    struct dds_end *d = end->state;
    void *samples[32] = {NULL};
    dds_sample_info_t infos[32];
    int taken = 0;
    const uint32_t room = max < 32 ? max : 32;
    const dds_return_t n = dds_take(d->reader, samples, infos, room, room);
    if (n <= 0) {
        if (n == 0) {
            (void)dds_waitset_wait(d->set, NULL, 0, DDS_SECS(1));
        }
        return n < 0 ? -1 : 0;
    }
    for (int i = 0; i < n; i++) {
        const Bench_Blob *blob = samples[i];
        if (infos[i].valid_data) {
            bench_take(end, blob->data._buffer, blob->data._length);
            while (end->echo && send_dds(end, blob->data._buffer, blob->data._length) == 0) {
            }
            taken++;
        }
    }
    (void)dds_return_loan(d->reader, samples, n);
    return taken;
}
BENCH_LOOPS(cyclone, send_dds, poll_dds)

const struct bench_contender bench_cyclone = {
    .name = "cyclone-dds",
    .package = "cyclonedds-dev",
    .text = "Cyclone DDS over loopback, reliable, keep all, wait set",
    .abilities = BENCH_CAN_SLEEP | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,
    .size_max = 64U << 10,
    .open = side_open,
    .close = side_close,
    .trips = cyclone_trips,
    .stream = cyclone_stream,
    .put = cyclone_put_loop,
    .take = cyclone_take_loop,
};
