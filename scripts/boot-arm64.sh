#!/usr/bin/env bash
# Boots a 64-bit ARM machine with the arm64 package on its card: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/boot-arm64.sh [--yes]

Flashes an emulated card (Debian 12 for arm64, Docker, the bramble-agent package, bramble.yaml on the boot partition), switches a
machine on with it under qemu (two Cortex-A72, 1 GB), and looks on with kubectl from a controller on this host: the machine joins by
itself, is Ready, runs a pod, and is powered off with grace. Says how long each step takes. Not part of the tests: five minutes, and
two more the first time. Needs root.

  --yes      do not ask before installing what is missing
  --help

The Debian for arm64 is kept in BRAMBLE_CACHE, else $XDG_CACHE_HOME/bramble, else ~/.cache/bramble.
TXT
}

assume_yes=''
for argument in "$@"; do
  case $argument in
    --yes) assume_yes=yes ;;
    --help) usage && exit 0 ;;
    *) echo "boot-arm64.sh: unknown argument $argument; see --help" >&2 && exit 64 ;;
  esac
done

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/say.sh
. scripts/support/say.sh
# shellcheck source=scripts/support/packages.sh
. scripts/support/packages.sh
# shellcheck source=scripts/support/processes.sh
. scripts/support/processes.sh
# shellcheck source=scripts/support/door.sh
. scripts/support/door.sh
# shellcheck source=scripts/support/arm64-root.sh
. scripts/support/arm64-root.sh

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
mkdir -p dist
tools=$PWD/dist/tools
install_log=$PWD/dist/boot-arm64.log
cache=${BRAMBLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bramble}
handlers=/proc/sys/fs/binfmt_misc
# This host as a machine behind qemu's own network sees it.
host_seen_from_machine=10.0.2.2
machine='' door_host=127.0.0.1 handler='' handlers_mounted=''

main() {
  [ "$(id -u)" = 0 ] || fail 'Only root can make a root file system' 'Run this as root.'
  mkdir -p "$cache"
  data=$(mktemp -d /var/tmp/bramble-arm64.XXXXXX)
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  step 'What is needed'
  install_needed
  use_fetched_node
  ensure_bundles
  run_foreign_programs
  timed 'the Debian for arm64' arm64_root
  step 'Package and card'
  timed 'the package' build_package
  start_controller
  timed 'the card' flash_card
  step 'The machine'
  switch_on
  timed 'from switching on to systemd and a shell' wait_or_fail 300 'The machine does not boot' answers true
  timed '… until it has joined and is Ready' wait_or_fail 300 'The machine does not become Ready' node_is_ready
  kube get nodes --output wide
  [ "$(kube get node raspberrypi --output 'jsonpath={.status.nodeInfo.architecture}')" = arm64 ] || fail 'The node is not arm64' 'See above.'
  wait_or_fail 60 'The first-boot file is still there' answers '! test -e /boot/firmware/bramble.yaml'
  say '    The first-boot file with its token is gone from the boot partition'
  timed 'an image, imported' import_image
  timed 'a pod, from kubectl to Running' run_pod
  kube get pods --output wide
  say "    In the pod: $(in_machine 'docker exec $(docker ps --quiet --filter ancestor=boot-arm64:1) /bin/busybox uname -m')"
  say "    The agent: $(in_machine 'systemctl show --property=MemoryCurrent,NRestarts,StatusText bramble-agent | tr "\n" " "')"
  step 'Power-off'
  in_machine 'systemctl poweroff' >/dev/null || true
  timed 'from systemctl poweroff to power down' wait_for 180 machine_is_off || fail 'The machine does not power down' 'The end of its console is above.' "$data/console"
  look_back
  step 'All well'
}

install_needed() {
  want qemu-system-arm 'the emulated machine'
  want qemu-user-static 'to install packages for arm64'
  want mmdebstrap 'to make a Debian for arm64'
  want e2fsprogs 'the disk'
  want dosfstools 'the boot partition'
  want mtools 'to put a file on it'
  want cpio 'the first file system'
  want kmod 'to know what the kernel must load for it'
  want g++-aarch64-linux-gnu 'to compile native parts for arm64'
  command -v kubectl >/dev/null || want kubernetes-client 'kubectl'
  [ "${#missing_packages[@]}" = 0 ] || refresh_package_lists
  install_missing
}

# Programs for arm64 run through qemu while the script does, unless the host has that set up for good.
run_foreign_programs() {
  [ -e "$handlers/register" ] || { mount -t binfmt_misc binfmt_misc "$handlers" && handlers_mounted=yes; }
  [ ! -e "$handlers/qemu-aarch64" ] || return 0
  cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$handlers/register"
  handler=$handlers/qemu-aarch64
}

