/** A node → the card of the dashboard: its state first, and why it is not ready in one sentence. */
import { suspectedLinkAnnotation } from '../node/lifecycle-annotations.ts'
import { allowsRemoteReboot } from '../node/reboot-annotations.ts'
import type { Node, NodeCondition } from '../node.ts'
import { quantityToNumber } from '../quantity.ts'
import { secondsOf, sentence } from './card-words.ts'
import type { NodeCard, NodeState } from './dashboard-messages.ts'

export type NodeCardFacts = {
  /** Pods that are bound to the node. */
  readonly pods: number
  /** RFC 3339: when its lease was renewed last. */
  readonly renewed: string | undefined
}

/** The card of a node, as `kubectl describe node` would describe it. */
export function nodeCard(node: Node, { pods, renewed }: NodeCardFacts): NodeCard {
  const { metadata, spec, status } = node
  const conditions = status?.conditions ?? []
  const zone = metadata.labels?.['topology.kubernetes.io/zone']
  const created = secondsOf(metadata.creationTimestamp)
  return {
    name: metadata.name ?? '',
    pods,
    ...stateFacts(node, renewed),
    ...(zone && { zone }),
    ...(spec?.unschedulable && { cordoned: true }),
    ...(allowsRemoteReboot(node) && { mayReboot: true }),
    ...powerFacts(conditionOf(conditions, 'UnderVoltage')),
    ...healthFacts(conditions),
    ...capacityFacts(status?.capacity),
    ...systemFacts(status),
    ...(created !== undefined && { created }),
  }
}

type NodeStatus = NonNullable<Node['status']>

/** Its state, since when, and what is known of a machine that is silent. */
function stateFacts({ metadata, status }: Node, renewed: string | undefined) {
  const conditions = status?.conditions ?? []
  const ready = conditionOf(conditions, 'Ready')
  const state = stateOf(ready)
  const since = secondsOf(ready?.lastTransitionTime)
  const seen = state === 'lost' ? secondsOf(renewed) : undefined
  const lostLink = state === 'lost' ? metadata.annotations?.[suspectedLinkAnnotation] : undefined
  return {
    state,
    ...(state !== 'ready' && { why: whyNotReady(conditions) }),
    ...(since !== undefined && { since }),
    ...(seen !== undefined && { seen }),
    ...(lostLink && { lostLink }),
  }
}

function powerFacts(voltage: NodeCondition | undefined): Pick<NodeCard, 'underVoltage' | 'powerMeasured'> {
  if (voltage === undefined) return {}
  const measured = voltage.status === 'Unknown' ? {} : { powerMeasured: true as const }
  if (voltage.status === 'True') return { underVoltage: 'now', ...measured }
  return voltage.reason === 'SupplyWasTooWeak' ? { underVoltage: 'before', ...measured } : measured
}

function healthFacts(conditions: readonly NodeCondition[]): Pick<NodeCard, 'wear' | 'problems' | 'link'> {
  const wear = wearOf(conditionOf(conditions, 'StorageWear'))
  const problems = problemsOf(conditions)
  return {
    ...(wear && { wear }),
    ...(problems.length > 0 && { problems }),
    ...(conditionOf(conditions, 'WeakWifi')?.status === 'True' && { link: 'weak' as const }),
  }
}

function capacityFacts({ memory, cpu, pods }: NonNullable<NodeStatus['capacity']> = {}) {
  const [podCapacity, memoryBytes, cpus] = [pods, memory, cpu].map(amount)
  return {
    ...(podCapacity !== undefined && { podCapacity }),
    ...(memoryBytes !== undefined && { memoryBytes }),
    ...(cpus !== undefined && { cpus }),
  }
}

function systemFacts({ addresses = [], nodeInfo }: NodeStatus = {}): Pick<NodeCard, 'version' | 'system' | 'address'> {
  const address = addresses.find(({ type }) => type === 'InternalIP')?.address
  const { kubeletVersion: version, osImage, architecture } = nodeInfo ?? {}
  const system = [osImage, architecture].filter((part) => part).join(', ')
  return { ...(version && { version }), ...(system && { system }), ...(address && { address }) }
}

function stateOf(ready: NodeCondition | undefined): NodeState {
  if (ready === undefined || ready.reason === 'NodeStatusNeverUpdated') return 'new'
  return ready.status === 'True' ? 'ready' : ready.status === 'Unknown' ? 'lost' : 'not-ready'
}

/** One sentence, with a likely cause where the last conditions of the node name one. */
export function whyNotReady(conditions: readonly NodeCondition[]): string {
  const ready = conditionOf(conditions, 'Ready')
  if (ready === undefined || ready.reason === 'NodeStatusNeverUpdated') {
    return 'The node has joined, but its agent has not reported yet.'
  }
  if (ready.status !== 'Unknown') return sentence(ready.message || ready.reason || 'The agent gives no reason')
  const silence =
    ready.message === 'Kubelet stopped posting node status.'
      ? 'The node stopped reporting: it has no power, no network, or its agent is stopped'
      : ready.message || 'The controller has no contact with the node'
  const suspected = conditions.find(({ type, status }) => status === 'True' && causes.has(type))
  if (suspected === undefined) return sentence(silence)
  return `${sentence(silence).replace(/\.$/, '')}; before, it reported ${causes.get(suspected.type)}.`
}

/** What is often the reason why a machine falls silent. */
const causes: ReadonlyMap<string, string> = new Map([
  ['UnderVoltage', 'a supply voltage that is too low'],
  ['HighTemperature', 'a temperature above its limit'],
  ['ReadOnlyFilesystem', 'a read-only file system'],
  ['StorageWear', 'a worn disk'],
  ['KernelDeadlock', 'a task that the kernel could not finish'],
  ['WeakWifi', 'a weak Wi-Fi signal'],
  ['MemoryPressure', 'too little free memory'],
])

/** Conditions that are True and should not be, without those that the card shows elsewhere. */
function problemsOf(conditions: readonly NodeCondition[]) {
  const elsewhere = ['Ready', 'UnderVoltage']
  return conditions
    .filter(({ type, status }) => status === 'True' && !elsewhere.includes(type))
    .map(({ type, message }) => ({ type, message: sentence(message || type) }))
}

/** `mmcblk0 has used up to 30 % of its life` (agent/health/storage.ts) → `30 %`. */
function wearOf(condition: NodeCondition | undefined): string | undefined {
  if (condition === undefined || condition.status === 'Unknown') return undefined
  const message = condition.message ?? ''
  const [, percent] = /up to (\d{1,3}) %/.exec(message) ?? []
  return percent === undefined ? (message.includes('more than the whole') ? 'over 100 %' : undefined) : `${percent} %`
}

function conditionOf(conditions: readonly NodeCondition[], type: string): NodeCondition | undefined {
  return conditions.find((condition) => condition.type === type)
}

function amount(quantity: string | number | undefined): number | undefined {
  if (quantity === undefined) return undefined
  const value = quantityToNumber(quantity)
  return Number.isFinite(value) ? value : undefined
}
