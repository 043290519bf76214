/** Loop: logs when this machine loses the address that the controller advertises, as when DHCP gives it another one. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'

export type OwnAddressNeeds = {
  /** Address or name that other machines use. */
  readonly advertised: string
  /** Those of the machine that others may reach. May throw. */
  readonly addresses: () => readonly string[]
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
}

const periodMs = 10_000

/**
 * Certificate, kubeconfig, join command and the Endpoints of `default/kubernetes` have the address of the start, and agents have it in their
 * identity: a new one needs a restart here and, without a name, a join there. undefined: a name, or the address of a router, which the
 * machine never had.
 */
export function ownAddress({ advertised, addresses, clock, log }: OwnAddressNeeds): Loop | undefined {
  const present = (): readonly string[] | undefined => {
    try {
      return addresses()
    } catch (error) {
      // os.networkInterfaces() throws where this process cannot open another file.
      log.debug('Addresses of this machine not read', { error })
      return undefined
    }
  }
  if (present()?.includes(advertised) !== true) return undefined
  let isThere = true
  return {
    name: 'own-address',
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(periodMs, signal)
        const found = present()
        if (found === undefined || found.includes(advertised) === isThere) continue
        isThere = !isThere
        if (isThere) log.info('This machine has the advertised address again', { address: advertised })
        else
          log.warn('This machine no longer has the advertised address', { address: advertised, present: found, remedy })
      }
    },
  }
}

const remedy =
  'Give the machine its address again, in the DHCP server. To use another one, restart bramble-controller, and on each node join again with ' +
  "the line of 'bramble-controller token create --print-join-command' and --no-run, then restart bramble-agent. With advertiseAddress set to a " +
  'name, nodes follow the name'
