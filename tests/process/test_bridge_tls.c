/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a bridge believes. Scenario 115: a wrong authority, a wrong name, an empty file are refused
 * with the reason, and the old ones stay in use; who is revoked is cut off; nothing is resumed, so
 * each connection is checked anew. And who comes without a certificate, with an older TLS, with
 * none. Lives of seconds are in test_bridge_renewal.c.
 */
#include "support/machine.h"
#include "support/net.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct net net;

static int setup(void **state)
{
    net_up(&net, *state);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    net_down(&net);
    return 0;
}

static void dial(void)
{
    net_open(&net.b);
    net_dial(&net.a, &net.b, rbi_door_address(net.b.door));
}

static const char *wanted;

static bool dial_says(struct net *at)
{
    struct rbi_dial_report report;
    rbi_dial_report(at->a.dial, &report);
    return strstr(report.why, wanted) && !at->b.conn;
}

/** The dialling host comes to know this, and nobody is connected for good. */
static void expect_refusal(const char *why)
{
    wanted = why;
    if (!net_until(&net, dial_says)) {
        struct rbi_dial_report report;
        rbi_dial_report(net.a.dial, &report);
        fail_msg("wanted \"%s\", got \"%s\"", why, report.why);
    }
}

static void exchange(void)
{
    assert_true(net_until(&net, net_connected));
    net.a.sent = net.b.received = 0;
    assert_int_equal(net_send(&net.a, 100000), 100000);
    while (net.b.received < net.a.sent) {
        assert_int_equal(rbi_loop_turn(net.loop, 1000000), 0);
    }
    assert_false(net.b.wrong);
}

/* ---- refused handshakes ---------------------------------------------------------------- */

/** Gives a host a certificate of an authority that the other one does not know. */
static void issue_by_stranger(struct net_host *host)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/stranger", net.directory);
    struct certs_authority *stranger = certs_authority("stranger", path);
    certs_issue(stranger, host->name, -60, 3600, net_file(host, "certificate"),
                net_file(host, "key"));
    certs_authority_free(stranger);
    net_rename(&net, host, host->name);
}

static void test_a_wrong_authority_is_refused(void **state)
{
    (void)state;
    issue_by_stranger(&net.b);
    dial();
    expect_refusal("certificate of the peer: unable to get local issuer certificate");
}

static void test_a_wrong_authority_of_who_dials_is_told_to_it(void **state)
{
    (void)state;
    issue_by_stranger(&net.a);
    dial();
    expect_refusal("the peer does not believe who has signed our certificate");
}

static void test_a_wrong_name_is_refused(void **state)
{
    (void)state;
    certs_issue(net.authority, "gamma", -60, 3600, net_file(&net.b, "certificate"),
                net_file(&net.b, "key"));
    net_rename(&net, &net.b, "gamma");
    dial();
    expect_refusal("certificate of the peer does not name beta");
}

static void test_the_common_name_and_patterns_are_no_names(void **state)
{
    (void)state;
    /* "host" is the common name; patterns match nothing but themselves. */
    certs_issue(net.authority, "*,beta.example,b*,gamma", -60, 3600,
                net_file(&net.b, "certificate"), net_file(&net.b, "key"));
    net_rename(&net, &net.b, "gamma");
    dial();
    expect_refusal("certificate of the peer does not name beta");
}

static void test_who_is_no_peer_is_refused(void **state)
{
    (void)state;
    certs_issue(net.authority, "gamma", -60, 3600, net_file(&net.a, "certificate"),
                net_file(&net.a, "key"));
    net_rename(&net, &net.a, "gamma");
    dial();
    expect_refusal("the peer does not take our certificate");
}

static void test_one_of_several_names_is_the_peer(void **state)
{
    (void)state;
    certs_issue(net.authority, "other,gamma,alpha", -60, 3600, net_file(&net.a, "certificate"),
                net_file(&net.a, "key"));
    net_rename(&net, &net.a, "gamma");
    dial();
    exchange();
    assert_string_equal(net.b.peer, "alpha");
    assert_true(rbi_conn_names(net.b.conn, "gamma"));
    assert_false(rbi_conn_names(net.b.conn, "delta"));
}

