#!/usr/bin/env bash
# Attacks a package repository, with the real apt of a Debian: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: test/machines/attack-repository.sh ROOT

In a copy-on-write layer over the Debian in the folder ROOT: makes repositories with scripts/repository.sh, falsifies them, and prints for each attack one
line, "NAME: what apt did". Installs, upgrades and removes with them, too. Changes nothing in ROOT. Needs root, gpg and busybox.
TXT
}

[ $# = 1 ] && [ "$1" != --help ] || { usage && exit 64; }
root=$(realpath -- "$1")
cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."

# In name spaces of its own: what is mounted ends with it, and port 80 is its own.
if [ "${ATTACK_SPACE:-}" != own ]; then
  work=$(mktemp -d /var/tmp/bramble-repository.XXXXXX)
  trap 'rm -rf --one-file-system -- "$work"' EXIT
  ATTACK_SPACE=own ATTACK_WORK=$work unshare --mount --net --propagation private -- "$0" "$root"
  exit
fi
work=$ATTACK_WORK
log=$work/log
export GNUPGHOME=$work/home
site=$work/debian/srv/site

main() {
  mkdir -p "$work/upper" "$work/overlay" "$work/debian"
  mkdir -m 700 "$GNUPGHOME"
  mount -t tmpfs tmpfs "$work/upper"
  mkdir "$work/upper/files" "$work/upper/work"
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/upper/files,workdir=$work/upper/work" "$work/debian"
  mount -t proc proc "$work/debian/proc"
  ip link set lo up
  mkdir -p "$site"
  busybox httpd -f -p 127.0.0.1:80 -h "$site" >>"$log" 2>&1 &
  server=$!
  trap 'gpgconf --kill all; kill "$server"' EXIT
  make_repositories
  point_apt
  attack
}

# Packages with nothing in them, as apt sees those of Bramble.
make_package() {
  local folder=$work/packages/$2
  mkdir -p "$folder/DEBIAN" "$folder/usr/share/bramble-try"
  printf '%s\n' "$2" >"$folder/usr/share/bramble-try/version"
  printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: Someone <someone@example.org>\nDescription: tried\n' "$1" "$2" >"$folder/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$folder" "$work/$1_$2_all.deb" >>"$log"
}

import() { gpg --batch --quiet --import "$1" 2>>"$log"; }
key_of() { gpg --batch --show-keys --with-colons "$1" | awk -F : '$1 == "fpr" { print $10; exit }'; }
publish() { scripts/repository.sh publish --suite stable "$@" >>"$log"; }

make_repositories() {
  local now week=$((7 * 86400))
  now=$(date +%s)
  for key in keys other; do SOURCE_DATE_EPOCH=$((now - 90 * 86400)) scripts/repository.sh keys --out "$work/$key" >>"$log" 2>&1; done
  for key in keys/present keys/next other/present; do import "$work/$key.key"; done
  present=$(key_of "$work/keys/present.key") next=$(key_of "$work/keys/next.key") other=$(key_of "$work/other/present.key")
  for version in 0.1.0 0.2.0; do make_package bramble-try "$version"; done
  SOURCE_DATE_EPOCH=$((now - week)) scripts/repository.sh publish --suite candidate --to "$site/old" --key "$present" "$work/bramble-try_0.1.0_all.deb" >>"$log"
  SOURCE_DATE_EPOCH=$((now - week)) scripts/repository.sh promote --to "$site/old" --key "$present" >>"$log"
  cp -a "$site/old" "$site/good"
  publish --to "$site/good" --key "$present" "$work/bramble-try_0.2.0_all.deb"
  local name
  for name in inrelease packages deb other-key unsigned; do cp -a "$site/good" "$site/$name"; done
  sed -i 's/^Origin: Bramble/Origin: Brumble/' "$site/inrelease/dists/stable/InRelease"
  find "$site/packages" -path '*binary-*' -type f -name '[P0-9a-f]*' -exec sh -c 'printf "\nPackage: x\n" >>"$1"' sh {} \;
  printf 'x' >>"$site/deb/pool/main/b/bramble-try/bramble-try_0.2.0_all.deb"
  scripts/repository.sh sign --to "$site/other-key" --key "$other" >>"$log"
  sed '1,/^$/d; /^-----BEGIN PGP SIGNATURE/,$d' "$site/good/dists/stable/InRelease" >"$site/unsigned/dists/stable/Release"
  rm "$site/unsigned/dists/stable/InRelease"
  cp -a "$site/old" "$site/expired"
  SOURCE_DATE_EPOCH=$((now - 31 * 86400)) scripts/repository.sh sign --to "$site/expired" --key "$present" >>"$log"
  # Ended before its last step: all but InRelease is of the later publication.
  cp -a "$site/good" "$site/interrupted"
  cp "$site/old/dists/stable/InRelease" "$site/interrupted/dists/stable/InRelease"
  cp -a "$site/good" "$site/next-key"
  scripts/repository.sh sign --to "$site/next-key" --key "$next" >>"$log"
}

point_apt() {
  local debian=$work/debian
  rm -f "$debian"/etc/apt/sources.list.d/* "$debian/etc/apt/sources.list"
  install -D -m 644 "$work/keys/keyring.pgp" "$debian/usr/share/keyrings/bramble-archive-keyring.pgp"
  printf 'Acquire::Languages "none";\nAPT::Sandbox::User "root";\nBinary::apt-get::APT::Get::Assume-Yes "true";\n' >"$debian/etc/apt/apt.conf.d/tried"
}

# turn_to NAME: the repository at apt's one address is that one.
turn_to() {
  rm -rf "$site/now"
  cp -a "$site/$1" "$site/now"
  # Later than what apt has, which would not fetch it again.
  touch "$site/now/dists/stable/"*Release
  sed 's|@URI@|http://127.0.0.1/now|' scripts/packages/bramble-archive-keyring/bramble.sources >"$work/debian/etc/apt/sources.list.d/bramble.sources"
}

forget() { rm -rf "$work/debian/var/lib/apt/lists"; mkdir -p "$work/debian/var/lib/apt/lists/partial"; }
in_debian() { chroot "$work/debian" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
update() { in_debian apt-get update "$@" >"$work/update" 2>&1 && ! grep -qE '^(W|E|Err)' "$work/update"; }
candidate() { in_debian apt-cache policy bramble-try 2>/dev/null | sed -n 's/^  Candidate: //p'; }
installed() { in_debian dpkg-query --show --showformat='${Version}' bramble-try 2>/dev/null || echo none; }

# outcome NAME [OPTION…]: what apt has after an update from it.
outcome() {
  local name=$1 was=accepted
  shift
  turn_to "$name"
  update "$@" || was=refused
  cat "$work/update" >>"$log"
  local has
  has=$(candidate)
  printf '%s%s, candidate %s' "$was" "$(reason)" "${has:-none}"
}

# Why apt refused it, in one word for both versions of apt and of what checks signatures.
reason() {
  local line word pattern
  line=$(grep -m 1 -E '^(E|W|Err)' "$work/update") || return 0
  line=$(grep -E '^(E|W|Err|  )' "$work/update" | tr '\n' ' ')
  while read -r word pattern; do
    if grep -qiE "$pattern" <<<"$line"; then printf ' (%s)' "$word" && return; fi
  done <<'TXT'
expired is expired|Release file .* expired
key NO_PUBKEY|Missing key
signature BADSIG|signatures were invalid|Message has been manipulated
unsigned is not signed|no longer signed|does not have a Release file
content unexpected size|Hash Sum mismatch
TXT
  printf ' (%s)' "$line"
}

report() { printf '%s: %s\n' "$1" "$2"; }

# What a publisher does by mistake.
publish_again() {
  local before
  before=$(cat "$site/good"/dists/stable/main/*/Packages)
  publish --to "$site/good" --key "$present" "$work/bramble-try_0.2.0_all.deb"
  report 'published twice' "$([ "$before" = "$(cat "$site/good"/dists/stable/main/*/Packages)" ] && echo the same)"
  mkdir "$work/changed"
  cp -a "$work/packages/0.2.0" "$work/changed/tree"
  printf 'other\n' >"$work/changed/tree/usr/share/bramble-try/version"
  dpkg-deb --root-owner-group --build "$work/changed/tree" "$work/changed/bramble-try_0.2.0_all.deb" >>"$log"
  publish --to "$site/good" --key "$present" "$work/changed/bramble-try_0.2.0_all.deb" 2>"$work/update" || true
  report 'published with another content' "$(sed -n 's/^FAILED: //p' "$work/update")"
}

attack() {
  publish_again
  forget
  report 'good' "$(outcome good)"
  report 'replayed, lists present' "$(outcome old)"
  forget
  report 'replayed, no lists' "$(outcome old)"
  local name
  for name in inrelease packages other-key unsigned expired; do
    forget
    report "$name" "$(outcome "$name")"
  done
  report 'expired, Check-Valid-Until=false' "$(outcome expired -o Acquire::Check-Valid-Until=false)"
  forget
  report 'interrupted' "$(outcome interrupted)"
  forget
  rm -r "$site/interrupted"/dists/stable/main/*/by-hash
  report 'interrupted, by-hash removed' "$(outcome interrupted)"
  forget
  report 'next-key' "$(outcome next-key)"
  forget
  outcome deb >/dev/null
  in_debian apt-get install bramble-try >>"$log" 2>&1 || true
  report 'deb' "installed $(installed)"
  forget
  outcome good >/dev/null
  in_debian apt-get install bramble-try >>"$log" 2>&1 || true
  report 'good, installed' "installed $(installed)"
  forget
  outcome old >/dev/null
  in_debian apt-get upgrade >>"$log" 2>&1 || true
  report 'replayed, upgraded' "installed $(installed)"
}

main
