/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/message.h"

#include <string.h>

static unsigned char byte_at(const struct message_head *head, size_t at)
{
    return (unsigned char)(head->round * 31U + head->number * 7U + at);
}

void message_write(void *out, size_t size, uint32_t round, uint32_t number)
{
    const struct message_head head = {.round = round, .number = number};
    unsigned char *bytes = out;
    memcpy(bytes, &head, sizeof head);
    for (size_t i = sizeof head; i < size; i++) {
        bytes[i] = byte_at(&head, i);
    }
}

bool message_read(const void *data, size_t size, struct message_head *head)
{
    const unsigned char *bytes = data;
    if (size < sizeof *head) {
        return false;
    }
    memcpy(head, bytes, sizeof *head);
    for (size_t i = sizeof *head; i < size; i++) {
        if (bytes[i] != byte_at(head, i)) {
            return false;
        }
    }
    return true;
}
