/** Decisions of the scheduler over the largest objects that the API accepts, or that an earlier version stored, in a fleet of 1,000 nodes. */
import { mostSchedulingTerms, mostTermRequirements } from '../../../api/pod/scheduling-terms.ts'
import type { Container, PodAffinityTerm, PodSpec, Toleration } from '../../../api/pod.ts'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import { aNode, aPod, type NodeOverrides, type PodOverrides, requiringNodes } from '../../../api/testing/builders.ts'
import { systemClock } from '../../../daemon/clock.ts'
import type { BudgetCase } from '../../../daemon/testing/turn-budget.ts'
import { type Steps, slices } from '../../../daemon/watchdog/steps.ts'
import { type ClusterCache, cluster } from '../../scheduler/cluster.ts'
import { decide } from '../../scheduler/decision.ts'
import { type DisruptionBudget, readBudget } from '../../scheduler/preemption.ts'
import { storedClass, using } from '../pods-with-claims.ts'
import { aStoredClaim, aStoredVolume } from '../volume-objects.ts'

/** As in the scheduler. */
const sliceMs = 8
const [nodeCount, podCount] = [1_000, 5_000]
/** Values in one object, below the limit. */
const mostValues = 16_000
const hostKey = 'kubernetes.io/hostname'

const many = <T>(count: number, item: (number: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, number) => item(number))
const topologies = many(mostSchedulingTerms, (number) => `topology-${number}`)

/** What a tenant has in the fleet, and the pod that is decided on. */
type SchedulerCase = {
  readonly what: string
  readonly node?: NodeOverrides
  /** Pods that are placed already, each on the next node. */
  readonly placed?: (number: number) => PodOverrides
  readonly count?: number
  readonly pod: PodOverrides
  readonly budgets?: readonly PodDisruptionBudget[]
  /** Claims and volumes. */
  readonly volumes?: (known: ClusterCache) => void
}

/** The act of each decides once; the pod leaves the cluster again. */
export function* schedulerCases(): Iterable<BudgetCase> {
  for (const one of [...termsOfOthers(), ...ownTerms(), ...otherFields(), ...withClaims(), ...preemptions()])
    yield budgetCase(one)
}

function budgetCase({
  what,
  node,
  placed,
  count = podCount,
  pod: over,
  budgets = [],
  volumes,
}: SchedulerCase): BudgetCase {
  let known: ClusterCache | undefined
  const pod = aPod({ name: 'decided', ...over })
  const key = 'default/decided'
  function* readBudgets(): Steps<readonly DisruptionBudget[]> {
    const read: DisruptionBudget[] = []
    for (const budget of budgets) {
      read.push(readBudget(budget))
      yield
    }
    return read
  }
  return {
    what: `a pod ${what}`,
    bytes: JSON.stringify(pod).length,
    prepare: async () => {
      if (known === undefined) {
        known = fleetOf(node, count, placed)
        volumes?.(known)
      }
      known.remove(key)
      known.volumes.release(key)
      known.nominate(key, pod, '')
    },
    act: async () => {
      if (known === undefined) throw new Error('There is no fleet')
      const work = slices(sliceMs, systemClock)
      const { decided } = await work.run(decide({ key, pod }, known, { budgets: readBudgets, random: () => 0.5 }))
      return decided
    },
  }
}

function fleetOf(node: NodeOverrides = {}, count: number, placed?: SchedulerCase['placed']): ClusterCache {
  const known = cluster()
  for (let number = 0; number < nodeCount; number++) {
    const name = `node-${number}`
    const zones = Object.fromEntries(topologies.map((topologyKey) => [topologyKey, `value-${number % 10}`]))
    const allocatable = { cpu: '100', memory: '100Gi', pods: '500' }
    known.putNode(aNode({ allocatable, ...node, name, labels: { [hostKey]: name, ...zones, ...node.labels } }))
  }
  if (placed === undefined) return known
  for (let number = 0; number < count; number++) {
    const name = `placed-${number}`
    known.place(`tenant/${name}`, aPod({ namespace: 'tenant', ...placed(number), name }), `node-${number % nodeCount}`)
  }
  return known
}

type Lists = 'required' | 'preferred'

