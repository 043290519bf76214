/** What the nodes of the fleet use: recorded for the charts, and the rows that changed for the open pages. */
import type { UsageRow } from '../../api/dashboard/dashboard-messages.ts'
import type { UsageBoard } from '../../broker-controller/usage/usage-board.ts'
import { isWorthSending, usageRow } from '../../broker-controller/usage/usage-row.ts'
import type { UsageHistory } from './usage-history.ts'

type Nodes = Iterable<Parameters<typeof usageRow>[1]>

/** The names of nodes, for polling them. */
export function namesOf(nodes: Nodes): readonly string[] {
  return [...nodes].map(({ metadata }) => metadata.name ?? '')
}

/** Keeps the newest values of each node; nodes that are gone are forgotten. */
export function recordUsage(
  nodes: Nodes,
  { usage, history }: { readonly usage: UsageBoard; readonly history: UsageHistory },
): void {
  const names = new Set<string>()
  for (const node of nodes) {
    const name = node.metadata.name ?? ''
    const received = usage.newest(name)
    names.add(name)
    if (received !== undefined) history.record(name, usageRow(received, node))
  }
  history.keepOnly(names)
}

/** The rows that differ from those that were sent last; they count as sent. Nodes that are gone are forgotten. */
export function changedUsage(
  nodes: Nodes,
  last: Map<string, UsageRow>,
  usage: Pick<UsageBoard, 'newest'>,
): { [node: string]: UsageRow } {
  const changed: { [node: string]: UsageRow } = {}
  const names = new Set<string>()
  for (const node of nodes) {
    const name = node.metadata.name ?? ''
    const received = usage.newest(name)
    names.add(name)
    if (received === undefined) continue
    const row = usageRow(received, node)
    if (!isWorthSending(last.get(name), row)) continue
    last.set(name, row)
    changed[name] = row
  }
  for (const name of last.keys()) if (!names.has(name)) last.delete(name)
  return changed
}
