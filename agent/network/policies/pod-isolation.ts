/** The pods of this node as rules of NetworkPolicies and host ports need them, and whether those of a pod are in force. */

import { isStaticPod } from '../../../api/pod/static-pod.ts'
import type { ContainerPort } from '../../../api/pod.ts'
import { type ByFamily, type IPFamily, ipFamilies } from '../../../api/text/ip-address.ts'
import { type Cell, changeWithin, type Reader } from '../../../daemon/cell.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { FoundPod, PodIsolation } from '../../pods/admission/pod-isolation.ts'
import type { WaitingReason } from '../../pods/record/pod-record.ts'
import { type HostPortRules, portsOfIPv4, portsOfIPv6 } from '../host-ports/host-port-rules.ts'
import type { RuleSet } from '../rule-set.ts'
import type { LocalPod, PodHostPort, PodState, PolicyRules } from './policy-rules.ts'
import type { ReceivedPolicies } from './received-state.ts'

/** `pods`: by UID. */
export type LocalPods = {
  readonly pods: ReadonlyMap<string, LocalPod>
  /** Every pod that runs is among them. */
  readonly isComplete: boolean
}

export type PodIsolationNeeds = {
  readonly reads: {
    readonly policies: Reader<ReceivedPolicies>
    /** Why pods of this node are not on the network of the fleet. */
    readonly networkObstacle: Reader<unknown>
    readonly policyRules: ByFamily<Reader<PolicyRules | undefined>>
    readonly appliedRules: ByFamily<Reader<readonly RuleSet[]>>
    /** undefined: the fleet has no network. */
    readonly hostPortRules: ByFamily<Reader<HostPortRules | undefined>>
  }
  readonly writes: { readonly localPods: Cell<LocalPods> }
  /** Called for a pod that has waited for its policies in vain: without any that were received, all pods are closed. */
  readonly closePolicies: () => void
  readonly clock: Clock
}

/** A message that is on its way, and a change of the kernel's rules, take less. */
const patienceMs = 2_000
const againMs = 1_000
/** Without its policies a pod does not wait longer than this: it starts, and what is not known to be allowed is dropped. */
export const policiesKnownMs = 30_000

type Verdict = { readonly isReady: true } | { readonly isReady: false; readonly delay: WaitingReason }

export function podIsolation({ reads, writes, closePolicies, clock }: PodIsolationNeeds): PodIsolation {
  const { localPods } = writes
  const { policies } = reads
  const { policyRules, appliedRules, hostPortRules } = reads
  const watched = [
    policies,
    reads.networkObstacle,
    ...[hostPortRules, policyRules, appliedRules].flatMap((cells): Reader<unknown>[] => Object.values(cells)),
  ]
  /** By UID: since when its containers wait. */
  const waitingSinceMs = new Map<string, number>()

  const hasHostPorts = (uid: string, pod: LocalPod) => {
    const has = (family: IPFamily) => {
      const rules = hostPortRules[family].get()
      return rules?.pods.get(uid) === pod && appliedRules[family].get().includes(rules)
    }
    return (
      (portsOfIPv4(pod).length === 0 || hostPortRules.IPv4.get() === undefined || has('IPv4')) &&
      (portsOfIPv6(pod).length === 0 || has('IPv6'))
    )
  }

  /** What the rules of the family lack for the pod. `isLate`: its policies are not waited for any longer. */
  const delayIn = (family: IPFamily, uid: string, pod: LocalPod, isLate: boolean): WaitingReason | undefined => {
    if (family === 'IPv6' && pod.ipv6 === undefined) return undefined
    const rules = policyRules[family].get()
    const state = rules && stateIn(rules, uid, pod)
    if (rules === undefined || state === undefined) return notInForce
    if (state === 'closed' && !isLate) return notReceived(pod)
    return state === 'open' || appliedRules[family].get().includes(rules) ? undefined : notInForce
  }

  /** `waitedMs`: for its policies, so far. */
  const verdictOn = (uid: string, isRouted: boolean, waitedMs: number): Verdict => {
    const pod = localPods.get().pods.get(uid)
    const received = policies.get()
    const isLate = waitedMs >= policiesKnownMs
    if (pod === undefined || reads.networkObstacle.get() !== undefined) return { isReady: true }
    if (isRouted && !hasHostPorts(uid, pod)) return { isReady: false, delay: hostPortsMissing }
    if (received === 'none') return { isReady: true }
    if (received === undefined) return isRouted ? { isReady: false, delay: notReceived(pod) } : { isReady: true }
    const delay = ipFamilies.map((family) => delayIn(family, uid, pod, isLate)).find((found) => found !== undefined)
    return delay === undefined ? { isReady: true } : { isReady: false, delay }
  }

  return {
    observe(uid, found) {
      const { pods, isComplete } = localPods.get()
      const pod = found && localPod(found)
      if (isSamePod(pods.get(uid), pod)) return
      const next = new Map(pods)
      if (pod === undefined) next.delete(uid)
      else next.set(uid, pod)
      if (pod === undefined) waitingSinceMs.delete(uid)
      localPods.set({ pods: next, isComplete })
    },
    observedAll() {
      if (!localPods.get().isComplete) localPods.set({ ...localPods.get(), isComplete: true })
    },
    async hold(uid, { isRouted }) {
      const sinceMs = waitingSinceMs.get(uid) ?? clock.monotonicMs()
      const verdict = () => verdictOn(uid, isRouted, clock.monotonicMs() - sinceMs)
      // The controller publishes policies, or it would have announced that it does not.
      const isLate = clock.monotonicMs() - sinceMs >= policiesKnownMs
      if (isLate && isRouted) closePolicies()
      if (!verdict().isReady) await changeWithin(patienceMs, watched, () => verdict().isReady, clock)
      const found = verdict()
      if (found.isReady) {
        waitingSinceMs.delete(uid)
        return undefined
      }
      waitingSinceMs.set(uid, sinceMs)
      return { ...found.delay, againInMs: againMs }
    },
  }
}

