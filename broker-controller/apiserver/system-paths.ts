/** Everything that is not an object: which version this is, whether it is well, its counters, its description. */
import type { FleetBackups } from '../../api/backups/fleet-backups.ts'
import type { Clock } from '../../daemon/clock.ts'
import { within } from '../../daemon/deadline.ts'
import { messageOf } from '../../daemon/errors.ts'
import { kubernetes, nodeVersion } from '../../daemon/process/version.ts'
import { gauge, metricsContentType, metricsText } from '../../daemon/prometheus-text.ts'
import type { Store } from '../store/store.ts'
import type { StorageBoard } from '../usage/storage-board.ts'
import type { DiscoveryNeeds } from './aggregator/discovery-needs.ts'
import {
  keySet,
  openidConfiguration,
  type ServiceAccountTokens,
  tokenIssuer,
} from './authentication/tokens/service-account-tokens.ts'
import { discoveryAnswer, discoveryPaths } from './discovery.ts'
import { fleetMetrics } from './figures/fleet-metrics.ts'
import { fleetAnswer, fleetPaths } from './fleet/fleet-answers.ts'
import { objectPieces } from './fleet/json-pieces.ts'
import { openApiAnswer } from './openapi/openapi-answers.ts'
import { type ApiResponse, objectAnswer, textAnswer } from './wire/answers.ts'
import { methodNotAllowed, unknownPath } from './wire/status-errors.ts'

export type HealthEndpoint = 'healthz' | 'livez' | 'readyz'

export type ReadinessCheck = {
  /** That of Kubernetes where it has the same check. */
  readonly name: string
  /** Left out: of `readyz` only. */
  readonly of?: readonly HealthEndpoint[]
  /** Rejects, with the reason, where something is not well. */
  readonly check: () => Promise<void>
  /**
   * Shown with a check that passes. What all controllers have in common and does not yet keep one from answering must not fail: a load
   * balancer would take all of them away.
   */
  readonly warnings?: () => readonly string[]
}

export type SystemNeeds = DiscoveryNeeds & {
  /** Ours, as in `0.1.0`. */
  readonly version: string
  readonly metrics: () => Promise<{ readonly text: string; readonly contentType: string }>
  /** The objects of the fleet, for /metrics/fleet. */
  readonly store: Store
  readonly clock: Pick<Clock, 'wallMs'>
  readonly readiness: readonly ReadinessCheck[]
  /** Whose public keys are published; undefined: there are no tokens. */
  readonly tokens?: Pick<ServiceAccountTokens, 'publicKeys'>
  /** `https://HOST:PORT` as other machines reach this API, for what names its own address; undefined: not yet known. */
  readonly serverUrl?: () => string | undefined
  /** What nodes report of their volumes. */
  readonly storage?: Pick<StorageBoard, 'reportOf' | 'copiedBytes'>
  /** The backups in the folders of the fleet, or in `NODE:PATH`; undefined: this controller has no way to them. */
  readonly backups?: (at: string | undefined) => Promise<FleetBackups>
}

export type SystemRequest = {
  readonly verb: string
  readonly path: string
  readonly query: URLSearchParams
  readonly accept: string | undefined
  readonly acceptEncoding?: string | undefined
  readonly ifNoneMatch?: string | undefined
  /** As the client wrote it. */
  readonly host?: string | undefined
}

export async function systemAnswer(request: SystemRequest, needs: SystemNeeds): Promise<ApiResponse> {
  const { verb } = request
  const answer = await answerAt(request, needs)
  if (answer === undefined) throw unknownPath()
  if (verb !== 'get') throw methodNotAllowed()
  return answer
}

async function answerAt(request: SystemRequest, needs: SystemNeeds): Promise<ApiResponse | undefined> {
  const { path, query, accept, acceptEncoding, ifNoneMatch, host } = request
  const endpoint = healthEndpoints.find((one) => path === `/${one}` || path.startsWith(`/${one}/`))
  if (endpoint !== undefined) {
    const checks = checksOf(endpoint, needs.readiness)
    const one = path.slice(`/${endpoint}/`.length)
    return one === '' ? await healthAnswer(endpoint, checks, query) : await singleAnswer(checks, one)
  }
  switch (path) {
    case '/':
      return objectAnswer({ paths: pathsOf(needs) })
    case '/version':
      return objectAnswer(versionInfo())
    case '/metrics': {
      const { text, contentType } = await needs.metrics()
      return { kind: 'text', code: 200, text, contentType }
    }
    case '/metrics/fleet':
      return { kind: 'pieces', code: 200, contentType: metricsContentType, pieces: fleetMetrics(needs) }
    case '/metrics/slis':
      return { kind: 'text', code: 200, text: await readinessMetrics(needs.readiness), contentType: metricsContentType }
    case backupsPath:
      if (request.verb !== 'get') throw methodNotAllowed()
      return needs.backups && backupsAnswer(await needs.backups(query.get('at') ?? undefined))
    case keySetPath:
      return needs.tokens && jsonText(keySet(needs.tokens.publicKeys()), 'application/jwk-set+json')
    case '/.well-known/openid-configuration':
      return needs.tokens && openidAnswer(needs)
    default:
      if (path.startsWith('/openapi/')) {
        return openApiAnswer({ path, query, accept, acceptEncoding, ifNoneMatch }, needs, needs.version)
      }
      if (path.startsWith('/fleet/')) return fleetAnswer({ path, query, host }, needs)
      return discoveryAnswer(path, accept, needs)
  }
}

