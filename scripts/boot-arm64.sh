#!/usr/bin/env bash
# Boots a 64-bit ARM machine with the arm64 packages on its card: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/boot-arm64.sh [--image FILE] [--board NAME] [--yes]

For use once a week, and before a release: plan half an hour on two idle cores; it is not part of the tests. Boots a machine from a card
under qemu (the kernel and cmdline.txt of the card are given to it as the firmware of a board would), and looks on
with kubectl from a controller on this host: the machine prepares itself, restarts, joins with the bramble.yaml of the card, is Ready and
runs a pod. The container is killed. The controller rolls a release of the agent out, which is committed, and one that ends at once, which
is taken back; the container runs on. A machine with a read-only root is restarted, and is the same node with the same pod; another one is
suspended for a while, and wakes up with all as it was. The pod is deleted, and the machine is powered off with grace. Prints how long each
step takes. Needs root.

  --image FILE  of scripts/build-image.sh, not compressed. Without it an image in the form of Raspberry Pi OS is made (Debian 12 for arm64
                with Docker, a FAT with cmdline.txt), and the card brings the packages of the agent
  --board NAME  virt (two Cortex-A72, 1 GB, a disk and a network adapter of qemu), or raspi3b: a Raspberry Pi 3 as qemu has it (four
                Cortex-A53, 1 GB), with the image on its SD card and an Ethernet adapter on its USB; needs --image. (virt)
  --yes         do not ask before installing what is missing
  --help

The Debian for arm64 is kept in BRAMBLE_CACHE, else $XDG_CACHE_HOME/bramble, else ~/.cache/bramble.
TXT
}

assume_yes='' image='' board=virt
while [ $# -gt 0 ]; do
  case $1 in
    --image) image=$(realpath -e -- "${2:?'--image: which file?'}") && shift 2 ;;
    --board) board=${2:?'--board: which?'} && shift 2 ;;
    --yes) assume_yes=yes && shift ;;
    --help) usage && exit 0 ;;
    *) echo "boot-arm64.sh: unknown argument $1; see --help" >&2 && exit 64 ;;
  esac
done
[[ $board = virt || $board = raspi3b ]] || { echo "boot-arm64.sh: unknown board $board; --board is virt or raspi3b" >&2 && exit 64; }
[ "$board" = virt ] || [ -n "$image" ] || { echo "boot-arm64.sh: --board $board needs --image: the Debian made here starts on virt only" >&2 && exit 64; }

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
# Two calls of docker take more than a minute on a busy host.
answer_seconds=240
node=raspberrypi
# A version that the machine keeps, and one that it takes back.
newer=9.0.0 broken=9.1.0

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
  step 'Packages and card'
  timed 'the packages' build_packages
  timed 'the releases' make_releases
  start_controller "$host_seen_from_machine" --bind-address 127.0.0.1
  make_card
  start_from_card
  step 'The first boot'
  first_boot
  step 'The machine'
  try_pod
  step 'Updates'
  timed "from 'updates start' until $newer is committed" roll_out "$newer" AgentUpToDate
  timed "from 'updates start' until $broken is taken back" roll_out "$broken" AgentRolledBack
  wait_or_fail 60 "The rollout of $broken does not pause" rollout_pauses
  in_machine 'bramble-update status'
  if has_read_only_root; then
    step 'A restart of a read-only root'
    restart
  elif [ -z "$image" ]; then
    step 'Suspended'
    suspend
  fi
  step 'The end'
  timed 'from kubectl delete until the pod is gone' delete_pod
  in_machine 'systemctl poweroff' >/dev/null || true
  timed 'from systemctl poweroff to power down' wait_until_off 180 'The machine does not power down'
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

build_packages() {
  local build=(scripts/build-packages.sh --arch arm64 --quick --yes)
  [ -n "$image" ] || quietly 'Building bramble-agent for arm64' "$install_log" "${build[@]}" --out "$data/packages" bramble-runtime bramble-agent
  quietly 'Building a newer one' "$install_log" "${build[@]}" --version "$newer" --out "$data/newer" bramble-agent
}

# make_releases: the key of a publisher, a release of the newer package, and one of which the program ends at once.
make_releases() {
  local release=$data/release.mjs library=$data/broken/usr/lib/bramble-agent key sequence
  sequence=$(date +%s)
  node_modules/.bin/esbuild scripts/release.ts --bundle --platform=node --format=esm --log-level=warning --outfile="$release"
  key=$(node "$release" keys --out "$data/keys")
  dpkg-deb --raw-extract "$data"/newer/bramble-agent_*.deb "$data/broken"
  printf '#!/bin/sh\nexit 1\n' >"$library/bramble-agent"
  sed -i "s/$newer/$broken/" "$library/release.json"
  dpkg-deb --root-owner-group --build "$data/broken" "$data/broken.deb"
  node "$release" release --key "$key" --sequence "$sequence" --out "$data/releases/$newer" "$data"/newer/bramble-agent_*.deb
  node "$release" release --key "$key" --sequence "$((sequence + 1))" --out "$data/releases/$broken" "$data/broken.deb"
} >>"$install_log" 2>&1

