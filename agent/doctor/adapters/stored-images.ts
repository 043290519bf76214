/** Checks the files of Docker's images one after the other, those first whose containers do not run. */
import { withDeadline } from '../../../daemon/deadline.ts'
import { engineReader } from '../../adapters/docker/connection.ts'
import type { JsonShape } from '../../adapters/docker/json-reader.ts'
import { imageDamage, namedImages } from '../../adapters/docker/store/image-files.ts'
import type { ImagesReading } from '../images.ts'

const containersShape = { list: { fields: { ImageID: 'text', State: 'text' } } } as const satisfies JsonShape
const answerMs = 1_000

/** Ends shortly after `ms`. Rejects where this user may not read the files. */
export async function checkImages(socketPath: string, rootDirectory: string, ms: number): Promise<ImagesReading> {
  const named = await namedImages(rootDirectory)
  const ended = await imagesOfEnded(socketPath).catch(() => new Set<string>())
  const images = [...new Map(named.map((one) => [one.id, one])).values()].sort(
    (a, b) => Number(ended.has(b.id)) - Number(ended.has(a.id)),
  )
  const damaged: { readonly name: string; readonly damage: string }[] = []
  const signal = AbortSignal.timeout(ms)
  let checked = 0
  for (const { name, id } of images) {
    if (signal.aborted) break
    try {
      const damage = await imageDamage(rootDirectory, id, signal)
      if (damage !== undefined) damaged.push({ name, damage })
    } catch (error) {
      if (!signal.aborted) throw error
      break
    }
    checked++
  }
  return { images: images.length, checked, damaged }
}

async function imagesOfEnded(socketPath: string): Promise<ReadonlySet<string>> {
  const rows = await withDeadline(answerMs, undefined, (signal) =>
    engineReader(socketPath).read('/containers/json?all=true', containersShape, signal),
  )
  return new Set(rows.flatMap(({ ImageID, State }) => (State === 'running' ? [] : (ImageID ?? []))))
}
