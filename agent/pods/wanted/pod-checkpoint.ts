/** The state that survives a restart of the agent, and the loop that saves it (pkg/kubelet/checkpointmanager). */

import type { Desired } from '../../../api/desired.ts'
import type { PodStatus } from '../../../api/pod.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { backoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ContainerEnd } from './container-end.ts'
import type { PodAddressMap } from './pod-addresses.ts'

/**
 * The desired state, and by UID: the final status of pods that have ended; of the others the last address, and the containers that
 * do not run again.
 */
export type CheckpointData = {
  readonly desired: Desired
  readonly endings: { readonly [uid: string]: PodStatus }
  readonly addresses?: PodAddressMap
  readonly ends?: { readonly [uid: string]: readonly ContainerEnd[] }
}

/** `mayBeOld`: from the copy, so more pods may be desired than it lists. */
export type LoadedCheckpoint = CheckpointData & { readonly mayBeOld?: true }

export interface PodCheckpoint {
  /** undefined: there is no checkpoint, or no valid one. Never fails. */
  load(): Promise<LoadedCheckpoint | undefined>
  /** Writes only if the data differs from the file. */
  save(data: CheckpointData): Promise<void>
  /** Copies the file, unless the copy is up to date. Never fails. */
  keepCopy(): Promise<void>
}

export interface CheckpointWriter {
  /** The data changed: saves soon. */
  wake(): void
  /** Resolves when the changes before the call are saved: true. False: the disk fails; it is not waited for. */
  saved(): Promise<boolean>
  run(signal: AbortSignal): Promise<void>
}

const retry = { firstMs: 500, maxMs: 30_000 }
/** A copy is at most this old, and is written at most this often. */
const copyMs = 10 * 60_000
const idleMs = 24 * 3600_000

export type CheckpointWriterNeeds = {
  readonly checkpoint: PodCheckpoint
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

/** Retries a failed save without limit; the pods do not wait for it. */
export function checkpointWriter(
  { checkpoint, clock, random, log }: CheckpointWriterNeeds,
  current: () => CheckpointData | undefined,
): CheckpointWriter {
  const wake = alarm(clock)
  let unsaved = false
  let failures = 0
  let runs = false
  /** Those that wait for the save under way, and for the next one. */
  let served: (() => void)[] | undefined
  let waiting: (() => void)[] = []
  /** Monotonic. The previous process may not have written a copy. */
  let copyDueMs = clock.monotonicMs() + copyMs

  const saveNow = async (): Promise<void> => {
    const data = current()
    const now = waiting
    unsaved = false
    served = now
    waiting = []
    try {
      if (data !== undefined) await checkpoint.save(data)
      if (data !== undefined) copyDueMs = Math.min(copyDueMs, clock.monotonicMs() + copyMs)
      failures = 0
    } catch (error) {
      log.warn('Checkpoint not saved', { error })
      unsaved = true
      failures++
    }
    served = undefined
    for (const resolve of now) resolve()
  }

  return {
    wake() {
      unsaved = true
      wake.ring()
    },
    async saved() {
      const queue = unsaved ? waiting : served
      if (failures > 0) return false
      if (!runs || queue === undefined) return !unsaved
      await new Promise<void>((resolve) => void queue.push(resolve))
      return failures === 0
    },
    async run(signal) {
      runs = true
      while (!signal.aborted) {
        const copyInMs = copyDueMs - clock.monotonicMs()
        if (unsaved) {
          await saveNow()
          if (failures > 0) await clock.sleep(backoffMs(failures - 1, retry, random), signal)
        } else if (copyInMs > 0) {
          await wake.sleep(Math.min(idleMs, copyInMs), signal)
        } else {
          copyDueMs = Number.POSITIVE_INFINITY
          await checkpoint.keepCopy()
        }
      }
      runs = false
      if (unsaved) await saveNow()
      for (const resolve of waiting) resolve()
    },
  }
}
