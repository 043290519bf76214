# shellcheck shell=bash disable=SC2154
# Sourced by our scripts: what is missing on this machine, and installing it after listing it. Needs print.sh, and these:
# tools (a folder for what is fetched), install_log, assume_yes (yes or empty).

# shellcheck source=scripts/support/runtime.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/runtime.sh"

missing_packages=()
missing_reasons=()

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "Only root may do this: $*" "Run the script as root, or install sudo."
  fi
}

# The package's lists may be missing on a fresh machine: without them no version is known.
refresh_package_lists() {
  command -v apt-get >/dev/null || fail \
    "This machine has no apt-get" "On a system that is not Debian or its kin install Node.js 20 or newer with npm, and Docker, by hand; then run this again."
  [ -n "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mtime -1 2>/dev/null | head -n 1)" ] && return
  quietly 'Reading the package lists' "$install_log" as_root apt-get update ||
    fail 'The package lists could not be read' 'Look at /etc/apt/sources.list and the network, then run this again.' "$install_log"
}

# The version apt would install, or nothing.
candidate_of() {
  LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \(.*\)$/\1/p' | grep -v '(none)' || true
}

newer_or_same() { dpkg --compare-versions "${1:-0}" ge "$2"; }

is_installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

# want PACKAGE REASON: to be installed by the next install_missing, unless it is there.
want() {
  is_installed "$1" && return
  missing_packages+=("$1")
  missing_reasons+=("$2")
}

# Prints what will be installed and why, asks unless --yes is given, installs.
# Another apt, such as the nightly upgrade, is waited for.
install_missing() {
  [ "${#missing_packages[@]}" -gt 0 ] || return 0
  local i
  print 'These packages will be installed with apt-get:'
  for i in "${!missing_packages[@]}"; do
    printf '    %-20s %s\n' "${missing_packages[$i]}" "${missing_reasons[$i]}"
  done
  may_go_on 'Install them now?'
  quietly 'Installing packages' "$install_log" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "${missing_packages[@]}" ||
    fail "These packages could not be installed: ${missing_packages[*]}" \
      "Try it by hand: apt-get update && apt-get install ${missing_packages[*]}" "$install_log"
  missing_packages=()
  missing_reasons=()
  hash -r
}

may_go_on() {
  [ -z "$assume_yes" ] || return 0
  [ -t 0 ] || fail 'Not installed: not a terminal' 'Run this again with --yes.'
  local answer
  read -r -p "$1 [Y/n] " answer
  case $answer in '' | y | Y | yes) ;; *) fail 'Not installed' 'Install the packages above by hand, then run this again.' ;; esac
}

# Node.js 20 or newer with npm. An old distribution's own is left alone: the official build, which npm has as a package,
# is put into our tools folder instead.
plan_node() {
  use_fetched_node
  if node_is_new_enough; then
    command -v npm >/dev/null || { refresh_package_lists && want npm 'to install the JavaScript packages'; }
    return
  fi
  refresh_package_lists
  if newer_or_same "$(candidate_of nodejs)" 20; then
    want nodejs 'Node.js 20 or newer runs everything here'
    want npm 'to install the JavaScript packages'
  else
    want npm "to fetch Node.js 22: the nodejs of this distribution is $(candidate_of nodejs), and 20 is needed"
    want ca-certificates 'to fetch it safely'
  fi
}

# The kubectl of the distribution, unless it is too old for the API.
plan_kubectl() {
  ! command -v kubectl >/dev/null || return 0
  refresh_package_lists
  if newer_or_same "$(candidate_of kubernetes-client)" 1.29; then
    want kubernetes-client 'kubectl, the command line'
  else
    print '    kubectl is missing, and this distribution has none that is 1.29 or newer. Bramble runs without it; to install it:'
    print '    https://kubernetes.io/docs/tasks/tools/install-kubectl-linux/'
  fi
}

ensure_node() {
  node_is_new_enough && return
  local platform version=$node_version integrity
  case $(dpkg --print-architecture) in
    amd64) platform=x64 integrity=$node_integrity_x64 ;;
    arm64) platform=arm64 integrity=$node_integrity_arm64 ;;
    armhf) platform=armv7l version=$node_version_armv7l integrity=$node_integrity_armv7l ;;
    *) fail "There is no Node.js 20 for $(dpkg --print-architecture) in the list of known builds" 'Install Node.js 20 or newer by hand, then run this again.' ;;
  esac
  print "    Node.js $version (the official build, from npm) goes into $tools; the system's own stays as it is."
  may_go_on 'Fetch it now?'
  mkdir -p "$tools/node_modules"
  print '    Fetching Node.js'
  fetch_pinned "node-linux-$platform" "$version" "$integrity" "$tools/node_modules/node-linux-$platform"
  fetch_pinned npm "$npm_version" "$npm_integrity" "$tools/node_modules/npm"
  use_fetched_node
  node_is_new_enough || fail 'The Node.js that was fetched does not run' 'Install Node.js 20 or newer by hand.' "$install_log"
}

node_is_new_enough() {
  command -v node >/dev/null && node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)'
}

