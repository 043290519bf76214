/** The script of a card, which installs the packages of a machine that starts for the first time. Its text is POSIX shell. */
import { bootStatusFileName } from '../../api/node/boot-status.ts'
import { firstBootPath, firstBootWords } from './kernel-command-line.ts'

/** `BRAMBLE_CARD_ROOT` is the root directory, for tests. */
export const firstBootScript = `#!/bin/sh
# Makes this machine a node of a Bramble fleet. Written by 'bramble-controller card'.
# At the first boot systemd.run in cmdline.txt starts it: it puts itself into the system, and the machine restarts. From then on
# bramble-card.service starts it with the word install, until the packages are installed. What stops it is in ${bootStatusFileName}.
set -u
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
root=\${BRAMBLE_CARD_ROOT:-}
firmware=$root/boot/firmware
card=$firmware/bramble
library=$root/usr/local/lib/bramble-card
storage=$root/usr/local/sbin/bramble-storage
units=$root/etc/systemd/system
output=$root/run/bramble-card.log

# report TEXT REMEDY: on the console and, if it is another text than the last, on the boot partition.
report() {
  printf 'bramble: %s\\n' "$1\${2:+. }\${2:-}"
  text=$(printf '%s\\n' "$@")
  [ "$text" != "$(sed 1d "$firmware/${bootStatusFileName}" 2>/dev/null)" ] || return 0
  {
    printf 'Bramble, %s by the clock of this machine:\\n%s\\n' "$(date -u '+%Y-%m-%d %H:%M UTC')" "$text" >"$firmware/${bootStatusFileName}"
    sync
  } 2>/dev/null
  return 0
}

# replace FILE: by the standard input, which must not be empty.
replace() {
  cat >"$1.bramble" && [ -s "$1.bramble" ] && sync && mv -f "$1.bramble" "$1" && sync
}

prepare() {
  if ! remove_words; then
    # The words would start this script at each boot.
    report 'The boot partition cannot be written' 'Write the card again. If that does not help, use another card.'
    systemctl --no-block start multi-user.target
    exit 1
  fi
  if put_into_system; then
    # A root that cannot grow, or be read-only, is still one that runs pods.
    [ ! -x "$storage" ] || "$storage" grow || true
    report 'Prepared. The machine restarts, then installs the packages.'
  else
    report 'The root partition cannot be written' 'Write the card again. If that does not help, use another card.'
  fi
}

put_into_system() {
  mkdir -p "$library" "$units/multi-user.target.wants" "$root/etc/systemd/system.conf.d" &&
    replace "$library/first-boot.sh" <"$card/first-boot.sh" &&
    chmod 755 "$library/first-boot.sh" &&
    put_storage &&
    unit | replace "$units/bramble-card.service" &&
    ln -sf ../bramble-card.service "$units/multi-user.target.wants/bramble-card.service" &&
    # The hardware of a Raspberry Pi restarts a machine that hangs; its longest time is 15 s.
    printf '[Manager]\\nRuntimeWatchdogSec=15s\\n' | replace "$root/etc/systemd/system.conf.d/60-bramble-card.conf" &&
    # A boot partition that is damaged or late must not end in an emergency shell, which waits for a keyboard.
    awk '$1 !~ /^#/ && $2 == "/boot/firmware" && $4 !~ /nofail/ { $4 = $4 ",nofail,x-systemd.device-timeout=5min" } 1' "$root/etc/fstab" | replace "$root/etc/fstab" &&
    chmod 644 "$root/etc/fstab"
}

# On a card whose root is to be read-only.
put_storage() {
  [ -e "$card/storage.sh" ] || return 0
  mkdir -p "\${storage%/*}" && replace "$storage" <"$card/storage.sh" && chmod 755 "$storage"
}

remove_words() {
  grep -qF ${firstBootPath} "$firmware/cmdline.txt" || return 0
  awk -v words='${firstBootWords.join(' ')}' '
    BEGIN { count = split(words, list); for (i = 1; i <= count; i++) ours[list[i]] = 1 }
    { line = ""; for (i = 1; i <= NF; i++) if (!($i in ours)) line = line (line == "" ? "" : " ") $i; print line }
  ' "$firmware/cmdline.txt" | replace "$firmware/cmdline.txt"
}

unit() {
  cat <<'UNIT'
[Unit]
Description=Installs the packages that the card of this machine brought
Wants=network-online.target
After=network-online.target boot-firmware.mount cloud-init.service cloud-init-network.service
StartLimitIntervalSec=0

[Service]
# Not oneshot: the boot does not wait for a network that may be away for days.
Type=exec
ExecStart=/usr/local/lib/bramble-card/first-boot.sh install
StandardOutput=journal+console
StandardError=journal+console
Restart=on-failure
RestartSec=60s

[Install]
WantedBy=multi-user.target
UNIT
}

install_packages() {
  mkdir -p "$root/run"
  # A boot partition for which systemd has waited in vain may be there by now.
  if [ ! -e "$card" ] && ! mountpoint -q "$firmware" && ! mount "$firmware" >"$output" 2>&1; then
    echo "bramble: The boot partition cannot be mounted: $(head -n 1 "$output"). It is tried again each minute."
    exit 1
  fi
  if [ ! -e "$card" ]; then
    # A power cut came when it had just been emptied.
    has_agent || stop 'The packages are not on the card any more' 'Write the card again.'
    leave_system
    return
  fi
  case $(dpkg --print-architecture) in
    armhf | armel) stop 'This is the 32-bit system, for which there are no packages' 'Make the card from Raspberry Pi OS Lite (64-bit).' ;;
  esac
  (cd "$card" && sha256sum --check --quiet SHA256SUMS) >"$output" 2>&1 ||
    stop "A file of the card is damaged: $(grep -o '^[^:]*: FAILED.*' "$output" | head -n 1)" 'Write the card again. If that does not help, use another card.'
  # Where something has stopped it, that stays on the boot partition: this is repeated each minute.
  case $(sed 1d "$firmware/${bootStatusFileName}" 2>/dev/null) in
    '' | Prepared*) report 'Installing the packages, then joining.' ;;
  esac
  # After a power cut.
  dpkg --configure -a >"$output" 2>&1 || true
  # Without a network, if all that is needed is on the card.
  set -- "$card"/packages/*.deb
  # What overlayroot puts into the initramfs needs grep, which comes with busybox.
  ! has_data || set -- "$@" overlayroot busybox
  run_apt install --no-download --no-install-recommends "$@" || {
    apt_or_stop update
    apt_or_stop install "$@"
  }
  if ! has_agent; then
    apt_or_stop update
    apt_or_stop install bramble-agent
  fi
  has_agent || stop 'The packages are installed, and bramble-agent is not among them' 'Make the card with bramble-agent, or with the keyring of a repository that has it.'
  # The agent writes the next text; it runs already.
  echo 'bramble: The packages are installed.'
  restart=''
  if has_data && "$storage" enable; then restart=yes; fi
  leave_system
  # Pods that have started go on after it: the root is read-only then.
  [ -z "$restart" ] || systemctl --no-block reboot
}

leave_system() {
  rm -rf "$units/multi-user.target.wants/bramble-card.service" "$units/bramble-card.service" "$card"
  systemctl daemon-reload || true
  systemctl --no-block start bramble-first-boot.service || true
  rm -rf "$library"
  sync
}

has_data() { [ "$(cat "$root/etc/bramble/storage" 2>/dev/null)" = data ]; }
has_agent() { [ "$(dpkg-query --show --showformat '\${db:Status-Status}' bramble-agent 2>/dev/null)" = installed ]; }

run_apt() {
  timeout 3600 apt-get --yes --quiet --option DPkg::Lock::Timeout=600 --option Dpkg::Options::=--force-confold --option Acquire::Retries=3 "$@" >"$output" 2>&1
}

apt_or_stop() {
  run_apt "$@" || stop "apt-get $1 failed: $(grep '^[EW]:' "$output" | tail -n 3 | tr '\\n' ' ')" "$(remedy)"
}

remedy() {
  if [ -z "$(ip route show default 2>/dev/null)$(ip -6 route show default 2>/dev/null)" ]; then
    echo 'This machine has no network. Plug in a cable, or enter the Wi-Fi when Raspberry Pi Imager writes the card. It is tried again each minute.'
  elif [ "$(date +%s)" -lt "$(stat --format %Y "$card/SHA256SUMS")" ]; then
    echo 'The clock of this machine is wrong. It is tried again each minute, until a time server has answered.'
  else
    echo 'It is tried again each minute.'
  fi
}

# stop TEXT REMEDY: until the unit starts it again.
stop() {
  report "$@"
  exit 1
}

case \${1:-prepare} in
  install) install_packages ;;
  *) prepare ;;
esac
`
