/* SPDX-License-Identifier: Apache-2.0 */
/* check: every error of a configuration file. */
#include "bus/config.h"
#include "daemon/ctl/ctl.h"
#include "daemon/ctl/file.h"
#include "daemon/ctl/json.h"

#include <stdlib.h>

int rbi_ctl_check(const struct rbi_ctl_args *args)
{
    static struct rbi_config_errors errors; /* too large for the stack of small threads */
    static struct rbi_config config;
    char *text = NULL;
    size_t size = 0;
    int r = rbi_ctl_file_read(args, args->operands[0], &text, &size);
    if (r != RBI_CTL_OK) {
        return r;
    }
    rbi_config_defaults(&config);
    r = rbi_config_parse(text, size, &config, &errors);
    free(text);
    if (r < 0) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
    }
    if (r == 0) {
        if (args->json) {
            struct rbi_ctl_json json;
            rbi_ctl_json_begin(&json, stdout);
            rbi_ctl_json_text(&json, "file", args->operands[0]);
            rbi_ctl_json_bool(&json, "ok", true);
            rbi_ctl_json_end(&json);
        } else {
            printf("%s: ok\n", args->operands[0]);
        }
        return RBI_CTL_OK;
    }
    rbi_ctl_file_errors(args, &errors);
    return RBI_CTL_FAILED;
}
