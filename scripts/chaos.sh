#!/usr/bin/env bash
# Tries faults on machines that boot, with Bramble and with Docker Swarm: see --help.
set -euo pipefail

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
[ -f dist/bench/chaos/main.js ] || {
  echo 'chaos.sh: it is not built yet; run: npm ci && npm run build' >&2
  exit 69
}
exec node dist/bench/chaos/main.js "$@"