static void test_certificates_of_other_times_are_refused(void **state)
{
    (void)state;
    certs_issue(net.authority, "beta", 3600, 7200, net_file(&net.b, "certificate"),
                net_file(&net.b, "key"));
    net_rename(&net, &net.b, "beta");
    dial();
    expect_refusal("certificate of the peer: certificate is not yet valid");
}

/* ---- files ----------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/** Loads what is there now; it is refused for this reason, and the old ones go on. */
static void expect_refused_files(const char *reason)
{
    char why[RBI_TLS_WHY_MAX + 1U] = "";
    const int64_t expires = rbi_tls_expires(net.b.terms.tls);
    assert_int_equal(rbi_tls_reload(net.b.terms.tls, NULL, why), -EINVAL);
    if (!strstr(why, reason)) {
        fail_msg("wanted \"%s\", got \"%s\"", reason, why);
    }
    assert_int_equal(rbi_tls_expires(net.b.terms.tls), expires);
    exchange();
    rbi_conn_cut(net.b.conn, "again"); /* a new one is made with the old ones */
    net.b.conn = net.a.conn = NULL;
    exchange();
}

static void test_bad_files_are_refused_and_the_old_stay_in_use(void **state)
{
    (void)state;
    char keep[2][128];
    dial();
    exchange();
    (void)snprintf(keep[0], sizeof(keep[0]), "%s", net_file(&net.b, "certificate"));
    (void)snprintf(keep[1], sizeof(keep[1]), "%s", net_file(&net.b, "key"));

    write_file(keep[0], "");
    expect_refused_files("nothing in PEM form in it");
    write_file(keep[0], "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmg\n");
    expect_refused_files("certificate");
    assert_int_equal(unlink(keep[0]), 0);
    expect_refused_files("No such file or directory");

    certs_issue(net.authority, "beta", -60, 3600, keep[0], net_file(&net.b, "other"));
    expect_refused_files("is not that of the certificate");
    certs_issue(net.authority, "gamma", -60, 3600, keep[0], keep[1]);
    expect_refused_files("it needs DNS:beta as subject alternative name");
    certs_issue(net.authority, "", -60, 3600, keep[0], keep[1]);
    expect_refused_files("it needs DNS:beta as subject alternative name");
    certs_issue(net.authority, "beta", -3600, -60, keep[0], keep[1]);
    expect_refused_files("has expired");

    certs_issue(net.authority, "beta", -60, 7200, keep[0], keep[1]);
    write_file(net_file(&net.b, "ca"), "");
    expect_refused_files("ca ");
}

static void test_paths_of_a_reload_hold_only_if_the_files_do(void **state)
{
    (void)state;
    char why[RBI_TLS_WHY_MAX + 1U] = "";
    dial();
    exchange();
    struct rbi_tls_files files = net_files(&net.b);
    files.crl = "/nonexistent";
    assert_int_equal(rbi_tls_reload(net.b.terms.tls, &files, why), -EINVAL);
    assert_non_null(strstr(why, "crl /nonexistent"));
    assert_int_equal(rbi_tls_reload(net.b.terms.tls, NULL, why), 0); /* without it, as before */
    exchange();
    assert_int_equal(net.b.ups, 1);
}

static bool a_is_down(struct net *at)
{
    return at->a.downs > 0;
}

static void test_who_is_revoked_is_cut_off(void **state)
{
    (void)state;
    char why[RBI_TLS_WHY_MAX + 1U] = "";
    char crl[128];
    const long serial = certs_issue(net.authority, "beta", -60, 3600,
                                    net_file(&net.b, "certificate"), net_file(&net.b, "key"));
    net_rename(&net, &net.b, "beta");
    (void)snprintf(crl, sizeof(crl), "%s", net_file(&net.a, "crl"));
    certs_revoke(net.authority, 0, crl);
    net_rename(&net, &net.a, "alpha");
    dial();
    exchange();
    /* The list is looked at by itself: within a second. */
    certs_revoke(net.authority, serial, crl);
    assert_true(net_until(&net, a_is_down));
    assert_string_equal(net.a.why, "certificate of the peer: certificate revoked");
    expect_refusal("certificate of the peer: certificate revoked");
    certs_issue(net.authority, "beta", -60, 3600, net_file(&net.b, "certificate"),
                net_file(&net.b, "key"));
    assert_int_equal(rbi_tls_reload(net.b.terms.tls, NULL, why), 0);
    exchange();
}

