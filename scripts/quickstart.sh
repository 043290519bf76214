#!/usr/bin/env bash
# From a clone to a node that is Ready: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/quickstart.sh [options]
       scripts/quickstart.sh --join https://HOST:PORT --token ID.SECRET --ca-hash sha256:HEX [options]

Make this machine a fleet of one: install what is missing (after listing it), build, start the broker-controller and an
agent, wait until the node is Ready, print what to try next, and run until Ctrl-C. With --join make it a node of a fleet that
runs elsewhere: the same without a broker-controller.

  --join URL         the API of the fleet; 'bramble-controller token create --print-join-command' prints the line with all three
  --token TOKEN      with --join: lets this machine request its certificate; not needed once it has joined
  --ca-hash HASH     with --join: of the fleet's authority; nothing is sent to a controller that has another
  --yes              do not ask before installing
  --background       return when the node is Ready; all programs keep running
  --stop             stop the agent, the controller and dockerd, in this order
  --data DIR         data folder; default /var/lib/bramble for root, else ~/.local/share/bramble
  --api-port PORT    Kubernetes API, default 6443; 0 picks a free one
  --mqtt-port PORT   MQTT, default 8883; 0 picks a free one
  --node-name NAME   default: this machine's host name
  --help             print this text

In DIR: kubeconfig (the administrator's), controller/ and agent/ (their state), logs/, controller.pid, agent.pid, and,
where no Docker runs and no systemd could run it, docker/, docker.sock and dockerd.pid of a dockerd that this script starts.
DIR must belong to the user who runs this, and other users must not be able to write to it or to a folder above it.

Run it again at any time: it starts only what is not running. Ctrl-C stops what this run started.
TXT
}

data='' api_port='' mqtt_port='' node_name='' assume_yes='' background='' stop='' join='' token='' ca_hash=''
while [ $# -gt 0 ]; do
  case $1 in
    --yes) assume_yes=yes ;;
    --background) background=yes ;;
    --stop) stop=yes ;;
    --data | --api-port | --mqtt-port | --node-name | --join | --token | --ca-hash)
      [ $# -ge 2 ] || { echo "quickstart.sh: $1 needs a value" >&2 && exit 64; }
      option=${1#--}
      printf -v "${option//-/_}" %s "$2"
      shift
      ;;
    --help) usage && exit 0 ;;
    *) echo "quickstart.sh: unknown option $1; see --help" >&2 && exit 64 ;;
  esac
  shift
done

for port in "$api_port" "$mqtt_port"; do
  [[ $port =~ ^[0-9]{0,5}$ ]] && [ "${port:-0}" -le 65535 ] ||
    { echo "quickstart.sh: not a port: $port; give a number from 0 to 65535" >&2 && exit 64; }
done

