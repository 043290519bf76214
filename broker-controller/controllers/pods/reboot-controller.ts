/**
 * Loop: a node that is back under a new boot has lost its containers, so pods that were being deleted there are removed without
 * waiting for its report.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Lease } from '../../../api/lease.ts'
import type { Node } from '../../../api/node.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { waitMs } from '../../../daemon/due-times.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { informer, keyText } from '../../store/informer.ts'
import { podsByNode } from '../../store/pods-by-node.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredPod } from '../../store/store.ts'
import { endedPod } from './pod-cleanup.ts'
import { removePod } from './pod-removal.ts'

export type RebootNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/**
 * An agent starts the pods of its checkpoint before it receives their deletion. Its first reports name those pods: they are
 * stopped in the usual way.
 */
const firstReportsMs = 2_000
const removalsAtOnce = 128

export function rebootController(needs: RebootNeeds): Loop {
  return { name: 'reboots', run: (signal) => runReboots(needs, signal) }
}
type Farewell = { readonly pods: readonly StoredPod[]; readonly dueMs: number }

async function runReboots({ store, clock, log }: RebootNeeds, signal: AbortSignal): Promise<void> {
  const byNode = podsByNode()
  const bell = alarm(clock)
  const boots = new Map<string, string>()
  const leases = new Map<string, Lease>()
  const rebooted = new Set<string>()

  const look = (name: string, node: Node | undefined) => {
    const boot = bootOf(node, leases.get(name))
    const before = boots.get(name)
    if (boot === undefined || boot === before) return
    boots.set(name, boot)
    if (before === undefined) return
    log.info('Node has rebooted', { node: name })
    rebooted.add(name)
    bell.ring()
  }

  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    const name = (present ?? previous)?.metadata.name ?? ''
    if (present === undefined) boots.delete(name)
    else if (bootOf(present, undefined) !== bootOf(previous, undefined)) look(name, present)
  })
  const heartbeats = informer({ store, clock, log }, 'leases', (present, previous) => {
    const { name = '' } = (present ?? previous)?.metadata ?? {}
    if (present === undefined) leases.delete(name)
    else leases.set(name, present)
    if (bootIn(present) !== bootIn(previous)) look(name, nodes.get({ namespace: '', name }))
  })
  const pods = informer({ store, clock, log }, 'pods', (present, previous) => byNode.update(present, previous))

  const work = async () => {
    await Promise.all([nodes.listed, pods.listed])
    let farewells: readonly Farewell[] = []
    while (!signal.aborted) {
      const nowMs = clock.monotonicMs()
      const leaving = [...rebooted].flatMap((name) => byNode.of(name).filter(isLeaving))
      rebooted.clear()
      if (leaving.length > 0) farewells = [...farewells, { pods: leaving, dueMs: nowMs + firstReportsMs }]
      const due = farewells.filter(({ dueMs }) => dueMs <= nowMs).flatMap((farewell) => farewell.pods)
      farewells = farewells.filter(({ dueMs }) => dueMs > nowMs)
      await inParallel(due, removalsAtOnce, (pod) =>
        remove(pod).catch((error) => {
          log.warn('Pod of a rebooted node not removed', { pod: keyText(pod.metadata), error })
          farewells = [...farewells, { pods: [pod], dueMs: nowMs + firstReportsMs }]
        }),
      )
      await bell.sleep(waitMs(farewells[0]?.dueMs, clock.monotonicMs()), signal)
    }
  }

  const remove = async (pod: StoredPod) => {
    const key = { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }
    const present = pods.get(key)
    if (present?.metadata.uid !== pod.metadata.uid) return
    const ended = (one: StoredPod) => endedPod(one, 'rebooted', rfc3339(clock.wallMs()))
    // Ended already: by an attempt before that could not remove it.
    const statuses = [pod.status, ended(pod)?.status]
    if (!statuses.some((status) => isDeepStrictEqual(present.status, status))) return
    await rewrite({ store, clock }, 'pods', { key, uid: pod.metadata.uid, part: 'status', change: ended })
    const isGone = await removePod({ store, clock }, pod, { gracePeriodSeconds: 0 })
    if (isGone) log.info('Pod removed with the boot it ran in', { pod: keyText(key), node: pod.spec.nodeName })
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'leases', run: heartbeats.run },
    { name: 'pods', run: pods.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log)
}

/** The connection reports the boot first; it is lost when the controller restarts, the node's status is not. */
function bootOf(node: Node | undefined, lease: Lease | undefined): string | undefined {
  return bootIn(lease) ?? (node?.status?.nodeInfo?.bootID || undefined)
}

function bootIn(lease: Lease | undefined): string | undefined {
  return lease?.metadata.annotations?.['bramble.dev/boot-id']
}

function isLeaving({ metadata }: StoredPod): boolean {
  return metadata.deletionTimestamp !== undefined
}
