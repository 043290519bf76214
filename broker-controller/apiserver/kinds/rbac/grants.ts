/**
 * Permission to write a role or a binding: a user grants only rights that it has itself (pkg/registry/rbac/escalation_check.go,
 * policybased storages).
 */
import { isDeepStrictEqual } from 'node:util'
import type { ClusterRole } from '../../../../api/access/cluster-role.ts'
import type { ClusterRoleBinding } from '../../../../api/access/cluster-role-binding.ts'
import { type PolicyRule, type Role, rbacGroup } from '../../../../api/access/role.ts'
import type { RoleBinding } from '../../../../api/access/role-binding.ts'
import { notFound } from '../../../../api/api-error.ts'
import { type Identity, mastersGroup } from '../../../../api/identity.ts'
import { resources } from '../../../../api/resources.ts'
import { withBindingDefaults } from '../../../../api/validation/rbac-validation.ts'
import { escalationProblem } from '../../authorization/rbac/escalation.ts'
import { forbid } from '../../handlers/resource-request.ts'
import type { ResourceNeeds, UpdateFacts } from '../../handlers/strategy.ts'

type AnyRole = Role | ClusterRole
type AnyBinding = RoleBinding | ClusterRoleBinding
type Needs = Pick<ResourceNeeds, 'access'>

/** `asked`: the name in the path, '' for a new object. Throws Forbidden. */
export async function refuseEscalation(
  role: AnyRole,
  { old, requester }: Pick<UpdateFacts<AnyRole>, 'requester'> & { readonly old?: AnyRole },
  { access }: Needs,
): Promise<void> {
  if (requester.groups.includes(mastersGroup) || (old !== undefined && changesOwnersOnly(old, role))) return
  const { namespace = '', name = '' } = role.metadata
  const resource = role.kind === 'Role' ? resources.roles : resources.clusterroles
  const asked = old === undefined ? '' : name
  if (await isPermitted(requester, { verb: 'escalate', resource: resource.name, name: asked, namespace }, access))
    return
  const own = access.rulesOf(requester, namespace)
  const problem = escalationProblem(requester, own, role.rules ?? [])
  if (problem !== undefined) throw forbid(resource, name, problem)
  if (!isAggregated(role) && !(old !== undefined && isAggregated(old))) return
  // It gathers the rules of any role that will have such a label.
  if (escalationProblem(requester, own, everything) === undefined) return
  throw forbid(resource, name, 'must have cluster-admin privileges to use the aggregationRule')
}

const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

function isAggregated(role: AnyRole): boolean {
  return role.kind === 'ClusterRole' && (role.aggregationRule?.clusterRoleSelectors ?? []).length > 0
}

/** Throws Forbidden, and NotFound for a role that is not there, whose rights cannot be compared. */
export async function refuseBinding(
  given: AnyBinding,
  { old, requester }: Pick<UpdateFacts<AnyBinding>, 'requester'> & { readonly old?: AnyBinding },
  { access }: Needs,
): Promise<void> {
  if (requester.groups.includes(mastersGroup) || (old !== undefined && changesOwnersOnly(old, given))) return
  const { metadata, roleRef, kind } = withBindingDefaults(given)
  const { namespace = '', name = '' } = metadata
  const role = roleRef.kind === 'Role' ? resources.roles : resources.clusterroles
  if (await isPermitted(requester, { verb: 'bind', resource: role.name, name: roleRef.name, namespace }, access)) return
  const rules = access.rulesOfRole(roleRef, namespace)
  if (rules === undefined) throw notFound(role, roleRef.name)
  const problem = escalationProblem(requester, access.rulesOf(requester, namespace), rules)
  const resource = kind === 'RoleBinding' ? resources.rolebindings : resources.clusterrolebindings
  if (problem !== undefined) throw forbid(resource, name, problem)
}

type Asked = { readonly verb: string; readonly resource: string; readonly name: string; readonly namespace: string }

async function isPermitted(requester: Identity, asked: Asked, access: Needs['access']): Promise<boolean> {
  const fields = new Map<string, string>()
  const attributes = { kind: 'resource', group: rbacGroup, subresource: '', fields, ...asked } as const
  return (await access.decide(requester, attributes)).allowed
}

/** What the garbage collector and finalizers change grants nothing. */
function changesOwnersOnly<T extends AnyRole | AnyBinding>(old: T, now: T): boolean {
  const { ownerReferences: _, finalizers: __, ...metadata } = now.metadata
  const { ownerReferences: ___, finalizers: ____, ...before } = old.metadata
  return isDeepStrictEqual({ ...now, metadata }, { ...old, metadata: before })
}
