/** URLs (apiserver/pkg/cel/library/urls.go): absolute ones and paths, as Go's url.ParseRequestURI takes them. */
import { entriesByKey } from '../values/equality.ts'
import { ArrayList, type CelOutcome, EntryMap, noSuchOverload, OpaqueValue, type Value } from '../values/value.ts'
import { type FunctionDefinition, type FunctionTable, fail, traversal } from './definition.ts'

type Parts = {
  readonly scheme: string
  readonly host: string
  readonly hostname: string
  readonly port: string
  readonly path: string
  readonly query: string
}

class UrlValue extends OpaqueValue {
  readonly typeName = 'kubernetes.URL'
  readonly text: string
  readonly parts: Parts

  constructor(text: string, parts: Parts) {
    super()
    this.text = text
    this.parts = parts
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof UrlValue && other.text === this.text
  }
}

const form = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/

/** What is wrong with the text, or its parts. */
function partsOf(text: string): Parts | string {
  if (text === '') return 'empty url'
  if (/\p{Cc}/u.test(text)) return 'net/url: invalid control character in URL'
  const [, scheme = '', authority = '', path = '', query = ''] = form.exec(text) ?? []
  if (scheme === '' && !text.startsWith('/')) return 'invalid URI for request'
  if (scheme !== '' && authority === '' && !path.startsWith('/')) return opaqueParts(scheme, query)
  if (/%(?![0-9a-fA-F]{2})/.test(`${authority}${path}`)) return 'invalid URL escape'
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  const [, bracketed, name = '', port = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(host) ?? []
  if (host !== '' && bracketed === undefined && name === '' && port === '') return `invalid port after host`
  if (/[\s<>"\\^`{|}]/.test(host)) return 'invalid character in host name'
  return {
    ...{ scheme: scheme.toLowerCase(), host, hostname: bracketed ?? name, port, query },
    path: path.replace(/[^\x21-\x7e]|["<>\\^`{|}]/g, (part) => encodeURIComponent(part)),
  }
}

/** `mailto:a@b`: what follows the scheme is not a path. */
function opaqueParts(scheme: string, query: string): Parts {
  return { scheme: scheme.toLowerCase(), host: '', hostname: '', port: '', path: '', query }
}

const part = (name: keyof Parts): FunctionDefinition => ({
  overloads: ['kubernetes.URL.(): string'],
  call: ([url]) => (url instanceof UrlValue ? url.parts[name] : noSuchOverload),
})

function queryOf([url]: readonly Value[]): CelOutcome {
  if (!(url instanceof UrlValue)) return noSuchOverload
  const values = new Map<string, string[]>()
  for (const [key, value] of new URLSearchParams(url.parts.query)) {
    const known = values.get(key)
    if (known === undefined) values.set(key, [value])
    else known.push(value)
  }
  const entries = [...values].map(([key, all]) => [key, new ArrayList(all)] as const)
  return new EntryMap(entriesByKey(entries) ?? new Map())
}

export const urls: FunctionTable = {
  isURL: {
    overloads: ['(string): bool'],
    cost: traversal(),
    call: ([text]) => (typeof text === 'string' ? typeof partsOf(text) !== 'string' : noSuchOverload),
  },
  url: {
    overloads: ['(string): kubernetes.URL'],
    cost: traversal(),
    call: ([text]) => {
      if (typeof text !== 'string') return noSuchOverload
      const parts = partsOf(text)
      if (typeof parts !== 'string') return new UrlValue(text, parts)
      return fail(`URL parse error during conversion from string: parse "${text}": ${parts}`)
    },
  },
  getScheme: part('scheme'),
  getHost: part('host'),
  getHostname: part('hostname'),
  getPort: part('port'),
  getEscapedPath: part('path'),
  getQuery: { overloads: ['kubernetes.URL.(): map<string, list<string>>'], call: queryOf },
}
