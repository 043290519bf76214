/** Names of resources, and where each may be used (pkg/apis/core/helper/helpers.go and validation.go of Kubernetes). */
import { qualifiedNameProblem } from '../names.ts'
import { invalid, type Problem } from '../problem.ts'
import { problemsWith } from '../validation/metadata-validation.ts'

const compute = ['cpu', 'memory', 'ephemeral-storage']
const computeOfQuotas = [...compute, ...compute.flatMap((name) => [`requests.${name}`, `limits.${name}`])]
const objectCounts = [
  ...['pods', 'services', 'services.nodeports', 'services.loadbalancers', 'secrets', 'configmaps'],
  ...['resourcequotas', 'replicationcontrollers', 'persistentvolumeclaims'],
]
const ofQuotas = new Set([...computeOfQuotas, ...objectCounts, 'requests.storage'])
const standard = new Set([...ofQuotas, 'storage'])

/** Kubernetes' own names: without a prefix, or with one of kubernetes.io. */
export function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/')
}

/** A vendor's name, such as that of a device (IsExtendedResourceName). */
export function isExtendedResource(name: string): boolean {
  if (isNative(name) || name.startsWith('requests.')) return false
  return qualifiedNameProblem(`requests.${name}`) === undefined
}

/** An extended resource as quotas name it: `requests.example.com/camera`. */
export function isExtendedInQuotas(name: string): boolean {
  return !isNative(name) && name.startsWith('requests.')
}

/** Requests may be smaller than limits. */
export function isOvercommitAllowed(name: string): boolean {
  return isNative(name) && !name.startsWith('hugepages-')
}

export function isWholeNumber(name: string): boolean {
  return objectCounts.includes(name) || isExtendedResource(name)
}

export function isStandardOfQuotas(name: string): boolean {
  return ofQuotas.has(name) || isHugePagesOfQuotas(name)
}

export function isHugePagesOfQuotas(name: string): boolean {
  return name.startsWith('hugepages-') || name.startsWith('requests.hugepages-')
}

/** What is wrong with the name of any resource. */
export function resourceNameProblems(field: string, name: string): readonly Problem[] {
  const problems = problemsWith(field, name, qualifiedNameProblem)
  if (problems.length > 0 || name.includes('/') || standard.has(name) || isHugePagesOfQuotas(name)) return problems
  return [invalid(field, name, 'must be a standard resource type or fully qualified')]
}

/** What is wrong with the name of a resource that a container asks for. */
export function containerResourceProblems(field: string, name: string): readonly Problem[] {
  const problems = resourceNameProblems(field, name)
  if (!name.includes('/')) {
    const isKnown = compute.includes(name) || name.startsWith('hugepages-')
    return isKnown ? problems : [...problems, invalid(field, name, 'must be a standard resource for containers')]
  }
  if (isNative(name) || isExtendedResource(name)) return problems
  return [...problems, invalid(field, name, "doesn't follow extended resource name standard")]
}

/** What is wrong with the name of a resource in a quota. */
export function quotaResourceProblems(field: string, name: string): readonly Problem[] {
  const problems = resourceNameProblems(field, name)
  if (name.includes('/') || isStandardOfQuotas(name)) return problems
  return [...problems, invalid(field, name, 'must be a standard resource for quota')]
}
