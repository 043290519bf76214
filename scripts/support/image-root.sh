# shellcheck shell=bash disable=SC2154
# Sourced by build-image.sh: a Debian 13 for 64-bit boards, from packages of Debian, and its settings. Needs tools.sh, and these: cache, root,
# disk_id, mirror, fresh, host_name, ssh_key.

image_packages=systemd,systemd-sysv,systemd-resolved,systemd-timesyncd,systemd-zram-generator,dbus,libpam-systemd,udev,kmod,procps
image_packages+=,ca-certificates,iproute2,iptables,nftables,conntrack,wireguard-tools,docker.io,docker-cli,openssh-server
# The first boot makes partitions and file systems, and the initramfs puts the overlay above a read-only root; overlayroot needs grep there, of busybox.
image_packages+=,fdisk,e2fsprogs,dosfstools,initramfs-tools,busybox,zstd,overlayroot,linux-image-arm64,raspi-firmware

# image_root: sets $debian, the folder with what is of Debian. It is kept for a week, and a changed recipe makes another one.
image_root() {
  local recipe
  recipe=$({ cat -- "${BASH_SOURCE[0]}" && printf '%s' "$mirror"; } | sha256sum | cut -c 1-12)
  debian=$cache/image-$recipe
  exec 7>"$cache/image.lock"
  flock 7
  find "$cache" -maxdepth 1 -name 'image-*' -type d -mtime +7 -exec rm -rf --one-file-system {} +
  [ -z "$fresh" ] || rm -rf --one-file-system "$debian"
  if [ -d "$debian" ]; then
    print "    The Debian of $(date --reference="$debian" '+%Y-%m-%d %H:%M') is used again; --fresh makes a new one"
    return
  fi
  rm -rf --one-file-system "$debian.part"
  mkdir "$debian.part"
  quietly 'Making a Debian for arm64: half an hour where it is emulated' "$install_log" make_debian "$debian.part/root" ||
    fail 'The Debian for arm64 could not be made' 'The cause is in the log of mmdebstrap.' "$install_log"
  mv -- "$debian.part" "$debian"
  touch -- "$debian"
}

make_debian() {
  local security=${mirror%/}-security components='main non-free-firmware' valid=true
  # snapshot.debian.org has the time behind the name, and lists that are not valid any more.
  case $mirror in */debian/?*) security=${mirror/\/debian\//\/debian-security\/} valid=false ;; esac
  # confold: an upgrade keeps the settings that are changed here, and asks nothing.
  mmdebstrap --mode=root --architectures=arm64 --variant=minbase --include="$image_packages" --aptopt="Acquire::Check-Valid-Until \"$valid\"" \
    --dpkgopt=force-confold --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-include=/usr/share/doc/bramble*' \
    trixie "$1" "deb $mirror trixie $components" "deb $mirror trixie-updates $components" "deb $security trixie-security $components"
}

# install_agent FILE…: our packages, in $root, one after the other: the agent needs its runtime configured before it is unpacked.
install_agent() {
  local file
  for file in "$@"; do
    cp -- "$file" "$root/var/tmp/package.deb" || return
    chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg --install /var/tmp/package.deb || return
  done
  rm -f -- "$root/var/tmp/package.deb"
  # A link leads out of $root.
  [ -x "$root/usr/lib/bramble-agent/bramble-agent" ] && [ -L "$root/etc/systemd/system/multi-user.target.wants/bramble-first-boot.service" ]
}

configure_image() {
  configure_boot
  configure_apt
  configure_network
  configure_units
  configure_access
  remove_traces
}

# put FILE [MODE]: the standard input, in $root.
put() {
  mkdir -p "$root${1%/*}"
  rm -f -- "$root$1"
  cat >"$root$1"
  chmod "${2:-644}" "$root$1"
}

