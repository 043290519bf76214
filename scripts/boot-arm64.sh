#!/usr/bin/env bash
# Boots a 64-bit ARM machine with the arm64 packages on its card: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/boot-arm64.sh [--yes]

Makes an image in the form of Raspberry Pi OS (Debian 12 for arm64 with Docker, a FAT with cmdline.txt) and a card from it with
'bramble-controller card', switches a machine on with it under qemu (two Cortex-A72, 1 GB; the kernel and cmdline.txt are given to it as
the firmware of a board would), and looks on with kubectl from a controller on this host: the machine prepares itself, restarts, installs the
packages from the card, joins by itself, is Ready, runs a pod, is suspended for a while and wakes up with all as it was, and is powered off with grace. Prints how long
each step takes. Not part of the tests: ten minutes, and two more the first time. Needs root.

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
# shellcheck source=scripts/support/machine.sh
. scripts/support/machine.sh
# shellcheck source=scripts/support/arm64-root.sh
. scripts/support/arm64-root.sh
# shellcheck source=scripts/support/foreign-programs.sh
. scripts/support/foreign-programs.sh

cache=${BRAMBLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bramble}
# This host as a machine behind qemu's own network sees it.
host_seen_from_machine=10.0.2.2
door_host=127.0.0.1

main() {
  [ "$(id -u)" = 0 ] || fail 'Only root can make a root file system' 'Run this as root.'
  mkdir -p "$cache"
  data=$(mktemp -d /var/tmp/bramble-arm64.XXXXXX)
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  step 'What is needed'
  install_needed
  ensure_modules run
  ensure_bundles
  run_foreign_programs
  timed 'the Debian for arm64' arm64_root
  step 'Package and card'
  timed 'the packages' build_packages
  start_controller "$host_seen_from_machine" --bind-address 127.0.0.1
  timed 'the image' make_image
  timed 'the card' make_card
  step 'The machine'
  switch_on
  timed 'the first boot, until it restarts' wait_for 600 machine_is_off || fail 'The machine does not restart' 'The end of its console is above.' "$data/console"
  check_prepared
  switch_on
  timed 'from switching on to systemd and a shell' wait_or_fail 300 'The machine does not boot' answers true
  timed '… until it has joined and is Ready' wait_or_fail 900 'The machine does not become Ready' node_is_ready
  check_installed
  kube get nodes --output wide
  [ "$(kube get node raspberrypi --output 'jsonpath={.status.nodeInfo.architecture}')" = arm64 ] || fail 'The node is not arm64' 'See above.'
  wait_or_fail 60 'The first-boot file is still there' answers '! test -e /boot/firmware/bramble.yaml'
  print '    The first-boot file with its token is gone from the boot partition'
  timed 'an image, imported' import_image
  timed 'a pod, from kubectl to Running' run_pod
  kube get pods --output wide
  print "    In the pod: $(in_machine 'docker exec $(docker ps --quiet --filter ancestor=boot-arm64:1) /bin/busybox uname -m')"
  print "    The agent: $(in_machine 'systemctl show --property=MemoryCurrent,NRestarts,StatusText bramble-agent | tr "\n" " "')"
  step 'Suspended'
  suspend
  step 'Power-off'
  in_machine 'systemctl poweroff' >/dev/null || true
  timed 'from systemctl poweroff to power down' wait_for 180 machine_is_off || fail 'The machine does not power down' 'The end of its console is above.' "$data/console"
  look_back
  step 'All well'
}

install_needed() {
  plan_node
  want qemu-system-arm 'the emulated machine'
  want qemu-user-static 'to install packages for arm64'
  want mmdebstrap 'to make a Debian for arm64'
  want arch-test 'mmdebstrap asks it whether programs for arm64 run here'
  want e2fsprogs 'the disk'
  want dosfstools 'the boot partition'
  want mtools 'to put files on it, and to read them'
  want fdisk 'the partitions'
  want cpio 'the first file system'
  want device-tree-compiler 'to give it an idle state'
  want kmod 'to find what the kernel must load for it'
  want g++-aarch64-linux-gnu 'to compile native parts for arm64'
  command -v kubectl >/dev/null || want kubernetes-client 'kubectl'
  [ "${#missing_packages[@]}" = 0 ] || refresh_package_lists
  install_missing
  ensure_node
}

