#!/usr/bin/env bash
# Builds the Debian root that the test machines boot from: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: test/machines/build-root.sh [--folder DIR]

Makes a small Debian with systemd, D-Bus, logind and Docker, once, and prints the folder it is in. About 40 s and 500 MB;
a second call prints the folder at once. A caller waits while another one builds it. Needs root and mmdebstrap.

  --folder DIR   where roots are kept (BRAMBLE_CACHE, else $XDG_CACHE_HOME/bramble, else ~/.cache/bramble)

A changed recipe gets a folder of its own; one that was not used for a week is removed. BRAMBLE_TEST_RELEASE names another release
of Debian than bookworm.
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

release=${BRAMBLE_TEST_RELEASE:-bookworm}
packages=systemd,systemd-sysv,systemd-timesyncd,dbus,libpam-systemd,udev,iproute2,iputils-ping,nftables,iptables,docker.io
packages+=,ca-certificates,procps,kmod,openssl,libfaketime
[ "$release" = bookworm ] || packages+=,docker-cli # Debian 12 has the command in docker.io.

main() {
  command -v mmdebstrap >/dev/null || { echo 'build-root.sh: mmdebstrap is missing: apt-get install mmdebstrap' >&2 && exit 69; }
  [ "$(id -u)" = 0 ] || { echo 'build-root.sh: only root can build a root file system' >&2 && exit 77; }
  mkdir -p "$folder"
  local recipe root
  recipe=$(sha256sum -- "${BASH_SOURCE[0]}" | cut -c 1-12)
  root=$folder/machine-$release-$recipe
  exec 9>"$folder/machine.lock"
  flock 9
  if [ ! -d "$root" ]; then
    find "$folder" -maxdepth 1 -name 'machine-*' -type d -mtime +7 -exec rm -rf --one-file-system {} +
    rm -rf --one-file-system "$root.part"
    build "$root.part"
    mv -- "$root.part" "$root"
  fi
  touch -- "$root"
  printf '%s\n' "$root"
}

build() {
  local root=$1 source=/etc/apt/sources.list.d/debian.sources mirrors=()
  # This machine's own mirrors, where they have the release; else mmdebstrap's.
  if grep -qs "^Suites:.*$release" "$source"; then mirrors=("$source"); fi
  mmdebstrap --quiet --mode=root --variant=apt --include="$packages" --skip=cleanup/apt/lists \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/bramble*' \
    "$release" "$root" "${mirrors[@]}" >&2
  fetch_packages "$root"
  configure "$root"
}

# What documents have an operator install. A machine reaches no mirror: this folder is one, of these packages and those that they need.
fetch_packages() (
  root=$1 folder=/var/local/debian
  mkdir -p "$root$folder/partial"
  chroot "$root" apt-get install --quiet --yes --download-only --option "Dir::Cache::archives=$folder" --option APT::Sandbox::User=root \
    docker-registry apache2-utils >&2
  cd "$root$folder"
  rm -rf partial lock
  for file in *.deb; do
    dpkg-deb --field "$file"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat --format %s "$file")" "$(sha256sum <"$file" | cut -d ' ' -f 1)"
  done >Packages
)

configure() {
  local root=$1 unit
  # An unused console, updates, and what belongs to real hardware.
  for unit in console-getty.service getty.target apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-timesyncd.service systemd-udevd.service \
    systemd-udev-trigger.service systemd-udevd-kernel.socket systemd-udevd-control.socket \
    nftables.service sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
  done
  cat >"$root/etc/systemd/system/machine-kernel-files.service" <<'UNIT'
[Unit]
Description=What this machine shows of its kernel: control groups that can be written, and its board's serial number
DefaultDependencies=no
Before=sysinit.target
ConditionPathIsMountPoint=/sys/fs/cgroup

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/machine-kernel-files

[Install]
WantedBy=sysinit.target
UNIT
  cat >"$root/usr/local/sbin/machine-kernel-files" <<'SCRIPT'
#!/bin/sh
# Under control groups v1 a container's are read-only, and dockerd could not make any.
for folder in /sys/fs/cgroup/*/; do
  mountpoint -q "$folder" || continue
  mount -o remount,bind,rw,nosuid,nodev,noexec "$folder" || true
done
# As on a Raspberry Pi.
if [ -f /etc/machine-serial ]; then
  { cat /proc/cpuinfo; printf 'Serial\t\t: %s\n' "$(cat /etc/machine-serial)"; } >/run/cpuinfo
  mount --bind /run/cpuinfo /proc/cpuinfo
fi
exit 0
SCRIPT
  chmod 755 "$root/usr/local/sbin/machine-kernel-files"
  mkdir -p "$root/etc/systemd/system/sysinit.target.wants" "$root/boot/firmware"
  ln -sf ../machine-kernel-files.service "$root/etc/systemd/system/sysinit.target.wants/"
  rm -f "$root/etc/machine-id" "$root/etc/hostname" "$root/etc/resolv.conf"
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
  printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
}

main
