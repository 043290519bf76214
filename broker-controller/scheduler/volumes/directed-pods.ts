/**
 * Pods that were given a node by others than this scheduler: their delayed claims get volumes there. Kubernetes leaves such pods waiting
 * for ever, because only its scheduler writes the selected node.
 */

import type { Clock } from '../../../daemon/clock.ts'
import { dueTimes } from '../../../daemon/due-times.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Steps } from '../../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../../store/store.ts'
import type { ClusterCache } from '../cluster.ts'
import type { NodeAllocation } from '../node-usage.ts'
import type { SchedulerWrites } from '../scheduler-writes.ts'
import { podVolumes } from './pod-volumes.ts'
import { volumesOn } from './volume-binding.ts'
import type { VolumeChoice } from './volume-cache.ts'

export interface DirectedPods {
  /** Its claims are looked at as soon as possible. */
  add(key: string): void
  delete(key: string): void
  /** Pods without volumes may get them now. */
  volumesChanged(): void
  /** The claims of the pod wait: they are looked at after a change, or after a minute. */
  wait(key: string, nowMs: number): void
  take(nowMs: number): readonly string[]
  nextMs(): number | undefined
}

const retryMs = 60_000

export function directedPods(): DirectedPods {
  const due = dueTimes()
  const waiting = new Set<string>()
  let isStale = false
  const remove = (key: string) => {
    waiting.delete(key)
    due.delete(key)
  }
  return {
    add(key) {
      waiting.delete(key)
      due.set(key, 0)
    },
    delete: remove,
    volumesChanged() {
      isStale = waiting.size > 0
    },
    wait(key, nowMs) {
      waiting.add(key)
      due.set(key, nowMs + retryMs)
    },
    take(nowMs) {
      const taken = new Set([...due.take(nowMs), ...(isStale ? waiting : [])])
      isStale = false
      for (const key of taken) remove(key)
      return [...taken]
    },
    nextMs: () => (isStale ? 0 : due.nextMs()),
  }
}

export type VolumeOrder = { readonly key: string; readonly nodeName: string; readonly volumes: VolumeChoice }

type GivenVolumesNeeds = {
  readonly known: ClusterCache
  readonly directed: DirectedPods
  /** After a restore: what the store has of the pod may be old. */
  readonly isHeld: (pod: StoredPod) => boolean
  readonly write: Pick<SchedulerWrites, 'prepareVolumes'>
  readonly clock: Clock
  readonly log: Log
}

/** Decides what the claims of such pods get, and writes it. */
export function givenVolumes({ known, directed, isHeld, write, clock, log }: GivenVolumesNeeds) {
  function* orderFor(key: string): Steps<VolumeOrder | undefined> {
    const nodeName = known.nodeOf(key)
    if (nodeName === undefined) return undefined
    const found = yield* choiceFor(key, known.node(nodeName))
    if (found === 'none') return undefined
    if (found === undefined || 'reasons' in found) {
      directed.wait(key, clock.monotonicMs())
      return undefined
    }
    if (found.bindings.length + found.provisions.length === 0) return undefined
    known.volumes.promise(key, found, nodeName)
    return { key, nodeName, volumes: found }
  }

  /** `none`: the pod needs no volumes now; undefined: its node or what its claims need is not there yet. */
  function* choiceFor(key: string, node: NodeAllocation | undefined) {
    const pod = node?.pods.get(key)
    if (node === undefined || pod === undefined) return undefined
    if (isHeld(pod) || pod.metadata.deletionTimestamp !== undefined) return 'none'
    const wanted = yield* podVolumes(pod, known.volumes)
    if (wanted === undefined) return 'none'
    return wanted.refused ? undefined : volumesOn({ ...wanted, bound: [] }, node)
  }

  return {
    *decide(): Steps<readonly VolumeOrder[]> {
      const orders: VolumeOrder[] = []
      for (const key of directed.take(clock.monotonicMs())) {
        try {
          const order = yield* orderFor(key)
          if (order !== undefined) orders.push(order)
        } catch (error) {
          log.error('Volumes not chosen for a pod that has a node', { pod: key, error })
        }
      }
      return orders
    },
    async carryOut({ key, nodeName, volumes }: VolumeOrder): Promise<void> {
      try {
        await write.prepareVolumes(volumes, nodeName)
      } catch (error) {
        log.warn('Volumes not bound for a pod that has a node', { pod: key, node: nodeName, error })
        directed.wait(key, clock.monotonicMs())
      } finally {
        known.volumes.release(key)
      }
    },
  }
}
