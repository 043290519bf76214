/**
 * The script of a machine that grows its partitions at the first boot and, if wanted, makes its root read-only. Its text is POSIX shell.
 * Cards of Raspberry Pi OS bring it if they are to be read-only; images of scripts/build-image.sh always have it.
 */

/** What `bramble/storage` on the boot partition holds if the root is to be read-only. */
export const readOnlyWish = 'read-only'

/** `BRAMBLE_CARD_ROOT` is the root directory, for tests. */
export const storageScript = `#!/bin/sh
# bramble-storage: the partitions of this machine, and its read-only root. Written for cards and images of Bramble.
set -u
export LC_ALL=C
root=\${BRAMBLE_CARD_ROOT:-}
firmware=$root/boot/firmware
blocks=$root/sys/class/block
settings=$root/etc/bramble
units=$root/etc/systemd/system
output=$root/run/bramble-storage.log

# What outlives a restart of a read-only root: folders of /var/lib, on a partition of their own.
data=/var/lib/bramble-data
kept='bramble containerd docker systemd'

# In sectors of 512 bytes: a MiB, the size of a root that is read-only, and the least size of the partition for data.
mib=2048
root_size=$((6144 * mib))
data_least=$((2048 * mib))
# The end of a partition in an MBR is a number of 32 bits.
mbr_end=4294967295

usage() {
  cat <<'TXT'
Usage: bramble-storage grow | enable | status | writable | read-only

  grow       at the first boot: grow the root partition, or make a partition for data beside it if the card asks for a read-only root
  enable     make the root read-only from the next start on
  status     print whether the root is read-only, now and after the next start
  writable   start with a writable root from the next start on, to update packages
  read-only  end that
TXT
}

fail() {
  printf 'bramble-storage: %s. %s\\n' "$1" "$2" >&2
  exit 1
}

# logged WHAT COMMAND...: ends the script with the command's own words if it fails.
logged() {
  what=$1
  shift
  "$@" >"$output" 2>&1 || fail "$what failed: $(tail -n 1 "$output")" 'It is tried again at the next boot.'
}

# replace FILE: by the standard input, which must not be empty.
replace() {
  cat >"$1.bramble" && [ -s "$1.bramble" ] && sync && mv -f "$1.bramble" "$1" && sync
}

# write FILE TEXT
write() {
  if mkdir -p "\${1%/*}" && printf '%s\\n' "$2" | replace "$1"; then return; fi
  fail "$1 cannot be written" 'The card may be damaged.'
}

grow() {
  [ ! -e "$settings/storage" ] || return 0
  mkdir -p "$root/run"
  locate
  if [ -e "$settings/storage.begun" ] || { wants_read_only && can_split; }; then
    split
    write "$settings/storage" data
  else
    grow_root
    write "$settings/storage" root
  fi
  rm -f "$settings/storage.begun"
}

wants_read_only() { [ "$(cat "$firmware/bramble/storage" 2>/dev/null)" = ${readOnlyWish} ]; }

locate() {
  device=$(findmnt --noheadings --output SOURCE "\${root:-/}")
  part=\${device##*/}
  [ "$(cat "$blocks/$part/partition" 2>/dev/null)" = 2 ] || fail "The root is $device, which is not the second partition of a card" 'Its size stays as it is.'
  disk=$(readlink "$blocks/$part")
  disk=\${disk%/*}
  disk=\${disk##*/}
  data_part=\${part%2}3
  read -r start <"$blocks/$part/start"
  read -r size <"$blocks/$part/size"
  read -r end <"$blocks/$disk/size"
  [ "$end" -le "$mbr_end" ] || end=$mbr_end
  end=$((end / mib * mib))
  data_start=$(((start + root_size + mib - 1) / mib * mib))
}

# can_split: is there room for both? If not, the root stays writable.
can_split() {
  reason=''
  if [ -e "$blocks/$data_part" ]; then
    reason='there is a third partition, which is not from here'
  elif [ "$((start + size))" -gt "$data_start" ]; then
    reason='the root partition is larger than a read-only one'
  elif [ "$((data_start + data_least))" -gt "$end" ]; then
    reason="the card has $((end / mib)) MiB, and $(((data_start + data_least) / mib)) MiB are needed"
  fi
  [ -z "$reason" ] || echo "bramble-storage: The root cannot be read-only: $reason. It stays writable."
  [ -z "$reason" ]
}

grow_root() {
  if [ ! -e "$blocks/$data_part" ] && [ "$((end - start))" -gt "$size" ]; then change_table "$((end - start))"; fi
  logged 'Growing the root' resize2fs "$device"
}

# The file comes first: after a power cut a third partition is known to be from here.
split() {
  [ -e "$settings/storage.begun" ] || write "$settings/storage.begun" "$data_start"
  [ -e "$blocks/$data_part" ] || change_table "$((data_start - start))" "$data_start" "$((end - data_start))"
  logged 'Growing the root' resize2fs "$device"
  # Nothing uses it before it is in /etc/fstab.
  if ! grep -qF "$data" "$root/etc/fstab"; then fill_data; fi
  settle_services
  # Where it is not installed yet, enable comes later.
  ! has_overlayroot || put_overlay
}

# change_table ROOT_SIZE [DATA_START DATA_SIZE]: one write of one sector.
change_table() {
  sfdisk --dump "/dev/$disk" >"$output.table" 2>"$output" || fail "The partitions cannot be read: $(tail -n 1 "$output")" 'It is tried again at the next boot.'
  awk -v device="$device" -v size="$1" -v data="/dev/$data_part" -v added="\${2:+/dev/$data_part : start=$2, size=\${3:-}, type=83}" '
    $1 == device { sub(/size= *[0-9]+/, "size=" size) }
    $1 != data { print }
    END { if (added != "") print added }
  ' "$output.table" >"$output.wanted"
  logged 'Changing the partitions' sfdisk --quiet --force --no-reread "/dev/$disk" <"$output.wanted"
  logged 'Reading the partitions' partx --update "/dev/$disk"
}

fill_data() {
  logged 'Making the file system for data' mkfs.ext4 -q -F -L bramble-data -m 1 "/dev/$data_part"
  uuid=$(blkid --match-tag UUID --output value "/dev/$data_part") || fail 'The file system for data has no UUID' 'It is tried again at the next boot.'
  mkdir -p "$root$data"
  logged 'Mounting the file system for data' mount "/dev/$data_part" "$root$data"
  for name in $kept; do
    mkdir -p "$root$data/$name" "$root/var/lib/$name"
    logged "Copying /var/lib/$name" cp --archive "$root/var/lib/$name/." "$root$data/$name/"
  done
  logged 'Unmounting the file system for data' umount "$root$data"
  {
    cat "$root/etc/fstab"
    # nofail: a machine whose data is damaged can still be reached. What needs the data is not started then: see settle_services.
    echo "UUID=$uuid $data ext4 defaults,noatime,nofail,x-systemd.device-timeout=2min 0 2"
    for name in $kept; do echo "$data/$name /var/lib/$name none bind,nofail 0 0"; done
  } | replace "$root/etc/fstab" || fail '/etc/fstab cannot be written' 'The card may be damaged.'
  chmod 644 "$root/etc/fstab"
}

# Docker without its folder would fill the memory, and an agent without its identity would have left the fleet.
settle_services() {
  for pair in containerd:containerd docker:docker bramble-agent:bramble bramble-controller:bramble bramble-first-boot:bramble; do
    write "$units/\${pair%:*}.service.d/60-bramble-storage.conf" "[Unit]
RequiresMountsFor=/var/lib/\${pair#*:}"
  done
  # Files that change all the time are in memory: the log, and no swap on the card (Raspberry Pi OS of Debian 13, and of Debian 12).
  write "$root/etc/systemd/journald.conf.d/60-bramble-storage.conf" '[Journal]
Storage=volatile
RuntimeMaxUse=32M'
  write "$root/etc/rpi/swap.conf.d/60-bramble-storage.conf" '[Main]
Mechanism=zram'
  # Packages that they install would be gone after a restart, and the lists of packages are kept in memory.
  for unit in apt-daily.timer apt-daily-upgrade.timer dphys-swapfile.service; do ln -sf /dev/null "$units/$unit"; done
}

set_read_only() {
  [ "$(cat "$settings/storage" 2>/dev/null)" = data ] || fail 'This machine has no partition for data' 'A read-only root needs a card that was made with it.'
  has_overlayroot || fail 'The packages overlayroot and busybox are missing, or one of them' 'Install them: apt-get install overlayroot busybox'
  put_overlay
}

# Without the grep of busybox in the initramfs, overlayroot finds no driver, and the root stays writable.
has_overlayroot() { [ -e "$root/usr/share/initramfs-tools/scripts/init-bottom/overlayroot" ] && [ -e "$root/usr/bin/busybox" ]; }
put_overlay() { write "$root/etc/overlayroot.local.conf" 'overlayroot="tmpfs:recurse=0"'; }

is_read_only() { [ "$(findmnt --noheadings --output FSTYPE "\${root:-/}")" = overlay ]; }
is_enabled() { [ -e "$root/etc/overlayroot.local.conf" ]; }
is_suspended() { grep -qw 'overlayroot=disabled' "$firmware/cmdline.txt"; }

status() {
  if is_read_only; then
    echo "The root is read-only: what is written outside of $data and /boot/firmware is lost at a restart."
  else
    echo 'The root is writable.'
  fi
  if is_enabled && ! is_suspended; then echo 'It is read-only after the next start.'; else echo 'It is writable after the next start.'; fi
}

# set_suspended [WORD]: the word, or none, in cmdline.txt.
set_suspended() {
  is_enabled || fail 'The root of this machine is always writable' 'Nothing is to be done.'
  awk -v added="\${1:-}" '
    NR == 1 { line = ""; for (i = 1; i <= NF; i++) if ($i !~ /^overlayroot=/) line = line (line == "" ? "" : " ") $i; print line (added == "" ? "" : " " added) }
  ' "$firmware/cmdline.txt" | replace "$firmware/cmdline.txt" || fail "$firmware/cmdline.txt cannot be written" 'Mount the boot partition, and look for errors with dmesg.'
  status
}

case \${1:-} in
  grow) grow ;;
  enable) set_read_only ;;
  status) status ;;
  writable) set_suspended overlayroot=disabled ;;
  read-only) set_suspended ;;
  --help) usage ;;
  *)
    usage >&2
    exit 64
    ;;
esac
`
