/**
 * Decides when this node takes an address of a load balancer, and when it gives it up. The controller names one node for each address;
 * ARP, and neighbour discovery for IPv6, decide while that node and the one before do not have the same message: an address for which
 * another machine answers is not taken.
 *
 * - Named, and no machine answers within `probeMs`: take it, and announce it.
 * - Named, and another machine answers: wait, and probe again.
 * - Not named any more, or the link is gone: give it up at once.
 * - Held, and another machine answers too (two parts of a link were joined): a node with a connection to the controller has the newer
 *   message, keeps it and announces it again. If both have no connection, the one with the lower MAC address keeps it.
 * - Held of IPv6: the kernel drops what another holder answers. The address goes with that of IPv4 of the same Service, and is left to
 *   the other node for a while.
 * - Taken of IPv6 by two nodes at one moment: duplicate address detection removes it from the one that asks later, which finds it gone.
 *
 * The kernel removes an address that was not renewed for `lifetimeSeconds`: that of an agent that is dead.
 */
import type { IPFamily } from '../../../api/text/ip-address.ts'

/** Lifetime of a held address in the kernel without an agent: a restart of the agent, also after a crash, takes 8 s. */
export const lifetimeSeconds = 30
const renewMs = 10_000
/** Wait for answers to a probe: the kernel sends three requests a second apart, two of them within this time. */
const probeMs = 1_500
/**
 * Waits until a blocked address is probed again. Its previous holder releases it on the same message; one whose agent
 * is dead keeps it for `lifetimeSeconds`.
 */
const againMs = { soon: 500, later: 2_000, rare: 10_000 }
const soonUntilMs = 5_000
/** From then on it is another machine, or a node without a connection to the controller. */
export const otherHolderMs = 45_000
/** Whether another machine answers for a held address too. */
const checkMs = 60_000

export type AddressPhase =
  | { readonly phase: 'probing'; readonly untilMs: number; readonly blocked?: Blocked }
  | { readonly phase: 'blocked'; readonly againAtMs: number; readonly blocked: Blocked }
  | { readonly phase: 'held'; readonly renewAtMs: number; readonly checkAtMs: number; readonly checkUntilMs?: number }

/** Another machine answers, since then, with this MAC address. */
export type Blocked = { readonly sinceMs: number; readonly mac: string }

/** By address. */
export type AddressPhases = ReadonlyMap<string, AddressPhase>

export type AddressStep = {
  /** `probe`: ask who has it, and forget earlier answers. `renew`: for another `lifetimeSeconds`. `announce`: it is here. */
  readonly step: 'probe' | 'take' | 'renew' | 'announce' | 'release'
  readonly ip: string
}

export type BalancerFacts = {
  /** Those of IPv4 first. */
  readonly wanted: readonly string[]
  /** The IPv4 address, by the IPv6 address, that is to be on the same node. */
  readonly partners: ReadonlyMap<string, string>
  /** What the kernel has, also of an earlier agent. */
  readonly held: ReadonlySet<string>
  /** MAC addresses of other machines that answered since the last probe, by address. */
  readonly answers: ReadonlyMap<string, string>
  /** MAC address of this machine on the link; undefined: no link. */
  readonly mac: string | undefined
  /** The rules of Services are in place: without them the machine itself would answer at the address. */
  readonly hasRules: { readonly [family in IPFamily]: boolean }
  readonly isConnected: boolean
}

export type AddressPlan = {
  readonly phases: AddressPhases
  /** In this order. */
  readonly steps: readonly AddressStep[]
  /** When to plan again without a change; undefined: never. */
  readonly nextMs: number | undefined
}

/** `nowMs`: of the monotonic clock. The phases hold once the steps have succeeded. */
export function planAddresses(before: AddressPhases, facts: BalancerFacts, nowMs: number): AddressPlan {
  const { wanted, held, mac } = facts
  const named = new Set(mac === undefined ? [] : wanted)
  const steps: AddressStep[] = [...held].filter((ip) => !named.has(ip)).map((ip) => ({ step: 'release', ip }))
  const phases = new Map<string, AddressPhase>()
  /** By an address that is given up now: the MAC address of the machine that keeps it. */
  const lost = new Map<string, string>()
  for (const ip of named) {
    const keeper = lost.get(facts.partners.get(ip) ?? '')
    if (held.has(ip) && keeper !== undefined) {
      steps.push({ step: 'release', ip })
      phases.set(ip, leftTo(keeper, nowMs))
      continue
    }
    const planned = planAddress(ip, before.get(ip), facts, nowMs)
    steps.push(...planned.steps.map((step) => ({ step, ip })))
    if (planned.phase?.phase === 'blocked' && held.has(ip)) lost.set(ip, planned.phase.blocked.mac)
    if (planned.phase !== undefined) phases.set(ip, planned.phase)
  }
  const dueMs = [...phases.values()].map(dueAtMs)
  return { phases, steps, nextMs: dueMs.length === 0 ? undefined : Math.max(0, Math.min(...dueMs) - nowMs) }
}

