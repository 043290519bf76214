/** Admission of a pod on this node: the decision and its reason. A rejection is final. */

import { hostIPsMeet } from '../../../api/network/host-port-address.ts'
import { isDevice } from '../../../api/node/device-names.ts'
import { shutdownRefusal } from '../../../api/node/node-shutdown.ts'
import type { PressureType } from '../../../api/node.ts'
import { isCriticalPod } from '../../../api/pod/critical-pod.ts'
import { qosClassOf } from '../../../api/pod/qos-class.ts'
import { isSafeSysctl } from '../../../api/pod/sysctls.ts'
import { untolerated } from '../../../api/pod/tolerations.ts'
import type { Container, Pod } from '../../../api/pod.ts'
import { milliValue, quantityToNumber } from '../../../api/quantity.ts'
import type { PortMapping } from '../../runtime/runtime.ts'
import { hostPorts } from '../options/container-options.ts'
import { isSidecar } from '../record/pod-containers.ts'
import { podsToPreempt } from './preemption.ts'

export type AdmitResult =
  /** `preempt`: the pods that are evicted to make room for it. */
  | { readonly admit: true; readonly preempt?: readonly Pod[] }
  | { readonly admit: false; readonly reason: string; readonly message: string }

/** Quantities as in Node.status.allocatable. */
export type Allocatable = { readonly [resource: string]: string | number }

/**
 * `others`: the pods that already run on this node. `pressures`: the pressure conditions of the node. `isShuttingDown`: every pod
 * is rejected.
 */
export function admit(
  pod: Pod,
  others: readonly Pod[],
  allocatable: Allocatable,
  pressures: readonly PressureType[] = [],
  isShuttingDown = false,
): AdmitResult {
  const critical = isCriticalPod(pod)
  if (!critical && !bears(pod, pressures)) {
    return { admit: false, reason: 'Evicted', message: `The node had condition: [${pressures.join(' ')}]. ` }
  }
  if (isShuttingDown) return { admit: false, ...shutdownRefusal }
  const unsafe = (pod.spec.securityContext?.sysctls ?? []).find(({ name }) => !isSafeSysctl(name))
  if (unsafe !== undefined) {
    // Admit in pkg/kubelet/sysctl/allowlist.go
    return { admit: false, reason: 'SysctlForbidden', message: `forbidden sysctl: "${unsafe.name}" not allowlisted` }
  }
  const foreign = foreignSystem(pod)
  if (foreign !== undefined) return foreign
  const [first, ...more] = insufficient(pod, others, allocatable)
  if (first !== undefined && !critical) return outOf(first)
  const taken = others.flatMap(hostPorts)
  if (hostPorts(pod).some((port) => taken.some((other) => collide(port, other)))) {
    const message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    return { admit: false, reason: 'NodePorts', message }
  }
  return first === undefined ? { admit: true } : makeRoom(pod, others, [first, ...more])
}

/**
 * Under memory pressure only, a pod is admitted that is not BestEffort or tolerates the taint; under other pressure none
 * (Admit in pkg/kubelet/eviction/eviction_manager.go).
 */
function bears(pod: Pod, pressures: readonly PressureType[]): boolean {
  if (pressures.length === 0) return true
  if (pressures.some((pressure) => pressure !== 'MemoryPressure')) return false
  const taint = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' } as const
  return (
    qosClassOf(pod.spec) !== 'BestEffort' ||
    untolerated([taint], pod.spec.tolerations ?? [], ['NoSchedule']).length === 0
  )
}

const system = 'linux'

/** By its label or its field (rejectPodAdmissionBasedOnOSSelector and ...OSField in pkg/kubelet/lifecycle/predicate.go). */
function foreignSystem({ metadata, spec }: Pod): AdmitResult | undefined {
  const label = metadata.labels?.['kubernetes.io/os']
  if (label !== undefined && label !== system) {
    const message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
    return { admit: false, reason: 'PodOSSelectorNodeLabelDoesNotMatch', message }
  }
  if (spec.os === undefined || spec.os.name === system) return undefined
  const message = "Failed to admit pod as the OS field doesn't match node OS"
  return { admit: false, reason: 'PodOSNotSupported', message }
}

