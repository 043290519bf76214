/** Switches in a query. */

/** `?watch`, `?watch=1` and `?watch=true` say yes, as Kubernetes reads a switch in a query. */
export function isSwitchedOn(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== 'false' && value !== '0'
}
