/** What restarting Docker needs of systemd. */

export type UnitState = {
  /** systemd's words: `loaded`, `not-found`, `masked` … */
  readonly load: string
  /** `active`, `activating`, `deactivating`, `inactive`, `failed` … */
  readonly active: string
}

/** Every call ends within its deadline, or throws. */
export interface UnitController {
  /** False: this machine is not run by systemd, or does not let us speak with it. */
  isAvailable(): boolean
  state(unit: string): Promise<UnitState>
  /** Hands the work over; it may take longer than the call. */
  restart(unit: string): Promise<void>
}
