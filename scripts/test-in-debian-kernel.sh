#!/usr/bin/env bash
# Tests on real parts in a machine with Debian's own kernel: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/test-in-debian-kernel.sh [--results DIR] [--memory MIB] [--keep-disk FILE] [--yes] [FILE…]

Makes a Debian 12 with its kernel, as a disk with a clone of the last commit and all that its tests need, boots it under qemu (two cores in software,
no /dev/kvm), and runs these compiled tests there, one after the other. Without a FILE those that need a module which kernels of test machines may lack: the
sites that reach each other by WireGuard, and volumes on a NAS. Prints what the machine prints; its status is 1 when a test failed. Not part of the tests: programs take
ten to twenty times as long there. Needs root, and 25 GB in /var/tmp.

  --results DIR     where the output and the results are kept (dist/debian-kernel)
  --memory MIB      of the machine (6144)
  --keep-disk FILE  keep the disk; if FILE is there, boot it as it is and make none
  --yes             do not ask before installing what is missing
  --help

The machine has a network of its own, without the internet.
TXT
}

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
# shellcheck source=scripts/support/minimal-root.sh
. scripts/support/minimal-root.sh
# shellcheck source=scripts/support/packages.sh
. scripts/support/packages.sh

mkdir -p dist
tools=$PWD/dist/tools install_log=$PWD/dist/install.log assume_yes=''
results=$PWD/dist/debian-kernel memory=6144 keep='' files=()
while [ $# -gt 0 ]; do
  case $1 in
    --results) results=$(realpath -m -- "${2:?"--results: which folder?"}") && shift 2 ;;
    --memory) memory=${2:?"--memory: how many MiB?"} && shift 2 ;;
    --keep-disk) keep=$(realpath -m -- "${2:?"--keep-disk: which file?"}") && shift 2 ;;
    --yes) assume_yes=yes && shift ;;
    --help) usage && exit 0 ;;
    -*) echo "test-in-debian-kernel.sh: unknown option $1; see --help" >&2 && exit 64 ;;
    *) files+=("$1") && shift ;;
  esac
done
[[ $memory =~ ^[1-9][0-9]{3,5}$ ]] || { echo "test-in-debian-kernel.sh: --memory takes MiB from 1000 on, not $memory" >&2 && exit 64; }
[ "${#files[@]}" -gt 0 ] || files=(dist/test/pods-between-sites.test.js dist/test/pods-between-sites-by-ipv6.test.js dist/test/shares-of-a-nas.test.js)

folder=''

main() {
  [ "$(id -u)" = 0 ] || fail 'Only root can make a root file system' 'Run it with sudo.'
  local status
  install_needed
  mkdir -p "$results" || fail "The results cannot be kept in $results" 'Name another folder with --results.'
  trap 'rm -rf --one-file-system -- "$folder"' EXIT
  trap 'exit 130' INT TERM
  folder=$(mktemp -d /var/tmp/bramble-debian-kernel.XXXXXX) || fail 'There is no room for a root' 'Free some in /var/tmp.'
  disk=${keep:-$folder/disk}
  [ -e "$disk" ] || make_disk
  step "A machine with Debian's kernel"
  boot
  debugfs -R "rdump $clone/dist/results $results" "$disk" 2>/dev/null
  status=$(cat "$results/results/status" 2>/dev/null) || fail 'The machine ended without a result' 'What it printed is above.'
  print "    The results: $results"
  return "$status"
}

install_needed() {
  want mmdebstrap 'to make a Debian'
  want git 'to clone the last commit'
  want e2fsprogs 'the disk'
  want qemu-system-x86 'the emulated machine'
  [ "${#missing_packages[@]}" = 0 ] || refresh_package_lists
  install_missing
}

make_disk() {
  local root=$folder/root log=$results/disk.log
  : >"$log"
  quietly 'Making a minimal Debian' "$log" make_root "$root" || fail 'The root could not be made' 'The cause is in the log.' "$log"
  quietly 'Installing its kernel, and what the tests need' "$log" unshare --mount --pid --fork --kill-child --propagation private bash -euc "
    . scripts/support/minimal-root.sh; $(declare -f install); install \"\$@\"" bash "$root" || fail 'They cannot be installed' 'The cause is in the log.' "$log"
  {
    printf '#!/bin/bash\nset -eu -o pipefail\n'
    printf 'clone=%q\n' "$clone"
    declare -f read_variables network_of_a_house in_machine
    printf 'in_machine\n'
  } >"$root/sbin/run-tests"
  chmod +x "$root/sbin/run-tests"
  truncate --size 20G "$disk"
  quietly 'Writing the disk' "$log" mke2fs -q -t ext4 -d "$root" "$disk" || fail 'The disk cannot be written' 'The cause is in the log.' "$log"
  cp -L "$root/vmlinuz" "${disk}.kernel"
  cp -L "$root/initrd.img" "${disk}.initrd"
  rm -rf --one-file-system -- "$root"
}

# install ROOT
install() {
  pivot_into "$1"
  cd "$clone"
  env -i "${variables[@]}" scripts/test.sh --prepare
  env -i "${variables[@]}" bash -euc '. scripts/support/packages.sh; tools=$PWD/dist/tools; use_fetched_node; node_modules/.bin/tsc'
  env -i "${variables[@]}" DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends linux-image-amd64 kmod \
    nfs-kernel-server nfs-common samba cifs-utils
}

boot() {
  qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m "$memory" -nographic -no-reboot -nic none \
    -kernel "${disk}.kernel" -initrd "${disk}.initrd" -append "root=/dev/vda rw console=ttyS0 quiet init=/sbin/run-tests apparmor=0 systemd.unified_cgroup_hierarchy=1 tests=$(IFS=, && printf '%s' "${files[*]}")" \
    -drive "file=$disk,format=raw,if=virtio,cache=unsafe" </dev/null | tee "$results/output.txt"
}

# The first process of the machine.
in_machine() {
  local variables files file tools status=0
  export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  mountpoint -q /proc || mount -t proc proc /proc
  mountpoint -q /sys || mount -t sysfs sysfs /sys
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mountpoint -q /run || mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /dev/shm /dev/pts
  mountpoint -q /dev/pts || mount -t devpts devpts /dev/pts
  mount -t tmpfs tmpfs /dev/shm
  ln -sfn /proc/self/fd /dev/fd
  hostname debian
  read_variables
  network_of_a_house
  IFS=, read -ra files < <(sed -n 's/.* tests=\([^ ]*\).*/\1/p' /proc/cmdline)
  cd "$clone"
  rm -rf dist/results
  mkdir dist/results
  # shellcheck source=scripts/support/packages.sh
  . scripts/support/packages.sh
  tools=$clone/dist/tools
  use_fetched_node
  variables+=("PATH=$tools/bin:$PATH" BRAMBLE_TEST_PATIENCE=10 TAP=1 TAP_TIMEOUT=6000)
  for file in "${files[@]}"; do
    echo "# $file"
    env -i "${variables[@]}" node --enable-source-maps "$file" | tee "dist/results/$(basename -- "$file").tap" || status=1
  done
  echo "$status" >dist/results/status
  sync
  echo o >/proc/sysrq-trigger
  sleep 1000
}

main "$@"