function pathsOf(needs: SystemNeeds): readonly string[] {
  return [
    ...discoveryPaths(needs),
    ...healthEndpoints.flatMap((endpoint) => [
      `/${endpoint}`,
      ...checksOf(endpoint, needs.readiness).map(({ name }) => `/${endpoint}/${name}`),
    ]),
    ...fleetPaths,
    ...(needs.backups ? [backupsPath] : []),
    '/metrics',
    '/metrics/fleet',
    '/metrics/slis',
    '/openapi/v2',
    ...(needs.tokens ? ['/.well-known/openid-configuration', keySetPath] : []),
    '/openapi/v3',
    '/version',
  ].sort()
}

function openidAnswer({ serverUrl }: SystemNeeds): ApiResponse {
  return jsonText(openidConfiguration(`${serverUrl?.() ?? tokenIssuer}${keySetPath}`), 'application/json')
}

/** Folders may have thousands of them. */
function backupsAnswer(found: FleetBackups): ApiResponse {
  return { kind: 'pieces', code: 200, contentType: 'application/json', pieces: objectPieces({ ...found }) }
}

const keySetPath = '/openid/v1/jwks'
/** For administrators alone: roles that read `/fleet/*` name no folders of nodes. */
const backupsPath = '/backups'

/** A document of a type of its own: it is not an API object. */
function jsonText(document: object, contentType: string): ApiResponse {
  return { kind: 'text', code: 200, text: JSON.stringify(document), contentType }
}

const healthEndpoints: readonly HealthEndpoint[] = ['healthz', 'livez', 'readyz']
const alwaysWell = async () => undefined
const ownChecks: readonly ReadinessCheck[] = ['ping', 'log'].map((name) => ({ name, check: alwaysWell }))

function checksOf(endpoint: HealthEndpoint, checks: readonly ReadinessCheck[]): readonly ReadinessCheck[] {
  return [...ownChecks, ...checks.filter(({ of = ['readyz'] }) => of.includes(endpoint))]
}

/** Clients choose their manners by it. */
function versionInfo() {
  return {
    major: kubernetes.major,
    minor: kubernetes.minor,
    gitVersion: nodeVersion,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node${process.versions.node}`,
    compiler: 'v8',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  }
}

/** The one check that the path names; undefined: there is none. The texts are those of adaptCheckToHandler in the file below. */
async function singleAnswer(checks: readonly ReadinessCheck[], name: string): Promise<ApiResponse | undefined> {
  const check = checks.find((one) => one.name === name)
  if (check === undefined) return undefined
  const { problem } = await resultOf(check)
  return problem === undefined ? textAnswer('ok') : textAnswer(`internal server error: ${problem}\n`, 500)
}

/** All checks but those that the query excludes (staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go). */
async function healthAnswer(
  endpoint: HealthEndpoint,
  all: readonly ReadinessCheck[],
  query: URLSearchParams,
): Promise<ApiResponse> {
  const excluded = new Set(query.getAll('exclude'))
  const results = await Promise.all(
    all.map(async (check) => (excluded.has(check.name) ? excludedResult(check.name) : linesOf(await resultOf(check)))),
  )
  const isWell = results.every(({ failed }) => !failed)
  if (isWell && !query.has('verbose')) return textAnswer('ok')
  const strange = [...excluded].filter((name) => !all.some((check) => check.name === name)).sort()
  const lines = [
    ...results.flatMap((result) => result.lines),
    ...(strange.length === 0 ? [] : [`warn: some health checks cannot be excluded: no matches for ${quoted(strange)}`]),
    `${endpoint} check ${isWell ? 'passed' : 'failed'}`,
  ]
  return textAnswer(`${lines.join('\n')}\n`, isWell ? 200 : 500)
}

function excludedResult(name: string) {
  return { failed: false, lines: [`[+]${name} excluded: ok`] }
}

function linesOf({ name, problem, warnings }: Awaited<ReturnType<typeof resultOf>>) {
  return problem === undefined
    ? { failed: false, lines: [`[+]${name} ok`, ...warnings.map((warning) => `[!]${name} warning: ${warning}`)] }
    : { failed: true, lines: [`[-]${name} failed: ${problem}`] }
}

function quoted(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(', ')
}

/** The results of all checks, as Kubernetes' metric has them (component-base, metrics/prometheus/slis). */
export async function readinessMetrics(checks: readonly ReadinessCheck[]): Promise<string> {
  const results = await Promise.all(checks.map(resultOf))
  const samples = results.map(({ name, problem }) => ({
    labels: { name, type: 'readyz' },
    value: problem === undefined ? 1 : 0,
  }))
  return [...metricsText([gauge('kubernetes_healthcheck', '1 if the check passes.', samples)])].join('')
}

async function resultOf({ name, check, warnings = () => [] }: ReadinessCheck) {
  try {
    await check()
    return { name, problem: undefined, warnings: warnings() }
  } catch (error) {
    return { name, problem: messageOf(error), warnings: [] }
  }
}

/** The rate of health checks has no limit (`flow-levels.ts`): those within this time share a result. */
const sharedMs = 500

export function sharedCheck(shared: ReadinessCheck, clock: Pick<Clock, 'monotonicMs'>): ReadinessCheck {
  let last: { readonly atMs: number; readonly result: Promise<void> } | undefined
  return {
    ...shared,
    // It may change, as `leading` and `standby`.
    get name() {
      return shared.name
    },
    check() {
      const nowMs = clock.monotonicMs()
      if (last === undefined || nowMs - last.atMs >= sharedMs) last = { atMs: nowMs, result: shared.check() }
      return last.result
    },
  }
}

/** A check that does not answer in time has failed. */
export function checkWithin(
  name: string,
  check: () => Promise<unknown>,
  clock: Clock,
  deadlineMs: number,
): ReadinessCheck {
  return { name, check: async () => void (await within(deadlineMs, 'no answer', check(), clock)) }
}
