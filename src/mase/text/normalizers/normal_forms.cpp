// SPDX-License-Identifier: Apache-2.0
// NFC, NFD, NFKC, NFKD: Unicode's normal forms.
#include "mase/text/part.h"

namespace mase::normal_forms_normalizer {
namespace {

Normalizer normalizer(NormalForm form) {
  return [form](AlignedText& text) {
    if (!is_ascii(text.text())) text.transform(normal_form(text.text(), form));
  };
}

const Register<NormalizerRecord> registered{
    {.name = "NFC", .summary = "Unicode's normal form C", .make = [](const Value&) {
       return normalizer(NormalForm::nfc);
     }}};
const Register<NormalizerRecord> registered_nfd{
    {.name = "NFD", .summary = "Unicode's normal form D", .make = [](const Value&) {
       return normalizer(NormalForm::nfd);
     }}};
const Register<NormalizerRecord> registered_nfkc{
    {.name = "NFKC", .summary = "Unicode's normal form KC", .make = [](const Value&) {
       return normalizer(NormalForm::nfkc);
     }}};
const Register<NormalizerRecord> registered_nfkd{
    {.name = "NFKD", .summary = "Unicode's normal form KD", .make = [](const Value&) {
       return normalizer(NormalForm::nfkd);
     }}};

}  // namespace
}  // namespace mase::normal_forms_normalizer
