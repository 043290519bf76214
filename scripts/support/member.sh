# shellcheck shell=bash disable=SC2154
# Sourced by quickstart.sh: this machine as a node of a fleet whose controller runs elsewhere. Needs print.sh, processes.sh, and these:
# data, logs, agent_mark, controller_mark, join, token, ca_hash, node_name, probe, start_agent, join_fleet, size_of, written_since.

# Asked to join, or joined before with this data folder.
is_member() { [ -n "$join" ] || { [ -f "$agent_mark/identity.json" ] && [ ! -d "$controller_mark" ]; }; }

ensure_member() {
  local log=$logs/agent.log began pid
  [ ! -d "$controller_mark" ] || fail "$data has a fleet of its own" 'Choose another folder with --data.'
  join_as_member
  if pid=$(pid_of agent "$agent_mark"); then
    print "    Already running (pid $pid)"
    return
  fi
  began=$(size_of "$log")
  start_agent "$log"
  print "    Waiting for node $node_name to reach its controller"
  wait_for 90 member_settled "$began" || true
  written_since "$log" "$began" >"$log.now"
  grep -q 'Connected to the control plane' "$log.now" || fail "Node $node_name does not reach its controller" \
    "Its log is above. Check from here that the MQTT port of the controller can be reached, 8883 if nothing else was configured; bramble-agent doctor --data-dir $agent_mark examines it." "$log.now"
  rm -f -- "$log.now"
}

member_settled() { written_since "$logs/agent.log" "$1" | grep -q 'Connected to the control plane' || ! pid_of agent "$agent_mark"; }

# Joins unless it is a node of this fleet already; sets node_name.
join_as_member() {
  local name
  if [ -f "$agent_mark/identity.json" ]; then
    name=$(probe member "$agent_mark/identity.json" "$ca_hash") ||
      fail "This machine is node $name of another fleet" "Choose another folder with --data, or remove $agent_mark to leave that fleet."
    [ -z "$node_name" ] || [ "$node_name" = "$name" ] ||
      fail "This machine is node $name of this fleet already" 'Leave out --node-name, or choose another folder with --data.'
    node_name=$name
    return
  fi
  print '    Joining this machine to the fleet'
  join_fleet "$join" --token "$token" --ca-hash "$ca_hash"
  node_name=$(probe member "$agent_mark/identity.json" "$ca_hash")
}