type Insufficient = {
  readonly resource: string
  readonly needed: number
  readonly used: number
  readonly capacity: number
}

function insufficient(pod: Pod, others: readonly Pod[], allocatable: Allocatable): readonly Insufficient[] {
  return needs(pod).flatMap(([resource, needed]) => {
    // A device that is not declared does not exist; before the first inspection this is unknown. Other extended
    // resources may be managed outside of the node (pkg/kubelet/lifecycle/predicate.go, removeMissingExtendedResources).
    const absent = isDevice(resource) && 'pods' in allocatable ? 0 : undefined
    const capacity = amount(resource, allocatable[resource]) ?? absent
    const used = others.reduce((sum, other) => sum + requestOf(other, resource), 0)
    if (needed === 0 || capacity === undefined || used + needed <= capacity) return []
    return [{ resource, needed, used, capacity }]
  })
}

function outOf({ resource, needed, used, capacity }: Insufficient): AdmitResult {
  const message = `Node didn't have enough resource: ${resource}, requested: ${needed}, used: ${used}, capacity: ${capacity}`
  return { admit: false, reason: `OutOf${resource}`, message }
}

function makeRoom(pod: Pod, others: readonly Pod[], lacks: readonly Insufficient[]): AdmitResult {
  const wanting = new Map(lacks.map(({ resource, needed, used, capacity }) => [resource, needed - (capacity - used)]))
  const answer = podsToPreempt(pod, others, wanting, requestOf)
  if (answer.possible) return { admit: true, preempt: answer.pods }
  const still = [...answer.wanting].map(([resource, lacking]) => `(res: ${resource}, q: ${lacking}), `).join('')
  const because = `preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [${still}]`
  const message = `Unexpected error while attempting to recover from admission failure: ${because}`
  return { admit: false, reason: 'UnexpectedAdmissionError', message }
}

function requestOf(pod: Pod, resource: string): number {
  return needs(pod).find(([name]) => name === resource)?.[1] ?? 0
}

function needs({ spec }: Pod): readonly (readonly [string, number])[] {
  const request = (resource: string, { resources }: Container) =>
    amount(resource, resources?.requests?.[resource] ?? resources?.limits?.[resource]) ?? 0
  /** The sum of all containers, or the request of one init container plus the sidecars started before it, if that is more. */
  const total = (resource: string) => {
    let sidecars = 0
    let most = 0
    for (const container of spec.initContainers ?? []) {
      most = Math.max(most, sidecars + request(resource, container))
      if (isSidecar(container)) sidecars += request(resource, container)
    }
    const regular = spec.containers.map((container) => request(resource, container)).reduce((a, b) => a + b, 0)
    return Math.max(most, regular + sidecars) + (amount(resource, spec.overhead?.[resource]) ?? 0)
  }
  const all = [...(spec.initContainers ?? []), ...spec.containers]
  const named = all.flatMap(({ resources }) => Object.keys({ ...resources?.limits, ...resources?.requests }))
  const extended = [...new Set(named.filter((resource) => resource.includes('/')))]
  return [
    ['pods', 1],
    ['cpu', total('cpu')],
    ['memory', total('memory')],
    ['ephemeral-storage', total('ephemeral-storage')],
    ...extended.map((resource) => [resource, total(resource)] as const),
  ]
}

/** cpu in thousandths, other resources in units (pkg/kubelet/lifecycle/predicate.go). */
function amount(resource: string, quantity: string | number | undefined): number | undefined {
  if (quantity === undefined) return undefined
  return resource === 'cpu' ? milliValue(quantity) : quantityToNumber(quantity)
}

function collide(a: PortMapping, b: PortMapping): boolean {
  return a.hostPort === b.hostPort && a.protocol === b.protocol && hostIPsMeet(a.hostIP, b.hostIP)
}
