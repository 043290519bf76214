/** Paths of what is used: metrics.k8s.io. No stored object is behind them. */

export const usageGroup = 'metrics.k8s.io'
export const usageVersion = 'v1beta1'

/** As discovery lists them. */
export const usageKinds = [
  { name: 'nodes', singular: '', kind: 'NodeMetrics', namespaced: false },
  { name: 'pods', singular: '', kind: 'PodMetrics', namespaced: true },
] as const

export type UsageRoute = {
  readonly kind: 'usage'
  readonly verb: 'get' | 'list'
  readonly group: typeof usageGroup
  readonly resource: 'nodes' | 'pods'
  readonly subresource: ''
  /** '' over all namespaces. */
  readonly namespace: string
  /** '' for a list. */
  readonly name: string
}

/** Undefined where none of these lives; 'not-allowed' where one does, but cannot be written. */
export function usageRouteOf(method: string, segments: readonly string[]): UsageRoute | 'not-allowed' | undefined {
  const route = readAt(segments)
  if (route === undefined || method === 'GET' || method === 'HEAD') return route
  return 'not-allowed'
}

function readAt(segments: readonly string[]): UsageRoute | undefined {
  const [root, first, second, ...rest] = segments
  if (root !== 'apis' || first !== usageGroup || second !== usageVersion) return undefined
  const [scope, ...inside] = rest
  const inNamespace = scope === 'namespaces' && inside[1] === 'pods'
  const [resource, name = '', ...more] = inNamespace ? inside.slice(1) : rest
  const namespace = inNamespace ? (inside[0] ?? '') : ''
  if ((resource !== 'nodes' && resource !== 'pods') || more.length > 0) return undefined
  if (resource === 'pods' && name !== '' && namespace === '') return undefined
  const verb = name === '' ? 'list' : 'get'
  return { kind: 'usage', verb, group: usageGroup, resource, subresource: '', namespace, name }
}
