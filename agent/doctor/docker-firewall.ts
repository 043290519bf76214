/**
 * Checks that the kernel still has the rules that Docker writes when it starts and does not write again: another program that flushes the
 * firewall takes them away, and pods then reach nothing outside of their node. Only the doctor checks this: the rules can be read by a
 * program only (iptables), and the agent's own loops start none.
 */
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'

export type BridgeNetwork = {
  readonly name: string
  /** Its IPv4 subnets: `172.17.0.0/16`. */
  readonly subnets: readonly string[]
}

export type FirewallReading = {
  /** Networks whose addresses Docker translates; undefined: Docker did not report them. */
  readonly networks: readonly BridgeNetwork[] | undefined
  /** As `iptables --list-rules` prints them, of nftables and of the older tables; undefined: this user may not see them. */
  readonly nat: readonly string[] | undefined
  readonly filter: readonly string[] | undefined
  /** `"iptables": false`: Docker writes no rules. */
  readonly isSwitchedOff: boolean
  /** Containers keep running while Docker restarts. */
  readonly liveRestore: boolean
}

const check = 'docker-firewall'

export function firewallFinding(reading: FirewallReading): DoctorFinding {
  const { networks, nat, filter } = reading
  if (networks === undefined) return unknown(check, 'Docker did not report its networks in time')
  if (nat === undefined || filter === undefined) {
    return unknown(check, 'The rules of the firewall could not be read', 'Run it with sudo, and install iptables')
  }
  const untranslated = networks.flatMap(({ name, subnets }) =>
    subnets.filter((subnet) => !nat.some((rule) => translates(rule, subnet))).map((subnet) => `${subnet} (${name})`),
  )
  return reading.isSwitchedOff ? switchedOff(untranslated) : written(untranslated, nat, filter, reading.liveRestore)
}

function switchedOff(untranslated: readonly string[]): DoctorFinding {
  if (untranslated.length === 0) return ok(check, 'Rules of this machine translate the addresses of pods')
  const found = `Docker writes no rules ("iptables": false), and no iptables rule translates ${untranslated.join(', ')}: pods reach only what has a route to them`
  const remedy =
    'Remove "iptables": false from /etc/docker/daemon.json and restart Docker, unless a router or a rule of nftables does it'
  return warning(check, found, remedy)
}

function written(
  untranslated: readonly string[],
  nat: readonly string[],
  filter: readonly string[],
  liveRestore: boolean,
): DoctorFinding {
  const effects = [
    ...(untranslated.length > 0
      ? [`no MASQUERADE rule for ${untranslated.join(', ')}, so pods there reach nothing outside of this node`]
      : []),
    ...(nat.includes('-N DOCKER') ? [] : ['no chain DOCKER in the table nat, so host ports of pods do not work']),
    ...(passesDocker(filter) ? [] : ['FORWARD drops packets and does not lead to the chains of Docker']),
  ]
  if (effects.length === 0) return ok(check, "Docker's rules translate the addresses of pods")
  const found = `Rules of Docker are missing: ${effects.join('; ')}. Another program flushed the firewall, and Docker writes its rules only when it starts`
  const pods = liveRestore ? 'pods keep running' : 'pods restart, as live-restore is off'
  const remedy = `Run 'systemctl restart docker', which writes them again (${pods}). If it happens again, start the program that flushes them (nftables.service, a script) before docker.service`
  return problem(check, found, remedy)
}

/** A rule without a source is for all, as an operator writes it: `-A POSTROUTING -o eth0 -j MASQUERADE`. */
function translates(rule: string, subnet: string): boolean {
  if (!/ -j (MASQUERADE|SNAT)\b/.test(rule)) return false
  // Docker's own for a container that reaches itself by its host port: `-s 172.17.0.2/32 -d 172.17.0.2/32`.
  const source = /(?<!! )-s (\S+)/.exec(rule)?.[1]
  return source === undefined ? !/ (-d|-m) /.test(rule) : source === subnet
}

/** The policy is DROP since Docker's start; a flush leaves it, and removes the rules. */
function passesDocker(filter: readonly string[]): boolean {
  const drops = filter.includes('-P FORWARD DROP')
  return !drops || filter.some((rule) => /^-A FORWARD (.*-j DOCKER|-j ACCEPT)/.test(rule))
}
