/** The button Restart: the request has the time of the press, however late it is written. */
import { rebootRequestedAnnotation } from '../../../api/node/reboot-annotations.ts'
import { rebootRequestLifetimeMs } from '../../../api/node/remote-reboot.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { type MachineRequestNeeds, type MachineRequests, machineRequests } from './machine-requests.ts'

/** A machine restarts at most once in the lifetime of a request: five minutes. */
export function restarts(needs: MachineRequestNeeds): MachineRequests {
  return machineRequests(needs, {
    what: 'Restart of a machine',
    loopName: 'home-assistant-restarts',
    pauseMs: rebootRequestLifetimeMs,
    annotations: (_, pressedMs) => ({ [rebootRequestedAnnotation]: rfc3339(pressedMs) }),
  })
}
