#!/usr/bin/env bash
# All checks and tests on a machine that has nothing installed: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/test-in-minimal-root.sh [--times N] [--results DIR] [-- ARGUMENT…]

Makes a minimal Debian 12 (mmdebstrap --variant=minbase), clones the last commit into the home folder of its root, which only root may enter, and
runs scripts/test.sh --whole there with the arguments after --. What scripts/test.sh does not install is not there, so a test that needs more fails.
Prints what scripts/test.sh prints; its status is that of the first run that failed. Needs root, mmdebstrap and git, 8 GB in /var/tmp, and about
the time of scripts/test.sh and ten minutes.

  --times N      run it N times, each in a new root, for tests that do not pass each time
  --results DIR  where the output and the results of each run are kept (dist/minimal-root)
  --help

The root has mounts and processes of its own, and the tests have a network of their own, without the internet. All that ends
with the run, also when it is aborted. Devices and control groups are those of this machine; groups that tests leave are removed. What a run
left that was killed, the next one removes.
Package sources, npm registry, proxies and name servers are those of this machine.
TXT
}

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
# shellcheck source=scripts/support/minimal-root.sh
. scripts/support/minimal-root.sh

times=1 results=$PWD/dist/minimal-root
while [ $# -gt 0 ]; do
  case $1 in
    --times) times=${2:?"--times: how many?"} && shift 2 ;;
    --results) results=$(realpath -m -- "${2:?"--results: which folder?"}") && shift 2 ;;
    --help) usage && exit 0 ;;
    --) shift && break ;;
    *) echo "test-in-minimal-root.sh: unknown option $1; see --help" >&2 && exit 64 ;;
  esac
done
[[ $times =~ ^[1-9][0-9]?$ ]] || { echo "test-in-minimal-root.sh: --times takes a number from 1 to 99, not $times" >&2 && exit 64; }

folder='' running=''

main() {
  [ "$(id -u)" = 0 ] || fail 'Only root can make a root file system' 'Run it with sudo.'
  local program run code status=0
  for program in mmdebstrap git; do
    command -v "$program" >/dev/null || fail "$program is missing" "apt-get install $program"
  done
  [ -z "$(git status --porcelain)" ] || print 'Changes that are not committed are not tested.'
  sweep
  trap end EXIT
  trap 'exit 130' INT TERM
  for ((run = 1; run <= times; run++)); do
    [ "$times" = 1 ] || step "Run $run of $times"
    run_once "$results/$run" "$@" || { code=$? && [ "$status" != 0 ] || status=$code; }
  done
  return "$status"
}

# run_once RESULTS ARGUMENT…
run_once() {
  local kept=$1 root status=0
  shift
  rm -rf --one-file-system -- "$kept"
  mkdir -p "$kept" || fail "The results cannot be kept in $kept" 'Name another folder with --results.'
  folder=$(mktemp -d /var/tmp/bramble-minimal-root.XXXXXX) || fail 'There is no room for a root' 'Free some in /var/tmp.'
  root=$folder/root
  exec 9>"$folder/lock"
  flock 9
  quietly 'Making a minimal Debian' "$kept/root.log" bash -euc ". scripts/support/minimal-root.sh; make_root $root" || fail 'The root could not be made' 'The cause is in the log.' "$kept/root.log"
  # The processes of the run end with the first of them, and its mounts with the last.
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private bash -euc "
    . scripts/support/minimal-root.sh; $(declare -f enter_root own_network); export -f own_network network_of_a_house; enter_root \"\$@\"" bash \
    "$root" "$@" > >(tee "$kept/output.txt") 2>&1 &
  running=$!
  wait "$running" || status=$?
  running=''
  keep_results "$root$clone/dist" "$kept"
  remove_folder
  print "    The results of this run: $kept"
  return "$status"
}

# enter_root ROOT ARGUMENT…
enter_root() {
  pivot_into "$1"
  shift
  cd "$clone"
  env -i "${variables[@]}" scripts/test.sh --prepare
  unshare --mount --net bash -euc 'own_network && exec env -i "$@"' bash "${variables[@]}" scripts/test.sh --quick --whole "$@"
}

# In /sys are the interfaces of the namespace that mounted it.
own_network() {
  network_of_a_house
  mkdir /run/control-groups
  mount --rbind /sys/fs/cgroup /run/control-groups
  umount --recursive /sys
  mount -t sysfs sysfs /sys
  mount --rbind /run/control-groups /sys/fs/cgroup
  umount --recursive /run/control-groups
  rmdir /run/control-groups
}

keep_results() {
  local from=$1 to=$2 name
  for name in install.log unit-results.txt test-results.tap test-results-again.tap unsteady; do
    [ ! -e "$from/$name" ] || cp -r -- "$from/$name" "$to/"
  done
}

end() {
  [ -z "$running" ] || { kill -KILL "$running" 2>/dev/null && wait "$running" 2>/dev/null; } || true
  remove_folder
}

# While a run lives, it holds the lock.
sweep() {
  local lock
  for lock in /var/tmp/bramble-minimal-root.*/lock; do
    [ -e "$lock" ] && flock --nonblock "$lock" true || continue
    folder=$(dirname -- "$lock")
    remove_folder
  done
}

remove_folder() {
  [ -n "$folder" ] || return 0
  remove_control_groups
  rm -rf --one-file-system -- "$folder"
  folder=''
}

# Removes the control groups of tests that did not clean up: their engines (bdID) and machines (bmID) have folders with their names.
remove_control_groups() {
  local name group
  for name in "$folder"/root/tmp/b[dm]????????-*/; do
    name=$(basename -- "$name")
    name=${name%%-*}
    for group in /sys/fs/cgroup/{,*/}{"$name","bramble-test-${name#bd}"}/; do
      [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || print "    Left: the control group $group"
    done
  done
}

main "$@"