static void test_who_comes_from_an_authority_that_is_taken_away_is_cut_off(void **state)
{
    (void)state;
    char path[128];
    (void)snprintf(path, sizeof(path), "%s", net_file(&net.a, "ca"));
    dial();
    exchange();
    certs_authority_free(certs_authority("another", path));
    assert_true(net_until(&net, a_is_down));
    assert_non_null(strstr(net.a.why, "certificate of the peer: "));
}

/* ---- strangers ------------------------------------------------------------------------- */

struct stranger {
    struct sockaddr_in to;
    char files[3][128]; /* certificate, key, ca; "" = none */
    int version;
    const char *says; /* instead of TLS; NULL */
    SSL_SESSION *session;
    bool shaken; /* the handshake was done */
    bool reused;
    char got; /* of one read: 'e' it was ended, 't' nothing came for a while, 'b' bytes */
    atomic_bool over;
};

static char stranger_read(int fd, SSL *ssl)
{
    char byte[64];
    const struct timeval patience = {.tv_usec = 300000};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    errno = 0;
    const ssize_t got = ssl ? SSL_read(ssl, byte, sizeof(byte)) : recv(fd, byte, sizeof(byte), 0);
    return got > 0 ? 'b' : errno == EAGAIN ? 't' : 'e';
}

static void stranger_shake(struct stranger *self, int fd)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    RBI_ASSERT(ctx && SSL_CTX_set_max_proto_version(ctx, self->version) == 1);
    if (self->files[0][0]) {
        RBI_ASSERT(SSL_CTX_use_certificate_chain_file(ctx, self->files[0]) == 1);
        RBI_ASSERT(SSL_CTX_use_PrivateKey_file(ctx, self->files[1], SSL_FILETYPE_PEM) == 1);
    }
    SSL *ssl = SSL_new(ctx);
    RBI_ASSERT(ssl && SSL_set_fd(ssl, fd) == 1);
    if (self->session) {
        RBI_ASSERT(SSL_set_session(ssl, self->session) == 1);
    }
    self->shaken = SSL_connect(ssl) == 1;
    self->got = self->shaken ? stranger_read(fd, ssl) : 'e';
    self->reused = SSL_session_reused(ssl);
    SSL_SESSION_free(self->session);
    self->session = self->shaken ? SSL_get1_session(ssl) : NULL;
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}

static void *stranger_run(void *context)
{
    struct stranger *self = context;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RBI_ASSERT(connect(fd, (const struct sockaddr *)&self->to, sizeof(self->to)) == 0);
    if (self->says) {
        RBI_ASSERT(send(fd, self->says, strlen(self->says), MSG_NOSIGNAL) > 0);
        self->got = stranger_read(fd, NULL);
        self->got = self->got == 'b' ? stranger_read(fd, NULL) : self->got; /* an alert */
    } else {
        stranger_shake(self, fd);
    }
    (void)close(fd);
    atomic_store(&self->over, true);
    return NULL;
}