/** Terms as expensive as the bounds allow: none of the requirements ends the comparison. */
function affinity(lists: Lists, topology: (number: number) => string, own = false): PodSpec['affinity'] {
  const requirements = mostTermRequirements / mostSchedulingTerms
  const term = (number: number): PodAffinityTerm => ({
    topologyKey: topology(number),
    labelSelector: {
      matchExpressions: many(requirements, (one) => ({ key: `k${one}`, operator: 'NotIn', values: [`v${number}`] })),
    },
    namespaceSelector: {},
  })
  const terms = many(mostSchedulingTerms, term)
  const antiAffinity =
    lists === 'required'
      ? { requiredDuringSchedulingIgnoredDuringExecution: terms }
      : { preferredDuringSchedulingIgnoredDuringExecution: terms.map((one) => ({ weight: 1, podAffinityTerm: one })) }
  return own ? { podAffinity: antiAffinity } : { podAntiAffinity: antiAffinity }
}

const byTopology = (number: number) => topologies[number] ?? hostKey
const labelled = (number: number): PodOverrides => ({ labels: { app: `app-${number}` } })

function termsOfOthers(): readonly SchedulerCase[] {
  const equal = (topologyKey: string): PodOverrides => {
    const term: PodAffinityTerm = { topologyKey, labelSelector: {}, namespaceSelector: {} }
    const requiredDuringSchedulingIgnoredDuringExecution = many(2_700, () => term)
    return { spec: { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution } } } }
  }
  const placed = (lists: Lists) => {
    const spec = { affinity: affinity(lists, byTopology) }
    return (number: number): PodOverrides => ({ ...labelled(number), spec })
  }
  return [
    {
      what: 'beside 20 with 2,700 equal terms of a label that no node has',
      count: 20,
      placed: () => equal('x'),
      pod: {},
    },
    { what: 'beside 20 with 2,700 equal terms of a host', count: 20, placed: () => equal(hostKey), pod: {} },
    { what: 'beside 5,000 that avoid it', placed: placed('required'), pod: {} },
    { what: 'beside 5,000 that prefer to avoid it', placed: placed('preferred'), pod: {} },
  ]
}

function ownTerms(): readonly SchedulerCase[] {
  const keys = (number: number) => `topology-${number}`
  const constraints = (whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway'): Partial<PodSpec> => ({
    topologySpreadConstraints: topologies.map((topologyKey) => ({
      ...{ maxSkew: 5_000, topologyKey, whenUnsatisfiable, nodeTaintsPolicy: 'Honor' },
      labelSelector: { matchExpressions: many(4, (one) => ({ key: `k${one}`, operator: 'DoesNotExist' })) },
    })),
  })
  const spread = (what: string, spec: Partial<PodSpec>): SchedulerCase => {
    return { what, placed: (number) => ({ ...labelled(number), namespace: 'default' }), pod: { spec } }
  }
  return [
    { what: 'that avoids 5,000', placed: labelled, pod: { spec: { affinity: affinity('required', keys) } } },
    {
      what: 'that wants to be near 5,000',
      placed: labelled,
      pod: { spec: { affinity: affinity('required', keys, true) } },
    },
    { what: 'that prefers to avoid 5,000', placed: labelled, pod: { spec: { affinity: affinity('preferred', keys) } } },
    spread('that is spread among 5,000', constraints('DoNotSchedule')),
    spread('that is preferably spread among 5,000', constraints('ScheduleAnyway')),
  ]
}

