/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DEGRADE_H
#define RINGBUS_DEGRADE_H
/* ringbus/degrade.h - answers in the place of an instance. */
#include <ringbus/base.h>
#include <ringbus/message.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What ends a request to a cluster instead of one of its instances. */
enum ringbus_degrade_action {
    RINGBUS_DEGRADE_FAIL = 0,  /**< it fails; with MANUAL at once, with RINGBUS_E_DENIED */
    RINGBUS_DEGRADE_MOCK = 1,  /**< a reply of fixed bytes */
    RINGBUS_DEGRADE_LOCAL = 2, /**< a callback of the application's */
};

/** When. */
#define RINGBUS_DEGRADE_MANUAL      0x1U /**< always: nobody is asked */
#define RINGBUS_DEGRADE_NO_INSTANCE 0x2U /**< nobody was there, ready, or to be reached */
#define RINGBUS_DEGRADE_SHIELDED    0x4U /**< RINGBUS_E_SHIELDED */
#define RINGBUS_DEGRADE_LIMITED     0x8U /**< RINGBUS_E_LIMITED, RINGBUS_E_SHED */

/**
 * Answers in the place of an instance, from ringbus_poll().
 * @param request  as its receiver would see it, lent; from is this endpoint
 * @param reply    to be filled; its bytes are looked at until the request's callback has returned
 * @return 0; below 0 the request's outcome is RINGBUS_FAILED with that error
 */
typedef int (*ringbus_local_fn)(struct ringbus *bus,
                                const struct ringbus_message *request,
                                struct ringbus_part *reply,
                                void *context);

struct ringbus_degrade {
    size_t struct_size; /**< sizeof(struct ringbus_degrade) */
    uint32_t method_low;
    uint32_t method_high; /**< inclusive; 0: no bound */
    enum ringbus_degrade_action action;
    unsigned triggers;      /**< RINGBUS_DEGRADE_*, one at least */
    const void *mock;       /**< MOCK: copied; may be NULL with size 0 */
    size_t mock_size;       /**< at most 2^30 */
    ringbus_local_fn local; /**< LOCAL only, else NULL */
    void *context;          /**< of local */
};

/**
 * Sets what ends requests to RINGBUS_ANY of a cluster when nobody is asked, or nobody has handled
 * them: the first rule that covers method and trigger. Rules of the bus's configuration come
 * before these; where one of those says "local" it means the first callback here for its method.
 * Such a reply has RINGBUS_MESSAGE_MOCKED, and counts as mocked, not as a reply.
 *
 * @param path   6 elements, a target; ringbus_untarget() forgets the rules
 * @param rules  copied with their mocks; replace those before
 * @param count  0 to 64; 0: none
 * @retval 0; RINGBUS_E_PATH; RINGBUS_E_NOT_TARGET; RINGBUS_E_ARGUMENT; RINGBUS_E_NO_MEMORY
 * Cost: allocates. Allowed inside callbacks.
 */
RINGBUS_API int ringbus_degrade(struct ringbus *bus,
                                const char *path,
                                const struct ringbus_degrade *rules,
                                unsigned count);

#ifdef __cplusplus
}
#endif

#endif
