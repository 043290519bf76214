#!/usr/bin/env bash
# Builds the Debian root with the clients that this distribution has not: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: test/clients/build-root.sh [--folder DIR]

Makes a Debian 13 with pykube-ng, Prometheus with its discovery of Kubernetes, and client-go with Go, and compiles go-client/ in it: the program is
/opt/clients/go-client. Prints the folder it is in. About two minutes on two idle cores, and 1.5 GB; a second call prints the folder at once. A caller
waits while another one builds it. Needs root and mmdebstrap.

  --folder DIR   where roots are kept (BRAMBLE_CACHE, else $XDG_CACHE_HOME/bramble, else ~/.cache/bramble)

A changed recipe gets a folder of its own; one that was not used for a week is removed. A changed program is compiled again.
TXT
}

folder=${BRAMBLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bramble}
while [ $# -gt 0 ]; do
  case $1 in
    --folder) folder=${2:?"--folder: which?"} && shift 2 ;;
    --help) usage && exit 0 ;;
    *) echo "build-root.sh: unknown option $1; see --help" >&2 && exit 64 ;;
  esac
done

release=trixie
packages=golang-go,golang-k8s-client-go-dev,python3-pykube-ng,prometheus
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

main() {
  command -v mmdebstrap >/dev/null || { echo 'build-root.sh: mmdebstrap is missing: apt-get install mmdebstrap' >&2 && exit 69; }
  [ "$(id -u)" = 0 ] || { echo 'build-root.sh: only root can build a root file system' >&2 && exit 77; }
  mkdir -p "$folder"
  local recipe root
  recipe=$(printf '%s' "$release $packages" | sha256sum | cut -c 1-12)
  root=$folder/clients-$release-$recipe
  exec 9>"$folder/clients.lock"
  flock 9
  if [ ! -d "$root" ]; then
    find "$folder" -maxdepth 1 -name 'clients-*' -type d -mtime +7 -exec rm -rf --one-file-system {} +
    rm -rf --one-file-system "$root.part"
    mmdebstrap --quiet --mode=root --variant=apt --include="$packages" \
      --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --dpkgopt='path-exclude=/usr/share/doc/*' "$release" "$root.part" >&2
    rm -rf "$root.part"/var/lib/apt/lists/* "$root.part"/var/cache/apt/*.bin
    mv -- "$root.part" "$root"
  fi
  touch -- "$root"
  compile "$root"
  printf '%s\n' "$root"
}

# A static program, so that it runs in any pod. Debian's Go libraries have no modules: https://go-team.pages.debian.net/
compile() {
  local root=$1 source=$here/go-client/main.go
  cmp --silent "$source" "$root/opt/clients/main.go" && return
  mkdir -p "$root/opt/clients" "$root/opt/source"
  cp -- "$source" "$root/opt/source/"
  # GOROOT: without /proc it does not find itself.
  chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root GOROOT=/usr/lib/go GOTELEMETRY=off GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=/var/cache/go \
    CGO_ENABLED=0 go build -ldflags='-s -w' -o /opt/clients/go-client.part /opt/source/main.go >&2
  mv -- "$root/opt/clients/go-client.part" "$root/opt/clients/go-client"
  cp -- "$source" "$root/opt/clients/main.go"
}

main