# The boot partition and the root partition, in MiB, as those of pi-gen and of build-image.sh.
boot_start=8 boot_size=512 root_size=3072
root_start=$((boot_start + boot_size))
# A read-only root and a partition for data have room. It takes what is written to it.
card_size=16384

make_card() {
  local options=(--packages "$data/packages")
  if [ -n "$image" ]; then options=(--node-name "$node"); else timed 'the image' make_image; fi
  timed 'the card' write_card "${options[@]}"
  rm -f "$data/image"
  truncate -s "${card_size}M" "$data/card"
  put_inside
}

write_card() {
  scripts/bramble-controller card "${image:-$data/image}" --out "$data/card" "$@" --data-dir "$data/controller" 2>>"$install_log" ||
    fail 'The card is not made' 'The cause is in its log.' "$install_log"
}

# make_image: as pi-gen makes one. The packages of the agent are not in it.
make_image() {
  truncate -s "$((root_start + root_size))M" "$data/image"
  printf 'label: dos\nstart=%sMiB, size=%sMiB, type=c\nstart=%sMiB, size=%sMiB, type=83\n' "$boot_start" "$boot_size" "$root_start" "$root_size" |
    sfdisk "$data/image" >>"$install_log" 2>&1 || fail 'The partitions cannot be made' 'The cause is in the log of sfdisk.' "$install_log"
  quietly 'Writing the root partition' "$install_log" mke2fs -q -t ext4 -E "offset=$((root_start << 20))" -d "$root" "$data/image" "${root_size}M"
  mkdir "$data/fat"
  printf 'console=ttyAMA0 root=/dev/vda2 rw apparmor=0\n' >"$data/fat/cmdline.txt"
  printf 'auto_initramfs=1\n' >"$data/fat/config.txt"
  printf 'Debian in the form of Raspberry Pi OS\nGenerated as by pi-gen\n' >"$data/fat/issue.txt"
  cp "$kernel" "$data/fat/kernel8.img"
  truncate -s "${boot_size}M" "$data/boot"
  mkfs.vfat -F 32 -s 1 -n bootfs "$data/boot" >>"$install_log" 2>&1
  mcopy -i "$data/boot" "$data"/fat/* ::
  dd if="$data/boot" of="$data/image" bs=1M seek="$boot_start" conv=notrunc,sparse status=none
  rm "$data/boot"
}

# put_inside: onto the root partition what the machine is looked at with, the key of the publisher, a shorter trial, and a program for pods.
put_inside() {
  local inside=$data/inside trial=etc/systemd/system/bramble-agent-trial.service.d
  mkdir -p "$inside/etc/bramble" "$inside/$trial" "$inside/usr/share"
  open_door "$inside"
  cp "$data/keys/release-keys.json" "$inside/etc/bramble/"
  printf '[Service]\nExecStart=\nExecStart=/usr/bin/bramble-update judge --trial-seconds 120 --deaf-seconds 120\n' >"$inside/$trial/short.conf"
  tar -C "$root" -cf "$inside/usr/share/busybox.tar" bin/busybox
  [ -n "$image" ] || printf '%s\n' "$node" >"$inside/etc/hostname"
  (cd "$inside" && find . -mindepth 1 -printf '%y %P %l\n') | while read -r kind path target; do
    case $kind in
      d) printf 'mkdir /%s\n' "$path" ;;
      l) printf 'rm /%s\nsymlink /%s %s\n' "$path" "$path" "$target" ;;
      f) printf 'cd /%s\nrm %s\nwrite %s/%s %s\n' "$(dirname "$path")" "${path##*/}" "$inside" "$path" "${path##*/}" ;;
    esac
  done | debugfs -w -f - "$data/card?offset=$((root_start << 20))" >>"$install_log" 2>&1
  e2fsck -fn "$data/card?offset=$((root_start << 20))" >>"$install_log" 2>&1 || fail 'The root partition is damaged' 'The cause is in the log of e2fsck.' "$install_log"
}

# start_from_card: an image of ours has its own kernel and initramfs; for the form of Raspberry Pi OS they are those of its Debian.
start_from_card() {
  [ -n "$image" ] || return 0
  kernel=$data/vmlinuz initramfs=$data/initrd
  mcopy -i "$data/card@@$((boot_start << 20))" '::vmlinuz-*' "$kernel"
  mcopy -i "$data/card@@$((boot_start << 20))" '::initrd.img-*' "$initramfs"
}

