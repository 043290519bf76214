#!/usr/bin/env bash
# Everything that must be true of a change: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/test.sh [--quick] [--whole] [--real | FILE…]
       scripts/test.sh --prepare

Installs what the tests need (Debian packages and npm), then checks format, lint and types, builds, and runs all tests:
the unit tests (npm run unit), then those on real parts (dockerd, mosquitto, openssl, kubectl). Ends with the totals of both as
a line "N passed, N failed"; its status is not 0 when anything failed. Installs without asking; needs root or sudo for that.

  --quick    install nothing
  --prepare  only install and build what the tests need; --quick then needs no network
  --real     run only the tests that start other programs; npm run unit runs the rest
  --whole    run all files, however long it takes. Otherwise no file of the tests on real parts begins later than 50 minutes after the start of
             the script, the longest come last, and those that have not begun are named at the end: it takes more than 90 minutes on a
             slow machine of two cores
  --help
  FILE…      run only these compiled tests, for example dist/api/quantity.test.js

Up to three files that failed are run once more, one after the other. A file that then passes is reported as "unsteady: FILE (what failed)" and
does not fail the run; of one on real parts the first output is kept in dist/unsteady/. A file that fails twice fails the run, and so do more than
three failed files, of which none is run again.

The whole output of the tests is kept in dist/test-results.tap, that of the second run in dist/test-results-again.tap, and that of the unit
tests in dist/unit-results.txt.
TXT
}

quick='' prepare='' real='' whole='' files=()
for argument in "$@"; do
  case $argument in
    --quick) quick=yes ;;
    --prepare) prepare=yes ;;
    --real) real=yes ;;
    --whole) whole=yes ;;
    --help) usage && exit 0 ;;
    -*) echo "test.sh: unknown option $argument; see --help" >&2 && exit 64 ;;
    *) files+=("$argument") ;;
  esac
done

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
# shellcheck source=scripts/support/packages.sh
. scripts/support/packages.sh

mkdir -p dist
assume_yes=yes
tools=$PWD/dist/tools
install_log=$PWD/dist/install.log
results=$PWD/dist/test-results.tap
again_results=$PWD/dist/test-results-again.tap
unit_results=$PWD/dist/unit-results.txt
unsteady=$PWD/dist/unsteady
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

main() {
  use_fetched_kubectl
  if [ -z "$quick" ]; then
    step 'Installing what the tests need'
    install_for_tests
  fi
  use_fetched_node
  prepare_roots &
  if [ -n "$prepare" ]; then
    build
    step 'Making the roots of test machines'
    wait
    return
  fi
  step 'Format and lint'
  node_modules/.bin/biome check --error-on-warnings . ||
    fail 'Format or lint' 'npm run format fixes most of it; the rest is listed above.'
  shell_scripts
  step 'Types'
  { node_modules/.bin/tsc && node_modules/.bin/tsc -p dashboard; } ||
    fail 'Types' 'The errors of the compiler are above.'
  build
  step 'Tests'
  run_tests
}

build() {
  step 'Build'
  ensure_bundles
  quietly 'Building the packages that are tested' "$install_log" test/machines/build-packages.sh ||
    fail 'The packages that are tested cannot be built' 'The cause is in the log.' "$install_log"
}

install_for_tests() {
  plan_node
  want docker.io 'the agent runs pods in it'
  want iptables 'Docker needs it'
  want nftables 'the rules of the network of pods'
  want conntrack 'flows of UDP to endpoints that are gone'
  want ufw 'the firewall of an owner of a machine'
  want kmod 'the modules of NFS and SMB'
  want wireguard-tools 'sites behind NAT'
  want wireguard-go 'WireGuard where the kernel has none'
  want jq 'a recipe copies objects with it'
  want haproxy 'a proxy in front of Services'
  want iproute2 'networks for test machines'
  want iputils-ping 'whether a machine is reached'
  want perl 'a slow network where the kernel has no netem'
  want libfaketime 'a date that jumps'
  want mosquitto 'an external MQTT broker'
  want mosquitto-clients 'MQTT clients that are not ours'
  want etcd-server 'the store of fleets that have outgrown one machine'
  want busybox-static 'images without a network'
  want e2fsprogs 'small disks to fill up'
  want openssl 'to check certificates'
  want procps 'to look at processes'
  want prometheus 'a client that people have'
  want chromium 'a browser for the dashboard'
  want dbus 'a bus for doubles of systemd and logind'
  want git 'a fresh clone is tested too'
  want ca-certificates 'to fetch packages safely'
  want python3 'to compile better-sqlite3 where no ready-made file is found'
  want make 'to compile it'
  want g++ 'to compile it'
  want shellcheck 'to check the shell scripts'
  want gpg 'to sign a package repository'
  want gpg-agent 'to make its keys'
  want xz-utils 'to compress its lists and images of cards'
  want dosfstools 'to make and check boot partitions of cards'
  want mtools 'to read them'
  want systemd-container 'machines that boot'
  want mmdebstrap 'what they boot from'
  want python3-kubernetes 'a client of the API'
  want ansible 'a client of the API'
  want kubectx 'tools beside kubectl'
  want kubecolor 'tools beside kubectl'
  want kubetail 'tools beside kubectl'
  plan_test_kubectl
  [ "${#missing_packages[@]}" = 0 ] || refresh_package_lists
  install_missing
  ensure_node
  ensure_test_kubectl
  ensure_modules all
}

