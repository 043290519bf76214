/** What is wrong with a node, a pod, the rollout of the agent or the maintenance of machines, as far as a person wants to be notified of it. */
import type { ConfigMap } from '../../../api/config-map.ts'
import { isRolloutMap } from '../../../api/node/agent-rollout.ts'
import { isMaintenanceMap } from '../../../api/node/fleet-maintenance.ts'
import { healthConditionTypes, type Node } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'
import { failedMaintenance } from '../../controllers/maintenance/maintenance-object.ts'
import { linkOf } from '../../controllers/node-lifecycle/link-suspicion.ts'
import { isReady, zoneOf } from '../../controllers/node-lifecycle/zones.ts'
import { failedRollout } from '../../controllers/rollouts/rollout-object.ts'

export const problemKinds = [
  'NodeNotReady',
  'NodeUnhealthy',
  'PodCrashLooping',
  'PodFailed',
  'RolloutPaused',
  'MaintenancePaused',
] as const
export type ProblemKind = (typeof problemKinds)[number]

export type FleetProblem = {
  /** The same for the same problem of the same object. */
  readonly key: string
  readonly kind: ProblemKind
  /** Namespace of a pod; '' for all others. */
  readonly namespace: string
  /** `pi-1`, `default/web` */
  readonly name: string
  /** One line. */
  readonly text: string
  /** Group of a node that is not ready: `link ap-kitchen`, `zone attic`. Nodes that are lost together make one line. */
  readonly group?: string
}

/** Longer messages of conditions are cut: an agent may report any text. */
const mostText = 300

/** One for Ready, one for each condition of the machine's health. */
export function problemsOfNode(node: Node): readonly FleetProblem[] {
  const { name = '' } = node.metadata
  const conditions = node.status?.conditions ?? []
  const ofNode = { namespace: '', name }
  const ready = conditions.find(({ type }) => type === 'Ready')
  const group = groupOf(node)
  const lost: FleetProblem = {
    ...ofNode,
    key: `NodeNotReady/${name}`,
    kind: 'NodeNotReady',
    text: line(`Node ${name} is not ready: ${ready?.reason ?? 'it has not reported yet'}`),
    ...(group !== undefined && { group }),
  }
  const unhealthy = conditions
    .filter(({ type, status }) => status === 'True' && healthConditionTypes.some((one) => one === type))
    .map(
      ({ type, message = '' }): FleetProblem => ({
        ...ofNode,
        key: `NodeUnhealthy/${name}/${type}`,
        kind: 'NodeUnhealthy',
        text: line(`Node ${name}: ${type}: ${message}`),
      }),
    )
  return [...(isReady(node) ? [] : [lost]), ...unhealthy]
}

export function problemsOfPod({ metadata, status }: Pod): readonly FleetProblem[] {
  const namespace = metadata.namespace ?? ''
  const name = `${namespace}/${metadata.name}`
  if (status?.phase === 'Failed') {
    const why = status.reason ?? status.message ?? 'a container failed'
    return [{ key: `PodFailed/${name}`, kind: 'PodFailed', namespace, name, text: line(`Pod ${name} failed: ${why}`) }]
  }
  const looping = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].find(
    ({ state }) => state?.waiting?.reason === 'CrashLoopBackOff',
  )
  if (looping === undefined) return []
  const text = line(`Pod ${name}: container ${looping.name} keeps crashing, ${looping.restartCount} restarts`)
  return [{ key: `PodCrashLooping/${name}`, kind: 'PodCrashLooping', namespace, name, text }]
}

/** Maps that may have a problem: those of the rollout of the agent and of the maintenance of machines. */
export function mayHaveProblem(map: Pick<ConfigMap, 'metadata'>): boolean {
  return isRolloutMap(map) || isMaintenanceMap(map)
}

/** A pause by an operator is not a problem. */
export function problemsOfMap(map: Pick<ConfigMap, 'metadata' | 'data'>): readonly FleetProblem[] {
  const paused = isMaintenanceMap(map) ? failedMaintenance(map) : undefined
  if (paused !== undefined) {
    const text = line(`The maintenance of machines pauses: ${paused}`)
    return [{ key: 'MaintenancePaused', kind: 'MaintenancePaused', namespace: '', name: 'maintenance', text }]
  }
  const failed = isRolloutMap(map) ? failedRollout(map) : undefined
  if (failed === undefined) return []
  const { version, reason } = failed
  const text = line(`The rollout of agent ${version} pauses: ${reason}`)
  return [{ key: `RolloutPaused/${version}`, kind: 'RolloutPaused', namespace: '', name: version, text }]
}

function groupOf(node: Node): string | undefined {
  const link = linkOf(node, undefined)
  if (link !== undefined) return `link ${line(link)}`
  const zone = zoneOf(node)
  return zone === ''
    ? undefined
    : `zone ${line(
        zone
          .split(':\u0000:')
          .filter((part) => part !== '')
          .join('/'),
      )}`
}

/** Without control characters, which a receiver may take for the end of the line. */
function line(text: string): string {
  const clean = text.replace(/\p{Cc}+/gu, ' ').trim()
  return clean.length > mostText ? `${clean.slice(0, mostText)}…` : clean
}
