#!/usr/bin/env bash
# The tests that use kubectl, with several versions of it: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/kubectl-versions.sh [--test FILE]… KUBECTL…

Runs the compiled tests that use kubectl with each of the given programs in place of the one that is installed, one after the other.
Prints a line for each test and version. Its status is not 0 when one failed. Does not install kubectl: test/clients/fetch-kubectl.sh
prints the paths of those that are tested with every change, and fetches them.

  --test FILE  run only this compiled test, for example dist/test/streams-on-docker.test.js; can be repeated
  --help

The output of each test is kept in dist/kubectl-versions/.
TXT
}

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."

tests=()
while [ $# -gt 0 ]; do
  case $1 in
    --test) tests+=("${2:?--test takes a file}") && shift 2 ;;
    --help) usage && exit 0 ;;
    -*) echo "kubectl-versions.sh: unknown option $1; see --help" >&2 && exit 64 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || { usage >&2 && exit 64; }

# Not those that boot machines or test the installation: they have no other use of kubectl.
if [ "${#tests[@]}" = 0 ]; then
  mapfile -t tests < <(git grep -lE '[kK]ubectl(With)?\(' -- '*.test.ts' | grep -vE '/(hostile/|machines-|quickstart)' |
    sed 's,^,dist/,; s,\.ts$,.js,')
fi

folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
results=dist/kubectl-versions
status=0
for program in "$@"; do
  program=$(readlink -e -- "$program") || { echo "kubectl-versions.sh: $program is not there" >&2 && exit 66; }
  version=$("$program" version --client | sed -n 's/^Client Version: //p')
  [ -n "$version" ] || { echo "kubectl-versions.sh: $program prints no version" >&2 && exit 65; }
  mkdir -p "$folder/$version" "$results/$version"
  ln -sf "$program" "$folder/$version/kubectl"
  for test in "${tests[@]}"; do
    output=$results/$version/$(basename "$test" .js).tap
    if PATH=$folder/$version:$PATH TAP_TIMEOUT=600 node "$test" >"$output" 2>&1 </dev/null; then result=ok; else result='not ok' status=1; fi
    printf '%-9s %-6s %s  %s\n' "$version" "$result" "$test" "$(sed -n 's/^# {\(.*\)}$/\1/p' "$output" | tail -n 1)"
  done
done
exit "$status"