static void stranger_visit(struct stranger *self)
{
    pthread_t thread;
    unsigned port = 0;
    assert_int_equal(sscanf(rbi_door_address(net.b.door), "127.0.0.1:%u", &port), 1);
    self->to = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    atomic_store(&self->over, false);
    assert_int_equal(pthread_create(&thread, NULL, stranger_run, self), 0);
    while (!atomic_load(&self->over)) {
        assert_int_equal(rbi_loop_turn(net.loop, 1000000), 0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_strangers_are_refused(void **state)
{
    (void)state;
    net_open(&net.b);
    struct stranger nobody = {.version = TLS1_3_VERSION};
    stranger_visit(&nobody);
    assert_int_equal(nobody.got, 'e'); /* no certificate */
    SSL_SESSION_free(nobody.session);
    struct stranger old = {.version = TLS1_2_VERSION}; /* else a peer */
    (void)snprintf(old.files[0], sizeof(old.files[0]), "%s", net_file(&net.a, "certificate"));
    (void)snprintf(old.files[1], sizeof(old.files[1]), "%s", net_file(&net.a, "key"));
    stranger_visit(&old);
    assert_false(old.shaken);
    struct stranger plain = {.says = "GET / HTTP/1.1\r\n\r\n"};
    stranger_visit(&plain);
    assert_int_equal(plain.got, 'e');
    assert_int_equal(net.b.ups, 0);
}

static void test_nothing_is_resumed(void **state)
{
    (void)state;
    net_open(&net.b);
    struct stranger peer = {.version = TLS1_3_VERSION};
    (void)snprintf(peer.files[0], sizeof(peer.files[0]), "%s", net_file(&net.a, "certificate"));
    (void)snprintf(peer.files[1], sizeof(peer.files[1]), "%s", net_file(&net.a, "key"));
    stranger_visit(&peer);
    assert_true(peer.shaken);
    assert_int_equal(peer.got, 't'); /* and no tickets either */
    assert_int_equal(net.b.ups, 1);
    assert_int_equal(SSL_SESSION_is_resumable(peer.session), 0);
    stranger_visit(&peer);
    assert_true(peer.shaken);
    assert_false(peer.reused);
    assert_int_equal(net.b.ups, 2);
    SSL_SESSION_free(peer.session);
}

static bool hall_was_left(struct net *at)
{
    return at->b.terms.alive == 0;
}

/** More than may show who they are at a time: the first ones go, a peer still comes in. */
static void test_a_full_hall_lets_peers_in(void **state)
{
    (void)state;
    int fds[2 * RBI_DOOR_HALL_MAX];
    unsigned port = 0;
    net_open(&net.b);
    assert_int_equal(sscanf(rbi_door_address(net.b.door), "127.0.0.1:%u", &port), 1);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (const struct sockaddr *)&to, sizeof(to)), 0);
        net_turn_ms(&net, 1);
        assert_in_range(net.b.terms.alive, 0, RBI_DOOR_HALL_MAX + 2);
    }
    net_dial(&net.a, &net.b, rbi_door_address(net.b.door));
    exchange();
    struct rbi_dial_report report;
    rbi_dial_report(net.a.dial, &report);
    assert_int_equal(report.attempts, 1); /* the first one came in */
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
        (void)close(fds[i]);
    }
    net.a.dial = rbi_dial_free(net.a.dial);
    rbi_conn_close(net.a.conn, "done");
    net.a.conn = NULL;
    assert_true(net_until(&net, hall_was_left));
}

#define MODE(test, mode)                                                                           \
    {                                                                                              \
#test " " mode, test, setup, teardown, (void *)(uintptr_t)mode                             \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODE(test_a_wrong_authority_is_refused, "uring tls"),
        MODE(test_a_wrong_authority_of_who_dials_is_told_to_it, "uring tls"),
        MODE(test_a_wrong_authority_of_who_dials_is_told_to_it, "epoll tls"),
        MODE(test_a_wrong_name_is_refused, "uring tls"),
        MODE(test_the_common_name_and_patterns_are_no_names, "uring tls"),
        MODE(test_who_is_no_peer_is_refused, "uring tls"),
        MODE(test_one_of_several_names_is_the_peer, "uring tls"),
        MODE(test_certificates_of_other_times_are_refused, "uring tls"),
        MODE(test_bad_files_are_refused_and_the_old_stay_in_use, "uring tls"),
        MODE(test_paths_of_a_reload_hold_only_if_the_files_do, "uring tls"),
        MODE(test_who_is_revoked_is_cut_off, "uring tls"),
        MODE(test_who_is_revoked_is_cut_off, "epoll tls"),
        MODE(test_who_comes_from_an_authority_that_is_taken_away_is_cut_off, "uring tls"),
        MODE(test_strangers_are_refused, "uring tls"),
        MODE(test_nothing_is_resumed, "uring tls"),
        MODE(test_a_full_hall_lets_peers_in, "uring tls"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