configure_boot() {
  # A boot partition that is damaged or late must not end in an emergency shell, which waits for a keyboard. It holds the token: for root only.
  put /etc/fstab <<TXT
PARTUUID=$disk_id-02 / ext4 defaults,noatime 0 1
PARTUUID=$disk_id-01 /boot/firmware vfat defaults,umask=0077,nofail,x-systemd.device-timeout=5min 0 2
TXT
  # Both serial lines: of Raspberry Pi 3 and 4, and of -M virt. The kernel leaves out those that are not there; the last one gets the messages of systemd.
  local words="root=PARTUUID=$disk_id-02 rw fsck.repair=yes net.ifnames=0" consoles='ttyAMA0,115200 ttyS1,115200 tty0' console line=''
  for console in $consoles; do line+="console=$console "; done
  # As the package raspi-firmware writes it, again with each kernel. CMA=0: Raspberry Pi 4 does not start with the size for 3.
  printf '%s%s  rootwait \n' "$line" "$words" | put /boot/firmware/cmdline.txt
  printf '\nROOTPART=PARTUUID=%s-02\nCONSOLES="%s"\nCMA=0\n' "$disk_id" "$consoles" >>"$root/etc/default/raspi-firmware"
  printf '[Manager]\nRuntimeWatchdogSec=15s\n' | put /etc/systemd/system.conf.d/60-bramble-image.conf
  printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=32M\n' | put /etc/systemd/journald.conf.d/60-bramble-image.conf
  printf '[zram0]\nzram-size = min(ram / 2, 1024)\n' | put /etc/systemd/zram-generator.conf
}

# Updates come from Debian's own servers.
configure_apt() {
  rm -f "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/etc/apt/sources.list.d/*
  put /etc/apt/sources.list <<'TXT'
deb http://deb.debian.org/debian trixie main non-free-firmware
deb http://deb.debian.org/debian trixie-updates main non-free-firmware
deb http://deb.debian.org/debian-security trixie-security main non-free-firmware
TXT
}

configure_network() {
  printf '%s\n' "$host_name" | put /etc/hostname
  printf '127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost ip6-loopback\n' "$host_name" | put /etc/hosts
  printf '[Match]\nName=eth*\n[Network]\nDHCP=yes\n' | put /etc/systemd/network/80-ethernet.network
  ln -sf ../run/systemd/resolve/resolv.conf "$root/etc/resolv.conf"
}

configure_units() {
  local wants=$root/etc/systemd/system/multi-user.target.wants
  mkdir -p "$wants"
  ln -sf /usr/lib/systemd/system/systemd-networkd.service "$wants/"
  # Docker waits for network-online.target: pods start without a network, too.
  ln -sf /dev/null "$root/etc/systemd/system/systemd-networkd-wait-online.service"
  storage_script | put /usr/local/sbin/bramble-storage 755
  put /etc/systemd/system/bramble-storage.service <<'UNIT'
[Unit]
Description=Makes the partitions of this card as large as it is
ConditionPathExists=!/etc/bramble/storage
Wants=boot-firmware.mount
After=boot-firmware.mount systemd-machine-id-commit.service
Before=containerd.service docker.socket docker.service bramble-agent.service bramble-first-boot.service ssh.service ssh.socket

[Service]
Type=oneshot
ExecStartPre=-/usr/bin/ssh-keygen -A
ExecStart=/usr/local/sbin/bramble-storage grow
# A read-only root begins with a restart.
ExecStartPost=-/bin/sh -c '[ ! -e /etc/overlayroot.local.conf ] || systemctl --no-block reboot'
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
UNIT
  ln -sf ../bramble-storage.service "$wants/"
}

# storage_script: the text that cards of Raspberry Pi OS have, too.
storage_script() {
  node_modules/.bin/esbuild broker-controller/cards/storage-script.ts --bundle --format=esm --log-level=warning --outfile="$work/storage.mjs"
  node -e 'import(process.argv[1]).then(({ storageScript }) => process.stdout.write(storageScript))' "$work/storage.mjs"
}

# Without a key there is no login.
configure_access() {
  if [ -z "$ssh_key" ]; then
    ln -sf /dev/null "$root/etc/systemd/system/ssh.service"
    ln -sf /dev/null "$root/etc/systemd/system/ssh.socket"
  else
    mkdir -p "$root/root/.ssh"
    chmod 700 "$root/root/.ssh"
    put /root/.ssh/authorized_keys 600 <"$ssh_key"
  fi
}

# What belongs to one machine, or to the time of the build.
remove_traces() {
  : >"$root/etc/machine-id" # Empty: not a first boot that asks questions, and yet one of its own.
  rm -f "$root"/var/lib/dbus/machine-id "$root"/etc/ssh/ssh_host_* "$root"/var/lib/systemd/random-seed "$root"/var/cache/ldconfig/aux-cache
  rm -f "$root"/var/lib/dpkg/*-old "$root"/var/cache/debconf/*-old "$root"/var/cache/apt/*.bin
  rm -rf "$root"/var/lib/apt/lists/* "$root"/tmp/* "$root"/var/tmp/* "$root"/run/*
  find "$root/var/log" -type f -delete
}
