/* SPDX-License-Identifier: Apache-2.0 */
/* status: the daemon's figures. */
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"

#include <inttypes.h>

/* Above this, readers of JSON round: such figures are ids, and go as text. */
#define JSON_EXACT_MAX (UINT64_C(1) << 53)

struct status_print {
    struct rbi_ctl_json json;
    bool use_json;
};

static int on_row(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct status_print *print = context;
    const struct rbi_wire_row_status *row = &body->row_status;
    (void)fd;
    if (type != RBI_WIRE_ROW_STATUS) {
        return RBI_CTL_OK;
    }
    bool text = row->text.length > 0;
    if (print->use_json && text) {
        rbi_ctl_json_text(&print->json, row->name.bytes, row->text.bytes);
    } else if (print->use_json && row->value > JSON_EXACT_MAX) {
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRIu64, row->value);
        rbi_ctl_json_text(&print->json, row->name.bytes, digits);
    } else if (print->use_json) {
        rbi_ctl_json_u64(&print->json, row->name.bytes, row->value);
    } else if (text) {
        printf("%-32s %s\n", row->name.bytes, row->text.bytes);
    } else {
        printf("%-32s %" PRIu64 "\n", row->name.bytes, row->value);
    }
    return RBI_CTL_OK;
}

int rbi_ctl_status(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    struct status_print print = {.use_json = args->json};
    int r = rbi_ctl_control_init(&control, args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    if (args->json) {
        rbi_ctl_json_begin(&print.json, stdout);
    }
    r = rbi_ctl_control_query(&control, RBI_QUERY_STATUS, "", on_row, &print);
    if (args->json) {
        rbi_ctl_json_end(&print.json);
    }
    rbi_ctl_control_deinit(&control);
    return r;
}
