/** What may a node's own certificate write into the objects it may write? As Kubernetes' NodeRestriction. */
import { isDeepStrictEqual } from 'node:util'
import { nodeLeaseNamespace } from '../../api/lease.ts'
import type { KubeObject, ObjectMeta } from '../../api/meta.ts'
import type { Node } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import type { ResourceName } from '../../api/resources.ts'

/** Why `node` may not write this; undefined when it may. `previous` is undefined for a new object. */
export function nodeRestriction(
  node: string,
  resource: ResourceName,
  object: KubeObject,
  previous: KubeObject | undefined,
): string | undefined {
  const { name, namespace } = object.metadata
  if (resource === 'nodes') return nodeObject(node, object as Node, previous as Node | undefined)
  if (resource === 'pods') return podObject(node, object as Pod, previous as Pod | undefined)
  if (resource !== 'leases') return undefined
  if (namespace === nodeLeaseNamespace && name === node) return undefined
  return `node "${node}" is only allowed to write its own lease in ${nodeLeaseNamespace}, not "${namespace}/${name}"`
}

function nodeObject(node: string, object: Node, previous: Node | undefined): string | undefined {
  if (object.metadata.name !== node) return `node "${node}" is not allowed to modify node "${object.metadata.name}"`
  const labels = forbiddenLabels(object.metadata, previous?.metadata)
  if (labels.length > 0) return `node "${node}" is not allowed to modify labels: ${labels.join(', ')}`
  if (previous === undefined) return undefined
  if (!isDeepStrictEqual(object.spec?.taints, previous.spec?.taints)) {
    return `node "${node}" is not allowed to modify taints`
  }
  if (!isDeepStrictEqual(object.metadata.ownerReferences, previous.metadata.ownerReferences)) {
    return `node "${node}" is not allowed to modify ownerReferences`
  }
  return undefined
}

function podObject(node: string, object: Pod, previous: Pod | undefined): string | undefined {
  if (previous?.spec.nodeName !== node) return `node "${node}" can only write pods that are bound to it`
  if (isDeepStrictEqual(object.metadata.labels, previous.metadata.labels)) return undefined
  return `node "${node}" cannot update labels through pod status`
}

/** Labels that say where a node stands are the administrator's word, so a stolen certificate cannot attract pods. */
function forbiddenLabels(now: ObjectMeta, before: ObjectMeta | undefined): string[] {
  const labels = now.labels ?? {}
  const earlier = before?.labels ?? {}
  const changed = [...new Set([...Object.keys(labels), ...Object.keys(earlier)])].filter(
    (key) => labels[key] !== earlier[key],
  )
  return changed.filter(isForbidden).sort()
}

const allowed = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
])

function isForbidden(key: string): boolean {
  const [prefix, name] = key.split('/')
  if (prefix === undefined || name === undefined || allowed.has(key)) return false
  if (isWithin(prefix, 'node-restriction.kubernetes.io')) return true
  if (isWithin(prefix, 'kubelet.kubernetes.io') || isWithin(prefix, 'node.kubernetes.io')) return false
  return isWithin(prefix, 'kubernetes.io') || isWithin(prefix, 'k8s.io')
}

function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`)
}
