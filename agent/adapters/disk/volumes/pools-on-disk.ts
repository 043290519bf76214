/** Which pools share the file system of the data directory: their volumes fill it. */
import { stat } from 'node:fs/promises'
import type { Pool } from '../../../../api/storage/pools.ts'

/** Their ids. One that cannot be read is left out. */
export async function poolsOnDiskOf(dataDirectory: string, pools: readonly Pool[]): Promise<ReadonlySet<string>> {
  const deviceOf = (path: string) =>
    stat(path).then(
      ({ dev }) => dev,
      () => undefined,
    )
  const own = await deviceOf(dataDirectory)
  const found: string[] = []
  for (const { id, path } of pools) if (own !== undefined && (await deviceOf(path)) === own) found.push(id)
  return new Set(found)
}
