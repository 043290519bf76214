/**
 * What an object counts for in the quotas of its namespace (pkg/quota/v1/evaluator/core and
 * staging/src/k8s.io/apiserver/pkg/quota/v1/generic of Kubernetes).
 */
import {
  amountNamed,
  limitsOfPod,
  type ResourceAmounts,
  requestsOfPod,
  sumOfAmounts,
} from '../../../api/limits/resource-amounts.ts'
import { isExtendedInQuotas, isExtendedResource, isHugePagesOfQuotas } from '../../../api/limits/resource-names.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { Service } from '../../../api/network/service.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Container, Pod } from '../../../api/pod.ts'
import { compareQuantities } from '../../../api/quantity.ts'
import type { BuiltInTypes, Resource } from '../../../api/resources.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import { classOfClaim } from '../../../api/storage/volume-matching.ts'

export type CountedKind = Pick<Resource, 'id' | 'name' | 'group' | 'namespaced'>

/** Events do not count for a quota: authors do not create them (DefaultIgnoredResources). */
export function isCounted({ namespaced, name }: CountedKind): boolean {
  return namespaced && name !== 'events'
}

const compute = ['cpu', 'memory', 'ephemeral-storage'] as const
const ofPods = new Set([
  'pods',
  ...compute.flatMap((resource) => [resource, `requests.${resource}`, `limits.${resource}`]),
])
const ofServices = new Set(['services', 'services.nodeports', 'services.loadbalancers'])
/** Named in quotas as in paths (legacyObjectCountAliases). */
const aliases = ['configmaps', 'replicationcontrollers', 'resourcequotas', 'secrets']

/** Those of `names` that objects of the kind count for. */
export function resourcesOfKind(kind: CountedKind, names: readonly string[]): readonly string[] {
  return isCounted(kind) ? names.filter((name) => counts(kind, name)) : []
}

function counts(kind: CountedKind, name: string): boolean {
  if (name === countName(kind)) return true
  switch (kind.id) {
    case 'pods':
      return ofPods.has(name) || isHugePagesOfQuotas(name) || isExtendedInQuotas(name)
    case 'services':
      return ofServices.has(name)
    case 'persistentvolumeclaims':
      return isOfClaims(name)
    default:
      return kind.id === name && aliases.includes(name)
  }
}

const ofClaims = ['persistentvolumeclaims', 'requests.storage']
/** Before it stands the name of the class, after it one of `ofClaims`. */
const ofStorageClass = '.storageclass.storage.k8s.io/'

function isOfClaims(name: string): boolean {
  const [last, className] = name.split(ofStorageClass).reverse()
  return ofClaims.includes(last ?? '') && className !== ''
}

function countName({ name, group }: CountedKind): string {
  return group === '' ? `count/${name}` : `count/${name}.${group}`
}

export function usageOf(kind: CountedKind, object: AnyObject, nowMs: number): ResourceAmounts {
  const one = { [countName(kind)]: 1 }
  switch (kind.id) {
    case 'pods':
      return { ...one, ...usageOfPod(object as BuiltInTypes['pods'], nowMs) }
    case 'services':
      return { ...one, ...usageOfService(object as BuiltInTypes['services']) }
    case 'persistentvolumeclaims':
      return { ...one, ...usageOfClaim(object as BuiltInTypes['persistentvolumeclaims']) }
    default:
      return aliases.includes(kind.id) ? { ...one, [kind.id]: 1 } : one
  }
}

/** A pod that has ended, or that is long past its grace period, counts as an object only (QuotaV1Pod). */
function usageOfPod(pod: Pod, nowMs: number): ResourceAmounts {
  const endMs = countedUntilMs(pod)
  if (isFinished(pod) || (endMs !== undefined && nowMs > endMs)) return {}
  const { spec } = pod
  const overhead = spec.overhead ?? {}
  const limits = limitsOfPod(spec)
  const limited = Object.entries(overhead).filter(([name]) => amountNamed(limits, name) !== undefined)
  return {
    pods: 1,
    ...computeUsage(sumOfAmounts(requestsOfPod(spec), overhead), sumOfAmounts(limits, Object.fromEntries(limited))),
  }
}

/** When a pod that is being deleted ceases to count, if its node does not confirm the deletion; undefined: it is not deleted. */
export function countedUntilMs({ metadata }: AnyObject): number | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return undefined
  return Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000
}

function computeUsage(requests: ResourceAmounts, limits: ResourceAmounts): ResourceAmounts {
  const request = Object.entries(requests).flatMap(([name, amount]) => {
    if (isExtendedResource(name)) return [[`requests.${name}`, amount] as const]
    const isNamed = compute.some((one) => one === name) || name.startsWith('hugepages-')
    return isNamed ? [[name, amount] as const, [`requests.${name}`, amount] as const] : []
  })
  const limit = compute.flatMap((name) => {
    const amount = amountNamed(limits, name)
    return amount === undefined ? [] : [[`limits.${name}`, amount] as const]
  })
  return Object.fromEntries([...request, ...limit])
}

/** A claim that grows counts with the larger size (pvcEvaluator.getStorageUsage). */
function usageOfClaim({ metadata, spec = {}, status = {} }: PersistentVolumeClaim): ResourceAmounts {
  const asked = amountNamed(spec.resources?.requests ?? {}, 'storage')
  const allocated = amountNamed(status.allocatedResources ?? {}, 'storage')
  const isLarger = asked !== undefined && allocated !== undefined && compareQuantities(allocated, asked) > 0
  const storage = isLarger ? allocated : asked
  const all = { persistentvolumeclaims: 1, ...(storage !== undefined && { 'requests.storage': storage }) }
  const className = classOfClaim({ metadata, spec }) ?? ''
  if (className === '') return all
  const ofClass = Object.entries(all).map(([name, amount]) => [`${className}${ofStorageClass}${name}`, amount] as const)
  return { ...all, ...Object.fromEntries(ofClass) }
}

/** A quota of these makes each container state them. */
const demanded = ['cpu', 'memory'].flatMap((name) => [name, `requests.${name}`, `limits.${name}`])

/** What containers of the pod must state for the resources of a quota; undefined: nothing is missing. */
export function missingInPod({ spec }: Pod, resources: readonly string[]): string | undefined {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])]
  const missing = demanded
    .filter((name) => resources.includes(name))
    .sort()
    .flatMap((name) => {
      const without = containers.filter((container) => !states(container, name)).map((container) => container.name)
      return without.length === 0 ? [] : [`${name} for: ${[...new Set(without)].sort().join()}`]
    })
  return missing.length === 0 ? undefined : `must specify ${missing.join('; ')}`
}

function states({ resources = {} }: Container, name: string): boolean {
  return amountNamed(computeUsage(resources.requests ?? {}, resources.limits ?? {}), name) !== undefined
}

/** Node ports that are still to be allocated count, too. */
function usageOfService({ spec = {} }: Service): ResourceAmounts {
  const { type, ports = [], allocateLoadBalancerNodePorts = true } = spec
  const named = ports.filter(({ nodePort = 0 }) => nodePort !== 0).length
  const balanced = allocateLoadBalancerNodePorts ? ports.length : named
  const nodePorts = type === 'NodePort' ? ports.length : type === 'LoadBalancer' ? balanced : 0
  return { services: 1, 'services.nodeports': nodePorts, 'services.loadbalancers': type === 'LoadBalancer' ? 1 : 0 }
}