build_package() { quietly 'Building bramble-agent for arm64' "$install_log" scripts/build-packages.sh --arch arm64 --yes --out "$data" bramble-agent; }

start_controller() {
  start controller "$data/controller.log" scripts/bramble-controller run --data-dir "$data/controller" --kubeconfig "$data/kubeconfig" \
    --bind-address 127.0.0.1 --advertise-address "$host_seen_from_machine" --api-port 0 --mqtt-port 0 --log-format json
  wait_for 60 grep 'Controller ready' "$data/controller.log" || fail 'The controller does not start' 'Its log says why.' "$data/controller.log"
}

kube() { kubectl --kubeconfig "$data/kubeconfig" --cache-dir "$data/kube-cache" "$@"; }

flash_card() {
  local merged=$data/merged
  mkdir -p "$merged" "$data/upper" "$data/overlay"
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$data/upper,workdir=$data/overlay" "$merged"
  cp "$data"/bramble-agent_*_arm64.deb "$merged/var/tmp/agent.deb"
  quietly 'Installing the package on the card' "$install_log" chroot "$merged" dpkg --install /var/tmp/agent.deb ||
    fail 'The package cannot be installed' 'dpkg said why.' "$install_log"
  rm "$merged/var/tmp/agent.deb"
  tar -C "$merged" -cf "$merged/usr/share/busybox.tar" bin/busybox
  printf 'raspberrypi\n' >"$merged/etc/hostname"
  quietly 'Writing the card' "$install_log" mke2fs -q -t ext4 -d "$merged" "$data/card" 3G
  umount "$merged"
  local line
  line=$(scripts/bramble-controller token create --kubeconfig "$data/kubeconfig" --print-join-command | grep -o 'bramble-agent join .*')
  printf 'join: %s\n' "$line" >"$data/bramble.yaml"
  truncate -s 64M "$data/boot"
  mkfs.vfat "$data/boot" >>"$install_log"
  mcopy -i "$data/boot" "$data/bramble.yaml" ::bramble.yaml
}

switch_on() {
  door=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
  nice qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 1024 -accel tcg,thread=multi -display none -monitor none -no-reboot \
    -kernel "$kernel" -initrd "$initramfs" -append 'root=/dev/vda rw console=ttyAMA0 apparmor=0' \
    -drive "file=$data/card,format=raw,if=virtio,cache=unsafe" -drive "file=$data/boot,format=raw,if=virtio,cache=unsafe" \
    -netdev "user,id=net,hostfwd=tcp:127.0.0.1:$door-:2222" -device virtio-net-pci,netdev=net,romfile= \
    -serial "file:$data/console" >>"$install_log" 2>&1 </dev/null &
  machine=$!
}

node_is_ready() { [ "$(kube get node raspberrypi --output 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; }
pod_is_running() { [ "$(kube get pod hello --output 'jsonpath={.status.phase}' 2>/dev/null)" = Running ]; }

import_image() {
  in_machine 'docker import --change "ENTRYPOINT [\"/bin/busybox\"]" /usr/share/busybox.tar boot-arm64:1 >/dev/null' ||
    fail 'The image cannot be imported' 'Its own words are above.'
}

run_pod() {
  kube apply --filename - <<'YAML'
apiVersion: v1
kind: Pod
metadata: { name: hello }
spec:
  containers:
    - name: hello
      image: boot-arm64:1
      imagePullPolicy: Never
      args: [sh, -c, 'trap "exit 0" TERM; while :; do sleep 1 & wait $!; done']
YAML
  wait_or_fail 300 'The pod does not run' pod_is_running
}

# What a shutdown with grace leaves behind.
look_back() {
  grep -q 'reboot: Power down' "$data/console" || fail 'The kernel did not say that it powers down' 'The end of its console:' "$data/console"
  dumpe2fs -h "$data/card" 2>/dev/null | grep -q '^Filesystem state: *clean' || fail 'The file system was not unmounted' 'The end of the console:' "$data/console"
  say '    The file system was unmounted'
  local said
  said=$(kube get lease raspberrypi --namespace kube-node-lease --output 'jsonpath={.metadata.annotations}')
  say "    What the controller heard: $said"
  [[ $said == *goodbye* ]] || fail 'The agent did not say goodbye' 'See the lease above.'
}

clean_up() {
  [ -z "$machine" ] || kill -9 "$machine" 2>/dev/null || true
  stop controller "$data/controller" 20
  ! mountpoint -q "$data/merged" || umount --lazy "$data/merged"
  [ -z "$handler" ] || echo -1 >"$handler"
  [ -z "$handlers_mounted" ] || umount "$handlers" || true
  rm -rf --one-file-system -- "$data"
}

main
