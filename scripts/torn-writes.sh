#!/usr/bin/env bash
# Pulls the plug of a whole machine while its agent writes, again and again: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/torn-writes.sh [--yes] [--pulls N] [--seed N]

Boots a machine with a kernel, a page cache and a clock of its own (user-mode Linux; Debian, Docker and the bramble-agent package on
ext4), has its checkpoint written over and over (a ConfigMap of 300 kB that changes several times a second), and kills the whole machine
at a random moment. What is on the disk after the journal is replayed must be a whole checkpoint: its checksum fits, and it is not older
than the one found before. Then the machine boots, must be Ready, and must run its pod. It is restarted in order now and then. At
the end its clock is set to 1970, and ten years ahead. Not part of the tests: a minute for each pull on a busy machine. Needs root.

  --yes      do not ask before installing what is missing
  --pulls N  how often; 10
  --seed N   of the moments; printed at the start
  --help
TXT
}

assume_yes='' pulls=10 seed=$$
while [ $# -gt 0 ]; do
  case $1 in
    --yes) assume_yes=yes && shift ;;
    --pulls) pulls=${2:?'--pulls: how many?'} && shift 2 ;;
    --seed) seed=${2:?'--seed: which?'} && shift 2 ;;
    --help) usage && exit 0 ;;
    *) echo "torn-writes.sh: unknown argument $1; see --help" >&2 && exit 64 ;;
  esac
done

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/machine.sh
. scripts/support/machine.sh

# A wire of our own between host and machine.
wire=bramble$((seed % 10000))
net=10.$((64 + seed % 60)).$((seed / 60 % 256))
door_host=$net.2 door=2222
writer='' wire_made=''

main() {
  [ "$(id -u)" = 0 ] || fail 'Only root can make a machine' 'Run this as root.'
  data=$(mktemp -d /var/tmp/bramble-torn.XXXXXX)
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  step "What is needed, for $pulls pulls with seed $seed"
  RANDOM=$seed
  install_needed
  ensure_modules run
  ensure_bundles
  build_disk
  make_wire
  start_controller "$net.1"
  step 'The first boot'
  timed 'from switching on to a shell' boot
  join
  run_pod
  step "$pulls pulls of the plug"
  local pull found=0
  for ((pull = 1; pull <= pulls; pull++)); do
    # Boots in a row that break off soon after a pod's start make the agent suspect that pod.
    ((pull % 4 != 0)) || restart_in_order
    pull_the_plug
  done
  step 'The clock'
  clock_case 'the first day of 1970' '@3600'
  clock_case 'ten years ahead' "@$(($(date +%s) + 315576000))"
  step "All well: $pulls pulls, seed $seed; the checkpoint was whole each time"
}

install_needed() {
  plan_node
  want user-mode-linux 'a machine with a kernel of its own'
  want mmdebstrap 'what it boots from'
  want e2fsprogs 'its disk'
  want iproute2 'its network'
  want openssl 'content of a kind that does not compress'
  want busybox-static 'an image without a network'
  command -v kubectl >/dev/null || want kubernetes-client 'kubectl'
  [ "${#missing_packages[@]}" = 0 ] || refresh_package_lists
  install_missing
  ensure_node
}

build_disk() {
  local root disk=$data/merged release
  quietly 'A Debian to boot from' "$install_log" test/machines/build-root.sh || fail 'There is nothing to boot from' 'Its own words:' "$install_log"
  root=$(test/machines/build-root.sh)
  quietly 'Building bramble-agent' "$install_log" scripts/build-packages.sh --quick --yes --out "$data" bramble-runtime bramble-agent ||
    fail 'The package cannot be built' 'Its own words:' "$install_log"
  mkdir -p "$disk" "$data/upper" "$data/overlay"
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$data/upper,workdir=$data/overlay" "$disk"
  cp "$data"/bramble-runtime_*.deb "$disk/var/tmp/runtime.deb"
  cp "$data"/bramble-agent_*.deb "$disk/var/tmp/agent.deb"
  chroot "$disk" dpkg --install /var/tmp/runtime.deb /var/tmp/agent.deb >>"$install_log" 2>&1
  # This kernel has too little of nftables for Docker.
  chroot "$disk" update-alternatives --set iptables /usr/sbin/iptables-legacy >>"$install_log"
  mkdir -p "$disk/lib/modules"
  release=$(ls /usr/lib/uml/modules)
  cp -r "/usr/lib/uml/modules/$release" "$disk/lib/modules/"
  open_door "$disk"
  cat >"$disk/etc/systemd/system/wire.service" <<UNIT
[Unit]
DefaultDependencies=no
Before=network.target
After=systemd-modules-load.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'ip link set lo up; ip address add $net.2/24 dev vec0; ip link set vec0 up; ip route add default via $net.1'
UNIT
  ln -sf ../wire.service "$disk/etc/systemd/system/sysinit.target.wants/"
  printf '/dev/ubda / ext4 defaults 0 1\n' >"$disk/etc/fstab"
  printf 'torn\n' >"$disk/etc/hostname"
  : >"$disk/etc/machine-id" # Empty: not a first boot that asks questions, and yet one of its own.
  tar -C / -cf "$disk/usr/share/busybox.tar" bin/busybox
  quietly 'Writing the disk' "$install_log" mke2fs -q -t ext4 -d "$disk" "$data/disk" 3G
  umount "$disk"
}