type Planned = { readonly phase?: AddressPhase; readonly steps: readonly AddressStep['step'][] }

function planAddress(ip: string, phase: AddressPhase | undefined, facts: BalancerFacts, nowMs: number): Planned {
  if (facts.held.has(ip)) return planHeld(ip, phase, facts, nowMs)
  if (!facts.hasRules[isOfIPv6(ip) ? 'IPv6' : 'IPv4']) return { steps: [] }
  if (phase?.phase === 'blocked') {
    return nowMs < phase.againAtMs ? { phase, steps: [] } : probing(nowMs, phase.blocked)
  }
  // Held before: another program removed it, or this one was stopped for longer than its lifetime.
  if (phase?.phase !== 'probing') return probing(nowMs)
  const mac = facts.answers.get(ip)
  if (mac !== undefined) return { phase: blockedBy(mac, phase.blocked, nowMs), steps: [] }
  if (nowMs < phase.untilMs) return { phase, steps: [] }
  // Two nodes that take it at one moment see each other by then.
  const held = { phase: 'held', renewAtMs: nowMs + renewMs, checkAtMs: firstCheckMs(ip, nowMs + probeMs) } as const
  return { phase: held, steps: ['take', 'announce'] }
}

function planHeld(ip: string, phase: AddressPhase | undefined, facts: BalancerFacts, nowMs: number): Planned {
  const { answers, mac = '', isConnected } = facts
  if (phase?.phase !== 'held') {
    const adopted = { phase: 'held', renewAtMs: nowMs + renewMs, checkAtMs: firstCheckMs(ip, nowMs) } as const
    return { phase: adopted, steps: ['renew'] }
  }
  const steps: AddressStep['step'][] = []
  let { renewAtMs, checkAtMs, checkUntilMs } = phase
  if (checkUntilMs !== undefined) {
    const other = answers.get(ip)
    if (other !== undefined && !isConnected && other < mac) {
      return { phase: blockedBy(other, undefined, nowMs), steps: ['release'] }
    }
    if (other !== undefined) steps.push('announce')
    if (other !== undefined || nowMs >= checkUntilMs) checkUntilMs = undefined
  } else if (nowMs >= checkAtMs) {
    steps.push('probe')
    checkAtMs = nowMs + checkMs
    checkUntilMs = nowMs + probeMs
  }
  if (nowMs >= renewAtMs) {
    steps.push('renew')
    renewAtMs = nowMs + renewMs
  }
  return { phase: { phase: 'held', renewAtMs, checkAtMs, ...(checkUntilMs !== undefined && { checkUntilMs }) }, steps }
}

/** Another holder of an IPv6 address is not seen; see above. */
function firstCheckMs(ip: string, atMs: number): number {
  return isOfIPv6(ip) ? Number.POSITIVE_INFINITY : atMs
}

function isOfIPv6(ip: string): boolean {
  return ip.includes(':')
}

function probing(nowMs: number, blocked?: Blocked): Planned {
  return {
    phase: { phase: 'probing', untilMs: nowMs + probeMs, ...(blocked !== undefined && { blocked }) },
    steps: ['probe'],
  }
}

function blockedBy(mac: string, before: Blocked | undefined, nowMs: number): AddressPhase {
  const blocked = { sinceMs: before?.sinceMs ?? nowMs, mac }
  const forMs = nowMs - blocked.sinceMs
  const waitMs = forMs < soonUntilMs ? againMs.soon : forMs < otherHolderMs ? againMs.later : againMs.rare
  return { phase: 'blocked', againAtMs: nowMs + waitMs, blocked }
}

/** Longer than the other node waits until it probes again. */
function leftTo(mac: string, nowMs: number): AddressPhase {
  return { phase: 'blocked', againAtMs: nowMs + againMs.rare, blocked: { sinceMs: nowMs, mac } }
}

function dueAtMs(phase: AddressPhase): number {
  switch (phase.phase) {
    case 'probing':
      return phase.untilMs
    case 'blocked':
      return phase.againAtMs
    case 'held':
      return Math.min(phase.renewAtMs, phase.checkUntilMs ?? phase.checkAtMs)
  }
}
