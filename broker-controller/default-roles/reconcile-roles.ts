/**
 * Creates the default roles and bindings at the start, and extends those that lack a right or a subject. What an operator
 * added stays; a role or binding with the annotation `autoupdate: "false"` is left alone
 * (pkg/registry/rbac/rest/storage_rbac.go).
 */
import type { ClusterRole } from '../../api/access/cluster-role.ts'
import type { ClusterRoleBinding } from '../../api/access/cluster-role-binding.ts'
import type { Role } from '../../api/access/role.ts'
import type { RoleBinding, Subject } from '../../api/access/role-binding.ts'
import { isApiError } from '../../api/api-error.ts'
import type { ObjectMeta } from '../../api/meta.ts'
import type { Clock } from '../../daemon/clock.ts'
import { missingRules } from '../apiserver/authorization/rbac/escalation.ts'
import { rewrite } from '../store/rewrite.ts'
import type { Store } from '../store/store.ts'
import { defaultClusterRoleBindings, defaultClusterRoles, defaultRoleBindings, defaultRoles } from './default-roles.ts'

export type RoleNeeds = { readonly store: Store; readonly clock: Clock }

export async function ensureDefaultRoles(needs: RoleNeeds): Promise<void> {
  const { store } = needs
  await Promise.all([
    ...defaultClusterRoles.map(async (role) => {
      if (await created(() => store.create('clusterroles', role))) return
      await rewrite(needs, 'clusterroles', {
        key: keyOf(role),
        change: (present) => extendedRole(present, role),
      })
    }),
    ...defaultRoles.map(async (role) => {
      if (await created(() => store.create('roles', role))) return
      await rewrite(needs, 'roles', { key: keyOf(role), change: (present) => extendedRoleInNamespace(present, role) })
    }),
    ...defaultClusterRoleBindings.map(async (binding) => {
      if (await created(() => store.create('clusterrolebindings', binding))) return
      await rewrite(needs, 'clusterrolebindings', {
        key: keyOf(binding),
        change: (present) => extendedBinding(present, binding),
      })
    }),
    ...defaultRoleBindings.map(async (binding) => {
      if (await created(() => store.create('rolebindings', binding))) return
      await rewrite(needs, 'rolebindings', {
        key: keyOf(binding),
        change: (present) => extendedBinding(present, binding),
      })
    }),
  ])
}

async function created(create: () => Promise<unknown>): Promise<boolean> {
  try {
    await create()
    return true
  } catch (error) {
    if (isApiError(error, 'AlreadyExists')) return false
    throw error
  }
}

function keyOf({ metadata }: ClusterRole | Role | ClusterRoleBinding | RoleBinding) {
  return { namespace: metadata.namespace ?? '', name: metadata.name ?? '' }
}

/** undefined: it has all that the default has. */
export function extendedRole(present: ClusterRole, wanted: ClusterRole): ClusterRole | undefined {
  if (isLeftAlone(present)) return undefined
  const metadata = extendedMetadata(present.metadata, wanted.metadata)
  const missing = missingRules(present.rules ?? [], wanted.rules ?? [])
  const lacksAggregation = wanted.aggregationRule !== undefined && present.aggregationRule === undefined
  if (metadata === undefined && missing.length === 0 && !lacksAggregation) return undefined
  return {
    ...present,
    metadata: metadata ?? present.metadata,
    rules: [...(present.rules ?? []), ...missing],
    ...(lacksAggregation && { aggregationRule: wanted.aggregationRule }),
  }
}

function extendedRoleInNamespace(present: Role, wanted: Role): Role | undefined {
  if (isLeftAlone(present)) return undefined
  const metadata = extendedMetadata(present.metadata, wanted.metadata)
  const missing = missingRules(present.rules ?? [], wanted.rules ?? [])
  if (metadata === undefined && missing.length === 0) return undefined
  return { ...present, metadata: metadata ?? present.metadata, rules: [...(present.rules ?? []), ...missing] }
}

/** undefined: it has all that the default has. Its role stays: that of a binding never changes. */
export function extendedBinding<B extends ClusterRoleBinding | RoleBinding>(present: B, wanted: B): B | undefined {
  if (isLeftAlone(present) || present.roleRef.name !== wanted.roleRef.name) return undefined
  const metadata = extendedMetadata(present.metadata, wanted.metadata)
  const there = new Set((present.subjects ?? []).map(subjectText))
  const missing = (wanted.subjects ?? []).filter((subject) => !there.has(subjectText(subject)))
  if (metadata === undefined && missing.length === 0) return undefined
  return { ...present, metadata: metadata ?? present.metadata, subjects: [...(present.subjects ?? []), ...missing] }
}

function subjectText({ kind, name, namespace = '' }: Subject): string {
  return `${kind} ${namespace}/${name}`
}

function isLeftAlone({ metadata }: ClusterRole | Role | ClusterRoleBinding | RoleBinding): boolean {
  return metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate'] === 'false'
}

/** undefined: it has them all. What the operator set wins. */
function extendedMetadata(present: ObjectMeta, { labels = {}, annotations = {} }: ObjectMeta): ObjectMeta | undefined {
  const has = (there: ObjectMeta['labels'] = {}, keys: readonly string[]) => keys.every((key) => key in there)
  if (has(present.labels, Object.keys(labels)) && has(present.annotations, Object.keys(annotations))) return undefined
  return {
    ...present,
    labels: { ...labels, ...present.labels },
    annotations: { ...annotations, ...present.annotations },
  }
}
