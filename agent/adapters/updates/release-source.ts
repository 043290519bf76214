/** The files of a release at the controllers of the fleet, over HTTPS with the certificate of the node. */
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { releasePath } from '../../../api/node/release-paths.ts'
import { withDeadline } from '../../../daemon/deadline.ts'
import { collectedBytes } from '../../../daemon/http/collected-bytes.ts'
import { connectToServer, type KnownTime } from '../../../daemon/server-check.ts'
import type { ReleaseSource } from '../../updates/download-file.ts'

export type ReleaseServers = {
  /** `https://HOST:PORT`: the first that answers is asked. */
  readonly urls: readonly string[]
  readonly ca: string
  readonly certificate: string
  readonly key: string
  readonly knownTime: KnownTime
}

/** For one range, from the connection to the last byte: 256 KiB at 20 kbit/s. */
const rangeMs = 120_000

/** `digest`: of the release. */
export function releaseSource(servers: ReleaseServers, digest: string): ReleaseSource {
  return {
    async read(file, from, most) {
      const failures: unknown[] = []
      for (const url of servers.urls) {
        try {
          return await withDeadline(rangeMs, undefined, (signal) =>
            readRange(new URL(releasePath({ digest, file }), url), servers, { from, most }, signal),
          )
        } catch (error) {
          failures.push(error)
        }
      }
      throw new Error(`Cannot read ${file} of the release from ${servers.urls.join(' or ')}`, {
        cause: failures.at(-1),
      })
    },
  }
}

type Range = { readonly from: number; readonly most: number }
type Part = { readonly size: number; readonly bytes: Uint8Array }

async function readRange(
  url: URL,
  { ca, certificate, key, knownTime }: ReleaseServers,
  { from, most }: Range,
  signal: AbortSignal,
): Promise<Part | undefined> {
  const socket = await connectToServer(
    {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port || 443),
      ...{ ca, cert: certificate, key, knownTime },
    },
    signal,
  )
  const headers = { range: `bytes=${from}-${from + most - 1}` }
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, signal, createConnection: () => socket }, (response) => {
      const bytes = collectedBytes(most)
      response.on('data', (chunk: Buffer) => {
        if (bytes.add(chunk)) return
        const tooLong = new Error(`The answer is longer than ${most} bytes, or cut up`)
        // The end may be read already: the answer must not count as an empty one.
        reject(tooLong)
        asked.destroy(tooLong)
      })
      response.on('error', reject)
      response.on('end', () => {
        try {
          resolve(partOf(response, from, bytes.take()))
        } catch (error) {
          reject(error)
        }
      })
    })
    asked.on('error', reject)
    asked.end()
  })
}

function partOf({ statusCode = 0, headers }: IncomingMessage, from: number, bytes: Buffer): Part | undefined {
  if (statusCode === 404) return undefined
  const [, first, , size] = /^bytes (\d{1,12})-(\d{1,12})\/(\d{1,12})$/.exec(headers['content-range'] ?? '') ?? []
  if (statusCode === 206 && Number(first) === from) return { size: Number(size), bytes }
  const [, whole] = /^bytes \*\/(\d{1,12})$/.exec(headers['content-range'] ?? '') ?? []
  if (statusCode === 416 && whole !== undefined) return { size: Number(whole), bytes: Buffer.alloc(0) }
  throw new Error(`The controller answered with status ${statusCode} where 206 was expected`)
}
