/** Answers about the whole fleet for dashboards: below `/fleet/`, authorized by their paths like `/metrics/fleet`. */
import { ApiError } from '../../../api/api-error.ts'
import type { Store } from '../../store/store.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { fleetBadge } from './fleet-badge.ts'
import { type FleetSummary, fleetSummary } from './fleet-summary.ts'
import { scrapeAddress, type TargetGroup, targetGroups } from './scrape-targets.ts'

export const fleetPaths = ['/fleet/badge.svg', '/fleet/http_sd', '/fleet/summary'] as const

export type FleetRequest = {
  readonly path: string
  readonly query: URLSearchParams
  /** As the client wrote it. */
  readonly host: string | undefined
}

export type FleetNeeds = {
  readonly store: Store
  /** `https://HOST:PORT` of this API, for a request without a host. */
  readonly serverUrl?: () => string | undefined
}

/** Undefined: there is nothing at this path. Throws the ApiError of a refusal. */
export async function fleetAnswer(
  { path, query, host }: FleetRequest,
  needs: FleetNeeds,
): Promise<ApiResponse | undefined> {
  switch (path) {
    case '/fleet/summary':
      return objectAnswer(await summaryNow(needs.store))
    case '/fleet/badge.svg':
      return {
        kind: 'plain',
        code: 200,
        // A badge that a browser or a proxy keeps would show a fleet of the past.
        headers: {
          'content-type': 'image/svg+xml; charset=utf-8',
          'cache-control': 'no-cache, no-store',
          'x-content-type-options': 'nosniff',
          'content-security-policy': "default-src 'none'",
        },
        bytes: Buffer.from(fleetBadge(await summaryNow(needs.store))),
      }
    case '/fleet/http_sd': {
      const address = scrapeAddress(host) ?? scrapeAddress(needs.serverUrl?.()?.replace(/^https:\/\//, ''))
      if (address === undefined) throw new ApiError('BadRequest', 'the request has no valid host to scrape')
      const { items } = await needs.store.list('nodes')
      const groups = targetGroups(items, address, query.getAll('job'))
      return { kind: 'pieces', code: 200, contentType: 'application/json', pieces: jsonPieces(groups) }
    }
    default:
      return undefined
  }
}

async function summaryNow(store: Store): Promise<FleetSummary> {
  const [nodes, pods] = await Promise.all([store.list('nodes'), store.list('pods')])
  return fleetSummary(nodes.items, pods.items)
}

/** About 64 KiB. */
const groupsInPiece = 256

/** A JSON array; yields to the event loop between two pieces. */
async function* jsonPieces(groups: Iterable<TargetGroup>): AsyncIterable<string> {
  let piece = '['
  let count = 0
  for (const group of groups) {
    piece += `${count === 0 ? '' : ','}${JSON.stringify(group)}`
    if (++count % groupsInPiece !== 0) continue
    yield piece
    piece = ''
    await new Promise((resolve) => setImmediate(resolve))
  }
  yield `${piece}]\n`
}
