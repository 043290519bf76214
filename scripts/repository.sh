#!/usr/bin/env bash
# Makes the signed repository that apt installs Bramble from: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/repository.sh keys --out DIR
       scripts/repository.sh publish --to DIR --suite SUITE [--key ID]… PACKAGE.deb…
       scripts/repository.sh promote --to DIR [--key ID]…
       scripts/repository.sh sign --to DIR [--key ID]…

A repository of static files, for any web server.

  keys      makes two keys without a passphrase: present.key signs, next.key is kept elsewhere until it has to. keyring.pgp has both public keys,
            for build-packages.sh --keyring. Nothing is overwritten
  publish   adds packages to a suite: stable or candidate. What was published stays. The same file a second time changes nothing; another content
            of the same name is refused
  promote   puts what candidate has into stable
  sign      signs both suites again, with the same packages: weekly, as a signature is valid for 30 days
  --to DIR  the repository; it is created
  --key ID  the key of gpg that signs (all secret keys of GNUPGHOME without it); twice to sign with both
  --suite SUITE
  --help

A publication may be interrupted at any moment, or be fetched by apt while it is going on: InRelease is replaced last, and names files that stay.
Upload pool and by-hash first and InRelease last, too. SOURCE_DATE_EPOCH is the time of signatures and keys, in place of the present one.
TXT
}

command='' to='' out='' suite='' keys=() files=()
while [ $# -gt 0 ]; do
  case $1 in
    --to) to=$(realpath -m -- "${2:?'--to: where?'}") && shift 2 ;;
    --out) out=$(realpath -m -- "${2:?'--out: where?'}") && shift 2 ;;
    --suite) suite=${2:?'--suite: which?'} && shift 2 ;;
    --key) keys+=(--local-user "${2:?'--key: which?'}") && shift 2 ;;
    --help) usage && exit 0 ;;
    -*) echo "repository.sh: unknown option $1; see --help" >&2 && exit 64 ;;
    *) if [ -z "$command" ]; then command=$1; else files+=("$(realpath -- "$1")"); fi && shift ;;
  esac
done

# shellcheck source=scripts/support/print.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/support/print.sh"

export LC_ALL=C TZ=UTC
umask 022
suites=(stable candidate) architectures=(amd64 arm64)
valid_days=30
# Longer than any signature that names them is valid, and a client that is slow to fetch them.
keep_index_days=60

main() {
  case $command in
    keys) [ -n "$out" ] || fail 'No folder is named for the keys' 'Give --out DIR.' && make_keys && return ;;
    publish | promote | sign) ;;
    '') usage >&2 && exit 64 ;;
    *) echo "repository.sh: unknown command $command; see --help" >&2 && exit 64 ;;
  esac
  local program
  for program in gpg xz; do command -v "$program" >/dev/null || fail "$program is missing" "apt-get install $([ $program = gpg ] && echo gpg || echo xz-utils)"; done
  [ -n "$to" ] || fail 'No folder is named for the repository' 'Give --to DIR.'
  mkdir -p "$to"
  exec 9<"$to"
  flock 9
  work=$(mktemp -d)
  trap 'rm -rf -- "$work"' EXIT
  # An interrupted publication leaves these.
  find "$to" -name '*.part' -type f -delete
  "$command"
}

publish() {
  local file known=''
  for file in "${suites[@]}"; do [ "$file" != "$suite" ] || known=yes; done
  [ -n "$known" ] || fail "There is no suite ${suite:-named}" "Give --suite ${suites[*]}"
  [ "${#files[@]}" -gt 0 ] || fail 'No package is named' 'See --help.'
  present_index "$suite"
  # All are looked at before the first is published.
  for file in "${files[@]}"; do read_package "$file" && refuse_other_content "$file"; done
  for file in "${files[@]}"; do
    read_package "$file"
    place "$file" "$to/$pool"
    for_architectures "$architecture" add_stanza "$file"
  done
  write_suite "$suite"
}

promote() {
  local arch
  present_index candidate
  for arch in "${architectures[@]}"; do
    [ -s "$work/$arch" ] || fail "The suite candidate has no package for $arch" 'Publish to it first.'
    # Records of stable that candidate has not stay: they are there for machines that are far behind.
    merge "$to/dists/stable/main/binary-$arch/Packages" "$work/$arch" >"$work/merged"
    mv -- "$work/merged" "$work/$arch"
  done
  write_suite stable
}

sign() {
  local signed=''
  for suite in "${suites[@]}"; do
    [ -f "$to/dists/$suite/InRelease" ] || continue
    sign_suite "$suite"
    signed=yes
  done
  [ -n "$signed" ] || fail "Nothing was published in $to" 'Publish first.'
}

# present_index SUITE: what is published, by architecture, in $work.
present_index() {
  local arch
  for arch in "${architectures[@]}"; do cat -- "$to/dists/$1/main/binary-$arch/Packages" 2>/dev/null >"$work/$arch" || true; done
}

