/** Valid objects for tests, as the store would give them; pass only the fields the test is about. */
import type { Lease } from '../lease.ts'
import type { ObjectMeta, Stored } from '../meta.ts'
import type { Node, NodeCondition, NodeSpec, NodeStatus, Taint } from '../node.ts'
import type { Container, NodeSelectorTerm, Pod, PodPhase, PodSpec, PodStatus, Toleration } from '../pod.ts'
import type { PodDisruptionBudget } from '../pod-disruption-budget.ts'

type Quantities = { readonly [resource: string]: string }
const born = '2026-01-01T00:00:00Z'

export type PodOverrides = {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
  readonly labels?: { readonly [key: string]: string }
  readonly annotations?: { readonly [key: string]: string }
  readonly metadata?: ObjectMeta
  readonly nodeName?: string
  readonly image?: string
  /** Resources of the only container. */
  readonly requests?: Quantities
  readonly limits?: Quantities
  readonly containers?: readonly Container[]
  readonly tolerations?: readonly Toleration[]
  readonly nodeSelector?: { readonly [key: string]: string }
  readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never'
  readonly priority?: number
  readonly spec?: Partial<PodSpec>
  readonly phase?: PodPhase
  readonly status?: PodStatus
}

/** A pod of one container, `default/a-pod`, not yet bound, Pending. */
export function aPod(over: PodOverrides = {}): Pod & Stored<Pod> {
  const name = over.name ?? 'a-pod'
  const resources = given({ requests: over.requests, limits: over.limits })
  const container: Container = {
    name: 'main',
    image: over.image ?? 'busybox:1.36',
    imagePullPolicy: 'IfNotPresent',
    ...(Object.keys(resources).length > 0 ? { resources } : {}),
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: over.namespace ?? 'default',
      uid: over.uid ?? `uid-of-${name}`,
      resourceVersion: '1',
      creationTimestamp: born,
      ...given({ labels: over.labels, annotations: over.annotations }),
      ...over.metadata,
    },
    spec: {
      containers: over.containers ?? [container],
      restartPolicy: over.restartPolicy ?? 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
      ...given({
        nodeName: over.nodeName,
        tolerations: over.tolerations,
        nodeSelector: over.nodeSelector,
        priority: over.priority,
      }),
      ...over.spec,
    },
    status: { phase: over.phase ?? 'Pending', ...over.status },
  }
}

/** Specification of a pod that fits only nodes that match one of these terms. */
export function requiringNodes(...nodeSelectorTerms: NodeSelectorTerm[]): Partial<PodSpec> {
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } }
}

export type NodeOverrides = {
  readonly name?: string
  readonly uid?: string
  readonly labels?: { readonly [key: string]: string }
  readonly annotations?: { readonly [key: string]: string }
  readonly metadata?: ObjectMeta
  readonly taints?: readonly Taint[]
  readonly unschedulable?: boolean
  readonly spec?: NodeSpec
  readonly ready?: NodeCondition['status']
  /** In place of those made from `ready`. */
  readonly conditions?: readonly NodeCondition[]
  readonly allocatable?: Quantities
  readonly bootID?: string
  readonly address?: string
  readonly status?: NodeStatus
}

/** A Ready Raspberry Pi 4 called `pi-01`: four cores, 4 GiB, 110 pods. */
export function aNode(over: NodeOverrides = {}): Node & Stored<Node> {
  const name = over.name ?? 'pi-01'
  const capacity = { cpu: '4', memory: '4Gi', 'ephemeral-storage': '30Gi', pods: '110' }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: over.uid ?? `uid-of-${name}`,
      resourceVersion: '1',
      creationTimestamp: born,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'arm64',
        ...over.labels,
      },
      ...given({ annotations: over.annotations }),
      ...over.metadata,
    },
    spec: { ...given({ taints: over.taints, unschedulable: over.unschedulable }), ...over.spec },
    status: {
      capacity,
      allocatable: { ...capacity, ...over.allocatable },
      conditions: over.conditions ?? conditionsOf(over.ready ?? 'True'),
      addresses: [
        { type: 'InternalIP', address: over.address ?? '192.0.2.11' },
        { type: 'Hostname', address: name },
      ],
      nodeInfo: {
        machineID: `machine-of-${name}`,
        systemUUID: `system-of-${name}`,
        bootID: over.bootID ?? `boot-of-${name}`,
        kernelVersion: '6.6.51+rpt-rpi-v8',
        osImage: 'Debian GNU/Linux 12 (bookworm)',
        containerRuntimeVersion: 'docker://27.3.1',
        kubeletVersion: 'v1.32.4-bramble',
        operatingSystem: 'linux',
        architecture: 'arm64',
      },
      ...over.status,
    },
  }
}

export type LeaseOverrides = {
  readonly name?: string
  readonly renewTime?: string
  readonly annotations?: { readonly [key: string]: string }
  readonly metadata?: ObjectMeta
  readonly spec?: Lease['spec']
}

/** The heartbeat of `pi-01`. */
export function aLease(over: LeaseOverrides = {}): Lease & Stored<Lease> {
  const name = over.name ?? 'pi-01'
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name,
      namespace: 'kube-node-lease',
      uid: `uid-of-lease-${name}`,
      resourceVersion: '1',
      creationTimestamp: born,
      ...given({ annotations: over.annotations }),
      ...over.metadata,
    },
    spec: {
      holderIdentity: name,
      leaseDurationSeconds: 40,
      renewTime: over.renewTime ?? '2026-01-01T00:00:00.000000Z',
      ...over.spec,
    },
  }
}

export type BudgetOverrides = {
  readonly name?: string
  readonly spec?: PodDisruptionBudget['spec']
  readonly status?: Partial<PodDisruptionBudget['status']>
}

/** The budget of the pods labelled `app: web`, observed and with nothing to spare. */
export function aBudget(over: BudgetOverrides = {}): PodDisruptionBudget & Stored<PodDisruptionBudget> {
  const name = over.name ?? 'a-budget'
  const counts = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-of-${name}`,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: born,
    },
    spec: { selector: { matchLabels: { app: 'web' } }, ...over.spec },
    status: { observedGeneration: 1, ...counts, ...over.status },
  }
}

function conditionsOf(ready: NodeCondition['status']): readonly NodeCondition[] {
  const times = { lastHeartbeatTime: born, lastTransitionTime: born }
  const pressure = ready === 'Unknown' ? 'Unknown' : 'False'
  return [
    { type: 'MemoryPressure', status: pressure, reason: 'KubeletHasSufficientMemory', ...times },
    { type: 'DiskPressure', status: pressure, reason: 'KubeletHasNoDiskPressure', ...times },
    { type: 'PIDPressure', status: pressure, reason: 'KubeletHasSufficientPID', ...times },
    { type: 'Ready', status: ready, reason: ready === 'True' ? 'KubeletReady' : 'KubeletNotReady', ...times },
  ]
}

/** The fields that are there: an absent field and one that is undefined differ when objects are compared. */
function given<T extends object>(fields: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Key in keyof T]?: Exclude<T[Key], undefined>
  }
}
