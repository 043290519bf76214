#!/usr/bin/env bash
# Pulls the power of a machine whose pods write on their volumes, again and again: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/power-pulls.sh [--times N] [--seed N]

Boots a machine with Docker and the bramble-agent package, creates 20 pods with claims of the class local-path, stops the controller, and pulls
the power of the machine again and again: while all pods write and sync numbered records, and every fourth time while it boots. After each pull
each record that was synced must be on the disk, and no claim may be empty. Then the machine boots without a controller, and all 20 pods must
write again. Prints a line for each pull, and a total. Needs root and /dev/fuse, and takes about half a minute for each pull.

The disk of the machine is a file system of its own (ext4) on a loop device, below which a program has a volatile write cache: what was not flushed
when the power is pulled is lost, but for a random quarter of the blocks. So this shows writes that were not synced, or not in the right order, by the
agent, by Docker and by ext4. It does not show disks that lose what was flushed, blocks that are torn inside, or a boot loader and a kernel that
start: the machine is a systemd-nspawn container. scripts/torn-writes.sh boots a kernel of its own.

  --times N  how often; 100
  --seed N   of the moments and of what is lost; printed in the total
  --help
TXT
}

times=100 seed=$$
while [ $# -gt 0 ]; do
  case $1 in
    --times) times=${2:?'--times: how many?'} && shift 2 ;;
    --seed) seed=${2:?'--seed: which?'} && shift 2 ;;
    --help) usage && exit 0 ;;
    *) echo "power-pulls.sh: unknown argument $1; see --help" >&2 && exit 64 ;;
  esac
done

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
[ -f dist/test/machines-power-pulls.test.js ] || {
  echo 'power-pulls.sh: it is not built yet; run: npm ci && npm run build && node_modules/.bin/tsc' >&2
  exit 69
}
# The comments of the test are the lines for the pulls; of its other lines those of failures are printed.
TAP_TIMEOUT=$((600 + times * 150)) BRAMBLE_TEST_PULLS=$times BRAMBLE_TEST_SEED=$seed node dist/test/machines-power-pulls.test.js |
  sed --unbuffered -n -e 's/^ *# \(pull [0-9]\|after [0-9]\)/\1/p' -e '/not ok/,/^ *\.\.\./p'
