# shellcheck shell=bash
# Sourced by our scripts: a minimal Debian with a clone of the last commit, in which scripts/test.sh runs.

release=bookworm
clone=/root/bramble

# make_root FOLDER
make_root() {
  local root=$1 source=/etc/apt/sources.list.d/debian.sources mirrors=() valid
  # This machine's own mirrors, where they have the release; else mmdebstrap's.
  if grep -qs "^Suites:.*$release" "$source"; then mirrors=("$source"); fi
  # A mirror that is not updated any more has an old list: this machine's apt takes it, or refuses it.
  valid=$(apt-config dump --format '%v' Acquire::Check-Valid-Until)
  # force-unsafe-io: nothing is lost with a root that is removed anyway.
  mmdebstrap --mode=root --variant=minbase --aptopt="Acquire::Check-Valid-Until \"${valid:-true}\"" --dpkgopt=force-unsafe-io "$release" "$root" "${mirrors[@]}"
  # That no list is younger than a day has test.sh read them.
  rm -rf "$root"/var/lib/apt/lists/*
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  mkdir -p "$root/etc/ssl"
  [ ! -f "${NODE_EXTRA_CA_CERTS:-}" ] || cp -L -- "$NODE_EXTRA_CA_CERTS" "$root/etc/ssl/authorities-of-this-machine.crt"
  environment >"$root/root/environment"
  git clone --quiet --no-hardlinks -- "$PWD" "$root$clone"
  [ "$(git -C "$root$clone" rev-parse HEAD)" = "$(git rev-parse HEAD)" ]
}

# How this machine reaches its registries, and which tests are wanted.
environment() {
  local name registry
  for name in {http,https,no}_proxy {HTTP,HTTPS,NO}_PROXY ${!BRAMBLE_TEST_*}; do
    [ -z "${!name:-}" ] || printf '%s=%s\n' "$name" "${!name}"
  done
  registry=$(npm config get registry 2>/dev/null) || true
  [ -z "$registry" ] || printf 'npm_config_registry=%s\n' "$registry"
  [ ! -f "${NODE_EXTRA_CA_CERTS:-}" ] || printf 'NODE_EXTRA_CA_CERTS=/etc/ssl/authorities-of-this-machine.crt\n'
}

# pivot_into ROOT: with mount and process namespaces of its own, before. Sets the variables of its programs. Not chroot: in one no container can
# start, as its root is not a mount.
pivot_into() {
  local root=$1
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  cd "$root" || return
  mkdir outside
  pivot_root . outside
  umount --lazy /outside
  rmdir /outside
  read_variables
}

read_variables() {
  mapfile -t variables </root/environment
  variables+=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
  # The quickstart that is tested installs the packages again, without the registry.
  variables+=(npm_config_cache=/root/npm-cache npm_config_prefer_offline=true)
}

# As of a machine in a house without the internet: agents report the address of the default route, and the router refuses what goes beyond it
# at once.
network_of_a_house() {
  ip link set lo up
  ip netns add router
  nsenter --net=/run/netns/router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward && echo 0 >/proc/sys/net/ipv4/icmp_ratelimit'
  ip link add eth0 type veth peer name lan netns router
  ip -n router address add 172.31.255.1/24 dev lan
  ip -n router link set lan up
  ip address add 172.31.255.2/24 dev eth0
  ip link set eth0 up
  ip route add default via 172.31.255.1
}