# on_card FILE: the text of a file on the boot partition.
on_card() { mtype -i "$data/card@@$((boot_start << 20))" "::$1"; }

# The firmware of a board reads the kernel and its words from the card; qemu has none and is given both.
switch_on() {
  door=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
  local hardware words
  words=$(on_card cmdline.txt)
  "hardware_of_$board"
  nice qemu-system-aarch64 "${hardware[@]}" -accel tcg,thread=multi -display none -monitor none -no-reboot \
    -kernel "$kernel" -initrd "$initramfs" -append "$words" \
    -netdev "user,id=net,hostfwd=tcp:127.0.0.1:$door-:2222" >>"$install_log" 2>&1 </dev/null &
  machine=$!
}

hardware_of_virt() {
  local processors=(-cpu cortex-a72 -smp 2 -m 1024)
  quietly 'Describing the board' "$install_log" describe_board "${processors[@]}" -display none ||
    fail 'The board cannot be described' 'The cause is in the log of qemu or dtc.' "$install_log"
  hardware=(-M virt "${processors[@]}" -dtb "$data/board" -drive "file=$data/card,format=raw,if=virtio,cache=unsafe"
    -device 'virtio-net-pci,netdev=net,romfile=' -serial "file:$data/console")
}

# Its first serial line is that of Bluetooth. The first half of an address of Raspberry Pi makes the adapter eth0, as that of a board; those of qemu
# would make it usb0. What is emulated is slow to appear, and has no graphics. Its watchdog resets the board when systemd sets its timer.
hardware_of_raspi3b() {
  mcopy -n -i "$data/card@@$((boot_start << 20))" '::bcm2837-rpi-3-b.dtb' "$data/board"
  words+=' systemd.default_device_timeout_sec=900 systemd.watchdog_device=/dev/none module_blacklist=vc4,v3d'
  hardware=(-M raspi3b -dtb "$data/board" -drive "file=$data/card,format=raw,if=sd,cache=unsafe"
    -device 'usb-net,netdev=net,mac=b8:27:eb:00:00:01' -serial null -serial "file:$data/console")
}

first_boot() {
  switch_on
  if [ -z "$image" ] || asks_for_read_only; then
    timed 'the first boot, until it restarts' wait_until_off 1200 'The machine does not restart'
    [ -n "$image" ] || check_prepared
    switch_on
  fi
  timed 'from switching on to systemd and a shell' wait_or_fail 600 'The machine does not boot' answers true
  timed '… until it has joined and is Ready' wait_or_fail 900 'The machine does not become Ready' node_is_ready
  [ -n "$image" ] || check_installed
  if asks_for_read_only; then check_read_only; fi
  kube get nodes --output wide
  [ "$(kube get node "$node" --output 'jsonpath={.status.nodeInfo.architecture}')" = arm64 ] || fail 'The node is not arm64' 'See above.'
  wait_or_fail 60 'The first-boot file is still there' answers '! test -e /boot/firmware/bramble.yaml'
  print '    The first-boot file with its token is gone from the boot partition'
}

asks_for_read_only() { [ -n "$image" ] && [ "$(on_card bramble/storage 2>/dev/null)" = read-only ]; }
has_read_only_root() { [ "$(in_machine 'findmnt --noheadings --output FSTYPE /')" = overlay ]; }

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

