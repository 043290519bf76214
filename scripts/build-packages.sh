#!/usr/bin/env bash
# Builds the Debian packages of the agent and the controller: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/build-packages.sh [--arch amd64|arm64] [--version VERSION] [--release-keys FILE] [--out DIR] [--quick] [--yes] [PACKAGE…]
       scripts/build-packages.sh --keyring FILE --uri URI [--version VERSION] [--out DIR] bramble-archive-keyring

Builds bramble-agent_VERSION_ARCH.deb and bramble-controller_VERSION_ARCH.deb (the program in one file, its native parts, systemd units,
and settings in /etc/bramble), and bramble-runtime_NODE-REVISION_ARCH.deb (the Node.js that both run on). Prints the paths. What is fetched
and compiled is kept for the next time. The same commit, built twice, gives the same bytes.

  --arch ARCH        amd64 or arm64; this machine's own without it. arm64 is cross-compiled on amd64
  --version VERSION  in place of that of daemon/process/version.ts
  --out DIR          where the packages go (dist/packages)
  --release-keys FILE  whose releases bramble-update and bramble-controller-update install, as dist/scripts/release.js keys writes it; without it none
  --keyring FILE     the public keys of the package repository, present and next, as scripts/repository.sh keys writes them
  --uri URI          the address of that repository
  --quick            for tests: nothing is optimised or packed tightly
  --yes              install a compiler without asking where one is missing
  PACKAGE            bramble-agent, bramble-controller, bramble-runtime or bramble-archive-keyring; without it the first three,
                     and with --keyring the fourth, too

SOURCE_DATE_EPOCH is the time of every file in the packages: without it that of the last commit. bramble-runtime has its own, with its version.
BRAMBLE_CACHE names the folder for what is kept, else it is $XDG_CACHE_HOME/bramble or ~/.cache/bramble.
TXT
}

maintainer='The Bramble developers <developers@bramble.dev>'

arch='' version='' out='' quick='' assume_yes='' keyring='' uri='' release_keys='' packages=()
while [ $# -gt 0 ]; do
  case $1 in
    --arch) arch=${2:?'--arch: which?'} && shift 2 ;;
    --version) version=${2:?'--version: which?'} && shift 2 ;;
    --out) out=$(realpath -m -- "${2:?'--out: where?'}") && shift 2 ;;
    --release-keys) release_keys=$(realpath -e -- "${2:?'--release-keys: which file?'}") && shift 2 ;;
    --keyring) keyring=$(realpath -m -- "${2:?'--keyring: which file?'}") && shift 2 ;;
    --uri) uri=${2:?'--uri: which address?'} && shift 2 ;;
    --quick) quick=yes && shift ;;
    --yes) assume_yes=yes && shift ;;
    --help) usage && exit 0 ;;
    bramble-agent | bramble-controller | bramble-runtime | bramble-archive-keyring) packages+=("$1") && shift ;;
    *) echo "build-packages.sh: unknown argument $1; see --help" >&2 && exit 64 ;;
  esac
done
[ "${#packages[@]}" -gt 0 ] || packages=(bramble-runtime bramble-agent bramble-controller ${keyring:+bramble-archive-keyring})
# Names are sorted, numbers and times are written the same way everywhere.
export LC_ALL=C TZ=UTC
umask 022

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
  dpkg --validate-version "$version" 2>/dev/null || fail "$version is not a valid version of a Debian package" 'Write it as 1.2.3 or 1.2.3~rc1.'
  choose_time
  if [[ " ${packages[*]} " == *' bramble-archive-keyring '* ]]; then check_keyring; fi
  mkdir -p "$cache" "$out"
  work=$(mktemp -d)
  trap 'rm -rf -- "$work"' EXIT
  exec 8>"$cache/packages.lock"
  flock 8
  local package
  ready_node
  if [[ " ${packages[*]} " =~ ' '(bramble-agent|bramble-controller)' ' ]]; then bundle; fi
  for package in "${packages[@]}"; do build "$package"; done
}

