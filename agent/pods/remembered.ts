/** What must survive a restart of the agent, and the loop that writes it down. */

import type { Desired } from '../../api/desired.ts'
import type { PodStatus } from '../../api/pod.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'

/** What is wanted, and the pods that are over, by UID. */
export type Remembered = {
  readonly desired: Desired
  readonly endings: { readonly [uid: string]: PodStatus }
}

export interface PodCheckpoint {
  /** undefined: there is none, or none that can be trusted. Never fails. */
  load(): Promise<Remembered | undefined>
  /** Writes only what differs from what is there. */
  save(remembered: Remembered): Promise<void>
}

export interface Keeper {
  /** There is something new to write. */
  wake(): void
  run(signal: AbortSignal): Promise<void>
}

const retry = { firstMs: 500, maxMs: 30_000 }

export type KeeperNeeds = {
  readonly checkpoint: PodCheckpoint
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

/** A disk that refuses is tried again, for ever; the pods do not wait for it. */
export function keeper({ checkpoint, clock, random, log }: KeeperNeeds, current: () => Remembered | undefined): Keeper {
  let unsaved = false
  let wakeUp: () => void = () => undefined

  const saveNow = async (): Promise<boolean> => {
    const remembered = current()
    unsaved = false
    if (remembered === undefined) return true
    try {
      await checkpoint.save(remembered)
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
      wakeUp()
    },
    async run(signal) {
      signal.addEventListener('abort', () => wakeUp(), { once: true })
      for (let failures = 0; !signal.aborted; ) {
        if (!unsaved) {
          await new Promise<void>((resolve) => {
            wakeUp = resolve
          })
        } else if (await saveNow()) {
          failures = 0
        } else {
          await clock.sleep(backoffMs(failures++, retry, random), signal)
        }
      }
      if (unsaved) await saveNow()
    },
  }
}