# read_package FILE: sets package, version, architecture and pool, its place.
read_package() {
  local fields
  fields=$(dpkg-deb --show --showformat='${Package}\n${Version}\n${Architecture}\n' -- "$1") || fail "$1 is not a package" 'Build it with scripts/build-packages.sh.'
  { read -r package && read -r version && read -r architecture; } <<<"$fields"
  [[ " all ${architectures[*]} " == *" $architecture "* ]] || fail "$1 is for $architecture" "This repository is for ${architectures[*]}."
  # As in Debian's own: a file's name has no epoch.
  pool=pool/main/${package:0:1}/$package/${package}_${version#*:}_$architecture.deb
}

refuse_other_content() {
  [ ! -f "$to/$pool" ] || cmp -s -- "$1" "$to/$pool" || fail "$package $version was published with another content" \
    'Machines that have it would never get this one. Raise its version: that of bramble-runtime is in scripts/support/runtime.sh.'
}

# for_architectures ARCHITECTURE COMMAND…: for "all" once for each.
for_architectures() {
  local arch
  for arch in "${architectures[@]}"; do
    if [ "$1" = all ] || [ "$1" = "$arch" ]; then "${@:2}" "$arch"; fi
  done
}

# add_stanza FILE ARCHITECTURE
add_stanza() {
  {
    dpkg-deb --field "$1"
    printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "$pool" "$(stat -c %s -- "$1")" "$(sum_of "$1")"
  } >"$work/stanza"
  merge "$work/$2" "$work/stanza" >"$work/merged"
  mv -- "$work/merged" "$work/$2"
}

# merge PACKAGES PACKAGES: the records of both, sorted, each file once.
merge() {
  { cat -- "$@" 2>/dev/null || true; } | awk -v RS= '
    { match($0, /\nFilename: [^\n]*/); name = substr($0, RSTART + 11, RLENGTH - 11); record[name] = $0 }
    END { for (name in record) names = names name "\n"; count = split(names, list, "\n") - 1
      for (i = 1; i <= count; i++) for (j = i + 1; j <= count; j++) if (list[j] < list[i]) { swap = list[i]; list[i] = list[j]; list[j] = swap }
      for (i = 1; i <= count; i++) print record[list[i]] "\n" }'
}

write_suite() {
  local suite=$1 arch folder name hashes
  for arch in "${architectures[@]}"; do
    folder=$to/dists/$suite/main/binary-$arch
    hashes=$folder/by-hash/SHA256
    mkdir -p "$hashes"
    cp -- "$work/$arch" "$work/Packages"
    gzip -9 -n -c "$work/Packages" >"$work/Packages.gz"
    xz -9 -c "$work/Packages" >"$work/Packages.xz"
    for name in Packages Packages.gz Packages.xz; do place "$work/$name" "$hashes/$(sum_of "$work/$name")"; done
    for name in Packages Packages.gz Packages.xz; do place "$work/$name" "$folder/$name"; done
  done
  sign_suite "$suite"
}

sign_suite() {
  local suite=$1 folder=$to/dists/$1
  release "$suite" >"$work/Release"
  quiet_gpg --yes --digest-algo SHA512 "${keys[@]}" --output "$work/InRelease" --clear-sign "$work/Release" || fail "The suite $suite could not be signed" 'gpg --list-secret-keys shows the keys of GNUPGHOME.'
  place "$work/InRelease" "$folder/InRelease"
  find "$folder" -path '*/by-hash/*' -type f -mtime "+$keep_index_days" | while read -r index; do
    grep -qF "${index##*/}" "$work/Release" || rm -f -- "$index"
  done
  print "$folder/InRelease: $(grep -c '^Package: ' "$folder/main/binary-${architectures[0]}/Packages") packages for ${architectures[0]}, valid until $(sed -n 's/^Valid-Until: //p' "$work/Release")"
}

# release SUITE: apt-ftparchive would take the present time for it, whatever SOURCE_DATE_EPOCH is.
release() {
  local now=${SOURCE_DATE_EPOCH:-$(date +%s)} folder=$to/dists/$1 index
  cat <<TXT
Origin: Bramble
Label: Bramble
Suite: $1
Codename: $1
Date: $(in_words "$now")
Valid-Until: $(in_words $((now + valid_days * 86400)))
Acquire-By-Hash: yes
No-Support-for-Architecture-all: Packages
Architectures: ${architectures[*]}
Components: main
Description: Bramble, a node system of Kubernetes for small machines
SHA256:
TXT
  (cd "$folder" && find main -name 'Packages*' -path '*/binary-*/Packages*' | sort) | while read -r index; do
    printf ' %s %s %s\n' "$(sum_of "$folder/$index")" "$(stat -c %s -- "$folder/$index")" "$index"
  done
}

quiet_gpg() {
  local time=()
  [ -z "${SOURCE_DATE_EPOCH:-}" ] || time=(--faked-system-time "$SOURCE_DATE_EPOCH!")
  gpg --batch --quiet --no-greeting "${time[@]}" "$@"
}

in_words() { date --date="@$1" '+%a, %d %b %Y %H:%M:%S UTC'; }
sum_of() { sha256sum <"$1" | cut -d ' ' -f 1; }

# place FILE PATH: whole or not at all, and on the disk.
place() {
  ! cmp -s -- "$1" "$2" || return 0
  mkdir -p -- "${2%/*}"
  cp -- "$1" "$2.part"
  sync -- "$2.part"
  mv -- "$2.part" "$2"
}

make_keys() {
  local name home
  mkdir -p "$out"
  for name in present next; do
    [ ! -e "$out/$name.key" ] || fail "$out/$name.key is there already" 'Machines trust it: keep it, or name another folder.'
  done
  home=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "GNUPGHOME=$home gpgconf --kill all; rm -rf -- $home" EXIT
  for name in present next; do
    GNUPGHOME=$home quiet_gpg --passphrase '' --quick-generate-key "Bramble package repository ($name)" ed25519 sign never
    (umask 077 && GNUPGHOME=$home gpg --batch --armor --export-secret-keys "Bramble package repository ($name)" >"$out/$name.key")
  done
  GNUPGHOME=$home gpg --batch --export >"$out/keyring.pgp"
  print "$out/present.key signs; keep $out/next.key where no machine reaches it. $out/keyring.pgp is for everybody."
}

main
