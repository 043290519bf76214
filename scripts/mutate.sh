#!/usr/bin/env bash
# Mutation tests: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/mutate.sh FILE.ts…

Changes each source file in many small ways, one at a time, and runs the test beside it on each of them. A change that no
assertion notices is printed: a missing test, or code without effect. Aim for 85 % over all files and 95 % for decisions.

Fetches Stryker into dist/tools. Takes minutes for each file, so it is not part of the tests.

  --help
TXT
}

version=9.6.1
case ${1:---help} in
  --help) usage && exit 0 ;;
  -*) echo "mutate.sh: unknown option $1; see --help" >&2 && exit 64 ;;
esac

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
tools=$PWD/dist/tools/stryker

tests=() sources=()
for source in "$@"; do
  test=${source%.ts}.test.ts
  [ -f "$test" ] || { echo "mutate.sh: $source has no test beside it ($test)" >&2 && exit 64; }
  sources+=("$source")
  tests+=("dist/${test%.ts}.js")
done

if [ ! -d "$tools/node_modules/@stryker-mutator/tap-runner" ]; then
  echo 'Fetching Stryker'
  mkdir -p "$tools"
  npm install --prefix "$tools" --no-audit --no-fund --silent "@stryker-mutator/core@$version" "@stryker-mutator/tap-runner@$version"
fi

# Stryker changes a copy: it cannot copy the dangling links of recorded boards itself.
copy=$tools/copy
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$copy"
ln -s "$PWD/node_modules" "$copy/node_modules"
[ ! -d broker-controller/node_modules ] || ln -s "$PWD/broker-controller/node_modules" "$copy/broker-controller/node_modules"

list() { printf '"%s",' "$@" | sed 's/,$//'; }
cat >"$copy/stryker.json" <<JSON
{
  "testRunner": "tap",
  "plugins": ["$tools/node_modules/@stryker-mutator/tap-runner/dist/src/index.js"],
  "tap": { "testFiles": [$(list "${tests[@]}")] },
  "buildCommand": "node_modules/.bin/tsc --noCheck",
  "mutate": [$(list "${sources[@]}")],
  "mutator": { "excludedMutations": ["StringLiteral"] },
  "inPlace": true,
  "disableTypeChecks": false,
  "reporters": ["clear-text"],
  "clearTextReporter": { "allowColor": false, "logTests": false },
  "concurrency": 2
}
JSON
cd "$copy"
exec "$tools/node_modules/.bin/stryker" run stryker.json
