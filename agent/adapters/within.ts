/** A deadline for calls that have none of their own. */

/** What `work` gives, or an error saying `late` after `ms`. The work itself goes on; its answer is then dropped. */
export async function within<T>(ms: number, late: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${late} within ${ms / 1000} s`)), ms)
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}
