/** The pools of this machine as its Node names them: they are registered again when others are there, or one is full. */
import { isDeepStrictEqual } from 'node:util'
import { type Pool, poolsAnnotation } from '../../../api/storage/pools.ts'
import type { Reader } from '../../../daemon/cell.ts'

export interface RegisteredPools {
  /** The annotation of the Node with the pools of now. */
  annotations(): Promise<{ readonly [name: string]: string }>
  /** Calls `listener` when pools differ from those of the last annotation. */
  onChange(listener: () => void): void
}

/** `look` finds the pools where `found` has none yet: the first look at them may come after the registration. */
export function registeredPools(
  found: Reader<readonly Pool[] | undefined>,
  look: () => Promise<readonly Pool[]>,
): RegisteredPools {
  let registered: readonly Pool[] | undefined
  return {
    async annotations() {
      registered = found.get() ?? (await look())
      return { [poolsAnnotation]: JSON.stringify(registered) }
    },
    onChange(listener) {
      // The first look of the loop that reports them is usually after the registration, and finds the same.
      found.onChange((pools) => {
        if (registered !== undefined && !isDeepStrictEqual(registered, pools)) listener()
      })
    },
  }
}
