/** Paths of core/v1 ComponentStatus, which `kubectl get cs` prints. No stored object is behind them. */

/** As discovery lists it. */
export const componentKind = {
  name: 'componentstatuses',
  singular: 'componentstatus',
  kind: 'ComponentStatus',
  namespaced: false,
  group: '',
  version: 'v1',
  shortNames: ['cs'],
  verbs: ['get', 'list'],
} as const

export type ComponentRoute = {
  readonly kind: 'component'
  readonly verb: 'get' | 'list'
  readonly group: ''
  readonly resource: typeof componentKind.name
  readonly subresource: ''
  readonly namespace: ''
  /** '' for a list. */
  readonly name: string
}

/** Undefined where no component lives; 'not-allowed' where one does, but cannot be written. */
export function componentRouteOf(
  method: string,
  segments: readonly string[],
): ComponentRoute | 'not-allowed' | undefined {
  const [root, version, resource, name = '', ...more] = segments
  if (root !== 'api' || version !== componentKind.version || more.length > 0) return undefined
  if (resource !== componentKind.name) return undefined
  if (method !== 'GET' && method !== 'HEAD') return 'not-allowed'
  const verb = name === '' ? 'list' : 'get'
  return { kind: 'component', verb, group: '', resource, subresource: '', namespace: '', name }
}
