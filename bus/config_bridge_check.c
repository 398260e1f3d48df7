/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config_bridge_check.c - what fits together in the section "bridge": names of hosts,
 * addresses, files, and that nobody talks in plain text beyond this host.
 */
#include "bus/config_bridge.h"
#include "bus/config_reader.h"

#include <stdlib.h>
#include <string.h>

/** A check that is under way. */
struct check {
    const struct rbi_tree *tree;
    uint32_t section;
    const struct rbi_bridge_config *config;
    struct rbi_config_errors *errors;
};

/** Where a key of a map stands, or that map. */
static struct rbi_config_place place_of(const struct check *c, uint32_t map, const char *key)
{
    const uint32_t node = rbi_tree_find(c->tree, map, key);
    return c->tree->nodes[node ? node : map].place;
}

/** Node of item @p idx of a list of the section; the section itself when there is none. */
static uint32_t item_of(const struct check *c, const char *list, uint32_t idx)
{
    const uint32_t parent = rbi_tree_find(c->tree, c->section, list);
    uint32_t item = parent ? rbi_tree_first(c->tree, parent) : 0;
    for (uint32_t i = 0; item && i < idx; i++) {
        item = rbi_tree_next(c->tree, parent, item);
    }
    return item ? item : c->section;
}

/* ---- addresses ------------------------------------------------------------------------------ */

/** An address in its parts: what stands before the last colon, without brackets. */
struct address {
    const char *host;
    size_t length;
    unsigned long port;
};

/** Characters of names and of numeric addresses. */
static bool host_is_plain(const char *host, size_t length, bool bracketed)
{
    for (size_t i = 0; i < length; i++) {
        const char c = host[i];
        const bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '-';
        if (!name && !(bracketed && (c == ':' || c == '%'))) {
            return false;
        }
    }
    return length > 0;
}

/** @return whether it is HOST:PORT or [ADDRESS]:PORT */
static bool address_parse(const char *text, struct address *out)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon[1] < '0' || colon[1] > '9' || strlen(colon + 1) > 5) {
        return false;
    }
    char *end = NULL;
    out->port = strtoul(colon + 1, &end, 10);
    out->host = text;
    out->length = (size_t)(colon - text);
    const bool bracketed = out->length >= 2 && text[0] == '[' && text[out->length - 1] == ']';
    if (bracketed) {
        out->host++;
        out->length -= 2;
    }
    return *end == '\0' && out->port <= UINT16_MAX &&
           host_is_plain(out->host, out->length, bracketed);
}

static bool address_is_loopback(const struct address *address)
{
    static const char v4[] = "127.";
    bool digits = address->length >= sizeof(v4) && memcmp(address->host, v4, sizeof(v4) - 1) == 0;
    for (size_t i = 0; digits && i < address->length; i++) {
        const char c = address->host[i];
        digits = (c >= '0' && c <= '9') || c == '.';
    }
    return digits || rbi_config_same(address->host, address->length, "::1", 3) ||
           rbi_config_same(address->host, address->length, "localhost", 9);
}

static void
check_address(const struct check *c, struct rbi_config_place place, const char *text, bool connects)
{
    struct address address;
    char found[RBI_CONFIG_QUOTE_MAX];
    if (!address_parse(text, &address) || (connects && address.port == 0)) {
        rbi_config_error_add(
            c->errors, place,
            "bridge: expected an address such as 10.0.0.2:7740 or [fd00::2]:7740, found %s",
            rbi_config_quote(text, strlen(text), found, sizeof(found)));
    } else if (c->config->insecure && !address_is_loopback(&address)) {
        rbi_config_error_add(c->errors, place,
                             "bridge: with insecure: true only loopback addresses (127.0.0.1, "
                             "[::1]), found %s",
                             rbi_config_quote(text, strlen(text), found, sizeof(found)));
    }
}

/* ---- hosts ---------------------------------------------------------------------------------- */

static void check_host(const struct check *c, struct rbi_config_place place, const char *name)
{
    char found[RBI_CONFIG_QUOTE_MAX];
    if (!rbi_host_name_valid(name, strlen(name))) {
        rbi_config_error_add(
            c->errors, place,
            "bridge: expected a host name of lower case letters, digits, dots and hyphens, found "
            "%s",
            rbi_config_quote(name, strlen(name), found, sizeof(found)));
    }
}

static void check_peers(const struct check *c)
{
    const struct rbi_bridge_config *config = c->config;
    for (uint32_t i = 0; i < config->peer_count; i++) {
        const uint32_t item = item_of(c, "peers", i);
        const struct rbi_bridge_peer *peer = &config->peers[i];
        const struct rbi_config_place place = place_of(c, item, "host");
        check_host(c, place, peer->host);
        if (strcmp(peer->host, config->host) == 0) {
            rbi_config_error_add(c->errors, place, "bridge: %s is this host itself", peer->host);
        }
        if (rbi_bridge_config_peer(config, peer->host) != peer) {
            rbi_config_error_add(c->errors, place, "bridge: %s is a peer already", peer->host);
        }
        if (peer->address[0] != '\0') {
            check_address(c, place_of(c, item, "address"), peer->address, true);
        }
    }
}

/** A pattern that no path can be like is a mistake. */
static void
check_globs(const struct check *c, const char *list, const struct rbi_bridge_globs *globs)
{
    char found[RBI_CONFIG_QUOTE_MAX];
    for (uint32_t i = 0; i < globs->count; i++) {
        const char *glob = globs->items[i];
        if (glob[0] != '/') {
            rbi_config_error_add(c->errors, c->tree->nodes[item_of(c, list, i)].place,
                                 "bridge.%s: expected a pattern that begins with a slash, found %s",
                                 list, rbi_config_quote(glob, strlen(glob), found, sizeof(found)));
        }
    }
}

static void check_files(const struct check *c)
{
    const struct rbi_bridge_config *config = c->config;
    const struct {
        const char *name;
        const char *value;
    } files[] = {{"certificate", config->certificate}, {"key", config->key}, {"ca", config->ca}};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(files) && !config->insecure; i++) {
        if (files[i].value[0] == '\0') {
            rbi_config_error_add(c->errors, place_of(c, c->section, files[i].name),
                                 "bridge.%s: needed, unless insecure: true", files[i].name);
        }
    }
}

bool rbi_config_bridge_take(const struct rbi_tree *tree,
                            struct rbi_bridge_config *out,
                            struct rbi_config_errors *errors)
{
    const unsigned before = errors->count;
    const uint32_t section = tree->count > 0 ? rbi_tree_find(tree, 0, "bridge") : 0;
    rbi_bridge_config_defaults(out);
    if (!section) {
        return true;
    }
    rbi_tree_apply(tree, section, out, NULL, NULL);
    out->given = true;
    const struct check c = {.tree = tree, .section = section, .config = out, .errors = errors};
    check_host(&c, place_of(&c, section, "host"), out->host);
    for (uint32_t i = 0; i < out->listen_count; i++) {
        check_address(&c, tree->nodes[item_of(&c, "listen", i)].place, out->listen[i], false);
    }
    check_peers(&c);
    check_globs(&c, "export", &out->export);
    check_globs(&c, "import", &out->import);
    check_files(&c);
    return errors->count == before;
}
