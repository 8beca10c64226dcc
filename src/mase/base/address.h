// SPDX-License-Identifier: Apache-2.0
// Addresses that may carry a password, "postgresql://user:secret@host/db?sslpassword=...", and what
// of them may be shown and kept. Everything that is printed, thrown or written goes through here.
#pragma once

#include <string>

namespace mase {

class Value;

// The whole text is one address, well formed or not: of one that cannot be taken apart for certain
// everything up to the host is hidden.
std::string masked_address(const std::string& address);
// Any text: the addresses in it, each up to the next blank or the end of its quotes, and the values
// of keys such as password=.
std::string without_passwords(const std::string& text);
// Every text in a record.
Value without_passwords(const Value& record);

}  // namespace mase
