/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_CONFIG_H
#define RINGBUS_TESTS_SUPPORT_CONFIG_H
/* What the parsers of configurations answer: accepted, or refused at a place for a reason. */
#include "bus/config.h"
#include "support/test.h"

#include <string.h>

/** A parser's @p result is that @p text is right; else its first error is shown. */
static inline void
config_accepted(int result, const char *text, const struct rbi_config_errors *errors)
{
    const struct rbi_config_error *e = &errors->items[0];
    if (result != 0) {
        fail_msg("refused: %s\n%u:%u %s", text, e->line, e->column, e->text);
    }
}

/** It is that the text is wrong: the first error is at this place and says this. */
static inline void config_refused(int result,
                                  const struct rbi_config_errors *errors,
                                  unsigned line,
                                  unsigned column,
                                  const char *says)
{
    const struct rbi_config_error *e = &errors->items[0];
    assert_int_equal(result, 1);
    assert_true(errors->count >= 1);
    if (e->line != line || e->column != column || !strstr(e->text, says)) {
        fail_msg("expected %u:%u ... %s\nfound %u errors, %u:%u %s", line, column, says,
                 errors->count, e->line, e->column, e->text);
    }
}

/** And there is no other error. */
static inline void config_refused_once(int result,
                                       const struct rbi_config_errors *errors,
                                       unsigned line,
                                       unsigned column,
                                       const char *says)
{
    config_refused(result, errors, line, column, says);
    if (errors->count != 1) {
        fail_msg("expected one error: %s\nfound %u, the second: %u:%u %s", says, errors->count,
                 errors->items[1].line, errors->items[1].column, errors->items[1].text);
    }
}

#endif
