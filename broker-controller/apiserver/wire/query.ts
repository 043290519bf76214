/** Switches in a query. */

/** `?watch`, `?watch=1` and `?watch=true` are true (apimachinery, Convert_Slice_string_To_bool). */
export function isSwitchedOn(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== 'false' && value !== '0'
}
