/** Waits until this controller is elected; then it leads until its end. */
import { withOwnSignal } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Election, Term } from '../store/election/election.ts'

export type StandbyNeeds = {
  readonly election: Election
  /** `https://HOST:PORT` of the other one that leads. */
  readonly leader: () => string | undefined
  /** `https://HOST:PORT` of this controller's API. */
  readonly server: string
  /** For the log. */
  readonly facts: { readonly [name: string]: string }
  readonly clock: Clock
  readonly log: Log
}

const lookMs = 500

export function standbyLoop({ election, leader, server, facts, clock, log }: StandbyNeeds) {
  const watchLeader = async (signal: AbortSignal) => {
    let seen: string | undefined
    while (!signal.aborted) {
      const present = leader()
      if (present !== undefined && present !== seen) log.info('Controller stands by', { leader: present, ...facts })
      seen = present
      await clock.sleep(lookMs, signal)
    }
  }
  return {
    /** For people. */
    status: () => `Stands by and answers reads. ${leader() ?? 'No controller'} leads`,
    /** Ends with `lead`, or when `signal` aborts. */
    async run(lead: (term: Term, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
      const term = await withOwnSignal(signal, async (own) => {
        const watching = watchLeader(own.signal)
        try {
          return await election.campaign(server, own.signal)
        } finally {
          own.abort()
          await watching
        }
      })
      if (term === undefined) return
      log.info('Controller leads', { server, transitions: term.transitions })
      await lead(term, signal)
    },
  }
}
