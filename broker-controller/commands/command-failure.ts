/** What a command says of its failure, and what to do about it where the files are somebody else's. */
import { isDenied } from '../../daemon/errors.ts'
import { storyOf } from '../../daemon/log.ts'

/** One line or two, with their ends. */
export function failureText(error: unknown, { aborted }: AbortSignal): string {
  if (aborted) return 'Stopped\n'
  const remedy = isDenied(error) ? 'Run it as root (sudo), or as the user whose files these are.\n' : ''
  return `${storyOf(error)}\n${remedy}`
}
