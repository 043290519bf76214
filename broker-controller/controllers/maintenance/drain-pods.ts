/** Which pods a machine has to lose before its maintenance, and which of them are evicted next. */
import { drainVerdict } from '../../../api/pod/drain-verdict.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { StoredObject, StoredPod } from '../../store/store.ts'
import { recordOn } from './node-facts.ts'

/** For each node that drains: its pods that a drain evicts, also those that are ending. */
export type DrainPods = ReadonlyMap<string, readonly StoredPod[]>

/** Evictions on one node in one pass: a node has at most 110 pods by default. */
const evictionsAtOnce = 50

/**
 * Pods that a drain evicts, as `kubectl drain` chooses them. Pods of DaemonSets, static pods and those that no controller would create again
 * stay: they stop in order with the machine, and start with it. `pods` is called only if a node drains.
 */
export async function drainPods(
  nodes: readonly StoredObject<'nodes'>[],
  pods: () => readonly StoredPod[],
): Promise<DrainPods> {
  const leaving = new Map<string, StoredPod[]>()
  await eachInTurns(nodes, (node) => {
    if (recordOn(node)?.phase === 'Draining') leaving.set(node.metadata.name, [])
  })
  if (leaving.size === 0) return leaving
  await eachInTurns(pods(), (pod) => {
    const own = leaving.get(pod.spec.nodeName ?? '')
    if (own !== undefined && drainVerdict(pod).verdict === 'evict') own.push(pod)
  })
  return leaving
}

/** Those that are not ending yet; those in `held` last, by UID. */
export function nextEvictions(leaving: readonly StoredPod[], held: ReadonlySet<string>): readonly StoredPod[] {
  const left = leaving.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const isHeld = ({ metadata }: StoredPod) => held.has(metadata.uid)
  return [...left.filter((pod) => !isHeld(pod)), ...left.filter(isHeld)].slice(0, evictionsAtOnce)
}
