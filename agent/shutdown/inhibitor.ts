/** What a graceful shutdown needs of logind. */

/** Somebody's lock that holds up or forbids a shutdown. */
export type OtherLock = { readonly who: string; readonly why: string; readonly mode: string }

export type Locks = {
  /** logind knows the lock that we hold. */
  readonly ours: boolean
  readonly others: readonly OtherLock[]
}

export type ScheduledShutdown = {
  /** logind's word: `reboot`, `poweroff`, `halt`, `kexec` … */
  readonly action: string
  readonly atWallMs: number
}

export interface ShutdownLock {
  /** How it is held: by an open file of ours, or by a child process. */
  readonly how: 'descriptor' | 'process'
  release(): void
}

/** Told while a session lasts. `action`: in logind's words, where it says it. */
export type ShutdownListener = {
  preparing(isPreparing: boolean, action: string | undefined): void
  /** logind is another one, or says something else: look again. */
  changed(): void
}

/** A connection to logind. Every call ends within its deadline, or throws. */
export interface ShutdownSession {
  /** How long logind waits for who holds a delay lock. */
  delayMs(): Promise<number>
  isPreparing(): Promise<boolean>
  scheduled(): Promise<ScheduledShutdown | undefined>
  locks(): Promise<Locks>
  /**
   * Asks for such a delay by a drop-in of ours; undefined takes ours away. Gives what was granted, and the file that has the
   * last word where it is not ours. Nothing is written when nothing has to change.
   */
  askDelay(ms: number | undefined): Promise<{ readonly grantedMs: number; readonly by: string | undefined }>
  takeLock(): Promise<ShutdownLock>
  /** Resolves when the connection is known to have ended; that it hangs only a call can tell. */
  readonly ended: Promise<void>
  close(): void
}

export interface ShutdownInhibitor {
  /** False: there is no logind to speak with on this machine. */
  isHere(): boolean
  open(listener: ShutdownListener): Promise<ShutdownSession>
}
