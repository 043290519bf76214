/** Reads thrown values, for code that catches `unknown`. */

/** `ENOENT`, `ECONNREFUSED`: of an error of Node's; '' where it has none. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return ''
  return typeof error.code === 'string' ? error.code : ''
}

/** There is no such file (ENOENT), or a part of its path is not a folder (ENOTDIR). */
export function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error))
}

/** The kernel denied access to this user, in the error or in one of its causes. */
export function isDenied(error: unknown): boolean {
  return withCauses(error).some((one) => ['EACCES', 'EPERM'].includes(codeOf(one)))
}

/** The value and its causes, the outermost first. Causes that form a cycle are listed once. */
export function withCauses(error: unknown): readonly unknown[] {
  const found = new Set<unknown>()
  for (let one = error; !found.has(one); ) {
    found.add(one)
    if (!(one instanceof Error) || one.cause === undefined) break
    one = one.cause
  }
  return [...found]
}

/** Its own message, without its causes: see `storyOf` in `log.ts` for those. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