choose_architecture() {
  case $arch in
    amd64) platform=x64 triplet=x86_64-linux-gnu integrity=$node_integrity_x64 ;;
    arm64) platform=arm64 triplet=aarch64-linux-gnu integrity=$node_integrity_arm64 ;;
    armhf | armel) fail 'There is no package for 32-bit ARM: no Node.js newer than 20.11 is built for it' \
      'Raspberry Pi 3, 4, 5, 400, 500, Zero 2 W and Pi 2 v1.2 run the 64-bit system: use that, and --arch arm64. Pi 1, Zero, Zero W and Pi 2 v1.1 cannot.' ;;
    *) fail "There is no package for $arch" 'Packages are built for amd64 and arm64.' ;;
  esac
  strip=strip CC=gcc CXX=g++
  [ "$arch" = "$own_arch" ] || strip=$triplet-strip CC=$triplet-gcc CXX=$triplet-g++
}

# choose_time: SOURCE_DATE_EPOCH, which dpkg-deb and gzip obey, too. What this script writes has no other time.
choose_time() {
  if [ -z "${SOURCE_DATE_EPOCH:-}" ] && ! command -v git >/dev/null; then
    want git 'the time of the last commit'
    refresh_package_lists
    install_missing
  fi
  : "${SOURCE_DATE_EPOCH:=$(git -c safe.directory="$repository" log -1 --format=%ct 2>/dev/null)}"
  [[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] || fail 'The time of the sources is not known: this is not a git clone' 'Set SOURCE_DATE_EPOCH to the seconds since 1970.'
  export SOURCE_DATE_EPOCH
}

check_keyring() {
  [ -s "$keyring" ] || fail "There is no keyring ${keyring:-}" 'Give --keyring FILE: scripts/repository.sh keys makes one.'
  ! head -n 1 -- "$keyring" | grep -q -- '-----BEGIN' || fail "$keyring is armoured" 'apt wants it binary: gpg --dearmor.'
  [[ $uri =~ ^https?://[^[:space:]]+$ ]] || fail "The address of the repository is ${uri:-not given}" 'Give --uri https://….'
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
  node dist/bundle/build-packages.mjs --out="$work/bundle" --version="$version" bramble-agent bramble-update bramble-controller bramble-controller-update bramble-grpc bramble-mqtt bramble-simulator bramble-certs
}

# native MODULE FILE: the compiled FILE of the module, for the Node.js of the package; prints its path.
native() {
  local module=$1 file=$2 folder compiled
  local key
  key=$module-$(node -p "require('./node_modules/$module/package.json').version")-node$node_version-$arch-2${quick:+-quick}
  compiled=$cache/$key.node
  if [ ! -f "$compiled" ]; then
    need_compiler
    folder=$work/native/$module
    mkdir -p "$folder"
    cp -RL "node_modules/$module/." "$folder/"
    rm -rf -- "$folder/build" "$folder/node_modules"
    # Headers that it includes, by a path that does not depend on where this folder is.
    mkdir "$folder/node_modules" && cp -RL node_modules/nan "$folder/node_modules/"
    # Quick: SQLite is compiled in ten seconds in place of sixty, and is as slow as a test does not notice.
    # No file names this folder, whose name is another one each time.
    local places="-ffile-prefix-map=$folder=. -ffile-prefix-map=$node_home=node"
    local -x CFLAGS="${quick:+-O0 }$places" CXXFLAGS="${quick:+-O0 }$places" NODE_PATH=$repository/node_modules
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
  local package=$1 root=$work/$1 library documents began=$SECONDS
  local version=$version arch=$arch SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH archive
  case $package in
    # Not the release's: who updates the agent does not fetch Node.js again.
    bramble-runtime) version=$node_version-$runtime_revision SOURCE_DATE_EPOCH=$runtime_epoch ;;
    bramble-archive-keyring) arch=all ;;
  esac
  step "$package $version for $arch"
  library=$root/usr/lib/$package
  documents=$root/usr/share/doc/$package
  mkdir -p "$root/DEBIAN" "$documents"
  "${package//-/_}"
  control
  archive=$out/${package}_${version}_$arch.deb
  local compression=(-Zxz --threads-max=1)
  [ -z "$quick" ] || compression=(-Znone)
  chmod -R u=rwX,go=rX "$root"
  find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group "${compression[@]}" --build "$root" "$archive" >>"$install_log"
  print "$archive: $(du -h -- "$archive" | cut -f 1), installed $(du -sh -- "$root" | cut -f 1), $((SECONDS - began)) s"
}

bramble_runtime() {
  local stripped=$cache/node-$node_version-$platform/bin/node.stripped
  if [ ! -f "$stripped" ]; then
    need_compiler
    "$strip" --strip-unneeded -o "$stripped.part" "$node_home/bin/node"
    mv -- "$stripped.part" "$stripped"
  fi
  install -D -m 755 "$stripped" "$library/$node_version/node"
  # The programs look for the major version, which their native parts were compiled for.
  ln -s "$node_version" "$library/$node_major"
  install -m 755 scripts/packages/bramble-runtime/remove-unused "$library/remove-unused"
  licence_of_bramble
  { printf '=== Node.js %s\n\n' "$node_version" && cat "$node_home/LICENSE"; } | gzip -9 -n >"$documents/licences-of-parts.gz"
  changelog "Node.js $node_version, as its makers build it."
  overrides "embedded-library zlib [usr/lib/$package/$node_version/node]" "hardening-no-pie [usr/lib/$package/$node_version/node]"
}

bramble_archive_keyring() {
  install -D -m 644 "$keyring" "$root/usr/share/keyrings/bramble-archive-keyring.pgp"
  mkdir -p "$root/etc/apt/sources.list.d"
  sed "s|@URI@|$uri|" scripts/packages/bramble-archive-keyring/bramble.sources >"$root/etc/apt/sources.list.d/bramble.sources"
  licence_of_bramble
  changelog 'The keys of this time and of the next.'
}

# common: what the packages of both programs have.
common() {
  mkdir -p "$root/usr/bin" "$root/lib/systemd/system" "$root/etc/bramble" "$documents/examples"
  plain_module bindings file-uri-to-path
  place unix-dgram unix_dgram.node lib
  printf '%s\n' "$node_major" >"$library/runtime"
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
  common
  place usocket uwrap.node index.js
  plain_module debug ms
  program bramble-agent "runs this machine's pods in Docker"
  program bramble-update 'installs releases of the agent, on trial'
  completion bramble-agent
  # The version with the larger sequence is newer. It is the time of the sources.
  printf '{"version":"%s","sequence":%s}\n' "$version" "$SOURCE_DATE_EPOCH" >"$library/release.json"
  [ -z "$release_keys" ] || install -m 644 "$release_keys" "$library/release-keys.json"
  install -m 755 scripts/packages/bramble-agent/start "$library/start"
  install -m 644 systemd/bramble-agent.service systemd/bramble-agent-trial.service systemd/bramble-agent-update.service systemd/bramble-agent-update.path systemd/bramble-agent-update.timer systemd/bramble-os-updates.service systemd/bramble-os-updates.timer systemd/bramble-os-upgrade.service systemd/bramble-os-upgrade.path systemd/bramble-os-upgrade.timer systemd/bramble-agent.path systemd/bramble-first-boot.service "$root/lib/systemd/system/"
  install -D -m 644 systemd/bramble-agent.sysctl.conf "$root/usr/lib/sysctl.d/50-bramble-agent.conf"
  install -D -m 644 systemd/bramble-agent.modules.conf "$root/usr/lib/modules-load.d/bramble-agent.conf"
  install -m 755 scripts/packages/bramble-agent/has-joined "$library/has-joined"
  install -m 755 scripts/packages/bramble-agent/os-updates "$library/os-updates"
  install -m 644 scripts/packages/bramble-agent/agent.yaml "$root/etc/bramble/agent.yaml"
  documents_of agent
}

bramble_controller() {
  common
  place better-sqlite3 better_sqlite3.node lib
  program bramble-controller 'control plane of a fleet'
  program bramble-controller-update 'installs releases of the controller, on trial'
  install -m 644 "$work/bundle/bramble-grpc.mjs" "$library/bramble-grpc.mjs"
  install -m 644 "$work/bundle/bramble-mqtt.mjs" "$library/bramble-mqtt.mjs"
  install -m 644 "$work/bundle/bramble-simulator.mjs" "$library/bramble-simulator.mjs"
  mkdir "$library/dashboard"
  install -m 644 "$work"/bundle/dashboard/* "$library/dashboard/"
  completion bramble-controller
  # The version with the larger sequence is newer. It is the time of the sources.
  printf '{"version":"%s","sequence":%s,"storeFormats":[%s]}\n' "$version" "$SOURCE_DATE_EPOCH" \
    "$(node "$library/bramble-controller.mjs" store formats)" >"$library/release.json"
  [ -z "$release_keys" ] || install -m 644 "$release_keys" "$library/release-keys.json"
  install -m 755 scripts/packages/bramble-controller/start scripts/packages/bramble-controller/prepare "$library/"
  program bramble-certs 'shows and issues the certificates of a fleet'
  completion bramble-certs
  install -m 644 systemd/bramble-controller.service systemd/bramble-controller-trial.service "$root/lib/systemd/system/"
  install -D -m 644 systemd/bramble-controller.sysusers "$root/usr/lib/sysusers.d/bramble-controller.conf"
  install -D -m 644 --target-directory="$documents/examples" systemd/examples/bramble-backup.service systemd/examples/bramble-backup.timer systemd/examples/bramble-mosquitto.service systemd/examples/mosquitto-sessions.conf
  install -m 644 scripts/packages/bramble-controller/controller.yaml "$root/etc/bramble/controller.yaml"
  documents_of broker-controller
}

# documents_of FOLDER: the pages, and the licences of the modules of the program whose package.json is in FOLDER.
documents_of() {
  local module
  install -m 644 docs/{installing,updating,operating,recovery,control-plane,recipes,configuration}.md "$documents/"
  install -m 644 systemd/examples/*.conf "$documents/examples/"
  licence_of_bramble
  for module in "$library"/node_modules/* $(licensed_modules "$1"); do
    printf '=== %s\n\n' "${module#*node_modules/}"
    cat "node_modules/${module#*node_modules/}"/LICEN[CS]E* 2>/dev/null || true
    printf '\n'
  done | gzip -9 -n >"$documents/licences-of-parts.gz"
  gzip -9 -n -c CHANGELOG.md >"$documents/CHANGELOG.md.gz"
  changelog 'What is different: CHANGELOG.md.gz beside this file.'
}

licence_of_bramble() {
  {
    printf 'Bramble is licensed under the Apache License, Version 2.0: see /usr/share/common-licenses/Apache-2.0.\n\n'
    printf 'Copyright (C) 2026 the Bramble developers\n\n'
    printf 'The licences of what others wrote and is part of this package, if anything: licences-of-parts.gz beside this file.\n'
  } >"$documents/copyright"
}

# changelog TEXT: in Debian's form, with the one entry of this version.
changelog() {
  {
    printf '%s (%s) stable; urgency=medium\n\n  * %s\n\n' "$package" "$version" "$1"
    printf ' -- %s  %s\n' "$maintainer" "$(date --rfc-email --date="@$SOURCE_DATE_EPOCH")"
  } | gzip -9 -n >"$documents/changelog.gz"
}

# overrides TAG…: what lintian finds and is meant so.
overrides() {
  mkdir -p "$root/usr/share/lintian/overrides"
  {
    printf '# Node.js comes as its makers build it, so that its fixes are the same for every system.\n'
    printf "$package: %s\n" "$@"
  } >"$root/usr/share/lintian/overrides/$package"
}

# licensed_modules FOLDER: the modules inside the bundles, those of the program's package.json, and theirs.
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
  ' "$1" certs
}

control() {
  local from=scripts/packages/$package file needed=''
  [ "$arch" = all ] || needed=$(libraries)
  {
    sed -n '1p' "$from/control"
    printf 'Version: %s\nArchitecture: %s\nMaintainer: %s\n' "$version" "$arch" "$maintainer"
    printf 'Section: admin\nPriority: optional\nInstalled-Size: %s\n' "$(installed_size)"
    sed "1d; s/@LIBRARIES@/$needed/; s/@NODE@/$node_version-$runtime_revision/; s/@MAJOR@/$node_major/" "$from/control"
  } >"$root/DEBIAN/control"
  for file in preinst postinst prerm postrm; do [ ! -f "$from/$file" ] || install -m 755 "$from/$file" "$root/DEBIAN/$file"; done
  [ ! -f "$from/triggers" ] || install -m 644 "$from/triggers" "$root/DEBIAN/triggers"
  [ ! -d "$root/etc" ] || (cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
  (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
}

# In KiB, from the sizes of the files: what a disk uses for them depends on the disk.
installed_size() { find "$root" -path "$root/DEBIAN" -prune -o -printf '%y %s\n' | awk '{ kib += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print kib }'; }

# What node and the compiled modules ask of the C and C++ libraries, which depends on those they were compiled with.
libraries() {
  local symbols minor version
  symbols=$(find "$library" '(' -name '*.node' -o -name node -type f ')' -print0 | sort -z | xargs -0 "${strip%strip}objdump" --private-headers)
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
