/** Renews a lease in etcd, at its times and at once after a write that failed its condition. */
import { unlessAborted, withOwnSignal } from '../../../daemon/aborted.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { EtcdError } from './etcd-error.ts'

export type LeaseKeeperNeeds = {
  /** `isDoubtful`: a write failed its condition. An EtcdError is tried again; all else ends the keeper. */
  readonly renew: (isDoubtful: boolean) => Promise<void>
  readonly periodMs: number
  /** After a renewal that failed. */
  readonly retryMs: number
  /** For the log: `the lease of the leader`. */
  readonly what: string
  readonly clock: Clock
  readonly log: Log
}

export interface LeaseKeeper {
  /** Renews now, and looks whether the key is still there. */
  checkNow(): void
  /** Resolves when `signal` aborts, or the keeper was stopped. Rejects with what `renew` threw. */
  run(signal: AbortSignal): Promise<void>
}

/** Renews until `stopping` aborts. */
export function startLeaseKeeper(needs: LeaseKeeperNeeds, stopping: AbortSignal): LeaseKeeper {
  const { what, clock, log } = needs
  let checkNow = () => {}
  let isFailing = false

  /** Whether it was interrupted by `checkNow`. */
  const wait = async () => {
    let isDoubtful = false
    await withOwnSignal(stopping, (own) => {
      checkNow = () => {
        isDoubtful = true
        own.abort('doubtful')
      }
      return clock.sleep(isFailing ? needs.retryMs : needs.periodMs, own.signal)
    })
    return isDoubtful
  }
  const renew = async (isDoubtful: boolean) => {
    try {
      await needs.renew(isDoubtful)
      if (isFailing) log.info(`Renewed ${what} in etcd again`)
      isFailing = false
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (!isFailing) log.warn(`Cannot renew ${what} in etcd`, { error })
      isFailing = true
    }
  }
  const keep = async () => {
    while (!stopping.aborted) {
      const isDoubtful = await wait()
      if (stopping.aborted) return
      await renew(isDoubtful)
    }
  }
  const keeping = keep()
  keeping.catch(() => undefined) // `run` rejects with it
  return {
    checkNow: () => checkNow(),
    run: async (signal) => void (await unlessAborted(keeping, signal)),
  }
}
