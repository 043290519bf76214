/** The order of machines and what of them needs attention: those that are not ready first. */
import type { NodeCard, UsageRow } from './dashboard-messages.ts'
import { isFound } from './view-words.ts'

export type UrgencyLevel = 'bad' | 'warn' | 'idle' | 'good'

/** How urgent a machine is: `bad` not ready, `warn` a problem, `idle` cordoned or new. */
export function levelOf(node: NodeCard): UrgencyLevel {
  if (node.state === 'lost' || node.state === 'not-ready') return 'bad'
  if (node.state === 'new') return 'idle'
  if (node.underVoltage === 'now' || (node.problems?.length ?? 0) > 0) return 'warn'
  return node.cordoned ? 'idle' : 'good'
}

/** The state in a word or two. */
export function stateWords(node: NodeCard): string {
  const words = { ready: 'Ready', 'not-ready': 'Not ready', lost: 'No contact', new: 'Joining' }[node.state]
  return node.cordoned ? `${words}, cordoned` : words
}

/** What is wrong with a machine that is ready, in one sentence; undefined: nothing is. */
export function concernOf(node: NodeCard): string | undefined {
  if (node.state !== 'ready') return node.why
  if (node.underVoltage === 'now') return 'The supply voltage is too low: it slows down and may lose data.'
  return node.problems?.[0]?.message
}

/** The state of the supply in words; undefined: the machine does not measure it. */
export function powerWords(node: NodeCard): { readonly text: string; readonly level: UrgencyLevel } | undefined {
  if (node.underVoltage === 'now') {
    return { text: node.state === 'lost' ? 'Low voltage when last seen' : 'Low voltage now', level: 'bad' }
  }
  if (node.underVoltage === 'before') return { text: 'Was low since boot', level: 'warn' }
  return node.powerMeasured ? { text: 'Supply fine', level: 'good' } : undefined
}

export type NodeFilters = { readonly state?: string; readonly zone?: string }

const order: readonly UrgencyLevel[] = ['bad', 'warn', 'idle', 'good']

/** Those that match, the most urgent first, then by name. */
export function shownNodes(
  nodes: Iterable<NodeCard>,
  search: string,
  { state, zone }: NodeFilters,
): readonly NodeCard[] {
  return [...nodes]
    .filter((node) => state === undefined || isInState(node, state))
    .filter((node) => zone === undefined || (node.zone ?? '') === zone)
    .filter((node) => isFound(search, [node.name, node.zone, node.address, node.system, node.why, stateWords(node)]))
    .map((node) => ({ node, rank: order.indexOf(levelOf(node)) }))
    .sort((a, b) => a.rank - b.rank || compareNames(a.node.name, b.node.name))
    .map(({ node }) => node)
}

function isInState(node: NodeCard, state: string): boolean {
  if (state === 'cordoned') return node.cordoned === true
  if (state === 'attention') return levelOf(node) === 'warn'
  return state === 'ready' ? node.state === 'ready' : node.state !== 'ready'
}

/** `pi-2` before `pi-10`. */
export function compareNames(a: string, b: string): number {
  collator ??= new Intl.Collator('en', { numeric: true })
  return collator.compare(a, b)
}

/** Made when it is needed: it loads 3 MB of collation tables. */
let collator: Intl.Collator | undefined

/** UrgencyLevel of a share of a resource, or of a temperature in degrees Celsius. */
export function usageLevel(kind: 'cpu' | 'memory' | 'disk' | 'celsius', value: number): UrgencyLevel {
  const [warn, bad] = { cpu: [101, 101], memory: [85, 95], disk: [80, 90], celsius: [70, 80] }[kind]
  return value >= (bad ?? 0) ? 'bad' : value >= (warn ?? 0) ? 'warn' : 'good'
}

/** Mean of a column over the machines that report it; undefined: none does. */
export function meanUsage(usage: Iterable<UsageRow>, column: 0 | 1 | 2 | 3): number | undefined {
  const values = [...usage].flatMap((row) => row[column] ?? [])
  return values.length === 0 ? undefined : Math.round(values.reduce((sum, value) => sum + value, 0) / values.length)
}
