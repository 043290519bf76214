/** The labels that a node may set on itself. */
import { poolLabelDomain } from '../storage/pools.ts'

/** Labels that a node may set on itself, as NodeRestriction lists them. */
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

/**
 * Keys of Kubernetes' own domains, except those that a node may set on itself: only an administrator may set them on a Node. Labels of pools
 * lead pods to the data of their claims, and are set by a controller.
 */
export function isReservedNodeLabel(key: string): boolean {
  const [prefix, name] = key.split('/')
  if (prefix === undefined || name === undefined || allowed.has(key)) return false
  if (prefix === poolLabelDomain || isWithin(prefix, 'node-restriction.kubernetes.io')) return true
  if (isWithin(prefix, 'kubelet.kubernetes.io') || isWithin(prefix, 'node.kubernetes.io')) return false
  return isWithin(prefix, 'kubernetes.io') || isWithin(prefix, 'k8s.io')
}

function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`)
}
