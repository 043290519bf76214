/** A message of the stream of the dashboard → an update, for programs outside of the browser. */
import { decode } from '../decode.ts'
import { bool, type Described, double, integer, list, object, oneOf, optional, type TSchema, text } from '../schema.ts'
import { isObject } from '../text/json.ts'
import type { CardChanges, FleetUpdate, NodeCard, UsageRow, ViewRights } from './dashboard-messages.ts'

const NodeCardSchema = object({
  name: text,
  state: oneOf('ready', 'not-ready', 'lost', 'new'),
  why: optional(text),
  since: optional(integer),
  seen: optional(integer),
  zone: optional(text),
  cordoned: optional(bool),
  underVoltage: optional(oneOf('now', 'before')),
  powerMeasured: optional(bool),
  wear: optional(text),
  problems: optional(list(object({ type: text, message: text }))),
  link: optional(oneOf('weak')),
  pods: integer,
  podCapacity: optional(double),
  memoryBytes: optional(double),
  cpus: optional(double),
  version: optional(text),
  system: optional(text),
  address: optional(text),
  created: optional(integer),
})
const PodCardSchema = object({
  name: text,
  namespace: text,
  node: optional(text),
  status: text,
  phase: text,
  ready: text,
  isReady: optional(bool),
  restarts: optional(integer),
  created: optional(integer),
  why: optional(text),
  owner: optional(text),
  version: text,
})
const EventCardSchema = object({
  id: text,
  namespace: text,
  warning: optional(bool),
  reason: text,
  message: text,
  object: text,
  count: optional(integer),
  at: integer,
})
const WorkloadCardSchema = object({
  kind: oneOf('Deployment', 'StatefulSet', 'DaemonSet'),
  name: text,
  namespace: text,
  wanted: integer,
  ready: integer,
  updated: integer,
  created: optional(integer),
  why: optional(text),
})
const RequestCardSchema = object({ name: text, node: text, requester: text, at: integer })

/**
 * Undefined where `value` is not an object. A card that lacks something, as one of a later controller might, is left out, and so is a
 * kind that is not known.
 */
export function decodeFleetUpdate(value: unknown): FleetUpdate | undefined {
  if (!isObject(value)) return undefined
  const reset = isObject(value['reset']) ? rightsIn(value['reset']) : undefined
  const usage = isObject(value['usage']) ? usageIn(value['usage']) : undefined
  return {
    ...changesIn('nodes', value, NodeCardSchema, nodeCardOf),
    ...changesIn('pods', value, PodCardSchema, ({ isReady, ...card }) => ({ ...card, ...(isReady && { isReady }) })),
    ...changesIn('events', value, EventCardSchema, ({ warning, ...card }) => ({
      ...card,
      ...(warning && { warning }),
    })),
    ...changesIn('workloads', value, WorkloadCardSchema, (card) => card),
    ...changesIn('requests', value, RequestCardSchema, (card) => card),
    ...(reset && { reset }),
    ...(usage && { usage }),
    ...(value['complete'] === true && { complete: true }),
  }
}

function nodeCardOf({ cordoned, powerMeasured, ...card }: Described<typeof NodeCardSchema>): NodeCard {
  return { ...card, ...(cordoned && { cordoned }), ...(powerMeasured && { powerMeasured }) }
}

function changesIn<K extends string, S extends TSchema, T>(
  kind: K,
  update: { readonly [name: string]: unknown },
  schema: S,
  cardOf: (decoded: Described<S>) => T,
): { readonly [P in K]?: CardChanges<T> } {
  const given = update[kind]
  if (!isObject(given)) return {}
  const put = listIn(given['put']).flatMap((one) => {
    const decoded = decode(schema, one)
    return decoded.ok ? [cardOf(decoded.value)] : []
  })
  const gone = listIn(given['gone']).filter((key) => typeof key === 'string')
  const changes: { [P in K]?: CardChanges<T> } = {}
  changes[kind] = { put, gone }
  return changes
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function rightsIn(given: { readonly [name: string]: unknown }): ViewRights {
  const places = (name: string) => {
    const right = given[name]
    return Array.isArray(right) ? right.filter((one) => typeof one === 'string') : right === true
  }
  return {
    nodes: given['nodes'] === true,
    usage: given['usage'] === true,
    requests: given['requests'] === true,
    pods: places('pods'),
    events: places('events'),
    workloads: places('workloads'),
  }
}

function usageIn(given: { readonly [name: string]: unknown }): { readonly [node: string]: UsageRow } {
  const rows = Object.entries(given).map(([node, row]): readonly [string, UsageRow] => {
    const at = (index: number) => {
      const value: unknown = Array.isArray(row) ? row[index] : undefined
      return typeof value === 'number' && Number.isFinite(value) ? value : null
    }
    return [node, [at(0), at(1), at(2), at(3), at(4), at(5)]]
  })
  return Object.fromEntries(rows)
}
