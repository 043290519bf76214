# shellcheck shell=bash disable=SC2154
# Sourced by quickstart.sh: what the network of pods needs of this machine. Needs print.sh, packages.sh, and these: agent_mark, probe.

# Only root may change the firewall: the agent of another user runs pods in Docker's own network, and reports why.
may_have_network() { [ "$(id -u)" = 0 ]; }

plan_network() {
  may_have_network && command -v apt-get >/dev/null || return 0
  local program package
  for program in nft:nftables ip:iproute2 iptables:iptables conntrack:conntrack; do
    package=${program#*:}
    command -v "${program%:*}" >/dev/null || { refresh_package_lists && want "$package" 'for the network of pods'; }
  done
}

# Packets between pods of one node pass the rules of Services: as the package of the agent has it.
prepare_network() {
  may_have_network || return 0
  modprobe br_netfilter 2>/dev/null || true
  [ ! -w /proc/sys/net/bridge/bridge-nf-call-iptables ] || echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
}

# Prints why this node has no part in the network of its fleet.
note_obstacle() { probe obstacle "$agent_mark/network/obstacle.json" || true; }

# Rules, routes and addresses stay while an agent is stopped. Not those of another agent.
remove_network() {
  may_have_network || return 0
  if [ -f "$agent_mark/network/network.json" ] && [ ! -f "$agent_mark/network/obstacle.json" ]; then
    scripts/bramble-agent network --remove --data-dir "$agent_mark" >/dev/null ||
      print '    Not all of the network of pods could be removed: ip route show proto 98, nft list table ip bramble'
  else
    remove_port_rules
  fi
}

# Rules of the ports of pods, which are there without a network of the fleet, too: containers that get the addresses of these pods later would
# have no connections.
remove_port_rules() {
  local name
  command -v nft >/dev/null && name=$(probe member "$agent_mark/identity.json" '') || return 0
  nft delete table bridge "bramble-$name" 2>/dev/null || true
}
