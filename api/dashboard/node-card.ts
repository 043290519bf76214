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
  const ready = conditionOf(conditions, 'Ready')
  const state = stateOf(ready)
  const why = state === 'ready' ? undefined : whyNotReady(conditions)
  const voltage = conditionOf(conditions, 'UnderVoltage')
  const underVoltage =
    voltage?.status === 'True' ? 'now' : voltage?.reason === 'SupplyWasTooWeak' ? 'before' : undefined
  const wear = wearOf(conditionOf(conditions, 'StorageWear'))
  const problems = problemsOf(conditions)
  const zone = metadata.labels?.['topology.kubernetes.io/zone']
  const seen = state === 'lost' ? secondsOf(renewed) : undefined
  const lostLink = state === 'lost' ? metadata.annotations?.[suspectedLinkAnnotation] : undefined
  const since = secondsOf(ready?.lastTransitionTime)
  const created = secondsOf(metadata.creationTimestamp)
  const { memory, cpu, pods: podAmount } = status?.capacity ?? {}
  const [podCapacity, memoryBytes, cpus] = [podAmount, memory, cpu].map(amount)
  const address = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address
  const { kubeletVersion: version, osImage, architecture } = status?.nodeInfo ?? {}
  const system = [osImage, architecture].filter((part) => part).join(', ')
  return {
    name: metadata.name ?? '',
    state,
    pods,
    ...(why && { why }),
    ...(since !== undefined && { since }),
    ...(seen !== undefined && { seen }),
    ...(zone && { zone }),
    ...(spec?.unschedulable && { cordoned: true }),
    ...(allowsRemoteReboot(node) && { mayReboot: true }),
    ...(underVoltage && { underVoltage }),
    ...(voltage && voltage.status !== 'Unknown' && { powerMeasured: true }),
    ...(wear && { wear }),
    ...(problems.length > 0 && { problems }),
    ...(conditionOf(conditions, 'WeakWifi')?.status === 'True' && { link: 'weak' }),
    ...(lostLink && { lostLink }),
    ...(podCapacity !== undefined && { podCapacity }),
    ...(memoryBytes !== undefined && { memoryBytes }),
    ...(cpus !== undefined && { cpus }),
    ...(version && { version }),
    ...(system && { system }),
    ...(address && { address }),
    ...(created !== undefined && { created }),
  }
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
