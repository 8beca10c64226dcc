#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the documentation's site from docs/ and the notebooks of examples/ into FOLDER (build/docs).
# It needs no build of the program: what it says of the registries is in docs/reference/.
#
#   scripts/docs.sh [FOLDER]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${1:-$root/build/docs}
python=/usr/bin/python3  # Debian's, which has Debian's Sphinx
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
pages=$folder.pages
trap 'rm -rf "$pages"' EXIT
"$python" "$root/docs/site/gather.py" "$root" "$pages"
MASE_VERSION=$(sed -n 's/^project(mase VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt") \
  "$python" -m sphinx -q -W --keep-going -j auto -b html -d "$folder.cache" -c "$root/docs/site" "$pages" "$folder"
rm -rf "$folder.cache" "$folder/.buildinfo"
