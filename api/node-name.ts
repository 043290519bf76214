/** What a node may be called: a DNS-1123 subdomain, taken from the hostname unless someone says otherwise. */

/** As Kubernetes makes it: trimmed and lower-cased. It may still not be a valid one. */
export function nodeNameFrom(hostname: string): string {
  return hostname.trim().toLowerCase()
}

const label = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/

/** Why `name` cannot be a node's, as the end of a sentence; undefined when it can. */
export function nodeNameProblem(name: string): string | undefined {
  if (name === '') return 'it is empty'
  if (name.length > 253) return 'it is longer than 253 characters'
  if (name.split('.').every((part) => label.test(part))) return undefined
  return "only a-z, 0-9, '-' and '.' may be in it, and each part must begin and end with a letter or digit"
}
