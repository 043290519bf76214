/** The operations of systemd that restarting Docker needs. */

export type UnitState = {
  /** systemd's LoadState: `loaded`, `not-found`, `masked` … */
  readonly load: string
  /** systemd's ActiveState: `active`, `activating`, `deactivating`, `inactive`, `failed` … */
  readonly active: string
}

/** Every call ends within its deadline, or throws. */
export interface UnitController {
  /** False: this machine is not run by systemd, or the agent may not use its bus. */
  isAvailable(): boolean
  state(unit: string): Promise<UnitState>
  /** Requests the restart; it may take longer than the call. */
  restart(unit: string): Promise<void>
}
