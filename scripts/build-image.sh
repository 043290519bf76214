#!/usr/bin/env bash
# Makes the image of a card from packages of Debian and of the agent: see --help.
set -euo pipefail

usage() {
  cat <<'TXT'
Usage: scripts/build-image.sh [--out FILE] [--packages DIR] [--read-only] [--ssh-key FILE] [--hostname NAME] [--mirror URI] [--fresh] [--yes]

Makes an image of Debian 13 with Docker and the agent, for Raspberry Pi 3, 4, 400 and Zero 2 W with Ethernet and for 'qemu-system-aarch64 -M virt'.
Its machines join with bramble.yaml on the boot partition: 'bramble-controller card IMAGE --out CARD' writes one. At the first boot the
partitions grow to the size of the card. Needs root, 6 GB on the disk, half an hour the first time and two minutes later. No loop devices;
mmdebstrap mounts /proc and /sys in what it makes.

  --out FILE       image to write (dist/bramble-VERSION-arm64.img), compressed if the name ends in .xz
  --packages DIR   folder with bramble-agent and bramble-runtime for arm64; without it they are built
  --read-only      the root becomes read-only at the first boot, with a partition for data beside it, on cards of 16 GB or more
  --ssh-key FILE   public keys with which root can log in by SSH; without it there is no login
  --hostname NAME  (bramble)
  --mirror URI     of Debian (http://deb.debian.org/debian). One of snapshot.debian.org gives the same packages each time
  --fresh          do not use the Debian of an earlier image, which is kept for a week
  --yes            install what is missing without asking

SOURCE_DATE_EPOCH is the time of every file that the image changes: without it that of the last commit. From the same Debian and packages
the same bytes are made each time. A Debian made again differs in a seed of its initramfs (overlayroot), and without --mirror in what was updated meanwhile.
BRAMBLE_CACHE names the folder for what is kept, else it is $XDG_CACHE_HOME/bramble or ~/.cache/bramble.
TXT
}

out='' packages='' read_only='' ssh_key='' host_name=bramble mirror=http://deb.debian.org/debian fresh='' assume_yes=''
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$(realpath -m -- "${2:?'--out: where?'}") && shift 2 ;;
    --packages) packages=$(realpath -e -- "${2:?'--packages: which folder?'}") && shift 2 ;;
    --read-only) read_only=yes && shift ;;
    --ssh-key) ssh_key=$(realpath -e -- "${2:?'--ssh-key: which file?'}") && shift 2 ;;
    --hostname) host_name=${2:?'--hostname: which?'} && shift 2 ;;
    --mirror) mirror=${2:?'--mirror: which?'} && shift 2 ;;
    --fresh) fresh=yes && shift ;;
    --yes) assume_yes=yes && shift ;;
    --help) usage && exit 0 ;;
    *) echo "build-image.sh: unknown argument $1; see --help" >&2 && exit 64 ;;
  esac
done
export LC_ALL=C TZ=UTC
umask 022

cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
repository=$PWD
# shellcheck source=scripts/support/tools.sh
. scripts/support/tools.sh
# shellcheck source=scripts/support/foreign-programs.sh
. scripts/support/foreign-programs.sh
# shellcheck source=scripts/support/image-root.sh
. scripts/support/image-root.sh

cache=${BRAMBLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bramble}
version=$(sed -n "s/^export const version = '\(.*\)'/\1/p" daemon/process/version.ts)
# The same on every card, as on those of Raspberry Pi OS before their first boot.
disk_id=b2a3b1e5 root_uuid=7e6cbb1a-92c4-4f0a-9e5d-5f3c0b2a3b1e boot_id=B2A3B1E4
# In MiB. The root has room for its first boot, before it grows.
boot_start=8 boot_size=512 root_size=2560

