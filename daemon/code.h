/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CODE_H
#define RINGBUS_DAEMON_CODE_H
/*
 * daemon/code.h - codes of ERROR and REFUSE frames: those values of enum
 * ringbus_error that the daemon says. The daemon does not include the client's header;
 * tests/process/test_daemon_codes.c holds the two together.
 */
enum rbi_code {
    RBI_CODE_NOT_READY = -3,
    RBI_CODE_TIMEOUT = -4,
    RBI_CODE_NO_SERVICE = -10,
    RBI_CODE_NO_INSTANCE = -11,
    RBI_CODE_PEER_GONE = -12,
    RBI_CODE_CLOSED = -14,
    RBI_CODE_UNREACHABLE = -18,
    RBI_CODE_NO_ROUTE = -19,
    RBI_CODE_DENIED = -20,
    RBI_CODE_IN_USE = -21,
    RBI_CODE_QUOTA = -22,
    RBI_CODE_CLASH = -23,
    RBI_CODE_VERSION = -24,
    RBI_CODE_DRAINING = -25,
    RBI_CODE_TOO_BIG = -30,
    RBI_CODE_ARGUMENT = -31,
    RBI_CODE_PATH = -32,
    RBI_CODE_NO_MEMORY = -40,
    RBI_CODE_NO_FDS = -41,
    RBI_CODE_SYSTEM = -42,
    RBI_CODE_BAD_PEER = -50,
};

#endif
