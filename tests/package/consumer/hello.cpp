// SPDX-License-Identifier: Apache-2.0
// The header in C++: options by value, a callback without captures, a handle with a deleter.
#include <ringbus/ringbus.h>

#include <memory>

namespace {
struct closer {
    void operator()(ringbus *bus) const { ringbus_close(bus, 100); }
};

std::unique_ptr<ringbus, closer> open(const char *path, int *count)
{
    ringbus_options options = ringbus_options_default();
    ringbus *bus = nullptr;
    options.path = path;
    options.user = count;
    options.on_message = [](ringbus *, const ringbus_message *message, void *user) {
        *static_cast<int *>(user) += static_cast<int>(message->size);
    };
    return std::unique_ptr<ringbus, closer>(ringbus_open(&options, &bus) == 0 ? bus : nullptr);
}
} // namespace

int main()
{
    int bytes = 0;
    const auto bus = open("/demo/local/pc/w1/hello/self/1", &bytes);
    ringbus_addr self;
    if (!bus || ringbus_self(bus.get(), &self) != 0 ||
        ringbus_send(bus.get(), &self, 0, "hello", 5, 0) != 1) {
        return 1;
    }
    for (int i = 0; i < 100 && bytes == 0; i++) {
        ringbus_poll(bus.get(), 10);
    }
    ringbus_options init = RINGBUS_OPTIONS_INIT;
    return bytes == 5 && init.struct_size == sizeof init ? 0 : 1;
}
