#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Both commands of the README on a bare Debian 13: makes its root in FOLDER (default
# build/debian13) with debootstrap, from the mirror this machine's apt uses, copies what is
# committed into it and runs there. Needs root. A root that is there is used again, its compiler
# cache too.
#
#   scripts/test_debian13.sh [FOLDER [COMMAND...]]    # COMMAND instead of the README's two
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${1:-$source/build/debian13}
shift || true
[[ $(id -u) == 0 ]] || { echo "test-debian13: debootstrap and chroot need root" >&2; exit 1; }
if ! command -v debootstrap >/dev/null; then
  apt-get update >/dev/null && apt-get install -y --no-install-recommends debootstrap >/dev/null
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/root

mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
eval "$(apt-config shell proxy Acquire::http::Proxy)"
[[ -z ${proxy:-} ]] || export http_proxy=$proxy
if [[ ! -e $folder/complete ]]; then
  rm -rf "$root"
  echo "test-debian13: making $root (log: $folder/debootstrap.log)" >&2
  debootstrap --variant=minbase trixie "$root" "$mirror" >"$folder/debootstrap.log" 2>&1 ||
    { tail -n 15 "$folder/debootstrap.log" >&2; exit 1; }
  touch "$folder/complete"
fi
# How this machine reaches its mirrors holds in the root too.
[[ -z ${proxy:-} ]] || echo "Acquire::http::Proxy \"$proxy\";" >"$root/etc/apt/apt.conf.d/90proxy"
for file in /etc/resolv.conf /etc/pip.conf; do
  [[ ! -e $file ]] || cp "$file" "$root$file"
done

# The times are of now, so that the launcher sees that sources changed.
mkdir -p "$root/mase"
find "$root/mase" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git -C "$source" archive HEAD | tar -x -m -C "$root/mase"

(($#)) || set -- bash -c './ch train jsc-toy jsc --learning-rate 1e-2 && make test'
# shellcheck disable=SC2016  # the inner shells expand these
unshare --mount bash -c '
  mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && shift_root=$1 && shift &&
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb \
    chroot "$shift_root" bash -c "cd /mase && exec \"\$@\"" command "$@"' unshare "$root" "$@"
