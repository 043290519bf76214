/** Warns the operator of certificate requests that need attention: an Event on the Node and a log line. It names machines. */
import type { Clock } from '../../../daemon/clock.ts'
import { expiringMap } from '../../../daemon/limits/expiring-map.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { nodeReference } from '../../store/references.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { copyWarning, hardwareOf } from './certificate-approval.ts'

export type RequestWarningNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: LimitedLog
}

export interface RequestWarnings {
  /** Undefined: there is nothing to warn of. Each reason is recorded once in 10 minutes for each name. */
  warn(nodeName: string, reason: string, message: string | undefined): Promise<void>
  /** Warns when the machine has identifiers of another node: a copied card. */
  warnOfCopy(nodeName: string, csr: StoredObject<'certificatesigningrequests'>): Promise<void>
}

const warnEveryMs = 10 * 60_000

export function requestWarnings({ store, events, clock, log }: RequestWarningNeeds): RequestWarnings {
  const warned = expiringMap<true>(clock, warnEveryMs)

  const copyProblem = async (
    name: string,
    csr: StoredObject<'certificatesigningrequests'>,
  ): Promise<string | undefined> => {
    const hardware = hardwareOf(csr)
    if (hardware.machineID === undefined) return undefined
    const { items } = await store.list('nodes')
    // A card that was put into another board is that node's still.
    return copyWarning(
      hardware,
      items.filter(({ metadata }) => metadata.name !== name),
    )
  }

  const warn = async (name: string, reason: string, message: string | undefined) => {
    const key = `${reason}/${name}`
    if (message === undefined || warned.get(key)) return
    warned.set(key, true)
    log.warn(reason, 'Certificate request needs attention', { node: name, reason, why: message })
    await events.record({
      object: nodeReference(name),
      type: 'Warning',
      reason,
      message,
      component: 'certificate-controller',
    })
  }

  return {
    warn,
    warnOfCopy: async (nodeName, csr) => warn(nodeName, 'CopiedCard', await copyProblem(nodeName, csr)),
  }
}
