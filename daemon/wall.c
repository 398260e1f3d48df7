/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/wall.h"

#include <time.h>

uint64_t rbi_wall_now_s(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec;
}
