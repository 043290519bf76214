/** Several controllers on one store: one leads, the others answer reads until it is gone. */

/** The controller that leads, as far as this one has read. */
export type Leader = {
  readonly host: string
  readonly pid: number
  /** Where the others reach its API: `https://HOST:PORT`. undefined: a process that has no API, such as a migration. */
  readonly server?: string | undefined
}

/** When this controller began to lead, and how often the leader had changed by then. */
export type Term = { readonly sinceMs: number; readonly transitions: number }

/** Another controller leads, or may lead: what this process still does as a leader has no effect. It ends, and stands by after its restart. */
export class LeadershipLostError extends Error {
  override readonly name = 'LeadershipLostError'
}

/** As client-go's defaults for leader election (15 s, 10 s and 2 s), all on monotonic clocks. */
export const leaseDurationMs = 15_000
export const renewDeadlineMs = 10_000
export const retryPeriodMs = 2_000

/**
 * The store accepts writes of the leader only, whatever this process believes: each has the condition that its term continues. So a
 * leader that was frozen for longer than its lease writes nothing.
 */
export interface Election {
  /**
   * Resolves with the term when this process leads, and reads everything that was written before. Others find it at `server`
   * (`https://HOST:PORT`). undefined: `signal` has aborted before. Rejects where this process must not lead.
   */
  campaign(server: string, signal: AbortSignal): Promise<Term | undefined>
  /** Resolves when `signal` aborts. Rejects with LeadershipLostError. */
  keep(signal: AbortSignal): Promise<void>
  /** This process leads, and has renewed its lease within the last ten seconds. */
  isLeading(): boolean
  /** undefined: there is none, or none is known. */
  leader(): Leader | undefined
  /** The next one need not wait for the end of the lease. */
  resign(): Promise<void>
}

/** Reads of a controller that does not lead: what it has in memory follows the store with a delay. */
export interface Freshness {
  /** Resolves when everything is visible that was written before the call. False: not within the time a client waits. */
  latest(): Promise<boolean>
  /** Resolves when this version is visible. False: not within the time a client waits. */
  until(version: number): Promise<boolean>
}
