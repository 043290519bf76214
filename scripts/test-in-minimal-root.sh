#!/usr/bin/env bash
# All checks and tests on a machine that has nothing installed: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/test-in-minimal-root.sh [--times N] [--results DIR] [-- ARGUMENT…]

Makes a minimal Debian 12 (mmdebstrap --variant=minbase), clones the last commit into the home folder of its root, which only root may enter, and
runs scripts/test.sh there with the arguments after --. What scripts/test.sh does not install is not there, so a test that needs more fails.
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

release=bookworm
clone=/root/bramble
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
  quietly 'Making a minimal Debian' "$kept/root.log" bash -euc "$(declare -f make_root environment); release=$release clone=$clone make_root $root" || fail 'The root could not be made' 'The cause is in the log.' "$kept/root.log"
  # The processes of the run end with the first of them, and its mounts with the last.
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private bash -euc "$(declare -f enter_root own_network); export -f own_network; enter_root \"\$@\"" bash \
    "$root" "$clone" "$@" > >(tee "$kept/output.txt") 2>&1 &
  running=$!
  wait "$running" || status=$?
  running=''
  keep_results "$root$clone/dist" "$kept"
  remove_folder
  print "    The results of this run: $kept"
  return "$status"
}

make_root() {
  local root=$1 source=/etc/apt/sources.list.d/debian.sources mirrors=() valid
  # This machine's own mirrors, where they have the release; else mmdebstrap's.
  if grep -qs "^Suites:.*$release" "$source"; then mirrors=("$source"); fi
  # A mirror that is not updated any more has an old list: this machine's apt takes it, or refuses it.
  valid=$(apt-config dump --format '%v' Acquire::Check-Valid-Until)
  # force-unsafe-io: nothing is lost with a root that is removed anyway.
  mmdebstrap --mode=root --variant=minbase --aptopt="Acquire::Check-Valid-Until \"${valid:-true}\"" --dpkgopt=force-unsafe-io "$release" "$root" "${mirrors[@]}"
  # That no list is younger than a day has test.sh read them.
  rm -rf "$root"/var/lib/apt/lists/*
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  mkdir -p "$root/etc/ssl"
  [ ! -f "${NODE_EXTRA_CA_CERTS:-}" ] || cp -L -- "$NODE_EXTRA_CA_CERTS" "$root/etc/ssl/authorities-of-this-machine.crt"
  environment >"$root/root/environment"
  git clone --quiet --no-hardlinks -- "$PWD" "$root$clone"
  [ "$(git -C "$root$clone" rev-parse HEAD)" = "$(git rev-parse HEAD)" ]
}

# How this machine reaches its registries, and which tests are wanted.
environment() {
  local name registry
  for name in {http,https,no}_proxy {HTTP,HTTPS,NO}_PROXY ${!BRAMBLE_TEST_*}; do
    [ -z "${!name:-}" ] || printf '%s=%s\n' "$name" "${!name}"
  done
  registry=$(npm config get registry 2>/dev/null) || true
  [ -z "$registry" ] || printf 'npm_config_registry=%s\n' "$registry"
  [ ! -f "${NODE_EXTRA_CA_CERTS:-}" ] || printf 'NODE_EXTRA_CA_CERTS=/etc/ssl/authorities-of-this-machine.crt\n'
}

# enter_root ROOT CLONE ARGUMENT…: in mount and process namespaces of its own. Not chroot: in one no container can start, as its root is no mount.
enter_root() {
  local root=$1 clone=$2 variables
  shift 2
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  cd "$root"
  mkdir outside
  pivot_root . outside
  umount --lazy /outside
  rmdir /outside
  mapfile -t variables </root/environment
  variables+=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
  # The quickstart that is tested installs the packages again, without the registry.
  variables+=(npm_config_cache=/root/npm-cache npm_config_prefer_offline=true)
  cd "$clone"
  env -i "${variables[@]}" scripts/test.sh --prepare
  unshare --mount --net bash -euc 'own_network && exec env -i "$@"' bash "${variables[@]}" scripts/test.sh --quick "$@"
}

# As of a machine in a house without the internet: agents report the address of the default route, and the router refuses what goes beyond it
# at once. In /sys are the interfaces of the namespace that mounted it.
own_network() {
  ip link set lo up
  ip netns add router
  nsenter --net=/run/netns/router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward && echo 0 >/proc/sys/net/ipv4/icmp_ratelimit'
  ip link add eth0 type veth peer name lan netns router
  ip -n router address add 172.31.255.1/24 dev lan
  ip -n router link set lan up
  ip address add 172.31.255.2/24 dev eth0
  ip link set eth0 up
  ip route add default via 172.31.255.1
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

# Of tests that did not end themselves: their engines (bdID) and machines (bmID) have folders that name them.
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
