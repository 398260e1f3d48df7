/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, options and exit codes: the one place that knows them all. */
#include "daemon/ctl/ctl.h"

#include <string.h>

#define RBI_CTL_BUS    (RBI_CTL_JSON | RBI_CTL_SOCKET | RBI_CTL_WAIT)
#define RBI_CTL_CHANGE (RBI_CTL_BUS | RBI_CTL_EXPECT | RBI_CTL_WHY)

const struct rbi_ctl_command rbi_ctl_commands[] = {
    {"status", "", 0, 0, RBI_CTL_BUS, "what the daemon says about itself",
     "Prints the daemon's figures, one name and value a line.\n", rbi_ctl_status},
    {"metrics", "[PREFIX]", 0, 1, RBI_CTL_SOCKET | RBI_CTL_WAIT,
     "the same, and figures of instances, for Prometheus",
     "In its text format, for a collector that reads files or runs commands. Series: a fixed\n"
     "number, and some for each instance at or below PREFIX that is registered now, each cluster\n"
     "that was called, each alarm, and each other host.\n",
     rbi_ctl_metrics},
    {"ls", "[PREFIX]", 0, 1,
     RBI_CTL_BUS | RBI_CTL_ALL | RBI_CTL_SET | RBI_CTL_IDC | RBI_CTL_TAG | RBI_CTL_STATE,
     "endpoints below a prefix",
     "Prints one line for each endpoint: path, state, health as the daemon found it (ok,\n"
     "shielded, probed, ramp), weight, links, process, age, program.\n"
     "Endpoints without a path of their own are left out unless --all is given; --set, --idc,\n"
     "--tag and --state leave out those of another set, at another location (group/zone, or all\n"
     "of a group), without that tag, in another state or health.\n",
     rbi_ctl_ls},
    {"deps", "[PREFIX]", 0, 1, RBI_CTL_BUS | RBI_CTL_ALL, "which cluster calls which",
     "One line for each pair of clusters between which there are links, the one that asked for\n"
     "them first, when one of them lies at or below PREFIX. With --all of instances.\n",
     rbi_ctl_deps},
    {"alarms", "[PREFIX]", 0, 1, RBI_CTL_BUS | RBI_CTL_ALL, "alarms that fire, or are about to",
     "Of the rules in \"alarms\" of the configuration, for clusters at or below PREFIX: pending,\n"
     "firing, or clearing, since when, the figure as it is now, and the threshold. With --all\n"
     "those too with which all is well.\n",
     rbi_ctl_alarms},
    {"show", "PATH", 1, 1, RBI_CTL_BUS, "endpoints in full: state, links, counters",
     "PATH is an instance, a cluster or a shorter prefix. The counters come from the memory\n"
     "of the endpoints themselves; in text, those that are 0 are left out.\n",
     rbi_ctl_show},
    {"explain", "CALLER CLUSTER", 2, 2,
     RBI_CTL_BUS | RBI_CTL_KEY | RBI_CTL_TAG | RBI_CTL_METHOD | RBI_CTL_LABELS | RBI_CTL_SET |
         RBI_CTL_IDC,
     "which instances would get a message, and why not the others",
     "CALLER is the path of an instance that is there, whose set and location count, or - for\n"
     "one that has none but those given. Prints each stage of routing in its order, how many\n"
     "instances came to it and were left, after it each instance that fell out (-), or would\n"
     "have if the rule was no dry run (?), with reason and rule, who is in, and at the end what\n"
     "dry runs would have done so far.\n"
     "What rights the caller has is asked of the daemon, which tells that to the caller's own\n"
     "user and root; whom it has none to falls out at acl. Nothing is sent.\n",
     rbi_ctl_explain},
    {"describe", "CLUSTER", 1, 1, RBI_CTL_BUS, "whom to ask about a cluster, and what it is for",
     "As the configuration says, in \"describe\"; whether anybody is there or not.\n",
     rbi_ctl_describe},
    {"watch", "[PREFIX]", 0, 1, RBI_CTL_BUS | RBI_CTL_COUNT,
     "changes of instances, nodes and alarms, as they come",
     "Begins with a line for each instance, node and alarm that is there; --count ends after as\n"
     "many lines. PREFIX may be a node's path too.\n",
     rbi_ctl_watch},
    {"hosts", "", 0, 0, RBI_CTL_BUS, "other hosts that are known",
     "One line for each: how far it is (up, connecting, refused or down, of a neighbour; "
     "reachable,\n"
     "by way of others), since when, the neighbour that leads there, what the way costs, round\n"
     "trip, instances of it that are seen here, links, and what keeps it from being reached.\n",
     rbi_ctl_hosts},
    {"routes", "[HOST]", 0, 1, RBI_CTL_BUS, "ways from this host, or another, to all",
     "The neighbour that each begins with, what it costs, how long it has been this one, and whom\n"
     "it leads over. Ways from other hosts are what those find who know what is known here.\n",
     rbi_ctl_routes},
    {"route", "HOST HOST", 2, 2, RBI_CTL_BUS, "the way from one host to another",
     "Ends with 4 when there is none.\n", rbi_ctl_route},
    {"bridge", "status|confirm [HOST]", 1, 2, RBI_CTL_BUS, "what passes between hosts",
     "status: the bridge of this host, and for each neighbour what was sent and received, sent\n"
     "again, came twice, went through for others, and waits.\n"
     "confirm: instances of HOST, or of all, that are out of sight are gone, and no longer waited\n"
     "for. For who may administer the daemon.\n",
     rbi_ctl_bridge},
    {"get", "PATH", 1, 1, RBI_CTL_BUS, "what is at a path of the node tree, and below it",
     "A node: its value, revision and creator; then the names right below the path. Of a cluster\n"
     "that is known but has nobody in it says so, and ends with 4 too (NO_INSTANCE); of what is\n"
     "not there at all NO_SERVICE.\n",
     rbi_ctl_get},
    {"create", "PATH [VALUE]", 1, 2, RBI_CTL_BUS, "makes a node, or a cluster known",
     "Nodes are below \"meta\": /App/.../meta/NAME, of a prefix or a cluster, up to 4 elements\n"
     "deep. VALUE: up to 1024 bytes; - is standard input. It stays, over restarts too, until rm.\n"
     "The path of a cluster: it is known from now on, and waited for.\n",
     rbi_ctl_create},
    {"set", "PATH VALUE", 2, 2, RBI_CTL_BUS | RBI_CTL_REVISION, "gives a node another value",
     "VALUE: up to 1024 bytes; - is standard input. Whose it is, and how long it lives, stays.\n",
     rbi_ctl_set},
    {"rm", "PATH", 1, 1, RBI_CTL_BUS | RBI_CTL_REVISION,
     "removes a node, an empty cluster, a dead instance",
     "Not while something is below it. An instance that lives goes with its process; one that an\n"
     "earlier daemon knew and that has not come back is forgotten.\n",
     rbi_ctl_rm},
    {"send", "PATH[/INSTANCE]", 1, 1,
     RBI_CTL_BUS | RBI_CTL_KEY | RBI_CTL_LINES | RBI_CTL_TAG | RBI_CTL_METHOD | RBI_CTL_LABELS,
     "sends standard input as one message, or as one a line",
     "PATH is a cluster (one of its instances takes each message: the one that has the key,\n"
     "or as the policy of the cluster says) or an instance. Waits until the receiver is\n"
     "ready, waits again whenever its lane is full, a limit is reached or the owner of the\n"
     "key is restarted, and ends when everything was consumed.\n",
     rbi_ctl_send},
    {"recv", "PATH[/INSTANCE]", 1, 1, RBI_CTL_BUS | RBI_CTL_LINES | RBI_CTL_COUNT | RBI_CTL_ECHO,
     "is an instance: prints what it receives",
     "Registers as that instance; with a cluster, the process id names the instance. Requests\n"
     "are printed like other messages and answered with nothing, or with --echo their own\n"
     "content. Ends at --count messages, or at SIGINT or SIGTERM after all that was sent.\n",
     rbi_ctl_recv},
    {"call", "PATH[/INSTANCE]", 1, 1,
     RBI_CTL_BUS | RBI_CTL_KEY | RBI_CTL_TAG | RBI_CTL_METHOD | RBI_CTL_LABELS | RBI_CTL_TRACE,
     "sends standard input as a request, prints the reply",
     "--timeout is for the receiver to be ready, and then again for the answer.\n"
     "--trace follows request and reply from host to host, and says on standard error for each:\n"
     "when this host heard of it, since the request was sent; the host, and what happened there;\n"
     "how old the message was there, without its time on the wires that came before (of a reply:\n"
     "since its request was sent). Hosts of earlier releases tell nothing.\n",
     rbi_ctl_call},
    {"ping", "PATH[/INSTANCE]", 1, 1, RBI_CTL_BUS | RBI_CTL_COUNT | RBI_CTL_INTERVAL | RBI_CTL_KEY,
     "measures the round trip of empty requests",
     "Every answer counts, also the failure that an endpoint without a handler answers: both\n"
     "show that its loop runs. A program that takes requests and never answers cannot be\n"
     "measured. Sends 10 unless --count says how many, one every 100ms unless --interval says\n"
     "otherwise; with --interval 0 the next follows the answer.\n",
     rbi_ctl_ping},
    {"drain", "PATH/INSTANCE", 1, 1, RBI_CTL_BUS, "takes an instance out of dispatch, in order",
     "The instance is shown as DRAINING and takes nothing new; senders acknowledge that, what\n"
     "they had sent is handled, and what it had sent is read. Prints what it waits for as that\n"
     "changes, and ends when it is drained, or has left: it may be stopped then without loss.\n"
     "It stays drained, also when the time is over before, until undrain or its next start.\n"
     "For its own user and root.\n",
     rbi_ctl_drain},
    {"undrain", "PATH/INSTANCE", 1, 1, RBI_CTL_BUS, "puts a drained instance back into dispatch",
     "Ends when it is READY. An instance that drains by its own will stays as it is, and the\n"
     "time is over then.\n",
     rbi_ctl_undrain},
    {"unshield", "PATH/INSTANCE", 1, 1, RBI_CTL_BUS, "lets a shielded instance back at once",
     "Forgets what the calls to it have said so far: it gets messages again, with all of its\n"
     "weight. One that goes on failing is shielded again. Says whether something was held\n"
     "against it. For its own user and root, and whom the rules let administer it.\n",
     rbi_ctl_unshield},
    {"apply", "FILE", 1, 1, RBI_CTL_CHANGE | RBI_CTL_DRY_RUN,
     "makes clusters, instances, realms, rights and alarms hold",
     "FILE, or - for standard input, is YAML with these sections. It holds at once, above the\n"
     "daemon's own file and below single changes (isolate, weight and the like), in the place of\n"
     "what was applied before, and over restarts. All of it or nothing: errors are printed as\n"
     "FILE:LINE:COLUMN: text. Prints the version, and how many clusters and instances it is\n"
     "about. For its own user and root, or as the rules of rights say; the same for all below.\n",
     rbi_ctl_apply},
    {"diff", "FILE", 1, 1, RBI_CTL_BUS, "what apply would change of what was applied",
     "Prints each value as it is (-) and as it would be (+), whatever their order in the texts.\n",
     rbi_ctl_diff},
    {"history", "", 0, 0, RBI_CTL_BUS | RBI_CTL_COUNT, "versions of what was applied",
     "The newest first, 16 at most; * marks the one that holds.\n", rbi_ctl_history},
    {"rollback", "VERSION", 1, 1, RBI_CTL_CHANGE, "makes an earlier version hold again",
     "As a new version: with what was applied then, and the single changes of then.\n",
     rbi_ctl_rollback},
    {"isolate", "PATH/INSTANCE", 1, 1, RBI_CTL_CHANGE | RBI_CTL_OFF,
     "takes an instance out of dispatch at once",
     "It gets nothing from whoever picks; its own path still reaches it. Holds for all its lives,\n"
     "also when it is not there yet, until --off.\n",
     rbi_ctl_isolate},
    {"stage", "PATH/INSTANCE", 1, 1, RBI_CTL_CHANGE | RBI_CTL_OFF, "keeps an instance for tests",
     "It is reached by its own path, and by messages tagged \"test\", until --off.\n",
     rbi_ctl_stage},
    {"weight", "PATH/INSTANCE WEIGHT", 2, 2, RBI_CTL_CHANGE, "gives an instance another weight",
     "0 to 1000 in the place of what it says itself; \"own\": what it says counts again.\n",
     rbi_ctl_weight},
    {"move", "PATH/INSTANCE", 1, 1,
     RBI_CTL_CHANGE | RBI_CTL_SET | RBI_CTL_IDC | RBI_CTL_TAGS | RBI_CTL_OFF,
     "gives an instance another set, location, tags",
     "In the place of what it says itself; nothing is connected anew. --off: what it says counts\n"
     "again, all three.\n",
     rbi_ctl_move},
    {"limit", "CLUSTER ID RATE[/BURST]", 3, 3, RBI_CTL_CHANGE, "changes a limit, or makes one",
     "CLUSTER is a path, or a pattern of several. RATE is what the limit with this id allows a\n"
     "second; a new one is of messages, for each caller. \"off\": as the texts say again.\n",
     rbi_ctl_limit},
    {"mock", "CLUSTER METHOD on|off", 3, 3, RBI_CTL_CHANGE, "switches the answers of a mock",
     "Of the first entry of degrade with the action mock that is about METHOD, a number; or of\n"
     "the entry with that id.\n",
     rbi_ctl_mock},
    {"bench", "", 0, 0,
     RBI_CTL_BUS | RBI_CTL_SECONDS | RBI_CTL_SIZE | RBI_CTL_CPUS | RBI_CTL_BUSY | RBI_CTL_SLEEP |
         RBI_CTL_PATH,
     "measures this bus on this machine, in 5 seconds",
     "Two processes of its own register below PATH, on two cores, and exchange messages; each\n"
     "one is compared in full with what was sent. Round trips, one way, requests, and the time\n"
     "to open an endpoint and to introduce two, both busy (polling) and sleeping (woken by the\n"
     "kernel), beside the limit: what the bare machine takes in the same two processes. Says\n"
     "whether others used these cores meanwhile. Takes two cores for that long.\n",
     rbi_ctl_bench},
    {"check", "FILE", 1, 1, RBI_CTL_JSON, "checks a configuration of ringbusd",
     "Prints every error as FILE:LINE:COLUMN: text; FILE may be - for standard input.\n",
     rbi_ctl_check},
    {"token", "", 0, 0,
     RBI_CTL_JSON | RBI_CTL_SUBJECT | RBI_CTL_TARGET | RBI_CTL_TTL | RBI_CTL_KEY_FILE,
     "prints a token for clusters that ask for one",
     "Good for whoever registers under a path that --subject describes, to be linked to the\n"
     "instances that --target describes, for the time of --ttl: both are globs, as in rules.\n"
     "--key names the file that tokens.key of ringbusd names; it must be closed to others.\n"
     "No daemon is asked. Whoever has the token can use it: keep it as you would the key.\n",
     rbi_ctl_token},
    {"version", "", 0, 0, RBI_CTL_JSON, "prints the version", "", rbi_ctl_version},
    {"help", "[COMMAND]", 0, 1, RBI_CTL_JSON, "prints this, or the help of a command", "",
     rbi_ctl_help},
};
const unsigned rbi_ctl_command_count = (unsigned)RBI_ARRAY_SIZE(rbi_ctl_commands);

