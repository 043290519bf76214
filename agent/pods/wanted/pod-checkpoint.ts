/** What must survive a restart of the agent, and the loop that writes it down. */

import type { Desired } from '../../../api/desired.ts'
import type { PodStatus } from '../../../api/pod.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { backoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'

/** What is wanted, and the pods that are over, by UID. */
export type CheckpointData = {
  readonly desired: Desired
  readonly endings: { readonly [uid: string]: PodStatus }
}

/** `mayBeOld`: from the copy. More may be wanted than it names. */
export type LoadedCheckpoint = CheckpointData & { readonly mayBeOld?: true }

export interface PodCheckpoint {
  /** undefined: there is none, or none that can be trusted. Never fails. */
  load(): Promise<LoadedCheckpoint | undefined>
  /** Writes only what differs from what is there. */
  save(remembered: CheckpointData): Promise<void>
  /** Writes what is there once more beside it, unless it is there already. Never fails. */
  keepCopy(): Promise<void>
}

export interface CheckpointWriter {
  /** There is something new to write. */
  wake(): void
  run(signal: AbortSignal): Promise<void>
}

const retry = { firstMs: 500, maxMs: 30_000 }
/** So far behind is a copy at most, and so seldom is it written where pods come and go all day. */
const copyMs = 10 * 60_000
const idleMs = 24 * 3600_000

export type CheckpointWriterNeeds = {
  readonly checkpoint: PodCheckpoint
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

/** A disk that refuses is tried again, for ever; the pods do not wait for it. */
export function checkpointWriter(
  { checkpoint, clock, random, log }: CheckpointWriterNeeds,
  current: () => CheckpointData | undefined,
): CheckpointWriter {
  const wake = alarm(clock)
  let unsaved = false
  /** Monotonic. The life before may have left none. */
  let copyDueMs = clock.monotonicMs() + copyMs

  const saveNow = async (): Promise<boolean> => {
    const remembered = current()
    unsaved = false
    if (remembered === undefined) return true
    try {
      await checkpoint.save(remembered)
      copyDueMs = Math.min(copyDueMs, clock.monotonicMs() + copyMs)
      return true
    } catch (error) {
      log.warn('Wanted pods not written down', { error })
      unsaved = true
      return false
    }
  }

  return {
    wake() {
      unsaved = true
      wake.ring()
    },
    async run(signal) {
      for (let failures = 0; !signal.aborted; ) {
        const copyInMs = copyDueMs - clock.monotonicMs()
        if (unsaved) {
          if (await saveNow()) failures = 0
          else await clock.sleep(backoffMs(failures++, retry, random), signal)
        } else if (copyInMs > 0) {
          await wake.sleep(Math.min(idleMs, copyInMs), signal)
        } else {
          copyDueMs = Number.POSITIVE_INFINITY
          await checkpoint.keepCopy()
        }
      }
      if (unsaved) await saveNow()
    },
  }
}
