/** The cards of a fleet → the rows of the panes of `bramble-controller top`. */
import type { EventCard, NodeCard, PodCard, UsageRow } from '../../../api/dashboard/dashboard-messages.ts'
import type { FleetState } from '../../../api/dashboard/fleet-state.ts'
import {
  concernOf,
  levelOf,
  shownNodes,
  stateWords,
  type UrgencyLevel,
  usageLevel,
} from '../../../api/dashboard/node-view.ts'
import { podLevel, shownPods } from '../../../api/dashboard/pod-view.ts'
import { duration, isFound } from '../../../api/dashboard/view-words.ts'
import { cellText } from './cell-text.ts'

export const paneNames = ['machines', 'pods', 'events'] as const
export type PaneName = (typeof paneNames)[number]

export type PaneColumn = {
  readonly title: string
  readonly isRight?: true
  /** Longer cells are cut. */
  readonly most: number
  /** Left out in a narrow terminal, those with the highest number first. */
  readonly optional?: number
}

export type PaneCell = { readonly text: string; readonly level?: UrgencyLevel }

/** Without control characters. The last cell takes the rest of the line. */
export type PaneRow = { readonly level: UrgencyLevel; readonly cells: readonly PaneCell[] }

export type Pane = {
  readonly name: PaneName
  readonly title: string
  readonly columns: readonly PaneColumn[]
  readonly rows: readonly PaneRow[]
  /** Shown in the place of rows. */
  readonly empty: string
}

/** `now`: seconds since 1970. */
export function panesOf(fleet: FleetState, filter: string, now: number): readonly Pane[] {
  return [machinesPane(fleet, filter, now), podsPane(fleet, filter, now), eventsPane(fleet, filter, now)]
}

const machineColumns: readonly PaneColumn[] = [
  { title: 'NAME', most: 32 },
  { title: 'ZONE', most: 14, optional: 9 },
  { title: 'STATE', most: 20 },
  { title: 'FOR', most: 6, isRight: true, optional: 5 },
  { title: 'CPU', most: 5, isRight: true },
  { title: 'MEM', most: 5, isRight: true },
  { title: 'TEMP', most: 6, isRight: true, optional: 2 },
  { title: 'DISK', most: 5, isRight: true, optional: 3 },
  { title: 'LOAD', most: 5, isRight: true, optional: 8 },
  { title: 'PODS', most: 9, isRight: true, optional: 6 },
  { title: 'POWER', most: 8, optional: 4 },
  { title: 'REASON', most: 0 },
]

function machinesPane(fleet: FleetState, filter: string, now: number): Pane {
  const rows = shownNodes(fleet.nodes.values(), filter, {}).map((node) =>
    machineRow(node, fleet.usage.get(node.name), now),
  )
  const isRefused = fleet.rights?.nodes === false
  const empty = isRefused
    ? 'You may not list nodes.'
    : filter === ''
      ? 'No machine has joined yet.'
      : 'No machine matches.'
  return { name: 'machines', title: 'Machines', columns: machineColumns, rows, empty: orLoading(fleet, empty) }
}

function machineRow(node: NodeCard, usage: UsageRow | undefined, now: number): PaneRow {
  const level = levelOf(node)
  const { name, zone = '', since, pods, podCapacity } = node
  const load = usage?.[4] ?? null
  return {
    level,
    cells: [
      { text: cellText(name), level },
      { text: cellText(zone) },
      { text: stateWords(node), level },
      { text: since === undefined ? '' : duration(now - since) },
      usageCell('cpu', usage?.[0]),
      usageCell('memory', usage?.[1]),
      usageCell('celsius', usage?.[2]),
      usageCell('disk', usage?.[3]),
      { text: load === null ? '–' : String(load) },
      { text: podCapacity === undefined ? String(pods) : `${pods}/${podCapacity}` },
      powerCell(node),
      { text: cellText(attentionText(node)), level },
    ],
  }
}

/** `!` behind a value from which on it needs attention. */
function usageCell(kind: Parameters<typeof usageLevel>[0], value: number | null | undefined): PaneCell {
  if (value === null || value === undefined) return { text: '– ' }
  const level = usageLevel(kind, value)
  return { text: `${value}${kind === 'celsius' ? '°C' : '%'}${level === 'good' ? ' ' : '!'}`, level }
}

