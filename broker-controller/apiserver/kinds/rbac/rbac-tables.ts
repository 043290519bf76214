/** The columns of `kubectl get` for roles and their bindings (pkg/printers/internalversion/printers.go). */
import type { ClusterRole } from '../../../../api/access/cluster-role.ts'
import type { ClusterRoleBinding } from '../../../../api/access/cluster-role-binding.ts'
import type { Role } from '../../../../api/access/role.ts'
import type { RoleBinding, Subject } from '../../../../api/access/role-binding.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'

/** Kubernetes has no printer of its own for these: the name, and when it was created. */
export const roleTable: TableOf<Role | ClusterRole> = {
  columns: tableColumns('Name', 'Created At'),
  cells: ({ metadata }) => [metadata.name ?? '', metadata.creationTimestamp ?? ''],
}

export const bindingTable: TableOf<RoleBinding | ClusterRoleBinding> = {
  columns: tableColumns('Name', 'Role', 'Age', 'Users*', 'Groups*', 'ServiceAccounts*'),
  cells: ({ metadata, roleRef, subjects = [] }, nowMs) => [
    metadata.name ?? '',
    `${roleRef.kind}/${roleRef.name}`,
    ageOf(metadata.creationTimestamp, nowMs),
    namesOf(subjects, 'User', ({ name }) => name),
    namesOf(subjects, 'Group', ({ name }) => name),
    namesOf(subjects, 'ServiceAccount', ({ name, namespace = '' }) => `${namespace}/${name}`),
  ],
}

function namesOf(subjects: readonly Subject[], wanted: string, text: (subject: Subject) => string): string {
  return subjects
    .filter(({ kind }) => kind === wanted)
    .map(text)
    .join(', ')
}
