/** The images of this machine that were checked for damage: one after the other, in the background. */
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ContainerRuntime } from '../../runtime/runtime.ts'
import { damageMessage } from './image-damage.ts'

export type DamagedImagesNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'imageDamage'>
  readonly clock: Clock
  readonly log: Log
}

export interface DamagedImages {
  /** Checks the image, unless that was done. `found` is called if it is damaged. */
  suspect(image: string, id: string, found: () => void): void
  /** What is known of the image; checks a damaged one again from time to time. */
  messageOf(image: string, id: string): string | undefined
}

type Verdict = { readonly atMs: number; readonly damage: string | undefined }

/** An image that was found in order stays so until the next power cut, which ends this agent. Most ids that are remembered. */
const mostKnown = 500
const againMs = 60_000

export function damagedImages({ runtime, clock, log }: DamagedImagesNeeds): DamagedImages {
  const known = new Map<string, Verdict>()
  const underWay = new Set<string>()
  let queue: Promise<void> = Promise.resolve()

  const check = async (image: string, id: string, found: () => void) => {
    try {
      const damage = await runtime.imageDamage(id)
      if (damage !== undefined && known.get(id)?.damage !== damage) log.warn('Image is damaged', { image, damage })
      known.delete(id)
      known.set(id, { atMs: clock.monotonicMs(), damage })
      const [oldest] = known.keys()
      if (known.size > mostKnown && oldest !== undefined) known.delete(oldest)
      if (damage !== undefined) found()
    } catch (error) {
      log.debug('Image not checked', { image, error })
    }
    underWay.delete(id)
  }

  const suspect: DamagedImages['suspect'] = (image, id, found) => {
    const last = known.get(id)
    const isDone = last !== undefined && (last.damage === undefined || clock.monotonicMs() - last.atMs < againMs)
    if (isDone || underWay.has(id)) return
    underWay.add(id)
    queue = queue.then(() => check(image, id, found))
  }

  return {
    suspect,
    messageOf(image, id) {
      const damage = known.get(id)?.damage
      if (damage === undefined) return undefined
      suspect(image, id, () => undefined)
      return damageMessage(image, damage)
    },
  }
}
