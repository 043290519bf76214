# shellcheck shell=bash disable=SC2154
# Sourced by quickstart.sh: a Docker daemon for the pods. Needs print.sh, packages.sh, processes.sh, and these: data, logs,
# socket, started, probe, size_of.

# The system's Docker where there is one; where there is no systemd to run it, a dockerd of our own.
ensure_docker() {
  if systemd_runs && command -v dockerd >/dev/null && ! systemctl --quiet is-active docker; then
    print '    Starting the docker service'
    as_root systemctl start docker || fail 'The docker service does not start' 'See: systemctl status docker; journalctl -u docker'
  fi
  # A socket may be there without a daemon behind it; a service that just started may need a moment.
  if [ -S "$socket" ] && may_use_docker "$(systemd_runs && echo 30 || echo 2)"; then
    print "    The Docker at $socket"
    return
  fi
  socket=$data/docker.sock
  if pid_of dockerd "$dockerd_mark" >/dev/null; then
    print "    Our own dockerd runs already (pid $(pid_of dockerd "$dockerd_mark"))"
    return
  fi
  start_dockerd
}

# A user who is not in the socket's group becomes root and comes back with that group.
docker_user=()
may_use_docker() {
  if [ "$(id -u)" != 0 ] && [ ! -w "$socket" ]; then
    print "    This user may not use $socket: sudo gives the agent the socket's group"
    sudo -v || fail "This user may not use $socket" "Run this with sudo, or: sudo usermod -aG docker $(id -un), and log in again."
    docker_user=(sudo setpriv "--reuid=$(id -u)" "--regid=$(id -g)"
      "--groups=$(id -G | tr ' ' ,),$(stat -c %g "$socket")" env "PATH=$PATH" "BRAMBLE_NODE=$BRAMBLE_NODE")
  fi
  wait_for "$1" "${docker_user[@]}" node dist/bundle/quickstart-probe.mjs docker "$socket"
}

start_dockerd() {
  local log=$logs/dockerd.log began pid
  print "    Docker is not running, and there is no systemd to start it: starting dockerd (log: $log)"
  command -v dockerd >/dev/null || fail "A Docker socket is there, but nothing answers on $socket" 'Start that Docker, or remove the socket file.'
  [ "$(id -u)" = 0 ] || as_root true || fail 'Only root may run dockerd' 'Run this as root.'
  make_bridge
  as_root mkdir -p "$data/docker-run"
  as_root rm -f -- "$data/docker-run/pid"
  forget_dead_containerd
  began=$(size_of "$log")
  local prefix=()
  [ "$(id -u)" = 0 ] || prefix=(sudo env "PATH=$PATH")
  start dockerd "$log" "${prefix[@]}" dockerd --data-root "$dockerd_mark" --exec-root "$data/docker-run" \
    --host "unix://$socket" --group "$(id -gn)" --bridge "$bridge" --log-level warn --pidfile "$data/docker-run/pid" \
    --config-file "$data/dockerd.json" --containerd-namespace "$bridge" --containerd-plugins-namespace "$bridge-plugins"
  started+=(dockerd)
  wait_for 60 dockerd_settled || true
  probe docker "$socket" >/dev/null || {
    tail -c "+$((began + 1))" "$log" >"$log.now"
    fail 'dockerd does not start' 'Its log is above. Common causes: no iptables, no cgroups mounted, no room on the disk.' "$log.now"
  }
}

# After a kill dockerd would wait in vain for the containerd whose pid it recorded, if that has ended.
forget_dead_containerd() {
  containerd_lives || as_root rm -f -- "$data/docker-run/containerd/containerd.pid"
}

containerd_lives() {
  local pid
  pid=$(as_root cat -- "$data/docker-run/containerd/containerd.pid" 2>/dev/null) || return 1
  tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$data/docker-run/"
}

dockerd_settled() { probe docker "$socket" || ! pid_of dockerd "$dockerd_mark"; }

# A bridge of our own: docker0 may be another's. Its name is short by the kernel's rule.
bridge=br$(printf %s "$data" | sha256sum | cut -c1-8)
make_bridge() {
  local subnet
  printf '{}\n' >"$data/dockerd.json"
  ! ip link show "$bridge" >/dev/null 2>&1 || return 0
  # Without addresses that a fleet has for Services (10.96.0.0/12) and pods (10.244.0.0/16).
  for subnet in 10.{{88..95},{112..243}}.0; do
    ip -4 route show to match "$subnet.1" | grep -qv '^default' || break
  done
  as_root ip link add "$bridge" type bridge
  as_root ip address add "$subnet.1/24" dev "$bridge"
  as_root ip link set "$bridge" up
}

stop_dockerd() {
  local link
  [ -d "$dockerd_mark" ] || return 0
  stop dockerd "$dockerd_mark" 60
  ! containerd_lives || print "    dockerd was killed and its containers keep running: start it with this script and stop it again to end them"
  as_root rm -f -- "$data/docker.sock"
  while read -r link; do
    as_root ip link delete "$link" 2>/dev/null || true
    forget_firewall_rules "$link"
  done <<<"$(our_bridges)"
  containerd_lives || unmount_leftovers
}

# Ours, and those that dockerd made for its networks and leaves: they would be in the way of the next one with the same addresses.
our_bridges() {
  local link networks=$dockerd_mark/network/files/local-kv.db
  printf '%s\n' "$bridge"
  ! containerd_lives || return 0
  for link in $(ip -brief link show type bridge | grep -o '^br-[0-9a-f]*'); do
    ! as_root grep -qsaF -- "${link#br-}" "$networks" || printf '%s\n' "$link"
  done
}

# dockerd leaves the firewall rules of its bridges.
forget_firewall_rules() {
  local table rule
  for table in filter nat; do
    while read -ra rule; do
      as_root iptables --wait --table "$table" --delete "${rule[@]:1}" || true # somebody else was quicker
    done < <(as_root iptables --wait --table "$table" --list-rules 2>/dev/null | grep -w -- "$1")
  done
}

# Only a dockerd that could not start, or was killed, leaves mounts.
unmount_leftovers() {
  local mount
  while read -r _ mount _; do
    [[ $mount != "$data"/* ]] || as_root umount --lazy -- "$mount"
  done <<<"$(tac /proc/self/mounts)"
}

stop_pods() {
  local asked=(node dist/bundle/quickstart-probe.mjs stop-pods "$socket" "$agent_mark/identity.json")
  [ -f "${asked[1]}" ] && [ -S "$socket" ] || return 0
  if [ "$(id -u)" = 0 ] || [ -w "$socket" ]; then "${asked[@]}"; else sudo env "PATH=$PATH" "${asked[@]}"; fi ||
    print "    The pods' containers could not be stopped: docker ps shows them"
}
