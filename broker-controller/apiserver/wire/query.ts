/** Boolean parameters of a query (apimachinery, Convert_Slice_string_To_bool). */

/** False when it is missing, `0` or `false` in any case, as Python clients write it; all other values are true, also an empty one. */
export function isSwitchedOn(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
