/** Which pods of a DaemonSet a rolling update replaces now (rollingUpdate in pkg/controller/daemon/update.go). Pure. */
import type { Pod } from '../../../../api/pod.ts'
import { scaledShare } from '../../../../api/validation/share-validation.ts'
import type { DaemonSetSpec } from '../../../../api/workloads/daemon-set.ts'
import { isAvailablePod } from '../pod-readiness.ts'
import type { DaemonFacts, DaemonNode } from './daemon-plan.ts'

export type DaemonUpdate<P> = { readonly create: readonly string[]; readonly delete: readonly P[] }

type Strategy = DaemonSetSpec['updateStrategy']

/** AllowsSurge in pkg/controller/daemon/util/daemonset_util.go. */
export function allowsDaemonSurge(strategy: Strategy): boolean {
  return limitOf(strategy, 'maxSurge', 1) > 0
}

/** `nodes`: those where a pod belongs, and the others that have one. The pods of each node are as `planDaemons` leaves them. */
export function planDaemonUpdate<P extends Pod>(
  nodes: readonly DaemonNode<P>[],
  strategy: Strategy,
  facts: DaemonFacts,
): DaemonUpdate<P> {
  if (strategy?.type !== 'RollingUpdate') return { create: [], delete: [] }
  const desired = nodes.filter(({ exists, placement }) => exists && placement.shouldRun).length
  const maxSurge = limitOf(strategy, 'maxSurge', desired)
  const maxUnavailable = limitOf(strategy, 'maxUnavailable', desired)
  const relevant = nodes.filter(({ exists, placement, pods }) => pods.length > 0 || (exists && placement.shouldRun))
  // Neither would be an update without an end: one may then be unavailable, unless no node would get its successor.
  const least = desired > 0 ? 1 : 0
  if (maxSurge === 0) return replaced(relevant, maxUnavailable || least, facts)
  return surged(relevant, { maxSurge, desired }, facts)
}

function limitOf(strategy: Strategy, limit: 'maxSurge' | 'maxUnavailable', desired: number): number {
  const share = strategy?.type === 'RollingUpdate' ? strategy.rollingUpdate?.[limit] : undefined
  return share === undefined ? 0 : scaledShare(share, desired, 'up')
}

type OnNode<P> = { readonly updated: P | undefined; readonly outdated: P | undefined }

/** undefined: more than one of a kind (findUpdatedPodsOnNode). */
function podsOn<P extends Pod>({ pods }: DaemonNode<P>, { isUpdated }: DaemonFacts): OnNode<P> | undefined {
  const present = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const [updated, ...furtherUpdated] = present.filter(isUpdated)
  const [outdated, ...furtherOutdated] = present.filter((pod) => !isUpdated(pod))
  return furtherUpdated.length + furtherOutdated.length > 0 ? undefined : { updated, outdated }
}

/** Old pods go as long as no more than `maxUnavailable` nodes are without an available one; what is not available goes at once. */
function replaced<P extends Pod>(
  nodes: readonly DaemonNode<P>[],
  maxUnavailable: number,
  facts: DaemonFacts,
): DaemonUpdate<P> {
  const isAvailable = (pod: P) => isAvailablePod(pod, facts.minReadySeconds, facts.nowMs)
  let unavailable = 0
  const broken: P[] = []
  const candidates: P[] = []
  for (const node of nodes) {
    const { updated, outdated } = podsOn(node, facts) ?? {}
    if ((updated === undefined) === (outdated === undefined)) unavailable++
    else if (updated !== undefined) unavailable += isAvailable(updated) ? 0 : 1
    else if (outdated !== undefined && isAvailable(outdated)) candidates.push(outdated)
    else if (outdated !== undefined) {
      broken.push(outdated)
      unavailable++
    }
  }
  const allowed = Math.max(0, maxUnavailable - unavailable)
  return { create: [], delete: [...broken, ...candidates.slice(0, allowed)] }
}

/** `surging`: a new pod is not available beside the old one. `stray`: a pod where none belongs any more. */
type SurgeState = 'current' | 'surging' | 'leaving' | 'stray' | 'candidate' | 'broken'

type Surge<P> = {
  readonly name: string
  readonly state: SurgeState
  readonly isServing: boolean
  readonly outdated: readonly P[]
}

/** New pods come beside old ones, at most `maxSurge` of them unavailable; an old one goes once its successor is available. */
function surged<P extends Pod>(
  nodes: readonly DaemonNode<P>[],
  { maxSurge, desired }: { readonly maxSurge: number; readonly desired: number },
  facts: DaemonFacts,
): DaemonUpdate<P> {
  const surges = nodes.map((node) => surgeOn(node, facts))
  const those = (state: SurgeState) => surges.filter((one) => one.state === state)
  const namesOf = (state: SurgeState) => those(state).map(({ name }) => name)
  const podsOf = (state: SurgeState) => those(state).flatMap(({ outdated }) => outdated)
  const available = surges.filter(({ isServing }) => isServing).length
  // A pod where none belongs any more goes once enough others are available.
  const spared = podsOf('stray').slice(0, Math.max(0, available - desired))
  const room = Math.max(0, maxSurge - those('surging').length)
  return {
    create: [...namesOf('broken'), ...namesOf('candidate').slice(0, room)],
    delete: [...podsOf('leaving'), ...spared],
  }
}

function surgeOn<P extends Pod>(node: DaemonNode<P>, facts: DaemonFacts): Surge<P> {
  const found = podsOn(node, facts)
  if (found === undefined) return { name: node.name, state: 'surging', isServing: false, outdated: [] }
  const { updated, outdated } = found
  const isAvailable = (pod: P | undefined) =>
    pod !== undefined && isAvailablePod(pod, facts.minReadySeconds, facts.nowMs)
  return {
    name: node.name,
    state: outdated === undefined ? 'current' : surgeState(node, updated, isAvailable(updated), isAvailable(outdated)),
    isServing: isAvailable(outdated ?? updated),
    outdated: outdated === undefined ? [] : [outdated],
  }
}

function surgeState<P extends Pod>(
  { exists, placement }: DaemonNode<P>,
  updated: P | undefined,
  isUpdatedAvailable: boolean,
  isOutdatedAvailable: boolean,
): SurgeState {
  if (updated !== undefined) return isUpdatedAvailable ? 'leaving' : 'surging'
  if (!exists || !placement.shouldRun) return isOutdatedAvailable ? 'stray' : 'leaving'
  return isOutdatedAvailable ? 'candidate' : 'broken'
}
