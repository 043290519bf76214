/**
 * Do two machines use the certificate of one node? Each connection of the one replaces that of the other, so their boot IDs
 * alternate, or connections are replaced in quick succession. Only the operator can decide which machine is the right one.
 */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { nodeReference } from '../../store/references.ts'

export type IdentityConflictNeeds = {
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

export interface IdentityConflicts {
  /** The broker observed a new connection of the node; `isReplacement`: it replaced another one. */
  connected(node: string, address: string | undefined, isReplacement: boolean): void
  /** The node published its boot ID on its present connection. */
  booted(node: string, bootID: string): void
  /** Its object was deleted. */
  forget(node: string): void
}

/** What one connection shows. */
export type Sighting = {
  readonly atMs: number
  readonly address: string | undefined
  readonly bootID?: string
  readonly isReplacement: boolean
}

/** Longer than the longest wait of an agent between two attempts, so that both machines connect again within it. */
const rememberedMs = 10 * 60_000
/** An unstable link replaces a connection that the broker has not found dead yet: once or twice in this time, not more often. */
const quickMs = 60_000
const mostQuick = 5
const mostRemembered = 8
const reportEveryMs = 10 * 60_000

/** The addresses of the two machines; undefined: these sightings (oldest first) do not show two. */
export function conflictIn(sightings: readonly Sighting[], nowMs: number): readonly string[] | undefined {
  const recent = sightings.filter(({ atMs }) => nowMs - atMs < rememberedMs)
  const addresses = [...new Set(recent.map(({ address = 'an unknown address' }) => address))].slice(-2)
  const quick = recent.filter(({ atMs, isReplacement }) => isReplacement && nowMs - atMs < quickMs)
  return isAlternating(recent) || quick.length >= mostQuick ? addresses : undefined
}

/** A boot ID that comes back after another one: no machine returns to an earlier boot. */
function isAlternating(sightings: readonly Sighting[]): boolean {
  const boots = sightings.flatMap(({ bootID }) => bootID ?? [])
  const changes = boots.filter((bootID, index) => bootID !== boots[index - 1])
  return new Set(changes).size < changes.length
}

export function identityConflicts({ events, clock, log }: IdentityConflictNeeds): IdentityConflicts {
  const seen = new Map<string, readonly Sighting[]>()
  const reportedMs = new Map<string, number>()

  const check = (node: string) => {
    const nowMs = clock.monotonicMs()
    const addresses = conflictIn(seen.get(node) ?? [], nowMs)
    const lastMs = reportedMs.get(node) ?? Number.NEGATIVE_INFINITY
    if (addresses === undefined || nowMs - lastMs < reportEveryMs) return
    reportedMs.set(node, nowMs)
    const message = conflictText(node, addresses)
    log.warn('Two machines use the certificate of one node', { node, addresses })
    const what = { type: 'Warning', reason: 'DuplicateIdentity', message, component: 'bramble-controller' } as const
    events
      .record({ object: nodeReference(node), ...what })
      .catch((error: unknown) => log.debug('Event not recorded', { node, error }))
  }

  return {
    connected(node, address, isReplacement) {
      const sighting = { atMs: clock.monotonicMs(), address, isReplacement }
      seen.set(node, [...(seen.get(node) ?? []), sighting].slice(-mostRemembered))
      if (isReplacement) check(node)
    },
    booted(node, bootID) {
      const sightings = seen.get(node) ?? []
      const last = sightings.at(-1)
      if (last === undefined || last.bootID !== undefined) return
      seen.set(node, [...sightings.slice(0, -1), { ...last, bootID }])
      check(node)
    },
    forget(node) {
      seen.delete(node)
      reportedMs.delete(node)
    },
  }
}

function conflictText(node: string, addresses: readonly string[]): string {
  if (addresses.length === 1) {
    return `Connections of node ${node} from ${addresses[0]} replace each other: two agents there use its certificate, or its link fails every few seconds`
  }
  return (
    `Two machines use the certificate of node ${node}: they connect from ${addresses.join(' and ')} and replace each other. ` +
    `Stop one of them. If a card was copied, run 'bramble-controller certificates revoke ${node}', then let the right machine join again`
  )
}
