#!/usr/bin/env bash
# Builds the Debian packages of the agent and the controller: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/build-packages.sh [--arch amd64|arm64] [--version VERSION] [--out DIR] [--quick] [--yes] [PACKAGE…]

Builds bramble-agent_VERSION_ARCH.deb and bramble-controller_VERSION_ARCH.deb: the program in one file, the Node.js it runs on, its
native parts, systemd units, and settings in /etc/bramble. Prints the paths. What is fetched and compiled is kept for the next time.

  --arch ARCH        amd64 or arm64; this machine's own without it. arm64 is cross-compiled on amd64
  --version VERSION  in place of that of daemon/process/version.ts
  --out DIR          where the packages go (dist/packages)
  --quick            for tests: nothing is optimised or packed tightly
  --yes              install a compiler without asking where one is missing
  PACKAGE            bramble-agent or bramble-controller; both without it

BRAMBLE_CACHE names the folder for what is kept, else it is $XDG_CACHE_HOME/bramble or ~/.cache/bramble.
TXT
}

maintainer='The Bramble developers <developers@bramble.dev>'

arch='' version='' out='' quick='' assume_yes='' packages=()
while [ $# -gt 0 ]; do
  case $1 in
    --arch) arch=${2:?'--arch: which?'} && shift 2 ;;
    --version) version=${2:?'--version: which?'} && shift 2 ;;
    --out) out=$(realpath -m -- "${2:?'--out: where?'}") && shift 2 ;;
    --quick) quick=yes && shift ;;
    --yes) assume_yes=yes && shift ;;
    --help) usage && exit 0 ;;
    bramble-agent | bramble-controller) packages+=("$1") && shift ;;
    *) echo "build-packages.sh: unknown argument $1; see --help" >&2 && exit 64 ;;
  esac
done
[ "${#packages[@]}" -gt 0 ] || packages=(bramble-agent bramble-controller)

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
repository=$PWD
# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
# shellcheck source=scripts/support/packages.sh
. scripts/support/packages.sh

mkdir -p dist
tools=$PWD/dist/tools
install_log=$PWD/dist/packages.log
out=${out:-$PWD/dist/packages}
cache=${BRAMBLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bramble}
own_arch=$(dpkg --print-architecture)
arch=${arch:-$own_arch}

main() {
  choose_architecture
  use_fetched_node
  node_is_new_enough || fail 'There is no Node.js 20 or newer to build with' 'Run scripts/test.sh or scripts/quickstart.sh once: they fetch one.'
  [ -d node_modules/esbuild ] || fail 'The JavaScript packages are missing' 'Run npm ci first.'
  version=${version:-$(sed -n "s/^export const version = '\(.*\)'/\1/p" daemon/process/version.ts)}
  dpkg --validate-version "$version" 2>/dev/null || fail "$version is no version of a Debian package" 'Write it as 1.2.3 or 1.2.3~rc1.'
  mkdir -p "$cache" "$out"
  work=$(mktemp -d)
  trap 'rm -rf -- "$work"' EXIT
  exec 8>"$cache/packages.lock"
  flock 8
  local package
  ready_node
  bundle
  for package in "${packages[@]}"; do build "$package"; done
}

choose_architecture() {
  case $arch in
    amd64) platform=x64 triplet=x86_64-linux-gnu integrity=$node_integrity_x64 ;;
    arm64) platform=arm64 triplet=aarch64-linux-gnu integrity=$node_integrity_arm64 ;;
    armhf) fail 'There is no package for armhf: no Node.js newer than 20.11 is built for 32-bit ARM' \
      'A Raspberry Pi 3 or newer, and a Zero 2 W, run the 64-bit system: use that, and --arch arm64.' ;;
    *) fail "There is no package for $arch" 'Packages are built for amd64 and arm64.' ;;
  esac
  strip=strip CC=gcc CXX=g++
  [ "$arch" = "$own_arch" ] || strip=$triplet-strip CC=$triplet-gcc CXX=$triplet-g++
}

