/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_ALARM_H
#define RINGBUS_BUS_ALARM_H
/*
 * bus/alarm.h - rules of what is to wake somebody: a figure of a cluster that has been beyond a
 * threshold for a while, until it has been back for a while. Pure: time is an argument, figures are
 * handed in; the daemon evaluates each rule for each cluster that it matches.
 *
 *   OK --- beyond ---> PENDING --- beyond for `for` ---> FIRING --- back ---> CLEARING
 *   OK <--- back ----- PENDING                           FIRING <-- beyond -- CLEARING
 *   OK <------------------------- back for `clear_for` ---------------------- CLEARING
 *
 * A figure that is not known, as the error ratio of a cluster that nobody calls, is not beyond.
 */
#include "bus/figures.h"
#include "bus/policy.h"

/** What a rule is about. Ratios are of 1, times in us. */
enum rbi_alarm_metric {
    RBI_ALARM_ERROR_RATIO = 0, /* calls that failed or were lost, of all in the window */
    RBI_ALARM_LOST_RATIO = 1,
    RBI_ALARM_SLOW_RATIO = 2,
    RBI_ALARM_P50_US = 3,
    RBI_ALARM_P90_US = 4,
    RBI_ALARM_P99_US = 5,
    RBI_ALARM_P999_US = 6,
    RBI_ALARM_MEAN_US = 7,
    RBI_ALARM_RATE = 8,      /* calls a second */
    RBI_ALARM_INSTANCES = 9, /* that are dispatched to, shielded ones too */
    RBI_ALARM_SHIELDED = 10,
    RBI_ALARM_HEALTHY_RATIO = 11, /* of the weight of those that are dispatched to */
    RBI_ALARM_QUEUE_DEPTH = 12,   /* messages that wait for the instance with most of them */
    RBI_ALARM_PANIC = 13,         /* 1 while shields are ignored */
    RBI_ALARM_METRICS = 14,
};

/** Thresholds and values are in millionths. */
#define RBI_ALARM_UNIT  UINT64_C(1000000)
#define RBI_ALARMS_MAX  64U
#define RBI_ALARM_LARGE UINT64_C(1000000000000) /* largest threshold, in whole */

struct rbi_alarm_rule {
    char id[RBI_LABEL_MAX + 1];
    char match[RBI_GLOB_MAX + 1]; /* clusters */
    uint32_t metric;              /* enum rbi_alarm_metric */
    uint32_t below;               /* 1: beyond is below the threshold, else above */
    uint64_t threshold;           /* millionths */
    uint32_t for_ms;
    uint32_t clear_ms;
    uint32_t calls; /* figures of calls are known when the window has so many */
    uint32_t reserved;
};

struct rbi_alarm_rules {
    uint32_t count;
    uint32_t reserved;
    struct rbi_alarm_rule items[RBI_ALARMS_MAX];
};

/** What is known of a cluster at a time. */
struct rbi_alarm_facts {
    const struct rbi_figures *recent; /* of the window; NULL: nobody has called it */
    uint64_t span_ns;                 /* that those are about */
    uint32_t instances;
    uint32_t shielded;
    uint64_t weight;  /* of the instances */
    uint64_t healthy; /* of that, what is not shielded */
    uint64_t queue_depth;
    bool panics;
};

enum rbi_alarm_state {
    RBI_ALARM_OK = 0,
    RBI_ALARM_PENDING = 1,
    RBI_ALARM_FIRING = 2,
    RBI_ALARM_CLEARING = 3, /* still counts as firing */
};

/** One rule for one cluster. Zeroed: OK. */
struct rbi_alarm {
    uint32_t state; /* enum rbi_alarm_state */
    uint32_t known; /* 1: value is one */
    uint64_t since_ns;
    uint64_t fired_ns; /* FIRING and CLEARING: when it began to */
    uint64_t value;    /* at the last step, millionths */
};

enum rbi_alarm_change { RBI_ALARM_NONE = 0, RBI_ALARM_FIRED = 1, RBI_ALARM_RESOLVED = 2 };

/** "error_ratio"; "?" for a number that is none's. */
const char *rbi_alarm_metric_name(uint32_t metric);
/** "ok", "pending", "firing", "clearing"; "?". */
const char *rbi_alarm_state_name(uint32_t state);
/** @return NULL, or what is wrong with a rule, a sentence */
const char *rbi_alarm_check(const struct rbi_alarm_rule *rule);
/** @return whether there is a value: @p value is written then, in millionths */
bool rbi_alarm_value(const struct rbi_alarm_rule *rule,
                     const struct rbi_alarm_facts *facts,
                     uint64_t *value);
/** Lets time act. @param now_ns  never less than at an earlier call */
enum rbi_alarm_change rbi_alarm_step(struct rbi_alarm *alarm,
                                     const struct rbi_alarm_rule *rule,
                                     const struct rbi_alarm_facts *facts,
                                     uint64_t now_ns);
/** Whether it counts as firing. */
bool rbi_alarm_fires(const struct rbi_alarm *alarm);
/** A value in millionths as people write it: "0.05", "1200". @param size  at least 24 */
void rbi_alarm_format(uint64_t value, char *buffer, size_t size);

#endif
