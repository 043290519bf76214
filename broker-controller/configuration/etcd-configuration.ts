/** Where the store is in etcd, from flags and the configuration file. Names are those of kube-apiserver. */
import { readFile } from 'node:fs/promises'
import type { EtcdPlace } from '../store/etcd/etcd-place.ts'

/** As given on the command line. */
export type EtcdFlags = {
  /** With commas between them. */
  readonly servers: string | undefined
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
  readonly prefix: string | undefined
}

/** As given in the configuration file. */
export type EtcdFields = {
  readonly etcdServers?: readonly string[] | undefined
  readonly etcdCAFile?: string | undefined
  readonly etcdCertFile?: string | undefined
  readonly etcdKeyFile?: string | undefined
  readonly etcdPrefix?: string | undefined
  readonly etcdQuotaBackendBytes?: number | undefined
}

export type EtcdSettings = {
  readonly servers: readonly string[]
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
  readonly prefix: string
  /** undefined: etcd's default. */
  readonly quotaBytes?: number | undefined
}

export const defaultEtcdPrefix = '/bramble/default'
const defaultPort = '2379'
const longestPrefix = 200
const leastQuotaBytes = 1024 * 1024

/** undefined: the store is not in etcd. Adds to `problems` what is wrong, each with its flag or field. */
export function etcdSettings(
  flags: EtcdFlags | undefined,
  file: EtcdFields,
  problems: string[],
): EtcdSettings | undefined {
  const named = (flag: string, field: keyof EtcdFields, value: string | undefined) => ({
    name: value === undefined ? field : flag,
    value: value ?? file[field],
  })
  const servers = named('--etcd-servers', 'etcdServers', flags?.servers)
  const files = {
    ca: named('--etcd-cafile', 'etcdCAFile', flags?.caFile),
    cert: named('--etcd-certfile', 'etcdCertFile', flags?.certFile),
    key: named('--etcd-keyfile', 'etcdKeyFile', flags?.keyFile),
  }
  const prefix = named('--etcd-prefix', 'etcdPrefix', flags?.prefix)
  if (servers.value === undefined) {
    problems.push(...withoutEffect(files, 'without etcdServers (--etcd-servers)'))
    return undefined
  }
  const given = (flags?.servers?.split(',') ?? file.etcdServers ?? []).map((server) => server.trim())
  const urls = given.map(serverURL)
  const path = typeof prefix.value === 'string' ? prefix.value : defaultEtcdPrefix
  const { etcdQuotaBackendBytes: quotaBytes } = file
  problems.push(
    ...serverProblems(servers.name, given, urls),
    ...fileProblems(files, servers.name, urls),
    ...prefixProblems(prefix.name, path),
    ...quotaProblems(quotaBytes),
  )
  return {
    servers: urls.flatMap((url) =>
      url === undefined ? [] : [`${url.protocol}//${url.hostname}:${url.port || defaultPort}`],
    ),
    caFile: flags?.caFile ?? file.etcdCAFile,
    certFile: flags?.certFile ?? file.etcdCertFile,
    keyFile: flags?.keyFile ?? file.etcdKeyFile,
    prefix: path,
    ...(quotaBytes !== undefined && { quotaBytes }),
  }
}

/** A setting with the flag or field that it was given with. */
type Named = { readonly name: string; readonly value: unknown }
type Files = { readonly ca: Named; readonly cert: Named; readonly key: Named }

function withoutEffect(files: Files, why: string): readonly string[] {
  return Object.values(files).flatMap(({ name, value }) =>
    value === undefined ? [] : [`${name}: it has no effect ${why}`],
  )
}

function protocolsOf(urls: readonly (URL | undefined)[]): ReadonlySet<string> {
  return new Set(urls.flatMap((url) => url?.protocol ?? []))
}

function serverProblems(name: string, given: readonly string[], urls: readonly (URL | undefined)[]): readonly string[] {
  return [
    ...(given.length === 0 ? [`${name}: there must be at least one server`] : []),
    ...given
      .filter((_, index) => urls[index] === undefined)
      .map((one) => `${name}: ${JSON.stringify(one)} must be a URL like https://10.0.0.1:2379, without a path`),
    ...(protocolsOf(urls).size > 1 ? [`${name}: the servers must be all https or all http`] : []),
  ]
}

function fileProblems(files: Files, servers: string, urls: readonly (URL | undefined)[]): readonly string[] {
  const { cert, key } = files
  const isPaired = (cert.value === undefined) === (key.value === undefined)
  return [
    ...(protocolsOf(urls).has('http:') ? withoutEffect(files, `for servers of http; write https in ${servers}`) : []),
    ...(isPaired ? [] : [`${cert.name} and ${key.name}: one is given without the other`]),
  ]
}

function prefixProblems(name: string, path: string): readonly string[] {
  if (/^(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/.test(path) && path.length <= longestPrefix) return []
  const form = `a path like ${defaultEtcdPrefix}, of at most ${longestPrefix} characters and without a slash at its end`
  return [`${name}: ${JSON.stringify(path)} must be ${form}`]
}

function quotaProblems(bytes: number | undefined): readonly string[] {
  if (bytes === undefined || bytes >= leastQuotaBytes) return []
  return [`etcdQuotaBackendBytes: ${bytes} must be the --quota-backend-bytes of etcd, in bytes`]
}

/** With the content of the files. Rejects with an error that names the setting, the file and the reason. */
export async function etcdPlace(settings: EtcdSettings): Promise<EtcdPlace> {
  const { servers, prefix, caFile, certFile, keyFile, quotaBytes } = settings
  const ca = await contentOf('--etcd-cafile', caFile)
  const certificate = await contentOf('--etcd-certfile', certFile)
  const key = await contentOf('--etcd-keyfile', keyFile)
  const tls = { ...(ca && { ca }), ...(certificate && { certificate }), ...(key && { key }) }
  return { servers, prefix, tls, ...(quotaBytes !== undefined && { quotaBytes }) }
}

async function contentOf(flag: string, path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined
  const content = await readFile(path).catch((cause: unknown) => {
    throw new Error(`${flag}: cannot read ${path}`, { cause })
  })
  if (content.includes('-----BEGIN ')) return content
  throw new Error(`${flag}: ${path} has no PEM text in it ("-----BEGIN ...")`)
}

function serverURL(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const { protocol, hostname, pathname, search, hash, username, password } = url
  const isPlain = ['', '/'].includes(pathname) && `${search}${hash}${username}${password}` === ''
  return isPlain && hostname !== '' && ['http:', 'https:'].includes(protocol) ? url : undefined
}
