/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_RECORD_TIMES_H
#define RINGBUS_BUS_RECORD_TIMES_H
/*
 * bus/record_times.h - the points of time in a record, for another host. Pure.
 *
 * They are of the sender's monotonic clock, which means nothing elsewhere. Between two hosts they
 * are told relative to the moment of telling: the near bridge takes its clock away, the far one
 * adds its own. What the record was on its way from one bridge to the other is not counted.
 */
#include "shm/base.h"

/**
 * Adds @p delta_ns, modulo 2^64, to the deadline and the time of sending of a record, where it has
 * any. What cannot be parsed is left as it is: its receiver refuses it.
 * @param meta  from the commit word, or the frame
 * @param body  @p size bytes, 8-byte aligned, private: nobody else writes it meanwhile
 * @return whether its attributes say that it is followed (bus/record_follow.h)
 */
bool rbi_record_shift_times(uint32_t meta, unsigned char *body, uint64_t size, uint64_t delta_ns);

#endif