[ -z "$join" ] || [[ $join =~ ^https://[^/]+$ && $token =~ ^[a-z0-9]{6}\.[a-z0-9]{16}$ && $ca_hash =~ ^sha256:[0-9a-f]{64}$ ]] ||
  { echo "quickstart.sh: --join needs https://HOST:PORT, --token ID.SECRET and --ca-hash sha256:HEX, as 'bramble-controller token create --print-join-command' prints them" >&2 && exit 64; }
[ -n "$join" ] || [ -z "$token$ca_hash" ] || { echo "quickstart.sh: --token and --ca-hash are for --join; see --help" >&2 && exit 64; }

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
# shellcheck source=scripts/support/packages.sh
. scripts/support/packages.sh
# shellcheck source=scripts/support/processes.sh
. scripts/support/processes.sh
# shellcheck source=scripts/support/docker.sh
. scripts/support/docker.sh
# shellcheck source=scripts/support/data-folder.sh
. scripts/support/data-folder.sh
# shellcheck source=scripts/support/member.sh
. scripts/support/member.sh
# shellcheck source=scripts/support/pod-network.sh
. scripts/support/pod-network.sh

if [ -z "$data" ]; then
  [ "$(id -u)" = 0 ] && data=/var/lib/bramble || data=${XDG_DATA_HOME:-$HOME/.local/share}/bramble
fi
data=$(realpath -m -- "$data")
logs=$data/logs
tools=$data/tools
install_log=$logs/install.log
# The controller's and the agent's own folders distinguish their processes from others.
controller_mark=$data/controller
agent_mark=$data/agent
dockerd_mark=$data/docker
socket=/var/run/docker.sock
started=()
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

main() {
  [ -z "$stop" ] || { stop_all && return; }
  prepare_folders
  trap end_what_we_started EXIT
  trap 'exit 130' INT TERM
  step 'Checking what is installed'
  install_what_is_missing
  export BRAMBLE_NODE
  BRAMBLE_NODE=$(command -v node)
  step 'Building'
  ensure_modules run
  ensure_bundles
  # The system's Node.js is too old: the launchers must find this one.
  [[ $BRAMBLE_NODE != "$tools"/* ]] || ln -sfn "$BRAMBLE_NODE" dist/bundle/node
  if is_member; then
    step 'Docker'
    ensure_docker
    step 'Agent'
    ensure_member
    step "Node $node_name is connected to its fleet ($SECONDS s)"
    note_obstacle
    print "    On the machine of the controller: kubectl get node $node_name"
  else
    step 'Broker-controller'
    ensure_controller
    step 'Docker'
    ensure_docker
    step 'Agent'
    ensure_agent
    step "Node $node_name is Ready ($SECONDS s)"
    note_obstacle
    what_next
  fi
  exec 9>&-
  if [ "${#started[@]}" = 0 ] || [ -n "$background" ]; then
    trap - EXIT
    print "All programs keep running. To stop them: scripts/quickstart.sh --stop --data $data"
  else
    print 'It runs until Ctrl-C.'
    stay
  fi
}

prepare_folders() {
  # A socket's path may have 107 characters, and containerd puts some below our folder.
  [ "${#data}" -le 60 ] || fail "The path of the data folder is too long: $data" 'Choose one of at most 60 characters with --data.'
  [ -w "$data" ] || [ ! -e "$data" ] || fail "This user may not change $data" 'Choose another folder with --data, or run this as its owner.'
  check_data_folder
  make_data_folder
  # The packaged controller, which is not root, goes through this one.
  if [ "$data" = /var/lib/bramble ]; then chmod 755 "$data" && chmod 700 "$logs"; else chmod 700 "$data"; fi
  exec 9>"$data/.lock"
  flock -n 9 || fail "Another quickstart is at work on $data" 'Wait for it to end.'
}

install_what_is_missing() {
  plan_node
  if ! command -v dockerd >/dev/null && [ ! -S "$socket" ]; then
    refresh_package_lists
    want docker.io 'Docker Engine runs the pods'
    want iptables 'Docker needs it'
  fi
  plan_network
  systemd_runs || [ -S "$socket" ] || command -v ip >/dev/null || want iproute2 'to make a network for the pods'
  is_member || plan_kubectl
  install_missing
  ensure_node
}

systemd_runs() { [ -d /run/systemd/system ]; }

ensure_controller() {
  local log=$logs/controller.log began pid
  if pid=$(pid_of controller "$controller_mark"); then
    check_ports_asked
    print "    Already running (pid $pid)"
    return
  fi
  : "${api_port:=$(remembered api_port)}" "${mqtt_port:=$(remembered mqtt_port)}"
  : "${api_port:=6443}" "${mqtt_port:=8883}"
  may_have_port "$api_port" 'Kubernetes API' --api-port
  may_have_port "$mqtt_port" MQTT --mqtt-port
  began=$(size_of "$log")
  start controller "$log" scripts/bramble-controller run --data-dir "$controller_mark" --kubeconfig "$data/kubeconfig" \
    --api-port "$api_port" --mqtt-port "$mqtt_port" --log-format json
  started+=(controller)
  wait_for 60 controller_settled "$began" || true
  written_since "$log" "$began" >"$log.now"
  grep -q 'Controller ready' "$log.now" ||
    fail 'The broker-controller does not become ready' 'Its log is above. If its data is damaged, keep a copy and start with another --data.' "$log.now"
  api_port=$(sed -n '/Controller ready/s/.*"https:\/\/[^"]*:\([0-9]*\)".*/\1/p' "$log.now" | tail -n 1)
  mqtt_port=$(sed -n '/Controller ready/s/.*"mqtts:\/\/[^"]*:\([0-9]*\)".*/\1/p' "$log.now" | tail -n 1)
  rm -f -- "$log.now"
  printf 'api_port=%s\nmqtt_port=%s\n' "$api_port" "$mqtt_port" >"$data/ports"
  print "    Kubernetes API on port $api_port, MQTT on port $mqtt_port"
}

# may_have_port PORT WHAT FLAG
may_have_port() {
  local why
  why=$(probe free "$1") || fail "Port $1 ($2) cannot be used: $why" "Choose another with $3, or 0 for a free one."
}

controller_settled() { written_since "$logs/controller.log" "$1" | grep -q 'Controller ready' || ! pid_of controller "$controller_mark"; }

check_ports_asked() {
  local name
  for name in api_port mqtt_port; do
    case ${!name} in
      '' | 0 | "$(remembered "$name")") printf -v "$name" %s "$(remembered "$name")" ;;
      *) fail "The broker-controller runs already, on port $(remembered "$name")" "To move it: scripts/quickstart.sh --stop --data $data, then start it again." ;;
    esac
  done
}

ensure_agent() {
  local log=$logs/agent.log since began pid name
  if name=$(joined) && [ -n "$node_name" ] && [ "$node_name" != "$name" ]; then
    fail "This machine is node $name of this fleet already" 'Leave out --node-name, or start another fleet with another --data.'
  fi
  if pid=$(pid_of agent "$agent_mark"); then
    print "    Already running (pid $pid)"
    since=0
  else
    join_if_needed
    since=$(date +%s)000
    began=$(size_of "$log")
    start_agent "$log"
  fi
  node_name=$(joined)
  print "    Waiting for node $node_name to be Ready"
  local state
  state=$(probe ready "$data/kubeconfig" "$node_name" 90 "$since") || {
    written_since "$log" "${began:-0}" >"$log.now"
    pid_of agent "$agent_mark" >/dev/null || state='the agent ended'
    [[ $state != *'not found'* ]] ||
      fail "Node $node_name was deleted, and an agent registers its node once, at its start" "scripts/quickstart.sh --stop --data $data, then start it again."
    fail "Node $node_name does not become Ready ($state)" "Its log is above. Docker's: $logs/dockerd.log or journalctl -u docker; the controller's: $logs/controller.log" "$log.now"
  }
}

# start_agent LOG
start_agent() {
  local healthz=10248
  warn_of_disks
  prepare_network
  probe free "$healthz" >/dev/null || healthz=0
  start agent "$1" "${docker_user[@]}" scripts/bramble-agent run --data-dir "$agent_mark" --docker-socket "$socket" \
    --healthz-port "$healthz" --log-format json
  started+=(agent)
}

join_if_needed() {
  joined >/dev/null && return
  local line log=$logs/join.log
  line=$(scripts/bramble-controller token create --kubeconfig "$data/kubeconfig" --ttl 1h \
    --description 'quickstart' --print-join-command 2>"$log") || fail 'No token could be created' 'The broker-controller runs; see its log.' "$log"
  print '    Joining this machine to the fleet'
  # bramble-agent join https://HOST:PORT --token … --ca-hash …; from here the host is this machine.
  read -ra line <<<"$line"
  join_fleet "https://127.0.0.1:$api_port" "${line[@]:3}"
}

# join_fleet URL --token TOKEN --ca-hash HASH
join_fleet() {
  local log=$logs/join.log
  scripts/bramble-agent join "$@" --data-dir "$agent_mark" --no-run ${node_name:+--node-name "$node_name"} >>"$log" 2>&1 </dev/null ||
    fail 'This machine could not join' 'Its output is above. A name in use: choose another with --node-name.' "$log"
}

# The agent evicts pods for a disk that is too full, so a node may be Ready and run nothing.
warn_of_disks() {
  "${docker_user[@]}" scripts/bramble-agent doctor --data-dir "$agent_mark" --docker-socket "$socket" -o json 2>/dev/null </dev/null |
    probe eviction || true
}

joined() { probe joined "$agent_mark/identity.json" "$controller_mark/authority/ca.crt" "$api_port"; }

what_next() {
  if [ "$socket" = "$data/docker.sock" ] && command -v docker >/dev/null; then print "    Docker of this node: docker -H unix://$socket ps"; fi
  cat <<TXT

Try:
    export KUBECONFIG=$data/kubeconfig
    kubectl get nodes -o wide
    kubectl describe node $node_name
    kubectl apply -f $PWD/docs/hello-pod.yaml
    kubectl get pods -o wide --watch

To see the fleet in a browser, open the link that this prints:
    scripts/bramble-controller login-link --kubeconfig $data/kubeconfig

To add another machine, run this; it prints the line for a machine with the package, and the one for a clone:
    scripts/bramble-controller token create --kubeconfig $data/kubeconfig --print-join-command

TXT
}

# Until Ctrl-C, or until nothing of ours runs. A program that ends by itself is reported once.
stay() {
  local name mark alive gone='' interrupted=''
  # Not an exit from within the wait: what ends the programs waits, too.
  trap 'interrupted=yes' INT TERM
  while :; do
    pause 1
    [ -z "$interrupted" ] || exit 130
    alive=''
    for name in "${started[@]}"; do
      mark=${name}_mark
      if pid_of "$name" "${!mark}" >/dev/null; then
        alive=yes
      elif [[ $gone != *$name* ]]; then
        gone+=" $name"
        tail -n 5 -- "$logs/$name.log"
        print "The $name ended; the end of its log is above. To start it again: scripts/quickstart.sh --background --data $data"
      fi
    done
    [ -n "$alive" ] || exit 0
  done
}

end_what_we_started() {
  local status=$? name
  trap '' INT TERM
  [ "${#started[@]}" = 0 ] || step 'Stopping'
  for name in agent controller dockerd; do
    [[ " ${started[*]} " != *" $name "* ]] || "stop_$name"
  done
  exit "$status"
}

stop_all() {
  step "Stopping what runs from $data"
  [ -w "$data" ] || [ ! -e "$data" ] || fail "This user may not change $data" "Run this as $(stat -c %U -- "$data"), who started it."
  [ -e "$data" ] || { print '    Nothing is there.' && return; }
  check_data_folder
  use_fetched_node
  stop_agent
  stop_controller
  stop_dockerd
  print '    Done.'
}

stop_agent() {
  stop agent "$agent_mark" 30
  remove_network
  # The system's Docker keeps running after this script, and so would the pods.
  [ -S "$data/docker.sock" ] || [ ! -f "$agent_mark/identity.json" ] || stop_pods
}

stop_controller() { stop controller "$controller_mark" 20; }

probe() { node dist/bundle/quickstart-probe.mjs "$@"; }

remembered() { sed -n "s/^$1=//p" "$data/ports" 2>/dev/null || true; }

size_of() { stat -c %s -- "$1" 2>/dev/null || echo 0; }

# What was written to a log after it had this size.
written_since() { tail -c "+$(($2 + 1))" -- "$1" 2>/dev/null || true; }

main