function policiesMissing(message: string): WaitingReason {
  return { reason: 'WaitingForNetworkPolicies', message }
}

const notInForce = policiesMissing(
  'The rules of its network policies are not in the kernel yet: see bramble-agent network on the node',
)
const hostPortsMissing: WaitingReason = {
  reason: 'WaitingForHostPorts',
  message: 'The rules of its host ports are not in the kernel yet: see bramble-agent network on the node',
}

function notReceived({ namespace }: LocalPod): WaitingReason {
  return policiesMissing(
    `This node has not received the network policies of namespace ${namespace} yet. It waits up to ${policiesKnownMs / 1000} s`,
  )
}

/** Undefined: the rules were made before the pod was as it is now. */
function stateIn({ pods }: PolicyRules, uid: string, pod: LocalPod): PodState | undefined {
  const found = pods.get(uid)
  return found !== undefined && isSamePod(found, pod) ? found.state : undefined
}

/** A pod whose specification is not known is one that leaves. */
function localPod({ pod, path, ip, ipv6, sandbox }: FoundPod): LocalPod | undefined {
  if (pod?.spec.hostNetwork) return undefined
  const [namespace = '', name = ''] = path.split('/')
  const { containers = [], initContainers = [] } = pod?.spec ?? {}
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  const all = [...containers, ...sidecars].flatMap((container) => container.ports ?? [])
  const ports = all.flatMap((one) =>
    one.name ? [{ name: one.name, protocol: one.protocol ?? 'TCP', port: one.containerPort }] : [],
  )
  const isStatic = pod !== undefined && isStaticPod(pod)
  const hostPorts = all.flatMap(hostPortOf)
  return {
    ...{ namespace, name, ip, ...(ipv6 !== undefined && { ipv6 }), labels: pod?.metadata.labels, ports, isStatic },
    ...(hostPorts.length > 0 && { hostPorts }),
    ...(sandbox !== undefined && { sandbox }),
  }
}

function hostPortOf({ hostPort, containerPort, protocol, hostIP = '' }: ContainerPort): readonly PodHostPort[] {
  if (!hostPort) return []
  const transport = protocol === 'UDP' ? 'udp' : protocol === 'SCTP' ? 'sctp' : 'tcp'
  return [{ protocol: transport, port: hostPort, containerPort, hostIP }]
}

function isSamePod(one: LocalPod | undefined, other: LocalPod | undefined): boolean {
  return one === other || (one !== undefined && other !== undefined && textOf(one) === textOf(other))
}

function textOf({ namespace, name, ip, ipv6, labels, ports, hostPorts, isStatic, sandbox }: LocalPod): string {
  const { id, pid, mac } = sandbox ?? {}
  const sorted = Object.entries(labels ?? {})
  return JSON.stringify([namespace, name, ip, ipv6, sorted, ports, hostPorts, isStatic, id, pid, mac])
}
