#!/usr/bin/env bash
# Runs two versions of the programs against each other: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/skew.sh --old REF [--yes]

Builds the agent and the controller of an older commit beside those of this tree, in a temporary folder, and changes first the agent
and then the controller from old to this and back again, each with the data of the one before, on a dockerd of its own. After each
change: the node is Ready, the containers that ran before are untouched, the data of their pod (emptyDir, hostPath, ConfigMap) and the
objects of the store are there, another pod comes, is described and goes, a further agent joins, is Ready and announces its shutdown.
What was written by a later version is taken, or refused with the remedy, and never spoiled. Where the old version refuses it, it is
rolled back as in docs/updating.md: the agent with its state from before, the controller with the backup from before the migration.
Prints what it saw. Not part of the tests: five to ten minutes, most of them to build the old version. Needs root.

  --old REF  a commit or tag that has scripts/bramble-agent
  --yes      do not ask before installing what is missing
  --help
TXT
}

assume_yes='' old_ref=''
while [ $# -gt 0 ]; do
  case $1 in
    --old) old_ref=${2:?'--old: which commit?'} && shift 2 ;;
    --yes) assume_yes=yes && shift ;;
    --help) usage && exit 0 ;;
    *) echo "skew.sh: unknown argument $1; see --help" >&2 && exit 64 ;;
  esac
done
[ -n "$old_ref" ] || { usage >&2 && exit 64; }

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/tools.sh
. scripts/support/tools.sh

data=$(mktemp -d /var/tmp/bramble-skew.XXXXXX)
logs=$data
socket=$data/docker.sock
started=()
dockerd_mark=$data/docker
# shellcheck source=scripts/support/docker.sh
. scripts/support/docker.sh

declare -A tree=([this]=$PWD [old]=$data/old)
declare -A folder=([controller]=$data/controller [agent]=$data/agent)
declare -A ready=([controller]='Controller ready' [agent]='Node status posted')
image=skew:1
findings=() rounds=0 looks=()
# What the pod that stays writes at its start into its volumes, and what is in its ConfigMap and in a Secret.
mark=mark-$$-$RANDOM

main() {
  [ "$(id -u)" = 0 ] || fail 'Only root can start a dockerd' 'Run this as root.'
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  local commit
  commit=$(git rev-parse --verify --quiet "$old_ref^{commit}") || fail "There is no commit $old_ref here" 'Name a tag or a commit of this repository.'
  step 'What is needed'
  install_needed
  step "The programs of this tree, and of $(git log -1 --format='%h, %cs: %s' "$commit")"
  ensure_modules run
  ensure_bundles
  build_old "$commit"
  step 'Docker'
  start_dockerd
  tar -C / -c bin/busybox | in_docker import --change 'ENTRYPOINT ["/bin/busybox"]' - "$image" >/dev/null
  choose_ports

  step 'Both of the old version'
  run_or_fail controller old
  join_fleet old skew "${folder[agent]}"
  run_or_fail agent old
  kube create configmap kept --from-literal=mark="$mark"
  kube create secret generic kept --from-literal=mark="$mark"
  run_pod stays
  container=$(containers_of stays)
  uids=$(uids_of_kept)
  look_at old old
  save_agent_state
  step 'The agent of this tree'
  change agent old this || fail 'This agent refuses what an older one wrote' 'It must bring it forward.' "$data/agent.log"
  look_at this old
  step 'The controller of this tree'
  change controller old this || fail 'This controller refuses what an older one wrote' 'It must bring it forward.' "$data/controller.log"
  look_at this this
  step 'The old agent again'
  roll_back agent
  look_at old this
  step 'The old controller again'
  if change controller this old; then look_at old old; else restore_controller; fi

  expect_untouched 'in the end'
  step "$(git rev-parse --short "$commit") is old"
  printf '%s\n' "${findings[@]}"
  print "The containers of the pod that stayed, as they were started at the beginning:" "$container"
}

install_needed() {
  plan_node
  want docker.io 'the pods run in it'
  want iptables 'Docker needs it'
  want iproute2 'a network for the pods'
  want busybox-static 'an image without a network'
  want git 'the old version'
  command -v kubectl >/dev/null || want kubernetes-client 'kubectl'
  [ "${#missing_packages[@]}" = 0 ] || refresh_package_lists
  install_missing
  ensure_node
}

