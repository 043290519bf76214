/**
 * What Raspberry Pi Imager asks below /ui/cards/: the list of the images that this controller offers, and the images. It cannot log in:
 * the token with which the machine of the card joins is in the address.
 */
import { ApiError } from '../../api/api-error.ts'
import {
  type BootstrapToken,
  decodeToken,
  formatToken,
  judgeToken,
  nodeBootstrapGroup,
  parseToken,
  tokenNamespace,
  tokenRefusal,
  tokenSecretName,
} from '../../api/node/bootstrap-token.ts'
import { addressKey } from '../../broker-controller/apiserver/authentication/peer-address.ts'
import { cardImageEnd, cardsRoot } from '../../broker-controller/apiserver/browser-sessions/dashboard-paths.ts'
import type { DashboardRequest } from '../../broker-controller/apiserver/browser-sessions/served-dashboard.ts'
import type { ApiResponse } from '../../broker-controller/apiserver/wire/answers.ts'
import { methodNotAllowed, unknownPath } from '../../broker-controller/apiserver/wire/status-errors.ts'
import { cardJoinFile } from '../../broker-controller/cards/card-files.ts'
import { imagerManifest } from '../../broker-controller/cards/imager-manifest.ts'
import { downloadBytes, joinRoom } from '../../broker-controller/cards/offered/offered-card.ts'
import type { NamedCard, OfferedCards } from '../../broker-controller/cards/offered/offered-cards.ts'
import type { Dashboard } from './dashboard.ts'

const listName = 'os_list.json'

/** Throws the ApiError of a refusal. */
export async function cardAnswer(request: DashboardRequest, dashboard: Dashboard): Promise<ApiResponse> {
  const { method, path, query } = request
  if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed()
  const name = path.slice(cardsRoot.length)
  const { cards } = dashboard
  if (cards === undefined || (name !== listName && !name.endsWith(cardImageEnd))) throw unknownPath()
  const token = await givenToken(query.get('token') ?? '', request, dashboard)
  const facts = joinFacts(dashboard)
  if (name === listName) return listAnswer(request, token, facts.server, await cards.list())
  const card = await cards.find(name.slice(0, -cardImageEnd.length))
  if (card === undefined) throw unknownPath()
  return imageAnswer(request, card, joinRoom(cardJoinFile({ ...facts, token, expiration: token.expiration })), cards)
}

/** Throws Unauthorized, and TooManyRequests for an address that tries tokens. */
async function givenToken(
  given: string,
  { address }: DashboardRequest,
  { store, clock, limitLogins }: Dashboard,
): Promise<BootstrapToken> {
  const parts = parseToken(given)
  const secret = parts && (await store.get('secrets', { namespace: tokenNamespace, name: tokenSecretName(parts.id) }))
  const kept = secret && decodeToken(secret)
  const nowMs = clock.wallMs()
  if (parts === undefined || kept === undefined) {
    limitLogins(addressKey(address))
    throw new ApiError('Unauthorized', 'This address of cards is not known: open the link on the dashboard again')
  }
  const judgement = judgeToken(kept, parts, nowMs)
  if (judgement.verdict === 'ok' && kept.groups.includes(nodeBootstrapGroup)) return kept
  limitLogins(addressKey(address))
  throw new ApiError('Unauthorized', tokenRefusal(judgement, parts.id, nowMs) || `token ${parts.id} is not for nodes`)
}

function listAnswer(
  { headers }: DashboardRequest,
  token: BootstrapToken,
  server: string,
  cards: readonly NamedCard[],
): ApiResponse {
  const host = [headers['host'] ?? headers[':authority']].flat()[0] ?? ''
  const url = URL.canParse(`https://${host}`) ? new URL(`https://${host}`) : undefined
  if (url?.href !== `${url?.origin}/`) throw new ApiError('BadRequest', 'the header Host is not that of a server')
  const list = imagerManifest(
    cards.map((card) => ({
      ...card,
      name: `${card.system} for ${new URL(server).host}`,
      url: `${url.origin}${cardsRoot}${card.name}${cardImageEnd}?token=${formatToken(token)}`,
      fileSize: downloadBytes(card),
    })),
  )
  const answer = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { kind: 'plain', code: 200, headers: answer, bytes: Buffer.from(list) }
}

/** From the byte on that the header Range names: a download that was cut off goes on. */
function imageAnswer({ headers }: DashboardRequest, card: NamedCard, terms: Buffer, cards: OfferedCards): ApiResponse {
  const total = downloadBytes(card)
  const [, first] = /^bytes=(\d{1,15})-$/.exec([headers['range']].flat()[0] ?? '') ?? []
  const from = Number(first ?? 0)
  if (from >= total) {
    const range = { 'content-range': `bytes */${total}` }
    return { kind: 'plain', code: 416, headers: range, bytes: Buffer.alloc(0) }
  }
  return {
    kind: 'file',
    code: first === undefined ? 200 : 206,
    headers: {
      'content-type': 'application/x-xz',
      'content-length': String(total - from),
      'accept-ranges': 'bytes',
      'cache-control': 'no-store',
      ...(first !== undefined && { 'content-range': `bytes ${from}-${total - 1}/${total}` }),
    },
    pieces: cards.read(card, terms, from),
  }
}

function joinFacts({ authority }: Dashboard): { readonly server: string; readonly caHash: string } {
  const { server, caHash } = authority()
  if (server === undefined) throw new ApiError('ServiceUnavailable', 'the controller starts', { retryAfterSeconds: 1 })
  return { server, caHash }
}
