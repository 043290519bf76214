/** `allowedTopologies` of a class: where its volumes can be made. Pure. */
import type { StorageClass } from './storage-class.ts'

/** `labels`: of a node. Without topologies every node is allowed (v1helper.MatchTopologySelectorTerms). */
export function isTopologyAllowed(
  { allowedTopologies = [] }: Pick<StorageClass, 'allowedTopologies'>,
  labels: { readonly [key: string]: string },
): boolean {
  if (allowedTopologies.length === 0) return true
  return allowedTopologies.some(({ matchLabelExpressions = [] }) => {
    const isMet = matchLabelExpressions.every(({ key, values }) => {
      const value = labels[key]
      return value !== undefined && values.includes(value)
    })
    return matchLabelExpressions.length > 0 && isMet
  })
}
