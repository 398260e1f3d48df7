/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/base.h"

#include <stdio.h>
#include <stdlib.h>

void rbi_assert_failed(const char *what, const char *file, int line)
{
    (void)fprintf(stderr, "ringbus: broken invariant: %s (%s:%d)\n", what, file, line);
    abort();
}
