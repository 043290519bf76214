#!/usr/bin/env bash
# Fetches the newest Docker that Debian has: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: test/machines/build-docker-root.sh [--folder DIR]

Unpacks docker.io of the testing release of Debian, with its containerd, runc, iptables and libraries, into a folder, and prints the folder: dockerd is
usr/sbin/dockerd in it. Nothing is installed. Half a minute, 90 MB to fetch, 280 MB on disk; a second call prints the folder at once. A caller waits while
another one fetches it. Needs root and mmdebstrap. Packages are verified by the keys of Debian on this machine.

  --folder DIR   where it is kept (BRAMBLE_CACHE, else $XDG_CACHE_HOME/bramble, else ~/.cache/bramble)

It is fetched again after a month, and where the recipe changed. BRAMBLE_TEST_DOCKER_RELEASE names another release than testing.
TXT
}

folder=${BRAMBLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bramble}
while [ $# -gt 0 ]; do
  case $1 in
    --folder) folder=${2:?"--folder: which?"} && shift 2 ;;
    --help) usage && exit 0 ;;
    *) echo "build-docker-root.sh: unknown option $1; see --help" >&2 && exit 64 ;;
  esac
done

release=${BRAMBLE_TEST_DOCKER_RELEASE:-testing}
packages=docker.io,containerd,runc,iptables,util-linux,kmod

main() {
  command -v mmdebstrap >/dev/null || { echo 'build-docker-root.sh: mmdebstrap is missing: apt-get install mmdebstrap' >&2 && exit 69; }
  [ "$(id -u)" = 0 ] || { echo 'build-docker-root.sh: only root can build a root file system' >&2 && exit 77; }
  mkdir -p "$folder"
  local recipe root
  recipe=$(sha256sum -- "${BASH_SOURCE[0]}" | cut -c 1-12)
  root=$folder/docker-$release-$recipe
  exec 9>"$folder/docker.lock"
  flock 9
  find "$folder" -maxdepth 1 -name 'docker-*' -type d -mtime +30 -exec rm -rf --one-file-system {} +
  if [ ! -d "$root" ]; then
    rm -rf --one-file-system "$root.part"
    fetch "$root.part"
    mv -- "$root.part" "$root"
  fi
  printf '%s\n' "$root"
}

fetch() {
  local root=$1 valid tool
  # A mirror that is not updated any more has an old list: this machine's apt takes it, or refuses it.
  valid=$(apt-config dump --format '%v' Acquire::Check-Valid-Until)
  mmdebstrap --quiet --mode=root --variant=extract --include="$packages" --aptopt="Acquire::Check-Valid-Until \"${valid:-true}\"" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' "$release" "$root" >&2
  # As the package does when it is installed.
  for tool in {ip,ip6}tables{,-save,-restore}; do ln -s xtables-nft-multi "$root/usr/sbin/$tool"; done
  touch -- "$root"
}

main
