/**
 * Loop: controllers that start together on an empty store have all passed the checks of a start, as there was no fleet yet. The first one
 * that leads makes the fleet, with its authority and its key of Secrets. One with other files ends, as it would if it started now.
 */
import { aborted } from '../../daemon/aborted.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { ControllerRegistry } from '../store/controllers.ts'
import { untilAnswered } from '../store/election/until-answered.ts'
import type { OpenedStore, Store } from '../store/store.ts'
import { clusterInfoKey, refuseFolderOfOthers } from './foreign-authority.ts'

export type FleetBeginningNeeds = {
  readonly store: Pick<Store, 'get'>
  readonly controllers: Pick<ControllerRegistry, 'withdraw'>
  /** Folder of the authority. */
  readonly folder: string
  readonly verifySecretsKey?: OpenedStore['verifySecretsKey'] | undefined
  readonly clock: Clock
  readonly log: Log
}

const lookMs = 500

/** Rejects with ForeignAuthorityError or SecretsKeyError, and the address of this controller is no longer among those of the fleet then. */
export function fleetBeginning({
  store,
  controllers,
  folder,
  verifySecretsKey,
  clock,
  log,
}: FleetBeginningNeeds): Loop {
  const verify = async (signal: AbortSignal) => {
    await refuseFolderOfOthers(await store.get('configmaps', clusterInfoKey), folder)
    const reading = { what: 'the key of Secrets', keep: aborted, clock, log, signal }
    if (verifySecretsKey !== undefined) await untilAnswered(reading, verifySecretsKey)
  }
  return {
    name: 'fleet-beginning',
    async run(signal) {
      while (!signal.aborted && (await store.get('configmaps', clusterInfoKey)) === undefined) {
        await clock.sleep(lookMs, signal)
      }
      try {
        if (!signal.aborted) await verify(signal)
      } catch (error) {
        if (signal.aborted) return
        await controllers
          .withdraw()
          .catch((cause: unknown) =>
            log.warn('The address of this controller stays in the store for a day', { error: cause }),
          )
        throw error
      }
      await aborted(signal)
    },
  }
}
