/**
 * One agent of a machine has the network of pods: the table of rules, the mark of routes and the tunnel have one name each, and a second
 * agent, of another fleet, would replace what the first one put there.
 */
import { mkdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { BalancerHost } from '../../network/balancers/balancer-manager.ts'
import type { RuleTable } from '../../network/network-manager.ts'
import type { IPv6Guard } from '../../network/peers/ipv6-guard.ts'
import type { HostNetwork } from '../../network/peers/route-sync.ts'
import type { WireguardLink } from '../../network/wireguard/wireguard-sync.ts'
import { AlreadyRunning, agentOn, lockDirectory } from '../disk/single-instance.ts'
import type { IPv6Forwarding } from './ipv6-forwarding.ts'

export interface NetworkOwner {
  /** Resolves when this process has the network, until it ends. Rejects while another agent has it; another call tries again. */
  claim(): Promise<void>
  /** Whether `claim` has succeeded. */
  isOwner(): boolean
}

/** Another agent of this machine has it. */
export class NetworkTaken extends Error {
  readonly pid: number
  constructor(pid: number) {
    super(`Another agent of this machine, process ${pid}, has the network of pods`)
    this.pid = pid
  }
}

/** The process ID in a rejection of `claim`; throws another one. */
export function takenBy(error: unknown): number {
  if (error instanceof NetworkTaken) return error.pid
  throw error
}

/** The process ID of the agent that has it; undefined: none has. */
export async function ownerOfNetwork(root: string): Promise<number | undefined> {
  return agentOn(await networkFolder(root))
}

/** `root`: where `/run` is. Where no lock can be written, the network is this process's: a full disk does not mean that another agent runs. */
export function networkOwner(root: string): NetworkOwner {
  let claimed: Promise<void> | undefined
  let isOwner = false
  const lock = async () => {
    const folder = await networkFolder(root)
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await lockDirectory(folder)
    } catch (error) {
      if (error instanceof AlreadyRunning) throw new NetworkTaken(error.pid)
    }
    isOwner = true
  }
  return {
    claim() {
      claimed ??= lock().catch((error: unknown) => {
        claimed = undefined
        throw error
      })
      return claimed
    },
    isOwner: () => isOwner,
  }
}

/**
 * Folder of the owner; gone after a reboot. Rules and routes belong to a network namespace, and so does the folder:
 * `net:[4026531840]`.
 */
export async function networkFolder(root: string): Promise<string> {
  const space = await readlink('/proc/self/ns/net').catch(() => '')
  return join(root, 'run/bramble', `network-${space.replace(/\D/g, '')}`)
}

/** What is removed is the owner's only: others have put nothing there. */
export function ownedTable(table: RuleTable, { claim, isOwner }: NetworkOwner): RuleTable {
  return {
    family: table.family,
    list: () => claim().then(table.list),
    apply: (transaction) => claim().then(() => table.apply(transaction)),
    isIntact: (thorough) => claim().then(() => table.isIntact(thorough)),
    remove: async () => (isOwner() ? table.remove() : undefined),
  }
}

/** As `ownedTable`. */
export function ownedHost(host: HostNetwork, { claim, isOwner }: NetworkOwner): HostNetwork {
  return {
    links: host.links,
    made: () => claim().then(host.made),
    apply: (steps) => claim().then(() => host.apply(steps)),
    acceptMarked: (withIPv6) => claim().then(() => host.acceptMarked(withIPv6)),
    refuseMarked: async () => (isOwner() ? host.refuseMarked() : undefined),
  }
}

/** As `ownedTable`. */
export function ownedGuard(guard: IPv6Guard, { claim, isOwner }: NetworkOwner): IPv6Guard {
  return {
    close: (bridge) => claim().then(() => guard.close(bridge)),
    verify: () => claim().then(guard.verify),
    observe: async (chains) => (isOwner() ? guard.observe(chains) : undefined),
    isAnswering: async () => !isOwner() || guard.isAnswering(),
    remove: async () => (isOwner() ? guard.remove() : undefined),
  }
}

/** As `ownedTable`. */
export function ownedForwarding(forwarding: IPv6Forwarding, { claim, isOwner }: NetworkOwner): IPv6Forwarding {
  return {
    enable: () => claim().then(forwarding.enable),
    restore: async () => (isOwner() ? forwarding.restore() : undefined),
  }
}

/** As `ownedTable`; the key is this agent's own. */
export function ownedWireguard(link: WireguardLink, { claim }: NetworkOwner): WireguardLink {
  return {
    ...link,
    read: () => claim().then(link.read),
    apply: (changes) => claim().then(() => link.apply(changes)),
  }
}

/** As `ownedTable`. */
export function ownedBalancers(host: BalancerHost, { claim, isOwner }: NetworkOwner): BalancerHost {
  return {
    held: () => (isOwner() ? host.held() : new Set()),
    own: host.own,
    link: host.link,
    answers: host.answers,
    apply: (steps, device) => claim().then(() => host.apply(steps, device)),
    clear: async () => (isOwner() ? host.clear() : undefined),
  }
}
