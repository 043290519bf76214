/** Finds evictions among the writes of the store: pods that the controller marks for deletion because of their node. */
import type { Pod } from '../../api/pod.ts'
import type { Fact } from './facts.ts'

export function evictionFinder(): (fact: Fact) => Fact | undefined {
  const evicted = new Set<string>()
  return (fact) => {
    if (fact.kind !== 'stored' || fact.resource !== 'pods' || fact.body === undefined) return undefined
    const { metadata, spec, status } = JSON.parse(fact.body) as Pod
    const { uid = '', name = '', deletionTimestamp } = metadata
    const isMarked = status?.conditions?.some(
      ({ type, reason }) => type === 'DisruptionTarget' && reason === 'DeletionByTaintManager',
    )
    if (deletionTimestamp === undefined || isMarked !== true || evicted.has(uid)) return undefined
    evicted.add(uid)
    return { kind: 'evicted', node: spec.nodeName ?? '', pod: name }
  }
}
