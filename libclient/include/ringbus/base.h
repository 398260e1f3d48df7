/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BASE_H
#define RINGBUS_BASE_H
/* ringbus/base.h - what the other parts need: version, visibility, the handle. */
#include <stddef.h>
#include <stdint.h>

#define RINGBUS_VERSION_MAJOR 0
#define RINGBUS_VERSION_MINOR 1
#define RINGBUS_VERSION_PATCH 0

#if defined(__GNUC__)
#define RINGBUS_API        __attribute__((visibility("default")))
#define RINGBUS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RINGBUS_API
#define RINGBUS_MUST_CHECK
#endif

/** A bus handle: one endpoint. */
struct ringbus;

#endif
