/** Selects the image pull secrets of a pod that apply to the registry of an image. */
import type { Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import type { RegistryCredentials } from '../../runtime/runtime.ts'
import { type NamedSources, secretNamed } from '../options/named-data.ts'

export type PullCredentials = {
  /** The most specific first. */
  readonly credentials: readonly RegistryCredentials[]
  /** Secrets that do not exist or have another type. */
  readonly missing: readonly string[]
}

export function credentialsFor(pod: Pod, image: string, sources: Pick<NamedSources, 'secrets'>): PullCredentials {
  const missing: string[] = []
  const entries: (readonly [string, RegistryCredentials])[] = []
  for (const { name = '' } of pod.spec.imagePullSecrets ?? []) {
    const secret = secretNamed(pod, sources, name)
    const found = secret === undefined ? undefined : entriesOf(secret)
    if (found === undefined) missing.push(name)
    else entries.push(...found)
  }
  const wanted = placeOfImage(image)
  const fitting = entries.filter(([registry]) => opens(placeOfRegistry(registry), wanted))
  fitting.sort(([a], [b]) => b.length - a.length)
  return { credentials: fitting.map(([, credentials]) => credentials), missing }
}

type Place = { readonly host: string; readonly path: string }

/** An image name without a registry refers to Docker Hub. */
function placeOfImage(image: string): Place {
  const [first = '', ...rest] = image.split('/')
  const namesHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  return namesHost ? { host: nameOf(first), path: rest.join('/') } : { host: nameOf('docker.io'), path: image }
}

/** A registry as written in such files: `https://index.docker.io/v1/`, `registry.lan:5000/team`. */
function placeOfRegistry(text: string): Place {
  const plain = text.replace(/^https?:\/\//, '').replace(/\/v[12]\/?$/, '')
  const [first = '', ...rest] = plain.split('/')
  return { host: nameOf(first), path: rest.join('/') }
}

function nameOf(host: string): string {
  return ['index.docker.io', 'registry-1.docker.io'].includes(host) ? 'docker.io' : host
}

function opens(registry: Place, image: Place): boolean {
  const parts = (host: string) => host.split(/[.:]/)
  const [mine, asked] = [parts(registry.host), parts(image.host)]
  const sameHost = mine.length === asked.length && mine.every((part, index) => matches(part, asked[index] ?? ''))
  return sameHost && image.path.startsWith(registry.path)
}

/** A star stands for any characters. Without an expression: several stars in one would take exponential time. */
function matches(pattern: string, part: string): boolean {
  const [start = '', ...middle] = pattern.split('*')
  const end = middle.pop()
  if (end === undefined) return pattern === part
  let at = start.length
  for (const text of middle) {
    const found = part.indexOf(text, at)
    if (found < 0) return false
    at = found + text.length
  }
  return part.startsWith(start) && part.endsWith(end) && at + end.length <= part.length
}

function entriesOf({ type, data = {} }: Secret): readonly (readonly [string, RegistryCredentials])[] | undefined {
  const isNew = type === 'kubernetes.io/dockerconfigjson'
  const encoded = data[isNew ? '.dockerconfigjson' : '.dockercfg'] ?? '' // which is not JSON
  try {
    const parsed: unknown = JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'))
    const registries = isNew ? fieldsOf(parsed)['auths'] : parsed
    return Object.entries(fieldsOf(registries)).map(([registry, entry]) => [registry, credentialsOf(fieldsOf(entry))])
  } catch {
    return undefined
  }
}

function credentialsOf(entry: { readonly [field: string]: unknown }): RegistryCredentials {
  const text = (field: string) => (typeof entry[field] === 'string' ? String(entry[field]) : '')
  const [user, secret] = aroundColon(Buffer.from(text('auth'), 'base64').toString('utf8'))
  return {
    username: text('username') || user,
    password: text('password') || withoutPadding(secret),
    identityToken: text('identitytoken'),
  }
}

function aroundColon(text: string): readonly [string, string] {
  const at = text.indexOf(':')
  return at < 0 ? ['', ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** Without the NUL characters at its end. Without an expression: it would take the square of the time. */
function withoutPadding(secret: string): string {
  let end = secret.length
  while (secret[end - 1] === '\0') end--
  return secret.slice(0, end)
}

function fieldsOf(value: unknown): { readonly [field: string]: unknown } {
  return typeof value === 'object' ? { ...value } : {}
}
