/**
 * The kubelet lets an account read its metrics by `nodes/metrics` and its statistics by `nodes/stats`
 * (pkg/kubelet/server/auth.go, GetRequestAttributes). Here the kubelet's paths are reached through `nodes/proxy` only, so the
 * same two rights stand for these paths there: a scraper needs no right to the rest of a node.
 */
import type { Attributes } from '../handlers/authorizer.ts'

/** Whole paths, as the client wrote them: a prefix would include `/metrics/../pods`. */
const rightsByPath: { readonly [path: string]: 'metrics' | 'stats' } = {
  '/metrics': 'metrics',
  '/metrics/cadvisor': 'metrics',
  '/metrics/probes': 'metrics',
  '/metrics/resource': 'metrics',
  '/stats/summary': 'stats',
}

export type ProxiedRequest = {
  readonly method: string
  /** What follows `proxy` in the path. */
  readonly rest: string | undefined
  /** The request asks to leave HTTP. */
  readonly isUpgrade: boolean
}

/**
 * The narrower attributes by which a request for `nodes/proxy` is permitted, too; undefined: there are none. The name must be
 * that of a node alone: with a port it may stand for any server of the machine.
 */
export function narrowerAttributes(
  attributes: Attributes,
  { method, rest = '', isUpgrade }: ProxiedRequest,
): Attributes | undefined {
  if (attributes.kind !== 'resource' || isUpgrade || method !== 'GET') return undefined
  const { group, resource, subresource, name } = attributes
  if (group !== '' || resource !== 'nodes' || subresource !== 'proxy' || name.includes(':')) return undefined
  const right = Object.hasOwn(rightsByPath, rest) ? rightsByPath[rest] : undefined
  return right === undefined ? undefined : { ...attributes, verb: 'get', subresource: right }
}
