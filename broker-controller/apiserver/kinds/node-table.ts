/** A node's row, as `kubectl get nodes` shows it. */
import type { Node } from '../../../api/node.ts'
import { ageOf, orNone, orUnknown, type TableOf, tableColumns } from '../handlers/cells.ts'

export const nodeTable: TableOf<Node> = {
  columns: tableColumns(
    'Name',
    'Status',
    'Roles',
    'Age',
    'Version',
    'Internal-IP*',
    'External-IP*',
    'OS-Image*',
    'Kernel-Version*',
    'Container-Runtime*',
  ),
  cells: (node, nowMs) => {
    const info = node.status?.nodeInfo
    return [
      node.metadata.name ?? '',
      statusOf(node),
      rolesOf(node),
      ageOf(node.metadata.creationTimestamp, nowMs),
      info?.kubeletVersion ?? '',
      addressOf(node, 'InternalIP'),
      addressOf(node, 'ExternalIP'),
      orUnknown(info?.osImage),
      orUnknown(info?.kernelVersion),
      orUnknown(info?.containerRuntimeVersion),
    ]
  },
}

function statusOf({ spec, status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  const word = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'
  return spec?.unschedulable === true ? `${word},SchedulingDisabled` : word
}

const rolePrefix = 'node-role.kubernetes.io/'

function rolesOf({ metadata }: Node): string {
  const roles = Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(rolePrefix)) return [key.slice(rolePrefix.length)]
    return key === 'kubernetes.io/role' ? [value] : []
  })
  return orNone([...new Set(roles.filter((role) => role !== ''))].toSorted().join(','))
}

function addressOf({ status }: Node, type: 'InternalIP' | 'ExternalIP'): string {
  return orNone(status?.addresses?.find((address) => address.type === type)?.address)
}
