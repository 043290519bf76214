/** The files of the page: built into a folder beside the program, with their hash in their names, and compressed at build time. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { ApiResponse } from '../../broker-controller/apiserver/wire/answers.ts'
import type { Log } from '../../daemon/log.ts'

export interface DashboardFiles {
  /** The file of this name below /ui/; undefined: there is none. */
  answer(name: string, headers: FileHeaders): Promise<ApiResponse | undefined>
}

export type FileHeaders = { readonly acceptEncoding: string | undefined; readonly ifNoneMatch: string | undefined }

const types: { readonly [extension: string]: string } = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The page talks to this server only, runs no inline script, and is shown in no other page. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  // The hash is that of an empty style: the terminal makes such elements, and the page gives it their content in another way.
  "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Headers of every response below /ui/. */
export const dashboardHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
} as const

type Kept = { readonly bytes: Buffer; readonly zipped: Buffer | undefined; readonly etag: string }

/** Each file is read once, when it is first asked for. A folder that is missing serves nothing, and is logged. */
export function dashboardFiles(folder: string, log: Log): DashboardFiles {
  let names: Promise<ReadonlySet<string>> | undefined
  const kept = new Map<string, Promise<Kept>>()
  const namesThere = () => {
    names ??= readdir(folder).then(
      (found) => new Set(found.filter((name) => extname(name) in types)),
      (error: unknown) => {
        log.warn('Dashboard not served: its files are missing', { folder, error })
        return new Set<string>()
      },
    )
    return names
  }
  const read = async (name: string): Promise<Kept> => {
    const bytes = await readFile(join(folder, name))
    const zipped = await readFile(join(folder, `${name}.gz`)).catch(() => undefined)
    return { bytes, zipped, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
  }
  return {
    async answer(name, { acceptEncoding = '', ifNoneMatch = '' }) {
      if (!(await namesThere()).has(name)) return undefined
      const reading = kept.get(name) ?? read(name)
      kept.set(name, reading)
      const found = await reading.catch((error: unknown) => {
        kept.delete(name)
        log.warn('File of the dashboard not read', { folder, name, error })
      })
      if (found === undefined) return undefined
      const { bytes, zipped, etag } = found
      const isZipped = zipped !== undefined && /\bgzip\b/.test(acceptEncoding)
      const headers = {
        ...dashboardHeaders,
        etag,
        vary: 'Accept-Encoding',
        'cache-control': name === indexName ? 'no-cache' : 'public, immutable, max-age=31536000',
      }
      if (ifNoneMatch.includes(etag)) return { kind: 'plain', code: 304, headers, bytes: Buffer.alloc(0) }
      return {
        kind: 'plain',
        code: 200,
        headers: {
          ...headers,
          'content-type': types[extname(name)] ?? 'application/octet-stream',
          ...(isZipped && { 'content-encoding': 'gzip' }),
        },
        bytes: isZipped ? zipped : bytes,
      }
    },
  }
}

export const indexName = 'index.html'
