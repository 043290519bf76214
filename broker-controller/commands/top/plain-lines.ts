/** The fleet as lines for a pipe: one for each machine, each pod that waits and each event. */

import type { FleetState } from '../../../api/dashboard/fleet-state.ts'
import { levelOf, powerWords, shownNodes, stateWords } from '../../../api/dashboard/node-view.ts'
import { podLevel } from '../../../api/dashboard/pod-view.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { cellText } from './cell-text.ts'
import { attentionText, eventObject, newestEvents, waitingPods } from './top-panes.ts'

const mostEvents = 20

/**
 * By a key for each line. Fields are separated by tabs, the first is `machine`, `pod` or `event`, the second how urgent it is; what is
 * not known is `-`. Times are instants: a line changes only with what it describes.
 */
export function plainLines(fleet: FleetState): ReadonlyMap<string, string> {
  const machines = shownNodes(fleet.nodes.values(), '', {}).map((node) => {
    const [cpu = null, memory = null, celsius = null, disk = null] = fleet.usage.get(node.name) ?? []
    return line(`machine ${node.name}`, [
      'machine',
      levelOf(node),
      node.name,
      stateWords(node),
      at(node.since),
      figure('cpu', cpu, '%'),
      figure('memory', memory, '%'),
      figure('temperature', celsius, '°C'),
      figure('disk', disk, '%'),
      `pods=${node.pods}`,
      powerWords(node)?.text ?? '',
      attentionText(node),
    ])
  })
  const pods = waitingPods(fleet, '').map((pod) => {
    const { namespace, name, status, node = '', created, why = '' } = pod
    const fields = ['pod', podLevel(pod), `${namespace}/${name}`, status, at(created), node, why]
    return line(`pod ${namespace}/${name}`, fields)
  })
  const events = newestEvents(fleet, '')
    .slice(0, mostEvents)
    .map((event) =>
      line(`event ${event.id}`, [
        'event',
        event.warning ? 'warn' : 'good',
        eventObject(event),
        event.reason,
        at(event.at),
        `count=${event.count ?? 1}`,
        event.message,
      ]),
    )
  return new Map([...machines, ...pods, ...events])
}

function line(key: string, fields: readonly string[]): readonly [string, string] {
  return [key, fields.map((field) => cellText(field.replaceAll(/\s+/g, ' ').trim()) || '-').join('\t')]
}

function at(seconds: number | undefined): string {
  return seconds === undefined ? '' : rfc3339(seconds * 1000)
}

function figure(name: string, value: number | null, unit: string): string {
  return `${name}=${value === null ? '-' : `${value}${unit}`}`
}
