# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by boot-arm64.sh: a Debian 12 for arm64 to boot from, made once. Needs machine.sh, and these: cache, install_log.

root_packages=systemd,systemd-sysv,dbus,libpam-systemd,udev,iproute2,iptables,nftables,docker.io,procps,kmod
root_packages+=,libstdc++6,busybox-static
# What must be loaded before the disk can be read.
disk_modules=(virtio_pci virtio_blk crc32c_generic ext4)

# arm64_root: sets $root (a folder) and beside it $kernel and $initramfs. A changed recipe makes a root of its own.
arm64_root() {
  local recipe folder
  recipe=$(sha256sum -- "${BASH_SOURCE[0]}" | cut -c 1-12)
  folder=$cache/arm64-$recipe
  exec 7>"$cache/arm64.lock"
  flock 7
  if [ ! -d "$folder" ]; then
    find "$cache" -maxdepth 1 -name 'arm64-*' -type d -mtime +7 -exec rm -rf --one-file-system {} +
    rm -rf --one-file-system "$folder.part"
    mkdir -p "$folder.part"
    quietly 'Making a Debian for arm64, emulated: two minutes or more' "$install_log" make_root "$folder.part/root" ||
      fail 'The Debian for arm64 could not be made' 'The cause is in the log of mmdebstrap.' "$install_log"
    unpack_kernel "$folder.part"
    configure_root "$folder.part/root"
    pack_initramfs "$folder.part"
    mv -- "$folder.part" "$folder"
  fi
  touch -- "$folder"
  root=$folder/root kernel=$folder/kernel initramfs=$folder/initramfs
}

make_root() {
  local source=/etc/apt/sources.list.d/debian.sources mirrors=()
  # This machine's own mirrors, where they have the release; else mmdebstrap's.
  if grep -qs '^Suites:.*bookworm' "$source"; then mirrors=("$source"); fi
  # The kernel is only unpacked: its installation would make an initramfs, which takes ten minutes under emulation.
  # shellcheck disable=SC2016
  mmdebstrap --mode=root --architectures=arm64 --variant=minbase --include="$root_packages" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --customize-hook='cd "$1" && image=$(chroot . apt-cache depends linux-image-arm64 | sed -n "s/.*Depends: //p") &&
      chroot . apt-get download "$image" && mv linux-image-*.deb ../kernel.deb' \
    bookworm "$1" "${mirrors[@]}"
}

unpack_kernel() {
  dpkg-deb --extract "$1/kernel.deb" "$1/unpacked"
  mv -- "$1"/unpacked/boot/vmlinuz-* "$1/kernel"
  mkdir -p "$1/root/lib/modules"
  mv -- "$1"/unpacked/lib/modules/* "$1/root/lib/modules/"
  depmod --basedir "$1/root" "$(ls "$1/root/lib/modules")"
  rm -rf -- "$1/unpacked" "$1/kernel.deb"
}

configure_root() {
  local root=$1 unit
  # A console without a user, and updates.
  for unit in serial-getty@ttyAMA0.service getty.target apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-networkd-wait-online.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
  done
  # As Raspberry Pi OS has it.
  printf '/dev/vda2 / ext4 defaults 0 1\n/dev/vda1 /boot/firmware vfat defaults 0 2\n' >"$root/etc/fstab"
  mkdir -p "$root/boot/firmware" "$root/etc/systemd/system/multi-user.target.wants"
  printf '[Match]\nName=e*\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/slirp.network"
  ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/"
  open_door "$root"
  rm -f "$root/etc/resolv.conf"
  : >"$root/etc/machine-id" # Empty: not a first boot that asks questions, and yet one of its own.
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
  printf 'arm64\n' >"$root/etc/hostname"
  printf '127.0.0.1 localhost arm64\n' >"$root/etc/hosts"
}

pack_initramfs() {
  local from=$1/root to=$1/early version module
  version=$(ls "$from/lib/modules")
  mkdir -p "$to/bin" "$to/modules" "$to/disk" "$to/proc" "$to/sys" "$to/dev"
  cp "$from/bin/busybox" "$to/bin/busybox"
  for module in "${disk_modules[@]}"; do
    modprobe --dirname "$from" --set-version "$version" --show-depends "$module" | sed -n 's/^insmod //p'
  done | awk '!seen[$1]++ { print $1 }' | while read -r module; do
    cp "$module" "$to/modules/"
    printf '/bin/busybox insmod /modules/%s\n' "${module##*/}"
  done >"$to/load"
  cat >"$to/init" <<'SCRIPT'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
. /load
until /bin/busybox mount -t ext4 /dev/vda2 /disk; do /bin/busybox sleep 0.1; done
exec /bin/busybox switch_root /disk /sbin/init
SCRIPT
  chmod 755 "$to/init"
  (cd "$to" && find . | cpio --quiet -o -H newc) | gzip -1 >"$1/initramfs"
  rm -rf -- "$to"
}
