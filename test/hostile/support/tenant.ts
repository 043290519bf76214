/** A namespace with service accounts of the stock role `edit`: the attacker's, and those of honest neighbours. */
import { readFile } from 'node:fs/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import {
  endHeaders,
  endStream,
  frame,
  frameTypes,
  indexed,
  type RawHttp2,
  rawHttp2,
  requestBlock,
} from '../../../broker-controller/testing/raw-http2.ts'
import type { AttackedFleet } from './attacked-fleet.ts'
import { type ApiAttacker, adminOf, apiAttacker } from './clients.ts'

export type Tenant = {
  readonly namespace: string
  readonly token: string
  /** With the token of its first account. */
  readonly api: ApiAttacker
  /** The token of another account, which it makes itself. That has no rights. */
  account(name: string): Promise<string>
  /** So many streams at this path on one connection of HTTP/2; resolves with the connection. */
  streams(path: string, count: number, token?: string): Promise<RawHttp2>
  /** A request of HTTP/1.1 whose answer lasts. Resolves with its first bytes. */
  stream(path: string, headers?: readonly string[]): Promise<OpenStream>
}

export type OpenStream = {
  readonly status: number
  text(): string
  isOpen(): boolean
}

/** The namespace of this name with an account that has the role `edit` there, and nothing else. */
export async function tenantOf(t: Test, fleet: AttackedFleet, namespace: string): Promise<Tenant> {
  const { kubectl, apiUrl, kubeconfig } = fleet.controller
  const { ca = '' } = adminOf(await readFile(kubeconfig, 'utf8'))
  await kubectl('create', 'namespace', namespace)
  await kubectl('-n', namespace, 'create', 'serviceaccount', 'robot')
  await kubectl(
    '-n',
    namespace,
    'create',
    'rolebinding',
    'robot',
    '--clusterrole=edit',
    `--serviceaccount=${namespace}:robot`,
  )
  const token = (await kubectl('-n', namespace, 'create', 'token', 'robot')).trim()
  const api = apiAttacker(apiUrl, { ca }, { token })
  t.teardown(async () => api.close())
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
  const sent = async (path: string, body: unknown) => {
    const { status, text } = await api.sendJson('POST', path, body)
    if (status !== 201) throw new Error(`${path}: ${status} ${text}`)
    return JSON.parse(text)
  }
  return {
    namespace,
    token,
    api,
    async account(name) {
      await sent(accounts, { metadata: { name } })
      return (await sent(`${accounts}/${name}/token`, { spec: {} })).status.token
    },
    async streams(path, count, own = token) {
      const client = await rawHttp2({ ...fleet.api, ca })
      t.teardown(() => client.socket.destroy())
      const block = Buffer.concat([requestBlock(path), indexed('authorization', `Bearer ${own}`)])
      for (let at = 0; at < count; at++) {
        await client.send(frame(frameTypes.headers, endHeaders | endStream, 2 * at + 1, block))
      }
      return client
    },
    async stream(path, headers = []) {
      const socket: TLSSocket = connectTls({ ...fleet.api, ca, checkServerIdentity: () => undefined })
      t.teardown(() => socket.destroy())
      const pieces: Buffer[] = []
      const first = new Promise<void>((resolve) => {
        socket.once('data', () => resolve()).once('close', () => resolve())
      })
      socket.on('error', () => undefined).on('data', (piece: Buffer) => pieces.push(piece))
      const lines = [`GET ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, ...headers]
      socket.write(`${lines.join('\r\n')}\r\n\r\n`)
      await first
      const text = () => Buffer.concat(pieces).toString('latin1')
      return {
        status: Number(/^HTTP\/1\.1 (\d+)/.exec(text())?.[1] ?? 0),
        text,
        // An answer of HTTP/1.1 without a length ends with an empty chunk.
        isOpen: () => !socket.destroyed && !socket.readableEnded && !text().endsWith('0\r\n\r\n'),
      }
    },
  }
}
