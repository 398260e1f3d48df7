/* SPDX-License-Identifier: Apache-2.0 */
/* version and help, both from the tables of commands.c. */
#include "daemon/ctl/ctl.h"
#include "daemon/ctl/json.h"

#include <ringbus/ringbus.h>
#include <string.h>

int rbi_ctl_version(const struct rbi_ctl_args *args)
{
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "version", ringbus_version());
        rbi_ctl_json_end(&json);
    } else {
        printf("ringbusctl %s\n", ringbus_version());
    }
    return RBI_CTL_OK;
}

static void usage_print(const struct rbi_ctl_command *command)
{
    printf("usage: ringbusctl %s [OPTION...]%s%s\n", command->name,
           command->operands[0] != '\0' ? " " : "", command->operands);
}

static void options_print(unsigned mask)
{
    for (unsigned i = 0; i < rbi_ctl_option_count; i++) {
        const struct rbi_ctl_option *option = &rbi_ctl_options[i];
        if ((mask & option->bit) != 0) {
            char name[32];
            snprintf(name, sizeof name, "%s%s%s", option->name, option->value != NULL ? " " : "",
                     option->value != NULL ? option->value : "");
            printf("  %-16s %s\n", name, option->text);
        }
    }
}

static void command_print(const struct rbi_ctl_command *command)
{
    usage_print(command);
    printf("\n%s: %s.\n%s\noptions:\n", command->name, command->summary, command->details);
    options_print(command->options);
}

static void all_print(void)
{
    puts("usage: ringbusctl COMMAND [OPTION...] [ARGUMENT]\n\ncommands:");
    for (unsigned i = 0; i < rbi_ctl_command_count; i++) {
        const struct rbi_ctl_command *command = &rbi_ctl_commands[i];
        char name[32];
        snprintf(name, sizeof name, "%s %s", command->name, command->operands);
        printf("  %-21s %s\n", name, command->summary);
    }
    puts("\noptions (ringbusctl help COMMAND says which it has):");
    options_print(~0U);
    puts("\nTIME is a number with its unit: 500ms, 5s, 2m; at most 60m.\n"
         "The socket is that of --socket, else $RINGBUS_SOCKET, else /run/ringbus/bus.sock,\n"
         "else $XDG_RUNTIME_DIR/ringbus/bus.sock.\n\nexit codes:");
    for (int code = 0; rbi_ctl_exit_text(code) != NULL; code++) {
        printf("  %d  %s\n", code, rbi_ctl_exit_text(code));
    }
}

static void command_json(const struct rbi_ctl_command *command)
{
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "command", command->name);
    rbi_ctl_json_text(&json, "operands", command->operands);
    rbi_ctl_json_text(&json, "summary", command->summary);
    rbi_ctl_json_open(&json, "options", '[');
    for (unsigned i = 0; i < rbi_ctl_option_count; i++) {
        if ((command->options & rbi_ctl_options[i].bit) != 0) {
            rbi_ctl_json_text(&json, NULL, rbi_ctl_options[i].name);
        }
    }
    rbi_ctl_json_close(&json, ']');
    rbi_ctl_json_end(&json);
}

int rbi_ctl_help(const struct rbi_ctl_args *args)
{
    const struct rbi_ctl_command *only = NULL;
    if (args->operand_count == 1) {
        only = rbi_ctl_command_find(args->operands[0]);
        if (only == NULL) {
            return rbi_ctl_fail(args, RBI_CTL_USAGE, "no command '%s'", args->operands[0]);
        }
    }
    if (args->json) {
        for (unsigned i = 0; i < rbi_ctl_command_count; i++) {
            if (only == NULL || only == &rbi_ctl_commands[i]) {
                command_json(&rbi_ctl_commands[i]);
            }
        }
    } else if (only != NULL) {
        command_print(only);
    } else {
        all_print();
    }
    return RBI_CTL_OK;
}
