/** What a graceful shutdown needs of logind. */

/** Somebody's lock that holds up or forbids a shutdown. */
export type OtherLock = { readonly who: string; readonly why: string; readonly mode: string }

export type Locks = {
  /** logind knows the one that was asked for. */
  readonly isHeld: boolean
  readonly others: readonly OtherLock[]
}

export type ScheduledShutdown = {
  /** logind's word: `reboot`, `poweroff`, `halt`, `kexec` … */
  readonly action: string
  readonly atWallMs: number
}

/** `because`: why it is less than was asked for, where that is known: `FILE grants less`. */
export type GrantedDelay = { readonly grantedMs: number; readonly because: string | undefined }

export interface ShutdownLock {
  /** How it is held: by an open file of ours, or by a child process. */
  readonly how: 'descriptor' | 'process'
  /** Who holds it, as logind lists it. */
  readonly pid: number
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
  isPreparing(): Promise<boolean>
  scheduled(): Promise<ScheduledShutdown | undefined>
  /** What it goes down for while it prepares to, in its words; undefined where it does not say. */
  action(): Promise<string | undefined>
  locks(own: ShutdownLock | undefined): Promise<Locks>
  /**
   * Asks logind to wait so long for who holds a delay lock, by a drop-in of ours; undefined takes ours away. Nothing is
   * written when nothing has to change.
   */
  askDelay(ms: number | undefined): Promise<GrantedDelay>
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