# A copy of its files with packages of its own: nothing of this tree is touched.
build_old() {
  mkdir "${tree[old]}"
  git archive "$1" | tar -x -C "${tree[old]}"
  (cd "${tree[old]}" && quietly 'Installing its packages' "$install_log" npm_here ci --ignore-scripts --omit=dev) ||
    fail 'Its packages cannot be installed' 'Look at the network and the npm registry.' "$install_log"
  # What is compiled here already need not be again; where it is of another version, it is.
  local module
  for module in better-sqlite3 usocket unix-dgram; do
    if cmp -s {,"${tree[old]}/"}"node_modules/$module/package.json"; then cp -R "node_modules/$module/build" "${tree[old]}/node_modules/$module/"; fi
  done
  (cd "${tree[old]}" && ensure_modules run && ensure_bundles)
}

choose_ports() {
  read -r api_port mqtt_port < <(node -e '
    const { createServer } = require("net"), servers = [createServer(), createServer()]
    Promise.all(servers.map((one) => new Promise((done) => one.listen(0, "127.0.0.1", () => done(one.address().port)))))
      .then((ports) => { console.log(...ports); servers.forEach((one) => one.close()) })')
}

probe() { node dist/bundle/quickstart-probe.mjs "$@"; }
size_of() { stat -c %s -- "$1" 2>/dev/null || echo 0; }
in_docker() { docker --host "unix://$socket" "$@"; }
kube() { kubectl --kubeconfig "$data/kubeconfig" --cache-dir "$data/kube-cache" "$@"; }

# Ids and starts: what changes when a container is touched. A network's holder counts, too.
containers_of() {
  in_docker ps --quiet --no-trunc --filter "label=io.kubernetes.pod.name=$1" | xargs --no-run-if-empty docker --host "unix://$socket" \
    inspect --format '{{.Id}} {{.State.StartedAt}} {{.RestartCount}}' | sort
}


controller_command() {
  printf '%s\n' "${tree[$1]}/scripts/bramble-controller" run --data-dir "${folder[controller]}" --kubeconfig "$data/kubeconfig" \
    --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --api-port "$api_port" --mqtt-port "$mqtt_port" --log-format json
}

agent_command() {
  printf '%s\n' "${tree[$1]}/scripts/bramble-agent" run --data-dir "${2:-${folder[agent]}}" --docker-socket "$socket" --healthz-port 0 --log-format json
}

# run PROGRAM VERSION: fails when it ends before it is ready.
run() {
  local program=$1 log=$data/$1.log command
  mapfile -t command < <("${1}_command" "$2")
  : >"$log"
  start "$program" "$log" "${command[@]}"
  wait_for 60 is_ready_or_ended "$program" || true
  logs_ready "$program"
}
logs_ready() { grep "${ready[$1]}" "$data/$1.log" >/dev/null; }
is_ready_or_ended() { logs_ready "$1" || ! pid_of "$1" "${folder[$1]}"; }

run_or_fail() { run "$1" "$2" || fail "The $1 ($2) does not start" 'The cause is in its log.' "$data/$1.log"; }

# change PROGRAM FROM TO: another version on the same data. Fails when that refuses it; then the one before runs again.
change() {
  local program=$1
  stop "$program" "${folder[$program]}" 40
  if run "$program" "$3"; then
    findings+=("| the $program of $3 on what the one of $2 wrote | takes it over |")
    return
  fi
  grep -E 'newer|later' "$data/$program.log" || fail "The $program of $3 does not start on the data of $2" 'The cause is in its log.' "$data/$program.log"
  run_or_fail "$program" "$2"
  findings+=("| the $program of $3 on what the one of $2 wrote | refuses it and prints what to do; the one of $2 goes on with it |")
  return 1
}

# The names are those that bramble-update saves before a trial.
agent_state_names() {
  node --input-type=module --eval '
    import { pathToFileURL } from "node:url"
    const { agentStateNames } = await import(pathToFileURL("dist/agent/updates/agent-state.js").href)
    console.log(agentStateNames.join("\n"))'
}

# As bramble-update does before a trial, while the agent is stopped. The one of the old version then goes on.
save_agent_state() {
  local name names
  mapfile -t names < <(agent_state_names)
  [ "${#names[@]}" -gt 0 ] || fail 'The names of the state of an agent are not known' 'Build this tree with npm run build.'
  stop agent "${folder[agent]}" 40
  mkdir "$data/before"
  for name in "${names[@]}"; do [ ! -e "${folder[agent]}/$name" ] || cp -a -- "${folder[agent]}/$name" "$data/before/"; done
  run_or_fail agent old
}

# roll_back agent: the old agent on the data as it is or, where it refuses that, with its state from before the update.
roll_back() {
  local name names
  if change "$1" this old; then return; fi
  mapfile -t names < <(agent_state_names)
  stop agent "${folder[agent]}" 40
  for name in "${names[@]}"; do
    rm -rf -- "${folder[agent]:?}/$name"
    [ ! -e "$data/before/$name" ] || cp -a -- "$data/before/$name" "${folder[agent]}/"
  done
  run_or_fail agent old
  findings+=('| the agent of old with its state from before the update | takes it over |')
}

# The old version refuses a store of a later format: it gets the backup that the later one made before it changed the format.
restore_controller() {
  local backup=${folder[controller]}/before-migration.backup later
  [ -f "$backup" ] || fail 'There is no backup from before the migration' "It must be $backup."
  stop controller "${folder[controller]}" 40
  "${tree[old]}/scripts/bramble-controller" restore "$backup" --replace --data-dir "${folder[controller]}" >"$data/restore.log" 2>&1 ||
    fail 'The old version cannot restore the backup from before the migration' 'Its own words:' "$data/restore.log"
  run_or_fail controller old
  wait_for 120 is_ready skew || fail 'Not Ready after the backup was restored' 'The log of the agent:' "$data/agent.log"
  # A restored fleet takes new machines only when all nodes have sent their checkpoints: none joins here.
  expect_untouched 'the backup from before the migration'
  later=$(kube get configmaps --output name | grep -c '^configmap/look-') || true
  findings+=("| the controller of old with the backup from before the migration | Ready; the pod ran on, its data and the objects from before are there, and $later of the ${#looks[@]} ConfigMaps written since the start |")
}

# The uids of what was created at the start: an object that was created again has another one.
uids_of_kept() { kube get configmap/kept secret/kept pod/stays --output 'jsonpath={.items[*].metadata.uid}'; }

in_pod() {
  local id
  id=$(in_docker ps --quiet --filter label=io.kubernetes.pod.name=stays --filter label=io.kubernetes.container.name=main)
  in_docker exec "$id" /bin/busybox "$@"
}

# What is missing, a line each. A container that was started again has written its mark a second time.
lost_data() {
  local folder
  for folder in scratch disk; do [ "$(in_pod cat "/$folder/starts")" = "$mark" ] || echo "/$folder of the pod"; done
  [ "$(in_pod cat /config/mark)" = "$mark" ] || echo 'the ConfigMap in the pod'
  [ "$(kube get configmap kept --output 'jsonpath={.data.mark}')" = "$mark" ] || echo 'the ConfigMap in the store'
  [ "$(kube get secret kept --output 'jsonpath={.data.mark}' | base64 --decode)" = "$mark" ] || echo 'the Secret in the store'
  [ "$(uids_of_kept)" = "$uids" ] || echo 'the objects with their uids'
}

# expect_untouched WHEN
expect_untouched() {
  local lost
  [ "$(containers_of stays)" = "$container" ] || fail "The pod's containers are not those they were: $1" "Before: $container; now: $(containers_of stays)"
  kube get pod stays | grep -E ' Running +0 ' || fail "The pod that stays is not seen as it was: $1" 'See kubectl describe.'
  lost=$(lost_data)
  [ -z "$lost" ] || fail "Data is lost: $1" "Not as it was: ${lost//$'\n'/, }"
}

# join_fleet VERSION NAME FOLDER: by a token that the running controller gives.
join_fleet() {
  local line
  line=$("${tree[this]}/scripts/bramble-controller" token create --kubeconfig "$data/kubeconfig" --print-join-command | grep -o 'bramble-agent join .*')
  read -ra line <<<"$line"
  "${tree[$1]}/scripts/bramble-agent" "${line[@]:1}" --no-run --node-name "$2" --data-dir "$3" >>"$data/join.log" 2>&1 ||
    fail "The agent of $1 cannot join" 'Its own words:' "$data/join.log"
}

# Events follow the status that made the pod Ready.
is_start_recorded() { kube describe pod "$1" | grep -E 'Started +.*Started container'; }

# look_at AGENT CONTROLLER: all that a user does with the two.
look_at() {
  local with="the agent of $1, the controller of $2"
  wait_for 60 is_ready skew || fail "Not Ready: $with" 'The log of the agent:' "$data/agent.log"
  kube get nodes --output wide
  expect_untouched "$with"
  # What was written with each combination before is kept by the next ones.
  [ "${#looks[@]}" = 0 ] || kube get "${looks[@]}" >/dev/null || fail "An object is lost: $with" "Of these: ${looks[*]}"
  kube create configmap "look-${#looks[@]}" --from-literal=with="$with"
  looks+=("configmap/look-${#looks[@]}")
  run_pod comes
  wait_for 20 is_start_recorded comes || fail "No Event shows that a pod was started: $with" 'The log of the agent:' "$data/agent.log"
  kube delete pod comes --timeout=60s || fail "A pod does not go: $with" 'The log of the agent:' "$data/agent.log"
  [ -z "$(containers_of comes)" ] || fail "A pod's containers stay: $with" 'See docker ps.'
  come_and_go "$1" "$with"
  findings+=("| $with | Ready; a pod ran on with its data, another came, was described and went; a further agent joined and announced its shutdown |")
}

# A further machine with an agent of that version, on the same Docker.
come_and_go() {
  local name=further-$((++rounds)) command
  join_fleet "$1" "$name" "$data/$name"
  mapfile -t command < <(agent_command "$1" "$data/$name")
  : >"$data/further.log"
  start further "$data/further.log" "${command[@]}"
  wait_for 60 is_ready "$name" || fail "A further node is not Ready: $2" 'Its log:' "$data/further.log"
  stop further "$data/$name" 40
  wait_for 30 announced_shutdown "$name" || {
    kube get lease "$name" --namespace kube-node-lease --output yaml || true
    grep -F "\"$name\"" "$data/controller.log" || true
    fail "No goodbye arrived: $2" 'Above its lease and what the controller has logged of it. The log of the agent:' "$data/further.log"
  }
  kube delete node "$name"
}

is_ready() { [ "$(kube get node "$1" --output 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
announced_shutdown() { kube get lease "$1" --namespace kube-node-lease --output 'jsonpath={.metadata.annotations}' | grep '"bramble.dev/connection":"goodbye"'; }

# run_pod NAME: with the token that admission adds. An agent from before tokens refuses that; it runs the pod without.
run_pod() {
  create_pod "$1" true
  wait_for 60 runs_or_refuses "$1" || true
  if ! runs "$1" && refuses_token "$1"; then
    findings+=('| a pod with a token of its service account | refused with the reason by the agent of the next line; it runs with automountServiceAccountToken: false |')
    kube delete pod "$1" --timeout=60s || fail 'A pod that was refused does not go' 'The log of the agent:' "$data/agent.log"
    create_pod "$1" false
    wait_for 60 runs "$1" || true
  fi
  runs "$1" || fail "A pod does not run" 'The log of the agent:' "$data/agent.log"
}
runs() { [ "$(kube get pod "$1" --output 'jsonpath={.status.phase}')" = Running ]; }
refuses_token() { kube describe pod "$1" | grep 'this kind of projected source is not supported' >/dev/null; }
runs_or_refuses() { runs "$1" || refuses_token "$1"; }

# create_pod NAME MOUNTS_TOKEN
create_pod() {
  mkdir -p "$data/disks/$1"
  kube create --filename - <<YAML
apiVersion: v1
kind: Pod
metadata: { name: $1 }
spec:
  nodeName: skew
  automountServiceAccountToken: $2
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: $image
      imagePullPolicy: Never
      args: [sh, -c, 'echo $mark >>/scratch/starts; echo $mark >>/disk/starts; exec /bin/busybox sleep 100000']
      volumeMounts:
        - { name: scratch, mountPath: /scratch }
        - { name: disk, mountPath: /disk }
        - { name: config, mountPath: /config }
  volumes:
    - { name: scratch, emptyDir: {} }
    - { name: disk, hostPath: { path: $data/disks/$1, type: Directory } }
    - { name: config, configMap: { name: kept } }
YAML
}

clean_up() {
  stop further "$data/further-$rounds" 20
  stop agent "${folder[agent]}" 40
  stop controller "${folder[controller]}" 20
  # Rules, routes and addresses stay while an agent is stopped: without them the next one's pods would not reach each other.
  [ ! -f "${folder[agent]}/network/network.json" ] || scripts/bramble-agent network --remove --data-dir "${folder[agent]}" >/dev/null ||
    print '    Not all of the network of pods could be removed: ip route show proto 98, nft list table ip bramble'
  if [ -S "$socket" ]; then
    in_docker ps --all --quiet | xargs --no-run-if-empty docker --host "unix://$socket" rm --force >/dev/null
    in_docker network ls --quiet --filter type=custom | xargs --no-run-if-empty docker --host "unix://$socket" network rm >/dev/null
  fi
  stop_dockerd
  rm -rf --one-file-system -- "$data"
}

main
