/**
 * Clock synchronisation by a service other than systemd-timesyncd, from the kernel's flag for any program, as systemd-timedated
 * reports it over the bus. Polled until it is true, because each call starts that program.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { aborted } from '../../../daemon/aborted.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'
import { timeServices } from '../../health/clock.ts'
import { onSystemBus } from './system-bus.ts'
import { isKernelClockSet, isSystemdHere, systemBusPath } from './systemd-bus.ts'

export interface TimeService extends Loop {
  /** Undefined: no program has reported it. */
  synchronized(): true | undefined
}

const askAgainMs = 5 * 60_000
const deadlineMs = 5_000

/** `root`: `/`, or a folder with another machine's `run/`. */
export function timeService({ root, clock }: { readonly root: string; readonly clock: Clock }): TimeService {
  let isSet = false
  const ask = async () => {
    const isThere = timeServices.some(({ mark }) => existsSync(join(root, mark)))
    if (!isThere || !isSystemdHere(root)) return
    // Without systemd-timedated there is no answer.
    isSet = await onSystemBus({ socketPath: systemBusPath(root), deadlineMs }, isKernelClockSet).catch(() => false)
  }
  return {
    name: 'time-service',
    synchronized: () => isSet || undefined,
    async run(signal) {
      await ask()
      while (!isSet && !signal.aborted) {
        await clock.sleep(askAgainMs, signal)
        if (!signal.aborted) await ask()
      }
      await aborted(signal)
    },
  }
}