const struct rbi_ctl_option rbi_ctl_options[] = {
    {RBI_CTL_JSON, "--json", NULL, "prints JSON, one object a line"},
    {RBI_CTL_SOCKET, "--socket", "FILE", "the daemon's socket"},
    {RBI_CTL_WAIT, "--timeout", "TIME", "longest wait for the daemon or a receiver; default 5s"},
    {RBI_CTL_KEY, "--key", "TEXT", "chooses the instance: the same key, the same instance"},
    {RBI_CTL_LINES, "--lines", NULL, "a message is a line, without its newline"},
    {RBI_CTL_COUNT, "--count", "N", "ends after N"},
    {RBI_CTL_INTERVAL, "--interval", "TIME", "time between two requests"},
    {RBI_CTL_ECHO, "--echo", NULL, "answers each request with its own content"},
    {RBI_CTL_ALL, "--all", NULL, "shows anonymous endpoints too"},
    {RBI_CTL_SECONDS, "--seconds", "N", "time to measure, 1 to 60; default 5"},
    {RBI_CTL_SIZE, "--size", "BYTES,...", "up to 8 sizes, 16 to 1048576; default 48,1024,65536"},
    {RBI_CTL_CPUS, "--cpus", "A,B", "cores of the two sides; default two that share none"},
    {RBI_CTL_BUSY, "--busy", NULL, "only busy"},
    {RBI_CTL_SLEEP, "--sleep", NULL, "only sleeping"},
    {RBI_CTL_PATH, "--path", "PATH", "5 elements; default /Bench/local/host/w0/g0"},
    {RBI_CTL_TAG, "--tag", "TAG", "of the message, or of instances to list"},
    {RBI_CTL_METHOD, "--method", "N", "of the message"},
    {RBI_CTL_LABELS, "--labels", "N,...", "of the message, up to 4"},
    {RBI_CTL_SET, "--set", "SET", "of the caller, to move to, or to list, name.area.group"},
    {RBI_CTL_IDC, "--idc", "IDC",
     "location of the caller, to move to, or to list: group, group/zone"},
    {RBI_CTL_STATE, "--state", "STATE", "READY, DRAINING ..., or a health: ok, shielded ..."},
    {RBI_CTL_TAGS, "--tags", "TAG,...", "tags to move to"},
    {RBI_CTL_OFF, "--off", NULL, "takes it back"},
    {RBI_CTL_DRY_RUN, "--dry-run", NULL, "only checks, and says what it would be about"},
    {RBI_CTL_EXPECT, "--expect", "VERSION", "only if this version holds now"},
    {RBI_CTL_REVISION, "--revision", "N", "only while the node has this revision"},
    {RBI_CTL_WHY, "--why", "TEXT", "for the history"},
    {RBI_CTL_SUBJECT, "--subject", "PATH", "token: who may use it, a path or a glob"},
    {RBI_CTL_TARGET, "--target", "GLOB", "token: the instances that it opens"},
    {RBI_CTL_TTL, "--ttl", "TIME",
     "token: how long it is good, as in 90s, 30m, 1h, 7d; default 1h"},
    {RBI_CTL_KEY_FILE, "--key", "FILE", "token: the file of the key"},
    {RBI_CTL_TRACE, "--trace", NULL, "shows each host that the message passes, and its reply"},
};
const unsigned rbi_ctl_option_count = (unsigned)RBI_ARRAY_SIZE(rbi_ctl_options);

const struct rbi_ctl_command *rbi_ctl_command_find(const char *name)
{
    for (unsigned i = 0; i < rbi_ctl_command_count; i++) {
        if (strcmp(rbi_ctl_commands[i].name, name) == 0) {
            return &rbi_ctl_commands[i];
        }
    }
    return NULL;
}

const char *rbi_ctl_exit_text(int code)
{
    static const char *const texts[] = {
        "done",
        "failed",
        "the command line is wrong",
        "no daemon can be reached",
        "no such path, or nobody is there",
        "the time is over",
        "denied by the daemon or a limit",
    };
    return code >= 0 && (size_t)code < RBI_ARRAY_SIZE(texts) ? texts[code] : NULL;
}
