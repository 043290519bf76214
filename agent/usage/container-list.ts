/** The containers of the engine. They are listed again after the engine reports a change, not at each call. */
import type { Clock } from '../../daemon/clock.ts'
import type { ContainerRuntime, RuntimeContainer } from '../runtime/runtime.ts'

export interface ContainerList {
  /** Rejects only when the engine has never answered. */
  containers(): Promise<readonly RuntimeContainer[]>
  /** The list does not match what is found on the machine: the next call lists again. */
  invalidate(): void
  /** The same engine. Its events invalidate the list before its watchers receive them. */
  observing(runtime: ContainerRuntime): ContainerRuntime
}

export type ContainerListNeeds = {
  readonly list: () => Promise<readonly RuntimeContainer[]>
  readonly clock: Clock
}

/** Events may be lost: an older list is read again. */
const maxAgeMs = 5 * 60_000
/** Containers run while the engine hangs, so the last list is returned after this time. */
const listTimeoutMs = 2_000

export function containerList({ list, clock }: ContainerListNeeds): ContainerList {
  let last: readonly RuntimeContainer[] | undefined
  let listedMs = 0
  let stale = true
  let listing: Promise<void> | undefined

  const listAgain = async () => {
    stale = false
    try {
      const containers = await list()
      last = containers
      listedMs = clock.monotonicMs()
    } catch (error) {
      stale = true
      throw error
    } finally {
      listing = undefined
    }
  }

  const invalidate = () => {
    stale = true
  }

  return {
    invalidate,
    async containers() {
      if (!stale && clock.monotonicMs() - listedMs > maxAgeMs) stale = true
      if (stale) listing ??= listAgain()
      if (listing !== undefined && last === undefined) await listing
      else if (listing !== undefined) await endOrTimeout(listing, clock)
      return last ?? []
    },
    observing: (runtime) => ({
      ...runtime,
      watch: (listener, signal) =>
        runtime.watch(
          {
            opened() {
              invalidate()
              listener.opened()
            },
            changed(podUID) {
              invalidate()
              listener.changed(podUID)
            },
          },
          signal,
        ),
    }),
  }
}

async function endOrTimeout(listing: Promise<void>, clock: Clock): Promise<void> {
  const over = new AbortController()
  try {
    await Promise.race([listing.catch(() => undefined), clock.sleep(listTimeoutMs, over.signal)])
  } finally {
    over.abort()
  }
}
