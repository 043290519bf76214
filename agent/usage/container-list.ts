/** Which containers are there? Known without asking the engine each time: it is asked when it told of a change. */
import type { Clock } from '../../daemon/clock.ts'
import type { ContainerRuntime, RuntimeContainer } from '../pods/runtime/runtime.ts'

export interface ContainerRoster {
  /** Rejects only when the engine has never answered. */
  containers(): Promise<readonly RuntimeContainer[]>
  /** What is known does not fit what is seen. */
  doubt(): void
  /** The same engine; what it tells its watchers is heard here too. */
  overhearing(runtime: ContainerRuntime): ContainerRuntime
}

export type RosterNeeds = {
  readonly list: () => Promise<readonly RuntimeContainer[]>
  readonly clock: Clock
}

/** Events may be missed. */
const trustedMs = 5 * 60_000
/** An engine that hangs must not hold up who wants to know what its containers use: they run without it. */
const patienceMs = 2_000

export function containerRoster({ list, clock }: RosterNeeds): ContainerRoster {
  let known: readonly RuntimeContainer[] | undefined
  let listedMs = 0
  let stale = true
  let asking: Promise<void> | undefined

  const ask = async () => {
    stale = false
    try {
      const containers = await list()
      known = containers
      listedMs = clock.monotonicMs()
    } catch (error) {
      stale = true
      throw error
    } finally {
      asking = undefined
    }
  }

  const doubt = () => {
    stale = true
  }

  return {
    doubt,
    async containers() {
      if (!stale && clock.monotonicMs() - listedMs > trustedMs) stale = true
      if (stale) asking ??= ask()
      if (asking !== undefined && known === undefined) await asking
      else if (asking !== undefined) await patiently(asking, clock)
      return known ?? []
    },
    overhearing: (runtime) => ({
      ...runtime,
      watch: (listener, signal) =>
        runtime.watch(
          {
            opened() {
              doubt()
              listener.opened()
            },
            changed(podUID) {
              doubt()
              listener.changed(podUID)
            },
          },
          signal,
        ),
    }),
  }
}

async function patiently(asking: Promise<void>, clock: Clock): Promise<void> {
  const over = new AbortController()
  try {
    await Promise.race([asking.catch(() => undefined), clock.sleep(patienceMs, over.signal)])
  } finally {
    over.abort()
  }
}