check_read_only() {
  in_machine 'bramble-storage status; findmnt --output TARGET,SOURCE,FSTYPE,SIZE,USED --list --real; systemctl --failed --no-legend'
  has_read_only_root || fail 'The root is writable' 'See what is above.'
  answers 'mountpoint /var/lib/bramble-data && mountpoint /var/lib/docker && mountpoint /var/lib/bramble' ||
    fail 'The data is not on its own partition' 'See what is above.'
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

node_is_ready() { [ "$(ready_status "$node")" = True ]; }
node_is_unknown() { [ "$(ready_status "$node")" = Unknown ]; }
pod_is_running() { [ "$(kube get pod hello --output 'jsonpath={.status.phase}' 2>/dev/null)" = Running ]; }

try_pod() {
  timed 'an image, imported' import_image
  timed 'a pod, from kubectl to Running' run_pod
  kube get pods --output wide
  print "    In the pod: $(in_machine 'docker exec $(docker ps --quiet --filter ancestor=boot-arm64:1) /bin/busybox uname -m')"
  print "    The agent: $(in_machine 'systemctl show --property=MemoryCurrent,NRestarts,StatusText bramble-agent | tr "\n" " "')"
  print "    The machine: $(in_machine 'free -m | sed -n 2p; df -h / | tail -n 1')"
  kill_container
}

# wait_until_off SECONDS WHAT
wait_until_off() { wait_for "$1" machine_is_off || fail "$2 within $1 s" 'The end of its console is above.' "$data/console"; }

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

restarts() { kube get pod hello --output 'jsonpath={.status.containerStatuses[0].restartCount}'; }
container_is_back() { [ "$(restarts)" = 1 ] && pod_is_running; }
kill_container() {
  in_machine 'docker kill $(docker ps --quiet --filter ancestor=boot-arm64:1) >/dev/null' || fail 'The container cannot be killed' 'Its own words are above.'
  timed 'from docker kill to Running again' wait_or_fail 180 'The container is not started again' container_is_back
}

# roll_out VERSION REASON: the controller serves it, and the machine ends its trial with that. The pod runs on: its container is the one before.
roll_out() {
  local version=$1 reason=$2 before after
  before=$(containers)
  scripts/bramble-controller updates add "$data/releases/$version" --data-dir "$data/controller"
  scripts/bramble-controller updates start "$version" --data-dir "$data/controller"
  wait_or_fail 900 "The trial of $version does not end as it must" trial_ended_with "$version" "$reason"
  wait_or_fail 180 'The node does not run the version that is committed' runs_newer
  print "    $(update_condition)"
  after=$(containers)
  [ "$before" = "$after" ] || fail 'The update has restarted the pod' "Before: $before; after: $after"
  print "    The same containers as before: $after"
}

containers() { in_machine 'docker ps --quiet --no-trunc | xargs docker inspect --format "{{.Id}} {{.State.StartedAt}}" | sort'; }
runs_newer() { [[ $(kube get node "$node" --output 'jsonpath={.status.nodeInfo.kubeletVersion}') == *"$newer"* ]] && node_is_ready; }
update_condition() {
  kube get node "$node" --output 'jsonpath={range .status.conditions[?(@.type=="AgentUpdateFailed")]}{.reason}: {.message}{end}'
}
trial_ended_with() {
  local now
  now=$(update_condition)
  [[ $now == "$2:"* && $now == *"$1"* ]]
}
rollout_pauses() { [[ $(scripts/bramble-controller updates status --data-dir "$data/controller") == *Paused* ]]; }

# restart: what is not on the partition for data is gone, and the machine is the same node with the same pod.
restart() {
  local uid
  uid=$(node_uid)
  in_machine 'touch /etc/changed && systemctl reboot' >/dev/null || true
  timed 'from systemctl reboot to the restart' wait_until_off 300 'The machine does not restart'
  switch_on
  timed 'from switching on to systemd and a shell' wait_or_fail 600 'The machine does not boot' answers true
  timed '… until the pod runs' wait_or_fail 600 'The pod does not run' answers 'docker ps | grep -q boot-arm64:1'
  timed '… until it is Ready' wait_or_fail 300 'The node is not Ready' runs_newer
  answers '! test -e /etc/changed' || fail 'What was changed in /etc is still there' 'The root is not read-only.'
  [ "$uid" = "$(node_uid)" ] || fail 'It is another node' "Before: $uid; after: $(node_uid)"
  print "    The same node with $newer, and the same pod"
}
node_uid() { kube get node "$node" --output 'jsonpath={.metadata.uid}'; }

delete_pod() {
  kube delete pod hello --timeout=180s || fail 'The pod does not go' 'See kubectl describe.'
  answers '[ -z "$(docker ps --all --quiet)" ]' || fail 'The containers of the pod stay' 'See docker ps.'
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
  ! grep -E 'Unhealthy|Killing|Evicted|TaintManagerEviction|BackOff|Clock|Rebooted' <<<"$events" || fail 'Somebody took notice of it' "See the Events above."
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
  local offset
  for offset in $(sfdisk --json "$data/card" | node -e 'for (const { start, type } of JSON.parse(require("fs").readFileSync(0)).partitiontable.partitions) if (type === "83") console.log(start * 512)'); do
    dumpe2fs -h "$data/card?offset=$offset" 2>/dev/null | grep -q '^Filesystem state: *clean' || fail 'A file system was not unmounted' 'The end of the console:' "$data/console"
  done
  dd if="$data/card" bs=1M skip="$boot_start" count="$boot_size" of="$data/boot" status=none
  fsck.vfat -n "$data/boot" >>"$install_log" || fail 'The boot partition is damaged' 'See the log of fsck.vfat.' "$install_log"
  print '    The file systems were unmounted, and are whole'
  local annotations
  annotations=$(kube get lease "$node" --namespace kube-node-lease --output 'jsonpath={.metadata.annotations}')
  print "    What the controller recorded: $annotations"
  [[ $annotations == *goodbye* ]] || fail 'The agent did not announce its shutdown' 'See the lease above.'
}

clean_up() {
  [ -z "$machine" ] || kill -9 "$machine" 2>/dev/null || true
  stop controller "$data/controller" 20
  forget_foreign_programs
  rm -rf --one-file-system -- "$data"
}

main
