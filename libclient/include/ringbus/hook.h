/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_HOOK_H
#define RINGBUS_HOOK_H
/* ringbus/hook.h - whom messages go to, as the application says. */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/directory.h>
#include <ringbus/message.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An instance, as hooks see it. Texts are terminated, "" is not given; lent for the call. */
struct ringbus_candidate {
    struct ringbus_addr addr;
    const char *path;
    const char *set;
    const char *idc;
    const char *tags;
    uint32_t weight; /**< its own, 0 to 1000; in a chooser its share, to be compared */
    int healthy;     /**< 0: shielded */
    int suspect;     /**< 1: silent, or failing in a row, as this endpoint sees it; choosers only */
    uint64_t waiting; /**< messages that wait there, as it has told last; choosers only */
    uint64_t busy_ns; /**< that it needs for one; 0: unknown; choosers only */
};

/** What routing knows of a message. */
struct ringbus_routing {
    int keyed; /**< 1: it has a key */
    uint64_t key;
    const char *tag; /**< "" untagged; never NULL */
    uint32_t method;
    uint32_t labels[RINGBUS_LABELS_MAX];
    /** A router sets it: goes to this instance of the target, whatever the stages say. 0: chosen */
    int32_t instance;
    int error; /**< a router that refuses sets it: RINGBUS_E_*; 0: RINGBUS_E_NO_MATCH */
};

/** What a chooser and a router may answer, beside an index. */
#define RINGBUS_HOOK_PASS   (-1) /**< the next one is asked, or the message goes its way */
#define RINGBUS_HOOK_REFUSE (-2) /**< nobody is to get it */

/** Most hooks of one handle. */
#define RINGBUS_HOOKS_MAX 16

/**
 * Functions of the application that have a say in routing. All are optional, but one. They run on
 * the thread of the handle, inside the call that needs them, and must not call the bus: sending to
 * a target with hooks, ringbus_poll(), _wait(), _close(), _target(), _untarget(), _hook() and
 * _unhook() fail with RINGBUS_E_BUSY there.
 */
struct ringbus_hooks {
    size_t struct_size; /**< sizeof(struct ringbus_hooks) */
    const char *name;   /**< 1 to 31 bytes, copied: explanations and errors name it */
    void *user;         /**< given to each function */
    /**
     * Directory filter: asked for each instance when the choices of a target are made anew, which
     * is after a change, never for a message. The same instance may be asked for several times.
     * @return 0: it is left out, and explained as the stage "filter"; else it stays
     * A key has its owner among those that are left: other callers need the same filter.
     */
    int (*filter)(void *user, const struct ringbus_candidate *candidate);
    /**
     * Router: asked for each message to any instance of the target, before the stages. It may
     * change key, tag, method and labels: routing goes by them, while the message itself stays as
     * it was sent. Or it names the instance.
     * @param routing  of the message, as the routers before this one left it
     * @return RINGBUS_HOOK_PASS; RINGBUS_HOOK_REFUSE
     */
    int (*route)(void *user, struct ringbus_routing *routing);
    /**
     * Chooser: asked for each message, with a key or without, to any instance of a target whose
     * balance.mode is custom, or that was targeted with the option custom.
     * @param candidates  whom the stages have left and who is linked; at least one
     * @return index of one of them; RINGBUS_HOOK_PASS; RINGBUS_HOOK_REFUSE. Any other answer is
     *         refused with RINGBUS_E_NO_INSTANCE and counted as bad_choice, as is one whose
     *         instance cannot be sent to: nothing goes elsewhere instead.
     */
    int (*choose)(void *user,
                  const struct ringbus_routing *routing,
                  const struct ringbus_candidate *candidates,
                  unsigned count);
    /** The hooks are taken off, or the handle is closed: the last call. */
    void (*destroy)(void *user);
};

/**
 * Adds hooks. Those of one kind are asked in the order in which they were added: every filter must
 * leave an instance in, routers change what the next one sees until one refuses or names an
 * instance, and of choosers the first that does not pass decides.
 *
 * @param target  path of a cluster (6 elements), which need not be a target yet; NULL: all targets
 * @param hooks   copied; what user points to must live until destroy
 * @return number of the hooks, above 0, for ringbus_unhook(); or
 * @retval RINGBUS_E_PATH      not the path of a cluster
 * @retval RINGBUS_E_ARGUMENT  no function, no name, or RINGBUS_HOOKS_MAX are there already
 * @retval RINGBUS_E_BUSY      inside a hook
 * @retval RINGBUS_E_NO_MEMORY
 * Where it fails, destroy is not called. Cost: the choices of the targets are made anew. A target
 * without router and chooser pays nothing for them when it sends; with one a message takes some
 * 100 ns more, and with a chooser two loads a candidate.
 */
RINGBUS_API int
ringbus_hook(struct ringbus *bus, const char *target, const struct ringbus_hooks *hooks);
/**
 * Takes hooks off, and calls their destroy.
 * @retval 0; RINGBUS_E_ARGUMENT there are no such; RINGBUS_E_BUSY inside a hook
 */
RINGBUS_API int ringbus_unhook(struct ringbus *bus, int hooks);

/**
 * Lists whom a message may go to: all that the stages leave, of the own business and of each that
 * the policy imports, without a preference between them. For who wants to speak to each of them,
 * not to send one message. From the mapped directory, also while ringbusd is away; links are not
 * needed, and filters of this handle count.
 * @param target   path of a cluster (6 elements); it need not be a target
 * @param message  flags, key, tag, method, labels and trace_id are looked at; NULL: it says nothing
 * @param out      room for @p max entries; may be NULL when @p max is 0
 * @return number of instances there are (may be more than @p max); errors as ringbus_explain()
 * Cost: cold; allocates, and copies the snapshots.
 */
RINGBUS_API int ringbus_candidates(struct ringbus *bus,
                                   const char *target,
                                   const struct ringbus_message_options *message,
                                   struct ringbus_instance *out,
                                   size_t max);

#ifdef __cplusplus
}
#endif

#endif
