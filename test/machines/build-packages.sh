#!/usr/bin/env bash
# Builds the packages that are tested, unless they are newer than every source: prints the folder. In it the packages of this
# release, and in next/ those of a later one with the same content, an hour newer. A caller waits while another one builds them.
set -euo pipefail

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
folder=$PWD/dist/test-packages
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
if [ ! -f "$folder/.built" ] || [ -n "$(find agent api broker-controller certs daemon dashboard docs scripts systemd CHANGELOG.md package-lock.json \
  -name node_modules -prune -o -newer "$folder/.built" -print -quit)" ]; then
  now=$(date +%s)
  SOURCE_DATE_EPOCH=$now scripts/build-packages.sh --quick --yes --out "$folder" >&2
  SOURCE_DATE_EPOCH=$((now + 3600)) scripts/build-packages.sh --quick --yes --out "$folder/next" --version 99.0.0 >&2
  touch "$folder/.built"
fi
printf '%s\n' "$folder"
