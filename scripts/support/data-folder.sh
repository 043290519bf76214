# shellcheck shell=bash disable=SC2154
# Sourced by quickstart.sh: is the data folder ours, so that no other user can put links into it or exchange it? The rule is that of
# sshd's StrictModes. Needs print.sh, and these: data (without symbolic links), logs.

# Ends the script where the folder, or one above it, is another user's or may be changed by others.
check_data_folder() {
  local path=$data entry
  [ ! -e "$data" ] || [ -d "$data" ] || fail "$data is not a folder" 'Choose another folder with --data.'
  if [ -e "$data" ]; then
    [ "$(stat -c %u -- "$data")" = "$(id -u)" ] ||
      fail "$data belongs to $(owner_of "$data"), and this is $(id -un)" "Choose another folder with --data, or run this as $(owner_of "$data")."
    may_others_write "$data" && fail "Other users may change $data" "Check what is in it, then: chmod go-w $data"
    for entry in "$data"/* "$data"/.[!.]* "$logs"/*; do check_entry "$entry"; done
  fi
  while [ "$path" != / ]; do
    path=$(dirname -- "$path")
    [ ! -e "$path" ] || check_parent "$path"
  done
}

# Made here and now: a folder that appeared meanwhile is refused, and so is a link.
make_data_folder() {
  if [ ! -d "$data" ]; then
    mkdir -p -- "$(dirname -- "$data")" 2>/dev/null && mkdir -m 700 -- "$data" ||
      fail "Cannot make $data" 'Choose another folder with --data, or run this as root.'
  fi
  [ -O "$data" ] && [ ! -L "$data" ] || fail "$data belongs to another user" 'Choose another folder with --data.'
  mkdir -p -- "$logs" || fail "Cannot make $logs" "Make room on the disk, or choose another folder with --data."
}

# What root writes below another user's folder, that user can redirect. A user's own folders may have a group of their own.
check_parent() {
  local owner
  owner=$(stat -c %u -- "$1")
  [ "$owner" = 0 ] || [ "$owner" = "$(id -u)" ] ||
    fail "$1, which holds the data folder, belongs to $(owner_of "$1")" "Choose a folder of $(id -un) with --data, or run this as $(owner_of "$1")."
  [ ! -k "$1" ] || return 0
  if may_others_write "$1" && { [ "$(id -u)" = 0 ] || (($(mode_of "$1") & 8#002)); }; then
    fail "Other users may change $1, which holds the data folder" 'Choose another folder with --data.'
  fi
}

# Files of ours, and those of a dockerd that sudo started. A link there is not one we made.
check_entry() {
  local owner
  [ -e "$1" ] || [ -L "$1" ] || return 0
  [ ! -L "$1" ] || fail "$1 is a symbolic link" 'Remove it, or choose another folder with --data.'
  owner=$(stat -c %u -- "$1")
  [ "$owner" = 0 ] || [ "$owner" = "$(id -u)" ] || fail "$1 belongs to $(owner_of "$1")" \
    'Choose another folder with --data. The installed packages keep their state in /var/lib/bramble: systemctl status bramble-controller bramble-agent'
}

may_others_write() { (($(mode_of "$1") & 8#022)); }

mode_of() { printf '8#%s' "$(stat -c %a -- "$1")"; }

owner_of() { stat -c %U -- "$1"; }
