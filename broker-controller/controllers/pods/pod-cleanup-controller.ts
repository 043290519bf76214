/** Loop: every 20 s, removes pods that no node or controller will remove. */
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { finishedInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { informer, keyText } from '../../store/informer.ts'
import { podsByNode } from '../../store/pods-by-node.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store } from '../../store/store.ts'
import {
  type Cleanup,
  cleanupPeriodMs,
  defaultTerminatedPodGCThreshold,
  endedPod,
  planCleanup,
  quarantineMs,
} from './pod-cleanup.ts'
import { removePod } from './pod-removal.ts'

export type PodCleanupNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }
export type PodCleanupSettings = { readonly terminatedPodGCThreshold: number }

/** What is decided for this many pods is a turn of the event loop. */
const removalsAtOnce = 32

export function podCleanupController(
  needs: PodCleanupNeeds,
  settings: PodCleanupSettings = { terminatedPodGCThreshold: defaultTerminatedPodGCThreshold },
): Loop {
  return { name: 'pod-cleanup', run: (signal) => runPodCleanup(needs, settings, signal) }
}

async function runPodCleanup(
  { store, clock, log }: PodCleanupNeeds,
  settings: PodCleanupSettings,
  signal: AbortSignal,
): Promise<void> {
  const byNode = podsByNode()
  const missingSinceMs = new Map<string, number>()
  /** A change could have orphaned a pod. Without changes the pods are not searched. */
  let restless = true

  const nodes = informer({ store, clock, log }, 'nodes', () => {
    restless = true
  })
  const pods = informer({ store, clock, log }, 'pods', (present, previous) => {
    byNode.update(present, previous)
    if (present === undefined) return
    const isPlaced = previous !== undefined && present.spec.nodeName === previous.spec.nodeName
    if (!isPlaced || present.metadata.deletionTimestamp !== undefined || isFinished(present)) restless = true
  })

  const work = async () => {
    await Promise.all([nodes.listed, pods.listed])
    while (!signal.aborted) {
      if (restless || missingSinceMs.size > 0) await pass()
      await clock.sleep(cleanupPeriodMs, signal)
    }
  }

  const pass = async () => {
    restless = false
    const missing = await missingNodes()
    const node = (name: string) => nodes.get({ namespace: '', name })
    const plan = await finishedInTurns(planCleanup({ pods: [...pods.all()], node, missing, ...settings }))
    await inParallel(plan, removalsAtOnce, async (cleanup) => {
      if (signal.aborted) return
      await remove(cleanup).catch((error) => {
        restless = true
        log.warn('Pod not cleaned up', { pod: keyText(cleanup.pod.metadata), reason: cleanup.reason, error })
      })
    })
  }

  const noteMissing = (nowMs: number) => {
    const unknown = new Set([...byNode.nodeNames()].filter((name) => nodes.get({ namespace: '', name }) === undefined))
    for (const name of missingSinceMs.keys()) if (!unknown.has(name)) missingSinceMs.delete(name)
    for (const name of unknown) if (!missingSinceMs.has(name)) missingSinceMs.set(name, nowMs)
  }
  /** Asked of the store itself at the end of the quarantine, in case the watch is late. */
  const missingNodes = async (): Promise<ReadonlySet<string>> => {
    const nowMs = clock.monotonicMs()
    noteMissing(nowMs)
    const proven = new Set<string>()
    for (const [name, sinceMs] of missingSinceMs) {
      if (nowMs - sinceMs < quarantineMs) continue
      if ((await store.get('nodes', { namespace: '', name })) === undefined) proven.add(name)
    }
    return proven
  }

  const remove = async ({ pod, reason }: Cleanup) => {
    const { name, namespace = '', uid } = pod.metadata
    const key = { namespace, name }
    const now = rfc3339(clock.wallMs())
    await rewrite({ store, clock }, 'pods', {
      key,
      uid,
      part: 'status',
      change: (fresh) => endedPod(fresh, reason, now),
    })
    const isGone = await removePod({ store, clock }, pod, { gracePeriodSeconds: 0 })
    if (isGone) log.info('Pod cleaned up', { pod: keyText(key), node: pod.spec.nodeName, reason })
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'pods', run: pods.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log)
}
