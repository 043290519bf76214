# shellcheck shell=bash
# Sourced by our scripts: programs for arm64 run through qemu while the script does, unless the host has that set up for good.

handlers=/proc/sys/fs/binfmt_misc
handler='' handlers_mounted=''

run_foreign_programs() {
  [ -e "$handlers/register" ] || { mount -t binfmt_misc binfmt_misc "$handlers" && handlers_mounted=yes; }
  [ ! -e "$handlers/qemu-aarch64" ] || return 0
  cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$handlers/register"
  handler=$handlers/qemu-aarch64
}

forget_foreign_programs() {
  [ -z "$handler" ] || echo -1 >"$handler"
  [ -z "$handlers_mounted" ] || umount "$handlers" || true
}
