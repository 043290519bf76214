/** The interface to logind for a graceful shutdown. */

/** A lock of another program that delays or blocks a shutdown. */
export type OtherLock = { readonly who: string; readonly why: string; readonly mode: string }

export type Locks = {
  /** logind lists the lock of the agent. */
  readonly isHeld: boolean
  readonly others: readonly OtherLock[]
}

export type ScheduledShutdown = {
  /** logind's term: `reboot`, `poweroff`, `halt`, `kexec` … */
  readonly action: string
  readonly atWallMs: number
}

/** `because`: why it is less than requested, if that can be determined: `FILE grants less`. */
export type GrantedDelay = { readonly grantedMs: number; readonly because: string | undefined }

export interface ShutdownLock {
  /** How it is held: by an open file of the agent, or by a child process. */
  readonly how: 'descriptor' | 'process'
  /** Process ID of the holder, as logind lists it. */
  readonly pid: number
  release(): void
}

/** Called while a session lasts. `action`: logind's term, where it reports one. */
export type ShutdownListener = {
  preparing(isPreparing: boolean, action: string | undefined): void
  /** logind was restarted or its state changed: read it again. */
  changed(): void
}

/** A connection to logind. Every call ends within its deadline, or throws. */
export interface ShutdownSession {
  isPreparing(): Promise<boolean>
  scheduled(): Promise<ScheduledShutdown | undefined>
  /** What follows the shutdown that logind prepares, in its terms; undefined where it does not report it. */
  action(): Promise<string | undefined>
  locks(own: ShutdownLock | undefined): Promise<Locks>
  /**
   * Configures how long logind waits for holders of delay locks, by a drop-in; undefined removes the drop-in. Nothing is
   * written when nothing has to change.
   */
  configureDelay(ms: number | undefined): Promise<GrantedDelay>
  takeLock(): Promise<ShutdownLock>
  /** Resolves when the connection has ended. A connection that hangs is detected only by a call. */
  readonly ended: Promise<void>
  close(): void
}

export interface ShutdownInhibitor {
  /** False: there is no system bus with logind on this machine. */
  isAvailable(): boolean
  open(listener: ShutdownListener): Promise<ShutdownSession>
}