function otherFields(): readonly SchedulerCase[] {
  const values = many(mostValues / 64, (number) => `value-${number + 10}`)
  const expression = (number: number) => ({ key: topologies[number] ?? '', operator: 'NotIn' as const, values })
  const everything = { matchExpressions: many(64, expression) }
  const preferred = many(60, () => ({ weight: 1, preference: { matchExpressions: many(4, expression) } }))
  const tolerations = many(4_000, (number): Toleration => ({ key: `k${number}`, operator: 'Exists' }))
  const taints = many(20, (number) => ({ key: `t${number}`, effect: 'PreferNoSchedule' as const }))
  const ports = (first: number) =>
    many(5_000, (number) => ({ containerPort: 1 + number, hostPort: first + number, protocol: 'TCP' as const }))
  const container: Container = { name: 'main', image: 'a' }
  const listening = (first: number): PodOverrides => ({ containers: [{ ...container, ports: ports(first) }] })
  const amounts = Object.fromEntries(many(8_000, (number) => [`example.com/r${number}`, '1']))
  const images = many(50, (number) => ({ names: many(5, (name) => `i${number}:${name}`), sizeBytes: 100_000_000 }))
  const containers = many(1_200, (number): Container => {
    const resources = { requests: { [`example.com/r${number}`]: '1', cpu: '1m' } }
    return { name: `c${number}`, image: `i${number % 50}:${number % 5}`, resources }
  })
  return [
    { what: 'that excludes nodes by 16,000 values', pod: { spec: requiringNodes(everything) } },
    {
      what: 'with preferred nodes',
      pod: { spec: { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } } },
    },
    { what: 'that tolerates much', node: { taints }, pod: { tolerations } },
    { what: 'with 5,000 host ports beside as many', placed: () => listening(1), count: 100, pod: listening(10_000) },
    { what: 'that requests 8,000 resources', pod: { requests: amounts } },
    { what: 'with 1,200 containers', node: { status: { ...aNode().status, images } }, pod: { containers } },
    { what: 'with 1,200 containers before it runs', pod: { spec: { initContainers: containers } } },
  ]
}

/** Volumes that persons made, ten on each node. */
function withClaims(): readonly SchedulerCase[] {
  const storageClassName = 'local'
  const names = many(8, (number) => `data-${number}`)
  const put =
    (hostname: (number: number) => string, key = hostKey) =>
    (known: ClusterCache) => {
      const mode = { volumeBindingMode: 'WaitForFirstConsumer', provisioner: 'kubernetes.io/no-provisioner' } as const
      known.volumes.putStorageClass(storageClassName, storedClass(storageClassName, mode))
      for (const name of names) {
        known.volumes.putClaim(`default/${name}`, aStoredClaim(name, { spec: { storageClassName } }))
      }
      for (const number of many(10 * nodeCount, (one) => one)) {
        const matchExpressions = [{ key, operator: 'In' as const, values: [hostname(number)] }]
        const nodeAffinity = {
          required: { nodeSelectorTerms: [{ matchExpressions }, ...(key === hostKey ? [] : [{}])] },
        }
        const capacity = { storage: `${1 + (number % 97)}Gi` }
        const spec = { storageClassName, capacity, nodeAffinity }
        known.volumes.putVolume(`volume-${number}`, aStoredVolume(`volume-${number}`, { spec }))
      }
    }
  const one = { spec: using('data-0') }
  return [
    {
      what: 'with a claim, among 10,000 local volumes',
      volumes: put((number) => `node-${number % nodeCount}`),
      pod: one,
    },
    { what: 'with a claim, and 10,000 volumes elsewhere', volumes: put(() => 'nowhere'), pod: one },
    { what: 'with a claim, and 10,000 volumes of several terms', volumes: put(() => 'nowhere', 'place'), pod: one },
    {
      what: 'with 8 claims, among 10,000 local volumes',
      volumes: put((number) => `node-${number % nodeCount}`),
      pod: { spec: using(...names) },
    },
  ]
}

function preemptions(): readonly SchedulerCase[] {
  /** One on each node. */
  const count = nodeCount
  const full = { requests: { cpu: '80' }, priority: 0 }
  const spec = { affinity: affinity('required', byTopology) }
  const important = { requests: { cpu: '60' }, priority: 100 }
  const selector = { matchExpressions: many(5_000, (number) => ({ key: `k${number}`, operator: 'DoesNotExist' })) }
  const budget = (number: number): PodDisruptionBudget => ({
    ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: `b${number}`, namespace: 'tenant' } },
    spec: { selector, minAvailable: 1 },
  })
  const preempting = { spec: { ...spec, priority: 100 }, requests: { cpu: '60' } }
  return [
    { what: 'that preempts', count, placed: (number) => ({ ...labelled(number), ...full }), pod: important },
    {
      what: 'that preempts pods that avoid it',
      count,
      placed: (n) => ({ ...labelled(n), ...full, spec }),
      pod: important,
    },
    {
      what: 'that preempts pods it avoids',
      count,
      placed: (number) => ({ ...labelled(number), ...full }),
      pod: preempting,
    },
    {
      what: 'that preempts pods with budgets',
      count,
      ...{ placed: (number: number) => ({ ...labelled(number), ...full }), pod: important, budgets: many(20, budget) },
    },
  ]
}
