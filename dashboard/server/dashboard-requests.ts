/** The answers below /ui/: the files of the page and the login for everybody, the rest for the identity of the request. */

import { kiosksGroup } from '../../api/access/kiosk-link.ts'
import { ApiError } from '../../api/api-error.ts'
import type { LoginLinkAnswer, SessionAnswer, SessionRow } from '../../api/dashboard/dashboard-messages.ts'
import { decode } from '../../api/decode.ts'
import { object, optional, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { addressKey } from '../../broker-controller/apiserver/authentication/peer-address.ts'
import { permit } from '../../broker-controller/apiserver/authorization/authorizer.ts'
import {
  closingCookie,
  openingCookie,
  refuseForgery,
} from '../../broker-controller/apiserver/browser-sessions/dashboard-credentials.ts'
import {
  authorityPath,
  cardsRoot,
  dashboardApiRoot,
  dashboardRoot,
} from '../../broker-controller/apiserver/browser-sessions/dashboard-paths.ts'
import type {
  DashboardSession,
  SessionProof,
} from '../../broker-controller/apiserver/browser-sessions/dashboard-sessions.ts'
import type {
  DashboardRequest,
  DashboardRequester,
  ServedDashboard,
} from '../../broker-controller/apiserver/browser-sessions/served-dashboard.ts'
import type { Attributes } from '../../broker-controller/apiserver/handlers/authorizer.ts'
import { type ApiResponse, objectAnswer } from '../../broker-controller/apiserver/wire/answers.ts'
import { methodNotAllowed, unknownPath } from '../../broker-controller/apiserver/wire/status-errors.ts'
import { cardAnswer } from './card-requests.ts'
import type { Dashboard } from './dashboard.ts'
import { dashboardHeaders, indexName } from './dashboard-files.ts'

/** `dashboard` as the API server needs it. */
export function servedDashboard(dashboard: Dashboard): ServedDashboard {
  return {
    identify: dashboard.identify,
    publicAnswer: (request) => publicAnswer(request, dashboard),
    privateAnswer: (request, requester) => privateAnswer(request, requester, dashboard),
  }
}

async function publicAnswer(request: DashboardRequest, dashboard: Dashboard): Promise<ApiResponse> {
  const { method, path, headers } = request
  if (path === `${dashboardApiRoot}login`) {
    if (method !== 'POST') throw methodNotAllowed()
    return login(request, dashboard)
  }
  if (path.startsWith(cardsRoot)) return cardAnswer(request, dashboard)
  if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed()
  if (path === dashboardRoot) return plain(308, { location: `${dashboardRoot}/` })
  if (path === authorityPath) return certificateAnswer(dashboard)
  const name = path.slice(dashboardRoot.length + 1) || indexName
  const found = await dashboard.files.answer(name, {
    acceptEncoding: textOf(headers['accept-encoding']),
    ifNoneMatch: textOf(headers['if-none-match']),
  })
  if (found === undefined) throw unknownPath()
  return found
}

async function privateAnswer(
  request: DashboardRequest,
  requester: DashboardRequester,
  dashboard: Dashboard,
): Promise<ApiResponse> {
  const { method, path, query, signal } = request
  const { identity, session } = requester
  const [what = '', name, ...more] = path.slice(dashboardApiRoot.length).split('/')
  // Only whole paths: limits on requests take the stream for one by its path.
  if (more.length > 0 || (name !== undefined && what !== 'sessions')) throw unknownPath()
  switch (`${method} ${what}`) {
    case 'GET stream': {
      const current =
        session === undefined ? async () => identity : () => dashboard.identityOf(used(session, dashboard))
      const pieces = dashboard.fleet.stream(current, signal)
      return { kind: 'flow', contentType: 'text/event-stream', pieces }
    }
    case 'GET session':
      return objectAnswer(await sessionFacts(requester, dashboard))
    case 'GET history': {
      const node = query.get('node') ?? ''
      await permit(dashboard.access, identity, onNode(node, { group: 'metrics.k8s.io', subresource: '' }))
      return objectAnswer(dashboard.fleet.history(node) ?? {})
    }
    case 'GET doctor': {
      const node = query.get('node') ?? ''
      await permit(dashboard.access, identity, onNode(node, { group: '', subresource: 'proxy' }))
      if (dashboard.doctor === undefined) throw unknownPath()
      return objectAnswer(await dashboard.doctor(node, { identity, signal }))
    }
    case 'GET sessions':
      return objectAnswer(await visibleSessions(requester, dashboard))
    case 'DELETE sessions':
      return endSession(name ?? '', requester, dashboard)
    case 'POST logout':
      if (session !== undefined) dashboard.sessions.end(session.id)
      return plain(204, { 'set-cookie': closingCookie })
    case 'POST links':
      return objectAnswer(createLink(requester, dashboard), 201)
    default:
      throw unknownPath()
  }
}

/** Marks the session as used: a page that is open uses it. */
function used({ id, proof, ended }: DashboardSession, { sessions }: Dashboard): SessionProof {
  if (ended.aborted) throw new ApiError('Unauthorized', 'the session of the dashboard has ended: log in again')
  sessions.touch(id)
  return proof
}

/** A token has 2 kB at most, and everyone may send this body. */
const longestLoginBytes = 16 * 1024
const LoginSchema = object({ link: optional(text), token: optional(text), kiosk: optional(text) })

async function login(request: DashboardRequest, dashboard: Dashboard): Promise<ApiResponse> {
  const { headers, offered, address, readBody } = request
  refuseForgery({ method: 'POST', headers, offered })
  dashboard.limitLogins(addressKey(address))
  const body = await readBody()
  if (body.length > longestLoginBytes) {
    throw new ApiError(
      'RequestEntityTooLarge',
      `Request entity too large: limit of a login is ${longestLoginBytes} bytes`,
    )
  }
  const decoded = decode(LoginSchema, parseJson(body.toString('utf8')))
  const given = decoded.ok ? decoded.value : {}
  const proof = await proofOf(given, dashboard)
  if (proof === undefined) {
    throw new ApiError(
      'Unauthorized',
      'This link was used before, has expired, or is not from this controller. Create a new one.',
    )
  }
  const { user } = await dashboard.identityOf(proof)
  const userAgent = (textOf(headers['user-agent']) ?? '').slice(0, 200)
  const secret = dashboard.sessions.open(proof, { user, address: address ?? '', userAgent })
  dashboard.log.info('Dashboard session opened', { user, session: secret.split('.')[0], address })
  return plain(204, { 'set-cookie': openingCookie(secret) })
}

async function proofOf(
  { link, token, kiosk }: { readonly link?: string; readonly token?: string; readonly kiosk?: string },
  { sessions, kioskProof }: Dashboard,
): Promise<SessionProof | undefined> {
  if (link !== undefined) return sessions.redeemLink(link)
  if (token !== undefined) return { kind: 'token', token }
  return kiosk === undefined ? undefined : kioskProof(kiosk)
}

async function sessionFacts(
  { identity, session }: DashboardRequester,
  { authority, version, cards }: Dashboard,
): Promise<SessionAnswer> {
  const { server, caHash } = authority()
  const { user, groups } = identity
  const isKiosk = groups.includes(kiosksGroup)
  const offersCards = !isKiosk && ((await cards?.list()) ?? []).length > 0
  return {
    ...{ user, groups, id: session?.id ?? '', isKiosk, version, caHash },
    ...(server !== undefined && { server }),
    ...(offersCards && { offersCards }),
  }
}

async function visibleSessions({ identity, session }: DashboardRequester, dashboard: Dashboard) {
  const mayAll = (await dashboard.access.decide(identity, onSessions('get'))).allowed
  const items = dashboard.sessions
    .list()
    .filter(({ user }) => mayAll || user === identity.user)
    .map(
      ({ openedMs, ...facts }): SessionRow => ({
        ...facts,
        opened: Math.floor(openedMs / 1000),
        ...(facts.id === session?.id && { isOwn: true }),
      }),
    )
  return { items }
}

async function endSession(id: string, { identity }: DashboardRequester, dashboard: Dashboard): Promise<ApiResponse> {
  const found = dashboard.sessions.list().find((one) => one.id === id)
  const isOwn = found?.user === identity.user
  if (!isOwn) await permit(dashboard.access, identity, onSessions('delete'))
  if (found === undefined) throw new ApiError('NotFound', `there is no session ${JSON.stringify(id)}`)
  dashboard.sessions.end(id)
  dashboard.log.info('Dashboard session revoked', { session: id, user: found.user, by: identity.user })
  return plain(204, {})
}

/** A kiosk link and the token of a service account are good without another session: a link would outlive them. */
function createLink({ identity, session }: DashboardRequester, { sessions, log }: Dashboard): LoginLinkAnswer {
  const { user, groups } = identity
  if (groups.includes(kiosksGroup)) throw new ApiError('Forbidden', 'a kiosk cannot create login links')
  if (session?.proof.kind === 'token' || user.startsWith('system:serviceaccount:')) {
    throw new ApiError('BadRequest', 'A service account logs in with its token: paste it on the page')
  }
  const { link, expiresMs } = sessions.createLink(identity, session?.id)
  log.info('Dashboard login link created', { user })
  return { link, expires: Math.floor(expiresMs / 1000) }
}

function onSessions(verb: string): Attributes {
  return { kind: 'path', verb, path: `${dashboardApiRoot}sessions` }
}

function onNode(name: string, what: { readonly group: string; readonly subresource: string }): Attributes {
  const fields = new Map<string, string>()
  return { kind: 'resource', verb: 'get', resource: 'nodes', namespace: '', name, fields, ...what }
}

function certificateAnswer({ authority }: Dashboard): ApiResponse {
  const { trusted, caHash } = authority()
  const headers = {
    'x-bramble-ca-hash': caHash,
    'content-type': 'application/x-x509-ca-cert',
    'content-disposition': 'attachment; filename="bramble-ca.crt"',
  }
  return plain(200, headers, Buffer.from(trusted))
}

function plain(code: number, headers: { readonly [name: string]: string }, bytes = Buffer.alloc(0)): ApiResponse {
  return { kind: 'plain', code, headers: { ...dashboardHeaders, ...headers }, bytes }
}

function textOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}
