/** MachineReboot on logind's D-Bus interface. Starts no `systemctl`. */
import type { MachineReboot } from '../../shutdown/reboot-manager.ts'
import { locksIn } from './logind.ts'
import { type BusSettings, onSystemBus } from './system-bus.ts'
import { isSystemdHere, logindManager, systemBusPath } from './systemd-bus.ts'

export type LogindRebootSettings = Pick<BusSettings, 'deadlineMs'> & {
  /** `/`, or a folder with another machine's `run/`. */
  readonly root: string
}

/**
 * As `systemctl reboot`: logind waits for delay locks, also that of this agent. Rejects while another program blocks shutdowns: for
 * root, logind ignores locks of root, such as those of package managers (`manager_is_inhibited` in src/login/logind-inhibit.c).
 */
export function logindReboot({ root, ...more }: LogindRebootSettings): MachineReboot {
  const settings = { socketPath: systemBusPath(root), ...more }
  return {
    async reboot() {
      if (!isSystemdHere(root)) throw new Error('This machine has no system bus with logind')
      await onSystemBus(settings, async ({ call }) => {
        const [rows] = await call({ ...logindManager, member: 'ListInhibitors' })
        const lock = locksIn(rows, undefined).others.find(({ mode }) => mode.startsWith('block'))
        if (lock !== undefined) throw new Error(`${lock.who} blocks shutdowns: ${lock.why}`)
        // Not interactive: no person is asked for authorization.
        await call({ ...logindManager, member: 'Reboot', signature: 'b', body: [false] })
      })
    },
  }
}
