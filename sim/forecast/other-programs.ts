/** Objects by which the API calls other programs, or serves what they define: a simulation does not have those programs. */
const callers: ReadonlySet<string> = new Set([
  'customresourcedefinitions',
  'validatingwebhookconfigurations',
  'mutatingwebhookconfigurations',
  'apiservices',
  'csidrivers',
  'csinodes',
])

export function isOfOtherPrograms(resource: string): boolean {
  return callers.has(resource)
}