# ready_node: the runtime and its headers, in $node_home.
ready_node() {
  node_home=$cache/node-$node_version-$platform
  [ -x "$node_home/bin/node" ] && return
  step "Fetching Node.js $node_version for $arch"
  fetch_pinned "node-linux-$platform" "$node_version" "$integrity" "$node_home"
}

bundle() {
  step "Bundling version $version"
  node_modules/.bin/esbuild scripts/build.ts --bundle --packages=external --platform=node --format=esm \
    --log-level=warning --outfile=dist/bundle/build-packages.mjs
  node dist/bundle/build-packages.mjs --out="$work/bundle" --version="$version" bramble-agent bramble-controller bramble-grpc bramble-mqtt bramble-certs
}

# native MODULE FILE: the compiled FILE of the module, for the Node.js of the package; prints its path.
native() {
  local module=$1 file=$2 folder compiled
  local key
  key=$module-$(node -p "require('./node_modules/$module/package.json').version")-node$node_version-$arch${quick:+-quick}
  compiled=$cache/$key.node
  if [ ! -f "$compiled" ]; then
    need_compiler
    folder=$work/native/$module
    mkdir -p "$folder"
    cp -RL "node_modules/$module/." "$folder/"
    rm -rf -- "$folder/build" "$folder/node_modules"
    # Quick: SQLite is compiled in ten seconds in place of sixty, and is as slow as a test does not notice.
    local -x CFLAGS="${quick:+-O0}" CXXFLAGS="${quick:+-O0}" NODE_PATH=$repository/node_modules
    (cd "$folder" && quietly "Compiling $module for $arch" "$install_log" env CC="$CC" CXX="$CXX" LINK="$CXX" \
      node "$repository/node_modules/usocket/node_modules/node-gyp/bin/node-gyp.js" rebuild --release --arch="$platform" \
      --nodedir="$node_home") >&2 || fail "$module could not be compiled for $arch" 'The errors of the compiler are above.' "$install_log"
    "$strip" --strip-unneeded "$folder/build/Release/$file"
    mv -- "$folder/build/Release/$file" "$compiled"
  fi
  printf '%s\n' "$compiled"
}

need_compiler() {
  command -v "$CXX" >/dev/null && command -v "$strip" >/dev/null && command -v make >/dev/null && command -v python3 >/dev/null && return
  {
    want make 'to compile native parts'
    want python3 'to compile them'
    if [ "$arch" = "$own_arch" ]; then want g++ 'to compile them'; else want "g++-${triplet/_/-}" "to compile them for $arch"; fi
    refresh_package_lists
    install_missing
  } >&2
}

# place MODULE FILE FOLDER…: a module with native code as the bundle finds it: its own folders, and the compiled file.
place() {
  local module=$1 file=$2 to=$library/node_modules/$1 part compiled
  shift 2
  compiled=$(native "$module" "$file")
  mkdir -p "$to/build/Release"
  for part in package.json "$@"; do cp -RL "node_modules/$module/$part" "$to/"; done
  install -m 644 "$compiled" "$to/build/Release/$file"
}

