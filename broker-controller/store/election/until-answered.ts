/** What has to be written before a controller can continue: repeated where the store did not answer, and the write may have happened. */
import { isApiError, type StatusReason } from '../../../api/api-error.ts'
import { withOwnSignal } from '../../../daemon/aborted.ts'
import { longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { isWithoutRoom } from '../store.ts'
import { retryPeriodMs } from './election.ts'

export type AnswerNeeds = {
  /** For the log: `the objects of the fleet`. */
  readonly what: string
  /** Rejects when this process must not try again, such as `keep` of an election; resolves when the signal aborts. */
  readonly keep: (signal: AbortSignal) => Promise<void>
  readonly clock: Clock
  readonly log: Log
  /** Ends the attempts: the last error is thrown. */
  readonly signal?: AbortSignal | undefined
}

const backoff = { firstMs: 250, maxMs: retryPeriodMs }
const remedy = 'It is tried again. If this lasts, look at the members of etcd (etcdctl endpoint health)'

/**
 * The result of `act`, which reads what is there, decides and writes: it is called again, after 250 ms up to 2 s, while the store
 * does not answer, has no space, or has another object than `act` has read. Rejects with all other errors, and with that of `keep`.
 */
export async function untilAnswered<T>(needs: AnswerNeeds, act: () => Promise<T>): Promise<T> {
  const { what, clock, log, signal } = needs
  for (let failures = 0; ; failures++) {
    try {
      const result = await act()
      if (failures > 0) log.info('The store answers again', { what, failures })
      return result
    } catch (error) {
      if (signal?.aborted || !maySucceedLater(error)) throw error
      if (failures === 0) log.warn('Cannot write to the store yet', { what, error, remedy })
    }
    await withOwnSignal(signal, async (own) => {
      const sleep = clock.sleep(longestBackoffMs(failures, backoff), own.signal)
      try {
        await Promise.race([sleep, needs.keep(own.signal)])
        await sleep
      } finally {
        own.abort()
      }
    })
  }
}

/** AlreadyExists and Conflict: the write that was not answered has happened since. */
const passing: readonly StatusReason[] = ['Timeout', 'ServiceUnavailable', 'AlreadyExists', 'Conflict']

function maySucceedLater(error: unknown): boolean {
  return isWithoutRoom(error) || (isApiError(error) && passing.includes(error.reason))
}
