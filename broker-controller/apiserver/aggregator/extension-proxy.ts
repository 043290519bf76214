/** Passes requests on to extension servers (kube-aggregator, pkg/apiserver/handler_proxy.go). */
import { ApiError, isApiError } from '../../../api/api-error.ts'
import type { Identity } from '../../../api/identity.ts'
import { availableCondition } from '../../../api/registration/api-service.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { startDeadline } from '../../../daemon/deadline.ts'
import type { AggregatedRoute, OfferedProtocols, RawRequest } from '../handlers/strategy.ts'
import { proxyExchange } from '../proxy/proxy-exchange.ts'
import { requestHeaders } from '../proxy/proxy-headers.ts'
import { type ApiResponse, textAnswer } from '../wire/answers.ts'
import { isLongAggregated } from './aggregated-route.ts'
import type { ExtensionServers } from './extension-servers.ts'
import { withRemoteUser } from './remote-user.ts'

export type AggregatedRequest = {
  readonly route: AggregatedRoute
  /** The user that the server gets in headers. */
  readonly identity: Identity
  readonly streamOwner: string
  readonly offered: OfferedProtocols | undefined
  readonly raw: RawRequest | undefined
  readonly signal: AbortSignal
}

export interface ExtensionProxy {
  /** Throws the ApiError of a refusal. */
  answer(request: AggregatedRequest): Promise<ApiResponse>
}

export type ExtensionProxyNeeds = {
  readonly servers: ExtensionServers
  readonly clock: Clock
  /** Requests of one APIService; undefined: `defaultAtOnce`. */
  readonly mostAtOnce?: number
}

/**
 * Requests of one APIService at a time, watches among them: a server that does not answer holds the connections of its own group, and at
 * most half of the streams that a level of clients may have.
 */
const defaultAtOnce = 100
/** As kube-apiserver's --request-timeout. */
const answerMs = 60_000

export function extensionProxy({ servers, clock, mostAtOnce = defaultAtOnce }: ExtensionProxyNeeds): ExtensionProxy {
  const underWay = new Map<string, number>()
  /** Returns what gives the place back. */
  const take = (name: string): (() => void) => {
    const count = underWay.get(name) ?? 0
    if (count >= mostAtOnce) throw tooMany(name, mostAtOnce)
    underWay.set(name, count + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      const left = (underWay.get(name) ?? 1) - 1
      if (left === 0) underWay.delete(name)
      else underWay.set(name, left)
    }
  }
  /** Calls `ended` when the connection has ended, and `late` before it ends a request that takes too long. */
  const forward = async (
    { route, identity, streamOwner, offered, signal }: AggregatedRequest,
    raw: RawRequest,
    headers: readonly string[],
    { ended, late }: { readonly ended: () => void; readonly late: () => void },
  ): Promise<ApiResponse> => {
    const { apiService } = route
    const isUpgrade = offered !== undefined
    const connection = await servers.connect(apiService, { identity, streamOwner, signal })
    const expire = () => {
      late()
      connection.destroy()
    }
    const stop = isLongAggregated(route, isUpgrade) ? () => {} : startDeadline(answerMs, expire, clock)
    connection.once('close', () => {
      stop()
      ended()
    })
    return await proxyExchange({
      connection,
      scheme: 'https',
      trust: await servers.trust(apiService),
      raw,
      path: `${route.path}${raw.query === '' ? '' : `?${raw.query}`}`,
      headers,
      isUpgrade,
      rewriteLocation: (location) => location,
      clock,
    })
  }

  return {
    async answer(request) {
      const { route, raw } = request
      if (raw === undefined) throw new ApiError('InternalError', 'the request cannot be forwarded')
      if (availableCondition(route.apiService)?.status !== 'True') return unavailable
      const headers = forwardedHeaders(request, raw)
      const release = take(route.apiService.metadata.name)
      let isLate = false
      const late = () => {
        isLate = true
      }
      try {
        return await forward(request, raw, headers, { ended: release, late })
      } catch (error) {
        release()
        return answerOfFailure(error, isLate)
      }
    },
  }
}

function forwardedHeaders({ identity, offered }: AggregatedRequest, raw: RawRequest): readonly string[] {
  const { method, headers, address, path: uri } = raw
  return withRemoteUser(requestHeaders({ method, headers, address, uri, isUpgrade: offered !== undefined }), identity)
}

/** Throws what is not answered with a text. */
function answerOfFailure(error: unknown, isLate: boolean): ApiResponse {
  if (isLate) throw new ApiError('Timeout', 'request did not complete within the allotted timeout')
  if (isApiError(error) && isOfService(error)) return unavailable
  throw error
}

/** Its text is that of kube-apiserver, which is not a Status. */
const unavailable: ApiResponse = textAnswer('service unavailable\n', 503)

/** The Service is gone, or has no endpoints any more, and its APIService does not show that yet. */
function isOfService({ reason, message }: ApiError): boolean {
  return reason === 'NotFound' || message.startsWith('no endpoints available for service')
}

function tooMany(name: string, most: number): ApiError {
  const message = `APIService ${JSON.stringify(name)} has ${most} requests under way, please try again later`
  return new ApiError('TooManyRequests', message, { retryAfterSeconds: 1 })
}
