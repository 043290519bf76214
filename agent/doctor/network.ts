/** Checks of what the network between the pods of nodes needs. */
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import { parseJson } from '../../api/text/json.ts'
import { decodeNetwork } from '../network/messages/received-network.ts'
import { firewallProblem, firewallRemedy } from '../network/peers/firewall-backend.ts'
import { type DoctorFinding, ok, problem, unknown, warning } from './doctor-finding.ts'

export type NetworkReading = {
  /** The fleet has a network of its own: this node has received its message. */
  readonly isOn: boolean
  /** `net.ipv4.ip_forward`; undefined: the kernel does not show it. */
  readonly forwarding: string | undefined
  /** `net.ipv6.conf.all.forwarding`; undefined: the fleet or the machine has no IPv6. */
  readonly ipv6Forwarding?: string
  /** `net.bridge.bridge-nf-call-iptables`; undefined: the module br_netfilter is not loaded. */
  readonly bridgeFilter: string | undefined
  /** Programs that are not installed. */
  readonly missing: readonly string[]
  /** `net.ipv4.conf.*.arp_ignore` of all links, by their names and `all`. */
  readonly arpIgnore: ReadonlyMap<string, string>
  /** Docker's chain DOCKER-USER is there; undefined: it could not be determined. */
  readonly hasDockerChain: boolean | undefined
  /** Networks of the machine that have addresses of the fleet, as sentences with a remedy behind a semicolon. */
  readonly overlaps: readonly string[]
  /** Firewall backend of Docker; undefined: Docker does not report one. */
  readonly firewallBackend: string | undefined
}

const packages: { readonly [program: string]: string } = { nft: 'nftables', ip: 'iproute2', iptables: 'iptables' }

const needed = Object.keys(packages)
const forFlows = 'conntrack'

/** The programs that the agent starts for it. */
export const networkPrograms: readonly string[] = [...needed, forFlows]

/** The message in the agent's checkpoint, behind the line with its checksum. */
export function savedNetworkMessage(checkpoint: string | undefined): NetworkMessage | undefined {
  const decoded = decodeNetwork(parseJson(checkpoint?.slice(checkpoint.indexOf('\n') + 1) ?? ''))
  return decoded.ok ? decoded.value.message : undefined
}

/** None for a fleet without a network of its own: its nodes need none of this. */
export function networkFindings(reading: NetworkReading): readonly DoctorFinding[] {
  if (!reading.isOn) return []
  return [
    forwarding(reading),
    ...ipv6Forwarding(reading),
    bridgeFilter(reading),
    programs(reading),
    flowProgram(reading),
    dockerChain(reading),
    arpAnswers(reading),
    ...homeNetworks(reading),
  ]
}

function forwarding({ forwarding: value }: NetworkReading): DoctorFinding {
  const check = 'ip-forward'
  if (value === undefined) return unknown(check, 'The kernel does not show net.ipv4.ip_forward')
  if (value.trim() === '1') return ok(check, 'The kernel forwards packets between pods and nodes')
  const remedy = "Run 'sysctl -w net.ipv4.ip_forward=1', and look for a file in /etc/sysctl.d that sets it to 0"
  return problem(check, 'The kernel forwards no packets: pods have no connection (net.ipv4.ip_forward is 0)', remedy)
}

function ipv6Forwarding({ ipv6Forwarding: value }: NetworkReading): readonly DoctorFinding[] {
  const check = 'ipv6-forwarding'
  if (value === undefined) return []
  if (value.trim() === '1') return [ok(check, 'The kernel forwards IPv6 packets between pods and nodes')]
  const remedy =
    'The agent sets net.ipv6.conf.all.forwarding=1 each 30 s: start it, and look for a file in /etc/sysctl.d that sets it to 0'
  return [problem(check, 'The kernel forwards no IPv6 packets: pods have IPv4 connections only', remedy)]
}

/** Without it an answer within one bridge bypasses the translation of addresses, and does not match its request. */
function bridgeFilter({ bridgeFilter: value }: NetworkReading): DoctorFinding {
  const check = 'bridge-netfilter'
  if (value?.trim() === '1') return ok(check, 'Packets between pods of this node pass the rules of Services')
  const found = 'Pods do not reach Services whose endpoint is on the same node'
  if (value === undefined) {
    const remedy = "Run 'modprobe br_netfilter'; the package bramble-agent loads it at boot"
    return problem(check, `${found}: the kernel module br_netfilter is not loaded`, remedy)
  }
  const remedy =
    "Run 'sysctl -w net.bridge.bridge-nf-call-iptables=1', and look for a file in /etc/sysctl.d that sets it to 0"
  return problem(check, `${found} (net.bridge.bridge-nf-call-iptables is 0)`, remedy)
}

function programs(reading: NetworkReading): DoctorFinding {
  const check = 'network-programs'
  const missing = reading.missing.filter((program) => program !== forFlows)
  if (missing.length === 0) return ok(check, `${needed.join(', ')} are installed`)
  const names = missing.map((program) => packages[program] ?? program)
  const found = `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not installed: pods reach no other node`
  return problem(check, found, `apt-get install ${names.join(' ')}`)
}

function flowProgram({ missing }: NetworkReading): DoctorFinding {
  const check = 'udp-flows'
  if (!missing.includes(forFlows)) return ok(check, 'Flows of UDP to endpoints that are gone can be removed')
  const found = 'conntrack is not installed: clients of UDP may stay with an endpoint of a Service that is gone'
  return warning(check, found, 'apt-get install conntrack')
}

function dockerChain({ hasDockerChain, firewallBackend }: NetworkReading): DoctorFinding {
  const check = 'docker-rules'
  const backendProblem = firewallProblem(firewallBackend)
  if (backendProblem !== undefined) return problem(check, backendProblem, firewallRemedy)
  if (hasDockerChain === undefined) return unknown(check, "Docker's rules could not be read", 'Run it with sudo')
  if (hasDockerChain) return ok(check, 'Docker has a place for the rule of the network of pods (DOCKER-USER)')
  const remedy = 'Remove "iptables": false from /etc/docker/daemon.json, and restart Docker'
  return problem(check, 'Docker drops packets between nodes: its chain DOCKER-USER is missing', remedy)
}

/** The addresses of load balancers are on the loopback interface: from 1 on the kernel answers for those of the link only (ip-sysctl). */
function arpAnswers({ arpIgnore }: NetworkReading): DoctorFinding {
  const check = 'arp-answers'
  const set = [...arpIgnore]
    .filter(([, value]) => Number(value) > 0)
    .map(([link]) => `net.ipv4.conf.${link}.arp_ignore`)
  if (set.length === 0) return ok(check, 'The kernel answers for the addresses of load balancers')
  const remedy = `Run 'sysctl -w ${set.map((name) => `${name}=0`).join(' ')}', and look for a file in /etc/sysctl.d that sets it`
  return warning(
    check,
    `The kernel does not answer for the addresses of load balancers: ${set.join(', ')} is set`,
    remedy,
  )
}

function homeNetworks({ overlaps }: NetworkReading): readonly DoctorFinding[] {
  const check = 'home-networks'
  if (overlaps.length === 0) return [ok(check, 'No network of this machine has addresses of pods or Services')]
  return overlaps.map((text) => {
    const [found = '', remedy = ''] = text.split('; ')
    return problem(check, sentence(found), sentence(remedy))
  })
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
