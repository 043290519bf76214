/** All cards that the page has, and what an update makes of them. */
import {
  type CardKind,
  type CardTypes,
  cardKeys,
  type FleetUpdate,
  type UsageRow,
  type ViewRights,
} from './dashboard-messages.ts'

export type FleetState = { readonly [K in CardKind]: ReadonlyMap<string, CardTypes[K]> } & {
  readonly rights: ViewRights | undefined
  /** All cards have arrived once. */
  readonly isComplete: boolean
  readonly usage: ReadonlyMap<string, UsageRow>
}

export const emptyFleet: FleetState = {
  nodes: new Map(),
  pods: new Map(),
  events: new Map(),
  workloads: new Map(),
  requests: new Map(),
  usage: new Map(),
  rights: undefined,
  isComplete: false,
}

/** The state after an update. Maps without a change stay the same. */
export function fleetAfter(state: FleetState, update: FleetUpdate): FleetState {
  const before = update.reset === undefined ? state : { ...emptyFleet, rights: update.reset }
  return {
    ...before,
    isComplete: before.isComplete || update.complete === true,
    nodes: changed('nodes', before.nodes, update),
    pods: changed('pods', before.pods, update),
    events: changed('events', before.events, update),
    workloads: changed('workloads', before.workloads, update),
    requests: changed('requests', before.requests, update),
    usage: update.usage === undefined ? before.usage : new Map([...before.usage, ...Object.entries(update.usage)]),
  }
}

function changed<K extends CardKind>(
  kind: K,
  present: ReadonlyMap<string, CardTypes[K]>,
  update: { readonly [P in K]?: { readonly put?: readonly CardTypes[K][]; readonly gone?: readonly string[] } },
): ReadonlyMap<string, CardTypes[K]> {
  const { put = [], gone = [] } = update[kind] ?? {}
  if (put.length === 0 && gone.length === 0) return present
  const next = new Map(present)
  for (const card of put) next.set(cardKeys[kind](card), card)
  for (const key of gone) next.delete(key)
  return next
}