plain_module() {
  local name to
  for name in "$@"; do
    to=$library/node_modules/$name
    mkdir -p "$to"
    cp -RL "node_modules/$name/." "$to/"
    rm -rf -- "$to/node_modules" "$to/test" "$to"/.[a-z]* "$to"/*.md
  done
}

build() {
  local package=$1 root=$work/$1 folder library documents began=$SECONDS
  step "$package $version for $arch"
  library=$root/usr/lib/$package
  documents=$root/usr/share/doc/$package
  mkdir -p "$root/DEBIAN" "$library" "$root/usr/bin" "$root/lib/systemd/system" "$root/etc/bramble" "$documents/examples"
  runtime
  "${package//-/_}"
  documents
  control
  local archive=$out/${package}_${version}_$arch.deb compression=(-Zxz)
  [ -z "$quick" ] || compression=(-Znone)
  chmod -R u=rwX,go=rX "$root"
  dpkg-deb --root-owner-group "${compression[@]}" --build "$root" "$archive" >>"$install_log"
  print "$archive: $(du -h -- "$archive" | cut -f 1), installed $(du -sh -- "$root" | cut -f 1), $((SECONDS - began)) s"
}

runtime() {
  local stripped=$cache/node-$node_version-$platform/bin/node.stripped
  if [ ! -f "$stripped" ]; then
    need_compiler
    "$strip" --strip-unneeded -o "$stripped.part" "$node_home/bin/node"
    mv -- "$stripped.part" "$stripped"
  fi
  install -m 755 "$stripped" "$library/node"
  plain_module bindings file-uri-to-path
  place unix-dgram unix_dgram.node lib
}

# program NAME WHAT
program() {
  install -m 644 "$work/bundle/$1.mjs" "$library/$1.mjs"
  install -m 755 "scripts/$1" "$library/$1"
  ln -s "../lib/$package/$1" "$root/usr/bin/$1"
  manual "$1" "$2"
}

# completion PROGRAM: for bash, as the program prints it. Run by this machine's Node.js, as for manual.
completion() {
  local folder=$root/usr/share/bash-completion/completions
  mkdir -p "$folder"
  node "$library/$1.mjs" completion bash >"$folder/$1"
}

# manual PROGRAM WHAT: the output of --help as a page for man; its modules must be there. Run by this machine's Node.js: that of the package may be for another.
manual() {
  local page=$root/usr/share/man/man8/$1.8.gz
  mkdir -p "${page%/*}"
  {
    printf '.TH %s 8 "" "Bramble %s"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n' "${1^^}" "$version" "$1" "$2"
    node "$library/$1.mjs" --help | sed "s/[\\-]/\\\\&/g; s/^[.']/\\\\\&&/"
    printf '.fi\n.SH FILES\n/usr/share/doc/%s/operating.md: what to do when, and what is seen then\n' "$package"
  } | gzip -9 -n >"$page"
}

bramble_agent() {
  folder=agent
  place usocket uwrap.node index.js
  plain_module debug ms
  program bramble-agent "runs this machine's pods in Docker"
  completion bramble-agent
  install -m 644 systemd/bramble-agent.service systemd/bramble-agent.path systemd/bramble-first-boot.service "$root/lib/systemd/system/"
  install -D -m 644 systemd/bramble-agent.sysctl.conf "$root/usr/lib/sysctl.d/50-bramble-agent.conf"
  install -D -m 644 systemd/bramble-agent.modules.conf "$root/usr/lib/modules-load.d/bramble-agent.conf"
  install -m 755 scripts/packages/bramble-agent/has-joined "$library/has-joined"
  install -m 644 scripts/packages/bramble-agent/agent.yaml "$root/etc/bramble/agent.yaml"
}

bramble_controller() {
  folder=broker-controller
  place better-sqlite3 better_sqlite3.node lib
  program bramble-controller 'control plane of a fleet'
  install -m 644 "$work/bundle/bramble-grpc.mjs" "$library/bramble-grpc.mjs"
  install -m 644 "$work/bundle/bramble-mqtt.mjs" "$library/bramble-mqtt.mjs"
  mkdir "$library/dashboard"
  install -m 644 "$work"/bundle/dashboard/* "$library/dashboard/"
  completion bramble-controller
  program bramble-certs 'shows and issues the certificates of a fleet'
  completion bramble-certs
  install -m 644 systemd/bramble-controller.service "$root/lib/systemd/system/"
  install -D -m 644 systemd/bramble-controller.sysusers "$root/usr/lib/sysusers.d/bramble-controller.conf"
  install -D -m 644 --target-directory="$documents/examples" systemd/examples/bramble-backup.service systemd/examples/bramble-backup.timer systemd/examples/bramble-mosquitto.service systemd/examples/mosquitto-sessions.conf
  install -m 644 scripts/packages/bramble-controller/controller.yaml "$root/etc/bramble/controller.yaml"
}

documents() {
  local module overrides=$root/usr/share/lintian/overrides
  install -m 644 docs/operating.md docs/recipes.md docs/configuration.md "$documents/"
  install -m 644 systemd/examples/*.conf "$documents/examples/"
  {
    printf 'Bramble is licensed under the Apache License, Version 2.0: see /usr/share/common-licenses/Apache-2.0.\n\n'
    printf 'Copyright (C) 2026 the Bramble developers\n\n'
    printf 'The licences of Node.js and of the modules that are part of this package: licences-of-parts.gz beside this file.\n'
  } >"$documents/copyright"
  {
    printf '=== Node.js %s\n\n' "$node_version"
    cat "$node_home/LICENSE"
    for module in "$library"/node_modules/* $(licensed_modules); do
      printf '\n=== %s\n\n' "${module#*node_modules/}"
      cat "node_modules/${module#*node_modules/}"/LICEN[CS]E* 2>/dev/null || true
    done
  } | gzip -9 -n >"$documents/licences-of-parts.gz"
  gzip -9 -n -c CHANGELOG.md >"$documents/CHANGELOG.md.gz"
  {
    printf '%s (%s) stable; urgency=medium\n\n  * What is different: CHANGELOG.md.gz beside this file.\n\n' "$package" "$version"
    printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -R -r CHANGELOG.md)"
  } | gzip -9 -n >"$documents/changelog.gz"
  mkdir -p "$overrides"
  {
    printf '# Node.js comes as its makers build it, so that its fixes are the same for every system.\n'
    printf '%s: embedded-library zlib [usr/lib/%s/node]\n%s: hardening-no-pie [usr/lib/%s/node]\n' "$package" "$package" "$package" "$package"
  } >"$overrides/$package"
}

# The modules inside the bundles: those of the program's package.json, and theirs.
licensed_modules() {
  node -e '
    const { packages } = require("./package-lock.json"), seen = new Set()
    const visit = (name) => {
      const found = packages[`node_modules/${name}`]
      if (!found || seen.has(name)) return
      seen.add(name)
      Object.keys(found.dependencies ?? {}).forEach(visit)
    }
    for (const folder of process.argv.slice(1)) Object.keys(packages[folder].dependencies).forEach(visit)
    console.log([...seen].sort().map((name) => `node_modules/${name}`).join("\n"))
  ' "$folder" certs
}

control() {
  local from=scripts/packages/$package file needed
  needed=$(libraries)
  {
    sed -n '1p' "$from/control"
    printf 'Version: %s\nArchitecture: %s\nMaintainer: %s\n' "$version" "$arch" "$maintainer"
    printf 'Section: admin\nPriority: optional\nInstalled-Size: %s\n' "$(du -sk -- "$root" | cut -f 1)"
    sed "1d; s/^Depends: .*/&, $needed/" "$from/control"
  } >"$root/DEBIAN/control"
  for file in postinst prerm postrm; do install -m 755 "$from/$file" "$root/DEBIAN/$file"; done
  (cd "$root" && find etc -type f -printf '/%p\n') >"$root/DEBIAN/conffiles"
  (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
}

# What node and the compiled modules ask of the C and C++ libraries, which depends on those they were compiled with.
libraries() {
  local symbols minor version
  symbols=$(find "$library" -name '*.node' -print0 | xargs -0 "${strip%strip}objdump" --private-headers "$library/node")
  # A version of libstdc++'s symbols, and the GCC that brought it: https://gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html
  minor=$(grep -o 'GLIBCXX_3\.4\.[0-9]*' <<<"$symbols" | sort -V | tail -n 1)
  for version in 21:5 22:6 24:7 25:8 28:9 29:11 30:12 32:13 33:14 34:15; do
    [ "${minor##*.}" -gt "${version%:*}" ] || break
  done
  [ "${minor##*.}" -le "${version%:*}" ] || fail "No version of libstdc++ is known for $minor" 'Add it to scripts/build-packages.sh.'
  printf 'libc6 (>= %s), libstdc++6 (>= %s), libgcc-s1' \
    "$(grep -o 'GLIBC_[0-9.]*' <<<"$symbols" | sort -V | tail -n 1 | cut -d _ -f 2)" "${version#*:}"
}

main
