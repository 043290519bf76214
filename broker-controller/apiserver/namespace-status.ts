/** The conditions of a namespace during its deletion (pkg/controller/namespace/deletion/status_condition_utils.go). */
import type { Namespace } from '../../api/namespace.ts'
import type { NamespaceContent, RemainingContent } from './aggregator/namespace-content.ts'

type NamespaceStatus = NonNullable<Namespace['status']>
type NamespaceCondition = NonNullable<NamespaceStatus['conditions']>[number]

/** The status of a namespace that is being deleted; the same object where nothing changed. `now`: RFC 3339. */
export function deletionStatus(
  status: Namespace['status'],
  { remaining, failures, undiscovered }: NamespaceContent,
  now: string,
): NamespaceStatus {
  const present = status?.conditions ?? []
  const wanted = [
    discoveryCondition(undiscovered),
    parsingCondition,
    failureCondition(failures),
    contentCondition(remaining),
    finalizersCondition(remaining),
  ]
  const conditions = wanted.map((condition) => {
    const before = present.find(({ type }) => type === condition.type)
    if (before !== undefined && isSame(before, condition)) return before
    const lastTransitionTime = before?.status === condition.status ? (before.lastTransitionTime ?? now) : now
    return { ...condition, lastTransitionTime }
  })
  const others = present.filter(({ type }) => !conditions.some((condition) => condition.type === type))
  const isUnchanged = status?.phase === 'Terminating' && conditions.every((condition) => present.includes(condition))
  return isUnchanged ? status : { ...status, phase: 'Terminating', conditions: [...others, ...conditions] }
}

function isSame(a: NamespaceCondition, b: NamespaceCondition): boolean {
  return a.status === b.status && a.reason === b.reason && a.message === b.message
}

/** As client-go words what aggregated discovery shows as stale (discovery/aggregated_discovery.go, StaleGroupVersionError). */
function discoveryCondition(undiscovered: readonly string[]): NamespaceCondition {
  const type = 'NamespaceDeletionDiscoveryFailure'
  if (undiscovered.length === 0) {
    return { type, status: 'False', reason: 'ResourcesDiscovered', message: 'All resources successfully discovered' }
  }
  const stale = undiscovered.map((version) => `${version}: stale GroupVersion discovery: ${version}`).sort()
  const why = `unable to retrieve the complete list of server APIs: ${stale.join(', ')}`
  const message = `Discovery failed for some groups, ${stale.length} failing: ${why}`
  return { type, status: 'True', reason: 'DiscoveryFailed', message }
}

/** It is never True: all versions are parsed when they are registered. */
const parsingCondition: NamespaceCondition = {
  type: 'NamespaceDeletionGroupVersionParsingFailure',
  status: 'False',
  reason: 'ParsedGroupVersions',
  message: 'All legacy kube types successfully parsed',
}

function failureCondition(failures: readonly string[]): NamespaceCondition {
  const type = 'NamespaceDeletionContentFailure'
  if (failures.length === 0) {
    const message = 'All content successfully deleted, may be waiting on finalization'
    return { type, status: 'False', reason: 'ContentDeleted', message }
  }
  const texts = failures.toSorted().join(', ')
  const message = `Failed to delete all resource types, ${failures.length} remaining: ${texts}`
  return { type, status: 'True', reason: 'ContentDeletionFailed', message }
}

function contentCondition(remaining: readonly RemainingContent[]): NamespaceCondition {
  const type = 'NamespaceContentRemaining'
  if (remaining.length === 0) {
    return { type, status: 'False', reason: 'ContentRemoved', message: 'All content successfully removed' }
  }
  const counts = remaining
    .map(({ kind: { name, group }, finalizers }) => `${name}.${group} has ${finalizers.length} resource instances`)
    .sort()
  const message = `Some resources are remaining: ${counts.join(', ')}`
  return { type, status: 'True', reason: 'SomeResourcesRemain', message }
}

function finalizersCondition(remaining: readonly RemainingContent[]): NamespaceCondition {
  const type = 'NamespaceFinalizersRemaining'
  const counts = new Map<string, number>()
  for (const name of remaining.flatMap(({ finalizers }) => finalizers.flat())) {
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  if (counts.size === 0) {
    const message = 'All content-preserving finalizers finished'
    return { type, status: 'False', reason: 'ContentHasNoFinalizers', message }
  }
  const held = [...counts].sort().map(([name, count]) => `${name} in ${count} resource instances`)
  const message = `Some content in the namespace has finalizers remaining: ${held.join(', ')}`
  return { type, status: 'True', reason: 'SomeFinalizersRemain', message }
}
