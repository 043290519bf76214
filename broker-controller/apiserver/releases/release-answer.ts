/** The files of releases of the agent, for nodes. Ranges let a download continue where a power cut or a limit of its link ended it. */
import { ApiError } from '../../../api/api-error.ts'
import { type Identity, nodeOf } from '../../../api/identity.ts'
import { longestReleaseRange, type ReleaseFile } from '../../../api/node/release-paths.ts'
import type { ApiResponse } from '../wire/answers.ts'

export interface ReleaseFiles {
  /** At most `most` bytes, and the size of the whole file; undefined: there is no such file. */
  read(
    file: ReleaseFile,
    from: number,
    most: number,
  ): Promise<{ readonly size: number; readonly bytes: Buffer } | undefined>
}

export type ReleaseRequest = {
  readonly wanted: ReleaseFile
  readonly identity: Identity
  /** The header Range. */
  readonly range: string | undefined
}

const type = { 'content-type': 'application/octet-stream', 'accept-ranges': 'bytes' }

/**
 * Throws Forbidden for anybody but a node, and NotFound. An answer has at most `longestReleaseRange` bytes: a range that is longer is
 * cut (RFC 9110, section 15.3.7), and a file that is longer must be asked for by ranges.
 */
export async function releaseAnswer(
  { wanted, identity, range }: ReleaseRequest,
  { releases }: { readonly releases?: ReleaseFiles },
): Promise<ApiResponse> {
  if (nodeOf(identity) === undefined) throw new ApiError('Forbidden', 'releases are read by nodes only')
  const asked = range === undefined ? { from: 0, most: longestReleaseRange } : rangeOf(range)
  if (asked === undefined) throw new ApiError('BadRequest', 'Range must be like bytes=0-1023, with one range')
  const { from, most } = asked
  const found = await releases?.read(wanted, from, most)
  if (found === undefined) throw new ApiError('NotFound', `release ${wanted.digest} has no file ${wanted.file}`)
  const { size, bytes } = found
  if (range === undefined) {
    if (size > bytes.length)
      throw new ApiError('BadRequest', `The file has ${size} bytes: ask for ranges of at most ${longestReleaseRange}`)
    return { kind: 'plain', code: 200, headers: type, bytes }
  }
  if (from >= size)
    return {
      kind: 'plain',
      code: 416,
      headers: { ...type, 'content-range': `bytes */${size}` },
      bytes: Buffer.alloc(0),
    }
  const contentRange = `bytes ${from}-${from + bytes.length - 1}/${size}`
  return { kind: 'plain', code: 206, headers: { ...type, 'content-range': contentRange }, bytes }
}

/** Undefined: it is not one range with a beginning. */
function rangeOf(header: string): { readonly from: number; readonly most: number } | undefined {
  const [, first, last] = /^bytes=(\d{1,12})-(\d{0,12})$/.exec(header.trim()) ?? []
  if (first === undefined || last === undefined) return undefined
  const from = Number(first)
  const most = last === '' ? longestReleaseRange : Number(last) - from + 1
  return most < 1 ? undefined : { from, most: Math.min(most, longestReleaseRange) }
}