build_packages() { quietly 'Building bramble-agent for arm64' "$install_log" scripts/build-packages.sh --arch arm64 --yes --out "$data/packages" bramble-runtime bramble-agent; }

# The boot partition and the root partition of pi-gen's images, in MiB.
boot_start=8 boot_size=512 root_size=3072

# make_image: as pi-gen makes one. The packages of the agent are not in it.
make_image() {
  local merged=$data/merged root_start=$((boot_start + boot_size))
  mkdir -p "$merged" "$data/upper" "$data/overlay"
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$data/upper,workdir=$data/overlay" "$merged"
  tar -C "$merged" -cf "$merged/usr/share/busybox.tar" bin/busybox
  printf 'raspberrypi\n' >"$merged/etc/hostname"
  truncate -s "$((root_start + root_size))M" "$data/image"
  printf 'label: dos\nstart=%sMiB, size=%sMiB, type=c\nstart=%sMiB, size=%sMiB, type=83\n' "$boot_start" "$boot_size" "$root_start" "$root_size" |
    quietly 'Making the partitions' "$install_log" sfdisk "$data/image"
  quietly 'Writing the root partition' "$install_log" mke2fs -q -t ext4 -E "offset=$((root_start << 20))" -d "$merged" "$data/image" "${root_size}M"
  umount "$merged"
  mkdir "$data/fat"
  printf 'console=ttyAMA0 root=/dev/vda2 rw apparmor=0\n' >"$data/fat/cmdline.txt"
  printf 'auto_initramfs=1\n' >"$data/fat/config.txt"
  printf 'Debian in the form of Raspberry Pi OS\nGenerated as by pi-gen\n' >"$data/fat/issue.txt"
  cp "$kernel" "$data/fat/kernel8.img"
  truncate -s "${boot_size}M" "$data/boot"
  mkfs.vfat -F 32 -s 1 -n bootfs "$data/boot" >>"$install_log"
  mcopy -i "$data/boot" "$data"/fat/* ::
  dd if="$data/boot" of="$data/image" bs=1M seek="$boot_start" conv=notrunc,sparse status=none
  rm "$data/boot"
}

make_card() {
  scripts/bramble-controller card "$data/image" --out "$data/card" --packages "$data/packages" --kubeconfig "$data/kubeconfig" 2>>"$install_log" ||
    fail 'The card is not made' 'The cause is in its log.' "$install_log"
  rm "$data/image"
}

# on_card FILE: the text of a file on the boot partition.
on_card() { mtype -i "$data/card@@$((boot_start << 20))" "::$1"; }

# The firmware of a board reads the kernel and its words from the card; qemu has none and is given both.
switch_on() {
  door=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
  local board=(-cpu cortex-a72 -smp 2 -m 1024 -display none) words
  words=$(on_card cmdline.txt)
  quietly 'Describing the board' "$install_log" describe_board "${board[@]}" || fail 'The board cannot be described' 'The cause is in the log of qemu or dtc.' "$install_log"
  nice qemu-system-aarch64 -M virt "${board[@]}" -dtb "$data/board" -accel tcg,thread=multi -monitor none -no-reboot \
    -kernel "$kernel" -initrd "$initramfs" -append "$words" \
    -drive "file=$data/card,format=raw,if=virtio,cache=unsafe" \
    -netdev "user,id=net,hostfwd=tcp:127.0.0.1:$door-:2222" -device virtio-net-pci,netdev=net,romfile= \
    -serial "file:$data/console" >>"$install_log" 2>&1 </dev/null &
  machine=$!
}

check_prepared() {
  print "    On the card: $(on_card bramble-status.txt | tail -n 1)"
  [[ $(on_card bramble-status.txt) == *Prepared* ]] || fail 'The machine has not prepared itself' 'The end of its console:' "$data/console"
  [[ $(on_card cmdline.txt) != *systemd.run* ]] || fail 'The first boot would be repeated' "cmdline.txt: $(on_card cmdline.txt)"
}

check_installed() {
  answers 'test ! -e /boot/firmware/bramble && test ! -e /etc/systemd/system/bramble-card.service' || fail 'The packages are still on the card' "See what is above."
  print "    On the card: $(in_machine 'tail -n 1 /boot/firmware/bramble-status.txt')"
  print "    $(in_machine 'grep firmware /etc/fstab')"
  print "    $(in_machine 'systemctl show --property=RuntimeWatchdogUSec')"
  answers 'grep -q nofail /etc/fstab' || fail 'A damaged boot partition would hold up the boot' 'See the line of /etc/fstab.'
}

# describe_board OPTION…: qemu's own, and an idle state of its processors. Without one a suspended kernel lets its clock run on.
describe_board() {
  qemu-system-aarch64 -M "virt,dumpdtb=$data/board" "$@" -nic none
  {
    dtc --in-format dtb "$data/board"
    cat <<'DTS'
/ {
  cpus {
    idle-states {
      entry-method = "psci";
      standby: standby {
        compatible = "arm,idle-state";
        arm,psci-suspend-param = <0>;
        entry-latency-us = <1>;
        exit-latency-us = <1>;
        min-residency-us = <100>;
      };
    };
    cpu@0 { cpu-idle-states = <&standby>; };
    cpu@1 { cpu-idle-states = <&standby>; };
  };
};
DTS
  } >"$data/board.dts"
  dtc --in-format dts --out-format dtb --out "$data/board" "$data/board.dts"
}

node_is_ready() { [ "$(ready_status raspberrypi)" = True ]; }
node_is_unknown() { [ "$(ready_status raspberrypi)" = Unknown ]; }
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
      livenessProbe: { exec: { command: [/bin/busybox, 'true'] }, periodSeconds: 10, timeoutSeconds: 30, failureThreshold: 1 }
YAML
  wait_or_fail 300 'The pod does not run' pod_is_running
}

# For longer than a node may be silent (40 s), with an alarm to wake it up. Nothing may have noticed but the controller.
suspend() {
  local before after events
  before=$(who_runs)
  in_machine 'systemd-run --quiet --on-active=1 rtcwake --mode freeze --seconds 75' || fail 'The machine cannot be suspended' 'Its own words are above.'
  timed 'until its controller misses it' wait_or_fail 90 'The node is not missed' node_is_unknown
  timed '… until it wakes up' wait_or_fail 90 'The machine does not wake up' grep -q 'PM: suspend exit' "$data/console"
  timed '… until it is Ready' wait_or_fail 60 'The node is not Ready again' node_is_ready
  # Its own clocks are looked at twice a minute; meanwhile the pod is probed a few times.
  pause 40
  after=$(who_runs)
  [ "$before" = "$after" ] || fail 'Something was restarted' "Before: $before; after: $after"
  events=$(kube get events --output 'jsonpath={range .items[*]}{.reason}{"\n"}{end}')
  ! grep -E 'Unhealthy|Killing|Evict|BackOff|Clock|Rebooted' <<<"$events" || fail 'Somebody took notice of it' "See the Events above."
  print "    The same as before: $after"
  in_machine 'journalctl --boot --unit bramble-agent --since -3min --output cat'
}

# The container and since when, and the agent's process.
who_runs() {
  in_machine 'docker ps --quiet | xargs docker inspect --format "{{.Id}} {{.State.StartedAt}}"; systemctl show --property=MainPID,NRestarts bramble-agent'
  kube get pod hello --output 'jsonpath={.status.containerStatuses[0].restartCount} restarts'
}

# What a shutdown with grace leaves behind.
look_back() {
  grep -q 'reboot: Power down' "$data/console" || fail 'The kernel did not report that it powers down' 'The end of its console:' "$data/console"
  dumpe2fs -h "$data/card?offset=$(((boot_start + boot_size) << 20))" 2>/dev/null | grep -q '^Filesystem state: *clean' || fail 'The file system was not unmounted' 'The end of the console:' "$data/console"
  dd if="$data/card" bs=1M skip="$boot_start" count="$boot_size" of="$data/boot" status=none
  fsck.vfat -n "$data/boot" >>"$install_log" || fail 'The boot partition is damaged' 'See the log of fsck.vfat.' "$install_log"
  print '    The file systems were unmounted, and are whole'
  local annotations
  annotations=$(kube get lease raspberrypi --namespace kube-node-lease --output 'jsonpath={.metadata.annotations}')
  print "    What the controller recorded: $annotations"
  [[ $annotations == *goodbye* ]] || fail 'The agent did not announce its shutdown' 'See the lease above.'
}

clean_up() {
  [ -z "$machine" ] || kill -9 "$machine" 2>/dev/null || true
  stop controller "$data/controller" 20
  ! mountpoint -q "$data/merged" || umount --lazy "$data/merged"
  forget_foreign_programs
  rm -rf --one-file-system -- "$data"
}

main
