// SPDX-License-Identifier: Apache-2.0
// A file that becomes shorter while it is mapped answers with SIGBUS. The program ends then with a
// line that names it (cli/terminal); a process that lives on, such as Python, is given zeros in the
// place of what is gone, and whoever reads a file asks at its end whether that happened.
#pragma once

namespace mase {

// For a signal handler: zeros at the page of this address if it is one of a mapped file, and a note
// of that file. False: it is none.
bool fill_cut_page(void* address);

// An Error that names the file if one was cut since the last call.
void throw_if_cut();

}  // namespace mase
