/** Decides whether nodes were lost together because their network link failed. */
import type { Lease } from '../../../api/lease.ts'
import { suspectedLinkAnnotation } from '../../../api/node/lifecycle-annotations.ts'
import type { Node } from '../../../api/node.ts'

export type LinkSettings = {
  /** How long a link may be the suspect; 0: never. */
  readonly linkSuspicionPatienceMs: number
  /** Nodes lost within this time of one another were lost together. */
  readonly linkSuspicionWindowMs: number
  /** Together are at least two, and this part of the link's nodes … */
  readonly linkSuspicionShare: number
  /** … or this many, however many the link has. */
  readonly linkSuspicionNodes: number
  /** How long the others may take once the first is back. */
  readonly nodeMonitorGracePeriodMs: number
}

export type LinkFacts = {
  /** All its nodes. */
  readonly nodes: ReadonlySet<string>
  /** Those that are Unknown, and since when. */
  readonly lost: ReadonlyMap<string, number>
  /** Those that a person declared out of service. */
  readonly outOfService: ReadonlySet<string>
}

export type Suspicion = {
  readonly link: string
  /** Those lost together, with when; also when some of them are back. */
  readonly members: ReadonlyMap<string, number>
  /** How many nodes the link had. */
  readonly total: number
  /** Until then none of them loses its pods. */
  readonly untilMs: number
}

/** On a Node: the name of the switch, access point or line it hangs on. */
const linkLabel = 'bramble.dev/link'
/** On a node's Lease: where it connects from. */
const addressAnnotation = 'bramble.dev/address'

/** Nodes that report no link share one when they connect from one address. */
export function linkOf(node: Node, lease: Lease | undefined): string | undefined {
  return (
    node.metadata.labels?.[linkLabel] ||
    lease?.metadata.annotations?.[addressAnnotation] ||
    node.metadata.annotations?.[suspectedLinkAnnotation] ||
    undefined
  )
}

/** The node with the link it was lost with written on it, or without. Undefined: it is so. */
export function withSuspectedLink<N extends Node>(node: N, link: string | undefined): N | undefined {
  const { [suspectedLinkAnnotation]: present, ...others } = node.metadata.annotations ?? {}
  if (present === link) return undefined
  const annotations = link === undefined ? others : { ...others, [suspectedLinkAnnotation]: link }
  return { ...node, metadata: { ...node.metadata, annotations } }
}

/**
 * What is suspected of a link now. A suspicion ends when its time is up; a grace after the first of its nodes is back,
 * since then the link works and who stays silent is dead; and at once when one of them is declared out of service. It is
 * remembered until none of its nodes is lost any more, so that it does not begin again.
 */
export function judgeLink(
  link: string,
  before: readonly Suspicion[],
  facts: LinkFacts,
  nowMs: number,
  settings: LinkSettings,
): readonly Suspicion[] {
  const isLost = ([name, sinceMs]: readonly [string, number]) => facts.lost.get(name) === sinceMs
  const kept = before
    .filter(({ members }) => [...members].some(isLost))
    .map((suspicion) => endedEarlier(suspicion, facts, nowMs, settings))
  const old = new Map(kept.flatMap(({ members }) => [...members]))
  const fresh = [...facts.lost].filter(([name, sinceMs]) => old.get(name) !== sinceMs)
  const joined = kept.map((suspicion) =>
    suspicion.untilMs > nowMs ? withLateComers(suspicion, fresh, settings) : suspicion,
  )
  const taken = new Set(joined.flatMap(({ members }) => [...members.keys()]))
  const together = lostTogether(
    fresh.filter(([name]) => !taken.has(name)),
    facts.nodes.size,
    settings,
  )
  if (together.length === 0) return joined
  const sinceMs = Math.min(...together.map(([, ms]) => ms))
  const untilMs = sinceMs + settings.linkSuspicionPatienceMs
  return [...joined, { link, members: new Map(together), total: facts.nodes.size, untilMs }]
}

export function suspicionText({ link, members, total }: Suspicion): string {
  return `${members.size} of the ${total} nodes of link ${link} were lost together: the network is suspected`
}

type Loss = readonly [name: string, sinceMs: number]

/** Those that have so many others close by in time that chance is not an explanation. */
function lostTogether(losses: readonly Loss[], total: number, settings: LinkSettings): readonly Loss[] {
  const { linkSuspicionPatienceMs, linkSuspicionWindowMs, linkSuspicionShare, linkSuspicionNodes } = settings
  if (linkSuspicionPatienceMs <= 0) return []
  const enough = Math.max(2, Math.min(linkSuspicionNodes, Math.ceil(total * linkSuspicionShare)))
  const sorted = losses.toSorted(([, a], [, b]) => a - b)
  const together = new Set<Loss>()
  let first = 0
  for (const [last, [, ms]] of sorted.entries()) {
    while (ms - (sorted[first]?.[1] ?? ms) > linkSuspicionWindowMs) first++
    if (last - first + 1 >= enough) for (const loss of sorted.slice(first, last + 1)) together.add(loss)
  }
  return [...together]
}

function withLateComers(suspicion: Suspicion, fresh: readonly Loss[], settings: LinkSettings): Suspicion {
  const times = [...suspicion.members.values()]
  const [from, to] = [Math.min(...times), Math.max(...times)]
  const late = fresh.filter(
    ([, ms]) => ms >= from - settings.linkSuspicionWindowMs && ms <= to + settings.linkSuspicionWindowMs,
  )
  return late.length === 0 ? suspicion : { ...suspicion, members: new Map([...suspicion.members, ...late]) }
}

function endedEarlier(suspicion: Suspicion, facts: LinkFacts, nowMs: number, settings: LinkSettings): Suspicion {
  const names = [...suspicion.members.keys()]
  const isBack = names.some((name) => facts.nodes.has(name) && !facts.lost.has(name))
  const isGiven = names.some((name) => facts.outOfService.has(name))
  const untilMs = Math.min(
    suspicion.untilMs,
    isBack ? nowMs + settings.nodeMonitorGracePeriodMs : suspicion.untilMs,
    isGiven ? nowMs : suspicion.untilMs,
  )
  return untilMs === suspicion.untilMs ? suspicion : { ...suspicion, untilMs }
}
