#!/usr/bin/env bash
# What the agent costs this machine: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/footprint.sh [--write] [--seconds N] [--starts N]

Starts a fleet of one in a temporary folder (scripts/quickstart.sh), gives it one pod, lets it come to rest, measures the
agent, and ends it all. Needs root, kubectl, docker (the command) and busybox-static.

  --write       put the figures into docs/figures.md
  --seconds N   how long to look at the agent at rest, default 60
  --starts N    how often to start it for the start time, default 5
  --help

Measured, all from /proc of the agent's process:
  start          from calling the launcher to 'Node status posted' in its log; the median
  resident       VmRSS, RssAnon (not shared with the program's file) and the peak, VmHWM
  processor      user and system time over the window
  children       faults of ended children (cminflt): it stays the same only if none was started
  written        write_bytes: what it caused to be sent to the disk
TXT
}

write='' seconds=60 starts=5
while [ $# -gt 0 ]; do
  case $1 in
    --write) write=yes ;;
    --seconds) seconds=$2 && shift ;;
    --starts) starts=$2 && shift ;;
    --help) usage && exit 0 ;;
    *) echo "footprint.sh: unknown option $1; see --help" >&2 && exit 64 ;;
  esac
  shift
done

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
# shellcheck source=scripts/support/processes.sh
. scripts/support/processes.sh

data=$(mktemp -d /var/tmp/bramble-fp.XXXXXX)
log=$data/logs/agent.log
agent_mark=$data/agent
kube() { kubectl --kubeconfig "$data/kubeconfig" "$@"; }

main() {
  local command
  for command in kubectl docker; do
    command -v "$command" >/dev/null || fail "$command is missing" 'Install it, or run scripts/test.sh once, which does.'
  done
  [ -x /bin/busybox ] || fail 'busybox-static is missing' 'apt-get install busybox-static'
  trap 'scripts/quickstart.sh --stop --data "$data" >/dev/null; rm -rf -- "$data"' EXIT
  scripts/quickstart.sh --yes --background --data "$data" --api-port 0 --mqtt-port 0 --node-name footprint
  step "Starting the agent $starts times"
  local start_ms
  start_ms=$(measure_starts)
  step 'One pod'
  run_a_pod
  step "At rest: a minute to settle, then $seconds s of looking"
  pause 60
  measure_rest
  report
  [ -z "$write" ] || put_into_page
}

# The median, in milliseconds.
measure_starts() {
  local i began posted size
  for ((i = 0; i < starts; i++)); do
    stop agent "$agent_mark" 30 >&2
    size=$(stat -c %s "$log")
    began=$(date +%s%3N)
    start agent "$log" scripts/bramble-agent run --data-dir "$agent_mark" --docker-socket "$(docker_socket)" \
      --healthz-port 0 --log-format json
    wait_for 30 posted_after "$size" || fail 'The agent does not get Ready' 'The cause is in its log.' "$log"
    posted=$(tail -c "+$((size + 1))" "$log" | sed -n 's/.*"time":"\([^"]*\)".*Node status posted.*/\1/p' | head -n 1)
    echo $(($(date -d "$posted" +%s%3N) - began))
  done | sort -n | sed -n "$(((starts + 1) / 2))p"
}

posted_after() { tail -c "+$(($1 + 1))" "$log" | grep 'Node status posted'; }

docker_socket() { if [ -S "$data/docker.sock" ]; then echo "$data/docker.sock"; else echo /var/run/docker.sock; fi; }

# It tolerates that the agent was started often just now.
run_a_pod() {
  tar -C / -c bin/busybox | docker -H "unix://$(docker_socket)" import \
    --change 'ENTRYPOINT ["/bin/busybox"]' - bramble-footprint:1 >/dev/null
  kube apply -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: { name: idle }
spec:
  terminationGracePeriodSeconds: 1
  tolerations: [{ key: bramble.dev/flapping, operator: Exists }]
  containers: [{ name: idle, image: 'bramble-footprint:1', imagePullPolicy: Never, args: [sleep, infinity] }]
YAML
  kube wait --for=jsonpath='{.status.phase}'=Running pod/idle --timeout=60s
}

measure_rest() {
  local pid cpu faults written
  pid=$(pid_of agent "$agent_mark")
  cpu=$(cpu_ticks "$pid")
  faults=$(stat_field "$pid" 11)
  written=$(bytes_written "$pid")
  pause "$seconds"
  [ "$pid" = "$(pid_of agent "$agent_mark")" ] || fail 'The agent did not live through it' 'The cause is in its log.' "$log"
  cpu_percent=$(awk -v ticks="$(($(cpu_ticks "$pid") - cpu))" -v hz="$(getconf CLK_TCK)" -v s="$seconds" \
    'BEGIN { printf "%.2f", ticks / hz / s * 100 }')
  [ "$(stat_field "$pid" 11)" = "$faults" ] && children=0 || children='some'
  written_hour=$((($(bytes_written "$pid") - written) * 3600 / seconds))
  rss=$(status_mb "$pid" VmRSS) anon=$(status_mb "$pid" RssAnon) peak=$(status_mb "$pid" VmHWM)
  threads=$(sed -n 's/^Threads:\s*//p' "/proc/$pid/status")
}

# Fields of /proc/PID/stat by their number in proc(5); the name may hold spaces, and ends with the last bracket.
stat_field() { sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f "$(($2 - 2))"; }
cpu_ticks() { echo $(($(stat_field "$1" 14) + $(stat_field "$1" 15))); }
bytes_written() { sed -n 's/^write_bytes: //p' "/proc/$1/io"; }
status_mb() { awk -v name="$2:" '$1 == name { printf "%.1f", $2 / 1024 }' "/proc/$1/status"; }

report() {
  figures=$(
    cat <<TXT
| what | measured | promised |
|---|---|---|
| bundle | $(($(stat -c %s dist/bundle/bramble-agent.mjs) / 1000)) kB | |
| start to first status posted (median of $starts) | $start_ms ms | ≤ 1500 ms |
| resident, at rest with one pod | $rss MB | ≤ 70 MB |
| … of it not shared with the program's file | $anon MB | |
| … at its highest | $peak MB | |
| threads | $threads | |
| processor at rest, of one core | $cpu_percent % | ≤ 0.5 % |
| child processes started at rest | $children | 0 |
| written to disk per hour at rest | $written_hour bytes | 0 |
TXT
  )
  machine="Node.js $(node -p process.versions.node), $(uname -m), $(nproc) cores, kernel $(uname -r | cut -d. -f1,2), over $seconds s"
  step "The agent ($machine)"
  print "$figures"
}

put_into_page() {
  awk -v figures="$figures" -v machine="$machine" '
    /<!-- figures -->/ { print; print ""; print "Measured with " machine ":"; print ""; print figures; print ""; skip = 1; next }
    /<!-- end of figures -->/ { skip = 0 }
    !skip' docs/figures.md >docs/figures.md.new
  mv docs/figures.md.new docs/figures.md
}

main
