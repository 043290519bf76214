/** Where nodes read the files of a release of the agent: at the API of the controller, with their certificate. */

const pathPrefix = '/bramble/v1/releases/'

/** At most so many bytes are in one answer: more is asked for by ranges. */
export const longestReleaseRange = 1024 * 1024

/** `digest`: SHA-256 of the release.json of the release. */
export type ReleaseFile = { readonly digest: string; readonly file: string }

export function releasePath({ digest, file }: ReleaseFile): string {
  return `${pathPrefix}${digest}/${file}`
}

/** Undefined: the path is not that of a file of a release. */
export function releaseFileOf(path: string): ReleaseFile | undefined {
  if (!path.startsWith(pathPrefix)) return undefined
  const [, digest = '', file = ''] =
    /^([0-9a-f]{64})\/([0-9A-Za-z][0-9A-Za-z._+~-]{0,127})$/.exec(path.slice(pathPrefix.length)) ?? []
  return file === '' ? undefined : { digest, file }
}
