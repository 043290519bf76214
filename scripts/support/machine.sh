# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by our scripts that boot a machine: a controller on this host, and a root shell in the machine, on a port that only this
# host reaches. Needs these: data, door_host, door.

# shellcheck source=scripts/support/tools.sh
. scripts/support/tools.sh

# Its process, while it is on.
machine=''

# start_controller ADDRESS OPTION…: one that machines reach at that address.
start_controller() {
  local address=$1
  shift
  start controller "$data/controller.log" scripts/bramble-controller run --data-dir "$data/controller" --kubeconfig "$data/kubeconfig" \
    --advertise-address "$address" "$@" --api-port 0 --mqtt-port 0 --log-format json
  wait_for 60 grep 'Controller ready' "$data/controller.log" || fail 'The controller does not start' 'The cause is in its log.' "$data/controller.log"
}

# The address that machines reach need not be one of this host.
kube() { kubectl --kubeconfig "$data/kubeconfig" --context bramble-local --cache-dir "$data/kube-cache" "$@"; }
join_line() { scripts/bramble-controller token create --data-dir "$data/controller" --print-join-command | grep -o 'bramble-agent join .*'; }
# ready_status NODE: True, False, Unknown, or nothing.
ready_status() { kube get node "$1" --output 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null; }

# open_door ROOT: a shell for each connection.
open_door() {
  local units=$1/etc/systemd/system
  printf '[Socket]\nListenStream=2222\nAccept=yes\n' >"$units/door.socket"
  printf '[Service]\nExecStart=-/bin/sh\nStandardInput=socket\nStandardOutput=socket\nStandardError=socket\n' >"$units/door@.service"
  mkdir -p "$units/sockets.target.wants"
  ln -sf ../door.socket "$units/sockets.target.wants/"
}

# in_machine COMMAND: its output; fails when it does, or when there is no answer within a minute, or $answer_seconds.
in_machine() {
  local words
  { exec 5<>"/dev/tcp/$door_host/$door"; } 2>/dev/null || return 1
  printf '%s\nprintf "\\nstatus %%s\\n" $?\nexit\n' "$1" >&5
  words=$(timeout "${answer_seconds:-60}" cat <&5) || true
  exec 5>&-
  sed '/^status [0-9]*$/d; /^$/d' <<<"$words"
  [ "$(tail -n 1 <<<"$words")" = 'status 0' ]
}
answers() { in_machine "$1" >/dev/null 2>&1; }

machine_is_off() { ! kill -0 "$machine" 2>/dev/null; }

# wait_or_fail SECONDS WHAT COMMAND…: until it succeeds; prints WHAT and shows the console when it does not.
wait_or_fail() {
  local seconds=$1 what=$2 until=$((SECONDS + $1))
  shift 2
  until "$@"; do
    ! machine_is_off || fail "$what: the machine is off" 'The end of its console is above.' "$data/console"
    [ "$SECONDS" -lt "$until" ] || { print_journal; fail "$what within $seconds s" 'The end of its console is above.' "$data/console"; }
    pause 0.5
  done
}

print_journal() {
  in_machine 'journalctl --no-pager --lines 40 --unit bramble-agent --unit bramble-first-boot --unit docker; systemctl list-jobs; ip -brief address' || true
}

# timed WHAT COMMAND…
timed() {
  local what=$1 began
  shift
  began=$(date +%s%3N)
  "$@"
  printf '    %-45s %5.1f s\n' "$what" "$(($(date +%s%3N) - began))e-3"
}
