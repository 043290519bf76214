/** The observations of a pod → the status that kubectl shows. */

import { qosClassOf } from '../../../api/pod/qos-class.ts'
import type { Container, ContainerStatus, Pod, PodStatus } from '../../../api/pod.ts'
import { rfc3339, wholeSeconds } from '../../../daemon/clock.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { isRunning, sortContainers } from '../record/pod-containers.ts'
import { isFinal, phaseOf } from '../record/pod-phase.ts'
import { withinPod } from '../record/termination-messages.ts'
import { type ContainerFacts, containerStatus, ephemeralStatus, initStatus } from './container-status.ts'
import { conditionsOf } from './pod-conditions.ts'

export type StatusFacts = ContainerFacts & {
  readonly containers: readonly RuntimeContainer[]
  readonly hostIP: string | undefined
  /** Address of the other IP family. */
  readonly otherHostIP?: string | undefined
  /** Addresses of the engine's own network lead nowhere in a fleet that has a network: the pod has none there. */
  readonly isOffNetwork?: boolean | undefined
  readonly nowWallMs: number
}

export function podStatus(pod: Pod, facts: StatusFacts): PodStatus {
  const found = sortContainers(facts.containers)
  const inits = pod.spec.initContainers ?? []
  const statusOf = (container: Container) =>
    containerStatus(container, inits.length > 0 ? 'PodInitializing' : 'ContainerCreating', found, facts)
  const added = pod.spec.ephemeralContainers ?? []
  const most = pod.spec.containers.length + inits.length + added.length
  const containerStatuses = withinPod(pod.spec.containers.map(statusOf), most)
  const initStatuses = withinPod(
    inits.map((container) => initStatus(container, statusOf(container))),
    most,
  )
  const ephemeralStatuses = withinPod(
    added.map((container) => ephemeralStatus(statusOf(container))),
    most,
  )
  const decided = phaseOf(pod, containerStatuses, initStatuses)
  // A container that waits to run again has not ended for good, whatever the restart policy.
  const goesOn = isFinal(decided) && containerStatuses.some(({ name }) => facts.waiting.has(name))
  const before = facts.last?.phase
  const phase = isFinal(before) ? before : goesOn ? 'Running' : decided
  const { sandbox } = found
  const hostIPs = addressesOf(facts.hostIP, facts.otherHostIP)
  const isUp = sandbox !== undefined && isRunning(sandbox)
  // A pod that has ended keeps its last addresses.
  const lastPodIPs = isFinal(phase) ? lastIPs(facts) : []
  const podIPs = isUp ? runningIPs(pod, sandbox, facts, hostIPs) : lastPodIPs
  const startTime = facts.last?.startTime ?? startOf(facts)
  return {
    phase: phase ?? 'Pending',
    conditions: conditionsOf({
      pod,
      phase,
      sandbox,
      containerStatuses,
      initStatuses,
      startTime,
      last: facts.last?.conditions,
      nowWallMs: facts.nowWallMs,
    }),
    ...(hostIPs[0] && { hostIP: hostIPs[0].ip, hostIPs }),
    ...(podIPs[0] && { podIP: podIPs[0].ip, podIPs }),
    startTime,
    ...(inits.length === 0 ? {} : { initContainerStatuses: initStatuses }),
    containerStatuses: byName(containerStatuses),
    ...(added.length === 0 ? {} : { ephemeralContainerStatuses: byName(ephemeralStatuses) }),
    qosClass: qosClassOf(pod.spec),
  }
}

/** Init containers stay in the order of the specification (normalizeStatus in pkg/kubelet/status/status_manager.go). */
function byName(statuses: readonly ContainerStatus[]): readonly ContainerStatus[] {
  return [...statuses].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function runningIPs(
  { spec }: Pod,
  { ip, ipv6 }: RuntimeContainer,
  { isOffNetwork }: StatusFacts,
  hostIPs: ReturnType<typeof addressesOf>,
) {
  if (spec.hostNetwork) return hostIPs
  return isOffNetwork ? [] : addressesOf(ip, ipv6)
}

type Addresses = readonly { readonly ip: string }[]

/** The primary one first; without it there are none. */
function addressesOf(primary: string | undefined, other?: string): Addresses {
  if (primary === undefined) return []
  return other === undefined ? [{ ip: primary }] : [{ ip: primary }, { ip: other }]
}

function lastIPs({ last }: StatusFacts): Addresses {
  return last?.podIPs ?? addressesOf(last?.podIP)
}

/** Creation time of its first container, or now: a restarted agent reports the same time. */
function startOf({ containers, nowWallMs }: StatusFacts): string {
  const [first] = containers.map(({ createdAt }) => createdAt).sort()
  return wholeSeconds(first) ?? rfc3339(nowWallMs)
}
