/** A Node → what its maintenance is decided by, and the Node with the next step of it. */
import { updateReportOf } from '../../../api/node/agent-update.ts'
import {
  cordonedByAnnotation,
  isMaintenanceCordon,
  maintenanceAnnotation,
  maintenanceOf,
  maintenanceOwner,
} from '../../../api/node/node-maintenance.ts'
import { osReportOf } from '../../../api/node/os-updates.ts'
import { allowsRemoteReboot, rebootRequestedAnnotation } from '../../../api/node/reboot-annotations.ts'
import { rebootStatusOf } from '../../../api/node/remote-reboot.ts'
import { healthConditionTypes, type Node } from '../../../api/node.ts'
import { internalAddressesOf, linkAndZoneOf } from '../rollouts/node-places.ts'
import type { MaintenanceNode, NodeStep } from './node-step.ts'

type Written = Pick<MaintenanceNode, 'record' | 'report' | 'reboot' | 'isOnTrial'>
const read = new WeakMap<Node, Written>()

/** The annotations of a Node, decoded. Objects of the store are never changed in place: each is read once. */
function writtenOn(node: Node): Written {
  const known = read.get(node)
  if (known !== undefined) return known
  const [record, status] = [maintenanceOf(node), rebootStatusOf(node)]
  const written: Written = {
    record,
    report: osReportOf(node),
    reboot: status !== undefined && status.requestedAt === record?.requestedAt ? status.state : undefined,
    isOnTrial: updateReportOf(node)?.release?.outcome === 'trial',
  }
  read.set(node, written)
  return written
}

/** The record of its maintenance; undefined: it has had none. */
export function recordOn(node: Node): MaintenanceNode['record'] {
  return writtenOn(node).record
}

/** `controllerAddresses`: where controllers run. `podsLeft`: pods that its drain has to wait for. */
export function maintenanceNode(
  node: Node,
  controllerAddresses: ReadonlySet<string>,
  podsLeft: readonly string[],
): MaintenanceNode {
  const conditions = node.status?.conditions ?? []
  const isTrue = (type: string) => conditions.some((one) => one.type === type && one.status === 'True')
  return {
    name: node.metadata.name ?? '',
    ...linkAndZoneOf(node),
    ...writtenOn(node),
    isController: internalAddressesOf(node.status).some((one) => controllerAddresses.has(one)),
    isReady: isTrue('Ready'),
    bootID: node.status?.nodeInfo?.bootID ?? '',
    isCordoned: node.spec?.unschedulable === true,
    isOwnCordon: isMaintenanceCordon(node),
    canReboot: allowsRemoteReboot(node),
    ailing: healthConditionTypes.filter(isTrue),
    podsLeft,
  }
}

/** All of a Node that a decision depends on. Most changes of a Node are heartbeats. */
export function maintenanceFactsOf(node: Node): string {
  const { isController: _, podsLeft: __, ...facts } = maintenanceNode(node, new Set(), [])
  return JSON.stringify(facts)
}

/**
 * The Node with the step. Undefined: the step was decided on another record, or somebody has cordoned the node since; it is decided again.
 */
export function withStep<N extends Node>(node: N, { before, record, cordon, reboots }: NodeStep): N | undefined {
  const { id, phase, requestedAt } = maintenanceOf(node) ?? {}
  if (id !== before?.id || phase !== before?.phase || requestedAt !== before?.requestedAt) return undefined
  if (cordon === 'take' && node.spec?.unschedulable === true) return undefined
  const { [cordonedByAnnotation]: owner, ...others } = node.metadata.annotations ?? {}
  const isOwned = cordon === 'take' || (owner !== undefined && cordon !== 'give')
  const annotations = {
    ...others,
    ...(isOwned && { [cordonedByAnnotation]: owner ?? maintenanceOwner }),
    ...(reboots && record.requestedAt !== undefined && { [rebootRequestedAnnotation]: record.requestedAt }),
    [maintenanceAnnotation]: JSON.stringify(record),
  }
  const changed = { ...node, metadata: { ...node.metadata, annotations } }
  if (cordon === 'take') return { ...changed, spec: { ...node.spec, unschedulable: true } }
  if (cordon !== 'give' || !isMaintenanceCordon(node)) return changed
  const { unschedulable: _, ...spec } = node.spec ?? {}
  return { ...changed, spec }
}
