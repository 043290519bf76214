/** Groups that the fleet serves itself, also what it computes there: usage, and questions about access. */
import { forbidden, type Problem } from '../../../../api/problem.ts'
import { builtInResources, otherForms, type Resource } from '../../../../api/resources.ts'

const ownGroups: ReadonlySet<string> = new Set([
  ...[...builtInResources.all, ...Object.values<Resource>(otherForms)].map(({ group }) => group),
  ...['metrics.k8s.io', 'authentication.k8s.io', 'authorization.k8s.io'],
])

export function isOwnGroup(group: string): boolean {
  return ownGroups.has(group)
}

/** Nothing else may serve kinds of such a group. */
export function ownGroupProblems(field: string, group: string): readonly Problem[] {
  return isOwnGroup(group)
    ? [forbidden(field, `the kinds of ${group || 'the core group'} are served by the fleet itself`)]
    : []
}
