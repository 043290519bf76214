# shellcheck shell=bash
# Sourced by our scripts: printing progress, and failures with their remedy.

# A file that never has anything to read, to wait on without starting a process.
exec {never}<> <(:)
pause() { read -rt "$1" -u "$never" || true; }

print() { printf '%s\n' "$*"; }
step() { printf '\n==> %s\n' "$*"; }

# fail WHAT REMEDY [LOG]: shows the end of the log, prints what failed and what to do about it, and ends the script.
fail() {
  {
    if [ -n "${3:-}" ] && [ -s "${3:-}" ]; then
      printf '\n--- the last lines of %s\n' "$3"
      tail -n 25 -- "$3"
      printf -- '---\n'
    fi
    printf '\nFAILED: %s\nRemedy: %s\n' "$1" "$2"
  } >&2
  exit 1
}

# quietly WHAT LOG COMMAND…: the command's output goes to the log; a line every ten seconds shows that it still runs.
quietly() {
  local what=$1 log=$2 began=$SECONDS ticker status=0
  shift 2
  print "    $what (log: $log)"
  (
    trap - EXIT INT TERM
    while pause 10; do print "    … $what: $((SECONDS - began)) s"; done
  ) &
  ticker=$!
  "$@" >>"$log" 2>&1 </dev/null || status=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  [ $((SECONDS - began)) -lt 2 ] || print "    took $((SECONDS - began)) s"
  return "$status"
}
