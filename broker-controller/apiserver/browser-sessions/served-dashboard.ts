/** The dashboard as the API server needs it: whose request comes with a session cookie, and the answers to its paths. */
import type { Identity } from '../../../api/identity.ts'
import type { OfferedProtocols } from '../handlers/strategy.ts'
import type { ApiResponse } from '../wire/answers.ts'
import type { BrowserHeaders } from './dashboard-credentials.ts'
import type { DashboardSession } from './dashboard-sessions.ts'

export type DashboardRequest = {
  readonly method: string
  /** One of `dashboard-paths.ts`. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: BrowserHeaders
  readonly offered: OfferedProtocols | undefined
  readonly address: string | undefined
  readonly readBody: () => Promise<Buffer>
  readonly signal: AbortSignal
}

/** Whose request it is. `session` undefined: it came with other credentials. */
export type DashboardRequester = { readonly identity: Identity; readonly session: DashboardSession | undefined }

export interface ServedDashboard {
  /** The session of a cookie, and its identity now. Throws Unauthorized when it has ended. */
  identify(cookie: string): Promise<{ readonly session: DashboardSession; readonly identity: Identity }>
  /** The answer to a public path. Throws the ApiError of a refusal. */
  publicAnswer(request: DashboardRequest): Promise<ApiResponse>
  /** The answer to any other path: it shows what the identity, which was authenticated, may see. Throws the ApiError of a refusal. */
  privateAnswer(request: DashboardRequest, requester: DashboardRequester): Promise<ApiResponse>
}
