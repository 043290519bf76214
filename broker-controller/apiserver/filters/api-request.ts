/** A request of the API with what is needed to answer it, and its answer. */
import type { RevocationList } from '../../store/revocations.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { ExtensionProxy } from '../aggregator/extension-proxy.ts'
import type { RequestSender } from '../audit/audit-event.ts'
import type { AuditLog } from '../audit/audit-log.ts'
import type { ClientCertificate } from '../authentication/authentication.ts'
import type { ServiceAccountTokens } from '../authentication/tokens/service-account-tokens.ts'
import type { HeldAccess, HeldAnswer } from '../authorization/held-access.ts'
import type { ServedDashboard } from '../browser-sessions/served-dashboard.ts'
import type { FlowAdmission, FlowControl } from '../flow-control/flow-control.ts'
import type { Replica } from '../forwarding/replica.ts'
import type { OfferedProtocols, RawRequest, ResourceNeeds } from '../handlers/strategy.ts'
import type { ReleaseFiles } from '../releases/release-answer.ts'
import type { ApiRoute } from '../routes.ts'
import type { SystemNeeds } from '../system-paths.ts'
import type { ApiResponse } from '../wire/answers.ts'

export type ApiRequest = {
  readonly method: string
  /** As in the request line, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly certificate: ClientCertificate | undefined
  /** The other end of its connection, where there is one. */
  readonly address?: string | undefined
  readonly headers: { readonly [lowerCaseName: string]: string | readonly string[] | undefined }
  /** Throws RequestEntityTooLarge. */
  readonly readBody: () => Promise<Buffer>
  /** undefined: the request does not ask to leave HTTP. */
  readonly offered?: OfferedProtocols | undefined
  /** undefined: it cannot be passed on. */
  readonly raw?: RawRequest | undefined
  /** Called when its credentials are accepted, with the one whose share its connection takes from. */
  readonly onIdentified?: (owner: string) => void
  /** Aborts when the client is gone or the server closes. */
  readonly signal: AbortSignal
}

export type RequestNeeds = SystemNeeds &
  ResourceNeeds & {
    readonly usage: UsageBoard
    readonly tokens?: ServiceAccountTokens
    /** undefined: every certificate of the authority is good until its end. */
    readonly revocations?: Pick<RevocationList, 'because'>
    /** For so long after its end a node's certificate still serves to ask for a new one; 0: not at all. */
    readonly lapsedWindowMs?: number
    /** undefined: there are none. */
    readonly releases?: ReleaseFiles
    /** undefined: there is no audit log. */
    readonly audit?: AuditLog
    /** undefined: requests are not limited. */
    readonly flowControl?: Pick<FlowControl, 'admitInTurn'>
    /** undefined: the right to an answer that lasts is not asked for again. */
    readonly heldAccess?: Pick<HeldAccess, 'hold'>
    /** undefined: there is no dashboard, and no session of it. */
    readonly dashboard?: ServedDashboard
    /** undefined: there is no way to extension servers. */
    readonly extensionProxy?: ExtensionProxy
    /** undefined: this is the only controller. */
    readonly replica?: Replica
  }

/** With what was asked, for counters. `admission` is to be released when the answer is written. */
export type Answered = {
  readonly answer: ApiResponse
  readonly route: ApiRoute
  readonly user: string
  readonly sender: RequestSender
  readonly admission?: FlowAdmission | undefined
  /** Access that an answer that lasts needs until its end. To be released like `admission`. */
  readonly held?: HeldAnswer | undefined
  /** Aborts when the session of the dashboard ends that the request came with: its answer ends with it. */
  readonly sessionEnded?: AbortSignal | undefined
  /** Another controller has answered, which counts the request and writes it down. */
  readonly isForwarded?: boolean
}

/** The first value of a header. */
export function firstHeader(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}
