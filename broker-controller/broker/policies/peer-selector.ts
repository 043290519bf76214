/** Which pods a peer of a NetworkPolicy means. Equal peers of any policies are one selector, whose addresses nodes keep in one set. */
import { createHash } from 'node:crypto'
import type { LabelSelector } from '../../../api/meta.ts'
import { type Labels, labelMatcher, requirementsOf } from '../../../api/selectors.ts'

/** A port of a container by its name. */
export type NamedPort = { readonly name: string; readonly protocol: 'TCP' | 'UDP' | 'SCTP' }

export type PeerSelector = {
  /** Name of the set of addresses: equal for equal selectors, also after a restart of the controller. */
  readonly name: string
  /** The only one that it may match; undefined: see `matchesNamespace`. */
  readonly namespace: string | undefined
  readonly matchesNamespace: (labels: Labels | undefined) => boolean
  readonly matchesPod: (labels: Labels | undefined) => boolean
  /** Pods that have this port, with its number; undefined: all ports of a pod. */
  readonly port: NamedPort | undefined
}

/** `from`: a namespace by its name, or those that the selector matches. An absent selector of pods matches all of them. */
export function peerSelector(
  from: string | LabelSelector,
  pods: LabelSelector | undefined,
  port?: NamedPort,
): PeerSelector {
  const key = JSON.stringify([typeof from === 'string' ? from : ordered(from), ordered(pods ?? {}), port ?? null])
  return {
    name: createHash('sha256').update(key).digest('hex').slice(0, 24),
    namespace: typeof from === 'string' ? from : undefined,
    matchesNamespace: typeof from === 'string' ? () => false : matcherOf(from),
    matchesPod: matcherOf(pods ?? {}),
    port,
  }
}

/** A selector that the API would refuse matches nothing. */
function matcherOf(selector: LabelSelector): (labels: Labels | undefined) => boolean {
  const requirements = requirementsOf(selector)
  return requirements?.ok ? labelMatcher(requirements.value) : () => false
}

function ordered({ matchLabels = {}, matchExpressions = [] }: LabelSelector): unknown {
  const texts = matchExpressions.map(({ key, operator, values = [] }) =>
    JSON.stringify([key, operator, [...values].sort()]),
  )
  return [Object.entries(matchLabels).sort(([one], [other]) => (one < other ? -1 : 1)), texts.sort()]
}
