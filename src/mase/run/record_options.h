// SPDX-License-Identifier: Apache-2.0
// Options that come from the records themselves. An optimiser's `beta1` is --optimizer-beta1, the
// key beta1 of the table [optimizer], and a line of --help and the reference, because its record's
// schema says so; no other file names it. An alias in that schema is the name the option goes by at
// the top of a file: MASE's weight_decay, momentum, eta_min.
#pragma once

#include <string>
#include <vector>

#include "mase/base/schema.h"

namespace mase {

struct Settings;

struct RecordChoice {
  std::string name;
  std::vector<std::string> aliases;
  Schema options;
};

// One open set whose member an experiment chooses.
struct RecordSet {
  std::string prefix;    // "optimizer": its table, and the beginning of its flags
  std::string selector;  // the option that names the member: "training_optimizer"
  std::vector<RecordChoice> choices;

  const RecordChoice* find(const std::string& name) const;
  // The option that a key of the table stands for ("beta1" -> "optimizer_beta1"), or nothing.
  std::string option_of(const std::string& key) const;
  std::vector<std::string> keys() const;  // of the table: "name" and every member's options
};

const std::vector<RecordSet>& record_sets();  // optimizer, schedule, loss, dataset
const RecordSet& record_set(const std::string& prefix);

// A flag for each option of each member. Defaults are the members' own, so the fields have none.
std::vector<Field> record_fields(const std::string& prefix, const std::string& group);

// The default of a chosen member's option: its own, or with this optimiser another.
Value record_default(const Settings& settings, const std::string& prefix, const Field& option);

// What the settings give of the options of any member, by the options' own names.
Dict given_record_options(const Settings& settings, const std::string& prefix);

// The chosen member's options as the settings give them, defaults filled in, checked by its schema;
// an option that it does not have is an error that says which it has.
Value record_options(const Settings& settings, const std::string& prefix,
                     const std::string& chosen);

}  // namespace mase
