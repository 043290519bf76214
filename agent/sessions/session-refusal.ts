import type { SessionStatus } from '../../api/sessions.ts'

/** Why a session is not served, in a sentence for its client. */
export class SessionRefusal extends Error {
  override readonly name = 'SessionRefusal'
  readonly reason: NonNullable<SessionStatus['reason']>

  constructor(reason: NonNullable<SessionStatus['reason']>, message: string, options?: { readonly cause: unknown }) {
    super(message, options)
    this.reason = reason
  }
}