# Half a minute for the machines' and Docker's, two for the clients' and up to three for kubectl, beside the checks. A test that needs one fails with the reason where it is not there.
prepare_roots() {
  local script
  for script in test/machines/build-root.sh test/machines/build-docker-root.sh test/clients/build-root.sh test/clients/fetch-kubectl.sh 'test/clients/fetch-kubectl.sh --helm'; do
    # shellcheck disable=SC2086
    $script >>"$install_log" 2>&1 </dev/null || true
  done
  BRAMBLE_TEST_RELEASE=trixie test/machines/build-root.sh >>"$install_log" 2>&1 </dev/null || true
}

plan_test_kubectl() {
  kubectl_is_new_enough && return
  refresh_package_lists
  ! newer_or_same "$(candidate_of kubernetes-client)" 1.29 || want kubernetes-client 'kubectl'
}

# Where the distribution has none that is new enough: one of those that are tested, of the version of the API.
ensure_test_kubectl() {
  kubectl_is_new_enough && return
  local kubectl
  quietly 'Fetching kubectl' "$install_log" test/clients/fetch-kubectl.sh || fail 'kubectl 1.29 or newer is needed, and could not be fetched' \
    'See https://kubernetes.io/docs/tasks/tools/install-kubectl-linux/' "$install_log"
  kubectl=$(test/clients/fetch-kubectl.sh | grep '1\.32')
  mkdir -p "$tools/bin"
  ln -sf "$kubectl" "$tools/bin/kubectl"
  use_fetched_kubectl
}

use_fetched_kubectl() { [ ! -x "$tools/bin/kubectl" ] || PATH=$tools/bin:$PATH; }

kubectl_is_new_enough() {
  local version
  version=$(kubectl version --client 2>/dev/null | sed -n 's/^Client Version: v\([0-9.]*\).*/\1/p') || return 1
  [ -n "$version" ] && newer_or_same "$version" 1.29
}

shell_scripts() {
  command -v shellcheck >/dev/null || { print '    shellcheck is missing: the shell scripts are not checked' && return; }
  shellcheck --external-sources --severity=warning scripts/*.sh scripts/support/*.sh scripts/bramble-* test/machines/*.sh test/clients/*.sh scripts/packages/*/p* scripts/packages/*/remove-unused .ci/* ||
    fail 'A shell script' 'The errors of shellcheck are above.'
}

run_tests() {
  local again=() limit=() last_begin=''
  rm -rf -- "$unit_results" "$again_results" "$unsteady"
  if [ "${#files[@]}" = 0 ]; then
    [ -n "$real" ] || node dist/scripts/unit-tests.js --again | tee "$unit_results" | sed 's/^/    /' || true
    mapfile -t files < <(node dist/scripts/unit-tests.js --list-real)
    # Landings have 90 minutes: what runs then still ends, and up to three files run again.
    [ -n "$whole$real" ] || last_begin=3000
  fi
  wait # for the roots, which no unit test needs
  [ -z "$last_begin" ] || limit=(--seconds "$((SECONDS < last_begin ? last_begin - SECONDS : 0))")
  run_real "$results" "${limit[@]}" "${files[@]}"
  mapfile -t again < <(node dist/scripts/test-verdict.js --again "$results")
  if [ "${#again[@]}" -gt 0 ]; then
    step 'Failed tests once more, one after the other'
    run_real "$again_results" --jobs 1 "${again[@]}"
  fi
  node dist/scripts/test-verdict.js "$results" "$again_results" "$unit_results" "$unsteady" "${files[@]}"
}

# run_real OUTPUT ARGUMENT…: the arguments of real-tests.js. What failed and how the run ended is in OUTPUT.
run_real() {
  local output=$1 status=0
  shift
  : >"$output"
  node dist/scripts/real-tests.js "$output" "$@" </dev/null || status=$?
  printf '# status: %s\n' "$status" >>"$output"
  print "    The whole output of the tests: $output"
  sed -n '/^# {/p; /^# time/p' "$output"
}

main
