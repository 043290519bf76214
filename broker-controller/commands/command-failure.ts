/** The error text of a failed command, with a remedy for files of another user and for a controller that does not answer. */
import { ApiUnreachable } from '../../daemon/api-client.ts'
import { isDenied, withCauses } from '../../daemon/errors.ts'
import { storyOf } from '../../daemon/log.ts'

/** Those of a connection that was not made, or was silent. */
const connectionCodes = ['ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']

/** One or two lines, each with its newline. */
export function failureText(error: unknown, { aborted }: AbortSignal): string {
  if (aborted) return 'Stopped\n'
  const remedy = remedyOf(error)
  return `${storyOf(error)}\n${remedy === undefined ? '' : `${remedy}\n`}`
}

function remedyOf(error: unknown): string | undefined {
  if (isDenied(error)) return 'Run it as root (sudo), or as the owner of the files.'
  const isAway = withCauses(error).some((one) => one instanceof ApiUnreachable && connectionCodes.includes(one.code))
  if (!isAway) return undefined
  return "Check that the controller runs there ('systemctl status bramble-controller'), or name another one by --kubeconfig."
}