function powerCell({ underVoltage, powerMeasured }: NodeCard): PaneCell {
  if (underVoltage === 'now') return { text: 'LOW', level: 'bad' }
  if (underVoltage === 'before') return { text: 'was low', level: 'warn' }
  return { text: powerMeasured ? 'ok' : '–' }
}

/** Why it is not ready; of a machine that is ready all conditions that need attention, with the message of the first. */
export function attentionText(node: NodeCard): string {
  const concern = concernOf(node) ?? ''
  const types = (node.problems ?? []).map(({ type }) => type).join(', ')
  if (types === '') return concern
  return node.state === 'ready' && node.underVoltage !== 'now' ? `${types}: ${concern}` : `${concern} ${types}`
}

const podColumns: readonly PaneColumn[] = [
  { title: 'NAMESPACE', most: 20, optional: 5 },
  { title: 'NAME', most: 44 },
  { title: 'STATUS', most: 26 },
  { title: 'RESTARTS', most: 8, isRight: true, optional: 4 },
  { title: 'NODE', most: 24, optional: 3 },
  { title: 'AGE', most: 6, isRight: true, optional: 2 },
  { title: 'REASON', most: 0 },
]

function podsPane(fleet: FleetState, filter: string, now: number): Pane {
  const rows = waitingPods(fleet, filter).map((pod): PaneRow => {
    const { namespace, name, status, restarts = 0, node = '–', created, why = '' } = pod
    const level = podLevel(pod)
    return {
      level,
      cells: [
        { text: cellText(namespace) },
        { text: cellText(name), level },
        { text: cellText(status), level },
        { text: String(restarts) },
        { text: cellText(node) },
        { text: created === undefined ? '' : duration(now - created) },
        { text: cellText(why) },
      ],
    }
  })
  const isRefused = fleet.rights?.pods === false
  const empty = isRefused
    ? 'You may not list pods.'
    : filter === ''
      ? 'None: every pod runs.'
      : 'No waiting pod matches.'
  return { name: 'pods', title: 'Pods that wait', columns: podColumns, rows, empty: orLoading(fleet, empty) }
}

/** Pods that do not run, or are not ready, the most urgent first. */
export function waitingPods(fleet: FleetState, filter: string): readonly PodCard[] {
  return shownPods(fleet.pods.values(), filter, { state: 'waiting' })
}

const eventColumns: readonly PaneColumn[] = [
  { title: 'LAST', most: 6, isRight: true },
  { title: 'COUNT', most: 5, isRight: true, optional: 3 },
  { title: 'REASON', most: 24 },
  { title: 'OBJECT', most: 44, optional: 2 },
  { title: 'MESSAGE', most: 0 },
]

function eventsPane(fleet: FleetState, filter: string, now: number): Pane {
  const rows = newestEvents(fleet, filter).map((event): PaneRow => {
    const { warning, reason, message, at, count = 1 } = event
    const level = warning ? 'warn' : 'good'
    return {
      level,
      cells: [
        { text: duration(now - at) },
        { text: String(count) },
        { text: cellText(reason), level },
        { text: cellText(eventObject(event)) },
        { text: cellText(message.replaceAll(/\s+/g, ' ')) },
      ],
    }
  })
  const isRefused = fleet.rights?.events === false
  const empty = isRefused ? 'You may not list events.' : filter === '' ? 'No events.' : 'No event matches.'
  return { name: 'events', title: 'Events', columns: eventColumns, rows, empty: orLoading(fleet, empty) }
}

/** `default/Pod/web`, `Node/pi-1`. */
export function eventObject({ namespace, object }: EventCard): string {
  return namespace === '' ? object : `${namespace}/${object}`
}

/** The newest first. */
export function newestEvents(fleet: FleetState, filter: string): readonly EventCard[] {
  return [...fleet.events.values()]
    .filter(({ reason, message, object, namespace }) => isFound(filter, [reason, message, object, namespace]))
    .sort((a, b) => b.at - a.at)
}

function orLoading({ isComplete }: FleetState, text: string): string {
  return isComplete ? text : 'Loading…'
}