main() {
  check_arguments
  install_log=$PWD/dist/build-image.log
  : >"$install_log"
  out=${out:-$PWD/dist/bramble-$version-arm64.img}
  mkdir -p "$cache" "${out%/*}"
  work=$(mktemp -d /var/tmp/bramble-image.XXXXXX)
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  step 'What is needed'
  install_needed
  choose_time
  [ "$(dpkg --print-architecture)" = arm64 ] || run_foreign_programs
  step 'Debian'
  image_root
  step "Bramble $version"
  find_packages
  root=$work/root
  quietly 'Copying the Debian' "$install_log" cp --archive --reflink=auto "$debian/root" "$root"
  quietly 'Installing the agent' "$install_log" install_agent "${files[@]}" ||
    fail 'The agent could not be installed' 'The cause is in the log of dpkg.' "$install_log"
  configure_image
  step 'Image'
  write_image
  finish
}

check_arguments() {
  [ "$(id -u)" = 0 ] || fail 'Only root can make files of all owners' 'Run this as root.'
  [[ $host_name =~ ^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$ ]] || fail "$host_name is not a hostname" 'Use lower-case letters, digits and -.'
  [[ $mirror =~ ^https?://[^[:space:]]+$ ]] || fail "$mirror is not the address of a mirror" 'Give --mirror http://….'
  [ -z "$ssh_key" ] || grep -qE '^(ssh|ecdsa|sk)-' "$ssh_key" || fail "$ssh_key has no public key" 'Give the file that ends in .pub.'
  [ ! -e "$out" ] || [ -f "$out" ] || fail "$out is not a file" 'Write the image to a file, and that to the card.'
}

install_needed() {
  plan_node
  [ "$(dpkg --print-architecture)" = arm64 ] || want qemu-user-static 'to install packages for arm64'
  want mmdebstrap 'to make a Debian for arm64'
  want arch-test 'mmdebstrap asks it whether programs for arm64 run here'
  want e2fsprogs 'the root partition'
  want dosfstools 'the boot partition'
  want mtools 'to put files on it'
  want fdisk 'the partitions'
  [[ $out != *.xz ]] || want xz-utils 'to compress the image'
  [ -n "$packages" ] || want git 'the time of the last commit'
  [ "${#missing_packages[@]}" = 0 ] || refresh_package_lists
  install_missing
  ensure_node
  ensure_modules run
}

choose_time() {
  : "${SOURCE_DATE_EPOCH:=$(git -c safe.directory="$repository" log -1 --format=%ct 2>/dev/null)}"
  [[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] || fail 'The time of the sources is not known: this is not a git clone' 'Set SOURCE_DATE_EPOCH to the seconds since 1970.'
  export SOURCE_DATE_EPOCH
}

# find_packages: sets $files.
find_packages() {
  local name found
  if [ -z "$packages" ]; then
    packages=$work/packages
    quietly 'Building the packages' "$install_log" scripts/build-packages.sh --arch arm64 --yes --out "$packages" bramble-runtime bramble-agent ||
      fail 'The packages could not be built' 'The cause is in the log.' "$install_log"
  fi
  files=()
  for name in bramble-runtime bramble-agent; do
    mapfile -t found < <(find "$packages" -maxdepth 1 -name "${name}_*_arm64.deb" | sort)
    [ "${#found[@]}" = 1 ] || fail "$packages has ${#found[@]} packages $name for arm64" 'There must be one: scripts/build-packages.sh --arch arm64 makes it.'
    files+=("${found[0]}")
    print "    ${found[0]##*/}"
  done
}

write_image() {
  local root_start=$((boot_start + boot_size)) fat=$work/fat image=$work/image
  mv -- "$root/boot/firmware" "$fat"
  mkdir "$root/boot/firmware"
  check_boot_files "$fat"
  printf 'Debian 13 (trixie) with Bramble %s\nMade by build-image.sh of Bramble\n' "$version" >"$fat/issue.txt"
  if [ -n "$read_only" ]; then mkdir "$fat/bramble" && printf 'read-only\n' >"$fat/bramble/storage"; fi
  same_times "$root" "$fat"
  truncate -s "$((root_start + root_size))M" "$image"
  printf 'label: dos\nlabel-id: 0x%s\nstart=%sMiB, size=%sMiB, type=c\nstart=%sMiB, size=%sMiB, type=83\n' \
    "$disk_id" "$boot_start" "$boot_size" "$root_start" "$root_size" | sfdisk "$image" >>"$install_log" 2>&1 ||
    fail 'The partitions cannot be made' 'The cause is in the log of sfdisk.' "$install_log"
  # mke2fs of Debian 12 takes its time from the second variable.
  quietly 'Writing the root partition' "$install_log" env E2FSPROGS_FAKE_TIME="$SOURCE_DATE_EPOCH" \
    mke2fs -q -t ext4 -L bramble-root -m 1 -U "$root_uuid" -E "offset=$((root_start << 20)),hash_seed=$root_uuid" -d "$root" "$image" "${root_size}M" ||
    fail "The root partition cannot be written" "It has $root_size MiB, and $(du -sm "$root" | cut -f 1) MiB are to be written." "$install_log"
  quietly 'Setting the times of its files' "$install_log" same_changes "$image?offset=$((root_start << 20))"
  quietly 'Writing the boot partition' "$install_log" write_fat "$fat" "$work/boot" ||
    fail 'The boot partition cannot be written' 'The cause is in the log of mkfs.vfat or mcopy.' "$install_log"
  dd if="$work/boot" of="$image" bs=1M seek="$boot_start" conv=notrunc,sparse status=none
}

# What the firmware of a Raspberry Pi and qemu start from.
check_boot_files() {
  local name
  for name in bootcode.bin start.elf start4.elf config.txt cmdline.txt 'vmlinuz-*' 'initrd.img-*' 'bcm2711-rpi-4-b.dtb'; do
    compgen -G "$1/$name" >/dev/null || fail "The Debian has no $name for the boot partition" 'Run this again with --fresh. If that does not help, its packages have changed.'
  done
}

# same_times FOLDER…: no file is younger than the sources, and all were read at that time.
same_times() {
  find "$@" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  find "$@" -depth -exec touch -a --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# same_changes FILE-SYSTEM: the times at which files were changed are those of the copy, and no program sets them on a disk that is in use. The inodes
# of a new file system are in use from the first one on, in one piece.
same_changes() {
  local used inode
  used=$(dumpe2fs -h "$1" 2>/dev/null | awk '/^Inode count:/ { all = $3 } /^Free inodes:/ { print all - $3 }')
  {
    printf 'set_current_time @%s\n' "$SOURCE_DATE_EPOCH"
    for ((inode = 2; inode <= used; inode++)); do printf 'set_inode_field <%s> ctime @%s\n' "$inode" "$SOURCE_DATE_EPOCH"; done
  } | debugfs -w -f - "$1" >/dev/null
}

# write_fat FOLDER FILE: its folders and files in the order of their names.
write_fat() {
  local folder=$1 file=$2 inside names
  truncate -s "${boot_size}M" "$file"
  mkfs.vfat --invariant -i "$boot_id" -F 32 -s 1 -n BRAMBLE "$file" || return
  while read -r inside; do
    [ -z "$inside" ] || mmd -i "$file" "::$inside" || return
    mapfile -t names < <(find "$folder/$inside" -maxdepth 1 -type f | sort)
    [ "${#names[@]}" = 0 ] || mcopy -m -i "$file" "${names[@]}" "::$inside" || return
  done < <(find "$folder" -type d -printf '%P\n' | sort)
}

finish() {
  e2fsck -fn "$work/image?offset=$(((boot_start + boot_size) << 20))" >>"$install_log" 2>&1 || fail 'The root partition is damaged' 'The cause is in the log of e2fsck.' "$install_log"
  fsck.vfat -n "$work/boot" >>"$install_log" 2>&1 || fail 'The boot partition is damaged' 'The cause is in the log of fsck.vfat.' "$install_log"
  if [[ $out = *.xz ]]; then
    # Blocks of one size: the bytes do not depend on the number of processors.
    quietly 'Compressing' "$install_log" xz --threads=2 --block-size=64MiB "$work/image"
    mv -- "$work/image.xz" "$out"
  else
    cp --sparse=always -- "$work/image" "$out.part"
    mv -- "$out.part" "$out"
  fi
  print "$out: $(du -h -- "$out" | cut -f 1), sha256 $(sha256sum -- "$out" | cut -d ' ' -f 1)"
  print "To make a card of it: bramble-controller card $out --out card.img"
}

clean_up() {
  forget_foreign_programs
  rm -rf --one-file-system -- "${work:?}"
}

main
