# shellcheck shell=bash disable=SC2154
# Sourced by our scripts: programs that keep running when the script ends, each known by a pid file in "$data". A pid counts only
# while that process has MARK among its arguments, so a number used again by a stranger is never taken for ours.

# pid_of NAME MARK: prints the pid; fails when it does not run.
pid_of() {
  local pid
  pid=$(cat -- "$data/$1.pid" 2>/dev/null) || return 1
  [[ $pid =~ ^[0-9]+$ ]] || return 1
  tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF -- "$2" || return 1
  printf '%s\n' "$pid"
}

# start NAME LOG COMMAND…: in a session of its own, so that Ctrl-C reaches this script only and it can end things in order.
start() {
  local name=$1 log=$2
  shift 2
  rm -f -- "$data/$name.pid"
  # shellcheck disable=SC2016
  setsid sh -c 'pid=$1 && shift && echo $$ >"$pid" && exec "$@"' sh "$data/$name.pid" "$@" \
    >>"$log" 2>&1 </dev/null {never}>&- 9>&- &
  disown
  local tries
  for tries in {1..50}; do
    [ ! -s "$data/$name.pid" ] || return 0
    pause 0.1
  done
}

# stop NAME MARK SECONDS: asks it to end, waits, and ends it when it does not.
stop() {
  local name=$1 mark=$2 pid tries
  pid=$(pid_of "$name" "$mark") || { rm -f -- "$data/$name.pid" && return 0; }
  print "    Stopping $name"
  signal_to TERM "$pid"
  for ((tries = 0; tries < $3 * 10; tries++)); do
    pid_of "$name" "$mark" >/dev/null || break
    pause 0.1
  done
  if pid_of "$name" "$mark" >/dev/null; then
    print "    $name did not end within $3 s: ending it"
    signal_to KILL "$pid"
  fi
  rm -f -- "$data/$name.pid"
}

signal_to() { kill "-$1" "$2" 2>/dev/null || as_root kill "-$1" "$2" 2>/dev/null || true; }

# wait_for SECONDS COMMAND…: until the command succeeds.
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || return 1
    pause 0.2
  done
}
