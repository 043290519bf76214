#!/usr/bin/env bash
# Mutation tests: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/mutate.sh FILE.ts…
       scripts/mutate.sh --sample COUNT [--seed NUMBER] [FILE.ts…]
       scripts/mutate.sh --decisions [--sample COUNT] [--seed NUMBER] [FILE.ts…]

Changes each source file in many small ways, one at a time, and runs the test beside it on each of them. A change that no
assertion notices is printed: a missing test, or code without effect. Aim for 85 % over all files and 95 % for decisions.

Fetches Stryker into dist/tools. Takes minutes for each file, so it is not part of the tests.

  --sample COUNT  instead: COUNT changes drawn at random from all those of the files; without files, of all with a test beside them
  --decisions     only decisions, without files all of them. Their tests need nothing but the code, so that many changes
                  run in one process, and a file takes seconds. Without --sample, each change is tested
  --seed NUMBER   the same number draws the same changes (1)
  --help
TXT
}

version=9.6.1
sample='' seed=1 decisions=''

# Decisions about nodes, pods, pressure, leases, workloads, scheduling, access and admission are in these folders.
decisionFolders='agent/(eviction|health|network|node|pods|runtime|shutdown)|broker-controller/(default-roles|apiserver/(authentication|authorization|flow-control|handlers|kinds|quota|webhooks)|broker/(inbox|mqtt|outbox)|controllers|scheduler)'
# What waits, what reads or calls the outside, and what makes or reads bytes (as encoders do) is not a decision.
notDecided="\b(async|await|Promise)\b|\.then\(|\bBuffer\b(?!\.byteLength)|from 'node:(?!(crypto|util)')"
isDecision() { [[ $1 =~ ^($decisionFolders)/ ]] && ! grep --quiet --perl-regexp "$notDecided" "$1"; }

[ $# -gt 0 ] || set -- --help
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage && exit 0 ;;
    --decisions) decisions=1 && shift ;;
    --sample) sample=${2:-} && shift 2 ;;
    --seed) seed=${2:-} && shift 2 ;;
    -*) echo "mutate.sh: unknown option $1; see --help" >&2 && exit 64 ;;
    *) break ;;
  esac
done
[[ $sample =~ ^[0-9]*$ && $seed =~ ^[0-9]+$ ]] || { echo 'mutate.sh: --sample and --seed take a number; see --help' >&2 && exit 64; }

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
tools=$PWD/dist/tools/stryker

if [ -n "$sample$decisions" ] && [ $# -eq 0 ]; then
  # Not the programs' entry points: their tests start the bundles.
  mapfile -t withTests < <(git ls-files -- '*.test.ts' | grep -E '^(agent|api|broker-controller|certs|daemon|dashboard)/' | sed 's/\.test\.ts$/.ts/')
  mapfile -t withTests < <(for file in "${withTests[@]}"; do [ ! -f "$file" ] || [[ $file == */testing/* || $file == */main.ts ]] || echo "$file"; done)
  [ -z "$decisions" ] || mapfile -t withTests < <(for file in "${withTests[@]}"; do ! isDecision "$file" || echo "$file"; done)
  set -- "${withTests[@]}"
fi

tests=() sources=()
for source in "$@"; do
  test=${source%.ts}.test.ts
  [ -f "$test" ] || { echo "mutate.sh: $source has no test beside it ($test)" >&2 && exit 64; }
  [ -z "$decisions" ] || isDecision "$source" || { echo "mutate.sh: $source is not a decision: run it without --decisions" >&2 && exit 64; }
  sources+=("$source")
  tests+=("dist/${test%.ts}.js")
done

if [ ! -d "$tools/node_modules/@stryker-mutator/tap-runner" ]; then
  echo 'Fetching Stryker'
  mkdir -p "$tools"
  npm install --prefix "$tools" --no-audit --no-fund --silent "@stryker-mutator/core@$version" "@stryker-mutator/tap-runner@$version"
fi

instrumenter=$tools/node_modules/@stryker-mutator/instrumenter/dist/src/index.js
[ -z "$decisions" ] || exec node scripts/support/mutation-decisions.mjs "$instrumenter" "${sample:-0}" "$seed" "${sources[@]}"

# Stryker changes a copy: it cannot copy the dangling links of recorded boards itself.
copy=$tools/copy
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$copy"
ln -s "$PWD/node_modules" "$copy/node_modules"
[ ! -d broker-controller/node_modules ] || ln -s "$PWD/broker-controller/node_modules" "$copy/broker-controller/node_modules"

if [ -n "$sample" ]; then
  cd "$copy"
  node scripts/support/mutation-sample.mjs prepare "$instrumenter" "${sources[@]}"
  node_modules/.bin/tsc --noCheck
  exec node scripts/support/mutation-sample.mjs run "$sample" "$seed"
fi

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
