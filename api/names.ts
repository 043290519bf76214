/** The rules of names. Each check returns the problem as a sentence, or undefined. */

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const nameCharacters = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/

/** A DNS-1123 label: a namespace's or container's name. */
export function dnsLabelProblem(text: string): string | undefined {
  if (text.length > 63) return tooLong(63)
  if (dnsLabel.test(text)) return undefined
  return "must be lower case letters, digits or '-', starting and ending with a letter or digit (like 'my-name')"
}

/** A DNS-1035 label: a Service's name, which does not start with a digit. */
export function dns1035LabelProblem(text: string): string | undefined {
  if (text.length > 63) return tooLong(63)
  if (/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(text)) return undefined
  return (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and " +
    "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is " +
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
  )
}

/** A DNS-1123 subdomain: most objects' name, a node's too. */
export function dnsSubdomainProblem(text: string): string | undefined {
  if (text.length > 253) return tooLong(253)
  if (dnsSubdomain.test(text)) return undefined
  return (
    "must be lower case letters, digits, '-' or '.', each part between dots starting and ending with a letter or digit " +
    "(like 'pi-01.example')"
  )
}

/** `name` or `prefix/name`: keys of labels, annotations, taints and extended resources; finalizers. */
export function qualifiedNameProblem(text: string): string | undefined {
  const parts = text.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length > 2) return "must be a name, or a prefix and a name with one '/' between (like 'example.com/name')"
  if (parts.length === 2) {
    const problem = parts[0] === '' ? 'must not be empty' : dnsSubdomainProblem(parts[0] ?? '')
    if (problem !== undefined) return `prefix part ${problem}`
  }
  if (name === '') return 'name part must not be empty'
  if (name.length > 63) return `name part ${tooLong(63)}`
  if (nameCharacters.test(name)) return undefined
  return "name part must be letters, digits, '-', '_' or '.', starting and ending with a letter or digit (like 'my.name')"
}

export const labelKeyProblem = qualifiedNameProblem

export function labelValueProblem(text: string): string | undefined {
  if (text.length > 63) return tooLong(63)
  if (text === '' || nameCharacters.test(text)) return undefined
  return "must be empty, or letters, digits, '-', '_' or '.', starting and ending with a letter or digit (like 'my_value')"
}

/** A name that must only fit into a path, as `system:node:pi` of a certificate request (path.ValidatePathSegmentName). */
export function pathSegmentProblem(text: string): string | undefined {
  if (text === '.' || text === '..') return `must not be '${text}'`
  return /[/%]/.test(text) || text.length > 253
    ? "must be no longer than 253 characters, without '/' or '%'"
    : undefined
}

/** A key of a ConfigMap or Secret. */
export function dataKeyProblem(text: string): string | undefined {
  if (text.length > 253) return tooLong(253)
  if (text === '.' || text.startsWith('..')) return "must not be '.' or start with '..'"
  return /^[-._a-zA-Z0-9]+$/.test(text) ? undefined : "must be letters, digits, '-', '_' or '.' (like 'key.name')"
}

/** The name of an environment variable: anything printable of ASCII but '='. */
export function environmentNameProblem(text: string): string | undefined {
  if (text === '') return 'must not be empty'
  return /^[\x20-\x3c\x3e-\x7e]+$/.test(text) ? undefined : "must be printable ASCII characters without '='"
}

/** The name of a port. */
export function portNameProblem(text: string): string | undefined {
  if (text.length > 15) return tooLong(15)
  const wellFormed = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(text) && /[a-z]/.test(text) && !text.includes('--')
  return wellFormed
    ? undefined
    : "must be lower case letters, digits or single '-', with at least one letter, starting and ending with a letter or digit"
}

function tooLong(most: number): string {
  return `must be no more than ${most} characters`
}