make_wire() {
  ip tuntap add dev "$wire" mode tap && wire_made=yes
  ip address add "$net.1/24" dev "$wire"
  ip link set "$wire" up
}

boot() {
  mkdir -p /dev/shm/"${data##*/}"
  # In a session of its own: its processes die together, as the parts of a machine do.
  TMPDIR=/dev/shm/${data##*/} nice setsid linux.uml "ubd0=$data/disk" root=/dev/ubda rw mem=768M con0=null,fd:1 con=null apparmor=0 \
    "vec0:transport=tap,ifname=$wire,depth=64" >"$data/console" 2>&1 </dev/null &
  machine=$! switched_on=$SECONDS
  wait_or_fail 300 'The machine does not boot' answers true
}

join() {
  local line
  line=$(join_line)
  in_machine "$line --no-run" || fail 'It cannot join' 'Its own words are above.'
  wait_or_fail 300 'It does not become Ready' node_is_ready
  print '    It has joined and is Ready'
}

run_pod() {
  in_machine 'docker import --change "ENTRYPOINT [\"/bin/busybox\"]" /usr/share/busybox.tar torn:1 >/dev/null' || fail 'No image can be imported' 'Its own words are above.'
  write_state 0 create
  kube create --filename - <<'YAML'
apiVersion: v1
kind: Pod
metadata: { name: hello }
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: hello
      image: torn:1
      imagePullPolicy: Never
      args: [sleep, '100000']
      volumeMounts: [{ name: state, mountPath: /state }]
  volumes: [{ name: state, configMap: { name: state } }]
YAML
  wait_or_fail 300 'The pod does not run' pod_runs
}

# write_state STEP VERB: what the checkpoint must contain. All letters of the filler change with the step: half of one can be distinguished from the next.
write_state() {
  local filler
  filler=$(openssl enc -aes-128-ctr -pass "pass:$1" -nosalt -pbkdf2 -iter 1 </dev/zero 2>/dev/null | head -c 225000 | base64 -w 0) || true
  kube "$2" --filename - >/dev/null <<<"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"state\"},\"data\":{\"step\":\"$1\",\"filler\":\"$filler\"}}"
}

# Until it is ended; the last step sent is in a file.
keep_writing() {
  local step=$1
  while [ ! -e "$data/enough" ]; do
    step=$((step + 1))
    printf '%s' "$step" >"$data/sent"
    write_state "$step" replace || true
  done
}

pull_the_plug() {
  local after_ms=$((500 + RANDOM % 4500)) sent
  rm -f -- "$data/enough"
  keep_writing "$(cat "$data/sent" 2>/dev/null || echo 0)" &
  writer=$!
  pause "$((after_ms / 1000)).$(printf %03d $((after_ms % 1000)))"
  switch_off
  touch "$data/enough"
  wait "$writer" || true
  writer=''
  sent=$(cat "$data/sent")
  look_at_disk "$sent"
  boot
  wait_or_fail 300 'The machine is not Ready after the pull' node_is_ready_again
  wait_or_fail 300 'The pod does not run after the pull' pod_runs
  ! in_machine 'journalctl --boot --unit bramble-agent | grep "cannot be used" || ls /var/lib/bramble/agent/*.unreadable 2>/dev/null' ||
    fail 'The agent could not use what it had written' 'Its words are above.'
  print "    $pull: off after $after_ms ms; found step $found of $sent, whole; Ready and the pod runs $((SECONDS - switched_on)) s after it was switched on"
}

restart_in_order() {
  in_machine 'systemctl poweroff --no-block' || fail 'It does not go down' 'Its words are above.'
  wait_for 120 machine_is_off || fail 'It does not go down within 120 s' 'The end of its console:' "$data/console"
  switch_off
  boot
  wait_or_fail 300 'The machine is not Ready after a restart' node_is_ready_again
  wait_or_fail 300 'The pod does not run after a restart' pod_runs
}

switch_off() {
  kill -9 -- "-$machine" 2>/dev/null || true
  wait "$machine" 2>/dev/null || true
  machine=''
}

# A copy, so that the machine's own kernel has the journal to replay too.
look_at_disk() {
  local status=0 step aside
  cp --sparse=always "$data/disk" "$data/copy"
  e2fsck -fy "$data/copy" >"$data/fsck" 2>&1 || status=$?
  [ "$status" -le 1 ] || fail 'The file system cannot be repaired' 'The output of fsck:' "$data/fsck"
  debugfs -R 'cat /var/lib/bramble/agent/desired.json' "$data/copy" >"$data/desired" 2>/dev/null
  rm -rf -- "$data/desired.json.contents"
  debugfs -R "rdump /var/lib/bramble/agent/desired.json.contents $data" "$data/copy" >/dev/null 2>&1
  step=$(node -e '
    const { createHash } = require("crypto")
    const { readFileSync } = require("fs"), [path, folder] = process.argv.slice(1)
    const text = readFileSync(path, "utf8"), end = text.indexOf("\n"), content = text.slice(end + 1, -1)
    const expect = (sum, text) => { if (!createHash("sha256").update(text).digest("hex").startsWith(sum)) throw new Error("The checksum does not fit") }
    expect(JSON.parse(text.slice(0, end)).sha256, content)
    const { pods, configMaps } = JSON.parse(content).desired
    const [, found] = [pods, configMaps].map((hashes) => hashes.map((hash) => {
      const part = readFileSync(`${folder}/${hash}`, "utf8")
      expect(hash, part)
      return JSON.parse(part)
    }))
    console.log(found.find((one) => one.metadata.name === "state").data.step)
  ' "$data/desired" "$data/desired.json.contents" 2>"$data/why") || { cp "$data/desired" dist/torn-checkpoint && fail "Pull $pull left half a checkpoint (kept: dist/torn-checkpoint)" 'The output of Node.js:' "$data/why"; }
  [ "$step" -ge "$found" ] && [ "$step" -le "$1" ] || fail "Pull $pull left step $step; $found was found before, and $1 was sent" 'A write that was flushed is lost.'
  found=$step
  aside=$(debugfs -R 'ls -p /var/lib/bramble/agent' "$data/copy" 2>/dev/null | grep -c '\.new/' || true)
  [ "$aside" = 0 ] || print "    … in the middle of a write: $aside unfinished beside it"
}

lease_annotation() { kube get lease torn --namespace kube-node-lease --output "jsonpath={.metadata.annotations.bramble\\.dev/$1}" 2>/dev/null; }
node_is_ready() { [ "$(ready_status torn)" = True ]; }
# Ready in this boot, not as remembered from the previous one.
node_is_ready_again() { node_is_ready && [ "$(lease_annotation connection)" = online ] && [ "$(lease_annotation boot-id)" = "$(in_machine 'cat /proc/sys/kernel/random/boot_id')" ]; }
container() { in_machine 'docker ps --quiet --no-trunc --filter ancestor=torn:1'; }
pod_runs() { [ -n "$(container)" ] && [ "$(kube get pod hello --output 'jsonpath={.status.phase}')" = Running ]; }

# clock_case WHAT DATE
clock_case() {
  local before after began
  before=$(container)
  in_machine "date --set='$2'" || fail 'The clock cannot be set' 'Its words are above.'
  began=$(date +%s%3N)
  in_machine 'systemctl restart bramble-agent' || fail 'The agent does not start' "$(in_machine 'journalctl --unit bramble-agent --lines 20')"
  wait_or_fail 300 "The machine is not Ready with its clock at $1" ready_since "$began"
  after=$(container)
  [ -n "$before" ] && [ "$before" = "$after" ] || fail "The container did not live on with the clock at $1" "Before: $before, after: $after"
  print "    $1: Ready $((($(date +%s%3N) - began) / 1000)) s after the agent was restarted, and its container is the same"
}

# A heartbeat after the moment by our own clock.
ready_since() {
  local renewed
  renewed=$(kube get lease torn --namespace kube-node-lease --output 'jsonpath={.spec.renewTime}')
  node_is_ready && [ "$(lease_annotation connection)" = online ] && [ "$(date -d "$renewed" +%s%3N)" -gt "$1" ]
}

clean_up() {
  touch "$data/enough"
  [ -z "$machine" ] || switch_off
  [ -z "$writer" ] || wait "$writer" 2>/dev/null || true
  stop controller "$data/controller" 20
  ! mountpoint -q "$data/merged" || umount --lazy "$data/merged"
  [ -z "$wire_made" ] || ip link delete "$wire"
  rm -rf --one-file-system -- "$data" "/dev/shm/${data##*/}"
}

main
