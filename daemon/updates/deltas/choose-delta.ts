/** Which deltas of a release a machine downloads in place of the archive. Decides only. */
import type { ReleaseArchive, ReleaseDelta, ReleaseManifest } from '../release-manifest.ts'

/** The name of the file of a delta. */
export function deltaFileName(
  { program, version }: Pick<ReleaseManifest, 'program' | 'version'>,
  arch: string,
  { base }: Pick<ReleaseDelta, 'base'>,
): string {
  return `${program}_${version}_${arch}.from-${base.slice(0, 16)}.delta`
}

/**
 * The smallest first. `bases`: digests of the archives that the machine has; `have`: how many bytes of the archive are downloaded: a
 * delta must be smaller than the rest. What cannot be one is left out, although it is signed.
 */
export function usableDeltas(
  archive: ReleaseArchive,
  bases: ReadonlySet<string>,
  have: number,
): readonly ReleaseDelta[] {
  const { size, deltas = [] } = archive
  return deltas
    .filter((one) => isDelta(one) && one.size < size - have && bases.has(one.base))
    .sort((one, other) => one.size - other.size)
}

function isDelta({ base, sha256, size }: ReleaseDelta): boolean {
  const digest = /^[0-9a-f]{64}$/
  return digest.test(base) && digest.test(sha256) && size > 0
}
