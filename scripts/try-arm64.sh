#!/usr/bin/env bash
# Builds the arm64 packages and runs what is in them under emulation: that Node.js starts, that both programs do, and that every
# native part loads. Not a boot, and not part of the tests: two minutes. Needs qemu-user-static and g++-aarch64-linux-gnu.
set -euo pipefail

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
for program in qemu-aarch64-static aarch64-linux-gnu-g++; do
  command -v "$program" >/dev/null || { echo "try-arm64.sh: $program is missing: apt-get install qemu-user-static g++-aarch64-linux-gnu" >&2 && exit 69; }
done
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
scripts/build-packages.sh --arch arm64 --quick --out "$folder"
for package in "$folder"/*.deb; do dpkg-deb --extract "$package" "$folder/root"; done
cd "$folder/root/usr/lib"
emulated() { timeout 120 qemu-aarch64-static -L /usr/aarch64-linux-gnu "$@"; }
emulated bramble-runtime/*.*/node bramble-agent/bramble-agent.mjs --version
emulated bramble-runtime/*.*/node bramble-controller/bramble-controller.mjs --version
for module in "$PWD"/bramble-agent/node_modules/{usocket,unix-dgram} "$PWD"/bramble-controller/node_modules/{better-sqlite3,unix-dgram}; do
  emulated bramble-runtime/*.*/node -e 'const M = require(process.argv[1]); if (M.name === "Database") new M(":memory:")' "$module"
  echo "loads on arm64: ${module##*/}"
done
