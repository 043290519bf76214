/**
 * A small CSI driver on Unix sockets, as the agent meets one: its registration and its node service. It makes folders and files in the place of
 * mounts, records its calls, and can be made to fail or to hang.
 */

import { mkdir, rmdir, unlink, writeFile } from 'node:fs/promises'
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { join } from 'node:path'
import { isObject } from '../../api/text/json.ts'
import {
  boolValue,
  int64,
  messageCodec,
  messageList,
  oneMessage,
  textList,
  textMap,
  textValue,
} from '../../daemon/protobuf/protobuf-codec.ts'
import { nodeCalls, registrationCalls } from '../adapters/csi/csi-messages.ts'

const requests = messageCodec({})

export type CsiCall = { readonly name: string; readonly request: { readonly [field: string]: unknown } }

export type CsiDriverOptions = {
  readonly name?: string
  readonly type?: string
  readonly versions?: readonly string[]
  readonly nodeId?: string
  readonly maxVolumes?: number
  readonly topology?: { readonly [key: string]: string }
  /** Types of NodeServiceCapability. */
  readonly capabilities?: readonly number[]
}

export type VolumeStatsAnswer = {
  /** `unit`: 1 bytes, 2 inodes. */
  readonly usage?: readonly {
    readonly available: number
    readonly total: number
    readonly used: number
    readonly unit: number
  }[]
  readonly condition?: { readonly abnormal: boolean; readonly message: string }
}

export interface CsiDriver {
  readonly registrationSocket: string
  readonly endpoint: string
  readonly calls: readonly CsiCall[]
  /** The next calls of this name fail with this status. */
  fail(name: string, code: number, message: string): void
  /** Calls of this name are never answered. */
  hang(name: string): void
  /** What NodeGetVolumeStats is answered with. */
  stats(answer: VolumeStatsAnswer): void
  /** All is answered again. */
  heal(): void
  close(): Promise<void>
}

/** The messages as the driver reads and writes them: the other direction of the agent's. */
const infoAnswer = messageCodec({
  type: [1, textValue],
  name: [2, textValue],
  endpoint: [3, textValue],
  supportedVersions: [4, textList],
})
const nodeInfoAnswer = messageCodec({
  nodeId: [1, textValue],
  maxVolumesPerNode: [2, int64],
  accessibleTopology: [3, oneMessage(messageCodec({ segments: [1, textMap] }))],
})
const capabilitiesAnswer = messageCodec({
  capabilities: [1, messageList(messageCodec({ rpc: [1, oneMessage(messageCodec({ type: [1, int64] }))] }))],
})

const usageAnswer = messageCodec({ available: [1, int64], total: [2, int64], used: [3, int64], unit: [4, int64] })
const conditionAnswer = messageCodec({ abnormal: [1, boolValue], message: [2, textValue] })
const statsAnswer = messageCodec({ usage: [1, messageList(usageAnswer)], condition: [2, oneMessage(conditionAnswer)] })

export async function csiDriver(folder: string, options: CsiDriverOptions = {}): Promise<CsiDriver> {
  const { name = 'disk.example.com', type = 'CSIPlugin', versions = ['1.0.0'], nodeId = 'node-1' } = options
  const { maxVolumes = 0, topology = {}, capabilities = [1] } = options
  const endpoint = join(folder, 'plugins', name, 'csi.sock')
  const registrationSocket = join(folder, 'plugins_registry', `${name}-reg.sock`)
  await mkdir(join(folder, 'plugins', name), { recursive: true })
  await mkdir(join(folder, 'plugins_registry'), { recursive: true })
  const calls: CsiCall[] = []
  const failures = new Map<string, { readonly code: number; readonly message: string }>()
  const hanging = new Set<string>()

  let stats: VolumeStatsAnswer = {}
  const answers: {
    readonly [path: string]: (request: { readonly [field: string]: unknown }) => Buffer | Promise<Buffer>
  } = {
    [registrationCalls.getInfo.path]: () => infoAnswer.encode({ type, name, endpoint, supportedVersions: versions }),
    [nodeCalls.getInfo.path]: () =>
      nodeInfoAnswer.encode({ nodeId, maxVolumesPerNode: maxVolumes, accessibleTopology: { segments: topology } }),
    [nodeCalls.getCapabilities.path]: () =>
      capabilitiesAnswer.encode({ capabilities: capabilities.map((one) => ({ rpc: { type: one } })) }),
    [nodeCalls.stats.path]: () => statsAnswer.encode({ usage: [], ...stats }),
    async [nodeCalls.publish.path]({ targetPath, volumeCapability }) {
      const isBlock = isObject(volumeCapability) && volumeCapability['block'] !== undefined
      if (isBlock) await writeFile(String(targetPath), '')
      else await mkdir(String(targetPath), { recursive: true })
      return requests.encode({})
    },
    async [nodeCalls.unpublish.path]({ targetPath }) {
      await rmdir(String(targetPath)).catch(() => unlink(String(targetPath)).catch(() => undefined))
      return requests.encode({})
    },
  }
  const methods = [...Object.values(registrationCalls), ...Object.values(nodeCalls)]

  const serve = async (stream: ServerHttp2Stream, path: string) => {
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk as Buffer)
    const called = path.slice(path.lastIndexOf('/') + 1)
    const known = methods.find((one) => one.path === path)
    const request = known?.request.decode(Buffer.concat(chunks).subarray(5)) as CsiCall['request'] | undefined
    calls.push({ name: called, request: request ?? {} })
    if (hanging.has(called)) return
    const failure = known === undefined ? { code: 12, message: `unknown method ${path}` } : failures.get(called)
    if (failure !== undefined) {
      const message = encodeURIComponent(failure.message)
      const headers = { 'content-type': 'application/grpc', 'grpc-status': failure.code, 'grpc-message': message }
      stream.respond(headers, { endStream: true })
      return
    }
    const answer = (await answers[path]?.(request ?? {})) ?? Buffer.alloc(0)
    const head = Buffer.alloc(5)
    head.writeUInt32BE(answer.length, 1)
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': 0 }))
    stream.end(Buffer.concat([head, answer]))
  }

  const sessions = new Set<ServerHttp2Session>()
  const listen = (path: string): Promise<Http2Server> =>
    new Promise((resolve) => {
      const server = createServer()
      server.on('session', (session) => {
        sessions.add(session)
        session.on('error', () => undefined).once('close', () => sessions.delete(session))
      })
      server.on('stream', (stream, headers) => {
        stream.on('error', () => undefined)
        void serve(stream, String(headers[':path'])).catch(() => stream.close())
      })
      server.listen(path, () => resolve(server))
    })
  const servers = [await listen(endpoint), await listen(registrationSocket)]

  return {
    registrationSocket,
    endpoint,
    calls,
    fail: (called, code, message) => void failures.set(called, { code, message }),
    hang: (called) => void hanging.add(called),
    stats(answer) {
      stats = answer
    },
    heal() {
      failures.clear()
      hanging.clear()
    },
    async close() {
      for (const session of sessions) session.destroy()
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
    },
  }
}