use_fetched_node() {
  local node
  for node in "$tools"/node_modules/node-linux-*/bin/node; do
    [ -x "$node" ] || continue
    mkdir -p "$tools/bin"
    ln -sf "$node" "$tools/bin/node"
    ln -sf ../node_modules/npm/bin/npm-cli.js "$tools/bin/npm"
    PATH=$tools/bin:$PATH
    hash -r
  done
}

# npm with its headers in our folder, and its cache unless the environment names one, so that nothing is left in the home folder.
npm_here() {
  local prefix headers
  prefix=$(dirname -- "$(dirname -- "$(readlink -f -- "$(command -v node)")")")
  for headers in "$prefix" /usr/include/nodejs; do
    if [ -f "$headers/include/node/node.h" ] || [ -f "$headers/common.gypi" ]; then
      local -x npm_config_nodedir=$headers
      break
    fi
  done
  npm_config_cache=${npm_config_cache:-$tools/npm-cache} npm_config_devdir=$tools/headers npm_config_update_notifier=false npm "$@"
}

# ensure_modules run|all: the packages of the lock file, those to build and run with, or those to test with too.
ensure_modules() {
  modules_are_there "$1" && return
  local which=(--omit=dev)
  # What a developer installed is not taken away.
  if [ "$1" = all ] || [ -d node_modules/tap ]; then which=(--include=dev); fi
  quietly 'Installing JavaScript packages' "$install_log" npm_here ci --ignore-scripts "${which[@]}" ||
    fail 'The JavaScript packages could not be installed' 'Look at the network and the npm registry, then run this again.' "$install_log"
  # Sockets for systemd and D-Bus, which must be compiled. Without them the programs run, but report nothing to systemd.
  print '    Compiling the modules for systemd'
  mkdir -p "$tools"
  rebuild usocket unix-dgram >"$tools/sockets.log" 2>&1 </dev/null &
  local sockets=$!
  if ! quietly 'Making better-sqlite3 ready (up to a minute if it must be compiled)' "$install_log" rebuild better-sqlite3 &&
    ! compile_with_tools; then
    fail 'better-sqlite3 could not be made ready' 'The reason is in the log; most often a compiler or the headers of Node.js are missing.' "$install_log"
  fi
  # Again where the compiler was installed only meanwhile.
  wait "$sockets" || quietly 'Compiling the modules for systemd' "$install_log" rebuild usocket unix-dgram || [ "$1" = run ] ||
    fail 'usocket and unix-dgram could not be compiled' "Most often a compiler or the headers of Node.js are missing." "$install_log"
  cat "$tools/sockets.log" >>"$install_log"
  rm -rf "$tools/npm-cache" "$tools/sockets.log"
}

# rebuild PACKAGE…: its native parts. With -O1 SQLite compiles in half the time, and a row takes 2.7 µs to write either way, beside
# milliseconds for the disk. Packages are built by build-packages.sh, with -O3.
rebuild() {
  CFLAGS=-O1 CXXFLAGS=-O1 JOBS=max npm_here rebuild "$@"
}

# Younger than the lock file, with native parts for this Node.js.
modules_are_there() {
  # A link leads to the packages of another checkout, which looks after them itself.
  [ ! -L node_modules ] || return 0
  [ node_modules/.package-lock.json -nt package-lock.json ] || return 1
  [ "$1" = run ] || [ -d node_modules/tap ] || return 1
  [ "$1" = run ] || node -e 'require("usocket"), require("unix-dgram")' >/dev/null 2>&1 || return 1
  node -e 'new (require("better-sqlite3"))(":memory:")' >/dev/null 2>&1
}

compile_with_tools() {
  refresh_package_lists
  want python3 'to compile better-sqlite3: no ready-made file was found'
  want make 'to compile it'
  want g++ 'to compile it'
  if [ "$(readlink -f -- "$(command -v node)")" = /usr/bin/node ] && is_installed nodejs; then
    [ -z "$(candidate_of libnode-dev)" ] || [ -d /usr/include/node ] || want libnode-dev "this Node.js's headers, to compile it"
  fi
  [ "${#missing_packages[@]}" -gt 0 ] || return 1
  install_missing
  quietly 'Compiling better-sqlite3 (a minute or more)' "$install_log" rebuild better-sqlite3
}

# Bundles the programs when a source is newer than the last bundle. Needs no compiler of types.
ensure_bundles() {
  bundles_are_new && return
  quietly 'Building' "$install_log" build_bundles ||
    fail 'The build failed' 'If you changed a source file, npm run check shows what is wrong with it.' "$install_log"
  touch dist/bundle/.built
}

bundles_are_new() {
  [ -f dist/bundle/.built ] || return 1
  [ -z "$(find agent api broker-controller certs daemon dashboard scripts package-lock.json \
    -name node_modules -prune -o -newer dist/bundle/.built -print -quit)" ]
}

build_bundles() {
  node_modules/.bin/esbuild scripts/build.ts --bundle --packages=external --platform=node --format=esm \
    --log-level=warning --outfile=dist/bundle/build.mjs && node dist/bundle/build.mjs
}
