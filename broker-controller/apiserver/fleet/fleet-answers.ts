/** Answers about the whole fleet for dashboards: below `/fleet/`, authorized by their paths like `/metrics/fleet`. */
import { setImmediate } from 'node:timers/promises'
import { ApiError } from '../../../api/api-error.ts'
import type { FleetVolumes } from '../../../api/storage/fleet-volumes.ts'
import type { Store } from '../../store/store.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { fleetBadge } from './fleet-badge.ts'
import { type FleetSummary, fleetSummary } from './fleet-summary.ts'
import { fleetVolumes } from './fleet-volumes.ts'
import { objectPieces, rowPieces } from './json-pieces.ts'
import { scrapeAddress, targetGroups } from './scrape-targets.ts'

export const fleetPaths = ['/fleet/badge.svg', '/fleet/http_sd', '/fleet/summary', '/fleet/volumes'] as const

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
  /** What nodes report of their volumes; undefined: none do. */
  readonly storage?: Pick<StorageBoard, 'reportOf' | 'copiedBytes'>
}

/** Undefined: there is nothing at this path. Throws the ApiError of a refusal. */
export async function fleetAnswer(
  { path, query, host }: FleetRequest,
  needs: FleetNeeds,
): Promise<ApiResponse | undefined> {
  switch (path) {
    case '/fleet/summary':
      return objectAnswer(await summaryNow(needs.store))
    case '/fleet/volumes':
      return {
        kind: 'pieces',
        code: 200,
        contentType: 'application/json',
        pieces: objectPieces({ ...(await volumesNow(needs)) }),
      }
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
      return { kind: 'pieces', code: 200, contentType: 'application/json', pieces: rowPieces(groups) }
    }
    default:
      return undefined
  }
}

async function summaryNow(store: Store): Promise<FleetSummary> {
  const [nodes, pods] = await Promise.all([store.list('nodes'), store.list('pods')])
  return fleetSummary(nodes.items, pods.items)
}

async function volumesNow({ store, storage }: Pick<FleetNeeds, 'store' | 'storage'>): Promise<FleetVolumes> {
  const [nodes, volumes, claims, pods] = await Promise.all([
    store.list('nodes'),
    store.list('persistentvolumes'),
    store.list('persistentvolumeclaims'),
    store.list('pods'),
  ])
  const rows = fleetVolumes({
    ...{ nodes: nodes.items, volumes: volumes.items, claims: claims.items, pods: pods.items },
    reportOf: (node) => storage?.reportOf(node),
    ...(storage && { copiedBytes: storage.copiedBytes }),
  })
  for (let count = 1; ; count++) {
    const step = rows.next()
    if (step.done === true) return step.value
    if (count % rowsInTurn === 0) await setImmediate()
  }
}

const rowsInTurn = 512
