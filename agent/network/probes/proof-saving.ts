/** Loop: which addresses are proven → a file, so that they are used after a reboot whose peers are off. */
import { alarm } from '../../../daemon/alarm.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { PeerAddresses, ProofCheckpoint } from './peer-addresses.ts'

export type ProofSavingNeeds = {
  readonly checkpoint: Pick<ProofCheckpoint, 'save'>
  readonly clock: Clock
  readonly log: Log
}

export interface ProofSaving {
  /** First with what was loaded: addresses that an agent of an earlier version used are saved, too. */
  changed(records: PeerAddresses): void
  /** Saves what is left when `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>
}

/** After a change, and between two writes of a card. */
const saveMs = { soon: 2_000, most: 60_000 }

export function proofSaving({ checkpoint, clock, log }: ProofSavingNeeds): ProofSaving {
  const wake = alarm(clock)
  let latest: PeerAddresses | undefined
  let saved = ''
  let hasFailed = false

  const save = async () => {
    if (latest === undefined || keyOf(latest) === saved) return
    const records = latest
    try {
      await checkpoint.save(records)
      saved = keyOf(records)
      hasFailed = false
    } catch (error) {
      if (!hasFailed) log.warn('The proven addresses of nodes were not saved', { error })
      hasFailed = true
    }
  }

  return {
    changed(records) {
      if (latest === undefined) saved = keyOf(records)
      latest = records
      if (keyOf(records) !== saved) wake.ring()
    },
    async run(signal) {
      while (!signal.aborted) {
        if (latest === undefined || keyOf(latest) === saved) await wake.sleep(longestTimerMs, signal)
        else {
          await clock.sleep(saveMs.soon, signal)
          await save()
          await clock.sleep(saveMs.most, signal)
        }
      }
      await save()
    },
  }
}

/** What the file has: probes that are due are not. */
function keyOf(records: PeerAddresses): string {
  return JSON.stringify(
    [...records].map(([name, { address, state, mac, because }]) => [name, address, state, mac, because]),
  )
}
