/** The error text of a failed command, with a remedy for files of another user. */
import { isDenied } from '../../daemon/errors.ts'
import { storyOf } from '../../daemon/log.ts'

/** One or two lines, each with its newline. */
export function failureText(error: unknown, { aborted }: AbortSignal): string {
  if (aborted) return 'Stopped\n'
  const remedy = isDenied(error) ? 'Run it as root (sudo), or as the owner of the files.\n' : ''
  return `${storyOf(error)}\n${remedy}`
}
