import { type ApiAnswer, statusMessage } from '../../../daemon/api-client.ts'

/** Throws with `what` and the reason that the API gives, unless it has done what was asked. */
export function expectSuccess(what: string, { status, body }: ApiAnswer): void {
  if (status >= 200 && status < 300) return
  throw new Error(`${what}: ${statusMessage(body) ?? 'the server is not the API of a fleet'} (status ${status})`)
}
