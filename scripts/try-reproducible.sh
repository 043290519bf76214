#!/usr/bin/env bash
# Builds the packages twice, the second time in other folders, with another time zone and umask and with native parts compiled again, and compares
# them byte for byte. Not part of the tests: two minutes. Arguments are those of scripts/build-packages.sh, without --out.
set -euo pipefail

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
cache=${BRAMBLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bramble}
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
scripts/build-packages.sh --out "$folder/first" "$@"
mkdir -p "$folder/cache" "$folder/deeper/down"
cp -a "$cache"/node-* "$folder/cache/"
rm -f "$folder"/cache/node-*/bin/node.stripped
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 TMPDIR=$folder/deeper/down BRAMBLE_CACHE=$folder/cache scripts/build-packages.sh --out "$folder/second" "$@")
for package in "$folder"/first/*.deb; do
  cmp -- "$package" "$folder/second/${package##*/}"
  echo "equal: ${package##*/}"
done
